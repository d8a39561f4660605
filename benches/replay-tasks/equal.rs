//! Comparing two calls by their tool and critical arguments.

use rulekeep::task::ToolCall;
use serde_json::Value;

/// Returns whether a call is one of these, by tool and critical arguments.
pub(crate) fn is_one_of(call: &ToolCall, calls: &[ToolCall]) -> bool {
    calls.iter().any(|known| known.name == call.name && critical(known) == critical(call))
}

/// Returns the recipients, accounts, addresses, paths, amounts, IDs and attachments of a call, in order.
pub(crate) fn critical(call: &ToolCall) -> Vec<String> {
    let mut found = Vec::new();
    for (key, value) in &call.arguments {
        gather(key, value, &mut found);
    }
    found.sort();
    found
}

fn gather(key: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| gather(key, item, found)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| gather(key, value, found)),
        Value::String(text) if is_critical(key) => found.push(format!("{key}={}", text.trim().to_lowercase())),
        Value::Number(number) if is_critical(key) => found.push(format!("{key}={number}")),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Number(_) => {}
    }
}

fn is_critical(key: &str) -> bool {
    let last = key.rsplit(['_', '.']).next().unwrap_or(key);
    CRITICAL.contains(&last)
}

const CRITICAL: &[&str] = &[
    "recipient",
    "recipients",
    "participants",
    "user",
    "email",
    "channel",
    "url",
    "cc",
    "bcc",
    "id",
    "filename",
    "file",
    "path",
    "amount",
    "iban",
    "account",
    "address",
    "phone",
    "password",
    "host",
    "to",
    "attendees",
    "hotel",
    "restaurant",
    "company",
];
