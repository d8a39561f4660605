//! The record that answers an escalation.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::Governor;
use super::super::agents;
use super::super::decide::{Recording, Stored};
use super::super::trust::Moved;
use super::{change, state_of};
use crate::model::{
    AgentState, ApprovalOffer, Decision, Error, EscalationRecord, EscalationState, Intent, Outcome, ProofId, RiskLevel,
    Timestamp, TrustCause, Vote,
};
use crate::policy::{Charge, PolicyRequest, PolicyVerdict};
use crate::proof::{OutcomeDraft, TrustMove};
use crate::trust::AgentRecord;

/// What became of an escalation.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    /// All who had to agree have; what is granted, and by which rules.
    Approved { granted: ApprovalOffer, rules: Rules },
    /// A person said no.
    Rejected,
    /// Nobody answered in time, or something came between.
    Ended { why: String },
}

/// The ids of rules.
type Rules = Arc<[Arc<str>]>;

impl Answer {
    const fn state(&self) -> EscalationState {
        match self {
            Self::Approved { .. } => EscalationState::Approved,
            Self::Rejected => EscalationState::Rejected,
            Self::Ended { .. } => EscalationState::Expired,
        }
    }
}

impl Governor {
    /// Writes the record that answers an escalation, with the outcome of the record that asked. `record` is held by
    /// the caller, has the votes that lead to it, and is changed once that is in order. Comes back when it is durable;
    /// the caller tells those who wait, once it holds nothing any more.
    pub(super) fn resolve(&self, record: &mut EscalationRecord, answer: &Answer) -> Result<ProofId, Error> {
        loop {
            // None where a stop came, or an outcome moved to the index: all of it is to be looked at again.
            if let Some(resolved) = self.try_resolve(record, answer)? {
                return Ok(resolved);
            }
        }
    }

    fn try_resolve(&self, record: &mut EscalationRecord, answer: &Answer) -> Result<Option<ProofId>, Error> {
        let inner = &*self.inner;
        inner.log.wait_verified()?;
        let cell = self.registered(&record.agent_id)?;
        let (intent, stored) = self.stored_intent(record)?;
        let now = inner.clock.now();
        let mut agent = cell.write();
        if matches!(answer, Answer::Rejected) {
            self.settle_idleness(&mut agent, now)?;
        }
        let stops = inner.stops.load();
        if matches!(answer, Answer::Approved { .. })
            && let Some(why) = stops.over(&agent).or_else(|| not_active(&agent))
        {
            return Err(Error::Conflict { message: why });
        }
        let request = PolicyRequest {
            intent: &intent,
            risk: record.risk,
            trust: self.trust_of(&agent, now),
            traits: agent.traits(),
            now,
        };
        let verdict = answered(record, answer, &intent);
        let before = record.state;
        let mut next = EscalationRecord { state: answer.state(), ..record.clone() };
        match answer {
            Answer::Approved { granted, .. } => next.grant = Some(granted.clone()),
            Answer::Rejected => {}
            Answer::Ended { why } => next.why = Some(why.clone()),
        }
        let (changed, moved) = self.rejected(&agent, &next, now).unzip();
        let recording = Recording {
            request: &request,
            verdict: &verdict,
            policy_digest: record.policy_digest,
            agent: &agent,
            retry_of: None,
            stored: Some(&stored),
            grant: None,
            bar: None,
            resolution: Some(json!({ "state": next.state, "why": next.why, "votes": next.votes })),
        };
        let draft = self.draft(&recording)?;
        let mut desk = inner.limits.desk(now);
        let committed = inner.log.answer(now, draft, stops.epoch(), record.proof_id, |proof_id, _| {
            next.resolution = Some(proof_id);
            Ok(OutcomeDraft {
                proof_id: record.proof_id,
                entity: record.agent_id.clone(),
                outcome: Outcome::Escalated,
                note: next.votes.last().and_then(|vote| vote.note.clone()),
                state: changed.as_ref().map(agents::state_of).transpose()?,
                asked: Some(state_of(&next)?),
                trust: moved.flatten(),
                basis: None,
            })
        })?;
        let Some(committed) = committed else {
            return Ok(None);
        };
        let charges: Vec<Charge> = charges(&next, answer);
        desk.reserve(&charges, committed.proof_id.sequence(), committed.at);
        drop(desk);
        if let Some(changed) = changed {
            *agent = changed.placed_at(committed.sequence);
        }
        drop(agent);
        next.place = committed.sequence;
        *record = next;
        inner.escalations.changed(before, record);
        let settled = inner.log.settle_decision(committed.sequence, committed.risk);
        settled.map(|()| Some(committed.proof_id))
    }

    /// The agent once what it asked for was rejected, and how its trust moves by that; none where it was not.
    pub(super) fn rejected(
        &self,
        agent: &AgentRecord,
        answered: &EscalationRecord,
        now: Timestamp,
    ) -> Option<(AgentRecord, Option<TrustMove>)> {
        (answered.state == EscalationState::Rejected).then(|| {
            let bearing = self.bearing(agent, now);
            let next = self.inner.trust_model.after_rejection(&agent.trust, answered.risk, bearing);
            let how = Moved { cause: TrustCause::Rejection, risk: Some(answered.risk), gained: None, at: now };
            Self::moved(agent, next, how)
        })
    }

    /// Ends one that was approved and not taken up: its record stands, and grants nothing any more.
    pub(super) fn lapse(&self, record: &mut EscalationRecord, why: &str) -> Result<(), Error> {
        self.inner.log.wait_verified()?;
        let mut next =
            EscalationRecord { state: EscalationState::Expired, why: Some(why.to_owned()), ..record.clone() };
        let now = self.inner.clock.now();
        let sequence = self.inner.log.change(now, change(&next, why)?)?;
        next.place = sequence;
        let before = record.state;
        *record = next;
        self.inner.escalations.changed(before, record);
        self.inner.log.settle(sequence)
    }

    /// The intent as it is kept with the record that asked, and as it goes into the evidence of the one that answers.
    fn stored_intent(&self, record: &EscalationRecord) -> Result<(Intent, Stored), Error> {
        match self.inner.log.evidence(&record.proof_id) {
            Ok(evidence) => {
                let masked = evidence.detail.get("masked").and_then(Value::as_u64).unwrap_or(0);
                let intent = Intent::from_json(&evidence.intent)?;
                Ok((intent, Stored { intent: evidence.intent, masked }))
            }
            // What is left to say of it is who asked for what.
            Err(Error::EvidenceErased { .. } | Error::ProofElsewhere { .. }) => {
                let offer = &record.on_approval;
                let capabilities: Vec<&str> =
                    offer.granted.iter().chain(&offer.denied).map(crate::model::Capability::as_str).collect();
                let mut intent = Intent::new(record.agent_id.as_str(), "erased", RiskLevel::Low, &capabilities)?;
                intent.id = Some(record.intent_id);
                Ok((intent, Stored { intent: Value::Null, masked: 0 }))
            }
            Err(error) => Err(error),
        }
    }

    /// What an approval grants by what holds now: no more than what the reviewer was shown.
    pub(super) fn still_granted(&self, record: &EscalationRecord) -> Result<(ApprovalOffer, Rules), Error> {
        let changed = |what: &str| Error::Conflict {
            message: format!("{} cannot be approved any more: {what}; ask again", record.id()),
        };
        let inner = &*self.inner;
        let policies = inner.policies.load();
        if policies.digest() != record.policy_digest {
            return Err(changed("the policies in force are others"));
        }
        let cell = self.registered(&record.agent_id)?;
        let agent = cell.read();
        if agent.state != AgentState::Active {
            return Err(changed(&format!("the agent is {}", agent.state)));
        }
        let now = inner.clock.now();
        let evidence = inner.log.evidence(&record.proof_id)?;
        let masked = evidence.detail.get("masked").and_then(Value::as_u64).unwrap_or(0);
        if masked > 0 {
            return self.unless_trust_fell(record, &agent, &evidence.detail, &changed);
        }
        let intent = Intent::from_json(&evidence.intent)?;
        let trust = self.trust_of(&agent, now);
        let request = PolicyRequest { intent: &intent, risk: record.risk, trust, traits: agent.traits(), now };
        let verdict = policies.evaluate_with(&request, &mut inner.limits.window(now))?;
        let (granted, constraints) = match (verdict.decision, &verdict.on_approval) {
            (Decision::Escalate, Some(approval)) => (&approval.granted, &approval.constraints),
            (Decision::Allow | Decision::Degrade, _) => (&verdict.granted, &verdict.constraints),
            _ => return Err(changed("it would be denied now")),
        };
        let offer = &record.on_approval;
        let (granted, refused): (Vec<_>, Vec<_>) =
            offer.granted.iter().cloned().partition(|capability| granted.contains(capability));
        if granted.is_empty() {
            return Err(changed("nothing of it would be granted now"));
        }
        let mut limits = offer.constraints.clone();
        limits.tighten(constraints);
        let denied = offer.denied.iter().cloned().chain(refused).collect();
        Ok((ApprovalOffer { granted, denied, constraints: limits }, verdict.rules))
    }

    /// Of an intent with secrets the exact form is nowhere, so that it cannot be evaluated again: what the verdict hung
    /// on besides must be as it was.
    fn unless_trust_fell(
        &self,
        record: &EscalationRecord,
        agent: &AgentRecord,
        detail: &Value,
        changed: &dyn Fn(&str) -> Error,
    ) -> Result<(ApprovalOffer, Rules), Error> {
        let trust = self.trust_of(agent, self.inner.clock.now());
        let tier = detail.pointer("/trustSnapshot/tier").and_then(Value::as_str).and_then(|tier| tier.parse().ok());
        if tier.is_none_or(|tier| trust.tier < tier) {
            return Err(changed("the agent's trust is less"));
        }
        let traits = serde_json::to_value(agent.traits()).unwrap_or_default();
        let is_same = |(name, value): (&String, &Value)| detail.get(name).unwrap_or(&Value::Null) == value;
        if !traits.as_object().is_some_and(|traits| traits.iter().all(is_same)) {
            return Err(changed("the agent's labels, groups or attributes are others"));
        }
        let rules = detail.get("rules").cloned().unwrap_or_default();
        let rules: Vec<Arc<str>> = serde_json::from_value(rules).unwrap_or_default();
        Ok((record.on_approval.clone(), rules.into()))
    }
}

fn not_active(agent: &AgentRecord) -> Option<String> {
    (agent.state != AgentState::Active).then(|| format!("agent {} is {}", agent.agent_id, agent.state))
}

/// What an approved use takes of limits.
fn charges(record: &EscalationRecord, answer: &Answer) -> Vec<Charge> {
    let Answer::Approved { .. } = answer else { return Vec::new() };
    let charge = |(counter, amount): &(Box<str>, i64)| Charge {
        counter: counter.clone(),
        amount: *amount,
        most: i64::MAX,
        window: 0,
    };
    record.charges.iter().map(charge).collect()
}

/// The verdict that an answer comes to.
fn answered(record: &EscalationRecord, answer: &Answer, intent: &Intent) -> PolicyVerdict {
    let asked = record.proof_id;
    let who = |votes: &[Vote], approved: bool| {
        let names: Vec<&str> =
            votes.iter().filter(|vote| vote.approved == approved).map(|vote| vote.reviewer.as_str()).collect();
        names.join(" and ")
    };
    let last_note = record.votes.last().and_then(|vote| vote.note.as_deref());
    let note = last_note.map(|note| format!(": {note}")).unwrap_or_default();
    match answer {
        Answer::Approved { granted, rules } => {
            let decision = if granted.denied.is_empty() { Decision::Allow } else { Decision::Degrade };
            let word = if decision == Decision::Allow { "Allowed" } else { "Allowed in part" };
            let reasoning = format!("{word}: {} approved what {asked} asked for{note}", who(&record.votes, true));
            let mut verdict = PolicyVerdict::of_no_rule(&intent.required_capabilities, reasoning);
            verdict.decision = decision;
            verdict.granted.clone_from(&granted.granted);
            verdict.denied.clone_from(&granted.denied);
            verdict.constraints = granted.constraints.clone();
            verdict.rules = Arc::clone(rules);
            verdict.rules_total = rules.len();
            verdict.charges = charges(record, answer);
            verdict
        }
        Answer::Rejected => {
            let reasoning = format!("Denied: {} rejected what {asked} asked for{note}", who(&record.votes, false));
            PolicyVerdict::of_no_rule(&intent.required_capabilities, reasoning)
        }
        Answer::Ended { why } => {
            let reasoning = format!("Denied: what {asked} asked for was not approved: {why}");
            PolicyVerdict::of_no_rule(&intent.required_capabilities, reasoning)
        }
    }
}
