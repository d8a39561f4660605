//! Codex CLI: `PreToolUse` in `hooks.json`, trusted entry by entry.
//!
//! SOURCE: `hooks/src/events/pre_tool_use.rs` and `engine/output_parser.rs` of openai/codex; the protocol, keys and
//! trust of `codex app-server` 0.169.0, seen at the program itself.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::start::{self, Done};
use super::{Call, Tool, Way};
use crate::world::World;

pub(super) fn runs(world: &World, call: &Call, tool: &Tool) -> bool {
    let mut event = json!({
        "session_id": "s", "turn_id": "t", "transcript_path": null, "cwd": world.project,
        "hook_event_name": "PreToolUse", "model": "m", "tool_use_id": "call_1",
        "permission_mode": if call.is(Way::Headless) { "bypassPermissions" } else { "default" },
        "tool_name": tool.name, "tool_input": tool.input,
    });
    if call.is(Way::Subagent) {
        event["agent_id"] = "agent-1".into();
        event["agent_type"] = "worker".into();
    }
    let mut blocked = false;
    for hook in hooks(world) {
        if hook["trustStatus"] != "trusted" || hook["enabled"] != true || hook["async"] == true {
            continue;
        }
        if !super::matches(hook["matcher"].as_str(), tool.name) {
            continue;
        }
        let limit = Duration::from_secs(hook["timeoutSec"].as_u64().unwrap());
        let command = hook["command"].as_str().unwrap();
        blocked |= denies(&start::hook(world, "sh", command, &call.text(&event), limit));
    }
    !blocked
}

/// Returns whether Codex honors a denial: exit code 2 with a reason, or its own format and nothing else.
fn denies(done: &Done) -> bool {
    match done.exit {
        Some(2) => !done.stderr.trim().is_empty(),
        Some(0) => done.json().is_some_and(|answer| {
            let fields = answer.as_object().unwrap();
            let specific = &answer["hookSpecificOutput"];
            let known = ["hookEventName", "permissionDecision", "permissionDecisionReason"];
            fields.keys().all(|key| key == "hookSpecificOutput")
                && specific.as_object().is_some_and(|own| own.keys().all(|key| known.contains(&key.as_str())))
                && specific["permissionDecision"] == "deny"
                && specific["permissionDecisionReason"].as_str().is_some_and(|reason| !reason.trim().is_empty())
        }),
        _ => false,
    }
}

/// The answer of `codex app-server` to `hooks/list`, for the program of that name on the tests' path.
pub(crate) fn list_hooks(world: &World) -> String {
    let data = json!([{"cwd": world.project, "hooks": hooks(world), "warnings": [], "errors": []}]);
    json!({"id": 2, "result": {"data": data}}).to_string()
}

fn hooks(world: &World) -> Vec<Value> {
    let config: toml::Table =
        world.text(&world.home.join(".codex/config.toml")).and_then(|text| text.parse().ok()).unwrap_or_default();
    let table = |name: &str| config.get(name).and_then(toml::Value::as_table);
    if table("features").and_then(|features| features.get("hooks")).and_then(toml::Value::as_bool) == Some(false) {
        return Vec::new();
    }
    let trusts_project = table("projects")
        .and_then(|projects| projects.get(&*world.project.to_string_lossy()))
        .and_then(|project| project.get("trust_level"))
        .and_then(toml::Value::as_str)
        == Some("trusted");
    let mut found = from_file(&world.home.join(".codex/hooks.json"), world, "user", &config);
    if trusts_project {
        found.extend(from_file(&world.project.join(".codex/hooks.json"), world, "project", &config));
    }
    found
}

fn from_file(file: &Path, world: &World, source: &str, config: &toml::Table) -> Vec<Value> {
    // One field unknown to Codex invalidates the file.
    let settings = world.json(file).filter(|settings| settings.as_object().unwrap().keys().all(|key| key == "hooks"));
    let Some(settings) = settings else { return Vec::new() };
    let states = config.get("hooks").and_then(|hooks| hooks.get("state"));
    let mut found = Vec::new();
    for (place, group) in settings["hooks"]["PreToolUse"].as_array().into_iter().flatten().enumerate() {
        for (inner, hook) in group["hooks"].as_array().into_iter().flatten().enumerate() {
            let key = format!("{}:pre_tool_use:{place}:{inner}", file.display());
            let timeout = hook["timeout"].as_u64().unwrap_or(600);
            let normal = json!([hook["command"], group["matcher"], timeout, hook["async"]]).to_string();
            let hash = format!("sha256:{}", hex::encode(Sha256::digest(normal)));
            let state = states.and_then(|states| states.get(&key));
            let trusted = state.and_then(|state| state.get("trusted_hash")).and_then(toml::Value::as_str);
            let enabled = state.and_then(|state| state.get("enabled")).and_then(toml::Value::as_bool);
            found.push(json!({
                "key": key, "eventName": "preToolUse", "handlerType": "command", "command": hook["command"],
                "async": hook["async"] == true, "matcher": group["matcher"], "timeoutSec": timeout,
                "sourcePath": file, "source": source, "displayOrder": 0, "enabled": enabled.unwrap_or(true),
                "isManaged": false, "currentHash": hash,
                "trustStatus": match trusted {
                    None => "untrusted",
                    Some(known) if known == hash => "trusted",
                    Some(_) => "modified",
                },
            }));
        }
    }
    found
}
