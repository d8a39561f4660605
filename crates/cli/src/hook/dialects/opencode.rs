//! The dialect of the plugin that `hook install` writes for opencode, which does not run hooks as processes.
//!
//! The plugin writes one JSON object: `event` (`chat.message`, `tool.execute.before`, `tool.execute.after` or
//! `session.deleted`), `session` (the conversation with the user), `subagent` (the session of a sub-agent that acts),
//! `cwd`, and with them `prompt`, or `tool`, `args` and `call`, and after the tool `output`. It throws on any exit
//! code except 0, which keeps opencode from running the tool. The plugin cannot make opencode ask; opencode's own
//! permission questions come after the plugin.

use serde_json::{Value, json};

use super::fields::{self, Fields};
use super::{Dialect, Probe};
use crate::hook::event::{EventKind, HookAnswer, HookEvent, Host};

pub(super) static DIALECT: Dialect = Dialect {
    host: Host::Opencode,
    fields: &FIELDS,
    read,
    ask: None,
    rewrite: Some(rewrite),
    refuse: HookAnswer::refusal,
    tell: None,
    seconds: 600,
    probes: PROBES,
};

const FIELDS: Fields = Fields {
    event: "event",
    session: "session",
    cwd: "cwd",
    agent: "subagent",
    parent: "",
    tool: "tool",
    arguments: "args",
    call: "call",
    prompt: "prompt",
    result: "output",
    before: "tool.execute.before",
};

fn read(fields: &Fields, event: &Value) -> Result<HookEvent, String> {
    let name = fields.name(event)?;
    let kind = match name {
        "tool.execute.before" => EventKind::Call(fields.call(event)?),
        // opencode reports the same output for tools that succeeded and for commands that failed.
        "tool.execute.after" => fields.result(event, None)?,
        "chat.message" => match fields.prompt(event)? {
            EventKind::Prompt(prompt) => EventKind::Prompt(unquoted(&prompt).unwrap_or(prompt)),
            other => other,
        },
        "session.deleted" => EventKind::End,
        _ => return Err(fields::unknown(name)),
    };
    fields.event(event, name, kind)
}

/// Builds the consent with other arguments, which the plugin hands to the tool.
fn rewrite(_: &HookEvent, arguments: &Value, _: &str) -> Value {
    json!({ "args": arguments })
}

/// Removes the quotation marks that `opencode run "..."` puts around an argument with blanks. Quoted words would be
/// read as a name, not as a request.
fn unquoted(prompt: &str) -> Option<String> {
    let inner = prompt.strip_prefix('"')?.strip_suffix('"')?;
    let is_one_argument = !inner.replace("\\\"", "").contains('"');
    is_one_argument.then(|| inner.replace("\\\"", "\""))
}

const PROBES: &[Probe] = &[
    Probe { tool: "bash", arguments: r#"{"command":"true rulekeep-doctor-probe","description":"probe"}"# },
    Probe { tool: "read", arguments: r#"{"filePath":"/nonexistent/rulekeep-doctor-probe"}"# },
    Probe { tool: "write", arguments: r#"{"filePath":"/nonexistent/rulekeep-doctor-probe","content":""}"# },
    Probe {
        tool: "edit",
        arguments: r#"{"filePath":"/nonexistent/rulekeep-doctor-probe","oldString":"a","newString":"b"}"#,
    },
    Probe { tool: "webfetch", arguments: r#"{"url":"http://127.0.0.1:9/rulekeep-doctor-probe","format":"text"}"# },
    Probe { tool: "task", arguments: r#"{"description":"rulekeep-doctor-probe","prompt":"Answer OK."}"# },
];
