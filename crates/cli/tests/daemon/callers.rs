//! The MCP gateway for callers who prove who they are: API keys of the daemon, and access tokens.

#![allow(clippy::unwrap_used)] // a helper that cannot go on fails its test

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use super::setup::Setup;
use super::until;

/// A gateway that ends with the test.
struct Gateway {
    process: Child,
    port: u16,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Gateway {
    fn start(setup: &Setup, options: &[&str]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (upstream, listen) = (upstream(), format!("0.0.0.0:{port}"));
        let fixed = ["mcp", "proxy", &upstream, "--server", "files", "--listen", &listen];
        let fixed = fixed.into_iter().chain(["--public-url", "https://gate.example/mcp"]);
        let arguments: Vec<&str> = fixed.chain(options.iter().copied()).collect();
        let mut process = setup.command(&arguments).stdout(Stdio::null()).spawn().unwrap();
        until(|| {
            assert!(process.try_wait().unwrap().is_none(), "the gateway ended");
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Self { process, port }
    }

    /// Calls a tool. Returns the answer as it came.
    fn call(&self, token: &str) -> String {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "raw", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({ "name": "read_file", "arguments": { "path": "notes.txt" }, "_meta": meta });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: gate.example\r\nContent-Type: application/json\r\nAccept: application/json, \
             text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: read_file\r\n\
             Authorization: Bearer {token}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[track_caller]
    fn answers(&self, token: &str, status: u16, part: &str) {
        let answer = self.call(token);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(part), "{answer}");
        assert!(!answer.contains(token), "{answer}");
    }
}

/// Starts an MCP server over HTTP with one tool. Returns its URL.
fn upstream() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || serve(stream.unwrap()));
        }
    });
    url
}

fn serve(mut stream: TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
            let line = line.trim_end().to_lowercase();
            assert!(!line.starts_with("authorization:"), "a caller's token reached the server");
            length = line.strip_prefix("content-length: ").map_or(length, |length| length.parse().unwrap());
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let request: Value = serde_json::from_slice(&body).ok()?;
        let result = match request["method"].as_str()? {
            "server/discover" => json!({
                "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} }, "ttlMs": 0, "cacheScope": "private",
                "serverInfo": { "name": "files", "version": "1" },
            }),
            "tools/list" => json!({
                "tools": [{ "name": "read_file", "inputSchema": { "type": "object" } }], "ttlMs": 0, "cacheScope": "private",
            }),
            _ => json!({ "content": [{ "type": "text", "text": "done" }] }),
        };
        let mut answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
        answer["result"]["resultType"] = json!("complete");
        let answer = answer.to_string();
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", answer.len());
        stream.write_all(format!("{head}{answer}").as_bytes()).ok()?;
    }
}

fn decisions(setup: &Setup, agent: &str) -> usize {
    let records = setup.ask("proof/query", &json!({ "entityId": agent }));
    records["items"].as_array().unwrap_or_else(|| panic!("{records}")).len()
}

#[test]
fn a_gateway_beyond_loopback_needs_callers_who_prove_themselves() {
    let setup = Setup::new();
    let _up = setup.up();
    let proxy = ["mcp", "proxy", "http://127.0.0.1:9/mcp", "--server", "s", "--listen", "0.0.0.0:0"];
    let url = ["--public-url", "https://gate.example/mcp"];
    for (options, code, said) in [
        (&[][..], 1, "loopback"),
        (&url, 2, "--api-keys"),
        (&["--api-keys"], 2, "--public-url"),
        (&[url[0], url[1], "--issuer", "https://login.example"], 2, "--jwks"),
        (&[url[0], url[1], "--api-keys", "--ask-user"], 2, "--ask-user"),
        (&[url[0], url[1], "--api-keys", "--agent", "desk"], 2, "--agent"),
        (&[url[0], url[1], "--issuer", "https://login.example", "--jwks", "/nonexistent"], 1, "/nonexistent"),
        (&[url[0], "gate.example", "--api-keys"], 1, "public URL"),
    ] {
        let answer = setup.run(&[&proxy[..], options].concat());
        assert!(answer.code == code && answer.stderr.contains(said), "{options:?}: {answer:?}");
    }
}

#[test]
fn the_holder_of_a_key_for_one_agent_is_that_agent() {
    let setup = Setup::new();
    let _up = setup.up();
    let gateway = Gateway::start(&setup, &["--api-keys"]);
    let create = |more: Value| {
        let mut params = json!({ "scope": "agent", "plan": "pro" });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let made = setup.operate("key/create", &params);
        (made["key"].as_str().unwrap().to_owned(), made["id"].clone())
    };
    let ((ann, id), (bob, _)) = (create(json!({ "agents": ["ann"] })), create(json!({ "agents": ["bob"] })));
    gateway.answers(&ann, 200, "done");
    gateway.answers(&ann, 200, "done");
    gateway.answers(&bob, 200, "done");
    assert_eq!((decisions(&setup, "ann"), decisions(&setup, "bob")), (2, 1));
    for unfit in [create(json!({})).0, create(json!({ "agents": ["ann", "bob"] })).0, setup.key().to_owned()] {
        gateway.answers(&unfit, 403, "limited to a single agent");
    }
    gateway.answers("rkp_agent_0", 401, "not known");
    gateway.answers("a.b.c", 401, "not known");
    setup.operate("key/revoke", &json!({ "id": id }));
    gateway.answers(&ann, 401, "revoked");
    let (busy, _) = create(json!({ "agents": ["busy"], "plan": { "perMinute": 1, "burst": 1 } }));
    gateway.answers(&busy, 200, "done");
    gateway.answers(&busy, 429, "retry-after: 60");
    setup.down();
    gateway.answers(&bob, 503, "cannot check callers");
    let _up = setup.up();
    gateway.answers(&bob, 200, "done");
}

#[test]
fn the_subject_of_an_access_token_is_an_agent() {
    let samples: Value = serde_json::from_str(include_str!("../../../server/tests/data/tokens.json")).unwrap();
    let setup = Setup::new();
    let _up = setup.up();
    let jwks = setup.home().join("jwks.json");
    std::fs::write(&jwks, samples["jwks"].to_string()).unwrap();
    let (issuer, jwks_path) = (samples["issuer"].as_str().unwrap(), jwks.to_str().unwrap());
    let options = ["--issuer", issuer, "--jwks", jwks_path, "--scope", "mcp:call", "--agent-prefix", "team/"];
    let gateway = Gateway::start(&setup, &options);
    let token = |name: &str| samples["accepted"][name].as_str().unwrap();
    gateway.answers(token("live"), 200, "done");
    gateway.answers(token("live, of bob"), 200, "done");
    assert_eq!((decisions(&setup, "team/ann"), decisions(&setup, "team/bob")), (1, 1));
    gateway.answers(token("live, without scopes"), 403, "insufficient_scope");
    gateway.answers(token("live, odd subject"), 403, "names no agent");
    gateway.answers(token("ES256"), 401, "not valid yet");
    for (name, sample) in samples["refused"].as_object().unwrap() {
        let answer = gateway.call(sample[1].as_str().unwrap());
        assert!(answer.starts_with("HTTP/1.1 401 ") && answer.contains("invalid_token"), "{name}: {answer}");
    }
    gateway.answers(setup.key(), 401, "invalid_token");
    std::fs::write(&jwks, "{").unwrap();
    gateway.answers(token("live"), 503, "cannot check callers");
    std::fs::write(&jwks, json!({ "keys": [samples["jwks"]["keys"][0]] }).to_string()).unwrap();
    gateway.answers(token("live"), 401, "kid");
}
