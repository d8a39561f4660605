//! The writer: one thread that turns drafts into entries of the journal, makes
//! them last, tells who waits, and then brings them to the index.

use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use serde_json::value::RawValue;

use super::entry::{AlertEntry, ArchiveEntry, FreezeEntry, NewState, OutcomeEntry, StateEntry};
use super::evidence;
use super::index::{Index, RecordFacts};
use super::intake::{DecisionDraft, Draft, OutcomeDraft, Pending, Refusal, StateDraft};
use super::record::CanonicalRecord;
use super::shared::Shared;
use crate::model::{Alert, Digest, ProofId, Timestamp};
use crate::store::{FrameDraft, Journal, Kind, Staged, ViewError};

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

/// The writer's own state.
pub(super) struct Writer {
    shared: Arc<Shared>,
    journal: Journal,
    pace: Pace,
    /// The hash of the last proof record.
    head_hash: Digest,
    body: Vec<u8>,
    /// The journal has grown since the head was noted.
    head_is_old: bool,
    head_noted: Instant,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, journal: Journal, pace: Pace, head_hash: Digest) -> Self {
        Self { shared, journal, pace, head_hash, body: Vec::new(), head_is_old: true, head_noted: Instant::now() }
    }

    /// Works until the intake is closed or a write fails.
    pub(super) fn run(mut self) {
        let guard = Guard { shared: Some(Arc::clone(&self.shared)) };
        loop {
            let batch = self.shared.intake.take(self.pace.gather, self.pace.idle);
            let step = if !batch.drafts.is_empty() {
                self.write(&batch.drafts)
            } else if batch.last {
                break;
            } else {
                self.rest();
                Ok(())
            };
            if let Err(error) = step {
                return guard.fail(&error.to_string());
            }
        }
        self.shared.persist();
        match self.journal.close() {
            Ok(()) => {
                guard.disarm();
                self.shared.progress.over();
            }
            Err(error) => guard.fail(&error.to_string()),
        }
    }

    fn write(&mut self, drafts: &[Pending]) -> std::io::Result<()> {
        let mut staged = Vec::with_capacity(drafts.len());
        for pending in drafts {
            staged.push(self.stage(pending)?);
            if self.journal.staged_bytes() >= MOST_STAGED {
                self.journal.write()?;
            }
        }
        self.journal.write()?;
        let durable = self.journal.sync()?;
        self.shared.syncs.fetch_add(1, Ordering::Relaxed);
        self.head_is_old = true;
        self.shared.progress.durable(durable);
        for pending in drafts {
            // INVARIANT: `HEAD` names another beginning only when the entry that says so is on disk.
            if let Draft::Archive(draft) = &pending.draft {
                self.journal.begin_at(draft.start)?;
            }
        }

        self.apply(drafts, &staged);
        self.shared.intake.applied(drafts);
        self.shared.progress.applied(durable);
        if self.shared.index().unpersisted() >= self.pace.persist_every {
            self.shared.persist();
        }
        if self.head_noted.elapsed() >= self.pace.idle {
            self.note_head();
        }
        Ok(())
    }

    fn stage(&mut self, pending: &Pending) -> std::io::Result<Staged> {
        let at = pending.at;
        let mut evidence: &[u8] = &[];
        let mut is_record = false;
        let kind = match &pending.draft {
            Draft::Decision { id, draft } => {
                let record = canonical(*id, at, draft, self.head_hash);
                write_json(&mut self.body, &record)?;
                is_record = true;
                evidence = &draft.evidence;
                Kind::Decision
            }
            Draft::Outcome(draft) => {
                write_json(&mut self.body, &outcome_entry(at, draft)?)?;
                Kind::Outcome
            }
            Draft::State { state, cause } => {
                let entry = StateEntry { state: new_state(state)?, cause: Cow::Borrowed(cause), timestamp: at };
                write_json(&mut self.body, &entry)?;
                Kind::State
            }
            Draft::Alert(alert) => {
                write_json(&mut self.body, &AlertEntry { alert: Alert::clone(alert), timestamp: at })?;
                Kind::Alert
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

    /// Brings a batch to the index, which is rebuilt if that fails.
    fn apply(&self, drafts: &[Pending], staged: &[Staged]) {
        let mut index = self.shared.index.write().unwrap_or_else(PoisonError::into_inner);
        for (pending, staged) in drafts.iter().zip(staged) {
            // A rebuild by a query may have read the entry from the journal already.
            if index.has_applied(pending.sequence) {
                continue;
            }
            if apply_one(&mut index, pending, staged.digest).is_err() {
                return self.shared.rebuild(&mut index);
            }
            index.advance(staged.position);
            if index.is_heavy() {
                drop(index);
                self.shared.persist();
                index = self.shared.index.write().unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Uses a quiet moment.
    fn rest(&mut self) {
        self.shared.persist();
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

/// Tells who waits when the writer ends without having closed the journal: by a
/// failed write, or by a panic.
struct Guard {
    shared: Option<Arc<Shared>>,
}

impl Guard {
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

impl Drop for Guard {
    fn drop(&mut self) {
        self.tell("the writer ended unexpectedly");
    }
}

/// Staged bytes at which a batch is written in parts.
const MOST_STAGED: usize = 4 << 20;

fn apply_one(index: &mut Index, pending: &Pending, digest: Digest) -> Result<(), ViewError> {
    match &pending.draft {
        Draft::Decision { draft, .. } => index.add_record(
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
        ),
        Draft::Outcome(draft) => index.add_outcome(&draft.entity, draft.proof_id.sequence(), draft.outcome, pending.at),
        Draft::State { .. } | Draft::Alert(_) | Draft::Freeze { .. } | Draft::Archive(_) => {
            index.see_time(pending.at);
            Ok(())
        }
    }
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
        trust: draft.trust,
    })
}

fn new_state(draft: &StateDraft) -> serde_json::Result<NewState<'_>> {
    Ok(NewState { key: Cow::Borrowed(&draft.key), value: serde_json::from_str::<&RawValue>(&draft.value)? })
}

fn write_json(body: &mut Vec<u8>, entry: &impl serde::Serialize) -> serde_json::Result<()> {
    body.clear();
    serde_json::to_writer(body, entry)
}
