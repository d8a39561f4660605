//! Malformed requests, two requests in one, and paths that try to be read as others.

use std::time::Duration;

use rulekeep_server::http::Server;

use super::live::{Ask, Live, reading};

/// A server that closes idle connections soon, so that everything it sends has arrived by then.
fn brief() -> Live {
    let soon = Duration::from_millis(300);
    Live::with(Server::new().header_timeout(soon).body_timeout(soon))
}

/// The statuses of all responses to these bytes, and whether the server then closes.
fn statuses(live: &Live, bytes: impl AsRef<[u8]>) -> (Vec<u16>, bool) {
    let mut client = live.client();
    // The server may close before everything is written.
    let _ = client.send(bytes);
    let mut found = Vec::new();
    while let Ok(answer) = client.answer() {
        found.push(answer.status);
    }
    (found, client.is_closed())
}

fn head(live: &Live, more: &str) -> String {
    format!(
        "POST /v1/enforce HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n{more}\r\n\r\n",
        live.agent
    )
}

#[test]
fn a_head_is_bounded_in_size_and_in_number() {
    let live = brief();
    let long = "x".repeat(17 << 10);
    for wrong in [
        Ask::new("GET", "/v1/agents/a").key(&live.agent).header("X-Long", &long),
        Ask::new("GET", "/v1/agents/a").header(&long, "x"),
        Ask::new("GET", &format!("/v1/agents/{long}")).key(&live.agent),
        (0..65).fold(Ask::new("GET", "/v1/agents/a").key(&live.agent), |asked, _| asked.header("X", "y")),
    ] {
        let (found, is_closed) = statuses(&live, wrong.bytes());
        assert!(matches!(found[..], [431 | 414]), "{found:?}");
        assert!(is_closed);
    }
    let many = (0..60).fold(Ask::new("GET", "/v1/agents/a").key(&live.agent), |asked, _| asked.header("X", "y"));
    assert_eq!(live.ask(&many).status, 200);
    let long = Ask::new("GET", "/v1/agents/a").key(&live.agent).header("X", &"x".repeat(15 << 10));
    assert_eq!(live.ask(&long).status, 200);
}

#[test]
fn a_body_has_one_length() {
    let live = brief();
    let body = reading("a").to_string();
    let hidden = Ask::new("POST", "/v1/enforce").key(&live.agent).json(&reading("b")).bytes();
    let hidden = String::from_utf8(hidden).unwrap();
    let length = body.len();
    let chunked = format!("{length:x}\r\n{body}\r\n0\r\n\r\n");
    // The text after the body of a request is not read as a second request.
    for (shape, rest) in [
        (format!("Content-Length: {length}\r\nTransfer-Encoding: chunked"), format!("{chunked}{hidden}")),
        (format!("Transfer-Encoding: chunked\r\nContent-Length: {length}"), format!("{chunked}{hidden}")),
        ("Transfer-Encoding: chunked\r\nContent-Length: 0".to_owned(), format!("{chunked}{hidden}")),
        (format!("Content-Length: {length}\r\nContent-Length: {}", length + hidden.len()), format!("{body}{hidden}")),
        (format!("Content-Length: 0\r\nContent-Length: {length}"), format!("{body}{hidden}")),
        (format!("Content-Length: {length}, {length}"), format!("{body}{hidden}")),
        (format!("Content-Length: +{length}"), format!("{body}{hidden}")),
        (format!("Content-Length: -{length}"), format!("{body}{hidden}")),
        (format!("Content-Length : {length}"), format!("{body}{hidden}")),
        ("Content-Length: 99999999999999999999".to_owned(), format!("{body}{hidden}")),
        ("Transfer-Encoding: chunked, identity".to_owned(), format!("{chunked}{hidden}")),
        ("Transfer-Encoding: gzip".to_owned(), format!("{chunked}{hidden}")),
        ("Transfer-Encoding: xchunked".to_owned(), format!("{chunked}{hidden}")),
        (format!("X: y\r\n Content-Length: {length}"), format!("{body}{hidden}")),
    ] {
        let (found, is_closed) = statuses(&live, format!("{}{rest}", head(&live, &shape)));
        assert!(found.len() <= 1 && is_closed, "{shape:?}: {found:?}");
        assert_eq!(live.records("b"), 0, "{shape:?} let a second request in");
    }
    // The same request is valid if it is unambiguous.
    let once = format!("{}{body}{hidden}", head(&live, &format!("Content-Length: {length}")));
    assert_eq!(statuses(&live, once).0, [200, 200]);
}

#[test]
fn chunks_that_are_none_are_no_body() {
    let live = brief();
    let body = reading("a").to_string();
    let head = head(&live, "Transfer-Encoding: chunked");
    let length = body.len();
    for wrong in [
        "zz\r\n".to_owned(),
        format!("{length}\r\n{body}\r\n0\r\n\r\n"),
        format!("-1\r\n{body}\r\n0\r\n\r\n"),
        format!("fffffffffffffffff\r\n{body}\r\n0\r\n\r\n"),
        format!("{length:x}\r\n{body}0\r\n\r\n"),
        format!("{length:x};{}\r\n{body}\r\n0\r\n\r\n", "x".repeat(20_000)),
        format!("{length:x}\r\n{body}\r\n"),
        format!("{length:x}\r\n{body}\r\n0\r\nX: {}\r\n\r\n", "x".repeat(20_000)),
    ] {
        let (found, is_closed) = statuses(&live, format!("{head}{wrong}"));
        assert!(matches!(found[..], [] | [400 | 408]) && is_closed, "{wrong:.40}: {found:?}");
    }
    assert_eq!(live.records("a"), 0);
    let right = format!("{head}5\r\n{}\r\n{:x};x=y\r\n{}\r\n0\r\nX: y\r\n\r\n", &body[..5], length - 5, &body[5..]);
    assert_eq!(statuses(&live, right).0, [200]);
}

#[test]
fn a_path_is_read_as_it_is_written() {
    let live = brief();
    for path in [
        "//v1/admin/status",
        "/v1//admin/status",
        "/v1/admin//status",
        "/v1/../v1/admin/status",
        "/v1/./admin/status",
        "/v1/agents/../admin/status",
        "/v1/%2e%2e/v1/admin/status",
        "/v1/agents/%2e%2e/admin/status",
        "/v1/admin/status/",
        "/v1/admin/status;a=b",
        "/v1;/admin/status",
        "/v1/admin/status%00",
        "/v1/admin/status%20",
        "/v1/admin%2fstatus",
        "/V1/admin/status",
        "/v1/Admin/status",
        "/v1\\admin\\status",
        "/v1/admin/status.json",
        "/admin/status",
        "/v1/agents/a/",
        "/v1/agents/%ff",
        "/v2/admin/status",
    ] {
        let answer = live.get(path, &live.admin);
        assert_eq!((path, answer.refusal()), (path, (404, "NOT_FOUND".into())));
    }
    for path in ["/v1/agents/..", "/v1/agents/%2e%2e", "/v1/agents/a;b", "/v1/agents/a%2Fb", "/v1/agents/A"] {
        assert_eq!((path, live.get(path, &live.admin).refusal()), (path, (404, "AGENT_NOT_FOUND".into())));
    }
    for path in ["/v1/agents/a%00", "/v1/agents//trust", "/v1/agents/%0d%0aX:y"] {
        assert!(matches!(live.get(path, &live.admin).status, 400 | 404), "{path}");
    }
    for path in ["/v1/admin/%73tatus?x=1#y", "http://elsewhere/v1/agents/a"] {
        assert!(matches!(live.get(path, &live.admin).status, 200 | 400 | 404), "{path}");
    }
}

#[test]
fn what_is_no_request_ends_its_connection_alone() {
    let live = brief();
    let asked = Ask::new("GET", "/v1/agents/a").key(&live.agent);
    live.ask(&asked).ok();
    for wrong in [
        &b"\0\0\0\0\r\n\r\n"[..],
        b"GET /v1/agents/\0 HTTP/1.1\r\n\r\n",
        b"GET /v1/agents/a b HTTP/1.1\r\n\r\n",
        b"GET /v1/agents/a HTTP/1.1\r\nX\0: y\r\n\r\n",
        b"GET /v1/agents/a HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET /v1/agents/a HTTP/7.0\r\n\r\n",
        b"GET\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello of TLS",
        b"CONNECT elsewhere:443 HTTP/1.1\r\nHost: elsewhere\r\n\r\n",
        b"GET * HTTP/1.1\r\n\r\n",
    ] {
        let (found, is_closed) = statuses(&live, wrong);
        assert!(found.iter().all(|status| (400..=505).contains(status)) && is_closed, "{wrong:?}: {found:?}");
        live.ask(&asked).ok();
    }
}

#[test]
fn a_request_is_for_one_host() {
    let live = brief();
    let asked = |version: &str, hosts: &str, path: &str| {
        let head = format!("GET {path} HTTP/{version}\r\n{hosts}Authorization: Bearer {}\r\n\r\n", live.agent);
        let mut client = live.client();
        client.send(head).unwrap();
        client.answer().unwrap().refusal()
    };
    let refused = (400, "INVALID_INPUT".to_owned());
    for path in ["/v1/agents/a", "/openapi.json", "/healthz", "/", "http://x/v1/agents/a", "/nothing"] {
        assert_eq!(asked("1.1", "", path), refused, "{path}");
        assert_eq!(asked("1.1", "Host: x\r\nHost: x\r\n", path), refused, "{path}");
        assert_eq!(asked("1.0", "Host: x\r\nHost: y\r\n", path), refused, "{path}");
    }
    assert_eq!(asked("1.1", "Host: x\r\n", "/v1/agents/a").0, 200);
    assert_eq!(asked("1.1", "Host:\r\n", "/v1/agents/a").0, 200);
    assert_eq!(asked("1.0", "", "/v1/agents/a").0, 200);
}

#[test]
fn a_body_is_coded_in_chunks_or_not_at_all() {
    let live = brief();
    let body = reading("a").to_string();
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for coding in ["gzip, chunked", "identity, chunked", "chunked\r\nTransfer-Encoding: chunked", "gzip"] {
        let head = head(&live, &format!("Transfer-Encoding: {coding}"));
        assert_eq!(statuses(&live, format!("{head}{chunked}")), (vec![400], true), "{coding}");
    }
    let asked = |coding: &str| {
        let asked = Ask::new("POST", "/v1/enforce").key(&live.agent).header("Content-Encoding", coding);
        live.ask(&asked.json(&reading("a")))
    };
    let answer = asked("gzip");
    assert_eq!(answer.refusal(), (415, "UNSUPPORTED_MEDIA_TYPE".into()));
    assert_eq!(answer.header("accept-encoding"), Some("identity"));
    assert_eq!(live.records("a"), 0);
    asked("identity").ok();
    let head = head(&live, "Transfer-Encoding: Chunked");
    assert_eq!(statuses(&live, format!("{head}{chunked}")).0, [200]);
}

#[test]
fn a_query_is_utf8() {
    let live = brief();
    for wrong in ["entityId=%ff", "entityId=a%C3", "entityId=a&x=%ed%a0%80"] {
        let answer = live.get(&format!("/v1/proof/query?{wrong}"), &live.agent);
        assert_eq!((wrong, answer.refusal()), (wrong, (400, "INVALID_QUERY".into())));
    }
    live.get("/v1/proof/query?entityId=%C3%BC", &live.agent).ok();
}
