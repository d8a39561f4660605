//! What callers put in order: each gets its place and a time that never runs backwards.

use std::sync::PoisonError;

use super::{Intake, Refusal, State};
use crate::model::{Alert, Decision, Error, Outcome, ProofId, RiskLevel, Sequence, Timestamp};
use crate::proof::draft::{ArchiveDraft, ChangeDraft, DecisionDraft, Draft, OutcomeDraft, Pending};
use crate::proof::durability::Durability;
use crate::proof::erase::Erasure;
use crate::proof::log::Committed;

/// The exclusive right to enqueue the outcome of a record.
// INVARIANT: only the holder enqueues one, and one leaves the queue's outcomes only once the index has it. So an index
// that has none has none until the holder enqueues it.
pub(crate) struct Reservation<'a> {
    queue: &'a Intake,
    record: Sequence,
    is_held: bool,
}

/// What became of a decision that was to be put in order.
#[derive(Debug)]
pub(in crate::proof) enum DecisionSlot {
    Ordered {
        id: ProofId,
        last: Sequence,
        at: Timestamp,
    },
    /// A stop came meanwhile: whether it covers this one is to be looked at.
    LookAgain,
}

impl DecisionSlot {
    pub(in crate::proof) fn committed(self, risk: RiskLevel) -> Option<Committed> {
        match self {
            Self::Ordered { id, last, at } => Some(Committed { proof_id: id, sequence: last, at, risk }),
            Self::LookAgain => None,
        }
    }
}

impl Intake {
    /// Puts a decision in order, which was made knowing of all stops up to `epoch`.
    pub(in crate::proof) fn decision(
        &self,
        now: Timestamp,
        draft: DecisionDraft,
        epoch: u64,
    ) -> Result<DecisionSlot, Error> {
        let mut state = self.with_room()?;
        if state.epoch != epoch && draft.decision != Decision::Deny {
            return Ok(DecisionSlot::LookAgain);
        }
        let (id, last, at) = self.number_decision(&mut state, now, draft);
        Ok(DecisionSlot::Ordered { id, last, at })
    }

    /// Puts a decision that asks for a person in order, and before it the state that says so: nothing comes between.
    pub(in crate::proof) fn question(
        &self,
        now: Timestamp,
        draft: DecisionDraft,
        epoch: u64,
        asked: impl FnOnce(ProofId) -> ChangeDraft,
    ) -> Result<DecisionSlot, Error> {
        let mut state = self.with_room()?;
        if state.epoch != epoch {
            return Ok(DecisionSlot::LookAgain);
        }
        let at = state.last_time.max(now);
        let id = ProofId::new(at, draft.random, Sequence::new(state.next + 1));
        let mut change = asked(id);
        let is_awaited = self.durability.awaits(draft.risk);
        let (sequence, at) = state.number(now);
        change.state.stand_at(sequence);
        self.push(&mut state, Pending { sequence, at, draft: Draft::State(Box::new(change)) }, is_awaited);
        let (id, last, at) = self.number_decision(&mut state, now, draft);
        Ok(DecisionSlot::Ordered { id, last, at })
    }

    fn number_decision(
        &self,
        state: &mut State,
        now: Timestamp,
        draft: DecisionDraft,
    ) -> (ProofId, Sequence, Timestamp) {
        let (sequence, at) = state.number(now);
        let id = ProofId::new(at, draft.random, sequence);
        let is_awaited = self.durability.awaits(draft.risk);
        self.push(state, Pending { sequence, at, draft: Draft::Decision { id, draft } }, is_awaited);
        (id, sequence, at)
    }

    /// Has every decision that does not know of this epoch looked at again, unless it is a denial, whatever becomes of
    /// the change of state that says who must not act. That one needs no room.
    pub(in crate::proof) fn stop(&self, now: Timestamp, epoch: u64, change: ChangeDraft) -> Result<Sequence, Error> {
        let mut state = self.lock();
        state.epoch = state.epoch.max(epoch);
        if let Some(refusal) = &state.closed {
            return Err(refusal.error());
        }
        Ok(self.push_change(&mut state, now, change))
    }

    /// Reserves the outcome of a record, once no other caller has; fails with the one that is in flight.
    pub(in crate::proof) fn reserve(&self, record: Sequence) -> Result<Reservation<'_>, Outcome> {
        let mut state = self.lock();
        while let Some(found) = state.outcomes.get(&record) {
            match found {
                Some(outcome) => return Err(*outcome),
                None => state = self.released.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
        state.outcomes.insert(record, None);
        Ok(Reservation { queue: self, record, is_held: true })
    }

    /// Puts a change of state in order that lets somebody act; none where a stop came that it does not know of.
    pub(in crate::proof) fn state_unless_stopped(
        &self,
        now: Timestamp,
        change: ChangeDraft,
        epoch: u64,
    ) -> Result<Option<Sequence>, Error> {
        let mut queue = self.with_room()?;
        if queue.epoch != epoch {
            return Ok(None);
        }
        Ok(Some(self.push_change(&mut queue, now, change)))
    }

    /// Puts a change of state in order.
    pub(in crate::proof) fn state(&self, now: Timestamp, change: ChangeDraft) -> Result<Sequence, Error> {
        let mut queue = self.with_room()?;
        Ok(self.push_change(&mut queue, now, change))
    }

    fn push_change(&self, queue: &mut State, now: Timestamp, mut change: ChangeDraft) -> Sequence {
        let (sequence, at) = queue.number(now);
        change.state.stand_at(sequence);
        let draft = Draft::State(Box::new(change));
        self.push(queue, Pending { sequence, at, draft }, self.durability.awaits_changes());
        sequence
    }

    /// Puts an alert in order; `up_to` is the entry that made whoever follows the log raise it.
    pub(in crate::proof) fn alert(
        &self,
        now: Timestamp,
        alert: Alert,
        up_to: Option<Sequence>,
    ) -> Result<Sequence, Error> {
        let mut queue = self.with_room()?;
        let (sequence, at) = queue.number(now);
        let draft = Draft::Alert { alert: Box::new(alert), up_to };
        self.push(&mut queue, Pending { sequence, at, draft }, false);
        Ok(sequence)
    }

    /// Puts a change of state in order that nobody waits for.
    pub(in crate::proof) fn note(&self, now: Timestamp, change: ChangeDraft) -> Result<Sequence, Error> {
        let mut queue = self.with_room()?;
        let (sequence, at) = queue.number(now);
        self.push(&mut queue, Pending { sequence, at, draft: Draft::State(Box::new(change)) }, false);
        Ok(sequence)
    }

    /// Puts an erasure in order.
    pub(in crate::proof) fn erasure(&self, now: Timestamp, erasure: Erasure, cause: String) -> Result<Sequence, Error> {
        let mut queue = self.with_room()?;
        let (sequence, at) = queue.number(now);
        self.push(&mut queue, Pending { sequence, at, draft: Draft::Erasure { erasure, cause } }, true);
        Ok(sequence)
    }

    /// Puts the end of the log in order: nothing is taken in behind it. Hands out its place and its time.
    pub(in crate::proof) fn freeze(
        &self,
        now: Timestamp,
        cause: String,
        message: impl FnOnce(Timestamp) -> String,
    ) -> Result<(Sequence, Timestamp), Error> {
        let mut state = self.with_room()?;
        let (sequence, at) = state.number(now);
        self.push(&mut state, Pending { sequence, at, draft: Draft::Freeze { cause } }, false);
        state.closed = Some(Refusal::Frozen(message(at)));
        drop(state);
        self.work.notify_one();
        self.room.notify_all();
        Ok((sequence, at))
    }

    /// Puts the note of an archive in order.
    pub(in crate::proof) fn archive(
        &self,
        now: Timestamp,
        draft: ArchiveDraft,
    ) -> Result<(Sequence, Timestamp), Error> {
        let mut queue = self.with_room()?;
        let (sequence, at) = queue.number(now);
        self.push(&mut queue, Pending { sequence, at, draft: Draft::Archive(Box::new(draft)) }, false);
        queue.hurry = true;
        self.work.notify_one();
        Ok((sequence, at))
    }

    fn push(&self, state: &mut State, pending: Pending, is_awaited: bool) {
        let was_half_full = self.is_half_full(state);
        state.weight += pending.weight();
        state.queue.push(pending);
        // One wake for a batch: the writer gathers by itself from then on, and is called when it should stop gathering.
        // Who waits for its entry asks for it to be written in a moment.
        let is_first = state.queue.len() == 1 && !is_awaited;
        if is_first || (!was_half_full && self.is_half_full(state)) {
            self.work.notify_one();
        }
    }
}

impl Reservation<'_> {
    /// Enqueues the outcome.
    pub(crate) fn report(mut self, now: Timestamp, draft: OutcomeDraft) -> Result<Sequence, Error> {
        let mut state = self.queue.with_room()?;
        let (sequence, at) = state.number(now);
        self.enqueue(&mut state, sequence, at, draft, self.queue.durability == Durability::Sync);
        Ok(sequence)
    }

    /// Enqueues the decision that answers the record, and its outcome behind it with nothing between. None where a stop
    /// came that the decision does not know of.
    pub(crate) fn answer(
        mut self,
        now: Timestamp,
        draft: DecisionDraft,
        epoch: u64,
        outcome: impl FnOnce(ProofId) -> OutcomeDraft,
    ) -> Result<Option<Committed>, Error> {
        let mut state = self.queue.with_room()?;
        if state.epoch != epoch && draft.decision != Decision::Deny {
            return Ok(None);
        }
        let (risk, is_awaited) = (draft.risk, self.queue.durability.awaits(draft.risk));
        let (proof_id, _, at) = self.queue.number_decision(&mut state, now, draft);
        let (sequence, _) = state.number(now);
        self.enqueue(&mut state, sequence, at, outcome(proof_id), is_awaited);
        Ok(Some(Committed { proof_id, sequence, at, risk }))
    }

    fn enqueue(
        &mut self,
        state: &mut State,
        sequence: Sequence,
        at: Timestamp,
        mut draft: OutcomeDraft,
        awaited: bool,
    ) {
        for state in draft.state.iter_mut().chain(&mut draft.asked) {
            state.stand_at(sequence);
        }
        state.outcomes.insert(self.record, Some(draft.outcome));
        self.is_held = false;
        self.queue.push(state, Pending { sequence, at, draft: Draft::Outcome(draft) }, awaited);
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if self.is_held {
            self.queue.lock().outcomes.remove(&self.record);
        }
        self.queue.released.notify_all();
    }
}

impl State {
    /// The next place and a time that never runs backwards.
    fn number(&mut self, now: Timestamp) -> (Sequence, Timestamp) {
        let sequence = Sequence::new(self.next);
        self.next += 1;
        self.last_time = self.last_time.max(now);
        (sequence, self.last_time)
    }
}
