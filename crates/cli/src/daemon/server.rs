//! The sockets of the daemon, and the calls that each permits.
//!
//! Agents run as the same user as their operator, so the owner of a socket proves nothing. The agents' socket
//! therefore permits a short list of calls and accepts no key. The operators' socket permits reading calls, and all
//! calls with an API key.

use std::collections::HashSet;
use std::fs;
use std::io::BufReader;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rulekeep::escalation::EscalationId;
use rulekeep::system::{Clock as _, SystemClock};
use rulekeep::{Decision, Error};
use rulekeep_server::calls::Params;
use rulekeep_server::calls::decisions::{DecisionForm, Enforce, Enforced};
use rulekeep_server::calls::escalations::{Answered, Approve};
use rulekeep_server::gateway::Gateway;
use rulekeep_server::{AGENT_SOCKET_CALLS, Access, sidecar};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::connections::{Connections, Place};
use super::pins::Pins;
use crate::home::Home;
use crate::hook::engine::{Engine, HOST_USER};
use crate::store::is_sound;

/// A running daemon.
pub(super) struct Server {
    gateway: Gateway,
    engine: Engine,
    pins: Pins,
    started: Instant,
    agents: Arc<Connections>,
    operators: Arc<Connections>,
    /// Milliseconds from the start to the last call.
    last_call: AtomicU64,
    /// The reason why the daemon ends, once it does.
    ending: Mutex<Option<String>>,
    ended: Condvar,
}

/// The escalations with which a connection asked for a reviewer.
type Asked = Mutex<HashSet<EscalationId>>;

/// The users of a socket.
#[derive(Clone, Copy)]
enum Side {
    Agents,
    Operators,
}

/// The parameters of `session/agent`, which answers the agent that the holder of an API key is.
#[derive(Deserialize, Serialize)]
pub(crate) struct AgentOfKey {
    pub(crate) key: String,
    /// The origin of the key, under which rejected keys are counted.
    pub(crate) caller: String,
}

/// The state of a running daemon.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DaemonStatus {
    pub(super) pid: u32,
    pub(super) uptime_seconds: u64,
    connections: usize,
    version: String,
}

impl Server {
    pub(super) fn new(gateway: Gateway, engine: Engine) -> Self {
        Self {
            gateway,
            engine,
            pins: Pins::default(),
            started: Instant::now(),
            agents: Arc::new(Connections::new(MOST_AGENTS, LONGEST_CALL)),
            operators: Arc::new(Connections::new(MOST_OPERATORS, Duration::ZERO)),
            last_call: AtomicU64::new(0),
            ending: Mutex::new(None),
            ended: Condvar::new(),
        }
    }

    /// Serves both sockets until told to end, or until nobody called for `idle_exit`.
    pub(super) fn run(self: &Arc<Self>, home: &Home, idle_exit: Option<Duration>) -> Result<(), String> {
        for (socket, side) in [(home.agent_socket(), Side::Agents), (home.operator_socket(), Side::Operators)] {
            let listener = bind(&socket)?;
            let server = Arc::clone(self);
            thread::spawn(move || server.accept(&listener, side));
        }
        let mut ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        while ending.is_none() {
            let left = idle_exit.map_or(LONGEST_SLEEP, |idle| idle.saturating_sub(self.idle()));
            if left.is_zero() {
                *ending = Some(format!("no calls for {} minutes", self.idle().as_secs() / 60));
                break;
            }
            let waited = self.ended.wait_timeout(ending, left.min(LONGEST_SLEEP));
            ending = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if let Some(why) = &*ending {
            eprintln!("{} the daemon ends: {why}", SystemClock.now());
        }
        for socket in [home.agent_socket(), home.operator_socket()] {
            fs::remove_file(&socket).map_err(|error| format!("{}: {error}", socket.display()))?;
        }
        Ok(())
    }

    /// Waits until the log is verified, then forgets the conversations that are over.
    pub(super) fn tidy_up(&self) {
        if is_sound(self.gateway.governor()) {
            self.engine.forget_ended();
        }
    }

    /// Makes [`Server::run`] return, for the first reason that is given.
    pub(super) fn end(&self, why: &str) {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| why.to_owned());
        self.ended.notify_all();
    }

    /// The time since the last call; zero while a connection is open.
    fn idle(&self) -> Duration {
        if self.connections() > 0 {
            return Duration::ZERO;
        }
        self.started.elapsed().saturating_sub(Duration::from_millis(self.last_call.load(Ordering::Relaxed)))
    }

    fn note_call(&self) {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_call.store(now, Ordering::Relaxed);
    }

    fn connections(&self) -> usize {
        self.agents.count() + self.operators.count()
    }

    fn accept(self: &Arc<Self>, listener: &UnixListener, side: Side) {
        for stream in listener.incoming() {
            match stream {
                Ok(stream) => self.admit(stream, side),
                Err(_) => self.make_room(side), // no file left to open
            }
        }
    }

    /// Serves a connection on a thread of its own, or answers it with an error.
    fn admit(self: &Arc<Self>, stream: UnixStream, side: Side) {
        let connections = match side {
            Side::Agents => &self.agents,
            Side::Operators => &self.operators,
        };
        let place = match connections.admit(stream) {
            Ok(place) => Arc::new(place),
            Err(stream) => {
                let _ = sidecar::refuse(connections.full(), &stream);
                return;
            }
        };
        for _ in 0..MOST_STARTS {
            let (server, served) = (Arc::clone(self), Arc::clone(&place));
            let started = thread::Builder::new().spawn(move || {
                // A client that disconnected gets no answer; nobody else is affected.
                let _ = server.serve(&served, side);
                server.note_call();
            });
            if started.is_ok() {
                return;
            }
            self.make_room(side);
        }
        let _ = sidecar::refuse(Error::internal("the system starts no thread for this connection"), place.stream());
    }

    /// Waits for files and threads to become free. For an operator, closes a connection of an agent.
    fn make_room(&self, side: Side) {
        thread::sleep(match side {
            Side::Agents => AGENTS_PAUSE,
            Side::Operators => {
                self.agents.close_one();
                OPERATORS_PAUSE
            }
        });
    }

    fn serve(&self, place: &Place, side: Side) -> std::io::Result<()> {
        let access = match side {
            Side::Agents => Access::Only(AGENT_SOCKET_CALLS),
            Side::Operators => Access::Reading,
        };
        let asked = Asked::default();
        let own = |access: &Access, method: &str, params: &mut Params| {
            self.note_call();
            let noted = place.note_call(matches!(access, Access::Key(_)), method == "event/subscribe");
            if let Err(error) = noted {
                return Some(Err(Error::internal(format!("the connection: {error}"))));
            }
            let answer = match (side, method) {
                (Side::Agents, "hook/event") => params.fields().map(|event| json!(self.engine.answer(event))),
                (Side::Agents, "run/claim") => {
                    let profile = params.fields().and_then(|claim| self.engine.claim_run(&claim));
                    // A link can lead to a name that is no text.
                    profile.and_then(|profile| {
                        serde_json::to_value(profile)
                            .map_err(|error| Error::Conflict { message: format!("the profile: {error}") })
                    })
                }
                (Side::Agents, "run/refused") => params.fields().map(|refused| {
                    self.engine.note_refused(refused);
                    json!({})
                }),
                (Side::Agents, "catalogue/load") => {
                    params.call().and_then(|load| self.pins.load(&self.gateway, load)).map(|loaded| json!(loaded))
                }
                (Side::Agents, "catalogue/pin") => {
                    params.call().and_then(|pin| self.pins.pin(&self.gateway, pin)).map(|changed| json!(changed))
                }
                (Side::Agents, "enforce") => {
                    params.call().and_then(|request| self.enforce(request, &asked)).map(|verdict| json!(verdict))
                }
                (Side::Agents, "escalation/approve") => {
                    params.call().and_then(|review| self.agree(review, &asked)).map(|answered| json!(answered))
                }
                (Side::Operators, "session/agent") => params.fields().and_then(|asked: AgentOfKey| {
                    let admitted = self.gateway.admit(Some(&asked.key), &asked.caller)?;
                    admitted.agent().map(|agent| json!(agent))
                }),
                (Side::Operators, "daemon/status") => Ok(json!(self.status())),
                (Side::Operators, "daemon/stop") => access.admin(&self.gateway).map(|()| {
                    self.end("rulekeep down");
                    json!({})
                }),
                _ => return None,
            };
            Some(answer)
        };
        sidecar::serve_as(&self.gateway, access, &own, BufReader::new(place.stream()), place.stream())
    }

    /// Decides on a request in natural language or a tool call. A new agent is registered.
    fn enforce(&self, request: Enforce, asked: &Asked) -> Result<Enforced, Error> {
        let DecisionForm::Input(form) = &request.form else {
            let message = "intents are built by runtimes, not by agents: expected agentId and input";
            return Err(Error::Forbidden { message: message.to_owned() });
        };
        self.engine.register(&form.agent_id)?;
        let verdict = Access::Everything.make(&self.gateway, request)?;
        if verdict.enforcement.decision == Decision::Escalate {
            let id = EscalationId::of(verdict.enforcement.proof_id);
            asked.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        }
        Ok(verdict)
    }

    /// Records that the user at the client agreed to what this connection asked. A connection can answer only what it
    /// asked itself, only as that user, and only for that call: a task may belong to another program.
    fn agree(&self, review: Approve, asked: &Asked) -> Result<Answered, Error> {
        let is_ours = asked.lock().unwrap_or_else(PoisonError::into_inner).contains(&review.id);
        if !is_ours || review.reviewer != HOST_USER || review.for_task.unwrap_or_default() {
            let message = "only an operator approves, with: rulekeep escalations approve";
            return Err(Error::Forbidden { message: message.to_owned() });
        }
        Access::Everything.make(&self.gateway, review)
    }

    fn status(&self) -> DaemonStatus {
        DaemonStatus {
            pid: std::process::id(),
            uptime_seconds: self.started.elapsed().as_secs(),
            connections: self.connections(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// Listens on a socket. Only the owner of the store's lock gets here, so an existing socket file is unused.
fn bind(socket: &Path) -> Result<UnixListener, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", socket.display());
    match fs::remove_file(socket) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let listener = UnixListener::bind(socket).map_err(failed)?;
    fs::set_permissions(socket, fs::Permissions::from_mode(0o600)).map_err(failed)?;
    Ok(listener)
}

/// Largest number of connections of agents.
const MOST_AGENTS: usize = 256;
/// Largest number of connections of operators.
const MOST_OPERATORS: usize = 64;
/// Longest duration of a call of an agent, such as a hook that waits for a reviewer.
const LONGEST_CALL: Duration = Duration::from_secs(10 * 60);
/// Number of attempts to start a thread.
const MOST_STARTS: usize = 100;
/// The time between attempts to serve an operator; shorter than for agents, so that operators come first.
const OPERATORS_PAUSE: Duration = Duration::from_millis(10);
const AGENTS_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_SLEEP: Duration = Duration::from_secs(60);
