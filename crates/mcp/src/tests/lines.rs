//! Lines that no SDK writes: a client and a server that write them as they are.

use super::fixture::*;
use crate::handler::Gate;
use crate::lines::Lines;
use crate::upstream::Connector;
use rmcp::ServiceExt as _;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};

pub(super) const TOOLS: &str = r#"[{"name":"read_page","inputSchema":{"type":"object"}}]"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"read_page","arguments":{}}}"#;

/// A client of the session-based revisions.
struct Raw(BufReader<DuplexStream>);

impl Raw {
    /// Connects to a server with these tools that answers a call with the line that `answer` makes of its id.
    async fn open(office: &Arc<Office>, tools: &str, answer: impl Answer) -> Self {
        let gate = Gate::new(before(office, governed(), server(tools, answer)));
        let (near, far) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(far);
        tokio::spawn(async move { Box::pin(gate.serve(Lines::new(read, write, None))).await.unwrap().waiting().await });
        let mut client = Self(BufReader::new(near));
        let client_info = json!({ "name": "raw", "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client_info });
        let request = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        client.ask(request.to_string()).await;
        client.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        client
    }

    async fn write(&mut self, line: impl AsRef<[u8]>) {
        self.0.get_mut().write_all(&[line.as_ref(), b"\n"].concat()).await.unwrap();
    }

    /// Writes a line, and returns the next one that comes.
    async fn ask(&mut self, line: impl AsRef<[u8]>) -> String {
        self.write(line).await;
        let mut answer = String::new();
        let read = tokio::time::timeout(Duration::from_secs(60), self.0.read_line(&mut answer));
        read.await.expect("there is an answer").unwrap();
        answer.trim_end().to_owned()
    }
}

pub(super) trait Answer: Fn(&Value) -> Vec<u8> + Clone + Send + Sync + 'static {}
impl<F: Fn(&Value) -> Vec<u8> + Clone + Send + Sync + 'static> Answer for F {}

/// An answer with this result.
pub(super) fn result(result: impl AsRef<[u8]>) -> impl Answer {
    let result = result.as_ref().to_vec();
    move |id| [format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#).as_bytes(), &result, b"}"].concat()
}

pub(super) fn server(tools: &str, answer: impl Answer) -> Connector {
    let tools = tools.to_owned();
    Connector::Stream(Box::new(move || {
        let (near, far) = tokio::io::duplex(1 << 16);
        let (tools, answer) = (tools.clone(), answer.clone());
        tokio::spawn(async move {
            let (read, mut write) = tokio::io::split(far);
            let mut lines = BufReader::new(read).lines();
            write.write_all(b"a line of a log\n{\"level\":\"info\"}\n").await.unwrap();
            while let Ok(Some(line)) = lines.next_line().await {
                let request: Value = serde_json::from_str(&line).unwrap();
                let of_result =
                    |result: &str| format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, request["id"]);
                let line = match request["method"].as_str() {
                    Some("initialize") => {
                        let info = json!({ "name": "raw", "version": "1" });
                        let version = &request["params"]["protocolVersion"];
                        let result =
                            json!({ "protocolVersion": version, "capabilities": { "tools": {} }, "serverInfo": info });
                        of_result(&result.to_string()).into_bytes()
                    }
                    Some("tools/list") => {
                        of_result(&format!(r#"{{"resultType":"complete","tools":{tools}}}"#)).into_bytes()
                    }
                    Some("tools/call") => answer(&request["id"]),
                    _ if request["id"].is_null() => continue,
                    _ => {
                        let error = json!({ "code": -32601, "message": "unknown" });
                        json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }).to_string().into_bytes()
                    }
                };
                write.write_all(&[&line, b"\n".as_slice()].concat()).await.unwrap();
            }
        });
        near
    }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_cannot_be_read_is_answered() {
    let mut client = Raw::open(&Office::in_memory(), TOOLS, result("{}")).await;
    let call = |id: &str, arguments: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"read_page","arguments":{arguments}}}}}"#
        )
    };
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    for (line, id, code) in [
        (call("8", r#"{"a":"\ud800"}"#).into_bytes(), "8", -32602),
        (call("\"a\"", r#"{"a":1e400}"#).into_bytes(), "\"a\"", -32602),
        (call("9", &deep).into_bytes(), "9", -32602),
        (
            [br#"{"method":"ping","params":{"a":""#.as_slice(), b"\xFF", br#""},"jsonrpc":"2.0","id":3}"#].concat(),
            "3",
            -32602,
        ),
        (call("10", r#"{"a":NaN}"#).into_bytes(), "10", -32700),
        (br#"{"method":"ping","params":{"a":NaN},"jsonrpc":"2.0","id":"b"}"#.to_vec(), "\"b\"", -32700),
        (b"no JSON".to_vec(), "null", -32700),
        (br#"{"jsonrpc":"2.0","id":4,"method":"ping""#.to_vec(), "4", -32700),
        (br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#.to_vec(), "1.5", -32600),
        (br#"{"jsonrpc":"2.0","id":9223372036854775808,"method":"ping"}"#.to_vec(), "9223372036854775808", -32600),
        (br#"{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}"#.to_vec(), "null", -32600),
        (br#"{"jsonrpc":"1.0","id":5,"method":"ping"}"#.to_vec(), "5", -32600),
        (br#"[{"jsonrpc":"2.0","id":5,"method":"ping"}]"#.to_vec(), "null", -32600),
        (b"{}".to_vec(), "null", -32600),
    ] {
        let answer = client.ask(&line).await;
        let begin = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"#);
        assert!(answer.starts_with(&begin), "{}: {answer}", String::from_utf8_lossy(&line));
    }
    // A notification and an empty line have no answer.
    client.write(br#"{"jsonrpc":"2.0","method":"x","params":{"a":1e400}}"#).await;
    client.write("\r").await;
    assert!(client.ask(CALL).await.starts_with(r#"{"jsonrpc":"2.0","id":7,"result":"#));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_cannot_be_read_ends_the_call_as_unknown() {
    let deep = format!(r#"{{"content":[],"structuredContent":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    let broken: [&[u8]; 5] = [
        br#"{"content":[{"type":"text","text":"a\ud800b"}]}"#,
        b"{\"content\":[{\"type\":\"text\",\"text\":\"a\xFFb\"}]}",
        br#"{"content":[],"structuredContent":{"a":NaN}}"#,
        br#"{"content":[],"structuredContent":{"a":-1e400}}"#,
        deep.as_bytes(),
    ];
    for broken in broken {
        let last = {
            let broken = broken.to_vec();
            move |id: &Value| {
                [br#"{"result":"#, &*broken, format!(r#","jsonrpc":"2.0","id":{id}}}"#).as_bytes()].concat()
            }
        };
        ends_as_unknown(result(broken)).await;
        ends_as_unknown(last).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_a_result_or_an_id_ends_the_call() {
    ends_as_unknown(|id: &Value| json!({ "jsonrpc": "2.0", "id": id }).to_string().into_bytes()).await;
    let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"unreadable"}}"#;
    let mut client = Raw::open(&Office::in_memory(), TOOLS, move |_: &Value| error.as_bytes().to_vec()).await;
    assert_eq!(client.ask(CALL).await, error.replace("null", "7"));
}

async fn ends_as_unknown(answer: impl Answer) {
    let office = Office::in_memory();
    let mut client = Raw::open(&office, TOOLS, answer).await;
    let answer = client.ask(CALL).await;
    assert!(answer.contains(r#""id":7,"error":{"code":-32603,"#), "{answer}");
    assert_eq!((office.count("outcome/report"), office.outcomes()), (1, vec![Value::Null]));
    let ping = client.ask(r#"{"jsonrpc":"2.0","id":8,"method":"ping"}"#).await;
    assert_eq!(ping, r#"{"jsonrpc":"2.0","id":8,"result":{}}"#, "the connection goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn long_results_pass_and_longer_ones_are_errors() {
    let long = format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, "a".repeat(40 << 20));
    let mut client = Raw::open(&Office::in_memory(), TOOLS, result(&long)).await;
    let answer = client.ask(CALL).await;
    assert!(answer == format!(r#"{{"jsonrpc":"2.0","id":7,"result":{long}}}"#), "{} bytes", answer.len());
    let longer = "a".repeat(65 << 20);
    ends_as_unknown(result(format!(r#"{{"content":[{{"type":"text","text":"{longer}"}}]}}"#))).await;
    ends_as_unknown(move |id: &Value| {
        format!(r#"{{"result":{{"content":[{{"type":"text","text":"{longer}"}}]}},"jsonrpc":"2.0","id":{id}}}"#)
            .into_bytes()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn results_of_calls_pass_unchanged() {
    for text in [
        r#"{"content":[{"type":"text","text":"x","annotations":{"audience":["user"],"z":1}}],"foo":{"bar":1}}"#,
        r#"{"content":[],"structuredContent":{"a":12345678901234567890123,"b":1.0,"c":1e2}}"#,
        r#"{"content":[{"type":"text","text":"kept"},{"type":"later","x":1}],"isError":false}"#,
        r#"{ "content" : [ ] , "structuredContent" : [1,2], "resultType": "complete" }"#,
        r#"{"content":[],"tools":[],"prompts":[]}"#,
        "{}",
    ] {
        let office = Office::in_memory();
        let mut client = Raw::open(&office, TOOLS, result(text)).await;
        assert_eq!(client.ask(CALL).await, format!(r#"{{"jsonrpc":"2.0","id":7,"result":{text}}}"#));
        assert_eq!(office.outcomes(), [json!("SUCCESS")], "{text}");
    }
    let mut client = Raw::open(&Office::in_memory(), TOOLS, result("{\"content\":\r[]}")).await;
    assert!(client.ask(CALL).await.ends_with(r#""result":{"content": []}}"#), "a carriage return ends no line");
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_content_can_be_a_failure_and_a_task_is_no_result() {
    let later = r#"{"content":[{"type":"later"}],"isError":true}"#;
    for (text, outcome) in [
        (later, json!("FAILURE")),
        (r#"{"task":{"taskId":"t","status":"working"}}"#, Value::Null),
        (r#"{"content":[],"resultType":"task","taskId":"t"}"#, Value::Null),
        (r#"{"content":"x"}"#, Value::Null),
        ("[]", Value::Null),
    ] {
        let office = Office::in_memory();
        let mut client = Raw::open(&office, TOOLS, result(text)).await;
        let answer = client.ask(CALL).await;
        assert_eq!(office.outcomes(), [outcome], "{answer}");
        assert_eq!(answer.contains("rulekeep/refusal"), text != later, "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_cannot_be_used_is_left_out_alone() {
    let deep = format!("{}{}", r#"{"a":"#.repeat(61), "1".to_owned() + &"}".repeat(61));
    let (long, large) = ("a".repeat(257), "a".repeat(300_000));
    for (bad, name, why) in [
        (r#"{"name":"bad"}"#, "bad", "inputSchema"),
        (r#"{"name":"bad","inputSchema":true}"#, "bad", "invalid type"),
        (r#"{"name":"bad","inputSchema":{},"annotations":{"readOnlyHint":"true"}}"#, "bad", "invalid type"),
        (r#"{"name":"bad","inputSchema":{}},{"name":"bad","inputSchema":{}}"#, "bad", "2 tools"),
        (r#"{"name":"","inputSchema":{}}"#, "", "name"),
        (r#"{"name":7,"inputSchema":{}}"#, "", "invalid type"),
        ("7", "", "invalid type"),
        (&format!(r#"{{"name":"{long}","inputSchema":{{}}}}"#), long.as_str(), "name"),
        (&format!(r#"{{"name":"bad","inputSchema":{deep}}}"#), "bad", "deep"),
        (&format!(r#"{{"name":"bad","inputSchema":{{}},"description":"{large}"}}"#), "bad", "bytes"),
    ] {
        let tools = TOOLS.replace('[', &format!("[{bad},"));
        let mut client = Raw::open(&Office::in_memory(), &tools, result("{}")).await;
        let listed = client.ask(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#).await;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        assert_eq!(
            (&listed["result"]["tools"][0]["name"], &listed["result"]["tools"][1]),
            (&json!("read_page"), &Value::Null)
        );
        let told = &listed["result"]["_meta"]["rulekeep/leftOut"][0];
        assert_eq!(told["name"], name, "{told}");
        assert!(told["why"].as_str().unwrap().contains(why), "{told}");
        let refused = client.ask(CALL.replace("read_page", name)).await;
        assert!(refused.contains(r#""isError":true"#) && refused.contains("left out"), "{refused}");
        assert_eq!(client.ask(CALL).await, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
    }
}
