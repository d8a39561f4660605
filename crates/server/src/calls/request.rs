//! What a record's evidence says about its request, for lists that people read.

use rulekeep::ProofRecord;
use rulekeep::proof::Evidence;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A record's request, as far as its evidence tells.
#[derive(Default, Deserialize, Serialize, ToSchema)]
pub struct RecordedRequest {
    /// The action, and its target.
    pub action: Option<String>,
    /// The tool that was called.
    pub tool: Option<String>,
    /// The first command, and the number of the others.
    pub command: Option<String>,
    /// The rules that decided.
    pub rules: Vec<String>,
}

impl RecordedRequest {
    pub(super) fn of(evidence: &Evidence, record: &ProofRecord) -> Self {
        let intent = StoredIntent::read(Some(&evidence.intent));
        let rules = evidence.detail.get("rules").and_then(Value::as_array).into_iter().flatten();
        let rules = rules.filter_map(Value::as_str).filter(|rule| decided(rule, &record.reasoning));
        let rules = rules.map(str::to_owned).collect();
        Self { action: intent.action(), tool: intent.tool(), command: intent.command(), rules }
    }
}

/// Returns whether a rule of a record decided it: the reasoning names it. A rule that grants what the mandate of a task
/// then escalates or denies did not decide.
pub fn decided(rule: &str, reasoning: &str) -> bool {
    reasoning.contains(&format!("\"{rule}\""))
}

/// The parts of a stored intent that people read. Its secrets are redacted, so it may not be a valid intent.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct StoredIntent {
    /// The intent's ID.
    pub id: Option<String>,
    /// The action.
    pub parsed_action: Option<String>,
    /// The capabilities that the action requires.
    pub required_capabilities: Vec<String>,
    /// The context, with the facts that were read from the request.
    pub context: Map<String, Value>,
}

impl StoredIntent {
    /// The request on one line: the first command of the request, or its tool and target, or its action.
    pub fn said(&self) -> Option<String> {
        let name = || self.tool().or_else(|| self.parsed_action.clone());
        self.command().or_else(|| name().map(|name| self.on_target(&name)))
    }

    /// The action and its target.
    pub fn action(&self) -> Option<String> {
        self.parsed_action.as_deref().map(|action| self.on_target(action))
    }

    /// The tool that is called.
    pub fn tool(&self) -> Option<String> {
        self.acts().find_map(|act| first_line(act.get("tool")?)).or_else(|| first_line(self.context.get("tool")?))
    }

    /// The first command, and the number of the others.
    pub fn command(&self) -> Option<String> {
        let mut commands = self.acts().filter_map(|act| first_line(act.get("commands")?.get(0)?));
        // A request to change what governs the agent has no facts.
        let first = commands.next().or_else(|| first_line(self.context.get("command")?))?;
        let more = commands.count();
        Some(if more > 0 { format!("{first} (+{more})") } else { first })
    }

    fn on_target(&self, name: &str) -> String {
        let target = self.acts().find_map(|act| first_line(act.get("operands")?.get(0)?.get("value")?));
        target.map_or_else(|| name.to_owned(), |target| format!("{name} {target}"))
    }

    fn acts(&self) -> impl Iterator<Item = &Value> {
        let acts = self.context.get("facts").and_then(|facts| facts.get("acts")).and_then(Value::as_array);
        acts.into_iter().flatten()
    }

    /// Reads an intent; one of another form has no parts.
    pub fn read(intent: Option<&Value>) -> Self {
        intent.and_then(|intent| Self::deserialize(intent).ok()).unwrap_or_default()
    }
}

fn first_line(value: &Value) -> Option<String> {
    value.as_str().and_then(|text| text.lines().next()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_decided_if_the_reasoning_names_it() {
        let reasoning = "Denied: file:delete denied by rule \"keep-files\" at line 3.";
        assert!(decided("keep-files", reasoning));
        assert!(!decided("keep", reasoning) && !decided("everyday-work", reasoning));
    }
}
