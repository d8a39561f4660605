//! A store with damage that opening does not read: each program answers at once, finds the damage in the background,
//! and from then on refuses decisions.

#![allow(clippy::unwrap_used)] // a fixture that cannot go on fails its test

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::OnceLock;

use rulekeep::{Agent, Durability, Governor, Intent, PolicySet, RiskLevel, Tier};
use serde_json::{Value, json};

use super::setup::Setup;
use super::{call, refuses};

/// A home with an approved escalation and a damaged store.
struct Damaged {
    setup: Setup,
    asked: Value,
}

impl Damaged {
    fn new() -> Self {
        static MADE: OnceLock<Damaged> = OnceLock::new();
        let Self { setup, asked } = MADE.get_or_init(Self::make);
        Self { setup: setup.copied(), asked: asked.clone() }
    }

    fn make() -> Self {
        let setup = Setup::new();
        setup.configure("wait_seconds = 25", "wait_seconds = 0");
        let up = setup.up();
        let refused = setup.hook("gemini", &remove());
        let ticket = refused.stderr.split("Ticket ").nth(1).unwrap().split(':').next().unwrap();
        setup.operate("escalation/approve", &json!({ "id": ticket, "reviewer": "operator" }));
        let asked = setup.ask("escalation/get", &json!({ "id": ticket }));
        drop(up);
        let made = Self { setup, asked };
        made.fill();
        let mut segments: Vec<_> =
            fs::read_dir(made.store().join("journal")).unwrap().map(|file| file.unwrap().path()).collect();
        segments.sort();
        let is_segment = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "rkj" || kind == "rks");
        let segment = segments.into_iter().find(is_segment).unwrap();
        let mut bytes = fs::read(&segment).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&segment, bytes).unwrap();
        made
    }

    /// Decides until the journal has two segments, so that opening does not read the first.
    fn fill(&self) {
        let policies = PolicySet::from_file(self.setup.home().join("policies/policy.toml")).unwrap();
        let builder = Governor::builder().policies(policies).durability(Durability::Buffered);
        let governor = builder.open(self.store()).unwrap();
        governor.agents().register(Agent::new("reader").at_tier(Tier::T3)).unwrap();
        let reads = reads().with_context("text", "x".repeat(34_000));
        for _ in 0..515 {
            governor.enforce(&reads).unwrap();
        }
        governor.close().unwrap();
    }

    fn store(&self) -> PathBuf {
        self.setup.home().join("store")
    }
}

fn reads() -> Intent {
    Intent::new("reader", "read_document", RiskLevel::Low, ["document:read"]).unwrap()
}

fn remove() -> Value {
    json!({
        "session_id": "s1", "cwd": "/home/u/shop", "hook_event_name": "BeforeTool", "tool_name": "run_shell_command",
        "tool_input": { "command": "rm -rf src" }, "transcript_path": "t", "timestamp": "2026-11-25T10:00:00Z",
    })
}

fn says_broken(status: &Value) {
    assert_eq!(status["components"]["proofChain"], "unhealthy", "{status}");
    assert!(status["warnings"].to_string().contains("broken and read-only"), "{status}");
}

#[test]
fn a_daemon_on_a_damaged_store_releases_no_approval() {
    let Damaged { setup, asked } = Damaged::new();
    for _ in 0..2 {
        let _up = setup.up();
        // The claim waits for the verification.
        let claim = json!({ "id": asked["id"], "intent": asked["intent"] });
        assert_eq!(setup.fails("escalation/claim", &claim), "CHAIN_BROKEN");
        refuses(&setup.hook("gemini", &remove()), "broken and read-only");
        refuses(&setup.hook("claude", &call("Read", &json!({ "file_path": "/home/u/shop/a.rs" }))), "read-only");
        says_broken(&setup.json(&["status", "--json"])["status"]);
        let log = fs::read_to_string(setup.home().join("daemon.log")).unwrap();
        assert!(log.contains("the log is broken and read-only"), "{log}");
    }
}

#[test]
fn a_sidecar_on_a_damaged_store_refuses_after_the_check() {
    let damaged = Damaged::new();
    let mut command = damaged.setup.command(&["sidecar", "--store", damaged.store().to_str().unwrap()]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    // The suspension waits for the verification.
    let calls = [
        ("agent/suspend", json!({ "agentId": "reader", "note": "a test" })),
        ("enforce", json!({ "intent": reads() })),
        ("admin/status", json!({})),
    ];
    for (method, params) in calls {
        writeln!(input, "{}", json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).unwrap();
    }
    drop(input);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let answers: Vec<Value> = lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    assert_eq!(answers[0]["error"]["data"]["code"], "CHAIN_BROKEN", "{answers:?}");
    assert_eq!(answers[1]["error"]["data"]["code"], "CHAIN_BROKEN", "{answers:?}");
    says_broken(&answers[2]["result"]);
    let ended = child.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&ended.stderr).contains("the log is broken and read-only"), "{ended:?}");
}

#[test]
fn a_server_on_a_damaged_store_refuses_after_the_check() {
    let damaged = Damaged::new();
    let store = damaged.store();
    let mut command = damaged.setup.command(&["serve", "--listen", "127.0.0.1:0", "--store", store.to_str().unwrap()]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    // The home's key is an administrator's.
    assert_eq!(ready.get("adminKey"), None);
    let address = ready["url"].as_str().unwrap().trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    let ask = |method: &str, path: &str, body: &Value| {
        let (mut stream, body) = (TcpStream::connect(&address).unwrap(), body.to_string());
        let (key, length) = (damaged.setup.key(), body.len());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let suspended = ask("POST", "/v1/admin/agents/reader/suspend", &json!({ "note": "a test" }));
    assert!(suspended.contains("CHAIN_BROKEN"), "{suspended}");
    let decided = ask("POST", "/v1/enforce", &json!({ "intent": reads() }));
    assert!(decided.contains("CHAIN_BROKEN"), "{decided}");
    let health = ask("GET", "/healthz", &json!({}));
    assert!(health.starts_with("HTTP/1.1 503"), "{health}");
    child.kill().unwrap();
    child.wait().unwrap();
}
