//! The dialect of Gemini CLI. Its `ask` ends the turn if no user can answer, so escalations are refusals here. The
//! calls of sub-agents cannot be distinguished.

use rulekeep::Outcome;
use serde_json::{Value, json};

use super::fields::{self, Fields, optional};
use super::{Dialect, Probe, claude};
use crate::hook::event::{EventKind, HookAnswer, HookEvent, Host, HostCall};

pub(super) static DIALECT: Dialect = Dialect {
    host: Host::Gemini,
    fields: &FIELDS,
    read,
    ask: None,
    rewrite: Some(rewrite),
    refuse: HookAnswer::refusal,
    tell: Some(claude::tell),
    seconds: 60,
    probes: PROBES,
};

const FIELDS: Fields = Fields { before: "BeforeTool", call: "", agent: "", ..fields::CLAUDE };

fn read(fields: &Fields, event: &Value) -> Result<HookEvent, String> {
    let name = fields.name(event)?;
    let kind = match name {
        "BeforeTool" => EventKind::Call(call(fields, event)?),
        "AfterTool" => {
            let result = event.get(fields.result).filter(|result| !result.is_null()).cloned();
            let call = call(fields, event)?;
            let outcome = outcome(&call, result.as_ref());
            EventKind::Result { call, result, outcome }
        }
        "BeforeAgent" => fields.prompt(event)?,
        "SessionEnd" => EventKind::End,
        "AfterAgent"
        | "AfterModel"
        | "BeforeModel"
        | "BeforeToolSelection"
        | "Notification"
        | "PreCompress"
        | "SessionStart" => EventKind::Other,
        _ => return Err(fields::unknown(name)),
    };
    fields.event(event, name, kind)
}

/// Reads the call, with server and tool from the MCP context. The context's command line is ignored, because it may
/// contain secrets.
fn call(fields: &Fields, event: &Value) -> Result<HostCall, String> {
    let mut call = fields.call(event)?;
    if let Some(context) = event.get("mcp_context").filter(|context| !context.is_null()) {
        if let Some(server) = optional(context, "server_name")? {
            call.server = Some(server.to_owned());
        }
        if let Some(tool) = optional(context, "tool_name")? {
            tool.clone_into(&mut call.tool);
        }
    }
    Ok(call)
}

/// Reads the outcome. A shell command whose exit code signals a failure has no error, so its outcome is unknown.
fn outcome(call: &HostCall, result: Option<&Value>) -> Option<Outcome> {
    let failed = result?.get("error").is_some_and(|error| !error.is_null());
    (!failed && call.tool != "run_shell_command").then_some(Outcome::Success)
}

/// Builds the consent with other arguments, which Gemini CLI merges with the given ones.
fn rewrite(_: &HookEvent, arguments: &Value, reason: &str) -> Value {
    json!({"decision": "allow", "reason": reason, "hookSpecificOutput": {"tool_input": arguments}})
}

const PROBES: &[Probe] = &[
    Probe { tool: "run_shell_command", arguments: r#"{"command":"true rulekeep-doctor-probe"}"# },
    Probe { tool: "read_file", arguments: r#"{"file_path":"/nonexistent/rulekeep-doctor-probe"}"# },
    Probe { tool: "write_file", arguments: r#"{"file_path":"/nonexistent/rulekeep-doctor-probe","content":""}"# },
    Probe {
        tool: "replace",
        arguments: r#"{"file_path":"/nonexistent/rulekeep-doctor-probe","old_string":"a","new_string":"b"}"#,
    },
    Probe { tool: "glob", arguments: r#"{"pattern":"rulekeep-doctor-probe"}"# },
    Probe { tool: "web_fetch", arguments: r#"{"prompt":"http://127.0.0.1:9/rulekeep-doctor-probe"}"# },
    Probe { tool: "google_web_search", arguments: r#"{"query":"rulekeep-doctor-probe"}"# },
    Probe { tool: "invoke_agent", arguments: r#"{"agent_name":"generalist","prompt":"rulekeep-doctor-probe"}"# },
    Probe { tool: "mcp_rulekeep_probe", arguments: r#"{"text":"rulekeep-doctor-probe"}"# },
];
