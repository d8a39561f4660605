//! An operator's ruling on a tool, as stored in the log.

use serde::{Deserialize, Serialize};

use rulekeep_types::{Capability, Digest, RiskLevel, ToolOverride};

use super::resemble;

/// An operator's pin or override of a tool, for the definition at that time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolRuling {
    pub(super) name: Box<str>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) server: Option<Box<str>>,
    /// The digest of the accepted definition.
    pub(super) digest: Digest,
    /// The digest of the description and schema, which identifies a renamed tool. Pins of earlier versions have none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) shape: Option<Digest>,
    pub(super) pinned: bool,
    /// Every capability that a call can need by that definition.
    pub(super) capabilities: Vec<Capability>,
    /// The highest risk of a call by that definition.
    pub(super) risk_level: RiskLevel,
    #[serde(rename = "override", skip_serializing_if = "Option::is_none", default)]
    pub(super) set: Option<ToolOverride>,
}

/// The server that a tool was loaded from, and its name.
pub(super) type ToolKey = (Option<Box<str>>, Box<str>);

impl ToolRuling {
    /// A text key that is unique to the tool.
    pub fn key(&self) -> String {
        key_text(self.server.as_deref(), &self.name)
    }

    /// The tool in the form for comparisons.
    pub(super) fn as_accepted(&self) -> resemble::Known<'_> {
        resemble::Known { name: &self.name, server: self.server.as_deref(), shape: self.shape }
    }

    pub(super) fn tool_key(&self) -> ToolKey {
        (self.server.clone(), self.name.clone())
    }

    /// Returns whether the ruling overrides the classification.
    pub const fn is_override(&self) -> bool {
        self.set.is_some()
    }

    /// Merges several rulings found for one tool when none can be trusted: the result accepts no definition, so that
    /// every call is at least HIGH, and has the capabilities and the risk of all of them.
    #[must_use]
    pub fn disputed(mut self, others: impl IntoIterator<Item = Self>) -> Self {
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
