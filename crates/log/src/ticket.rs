//! Waiting for an entry without blocking a thread.

use std::sync::Arc;
use std::task::{Context, Poll};

use crate::journal::progress::Waiting;
use crate::parts::Parts;
use crate::queue::Requester;
use rulekeep_types::{Error, Sequence};

/// A handle to an enqueued entry that reports when the entry is as durable as promised. It blocks nothing and can be
/// dropped at any time.
pub struct Ticket {
    parts: Arc<Parts>,
    sequence: Sequence,
    /// The entry has to be on disk; otherwise being enqueued suffices.
    is_awaited: bool,
    /// The position of its waker, once it has one.
    place: Option<Waiting>,
}

impl Ticket {
    /// Creates a ticket for an entry. If the entry has to be on disk, this requests the write.
    pub(super) fn new(parts: Arc<Parts>, sequence: Sequence, is_awaited: bool) -> Self {
        if is_awaited {
            // INVARIANT: a task never gets the turn.
            drop(parts.queue.request(sequence, Requester::Task));
        }
        Self { parts, sequence, is_awaited, place: None }
    }

    /// Blocks until the entry is durable, or will never be.
    pub fn wait(&self) -> Result<(), Error> {
        self.parts.check_process()?;
        if self.is_awaited { self.answer(self.parts.journal.progress.wait_durable(self.sequence)) } else { Ok(()) }
    }

    /// Returns whether the entry is durable; `None` while that is not known.
    pub fn look(&self) -> Option<Result<(), Error>> {
        if !self.is_awaited {
            return Some(Ok(()));
        }
        if let Err(error) = self.parts.check_process() {
            return Some(Err(error));
        }
        self.parts.journal.progress.is_durable(self.sequence).map(|is_durable| self.answer(is_durable))
    }

    /// Like [`Ticket::look`], for a task that is woken when the answer is known.
    pub fn poll(&mut self, context: &Context<'_>) -> Poll<Result<(), Error>> {
        if !self.is_awaited {
            return Poll::Ready(Ok(()));
        }
        self.parts.check_process()?;
        match self.parts.journal.progress.poll_durable(self.sequence, &mut self.place, context.waker()) {
            Some(is_durable) => Poll::Ready(self.answer(is_durable)),
            None => Poll::Pending,
        }
    }

    fn answer(&self, is_durable: bool) -> Result<(), Error> {
        if is_durable { Ok(()) } else { Err(self.parts.queue.refused("the writer stopped")) }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(place) = self.place.filter(|_| self.parts.check_process().is_ok()) {
            self.parts.journal.progress.forget(place);
        }
    }
}
