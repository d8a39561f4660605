//! Reading the part of an entry that alert rules need, at low cost.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::moves::MovedTrust;
use crate::journal::entry::AlertEntry;
use crate::journal::evidence;
use crate::journal::record::CanonicalRecord;
use crate::store::{Frame, Kind};
use rulekeep_types::{
    AgentId, AgentState, Decision, DenialClass, ENDED_BY_KILL_SWITCH, ENDED_BY_KILL_SWITCH_BEFORE, ProofId, RiskLevel,
    Sequence, Timestamp, TrustChange,
};

/// An entry as alert rules see it.
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct Seen {
    pub sequence: Sequence,
    pub at: Timestamp,
    pub what: Happened,
}

/// The content of an entry that alert rules need.
#[allow(missing_docs)] // engines exchange it; the names say it
pub enum Happened {
    /// A decision that denies, or at CRITICAL risk.
    Decision {
        agent_id: AgentId,
        proof_id: ProofId,
        decision: Decision,
        risk: RiskLevel,
        /// The decision answers an escalation.
        answers: bool,
        /// No policy was evaluated, because the agent was stopped by the kill switch, suspended or retired, or the
        /// governor had no permit.
        is_barred: bool,
    },
    /// A change of an agent's trust.
    Trust { agent_id: AgentId, change: TrustChange, proof_id: Option<ProofId> },
    /// An alert that was raised by an alert rule.
    Alert { rule: Arc<str>, agent_id: AgentId, up_to: Sequence },
}

impl Seen {
    /// Reads an entry; `None` if alert rules do not need it, or it cannot be parsed.
    pub fn of(frame: &Frame<'_>) -> Option<Self> {
        let (at, what) = match frame.kind {
            Kind::Decision => of_decision(frame)?,
            Kind::Outcome | Kind::State => {
                let MovedTrust { agent_id, timestamp, trust, proof_id, outcome, .. } = MovedTrust::read(frame)?;
                let proof_id = outcome.and(proof_id);
                (timestamp, Happened::Trust { agent_id, change: trust.change, proof_id })
            }
            Kind::Alert => {
                let AlertEntry { alert, up_to, timestamp } = serde_json::from_slice(frame.body).ok()?;
                (timestamp, Happened::Alert { rule: alert.rule?, agent_id: alert.agent_id?, up_to: up_to? })
            }
            _ => return None,
        };
        Some(Self { sequence: frame.sequence, at, what })
    }
}

fn of_decision(frame: &Frame<'_>) -> Option<(Timestamp, Happened)> {
    let body = frame.body;
    let concerns = |decision, risk| decision == Decision::Deny || risk == RiskLevel::Critical;
    let record = CanonicalRecord::read_facts(body, |_| None).ok()?;
    concerns(record.decision, record.risk_level).then(|| {
        let what = Happened::Decision {
            agent_id: record.entity_id,
            proof_id: record.id,
            decision: record.decision,
            risk: record.risk_level,
            answers: record.resolves.is_some(),
            is_barred: record.decision == Decision::Deny && is_barred(frame.evidence),
        };
        (record.timestamp, what)
    })
}

/// The part of the evidence that tells why an agent could not act.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Barred {
    agent_state: AgentState,
    /// The kill switch that denied the decision.
    stop: Option<IgnoredAny>,
    denial_class: Option<DenialClass>,
    /// The end of an escalation.
    resolution: Option<Ended>,
}

#[derive(Deserialize)]
struct Ended {
    why: Option<String>,
}

/// Returns whether evidence says that the agent could not act; false if it was erased.
fn is_barred(evidence: &[u8]) -> bool {
    evidence::detail::<Barred>(evidence).is_some_and(|Barred { agent_state, stop, denial_class, resolution }| {
        let is_of_stop = |why: String| [ENDED_BY_KILL_SWITCH, ENDED_BY_KILL_SWITCH_BEFORE].contains(&why.as_str());
        let ended_by_stop = resolution.and_then(|ended| ended.why).is_some_and(is_of_stop);
        let has_no_permit = denial_class == Some(DenialClass::NoPermit);
        stop.is_some() || agent_state != AgentState::Active || has_no_permit || ended_by_stop
    })
}
