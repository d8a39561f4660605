//! Tasks: a user's request to an agent, and the limits it sets for the agent's calls.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{AgentId, Capability, DenialClass, Outcome, ProofId, RiskLevel, TaskId, Timestamp, closed_words};

closed_words! {
    /// The state of a task.
    pub enum TaskState("task state") {
        /// Calls are decided under the task.
        Open = "open",
        /// The runtime closed the task.
        Closed = "closed",
        /// The task ended by itself: with its parent task, or because its words were erased.
        Ended = "ended",
        /// The task expired.
        Expired = "expired",
    }
}

/// A tool call: the tool's name and arguments.
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
    /// The tool's name, as the agent calls it; the JSON key `tool` is accepted too.
    #[serde(alias = "tool")]
    pub name: String,
    /// The arguments by name.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub arguments: Map<String, Value>,
    /// The server the tool belongs to, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

impl ToolCall {
    /// Creates a call; `arguments` other than an object count as no arguments.
    pub fn new(name: impl Into<String>, arguments: Value) -> Self {
        let arguments = if let Value::Object(arguments) = arguments { arguments } else { Map::new() };
        Self { name: name.into(), arguments, server: None }
    }

    /// Names the server the tool belongs to.
    #[must_use]
    pub fn of_server(mut self, server: impl Into<String>) -> Self {
        self.server = Some(server.into());
        self
    }

    /// The call as input for the parser.
    pub fn to_text(&self) -> String {
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
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct TaskRequest {
    pub agent_id: String,
    pub input: String,
    pub trusted: Vec<String>,
    pub work_area: Vec<String>,
    pub context: Map<String, Value>,
    pub expires_in: Option<Duration>,
    pub max_calls: Option<u64>,
}

impl TaskRequest {
    /// Creates a request to open a task from the user's own words.
    pub fn new(agent_id: impl Into<String>, input: impl Into<String>) -> Self {
        Self {
            agent_id: agent_id.into(),
            input: input.into(),
            trusted: Vec::new(),
            work_area: Vec::new(),
            context: Map::new(),
            expires_in: None,
            max_calls: None,
        }
    }

    /// Adds values that the runtime vouches for: contacts, the user's accounts, the working folder. A folder includes
    /// everything below it.
    pub fn trusting<T: Into<String>>(mut self, values: impl IntoIterator<Item = T>) -> Self {
        self.trusted.extend(values.into_iter().map(Into::into));
        self
    }

    /// Adds absolute folders that the user works on. Calls of the host's own tools whose effects stay in them serve any
    /// request; the words decide about effects that leave. `server:files` adds the MCP server "files", whose tools are
    /// judged like the host's own: it must reach nothing but this machine.
    pub fn work_area<T: Into<String>>(mut self, folders: impl IntoIterator<Item = T>) -> Self {
        self.work_area.extend(folders.into_iter().map(Into::into));
        self
    }

    /// Sets the context of the opening decision.
    pub fn context(mut self, context: Map<String, Value>) -> Self {
        self.context = context;
        self
    }

    /// Sets how long the task accepts calls: at most 31 days. Default: 24 hours.
    pub fn expires_in(mut self, duration: Duration) -> Self {
        self.expires_in = Some(duration);
        self
    }

    /// Sets how many calls the task accepts: at most 100,000. Default: 1,000.
    pub fn max_calls(mut self, calls: u64) -> Self {
        self.max_calls = Some(calls);
        self
    }
}

crate::parts::outward! {
    /// The mandate of a task: the limits that follow from the user's words.
    pub struct Mandate from MandateParts {
        /// The user's texts with secrets redacted, the first one first.
        pub words: Vec<String>,
        /// The acts that the words ask for. Related reads are part of the mandate too.
        pub capabilities: Vec<Capability>,
        /// The risk of the requested acts.
        pub risk_level: RiskLevel,
        /// Whether the words delegate to a text the user has not shown ("do what the mail says"); every effect then needs
        /// an approval.
        pub open: bool,
        /// Number of values that the runtime vouches for or a reviewer endorsed.
        pub trusted: usize,
    }
}

crate::parts::outward! {
    /// A newly opened task.
    pub struct OpenedTask from OpenedTaskParts {
        /// The identifier of the task.
        pub task_id: TaskId,
        /// The mandate of the task.
        pub mandate: Mandate,
        /// The proof record of its opening.
        pub proof_id: ProofId,
        /// The time at which the task expires.
        pub expires_at: Timestamp,
    }
}

crate::parts::outward! {
    /// A task and its current state.
    pub struct TaskInfo from TaskInfoParts {
        /// The identifier of the task.
        pub task_id: TaskId,
        /// The agent that works on it.
        pub agent_id: AgentId,
        /// The state of the task.
        pub state: TaskState,
        /// Why the task ended, if it ended by itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub why: Option<String>,
        /// The mandate of the task; absent once the task is no longer open.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub mandate: Option<Mandate>,
        /// The proof record of its opening.
        pub proof_id: ProofId,
        /// The task it was delegated from, if any.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub parent: Option<TaskId>,
        /// The time at which the task was opened.
        pub opened_at: Timestamp,
        /// The time at which the task expires.
        pub expires_at: Timestamp,
        /// Number of calls decided under the task, including those of its delegates.
        pub calls: u64,
        /// Maximum number of calls.
        pub max_calls: u64,
        /// Number of calls that the mandate refused, by class of refusal.
        pub refused: BTreeMap<DenialClass, u64>,
        /// Number of observed results kept in memory.
        pub results: usize,
        /// Memory they use, in bytes.
        pub bytes: usize,
        /// The outcome the task was closed with.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub outcome: Option<Outcome>,
    }
}
