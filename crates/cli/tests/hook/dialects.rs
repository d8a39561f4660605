//! Tests each dialect with its fixtures, and the reader with input of all kinds.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use clap::ValueEnum as _;
use proptest::prelude::*;
use rulekeep::Outcome;
use rulekeep_cli::hook::dialects::{Dialect, MAX_INPUT, Probe, read_event};
use rulekeep_cli::hook::event::{EventKind, HookAnswer, HookEvent, Host, HostCall, Ruling};
use serde_json::{Value, json};

#[test]
fn every_fixture_reads_as_its_event_and_gets_its_hosts_answer() {
    let mut kinds = BTreeSet::new();
    for (host, file, fixture) in fixtures() {
        let hook = match fixture.get("hook") {
            Some(hook) => Host::from_str(hook.as_str().unwrap(), false).unwrap(),
            None => host,
        };
        let read = read_event(hook, fixture["input"].to_string().as_bytes());
        if let Some(part) = fixture.get("refused") {
            let answer = read.err().unwrap_or_else(|| panic!("{file} was read"));
            assert!(answer.stderr.contains(part.as_str().unwrap()), "{file}: {answer:?}");
            assert_refused(host, &answer);
            continue;
        }
        let (dialect, event) = read.unwrap_or_else(|answer| panic!("{file}: {answer:?}"));
        assert_eq!(dialect.host(), host, "{file}");
        assert_eq!(told(&event), fixture["event"], "{file}");
        for (name, ruling) in [
            ("allow", Ruling::Allow),
            ("deny", Ruling::Deny("payments to new accounts are denied".to_owned())),
            ("ask", Ruling::Ask("ticket 7Q: ask ops@example.com, then retry".to_owned())),
        ] {
            let answer = serde_json::to_value(dialect.answer(&event, &ruling)).unwrap();
            assert_eq!(answer, fixture["answers"][name], "{file}: {name}");
        }
        kinds.insert((format!("{host:?}"), fixture["event"]["kind"].to_string()));
    }
    for host in Host::value_variants() {
        for kind in ["call", "result", "prompt"] {
            let kind = (format!("{host:?}"), format!("{kind:?}"));
            assert!(kinds.contains(&kind), "no fixture of {kind:?}");
        }
    }
}

#[test]
fn a_byte_order_mark_before_an_event_is_ignored() {
    let event = br#"{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}"#;
    let marked = [b"\xEF\xBB\xBF".as_slice(), event].concat();
    assert_eq!(read_event(Host::Claude, &marked).unwrap().1, read_event(Host::Claude, event).unwrap().1);
}

#[test]
fn input_that_is_no_object_of_unique_keys_is_refused() {
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_INPUT));
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(4096), "]".repeat(4096));
    for input in [
        "",
        " ",
        "null",
        "[]",
        "\"PreToolUse\"",
        "{",
        "{} {}",
        r#"{"hook_event_name":"PreToolUse","tool_name":"Read","tool_name":"Bash","tool_input":{}}"#,
        r#"{"hook_event_name":"PreToolUse","tool_name":"Read","tool_input":{"a":[{"b":1,"b":2}]}}"#,
        large.as_str(),
        deep.as_str(),
    ] {
        for host in Host::value_variants() {
            assert_refused(*host, &read_event(*host, input.as_bytes()).unwrap_err());
        }
    }
}

#[test]
fn a_vscode_event_in_copilots_file_is_refused_in_vscodes_form() {
    for (host, input) in [
        (Host::Copilot, r#"{"sessionId":"s","toolName":"bash"}"#),
        (Host::Vscode, r#"{"sessionId":"s","hookEventName":"PreToolUse","tool_name":"bash"}"#),
    ] {
        assert_refused(host, &read_event(Host::Copilot, input.as_bytes()).unwrap_err());
    }
}

#[test]
fn a_refusal_does_not_repeat_the_arguments_of_the_call() {
    let input = br#"{"hook_event_name":"PreToolUse","tool_name":"Write","tool_input":["hunter2"],"a":"hunter2"}"#;
    let answer = read_event(Host::Claude, input).unwrap_err();
    assert!(!answer.stderr.contains("hunter2"), "{answer:?}");
}

#[test]
fn every_probe_is_a_call_of_its_tool_that_carries_the_mark() {
    for host in Host::value_variants() {
        let dialect = Dialect::of(*host);
        assert!(!dialect.probes().is_empty(), "{host:?}");
        for probe in dialect.probes() {
            let event = dialect.probe_event(probe).to_string();
            let (answering, event) = read_event(*host, event.as_bytes()).unwrap();
            assert_eq!(answering.host(), *host, "{probe:?}");
            let EventKind::Call(call) = event.kind else { panic!("{probe:?} reads as {event:?}") };
            assert_eq!(call.arguments, serde_json::from_str::<Value>(probe.arguments).unwrap());
            assert!(probe.arguments.contains(Probe::MARK), "{probe:?}");
            assert!(probe.tool.ends_with(&call.tool), "{probe:?} reads as {call:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_bytes_on_standard_input_panic_or_pass(input in prop::collection::vec(any::<u8>(), 0..512), host in hosts()) {
        assert_refused(host, &read_event(host, &input).unwrap_err());
    }

    #[test]
    fn an_event_with_any_field_replaced_is_read_or_refused(
        host in hosts(), which in any::<prop::sample::Index>(), field in any::<prop::sample::Index>(), value in values(),
    ) {
        let fixtures = fixtures();
        let mut input = which.get(&fixtures).2["input"].clone();
        let names: Vec<String> = input.as_object().unwrap().keys().cloned().collect();
        input[field.get(&names)] = value;
        match read_event(host, input.to_string().as_bytes()) {
            Err(answer) => assert_refused(Dialect::of_event(host, &input).host(), &answer),
            Ok((_, HookEvent { kind: EventKind::Call(call) | EventKind::Result { call, .. }, .. })) => {
                prop_assert!(!call.tool.is_empty() && call.arguments.is_object(), "{call:?}");
            }
            Ok(_) => {}
        }
    }
}

/// Checks a refusal in the form of a host: only Copilot CLI reads standard output with exit code 2.
fn assert_refused(host: Host, answer: &HookAnswer) {
    let reason = answer.stderr.trim_end();
    assert!(answer.exit == 2 && !reason.is_empty(), "{answer:?}");
    if host == Host::Copilot {
        let said: Value = serde_json::from_str(&answer.stdout).unwrap();
        assert_eq!(said, json!({"permissionDecision": "deny", "permissionDecisionReason": reason}));
    } else {
        assert_eq!(answer.stdout, "", "{host:?}: {answer:?}");
    }
}

fn hosts() -> impl Strategy<Value = Host> {
    prop::sample::select(Host::value_variants())
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,16}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".{0,8}", inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// The fixtures of all hosts: the host, the file and its content.
fn fixtures() -> Vec<(Host, String, Value)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hook/fixtures");
    let mut fixtures = Vec::new();
    for folder in fs::read_dir(root).unwrap() {
        let folder = folder.unwrap().path();
        let host = Host::from_str(folder.file_name().unwrap().to_str().unwrap(), false).unwrap();
        for file in fs::read_dir(folder).unwrap() {
            let file = file.unwrap().path();
            let fixture = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
            fixtures.push((host, file.display().to_string(), fixture));
        }
    }
    fixtures.sort_by(|a, b| a.1.cmp(&b.1));
    fixtures
}

/// An event in the format of the fixtures.
fn told(event: &HookEvent) -> Value {
    let call =
        |call: &HostCall| json!({"id": call.id, "tool": call.tool, "server": call.server, "arguments": call.arguments});
    let mut told = json!({"name": event.name, "session": event.session, "cwd": event.cwd, "subagent": event.subagent});
    let fields = match &event.kind {
        EventKind::Prompt(prompt) => json!({"kind": "prompt", "prompt": prompt}),
        EventKind::Call(of) => json!({"kind": "call", "call": call(of)}),
        EventKind::Result { call: of, result, outcome } => {
            let outcome = outcome.map(Outcome::as_str);
            json!({"kind": "result", "call": call(of), "result": result, "outcome": outcome})
        }
        EventKind::End => json!({"kind": "end"}),
        EventKind::Other => json!({"kind": "other"}),
    };
    told.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    told
}
