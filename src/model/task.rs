//! Tasks: what a user asked an agent for, and the calls that are made for it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{AgentId, Capability, DenialClass, Outcome, ProofId, RiskLevel, TaskId, Timestamp, closed_words};

closed_words! {
    /// The state of a task.
    pub enum TaskState("task state") {
        /// Calls are decided under it.
        Open = "open",
        /// The runtime closed it.
        Closed = "closed",
        /// Ended by itself: four refusals of one class, a parent that ended, or the erasure of its words.
        Ended = "ended",
        /// Expired.
        Expired = "expired",
    }
}

/// A call of a tool.
///
/// ```
/// use rulekeep::task::ToolCall;
/// use serde_json::json;
///
/// let call = ToolCall::new("send_email", json!({ "to": "ann@example.com", "body": "Hi" }));
/// assert_eq!(call.arguments.len(), 2);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ToolCallForm))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ToolCall {
    /// The tool's name, as the agent calls it; `tool` is read as well.
    #[serde(alias = "tool")]
    pub name: String,
    /// The arguments by their names.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub arguments: Map<String, Value>,
    /// The server that the tool belongs to, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

impl ToolCall {
    /// A call with its arguments; anything but an object stands for no arguments.
    pub fn new(name: impl Into<String>, arguments: Value) -> Self {
        let arguments = if let Value::Object(arguments) = arguments { arguments } else { Map::new() };
        Self { name: name.into(), arguments, server: None }
    }

    /// Names the server that the tool belongs to.
    #[must_use]
    pub fn of_server(mut self, server: impl Into<String>) -> Self {
        self.server = Some(server.into());
        self
    }

    /// The call as an input that the parser reads.
    pub(crate) fn to_text(&self) -> String {
        #[derive(Serialize)]
        struct Text<'a> {
            arguments: &'a Map<String, Value>,
            #[serde(skip_serializing_if = "Option::is_none")]
            server: Option<&'a str>,
            tool: &'a str,
        }
        let text = Text { arguments: &self.arguments, server: self.server.as_deref(), tool: &self.name };
        // Maps under texts always serialize.
        serde_json::to_string(&text).unwrap_or_default()
    }
}

/// A request to open a task.
///
/// ```
/// use rulekeep::task::TaskRequest;
/// use std::time::Duration;
///
/// let request = TaskRequest::new("assistant-1", "Pay the December bill and tell Ann")
///     .trusting(["ann@example.com"])
///     .expires_in(Duration::from_secs(600))
///     .max_calls(20);
/// # let _ = request;
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct TaskRequest {
    pub(crate) agent_id: String,
    pub(crate) input: String,
    pub(crate) trusted: Vec<String>,
    pub(crate) context: Map<String, Value>,
    pub(crate) expires_in: Option<Duration>,
    pub(crate) max_calls: Option<u64>,
}

impl TaskRequest {
    /// A task for an agent, in the user's own words.
    pub fn new(agent_id: impl Into<String>, input: impl Into<String>) -> Self {
        Self {
            agent_id: agent_id.into(),
            input: input.into(),
            trusted: Vec::new(),
            context: Map::new(),
            expires_in: None,
            max_calls: None,
        }
    }

    /// Adds values that the runtime vouches for: contacts, own accounts, the folder that the agent works in. A folder
    /// covers what is below it.
    pub fn trusting<T: Into<String>>(mut self, values: impl IntoIterator<Item = T>) -> Self {
        self.trusted.extend(values.into_iter().map(Into::into));
        self
    }

    /// Sets the context of the opening decision.
    pub fn context(mut self, context: Map<String, Value>) -> Self {
        self.context = context;
        self
    }

    /// Sets how long calls can be made under the task: at most 31 days. Default: 24 hours.
    pub fn expires_in(mut self, duration: Duration) -> Self {
        self.expires_in = Some(duration);
        self
    }

    /// Sets how many calls can be made under the task: at most 100,000. Default: 1,000.
    pub fn max_calls(mut self, calls: u64) -> Self {
        self.max_calls = Some(calls);
        self
    }
}

/// The ceiling of a task: what its words ask for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Mandate {
    /// The texts that the user said, with their secrets masked, the first one first.
    pub words: Vec<String>,
    /// The acts that the words ask for. Reads in their neighborhood are part of the mandate too.
    pub capabilities: Vec<Capability>,
    /// The risk of what the words ask for.
    pub risk_level: RiskLevel,
    /// The words hand the task to a text that the user has not shown ("do what the mail says"): every effect is asked for.
    pub open: bool,
    /// How many values the runtime vouches for or a reviewer endorsed.
    pub trusted: usize,
}

/// A task that was opened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct OpenedTask {
    /// The task.
    pub task_id: TaskId,
    /// The ceiling of the task.
    pub mandate: Mandate,
    /// The record of its opening.
    pub proof_id: ProofId,
    /// The time at which the task expires.
    pub expires_at: Timestamp,
}

/// A task as it stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskInfo {
    /// The task.
    pub task_id: TaskId,
    /// The agent that works on it.
    pub agent_id: AgentId,
    /// The state of the task.
    pub state: TaskState,
    /// Why it ended, where it ended by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The ceiling of the task; absent once the task is no longer open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mandate: Option<Mandate>,
    /// The record of its opening.
    pub proof_id: ProofId,
    /// The task that it was delegated from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    /// The time at which the task was opened.
    pub opened_at: Timestamp,
    /// The time at which the task expires.
    pub expires_at: Timestamp,
    /// The calls that were decided under it, those of its delegates among them.
    pub calls: u64,
    /// The most calls that can be.
    pub max_calls: u64,
    /// How many calls the mandate refused, by the class of refusal.
    pub refused: BTreeMap<DenialClass, u64>,
    /// How many observed results are kept.
    pub results: usize,
    /// How many bytes of memory they take.
    pub bytes: usize,
    /// The outcome that it was closed with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}
