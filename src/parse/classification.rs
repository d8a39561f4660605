//! How sensitive the data is that a request touches.

use crate::model::Resource;

use super::reading::Act;
use super::sign::{Sign, Signs};

/// A level of `dataClassification`, the later the more sensitive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Classification {
    Public,
    Internal,
    Confidential,
    Restricted,
}

impl Classification {
    /// The most sensitive that any act touches.
    pub(crate) fn of(acts: &[Act], signs: Signs) -> Self {
        let by_act = acts.iter().map(|act| of_resource(act.resource, act.signs)).max().unwrap_or(Self::Internal);
        if signs.has(Sign::Secret) || signs.has(Sign::Sensitive) { by_act.max(Self::Confidential) } else { by_act }
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "PUBLIC",
            Self::Internal => "INTERNAL",
            Self::Confidential => "CONFIDENTIAL",
            Self::Restricted => "RESTRICTED",
        }
    }
}

fn of_resource(resource: Resource, signs: Signs) -> Classification {
    match resource {
        Resource::Credential if signs.has(Sign::PublicPart) => Classification::Internal,
        Resource::Credential | Resource::Health => Classification::Restricted,
        Resource::Customer
        | Resource::Payment
        | Resource::Email
        | Resource::Contact
        | Resource::Account
        | Resource::Permission => Classification::Confidential,
        Resource::Information | Resource::Web | Resource::Social | Resource::Media => Classification::Public,
        _ => Classification::Internal,
    }
}
