//! What people say to an escalation, and whether they may.

use std::sync::MutexGuard;

use super::super::Governor;
use super::super::states::checked_note;
use super::asked_evidence::evidence_conflict;
use super::digest::{asker, folded, seen_as};
use super::queue::Open;
use super::resolve::Answer;
use super::{Escalations, change};
use crate::model::{
    Error, EscalationId, EscalationRecord, EscalationState, Resolved, Review, ReviewNeed, Timestamp, Vote,
    checked_person,
};
use crate::telemetry::Work;

impl Escalations<'_> {
    /// Agrees to an escalation. When all have who had to, what was asked for is granted: a new record says so, and the
    /// outcome of the one that asked is ESCALATED. [`Escalations::claim`] takes it up, once.
    ///
    /// What holds by then counts: the policy set must be the one that asked, the agent active and not stopped, and what
    /// the policies would grant now is all that is granted of it.
    ///
    /// # Errors
    ///
    /// [`Error::Forbidden`] for who is not asked, or asked for it; [`Error::Conflict`] when it ended, expired, was
    /// approved by the same person, is not what the reviewer was shown, or cannot be granted any more;
    /// [`Error::ProofNotFound`]; [`Error::InvalidInput`]; [`Error::StorageUnavailable`], [`Error::ChainBroken`].
    pub fn approve(self, id: EscalationId, review: Review) -> Result<Resolved, Error> {
        Work::approve().done_by(|work| self.told(work, id, self.approve_for(id, review)))
    }

    fn approve_for(self, id: EscalationId, review: Review) -> Result<Resolved, Error> {
        let governor = self.governor;
        governor.wait_mended()?;
        governor.end_if_due(id);
        let is_for_task = review.is_for_task;
        let vote = governor.vote(review, true)?;
        let open = governor.open_escalation(id)?;
        let mut record = open.lock();
        vote.check(&record)?;
        let mut voted = record.clone();
        voted.votes.push(vote.vote);
        if !is_agreed(&voted) {
            let now = governor.inner.clock.now();
            governor.can_be_granted(&record, now)?;
            let sequence = governor.inner.log.queue().change(now, change(&voted, "a reviewer agrees")?)?;
            voted.place = sequence;
            *record = voted;
            governor.inner.approvals.queue.changed(EscalationState::Pending, &record);
            drop(record);
            governor.inner.log.settle(sequence)?;
            return Ok(Resolved::new(EscalationState::Pending, None));
        }
        let resolved = governor.resolve_voted(&open, record, voted, &Answer::Approved)?;
        governor.endorsed(id.proof_id(), is_for_task)?;
        Ok(resolved)
    }

    /// Rejects an escalation: one who is asked is enough. A DENY record says so, the outcome of the one that asked is
    /// ESCALATED, and the agent loses trust.
    ///
    /// # Errors
    ///
    /// Those of [`Escalations::approve`].
    pub fn reject(self, id: EscalationId, review: Review) -> Result<Resolved, Error> {
        Work::reject().done_by(|work| self.told(work, id, self.reject_for(id, review)))
    }

    /// Notes what an answer came to.
    fn told(self, work: &Work, id: EscalationId, answered: Result<Resolved, Error>) -> Result<Resolved, Error> {
        work.note("rulekeep.escalation.id", &id);
        if let Ok(resolved) = &answered {
            work.note("rulekeep.escalation.state", &resolved.state);
        }
        self.governor.publish_pending();
        answered
    }

    fn reject_for(self, id: EscalationId, review: Review) -> Result<Resolved, Error> {
        let governor = self.governor;
        governor.wait_mended()?;
        governor.end_if_due(id);
        let vote = governor.vote(review, false)?;
        let open = governor.open_escalation(id)?;
        let record = open.lock();
        vote.check(&record)?;
        let mut voted = record.clone();
        voted.votes.push(vote.vote);
        governor.resolve_voted(&open, record, voted, &Answer::Rejected)
    }
}

/// A vote that is not cast yet.
struct Ballot {
    vote: Vote,
    digest: Option<crate::model::Digest>,
    now: Timestamp,
}

impl Governor {
    /// Answers with the last vote, and tells those who wait once that is durable, or cannot be.
    fn resolve_voted(
        &self,
        open: &Open,
        mut record: MutexGuard<'_, EscalationRecord>,
        mut voted: EscalationRecord,
        answer: &Answer,
    ) -> Result<Resolved, Error> {
        let committed = self.resolve(&mut voted, answer)?;
        // Also where it cannot be made durable: it is in order.
        let state = voted.state;
        *record = voted;
        // Whoever awaits it looks at the record from a thread that must not wait for the disk.
        drop(record);
        let settled = self.inner.log.settle_decision(committed.sequence, committed.risk);
        open.tell();
        settled.map(|()| Resolved::new(state, Some(committed.proof_id)))
    }

    /// Whether an approval would grant anything by what holds now.
    fn can_be_granted(&self, record: &EscalationRecord, now: Timestamp) -> Result<(), Error> {
        let cell = self.registered(&record.agent_id)?;
        let asked = self.asked_for(record)?.map_err(|why| evidence_conflict(record, "approved", &why))?;
        let agent = cell.read();
        self.still_granted(record, &asked, &agent, now, &mut self.inner.limits.window(now)).map(drop)
    }

    fn vote(&self, review: Review, approved: bool) -> Result<Ballot, Error> {
        let (digest, now) = (review.digest, self.inner.clock.now());
        Ok(Ballot { vote: checked_vote(review, approved, now)?, digest, now })
    }
}

/// A reviewer's vote, fit to be kept.
pub(super) fn checked_vote(review: Review, approved: bool, at: Timestamp) -> Result<Vote, Error> {
    let reviewer = checked_person("reviewer", &review.reviewer)?;
    let note = review.note.filter(|note| !note.is_empty());
    let note = note.as_deref().map(checked_note).transpose()?;
    Ok(Vote { reviewer, approved, note, at })
}

impl Ballot {
    fn check(&self, record: &EscalationRecord) -> Result<(), Error> {
        let conflict = |message: String| Err(Error::Conflict { message });
        let (id, reviewer) = (record.id(), &self.vote.reviewer);
        if record.state != EscalationState::Pending {
            return conflict(format!("{id} is {} already", record.state));
        }
        if self.now >= record.expires_at {
            return conflict(format!("{id} expired at {}", record.expires_at));
        }
        if record.askers.contains(&asker(record.salt, reviewer)) {
            return Err(Error::Forbidden { message: format!("{reviewer:?} asked for it, and cannot answer it") });
        }
        if !record.needs.iter().any(|need| may_answer(need, reviewer)) {
            let asked: Vec<String> = record.needs.iter().map(described).collect();
            let message = format!("{reviewer:?} is not asked to answer {id}; {} can", asked.join(", or "));
            return Err(Error::Forbidden { message });
        }
        let same = |vote: &Vote| seen_as(&vote.reviewer) == seen_as(reviewer);
        if self.vote.approved && record.votes.iter().any(same) {
            return conflict(format!("{reviewer:?} agreed to {id} already; it needs another person too"));
        }
        if self.digest.is_some_and(|digest| digest != record.digest) {
            return conflict(format!("{id} is not what the reviewer was shown: its digest is {}", record.digest));
        }
        Ok(())
    }
}

/// Whether a person is one of those who are asked.
fn may_answer(need: &ReviewNeed, person: &str) -> bool {
    let person = folded(person);
    match &need.reviewer {
        None => true,
        Some(name) if need.people.is_empty() => folded(name) == person,
        Some(_) => need.people.iter().any(|known| folded(known) == person),
    }
}

fn described(need: &ReviewNeed) -> String {
    match &need.reviewer {
        None => "anybody else".to_owned(),
        Some(name) if need.people.is_empty() => format!("{name:?}"),
        Some(_) => {
            let mut people: Vec<String> = need.people.iter().take(MOST_NAMED).map(|one| format!("{one:?}")).collect();
            let rest = need.people.len().saturating_sub(MOST_NAMED);
            people.extend((rest > 0).then(|| format!("{rest} others")));
            if people.len() > 1 { format!("one of {}", people.join(", ")) } else { people.concat() }
        }
    }
}

/// Whether all have agreed who have to: for each need as many different people as it says.
fn is_agreed(record: &EscalationRecord) -> bool {
    let count = |need: &ReviewNeed| {
        // INVARIANT: no person has two votes.
        record.votes.iter().filter(|vote| vote.approved && may_answer(need, &vote.reviewer)).count()
    };
    record.needs.iter().all(|need| count(need) >= usize::from(need.approvals))
}

/// People of a list that a message names.
const MOST_NAMED: usize = 8;
