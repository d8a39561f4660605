//! The queue: callers enqueue drafts under one short lock and get a sequence and a time. The holder of the turn takes
//! drafts out in batches and writes them. That is the writer's thread, or a caller that waits for its own entry while
//! nobody is writing, so a single caller waits for no other thread.

mod draft;
mod durability;
mod order;
mod turn;

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use draft::{ChangeDraft, DecisionDraft, OutcomeBasis, OutcomeDraft, StateDraft, TrustMove};
pub(super) use draft::{Draft, EntryDraft, Pending};
pub use durability::Durability;
pub use order::Committed;
pub(crate) use order::Reservation;
pub(super) use turn::{Batch, Requester, Task, Turn};

use rulekeep_types::{Error, Outcome, Sequence, Timestamp};

/// Bounds of the drafts that wait to be written.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Largest number of waiting drafts.
    pub(crate) drafts: usize,
    /// Approximate memory they may take, in bytes. The writer may hold as much again.
    pub(crate) bytes: usize,
    /// The time a caller waits for room before it is refused.
    pub(crate) patience: Duration,
}

impl Room {
    pub(super) const DEFAULT: Self = Self { drafts: 1 << 16, bytes: 4 << 20, patience: Duration::from_secs(2) };
}

/// The queue between callers and the writer. It owns the order of entries, the outcomes in flight, the kill switch's
/// epoch, and whether anything is accepted at all.
pub struct Queue {
    // Callers hold it to number and push one draft, the holder of the turn to take all of them. Taken after an
    // agent's lock and before the index's, never held across I/O.
    state: Mutex<State>,
    /// The writer's thread waits here for work.
    work: Condvar,
    /// The holder of the turn waits here for callers that are expected.
    enough: Condvar,
    /// Callers wait here for room.
    room: Condvar,
    /// Callers wait here for an outcome that another caller has reserved.
    released: Condvar,
    most: Room,
    pub(super) durability: Durability,
    // Held to take a buffer or to give some back; nothing else is taken meanwhile.
    spare: Mutex<Spare>,
    /// Copy of the state's `last_time` in milliseconds, readable without the lock.
    clock: Arc<AtomicI64>,
    /// The entry at which the log's time last stepped back.
    era: AtomicU64,
}

struct State {
    next: u64,
    last_time: Timestamp,
    /// The log's time stepped back recently: calls in flight may have read the earlier clock.
    stepped_back: Option<StepBack>,
    queue: Vec<Pending>,
    /// Approximate memory of the queue in bytes.
    weight: usize,
    /// Number of callers that wait for room.
    crowded: usize,
    /// The drafts taken out and not yet in the index.
    in_flight: Arc<Vec<Pending>>,
    /// All entries before this sequence were taken out.
    taken: u64,
    last_taken: Instant,
    /// A thread gathers or writes.
    is_busy: bool,
    /// Number of callers that wait for entries in the queue.
    awaited: usize,
    /// Number of callers likely to wait once those just answered have returned.
    expected: usize,
    /// The time without a new caller after which expected callers are given up.
    pause: Duration,
    /// Outcomes in flight, by the sequence of their record: enqueued and not yet in the index. `None` while a caller
    /// that has reserved it decides.
    outcomes: HashMap<Sequence, Option<Outcome>>,
    /// Number of kill-switch changes.
    epoch: u64,
    /// The writer should not wait for more drafts.
    hurry: bool,
    /// Periodic work is due.
    upkeep: bool,
    /// The reason entries are refused until an overdue file is written.
    held: Option<String>,
    closed: Option<Refusal>,
}

/// Memory of batches that are written, to be used again: what callers allocate and another thread frees leaves holes in
/// the heap.
#[derive(Default)]
struct Spare {
    buffers: Vec<Vec<u8>>,
    drafts: Vec<Pending>,
}

/// A step back of the log's time.
#[derive(Debug, Clone, Copy)]
struct StepBack {
    /// Times after this one were read before the step.
    ignored_from: Timestamp,
    /// The moment until which such times may arrive.
    until: Instant,
}

/// The reason the queue accepts no entries.
#[derive(Debug, Clone)]
pub(super) enum Refusal {
    Closed,
    /// A write failed: it is unknown whether the last entries were written.
    Failed(String),
    /// A file beside the entries is overdue. Entries are accepted again once it is written.
    Overdue(String),
    /// The chain does not verify.
    Broken(String),
    /// The log is frozen for good; the message for callers.
    Frozen(String),
}

impl Refusal {
    pub(super) fn error(&self) -> Error {
        match self {
            Self::Closed => Error::storage("it is closed; open it again"),
            Self::Failed(message) => Error::storage(format!(
                "a write failed ({message}); whether the last entries were written is unknown; free the cause and open it again"
            )),
            Self::Overdue(message) => Error::storage(format!("{message}; entries are refused until it is written")),
            Self::Broken(message) => Error::ChainBroken { message: message.clone() },
            Self::Frozen(message) => Error::Conflict { message: message.clone() },
        }
    }
}

impl State {
    fn refusal(&self) -> Option<Refusal> {
        self.closed.clone().or_else(|| self.held.clone().map(Refusal::Overdue))
    }
}

impl Queue {
    pub(super) fn new(most: Room, durability: Durability) -> Self {
        let state = State {
            next: 0,
            last_time: Timestamp::from_millis(i64::MIN),
            stepped_back: None,
            queue: Vec::new(),
            weight: 0,
            crowded: 0,
            in_flight: Arc::new(Vec::new()),
            taken: 0,
            last_taken: Instant::now(),
            is_busy: false,
            awaited: 0,
            expected: 0,
            pause: Duration::ZERO,
            outcomes: HashMap::new(),
            epoch: 0,
            hurry: false,
            upkeep: false,
            held: None,
            closed: None,
        };
        let [work, enough, room, released] = [const { Condvar::new() }; 4];
        Self {
            state: Mutex::new(state),
            work,
            enough,
            room,
            released,
            most,
            durability,
            spare: Mutex::default(),
            clock: Arc::new(AtomicI64::new(i64::MIN)),
            era: AtomicU64::new(0),
        }
    }

    /// Starts after the journal's last entry.
    pub(super) fn start_at(&self, next: u64, last_time: Timestamp, era: Sequence) {
        let mut state = self.lock();
        self.era.store(era.get(), Ordering::Release);
        state.next = next;
        state.taken = next;
        state.last_time = last_time;
        self.clock.store(last_time.as_millis(), Ordering::Release);
    }

    /// Returns whether an entry was written before the log's time stepped back.
    pub fn is_of_earlier_time(&self, sequence: Sequence) -> bool {
        sequence.get() < self.era.load(Ordering::Acquire)
    }

    /// Returns the time of the last entry in milliseconds since 1970, updated with each entry.
    pub fn last_time(&self) -> Arc<AtomicI64> {
        Arc::clone(&self.clock)
    }

    /// Looks at the entry at `sequence` while it is not in the index yet.
    pub(super) fn pending<T>(&self, sequence: Sequence, look: impl FnOnce(&Pending) -> T) -> Option<T> {
        let state = self.lock();
        let find = |drafts: &[Pending]| {
            let first = drafts.first()?.sequence.get();
            usize::try_from(sequence.get().checked_sub(first)?).ok().filter(|place| *place < drafts.len())
        };
        let found = match find(&state.queue) {
            Some(place) => state.queue.get(place),
            None => find(&state.in_flight).and_then(|place| state.in_flight.get(place)),
        };
        found.map(look)
    }

    /// Number of entries enqueued so far.
    pub(super) fn ordered(&self) -> u64 {
        self.lock().next
    }

    /// Asks the writer not to wait for more drafts.
    pub(super) fn hurry(&self) {
        self.lock().hurry = true;
        self.work.notify_one();
    }

    /// Accepts no more entries. The first reason is kept.
    pub(super) fn refuse(&self, reason: Refusal) {
        let mut state = self.lock();
        // A clean close and a freeze are replaced by a more serious reason, so that it is not hidden.
        let gives_way = match &state.closed {
            None | Some(Refusal::Closed) => true,
            Some(Refusal::Frozen(_)) => !matches!(reason, Refusal::Closed),
            Some(Refusal::Failed(_) | Refusal::Broken(_) | Refusal::Overdue(_)) => false,
        };
        if gives_way {
            state.closed = Some(reason);
        }
        drop(state);
        self.work.notify_one();
        self.room.notify_all();
    }

    /// The error for an entry that did not reach the disk.
    pub(super) fn refused(&self, otherwise: &str) -> Error {
        self.refusal().map_or_else(|| Error::storage(otherwise), |refusal| refusal.error())
    }

    /// The reason entries are refused; `None` if they are accepted.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        self.lock().refusal()
    }

    /// Refuses entries for the given reason, until called with `None`.
    pub(super) fn hold(&self, reason: Option<String>) {
        let mut state = self.lock();
        let is_change = state.held != reason;
        state.held = reason;
        drop(state);
        if is_change {
            self.room.notify_all();
        }
    }

    /// Returns whether an entry would be accepted now; false if it would have to wait for room.
    pub(super) fn probe(&self) -> Result<bool, Refusal> {
        let state = self.lock();
        state.refusal().map_or_else(|| Ok(!self.is_full(&state)), Err)
    }

    /// Returns whether the queue is less than half full.
    pub(super) fn has_ample_room(&self) -> bool {
        let state = self.lock();
        !self.is_half_full(&state)
    }

    /// Returns whether a write failed.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.lock().closed, Some(Refusal::Failed(_)))
    }

    /// Drops the batch that is in the index now.
    pub(super) fn applied(&self, drafts: &[Pending]) {
        let mut state = self.lock();
        state.in_flight = Arc::new(Vec::new());
        for pending in drafts {
            if let Draft::Outcome(draft) = &pending.draft {
                state.outcomes.remove(&draft.proof_id.sequence());
            }
        }
    }

    /// An empty buffer for the evidence of a decision.
    pub fn buffer(&self) -> Vec<u8> {
        // Not waited for: many callers that come at once would queue here.
        let spare = self.spare.try_lock().ok().and_then(|mut spare| spare.buffers.pop());
        spare.unwrap_or_else(|| Vec::with_capacity(BUFFER_BYTES))
    }

    /// Takes the memory of a batch back that nobody reads any more.
    pub(super) fn reuse(&self, batch: Arc<Vec<Pending>>) {
        let Ok(mut drafts) = Arc::try_unwrap(batch) else { return };
        let most = MOST_BUFFERS.saturating_sub(self.spare().buffers.len());
        let mut buffers: Vec<Vec<u8>> = Vec::with_capacity(most.min(drafts.len()));
        for pending in drafts.drain(..) {
            if let Draft::Decision { draft: DecisionDraft { mut evidence, .. }, .. } = pending.draft
                && buffers.len() < most
                && (BUFFER_BYTES..=2 * BUFFER_BYTES).contains(&evidence.capacity())
            {
                evidence.clear();
                buffers.push(evidence);
            }
        }
        let mut spare = self.spare();
        spare.buffers.append(&mut buffers);
        if drafts.capacity() > spare.drafts.capacity() {
            spare.drafts = drafts;
        }
    }

    fn spare(&self) -> MutexGuard<'_, Spare> {
        // Nothing that can panic happens while it is held.
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of callers that wait for entries in the queue.
    #[cfg(test)]
    pub(super) fn awaited(&self) -> usize {
        self.lock().awaited
    }

    fn is_half_full(&self, state: &State) -> bool {
        state.queue.len() >= self.most.drafts / 2 || state.weight >= self.most.bytes / 2
    }

    fn is_full(&self, state: &State) -> bool {
        state.queue.len() >= self.most.drafts || state.weight >= self.most.bytes
    }

    fn with_room(&self) -> Result<MutexGuard<'_, State>, Error> {
        let mut state = self.lock();
        if self.is_full(&state) {
            let until = Instant::now() + self.most.patience;
            while self.is_full(&state) && state.closed.is_none() {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(Error::storage(
                        "its queue is full; the disk is slower than the callers; try again later",
                    ));
                }
                state.crowded += 1;
                state = self.room.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
                state.crowded -= 1;
            }
        }
        match state.refusal() {
            Some(refusal) => Err(refusal.error()),
            None => Ok(state),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing between two dependent changes can panic, so a poisoned lock is safe to use.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Capacity of a new evidence buffer in bytes. Most evidence is shorter.
const BUFFER_BYTES: usize = 1024;
/// Most buffers that are kept: as many as a full queue of ordinary decisions has.
const MOST_BUFFERS: usize = 4096;
