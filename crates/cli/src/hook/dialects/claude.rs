//! The dialect of Claude Code.

use rulekeep::Outcome;
use serde_json::{Value, json};

use super::fields::{self, Fields, optional};
use super::{Dialect, Probe};
use crate::hook::event::{EventKind, HookAnswer, HookEvent, Host};

pub(super) static DIALECT: Dialect = Dialect {
    host: Host::Claude,
    fields: &fields::CLAUDE,
    read,
    ask: Some(ask),
    rewrite: Some(rewrite),
    tell: Some(tell),
    refuse: HookAnswer::refusal,
    seconds: 600,
    probes: PROBES,
};

fn read(fields: &Fields, event: &Value) -> Result<HookEvent, String> {
    let name = fields.name(event)?;
    let kind = match name {
        "PreToolUse" => EventKind::Call(fields.call(event)?),
        "PostToolUse" => fields.result(event, Some(Outcome::Success))?,
        "PostToolUseFailure" => Fields { result: "error", ..fields::CLAUDE }.result(event, None)?,
        "UserPromptSubmit" if is_by_user(fields, event)? => fields.prompt(event)?,
        "UserPromptSubmit" => EventKind::Other,
        "SessionEnd" => EventKind::End,
        _ if OTHER.contains(&name) => EventKind::Other,
        _ => return Err(fields::unknown(name)),
    };
    fields.event(event, name, kind)
}

/// Returns whether the user wrote the prompt. Claude Code also submits prompts of its own, such as the result of a
/// finished sub-agent. `source` tells them apart; in versions that omit it, such prompts are known to begin with a
/// tag.
fn is_by_user(fields: &Fields, event: &Value) -> Result<bool, String> {
    let prompt = event.get(fields.prompt).and_then(Value::as_str).unwrap_or_default();
    let is_told = optional(event, "source")?.is_none_or(|source| matches!(source, "user" | "sdk"));
    Ok(is_told && !prompt.trim_start().starts_with("<task-notification>"))
}

/// Builds the question to the user in the format of Claude Code and VS Code.
pub(super) fn ask(event: &HookEvent, reason: &str) -> Value {
    json!({"hookSpecificOutput": {
        "hookEventName": event.name, "permissionDecision": "ask", "permissionDecisionReason": reason,
    }})
}

/// Builds the consent with other arguments, in the format of Claude Code, Codex CLI and VS Code.
pub(super) fn rewrite(event: &HookEvent, arguments: &Value, reason: &str) -> Value {
    json!({"hookSpecificOutput": {
        "hookEventName": event.name, "permissionDecision": "allow", "permissionDecisionReason": reason,
        "updatedInput": arguments,
    }})
}

/// Builds what is said after a call to the user, in the format of Claude Code, Codex CLI, Gemini CLI and VS Code. The
/// model is not told what exists outside its run.
pub(super) fn tell(event: &HookEvent, line: &str) -> Value {
    let told = "rulekeep: this run was confined and was refused something; if it is needed, repeat the call, and the \
                user is asked about a run without confinement.";
    let output = json!({ "hookEventName": event.name, "additionalContext": told });
    json!({ "systemMessage": line, "hookSpecificOutput": output })
}

/// Events that need no ruling. `PermissionRequest` is one: the call was decided before it, and Claude Code asks its
/// user.
const OTHER: &[&str] = &[
    "ConfigChange",
    "CwdChanged",
    "Elicitation",
    "ElicitationResult",
    "FileChanged",
    "InstructionsLoaded",
    "Notification",
    "PermissionDenied",
    "PermissionRequest",
    "PostCompact",
    "PostToolBatch",
    "PreCompact",
    "SessionStart",
    "Setup",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "TaskCompleted",
    "TaskCreated",
    "TeammateIdle",
    "UserPromptExpansion",
    "WorktreeCreate",
    "WorktreeRemove",
];

const PROBES: &[Probe] = &[
    Probe { tool: "Bash", arguments: r#"{"command":"true rulekeep-doctor-probe"}"# },
    Probe { tool: "Read", arguments: r#"{"file_path":"/nonexistent/rulekeep-doctor-probe"}"# },
    Probe { tool: "Write", arguments: r#"{"file_path":"/nonexistent/rulekeep-doctor-probe","content":""}"# },
    Probe {
        tool: "Edit",
        arguments: r#"{"file_path":"/nonexistent/rulekeep-doctor-probe","old_string":"a","new_string":"b"}"#,
    },
    Probe {
        tool: "NotebookEdit",
        arguments: r#"{"notebook_path":"/nonexistent/rulekeep-doctor-probe.ipynb","new_source":""}"#,
    },
    Probe { tool: "Glob", arguments: r#"{"pattern":"rulekeep-doctor-probe","path":"/nonexistent"}"# },
    Probe { tool: "Grep", arguments: r#"{"pattern":"rulekeep-doctor-probe","path":"/nonexistent"}"# },
    Probe { tool: "WebFetch", arguments: r#"{"url":"http://127.0.0.1:9/rulekeep-doctor-probe","prompt":"none"}"# },
    Probe { tool: "WebSearch", arguments: r#"{"query":"rulekeep-doctor-probe"}"# },
    Probe {
        tool: "Agent",
        arguments: r#"{"description":"rulekeep-doctor-probe","prompt":"Answer OK.","subagent_type":"general-purpose"}"#,
    },
    Probe { tool: "mcp__rulekeep__probe", arguments: r#"{"text":"rulekeep-doctor-probe"}"# },
];
