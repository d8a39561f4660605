//! The dialect of Codex CLI. Its hooks cannot ask: an `ask`, like any field that Codex does not know, lets the call
//! run.
//!
//! Codex writes `-` in the name of an MCP server as `_`, and does not send the original name.

use serde_json::Value;

use super::fields::{self, Fields};
use super::{Dialect, Probe, claude};
use crate::hook::event::{EventKind, HookAnswer, HookEvent, Host};

pub(super) static DIALECT: Dialect = Dialect {
    host: Host::Codex,
    fields: &fields::CLAUDE,
    read,
    ask: None,
    rewrite: Some(claude::rewrite),
    tell: Some(claude::tell),
    refuse: HookAnswer::refusal,
    seconds: 600,
    probes: PROBES,
};

fn read(fields: &Fields, event: &Value) -> Result<HookEvent, String> {
    let name = fields.name(event)?;
    let kind = match name {
        "PreToolUse" => EventKind::Call(fields.call(event)?),
        // Codex sends the same response for a command that succeeded and for one that failed.
        "PostToolUse" => fields.result(event, None)?,
        "UserPromptSubmit" => fields.prompt(event)?,
        "SessionEnd" => EventKind::End,
        "Interrupt" | "PermissionRequest" | "PostCompact" | "PreCompact" | "SessionStart" | "Stop"
        | "SubagentStart" | "SubagentStop" => EventKind::Other,
        _ => return Err(fields::unknown(name)),
    };
    fields.event(event, name, kind)
}

const PROBES: &[Probe] = &[
    Probe { tool: "Bash", arguments: r#"{"command":"true rulekeep-doctor-probe"}"# },
    Probe {
        tool: "apply_patch",
        arguments: r#"{"command":"*** Begin Patch\n*** Delete File: /nonexistent/rulekeep-doctor-probe\n*** End Patch"}"#,
    },
    Probe { tool: "spawn_agent", arguments: r#"{"message":"rulekeep-doctor-probe"}"# },
    Probe { tool: "mcp__rulekeep__probe", arguments: r#"{"text":"rulekeep-doctor-probe"}"# },
];
