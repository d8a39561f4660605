//! Agent mode of Visual Studio Code: the files of Copilot CLI, and those of Claude Code without their matchers.
//!
//! SOURCE: microsoft/vscode-docs `hooks.md` at 00d5cac (February 2026, preview). The most restrictive answer wins.

use std::time::Duration;

use serde_json::{Value, json};

use super::start;
use super::{Call, Tool};
use crate::world::World;

pub(super) fn runs(world: &World, call: &Call, tool: &Tool) -> bool {
    let mut hooks: Vec<Value> = Vec::new();
    for folder in [world.home.join(".copilot/hooks"), world.project.join(".github/hooks")] {
        // The documentation does not say whether a file without a version counts.
        for settings in super::copilot::files(&folder, world).iter().filter(|settings| settings["version"] == 1) {
            for name in ["preToolUse", "PreToolUse"] {
                hooks.extend(settings["hooks"][name].as_array().into_iter().flatten().cloned());
            }
        }
    }
    for file in [world.home.join(".claude/settings.json"), world.project.join(".claude/settings.json")] {
        let settings = world.json(&file).unwrap_or_default();
        for group in settings["hooks"]["PreToolUse"].as_array().into_iter().flatten() {
            hooks.extend(group["hooks"].as_array().into_iter().flatten().cloned());
        }
    }
    let event = json!({"hookEventName": "PreToolUse", "sessionId": "s", "timestamp": "2026-11-25T00:00:00Z",
        "cwd": world.project, "tool_name": tool.name, "tool_input": tool.input, "tool_use_id": "t"});
    let mut denied = false;
    for hook in hooks.iter().filter(|hook| hook["type"] == "command") {
        let Some(command) = hook["bash"].as_str().or_else(|| hook["command"].as_str()) else { continue };
        let limit = hook["timeoutSec"].as_u64().or_else(|| hook["timeout"].as_u64()).unwrap_or(30);
        let done = start::hook(world, "sh", command, &call.text(&event), Duration::from_secs(limit));
        denied |= match done.exit {
            Some(2) => true,
            Some(0) => done.json().is_some_and(|answer| {
                let decision = answer["hookSpecificOutput"]["permissionDecision"].as_str();
                decision == Some("deny") || answer["continue"] == false
            }),
            _ => false,
        };
    }
    !denied
}
