//! Cursor: `preToolUse` and `beforeShellExecution` in `hooks.json`.
//!
//! SOURCE: cursor.com/docs/hooks as collected in the notes on hosts. They do not say whether `timeout` is in seconds
//! and which of several answers wins: the double uses the shorter limit and the last answer.

use std::time::Duration;

use serde_json::json;

use super::start;
use super::{Call, Tool};
use crate::world::World;

pub(super) fn runs(world: &World, call: &Call, tool: &Tool) -> bool {
    let files = [world.home.join(".cursor/hooks.json"), world.project.join(".cursor/hooks.json")];
    let settings: Vec<_> =
        files.iter().filter_map(|file| world.json(file)).filter(|settings| settings["version"] == 1).collect();
    let common = json!({
        "conversation_id": "c", "generation_id": "g", "model": "m", "cursor_version": "3.0",
        "workspace_roots": [world.project], "user_email": null, "transcript_path": null,
    });
    let mut shell = common.clone();
    shell["hook_event_name"] = "beforeShellExecution".into();
    shell["command"] = tool.input["command"].clone();
    shell["cwd"] = json!(world.project);
    let mut any = common;
    any["hook_event_name"] = "preToolUse".into();
    any["tool_name"] = tool.name.into();
    any["tool_input"] = tool.input.clone();
    for (name, event) in [("preToolUse", &any), ("beforeShellExecution", &shell)] {
        if name == "beforeShellExecution" && tool.name != "Shell" {
            continue;
        }
        let mut denied = false;
        for hook in settings.iter().flat_map(|settings| settings["hooks"][name].as_array().into_iter().flatten()) {
            if !super::matches(hook["matcher"].as_str(), tool.name) {
                continue;
            }
            let Some(command) = hook["command"].as_str() else { continue };
            let limit = Duration::from_secs_f64(hook["timeout"].as_f64().unwrap_or(60.0));
            let done = start::hook(world, "sh", command, &call.text(event), limit);
            match done.exit {
                Some(2) => denied = true,
                Some(0) => match done.json().as_ref().map(|answer| answer["permission"].as_str()) {
                    Some(Some("deny")) => denied = true,
                    // `ask` is not reliable: according to Cursor's staff, only a denial is.
                    Some(Some(_)) => denied = false,
                    None if hook["failClosed"] == true && !done.stdout.trim().is_empty() => denied = true,
                    Some(None) | None => {}
                },
                _ if hook["failClosed"] == true => denied = true,
                _ => {}
            }
        }
        if denied {
            return false;
        }
    }
    true
}
