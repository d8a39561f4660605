//! The connection to the server: making it, and messages that the server sends on its own.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest, ClientResult, ErrorData, Implementation,
    ProgressNotificationParam, ProgressToken, ProtocolVersion, RequestMetaObject, ResultType, ServerCapabilities,
    ServerNotification, ServerRequest, ServerResult, TASKS_EXTENSION_ID,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, NotificationContext, Peer, PeerRequestOptions,
    RequestContext, RunningService, Service, ServiceError,
};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{IntoTransport, StreamableHttpClientTransport};
use rmcp::{RoleClient, RoleServer};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::broadcast;

use crate::catalogue::Catalogue;
use crate::lines::Lines;
use crate::process::Process;
use crate::progress::{self, Ordered};

/// The way to reach the server.
pub(crate) enum Connector {
    /// A child process with its standard input and output.
    Child(Vec<OsString>),
    /// Streamable HTTP.
    Http(StreamableHttpClientTransportConfig),
    /// A stream in memory, for tests.
    #[cfg(test)]
    Stream(Box<dyn Fn() -> tokio::io::DuplexStream + Send + Sync>),
}

/// The client on whose behalf a connection is made.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) info: Implementation,
    /// The session's protocol version, the client's capabilities, and the connection to it. `None` if each request
    /// carries these.
    pub(crate) session: Option<Session>,
}

#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) version: ProtocolVersion,
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) peer: Peer<RoleServer>,
}

/// A live connection to the server.
pub(crate) struct Upstream {
    running: RunningService<RoleClient, Downlink>,
    notifications: broadcast::Sender<ServerNotification>,
    /// The server, if it is a child process.
    process: Option<Arc<Process>>,
}

/// A handler for messages that the server sends on its own, on their way to the client.
struct Downlink {
    info: ClientConfig,
    /// The client, if it has a session. Only such a client accepts requests and notifications outside its own
    /// requests.
    client: Option<Peer<RoleServer>>,
    notifications: broadcast::Sender<ServerNotification>,
    catalogue: Arc<Catalogue>,
}

impl Connector {
    /// Connects on behalf of this client. For a client with a session, the handshake uses its version, so that the
    /// server's requests reach it; otherwise the newest common revision is used.
    pub(crate) async fn connect(
        &self,
        client: &Client,
        catalogue: &Arc<Catalogue>,
    ) -> Result<Upstream, ClientInitializeError> {
        let newest = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::LATEST],
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        };
        if client.session.is_none() {
            return self.connect_in(client, catalogue, newest).await;
        }
        match self.connect_in(client, catalogue, ClientLifecycleMode::Initialize).await {
            Ok(upstream) => Ok(upstream),
            Err(error) => {
                tracing::info!(%error, "the server has no handshake for the client's revision; trying the newest one");
                self.connect_in(client, catalogue, newest).await
            }
        }
    }

    async fn connect_in(
        &self,
        client: &Client,
        catalogue: &Arc<Catalogue>,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Upstream, ClientInitializeError> {
        let (notifications, _) = broadcast::channel(MOST_NOTIFICATIONS);
        let mut capabilities = client.session.as_ref().map(|session| session.capabilities.clone()).unwrap_or_default();
        without_tasks(&mut capabilities.extensions);
        let mut info = ClientConfig::new(capabilities, client.info.clone());
        if let Some(session) = &client.session {
            info.protocol_version = session.version.clone();
        }
        let downlink = Downlink {
            info,
            client: client.session.as_ref().map(|session| session.peer.clone()),
            notifications: notifications.clone(),
            catalogue: Arc::clone(catalogue),
        };
        let mut process = None;
        let running = match self {
            Self::Child(command) => {
                let (started, output, input) = Process::start(command_of(command)).map_err(|error| {
                    ClientInitializeError::transport::<Lines<ChildStdout, ChildStdin>>(error, "starting the server")
                })?;
                process = Some(Arc::clone(&started));
                let lines = Lines::new(output, input, Some(started));
                downlink.serve_with_lifecycle(Ordered::new(lines), lifecycle).await?
            }
            Self::Http(config) => {
                let transport = StreamableHttpClientTransport::from_config(config.clone());
                downlink.serve_with_lifecycle(Ordered::new(transport.into_transport()), lifecycle).await?
            }
            #[cfg(test)]
            Self::Stream(connect) => {
                let (read, write) = tokio::io::split(connect());
                downlink.serve_with_lifecycle(Ordered::new(Lines::new(read, write, None)), lifecycle).await?
            }
        };
        Ok(Upstream { running, notifications, process })
    }
}

impl Upstream {
    /// Ends the connection, also for calls that are still running, and the server if it is a child process. That one
    /// has `grace` to leave by itself.
    pub(crate) async fn close(self: Arc<Self>, grace: Duration) {
        self.running.cancellation_token().cancel();
        if let Some(process) = &self.process {
            process.end(grace).await;
        }
        let Some(upstream) = Arc::into_inner(self) else { return };
        if let Err(error) = upstream.running.cancel().await {
            tracing::warn!(%error, "the connection to the server did not end well");
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.running.is_transport_closed()
    }

    pub(crate) fn peer(&self) -> &Peer<RoleClient> {
        self.running.peer()
    }

    /// Returns whether the connection is stateless: requests describe themselves, and the server asks with
    /// `input_required`.
    pub(crate) fn is_stateless(&self) -> bool {
        self.running.peer_info().is_some_and(|info| !info.protocol_version.has_initialize())
    }

    /// Returns the server's capabilities, without those that the gateway does not pass through.
    pub(crate) fn capabilities(&self) -> ServerCapabilities {
        let mut capabilities = self.running.peer_info().map(|info| info.capabilities.clone()).unwrap_or_default();
        if !self.is_stateless() {
            without_tasks(&mut capabilities.extensions);
        }
        capabilities
    }

    /// Sends a request of the gateway itself, with the metadata of an earlier request of the client.
    pub(crate) async fn send(
        &self,
        request: ClientRequest,
        clients: &RequestMetaObject,
    ) -> Result<ServerResult, ServiceError> {
        let options = PeerRequestOptions::no_options().with_meta(self.meta(clients));
        self.peer().send_cancellable_request(request, options).await?.await_response().await
    }

    pub(crate) fn notifications(&self) -> broadcast::Receiver<ServerNotification> {
        self.notifications.subscribe()
    }

    /// Forwards a request of the client with its metadata and progress. It is canceled if the client cancels or the
    /// time is over.
    pub(crate) async fn forward(
        &self,
        mut request: ClientRequest,
        context: &RequestContext<RoleServer>,
        timeout: Option<Duration>,
    ) -> Result<ServerResult, ServiceError> {
        let options = PeerRequestOptions::no_options().with_meta(self.meta(&context.meta));
        let token = context.meta.get_progress_token();
        let mut reports = token.is_some().then(|| progress::follow(&mut request));
        let mut handle = self.peer().send_cancellable_request(request, options).await?;
        let expired = async {
            match timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(expired);
        let reason = loop {
            let next = async {
                match &mut reports {
                    Some(reports) => reports.recv().await,
                    None => None,
                }
            };
            tokio::select! {
                biased;
                Some(report) = next => hand_on(report, token.as_ref(), context).await,
                answer = &mut handle.rx => {
                    return answer.unwrap_or(Err(ServiceError::TransportClosed)).map(complete);
                }
                () = context.ct.cancelled() => break "the client canceled the request",
                () = &mut expired => break "the time that the decision allows is over",
            }
        };
        let reason = Some(reason.to_owned());
        handle.cancel(reason.clone()).await?;
        Err(ServiceError::Cancelled { reason })
    }

    /// Returns the metadata for a forwarded request. The connection has its own version and progress token, and a
    /// server with sessions knows the client from the handshake.
    fn meta(&self, clients: &RequestMetaObject) -> RequestMetaObject {
        let mut meta = clients.clone();
        let object = &mut meta.0.0;
        object.remove("progressToken");
        object.remove("io.modelcontextprotocol/protocolVersion");
        if !self.is_stateless() {
            object.retain(|key, _| !key.starts_with("io.modelcontextprotocol/"));
        }
        meta
    }
}

impl Service<RoleClient> for Downlink {
    async fn handle_request(
        &self,
        request: ServerRequest,
        _context: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        if matches!(request, ServerRequest::PingRequest(_)) {
            return Ok(ClientResult::empty(()));
        }
        let Some(client) = &self.client else {
            let message = "the client accepts no requests of a server in its revision of the protocol";
            return Err(ErrorData::invalid_request(message, None));
        };
        client.send_request(request).await.map_err(error_of)
    }

    async fn handle_notification(
        &self,
        notification: ServerNotification,
        _context: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        if matches!(notification, ServerNotification::ToolListChangedNotification(_)) {
            self.catalogue.expire();
        }
        if matches!(notification, ServerNotification::CancelledNotification(_)) {
            return Ok(());
        }
        // There may be no listener.
        let _ = self.notifications.send(notification.clone());
        match &self.client {
            Some(client) => sent(client.send_notification(notification).await),
            None => Ok(()),
        }
    }

    fn get_info(&self) -> ClientConfig {
        self.info.clone()
    }
}

/// Returns the parameters of a call for the server, without those of the client's round trips with the gateway.
pub(crate) fn parameters(
    tool: &str,
    arguments: Option<serde_json::Map<String, serde_json::Value>>,
) -> CallToolRequestParams {
    let params = CallToolRequestParams::new(tool.to_owned());
    match arguments {
        Some(arguments) => params.with_arguments(arguments),
        None => params,
    }
}

/// Marks a result as complete, as revision 2026-07-28 requires and older servers omit. The SDK removes the mark for
/// older clients.
fn complete(mut result: ServerResult) -> ServerResult {
    let kind = match &mut result {
        ServerResult::CallToolResult(result) => &mut result.result_type,
        ServerResult::CompleteResult(result) => &mut result.result_type,
        ServerResult::GetPromptResult(result) => &mut result.result_type,
        ServerResult::ListPromptsResult(result) => &mut result.result_type,
        ServerResult::ListResourceTemplatesResult(result) => &mut result.result_type,
        ServerResult::ListResourcesResult(result) => &mut result.result_type,
        ServerResult::ReadResourceResult(result) => &mut result.result_type,
        _ => return result,
    };
    kind.get_or_insert(ResultType::COMPLETE);
    result
}

/// Sends progress on with the token of the client.
async fn hand_on(
    mut report: ProgressNotificationParam,
    token: Option<&ProgressToken>,
    context: &RequestContext<RoleServer>,
) {
    let Some(token) = token else { return };
    report.progress_token = token.clone();
    if let Err(error) = context.peer.notify_progress(report).await {
        tracing::debug!(%error, "progress is not forwarded");
    }
}

/// Converts an error for the other side of a connection.
pub(crate) fn error_of(error: ServiceError) -> ErrorData {
    match error {
        ServiceError::McpError(error) => error,
        other => ErrorData::internal_error(format!("the other side of the gateway: {other}"), None),
    }
}

/// Removes the task extension, which the gateway passes in the stateless revision only.
fn without_tasks(extensions: &mut Option<rmcp::model::ExtensionCapabilities>) {
    if let Some(extensions) = extensions {
        extensions.remove(TASKS_EXTENSION_ID);
    }
}

fn sent(result: Result<(), ServiceError>) -> Result<(), ErrorData> {
    result.map_err(error_of)
}

/// Returns the command of the server, without the gateway's own environment variables, such as its keys.
fn command_of(command: &[OsString]) -> tokio::process::Command {
    let (program, arguments) =
        command.split_first().map_or((OsString::new(), &[][..]), |(one, rest)| (one.clone(), rest));
    let mut made = tokio::process::Command::new(program);
    made.args(arguments);
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"RULEKEEP_") {
            made.env_remove(name);
        }
    }
    made
}

/// Number of notifications that a listener may fall behind before it loses some.
const MOST_NOTIFICATIONS: usize = 64;
