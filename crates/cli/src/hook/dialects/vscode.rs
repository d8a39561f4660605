//! The dialect of agent mode in Visual Studio Code: the events of Claude Code, with session and event name in
//! camelCase, and with other tool names.

use rulekeep::Outcome;
use serde_json::Value;

use super::fields::{self, Fields};
use super::{Dialect, Probe, claude};
use crate::hook::event::{EventKind, HookAnswer, HookEvent, Host};

pub(super) static DIALECT: Dialect = Dialect {
    host: Host::Vscode,
    fields: &FIELDS,
    read,
    ask: Some(claude::ask),
    rewrite: Some(claude::rewrite),
    refuse: HookAnswer::refusal,
    tell: Some(claude::tell),
    seconds: 30,
    probes: PROBES,
};

const FIELDS: Fields = Fields { event: "hookEventName", session: "sessionId", ..fields::CLAUDE };

fn read(fields: &Fields, event: &Value) -> Result<HookEvent, String> {
    let name = fields.name(event)?;
    let kind = match name {
        "PreToolUse" => EventKind::Call(fields.call(event)?),
        "PostToolUse" => fields.result(event, Some(Outcome::Success))?,
        "UserPromptSubmit" => fields.prompt(event)?,
        "SessionEnd" => EventKind::End,
        "ErrorOccurred" | "PreCompact" | "SessionStart" | "Stop" | "SubagentStart" | "SubagentStop" => EventKind::Other,
        _ => return Err(fields::unknown(name)),
    };
    fields.event(event, name, kind)
}

const PROBES: &[Probe] = &[
    Probe { tool: "runTerminalCommand", arguments: r#"{"command":"true rulekeep-doctor-probe"}"# },
    Probe { tool: "read_file", arguments: r#"{"filePath":"/nonexistent/rulekeep-doctor-probe"}"# },
    Probe { tool: "create_file", arguments: r#"{"filePath":"/nonexistent/rulekeep-doctor-probe","content":""}"# },
    Probe {
        tool: "replace_string_in_file",
        arguments: r#"{"filePath":"/nonexistent/rulekeep-doctor-probe","oldString":"a","newString":"b"}"#,
    },
    Probe { tool: "editFiles", arguments: r#"{"files":["/nonexistent/rulekeep-doctor-probe"]}"# },
    Probe { tool: "fetch_webpage", arguments: r#"{"urls":["http://127.0.0.1:9/rulekeep-doctor-probe"]}"# },
];
