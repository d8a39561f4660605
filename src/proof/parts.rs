//! The four parts of a log. Each knows those before it and none behind it; whoever needs more than one takes them here.

use super::index::IndexPart;
use super::journal::JournalPart;
use super::maintenance::Maintenance;
use super::queue::{Queue, Refusal};
use crate::model::{Breakage, Error};

/// The parts of a log, shared by its callers, its writer and its followers.
pub(crate) struct Parts {
    /// The order of entries, up to the disk.
    pub(crate) queue: Queue,
    // INVARIANT: dropped before the journal, which holds the folder through which sled's path leads.
    /// What the journal adds up to.
    pub(super) index: IndexPart,
    /// What is on disk: the truth.
    pub(super) journal: JournalPart,
    /// Erasing, archiving and verifying.
    pub(super) maintenance: Maintenance,
}

impl Parts {
    /// Keeps the first break that any check found, and accepts nothing new from then on. Returns the one that is kept.
    pub(super) fn note_breakage(&self, found: Option<Breakage>) -> Option<Breakage> {
        if let Some(found) = found {
            let message = found.to_string();
            if self.journal.breakage.set(found).is_ok() {
                self.queue.refuse(Refusal::Broken(message));
                // Where it cannot be noted, whoever opens the log behind finds it once more.
                let _ = self.index.read().note_broken(true);
            }
        }
        self.journal.breakage.get().cloned()
    }

    /// Waits until all that was enqueued before is in the index.
    pub(super) fn catch_up(&self) -> Result<(), Error> {
        self.index.check_open()?;
        let enqueued = self.queue.ordered();
        if !self.journal.progress.has_applied(enqueued) {
            self.queue.hurry();
            // When the writer has failed, what it had written is still answered.
            self.journal.progress.wait_applied(enqueued, None);
        }
        self.index.complete(&self.journal)
    }
}
