//! What is told to whoever watches: one envelope, five types.

use serde::{Deserialize, Serialize};

use super::{
    AgentId, Capability, Constraints, Decision, Digest, EventId, IntentId, ProofId, ProofRecord, RiskLevel, Score,
    Tier, Timestamp, TrustSnapshot, closed_words,
};

closed_words! {
    /// What an event tells of.
    pub enum EventType("event type") {
        /// A decision was rendered.
        Decision = "governance.decision",
        /// An agent's trust score changed.
        ScoreChanged = "trust.score_changed",
        /// An agent's trust tier changed.
        TierChanged = "trust.tier_changed",
        /// A proof record was committed.
        Recorded = "proof.recorded",
        /// An alert fired.
        Alert = "alert.triggered",
    }
}

closed_words! {
    /// What an alert is about.
    pub enum AlertKind("alert") {
        /// A decision failed on a condition of the policies in force.
        PolicyError = "policy-error",
        /// The set in the shadow would have decided otherwise.
        ShadowDiffers = "shadow-differs",
        /// A condition of the set in the shadow failed.
        ShadowError = "shadow-error",
    }
}

/// Something that happened and is on disk.
///
/// Serialises to `{"id","type","timestamp","data"}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Event {
    /// The same for the same happening, however often it is told.
    pub id: EventId,
    /// What it tells of.
    #[serde(rename = "type")]
    pub event_type: EventType,
    /// When it happened.
    pub timestamp: Timestamp,
    /// What happened.
    pub data: EventData,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum EventData {
    /// Of [`EventType::Decision`].
    Decision(Box<DecisionRendered>),
    /// Of [`EventType::Recorded`]: the record, without an outcome.
    Recorded(Box<ProofRecord>),
    /// Of [`EventType::ScoreChanged`] and [`EventType::TierChanged`].
    Trust(Box<TrustChanged>),
    /// Of [`EventType::Alert`].
    Alert(Box<Alert>),
}

/// A decision as its event tells it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DecisionRendered {
    /// The record of the decision.
    pub proof_id: ProofId,
    /// The intent that was decided on.
    pub intent_id: IntentId,
    /// Who asked.
    pub agent_id: AgentId,
    /// What was decided.
    pub decision: Decision,
    /// Why.
    pub reasoning: String,
    /// The risk that counted.
    pub risk_level: RiskLevel,
    /// The agent's trust.
    pub trust_snapshot: TrustSnapshot,
    /// What the evidence adds; none where it is gone.
    #[serde(flatten)]
    pub detail: Option<DecisionDetail>,
}

/// The part of a decision that its evidence holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DecisionDetail {
    /// What may be used.
    pub granted_capabilities: Vec<Capability>,
    /// What was refused.
    pub denied_capabilities: Vec<Capability>,
    /// Limits on what was granted.
    pub constraints: Constraints,
    /// The policy set that decided.
    pub policy_digest: Digest,
    /// The rules that decided.
    pub rules: Vec<String>,
}

/// A change of an agent's trust.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TrustChanged {
    /// Whose trust.
    pub agent_id: AgentId,
    /// What it was, what it is.
    #[serde(flatten)]
    pub change: TrustChange,
    /// Why: an outcome, or what an operator noted.
    pub cause: String,
    /// The record whose outcome it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof_id: Option<ProofId>,
}

/// Trust before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TrustChange {
    /// The score before.
    pub from: Score,
    /// The score after.
    pub to: Score,
    /// The tier before.
    pub from_tier: Tier,
    /// The tier after.
    pub to_tier: Tier,
}

impl TrustChange {
    /// The change between two snapshots; none where they are the same.
    pub fn between(before: TrustSnapshot, after: TrustSnapshot) -> Option<Self> {
        let change = Self { from: before.score, to: after.score, from_tier: before.tier, to_tier: after.tier };
        (before != after).then_some(change)
    }
}

/// Something that somebody should look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Alert {
    /// What it is about.
    pub alert: AlertKind,
    /// How much it matters.
    pub severity: RiskLevel,
    /// What happened, in words; nothing of a request's context stands in it.
    pub message: String,
    /// The agent that asked last.
    pub agent_id: AgentId,
    /// The record behind it; none where the decision failed and left none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof_id: Option<ProofId>,
    /// How often the same happened since it was last told, this time counted.
    pub occurrences: u64,
}

impl Alert {
    /// An alert about one happening.
    pub(crate) fn new(alert: AlertKind, severity: RiskLevel, agent_id: AgentId, message: String) -> Self {
        Self { alert, severity, message, agent_id, proof_id: None, occurrences: 1 }
    }

    pub(crate) fn about(self, proof_id: ProofId) -> Self {
        Self { proof_id: Some(proof_id), ..self }
    }
}

impl Event {
    pub(crate) fn new(id: EventId, event_type: EventType, timestamp: Timestamp, data: EventData) -> Self {
        Self { id, event_type, timestamp, data }
    }

    /// The agent that the event is about.
    pub fn agent_id(&self) -> &AgentId {
        match &self.data {
            EventData::Decision(decision) => &decision.agent_id,
            EventData::Recorded(record) => &record.entity_id,
            EventData::Trust(changed) => &changed.agent_id,
            EventData::Alert(alert) => &alert.agent_id,
        }
    }
}
