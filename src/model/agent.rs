//! Agents: what is registered, and what is known of one.

use std::str::FromStr;
use std::sync::Arc;

use serde::Serialize;

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
}

impl Agent {
    /// The score of an agent that is registered without one: 200, the lowest of T1.
    pub const NEWCOMER_SCORE: Score = Tier::T1.lowest();

    /// An agent with the score of a newcomer. The id is checked at registration.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), score: Self::NEWCOMER_SCORE, labels: Vec::new() }
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

    /// The parts, each checked.
    pub(crate) fn validated(self) -> Result<(AgentId, Score, Vec<Label>), Error> {
        let id = self.id.parse().map_err(|error: InvalidValue| Error::input("agentId", error.to_string()))?;
        if self.labels.len() > MAX_LABELS {
            return Err(Error::input("labels", format!("expected at most {MAX_LABELS} labels")));
        }
        let mut labels = self
            .labels
            .iter()
            .map(|label| label.parse().map_err(|error: InvalidValue| Error::input("labels", error.to_string())))
            .collect::<Result<Vec<Label>, Error>>()?;
        labels.sort();
        labels.dedup();
        Ok((id, self.score, labels))
    }
}

/// Most labels on one agent.
const MAX_LABELS: usize = 64;

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
}

impl AgentInfo {
    /// The parts put together.
    pub fn new(agent_id: AgentId, trust: TrustSnapshot, state: AgentState, labels: Vec<Label>) -> Self {
        Self { agent_id, trust, state, labels }
    }
}
