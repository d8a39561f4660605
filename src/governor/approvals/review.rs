//! Reviews: approving and rejecting escalations.

use std::sync::{Arc, MutexGuard};

use super::digest::{asker, folded};
use super::queue::Open;
use super::resolve::Answer;
use super::{Escalations, change, evidence_conflict};
use crate::governor::states::checked_note;
use crate::governor::{Approvals, conflict};
use crate::model::parts::VoteParts;
use crate::model::{
    Error, EscalationId, EscalationRecord, EscalationState, Resolved, Review, ReviewNeed, ReviewerIdentity, Timestamp,
    Vote, checked_person,
};
use crate::parse::seen_as;
use crate::telemetry::Work;

impl Escalations<'_> {
    /// Approves an escalation for one reviewer. Once every required reviewer has approved, a new record grants the
    /// request, the outcome of the record that opened the escalation becomes ESCALATED, and the agent claims the
    /// approval once with [`Escalations::claim`].
    ///
    /// The conditions at the last approval apply: the policy set must be the one that escalated the request, the agent
    /// must be active and not stopped, and no more is granted than the policies would grant now.
    ///
    /// # Errors
    ///
    /// [`Error::Forbidden`] for a person who is not a reviewer of it or is one of its requesters; [`Error::Conflict`]
    /// when it has ended or expired, the same person has approved it, it differs from what the reviewer was shown, or
    /// it cannot be granted any more; [`Error::ProofNotFound`]; [`Error::InvalidInput`] for a malformed review;
    /// [`Error::StorageUnavailable`] or [`Error::ChainBroken`] when it cannot be recorded.
    pub fn approve(self, id: EscalationId, review: Review) -> Result<Resolved, Error> {
        Work::approve().done_by(|work| self.told(work, id, self.answer_by(id, review, true)))
    }

    /// Checks that an escalation would accept a review now.
    pub(in crate::governor) fn check(self, id: EscalationId, review: Review) -> Result<(), Error> {
        let (open, ballot) = self.ballot(id, review, true)?;
        ballot.check(&open.lock())
    }

    fn ballot(self, id: EscalationId, review: Review, approved: bool) -> Result<(Arc<Open>, Ballot), Error> {
        let approvals = &self.inner.here()?.approvals;
        approvals.wait_mended()?;
        approvals.end_if_due(id);
        let (digest, now) = (review.digest, approvals.base.clock.now());
        let vote = checked_vote(review, approved, now)?;
        Ok((approvals.open_escalation(id)?, Ballot { vote, digest, now }))
    }

    fn answer_by(self, id: EscalationId, review: Review, approved: bool) -> Result<Resolved, Error> {
        let approvals = &self.inner.approvals;
        let is_for_task = review.is_for_task;
        let (open, vote) = self.ballot(id, review, approved)?;
        let now = vote.now;
        let mut record = open.lock();
        vote.check(&record)?;
        let mut voted = record.clone();
        voted.votes.push(vote.vote);
        if !approved {
            return approvals.resolve_voted(&open, record, voted, &Answer::Rejected);
        }
        if !is_agreed(&voted) {
            approvals.can_be_granted(&record, now)?;
            let sequence = approvals.base.log.queue().change(now, change(&voted, "a reviewer agrees")?)?;
            voted.place = sequence;
            *record = voted;
            approvals.queue.changed(EscalationState::Pending, &record);
            drop(record);
            approvals.base.log.settle(sequence)?;
            return Ok(Resolved::new(EscalationState::Pending, None));
        }
        let resolved = approvals.resolve_voted(&open, record, voted, &Answer::Approved)?;
        self.inner.tasks.endorsed(id.proof_id(), is_for_task)?;
        Ok(resolved)
    }

    /// Rejects an escalation; one reviewer is enough. A DENY record is written, the outcome of the record that opened
    /// the escalation becomes ESCALATED, and the agent loses trust.
    ///
    /// # Errors
    ///
    /// The errors of [`Escalations::approve`].
    pub fn reject(self, id: EscalationId, review: Review) -> Result<Resolved, Error> {
        Work::reject().done_by(|work| self.told(work, id, self.answer_by(id, review, false)))
    }

    /// Records the result of a review in the span and metrics.
    fn told(self, work: &Work, id: EscalationId, answered: Result<Resolved, Error>) -> Result<Resolved, Error> {
        work.note("rulekeep.escalation.id", &id);
        if let Ok(resolved) = &answered {
            work.note("rulekeep.escalation.state", &resolved.state);
        }
        self.inner.approvals.publish_pending();
        answered
    }
}

/// A vote that is not cast yet.
struct Ballot {
    vote: Vote,
    digest: Option<crate::model::Digest>,
    now: Timestamp,
}

impl Approvals {
    /// Resolves the escalation with the last vote, and notifies the waiters once that is durable or has failed.
    fn resolve_voted(
        &self,
        open: &Open,
        mut record: MutexGuard<'_, EscalationRecord>,
        mut voted: EscalationRecord,
        answer: &Answer,
    ) -> Result<Resolved, Error> {
        let committed = self.resolve(&mut voted, answer)?;
        // Also if it cannot be made durable, because it is enqueued.
        let state = voted.state;
        *record = voted;
        // Waiters read the record from threads that must not wait for the disk.
        drop(record);
        let settled = self.base.log.settle_decision(committed.sequence, committed.risk);
        open.tell();
        settled.map(|()| Resolved::new(state, Some(committed.proof_id)))
    }

    /// Checks that an approval would grant something now.
    fn can_be_granted(&self, record: &EscalationRecord, now: Timestamp) -> Result<(), Error> {
        let cell = self.roster.registered(&record.agent_id)?;
        let asked = self.asked_for(record)?.map_err(|why| evidence_conflict(record, "approved", &why))?;
        let agent = cell.read();
        self.still_granted(record, &asked, &agent, now, &mut self.rules.limits.window(now)).map(drop)
    }
}

/// A reviewer's vote, validated.
pub(super) fn checked_vote(review: Review, approved: bool, at: Timestamp) -> Result<Vote, Error> {
    let reviewer = checked_person("reviewer", &review.reviewer)?;
    let note = review.note.filter(|note| !note.is_empty());
    let note = note.as_deref().map(checked_note).transpose()?;
    Ok(Vote::from(VoteParts { reviewer, approved, note, at, identity: review.identity }))
}

impl Ballot {
    fn check(&self, record: &EscalationRecord) -> Result<(), Error> {
        let (id, reviewer) = (record.id(), &self.vote.reviewer);
        if record.state != EscalationState::Pending {
            return conflict(format!("{id} is {} already", record.state));
        }
        if self.now >= record.expires_at {
            return conflict(format!("{id} expired at {}", record.expires_at));
        }
        if record.askers.contains(&asker(record.salt, reviewer)) {
            return Err(Error::Forbidden { message: format!("{reviewer:?} made the request and cannot answer it") });
        }
        // Of the names that a provider gives, two that differ in case are two people.
        let is_exact = matches!(self.vote.identity, Some(ReviewerIdentity::Oidc { .. }));
        if !record.needs.iter().any(|need| may_answer(need, reviewer) && (!is_exact || names(need, reviewer))) {
            let asked: Vec<String> = record.needs.iter().map(described).collect();
            let message = format!("{reviewer:?} is not a reviewer of {id}; {} can answer it", asked.join(", or "));
            return Err(Error::Forbidden { message });
        }
        let same = |vote: &Vote| seen_as(&vote.reviewer) == seen_as(reviewer);
        // A link serves once, also for the opposite answer.
        let is_link = matches!(self.vote.identity, Some(ReviewerIdentity::Link { .. }));
        if (self.vote.approved || is_link) && record.votes.iter().any(same) {
            return conflict(format!("{reviewer:?} approved {id} already; it needs another reviewer"));
        }
        if self.digest.is_some_and(|digest| digest != record.digest) {
            return conflict(format!("{id} differs from what the reviewer was shown: its digest is {}", record.digest));
        }
        Ok(())
    }
}

/// Returns whether a person is one of the reviewers.
fn may_answer(need: &ReviewNeed, person: &str) -> bool {
    let person = folded(person);
    match &need.reviewer {
        None => true,
        Some(name) if need.people.is_empty() => folded(name) == person,
        Some(_) => need.people.iter().any(|known| folded(known) == person),
    }
}

/// Returns whether a need names a person in exactly this spelling, or nobody.
fn names(need: &ReviewNeed, person: &str) -> bool {
    match &need.reviewer {
        None => true,
        Some(name) if need.people.is_empty() => name == person,
        Some(_) => need.people.iter().any(|known| known == person),
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

/// Returns whether every need has as many different approvals as it requires.
fn is_agreed(record: &EscalationRecord) -> bool {
    let count = |need: &ReviewNeed| {
        // INVARIANT: no person has two votes.
        record.votes.iter().filter(|vote| vote.approved && may_answer(need, &vote.reviewer)).count()
    };
    record.needs.iter().all(|need| count(need) >= usize::from(need.approvals))
}

/// Number of people that a message names.
const MOST_NAMED: usize = 8;
