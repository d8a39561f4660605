//! Connections: accepted, limited in time, size and number, and drained at the end.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tower::ServiceExt;

use super::handle::Peer;
use super::stall::Stalling;

/// Serves a router over HTTP/1.1, with TLS when it is given a certificate.
#[derive(Clone)]
#[must_use]
pub struct Server {
    tls: Option<TlsAcceptor>,
    connections: usize,
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
            connections: 10_000,
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
/// How long a client has for the first steps of TLS.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long is waited when no connection can be accepted, for want of descriptors for example.
const PAUSE: Duration = Duration::from_millis(50);

impl Server {
    /// A server without TLS: 10,000 connections at once, 30 s for a request's head and between two requests, 10 s
    /// for its body, 30 s without any of an answer being taken, 30 s to finish at the end.
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

    /// How many connections are served at once; more wait to be accepted. Default: 10,000.
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.connections = connections.clamp(1, Semaphore::MAX_PERMITS);
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

    /// Serves until `shutdown` comes, and then until the requests that are being answered are.
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
        let graceful = GracefulShutdown::new();
        let places = Arc::new(Semaphore::new(self.connections));
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
            let (server, router, watcher) = (self.clone(), router.clone(), graceful.watcher());
            connections.spawn(async move {
                server.connection(stream, peer, router, watcher).await;
                drop(place);
            });
        }
        drop(listener);
        tokio::time::timeout(self.drain, graceful.shutdown()).await.map_err(|_| ServerError::NotDrained(self.drain))
    }

    async fn connection(&self, stream: TcpStream, peer: SocketAddr, router: Router, watcher: Watcher) {
        // An answer is written in one go; without, its last packet could wait.
        let _ = stream.set_nodelay(true);
        match &self.tls {
            None => self.requests(stream, peer, router, watcher).await,
            Some(tls) => {
                if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await {
                    self.requests(stream, peer, router, watcher).await;
                }
            }
        }
    }

    async fn requests(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: SocketAddr,
        router: Router,
        watcher: Watcher,
    ) {
        let peer = Peer { address: peer, body_timeout: self.body_timeout };
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(peer);
            let router = router.clone();
            async move { Ok::<_, Infallible>(router.oneshot(request).await.unwrap_or_else(|never| match never {})) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.header_timeout)
            .max_header_size(MAX_HEAD_BYTES)
            .max_headers(MAX_HEADERS)
            .serve_connection(TokioIo::new(Stalling::new(stream, self.write_timeout)), service);
        // Whatever a client does to its own connection ends that alone.
        let _ = watcher.watch(connection).await;
    }
}

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
