//! A server on its own port, and a client that sends exactly the given bytes.
#![allow(dead_code)] // each test crate uses a part of it

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use rulekeep::{Agent, Durability, Governor, GovernorBuilder, Tier};
use rulekeep_server::gateway::{Gateway, KeyDraft, NewKey, Plan, Scope};
use rulekeep_server::http::{Server, ServerError, router};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::common::{Hand, policies};

/// 2027-01-15T12:00:00.000Z.
pub(crate) const NOON: i64 = 1_800_014_400_000;

/// The time after which a client gives up waiting.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Live {
    pub(crate) governor: Governor,
    pub(crate) gateway: Gateway,
    pub(crate) address: SocketAddr,
    /// An admin key, and a key for all agents, both practically without limits.
    pub(crate) admin: String,
    pub(crate) agent: String,
    end: Option<oneshot::Sender<()>>,
    served: Option<JoinHandle<Result<(), ServerError>>>,
}

pub(crate) fn builder(clock: &Hand) -> GovernorBuilder {
    Governor::builder().policies(policies()).clock(clock.clone()).durability(Durability::Buffered)
}

/// A plan practically without limits.
pub(crate) fn wide() -> Plan {
    Plan::enterprise(60_000_000, 1_000_000).unwrap()
}

impl Live {
    /// A store in memory with the small policies, the agents `a` and `b` at T4, and a clock that stands still.
    pub(crate) fn new() -> Self {
        Self::with(Server::new())
    }

    pub(crate) fn with(server: Server) -> Self {
        Self::of(builder(&Hand::at(NOON)).open_in_memory().unwrap(), server)
    }

    pub(crate) fn of(governor: Governor, server: Server) -> Self {
        Self::mounted(governor, server, router)
    }

    /// Serves the given router.
    pub(crate) fn mounted(governor: Governor, server: Server, mount: fn(&Gateway) -> Router) -> Self {
        for agent in ["a", "b"] {
            if governor.agents().get(agent).is_err() {
                governor.agents().register(Agent::new(agent).at_tier(Tier::T4)).unwrap();
            }
        }
        Self::of_gateway(Gateway::new(&governor).unwrap(), server, mount)
    }

    pub(crate) fn of_gateway(gateway: Gateway, server: Server, mount: fn(&Gateway) -> Router) -> Self {
        let governor = gateway.governor().clone();
        let key = |scope| gateway.keys().create(KeyDraft::new(scope, wide())).unwrap().key.expose().to_owned();
        let (admin, agent) = (key(Scope::Admin), key(Scope::Agent));
        let (end, ended) = oneshot::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        let router = mount(&gateway);
        let served = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                tell.send(listener.local_addr().unwrap()).unwrap();
                let shutdown = async {
                    // Dropped if a test does not end the server itself.
                    let _ = ended.await;
                };
                server.serve(listener, router, shutdown).await
            })
        });
        let address = told.recv().unwrap();
        Self { governor, gateway, address, admin, agent, end: Some(end), served: Some(served) }
    }

    /// Asks the server to end.
    pub(crate) fn end(&mut self) {
        if let Some(end) = self.end.take() {
            let _ = end.send(());
        }
    }

    /// The result of the server's end.
    pub(crate) fn ended(mut self) -> Result<(), ServerError> {
        self.end();
        self.served.take().unwrap().join().unwrap()
    }

    pub(crate) fn key(&self, draft: KeyDraft) -> NewKey {
        self.gateway.keys().create(draft).unwrap()
    }

    pub(crate) fn client(&self) -> Client<TcpStream> {
        Client::to(self.address)
    }

    /// Makes a request on its own connection.
    pub(crate) fn ask(&self, asked: &Ask<'_>) -> Answer {
        self.client().ask(asked)
    }

    pub(crate) fn get(&self, path: &str, key: &str) -> Answer {
        self.ask(&Ask::new("GET", path).key(key))
    }

    pub(crate) fn post(&self, path: &str, key: &str, body: &Value) -> Answer {
        self.ask(&Ask::new("POST", path).key(key).json(body))
    }

    /// The number of an agent's records.
    pub(crate) fn records(&self, agent: &str) -> u64 {
        self.governor.stats(agent, ..).unwrap().total_records
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.end();
        if let Some(served) = self.served.take() {
            // Errors are for the test that ends the server itself.
            let _ = served.join();
        }
    }
}

/// A request as written to the connection.
#[derive(Clone)]
pub(crate) struct Ask<'a> {
    method: &'a str,
    path: &'a str,
    headers: Vec<(&'a str, String)>,
    body: Vec<u8>,
}

impl<'a> Ask<'a> {
    pub(crate) fn new(method: &'a str, path: &'a str) -> Self {
        Self { method, path, headers: Vec::new(), body: Vec::new() }
    }

    pub(crate) fn key(self, key: &str) -> Self {
        self.header("Authorization", &format!("Bearer {key}"))
    }

    pub(crate) fn header(mut self, name: &'a str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.raw("application/json", body.to_string())
    }

    pub(crate) fn raw(mut self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self.header("Content-Type", content_type)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\nHost: localhost\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            text.extend([name, ": ", value, "\r\n"]);
        }
        if !self.body.is_empty() || self.method == "POST" {
            text.extend(["Content-Length: ", &self.body.len().to_string(), "\r\n"]);
        }
        [text.as_bytes(), b"\r\n", &self.body].concat()
    }
}

/// A response.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let first = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} occurs twice: {:?}", self.headers);
        first
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The body of a successful response.
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        assert_eq!(self.header("content-type"), Some("application/json"));
        self.json()
    }

    /// Status and code of an error; `200` and an empty code for success.
    pub(crate) fn refusal(&self) -> (u16, String) {
        if self.status == 200 {
            return (200, String::new());
        }
        let body = self.json();
        let code = body["error"]["code"].as_str().unwrap_or_else(|| panic!("{body}"));
        assert!(body["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{body}");
        assert_eq!(body["error"]["requestId"].as_str(), self.header("x-request-id"), "{body}");
        (self.status, code.to_owned())
    }
}

/// A client connection.
pub(crate) struct Client<S> {
    pub(crate) stream: BufReader<S>,
}

impl Client<TcpStream> {
    pub(crate) fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { stream: BufReader::new(stream) }
    }
}

impl<S: Read + Write> Client<S> {
    pub(crate) fn ask(&mut self, asked: &Ask<'_>) -> Answer {
        self.send(asked.bytes()).unwrap();
        self.answer().unwrap()
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes.as_ref())?;
        self.stream.get_mut().flush()
    }

    /// Reads the next response.
    pub(crate) fn answer(&mut self) -> io::Result<Answer> {
        let mut answer = self.head()?;
        let length = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
        answer.body = vec![0; length];
        self.stream.read_exact(&mut answer.body)?;
        Ok(answer)
    }

    /// Reads the head of the next response without its body, for HEAD requests.
    pub(crate) fn head(&mut self) -> io::Result<Answer> {
        let line = self.line()?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("no status: {line:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        Ok(Answer { status, headers, body: Vec::new() })
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    /// Returns whether the server has closed the connection without sending more.
    pub(crate) fn is_closed(&mut self) -> bool {
        match self.stream.read(&mut [0]) {
            Ok(read) => read == 0,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }
}

/// An intent that the small policies allow.
pub(crate) fn reading(agent: &str) -> Value {
    json!({ "intent": {
        "agentId": agent, "parsedAction": "read_document", "riskLevel": "LOW", "requiredCapabilities": ["document:read"],
    } })
}

/// An intent that the small policies escalate.
pub(crate) fn mailing(agent: &str) -> Value {
    json!({ "intent": {
        "agentId": agent, "parsedAction": "send_mail", "riskLevel": "LOW", "requiredCapabilities": ["email:send"],
    } })
}
