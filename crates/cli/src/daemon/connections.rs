//! The open connections of a socket. Each socket has a limit of its own, so that agents use up no connection of the
//! operators. At the limit, the connection that made no call for the longest time is closed for a new one.

use std::collections::HashMap;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rulekeep::Error;

/// The connections of one socket.
pub(super) struct Connections {
    /// Largest number of connections at a time.
    limit: usize,
    /// The time without a call after which a connection may be closed for a new one.
    quiet: Duration,
    /// The open connections by number. Locked before the use of a connection.
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    last: u64,
    connections: HashMap<u64, Arc<Connection>>,
}

/// A connection, which its thread reads and any other may close.
struct Connection {
    stream: UnixStream,
    usage: Mutex<Usage>,
}

/// The use of a connection so far. Orders connections: the least one is closed first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Usage {
    has_key: bool,
    /// The start of the last call; without one, of the connection.
    last_call: Instant,
    /// Longest time that the connection may send nothing.
    pause: Option<Duration>,
}

/// A place among the connections of a socket, free again when this is dropped.
pub(super) struct Place {
    of: Arc<Connections>,
    number: u64,
    connection: Arc<Connection>,
}

impl Connections {
    pub(super) fn new(limit: usize, quiet: Duration) -> Self {
        Self { limit, quiet, open: Mutex::default() }
    }

    pub(super) fn count(&self) -> usize {
        self.open().connections.len()
    }

    /// Adds a connection. At the limit, closes another one for it; if none is quiet, returns the stream.
    pub(super) fn admit(self: &Arc<Self>, stream: UnixStream) -> Result<Place, UnixStream> {
        let mut open = self.open();
        if open.connections.len() >= self.limit && !open.close_one(self.quiet) {
            return Err(stream);
        }
        // Without a call, a client holds its place for a short time.
        let _ = stream.set_read_timeout(Some(LONGEST_START));
        let usage = Usage { has_key: false, last_call: Instant::now(), pause: Some(LONGEST_START) };
        let connection = Arc::new(Connection { stream, usage: Mutex::new(usage) });
        open.last += 1;
        let number = open.last;
        open.connections.insert(number, Arc::clone(&connection));
        Ok(Place { of: Arc::clone(self), number, connection })
    }

    /// Closes the connection that made no call for the longest time, if there is one.
    pub(super) fn close_one(&self) -> bool {
        self.open().close_one(Duration::ZERO)
    }

    /// The answer to a connection for which there is no place.
    pub(super) fn full(&self) -> Error {
        let message = format!(
            "the socket has {} connections, and each made a call in the last {} minutes: close one, or try again later",
            self.limit,
            self.quiet.as_secs() / 60
        );
        Error::RateLimited { message, retry_after: LONGEST_START }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Closes the least used connection without a call for `quiet`. Its thread ends as soon as it notices.
    fn close_one(&mut self, quiet: Duration) -> bool {
        let usages = self.connections.iter().map(|(number, connection)| (*connection.usage(), *number));
        let least = usages.filter(|(usage, _)| usage.last_call.elapsed() >= quiet).min();
        let closed = least.and_then(|(_, number)| self.connections.remove(&number));
        closed.is_some_and(|closed| closed.stream.shutdown(Shutdown::Both).is_ok())
    }
}

impl Connection {
    fn usage(&self) -> MutexGuard<'_, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    pub(super) fn stream(&self) -> &UnixStream {
        &self.connection.stream
    }

    /// Notes the start of a call. A connection with a key or a subscription may be silent from then on.
    pub(super) fn note_call(&self, has_key: bool, subscribes: bool) -> io::Result<()> {
        let mut usage = self.connection.usage();
        let pause = Some(LONGEST_PAUSE).filter(|_| !has_key && !subscribes && usage.pause.is_some());
        let is_changed = usage.pause != pause;
        *usage = Usage { has_key, last_call: Instant::now(), pause };
        if is_changed { self.stream().set_read_timeout(pause) } else { Ok(()) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.of.open().connections.remove(&self.number);
    }
}

/// Longest time until the first call of a connection.
const LONGEST_START: Duration = Duration::from_secs(10);
/// Longest time between two calls of a connection.
const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{ErrorKind, Read as _};

    /// Opens a connection. Returns its place, if there is one, and its client.
    fn opened(connections: &Arc<Connections>) -> (Option<Place>, UnixStream) {
        let (client, stream) = UnixStream::pair().unwrap();
        client.set_nonblocking(true).unwrap();
        (connections.admit(stream).ok(), client)
    }

    fn is_closed(mut client: &UnixStream) -> bool {
        !client.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }

    #[test]
    fn at_the_limit_the_least_used_connection_without_key_ends() {
        let connections = Arc::new(Connections::new(3, Duration::ZERO));
        let ((keyed, with_key), (used, with_call), (idle, without)) =
            (opened(&connections), opened(&connections), opened(&connections));
        keyed.as_ref().unwrap().note_call(true, false).unwrap();
        used.as_ref().unwrap().note_call(false, false).unwrap();
        let (fourth, _client) = opened(&connections);
        assert!(is_closed(&without) && !is_closed(&with_call) && !is_closed(&with_key));
        let (fifth, _other) = opened(&connections);
        assert!(is_closed(&with_call) && !is_closed(&with_key));
        assert_eq!(connections.count(), 3);
        drop((keyed, used, idle, fourth, fifth));
        assert_eq!(connections.count(), 0);
    }

    #[test]
    fn connections_in_use_do_not_give_way_to_others() {
        let connections = Arc::new(Connections::new(1, Duration::from_secs(60)));
        let (first, client) = opened(&connections);
        assert!(opened(&connections).0.is_none() && !is_closed(&client));
        drop(first);
        assert!(opened(&connections).0.is_some());
    }

    #[test]
    fn only_a_key_or_a_subscription_permits_any_silence() {
        let connections = Arc::new(Connections::new(2, Duration::ZERO));
        let (place, _client) = opened(&connections);
        let place = place.unwrap();
        let longest = || place.stream().read_timeout().unwrap();
        assert_eq!(longest(), Some(LONGEST_START));
        place.note_call(false, false).unwrap();
        assert_eq!(longest(), Some(LONGEST_PAUSE));
        place.note_call(false, true).unwrap();
        place.note_call(false, false).unwrap();
        assert_eq!(longest(), None);
    }
}
