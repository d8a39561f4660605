//! Refusals as MCP tool errors, which the model reads.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value};

use crate::calls::CallError;

/// A refusal, as the fields of the structured content.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal(Map<String, Value>);

impl Refusal {
    /// Creates a refusal by the gateway itself, with this class.
    pub(crate) fn new(class: &str, reasoning: impl Into<String>) -> Self {
        let reasoning = reasoning.into();
        let mut refusal = Self(Map::new());
        refusal.set("decision", "DENY");
        refusal.set("denialClass", class);
        refusal.set("reasoning", reasoning);
        refusal.set("retryable", false);
        refusal
    }

    /// Creates a refusal from a verdict that does not grant the call. `why` adds a reason that the verdict lacks.
    pub(crate) fn of_verdict(verdict: &Value, why: Option<&str>) -> Self {
        let reasoning = match (verdict.get("reasoning").and_then(Value::as_str), why) {
            (Some(reasoning), Some(why)) => format!("{why} {reasoning}"),
            (Some(reasoning), None) => reasoning.to_owned(),
            (None, why) => why.unwrap_or("governance gave no reason").to_owned(),
        };
        let mut refusal = Self(Map::new());
        refusal.set("reasoning", reasoning);
        let kept = ["decision", "denialClass", "retryable", "proofId", "grantedCapabilities", "deniedCapabilities"];
        for name in kept {
            if let Some(value) = verdict.get(name) {
                refusal.set(name, value.clone());
            }
        }
        refusal
    }

    /// Creates a refusal from a failed call to governance.
    pub(crate) fn of_error(error: &CallError) -> Self {
        let mut refusal = Self::new("error", format!("no decision could be made: {error}"));
        for name in ["proofId", "denialClass", "retryable"] {
            if let Some(value) = error.details.get(name) {
                refusal.set(name, value.clone());
            }
        }
        refusal
    }

    /// Adds a field to the refusal.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }
}

impl From<Refusal> for CallToolResult {
    fn from(Refusal(fields): Refusal) -> Self {
        let word = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or("");
        let (decision, class, reasoning) = (word("decision"), word("denialClass"), word("reasoning"));
        let class = if class.is_empty() { String::new() } else { format!(", {class}") };
        let text = format!("Refused by Rulekeep ({decision}{class}): {reasoning}");
        let mut result = Self::structured_error(Value::Object(fields));
        result.content = vec![ContentBlock::text(text)];
        result
    }
}
