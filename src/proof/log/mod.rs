//! The door to the log: putting entries in order, waiting for them, how it stands, and closing it.

mod answer;
mod erase;
mod export;
mod import;
mod open;
mod pages;
mod retention;
#[cfg(feature = "webhooks")]
mod secrets;
#[cfg(feature = "checkpoints")]
mod tree;
mod verify;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::draft::{ChangeDraft, DecisionDraft, StateDraft};
use super::durability::Durability;
use super::feed::Feed;
use super::index::{Index, Totals};
use super::intake::{Refusal, Requester, Reservation};
use super::record::CanonicalRecord;
use super::shared::Shared;
use super::ticket::Ticket;
use super::verify::{Behind, Scrub};
use super::writer;
#[cfg(test)]
use crate::model::Digest;
use crate::model::{
    AgentId, Alert, Breakage, Error, JournalStatus, Outcome, ProofId, RiskLevel, Sequence, Timestamp, VerificationState,
};
use crate::store::{FolderLock, Frame, Kind};

pub(crate) use answer::DecisionFacts;
pub(crate) use import::import;
pub(crate) use open::{LogOptions, OpenLogError, Place, Startup};
pub(crate) use retention::verify_archive;

/// The log of one store.
pub(crate) struct ProofLog {
    shared: Arc<Shared>,
    durability: Durability,
    // Taken by whoever closes first.
    open: Mutex<Option<Open>>,
    behind: Behind,
    // Set by whoever starts the scrub.
    scrub: Mutex<Option<Scrub>>,
}

/// What an open log holds.
struct Open {
    /// A broken log has no writer.
    writer: Option<JoinHandle<()>>,
    /// A log in memory has no folder.
    _lock: Option<FolderLock>,
}

/// A decision that is in order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Committed {
    pub(crate) proof_id: ProofId,
    pub(crate) sequence: Sequence,
    pub(crate) at: Timestamp,
    pub(crate) risk: RiskLevel,
}

/// What a log does with decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Probe {
    Takes,
    /// They wait for room: the disk is slower than the callers.
    Crowded,
    /// What was put in order is not written.
    Stuck,
}

/// How a log stands.
#[derive(Debug, Clone)]
pub(crate) struct LogState {
    pub(crate) totals: Totals,
    pub(crate) breakage: Option<Breakage>,
    /// Decisions are refused, and why.
    pub(crate) refusing: Option<String>,
    pub(crate) view_lost: bool,
}

impl ProofLog {
    /// Puts a decision in order that was made knowing of all stops up to `epoch`; [`ProofLog::settle_decision`] waits
    /// for it. None where a stop came meanwhile.
    pub(crate) fn decide(&self, now: Timestamp, draft: DecisionDraft, epoch: u64) -> Result<Option<Committed>, Error> {
        let risk = draft.risk;
        Ok(self.shared.intake.decision(now, draft, epoch)?.committed(risk))
    }

    /// Like [`ProofLog::decide`] for a decision that asks for a person, with the state that says so before it.
    pub(crate) fn ask(
        &self,
        now: Timestamp,
        draft: DecisionDraft,
        epoch: u64,
        asked: impl FnOnce(ProofId) -> ChangeDraft,
    ) -> Result<Option<Committed>, Error> {
        let risk = draft.risk;
        Ok(self.shared.intake.question(now, draft, epoch, asked)?.committed(risk))
    }

    /// Puts a change of state in order.
    pub(crate) fn set_state(&self, now: Timestamp, state: StateDraft, cause: String) -> Result<Sequence, Error> {
        self.change(now, ChangeDraft { state, cause, trust: None })
    }

    /// Puts a change of state in order that may move somebody's trust.
    pub(crate) fn change(&self, now: Timestamp, change: ChangeDraft) -> Result<Sequence, Error> {
        self.shared.intake.state(now, change)
    }

    /// Like [`ProofLog::change`], for one that lets somebody act; none where a stop came that it does not know of.
    pub(crate) fn change_unless_stopped(
        &self,
        now: Timestamp,
        change: ChangeDraft,
        epoch: u64,
    ) -> Result<Option<Sequence>, Error> {
        self.shared.intake.state_unless_stopped(now, change, epoch)
    }

    /// The record that the log ends with, and the one that it answers, where the last entry is such a record; to be asked
    /// before anything is put in order.
    pub(crate) fn last_answer(&self) -> Result<Option<(ProofId, ProofId)>, Error> {
        for place in (0..self.shared.intake.ordered()).rev() {
            let bytes = self.shared.reader.read(Sequence::new(place)).map_err(|error| answer::read_error(&error))?;
            let Some(frame) = bytes.as_deref().and_then(|bytes| Frame::decode(bytes).ok()) else { break };
            match frame.kind {
                // What a crash tore was set aside, and that noted, when the log was opened.
                Kind::Recovery => {}
                Kind::Decision => {
                    let record = CanonicalRecord::read(frame.body).ok();
                    return Ok(record.and_then(|record| Some((record.id, record.resolves?))));
                }
                _ => break,
            }
        }
        Ok(None)
    }

    /// Whether it was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.shared.closed.load(Ordering::Acquire)
    }

    /// Puts a change of who must not act in order, and has every decision looked at again that does not know of it,
    /// unless it is a denial: that too where the change is refused.
    pub(crate) fn stop(&self, now: Timestamp, epoch: u64, change: ChangeDraft) -> Result<Sequence, Error> {
        self.shared.intake.stop(now, epoch, change)
    }

    /// Puts an alert in order; `up_to` is the entry that made whoever follows the log raise it.
    pub(crate) fn alert(&self, now: Timestamp, alert: Alert, up_to: Option<Sequence>) -> Result<Sequence, Error> {
        self.shared.intake.alert(now, alert, up_to)
    }

    /// Puts a change of state in order that nobody waits for.
    pub(crate) fn note(&self, now: Timestamp, state: StateDraft, cause: &str) -> Result<Sequence, Error> {
        self.shared.intake.note(now, ChangeDraft { state, cause: cause.to_owned(), trust: None })
    }

    /// The entries from `next` on, or those that are put in order from now on.
    pub(crate) fn feed(&self, next: Option<Sequence>) -> Feed {
        Feed::new(Arc::clone(&self.shared), next.map_or_else(|| self.shared.intake.ordered(), Sequence::get))
    }

    /// Reserves the outcome of a record, whose agent is `entity`; fails with the one that it has.
    pub(crate) fn reserve_outcome(
        &self,
        entity: &AgentId,
        record: &ProofId,
    ) -> Result<Result<Reservation<'_>, Outcome>, Error> {
        match self.shared.intake.reserve(record.sequence()) {
            Ok(reserved) => Ok(self.outcome_of(entity, record.sequence())?.map_or(Ok(reserved), Err)),
            Err(in_flight) => Ok(Err(in_flight)),
        }
    }

    /// Reserves a record's outcome for this one; `None` where it has the same already, a conflict where it has another.
    pub(crate) fn reserve_for(
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

    /// Waits until a decision of that risk, or its outcome, is as durable as the log promises.
    pub(crate) fn settle_decision(&self, sequence: Sequence, risk: RiskLevel) -> Result<(), Error> {
        if self.durability.awaits(risk) { self.wait_durable(sequence) } else { Ok(()) }
    }

    /// Waits until a change of state is as durable as the log promises.
    pub(crate) fn settle(&self, sequence: Sequence) -> Result<(), Error> {
        if self.durability.awaits_changes() { self.wait_durable(sequence) } else { Ok(()) }
    }

    /// Whether a decision is put in order without a wait: for the disk, or for room in a queue that the disk does not empty.
    #[cfg(feature = "http")]
    pub(crate) fn takes_at_once(&self) -> bool {
        !self.durability.awaits(RiskLevel::Critical) && self.shared.intake.has_ample_room()
    }

    /// Waits until an entry is on disk, whatever the log promises.
    pub(crate) fn settle_in_any_case(&self, sequence: Sequence) -> Result<(), Error> {
        self.wait_durable(sequence)
    }

    /// A ticket for an entry that is waited for whatever the log promises.
    pub(crate) fn ticket_in_any_case(&self, sequence: Sequence) -> Ticket {
        Ticket::new(Arc::clone(&self.shared), sequence, true)
    }

    /// Whether all that was read when it was opened is verified.
    pub(crate) fn is_verified(&self) -> bool {
        matches!(self.verification_state(), VerificationState::Verified)
    }

    /// Like [`ProofLog::settle_decision`], without waiting.
    pub(crate) fn ticket(&self, sequence: Sequence, risk: RiskLevel) -> Ticket {
        Ticket::new(Arc::clone(&self.shared), sequence, self.durability.awaits(risk))
    }

    fn wait_durable(&self, sequence: Sequence) -> Result<(), Error> {
        let shared = &*self.shared;
        if let Some(turn) = shared.intake.request(sequence, Requester::Thread) {
            writer::write_in_turn(shared, &turn);
        }
        if shared.progress.wait_durable(sequence) { Ok(()) } else { Err(self.refused("the writer stopped")) }
    }

    /// Waits for the verification behind the opening, if there is one: what was believed meanwhile must not be written
    /// down as if the journal said so.
    pub(crate) fn wait_verified(&self) -> Result<(), Error> {
        self.behind.wait();
        match self.verification_state() {
            VerificationState::Verified => Ok(()),
            VerificationState::Broken(broken) => Err(Error::ChainBroken { message: broken.to_string() }),
            _ => Err(self.refused("the log could not be verified behind its opening")),
        }
    }

    /// How far it is verified.
    pub(crate) fn verification_state(&self) -> VerificationState {
        match self.shared.first_breakage() {
            Some(broken) => VerificationState::Broken(broken),
            None => self.behind.state(),
        }
    }

    /// Why nothing new is taken in, if so.
    pub(crate) fn refusal(&self) -> Option<Error> {
        self.shared.intake.refusal().map(|refusal| refusal.error())
    }

    /// How the log stands.
    pub(crate) fn state(&self) -> LogState {
        let totals = *self.shared.index().totals();
        LogState {
            totals,
            breakage: self.shared.first_breakage(),
            refusing: self.shared.intake.refusal().map(|refusal| refusal.error().to_string()),
            view_lost: self.shared.view_lost.load(Ordering::Relaxed),
        }
    }

    /// Whether the view answers; one that does not is made anew first.
    pub(crate) fn view_answers(&self) -> bool {
        self.with_index(Index::probe).is_ok()
    }

    /// How the journal stands.
    pub(crate) fn journal(&self) -> JournalStatus {
        let (segments, unsealed) = self.shared.reader.segments();
        let syncs = self.shared.syncs.load(Ordering::Relaxed);
        JournalStatus::new(self.shared.progress.durable_entries(), syncs, segments, unsealed)
    }

    /// Waits until all that was put in order before is in the index.
    pub(crate) fn catch_up(&self) -> Result<(), Error> {
        self.check_open()?;
        let ordered = self.shared.intake.ordered();
        if !self.shared.progress.has_applied(ordered) {
            self.shared.intake.hurry();
            // When the writer has failed, what it had written is still answered.
            self.shared.progress.wait_applied(ordered);
        }
        self.shared.complete_index()
    }

    /// Like [`ProofLog::catch_up`], for so long at the most; then tries whether decisions are taken in.
    pub(crate) fn probe(&self, patience: Duration) -> Result<Probe, Error> {
        self.check_open()?;
        let ordered = self.shared.intake.ordered();
        let taken_in = self.shared.intake.probe().map_err(|refusal| refusal.error());
        if !self.shared.progress.has_applied(ordered) {
            self.shared.intake.hurry();
            let is_applied = self.shared.progress.wait_applied_for(ordered, patience);
            if !is_applied && !self.shared.progress.is_over() {
                return Ok(Probe::Stuck);
            }
        }
        self.shared.complete_index()?;
        taken_in.map(|has_room| if has_room { Probe::Takes } else { Probe::Crowded })
    }

    /// Waits until all that was put in order before is on disk.
    pub(crate) fn flush(&self) -> Result<(), Error> {
        let ordered = self.shared.intake.ordered();
        self.catch_up()?;
        if self.shared.progress.has_applied(ordered) { Ok(()) } else { Err(self.refused("the writer stopped")) }
    }

    /// Writes everything down and lets the folder go. Whoever comes second waits
    /// for nothing and changes nothing.
    pub(crate) fn close(&self) -> Result<(), Error> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(open) = open else { return Ok(()) };
        // The folder is not let go under whoever takes files away in it.
        let _erasing = self.shared.erasing.lock().unwrap_or_else(PoisonError::into_inner);
        self.behind.stop();
        if let Some(scrub) = &*self.scrub.lock().unwrap_or_else(PoisonError::into_inner) {
            scrub.stop();
        }
        self.shared.intake.refuse(Refusal::Closed);
        let joined = open.writer.map_or(Ok(()), JoinHandle::join);
        self.shared.closed.store(true, Ordering::Release);
        // The view's folder is free again once sled is dropped; then the store's is.
        *self.shared.index.write().unwrap_or_else(PoisonError::into_inner) = Index::new(None);
        match self.shared.intake.refusal() {
            _ if joined.is_err() => Err(Error::Internal { message: "the writer panicked".to_owned() }),
            Some(refusal @ Refusal::Failed(_)) => Err(refusal.error()),
            _ => Ok(()),
        }
    }

    #[cfg(test)]
    pub(in crate::proof) fn is_index_heavy(&self) -> bool {
        self.shared.index().is_heavy()
    }

    #[cfg(test)]
    pub(in crate::proof) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Keeps the writer from going on until what comes back is dropped.
    #[cfg(test)]
    pub(crate) fn hold_up(&self) -> impl Sized + '_ {
        self.shared.index.write().unwrap()
    }

    /// The hash of the last record.
    #[cfg(test)]
    pub(in crate::proof) fn shared_head(&self) -> Digest {
        self.shared.index().totals().head_hash
    }

    fn check_open(&self) -> Result<(), Error> {
        if self.shared.closed.load(Ordering::Acquire) { Err(Refusal::Closed.error()) } else { Ok(()) }
    }

    fn refused(&self, otherwise: &str) -> Error {
        self.shared.refused(otherwise)
    }
}

impl Drop for ProofLog {
    fn drop(&mut self) {
        // Who wants to know closes; a drop can only do its best.
        let _ = self.close();
    }
}
