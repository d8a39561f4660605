//! Settings of the two entry points.

use std::ffi::OsString;
use std::time::Duration;

use tokio::net::TcpListener;

/// Settings of governance, for both entry points.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Governed {
    /// The name of the server in the catalogue. Pins belong to this name, so it must be the same at each start and
    /// another one for each server.
    pub server: String,
    /// The agent that makes the calls; none where governance knows it by the connection.
    pub agent_id: Option<String>,
    /// The task that the calls belong to. Its mandate is checked, and results are observed under it.
    pub task_id: Option<String>,
    /// The reviewer whose approval an accepted question counts as. Without one, an answer of the user approves nothing:
    /// it makes the gateway look whether a reviewer has answered elsewhere.
    pub user_reviewer: Option<String>,
    /// How long a call waits for a reviewer before it is answered with a ticket or asked again.
    pub wait: Duration,
}

impl Governed {
    /// Settings for the server of this name, with a wait of 20 seconds.
    pub fn new(server: impl Into<String>) -> Self {
        let wait = Duration::from_secs(20);
        Self { server: server.into(), agent_id: None, task_id: None, user_reviewer: None, wait }
    }

    /// The agent that makes the calls.
    #[must_use]
    pub fn agent(mut self, id: impl Into<String>) -> Self {
        self.agent_id = Some(id.into());
        self
    }

    /// The task that the calls belong to.
    #[must_use]
    pub fn task(mut self, id: impl Into<String>) -> Self {
        self.task_id = Some(id.into());
        self
    }

    /// The reviewer whose approval an accepted question counts as: the person who sits at the client.
    #[must_use]
    pub fn user_reviewer(mut self, name: impl Into<String>) -> Self {
        self.user_reviewer = Some(name.into());
        self
    }

    /// How long a call waits for a reviewer. Clients commonly give up a call after 60 seconds.
    #[must_use]
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }
}

/// Settings of [`wrap()`](crate::wrap()).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WrapOptions {
    /// Settings of governance.
    pub governed: Governed,
    /// The program of the server and its arguments.
    pub command: Vec<OsString>,
}

impl WrapOptions {
    /// Starts that command as the server.
    pub fn new(governed: Governed, command: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self { governed, command: command.into_iter().map(Into::into).collect() }
    }
}

/// Settings of [`proxy()`](crate::proxy()).
#[non_exhaustive]
pub struct ProxyOptions {
    /// Settings of governance.
    pub governed: Governed,
    /// The address of the server's MCP endpoint, `https://` or `http://`.
    pub url: String,
    /// Headers of every request to the server, for example `Authorization`. `Debug` does not show them.
    pub headers: Vec<(String, String)>,
    /// Where clients are served.
    pub downstream: Downstream,
}

impl ProxyOptions {
    /// Serves clients there with the server at this address.
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

/// Where clients are served.
#[derive(Debug)]
#[non_exhaustive]
pub enum Downstream {
    /// One client on standard input and output.
    Stdio,
    /// Clients over streamable HTTP on this listener, at the path `/mcp`. It has to be bound to a loopback address: the
    /// gateway does not authenticate its clients, and all of them are the one agent.
    Http(TcpListener),
}
