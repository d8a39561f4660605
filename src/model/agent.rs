//! Agents: what is registered, and what is known of one.

use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{AgentId, Error, InvalidValue, Score, Tier, TrustSnapshot, closed_words};

closed_words! {
    /// Whether an agent may act.
    pub enum AgentState("agent state") {
        /// Decided by policy.
        Active = "active",
        /// Everything is denied until it is resumed.
        Suspended = "suspended",
        /// Everything is denied for good.
        Retired = "retired",
    }
}

/// A label on an agent that policies can match: 1 to 128 visible characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(Arc<str>);

impl Label {
    /// The label as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Label {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let well_formed =
            (1..=128).contains(&text.chars().count()) && !text.chars().any(|c| c.is_control() || c.is_whitespace());
        if well_formed {
            Ok(Self(text.into()))
        } else {
            Err(InvalidValue::new("label", text, "1 to 128 characters without blanks"))
        }
    }
}

super::written_as_text!(Label);

/// An agent to register.
///
/// ```
/// use rulekeep::{Agent, Tier};
///
/// let agent = Agent::new("support-1").at_tier(Tier::T3).with_label("support");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    id: String,
    score: Score,
    labels: Vec<String>,
    groups: Vec<String>,
    attributes: Map<String, Value>,
}

impl Agent {
    /// The score of an agent that is registered without one: 200, the lowest of T1.
    pub const NEWCOMER_SCORE: Score = Tier::T1.lowest();

    /// An agent with the score of a newcomer. The id is checked at registration.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            score: Self::NEWCOMER_SCORE,
            labels: Vec::new(),
            groups: Vec::new(),
            attributes: Map::new(),
        }
    }

    /// Starts at the middle of a tier.
    #[must_use]
    pub fn at_tier(mut self, tier: Tier) -> Self {
        self.score = tier.middle();
        self
    }

    /// Starts at a score.
    #[must_use]
    pub fn at_score(mut self, score: Score) -> Self {
        self.score = score;
        self
    }

    /// Adds a label that policies can match.
    #[must_use]
    pub fn with_label(mut self, label: impl Into<String>) -> Self {
        self.labels.push(label.into());
        self
    }

    /// Adds a group that the agent belongs to: policies match it, and limits can be counted by it.
    #[must_use]
    pub fn in_group(mut self, group: impl Into<String>) -> Self {
        self.groups.push(group.into());
        self
    }

    /// Sets an attribute that conditions of policies read as `agent.attributes.<name>`.
    #[must_use]
    pub fn with_attribute(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.attributes.insert(name.into(), value.into());
        self
    }

    /// What policies look at besides the id.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a malformed label, group or attribute.
    pub fn traits(&self) -> Result<AgentTraits, Error> {
        self.clone().validated().map(|(_, _, traits)| traits)
    }

    /// The parts, each checked.
    pub(crate) fn validated(self) -> Result<(AgentId, Score, AgentTraits), Error> {
        let id = self.id.parse().map_err(|error: InvalidValue| Error::input("agentId", error.to_string()))?;
        let (labels, groups) = (checked(&self.labels, "labels")?, checked(&self.groups, "groups")?);
        let size = serde_json::to_string(&self.attributes).map_or(usize::MAX, |text| text.len());
        if size > MAX_ATTRIBUTE_BYTES {
            let expected = format!("expected at most {MAX_ATTRIBUTE_BYTES} bytes of JSON, found {size}");
            return Err(Error::input("attributes", expected));
        }
        Ok((id, self.score, AgentTraits { labels, groups, attributes: self.attributes }))
    }
}

/// What an operator says of an agent, for policies to look at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AgentTraits {
    /// Its labels, sorted.
    #[serde(default)]
    pub labels: Vec<Label>,
    /// The groups that it belongs to, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Label>,
    /// What conditions read as `agent.attributes`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub attributes: Map<String, Value>,
}

fn checked(words: &[String], what: &'static str) -> Result<Vec<Label>, Error> {
    if words.len() > MAX_LABELS {
        return Err(Error::input(what, format!("expected at most {MAX_LABELS} {what}")));
    }
    let mut labels = words
        .iter()
        .map(|word| word.parse().map_err(|error: InvalidValue| Error::input(what, error.to_string())))
        .collect::<Result<Vec<Label>, Error>>()?;
    labels.sort();
    labels.dedup();
    Ok(labels)
}

/// Most labels on one agent, and most groups.
const MAX_LABELS: usize = 64;
/// Most that an agent's attributes take as JSON.
const MAX_ATTRIBUTE_BYTES: usize = 4096;

/// What is known of a registered agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentInfo {
    /// The agent.
    pub agent_id: AgentId,
    /// Its trust now.
    #[serde(flatten)]
    pub trust: TrustSnapshot,
    /// Whether it may act.
    pub state: AgentState,
    /// Its labels, sorted.
    pub labels: Vec<Label>,
    /// The groups that it belongs to, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Label>,
    /// Its attributes.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub attributes: Map<String, Value>,
}

impl AgentInfo {
    /// The parts put together.
    pub(crate) fn new(agent_id: AgentId, trust: TrustSnapshot, state: AgentState, traits: AgentTraits) -> Self {
        let AgentTraits { labels, groups, attributes } = traits;
        Self { agent_id, trust, state, labels, groups, attributes }
    }
}
