//! The order of entries. Callers hand drafts in, under one short lock, and get
//! a sequence and a time back; the writer takes drafts out in batches.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::model::{
    AgentId, Alert, Decision, Digest, Error, IntentId, Outcome, ProofId, RiskLevel, Sequence, Timestamp, TrustChange,
    TrustSnapshot,
};

use crate::store::Start;

/// When a call that writes comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// When the record is on disk: it survives `kill -9` and a power cut.
    /// Callers at the same time share one flush.
    #[default]
    Sync,
    /// When the record is in order in memory; it is on disk within some 10
    /// milliseconds. A crash before that loses it.
    Buffered,
}

/// A decision to be recorded.
#[derive(Debug)]
pub(crate) struct DecisionDraft {
    pub(crate) entity: AgentId,
    pub(crate) intent: IntentId,
    pub(crate) decision: Decision,
    pub(crate) reasoning: String,
    pub(crate) trust: TrustSnapshot,
    pub(crate) risk: RiskLevel,
    /// As `evidence::encode` makes it.
    pub(crate) evidence: Vec<u8>,
    /// For the proof id.
    pub(crate) random: u32,
}

/// An outcome to be recorded, with the change of state that follows from it.
#[derive(Debug)]
pub(crate) struct OutcomeDraft {
    pub(crate) proof_id: ProofId,
    pub(crate) entity: AgentId,
    pub(crate) outcome: Outcome,
    pub(crate) note: Option<String>,
    pub(crate) state: Option<StateDraft>,
    /// How the agent's trust moves.
    pub(crate) trust: Option<TrustChange>,
}

/// The new state of something.
#[derive(Debug)]
pub(crate) struct StateDraft {
    pub(crate) key: String,
    /// JSON.
    pub(crate) value: String,
}

/// What is to be written.
#[derive(Debug)]
pub(super) enum Draft {
    Decision { id: ProofId, draft: DecisionDraft },
    Outcome(OutcomeDraft),
    State { state: StateDraft, cause: String },
    Alert(Box<Alert>),
    Freeze { cause: String },
    Archive(Box<ArchiveDraft>),
}

/// The note that the first entries are in a file of their own.
#[derive(Debug)]
pub(crate) struct ArchiveDraft {
    pub(crate) file: String,
    pub(crate) from: u64,
    pub(crate) sha256: Digest,
    /// Where the log begins then.
    pub(crate) start: Start,
}

/// A draft with its place.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) sequence: Sequence,
    pub(super) at: Timestamp,
    pub(super) draft: Draft,
}

/// What became of an outcome that was to be put in order.
pub(super) enum OutcomeSlot {
    Ordered(Sequence),
    /// One stands already.
    Standing(Outcome),
    /// Some outcome reached the index meanwhile; it may be this record's.
    LookAgain,
}

/// The queue between callers and the writer.
pub(super) struct Intake {
    // Callers hold it to number and push one draft, the writer to take all of
    // them. Taken after an agent's lock and before the index's, never across I/O.
    state: Mutex<State>,
    /// The writer waits here for work.
    work: Condvar,
    /// Callers wait here for room.
    room: Condvar,
    capacity: usize,
    patience: Duration,
    /// Every draft is wanted on disk at once.
    eager: bool,
}

struct State {
    next: u64,
    last_time: Timestamp,
    queue: Vec<Pending>,
    /// What the writer has taken and not yet brought to the index.
    in_flight: Arc<Vec<Pending>>,
    /// Outcomes that are ordered and not yet in the index, by the record's sequence.
    claims: HashMap<Sequence, Outcome>,
    claims_version: u64,
    /// The writer should not wait for more.
    hurry: bool,
    closed: Option<Refusal>,
}

/// Why nothing more is taken in.
#[derive(Debug, Clone)]
pub(super) enum Refusal {
    Closed,
    /// A write failed: the fate of the last entries is unknown.
    Failed(String),
    /// The chain does not verify.
    Broken(String),
    /// It was frozen for good; how that is said.
    Frozen(String),
}

impl Refusal {
    pub(super) fn error(&self) -> Error {
        match self {
            Self::Closed => Error::storage("it is closed; open it again"),
            Self::Failed(message) => Error::storage(format!(
                "a write failed ({message}); whether the last entries were written is unknown; free the cause and open it again"
            )),
            Self::Broken(message) => Error::ChainBroken { message: message.clone() },
            Self::Frozen(message) => Error::Conflict { message: message.clone() },
        }
    }
}

/// What is asked of the writer.
pub(super) struct Batch {
    pub(super) drafts: Arc<Vec<Pending>>,
    /// Nothing more will come.
    pub(super) last: bool,
}

impl Intake {
    /// An intake in which at most `capacity` drafts wait, and where a caller
    /// that finds no room for `patience` is refused.
    pub(super) fn new(capacity: usize, patience: Duration, eager: bool) -> Self {
        let state = State {
            next: 0,
            last_time: Timestamp::from_millis(i64::MIN),
            queue: Vec::new(),
            in_flight: Arc::new(Vec::new()),
            claims: HashMap::new(),
            claims_version: 0,
            hurry: false,
            closed: None,
        };
        Self { state: Mutex::new(state), work: Condvar::new(), room: Condvar::new(), capacity, patience, eager }
    }

    /// Goes on behind the journal's last entry.
    pub(super) fn start_at(&self, next: u64, last_time: Timestamp) {
        let mut state = self.lock();
        state.next = next;
        state.last_time = last_time;
    }

    /// Puts a decision in order.
    pub(super) fn decision(
        &self,
        now: Timestamp,
        draft: DecisionDraft,
    ) -> Result<(ProofId, Sequence, Timestamp), Error> {
        let mut state = self.with_room()?;
        let (sequence, at) = state.number(now);
        let id = ProofId::new(at, draft.random, sequence);
        self.push(&mut state, Pending { sequence, at, draft: Draft::Decision { id, draft } });
        Ok((id, sequence, at))
    }

    /// How often outcomes have moved from here to the index: read before the
    /// index is asked for an outcome, and given to [`Intake::outcome`] then.
    pub(super) fn claims_version(&self) -> u64 {
        self.lock().claims_version
    }

    /// Puts an outcome in order, unless one for the same record is on its way.
    /// The caller has looked into the index at `version` and found none.
    pub(super) fn outcome(&self, now: Timestamp, draft: OutcomeDraft, version: u64) -> Result<OutcomeSlot, Error> {
        let mut state = self.with_room()?;
        let record = draft.proof_id.sequence();
        if let Some(standing) = state.claims.get(&record) {
            return Ok(OutcomeSlot::Standing(*standing));
        }
        // INVARIANT: a claim is dropped only once the index has the outcome, so an unchanged version and no claim
        // mean that there is none.
        if state.claims_version != version {
            return Ok(OutcomeSlot::LookAgain);
        }
        state.claims.insert(record, draft.outcome);
        let (sequence, at) = state.number(now);
        self.push(&mut state, Pending { sequence, at, draft: Draft::Outcome(draft) });
        Ok(OutcomeSlot::Ordered(sequence))
    }

    /// Puts a change of state in order.
    pub(super) fn state(&self, now: Timestamp, state: StateDraft, cause: String) -> Result<Sequence, Error> {
        let mut queue = self.with_room()?;
        let (sequence, at) = queue.number(now);
        self.push(&mut queue, Pending { sequence, at, draft: Draft::State { state, cause } });
        Ok(sequence)
    }

    /// Puts an alert in order.
    pub(super) fn alert(&self, now: Timestamp, alert: Alert) -> Result<Sequence, Error> {
        let mut queue = self.with_room()?;
        let (sequence, at) = queue.number(now);
        self.push(&mut queue, Pending { sequence, at, draft: Draft::Alert(Box::new(alert)) });
        Ok(sequence)
    }

    /// Puts the end of the log in order: nothing is taken in behind it. Hands out its place and its time.
    pub(super) fn freeze(
        &self,
        now: Timestamp,
        cause: String,
        message: impl FnOnce(Timestamp) -> String,
    ) -> Result<(Sequence, Timestamp), Error> {
        let mut state = self.with_room()?;
        let (sequence, at) = state.number(now);
        self.push(&mut state, Pending { sequence, at, draft: Draft::Freeze { cause } });
        state.closed = Some(Refusal::Frozen(message(at)));
        drop(state);
        self.work.notify_one();
        self.room.notify_all();
        Ok((sequence, at))
    }

    /// Puts the note of an archive in order.
    pub(super) fn archive(&self, now: Timestamp, draft: ArchiveDraft) -> Result<(Sequence, Timestamp), Error> {
        let mut queue = self.with_room()?;
        let (sequence, at) = queue.number(now);
        self.push(&mut queue, Pending { sequence, at, draft: Draft::Archive(Box::new(draft)) });
        queue.hurry = true;
        self.work.notify_one();
        Ok((sequence, at))
    }

    /// What is known of the entry at `sequence` while it is not in the index yet.
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

    /// How many entries have been put in order so far.
    pub(super) fn ordered(&self) -> u64 {
        self.lock().next
    }

    /// Asks the writer not to wait for more.
    pub(super) fn hurry(&self) {
        self.lock().hurry = true;
        self.work.notify_one();
    }

    /// Takes nothing more in. The first reason stands.
    pub(super) fn refuse(&self, reason: Refusal) {
        let mut state = self.lock();
        // A clean close gives way to what is worse, so that it is not hidden; so does a freeze.
        let gives_way = match &state.closed {
            None | Some(Refusal::Closed) => true,
            Some(Refusal::Frozen(_)) => !matches!(reason, Refusal::Closed),
            Some(Refusal::Failed(_) | Refusal::Broken(_)) => false,
        };
        if gives_way {
            state.closed = Some(reason);
        }
        drop(state);
        self.work.notify_one();
        self.room.notify_all();
    }

    /// Why nothing is taken in, if so.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        self.lock().closed.clone()
    }

    /// Whether a write failed.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.lock().closed, Some(Refusal::Failed(_)))
    }

    /// The next batch for the writer. Waits up to `idle` when there is nothing
    /// (then the batch is empty), and up to `gather` for more unless hurried.
    pub(super) fn take(&self, gather: Duration, idle: Duration) -> Batch {
        let mut state = self.lock();
        let idle_until = Instant::now() + idle;
        while state.queue.is_empty() && !state.hurry && state.closed.is_none() {
            let left = idle_until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.wait(state, left);
        }
        let gather_until = Instant::now() + gather;
        while !state.queue.is_empty() && !state.hurry && state.closed.is_none() && state.queue.len() < self.capacity / 2
        {
            let left = gather_until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.wait(state, left);
        }
        state.hurry = false;
        let spare = Vec::with_capacity(state.queue.len());
        let drafts = Arc::new(std::mem::replace(&mut state.queue, spare));
        state.in_flight = Arc::clone(&drafts);
        let last = state.closed.is_some() && drafts.is_empty();
        drop(state);
        self.room.notify_all();
        Batch { drafts, last }
    }

    /// Forgets the batch that the index has now.
    pub(super) fn applied(&self, drafts: &[Pending]) {
        let mut state = self.lock();
        state.in_flight = Arc::new(Vec::new());
        for pending in drafts {
            if let Draft::Outcome(draft) = &pending.draft {
                state.claims.remove(&draft.proof_id.sequence());
                state.claims_version += 1;
            }
        }
    }

    fn push(&self, state: &mut State, pending: Pending) {
        state.queue.push(pending);
        // One wake for a batch: the writer gathers by itself from then on, and is called when it should stop gathering.
        let waiting = state.queue.len();
        if waiting == 1 || waiting == self.capacity / 2 || (self.eager && !state.hurry) {
            state.hurry |= self.eager;
            self.work.notify_one();
        }
    }

    fn with_room(&self) -> Result<MutexGuard<'_, State>, Error> {
        let mut state = self.lock();
        if state.queue.len() >= self.capacity {
            let until = Instant::now() + self.patience;
            while state.queue.len() >= self.capacity && state.closed.is_none() {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(Error::storage(
                        "its queue is full; the disk is slower than the callers; try again later",
                    ));
                }
                state = self.room.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        match &state.closed {
            Some(refusal) => Err(refusal.error()),
            None => Ok(state),
        }
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, time: Duration) -> MutexGuard<'a, State> {
        self.work.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic happens between two changes that belong together.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
