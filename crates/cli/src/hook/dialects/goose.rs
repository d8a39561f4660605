//! The dialect of goose. Its hooks cannot ask, and can block only calls of tools. The calls of a sub-agent run no
//! hook: only the call of `delegate` that starts it does.

use rulekeep::Outcome;
use serde_json::Value;

use super::fields::{self, Fields};
use super::{Dialect, Probe};
use crate::hook::event::{EventKind, HookAnswer, HookEvent, Host, HostCall};

pub(super) static DIALECT: Dialect = Dialect {
    host: Host::Goose,
    fields: &FIELDS,
    read,
    ask: None,
    rewrite: None,
    refuse: HookAnswer::refusal,
    tell: None,
    seconds: 30,
    probes: PROBES,
};

const FIELDS: Fields =
    Fields { event: "event", cwd: "working_dir", agent: "", call: "tool_call_id", prompt: "message", ..fields::CLAUDE };

fn read(fields: &Fields, event: &Value) -> Result<HookEvent, String> {
    let name = fields.name(event)?;
    let kind = match name {
        "PreToolUse" => EventKind::Call(call(fields, event)?),
        "PostToolUse" => {
            EventKind::Result { call: call(fields, event)?, result: None, outcome: Some(Outcome::Success) }
        }
        "PostToolUseFailure" => EventKind::Result { call: call(fields, event)?, result: None, outcome: None },
        "UserPromptSubmit" => fields.prompt(event)?,
        "SessionEnd" => EventKind::End,
        // The narrower events repeat a call that `PreToolUse` has reported, and cannot block it.
        "AfterFileEdit"
        | "AfterShellExecution"
        | "BeforeReadFile"
        | "BeforeShellExecution"
        | "PreToolUseResult"
        | "SessionStart"
        | "Stop" => EventKind::Other,
        _ => return Err(fields::unknown(name)),
    };
    fields.event(event, name, kind)
}

/// Reads the call. A tool of an extension is named `EXTENSION__TOOL`, and an extension is an MCP server. Tools of the
/// extension `developer` have no prefix in current versions.
fn call(fields: &Fields, event: &Value) -> Result<HostCall, String> {
    let mut call = fields.call(event)?;
    if call.server.is_none()
        && let Some((extension, tool)) = call.tool.split_once("__").filter(|(a, b)| !a.is_empty() && !b.is_empty())
    {
        (call.server, call.tool) = (Some(extension.to_owned()), tool.to_owned());
    }
    Ok(call)
}

const PROBES: &[Probe] = &[
    Probe { tool: "shell", arguments: r#"{"command":"true rulekeep-doctor-probe"}"# },
    Probe { tool: "write", arguments: r#"{"path":"/nonexistent/rulekeep-doctor-probe","content":""}"# },
    Probe { tool: "edit", arguments: r#"{"path":"/nonexistent/rulekeep-doctor-probe","before":"a","after":"b"}"# },
    Probe { tool: "tree", arguments: r#"{"path":"/nonexistent/rulekeep-doctor-probe","depth":1}"# },
    Probe { tool: "delegate", arguments: r#"{"instructions":"rulekeep-doctor-probe"}"# },
    Probe { tool: "rulekeep__probe", arguments: r#"{"text":"rulekeep-doctor-probe"}"# },
];
