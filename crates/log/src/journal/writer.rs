//! The writer: it encodes drafts as entries of the journal and makes them durable.

use std::borrow::Cow;
use std::io;
use std::time::{Duration, Instant};

use serde_json::value::RawValue;

use super::entry::{NewState, OutcomeEntry, StateEntry};
use super::evidence;
use super::overdue::Overdue;
use super::record::CanonicalRecord;
use crate::queue::{ChangeDraft, DecisionDraft, Draft, OutcomeDraft, Pending, StateDraft};
use crate::store::{FrameDraft, Journal, Kind, Staged};
use rulekeep_types::{Digest, ProofId, Timestamp};

/// The state of the writer.
pub(crate) struct Writer {
    pub(crate) journal: Journal,
    /// The hash of the last proof record.
    head_hash: Digest,
    body: Vec<u8>,
    /// The journal has grown since `HEAD` was written.
    head_is_old: bool,
    head_noted: Instant,
    held_checked: Instant,
}

impl Writer {
    pub(crate) fn new(journal: Journal, head_hash: Digest) -> Self {
        let now = Instant::now();
        Self { journal, head_hash, body: Vec::new(), head_is_old: true, head_noted: now, held_checked: now }
    }

    /// Writes and syncs entries. Returns the duration of the sync and the number of entries on disk.
    pub(crate) fn write(&mut self, drafts: &[Pending], staged: &mut Vec<Staged>) -> io::Result<(Duration, u64)> {
        for pending in drafts {
            staged.push(self.stage(pending)?);
            if self.journal.staged_bytes() >= MOST_STAGED {
                self.journal.write()?;
            }
        }
        self.journal.write()?;
        let started = Instant::now();
        let durable = self.journal.sync()?;
        self.head_is_old = true;
        Ok((started.elapsed(), durable))
    }

    fn stage(&mut self, pending: &Pending) -> io::Result<Staged> {
        let at = pending.at;
        let (kind, body, evidence): (_, &[u8], &[u8]) = match &pending.draft {
            Draft::Decision { id, draft } => {
                self.body.clear();
                canonical(*id, at, draft, self.head_hash).write(&mut self.body)?;
                (Kind::Decision, &self.body, &draft.evidence)
            }
            Draft::Outcome(draft) => {
                write_json(&mut self.body, &outcome_entry(at, draft)?)?;
                (Kind::Outcome, &self.body, &[])
            }
            Draft::State(change) => {
                let ChangeDraft { state, cause, trust } = &**change;
                let (agent_id, trust) = trust.clone().unzip();
                let state = new_state(state)?;
                let entry = StateEntry { state, cause: Cow::Borrowed(cause), agent_id, trust, timestamp: at };
                write_json(&mut self.body, &entry)?;
                (Kind::State, &self.body, &[])
            }
            Draft::Entry(entry) => (entry.kind, &entry.body, &[]),
        };
        let staged = self.journal.stage(&FrameDraft { kind, body, evidence })?;
        if kind == Kind::Decision {
            self.head_hash = staged.digest;
        }
        Ok(staged)
    }

    /// Returns whether `HEAD` has to be written again.
    pub(crate) fn is_head_due(&self) -> bool {
        self.head_noted.elapsed() >= IDLE
    }

    /// Writes `HEAD`, and begins the next segment if that is due. If this fails, the entries are on disk all the
    /// same, and it is tried again later. Returns an error only if nothing more can be written.
    pub(crate) fn note_head(&mut self, overdue: &Overdue) -> io::Result<()> {
        self.journal.retry_roll()?;
        overdue.note("the next segment", self.journal.unrolled().map(str::to_owned), None);
        if self.head_is_old {
            self.journal.check_held()?;
            let noted = self.journal.note_head();
            self.head_is_old = noted.is_err();
            overdue.note("HEAD", noted.err().map(|error| error.to_string()), None);
        }
        self.head_noted = Instant::now();
        Ok(())
    }

    /// Fails if the store is no longer the one that was opened. Checks at most every half second.
    pub(crate) fn check_held(&mut self) -> io::Result<()> {
        if self.held_checked.elapsed() >= HELD_CHECK {
            self.journal.check_held()?;
            self.held_checked = Instant::now();
        }
        Ok(())
    }
}

/// Time without entries after which the index is persisted and `HEAD` is written.
pub(crate) const IDLE: Duration = Duration::from_secs(1);
/// Interval of the check; half the time for which a missing folder may go unnoticed.
const HELD_CHECK: Duration = Duration::from_millis(500);
/// Number of staged bytes at which a batch is written in several writes.
const MOST_STAGED: usize = 1 << 20;

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
