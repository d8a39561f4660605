//! How sensitive the data is that a request touches.

use crate::model::{Classification, Resource};

use super::reading::Act;
use super::sign::{Sign, Signs};

/// The most sensitive that any act touches.
pub(super) fn of(acts: &[Act], signs: Signs) -> Classification {
    let by_act = acts.iter().map(|act| of_resource(act.resource, act.signs)).max().unwrap_or(Classification::Internal);
    let is_sensitive = signs.has(Sign::Secret) || signs.has(Sign::Sensitive);
    if is_sensitive { by_act.max(Classification::Confidential) } else { by_act }
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
