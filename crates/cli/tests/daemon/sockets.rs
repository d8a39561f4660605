//! The limits of the daemon's sockets: no client of a socket shuts an operator out.

#![allow(clippy::unwrap_used)] // in functions that the tests share

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::chown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::setup::Setup;

/// The user `nobody`, to whom only root can give files.
const NOBODY: u32 = 65_534;
/// The limits that the page names.
const MOST_AGENTS: usize = 256;
const MOST_OPERATORS: usize = 64;
const MOST_REGISTERED: usize = 16_384;

fn connect(setup: &Setup, socket: &str) -> UnixStream {
    let stream = UnixStream::connect(setup.home().join(socket)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

fn ask(mut stream: &UnixStream, method: &str, params: &Value) -> Value {
    writeln!(stream, "{}", json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).unwrap();
    answer(stream)
}

fn answer(stream: &UnixStream) -> Value {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

fn is_closed(mut stream: &UnixStream) -> bool {
    stream.read(&mut [0]).unwrap() == 0
}

fn set_kill_switch(setup: &Setup) {
    let operator = connect(setup, "operator.sock");
    assert!(ask(&operator, "session/authenticate", &json!({ "key": setup.key() }))["error"].is_null());
    assert_eq!(setup.operator(&["kill-switch", "set", "--agent", "mcp", "--note", "a drill"]).code, 0);
}

/// The daemon answered neither socket, but an open line still got ALLOW.
#[test]
fn connections_beyond_the_limit_are_told_and_idle_ones_end() {
    let setup = Setup::new();
    let _up = setup.up();
    let agent = connect(&setup, "agent.sock");
    assert!(ask(&agent, "catalogue/list", &json!({}))["error"].is_null());
    let idle: Vec<UnixStream> = (1..MOST_AGENTS).map(|_| connect(&setup, "agent.sock")).collect();
    let refused = connect(&setup, "agent.sock");
    let told = answer(&refused);
    assert_eq!(told["error"]["data"]["code"], "RATE_LIMITED", "{told}");
    assert!(is_closed(&refused));
    set_kill_switch(&setup);
    let asked = json!({ "agentId": "mcp", "input": { "tool": "Read", "arguments": { "file_path": "/tmp/a" } } });
    assert_eq!(ask(&agent, "enforce", &asked)["result"]["decision"], "DENY");
    assert!(idle.iter().all(is_closed));
    assert!(ask(&connect(&setup, "agent.sock"), "catalogue/list", &json!({}))["error"].is_null());
}

#[test]
fn an_operator_is_served_when_agents_hold_every_file() {
    let setup = Setup::new();
    let _up = setup.up_with_files(128);
    let files = format!("/proc/{}/fd", setup.ask("daemon/status", &json!({}))["pid"]);
    let held: Vec<UnixStream> = (0..160).map(|_| connect(&setup, "agent.sock")).collect();
    // The last one is taken by the operators' listener, which waits.
    crate::until(|| std::fs::read_dir(&files).unwrap().count() >= 127);
    set_kill_switch(&setup);
    drop(held);
}

#[test]
fn an_operator_is_served_when_their_socket_is_full() {
    let setup = Setup::new();
    let _up = setup.up();
    let held: Vec<UnixStream> = (0..MOST_OPERATORS).map(|_| connect(&setup, "operator.sock")).collect();
    for stream in &held {
        assert!(ask(stream, "daemon/status", &json!({}))["error"].is_null());
    }
    set_kill_switch(&setup);
    assert!(is_closed(&held[0]));
}

/// The mode alone was checked, so a policy that another user wrote governed the agents of root.
#[test]
fn what_belongs_to_another_user_is_refused() {
    let setup = Setup::new();
    for place in ["", "config.toml", "policies", "policies/policy.toml", "store"] {
        let place = setup.home().join(place);
        if chown(&place, Some(NOBODY), None).is_err() {
            return; // not root
        }
        let event = json!({ "hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt": "Go on" });
        for answer in [setup.run(&["up"]), setup.run(&["status"]), setup.hook("claude", &event)] {
            assert!(answer.code != 0, "{}: {answer:?}", place.display());
            assert!(answer.stderr.contains("belongs to user 65534"), "{}: {answer:?}", place.display());
        }
        chown(&place, Some(0), None).unwrap();
    }
}

#[test]
fn a_client_registers_a_bounded_number_of_agents() {
    let setup = Setup::new();
    let _up = setup.up();
    let client = connect(&setup, "agent.sock");
    let input = json!({ "tool": "Read", "arguments": { "file_path": "/tmp/a" } });
    let enforce = |name: &str| ask(&client, "enforce", &json!({ "agentId": name, "input": input }));
    assert!(enforce("a0")["error"].is_null());
    let others = (1..MOST_REGISTERED)
        .map(|number| json!({ "agentId": format!("a{number}"), "score": 200, "state": "active" }).to_string());
    let lines: Vec<String> = [json!({ "rulekeepAgents": 1 }).to_string()].into_iter().chain(others).collect();
    assert_eq!(setup.operate("agent/import", &json!({ "lines": lines }))["registered"], MOST_REGISTERED - 1);
    let refused = enforce("one-more");
    assert_eq!(refused["error"]["data"]["code"], "FORBIDDEN", "{refused}");
    assert!(enforce("a0")["error"].is_null());
    let hook = setup.hook(
        "claude",
        &json!({
            "hook_event_name": "PreToolUse", "session_id": "s1", "cwd": "/tmp", "tool_name": "Read",
            "tool_input": { "file_path": "/tmp/a" }, "tool_use_id": "t1",
        }),
    );
    assert!(hook.code == 2 && hook.stderr.contains("rulekeep agents register"), "{hook:?}");
    assert_eq!(setup.operator(&["agents", "register", "claude"]).code, 0);
    assert_eq!(setup.ask("agent/list", &json!({}))["total"], MOST_REGISTERED + 1);
}
