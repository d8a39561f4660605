//! The dialect of Cursor, the editor and `cursor-agent`. It ignores `ask` and `allow`; only a refusal is reliable.

use rulekeep::Outcome;
use serde_json::{Map, Value};

use super::fields::{self, Fields, optional, required};
use super::{Dialect, Probe};
use crate::hook::event::{EventKind, HookAnswer, HookEvent, Host, HostCall};

pub(super) static DIALECT: Dialect = Dialect {
    host: Host::Cursor,
    fields: &FIELDS,
    read,
    ask: None,
    rewrite: None,
    refuse: HookAnswer::refusal,
    tell: None,
    seconds: 60,
    probes: PROBES,
};

const FIELDS: Fields =
    Fields { session: "conversation_id", agent: "", result: "tool_output", before: "preToolUse", ..fields::CLAUDE };

fn read(fields: &Fields, event: &Value) -> Result<HookEvent, String> {
    let name = fields.name(event)?;
    let kind = match name {
        "preToolUse" | "PreToolUse" => EventKind::Call(fields.call(event)?),
        "beforeShellExecution" => EventKind::Call(narrow_call(event, "Shell", &["command", "cwd"])?),
        "beforeReadFile" | "beforeTabFileRead" => EventKind::Call(narrow_call(event, "Read", &["file_path"])?),
        "beforeMCPExecution" => EventKind::Call(mcp_call(fields, event)?),
        "postToolUse" | "PostToolUse" => fields.result(event, Some(Outcome::Success))?,
        "postToolUseFailure" | "PostToolUseFailure" => failure(event)?,
        "afterShellExecution" => EventKind::Result {
            call: narrow_call(event, "Shell", &["command", "cwd"])?,
            result: event.get("output").cloned(),
            outcome: None,
        },
        "afterMCPExecution" => EventKind::Result {
            call: mcp_call(fields, event)?,
            result: event.get("result_json").cloned(),
            outcome: None,
        },
        "beforeSubmitPrompt" | "UserPromptSubmit" => fields.prompt(event)?,
        "sessionEnd" | "SessionEnd" => EventKind::End,
        "afterAgentResponse" | "afterAgentThought" | "afterFileEdit" | "afterTabFileEdit" | "preCompact"
        | "PreCompact" | "sessionStart" | "SessionStart" | "stop" | "Stop" | "subagentStart" | "SubagentStart"
        | "subagentStop" | "SubagentStop" => EventKind::Other,
        _ => return Err(fields::unknown(name)),
    };
    let mut read = fields.event(event, name, kind)?;
    if read.cwd.is_none() {
        let roots = event.get("workspace_roots").and_then(Value::as_array);
        read.cwd = roots.and_then(|roots| roots.first()).and_then(Value::as_str).map(ToOwned::to_owned);
    }
    Ok(read)
}

/// Reads a call that Cursor reports with an event of its own, whose arguments are fields of the event. The first one
/// is required.
fn narrow_call(event: &Value, tool: &str, arguments: &[&str]) -> Result<HostCall, String> {
    if let Some(first) = arguments.first() {
        required(event, first)?;
    }
    let given = arguments.iter().filter_map(|field| Some(((*field).to_owned(), event.get(field)?.clone())));
    let arguments = Value::Object(given.collect::<Map<_, _>>());
    Ok(HostCall { id: None, tool: tool.to_owned(), server: None, arguments })
}

/// Reads a call of an MCP tool. Cursor sends the server's name, or otherwise its address or command.
fn mcp_call(fields: &Fields, event: &Value) -> Result<HostCall, String> {
    let mut call = fields.call(event)?;
    for field in ["mcp_server_name", "url", "command"] {
        if call.server.is_none() {
            call.server = optional(event, field)?.map(ToOwned::to_owned);
        }
    }
    Ok(call)
}

/// Reads a failed call. One that Cursor or its user denied did not run, so there is nothing to report.
fn failure(event: &Value) -> Result<EventKind, String> {
    if optional(event, "failure_type")? == Some("permission_denied") {
        return Ok(EventKind::Other);
    }
    Fields { result: "error_message", ..FIELDS }.result(event, None)
}

const PROBES: &[Probe] = &[
    Probe { tool: "Shell", arguments: r#"{"command":"true rulekeep-doctor-probe"}"# },
    Probe { tool: "Read", arguments: r#"{"file_path":"/nonexistent/rulekeep-doctor-probe"}"# },
    Probe { tool: "Write", arguments: r#"{"file_path":"/nonexistent/rulekeep-doctor-probe","content":""}"# },
    Probe { tool: "Delete", arguments: r#"{"file_path":"/nonexistent/rulekeep-doctor-probe"}"# },
    Probe { tool: "Grep", arguments: r#"{"pattern":"rulekeep-doctor-probe"}"# },
    Probe { tool: "Task", arguments: r#"{"prompt":"rulekeep-doctor-probe"}"# },
    Probe { tool: "MCP:probe", arguments: r#"{"text":"rulekeep-doctor-probe"}"# },
];
