//! Writing: drafts become entries of the journal, these are made to last, who
//! waits is told, and then they are brought to the index.
//!
//! There is one [`Writer`], and whoever has the turn uses it: a caller who waits
//! for its entry and finds nobody writing, or else the writer's thread, which
//! also does what is due from time to time.

use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::value::RawValue;

use super::draft::{ChangeDraft, DecisionDraft, Draft, OutcomeDraft, Pending, StateDraft};
use super::entry::{AlertEntry, ArchiveEntry, ErasureEntry, FreezeEntry, NewState, OutcomeEntry, StateEntry};
use super::erase;
use super::evidence;
use super::index::{Index, RecordFacts};
use super::intake::{Batch, Refusal, Task, Turn};
use super::record::CanonicalRecord;
use super::retention::Retained;
use super::shared::Shared;
use super::used::UsedLimit;
use crate::model::{Alert, Digest, Outcome, ProofId, Timestamp};
use crate::store::{FrameDraft, Journal, Kind, Staged, ViewError};
use crate::telemetry;

/// How the writer paces itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// How long it gathers drafts before it flushes, when nobody waits.
    pub(super) gather: Duration,
    /// How long nothing happens before it persists the index and notes the head.
    pub(super) idle: Duration,
    /// How many entries may be applied before the index is persisted.
    pub(super) persist_every: u64,
}

/// What writing needs.
pub(super) struct Writer {
    journal: Journal,
    pace: Pace,
    /// The hash of the last proof record.
    head_hash: Digest,
    body: Vec<u8>,
    /// The journal has grown since the head was noted.
    head_is_old: bool,
    head_noted: Instant,
}

/// The writer's thread: works until the intake is closed or a write fails.
pub(super) fn run(shared: &Shared, pace: Pace) {
    let guard = Guard { shared: Some(shared) };
    loop {
        let step = match shared.intake.task(pace.gather, pace.idle) {
            Task::Write(turn) => write(shared, &turn),
            Task::Upkeep(_turn) => with_writer(shared, |writer| {
                writer.keep_up(shared);
                Ok(Wrote::All)
            }),
            Task::Rest(_turn) => with_writer(shared, |writer| {
                writer.rest(shared);
                Ok(Wrote::All)
            }),
        };
        match step {
            Ok(Wrote::All) => {}
            Ok(Wrote::Last) => break,
            Err(error) => return guard.fail(&error.to_string()),
        }
    }
    shared.persist();
    let closed = with_writer(shared, |writer| writer.journal.close().map(|()| Wrote::Last));
    seat(shared).take();
    match closed {
        Ok(_) => {
            guard.disarm();
            shared.progress.over();
        }
        Err(error) => guard.fail(&error.to_string()),
    }
}

/// A caller's own turn: writes all that waits.
pub(super) fn write_in_turn(shared: &Shared, turn: &Turn<'_>) {
    let guard = Guard { shared: Some(shared) };
    match write(shared, turn) {
        Ok(_) => guard.disarm(),
        Err(error) => guard.fail(&error.to_string()),
    }
}

/// What a turn came to.
enum Wrote {
    All,
    /// The intake is closed, and nothing was left.
    Last,
}

fn write(shared: &Shared, turn: &Turn<'_>) -> std::io::Result<Wrote> {
    turn.gather();
    with_writer(shared, |writer| {
        let batch = turn.take();
        if batch.last {
            return Ok(Wrote::Last);
        }
        if !batch.drafts.is_empty() {
            writer.write(shared, turn, &batch)?;
        }
        Ok(Wrote::All)
    })
}

fn with_writer(shared: &Shared, use_it: impl FnOnce(&mut Writer) -> std::io::Result<Wrote>) -> std::io::Result<Wrote> {
    let mut seat = seat(shared);
    let used = match seat.as_mut() {
        Some(writer) => use_it(writer),
        None => Err(std::io::Error::other("the writer ended")),
    };
    if used.is_err() {
        // Whatever it holds, it must not be written to any more.
        seat.take();
    }
    used
}

fn seat(shared: &Shared) -> MutexGuard<'_, Option<Writer>> {
    shared.writer.lock().unwrap_or_else(|poisoned| {
        // Somebody panicked at it: how far it came is unknown.
        let mut seat = poisoned.into_inner();
        seat.take();
        seat
    })
}

impl Writer {
    pub(super) fn new(journal: Journal, pace: Pace, head_hash: Digest) -> Self {
        Self { journal, pace, head_hash, body: Vec::new(), head_is_old: true, head_noted: Instant::now() }
    }

    fn write(&mut self, shared: &Shared, turn: &Turn<'_>, batch: &Batch) -> std::io::Result<()> {
        let drafts = &batch.drafts;
        let mut staged = Vec::with_capacity(drafts.len());
        for pending in drafts.iter() {
            staged.push(self.stage(pending)?);
            if self.journal.staged_bytes() >= MOST_STAGED {
                self.journal.write()?;
            }
        }
        self.journal.write()?;
        let started = Instant::now();
        let durable = self.journal.sync()?;
        shared.syncs.fetch_add(1, Ordering::Relaxed);
        self.head_is_old = true;
        turn.answering(batch.awaited, started.elapsed());
        shared.progress.durable(durable);
        for pending in drafts.iter() {
            // INVARIANT: `HEAD` names another beginning only when the entry that says so is on disk.
            if let Draft::Archive(draft) = &pending.draft {
                self.journal.begin_at(draft.start)?;
            }
        }

        apply(shared, drafts, &staged);
        // INVARIANT: before the intake forgets the batch, so that whoever does not find it there finds it here.
        shared.recent.apply(drafts);
        shared.intake.applied(drafts);
        shared.progress.applied(durable);
        telemetry::recorded(drafts.iter().filter_map(|pending| match &pending.draft {
            Draft::Decision { draft, .. } => Some((draft.decision, draft.risk)),
            _ => None,
        }));
        if self.is_upkeep_due(shared) {
            turn.ask_for_upkeep();
        }
        Ok(())
    }

    fn is_upkeep_due(&self, shared: &Shared) -> bool {
        shared.index().unpersisted() >= self.pace.persist_every || self.head_noted.elapsed() >= self.pace.idle
    }

    fn stage(&mut self, pending: &Pending) -> std::io::Result<Staged> {
        let at = pending.at;
        let mut evidence: &[u8] = &[];
        let mut is_record = false;
        let kind = match &pending.draft {
            Draft::Decision { id, draft } => {
                let record = canonical(*id, at, draft, self.head_hash);
                self.body.clear();
                record.write(&mut self.body)?;
                is_record = true;
                evidence = &draft.evidence;
                Kind::Decision
            }
            Draft::Outcome(draft) => {
                write_json(&mut self.body, &outcome_entry(at, draft)?)?;
                Kind::Outcome
            }
            Draft::State(change) => {
                let ChangeDraft { state, cause, trust } = &**change;
                let (agent_id, trust) = trust.clone().unzip();
                let state = new_state(state)?;
                let entry = StateEntry { state, cause: Cow::Borrowed(cause), agent_id, trust, timestamp: at };
                write_json(&mut self.body, &entry)?;
                Kind::State
            }
            Draft::Alert { alert, up_to } => {
                let alert = Alert::clone(alert);
                write_json(&mut self.body, &AlertEntry { alert, up_to: *up_to, timestamp: at })?;
                Kind::Alert
            }
            Draft::Erasure { erasure, cause } => {
                write_json(&mut self.body, &ErasureEntry::new(erasure, cause, at))?;
                Kind::Erasure
            }
            Draft::Freeze { cause } => {
                write_json(&mut self.body, &FreezeEntry { cause: cause.clone(), timestamp: at })?;
                Kind::Freeze
            }
            Draft::Archive(draft) => {
                write_json(&mut self.body, &ArchiveEntry::of(draft, at))?;
                Kind::Archive
            }
        };
        let staged = self.journal.stage(&FrameDraft { kind, body: &self.body, evidence })?;
        if is_record {
            self.head_hash = staged.digest;
        }
        Ok(staged)
    }

    /// Does what is due from time to time.
    fn keep_up(&mut self, shared: &Shared) {
        if shared.index().unpersisted() >= self.pace.persist_every {
            shared.persist();
        }
        if self.head_noted.elapsed() >= self.pace.idle {
            self.note_head();
        }
    }

    /// Uses a quiet moment.
    fn rest(&mut self, shared: &Shared) {
        shared.persist();
        self.note_head();
    }

    /// Notes in `HEAD` how far the journal has come. Where that fails the entries
    /// are on disk all the same; it is tried again later.
    fn note_head(&mut self) {
        if self.head_is_old && self.journal.note_head().is_ok() {
            self.head_is_old = false;
        }
        self.head_noted = Instant::now();
    }
}

/// Brings a batch to the index, which is rebuilt if that fails.
fn apply(shared: &Shared, drafts: &[Pending], staged: &[Staged]) {
    let mut index = shared.index.write().unwrap_or_else(PoisonError::into_inner);
    for (pending, staged) in drafts.iter().zip(staged) {
        // A rebuild by a query may have read the entry from the journal already.
        if index.has_applied(pending.sequence) {
            continue;
        }
        if apply_one(&mut index, pending, staged.digest).is_err() {
            return shared.rebuild(&mut index);
        }
        index.advance(staged.position);
        if index.is_heavy() {
            drop(index);
            shared.persist();
            index = shared.index.write().unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Tells who waits when writing ends without the journal having been closed: by a
/// failed write, or by a panic.
struct Guard<'a> {
    shared: Option<&'a Shared>,
}

impl Guard<'_> {
    fn disarm(mut self) {
        self.shared = None;
    }

    fn fail(mut self, message: &str) {
        self.tell(message);
    }

    fn tell(&mut self, message: &str) {
        if let Some(shared) = self.shared.take() {
            shared.intake.refuse(Refusal::Failed(message.to_owned()));
            shared.progress.over();
        }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.tell("the writer ended unexpectedly");
    }
}

/// Staged bytes at which a batch is written in parts.
const MOST_STAGED: usize = 1 << 20;

fn apply_one(index: &mut Index, pending: &Pending, digest: Digest) -> Result<(), ViewError> {
    match &pending.draft {
        Draft::Decision { draft, .. } => {
            if let Some(used) = UsedLimit::of(pending.sequence, pending.at, &draft.evidence) {
                index.use_limits(used);
            }
            index.add_record(
                pending.sequence,
                &RecordFacts {
                    entity: &draft.entity,
                    intent: draft.intent,
                    time: pending.at,
                    decision: draft.decision,
                    risk: draft.risk,
                    score: draft.trust.score,
                    hash: digest,
                },
            )
        }
        Draft::Outcome(draft) => {
            for state in draft.state.iter().chain(&draft.asked) {
                index.set_state(&state.key, state.value.as_bytes());
            }
            let record = draft.proof_id.sequence();
            if draft.outcome == Outcome::Failure {
                index.give_back(record);
            }
            index.add_outcome(&draft.entity, record, draft.outcome, pending.at)
        }
        Draft::State(change) => {
            index.set_state(&change.state.key, change.state.value.as_bytes());
            index.see_time(pending.at);
            Ok(())
        }
        Draft::Erasure { erasure, cause } => {
            let body = serde_json::to_vec(&ErasureEntry::new(erasure, cause, pending.at));
            let body = body.map_err(|_| ViewError::Disagrees("an erasure does not serialise"))?;
            index.set_state(&erase::key(pending.sequence), &body);
            index.see_time(pending.at);
            Ok(())
        }
        Draft::Freeze { cause } => {
            let body = serde_json::to_vec(&FreezeEntry { cause: cause.clone(), timestamp: pending.at });
            keep(index, pending, Kind::Freeze, body)
        }
        Draft::Archive(draft) => {
            let body = serde_json::to_vec(&ArchiveEntry::of(draft, pending.at));
            keep(index, pending, Kind::Archive, body)
        }
        Draft::Alert { .. } => {
            index.see_time(pending.at);
            Ok(())
        }
    }
}

/// Keeps what the log says of its own past among the states.
fn keep(index: &mut Index, pending: &Pending, kind: Kind, body: serde_json::Result<Vec<u8>>) -> Result<(), ViewError> {
    let body = body.map_err(|_| ViewError::Disagrees("an entry does not serialise"))?;
    index.set_state(&Retained::key(pending.sequence, kind), &body);
    index.see_time(pending.at);
    Ok(())
}

fn canonical(id: ProofId, at: Timestamp, draft: &DecisionDraft, previous_hash: Digest) -> CanonicalRecord<'_> {
    CanonicalRecord {
        decision: draft.decision,
        entity_id: draft.entity.clone(),
        evidence_hash: evidence::digest(&draft.evidence),
        id,
        intent_id: draft.intent,
        previous_hash,
        reasoning: Cow::Borrowed(&draft.reasoning),
        resolves: draft.resolves,
        retry_of: draft.retry_of,
        risk_level: draft.risk,
        timestamp: at,
        trust_score: draft.trust.score,
        trust_tier: draft.trust.tier,
    }
}

fn outcome_entry(at: Timestamp, draft: &OutcomeDraft) -> serde_json::Result<OutcomeEntry<'_>> {
    Ok(OutcomeEntry {
        proof_id: draft.proof_id,
        entity_id: draft.entity.clone(),
        outcome: draft.outcome,
        note: draft.note.as_deref().map(Cow::Borrowed),
        timestamp: at,
        state: draft.state.as_ref().map(new_state).transpose()?,
        asked: draft.asked.as_ref().map(new_state).transpose()?,
        trust: draft.trust.clone(),
        basis: draft.basis,
    })
}

fn new_state(draft: &StateDraft) -> serde_json::Result<NewState<'_>> {
    Ok(NewState { key: Cow::Borrowed(&draft.key), value: serde_json::from_str::<&RawValue>(&draft.value)? })
}

fn write_json(body: &mut Vec<u8>, entry: &impl serde::Serialize) -> serde_json::Result<()> {
    body.clear();
    serde_json::to_writer(body, entry)
}
