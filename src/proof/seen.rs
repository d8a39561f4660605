//! What whoever follows the log for alerts sees of an entry, at no more cost than that.

use std::sync::Arc;

use super::entry::{AlertEntry, OutcomeEntry, StateEntry};
use super::fields::RecordFields;
use super::record::CanonicalRecord;
use super::retention::Timed;
use crate::model::{AgentId, Decision, ProofId, RiskLevel, Sequence, Timestamp, TrustChange};
use crate::store::{Frame, Kind};

/// An entry as it is seen.
pub(crate) struct Seen {
    pub(crate) sequence: Sequence,
    pub(crate) at: Timestamp,
    pub(crate) what: Happened,
}

/// What it says.
pub(crate) enum Happened {
    /// A decision that denies, or at CRITICAL risk.
    Decision {
        agent_id: AgentId,
        proof_id: ProofId,
        decision: Decision,
        risk: RiskLevel,
        /// It answers an escalation.
        answers: bool,
    },
    /// An agent's trust moved.
    Trust { agent_id: AgentId, change: TrustChange, proof_id: Option<ProofId> },
    /// An alert was raised by whoever follows the log.
    Alert { rule: Arc<str>, agent_id: AgentId, up_to: Sequence },
}

impl Seen {
    /// What an entry says; none where that is of no concern to alerts, or it cannot be read.
    pub(crate) fn of(frame: &Frame<'_>) -> Option<Self> {
        let (at, what) = match frame.kind {
            Kind::Decision => of_decision(frame.body)?,
            Kind::Outcome => {
                let entry: OutcomeEntry<'_> = serde_json::from_slice(frame.body).ok()?;
                let change = entry.trust?.change;
                let proof_id = Some(entry.proof_id);
                (entry.timestamp, Happened::Trust { agent_id: entry.entity_id, change, proof_id })
            }
            Kind::State => {
                let entry: StateEntry<'_> = serde_json::from_slice(frame.body).ok()?;
                let change = entry.trust?.change;
                (entry.timestamp, Happened::Trust { agent_id: entry.agent_id?, change, proof_id: None })
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

fn of_decision(body: &[u8]) -> Option<(Timestamp, Happened)> {
    let concerns = |decision, risk| decision == Decision::Deny || risk == RiskLevel::Critical;
    // Most are of no concern, which is told without making anything of them.
    if RecordFields::read(body).is_some_and(|fields| !concerns(fields.decision, fields.risk_level)) {
        return None;
    }
    let record = CanonicalRecord::read(body).ok()?;
    concerns(record.decision, record.risk_level).then(|| {
        let what = Happened::Decision {
            agent_id: record.entity_id,
            proof_id: record.id,
            decision: record.decision,
            risk: record.risk_level,
            answers: record.resolves.is_some(),
        };
        (record.timestamp, what)
    })
}

/// When an entry was put in order; none where it cannot be read.
pub(super) fn time_of(frame: &Frame<'_>) -> Option<Timestamp> {
    serde_json::from_slice::<Timed>(frame.body).ok().map(|timed| timed.timestamp)
}
