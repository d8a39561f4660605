//! The feed: the journal's entries one after another, from any position on and as they are written.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::events;
use crate::journal::entry::time_of;
use crate::maintenance::verify::{Verifying, verify};
use crate::parts::Parts;
use crate::store::{Frame, Manner, claimed_size};
use rulekeep_types::{Breakage, Error, Event, RiskLevel, Sequence, Timestamp};

/// A position in the journal that advances. It blocks no writer: it reads what is on disk, and waits for the rest.
pub struct Feed {
    parts: Arc<Parts>,
    next: u64,
    /// Bytes of the journal, from the entry at `next` on.
    run: Vec<u8>,
    at: usize,
}

/// The result of reading from a feed.
pub enum Fed<T> {
    /// The value computed from an entry.
    Entry(T),
    /// No entry came before the deadline.
    Nothing,
    /// The log is closed and all of it was read.
    Ended,
}

impl Feed {
    /// Creates a feed whose first entry is the one at `next`.
    pub(crate) fn new(parts: Arc<Parts>, next: u64) -> Self {
        Self { parts, next, run: Vec::new(), at: 0 }
    }

    /// The sequence of the next entry.
    pub fn place(&self) -> u64 {
        self.next
    }

    /// Number of entries that can be read now.
    pub fn behind(&self) -> u64 {
        self.parts.journal.progress.durable_entries().saturating_sub(self.next)
    }

    /// Skips entries so that at most `most` are left to be read. Returns the number of skipped entries.
    pub fn skip_to_last(&mut self, most: u64) -> u64 {
        let skipped = self.behind().saturating_sub(most);
        if skipped > 0 {
            self.next += skipped;
            self.run.clear();
            self.at = 0;
        }
        skipped
    }

    /// Passes the next entry to `look`, waiting for it until `deadline`, or without limit if there is none.
    pub fn next<T>(&mut self, deadline: Option<Instant>, look: impl FnOnce(&Frame<'_>) -> T) -> Result<Fed<T>, Error> {
        self.parts.check_process()?;
        let is_there = self.parts.journal.progress.wait_durable_until(self.next + 1, deadline);
        if self.parts.journal.is_broken_at(self.next) {
            return Err(self.broken());
        }
        if !is_there {
            return Ok(if self.parts.journal.progress.is_over() { Fed::Ended } else { Fed::Nothing });
        }
        let sequence = Sequence::new(self.next);
        let rest = self.run.get(self.at..).unwrap_or_default();
        if claimed_size(rest).is_none_or(|size| size > rest.len()) {
            let read = self.parts.journal.reader.read_run(sequence, RUN_BYTES);
            self.run =
                read.map_err(|error| Error::storage("cannot read the journal").caused_by(error))?.unwrap_or_default();
            self.at = 0;
        }
        let Some(frame) = self.in_run(sequence) else {
            if self.next < self.parts.journal.reader.start().entries {
                let past = self.parts.journal.past();
                return Err(Error::Conflict { message: past.archive_of(self.next) });
            }
            return Err(self.broken());
        };
        let (size, looked) = (frame.size(), look(&frame));
        self.at += size;
        self.next += 1;
        Ok(Fed::Entry(looked))
    }

    /// Returns the break of the log. Verifies all of it if no break is known yet.
    pub fn breakage(&self) -> Option<Breakage> {
        let manner = Manner { threads: 1, ..Manner::default() };
        let all = Verifying { since: None, held: None, manner };
        // A break that is found is recorded; if the journal cannot be read at all, nothing is known.
        self.parts
            .journal
            .breakage
            .get()
            .cloned()
            .or_else(|| verify(&self.parts, &all).ok().and(self.parts.journal.breakage.get().cloned()))
    }

    /// Returns the alert on a broken log; `rule` is the rule that asks for it.
    pub fn chain_alert(&self, breakage: &Breakage, rule: Option<(Arc<str>, RiskLevel)>) -> Event {
        let before = breakage.sequence.get().checked_sub(1).and_then(|last| self.time_of(last).ok()?);
        let at = before.unwrap_or(Timestamp::from_millis(0));
        events::of_breakage(self.parts.journal.store, breakage, at, rule)
    }

    /// Goes back to the first entry that was enqueued within `time` before the next one, or as far as the log goes.
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] if the journal cannot be read; the position is then unchanged.
    pub fn go_back_by(&mut self, time: Duration) -> Result<(), Error> {
        let last = self.next.min(self.parts.journal.progress.durable_entries()).saturating_sub(1);
        let Some(at) = self.time_of(last)? else { return Ok(()) };
        let time = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let moment = Timestamp::from_millis(at.as_millis().saturating_sub(time));
        let (mut first, mut behind) = (self.parts.journal.reader.start().entries, self.next);
        // Assumes that times do not step back. A damaged entry is skipped here, and reported when it is read.
        while first < behind {
            let middle = first.midpoint(behind);
            if self.time_of(middle)?.is_some_and(|at| at < moment) {
                first = middle + 1;
            } else {
                behind = middle;
            }
        }
        self.next = first.min(self.next);
        self.run.clear();
        self.at = 0;
        Ok(())
    }

    /// Waits for `time`, or until the log is closed. Returns false if it is closed.
    pub fn pause(&self, time: Duration) -> bool {
        self.parts.journal.progress.wait_durable_until(u64::MAX, Instant::now().checked_add(time));
        !self.parts.journal.progress.is_over()
    }

    fn time_of(&self, sequence: u64) -> Result<Option<Timestamp>, Error> {
        self.parts.journal.look(Sequence::new(sequence), time_of)
    }

    fn broken(&self) -> Error {
        let message = match self.parts.journal.breakage.get().cloned() {
            Some(breakage) => breakage.to_string(),
            None => format!("entry {} cannot be read; verify the log", self.next),
        };
        Error::ChainBroken { message }
    }

    fn in_run(&self, sequence: Sequence) -> Option<Frame<'_>> {
        let rest = self.run.get(self.at..).filter(|rest| !rest.is_empty())?;
        Frame::decode(rest).ok().filter(|frame| frame.sequence == sequence)
    }
}

/// Number of bytes read at once: some hundred entries.
const RUN_BYTES: u32 = 128 << 10;
