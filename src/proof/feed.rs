//! The journal's entries one after another, from any place on and as they come:
//! what those read who want to hear of everything.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use super::shared::Shared;
use crate::model::{Error, Sequence};
use crate::store::Frame;

/// A place in the journal that moves on. It holds nothing up: it reads what is
/// on disk, and waits for what is not.
pub(crate) struct Feed {
    shared: Arc<Shared>,
    next: u64,
    /// Bytes of the journal, from the entry at `next` on.
    run: Vec<u8>,
    at: usize,
}

/// What a feed came to.
pub(crate) enum Fed<T> {
    /// An entry, and what was made of it.
    Entry(T),
    /// Nothing came in time.
    Nothing,
    /// The log is closed and all of it was read.
    Ended,
}

impl Feed {
    /// A feed whose first entry is the one at `next`.
    pub(super) fn new(shared: Arc<Shared>, next: u64) -> Self {
        Self { shared, next, run: Vec::new(), at: 0 }
    }

    /// The place of the entry that comes next.
    pub(crate) fn place(&self) -> u64 {
        self.next
    }

    /// How many entries are there to be read.
    pub(crate) fn behind(&self) -> u64 {
        self.shared.progress.durable_entries().saturating_sub(self.next)
    }

    /// Passes over entries, so that at most `most` are left to be read.
    /// Returns how many it passed over.
    pub(crate) fn skip_to_last(&mut self, most: u64) -> u64 {
        let skipped = self.behind().saturating_sub(most);
        if skipped > 0 {
            self.next += skipped;
            self.run.clear();
            self.at = 0;
        }
        skipped
    }

    /// Hands the next entry to `look`, waiting for it until `deadline`; for as
    /// long as it takes without one.
    pub(crate) fn next<T>(
        &mut self,
        deadline: Option<Instant>,
        look: impl FnOnce(&Frame<'_>) -> T,
    ) -> Result<Fed<T>, Error> {
        if !self.shared.progress.wait_durable_until(self.next + 1, deadline) {
            return Ok(if self.shared.progress.is_over() { Fed::Ended } else { Fed::Nothing });
        }
        let sequence = Sequence::new(self.next);
        if self.in_run(sequence).is_none() {
            let read = self.shared.reader.read_run(sequence, RUN_BYTES);
            self.run =
                read.map_err(|error| Error::storage(format!("cannot read the journal: {error}")))?.unwrap_or_default();
            self.at = 0;
        }
        let Some(frame) = self.in_run(sequence) else {
            if self.next < self.shared.reader.start().entries {
                let past = self.shared.past.read().unwrap_or_else(PoisonError::into_inner);
                return Err(Error::Conflict { message: past.archive_of(self.next) });
            }
            return Err(Error::ChainBroken { message: format!("entry {sequence} cannot be read; verify the log") });
        };
        let (size, looked) = (frame.size(), look(&frame));
        self.at += size;
        self.next += 1;
        Ok(Fed::Entry(looked))
    }

    fn in_run(&self, sequence: Sequence) -> Option<Frame<'_>> {
        let rest = self.run.get(self.at..).filter(|rest| !rest.is_empty())?;
        Frame::decode(rest).ok().filter(|frame| frame.sequence == sequence)
    }
}

/// What is read at once: some hundred entries.
const RUN_BYTES: u32 = 128 << 10;
