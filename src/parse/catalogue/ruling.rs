//! What an operator settled of a tool, as the log keeps it.

use serde::{Deserialize, Serialize};

use crate::model::{Capability, Digest, RiskLevel, ToolOverride};

use super::resemble;

/// An operator's pin or override of a tool, for the definition that stood then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolRuling {
    pub(super) name: Box<str>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) server: Option<Box<str>>,
    /// Of the definition that was accepted.
    pub(super) digest: Digest,
    /// Of its description and schema: tells a renamed tool. Pins of earlier versions have none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) shape: Option<Digest>,
    pub(super) pinned: bool,
    /// Everything that a call could need by that definition.
    pub(super) capabilities: Vec<Capability>,
    /// The most that a call could risk by that definition.
    pub(super) risk_level: RiskLevel,
    #[serde(rename = "override", skip_serializing_if = "Option::is_none", default)]
    pub(super) set: Option<ToolOverride>,
}

/// The server that a tool was loaded from, and its name.
pub(super) type ToolKey = (Option<Box<str>>, Box<str>);

impl ToolRuling {
    /// A text that no other tool has.
    pub(crate) fn key(&self) -> String {
        key_text(self.server.as_deref(), &self.name)
    }

    /// The tool as others are compared with it.
    pub(super) fn as_accepted(&self) -> resemble::Known<'_> {
        resemble::Known { name: &self.name, server: self.server.as_deref(), shape: self.shape }
    }

    pub(super) fn tool_key(&self) -> ToolKey {
        (self.server.clone(), self.name.clone())
    }

    /// Whether an operator said what the tool is.
    pub(crate) const fn is_override(&self) -> bool {
        self.set.is_some()
    }

    /// The ruling that stands where several are found for one tool and none can be believed: it accepts no definition, so
    /// that every call is at least HIGH, and needs and risks what any of them says.
    pub(crate) fn disputed(mut self, others: impl IntoIterator<Item = Self>) -> Self {
        (self.digest, self.shape, self.pinned) = (Digest::ZERO, None, true);
        self.take_worst_of_override();
        for mut other in others {
            other.take_worst_of_override();
            let more = other.capabilities.into_iter().filter(|one| !self.capabilities.contains(one));
            self.capabilities.extend(more.collect::<Vec<_>>());
            self.risk_level = self.risk_level.max(other.risk_level);
        }
        self
    }

    fn take_worst_of_override(&mut self) {
        let Some(set) = self.set.take() else { return };
        let more = set.capabilities.into_iter().filter(|one| !self.capabilities.contains(one));
        self.capabilities.extend(more.collect::<Vec<_>>());
        self.risk_level = self.risk_level.max(set.risk.unwrap_or(self.risk_level));
    }
}

pub(super) fn key_text(server: Option<&str>, name: &str) -> String {
    serde_json::json!([server, name]).to_string()
}
