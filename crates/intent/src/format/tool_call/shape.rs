//! Finds the calls in a message: MCP, `OpenAI` (chat, legacy, Responses), Anthropic, Gemini, `LangChain` and bare
//! objects. Every reading of an object counts, so that a duplicate key, or one beside the call, hides nothing.

use super::super::tools::{Part, tools};
use super::json::{Field, Json, add, values};
use rulekeep_types::{MAX_CONTEXT_DEPTH, ToolCall, json_depth};
use serde_json::{Map, Value};

/// The calls in a text that consists of one or several calls in any form, each with its tool's name as sent and with
/// all of its arguments; empty for any other text. A JSON object without a call counts as a call without a name.
pub fn calls_of(text: &str) -> Vec<ToolCall> {
    let text = super::unwrapped(text);
    if !text.starts_with(['{', '[', '"']) || json_depth(text) > MAX_CONTEXT_DEPTH {
        return Vec::new();
    }
    match values(text) {
        (found, true) => match found.as_slice() {
            [Json::Text(inner)] if inner.trim_start().starts_with(['{', '[']) => calls_of(inner),
            _ => found.into_iter().flat_map(typed).collect(),
        },
        (_, false) => Vec::new(),
    }
}

fn typed(value: Json<'_>) -> Vec<ToolCall> {
    let value = unpacked(value);
    let calls = calls(&value);
    match &value {
        Json::Fields(_) if calls.is_empty() => vec![ToolCall::new("", value.to_value())],
        _ => calls.iter().map(Call::typed).collect(),
    }
}

/// The value with the arguments of calls that are given as JSON in a string in place of those strings.
pub(super) fn unpacked(value: Json<'_>) -> Json<'_> {
    match value {
        Json::List(items) => Json::List(items.into_iter().map(unpacked).collect()),
        Json::Fields(mut fields) => {
            let is_call =
                fields.iter().any(|(key, value)| tools().part(key) == Some(Part::Name) && value.as_text().is_some());
            for (key, value) in &mut fields {
                let inner = value.as_text().filter(|_| is_call && tools().part(key) == Some(Part::Arguments));
                *value = match inner.and_then(fields_in) {
                    Some(inner) => inner,
                    None => unpacked(std::mem::replace(value, Json::Null)),
                };
            }
            Json::Fields(fields)
        }
        value => value,
    }
}

/// The JSON object that a text consists of.
fn fields_in<'b>(text: &str) -> Option<Json<'b>> {
    if !text.trim_start().starts_with('{') || json_depth(text) > MAX_CONTEXT_DEPTH {
        return None;
    }
    let (mut found, is_complete) = values(text);
    let object = found.pop().filter(|_| is_complete && found.is_empty())?;
    Some(object.into_owned())
}

/// A call: its names, and everything that can be its arguments.
#[derive(Debug, Default)]
pub(super) struct Call<'j> {
    pub names: Vec<&'j str>,
    pub arguments: Vec<&'j Json<'j>>,
    /// Fields beside the name that are not part of the shape count as arguments too.
    ///
    /// INVARIANT: none of them contains a call, so that nothing is read twice.
    pub beside: Vec<&'j Field<'j>>,
    /// Fields beside the name that say how the call is sent.
    pub around: Vec<&'j Field<'j>>,
    /// The server that the tool belongs to, as sent.
    pub server: Option<&'j str>,
    /// Set if the call has more names than any shape gives one.
    pub is_unclear: bool,
}

impl Call<'_> {
    /// The call by its first name. It is unknown which of several objects a runtime uses as arguments, so all of
    /// them count, and fields beside the name as well.
    fn typed(&self) -> ToolCall {
        let mut arguments = Map::new();
        for value in &self.arguments {
            match value.to_value() {
                Value::Object(fields) => fields.into_iter().for_each(|(key, value)| add(&mut arguments, &key, value)),
                other => add(&mut arguments, "arguments", other),
            }
        }
        let is_name = |value: &Json<'_>| value.as_text().is_some_and(|text| self.names.contains(&text));
        let around = self.around.iter().filter(|_| self.arguments.is_empty());
        for (key, value) in self.beside.iter().chain(around).filter(|(_, value)| !is_name(value)) {
            add(&mut arguments, key, value.to_value());
        }
        let mut call = ToolCall::new(self.names.first().copied().unwrap_or_default(), Value::Object(arguments));
        call.server = self.server.map(str::to_owned);
        call
    }

    /// The keys of the arguments, also of those given as JSON in a string.
    pub(super) fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.beside.iter().map(|(key, _)| key.to_string()).collect();
        let mut add = |value: &Json<'_>| {
            if let Json::Fields(fields) = value {
                keys.extend(fields.iter().map(|(key, _)| key.to_string()));
            }
        };
        for value in &self.arguments {
            add(value);
        }
        keys
    }
}

/// The calls in a value.
///
/// INVARIANT: the depth of the value has been checked.
pub(super) fn calls<'j>(value: &'j Json<'j>) -> Vec<Call<'j>> {
    let mut calls = Vec::new();
    message(value, &mut calls);
    calls
}

fn message<'j>(value: &'j Json<'j>, calls: &mut Vec<Call<'j>>) {
    match value {
        Json::List(items) => items.iter().for_each(|item| message(item, calls)),
        Json::Fields(fields) => object(fields, false, calls),
        _ => {}
    }
}

fn object<'j>(fields: &'j [Field<'j>], is_call: bool, calls: &mut Vec<Call<'j>>) {
    let mut call = Call::default();
    let (mut weak, mut method) = (None, None);
    let mut says_call = is_call;
    let found = calls.len();
    let is_rpc = has(fields, "method", "tools/call");
    for field @ (key, value) in fields {
        match (&**key, value) {
            ("method", Json::Text(text)) => {
                method = Some(&**text);
                if !is_rpc {
                    call.beside.push(field);
                }
                continue;
            }
            ("params", Json::Fields(inner)) if is_rpc => {
                object(inner, true, calls);
                continue;
            }
            ("server" | "server_name" | "server_label", Json::Text(server)) => {
                call.server = call.server.or(Some(server));
                continue;
            }
            ("type", Json::Text(text)) if tools().is_call_type(text) => {
                says_call = true;
                continue;
            }
            ("jsonrpc" | "_meta", _) => continue,
            _ => {}
        }
        match (tools().part(key), value) {
            (Some(Part::Name), Json::Text(name)) => add_name(&mut call, name),
            (Some(Part::WeakName), Json::Text(name)) => {
                weak = Some(&**name);
                call.beside.push(field);
            }
            (Some(Part::Arguments), _) => call.arguments.push(value),
            (_, Json::List(_) | Json::Fields(_)) => {
                let before = calls.len();
                match value {
                    // The content of `function` or `tool_use` is a call.
                    Json::Fields(inner) if tools().wraps(key) => object(inner, true, calls),
                    _ => message(value, calls),
                }
                if calls.len() == before {
                    call.beside.push(field);
                }
            }
            (Some(Part::Beside), _) => call.around.push(field),
            _ => call.beside.push(field),
        }
    }
    if let Some(method) = method.filter(|method| *method != "tools/call") {
        // An HTTP request without a name has its fields as arguments.
        let name = if tools().is_http_method(method) { HTTP_REQUEST } else { method };
        if call.names.is_empty() || name != HTTP_REQUEST {
            add_name(&mut call, name);
        }
        says_call = true;
    }
    if call.names.is_empty()
        && let Some(weak) = weak.filter(|_| says_call || !call.arguments.is_empty() || fields.len() <= 2)
    {
        call.names.push(weak);
        call.beside.retain(|(key, _)| tools().part(key) != Some(Part::WeakName));
    }
    let holds_calls = calls.len() > found;
    if call.names.is_empty() {
        // Not a call: a message around calls, or data. Arguments beside a call may be what a runtime takes.
        for value in call.arguments {
            let before = calls.len();
            message(value, calls);
            if calls.len() == before
                && let Some(inner) = calls.get_mut(found)
            {
                inner.arguments.push(value);
            }
        }
        return;
    }
    if says_call || !call.arguments.is_empty() || !holds_calls {
        calls.push(call);
    }
}

fn add_name<'j>(call: &mut Call<'j>, name: &'j str) {
    if call.names.contains(&name) {
        return;
    }
    if call.names.len() < MOST_NAMES {
        call.names.push(name);
    } else {
        call.is_unclear = true;
    }
}

fn has(fields: &[Field<'_>], key: &str, text: &str) -> bool {
    fields.iter().any(|(known, value)| known == key && value.as_text() == Some(text))
}

/// The name of an HTTP request without a name.
const HTTP_REQUEST: &str = "http_request";
/// More names than any shape gives a call.
const MOST_NAMES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_gives_its_names_and_arguments() {
        for (text, names) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{}}}"#, "a"),
            (r#"{"name":"a","arguments":{}}"#, "a"),
            (r#"{"tool":"a","args":{}}"#, "a"),
            (r#"{"name":"a","parameters":{}}"#, "a"),
            (r#"{"function":"a","arguments":"{}"}"#, "a"),
            (
                r#"{"tool_calls":[{"id":"1","type":"function","function":{"name":"a","arguments":"{}"}},{"id":"2","type":"function","function":{"name":"b","arguments":"{}"}}]}"#,
                "a b",
            ),
            (r#"{"function_call":{"name":"a","arguments":"{}"}}"#, "a"),
            (
                r#"{"output":[{"type":"reasoning"},{"type":"function_call","call_id":"c","name":"a","arguments":"{}"}]}"#,
                "a",
            ),
            (
                r#"{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"tool_use","id":"t","name":"a","input":{}}]}"#,
                "a",
            ),
            (r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a","args":{}}}]}}]}"#, "a"),
            (r#"{"name":"a","args":{},"id":"x","type":"tool_call"}"#, "a"),
            (r#"{"tool_uses":[{"recipient_name":"functions.a","parameters":{}}]}"#, "functions.a"),
            (r#"{"action":"a","action_input":{"x":1}}"#, "a"),
            (r#"[{"name":"a","arguments":{}},{"name":"b","arguments":{}}]"#, "a b"),
            (r#"{"name":"a","name":"b","arguments":{}}"#, "a b"),
            (r#"{"name":"a","tool":"b"}"#, "a b"),
            (r#"{"method":"DELETE","url":"https://x"}"#, "http_request"),
            (r#"{"messages":[{"role":"user","content":"x"}]}"#, ""),
        ] {
            let (values, complete) = values(text);
            assert!(complete, "{text}");
            let found: Vec<&str> = calls(&values[0]).iter().flat_map(|call| call.names.clone()).collect();
            assert_eq!(found.join(" "), names, "{text}");
        }
    }
}
