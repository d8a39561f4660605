//! Tests of the option that sets the waits between deliveries of webhooks.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

#[test]
fn the_retry_seconds_are_the_waits_between_attempts() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_rulekeep"))
        .args(["sidecar", "--webhook-retry-seconds", "0.5,300", "--allow-private-webhooks"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for (id, method, params) in
        [(1, "webhook/add", json!({ "url": "http://127.0.0.1:9/" })), (2, "webhook/list", json!({}))]
    {
        writeln!(input, "{}", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).unwrap();
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    let answers = String::from_utf8(output.stdout).unwrap();
    let listed: Value = serde_json::from_str(answers.lines().last().expect("two answers")).unwrap();
    assert_eq!(listed["result"]["endpoints"][0]["schedule"], json!([0.5, 300.0]), "{answers}");
}
