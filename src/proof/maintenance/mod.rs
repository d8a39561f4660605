//! Maintenance of a log: verifying it, exporting and importing it, erasing evidence, archiving and repairing.

mod archive;
mod erase;
pub(super) mod export;
mod import;
mod repair;
pub(super) mod verify;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::model::ChainPosition;

pub(crate) use archive::verify_archive;
pub(crate) use import::import;
pub(crate) use repair::{FoundStates, RepairStates, repair};
#[cfg(test)]
pub(super) use repair::{Outside, repair_files};

/// The turns of those who rewrite what is stored, and how far it is verified.
#[derive(Default)]
pub(super) struct Maintenance {
    // Held by whoever archives, so that one does at a time; and while the index is compared with the journal, which
    // must begin in one place meanwhile. Taken before `erasing`.
    archiving: Mutex<()>,
    // Held over a whole erasure: an entry is written once all before it are carried out. And over an archive, so that
    // what is copied stays as it is.
    erasing: Mutex<()>,
    // Where the last verification ended that found nothing broken; held to copy it.
    verified: Mutex<Option<ChainPosition>>,
    // Records whose evidence was found in a file although it had been erased, and was erased again.
    erased_evidence: AtomicU64,
    // What was erased is known from the view alone as yet: nothing is taken away by it.
    believes: AtomicBool,
}

impl Maintenance {
    pub(super) fn archiving(&self) -> MutexGuard<'_, ()> {
        self.archiving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn erasing(&self) -> MutexGuard<'_, ()> {
        self.erasing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn verified(&self) -> MutexGuard<'_, Option<ChainPosition>> {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of records whose evidence was found although an erasure covers it, since the log was opened.
    pub(super) fn erased_evidence(&self) -> u64 {
        self.erased_evidence.load(Ordering::Relaxed)
    }

    pub(super) fn set_believes(&self, believes: bool) {
        self.believes.store(believes, Ordering::Release);
    }

    pub(super) fn believes(&self) -> bool {
        self.believes.load(Ordering::Acquire)
    }

    pub(super) fn note_erased_evidence(&self, records: u64) {
        self.erased_evidence.fetch_add(records, Ordering::Relaxed);
    }

    /// Notes where a verification ended, unless another one came further.
    pub(super) fn note_verified(&self, position: ChainPosition) {
        let mut last = self.verified();
        if last.is_none_or(|last| last.entries <= position.entries) {
            *last = Some(position);
        }
    }
}
