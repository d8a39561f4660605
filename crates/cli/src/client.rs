//! Calls to the governor of the home: through the daemon if it runs, otherwise directly on the store.
//!
//! Reading calls need no key; without a daemon they open the store read-only, which does not change it. All other
//! calls need the operator's key; without a daemon they take the store's lock.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rulekeep::checkpoint::CheckpointKey;
use rulekeep::proof::VerificationState;
use rulekeep::{Governor, GovernorBuilder};
use rulekeep_server::Access;
use rulekeep_server::calls::Call;
use rulekeep_server::gateway::Gateway;
use rulekeep_server::sidecar::Authenticate;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::home::Home;
use crate::output::clean;
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
    Daemon(Line),
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
        Ok(Line::operator(home)?.map(Self::Daemon))
    }

    /// Creates a client for reading calls on the store in a folder.
    pub(crate) fn of_folder(store: &Path) -> Result<Self, String> {
        let governor = opened(store)?;
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
        if let Some(line) = Line::operator(home)? {
            line.call::<IgnoredAny>("session/authenticate", &Authenticate { key })?;
            return Ok(Self::Daemon(line));
        }
        let config = home.config()?;
        let governor = home.builder(&config)?.open(home.store()).map_err(describe)?;
        let gateway = Gateway::new(&governor).map_err(describe)?;
        gateway.admit(Some(&key), "local").map_err(describe)?.admin().map_err(describe)?;
        Ok(Self::Store { gateway: Box::new(gateway), access: Access::Key(key) })
    }

    /// Makes a call.
    pub(crate) fn make<C: Call<Answer: DeserializeOwned> + Serialize>(&self, call: C) -> Result<C::Answer, Failure> {
        match self {
            Self::Daemon(line) => line.make::<C, _>(&call),
            Self::Store { gateway, access } => Ok(access.make(gateway, call)?),
        }
    }

    /// Makes a call whose answer is only printed.
    pub(crate) fn make_json<C: Call + Serialize>(&self, call: C) -> Result<Value, Failure> {
        match self {
            Self::Daemon(line) => line.make::<C, _>(&call),
            Self::Store { gateway, access } => Ok(json!(access.make(gateway, call)?)),
        }
    }

    /// The governor of a store that this process has open; `None` if a daemon answers.
    pub(crate) fn governor(&self) -> Option<&Governor> {
        match self {
            Self::Daemon(_) => None,
            Self::Store { gateway, .. } => Some(gateway.governor()),
        }
    }

    /// The connection to the daemon; `None` for a store that this process has open.
    pub(crate) const fn line(&self) -> Option<&Line> {
        match self {
            Self::Daemon(line) => Some(line),
            Self::Store { .. } => None,
        }
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

/// Reads the operator's key from the environment.
fn operator_key() -> Result<String, String> {
    let key = std::env::var(OPERATOR_KEY).ok().filter(|key| !key.is_empty());
    key.ok_or_else(|| format!("this needs the operator key that `rulekeep init` printed; set it as {OPERATOR_KEY}"))
}

/// The environment variable with the operator's key.
pub(crate) const OPERATOR_KEY: &str = "RULEKEEP_OPERATOR_KEY";

/// A connection to the daemon: JSON-RPC, one message per line.
pub(crate) struct Line(Mutex<Connection>);

struct Connection {
    reader: BufReader<UnixStream>,
    last: u64,
}

/// An answer of JSON-RPC, or a notification, which has no ID.
#[derive(Deserialize)]
struct Answer<A> {
    id: Option<u64>,
    result: Option<A>,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    message: String,
    data: Option<Reason>,
}

#[derive(Deserialize)]
struct Reason {
    code: String,
    #[serde(default)]
    details: Value,
}

impl Line {
    /// Connects to the operators' socket; `None` if no daemon runs.
    pub(crate) fn operator(home: &Home) -> Result<Option<Self>, String> {
        home.check_owners()?;
        Self::connect(&home.operator_socket(), None)
    }

    /// Connects to the agents' socket. Fails if no daemon runs.
    pub(crate) fn agent(home: &Home, patience: Option<Duration>) -> Result<Self, Failure> {
        home.check_owners().map_err(unreachable)?;
        let line = Self::connect(&home.agent_socket(), patience).map_err(unreachable)?;
        line.ok_or_else(|| unreachable("the rulekeep daemon does not run; start it with: rulekeep up".to_owned()))
    }

    /// Connects to a socket; `None` if nobody listens. Reads and writes fail after `patience`.
    fn connect(socket: &Path, patience: Option<Duration>) -> Result<Option<Self>, String> {
        let failed = |error| format!("{}: {error}", socket.display());
        let stream = match UnixStream::connect(socket) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                return Ok(None);
            }
            connected => connected.map_err(failed)?,
        };
        stream.set_read_timeout(patience).and_then(|()| stream.set_write_timeout(patience)).map_err(failed)?;
        Ok(Some(Self(Mutex::new(Connection { reader: BufReader::new(stream), last: 0 }))))
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a typed call. Parameters that are `None` are left out, because some calls refuse `null`.
    fn make<C: Call + Serialize, A: DeserializeOwned>(&self, call: &C) -> Result<A, Failure> {
        let mut params = json!(call);
        if let Value::Object(fields) = &mut params {
            fields.retain(|_, value| !value.is_null());
        }
        self.call(C::SPEC.method, &params)
    }

    /// Makes a call by name, for example one that the daemon adds to the protocol.
    pub(crate) fn call<A: DeserializeOwned>(&self, method: &str, params: &impl Serialize) -> Result<A, Failure> {
        let mut connection = self.connection();
        connection.last += 1;
        let id = connection.last;
        let mut line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
        line.push('\n');
        // A daemon that closed the connection may have said why before.
        let unsent = connection.reader.get_ref().write_all(line.as_bytes()).err();
        loop {
            let mut line = String::new();
            let read = connection.reader.read_line(&mut line);
            let read = read.map_err(|error| unreachable(format!("the daemon did not answer: {error}")))?;
            if let (0, Some(error)) = (read, &unsent) {
                return Err(unreachable(format!("the call could not be sent to the daemon: {error}")));
            }
            if read == 0 {
                return Err(unreachable("the daemon ended before it answered".to_owned()));
            }
            let unreadable = |why: &str| unreachable(format!("the daemon's answer cannot be read: {why}"));
            let answer: Answer<A> = serde_json::from_str(&line).map_err(|error| unreadable(&error.to_string()))?;
            match answer {
                // A notification; an error without an ID is about the connection.
                Answer { id: other, error, .. } if other != Some(id) && (other.is_some() || error.is_none()) => {}
                Answer { error: Some(Refusal { message, data }), .. } => {
                    let data = data.unwrap_or_else(|| Reason { code: "INTERNAL".to_owned(), details: Value::Null });
                    return Err(Failure { code: data.code, message, details: data.details });
                }
                Answer { result, .. } => return result.ok_or_else(|| unreadable("it has no result")),
            }
        }
    }

    /// Returns whether the daemon closed the connection. Between calls it sends nothing else to agents.
    pub(crate) fn is_closed(&self) -> bool {
        let connection = self.connection();
        let mut stream = connection.reader.get_ref();
        let read = stream.set_nonblocking(true).and_then(|()| stream.read(&mut [0]));
        stream.set_nonblocking(false).is_err() || !read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }

    /// Waits until the daemon has ended, which closes the connection. Returns false if it is still running after
    /// `patience`.
    pub(crate) fn has_ended(&self, patience: Duration) -> bool {
        let connection = self.connection();
        let mut stream = connection.reader.get_ref();
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
}

fn unreachable(message: String) -> Failure {
    Failure { code: "UNREACHABLE".to_owned(), message, details: Value::Null }
}

/// Opens a store for reading. Damage is told on standard error, and the command that reads on ends with
/// [`has_read_damage`].
pub(crate) fn opened(store: &Path) -> Result<Governor, String> {
    let governor = Governor::open_read_only(store).map_err(describe)?;
    let why = match governor.log().verification() {
        VerificationState::Broken(broken) => broken.to_string(),
        VerificationState::Failed(why) => why,
        _ => return Ok(governor),
    };
    IS_DAMAGED.store(true, Ordering::Relaxed);
    eprintln!("the log is damaged, and what follows may be incomplete: {}; see: rulekeep log verify", clean(&why));
    Ok(governor)
}

/// Returns whether this process has read a damaged log, so that its answer is not to be taken for the whole.
pub(crate) fn has_read_damage() -> bool {
    IS_DAMAGED.load(Ordering::Relaxed)
}

static IS_DAMAGED: AtomicBool = AtomicBool::new(false);

#[cfg(test)]
mod tests {
    use super::*;
    use rulekeep_server::calls::checkpoints::CheckpointNote;

    #[test]
    fn notifications_and_fields_of_a_newer_daemon_are_ignored() {
        let (stream, mut daemon) = UnixStream::pair().unwrap();
        let line = Line(Mutex::new(Connection { reader: BufReader::new(stream), last: 0 }));
        let answers = "{\"jsonrpc\":\"2.0\",\"method\":\"event\",\"params\":{}}\n\
                       {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"note\":\"n\",\"new\":1},\"new\":1}\n\
                       {\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32601,\"message\":\"no method\"}}\n";
        daemon.write_all(answers.as_bytes()).unwrap();
        let made: CheckpointNote = line.call("checkpoint/create", &json!({})).unwrap();
        assert_eq!(made.note, "n");
        let failure = line.call::<Value>("other", &json!({})).unwrap_err();
        assert_eq!(failure.to_string(), "INTERNAL: no method");
    }

    #[test]
    fn a_daemon_that_closes_the_connection_may_say_why() {
        let (stream, mut daemon) = UnixStream::pair().unwrap();
        let line = Line(Mutex::new(Connection { reader: BufReader::new(stream), last: 0 }));
        assert!(!line.is_closed());
        let full = "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32000,\"message\":\"full\"},\"id\":null}\n";
        daemon.write_all(full.as_bytes()).unwrap();
        drop(daemon);
        assert_eq!(line.call::<Value>("enforce", &json!({})).unwrap_err().to_string(), "INTERNAL: full");
        assert!(line.is_closed());
    }
}
