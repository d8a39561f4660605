//! Enqueueing: each entry gets its sequence and a time that never runs backwards.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::{
    ChangeDraft, DecisionDraft, Draft, Durability, EntryDraft, OutcomeDraft, Pending, Queue, Refusal, State,
    StateDraft, StepBack,
};
use crate::store::{Kind, Start};
use rulekeep_types::{Decision, Error, Outcome, ProofId, RiskLevel, Sequence, Timestamp};

/// A decision that is enqueued.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct Committed {
    pub proof_id: ProofId,
    /// The last entry that belongs to the decision.
    pub sequence: Sequence,
    pub at: Timestamp,
    pub risk: RiskLevel,
}

/// The exclusive right to enqueue the outcome of a record.
// INVARIANT: only the holder enqueues one, and one leaves the queue's outcomes only once the index has it. So an index
// that has none has none until the holder enqueues it.
pub struct Reservation<'a> {
    queue: &'a Queue,
    record: Sequence,
    is_held: bool,
}

impl Queue {
    /// Enqueues a decision evaluated at kill-switch epoch `epoch`. Returns `None` if the epoch has advanced since, so the
    /// caller must evaluate it again; a denial stands at any epoch.
    pub fn decide(&self, now: Timestamp, draft: DecisionDraft, epoch: u64) -> Result<Option<Committed>, Error> {
        let mut state = self.with_room()?;
        if state.epoch != epoch && draft.decision != Decision::Deny {
            return Ok(None);
        }
        Ok(Some(self.number_decision(&mut state, now, draft)))
    }

    /// Enqueues a decision to escalate, and before it the state of the escalation with nothing between. Returns `None` if
    /// the epoch has advanced.
    pub fn ask(
        &self,
        now: Timestamp,
        draft: DecisionDraft,
        epoch: u64,
        asked: impl FnOnce(ProofId) -> ChangeDraft,
    ) -> Result<Option<Committed>, Error> {
        let mut state = self.with_room()?;
        if state.epoch != epoch {
            return Ok(None);
        }
        let at = state.time(now);
        let change = asked(ProofId::new(at, draft.random, Sequence::new(state.next + 1)));
        self.push_change(&mut state, now, change, self.durability.awaits(draft.risk));
        Ok(Some(self.number_decision(&mut state, now, draft)))
    }

    /// Enqueues a change of a state, which may change an agent's trust.
    pub fn change(&self, now: Timestamp, change: ChangeDraft) -> Result<Sequence, Error> {
        let mut state = self.with_room()?;
        Ok(self.push_change(&mut state, now, change, self.durability.awaits_changes()))
    }

    /// Enqueues the new value of a state.
    pub fn set_state(&self, now: Timestamp, state: StateDraft, cause: String) -> Result<Sequence, Error> {
        self.change(now, ChangeDraft { state, cause, trust: None })
    }

    /// Enqueues the new value of a state without making a caller wait for the disk.
    pub fn note(&self, now: Timestamp, state: StateDraft, cause: &str) -> Result<Sequence, Error> {
        let mut queue = self.with_room()?;
        let change = ChangeDraft { state, cause: cause.to_owned(), trust: None };
        Ok(self.push_change(&mut queue, now, change, false))
    }

    /// Enqueues a change of state that lets an agent act. Returns `None` if the epoch has advanced.
    pub fn change_unless_stopped(
        &self,
        now: Timestamp,
        change: ChangeDraft,
        epoch: u64,
    ) -> Result<Option<Sequence>, Error> {
        let mut state = self.with_room()?;
        if state.epoch != epoch {
            return Ok(None);
        }
        Ok(Some(self.push_change(&mut state, now, change, self.durability.awaits_changes())))
    }

    /// Advances the epoch, so that decisions evaluated before are evaluated again, and enqueues the change of the
    /// kill switch. The epoch advances even if the change is refused; the change needs no room.
    pub fn stop(&self, now: Timestamp, epoch: u64, change: ChangeDraft) -> Result<Sequence, Error> {
        let mut state = self.lock();
        state.epoch = state.epoch.max(epoch);
        if let Some(refusal) = &state.closed {
            return Err(refusal.error());
        }
        Ok(self.push_change(&mut state, now, change, self.durability.awaits_changes()))
    }

    /// Enqueues an entry of another kind; `make` returns its body, given its time. The log begins at `begins` once
    /// the entry is on disk.
    pub(crate) fn entry<T: Serialize>(
        &self,
        now: Timestamp,
        kind: Kind,
        begins: Option<Start>,
        make: impl FnOnce(Timestamp) -> T,
    ) -> Result<(Sequence, Timestamp), Error> {
        let mut state = self.with_room()?;
        self.push_entry(&mut state, now, kind, begins, make)
    }

    /// Enqueues a freeze, the last entry. Nothing is accepted after it, for the reason that `message` returns.
    pub(crate) fn freeze<T: Serialize>(
        &self,
        now: Timestamp,
        make: impl FnOnce(Timestamp) -> T,
        message: impl FnOnce(Timestamp) -> String,
    ) -> Result<(Sequence, Timestamp), Error> {
        let mut state = self.with_room()?;
        let (sequence, at) = self.push_entry(&mut state, now, Kind::Freeze, None, make)?;
        state.closed = Some(Refusal::Frozen(message(at)));
        self.room.notify_all();
        Ok((sequence, at))
    }

    fn push_entry<T: Serialize>(
        &self,
        state: &mut State,
        now: Timestamp,
        kind: Kind,
        begins: Option<Start>,
        make: impl FnOnce(Timestamp) -> T,
    ) -> Result<(Sequence, Timestamp), Error> {
        let body = serde_json::to_vec(&make(state.time(now)))
            .map_err(|error| Error::internal("an entry cannot be written").caused_by(error))?;
        let (sequence, at) = self.number(state, now);
        let draft = Draft::Entry(EntryDraft { kind, body, begins });
        self.push(state, Pending { sequence, at, draft }, false);
        Ok((sequence, at))
    }

    /// Enqueues an operator's confirmation of the clock's time `shown`. Later entries have times from there on.
    pub(crate) fn accept_clock<T: Serialize>(
        &self,
        shown: Timestamp,
        make: impl FnOnce(Timestamp) -> T,
    ) -> Result<(Sequence, Timestamp), Error> {
        let mut state = self.with_room()?;
        let from = state.last_time;
        state.stepped_back = None;
        let body = serde_json::to_vec(&make(from))
            .map_err(|error| Error::internal("an entry cannot be written").caused_by(error))?;
        if shown < from {
            // Calls in flight have read the earlier time, or one almost as late.
            let least = from.as_millis().saturating_sub(LONGEST_CALL_MILLIS);
            let ignored_from = Timestamp::from_millis(least.max(from.as_millis().midpoint(shown.as_millis())));
            // Ends no later than the clock can show such a time by itself.
            let until = LONGEST_CALL_MILLIS.min(from.as_millis().saturating_sub(shown.as_millis()) / 2);
            let until = Instant::now() + Duration::from_millis(until.unsigned_abs());
            state.stepped_back = Some(StepBack { ignored_from, until });
            state.last_time = shown;
            self.era.store(state.next, Ordering::Release);
        }
        let (sequence, at) = self.number(&mut state, shown);
        self.push(
            &mut state,
            Pending { sequence, at, draft: Draft::Entry(EntryDraft { kind: Kind::Clock, body, begins: None }) },
            true,
        );
        Ok((sequence, from))
    }

    /// Assigns the next sequence and time.
    fn number(&self, state: &mut State, now: Timestamp) -> (Sequence, Timestamp) {
        let sequence = Sequence::new(state.next);
        state.next += 1;
        state.last_time = state.time(now);
        self.clock.store(state.last_time.as_millis(), Ordering::Release);
        (sequence, state.last_time)
    }

    /// Reserves the outcome of a record, once no other caller has; fails with the one that is in flight.
    pub fn reserve(&self, record: Sequence) -> Result<Reservation<'_>, Outcome> {
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

    fn number_decision(&self, state: &mut State, now: Timestamp, draft: DecisionDraft) -> Committed {
        let (sequence, at) = self.number(state, now);
        let (proof_id, risk) = (ProofId::new(at, draft.random, sequence), draft.risk);
        let pending = Pending { sequence, at, draft: Draft::Decision { id: proof_id, draft } };
        self.push(state, pending, self.durability.awaits(risk));
        Committed { proof_id, sequence, at, risk }
    }

    fn push_change(&self, state: &mut State, now: Timestamp, mut change: ChangeDraft, is_awaited: bool) -> Sequence {
        let (sequence, at) = self.number(state, now);
        change.state.stand_at(sequence);
        self.push(state, Pending { sequence, at, draft: Draft::State(Box::new(change)) }, is_awaited);
        sequence
    }

    fn push(&self, state: &mut State, pending: Pending, is_awaited: bool) {
        let was_half_full = self.is_half_full(state);
        state.weight += pending.weight();
        state.queue.push(pending);
        // One wake-up per batch: the writer then gathers by itself, and is woken again when it should stop gathering.
        // A caller that waits for its entry requests the write itself in a moment.
        let is_first = state.queue.len() == 1 && !is_awaited;
        if is_first || (!was_half_full && self.is_half_full(state)) {
            self.work.notify_one();
        }
    }
}

impl Reservation<'_> {
    /// Enqueues the outcome.
    pub fn report(mut self, now: Timestamp, draft: OutcomeDraft) -> Result<Sequence, Error> {
        let mut state = self.queue.with_room()?;
        let (sequence, at) = self.queue.number(&mut state, now);
        self.enqueue(&mut state, sequence, at, draft, self.queue.durability == Durability::Sync);
        Ok(sequence)
    }

    /// Enqueues a report that the outcome is not known, and releases the reservation: the record still has no
    /// outcome.
    pub(crate) fn report_unknown<T: Serialize>(
        self,
        now: Timestamp,
        make: impl FnOnce(Timestamp) -> T,
    ) -> Result<Sequence, Error> {
        Ok(self.queue.entry(now, Kind::UnknownOutcome, None, make)?.0)
    }

    /// Enqueues the decision that answers the record, directly followed by its outcome. Returns `None` if the epoch
    /// has advanced.
    pub fn answer(
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
        let committed = self.queue.number_decision(&mut state, now, draft);
        let (sequence, at) = self.queue.number(&mut state, now);
        let is_awaited = self.queue.durability.awaits(committed.risk);
        self.enqueue(&mut state, sequence, at, outcome(committed.proof_id), is_awaited);
        Ok(Some(Committed { sequence, ..committed }))
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
    /// The time of the next entry, given the time its caller read. It never runs backwards.
    fn time(&mut self, now: Timestamp) -> Timestamp {
        if let Some(StepBack { ignored_from, until }) = self.stepped_back {
            if Instant::now() > until {
                self.stepped_back = None;
            } else if now > ignored_from {
                return self.last_time;
            }
        }
        self.last_time.max(now)
    }
}

/// Longest duration of a call that read the time before it stepped back, in milliseconds.
const LONGEST_CALL_MILLIS: i64 = 60_000;

#[cfg(test)]
mod tests {
    use super::super::Room;
    use super::*;

    #[test]
    fn a_time_read_before_a_step_back_is_ignored_until_it_recurs() {
        let queue = Queue::new(Room::DEFAULT, Durability::Buffered);
        let at = |millis: i64| {
            let now = Timestamp::from_millis(millis);
            queue.set_state(now, StateDraft::new("k".to_owned(), "1".to_owned()), String::new()).unwrap();
            queue.last_time().load(Ordering::Acquire)
        };
        assert_eq!(at(1000), 1000);
        queue.accept_clock(Timestamp::from_millis(800), |from| from).unwrap();
        assert_eq!(at(1000), 800, "of a call that was under way");
        assert_eq!(at(850), 850);
        // After half of the step, the clock itself may show such a time.
        let accepted = Instant::now();
        while accepted.elapsed() <= Duration::from_millis(100) {
            std::thread::yield_now();
        }
        assert_eq!(at(960), 960);
    }
}
