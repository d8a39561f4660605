//! The names of an event's fields, which differ by host, and functions that read them.

use rulekeep::Outcome;
use serde_json::Value;

use crate::hook::event::{EventKind, HookEvent, HostCall};

/// The names of an event's fields. A name is empty if the host has no such field.
#[derive(Debug)]
pub(super) struct Fields {
    /// The field with the event's name.
    pub(super) event: &'static str,
    /// The field with the conversation.
    pub(super) session: &'static str,
    /// The field with the working folder.
    pub(super) cwd: &'static str,
    /// The field with the sub-agent that acts.
    pub(super) agent: &'static str,
    /// The field with the conversation of a sub-agent, if its events have a session of their own.
    pub(super) parent: &'static str,
    /// The field with the tool's name.
    pub(super) tool: &'static str,
    /// The field with the tool's arguments.
    pub(super) arguments: &'static str,
    /// The field with the ID of the call.
    pub(super) call: &'static str,
    /// The field with the user's words.
    pub(super) prompt: &'static str,
    /// The field with the result of the tool.
    pub(super) result: &'static str,
    /// The name of the event before a tool runs.
    pub(super) before: &'static str,
}

/// The fields of Claude Code, which several hosts have adopted.
pub(super) const CLAUDE: Fields = Fields {
    event: "hook_event_name",
    session: "session_id",
    cwd: "cwd",
    agent: "agent_id",
    parent: "",
    tool: "tool_name",
    arguments: "tool_input",
    call: "tool_use_id",
    prompt: "prompt",
    result: "tool_response",
    before: "PreToolUse",
};

impl Fields {
    /// Reads the event's name.
    pub(super) fn name<'a>(&self, event: &'a Value) -> Result<&'a str, String> {
        required(event, self.event)
    }

    /// Creates an event with the conversation and the folder that the host sent.
    ///
    /// The prompt of a sub-agent was written by an agent, and its end does not end the conversation, so neither
    /// counts as the user's.
    pub(super) fn event(&self, event: &Value, name: &str, kind: EventKind) -> Result<HookEvent, String> {
        let subagent = optional(event, self.agent)?;
        let session = optional(event, self.parent)?.map_or_else(|| optional(event, self.session), |id| Ok(Some(id)))?;
        Ok(HookEvent {
            session: session.unwrap_or_default().to_owned(),
            cwd: optional(event, self.cwd)?.map(ToOwned::to_owned),
            subagent: subagent.map(ToOwned::to_owned),
            name: name.to_owned(),
            kind: match kind {
                EventKind::Prompt(_) | EventKind::End if subagent.is_some() => EventKind::Other,
                kind => kind,
            },
        })
    }

    /// Reads the user's words.
    pub(super) fn prompt(&self, event: &Value) -> Result<EventKind, String> {
        match event.get(self.prompt) {
            Some(Value::String(prompt)) => Ok(EventKind::Prompt(prompt.clone())),
            _ => Err(missing(self.prompt, "a string")),
        }
    }

    /// Reads the call. A name `mcp__SERVER__TOOL` is split into server and tool. If the host sends the server in
    /// `mcp_server`, its name is taken from there, because the tool's name contains it with some characters replaced.
    pub(super) fn call(&self, event: &Value) -> Result<HostCall, String> {
        let name = required(event, self.tool)?;
        let told = event.get("mcp_server").map(|server| optional(server, "name")).transpose()?.flatten();
        let split = name.strip_prefix("mcp__").and_then(|rest| match told {
            Some(server) => Some((server, rest.strip_prefix(&*replaced(server))?.strip_prefix("__")?)),
            None => rest.split_once("__"),
        });
        let (server, tool) = match split {
            Some((server, tool)) if !server.is_empty() && !tool.is_empty() => (Some(server), tool),
            _ => (told, name),
        };
        Ok(HostCall {
            id: optional(event, self.call)?.map(ToOwned::to_owned),
            tool: tool.to_owned(),
            server: server.map(ToOwned::to_owned),
            arguments: arguments(event, self.arguments)?,
        })
    }

    /// Reads the call and its result.
    pub(super) fn result(&self, event: &Value, outcome: Option<Outcome>) -> Result<EventKind, String> {
        let result = event.get(self.result).filter(|result| !result.is_null()).cloned();
        Ok(EventKind::Result { call: self.call(event)?, result, outcome })
    }
}

/// Returns the name of a server as it appears in the names of its tools.
fn replaced(server: &str) -> String {
    server.chars().map(|c| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' }).collect()
}

/// Reads the text in `field`, which is required.
pub(super) fn required<'a>(event: &'a Value, field: &str) -> Result<&'a str, String> {
    match event.get(field) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        _ => Err(missing(field, "a string that is not empty")),
    }
}

/// Reads the text in `field`; `None` if it is missing, null or empty.
pub(super) fn optional<'a>(event: &'a Value, field: &str) -> Result<Option<&'a str>, String> {
    match event.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(_) => Err(missing(field, "a string")),
    }
}

/// Reads the arguments in `field`: an object, or the text of one, as some hosts write it.
pub(super) fn arguments(event: &Value, field: &str) -> Result<Value, String> {
    let expected = || missing(field, "an object, or the JSON text of one");
    match event.get(field) {
        Some(object @ Value::Object(_)) => Ok(object.clone()),
        Some(Value::String(text)) => super::read_input(text.as_bytes()).map_err(|_| expected()),
        _ => Err(expected()),
    }
}

/// The refusal of an event whose name the host does not document.
pub(super) fn unknown(name: &str) -> String {
    let name: String = name.chars().take(64).collect();
    format!(
        "unknown event {name:?}: the hook refuses events that it does not know; update rulekeep, or remove its entry \
         for this event"
    )
}

fn missing(field: &str, expected: &str) -> String {
    format!("the event has no usable field {field:?}: expected {expected}")
}
