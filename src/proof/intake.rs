//! The order of entries. Callers hand drafts in, under one short lock, and get
//! a sequence and a time back; whoever's turn it is to write takes drafts out in
//! batches. That is the writer's thread, or a caller who waits for its own entry
//! and finds nobody writing: so a lone caller waits for no other thread.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::draft::{ArchiveDraft, ChangeDraft, DecisionDraft, Draft, OutcomeDraft, Pending};
use super::durability::Durability;
use super::erase::Erasure;
use super::log::Committed;
use crate::model::{Alert, Decision, Error, Outcome, ProofId, RiskLevel, Sequence, Timestamp};

/// What became of an outcome that was to be put in order.
pub(super) enum OutcomeSlot {
    Ordered(Sequence),
    /// One stands already.
    Standing(Outcome),
    /// Some outcome reached the index meanwhile; it may be this record's.
    LookAgain,
}

/// What became of a decision that was to be put in order.
#[derive(Debug)]
pub(super) enum DecisionSlot {
    Ordered {
        id: ProofId,
        last: Sequence,
        at: Timestamp,
    },
    /// A stop came meanwhile: whether it covers this one is to be looked at.
    LookAgain,
    /// What it answers has an outcome already.
    Standing(Outcome),
}

impl DecisionSlot {
    pub(super) fn committed(self, risk: RiskLevel) -> Result<Option<Committed>, Error> {
        match self {
            Self::Ordered { id, last, at } => Ok(Some(Committed { proof_id: id, sequence: last, at, risk })),
            Self::LookAgain => Ok(None),
            Self::Standing(standing) => {
                let message = format!("the record that asks has the outcome {standing} already; the first one stands");
                Err(Error::Conflict { message })
            }
        }
    }
}

/// What may wait for the writer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// Drafts.
    pub(crate) drafts: usize,
    /// Memory that they take, about. As much again may be in the writer's hands.
    pub(crate) bytes: usize,
    /// How long a caller that finds no room waits before it is refused.
    pub(crate) patience: Duration,
}

/// The queue between callers and the writer.
pub(super) struct Intake {
    // Callers hold it to number and push one draft, who writes to take all of
    // them. Taken after an agent's lock and before the index's, never across I/O.
    state: Mutex<State>,
    /// The writer's thread waits here for its turn.
    work: Condvar,
    /// Whose turn it is waits here for callers who are expected.
    enough: Condvar,
    /// Callers wait here for room.
    room: Condvar,
    most: Room,
    durability: Durability,
}

struct State {
    next: u64,
    last_time: Timestamp,
    queue: Vec<Pending>,
    /// What the queue weighs.
    weight: usize,
    /// Callers who wait for room.
    crowded: usize,
    /// What was taken out and not yet brought to the index.
    in_flight: Arc<Vec<Pending>>,
    /// Everything before this place was taken out.
    taken: u64,
    last_taken: Instant,
    /// Somebody gathers or writes.
    is_busy: bool,
    /// Callers who wait for entries in the queue.
    awaited: usize,
    /// How many are likely to wait when those who were just answered are back.
    expected: usize,
    /// How long nobody may come before those who are expected are given up.
    pause: Duration,
    /// Outcomes that are ordered and not yet in the index, by the record's sequence.
    claims: HashMap<Sequence, Outcome>,
    claims_version: u64,
    /// How often it was said who must not act.
    epoch: u64,
    /// The writer should not wait for more.
    hurry: bool,
    /// There is upkeep to be done.
    upkeep: bool,
    closed: Option<Refusal>,
}

/// The right to take drafts out and write them: one has it at a time.
pub(super) struct Turn<'a> {
    intake: &'a Intake,
}

/// What the writer's thread has to do.
pub(super) enum Task<'a> {
    Write(Turn<'a>),
    /// What is due from time to time.
    Upkeep(Turn<'a>),
    /// Nothing came for a while.
    Rest(Turn<'a>),
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

/// What is to be written in one go.
pub(super) struct Batch {
    pub(super) drafts: Arc<Vec<Pending>>,
    /// Callers who wait for one of them.
    pub(super) awaited: usize,
    /// Nothing more will come.
    pub(super) last: bool,
}

impl Intake {
    pub(super) fn new(most: Room, durability: Durability) -> Self {
        let state = State {
            next: 0,
            last_time: Timestamp::from_millis(i64::MIN),
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
            claims: HashMap::new(),
            claims_version: 0,
            epoch: 0,
            hurry: false,
            upkeep: false,
            closed: None,
        };
        let [work, enough, room] = [const { Condvar::new() }; 3];
        Self { state: Mutex::new(state), work, enough, room, most, durability }
    }

    /// Goes on behind the journal's last entry.
    pub(super) fn start_at(&self, next: u64, last_time: Timestamp) {
        let mut state = self.lock();
        state.next = next;
        state.taken = next;
        state.last_time = last_time;
    }

    /// Puts a decision in order, which was made knowing of all stops up to `epoch`.
    pub(super) fn decision(&self, now: Timestamp, draft: DecisionDraft, epoch: u64) -> Result<DecisionSlot, Error> {
        let mut state = self.with_room()?;
        if state.epoch != epoch && draft.decision != Decision::Deny {
            return Ok(DecisionSlot::LookAgain);
        }
        let (id, last, at) = self.number_decision(&mut state, now, draft);
        Ok(DecisionSlot::Ordered { id, last, at })
    }

    /// Puts a decision that asks for a person in order, and before it the state that says so: nothing comes between.
    pub(super) fn question(
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

    /// Puts the decision that answers a question in order, and behind it the outcome of the record that asked: nothing
    /// comes between. The caller has looked into the index at `version` and found no outcome.
    pub(super) fn answer(
        &self,
        now: Timestamp,
        draft: DecisionDraft,
        epoch: u64,
        version: u64,
        outcome: impl FnOnce(ProofId) -> OutcomeDraft,
    ) -> Result<DecisionSlot, Error> {
        let mut state = self.with_room()?;
        if (state.epoch != epoch && draft.decision != Decision::Deny) || state.claims_version != version {
            return Ok(DecisionSlot::LookAgain);
        }
        let asked = draft.resolves.map(|asked| asked.sequence());
        if let Some(standing) = asked.and_then(|asked| state.claims.get(&asked)) {
            return Ok(DecisionSlot::Standing(*standing));
        }
        let at = state.last_time.max(now);
        let mut outcome = outcome(ProofId::new(at, draft.random, Sequence::new(state.next)));
        let is_awaited = self.durability.awaits(draft.risk);
        let (id, _, at) = self.number_decision(&mut state, now, draft);
        let (last, _) = state.number(now);
        for state in outcome.state.iter_mut().chain(&mut outcome.asked) {
            state.stand_at(last);
        }
        state.claims.insert(outcome.proof_id.sequence(), outcome.outcome);
        self.push(&mut state, Pending { sequence: last, at, draft: Draft::Outcome(outcome) }, is_awaited);
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
    pub(super) fn stop(&self, now: Timestamp, epoch: u64, change: ChangeDraft) -> Result<Sequence, Error> {
        let mut state = self.lock();
        state.epoch = state.epoch.max(epoch);
        if let Some(refusal) = &state.closed {
            return Err(refusal.error());
        }
        Ok(self.push_change(&mut state, now, change))
    }

    /// How often outcomes have moved from here to the index: read before the
    /// index is asked for an outcome, and given to [`Intake::outcome`] then.
    pub(super) fn claims_version(&self) -> u64 {
        self.lock().claims_version
    }

    /// Puts an outcome in order, unless one for the same record is on its way.
    /// The caller has looked into the index at `version` and found none.
    pub(super) fn outcome(&self, now: Timestamp, mut draft: OutcomeDraft, version: u64) -> Result<OutcomeSlot, Error> {
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
        if let Some(state) = &mut draft.state {
            state.stand_at(sequence);
        }
        self.push(
            &mut state,
            Pending { sequence, at, draft: Draft::Outcome(draft) },
            self.durability == Durability::Sync,
        );
        Ok(OutcomeSlot::Ordered(sequence))
    }

    /// Puts a change of state in order that lets somebody act; none where a stop came that it does not know of.
    pub(super) fn state_unless_stopped(
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
    pub(super) fn state(&self, now: Timestamp, change: ChangeDraft) -> Result<Sequence, Error> {
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
    pub(super) fn alert(&self, now: Timestamp, alert: Alert, up_to: Option<Sequence>) -> Result<Sequence, Error> {
        let mut queue = self.with_room()?;
        let (sequence, at) = queue.number(now);
        let draft = Draft::Alert { alert: Box::new(alert), up_to };
        self.push(&mut queue, Pending { sequence, at, draft }, false);
        Ok(sequence)
    }

    /// Puts a change of state in order that nobody waits for.
    pub(super) fn note(&self, now: Timestamp, change: ChangeDraft) -> Result<Sequence, Error> {
        let mut queue = self.with_room()?;
        let (sequence, at) = queue.number(now);
        self.push(&mut queue, Pending { sequence, at, draft: Draft::State(Box::new(change)) }, false);
        Ok(sequence)
    }

    /// Puts an erasure in order.
    pub(super) fn erasure(&self, now: Timestamp, erasure: Erasure, cause: String) -> Result<Sequence, Error> {
        let mut queue = self.with_room()?;
        let (sequence, at) = queue.number(now);
        self.push(&mut queue, Pending { sequence, at, draft: Draft::Erasure { erasure, cause } }, true);
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
        self.push(&mut state, Pending { sequence, at, draft: Draft::Freeze { cause } }, false);
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
        self.push(&mut queue, Pending { sequence, at, draft: Draft::Archive(Box::new(draft)) }, false);
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

    /// Whether an entry would be taken in now: false where it would have to wait for room.
    pub(super) fn probe(&self) -> Result<bool, Refusal> {
        let state = self.lock();
        match &state.closed {
            Some(refusal) => Err(refusal.clone()),
            None => Ok(!self.is_full(&state)),
        }
    }

    /// Whether a write failed.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.lock().closed, Some(Refusal::Failed(_)))
    }

    /// Asks for the entry to be written now, by whoever writes next. That is the
    /// caller itself if nobody else is at it and it may: then its turn comes back.
    pub(super) fn request(&self, sequence: Sequence, by: Requester) -> Option<Turn<'_>> {
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
        // A caller who asks again and again would keep upkeep from ever having its turn.
        if by == Requester::Task || state.upkeep || state.closed.is_some() {
            self.work.notify_one();
            return None;
        }
        state.is_busy = true;
        Some(Turn { intake: self })
    }

    /// What the writer's thread has to do next. Waits up to `idle` when there is
    /// nothing, and up to `gather` for more unless somebody waits.
    pub(super) fn task(&self, gather: Duration, idle: Duration) -> Task<'_> {
        let mut state = self.lock();
        let mut gather_until = None;
        loop {
            let now = Instant::now();
            let until = if state.is_busy {
                // Who writes tells when it is done.
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

    /// How many callers wait for entries in the queue.
    #[cfg(test)]
    pub(super) fn awaited(&self) -> usize {
        self.lock().awaited
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

    fn turn(&self, state: &mut State) -> Turn<'_> {
        state.is_busy = true;
        Turn { intake: self }
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
        match &state.closed {
            Some(refusal) => Err(refusal.error()),
            None => Ok(state),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic happens between two changes that belong together.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn<'_> {
    /// Waits for those who were answered by the last sync to come back, so that
    /// one sync serves all: for as long as some of them come, and no longer than
    /// the last sync took. A caller who is alone waits for nobody.
    pub(super) fn gather(&self) {
        let mut state = self.intake.lock();
        let (pause, mut came) = (state.pause, state.awaited);
        if came == 0 || came >= state.expected || pause.is_zero() {
            return;
        }
        let until = Instant::now() + pause * PAUSES;
        while state.awaited < state.expected && state.closed.is_none() {
            let (waited, timeout) =
                self.intake.enough.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner);
            state = waited;
            if timeout.timed_out() {
                if state.awaited == came || Instant::now() >= until {
                    break;
                }
                came = state.awaited;
            }
        }
    }

    /// Takes all out that waits.
    pub(super) fn take(&self) -> Batch {
        let mut state = self.intake.lock();
        state.hurry = false;
        state.weight = 0;
        state.taken = state.next;
        state.last_taken = Instant::now();
        let awaited = std::mem::take(&mut state.awaited);
        let spare = Vec::with_capacity(state.queue.len());
        let drafts = Arc::new(std::mem::replace(&mut state.queue, spare));
        state.in_flight = Arc::clone(&drafts);
        let last = state.closed.is_some() && drafts.is_empty();
        let is_crowded = state.crowded > 0;
        drop(state);
        if is_crowded {
            self.intake.room.notify_all();
        }
        Batch { drafts, awaited, last }
    }

    /// Notes that so many callers are about to be answered, by a sync that took so long.
    pub(super) fn answering(&self, callers: usize, sync_time: Duration) {
        let mut state = self.intake.lock();
        // Those who asked meanwhile wait for the next one already.
        state.expected = callers + state.awaited;
        state.pause = sync_time.min(LONGEST_SYNC) / PAUSES;
    }

    /// Has the writer's thread do what is due.
    pub(super) fn ask_for_upkeep(&self) {
        self.intake.lock().upkeep = true;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.intake.lock();
        state.is_busy = false;
        if !state.queue.is_empty() || state.upkeep || state.hurry || state.closed.is_some() {
            self.intake.work.notify_one();
        }
    }
}

/// Who asks for an entry to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Requester {
    /// A thread that does nothing else until then.
    Thread,
    /// Something that must not be held up.
    Task,
}

/// A sync that takes longer is not waited out for callers.
const LONGEST_SYNC: Duration = Duration::from_millis(2);
/// How many pauses the time of a sync is.
const PAUSES: u32 = 4;

impl State {
    /// The next place and a time that never runs backwards.
    fn number(&mut self, now: Timestamp) -> (Sequence, Timestamp) {
        let sequence = Sequence::new(self.next);
        self.next += 1;
        self.last_time = self.last_time.max(now);
        (sequence, self.last_time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Decision, IntentId, RiskLevel, Score, Tier, TrustSnapshot};
    use std::thread;

    const FOREVER: Duration = Duration::from_secs(3600);

    fn intake(durability: Durability) -> Intake {
        Intake::new(Room { drafts: 1000, bytes: 1 << 20, patience: Duration::ZERO }, durability)
    }

    fn decide(intake: &Intake, evidence: usize) -> Result<Sequence, Error> {
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
            random: 1,
        };
        let committed = intake.decision(now, draft, 0)?.committed(RiskLevel::Low)?;
        Ok(committed.unwrap().sequence)
    }

    /// A caller's wish, with the turn if it is the caller's.
    fn wish(intake: &Intake) -> Option<Turn<'_>> {
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
            // Who waited for somebody now would wait for ever.
            intake.lock().pause = FOREVER;
        }
    }

    #[test]
    fn two_callers_do_not_take_turns_but_share() {
        let intake = &intake(Durability::Sync);
        let first = wish(intake).unwrap();
        assert_eq!(write(&first), 1);
        // The second comes while the first is written.
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
    fn callers_who_do_not_come_back_are_given_up_and_not_expected_again() {
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
    fn a_buffered_decision_does_not_hurry_the_writer_and_an_awaited_one_does() {
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
