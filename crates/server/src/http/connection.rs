//! The progress of a connection: whoever closes it must know whether a response is still owed, and whether a part of
//! the last request is unread.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::place::Place;

/// The progress of a connection with its last request. Clones refer to the same connection. Only the task that serves
/// it changes it, except for bodies that are dropped elsewhere.
#[derive(Debug, Clone)]
pub(super) struct Course(Arc<State>);

#[derive(Debug)]
struct State {
    place: Place,
    /// A request's head has arrived, and its response is not written completely.
    answering: AtomicBool,
    /// The response's body has been taken completely, or is no longer wanted.
    handed_over: AtomicBool,
    /// Unread parts of the request's body may still arrive.
    body_left: AtomicBool,
}

impl Course {
    pub(super) fn new(place: Place) -> Self {
        let [answering, handed_over, body_left] = [const { AtomicBool::new(false) }; 3];
        Self(Arc::new(State { place, answering, handed_over, body_left }))
    }

    pub(super) fn is_answering(&self) -> bool {
        self.0.answering.load(Ordering::Acquire)
    }

    pub(super) fn is_body_left(&self) -> bool {
        self.0.body_left.load(Ordering::Acquire)
    }

    /// Records a request whose head has arrived. Its body fails unless it ends within `timeout`.
    pub(super) fn begin(&self, mut request: hyper::Request<Incoming>, timeout: Duration) -> hyper::Request<Body> {
        self.0.handed_over.store(false, Ordering::Release);
        self.0.body_left.store(false, Ordering::Release);
        self.0.answering.store(true, Ordering::Release);
        request.extensions_mut().insert(self.0.place.clone());
        request.map(|body| {
            if body.is_end_stream() {
                return Body::new(body);
            }
            let side = Side::Request(Box::pin(tokio::time::sleep(timeout)));
            Body::new(Watched { body: Body::new(body), course: self.clone(), side, is_over: false })
        })
    }

    pub(super) fn answer(&self, answer: hyper::Response<Body>) -> hyper::Response<Watched> {
        answer.map(|body| Watched { body, course: self.clone(), side: Side::Answer, is_over: false })
    }

    /// Wraps the stream, to notice when data is flushed.
    pub(super) fn over<S>(&self, stream: S) -> Flushing<S> {
        Flushing { stream, course: self.clone() }
    }
}

/// The error of a body that did not arrive in time.
#[derive(Debug, thiserror::Error)]
#[error("the body did not arrive in time")]
pub(super) struct Late;

impl Late {
    /// Returns whether this is why a body could not be read.
    pub(super) fn is_cause_of(error: &(dyn std::error::Error + 'static)) -> bool {
        std::iter::successors(Some(error), |error| error.source()).any(<dyn std::error::Error>::is::<Self>)
    }
}

/// A body that records its end.
pub(super) struct Watched {
    body: Body,
    course: Course,
    side: Side,
    is_over: bool,
}

enum Side {
    /// A request, and its deadline.
    Request(Pin<Box<Sleep>>),
    Answer,
}

impl hyper::body::Body for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if polled.is_pending()
            && let Side::Request(deadline) = &mut self.side
            && deadline.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Some(Err(axum::Error::new(Late))));
        }
        self.is_over |= matches!(polled, Poll::Ready(None));
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        match &self.side {
            Side::Answer => self.course.0.handed_over.store(true, Ordering::Release),
            Side::Request(_) if self.is_over || self.body.is_end_stream() => {}
            Side::Request(_) => self.course.0.body_left.store(true, Ordering::Release),
        }
    }
}

/// A stream that records when a response has been written completely.
pub(super) struct Flushing<S> {
    stream: S,
    course: Course,
}

impl<S: AsyncRead + Unpin> AsyncRead for Flushing<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Flushing<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        // A successful flush means that all data has been written.
        if flushed.is_ready() && self.course.0.handed_over.swap(false, Ordering::AcqRel) {
            self.course.0.answering.store(false, Ordering::Release);
            self.course.0.place.release();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Closes a connection after the last response while the client may still be sending. An immediate close would make
/// the operating system discard the response before the client has read it.
pub(super) async fn linger(mut stream: impl AsyncRead + Unpin) {
    let (mut part, mut left) = (vec![0; PART_BYTES], MOST_LINGERED);
    let drop_rest = async {
        while left > 0 {
            let read = poll_fn(|context| {
                let mut buffer = ReadBuf::new(&mut part);
                ready!(Pin::new(&mut stream).poll_read(context, &mut buffer))?;
                Poll::Ready(io::Result::Ok(buffer.filled().len()))
            });
            match read.await {
                Ok(read) if read > 0 => left = left.saturating_sub(read),
                _ => break,
            }
        }
    };
    // The connection is over, whatever the result.
    let _ = tokio::time::timeout(LINGER, drop_rest).await;
}

/// The time and the number of bytes for which an unwanted body is read.
const LINGER: Duration = Duration::from_secs(1);
const MOST_LINGERED: usize = 8 << 20;
const PART_BYTES: usize = 16 << 10;
