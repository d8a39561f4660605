//! Claude Code: `PreToolUse` in `settings.json`.
//!
//! SOURCE: Claude Code 2.1.332, observed with a model that attempts one call, and the types of its SDK 0.3.329.
//! `onFailure` blocks on exit codes, signals and time limits, but not on output printed with exit code 0.

use std::time::Duration;

use serde_json::{Value, json};

use super::start::{self, Done};
use super::{Call, Tool, Way};
use crate::world::World;

pub(super) fn runs(world: &World, call: &Call, tool: &Tool) -> bool {
    let files = [
        world.home.join(".claude/settings.json"),
        world.project.join(".claude/settings.json"),
        world.project.join(".claude/settings.local.json"),
    ];
    let settings: Vec<Value> = files.iter().filter_map(|file| world.json(file)).collect();
    if settings.iter().any(|settings| settings["disableAllHooks"] == true) {
        return true;
    }
    let mut event = json!({
        "session_id": "s", "transcript_path": "/dev/null", "cwd": world.project, "hook_event_name": "PreToolUse",
        "permission_mode": if call.is(Way::Headless) { "bypassPermissions" } else { "default" },
        "tool_name": tool.name, "tool_input": tool.input, "tool_use_id": "toolu_1",
    });
    if call.is(Way::Subagent) {
        event["agent_id"] = "agent-1".into();
        event["agent_type"] = "general-purpose".into();
    }
    let mut decision = "none".to_owned();
    for group in settings.iter().flat_map(|settings| settings["hooks"]["PreToolUse"].as_array().into_iter().flatten()) {
        if !fits(group["matcher"].as_str(), tool.name) {
            continue;
        }
        for hook in group["hooks"].as_array().into_iter().flatten() {
            let runs_behind = hook["async"] == true || hook["asyncRewake"] == true;
            let Some(command) = hook["command"].as_str().filter(|_| hook["type"] == "command" && !runs_behind) else {
                continue;
            };
            let limit = Duration::from_secs_f64(hook["timeout"].as_f64().unwrap_or(600.0));
            let done = match hook["args"].as_array() {
                Some(arguments) => {
                    let mut program = std::process::Command::new(command);
                    program.args(arguments.iter().filter_map(Value::as_str));
                    start::program(world, program, &call.text(&event), limit)
                }
                None => start::hook(world, "bash", command, &call.text(&event), limit),
            };
            let said = said(&done, hook["onFailure"] == "block");
            if rank(&said) > rank(&decision) {
                decision = said;
            }
        }
    }
    // Without a user, a question is a refusal.
    !matches!((decision.as_str(), call.is(Way::Headless)), ("deny" | "defer" | "ask", _))
}

/// Letters, digits and `_ - space , |` are exact names; anything else is a pattern.
pub(super) fn fits(matcher: Option<&str>, tool: &str) -> bool {
    match matcher {
        Some(names) if names.chars().all(|c| c.is_ascii_alphanumeric() || "_- ,|".contains(c)) && !names.is_empty() => {
            names.split([',', '|']).any(|name| name.trim() == tool)
        }
        other => super::matches(other, tool),
    }
}

/// The decision of one hook.
fn said(done: &Done, closes: bool) -> String {
    let none = "none".to_owned();
    match done.exit {
        Some(2) => "deny".to_owned(),
        Some(0) => {
            let Some(answer) = done.json() else { return none };
            let specific = &answer["hookSpecificOutput"];
            if specific["hookEventName"] == "PreToolUse" {
                return specific["permissionDecision"].as_str().map_or(none, ToOwned::to_owned);
            }
            if answer["decision"] == "block" { "deny".to_owned() } else { none }
        }
        _ if closes => "deny".to_owned(),
        _ => none,
    }
}

fn rank(decision: &str) -> usize {
    ["none", "allow", "ask", "defer", "deny"].iter().position(|known| *known == decision).unwrap_or(0)
}
