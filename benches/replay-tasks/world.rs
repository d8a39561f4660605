//! A governor whose policies allow everything, with the tools of one case.

use std::error::Error;

use rulekeep::task::{Task, TaskRequest, ToolCall};
use rulekeep::{Agent, Decision, Durability, Enforcement, Governor, PolicySet, Tier};
use serde_json::Value;

/// A governor that is limited only by mandates.
pub(crate) struct World {
    governor: Governor,
}

/// The decision on a call.
pub(crate) struct Decided {
    pub(crate) decision: Decision,
    pub(crate) reasoning: String,
    /// The kinds of the faults that the mandate found.
    pub(crate) faults: Vec<String>,
    /// The call changes something, as far as the parser can tell.
    pub(crate) is_effect: bool,
}

impl Decided {
    pub(crate) fn is_allowed(&self) -> bool {
        self.decision == Decision::Allow
    }

    pub(crate) fn cause(&self) -> String {
        self.faults.first().cloned().unwrap_or_else(|| "other".to_owned())
    }
}

impl World {
    /// Creates a world with these tools.
    pub(crate) fn new(tools: &[Value]) -> Result<Self, Box<dyn Error>> {
        let open = PolicySet::from_toml("name = \"open\"\n[[rule]]\nid = \"everything\"\neffect = \"allow\"\n")?;
        let governor = Governor::builder().policies(open).durability(Durability::Buffered).open_in_memory()?;
        governor.agents().register(Agent::new(AGENT).at_tier(Tier::T5))?;
        governor.tools().load(&serde_json::json!({ "tools": tools }), None)?;
        Ok(Self { governor })
    }

    pub(crate) fn open(&self, words: &str, trusted: &[String]) -> Result<Task, rulekeep::Error> {
        self.governor.tasks().open(TaskRequest::new(AGENT, words).trusting(trusted.iter().cloned()))
    }

    /// Decides on one call under a task of its own.
    pub(crate) fn enforce_alone(&self, words: &str, call: &ToolCall) -> Result<Decided, rulekeep::Error> {
        let task = self.open(words, &[])?;
        let decided = self.enforce(&task, call)?;
        close(&task);
        Ok(decided)
    }

    /// Decides on a call; after the end of its task it is denied.
    pub(crate) fn enforce(&self, task: &Task, call: &ToolCall) -> Result<Decided, rulekeep::Error> {
        let decided = match task.enforce(call) {
            Ok(decided) => decided,
            Err(rulekeep::Error::Conflict { message }) => {
                let faults = vec!["ended".to_owned()];
                return Ok(Decided { decision: Decision::Deny, reasoning: message, faults, is_effect: true });
            }
            Err(error) => return Err(error),
        };
        let Enforcement { decision, reasoning, proof_id, .. } = decided.enforcement;
        let evidence = self.governor.log().evidence(&proof_id)?;
        let is_effect = evidence.detail.pointer("/task/effect").and_then(Value::as_bool).unwrap_or(true);
        let listed = evidence.detail.pointer("/task/faults").and_then(Value::as_array).cloned().unwrap_or_default();
        let faults = listed.iter().filter_map(|fault| {
            let kind = fault.get("kind")?.as_str()?;
            let source = if fault.get("source").is_some() { " (observed)" } else { "" };
            let argument = fault.get("argument").and_then(Value::as_str);
            let argument = argument.map(|argument| format!(" of {argument}")).unwrap_or_default();
            Some(format!("{kind}{argument}{source}"))
        });
        let faults = faults.collect();
        Ok(Decided { decision, reasoning, faults, is_effect })
    }
}

/// Closes a task, which may already have ended.
pub(crate) fn close(task: &Task) {
    let _ended = task.close(None);
}

/// Reads a call from the files' format.
pub(crate) fn call_of(value: &Value) -> ToolCall {
    ToolCall::new(value["name"].as_str().unwrap_or_default(), value["arguments"].clone())
}

const AGENT: &str = "agent";
