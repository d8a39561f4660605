//! The two entry points of the gateway.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderName, HeaderValue};
use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::calls::Calls;
use crate::governance::Governance;
use crate::handler::Gate;
use crate::lines::Lines;
use crate::options::{Downstream, ProxyOptions, WrapOptions};
use crate::process::GRACE;
use crate::remote;
use crate::shared::Shared;
use crate::upstream::Connector;
use rulekeep_server::http::Server;

/// Starts a server as a child process, and serves a client on standard input and output until the input ends, or until
/// SIGINT, SIGTERM or SIGHUP. The server is started at the first request, in a process group of its own, and the group
/// ends with the gateway; its standard error is the gateway's. The thread that reads standard input may outlast the
/// call, so shut the runtime down with a timeout.
///
/// # Errors
///
/// [`Error::Options`] for an empty command; [`Error::Io`] and [`Error::Client`] if the client cannot be served. If
/// the server does not start, the client's requests fail instead.
pub async fn wrap(calls: Arc<dyn Calls>, options: WrapOptions) -> Result<(), Error> {
    if options.command.is_empty() {
        return Err(Error::Options(
            "the command of the server is empty: expected a program and its arguments".to_owned(),
        ));
    }
    let governance = Governance::new(calls, options.governed);
    let shared = Shared::new(governance, Arc::new(Connector::Child(options.command))).map_err(Error::Options)?;
    Box::pin(serve_stdio(Arc::new(shared))).await
}

/// Connects to a server over streamable HTTP, and serves clients on standard input and output or over HTTP.
///
/// # Errors
///
/// [`Error::Options`] for an invalid URL or header, or a listener on an address other than loopback; [`Error::Io`]
/// and [`Error::Client`] if clients cannot be served. If the server does not answer, the clients' requests fail
/// instead.
pub async fn proxy(calls: Arc<dyn Calls>, options: ProxyOptions) -> Result<(), Error> {
    let config = upstream_config(&options)?;
    // The program may already have installed a provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (connector, governed) = (Arc::new(Connector::Http(config)), options.governed);
    let make = move |governed| Shared::new(Governance::new(Arc::clone(&calls), governed), Arc::clone(&connector));
    let shared = |governed| make(governed).map(Arc::new).map_err(Error::Options);
    match options.downstream {
        Downstream::Stdio => Box::pin(serve_stdio(shared(governed)?)).await,
        Downstream::Http(listener) => serve_http(shared(governed)?, listener).await,
        Downstream::Callers(listener, remote) => {
            remote::serve(listener, remote, move |agent| make(governed.clone().agent(agent))).await
        }
    }
}

/// The reason why the gateway cannot serve clients.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The options cannot be used.
    #[error("{0}")]
    Options(String),
    /// The standard streams or the listener failed.
    #[error("clients cannot be served: {0}")]
    Io(#[from] io::Error),
    /// The client did not begin as the protocol requires.
    #[error("the client did not open a session: {0}")]
    Client(String),
}

/// Serves the client on standard input and output until its input ends, or the process is asked to end.
async fn serve_stdio(shared: Arc<Shared>) -> Result<(), Error> {
    // Listening starts before there is a server, so that no signal ends the gateway alone.
    let [interrupt, terminate, hangup] = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let mut signals = [signal(interrupt)?, signal(terminate)?, signal(hangup)?];
    let gate = Gate::new(shared);
    let stdio = Lines::new(tokio::io::stdin(), tokio::io::stdout(), None);
    let started = tokio::select! {
        started = Box::pin(gate.clone().serve(stdio)) => started,
        () = next_of(&mut signals) => Err(ServerInitializeError::Cancelled),
    };
    let (served, grace) = match started {
        Ok(running) => {
            let ending = running.cancellation_token();
            let mut served = Box::pin(running.waiting());
            let (served, grace) = tokio::select! {
                served = &mut served => (served, GRACE),
                () = next_of(&mut signals) => {
                    ending.cancel();
                    (served.await, Duration::ZERO)
                }
            };
            (served.map(drop).map_err(|error| Error::Io(error.into())), grace)
        }
        Err(ServerInitializeError::Cancelled) => (Ok(()), Duration::ZERO),
        // The client disconnected before its first request.
        Err(ServerInitializeError::ConnectionClosed(_)) => (Ok(()), GRACE),
        Err(error) => (Err(Error::Client(error.to_string())), GRACE),
    };
    gate.close(grace).await;
    served
}

async fn next_of([one, two, three]: &mut [Signal; 3]) {
    tokio::select! {
        _ = one.recv() => {}
        _ = two.recv() => {}
        _ = three.recv() => {}
    }
}

pub(crate) async fn serve_http(shared: Arc<Shared>, listener: TcpListener) -> Result<(), Error> {
    let address: SocketAddr = listener.local_addr()?;
    if !address.ip().is_loopback() {
        let message = format!(
            "{address} is not a loopback address: expected 127.0.0.1 or ::1, or callers that prove who they are"
        );
        return Err(Error::Options(message));
    }
    let origins = ["127.0.0.1", "[::1]", "localhost"].map(|host| format!("http://{host}:{}", address.port()));
    let (service, _) = service(shared, [], origins);
    serve_router(listener, Router::new().nest_service(PATH, service)).await
}

/// Serves a router for as long as the process runs, with the limits that every HTTP server of Rulekeep has.
pub(crate) async fn serve_router(listener: TcpListener, router: Router) -> Result<(), Error> {
    let served = Server::new().serve(listener, router, std::future::pending()).await;
    served.map_err(|error| Error::Io(io::Error::other(error)))
}

/// The gateway over streamable HTTP and its sessions, for requests to a loopback name or to one of these hosts. In a
/// browser only pages of these origins may use it.
pub(crate) fn service(
    shared: Arc<Shared>,
    hosts: impl IntoIterator<Item = String>,
    origins: impl IntoIterator<Item = String>,
) -> (Service, Arc<LocalSessionManager>) {
    let mut config = StreamableHttpServerConfig::default().with_allowed_origins(origins);
    config.allowed_hosts.extend(hosts);
    let gate = move || Ok(Gate::new(Arc::clone(&shared)));
    let sessions = Arc::new(LocalSessionManager::default());
    (StreamableHttpService::new(gate, Arc::clone(&sessions), config), sessions)
}

/// A gateway over streamable HTTP.
pub(crate) type Service = StreamableHttpService<Gate, LocalSessionManager>;

fn upstream_config(options: &ProxyOptions) -> Result<StreamableHttpClientTransportConfig, Error> {
    let is_address = |scheme: &str| options.url.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty());
    if !is_address("https://") && !is_address("http://") {
        return Err(Error::Options("the URL of the server: expected https:// or http:// and a host".to_owned()));
    }
    let mut headers = HashMap::new();
    for (name, value) in &options.headers {
        // The value may be a secret.
        let wrong = || Error::Options(format!("the header {name:?} is invalid: expected a name and a value in ASCII"));
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?, value);
    }
    Ok(StreamableHttpClientTransportConfig::with_uri(options.url.clone()).custom_headers(headers))
}

/// The path of the gateway's HTTP endpoint.
pub(crate) const PATH: &str = "/mcp";
