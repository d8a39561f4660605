//! What callers and the writer share, and the index's life: loading it from the
//! view, persisting it there, and making it anew from the journal.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use super::apply::Reading;
use super::entry::FreezeEntry;
use super::erase::Erasures;
use super::index::{Index, Mark};
use super::intake::{Intake, Refusal};
use super::progress::Progress;
use super::recent::Recent;
use super::retention::{self, Retained};
use super::writer::Writer;
use crate::model::{Breakage, ChainPosition, Error, ProofId};
use crate::store::{self, Blocks, Files, Journal, Position, Reader, Start, StoreId, ViewError};

/// What callers and the writer share.
pub(super) struct Shared {
    pub(super) intake: Intake,
    pub(super) progress: Progress,
    // Whoever has the intake's turn holds it while it writes, across I/O; taken before the index's lock.
    // None in a broken log, and once the writer has ended.
    pub(super) writer: Mutex<Option<Writer>>,
    // Written by the writer, read by queries; taken after the intake's lock is given back.
    pub(super) index: RwLock<Index>,
    /// What outcomes need of the last decisions.
    pub(super) recent: Recent,
    pub(super) reader: Reader,
    pub(super) store: StoreId,
    pub(super) files: Arc<dyn Files>,
    /// The view's folder; `None` in memory.
    pub(super) view: Option<PathBuf>,
    pub(super) cache_bytes: u64,
    /// The view cannot be persisted; the index lives in memory alone.
    pub(super) view_lost: AtomicBool,
    /// The index lacks what could not be read from the journal when it was made anew.
    pub(super) index_incomplete: AtomicBool,
    pub(super) closed: AtomicBool,
    /// How often the writer made what it wrote last.
    pub(super) syncs: AtomicU64,
    // What the log says of its own past; read where a record is not found, held to look or to add.
    pub(super) past: RwLock<Retained>,
    // Where the last verification ended that found nothing broken; held to copy it.
    pub(super) verified: Mutex<Option<ChainPosition>>,
    /// What was erased.
    pub(super) erasures: Arc<Erasures>,
    // Held by whoever archives, so that one does at a time; and while the index is compared with the journal, which
    // must begin in one place meanwhile. Taken before `erasing`.
    pub(super) archiving: Mutex<()>,
    // Held over a whole erasure: an entry is written once all before it are carried out. And over an archive, so that
    // what is copied stays as it is.
    pub(super) erasing: Mutex<()>,
    // The first break that any check found; held to clone it.
    pub(super) breakage: Mutex<Option<Breakage>>,
    /// Its place, for those who read on; the largest number while there is none.
    pub(super) broken_at: AtomicU64,
}

impl Shared {
    pub(super) fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Persists the index; when the view fails, it is rebuilt. Only the writer
    /// calls this, and it changes nothing meanwhile: so queries go on while sled
    /// writes.
    pub(super) fn persist(&self) {
        let changes = {
            let index = self.index();
            // The tree is never behind what is applied; it is read before the index is let go, so nothing is behind both.
            let nodes = self.reader.nodes(index.first_node(), index.totals().applied.entries);
            index.changes(self.store, &nodes)
        };
        let Some(changes) = changes else { return };
        let written = changes.write();
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        match written {
            Ok(written) => index.forget_changes(written),
            Err(_) => self.rebuild(&mut index),
        }
    }

    /// Makes the index anew from the journal, with a fresh view if that can be
    /// had, otherwise in memory.
    pub(super) fn rebuild(&self, index: &mut Index) {
        // sled must let its folder go first.
        *index = Index::new(None);
        let aside = self.view.as_deref().map_or(Ok(()), store::set_view_aside);
        let blocks = match aside {
            Ok(()) => Blocks::open(self.view.as_deref(), self.cache_bytes).ok(),
            Err(_) => None,
        };
        self.view_lost.store(blocks.is_none(), Ordering::Relaxed);
        *index = Index::new(blocks);
        if self.read_into(index).and_then(|()| index.persist(self.store)).is_err() {
            self.view_lost.store(true, Ordering::Relaxed);
            self.index_in_memory(index);
        } else {
            self.index_incomplete.store(false, Ordering::Relaxed);
        }
    }

    /// Makes the index anew from the journal, in memory alone.
    pub(super) fn index_in_memory(&self, index: &mut Index) {
        *index = Index::new(None);
        // Without a view there is nothing that could fail but reading.
        self.index_incomplete.store(self.read_into(index).is_err(), Ordering::Relaxed);
    }

    /// Makes an index that lacks something anew, if the journal can be read now.
    pub(super) fn complete_index(&self) -> Result<(), Error> {
        if !self.index_incomplete.load(Ordering::Relaxed) {
            return Ok(());
        }
        let is_broken = self.first_breakage().is_some();
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        if is_broken {
            self.index_in_memory(&mut index);
        } else {
            self.rebuild(&mut index);
        }
        if self.index_incomplete.load(Ordering::Relaxed) { Err(Error::storage(UNREADABLE)) } else { Ok(()) }
    }

    fn read_into(&self, index: &mut Index) -> Result<(), ViewError> {
        let mut reading = Reading::into_index(index).persisting(self.store).knowing(Arc::clone(&self.erasures));
        let Start { entries, link, .. } = self.reader.start();
        let until = Position { entries, link };
        let read = self.reader.verify(&mut reading, until);
        match (reading.view_error, read) {
            (Some(error), _) => Err(error),
            (None, Err(_)) => Err(ViewError::Disagrees(UNREADABLE)),
            (None, Ok(_)) => Ok(()),
        }
    }

    /// Keeps the first break that any check found, and takes nothing new in from
    /// then on. Returns the one that is kept.
    pub(super) fn note_breakage(&self, found: Option<Breakage>) -> Option<Breakage> {
        let mut first = self.breakage.lock().unwrap_or_else(PoisonError::into_inner);
        if let (None, Some(found)) = (&*first, found) {
            self.broken_at.store(found.sequence.get(), Ordering::Release);
            self.intake.refuse(Refusal::Broken(found.to_string()));
            *first = Some(found);
            drop(first);
            // Where it cannot be noted, whoever opens the log behind finds it once more.
            let _ = self.index().note_broken(true);
            return self.first_breakage();
        }
        first.clone()
    }

    /// Takes nothing in, for the log is frozen; `HEAD` says so from then on, if a crash came before it did.
    pub(super) fn keep_frozen(&self, journal: &mut Journal, freeze: &FreezeEntry, is_noted: bool) -> io::Result<()> {
        self.intake.refuse(Refusal::Frozen(retention::frozen(&freeze.cause, freeze.timestamp)));
        if is_noted {
            return Ok(());
        }
        journal.freeze();
        journal.close()
    }

    /// Why an entry that was waited for did not come to be on disk.
    pub(super) fn refused(&self, otherwise: &str) -> Error {
        self.intake.refusal().map_or_else(|| Error::storage(otherwise), |refusal| refusal.error())
    }

    /// The error for a record that is not in the log.
    pub(super) fn not_found(&self, proof_id: &ProofId) -> Error {
        let start = self.reader.start();
        self.past.read().unwrap_or_else(PoisonError::into_inner).not_found(proof_id, &start)
    }

    /// Takes nothing new in from now on, for what is written cannot be checked.
    pub(super) fn distrust(&self, why: &str) {
        self.intake.refuse(Refusal::Broken(why.to_owned()));
    }

    pub(super) fn first_breakage(&self) -> Option<Breakage> {
        self.breakage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

const UNREADABLE: &str = "the journal cannot be read";

/// The index as the view has it; an empty one where the view cannot be used.
pub(super) fn load_view(folder: Option<&Path>, cache_bytes: u64) -> (Index, Option<Mark>, Option<ViewError>) {
    match Blocks::open(folder, cache_bytes).and_then(Index::load) {
        Ok((index, mark)) => (index, mark, None),
        Err(error) => (Index::new(None), None, Some(error)),
    }
}
