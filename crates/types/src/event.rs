//! Events: notifications about decisions, trust changes, proof records and alerts.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    AgentId, Capability, Constraints, Decision, Digest, EscalationId, EventId, IntentId, ProofId, ProofRecord,
    RiskLevel, Score, Tier, Timestamp, TrustSnapshot, closed_words,
};

closed_words! {
    /// The type of an event.
    pub enum EventType("event type") {
        /// A decision was rendered.
        Decision = "governance.decision",
        /// An agent's trust score changed.
        ScoreChanged = "trust.score_changed",
        /// An agent's trust tier changed.
        TierChanged = "trust.tier_changed",
        /// A proof record was committed.
        Recorded = "proof.recorded",
        /// An alert rule, or a built-in alert, fired.
        Alert = "alert.triggered",
    }
}

closed_words! {
    /// The subject of an alert.
    pub enum AlertKind("alert") {
        /// Evaluating the policies in force failed on a condition.
        PolicyError = "policy-error",
        /// The shadow policy set would have decided differently.
        ShadowDiffers = "shadow-differs",
        /// A condition of the shadow policy set failed.
        ShadowError = "shadow-error",
        /// An agent was denied repeatedly.
        Denials = "denials",
        /// An agent requested something at CRITICAL risk.
        Critical = "critical",
        /// An agent dropped below a tier.
        Tier = "tier",
        /// An API key was refused.
        Key = "key",
        /// The hash chain does not verify.
        Chain = "chain",
    }
}

/// A decision, trust change, proof record or alert that is stored on disk.
///
/// Serializes to `{"id","type","timestamp","data"}`. `Governor::subscribe` delivers
/// events.
///
/// ```
/// use rulekeep::event::{EventFilter, EventType};
/// use rulekeep::{Agent, Governor, Intent, RiskLevel, Tier};
/// use std::time::Duration;
///
/// let governor = Governor::builder().open_in_memory()?;
/// governor.agents().register(Agent::new("support-1").at_tier(Tier::T4))?;
/// let mut events = governor.subscribe(&EventFilter::all())?;
/// governor.enforce(&Intent::new("support-1", "read_document", RiskLevel::Low, ["document:read"])?)?;
///
/// let event = events.wait_for(Duration::from_secs(5))?.expect("a decision leaves events");
/// assert_eq!(event.event_type, EventType::Decision);
/// assert_eq!(event.agent_id().map(|id| id.as_str()), Some("support-1"));
/// # Ok::<(), rulekeep::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Event {
    /// The event's id, which stays the same when the event is delivered again.
    pub id: EventId,
    /// The type of the event.
    #[serde(rename = "type")]
    pub event_type: EventType,
    /// The time it happened.
    pub timestamp: Timestamp,
    /// The content, by type.
    pub data: EventData,
}

/// The content of an event, by type.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum EventData {
    /// The content of [`EventType::Decision`].
    Decision(Box<DecisionRendered>),
    /// The content of [`EventType::Recorded`]: the record, without an outcome.
    Recorded(Box<ProofRecord>),
    /// The content of [`EventType::ScoreChanged`] and [`EventType::TierChanged`].
    Trust(Box<TrustChanged>),
    /// The content of [`EventType::Alert`].
    Alert(Box<Alert>),
}

crate::parts::outward! {
    /// A decision, as an event reports it.
    pub struct DecisionRendered from DecisionRenderedParts {
        /// The proof record of the decision.
        pub proof_id: ProofId,
        /// The intent that was evaluated.
        pub intent_id: IntentId,
        /// The agent that made the request.
        pub agent_id: AgentId,
        /// The decision on the intent.
        pub decision: Decision,
        /// A human-readable explanation of the decision.
        pub reasoning: String,
        /// The effective risk of the request.
        pub risk_level: RiskLevel,
        /// The agent's trust at decision time.
        pub trust_snapshot: TrustSnapshot,
        /// The escalation that an ESCALATE decision opened.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub escalation_id: Option<EscalationId>,
        /// Further details from the evidence; `None` if it was erased or cannot be read.
        #[serde(flatten)]
        pub detail: Option<DecisionDetail>,
    }
}

crate::parts::outward! {
    /// The details of a decision that its evidence holds.
    #[derive(Deserialize)]
    pub struct DecisionDetail from DecisionDetailParts {
        /// The granted capabilities.
        pub granted_capabilities: Vec<Capability>,
        /// The denied capabilities.
        pub denied_capabilities: Vec<Capability>,
        /// Constraints on the granted capabilities.
        pub constraints: Constraints,
        /// The digest of the policy set that decided.
        pub policy_digest: Digest,
        /// The ids of the rules that decided.
        pub rules: Vec<String>,
        /// The reviewers asked by an ESCALATE decision, as the policies name them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub reviewers: Vec<String>,
    }
}

crate::parts::outward! {
    /// A change of an agent's trust, as an event reports it.
    pub struct TrustChanged from TrustChangedParts {
        /// The agent whose trust changed.
        pub agent_id: AgentId,
        /// The trust before and after.
        #[serde(flatten)]
        pub change: TrustChange,
        /// The cause: an outcome, or an operator's note.
        pub cause: String,
        /// The record whose outcome was reported or corrected.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub proof_id: Option<ProofId>,
    }
}

crate::parts::outward! {
    /// An agent's trust before and after a change.
    #[derive(Copy, Eq, Deserialize)]
    pub struct TrustChange from TrustChangeParts {
        /// The score before the change.
        pub from: Score,
        /// The score after the change.
        pub to: Score,
        /// The tier before the change.
        pub from_tier: Tier,
        /// The tier after the change.
        pub to_tier: Tier,
    }
}

impl TrustChange {
    /// The change between two snapshots; `None` if they are equal.
    pub fn between(before: TrustSnapshot, after: TrustSnapshot) -> Option<Self> {
        let change = Self { from: before.score, to: after.score, from_tier: before.tier, to_tier: after.tier };
        (before != after).then_some(change)
    }
}

/// An alert: a situation that an operator should look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Alert {
    /// The subject of the alert.
    pub alert: AlertKind,
    /// The policy rule that raised it; `None` for built-in alerts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Arc<str>>,
    /// The severity of the alert.
    pub severity: RiskLevel,
    /// The message for an operator. It contains nothing from a request's context.
    pub message: String,
    /// The agent concerned, or the last one of several; `None` if no agent is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The latest of the records that raised the alert; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof_id: Option<ProofId>,
    /// The records that raised the alert, oldest first; at most the last [`Alert::MOST_PROOFS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proof_ids: Vec<ProofId>,
    /// Number of occurrences since the alert was last raised, including this one.
    pub occurrences: u64,
}

impl Alert {
    /// Maximum number of records that an alert names.
    pub const MOST_PROOFS: usize = 16;

    /// Creates an alert about one occurrence.
    pub const fn new(alert: AlertKind, severity: RiskLevel, agent_id: Option<AgentId>, message: String) -> Self {
        Self { alert, rule: None, severity, message, agent_id, proof_id: None, proof_ids: Vec::new(), occurrences: 1 }
    }

    #[doc(hidden)]
    #[must_use]
    pub fn about(self, proof_ids: Vec<ProofId>) -> Self {
        Self { proof_id: proof_ids.last().copied(), proof_ids, ..self }
    }

    /// Fills in `proof_ids` of an alert stored when alerts named a single record.
    #[must_use]
    pub fn with_records(mut self) -> Self {
        if self.proof_ids.is_empty() {
            self.proof_ids.extend(self.proof_id);
        }
        self
    }
}

impl Event {
    #[doc(hidden)]
    pub fn new(id: EventId, event_type: EventType, timestamp: Timestamp, data: EventData) -> Self {
        Self { id, event_type, timestamp, data }
    }

    /// The agent that the event is about; `None` for an alert about no agent.
    pub fn agent_id(&self) -> Option<&AgentId> {
        match &self.data {
            EventData::Decision(decision) => Some(&decision.agent_id),
            EventData::Recorded(record) => Some(&record.entity_id),
            EventData::Trust(changed) => Some(&changed.agent_id),
            EventData::Alert(alert) => alert.agent_id.as_ref(),
        }
    }
}
