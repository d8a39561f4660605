//! Finds the calls in a message: MCP, `OpenAI` (chat, legacy, Responses), Anthropic, Gemini, `LangChain` and bare
//! objects. Every reading of an object counts, so that a duplicate key, or one beside the call, hides nothing.

use super::super::tools::{Part, tools};
use super::json::{Field, Json, values};
use rulekeep_types::{MAX_CONTEXT_DEPTH, json_depth};

/// A call: its names, and everything that can be its arguments.
#[derive(Debug, Default)]
pub(super) struct Call<'j> {
    pub names: Vec<&'j str>,
    pub arguments: Vec<&'j Json<'j>>,
    /// Fields beside the name that are not part of the shape count as arguments too.
    ///
    /// INVARIANT: none of them contains a call, so that nothing is read twice.
    pub beside: Vec<&'j Field<'j>>,
    /// The server that the tool belongs to, as sent.
    pub server: Option<&'j str>,
    /// Set if the call has more names than any shape gives one.
    pub is_unclear: bool,
}

impl Call<'_> {
    /// The keys of the arguments, also of those given as JSON in a string.
    pub(super) fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.beside.iter().map(|(key, _)| key.to_string()).collect();
        let mut add = |value: &Json<'_>| {
            if let Json::Fields(fields) = value {
                keys.extend(fields.iter().map(|(key, _)| key.to_string()));
            }
        };
        for value in &self.arguments {
            match value {
                Json::Text(text) if json_depth(text) <= MAX_CONTEXT_DEPTH => values(text).0.iter().for_each(&mut add),
                value => add(value),
            }
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
                call.beside.push(field);
                continue;
            }
            ("params", Json::Fields(inner)) if is_rpc => {
                object(inner, true, calls);
                continue;
            }
            ("server" | "server_name" | "server_label", Json::Text(server)) => {
                call.server = call.server.or(Some(server));
            }
            ("type", Json::Text(text)) => says_call |= tools().is_call_type(text),
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
            (Some(Part::Beside), _) => {}
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
        // Not a call: a message around calls, or data.
        call.arguments.iter().for_each(|value| message(value, calls));
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
