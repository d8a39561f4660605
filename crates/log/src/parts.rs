//! The four parts of a log. Each knows those before it and none after it; code that needs several takes them from
//! here.

use super::index::IndexPart;
use super::journal::JournalPart;
use super::maintenance::Maintenance;
use super::queue::{Queue, Refusal};
use rulekeep_types::{Breakage, Error};

/// The parts of a log, shared by its callers, its writer and its followers.
pub(crate) struct Parts {
    /// The order of entries, up to the disk.
    pub(crate) queue: Queue,
    // INVARIANT: dropped before the journal, which holds the folder open through which sled's path leads.
    /// The index over the journal.
    pub(super) index: IndexPart,
    /// The journal on disk, the source of truth.
    pub(super) journal: JournalPart,
    /// Erasing, archiving and verifying.
    pub(super) maintenance: Maintenance,
    /// The process that opened the log.
    pub(super) opened_by: u32,
}

impl Parts {
    /// Records the first break that any check found, and accepts no entries from then on. Returns the recorded break.
    pub(super) fn note_breakage(&self, found: Option<Breakage>) -> Option<Breakage> {
        if let Some(found) = found {
            let message = found.to_string();
            if self.journal.breakage.set(found).is_ok() {
                self.queue.refuse(Refusal::Broken(message));
                // If it cannot be stored, the next open finds the break again.
                let _ = self.index.read().note_broken(true);
            }
        }
        self.journal.breakage.get().cloned()
    }

    /// Fails in a forked process, where no thread writes and a lock may be held for ever.
    pub(super) fn check_process(&self) -> Result<(), Error> {
        let opened_by = self.opened_by;
        if opened_by == std::process::id() { Ok(()) } else { Err(Error::OtherProcess { opened_by }) }
    }

    /// Waits until everything enqueued before this call is in the index.
    pub(super) fn catch_up(&self) -> Result<(), Error> {
        self.check_process()?;
        self.index.check_open()?;
        let enqueued = self.queue.ordered();
        if !self.journal.progress.has_applied(enqueued) {
            self.queue.hurry();
            // If the writer has failed, queries still answer from what it had written.
            self.journal.progress.wait_applied(enqueued, None);
        }
        self.index.complete(&self.journal)
    }
}
