//! Callers that prove who they are.

use super::approvals::approve;
use super::fixture::*;
use super::http::{CALL, body, post, send};
use crate::governance::Governance;
use crate::remote::{self, Callers, MOST_SESSIONS, Refused, Remote};
use crate::shared::Shared;
use crate::upstream::Connector;
use crate::{Calls, Error};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rulekeep::{Agent, ProofQuery, Tier};
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

/// Callers whose token says what becomes of them.
struct Told;

impl Callers for Told {
    fn agent(&self, token: &str, peer: IpAddr) -> Result<String, Refused> {
        assert!(peer.is_loopback());
        let why = || "it \"is\" so".to_owned();
        match token {
            "few" => Err(Refused::Scope(why())),
            "nobody" => Err(Refused::Caller(why())),
            "often" => Err(Refused::Busy(why())),
            "unknown" => Err(Refused::Unchecked(why())),
            token => token.strip_prefix("as-").map(str::to_owned).ok_or_else(|| Refused::Token(why())),
        }
    }
}

fn remote() -> Remote {
    let scopes = ["mcp:call".to_owned(), "mcp:read".to_owned()];
    Remote::new("https://gate.example/mcp", Arc::new(Told)).issuer("https://login.example", scopes)
}

/// Serves callers in front of what the connector reaches.
async fn served(office: &Arc<Office>, connector: Connector) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (office, connector) = (Arc::clone(office), Arc::new(connector));
    let make = move |agent| {
        let calls = Arc::clone(&office) as Arc<dyn Calls>;
        Shared::new(Governance::new(calls, governed().agent(agent)), Arc::clone(&connector))
    };
    tokio::spawn(async move { remote::serve(listener, remote(), make).await.unwrap() });
    address
}

const TOOLS: &[(&str, &str)] = &[("read_page", "Reads a page."), ("send_email", "Sends an email.")];

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_without_a_valid_token_is_not_served() {
    let (office, server) = (Office::in_memory(), Server::with(TOOLS));
    let address = served(&office, connector(&server)).await;
    let metadata = "resource_metadata=\"https://gate.example/.well-known/oauth-protected-resource/mcp\"";
    let scope = "scope=\"mcp:call mcp:read\"";
    for (headers, status, challenge) in [
        ("", 401, Some(format!("Bearer {scope}, {metadata}"))),
        ("Authorization: Basic YTpi\r\n", 401, Some(format!("Bearer {scope}, {metadata}"))),
        ("Authorization: Bearer \r\n", 401, Some(format!("Bearer {scope}, {metadata}"))),
        ("Authorization: Bearer as-a\r\nAuthorization: Bearer as-b\r\n", 401, None),
        (
            "Authorization: Bearer wrong\r\n",
            401,
            Some(format!("Bearer error=\"invalid_token\", error_description=\"it 'is' so\", {scope}, {metadata}")),
        ),
        ("Authorization: Bearer few\r\n", 403, Some("Bearer error=\"insufficient_scope\"".to_owned())),
        ("Authorization: Bearer nobody\r\n", 403, None),
        ("Authorization: Bearer often\r\n", 429, None),
        ("Authorization: Bearer unknown\r\n", 503, None),
    ] {
        let answer = post(address, "gate.example", &format!("{CALL}{headers}"), &body()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{headers}: {answer}");
        assert!(
            challenge.is_none_or(|text| answer.contains(&format!("www-authenticate: {text}"))),
            "{headers}: {answer}"
        );
    }
    assert!(server.calls().is_empty() && office.count("enforce") == 0);
    for (host, more, status) in [
        ("gate.example", "", 200),
        ("127.0.0.1", "", 200),
        ("evil.example", "", 403),
        ("gate.example", "Origin: https://evil.example\r\n", 403),
        ("gate.example", "Origin: https://gate.example\r\n", 200),
    ] {
        let answer = post(address, host, &format!("{CALL}Authorization: bearer as-a\r\n{more}"), &body()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{host} {more}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_caller_is_an_agent_with_approvals_of_its_own() {
    let (office, server) = (Office::in_memory(), Server::with(TOOLS));
    office.governor.agents().register(Agent::new("b").at_tier(Tier::T5)).unwrap();
    let address = served(&office, connector(&server)).await;
    let ask = async |agent: &str, tool: &str| {
        let mut body = body();
        body["params"]["name"] = json!(tool);
        let headers = format!("Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\nAuthorization: Bearer as-{agent}\r\n");
        post(address, "gate.example", &headers, &body).await
    };
    let records = |agent: &str| office.governor.query(&ProofQuery::entity(agent)).unwrap().items.len();
    assert!(ask("a", "read_page").await.contains("done"));
    assert_eq!((records("a"), records("b")), (1, 0));
    assert!(ask("b", "read_page").await.contains("done"));
    assert_eq!((records("a"), records("b")), (1, 1));
    assert!(ask("a", "send_email").await.contains("ESCALATE"));
    approve(&office);
    assert!(ask("b", "send_email").await.contains("ESCALATE"), "an approval of another caller");
    assert!(ask("a", "send_email").await.contains("done"));
    assert_eq!(server.calls(), ["read_page", "read_page", "send_email"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_one_caller_is_of_no_use_to_another() {
    let (office, server) = (Office::in_memory(), Server::with(TOOLS));
    let address = served(&office, connector(&server)).await;
    let request =
        |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let client = json!({ "name": "raw", "version": "1" });
    let open = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let old = "MCP-Protocol-Version: 2025-06-18\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    let owner = format!("{old}Authorization: Bearer as-a\r\n");
    let opened = send(address, "POST /mcp", "gate.example", &owner, Some(&request("initialize", open.clone()))).await;
    let session = opened.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect(&opened).to_owned();
    for (token, status) in [("as-b", 404), ("as-a", 200), ("wrong", 401)] {
        let headers = format!("{old}Authorization: Bearer {token}\r\nMcp-Session-Id: {session}\r\n");
        let answer = send(address, "POST /mcp", "gate.example", &headers, Some(&request("ping", json!({})))).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{token}: {answer}");
    }
    // Of sessions an agent has a bounded number, which others do not feel.
    let start = async |token: &str| {
        let headers = format!("{old}Authorization: Bearer {token}\r\n");
        let answer =
            send(address, "POST /mcp", "gate.example", &headers, Some(&request("initialize", open.clone()))).await;
        answer.split_whitespace().nth(1).unwrap_or_default().to_owned()
    };
    for _ in 1..MOST_SESSIONS {
        assert_eq!(start("as-a").await, "200");
    }
    assert_eq!((start("as-a").await, start("as-b").await), ("429".to_owned(), "200".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metadata_names_the_authorization_server() {
    let address = served(&Office::in_memory(), connector(&Server::default())).await;
    let get = async |path: &str| send(address, &format!("GET {path}"), "gate.example", "", None).await;
    let answer = get("/.well-known/oauth-protected-resource/mcp").await;
    let document: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let expected = json!({
        "resource": "https://gate.example/mcp", "authorization_servers": ["https://login.example"],
        "bearer_methods_supported": ["header"], "scopes_supported": ["mcp:call", "mcp:read"],
    });
    assert_eq!(document, expected);
    assert!(get("/.well-known/oauth-protected-resource/other").await.starts_with("HTTP/1.1 404 "));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_of_a_caller_does_not_reach_the_server() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let upstream = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", upstream.local_addr().unwrap());
    let connector = Connector::Http(StreamableHttpClientTransportConfig::with_uri(url));
    let address = served(&Office::in_memory(), connector).await;
    let headers = format!("{CALL}Authorization: Bearer as-a\r\n");
    tokio::spawn(async move { post(address, "gate.example", &headers, &body()).await });
    let connection = tokio::time::timeout(Duration::from_secs(30), upstream.accept()).await;
    let (mut stream, _) = connection.expect("it connects").unwrap();
    let mut seen = vec![0; 1 << 14];
    let length = stream.read(&mut seen).await.unwrap();
    let seen = String::from_utf8_lossy(&seen[..length]).to_lowercase();
    assert!(seen.starts_with("post /mcp") && !seen.contains("authorization") && !seen.contains("as-a"), "{seen}");
}

#[tokio::test]
async fn a_public_url_has_a_scheme_and_a_host_and_no_query() {
    for url in [
        "gate.example/mcp",
        "/mcp",
        "ftp://gate.example/mcp",
        "https://gate.example/mcp?x=1",
        "https://gate.example/#x",
        "https://gate.example/{x",
        "https://",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let remote = Remote::new(url, Arc::new(Told));
        let error = remote::serve(listener, remote, |_| Err(String::new())).await.unwrap_err();
        assert!(matches!(error, Error::Options(_)), "{url}: {error}");
    }
}
