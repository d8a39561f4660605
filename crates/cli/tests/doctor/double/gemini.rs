//! Gemini CLI: `BeforeTool` in `settings.json`.
//!
//! SOURCE: `hookRunner.ts`, `hookAggregator.ts`, `hookRegistry.ts` and `trustedFolders.ts` of Gemini CLI 0.61.0. In
//! an untrusted folder it runs no hook from any settings. Its behavior on exit codes was observed.

use std::time::Duration;

use serde_json::{Value, json};

use super::start::{self, Done};
use super::{Call, Tool, Way};
use crate::world::World;

pub(super) fn runs(world: &World, call: &Call, tool: &Tool) -> bool {
    let user = world.json(&world.home.join(".gemini/settings.json")).unwrap_or_default();
    let is_trusted = user["security"]["folderTrust"]["enabled"] == false || trusts(world) || call.is(Way::Headless);
    let mut all = vec![user];
    if is_trusted {
        all.extend(world.json(&world.project.join(".gemini/settings.json")));
    }
    let off = all.iter().any(|settings| {
        settings["hooksConfig"]["enabled"] == false
            || settings["hooks"]["enabled"] == false
            || settings["tools"]["enableHooks"] == false
    });
    if off || !is_trusted {
        return true;
    }
    let disabled: Vec<&str> = all
        .iter()
        .flat_map(|settings| settings["hooksConfig"]["disabled"].as_array().into_iter().flatten())
        .filter_map(Value::as_str)
        .collect();
    let event = json!({
        "session_id": "s", "transcript_path": "/dev/null", "cwd": world.project, "hook_event_name": "BeforeTool",
        "timestamp": "2026-11-25T00:00:00Z", "tool_name": tool.name, "tool_input": tool.input,
    });
    let groups = all.iter().flat_map(|settings| settings["hooks"]["BeforeTool"].as_array().into_iter().flatten());
    let mut blocked = false;
    for group in groups.filter(|group| super::matches(group["matcher"].as_str().map(str::trim), tool.name)) {
        for hook in group["hooks"].as_array().into_iter().flatten() {
            let Some(command) = hook["command"].as_str().filter(|_| hook["type"] == "command") else { continue };
            if disabled.contains(&hook["name"].as_str().unwrap_or(command)) {
                continue;
            }
            let limit = Duration::from_millis(hook["timeout"].as_u64().unwrap_or(60_000));
            blocked |= denies(&start::hook(world, "bash", command, &call.text(&event), limit));
        }
    }
    !blocked
}

fn trusts(world: &World) -> bool {
    let folders = world.json(&world.home.join(".gemini/trustedFolders.json")).unwrap_or_default();
    folders[&*world.project.to_string_lossy()] == "TRUST_FOLDER"
}

fn denies(done: &Done) -> bool {
    let text = if done.stdout.trim().is_empty() { done.stderr.trim() } else { done.stdout.trim() };
    if done.late || text.is_empty() {
        return false;
    }
    match serde_json::from_str::<Value>(text) {
        Ok(answer) => matches!(answer["decision"].as_str(), Some("deny" | "block")) || answer["continue"] == false,
        Err(_) => done.exit.is_some_and(|code| code >= 2),
    }
}
