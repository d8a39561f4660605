//! `rulekeep mcp`: the gateway between an MCP client and an MCP server, which asks the daemon.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rulekeep_mcp::{CallError, Calls, Downstream, Governed, ProxyOptions, WrapOptions};
use rulekeep_server::calls::tools::{Pin, ToolPinForm};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::callers::CallerOptions;
use crate::client::{Client, Failure, Line};
use crate::exec::{self, Confinement};
use crate::home::Home;
use crate::hook::engine::HOST_USER;

/// A subcommand of `rulekeep mcp`.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Starts an MCP server as a child process, and governs the calls of the client on standard input and output
    Wrap(Wrap),
    /// Governs the calls to an MCP server over streamable HTTP
    Proxy(Proxy),
    /// Accepts the changed definition of a pinned tool; needs the operator's key
    Accept(Accept),
}

/// The options of `rulekeep mcp wrap`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  rulekeep mcp wrap --server files -- cat\n  rulekeep mcp wrap \
                  --server wiki --confine workspace --host wiki.example -- wiki-server")]
pub(crate) struct Wrap {
    #[command(flatten)]
    governed: GovernedOptions,
    /// Runs the server confined, so that it can do no more than this profile permits; Linux only
    #[arg(long, value_name = "PROFILE")]
    confine: Option<Confinement>,
    /// A host that the confined server may reach; can be given several times
    #[arg(long = "host", value_name = "HOST", requires = "confine")]
    hosts: Vec<String>,
    /// The server's program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The options of `rulekeep mcp proxy`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  rulekeep mcp proxy http://127.0.0.1:9/mcp --server wiki")]
pub(crate) struct Proxy {
    #[command(flatten)]
    governed: GovernedOptions,
    /// The URL of the server's MCP endpoint
    url: String,
    /// A header for every request to the server, as NAME: VALUE; can be given several times
    #[arg(long = "header", value_name = "HEADER", value_parser = header)]
    headers: Vec<(String, String)>,
    /// Serves clients over HTTP at this address, under /mcp, instead of on standard input and output; beyond loopback
    /// with --public-url only
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
    #[command(flatten)]
    callers: CallerOptions,
}

/// The options of `rulekeep mcp accept`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  rulekeep mcp accept read_page --server wiki")]
pub(crate) struct Accept {
    /// The name of the tool
    tool: String,
    /// The server of the tool
    #[arg(long)]
    server: String,
}

/// Options of both gateways.
#[derive(clap::Args)]
struct GovernedOptions {
    /// The name of the server; the pins of its tools belong to this name
    #[arg(long)]
    server: String,
    /// The agent that makes the calls
    #[arg(long, default_value = "mcp")]
    agent: String,
    /// The task that the calls belong to
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    /// Treats the client's user as the reviewer host-user: a request that they accept in the client's own dialog is
    /// approved
    #[arg(long)]
    ask_user: bool,
    /// Seconds that a call waits for a reviewer
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    wait: u64,
}

impl GovernedOptions {
    fn governed(self) -> Governed {
        let governed = Governed::new(self.server).agent(self.agent).wait(Duration::from_secs(self.wait));
        let governed = if self.ask_user { governed.user_reviewer(HOST_USER) } else { governed };
        match self.task {
            Some(task) => governed.task(task),
            None => governed,
        }
    }
}

pub(crate) fn run(command: Command) -> Result<ExitCode, String> {
    let home = Home::find()?;
    let command = match command {
        Command::Accept(accept) => {
            let Accept { tool: name, server } = accept;
            let pin = ToolPinForm { name: name.clone(), server: Some(server.clone()), pinned: None };
            Client::operating(&home)?.make_json(Pin::One(pin))?;
            println!("{name} of {server} is pinned as it is now");
            return Ok(ExitCode::SUCCESS);
        }
        command => command,
    };
    let own = home.clone();
    let daemon = Arc::new(Daemon::connect(home)?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    let served = runtime.block_on(async {
        match command {
            Command::Wrap(wrap) => {
                let command = match wrap.confine {
                    Some(confinement) => exec::confining(confinement, &wrap.hosts, wrap.command)?,
                    None => wrap.command,
                };
                rulekeep_mcp::wrap(daemon, WrapOptions::new(wrap.governed.governed(), command)).await
            }
            Command::Proxy(proxy) => {
                let remote = proxy.callers.remote(own).map_err(rulekeep_mcp::Error::Options)?;
                let downstream = match (proxy.listen, remote) {
                    (None, _) => Downstream::Stdio,
                    (Some(address), None) => Downstream::Http(TcpListener::bind(address).await?),
                    (Some(address), Some(remote)) => Downstream::Callers(TcpListener::bind(address).await?, remote),
                };
                let options = ProxyOptions::new(proxy.governed.governed(), proxy.url, downstream);
                let add = |options: ProxyOptions, (name, value)| options.header(name, value);
                rulekeep_mcp::proxy(daemon, proxy.headers.into_iter().fold(options, add)).await
            }
            Command::Accept(_) => Ok(()), // done above
        }
    });
    // Standard input may still be read, by a thread that cannot be stopped.
    runtime.shutdown_timeout(LAST_CALLS);
    served.map(|()| ExitCode::SUCCESS).map_err(|error| error.to_string())
}

/// The daemon, as called by the gateway. The daemon accepts a user's answer only on the connection that asked, so
/// that one stays open; a new one takes its place if the daemon closed it. A waiting call would block later ones, so each
/// wait has a connection of its own.
struct Daemon {
    home: Home,
    line: Mutex<Arc<Line>>,
}

impl Daemon {
    fn connect(home: Home) -> Result<Self, String> {
        let line = Line::agent(&home, None).map_err(|failure| failure.message)?;
        Ok(Self { home, line: Mutex::new(Arc::new(line)) })
    }

    fn line(&self) -> Result<Arc<Line>, Failure> {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        if line.is_closed() {
            *line = Arc::new(Line::agent(&self.home, None)?);
        }
        Ok(Arc::clone(&line))
    }
}

impl Calls for Daemon {
    fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        let failed = |failure: Failure| CallError::new(failure.code, failure.message).with_details(failure.details);
        if method == "escalation/wait" {
            return Line::agent(&self.home, None).and_then(|line| line.call(method, &params)).map_err(failed);
        }
        self.line().and_then(|line| line.call(method, &params)).map_err(failed)
    }
}

/// The time that calls of the daemon have to end, such as reports of outcomes.
const LAST_CALLS: Duration = Duration::from_secs(1);

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("expected NAME: VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}
