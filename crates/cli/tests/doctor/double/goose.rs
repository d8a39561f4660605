//! goose: `PreToolUse` in the hooks of plugins.
//!
//! SOURCE: goose 1.52.0, observed with a model that attempts one call: hooks run one after another until one blocks.
//! With `on_failure`, failures, output that is not JSON, and unknown decisions block too.

use std::time::Duration;

use serde_json::{Value, json};

use super::start;
use super::{Call, Tool};
use crate::world::World;

pub(super) fn runs(world: &World, call: &Call, tool: &Tool) -> bool {
    let event = json!({"event": "PreToolUse", "session_id": "s", "matcher_context": tool.name, "tool_call_id": "c",
        "tool_name": tool.name, "tool_input": tool.input, "working_dir": world.project});
    for root in [&world.home, &world.project] {
        let settings = world.json(&root.join(".agents/settings.json")).unwrap_or_default();
        let mut plugins: Vec<_> = std::fs::read_dir(root.join(".agents/plugins"))
            .into_iter()
            .flatten()
            .map(|plugin| plugin.unwrap())
            .collect();
        plugins.sort_by_key(std::fs::DirEntry::file_name);
        for plugin in plugins {
            let name = plugin.file_name();
            let is_disabled = |off: &Value| off.as_str() == name.to_str();
            if settings["disabledPlugins"].as_array().into_iter().flatten().any(is_disabled) {
                continue;
            }
            let hooks = world.json(&plugin.path().join("hooks/hooks.json")).unwrap_or_default();
            for group in hooks["hooks"]["PreToolUse"].as_array().into_iter().flatten() {
                if !super::matches(group["matcher"].as_str(), tool.name) {
                    continue;
                }
                for hook in group["hooks"].as_array().into_iter().flatten() {
                    let Some(command) = hook["command"].as_str() else { continue };
                    let limit = Duration::from_secs(hook["timeout"].as_u64().unwrap_or(30));
                    let done = start::hook(world, "sh", command, &call.text(&event), limit);
                    let closes = hook["on_failure"] == "block";
                    let text = done.stdout.trim();
                    let blocks = match (done.exit, done.json()) {
                        (Some(2), _) => true,
                        (Some(0), Some(answer)) => match answer["decision"].as_str() {
                            Some("block") => true,
                            Some("allow") | None => false,
                            Some(_) => closes,
                        },
                        (Some(0), None) => closes && !text.is_empty(),
                        _ => closes,
                    };
                    if blocks {
                        return false;
                    }
                }
            }
        }
    }
    true
}
