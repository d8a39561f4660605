//! State shared by the clients of a gateway, and their connections to the server.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rmcp::model::{ErrorData, Implementation, ServerConfig};
use tokio::time::timeout;

use crate::approval::Pending;
use crate::catalogue::Catalogue;
use crate::governance::Governance;
use crate::seal::Sealer;
use crate::tasks::Tasks;
use crate::upstream::{Client, Connector, Upstream};

/// State shared by all clients of the gateway.
pub(crate) struct Shared {
    pub(crate) governance: Governance,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) pending: Pending,
    pub(crate) sealer: Sealer,
    /// Number of gates so far, one for each session or connection.
    pub(crate) gates: AtomicU64,
    pub(crate) tasks: Tasks,
    connector: Arc<Connector>,
    /// The connection for clients without a session.
    pub(crate) stateless: Line,
}

/// A connection to the server, made at the first request and again after it broke.
#[derive(Default)]
pub(crate) struct Line {
    /// Held while connecting, so that there is only one connection.
    upstream: tokio::sync::Mutex<Option<Arc<Upstream>>>,
    config: RwLock<Option<ServerConfig>>,
}

impl Shared {
    pub(crate) fn new(governance: Governance, connector: Arc<Connector>) -> Result<Self, String> {
        Ok(Self {
            governance,
            catalogue: Arc::default(),
            pending: Pending::default(),
            sealer: Sealer::new()?,
            gates: AtomicU64::new(0),
            tasks: Tasks::default(),
            connector,
            stateless: Line::default(),
        })
    }
}

impl Line {
    pub(crate) async fn open(&self, shared: &Shared, client: &Client) -> Result<Arc<Upstream>, ErrorData> {
        let mut upstream = self.upstream.lock().await;
        if let Some(upstream) = upstream.as_ref().filter(|upstream| !upstream.is_closed()) {
            return Ok(Arc::clone(upstream));
        }
        let connected = shared.connector.connect(client, &shared.catalogue).await.map_err(|error| {
            ErrorData::internal_error(format!("the gateway has no connection to the server: {error}"), None)
        })?;
        // The server's tools may have changed.
        shared.catalogue.expire();
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = Some(config_of(&connected));
        let connected = Arc::new(connected);
        *upstream = Some(Arc::clone(&connected));
        Ok(connected)
    }

    /// The server as the client sees it; `None` before the first connection.
    pub(crate) fn config(&self) -> Option<ServerConfig> {
        self.config.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) async fn close(&self, grace: Duration) {
        // A connection that is being made is dropped with the runtime, and its server with it.
        let Ok(mut upstream) = timeout(LONGEST_LOCK, self.upstream.lock()).await else { return };
        if let Some(upstream) = upstream.take() {
            upstream.close(grace).await;
        }
    }
}

/// The time that closing waits for a connection that is being made.
const LONGEST_LOCK: Duration = Duration::from_secs(1);

/// The server as the client sees it: its name, instructions and capabilities.
fn config_of(upstream: &Upstream) -> ServerConfig {
    let info = upstream.peer().peer_info();
    let mut config = ServerConfig::new(upstream.capabilities());
    if let Some(info) = info {
        config.server_info = info.server_info.clone().unwrap_or_else(own_name);
        config.instructions.clone_from(&info.instructions);
        if info.protocol_version.has_initialize() {
            config.protocol_version = info.protocol_version.clone();
        }
    }
    config
}

pub(crate) fn own_name() -> Implementation {
    Implementation::new("rulekeep-mcp", env!("CARGO_PKG_VERSION"))
}
