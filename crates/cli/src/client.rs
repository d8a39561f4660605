//! Calls to the governor of the home: through the daemon if it runs, otherwise directly on the store.
//!
//! Reading calls need no key; without a daemon they open the store read-only, which does not change it. All other
//! calls need the operator's key; without a daemon they take the store's lock.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rulekeep::checkpoint::CheckpointKey;
use rulekeep::{Governor, GovernorBuilder};
use rulekeep_server::Access;
use rulekeep_server::gateway::Gateway;
use serde_json::{Value, json};

use crate::home::Home;
use crate::store::describe;

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The API's error code, for example `AGENT_NOT_FOUND`; `UNREACHABLE` if there was no answer.
    pub(crate) code: String,
    pub(crate) message: String,
    /// Further details, an object or null.
    pub(crate) details: Value,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl From<Failure> for String {
    fn from(failure: Failure) -> Self {
        failure.to_string()
    }
}

impl From<rulekeep::Error> for Failure {
    fn from(error: rulekeep::Error) -> Self {
        Self { code: error.code().to_owned(), message: error.message(), details: error.details().unwrap_or_default() }
    }
}

/// A client for calls to a governor.
pub(crate) enum Client {
    /// Calls go through a socket of the daemon.
    Daemon(Mutex<Line>),
    /// Calls go to a store that this process has open.
    Store {
        /// The gateway on the store.
        gateway: Box<Gateway>,
        /// The calls that are permitted.
        access: Access,
    },
}

impl Client {
    /// Creates a client for reading calls.
    pub(crate) fn reading(home: &Home) -> Result<Self, String> {
        home.check()?;
        if let Some(daemon) = Self::daemon(home)? {
            return Ok(daemon);
        }
        Self::of_folder(&home.store())
    }

    /// Creates a client for reading calls to the daemon; `None` if it does not run.
    pub(crate) fn daemon(home: &Home) -> Result<Option<Self>, String> {
        Ok(Line::connect(&home.operator_socket())?.map(|line| Self::Daemon(Mutex::new(line))))
    }

    /// Creates a client for reading calls on the store in a folder.
    pub(crate) fn of_folder(store: &Path) -> Result<Self, String> {
        let governor = Governor::open_read_only(store).map_err(describe)?;
        let gateway = Gateway::new(&governor).map_err(describe)?;
        Ok(Self::Store { gateway: Box::new(gateway), access: Access::Reading })
    }

    /// Creates a client for all calls on the store in a folder, which must exist. `key` signs its checkpoints.
    pub(crate) fn writing_folder(store: &Path, key: Option<CheckpointKey>) -> Result<Self, String> {
        if !store.join("HEAD").is_file() {
            return Err(format!("{}: there is no store in this folder", store.display()));
        }
        let builder = key.into_iter().fold(Governor::builder(), GovernorBuilder::checkpoints);
        let gateway = Gateway::new(&builder.open(store).map_err(describe)?).map_err(describe)?;
        Ok(Self::Store { gateway: Box::new(gateway), access: Access::Everything })
    }

    /// Creates a client with the operator's key.
    pub(crate) fn operating(home: &Home) -> Result<Self, String> {
        home.check()?;
        let key = operator_key()?;
        if let Some(mut line) = Line::connect(&home.operator_socket())? {
            line.call("session/authenticate", &json!({ "key": key }))?;
            return Ok(Self::Daemon(Mutex::new(line)));
        }
        let config = home.config()?;
        let governor = home.builder(&config)?.open(home.store()).map_err(describe)?;
        let gateway = Gateway::new(&governor).map_err(describe)?;
        gateway.admit(Some(&key), "local").map_err(describe)?.admin().map_err(describe)?;
        Ok(Self::Store { gateway: Box::new(gateway), access: Access::Key(key) })
    }

    /// Creates a client on the agents' socket. Fails if no daemon runs.
    pub(crate) fn agent(home: &Home, patience: Option<Duration>) -> Result<Self, Failure> {
        let failed = |message: String| Failure { code: "UNREACHABLE".to_owned(), message, details: Value::Null };
        let line = Line::connect(&home.agent_socket()).map_err(failed)?;
        let line =
            line.ok_or_else(|| failed("the rulekeep daemon does not run; start it with: rulekeep up".to_owned()))?;
        line.stream().set_read_timeout(patience).map_err(|error| failed(error.to_string()))?;
        line.stream().set_write_timeout(patience).map_err(|error| failed(error.to_string()))?;
        Ok(Self::Daemon(Mutex::new(line)))
    }

    /// Makes a call, for example `proof/query`.
    #[allow(clippy::needless_pass_by_value)] // what is called with it is built for it
    pub(crate) fn call(&self, method: &str, params: Value) -> Result<Value, Failure> {
        match self {
            Self::Daemon(line) => line.lock().unwrap_or_else(PoisonError::into_inner).call(method, &params),
            Self::Store { gateway, access } => Ok(call_on(gateway, access, method, &params)?),
        }
    }

    /// The governor of a store that this process has open; `None` if a daemon answers.
    pub(crate) fn governor(&self) -> Option<&Governor> {
        match self {
            Self::Daemon(_) => None,
            Self::Store { gateway, .. } => Some(gateway.governor()),
        }
    }

    /// Waits until the daemon has ended, which closes the connection. Returns false if it is still running after
    /// `patience`.
    pub(crate) fn has_ended(&self, patience: Duration) -> bool {
        let Self::Daemon(line) = self else { return true };
        let line = line.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stream = line.stream();
        let deadline = Instant::now() + patience;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
                return false;
            }
            match stream.read(&mut [0; 1024]) {
                Ok(0) => return true,
                Ok(_) => {} // a notification
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return true,
            }
        }
    }

    /// Returns whether a daemon answers.
    pub(crate) const fn is_daemon(&self) -> bool {
        matches!(self, Self::Daemon(_))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Self::Store { gateway, .. } = self
            && let Err(error) = gateway.governor().close()
        {
            eprintln!("the store was not closed cleanly: {}", describe(error));
        }
    }
}

/// Makes a call on a gateway of this process.
pub(crate) fn call_on(
    gateway: &Gateway,
    access: &Access,
    method: &str,
    params: &Value,
) -> Result<Value, rulekeep::Error> {
    let answer = access.call(gateway, method, &params.to_string())?;
    serde_json::from_str(answer.get()).map_err(|error| rulekeep::Error::internal(error.to_string()))
}

/// Reads the operator's key from the environment.
fn operator_key() -> Result<String, String> {
    let key = std::env::var(OPERATOR_KEY).ok().filter(|key| !key.is_empty());
    key.ok_or_else(|| format!("this needs the operator key that `rulekeep init` printed; set it as {OPERATOR_KEY}"))
}

/// The environment variable with the operator's key.
pub(crate) const OPERATOR_KEY: &str = "RULEKEEP_OPERATOR_KEY";

/// A connection to the daemon: JSON-RPC, one message per line.
pub(crate) struct Line {
    reader: BufReader<UnixStream>,
    last: u64,
}

impl Line {
    /// Connects to a socket; `None` if nobody listens.
    fn connect(socket: &Path) -> Result<Option<Self>, String> {
        match UnixStream::connect(socket) {
            Ok(stream) => Ok(Some(Self { reader: BufReader::new(stream), last: 0 })),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => Ok(None),
            Err(error) => Err(format!("{}: {error}", socket.display())),
        }
    }

    fn stream(&self) -> &UnixStream {
        self.reader.get_ref()
    }

    fn call(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        let failed = |message: String| Failure { code: "UNREACHABLE".to_owned(), message, details: Value::Null };
        self.last += 1;
        let id = self.last;
        let mut line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
        line.push('\n');
        let written = self.stream().write_all(line.as_bytes());
        written.map_err(|error| failed(format!("the call could not be sent to the daemon: {error}")))?;
        loop {
            let mut answer = String::new();
            match self.reader.read_line(&mut answer) {
                Ok(0) => return Err(failed("the daemon ended before it answered".to_owned())),
                Ok(_) => {}
                Err(error) => return Err(failed(format!("the daemon did not answer: {error}"))),
            }
            let mut answer: Value = serde_json::from_str(&answer)
                .map_err(|error| failed(format!("the daemon's answer is not JSON: {error}")))?;
            if answer["id"] != id {
                continue; // a notification
            }
            if let Some(error) = answer.get("error") {
                return Err(Failure {
                    code: error["data"]["code"].as_str().unwrap_or("INTERNAL").to_owned(),
                    message: error["message"].as_str().unwrap_or_default().to_owned(),
                    details: error["data"]["details"].clone(),
                });
            }
            return Ok(answer["result"].take());
        }
    }
}
