//! Connections: accepted, limited in time, size and number, and drained at the end.

use std::convert::Infallible;
use std::io;
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
use super::handle::{BodyTimeout, Ending};
use super::stall::Stalling;

/// Serves a router over HTTP/1.1, with TLS when it is given a certificate.
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

/// Why a server ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// Connections that were open at the end did not finish in time; they were cut.
    #[error("connections were cut that did not finish within {0:?}")]
    NotDrained(Duration),
}

/// Why a certificate cannot be used.
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
            body_timeout: BODY_TIMEOUT,
            write_timeout: Duration::from_secs(30),
            drain: Duration::from_secs(30),
        }
    }
}

/// How long a body may take to come, where nothing else is said.
pub(super) const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// Most headers of a request.
const MAX_HEADERS: usize = 64;
/// How long is waited when no connection can be accepted, for want of descriptors for example.
const PAUSE: Duration = Duration::from_millis(50);

impl Server {
    /// A server without TLS: 10,000 connections at once, 10 s for the first steps of TLS where there is one, 30 s for a
    /// request's head and between two requests, 10 s for its body, 30 s without any of an answer being taken, 30 s to
    /// finish at the end.
    pub fn new() -> Self {
        Self::default()
    }

    /// Speaks TLS (1.2 and 1.3) with a chain of certificates and their key, both in PEM.
    ///
    /// # Errors
    ///
    /// [`TlsFault`] for what is no certificate or key, and for a key that is not the certificate's.
    pub fn tls(mut self, certificates: &[u8], key: &[u8]) -> Result<Self, TlsFault> {
        let fault = |error: &dyn std::fmt::Display| TlsFault(error.to_string());
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates).collect();
        let chain = chain.map_err(|error| fault(&error))?;
        // What is wrong with a key is not told in the words of its reader, which may quote it.
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| fault(&"the key is no private key in PEM"))?;
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

    /// Proxies that say truly whom they speak for: of their requests the last address in `X-Forwarded-For` that is none of
    /// them is the caller whose refused keys are counted. Default: none.
    pub fn trusted_proxies(mut self, proxies: impl IntoIterator<Item = IpAddr>) -> Self {
        self.proxies = proxies.into_iter().map(|proxy| proxy.to_canonical()).collect();
        self
    }

    /// How many connections are served at once; more wait to be accepted. Default: 10,000. On Linux there are no more
    /// than the process's limit of open files, when serving begins, has room for beside a quarter of it.
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.connections = connections.clamp(1, Semaphore::MAX_PERMITS);
        self
    }

    /// How long the first steps of TLS may take; who has not done them by then is cut off. Default: 10 s.
    pub fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.handshake_timeout = timeout;
        self
    }

    /// How long a request's head may take to come, and how long a connection may stand idle. Default: 30 s.
    pub fn header_timeout(mut self, timeout: Duration) -> Self {
        self.header_timeout = timeout;
        self
    }

    /// How long a request's body may take to come. Default: 10 s.
    pub fn body_timeout(mut self, timeout: Duration) -> Self {
        self.body_timeout = timeout;
        self
    }

    /// How long a client may take nothing of an answer before its connection is cut. Default: 30 s.
    pub fn write_timeout(mut self, timeout: Duration) -> Self {
        self.write_timeout = timeout;
        self
    }

    /// How long connections have to finish at the end. Default: 30 s.
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.drain = timeout;
        self
    }

    /// Serves until `shutdown` comes, and then until the requests that are being answered are. Connections that have
    /// asked nothing whole by then are dropped.
    ///
    /// # Errors
    ///
    /// [`ServerError::NotDrained`] when some were not, in time.
    pub async fn serve(
        self,
        listener: TcpListener,
        router: Router,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServerError> {
        let most = descriptors::room().map_or(self.connections, |room| room.min(self.connections));
        let places = Arc::new(Semaphore::new(most));
        let (end, ended) = watch::channel(());
        let router = router.layer(Extension(Ending(ended.clone())));
        let mut shutdown = std::pin::pin!(shutdown);
        // Dropped at the end, and with it whatever connections there still are.
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(_) = connections.join_next() => continue,
                accepted = accept(&listener, &places) => accepted,
            };
            let Ok((stream, peer, place)) = accepted else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let (server, router, ended) = (self.clone(), router.clone(), ended.clone());
            connections.spawn(async move {
                server.connection(stream, peer, router, ended).await;
                drop(place);
            });
        }
        drop((listener, end));
        let finished = async { while connections.join_next().await.is_some() {} };
        tokio::time::timeout(self.drain, finished).await.map_err(|_| ServerError::NotDrained(self.drain))
    }

    async fn connection(&self, stream: TcpStream, peer: SocketAddr, router: Router, mut ended: Ended) {
        // An answer is written in one go; without, its last packet could wait.
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else { return self.requests(stream, peer, router, ended).await };
        let accepted = tokio::select! {
            accepted = tokio::time::timeout(self.handshake_timeout, tls.accept(stream)) => accepted,
            _ = ended.changed() => return,
        };
        if let Ok(Ok(stream)) = accepted {
            self.requests(stream, peer, router, ended).await;
        }
    }

    async fn requests(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: SocketAddr,
        router: Router,
        mut ended: Ended,
    ) {
        let body_timeout = BodyTimeout(self.body_timeout);
        let course = Course::default();
        let stream = course.over(Stalling::new(stream, self.write_timeout));
        let service = service_fn(|request: hyper::Request<Incoming>| {
            let mut request = course.begin(request);
            let caller = Caller::behind(peer.ip(), &self.proxies, request.headers());
            request.extensions_mut().insert(caller);
            request.extensions_mut().insert(body_timeout);
            let (router, course) = (router.clone(), &course);
            async move {
                let answer = router.oneshot(request).await.unwrap_or_else(|never| match never {});
                Ok::<_, Infallible>(course.answer(answer))
            }
        });
        let mut connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.header_timeout)
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
            // All that has come was read just before; what of a head has not may never come.
            if !course.is_answering() {
                return;
            }
            (&mut connection).await
        };
        // Whatever else a client does to its own connection ends that alone.
        if done.map_or_else(|error| error.is_parse(), |()| course.is_body_left()) {
            connection::linger(connection.into_parts().io.into_inner()).await;
        }
    }
}

/// Its other side is dropped when the server ends.
type Ended = watch::Receiver<()>;

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let has_tls = self.tls.is_some();
        f.debug_struct("Server").field("tls", &has_tls).field("connections", &self.connections).finish_non_exhaustive()
    }
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer, place))
}
