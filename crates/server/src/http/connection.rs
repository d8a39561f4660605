//! What one connection is at: who ends it must know whether it owes an answer, and what of the last request was not read.

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

/// How far a connection has come with its last request. Clones are of the same connection; the one task that serves it
/// is the only one that changes it, but for bodies that are dropped elsewhere.
#[derive(Debug, Clone, Default)]
pub(super) struct Course(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// The head of a request has come whole, and its answer is not with the system yet.
    answering: AtomicBool,
    /// The answer's body has been taken whole, or is wanted no more.
    handed_over: AtomicBool,
    /// What of the request's body was not read may still come.
    body_left: AtomicBool,
}

impl Course {
    pub(super) fn is_answering(&self) -> bool {
        self.0.answering.load(Ordering::Acquire)
    }

    pub(super) fn is_body_left(&self) -> bool {
        self.0.body_left.load(Ordering::Acquire)
    }

    /// A request whose head is here.
    pub(super) fn begin(&self, request: hyper::Request<Incoming>) -> hyper::Request<Body> {
        self.0.handed_over.store(false, Ordering::Release);
        self.0.body_left.store(false, Ordering::Release);
        self.0.answering.store(true, Ordering::Release);
        request.map(|body| {
            if body.is_end_stream() {
                return Body::new(body);
            }
            Body::new(Watched { body: Body::new(body), course: self.clone(), side: Side::Request, is_over: false })
        })
    }

    pub(super) fn answer(&self, answer: hyper::Response<Body>) -> hyper::Response<Watched> {
        answer.map(|body| Watched { body, course: self.clone(), side: Side::Answer, is_over: false })
    }

    /// The stream, for what is written to be noticed.
    pub(super) fn over<S>(&self, stream: S) -> Flushing<S> {
        Flushing { stream, course: self.clone() }
    }
}

/// A body that tells when it is over.
pub(super) struct Watched {
    body: Body,
    course: Course,
    side: Side,
    is_over: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Request,
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
        match self.side {
            Side::Answer => self.course.0.handed_over.store(true, Ordering::Release),
            Side::Request if self.is_over || self.body.is_end_stream() => {}
            Side::Request => self.course.0.body_left.store(true, Ordering::Release),
        }
    }
}

/// A stream that notes when an answer has been written to its end.
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
        // It is flushed when all that there was has been written.
        if flushed.is_ready() && self.course.0.handed_over.swap(false, Ordering::AcqRel) {
            self.course.0.answering.store(false, Ordering::Release);
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Ends a connection on which all is said, and whose client may still be sending. Were it closed at once, what comes then
/// would have the systems take the answer back, which the client may not have read.
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
    // However it went, the connection is over.
    let _ = tokio::time::timeout(LINGER, drop_rest).await;
}

/// How long, and how much, is read of a body that nobody wants.
const LINGER: Duration = Duration::from_secs(1);
const MOST_LINGERED: usize = 8 << 20;
const PART_BYTES: usize = 16 << 10;
