//! Copilot CLI: `preToolUse` in the files of `hooks`.
//!
//! SOURCE: Copilot CLI 1.0.102, seen with a model that attempts one call: hooks run one after the other until one denies;
//! a failed one denies, a late one does not. Hooks of a project that nobody has trusted do not run.

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use super::start;
use super::{Call, Tool, Way};
use crate::world::World;

pub(super) fn runs(world: &World, call: &Call, tool: &Tool) -> bool {
    for settings in files(&world.home.join(".copilot/hooks"), world) {
        for (name, event) in [("preToolUse", own_event(world, tool)), ("PreToolUse", foreign_event(world, tool))] {
            let mut event = event;
            if call.is(Way::Subagent) {
                event["agentId"] = "agent-1".into();
                event["agentType"] = "task".into();
                event["parentAgentId"] = "s".into();
            }
            for hook in settings["hooks"][name].as_array().into_iter().flatten() {
                let Some(command) = hook["bash"].as_str().filter(|_| hook["type"] == "command") else { continue };
                if !super::matches(hook["matcher"].as_str(), tool.name) {
                    continue;
                }
                let limit = Duration::from_secs(hook["timeoutSec"].as_u64().unwrap_or(30));
                let _one_by_one = ONE_BY_ONE.lock().unwrap();
                let done = start::hook(world, "bash", command, &call.text(&event), limit);
                let denies = match (done.exit, done.late) {
                    (Some(0), _) => done.json().is_some_and(|answer| {
                        let decision = &answer["permissionDecision"];
                        decision == "deny" || decision == "ask" && call.is(Way::Headless)
                    }),
                    (_, late) => !late,
                };
                if denies {
                    return false;
                }
            }
        }
    }
    true
}

/// The settings of a folder, by name.
pub(super) fn files(folder: &Path, world: &World) -> Vec<Value> {
    let mut files: Vec<_> = std::fs::read_dir(folder).into_iter().flatten().map(|file| file.unwrap().path()).collect();
    files.sort();
    files.retain(|file| file.extension().is_some_and(|end| end == "json"));
    files.iter().filter_map(|file| world.json(file)).collect()
}

fn own_event(world: &World, tool: &Tool) -> Value {
    json!({"sessionId": "s", "timestamp": 1_764_000_000_000_u64, "cwd": world.project,
        "toolName": tool.name, "toolArgs": tool.input.to_string()})
}

fn foreign_event(world: &World, tool: &Tool) -> Value {
    json!({"hook_event_name": "PreToolUse", "session_id": "s", "timestamp": "2026-11-25T00:00:00Z", "cwd": world.project,
        "tool_name": tool.name, "tool_input": tool.input})
}

static ONE_BY_ONE: Mutex<()> = Mutex::new(());
