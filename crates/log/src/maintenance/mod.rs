//! Maintenance of a log: verifying it, exporting and importing it, erasing evidence, archiving and repairing.

mod archive;
mod erase;
pub(super) mod export;
mod import;
mod repair;
pub(crate) mod verify;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rulekeep_types::ChainPosition;

pub use archive::verify_archive;
pub use import::import;
pub use repair::{FoundStates, RepairStates, repair};
#[cfg(test)]
pub(crate) use repair::{Outside, repair_files};

/// Locks for operations that rewrite stored data, and the position up to which the log is verified.
#[derive(Default)]
pub(super) struct Maintenance {
    // Held by an archiving, so that there is one at a time; and while the index is compared with the journal, whose
    // beginning must not move meanwhile. Taken before `erasing`.
    archiving: Mutex<()>,
    // Held over a whole erasure, so that an entry is written only after all earlier erasures are carried out; and
    // over an archiving, so that the copied data does not change.
    erasing: Mutex<()>,
    // The end of the last verification that found no break. Held to copy it.
    verified: Mutex<Option<ChainPosition>>,
    // Number of records whose evidence was found in a file although it had been erased, and was erased again.
    erased_evidence: AtomicU64,
    // The erasures are known from the index alone so far, so nothing is erased because of them.
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

    /// Number of records whose evidence was found although an erasure covers it, since the log was opened.
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

    /// Records the end of a verification, unless another one got further.
    pub(super) fn note_verified(&self, position: ChainPosition) {
        let mut last = self.verified();
        if last.is_none_or(|last| last.entries <= position.entries) {
            *last = Some(position);
        }
    }
}
