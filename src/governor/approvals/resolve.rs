//! The record that resolves an escalation.

use std::sync::Arc;

use serde_json::{Value, json};

use super::grant::Grant;
use super::{AskedEvidence, evidence_conflict, state_of};
use crate::governor::intake::input_text::Stored;
use crate::governor::record::{Attempt, Origin, Recording};
use crate::governor::roster::{agents, trust::Moved};
use crate::governor::rules::shared_limits::Taking;
use crate::governor::tasks::Under;
use crate::governor::{Approvals, conflict};
use crate::model::{
    Decision, DenialClass, Error, EscalationRecord, EscalationState, Intent, Outcome, ProofId, RiskLevel, Timestamp,
    TrustCause, Vote,
};
use crate::policy::{PolicyRequest, PolicyVerdict};
use crate::proof::{Committed, DecisionDraft, OutcomeDraft, StateDraft, TrustMove};
use crate::trust::AgentRecord;

/// The way an escalation is resolved.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    /// Every required reviewer has approved; the grant follows from the current conditions.
    Approved,
    /// A reviewer rejected it.
    Rejected,
    /// Nobody answered in time, or a change ended it.
    Ended { why: String },
}

impl Answer {
    const fn state(&self) -> EscalationState {
        match self {
            Self::Approved => EscalationState::Approved,
            Self::Rejected => EscalationState::Rejected,
            Self::Ended { .. } => EscalationState::Expired,
        }
    }
}

/// The escalated request, from the evidence of its record.
pub(super) struct EscalatedRequest {
    pub(super) intent: Intent,
    stored: Stored,
    /// The other parts of the evidence.
    pub(super) detail: Value,
}

impl EscalatedRequest {
    /// Returns whether its exact form is not stored, because secrets in it are redacted.
    pub(super) const fn is_masked(&self) -> bool {
        self.stored.masked > 0
    }
}

impl Approvals {
    /// Enqueues the record that resolves an escalation, with the outcome of the record that opened it. The caller holds
    /// `record`, which contains the deciding votes and is updated. The caller then waits for the commit, and notifies
    /// the waiters once it holds no lock.
    pub(super) fn resolve(&self, record: &mut EscalationRecord, answer: &Answer) -> Result<Committed, Error> {
        let mut taking = self.rules.taking();
        loop {
            match self.try_resolve(record, answer, &mut taking)? {
                Attempt::Done(committed) => return Ok(committed),
                Attempt::Stopped => {}
                // Of all locks, only that of this escalation is held meanwhile.
                Attempt::Missing(uses) => taking.take(uses, &format!("approval-{}", record.proof_id)),
            }
        }
    }

    fn try_resolve(
        &self,
        record: &mut EscalationRecord,
        answer: &Answer,
        taking: &mut Taking<'_>,
    ) -> Result<Attempt<Committed>, Error> {
        self.base.log.wait_verified()?;
        let cell = self.roster.registered(&record.agent_id)?;
        let asked = match (self.asked_for(record)?, answer) {
            (Ok(asked), _) => asked,
            (Err(why), Answer::Approved) => return Err(evidence_conflict(record, "approved", &why)),
            // These grant nothing, so the request need not be readable.
            (Err(_), Answer::Rejected | Answer::Ended { .. }) => untold(record)?,
        };
        // Reserved before the agent is locked, so that its decisions do not wait for the index.
        let reserved = self.base.log.reserve_outcome(&record.agent_id, &record.proof_id)?.map_err(|standing| {
            let message =
                format!("the record of the escalation has the outcome {standing} already; the first one stands");
            Error::Conflict { message }
        })?;
        let now = self.base.clock.now();
        let mut agent = cell.write();
        if matches!(answer, Answer::Rejected) {
            self.roster.settle_idleness(&mut agent, now)?;
        }
        let stops = self.roster.stops.load();
        // The limits stay locked until the grant's use is recorded, as for a decision.
        let mut meter = self.rules.limits.meter(now, taking);
        let mut grant = None;
        if matches!(answer, Answer::Approved) {
            if let Some(why) = stops.refusal(&agent) {
                return conflict(why);
            }
            let granted = self.still_granted(record, &asked, &agent, now, &mut meter)?;
            if let Some(uses) = taking.missing(&granted.charges) {
                return Ok(Attempt::Missing(uses));
            }
            grant = Some(granted);
        }
        let request = PolicyRequest {
            intent: &asked.intent,
            risk: record.risk,
            trust: self.roster.trust_of(&agent, now),
            traits: agent.traits(),
            now,
        };
        let verdict = answered(record, answer, grant.as_ref(), &asked.intent);
        let before = record.state;
        let mut next = EscalationRecord { state: answer.state(), ..record.clone() };
        if let Answer::Ended { why } = answer {
            next.why = Some(why.clone());
        }
        let charges = grant.map(|Grant { offer, charges, .. }| {
            next.grant = Some(offer);
            charges
        });
        let (changed, moved) = self.rejected(&agent, &next, now).unzip();
        let recording = Recording {
            request: &request,
            verdict: &verdict,
            policy_digest: record.policy_digest,
            agent: &agent,
            origin: Origin { stamp: asked.intent.stamp(), ..Origin::default() },
            stored: Some(&asked.stored),
            grant: None,
            denial: None,
            resolution: Some(json!({ "state": next.state, "why": next.why, "votes": next.votes })),
            class: (verdict.decision == Decision::Deny).then_some(DenialClass::Policy),
            under: asked.detail.get("task").map_or(Under::Policies, Under::Answer),
        };
        let draft =
            DecisionDraft { resolves: Some(record.proof_id), ..recording.draft(&self.base, &self.intake.inputs)? };
        // Everything except the id is serialized before the log is locked.
        let stand_in = ProofId::new(now, draft.random, StateDraft::OWN_PLACE);
        next.resolution = Some(stand_in);
        let mut standing = state_of(&next)?;
        let outcome = OutcomeDraft {
            proof_id: record.proof_id,
            entity: record.agent_id.clone(),
            outcome: Outcome::Escalated,
            note: next.votes.last().and_then(|vote| vote.note.clone()),
            state: changed.as_ref().map(agents::state_of).transpose()?,
            asked: None,
            trust: moved.flatten(),
            basis: None,
        };
        let committed = reserved.answer(now, draft, stops.epoch(), |proof_id| {
            standing.name(&stand_in, &proof_id);
            OutcomeDraft { asked: Some(standing), ..outcome }
        })?;
        let Some(committed) = committed else {
            return Ok(Attempt::Stopped);
        };
        let charges = charges.unwrap_or_default();
        meter.reserve(&charges, committed.proof_id.sequence(), committed.at);
        drop(meter);
        taking.charge(&charges);
        if let Some(changed) = changed {
            *agent = changed.placed_at(committed.sequence);
        }
        drop(agent);
        next.resolution = Some(committed.proof_id);
        next.place = committed.sequence;
        *record = next;
        self.queue.changed(before, record);
        Ok(Attempt::Done(committed))
    }

    /// The agent after its request was rejected, with the change of its trust; `None` if it was not rejected.
    pub(super) fn rejected(
        &self,
        agent: &AgentRecord,
        answered: &EscalationRecord,
        now: Timestamp,
    ) -> Option<(AgentRecord, Option<TrustMove>)> {
        (answered.state == EscalationState::Rejected).then(|| {
            let bearing = self.roster.bearing(agent, now);
            let next = self.roster.trust_model.after_rejection(&agent.trust, answered.risk, bearing);
            let how = Moved { cause: TrustCause::Rejection, risk: Some(answered.risk), gained: None, at: now };
            agent.moved(next, how)
        })
    }

    /// The intent from the evidence of the record that opened the escalation, and in the form to store with the
    /// resolving record; or the reason it is unavailable.
    pub(super) fn asked_for(&self, record: &EscalationRecord) -> Result<Result<EscalatedRequest, String>, Error> {
        let evidence = match self.asked_evidence(record)? {
            AskedEvidence::Whole(evidence) => *evidence,
            AskedEvidence::Elsewhere(why) | AskedEvidence::Lost(why) => return Ok(Err(why)),
        };
        let masked = evidence.detail.get("masked").and_then(Value::as_u64).unwrap_or(0);
        Ok(match Intent::from_json(&evidence.intent) {
            Ok(intent) => Ok(EscalatedRequest {
                intent,
                stored: Stored { intent: evidence.intent, masked },
                detail: evidence.detail,
            }),
            Err(error) => Err(format!("its evidence holds no valid intent: {error}")),
        })
    }
}

/// A stand-in for a request that cannot be read: its agent and capabilities.
fn untold(record: &EscalationRecord) -> Result<EscalatedRequest, Error> {
    let offer = &record.on_approval;
    let capabilities: Vec<&str> =
        offer.granted.iter().chain(&offer.denied).map(crate::model::Capability::as_str).collect();
    let mut intent = Intent::new(record.agent_id.as_str(), "erased", RiskLevel::Low, &capabilities)?;
    intent.id = Some(record.intent_id);
    Ok(EscalatedRequest { intent, stored: Stored { intent: Value::Null, masked: 0 }, detail: Value::Null })
}

/// The verdict that follows from an answer.
fn answered(record: &EscalationRecord, answer: &Answer, grant: Option<&Grant>, intent: &Intent) -> PolicyVerdict {
    let asked = record.proof_id;
    let who = |votes: &[Vote], approved: bool| {
        let names: Vec<&str> =
            votes.iter().filter(|vote| vote.approved == approved).map(|vote| vote.reviewer.as_str()).collect();
        names.join(" and ")
    };
    let last_note = record.votes.last().and_then(|vote| vote.note.as_deref());
    let note = last_note.map(|note| format!(": {note}")).unwrap_or_default();
    match (grant, answer) {
        (Some(Grant { offer, rules, charges }), _) => {
            let decision = if offer.denied.is_empty() { Decision::Allow } else { Decision::Degrade };
            let word = if decision == Decision::Allow { "Allowed" } else { "Allowed in part" };
            let reasoning = format!("{word}: {} approved the request of {asked}{note}", who(&record.votes, true));
            let mut verdict = PolicyVerdict::of_no_rule(&intent.required_capabilities, reasoning);
            verdict.decision = decision;
            verdict.granted.clone_from(&offer.granted);
            verdict.denied.clone_from(&offer.denied);
            verdict.constraints = offer.constraints.clone();
            verdict.rules = Arc::clone(rules);
            verdict.rules_total = rules.len();
            verdict.charges.clone_from(charges);
            verdict
        }
        (None, Answer::Ended { why }) => {
            let reasoning = format!("Denied: the request of {asked} was not approved: {why}");
            PolicyVerdict::of_no_rule(&intent.required_capabilities, reasoning)
        }
        (None, Answer::Approved | Answer::Rejected) => {
            let reasoning = format!("Denied: {} rejected the request of {asked}{note}", who(&record.votes, false));
            PolicyVerdict::of_no_rule(&intent.required_capabilities, reasoning)
        }
    }
}
