//! Reporting the outcomes of actions, and their effect on trust.

use crate::governor::roster::{agents, trust::Moved};
use crate::governor::states::checked_note;
use crate::governor::{Decider, Governor};
use crate::model::{Decision, Error, Outcome, OutcomeReport, ProofId, RiskLevel, Sequence, TrustCause, TrustSnapshot};
use crate::proof::{OutcomeBasis, OutcomeDraft};
use crate::telemetry::Work;
use crate::trust::TrustEvent;

impl Governor {
    /// Reports the outcome of an action, updates the agent's trust, and returns the new trust.
    ///
    /// The first outcome of a decision is final; repeating it changes nothing. A SUCCESS is recorded but earns no trust
    /// if the decision is older than seven days or than the agent's last loss of a tier. Reporting the outcome of a
    /// pending escalation ends it: the action was carried out or given up without an answer.
    ///
    /// # Errors
    ///
    /// [`Error::ProofNotFound`]; [`Error::Conflict`] for a second, different outcome, and for a SUCCESS of an approved
    /// escalation that nobody claimed; [`Error::InvalidInput`] for a note of more than 4,096 characters;
    /// [`Error::StorageUnavailable`] or [`Error::ChainBroken`] when it cannot be recorded.
    pub fn report<'a>(
        &self,
        proof_id: &ProofId,
        outcome: impl Into<OutcomeReport<'a>>,
    ) -> Result<TrustSnapshot, Error> {
        self.inner.here()?.decider.report(proof_id, outcome.into())
    }

    /// Reports that the outcome of an action is unknown, for example because its host does not return results. The log
    /// records it with an optional note of at most 4,096 characters. The record still has no outcome, statistics and
    /// trust stay unchanged, and [`Governor::report`] can report the outcome later. Each call adds an entry. An
    /// escalation that is pending ends, with the note as the reason.
    ///
    /// ```
    /// use rulekeep::{Governor, Outcome};
    ///
    /// let governor = Governor::builder().auto_register().open_in_memory()?;
    /// let verdict = governor.enforce_input("support-1", "Summarize the meeting notes")?.enforcement;
    /// governor.report_unknown(&verdict.proof_id, Some("the host does not tell results"))?;
    /// assert_eq!(governor.log().record(&verdict.proof_id)?.outcome, None);
    /// governor.report(&verdict.proof_id, Outcome::Success)?;
    /// assert!(governor.report_unknown(&verdict.proof_id, None).is_err());
    /// # Ok::<(), rulekeep::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::ProofNotFound`]; [`Error::Conflict`] when the record has an outcome, and for an approved escalation
    /// that nobody claimed; [`Error::InvalidInput`] for a note that is too long; [`Error::StorageUnavailable`] or
    /// [`Error::ChainBroken`] when it cannot be recorded.
    pub fn report_unknown(&self, proof_id: &ProofId, note: Option<&str>) -> Result<(), Error> {
        self.inner.here()?.decider.report_unknown(proof_id, note)
    }
}

impl Decider {
    fn report(&self, proof_id: &ProofId, report: OutcomeReport<'_>) -> Result<TrustSnapshot, Error> {
        let note = report.note.map(checked_note).transpose()?;
        Work::report().done_by(|work| {
            work.note("rulekeep.proof.id", proof_id).note("rulekeep.outcome", &report.outcome);
            let reported = self.enqueue_outcome(proof_id, report, note.as_deref())?;
            if let Some((sequence, risk)) = reported.entry {
                self.base.log.settle_decision(sequence, risk)?;
            }
            Ok(reported.trust)
        })
    }

    fn report_unknown(&self, proof_id: &ProofId, note: Option<&str>) -> Result<(), Error> {
        let note = note.map(checked_note).transpose()?;
        Work::report().done_by(|work| {
            work.note("rulekeep.proof.id", proof_id).note("rulekeep.outcome", &"UNKNOWN");
            self.base.log.wait_verified()?;
            let facts = self.base.log.facts(proof_id)?;
            self.approvals.check_claimed(*proof_id)?;
            let sequence =
                self.base.log.report_unknown(self.base.clock.now(), &facts.entity, proof_id, note.as_deref())?;
            self.approvals.end_reported(*proof_id, note.as_deref().unwrap_or("the outcome UNKNOWN was reported"))?;
            self.base.log.settle_decision(sequence, facts.risk)
        })
    }

    /// Enqueues an outcome without waiting for the disk.
    pub(crate) fn enqueue_outcome(
        &self,
        proof_id: &ProofId,
        report: OutcomeReport<'_>,
        note: Option<&str>,
    ) -> Result<Reported, Error> {
        let outcome = report.outcome;
        self.base.log.wait_verified()?;
        let facts = self.base.log.facts(proof_id)?;
        self.approvals.withdraw_unclaimed(*proof_id, outcome)?;
        let cell = self.roster.registered(&facts.entity)?;
        // Reserved before the agent is locked, so that its decisions do not wait for the index.
        let Some(reserved) = self.base.log.reserve_for(&facts.entity, proof_id, outcome)? else {
            let trust = self.roster.trust_of(&cell.read(), self.base.clock.now());
            return Ok(Reported { trust, entry: None });
        };
        let now = self.base.clock.now();
        let mut agent = cell.write();
        self.roster.settle_idleness(&mut agent, now)?;
        // A decision from before the clock stepped back is older than its timestamp says.
        let still_earns = self.roster.trust_model.still_earns(&agent.trust, proof_id.at(), now)
            && !self.base.log.queue().is_of_earlier_time(proof_id.sequence());
        let earns = Some(facts.earns).filter(|_| still_earns);
        let event = TrustEvent { outcome, decision: facts.decision, risk: facts.risk, earns };
        let next = self.roster.trust_model.after(&agent.trust, event, self.roster.bearing(&agent, now));
        let (changed, moved) = agent.moved(next, Moved::by(TrustCause::Outcome, now));
        let keeps_limits = outcome == Outcome::Failure && report.by_agent;
        let basis = OutcomeBasis { decision: facts.decision, risk: facts.risk, earns, at: now, keeps_limits };
        let draft = OutcomeDraft {
            proof_id: *proof_id,
            entity: facts.entity.clone(),
            outcome,
            note: note.map(str::to_owned),
            state: Some(agents::state_of(&changed)?),
            asked: None,
            trust: moved,
            basis: Some(basis),
        };
        let sequence = reserved.report(now, draft)?;
        *agent = changed.placed_at(sequence);
        if OutcomeBasis::gives_back(Some(basis), outcome) {
            self.rules.limits.give_back(proof_id.sequence());
        }
        let trust = self.roster.trust_of(&agent, now);
        drop(agent);
        if facts.decision == Decision::Escalate {
            self.approvals
                .end_reported(*proof_id, &format!("the outcome {outcome} was reported before anybody answered"))?;
        }
        Ok(Reported { trust, entry: Some((sequence, facts.risk)) })
    }
}

/// An outcome that is enqueued.
pub(crate) struct Reported {
    /// The agent's new trust.
    pub(crate) trust: TrustSnapshot,
    /// The entry to wait for, and the risk that selects its durability; `None` if the record already had this outcome.
    pub(crate) entry: Option<(Sequence, RiskLevel)>,
}
