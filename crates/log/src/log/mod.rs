//! The interface of the log: enqueueing entries, waiting for them, its state, and closing it.

mod answer;
pub(crate) mod open;
mod pages;
mod secrets;
#[cfg(feature = "checkpoints")]
mod tree;
mod verify;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::commit;
use super::follow::Feed;
use super::index::{Index, Totals};
use super::journal::JournalPart;
use super::journal::entry::{AlertEntry, ClockEntry, UnknownOutcomeEntry};
use super::journal::record::CanonicalRecord;
use super::maintenance::verify::Behind;
use super::parts::Parts;
use super::queue::{Queue, Refusal, Requester, Reservation};
use super::ticket::Ticket;
use crate::store::{FolderLock, Kind};
#[cfg(test)]
use rulekeep_types::Digest;
use rulekeep_types::{
    AgentId, Alert, Breakage, Error, JournalStatus, Outcome, ProofId, RiskLevel, Sequence, Timestamp, VerificationState,
};

pub use open::{LogOptions, OpenLogError, Place, Startup};

/// The log of one store.
pub struct ProofLog {
    pub(super) parts: Arc<Parts>,
    // Taken by the first caller that closes the log.
    pub(super) open: Mutex<Option<Open>>,
    pub(super) behind: Behind,
    /// The folder of a store that is open read-only; its persisted index is compared but not used.
    pub(super) beside: Option<PathBuf>,
}

/// Resources of an open log.
pub(super) struct Open {
    /// The writer's thread; `None` in a broken log.
    writer: Option<JoinHandle<()>>,
    /// The folder's lock; `None` in memory.
    _lock: Option<FolderLock>,
}

/// The result of checking whether a log accepts decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // engines exchange it; the names say it
pub enum Probe {
    Takes,
    /// Decisions wait for room, because the disk is slower than the callers.
    Crowded,
    /// Enqueued entries are not being written.
    Stuck,
}

/// The state of a log.
#[derive(Debug, Clone)]
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct LogState {
    pub totals: Totals,
    pub breakage: Option<Breakage>,
    /// The reason decisions are refused, if they are.
    pub refusing: Option<String>,
    /// A write failed.
    pub has_failed: bool,
    pub view_lost: bool,
    /// The difference from the journal because of which the index was rebuilt since the log was opened.
    pub view_mended: Option<String>,
    /// Descriptions of overdue files beside the entries.
    pub overdue: Vec<String>,
    /// Number of records whose evidence was found in a file although it had been erased.
    pub erased_evidence: u64,
}

impl ProofLog {
    /// The queue for new entries.
    pub fn queue(&self) -> &Queue {
        &self.parts.queue
    }

    /// If the log's last entry is a record that answers another, returns both. Call it before anything is enqueued.
    pub fn last_answer(&self) -> Result<Option<(ProofId, ProofId)>, Error> {
        for place in (0..self.parts.queue.ordered()).rev() {
            let last = self.parts.journal.look(Sequence::new(place), |frame| match frame.kind {
                // The torn tail of a crash was set aside when the log was opened, and an entry records it.
                Kind::Recovery => None,
                Kind::Decision => {
                    let record = CanonicalRecord::read(frame.body).ok();
                    Some(record.and_then(|record| Some((record.id, record.resolves?))))
                }
                _ => Some(None),
            })?;
            if let Some(last) = last {
                return Ok(last);
            }
        }
        Ok(None)
    }

    /// Fails in a process that was forked after the log was opened, without waiting for anything.
    pub fn check_process(&self) -> Result<(), Error> {
        self.parts.check_process()
    }

    /// Returns whether the log is closed.
    pub fn is_closed(&self) -> bool {
        self.parts.index.is_closed()
    }

    /// Enqueues an alert; `up_to` is the entry that caused it.
    pub fn alert(&self, now: Timestamp, alert: Alert, up_to: Option<Sequence>) -> Result<Sequence, Error> {
        let entry = |timestamp| AlertEntry { alert, up_to, timestamp };
        Ok(self.parts.queue.entry(now, Kind::Alert, None, entry)?.0)
    }

    /// Enqueues an operator's confirmation of the clock's time. Returns the log's time before it too.
    pub fn accept_clock(&self, shown: Timestamp, by: String, note: String) -> Result<(Sequence, Timestamp), Error> {
        self.parts.queue.accept_clock(shown, |from| ClockEntry { from, by, note, timestamp: shown })
    }

    /// Returns a feed of the entries from `next` on, or of those enqueued from now on.
    pub fn feed(&self, next: Option<Sequence>) -> Feed {
        Feed::new(Arc::clone(&self.parts), next.map_or_else(|| self.parts.queue.ordered(), Sequence::get))
    }

    /// Reserves the outcome of a record of the agent `entity`. Fails with the outcome that the record already has.
    pub fn reserve_outcome(
        &self,
        entity: &AgentId,
        record: &ProofId,
    ) -> Result<Result<Reservation<'_>, Outcome>, Error> {
        match self.parts.queue.reserve(record.sequence()) {
            Ok(reserved) => Ok(self
                .parts
                .index
                .outcome_of(&self.parts.journal, entity, record.sequence())?
                .map_or(Ok(reserved), Err)),
            Err(in_flight) => Ok(Err(in_flight)),
        }
    }

    /// Reserves a record's outcome. Returns `None` if the record already has the same outcome, and a conflict if it
    /// has another.
    pub fn reserve_for(
        &self,
        entity: &AgentId,
        record: &ProofId,
        outcome: Outcome,
    ) -> Result<Option<Reservation<'_>>, Error> {
        match self.reserve_outcome(entity, record)? {
            Ok(reserved) => Ok(Some(reserved)),
            Err(standing) if standing == outcome => Ok(None),
            Err(standing) => {
                let message = format!("{record} has the outcome {standing} already; the first one stands");
                Err(Error::Conflict { message })
            }
        }
    }

    /// Enqueues a report that a record's outcome is not known. Returns a conflict if the record has an outcome.
    pub fn report_unknown(
        &self,
        now: Timestamp,
        entity: &AgentId,
        record: &ProofId,
        note: Option<&str>,
    ) -> Result<Sequence, Error> {
        let reserved = self.reserve_outcome(entity, record)?.map_err(|standing| Error::Conflict {
            message: format!(
                "{record} has the outcome {standing} already; UNKNOWN is accepted only while there is none"
            ),
        })?;
        reserved.report_unknown(now, |timestamp| UnknownOutcomeEntry {
            proof_id: *record,
            entity_id: entity.clone(),
            note: note.map(Cow::Borrowed),
            timestamp,
        })
    }

    /// Waits until a decision of this risk, or its outcome, is as durable as configured.
    pub fn settle_decision(&self, sequence: Sequence, risk: RiskLevel) -> Result<(), Error> {
        if self.parts.queue.durability.awaits(risk) { self.settle_in_any_case(sequence) } else { Ok(()) }
    }

    /// Waits until a change of state is as durable as configured.
    pub fn settle(&self, sequence: Sequence) -> Result<(), Error> {
        if self.parts.queue.durability.awaits_changes() { self.settle_in_any_case(sequence) } else { Ok(()) }
    }

    /// Returns whether a decision can be enqueued without waiting: for the verification, the disk, or room in the queue.
    pub fn takes_at_once(&self) -> bool {
        self.is_verified()
            && !self.parts.queue.durability.awaits(RiskLevel::Critical)
            && self.parts.queue.has_ample_room()
    }

    /// Returns a ticket for an entry that must be on disk, whatever the configured durability.
    pub fn ticket_in_any_case(&self, sequence: Sequence) -> Ticket {
        Ticket::new(Arc::clone(&self.parts), sequence, true)
    }

    /// Returns whether everything read when the log was opened is verified.
    pub fn is_verified(&self) -> bool {
        matches!(self.verification_state(), VerificationState::Verified)
    }

    /// Like [`ProofLog::settle_decision`], but returns a ticket instead of waiting.
    pub fn ticket(&self, sequence: Sequence, risk: RiskLevel) -> Ticket {
        Ticket::new(Arc::clone(&self.parts), sequence, self.parts.queue.durability.awaits(risk))
    }

    /// Waits until an entry is on disk, whatever the configured durability.
    pub fn settle_in_any_case(&self, sequence: Sequence) -> Result<(), Error> {
        let parts = &*self.parts;
        if let Some(turn) = parts.queue.request(sequence, Requester::Thread) {
            commit::write_in_turn(parts, &turn);
        }
        if parts.journal.progress.wait_durable(sequence) {
            Ok(())
        } else {
            Err(self.parts.queue.refused("the writer stopped"))
        }
    }

    /// Waits for the background verification started by the open, if any. Unverified data must not be written to the
    /// journal as if the journal had stated it.
    pub fn wait_verified(&self) -> Result<(), Error> {
        self.check_process()?;
        self.behind.wait();
        match self.verification_state() {
            VerificationState::Verified => Ok(()),
            VerificationState::Broken(broken) => Err(Error::ChainBroken { message: broken.to_string() }),
            _ => Err(self.parts.queue.refused("the log could not be verified behind its opening")),
        }
    }

    /// Stops the background verification; callers that wait for it get an error.
    pub fn stop_verifying(&self) {
        self.behind.stop();
    }

    /// The state of the verification.
    pub fn verification_state(&self) -> VerificationState {
        match self.parts.journal.breakage.get().cloned() {
            Some(broken) => VerificationState::Broken(broken),
            None => self.behind.state(),
        }
    }

    /// The reason new entries are refused; `None` if they are accepted.
    pub fn refusal(&self) -> Option<Error> {
        self.parts.queue.refusal().map(|refusal| refusal.error())
    }

    /// The state of the log.
    pub fn state(&self) -> LogState {
        let totals = *self.parts.index.read().totals();
        let refusal = self.parts.queue.refusal();
        LogState {
            totals,
            breakage: self.parts.journal.breakage.get().cloned(),
            has_failed: matches!(refusal, Some(Refusal::Failed(_))),
            refusing: refusal.map(|refusal| refusal.error().to_string()),
            view_lost: self.parts.index.is_view_lost(),
            view_mended: self.parts.index.mended().cloned(),
            overdue: self.parts.journal.overdue.degrading(),
            erased_evidence: self.parts.maintenance.erased_evidence(),
        }
    }

    /// Returns whether the persisted index can be read. If not, it is rebuilt first.
    pub fn view_answers(&self) -> bool {
        self.parts.index.ask(&self.parts.journal, Index::probe).is_ok()
    }

    /// The state of the journal.
    pub fn journal(&self) -> JournalStatus {
        let (segments, unsealed) = self.parts.journal.reader.segments();
        let syncs = self.parts.journal.syncs.load(Ordering::Relaxed);
        JournalStatus::new(self.parts.journal.progress.durable_entries(), syncs, segments, unsealed)
    }

    /// Waits until everything enqueued before this call is in the index.
    pub fn catch_up(&self) -> Result<(), Error> {
        self.parts.catch_up()
    }

    /// Like [`ProofLog::catch_up`], for at most `patience`; then checks whether decisions are accepted.
    pub fn probe(&self, patience: Duration) -> Result<Probe, Error> {
        self.parts.index.check_open()?;
        let ordered = self.parts.queue.ordered();
        let taken_in = self.parts.queue.probe().map_err(|refusal| refusal.error());
        if !self.parts.journal.progress.has_applied(ordered) {
            self.parts.queue.hurry();
            let is_applied = self.parts.journal.progress.wait_applied(ordered, Instant::now().checked_add(patience));
            if !is_applied && !self.parts.journal.progress.is_over() {
                return Ok(Probe::Stuck);
            }
        }
        self.parts.index.complete(&self.parts.journal)?;
        taken_in.map(|has_room| if has_room { Probe::Takes } else { Probe::Crowded })
    }

    /// Waits until everything enqueued before this call is on disk.
    pub fn flush(&self) -> Result<(), Error> {
        let ordered = self.parts.queue.ordered();
        self.parts.catch_up()?;
        if self.parts.journal.progress.has_applied(ordered) {
            Ok(())
        } else {
            Err(self.parts.queue.refused("the writer stopped"))
        }
    }

    /// Writes everything to disk and releases the folder. A second call returns at once without effect.
    pub fn close(&self) -> Result<(), Error> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(open) = open else { return Ok(()) };
        self.behind.stop();
        // The folder must not be released while a thread deletes files in it; the threads stopped above may do so.
        let _erasing = self.parts.maintenance.erasing();
        self.parts.queue.refuse(Refusal::Closed);
        let joined = open.writer.map_or(Ok(()), JoinHandle::join);
        // The index's folder is free once sled is dropped; then the store's folder is.
        self.parts.index.close();
        match self.parts.queue.refusal() {
            _ if joined.is_err() => Err(Error::internal("the writer panicked")),
            Some(refusal @ Refusal::Failed(_)) => Err(refusal.error()),
            _ => Ok(()),
        }
    }

    /// Writes a small file beside the journal, while the log is open.
    fn keep_beside(&self, name: &str, write: impl FnOnce(&JournalPart) -> std::io::Result<()>) -> Result<(), Error> {
        // Held so that the folder is not released meanwhile.
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.is_none() || self.parts.queue.has_failed() {
            return Err(self.parts.queue.refused("the log is closed"));
        }
        write(&self.parts.journal).map_err(|error| Error::storage(format!("cannot write {name}")).caused_by(error))
    }

    #[cfg(test)]
    pub(crate) fn is_index_heavy(&self) -> bool {
        self.parts.index.read().is_heavy()
    }

    #[cfg(test)]
    pub(crate) fn parts(&self) -> &Arc<Parts> {
        &self.parts
    }

    /// Blocks the writer until the returned value is dropped.
    #[cfg(any(test, feature = "testing"))]
    pub fn hold_up(&self) -> impl Sized + '_ {
        self.parts.index.write()
    }

    /// The hash of the last record.
    #[cfg(test)]
    pub(crate) fn shared_head(&self) -> Digest {
        self.parts.index.read().totals().head_hash
    }
}

impl Drop for ProofLog {
    fn drop(&mut self) {
        if self.check_process().is_err() {
            // The threads to wait for and the locks to release are those of another process. What is never dropped writes
            // nothing.
            std::mem::forget(Arc::clone(&self.parts));
            std::mem::forget(self.open.try_lock().map(|mut open| open.take()));
            self.behind.abandon();
            return;
        }
        // Errors are reported by `close`; a drop ignores them.
        let _ = self.close();
    }
}
