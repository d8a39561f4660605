//! Refusals as MCP tool errors, which the model reads.

use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use rulekeep::Enforcement;
use serde_json::{Map, Value, json};

use crate::calls::CallError;

/// A refusal, as fields for the metadata of the result.
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
    pub(crate) fn of_verdict(verdict: &Enforcement, why: Option<&str>) -> Self {
        let reasoning = &verdict.reasoning;
        let reasoning = why.map_or_else(|| reasoning.clone(), |why| format!("{why} {reasoning}"));
        let mut refusal = Self(Map::new());
        refusal.set("decision", json!(verdict.decision));
        refusal.set("reasoning", reasoning);
        refusal.set("proofId", json!(verdict.proof_id));
        refusal.set("grantedCapabilities", json!(verdict.granted_capabilities));
        refusal.set("deniedCapabilities", json!(verdict.denied_capabilities));
        if let (Some(class), Some(retryable)) = (verdict.denial_class, verdict.retryable) {
            refusal.set("denialClass", json!(class));
            refusal.set("retryable", retryable);
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
        let kind = match (decision, class) {
            ("ESCALATE", _) | (_, "") => decision.to_owned(),
            _ => format!("{decision}, {class}"),
        };
        let text = format!("Refused by Rulekeep ({kind}): {reasoning}");
        // Structured content has to match the tool's output schema, and clients reject other structured content.
        let mut meta = MetaObject::new();
        meta.0.insert(REFUSAL.to_owned(), Value::Object(fields));
        let mut result = Self::error(vec![ContentBlock::text(text)]);
        result.meta = Some(meta);
        result
    }
}

/// The key in the metadata of a result for the fields of a refusal.
pub(crate) const REFUSAL: &str = "rulekeep/refusal";
