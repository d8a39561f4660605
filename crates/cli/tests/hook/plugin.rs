//! The plugin for opencode, run by Node as opencode runs it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rulekeep_cli::hook::dialects::read_event;
use rulekeep_cli::hook::event::{EventKind, Host};
use rulekeep_cli::hook::install::{Scope, apply, plan_install};

use crate::programs;

/// The actions of opencode in a session of the user and in one of a sub-agent. It prints a line for each hook: `ok`
/// or its error.
const SESSION: &str = r#"
import { Rulekeep } from "./rulekeep.mjs"
const parents = { ses_1: undefined, ses_2: "ses_1" }
const get = async ({ path }) => (path.id in parents ? { data: { id: path.id, parentID: parents[path.id] } } : {})
const hooks = await Rulekeep({ client: { session: { get } }, directory: "/projects/shop" })
const say = (promise) => promise.then(() => console.log("ok"), (error) => console.log(error.message))
const parts = [{ type: "text", text: "Pay it" }, { type: "text", text: "hidden", synthetic: true }, { type: "file" }]
const call = { tool: "bash", callID: "call_1" }
await say(hooks["chat.message"]({ sessionID: "ses_1" }, { parts }))
await say(hooks["tool.execute.before"]({ ...call, sessionID: "ses_1" }, { args: { command: "ls" } }))
await say(hooks["chat.message"]({ sessionID: "ses_2" }, { parts: [{ type: "text", text: "a sub-agent's task" }] }))
await say(hooks["tool.execute.before"]({ ...call, sessionID: "ses_2" }, { args: { command: "ls" } }))
await say(hooks["tool.execute.before"]({ ...call, sessionID: "ses_9" }, { args: { command: "ls" } }))
await say(hooks["tool.execute.after"]({ ...call, sessionID: "ses_1", args: { command: "ls" } }, { output: "a.txt" }))
await say(hooks.event({ event: { type: "session.deleted", properties: { info: { id: "ses_1" } } } }))
"#;

#[test]
fn the_plugin_tells_each_event_and_lets_allowed_tools_run() {
    let Some((said, events)) = run(Some("exit 0")) else { return };
    assert_eq!(said, ["ok", "ok", "ok", "ok", "Rulekeep cannot tell whose session ses_9 is", "ok", "ok"]);
    let mut kinds = Vec::new();
    for event in &events {
        let (_, event) = read_event(Host::Opencode, event.as_bytes()).unwrap();
        assert_eq!((event.session.as_str(), event.cwd.as_deref()), ("ses_1", Some("/projects/shop")));
        kinds.push(match event.kind {
            EventKind::Prompt(prompt) => prompt,
            EventKind::Call(call) => format!("{} {} by {:?}", call.tool, call.arguments, event.subagent),
            EventKind::Result { result, .. } => result.unwrap().to_string(),
            EventKind::End => "end".to_owned(),
            EventKind::Other => "other".to_owned(),
        });
    }
    let expected = [
        "Pay it",
        "bash {\"command\":\"ls\"} by None",
        "bash {\"command\":\"ls\"} by Some(\"ses_2\")",
        "\"a.txt\"",
        "end",
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn the_plugin_throws_the_reason_of_a_refusal() {
    let Some((said, _)) = run(Some("echo no such payee >&2; exit 2")) else { return };
    assert_eq!(said[..4], ["no such payee", "no such payee", "ok", "no such payee"]);
    assert_eq!(said[5..], ["ok", "ok"], "what only reports does not throw");
}

#[test]
fn the_plugin_throws_when_the_hook_crashes_or_is_missing() {
    for (program, reason) in [(Some("kill -9 $$"), "Rulekeep refused the call"), (None, "Rulekeep does not start")] {
        let Some((said, _)) = run(program) else { return };
        assert!(said[1].starts_with(reason) && said[3].starts_with(reason), "{said:?}");
    }
}

/// Runs the session with a hook program of this shell text. Returns its output, and the events that the program got.
fn run(program: Option<&str>) -> Option<(Vec<String>, Vec<String>)> {
    if !programs::is_there("node") {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    if let Some(program) = program {
        let text = format!("#!/bin/sh\ncat >> '{0}'\necho >> '{0}'\n{program}\n", at("events").display());
        fs::write(at("hook"), text).unwrap();
        fs::set_permissions(at("hook"), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let hook = at("hook").to_str().unwrap().to_owned();
    apply(&plan_install(Host::Opencode, Scope::Project, Path::new("/"), folder.path(), &hook).unwrap()).unwrap();
    fs::rename(at(".opencode/plugins/rulekeep.js"), at("rulekeep.mjs")).unwrap();
    fs::write(at("session.mjs"), SESSION).unwrap();
    let mut node = Command::new("node");
    let said = programs::succeeded(node.arg(at("session.mjs")), &[], Duration::from_secs(60));
    let lines = |text: &str| text.lines().map(ToOwned::to_owned).collect::<Vec<_>>();
    Some((lines(&said), lines(&fs::read_to_string(at("events")).unwrap_or_default())))
}
