//! The path of an entry through the parts: from the queue to the journal, then to the index.
//!
//! There is one [`Writer`], used by the holder of the turn: a caller that waits for its entry while nobody is
//! writing, or the writer's thread, which also does the periodic work.

use std::io;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use super::index::{Index, RecordFacts};
use super::journal::entry::kept_key;
use super::journal::used::UsedLimit;
use super::journal::writer::{IDLE, Writer};
use super::parts::Parts;
use super::queue::{Batch, Draft, OutcomeBasis, Pending, Refusal, Task, Turn};
use crate::store::{Kind, Staged, ViewError};
use crate::telemetry;
use rulekeep_types::Digest;

/// The writer's thread: runs until the queue is closed or a write fails.
pub(super) fn run(parts: &Parts) {
    let guard = Guard { parts: Some(parts) };
    loop {
        let step = match parts.queue.task(parts.queue.durability.gathers(), IDLE) {
            Task::Write(turn) => write(parts, &turn),
            Task::Upkeep(_turn) => with_writer(parts, |writer| {
                writer.check_held()?;
                if parts.index.read().unpersisted() >= PERSIST_EVERY {
                    parts.index.persist(&parts.journal);
                }
                if writer.is_head_due() {
                    note_head(parts, writer)?;
                }
                Ok(Wrote::All)
            }),
            Task::Rest(_turn) => with_writer(parts, |writer| {
                writer.check_held()?;
                parts.index.persist(&parts.journal);
                note_head(parts, writer)?;
                Ok(Wrote::All)
            }),
        };
        match step {
            Ok(Wrote::All) => {}
            Ok(Wrote::Last) => break,
            Err(error) => return guard.fail(&error.to_string()),
        }
    }
    parts.index.persist(&parts.journal);
    let closed = with_writer(parts, |writer| writer.journal.close().map(|()| Wrote::Last));
    seat(parts).take();
    match closed {
        Ok(_) => {
            guard.disarm();
            parts.journal.progress.over();
        }
        Err(error) => guard.fail(&error.to_string()),
    }
}

/// Writes all waiting drafts on a caller's thread.
pub(super) fn write_in_turn(parts: &Parts, turn: &Turn<'_>) {
    let guard = Guard { parts: Some(parts) };
    match write(parts, turn) {
        Ok(_) => guard.disarm(),
        Err(error) => guard.fail(&error.to_string()),
    }
}

/// The result of a turn.
enum Wrote {
    All,
    /// The queue is closed and empty.
    Last,
}

fn write(parts: &Parts, turn: &Turn<'_>) -> io::Result<Wrote> {
    turn.gather();
    with_writer(parts, |writer| {
        let batch = turn.take();
        if batch.last {
            return Ok(Wrote::Last);
        }
        if !batch.drafts.is_empty() {
            commit(parts, writer, turn, &batch)?;
        }
        parts.queue.reuse(batch.drafts);
        Ok(Wrote::All)
    })
}

fn with_writer(parts: &Parts, use_it: impl FnOnce(&mut Writer) -> io::Result<Wrote>) -> io::Result<Wrote> {
    let mut seat = seat(parts);
    let used = match seat.as_mut() {
        Some(writer) => use_it(writer),
        None => Err(io::Error::other("the writer ended")),
    };
    if used.is_err() {
        // After an error the writer must not be used any more.
        seat.take();
    }
    used
}

fn seat(parts: &Parts) -> MutexGuard<'_, Option<Writer>> {
    parts.journal.writer.lock().unwrap_or_else(|poisoned| {
        // A thread panicked while writing, so it is unknown what was written.
        let mut seat = poisoned.into_inner();
        seat.take();
        seat
    })
}

fn commit(parts: &Parts, writer: &mut Writer, turn: &Turn<'_>, batch: &Batch) -> io::Result<()> {
    let (journal, drafts) = (&parts.journal, &batch.drafts);
    let mut staged = Vec::with_capacity(drafts.len());
    writer.check_held()?;
    let (sync_time, durable) = writer.write(drafts, &mut staged)?;
    journal.syncs.fetch_add(1, Ordering::Relaxed);
    turn.answering(batch.awaited, sync_time);
    journal.progress.durable(durable);
    for pending in drafts.iter() {
        // INVARIANT: `HEAD` names a new beginning of the log only once the entry that records it is on disk.
        if let Draft::Entry(entry) = &pending.draft
            && let Some(start) = entry.begins
        {
            writer.journal.begin_at(start)?;
        }
    }
    apply(parts, drafts, &staged);
    // INVARIANT: this precedes `applied`, so that whoever no longer finds the batch in the queue finds it here.
    parts.index.recent.apply(drafts);
    parts.queue.applied(drafts);
    journal.progress.applied(durable);
    telemetry::recorded(drafts.iter().filter_map(|pending| match &pending.draft {
        Draft::Decision { draft, .. } => Some((draft.decision, draft.risk)),
        _ => None,
    }));
    if parts.index.read().unpersisted() >= PERSIST_EVERY || writer.is_head_due() {
        turn.ask_for_upkeep();
    }
    Ok(())
}

/// Writes the files beside the entries that are due. If one stays overdue for too long, new entries are refused until
/// it is written.
fn note_head(parts: &Parts, writer: &mut Writer) -> io::Result<()> {
    let (journal, queue) = (&parts.journal, &parts.queue);
    writer.note_head(&journal.overdue)?;
    journal.overdue.retry(&*journal.files);
    queue.hold(journal.overdue.refusing());
    Ok(())
}

/// Applies a batch to the index, which is rebuilt if that fails.
fn apply(parts: &Parts, drafts: &[Pending], staged: &[Staged]) {
    let mut index = parts.index.write();
    for (pending, staged) in drafts.iter().zip(staged) {
        // A rebuild started by a query may have read the entry from the journal already.
        if index.has_applied(pending.sequence) {
            continue;
        }
        if apply_one(&mut index, pending, staged.digest).is_err() {
            return parts.index.rebuild(&mut index, &parts.journal);
        }
        index.advance(staged.position);
        if index.is_to_be_relieved() {
            drop(index);
            parts.index.relieve(&parts.journal);
            index = parts.index.write();
        }
    }
}

fn apply_one(index: &mut Index, Pending { sequence, at, draft }: &Pending, hash: Digest) -> Result<(), ViewError> {
    index.see_time(*at);
    match draft {
        Draft::Decision { draft, .. } => {
            if draft.uses_limits
                && let Some(used) = UsedLimit::of(*sequence, *at, &draft.evidence)
            {
                index.use_limits(used);
            }
            let facts = RecordFacts {
                entity: &draft.entity,
                intent: draft.intent,
                time: *at,
                decision: draft.decision,
                risk: draft.risk,
                score: draft.trust.score,
                hash,
            };
            return index.add_record(*sequence, &facts);
        }
        Draft::Outcome(draft) => {
            for state in draft.state.iter().chain(&draft.asked) {
                index.set_state(&state.key, state.value.as_bytes());
            }
            let record = draft.proof_id.sequence();
            if OutcomeBasis::gives_back(draft.basis, draft.outcome) {
                index.give_back(record);
            }
            return index.add_outcome(&draft.entity, record, draft.outcome);
        }
        Draft::State(change) => index.set_state(&change.state.key, change.state.value.as_bytes()),
        Draft::Entry(entry) => {
            if let Some(key) = kept_key(entry.kind, *sequence) {
                index.set_state(&key, &entry.body);
            }
            if entry.kind == Kind::Clock {
                index.restart_time(*sequence, *at);
            }
        }
    }
    Ok(())
}

/// Number of entries applied to the index before it is persisted.
const PERSIST_EVERY: u64 = 1 << 18;

/// Wakes waiting callers when writing ends without the journal being closed, by a failed write or a panic.
struct Guard<'a> {
    parts: Option<&'a Parts>,
}

impl Guard<'_> {
    fn disarm(mut self) {
        self.parts = None;
    }

    fn fail(mut self, message: &str) {
        self.tell(message);
    }

    fn tell(&mut self, message: &str) {
        if let Some(parts) = self.parts.take() {
            parts.queue.refuse(Refusal::Failed(message.to_owned()));
            parts.journal.progress.over();
        }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.tell("the writer ended unexpectedly");
    }
}
