//! What is told to whoever watches: one envelope, five types.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    AgentId, Capability, Constraints, Decision, Digest, EscalationId, EventId, IntentId, ProofId, ProofRecord,
    RiskLevel, Score, Tier, Timestamp, TrustSnapshot, closed_words,
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
        /// An agent was denied again and again.
        Denials = "denials",
        /// An agent attempted something at CRITICAL risk.
        Critical = "critical",
        /// An agent dropped below a tier.
        Tier = "tier",
        /// A key was refused.
        Key = "key",
        /// The chain does not verify.
        Chain = "chain",
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
    /// The escalation that an ESCALATE opens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub escalation_id: Option<EscalationId>,
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
    /// Who is asked, where it is an ESCALATE: each reviewer as the policies name them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviewers: Vec<String>,
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
    /// The record whose outcome it was, or was corrected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof_id: Option<ProofId>,
}

/// Trust before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
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
    /// The rule of the policies that asks for it; none where it is built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Arc<str>>,
    /// How much it matters.
    pub severity: RiskLevel,
    /// What happened, in words; nothing of a request's context stands in it.
    pub message: String,
    /// The agent that it is about, or that asked last; none where it is about no agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The last of the records behind it; none where what happened left none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof_id: Option<ProofId>,
    /// The records behind it, the oldest first: the last [`Alert::MOST_PROOFS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proof_ids: Vec<ProofId>,
    /// How often the same happened since it was last told, this time counted.
    pub occurrences: u64,
}

impl Alert {
    /// The most records that an alert names.
    pub const MOST_PROOFS: usize = 16;

    /// An alert about one happening.
    pub(crate) const fn new(alert: AlertKind, severity: RiskLevel, agent_id: Option<AgentId>, message: String) -> Self {
        Self { alert, rule: None, severity, message, agent_id, proof_id: None, proof_ids: Vec::new(), occurrences: 1 }
    }

    pub(crate) fn about(self, proof_ids: Vec<ProofId>) -> Self {
        Self { proof_id: proof_ids.last().copied(), proof_ids, ..self }
    }

    /// With the records behind it, where it was written down when an alert named one alone.
    pub(crate) fn with_records(mut self) -> Self {
        if self.proof_ids.is_empty() {
            self.proof_ids.extend(self.proof_id);
        }
        self
    }
}

impl Event {
    pub(crate) fn new(id: EventId, event_type: EventType, timestamp: Timestamp, data: EventData) -> Self {
        Self { id, event_type, timestamp, data }
    }

    /// The agent that the event is about; none where it is an alert about none.
    pub fn agent_id(&self) -> Option<&AgentId> {
        match &self.data {
            EventData::Decision(decision) => Some(&decision.agent_id),
            EventData::Recorded(record) => Some(&record.entity_id),
            EventData::Trust(changed) => Some(&changed.agent_id),
            EventData::Alert(alert) => alert.agent_id.as_ref(),
        }
    }
}
