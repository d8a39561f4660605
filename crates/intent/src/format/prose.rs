//! Requests in wrappers that are neither a call nor plain English: a call after prose, the lines of a reasoning
//! trace, chat messages and prompts as JSON, and sentences written as one identifier.

use serde_json::{Value, json};

use super::tables::wording;

/// Splits a call after prose into the prose, the call and the rest.
pub(super) fn call_in_prose(text: &str) -> Option<(&str, &str, &str)> {
    let from = text.find('{').filter(|&at| at > 0)?;
    let to = text.rfind('}').filter(|&at| at > from)? + 1;
    let call = text.get(from..to)?;
    let has_key = ["\"name\"", "\"tool\"", "\"function\"", "\"action\""].iter().any(|key| call.contains(key));
    let has_arguments = ["\"arguments\"", "\"args\"", "\"parameters\"", "\"input\"", "\"action_input\""]
        .iter()
        .any(|key| call.contains(key));
    (has_key && has_arguments).then_some((text.get(..from)?, call, text.get(to..)?))
}

/// The action of a reasoning trace: the name after "Action:" with the text after "Action Input:".
pub(super) enum Step<'a> {
    /// A command line for a shell.
    Command(&'a str),
    /// A call as JSON.
    Call(String),
}

/// The step of a reasoning trace, if the text is one.
pub(super) fn step(text: &str) -> Option<Step<'_>> {
    let (_, rest) = text.split_once("Action:").filter(|(before, _)| before.is_empty() || before.ends_with('\n'))?;
    let (name, rest) = rest.split_once('\n')?;
    let input = rest.trim_start().strip_prefix("Action Input:")?.trim();
    let name = name.trim();
    if name.is_empty() || name.contains(char::is_whitespace) {
        return None;
    }
    if matches!(name.to_ascii_lowercase().as_str(), "bash" | "shell" | "sh" | "terminal" | "cmd" | "powershell") {
        return Some(Step::Command(input));
    }
    let arguments = serde_json::from_str::<Value>(input).unwrap_or_else(|_| json!({ "input": input }));
    Some(Step::Call(json!({ "name": name, "arguments": arguments }).to_string()))
}

/// The request texts in a JSON message: prompts, tasks, the content of chat messages.
pub(super) fn requests(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if text.starts_with(['{', '['])
        && let Ok(value) = serde_json::from_str::<Value>(text)
    {
        gather(&value, &mut found);
        if let Some(order) = order(&value) {
            found.push(order);
        }
    }
    found
}

// The depth is bounded, because the JSON parser refuses deeper values.
fn gather(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| gather(item, found)),
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(text) if hands_over(key) && found.len() < MOST_REQUESTS => found.push(text.clone()),
                    Value::Array(_) | Value::Object(_) => gather(value, found),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// Writes `{"action": "delete", "target": "all customers"}` as a sentence.
fn order(value: &Value) -> Option<String> {
    let field = |keys: &[&str]| keys.iter().find_map(|key| value.get(key).and_then(Value::as_str));
    let verb = field(&["action", "verb", "operation", "intent"])?;
    let object = field(&["target", "object", "resource", "on", "subject", "entity"])?;
    Some(format!("{} {object}", verb.replace('_', " ")))
}

fn hands_over(key: &str) -> bool {
    wording().request_keys.has(&key.to_ascii_lowercase())
}

/// Splits a sentence written as one identifier: `wipe_the_database`, `WipeTheDatabase`.
pub(super) fn respaced(text: &str) -> Option<String> {
    if text.len() > LONGEST_IDENTIFIER
        || !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    {
        return None;
    }
    let mut spaced = String::with_capacity(text.len() + 8);
    let mut before = ' ';
    for c in text.chars() {
        if matches!(c, '_' | '-') || c.is_ascii_uppercase() && before.is_ascii_lowercase() {
            spaced.push(' ');
        }
        if !matches!(c, '_' | '-') {
            spaced.push(c.to_ascii_lowercase());
        }
        before = c;
    }
    spaced.trim().contains(' ').then_some(spaced)
}

/// Maximum number of texts read from one message.
const MOST_REQUESTS: usize = 16;
/// Maximum length of an identifier that is read as a sentence, in bytes.
const LONGEST_IDENTIFIER: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_become_sentences_and_words_stay() {
        assert_eq!(respaced("WipeTheDatabase").as_deref(), Some("wipe the database"));
        assert_eq!(respaced("wipe_the_database").as_deref(), Some("wipe the database"));
        assert_eq!(respaced("weather"), None);
    }
}
