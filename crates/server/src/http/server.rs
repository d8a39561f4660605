//! Connections: accepted, limited in time, size and number, and drained at the end.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tower::ServiceExt;

use super::caller::Caller;
use super::connection::{self, Course};
use super::descriptors;
use super::handle::Ending;
use super::place::{Place, Room};
use super::stall::Stalling;

/// Serves a router over HTTP/1.1, with TLS if a certificate is given.
#[derive(Clone)]
#[must_use]
pub struct Server {
    tls: Option<TlsAcceptor>,
    proxies: Arc<[IpAddr]>,
    connections: usize,
    handshake_timeout: Duration,
    header_timeout: Duration,
    body_timeout: Duration,
    write_timeout: Duration,
    drain: Duration,
}

/// The reason a server ended with an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// Open connections did not finish in time and were closed.
    #[error("connections were closed because they did not finish within {0:?}")]
    NotDrained(Duration),
}

/// The reason a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the certificate cannot be used: {0}")]
pub struct TlsFault(String);

impl Default for Server {
    fn default() -> Self {
        Self {
            tls: None,
            proxies: Arc::default(),
            connections: 10_000,
            handshake_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(30),
            drain: Duration::from_secs(30),
        }
    }
}

/// Maximum size of a request's head, in bytes.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// Number of bytes that are read before a router asks for them, for example before it knows the key.
const MOST_AHEAD: usize = 64 << 10;
/// Maximum number of headers of a request.
const MAX_HEADERS: usize = 64;
/// The pause after a connection could not be accepted, for example for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(50);

impl Server {
    /// Creates a server without TLS and with the default limits: 10,000 connections, 10 s for a TLS handshake, 30 s
    /// for a request's head and between requests, 10 s for a body, 30 s without progress in sending a response, and
    /// 30 s to finish at the end.
    pub fn new() -> Self {
        Self::default()
    }

    /// Enables TLS 1.2 and 1.3 with a certificate chain and its private key, both in PEM.
    ///
    /// # Errors
    ///
    /// [`TlsFault`] if the certificate or key cannot be parsed, or do not belong together.
    pub fn tls(mut self, certificates: &[u8], key: &[u8]) -> Result<Self, TlsFault> {
        let fault = |error: &dyn std::fmt::Display| TlsFault(error.to_string());
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates).collect();
        let chain = chain.map_err(|error| fault(&error))?;
        // The parser's message may quote the key, so it is not passed on.
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| fault(&"the key is not a private key in PEM"))?;
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| fault(&error))?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| fault(&error))?;
        self.tls = Some(TlsAcceptor::from(Arc::new(config)));
        Ok(self)
    }

    /// Sets the trusted proxies. For requests from them, the caller whose rejected keys are counted is the last
    /// address in `X-Forwarded-For` that is not a trusted proxy. Default: none.
    pub fn trusted_proxies(mut self, proxies: impl IntoIterator<Item = IpAddr>) -> Self {
        self.proxies = proxies.into_iter().map(|proxy| proxy.to_canonical()).collect();
        self
    }

    /// Sets the maximum number of connections. A further one gets the place of the one that has been open for longest
    /// without a known caller ([`Place`]). Default: 10,000. On Linux the number is also limited by the process's limit
    /// of open files when serving starts, of which a quarter is reserved.
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.connections = connections.clamp(1, Semaphore::MAX_PERMITS);
        self
    }

    /// Sets the time for a TLS handshake, after which the connection is closed. Default: 10 s.
    pub fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.handshake_timeout = timeout;
        self
    }

    /// Sets the time for a request's head to arrive, and for a connection to be idle. Default: 30 s.
    pub fn header_timeout(mut self, timeout: Duration) -> Self {
        self.header_timeout = timeout;
        self
    }

    /// Sets the time for a request's body to arrive. Default: 10 s.
    pub fn body_timeout(mut self, timeout: Duration) -> Self {
        self.body_timeout = timeout;
        self
    }

    /// Sets the time after which a connection is closed if its client reads nothing of a response. Default: 30 s.
    pub fn write_timeout(mut self, timeout: Duration) -> Self {
        self.write_timeout = timeout;
        self
    }

    /// Sets the time for open connections to finish at the end. Default: 30 s.
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.drain = timeout;
        self
    }

    /// Serves until `shutdown` completes, and then until the requests in progress are answered. Connections without a
    /// complete request by then are dropped.
    ///
    /// # Errors
    ///
    /// [`ServerError::NotDrained`] if requests did not finish in time.
    pub async fn serve(
        self,
        listener: TcpListener,
        router: Router,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServerError> {
        let most = descriptors::room().map_or(self.connections, |room| room.min(self.connections));
        let room = Room::new(most);
        let (end, ended) = watch::channel(());
        let router = router.layer(Extension(Ending(ended.clone())));
        let mut shutdown = std::pin::pin!(shutdown);
        // Dropped at the end, together with the remaining connections.
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(_) = connections.join_next() => continue,
                accepted = listener.accept() => accepted,
            };
            let Ok((stream, peer)) = accepted else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let place = tokio::select! {
                () = &mut shutdown => break,
                place = room.enter() => place,
            };
            let (server, router, ended) = (self.clone(), router.clone(), ended.clone());
            connections.spawn(async move {
                tokio::select! {
                    () = server.connection(stream, peer, place.clone(), router, ended) => {}
                    () = place.lost() => {}
                }
            });
        }
        drop((listener, end));
        let finished = async { while connections.join_next().await.is_some() {} };
        tokio::time::timeout(self.drain, finished).await.map_err(|_| ServerError::NotDrained(self.drain))
    }

    async fn connection(&self, stream: TcpStream, peer: SocketAddr, place: Place, router: Router, mut ended: Ended) {
        // A response is written at once; otherwise its last packet could be delayed.
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else { return self.requests(stream, peer, place, router, ended).await };
        let accepted = tokio::select! {
            accepted = tokio::time::timeout(self.handshake_timeout, tls.accept(stream)) => accepted,
            _ = ended.changed() => return,
        };
        if let Ok(Ok(stream)) = accepted {
            self.requests(stream, peer, place, router, ended).await;
        }
    }

    async fn requests(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: SocketAddr,
        place: Place,
        router: Router,
        mut ended: Ended,
    ) {
        let course = Course::new(place);
        let stream = course.over(Stalling::new(stream, self.write_timeout));
        let service = service_fn(|request: hyper::Request<Incoming>| {
            let mut request = course.begin(request, self.body_timeout);
            let caller = Caller::behind(peer.ip(), &self.proxies, request.headers());
            request.extensions_mut().insert(caller);
            let (router, course) = (router.clone(), &course);
            async move {
                let answer = router.oneshot(request).await.unwrap_or_else(|never| match never {});
                Ok::<_, Infallible>(course.answer(answer))
            }
        });
        let mut connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.header_timeout)
            .max_buf_size(MOST_AHEAD)
            .max_header_size(MAX_HEAD_BYTES)
            .max_headers(MAX_HEADERS)
            .serve_connection(TokioIo::new(stream), service);
        let done = tokio::select! {
            biased;
            done = &mut connection => Some(done),
            _ = ended.changed() => None,
        };
        let done = if let Some(done) = done {
            done
        } else {
            Pin::new(&mut connection).graceful_shutdown();
            // Everything received has been read, and the rest of a head may never arrive.
            if !course.is_answering() {
                return;
            }
            (&mut connection).await
        };
        // Any other error affects only this connection.
        if done.map_or_else(|error| error.is_parse(), |()| course.is_body_left()) {
            connection::linger(connection.into_parts().io.into_inner()).await;
        }
    }
}

/// Completes when the server ends, because the sender is dropped then.
type Ended = watch::Receiver<()>;

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let has_tls = self.tls.is_some();
        f.debug_struct("Server").field("tls", &has_tls).field("connections", &self.connections).finish_non_exhaustive()
    }
}
