//! The options of the two entry points.

use std::ffi::OsString;
use std::time::Duration;

use tokio::net::TcpListener;

use crate::remote::Remote;

/// The governance options of both entry points.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Governed {
    /// The name of the server in the catalog. Pins belong to this name, so it must be the same at each start and
    /// different for each server.
    pub server: String,
    /// The agent that makes the calls; `None` if governance knows it from the connection.
    pub agent_id: Option<String>,
    /// The task that the calls belong to. Its mandate is checked, and results are observed under it.
    pub task_id: Option<String>,
    /// The reviewer in whose name a user's acceptance approves a call. Without one, the user's answer approves
    /// nothing: it only makes the gateway check whether a reviewer has answered elsewhere.
    pub user_reviewer: Option<String>,
    /// The time that a call waits for a reviewer before the client gets a ticket or is asked again. Default: 20
    /// seconds.
    pub wait: Duration,
}

impl Governed {
    /// Creates options for the server of this name, with a wait of 20 seconds.
    pub fn new(server: impl Into<String>) -> Self {
        let wait = Duration::from_secs(20);
        Self { server: server.into(), agent_id: None, task_id: None, user_reviewer: None, wait }
    }

    /// Sets the agent that makes the calls.
    #[must_use]
    pub fn agent(mut self, id: impl Into<String>) -> Self {
        self.agent_id = Some(id.into());
        self
    }

    /// Sets the task that the calls belong to.
    #[must_use]
    pub fn task(mut self, id: impl Into<String>) -> Self {
        self.task_id = Some(id.into());
        self
    }

    /// Sets the reviewer in whose name a user's acceptance approves a call: the person at the client.
    #[must_use]
    pub fn user_reviewer(mut self, name: impl Into<String>) -> Self {
        self.user_reviewer = Some(name.into());
        self
    }

    /// Sets the time that a call waits for a reviewer. Clients commonly give up on a call after 60 seconds.
    #[must_use]
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }
}

/// The options of [`wrap()`](crate::wrap()).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WrapOptions {
    /// The options of governance.
    pub governed: Governed,
    /// The server's program and its arguments.
    pub command: Vec<OsString>,
}

impl WrapOptions {
    /// Creates options that start `command` as the server.
    pub fn new(governed: Governed, command: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self { governed, command: command.into_iter().map(Into::into).collect() }
    }
}

/// The options of [`proxy()`](crate::proxy()).
#[non_exhaustive]
pub struct ProxyOptions {
    /// The options of governance.
    pub governed: Governed,
    /// The URL of the server's MCP endpoint, `https://` or `http://`.
    pub url: String,
    /// Headers of every request to the server, for example `Authorization`. `Debug` does not show them.
    pub headers: Vec<(String, String)>,
    /// The way in which clients connect.
    pub downstream: Downstream,
}

impl ProxyOptions {
    /// Creates options for the server at `url`, with clients connecting through `downstream`.
    pub fn new(governed: Governed, url: impl Into<String>, downstream: Downstream) -> Self {
        Self { governed, url: url.into(), headers: Vec::new(), downstream }
    }

    /// Adds a header to every request to the server.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

impl std::fmt::Debug for ProxyOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("ProxyOptions")
            .field("governed", &self.governed)
            .field("headers", &names)
            .field("downstream", &self.downstream)
            .finish_non_exhaustive()
    }
}

/// The way in which clients connect to the gateway.
#[derive(Debug)]
#[non_exhaustive]
pub enum Downstream {
    /// One client on standard input and output.
    Stdio,
    /// Clients over streamable HTTP on this listener, at the path `/mcp`. It must be bound to a loopback address,
    /// because these clients do not prove who they are, and all of them are the same agent.
    Http(TcpListener),
    /// Callers over streamable HTTP on this listener, at the path `/mcp`, who prove who they are. Each is an agent of
    /// its own, instead of [`Governed::agent_id`].
    Callers(TcpListener, Remote),
}
