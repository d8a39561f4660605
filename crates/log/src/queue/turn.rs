//! The turn to write. It goes to the writer's thread, or to a caller that waits for its own entry while nobody is
//! writing.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::{Pending, Queue, State};
use rulekeep_types::Sequence;

/// The right to take drafts out and write them. One thread has it at a time.
pub(crate) struct Turn<'a> {
    queue: &'a Queue,
}

/// A task for the writer's thread.
pub(crate) enum Task<'a> {
    Write(Turn<'a>),
    /// Periodic work that is due.
    Upkeep(Turn<'a>),
    /// The work to do when no entry came for a while.
    Rest(Turn<'a>),
}

/// Drafts to be written together.
pub(crate) struct Batch {
    pub(crate) drafts: Arc<Vec<Pending>>,
    /// Number of callers that wait for one of them.
    pub(crate) awaited: usize,
    /// No more drafts will come.
    pub(crate) last: bool,
}

/// The kind of caller that requests a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Requester {
    /// A thread that blocks until the entry is on disk.
    Thread,
    /// An asynchronous task, which must not be blocked.
    Task,
}

/// Upper bound of the time to wait for more callers; a longer sync does not extend it.
const LONGEST_SYNC: Duration = Duration::from_millis(2);
/// Number of pauses that make up the time of a sync.
const PAUSES: u32 = 4;

impl Queue {
    /// Requests that the entry is written now. Returns the turn if the caller itself may write because nobody else
    /// is; otherwise whoever writes next will write it.
    pub(crate) fn request(&self, sequence: Sequence, by: Requester) -> Option<Turn<'_>> {
        let mut state = self.lock();
        if sequence.get() < state.taken {
            return None;
        }
        state.awaited += 1;
        if state.is_busy {
            if state.awaited >= state.expected {
                self.enough.notify_one();
            }
            return None;
        }
        // A caller that asks again and again would keep periodic work from being done.
        if by == Requester::Task || state.upkeep || state.closed.is_some() {
            self.work.notify_one();
            return None;
        }
        state.is_busy = true;
        Some(Turn { queue: self })
    }

    /// Returns the next task of the writer's thread. Waits up to `idle` when there is nothing to do, and up to
    /// `gather` for more drafts unless a caller waits.
    pub(crate) fn task(&self, gather: Duration, idle: Duration) -> Task<'_> {
        let mut state = self.lock();
        let mut gather_until = None;
        loop {
            let now = Instant::now();
            let until = if state.is_busy {
                // The thread that writes notifies this one when it is done.
                now + idle
            } else if state.upkeep {
                state.upkeep = false;
                return Task::Upkeep(self.turn(&mut state));
            } else if state.awaited > 0 || state.hurry || state.closed.is_some() || self.is_half_full(&state) {
                return Task::Write(self.turn(&mut state));
            } else if state.queue.is_empty() {
                gather_until = None;
                let until = state.last_taken + idle;
                if until <= now {
                    state.last_taken = now;
                    return Task::Rest(self.turn(&mut state));
                }
                until
            } else {
                let until = *gather_until.get_or_insert(now + gather);
                if until <= now {
                    return Task::Write(self.turn(&mut state));
                }
                until
            };
            state = self.work.wait_timeout(state, until - now).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn turn(&self, state: &mut State) -> Turn<'_> {
        state.is_busy = true;
        Turn { queue: self }
    }
}

impl Turn<'_> {
    /// Waits for the callers answered by the last sync to return, so that one sync serves all. Waits while some of
    /// them arrive, and no longer than the last sync took. A single caller waits for nobody.
    pub(crate) fn gather(&self) {
        let mut state = self.queue.lock();
        let (pause, mut came) = (state.pause, state.awaited);
        if came == 0 || came >= state.expected || pause.is_zero() {
            return;
        }
        let until = Instant::now() + pause * PAUSES;
        while state.awaited < state.expected && state.closed.is_none() {
            let (waited, timeout) =
                self.queue.enough.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner);
            state = waited;
            if timeout.timed_out() {
                if state.awaited == came || Instant::now() >= until {
                    break;
                }
                came = state.awaited;
            }
        }
    }

    /// Takes out all waiting drafts.
    pub(crate) fn take(&self) -> Batch {
        let mut state = self.queue.lock();
        state.hurry = false;
        state.weight = 0;
        state.taken = state.next;
        state.last_taken = Instant::now();
        let awaited = std::mem::take(&mut state.awaited);
        let spare = std::mem::take(&mut self.queue.spare().drafts);
        let drafts = Arc::new(std::mem::replace(&mut state.queue, spare));
        state.in_flight = Arc::clone(&drafts);
        let last = state.closed.is_some() && drafts.is_empty();
        let is_crowded = state.crowded > 0;
        drop(state);
        if is_crowded {
            self.queue.room.notify_all();
        }
        Batch { drafts, awaited, last }
    }

    /// Records the number of callers about to be answered, and the duration of the sync.
    pub(crate) fn answering(&self, callers: usize, sync_time: Duration) {
        let mut state = self.queue.lock();
        // Callers that asked in the meantime already wait for the next sync.
        state.expected = callers + state.awaited;
        state.pause = sync_time.min(LONGEST_SYNC) / PAUSES;
    }

    /// Asks the writer's thread to do the periodic work.
    pub(crate) fn ask_for_upkeep(&self) {
        self.queue.lock().upkeep = true;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.is_busy = false;
        if !state.queue.is_empty() || state.upkeep || state.hurry || state.closed.is_some() {
            self.queue.work.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DecisionDraft, Durability, Room};
    use super::*;
    use rulekeep_types::{Decision, Error, IntentId, RiskLevel, Score, Tier, Timestamp, TrustSnapshot};
    use std::thread;

    const FOREVER: Duration = Duration::from_secs(3600);

    fn intake(durability: Durability) -> Queue {
        Queue::new(Room { drafts: 1000, bytes: 1 << 20, patience: Duration::ZERO }, durability)
    }

    fn decide(intake: &Queue, evidence: usize) -> Result<Sequence, Error> {
        let now = Timestamp::from_millis(0);
        let draft = DecisionDraft {
            entity: "a".parse().unwrap(),
            intent: IntentId::new(now, 1),
            decision: Decision::Allow,
            reasoning: String::new(),
            resolves: None,
            retry_of: None,
            earns: RiskLevel::Low,
            trust: TrustSnapshot::new(Score::MAX, Tier::T5),
            risk: RiskLevel::Low,
            evidence: vec![7; evidence],
            uses_limits: false,
            random: 1,
        };
        Ok(intake.decide(now, draft, 0)?.unwrap().sequence)
    }

    /// Requests a write, and returns the turn if the caller gets it.
    fn wish(intake: &Queue) -> Option<Turn<'_>> {
        intake.request(decide(intake, 10).unwrap(), Requester::Thread)
    }

    fn write(turn: &Turn<'_>) -> usize {
        turn.gather();
        turn.take().awaited
    }

    #[test]
    fn a_caller_who_is_alone_has_the_turn_and_waits_for_nobody() {
        let intake = intake(Durability::Sync);
        for _ in 0..3 {
            let turn = wish(&intake).unwrap();
            assert_eq!(write(&turn), 1);
            turn.answering(1, Duration::from_millis(1));
            // Waiting for another caller here would block forever.
            intake.lock().pause = FOREVER;
        }
    }

    #[test]
    fn two_callers_do_not_take_turns_but_share() {
        let intake = &intake(Durability::Sync);
        let first = wish(intake).unwrap();
        assert_eq!(write(&first), 1);
        // The second caller comes while the first is written.
        assert!(wish(intake).is_none());
        first.answering(1, Duration::from_millis(1));
        intake.lock().pause = FOREVER;
        drop(first);
        let Task::Write(next) = intake.task(Duration::ZERO, FOREVER) else { panic!("somebody waits") };
        thread::scope(|scope| {
            let written = scope.spawn(|| write(&next));
            assert!(wish(intake).is_none());
            assert_eq!(written.join().unwrap(), 2);
        });
        next.answering(2, Duration::from_millis(1));
        intake.lock().pause = FOREVER;
        drop(next);
        // From then on they come together, without the writer's thread.
        let turn = wish(intake).unwrap();
        thread::scope(|scope| {
            let written = scope.spawn(|| write(&turn));
            assert!(wish(intake).is_none());
            assert_eq!(written.join().unwrap(), 2);
        });
    }

    #[test]
    fn callers_who_do_not_return_are_given_up_and_not_expected() {
        let intake = intake(Durability::Sync);
        let turn = wish(&intake).unwrap();
        assert_eq!(write(&turn), 1);
        turn.answering(40, Duration::from_micros(100));
        drop(turn);
        let turn = wish(&intake).unwrap();
        assert_eq!(write(&turn), 1);
        turn.answering(1, Duration::from_micros(100));
        assert_eq!(intake.lock().expected, 1);
    }

    #[test]
    fn only_an_awaited_decision_hurries_the_writer() {
        let intake = intake(Durability::SyncFrom(RiskLevel::High));
        let buffered = decide(&intake, 10).unwrap();
        thread::scope(|scope| {
            let written = scope.spawn(|| matches!(intake.task(FOREVER, FOREVER), Task::Write(_)));
            thread::yield_now();
            assert!(!written.is_finished());
            assert!(intake.request(buffered, Requester::Task).is_none());
            assert!(written.join().unwrap());
        });
    }

    #[test]
    fn the_queue_is_bounded_by_what_it_weighs() {
        let intake = intake(Durability::Buffered);
        let mut taken_in = 0;
        while decide(&intake, 100 << 10).is_ok() {
            taken_in += 1;
        }
        assert_eq!(taken_in, 11, "the last of them may reach beyond");
        let Task::Write(turn) = intake.task(Duration::ZERO, FOREVER) else { panic!("it is full") };
        assert_eq!(turn.take().drafts.len(), 11);
        assert!(decide(&intake, 2 << 20).is_ok(), "one that is larger than all the room fits alone");
        assert!(decide(&intake, 1).is_err());
    }

    #[test]
    fn a_caller_who_is_always_there_does_not_keep_upkeep_waiting() {
        let intake = intake(Durability::Sync);
        let turn = wish(&intake).unwrap();
        assert_eq!(write(&turn), 1);
        turn.ask_for_upkeep();
        drop(turn);
        assert!(wish(&intake).is_none(), "the writer's thread comes first");
        assert!(matches!(intake.task(FOREVER, FOREVER), Task::Upkeep(_)));
        assert!(matches!(intake.task(FOREVER, FOREVER), Task::Write(_)));
        assert!(wish(&intake).is_some());
    }

    #[test]
    fn a_turn_that_ends_leaves_the_rest_to_the_writer() {
        let intake = intake(Durability::Sync);
        let turn = wish(&intake).unwrap();
        assert_eq!(write(&turn), 1);
        assert!(wish(&intake).is_none());
        drop(turn);
        assert!(matches!(intake.task(FOREVER, FOREVER), Task::Write(_)));
    }
}
