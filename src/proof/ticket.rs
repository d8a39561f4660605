//! Waiting for an entry without holding up a thread.

use std::sync::Arc;
use std::task::{Context, Poll};

use crate::model::{Error, Sequence};
use crate::proof::journal::progress::Waiting;
use crate::proof::parts::Parts;
use crate::proof::queue::Requester;

/// An entry that is in order, and the right to learn when it is as durable as
/// was promised. It holds up nothing, and can be dropped at any time.
pub(crate) struct Ticket {
    parts: Arc<Parts>,
    sequence: Sequence,
    /// It has to be on disk; otherwise it is enough that it is in order.
    is_awaited: bool,
    /// Where its waker stands, once it has one.
    place: Option<Waiting>,
}

impl Ticket {
    /// A ticket for an entry; from now on it is written as soon as can be if it has to be on disk.
    pub(super) fn new(parts: Arc<Parts>, sequence: Sequence, is_awaited: bool) -> Self {
        if is_awaited {
            // INVARIANT: a task is given no turn.
            drop(parts.queue.request(sequence, Requester::Task));
        }
        Self { parts, sequence, is_awaited, place: None }
    }

    /// Blocks until it is known.
    pub(crate) fn wait(&self) -> Result<(), Error> {
        if self.is_awaited { self.answer(self.parts.journal.progress.wait_durable(self.sequence)) } else { Ok(()) }
    }

    /// Whether it is durable; none while that is open.
    pub(crate) fn look(&self) -> Option<Result<(), Error>> {
        if !self.is_awaited {
            return Some(Ok(()));
        }
        self.parts.journal.progress.is_durable(self.sequence).map(|is_durable| self.answer(is_durable))
    }

    /// Like [`Ticket::look`], for a task that is woken when it is known.
    pub(crate) fn poll(&mut self, context: &Context<'_>) -> Poll<Result<(), Error>> {
        if !self.is_awaited {
            return Poll::Ready(Ok(()));
        }
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
        if let Some(place) = self.place {
            self.parts.journal.progress.forget(place);
        }
    }
}
