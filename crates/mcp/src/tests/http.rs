//! The listener: requests that it rejects before they are parsed as calls.

use super::fixture::*;
use super::lines::{TOOLS, result, server};
use crate::entry::serve_http;
use crate::{Downstream, Error, ProxyOptions, proxy};
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

#[tokio::test(flavor = "multi_thread")]
async fn contradicting_headers_and_calls_of_web_pages_do_not_pass() {
    let (office, server) = (Office::in_memory(), Server::with(&[("read_page", "Reads a page.")]));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve_http(shared(&office, governed(), &server), listener));
    let (body, call) = (body(), CALL);
    for (headers, status, code, calls) in [
        ("Mcp-Method: tools/call\r\nMcp-Name: other\r\n", 400, Some(-32020), 0),
        ("Mcp-Method: tools/list\r\nMcp-Name: read_page\r\n", 400, Some(-32020), 0),
        ("Mcp-Method: tools/call\r\n", 400, Some(-32020), 0),
        (&format!("{call}Origin: https://evil.example\r\n"), 403, None, 0),
        (call, 200, None, 1),
        (&format!("{call}Origin: http://127.0.0.1:{}\r\n", address.port()), 200, None, 2),
    ] {
        let answer = post(address, "127.0.0.1", headers, &body).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{headers}: {answer}");
        assert!(code.is_none_or(|code| answer.contains(&format!("{code}"))), "{headers}: {answer}");
        assert_eq!(server.calls().len(), calls, "{headers}: {answer}");
    }
    let rebound = post(address, "evil.example", call, &body).await;
    assert!(rebound.starts_with("HTTP/1.1 403 "), "{rebound}");
    assert_eq!(server.calls().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn content_of_an_unknown_kind_passes_as_text() {
    let text = r#"{"content":[{"type":"text","text":"kept"},{"type":"later","x":1}],"isError":true,"foo":1}"#;
    let gateway = before(&Office::in_memory(), governed(), server(TOOLS, result(text)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve_http(gateway, listener));
    let answer = post(address, "127.0.0.1", CALL, &body()).await;
    for part in ["kept", r#""text":"{\"type\":\"later\",\"x\":1}""#, r#""isError":true"#] {
        assert!(answer.contains(part), "{answer}");
    }
}

pub(super) const CALL: &str = "Mcp-Method: tools/call\r\nMcp-Name: read_page\r\n";

/// A call of a client without a session.
pub(super) fn body() -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "raw", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "read_page", "arguments": { "id": "7" }, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
}

pub(super) async fn post(address: SocketAddr, host: &str, headers: &str, body: &Value) -> String {
    let headers = format!(
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: \
         2026-07-28\r\n{headers}"
    );
    send(address, "POST /mcp", host, &headers, Some(body)).await
}

/// Sends a request, and returns the answer as it came, up to the end of the connection.
pub(super) async fn send(address: SocketAddr, line: &str, host: &str, headers: &str, body: Option<&Value>) -> String {
    let (port, body) = (address.port(), body.map(Value::to_string).unwrap_or_default());
    let length = body.len();
    let head = format!(
        "{line} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn options_that_cannot_be_used_are_refused() {
    let open = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let options = |url: &str| ProxyOptions::new(governed(), url, Downstream::Stdio);
    for (options, said) in [
        (ProxyOptions::new(governed(), "http://127.0.0.1:1/mcp", Downstream::Http(open)), "loopback"),
        (options("ftp://127.0.0.1/mcp"), "https://"),
        (options("https://"), "https://"),
        (options("http://127.0.0.1/mcp").header("Authorization", "Bearer \u{7}secret"), "\"Authorization\""),
    ] {
        assert!(!format!("{options:?}").contains("secret"));
        let error = Box::pin(proxy(Office::in_memory(), options)).await.unwrap_err();
        assert!(matches!(&error, Error::Options(text) if text.contains(said) && !text.contains("secret")), "{error}");
    }
}
