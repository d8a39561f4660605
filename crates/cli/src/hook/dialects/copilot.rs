//! The dialects of Copilot CLI: events registered in `camelCase` have `camelCase` fields and no event name; events
//! registered in `PascalCase` have the fields of Claude Code. A sub-agent's events have a session of their own, and
//! the parent is the conversation. An MCP tool is named `SERVER-TOOL`, which does not show where the server's name
//! ends.

use rulekeep::Outcome;
use serde_json::{Value, json};

use super::fields::{self, Fields};
use super::{Dialect, Probe};
use crate::hook::event::{EventKind, HookAnswer, HookEvent, Host};

pub(super) static DIALECT: Dialect = Dialect {
    host: Host::Copilot,
    fields: &CAMEL,
    read,
    ask: Some(ask),
    rewrite: Some(rewrite),
    refuse,
    tell: None,
    seconds: 30,
    probes: PROBES,
};

const CAMEL: Fields = Fields {
    event: "",
    session: "sessionId",
    agent: "agentId",
    parent: "parentAgentId",
    tool: "toolName",
    arguments: "toolArgs",
    call: "toolCallId",
    result: "toolResult",
    before: "preToolUse",
    ..fields::CLAUDE
};

const PASCAL: Fields = Fields { parent: "parent_agent_id", result: "tool_result", ..fields::CLAUDE };

fn read(_: &Fields, event: &Value) -> Result<HookEvent, String> {
    let (fields, name) = match event.get(PASCAL.event) {
        Some(_) => (&PASCAL, PASCAL.name(event)?),
        None => (&CAMEL, camel_name(event)?),
    };
    let kind = match name {
        "preToolUse" | "PreToolUse" => EventKind::Call(fields.call(event)?),
        "postToolUse" | "PostToolUse" => result(fields, event)?,
        "postToolUseFailure" | "PostToolUseFailure" => {
            EventKind::Result { call: fields.call(event)?, result: event.get("error").cloned(), outcome: None }
        }
        "userPromptSubmitted" | "UserPromptSubmit" => fields.prompt(event)?,
        "sessionEnd" | "SessionEnd" => EventKind::End,
        "sessionStart" | "agentStop" | "errorOccurred" | "permissionRequest" | "ErrorOccurred" | "Notification"
        | "PermissionRequest" | "PreCompact" | "SessionStart" | "Stop" | "SubagentStart" | "SubagentStop" => {
            EventKind::Other
        }
        _ => return Err(fields::unknown(name)),
    };
    fields.event(event, name, kind)
}

/// Tells the name of a camelCase event from its fields. A tool event without a result or an error comes before the
/// call.
fn camel_name(event: &Value) -> Result<&'static str, String> {
    let has = |field: &str| event.get(field).is_some();
    Ok(match () {
        () if event.get("hookName").is_some_and(|name| name == "permissionRequest") => "permissionRequest",
        () if has("toolName") && has("toolResult") => "postToolUse",
        () if has("toolName") && has("error") => "postToolUseFailure",
        () if has("toolName") => "preToolUse",
        () if has("prompt") => "userPromptSubmitted",
        () if has("reason") => "sessionEnd",
        () if has("source") => "sessionStart",
        () if has("stopReason") || has("trigger") || has("agentName") => "agentStop",
        () if has("errorContext") => "errorOccurred",
        () => return Err("the event is neither a tool call nor another known event of Copilot CLI".to_owned()),
    })
}

/// Reads a result by the type that Copilot gives it. A shell command counts as a success whatever its exit code, so
/// its outcome is unknown. A denied call did not run, so there is nothing to report.
fn result(fields: &Fields, event: &Value) -> Result<EventKind, String> {
    let result = event.get(fields.result);
    let kind = result.and_then(|result| result.get("resultType").or_else(|| result.get("result_type")));
    match kind.and_then(Value::as_str) {
        Some("success") if !is_shell(event.get(fields.tool)) => fields.result(event, Some(Outcome::Success)),
        Some("denied") => Ok(EventKind::Other),
        _ => fields.result(event, None),
    }
}

fn is_shell(tool: Option<&Value>) -> bool {
    tool.and_then(Value::as_str)
        .is_some_and(|tool| ["bash", "powershell"].iter().any(|shell| tool.eq_ignore_ascii_case(shell)))
}

fn ask(_: &HookEvent, reason: &str) -> Value {
    decision("ask", reason)
}

/// Builds the consent with other arguments.
fn rewrite(_: &HookEvent, arguments: &Value, reason: &str) -> Value {
    json!({"permissionDecision": "allow", "permissionDecisionReason": reason, "modifiedArgs": arguments})
}

/// Builds the refusal. Exit code 2 denies whatever is on standard output, and the model reads the reason only from
/// there.
fn refuse(reason: &str) -> HookAnswer {
    let mut answer = HookAnswer::refusal(reason);
    answer.stdout = decision("deny", answer.stderr.trim_end()).to_string();
    answer
}

fn decision(word: &str, reason: &str) -> Value {
    json!({"permissionDecision": word, "permissionDecisionReason": reason})
}

const PROBES: &[Probe] = &[
    Probe { tool: "bash", arguments: r#"{"command":"true rulekeep-doctor-probe"}"# },
    Probe { tool: "view", arguments: r#"{"path":"/nonexistent/rulekeep-doctor-probe"}"# },
    Probe { tool: "create", arguments: r#"{"path":"/nonexistent/rulekeep-doctor-probe","file_text":""}"# },
    Probe { tool: "edit", arguments: r#"{"path":"/nonexistent/rulekeep-doctor-probe","old_str":"a","new_str":"b"}"# },
    Probe { tool: "glob", arguments: r#"{"pattern":"rulekeep-doctor-probe"}"# },
    Probe { tool: "grep", arguments: r#"{"pattern":"rulekeep-doctor-probe"}"# },
    Probe { tool: "web_fetch", arguments: r#"{"url":"http://127.0.0.1:9/rulekeep-doctor-probe"}"# },
    Probe { tool: "rulekeep-probe", arguments: r#"{"text":"rulekeep-doctor-probe"}"# },
    Probe { tool: "task", arguments: r#"{"prompt":"rulekeep-doctor-probe"}"# },
];
