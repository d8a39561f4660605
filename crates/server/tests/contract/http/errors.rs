//! The parts common to every response, and the responses to invalid requests.

use rulekeep_server::http::Server;
use serde_json::json;

use super::live::{Ask, Live, NOON, builder, reading};

#[test]
fn every_answer_has_a_request_id_and_a_given_one_comes_back() {
    let live = Live::new();
    let id_of = |asked: Ask<'_>| live.ask(&asked).header("x-request-id").unwrap().to_owned();
    let asked = || Ask::new("GET", "/v1/agents/a").key(&live.agent);
    let made = id_of(asked());
    assert!(made.starts_with("req_") && made.len() == 36, "{made}");
    assert_ne!(made, id_of(asked()), "two requests have one id");
    assert_eq!(id_of(asked().header("X-Request-Id", "mine-7")), "mine-7");
    assert_eq!(id_of(Ask::new("GET", "/v1/agents/a").header("X-Request-Id", "mine-8")), "mine-8");
    assert_eq!(id_of(Ask::new("GET", "/nothing").header("X-Request-Id", "mine-9")), "mine-9");
    for wrong in ["", "two words", "ü", &"x".repeat(129), "a\tb"] {
        let id = id_of(asked().header("X-Request-Id", wrong));
        assert!(id.starts_with("req_"), "{wrong:?} came back as {id:?}");
    }
    assert_eq!(id_of(asked().header("X-Request-Id", &"x".repeat(128))).len(), 128);
}

#[test]
fn the_health_is_told_in_a_word_without_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let live = Live::of(builder(&crate::common::Hand::at(NOON)).open(folder.path()).unwrap(), Server::new());
    let asked = Ask::new("GET", "/healthz");
    let answer = live.ask(&asked);
    assert_eq!((answer.status, answer.json()), (200, json!({ "status": "healthy" })));
    live.governor.close().unwrap();
    let answer = live.ask(&asked);
    assert_eq!((answer.status, answer.json()), (503, json!({ "status": "unhealthy" })));
    assert_eq!(live.ask(&Ask::new("POST", "/healthz")).refusal().0, 405);
}

#[test]
fn no_answer_is_kept_or_guessed_at_on_its_way() {
    let live = Live::new();
    for answer in [live.get("/v1/agents/a", &live.agent), live.get("/v1/agents/a", "x"), live.get("/nothing", "x")] {
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
}

#[test]
fn errors_are_problem_documents_for_who_asks_for_them() {
    let live = Live::new();
    let asked = |accept: &str| {
        live.ask(&Ask::new("GET", "/v1/proof/query?entityId=a&page=0").key(&live.agent).header("Accept", accept))
    };
    for accept in [
        "application/problem+json",
        "text/html, Application/Problem+JSON;q=0.5",
        "application/json;q=0.1,application/problem+json",
    ] {
        let answer = asked(accept);
        assert_eq!((answer.status, answer.header("content-type")), (400, Some("application/problem+json")), "{accept}");
        let problem = answer.json();
        assert_eq!(problem["type"], "urn:rulekeep:error:INVALID_QUERY");
        assert_eq!(
            (&problem["status"], &problem["code"], &problem["title"]),
            (&json!(400), &json!("INVALID_QUERY"), &json!("invalid query"))
        );
        assert_eq!(problem["details"], json!({ "parameter": "page" }));
        assert_eq!(problem["requestId"].as_str(), answer.header("x-request-id"));
        assert!(problem["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{problem}");
    }
    for accept in ["application/json", "*/*", "", "application/problem+json;q=0", "application/problem+json; Q = 0.0"] {
        let answer = asked(accept);
        assert_eq!((answer.status, answer.header("content-type")), (400, Some("application/json")), "{accept}");
        assert_eq!(answer.json()["error"]["details"], json!({ "parameter": "page" }));
    }
    let problem = live.ask(&Ask::new("GET", "/v1/none").header("Accept", "application/problem+json")).json();
    assert_eq!((&problem["status"], &problem["code"]), (&json!(404), &json!("NOT_FOUND")));
    let problem = live.ask(&Ask::new("PUT", "/v1/enforce").header("Accept", "application/problem+json")).json();
    assert_eq!((&problem["status"], &problem["code"]), (&json!(405), &json!("METHOD_NOT_ALLOWED")));
}

#[test]
fn a_path_says_which_methods_it_has() {
    let live = Live::new();
    for (method, path, allowed) in [
        ("GET", "/v1/enforce", "POST"),
        ("DELETE", "/v1/intent", "POST"),
        ("OPTIONS", "/v1/enforce", "POST"),
        ("TRACE", "/v1/enforce", "POST"),
        ("BREW", "/v1/enforce", "POST"),
        ("post", "/v1/enforce", "POST"),
        ("POST", "/v1/proof/query", "GET,HEAD"),
        ("DELETE", "/v1/admin/agents", "GET,HEAD,POST"),
        ("POST", "/v1/admin/policies", "GET,HEAD,PUT"),
        ("GET", "/access/v1/evaluation", "POST"),
    ] {
        let answer = live.ask(&Ask::new(method, path).key(&live.admin));
        assert_eq!(answer.refusal(), (405, "METHOD_NOT_ALLOWED".into()), "{method} {path}");
        let mut found: Vec<&str> = answer.header("allow").unwrap().split(',').map(str::trim).collect();
        found.sort_unstable();
        assert_eq!(found.join(","), allowed, "{method} {path}");
    }
    assert_eq!(live.records("a"), 0);
}

#[test]
fn head_is_get_without_the_body() {
    let live = Live::new();
    let got = live.get("/v1/agents/a", &live.agent);
    let mut client = live.client();
    client.send(Ask::new("HEAD", "/v1/agents/a").key(&live.agent).bytes()).unwrap();
    let head = client.head().unwrap();
    assert_eq!((head.status, head.header("content-length")), (200, Some(got.body.len().to_string().as_str())));
    // No byte of a body precedes the next response.
    assert_eq!(client.ask(&Ask::new("GET", "/v1/agents/a").key(&live.agent)).body, got.body);
    client.send(Ask::new("HEAD", "/v1/agents/a").bytes()).unwrap();
    assert_eq!(client.head().unwrap().status, 401);
}

#[test]
fn only_json_is_read() {
    let live = Live::new();
    let body = reading("a").to_string();
    for wrong in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonp",
        "json",
        "application/json; charset=utf-16",
        "application/json, text/plain",
    ] {
        let answer = live.ask(&Ask::new("POST", "/v1/enforce").key(&live.agent).raw(wrong, body.clone()));
        assert_eq!(answer.refusal(), (415, "UNSUPPORTED_MEDIA_TYPE".into()), "{wrong}");
    }
    let twice = Ask::new("POST", "/v1/enforce").key(&live.agent).header("Content-Type", "application/json");
    assert_eq!(live.ask(&twice.raw("text/plain", body.clone())).refusal().0, 415);
    let none = format!(
        "POST /v1/enforce HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n{body}",
        live.agent,
        body.len()
    );
    let mut client = live.client();
    client.send(none).unwrap();
    assert_eq!(client.answer().unwrap().refusal().0, 415);
    assert_eq!(live.records("a"), 0);
    for right in ["application/json", "Application/Json;charset=\"UTF-8\""] {
        live.ask(&Ask::new("POST", "/v1/enforce").key(&live.agent).raw(right, body.clone())).ok();
    }
}

#[test]
fn what_is_too_large_is_refused_before_it_is_read() {
    let live = Live::new();
    // The largest body that is read, padded with spaces.
    let mut body = reading("a").to_string().into_bytes();
    body.resize(256 << 10, b' ');
    live.ask(&Ask::new("POST", "/v1/enforce").key(&live.agent).raw("application/json", body.clone())).ok();
    let head = format!(
        "POST /v1/enforce HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n",
        live.agent
    );
    // Declared only: no byte of it has to be sent.
    let mut client = live.client();
    client.send(format!("{head}Content-Length: {}\r\n\r\n", body.len() + 1)).unwrap();
    let answer = client.answer().unwrap();
    assert_eq!(answer.refusal(), (413, "PAYLOAD_TOO_LARGE".into()));
    assert_eq!(answer.json()["error"]["details"]["limit"], 256 << 10);
    // In chunks, the last of one byte.
    let mut client = live.client();
    client.send(format!("{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", body.len())).unwrap();
    client.send(&body).unwrap();
    client.send("\r\n1\r\n \r\n0\r\n\r\n").unwrap();
    assert_eq!(client.answer().unwrap().refusal(), (413, "PAYLOAD_TOO_LARGE".into()));
    assert_eq!(live.records("a"), 1);
    // An input has its own limit, counted in bytes.
    let input = |bytes: usize| json!({ "agentId": "a", "input": format!("read {}", "x".repeat(bytes - 5)) });
    live.post("/v1/intent", &live.agent, &input(64 << 10)).ok();
    assert_eq!(
        live.post("/v1/intent", &live.agent, &input((64 << 10) + 1)).refusal(),
        (413, "PAYLOAD_TOO_LARGE".into())
    );
    assert_eq!(
        live.post("/v1/enforce", &live.agent, &input((64 << 10) + 1)).refusal(),
        (413, "PAYLOAD_TOO_LARGE".into())
    );
}

#[test]
fn a_document_is_read_up_to_8_mib() {
    const LIMIT: usize = 8 << 20;
    let live = Live::new();
    let mut document = json!({ "format": "toml", "text": crate::common::POLICIES }).to_string().into_bytes();
    document.resize(LIMIT, b' ');
    let asked =
        |body: Vec<u8>| Ask::new("PUT", "/v1/admin/policies").key(&live.admin).raw("application/json", body).bytes();
    let mut client = live.client();
    client.send(asked(document.clone())).unwrap();
    client.answer().unwrap().ok();
    let head = |method: &str, path: &str, length: &str| {
        format!(
            "{method} /v1{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n{length}\r\n\r\n",
            live.admin
        )
    };
    // In chunks, the last of one byte.
    let mut client = live.client();
    client.send(head("PUT", "/admin/policies", "Transfer-Encoding: chunked")).unwrap();
    client.send(format!("{LIMIT:x}\r\n")).unwrap();
    client.send(&document).unwrap();
    client.send("\r\n1\r\n \r\n0\r\n\r\n").unwrap();
    assert_eq!(client.answer().unwrap().refusal(), (413, "PAYLOAD_TOO_LARGE".into()));
    for (method, path) in [
        ("PUT", "/admin/policies"),
        ("POST", "/admin/policies/validate"),
        ("POST", "/admin/policies/replay"),
        ("POST", "/admin/policies/shadow"),
        ("POST", "/admin/agents/import"),
        ("POST", "/admin/catalogue"),
    ] {
        // More than other bodies may have: it is read, and invalid.
        let mut client = live.client();
        client.send(head(method, path, "Content-Length: 400000")).unwrap();
        client.send("[".repeat(400_000)).unwrap();
        assert_eq!(client.answer().unwrap().refusal().0, 400, "{method} {path}");
        // Declared only: no byte of it has to be sent.
        let mut client = live.client();
        client.send(head(method, path, &format!("Content-Length: {}", LIMIT + 1))).unwrap();
        let answer = client.answer().unwrap();
        assert_eq!(answer.refusal(), (413, "PAYLOAD_TOO_LARGE".into()), "{method} {path}");
        assert_eq!(answer.json()["error"]["details"]["limit"], LIMIT);
    }
}

#[test]
fn json_is_read_in_one_way_or_not_at_all() {
    let live = Live::new();
    let code = |path: &str, body: &str| {
        live.ask(&Ask::new("POST", path).key(&live.agent).raw("application/json", body)).refusal()
    };
    let intent = r#""parsedAction":"read_document","riskLevel":"LOW","requiredCapabilities":["document:read"]"#;
    for twice in [
        format!(r#"{{"intent":{{"agentId":"a",{intent}}},"intent":{{"agentId":"b",{intent}}}}}"#),
        format!(r#"{{"intent":{{"agentId":"a","agentId":"b",{intent}}}}}"#),
        format!(r#"{{"intent":{{"agentId":"a","agent\u0049d":"b",{intent}}}}}"#),
        format!(r#"{{"intent":{{"agentId":"a",{intent},"context":{{"x":{{"y":1,"y":2}}}}}}}}"#),
        r#"{"agentId":"a","agentId":"b","input":"read"}"#.to_owned(),
        r#"{"agentId":"a","input":"read","context":{"environment":"test","environment":"production"}}"#.to_owned(),
    ] {
        assert_eq!(code("/v1/enforce", &twice), (400, "INVALID_INTENT".into()), "{twice}");
    }
    let twice = r#"{"agentId":"a","input":"read","context":{"x":[{"y":1,"y":1}]}}"#;
    assert_eq!(code("/v1/intent", twice), (400, "INVALID_INPUT".into()));
    for wrong in [
        "{",
        "{}}",
        "{'a':1}",
        "{\"a\":1,}",
        "nul",
        "\u{feff}{}",
        "{\"a\":NaN}",
        "{\"a\":\"\u{1}\"}",
        "{\"a\":\"\\ud800\"}",
        "[]",
        "1",
    ] {
        assert_eq!(code("/v1/intent", wrong), (400, "INVALID_INPUT".into()), "{wrong}");
        assert_eq!(code("/v1/enforce", wrong), (400, "INVALID_INTENT".into()), "{wrong}");
    }
    let not_utf8 = Ask::new("POST", "/v1/intent")
        .key(&live.agent)
        .raw("application/json", b"{\"agentId\":\"a\",\"input\":\"\xff\"}".to_vec());
    assert_eq!(live.ask(&not_utf8).refusal(), (400, "INVALID_INPUT".into()));
    assert_eq!(live.records("a") + live.records("b"), 0);
}

#[test]
fn what_is_nested_too_deep_is_refused_however_deep() {
    let live = Live::new();
    let nested = |depth: usize| format!("{}{}", r#"{"a":"#.repeat(depth - 1), "{}") + &"}".repeat(depth - 1);
    let enforce = |depth: usize| {
        let body = format!(r#"{{"agentId":"a","input":"read","context":{}}}"#, nested(depth));
        live.ask(&Ask::new("POST", "/v1/intent").key(&live.agent).raw("application/json", body)).refusal()
    };
    assert_eq!(enforce(32).0, 200);
    for depth in [33, 67, 200, 10_000] {
        assert_eq!(enforce(depth), (400, "INVALID_INPUT".into()), "{depth}");
    }
    for body in ["[".repeat(10_000), r#"{"a":"#.repeat(10_000), format!(r#"{{"intent":{}"#, "[".repeat(10_000))] {
        let asked = Ask::new("POST", "/v1/enforce").key(&live.agent).raw("application/json", body);
        assert_eq!(live.ask(&asked).refusal(), (400, "INVALID_INTENT".into()));
    }
    let intent = format!(
        r#"{{"intent":{{"agentId":"a","parsedAction":"read_document","riskLevel":"LOW","requiredCapabilities":["document:read"],"context":{}}}}}"#,
        nested(33)
    );
    let asked = Ask::new("POST", "/v1/enforce").key(&live.agent).raw("application/json", intent);
    assert_eq!(live.ask(&asked).refusal(), (400, "INVALID_INTENT".into()));
}

/// A client that sends its whole body before it reads anything, as most do.
#[test]
fn a_refusal_reaches_who_is_still_sending_its_body() {
    let live = Live::new();
    let body = vec![b' '; 5 << 20];
    for (path, key, refusal) in [
        ("/v1/enforce", live.agent.as_str(), (413, "PAYLOAD_TOO_LARGE")),
        ("/v1/enforce", "wrong", (401, "UNAUTHORIZED")),
        ("/v1/admin/policies/validate", &live.agent, (403, "FORBIDDEN")),
        ("/v1/nothing", &live.agent, (404, "NOT_FOUND")),
        ("/v1/agents/a", &live.agent, (405, "METHOD_NOT_ALLOWED")),
    ] {
        let asked = Ask::new("POST", path).key(key).raw("application/json", body.clone());
        for attempt in 0..5 {
            let mut client = live.client();
            client.send(asked.bytes()).unwrap_or_else(|error| panic!("{path}, {attempt}: {error}"));
            let answer = client.answer().unwrap_or_else(|error| panic!("{path}, {attempt}: {error}"));
            assert_eq!(answer.refusal(), (refusal.0, refusal.1.to_owned()));
        }
    }
    let chunked = format!(
        "POST /v1/enforce HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nTransfer-Encoding: chunked\r\n\r\n500000\r\n",
        live.agent
    );
    let mut client = live.client();
    client.send([chunked.as_bytes(), &body, b"\r\n0\r\n\r\n"].concat()).unwrap();
    assert_eq!(client.answer().unwrap().status, 413);
}
