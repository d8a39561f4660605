//! The calls on tasks. All are for the runtime: an agent that could make them would vouch for its own values and
//! forge results. An agent names its task in `enforce`.

use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::call::{Call, Read};
use super::params::{Params, given, in_whole_numbers, task_id};
use super::spec::Spec;
use crate::gateway::Gateway;
use rulekeep::agent::AgentId;
use rulekeep::extension::Context;
use rulekeep::task::{Mandate, OpenedTask, Task, TaskId, TaskInfo, TaskRequest, ToolCall};
use rulekeep::{Error, Outcome};

/// A task to open, in the words of its user.
// Unknown fields are refused: if a misspelled `maxCalls` were ignored, the agent would get more than intended.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Open {
    /// The agent that works on the task.
    #[schema(value_type = AgentId)]
    pub agent_id: String,
    /// The user's own words; at most 64 KiB, and blank only with a work area.
    pub input: String,
    /// Values that the runtime vouches for besides those that the words name; at most 32 KiB of text.
    #[serde(default, deserialize_with = "values")]
    #[schema(max_items = 1000, value_type = Option<Vec<TrustedValue>>)]
    pub trusted: Vec<String>,
    /// Absolute folders that the user works on, in which effects of the host's own tools serve any request.
    #[serde(default)]
    #[schema(max_items = 1000, value_type = Option<Vec<String>>)]
    pub work_area: Vec<String>,
    /// The context of the opening decision.
    #[schema(value_type = Option<Context>)]
    pub context: Option<Map<String, Value>>,
    /// The time in which calls can be made under the task, in seconds.
    #[schema(minimum = 1, maximum = 2_678_400, default = 86_400)]
    pub expires_in: Option<u64>,
    /// The number of calls that can be made under the task.
    #[schema(minimum = 1, maximum = 100_000, default = 1000)]
    pub max_calls: Option<u64>,
}

/// A value that the runtime vouches for: a text of 1 to 1,024 bytes, or a number, which stands for its text.
#[derive(ToSchema)]
#[serde(untagged)]
#[allow(dead_code)] // for the schema
enum TrustedValue {
    /// A text value.
    Text(String),
    /// A number, which stands for its text.
    Number(f64),
}

impl Call for Open {
    const SPEC: Spec = Spec::post("task/open", "/admin/tasks", "Opens a task with the user's words as its mandate")
        .no_null()
        .errors(&[404]);
    type Answer = OpenedTask;

    fn run(self, gateway: &Gateway) -> Result<OpenedTask, Error> {
        let mut request = TaskRequest::new(self.agent_id, self.input).trusting(self.trusted).work_area(self.work_area);
        request = given(request, self.context, TaskRequest::context);
        request = given(request, self.expires_in.map(Duration::from_secs), TaskRequest::expires_in);
        request = given(request, self.max_calls, TaskRequest::max_calls);
        gateway.governor().tasks().open(request)?.opened()
    }
}

/// A task.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Get {
    /// The task.
    #[schema(value_type = TaskId)]
    pub task_id: String,
}

impl Call for Get {
    const SPEC: Spec = Spec::get("task/get", "/admin/tasks/{taskId}", "Returns a task").errors(&[404]);
    type Answer = TaskInfo;

    fn run(self, gateway: &Gateway) -> Result<TaskInfo, Error> {
        task(gateway, &self.task_id)?.info()
    }
}

/// The result of a call that was made under a task.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ObserveForm {
    #[schema(value_type = TaskId)]
    task_id: String,
    /// The call, with the tool's name and the arguments that it was decided with.
    #[serde(deserialize_with = "call")]
    call: ToolCall,
    /// The result of the call: a text, or JSON.
    result: Value,
}

/// A result to take in.
pub(super) struct Observe(ObserveForm);

impl Read for Observe {
    fn read(mut params: Params, spec: &Spec) -> Result<Self, Error> {
        // A tool that returns nothing returns `null`, which is a value here and no absent field.
        if let Some(result) = params.take_any("result") {
            params.put("result", if result.is_null() { Value::from("null") } else { result });
        }
        params.typed(spec).map(Self)
    }
}

impl Call for Observe {
    const SPEC: Spec =
        Spec::post("task/observe", "/admin/tasks/{taskId}/observe", "Records the result of a call under a task")
            .large()
            .errors(&[404]);
    type Answer = Observed;

    fn run(self, gateway: &Gateway) -> Result<Observed, Error> {
        let ObserveForm { task_id, call, result } = self.0;
        task(gateway, &task_id)?.observe(&call, &result)?;
        Ok(Observed {})
    }
}

/// Nothing: the result was taken in.
#[derive(Serialize, ToSchema)]
pub(super) struct Observed {}

/// Further words of a task's user.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Say {
    #[schema(value_type = TaskId)]
    task_id: String,
    /// The user's own words; not blank, at most 64 KiB.
    input: String,
}

impl Call for Say {
    const SPEC: Spec =
        Spec::post("task/say", "/admin/tasks/{taskId}/say", "Adds the user's further words to a task").errors(&[404]);
    type Answer = Said;

    fn run(self, gateway: &Gateway) -> Result<Said, Error> {
        task(gateway, &self.task_id)?.say(&self.input).map(|mandate| Said { mandate })
    }
}

/// The mandate with the further words.
#[derive(Serialize, ToSchema)]
pub(super) struct Said {
    mandate: Mandate,
}

/// A part of a task to delegate.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Delegate {
    #[schema(value_type = TaskId)]
    task_id: String,
    /// The agent that works on the part; it may be the same one.
    #[schema(value_type = AgentId)]
    agent_id: String,
    /// The part of the task for that agent; not blank, at most 64 KiB.
    input: String,
}

impl Call for Delegate {
    const SPEC: Spec = Spec::post(
        "task/delegate",
        "/admin/tasks/{taskId}/delegate",
        "Delegates a part of a task, never wider than the task itself",
    )
    .errors(&[404]);
    type Answer = OpenedTask;

    fn run(self, gateway: &Gateway) -> Result<OpenedTask, Error> {
        task(gateway, &self.task_id)?.delegate(&self.agent_id, &self.input)?.opened()
    }
}

/// A task to close.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Close {
    /// The task.
    #[schema(value_type = TaskId)]
    pub task_id: String,
    /// The outcome of the whole task, where it is known.
    pub outcome: Option<Outcome>,
}

impl Call for Close {
    const SPEC: Spec =
        Spec::post("task/close", "/admin/tasks/{taskId}/close", "Closes a task and the tasks delegated from it")
            .errors(&[404]);
    type Answer = TaskInfo;

    fn run(self, gateway: &Gateway) -> Result<TaskInfo, Error> {
        task(gateway, &self.task_id)?.close(self.outcome)
    }
}

fn task(gateway: &Gateway, id: &str) -> Result<Task, Error> {
    gateway.governor().tasks().get(task_id(id)?)
}

/// Texts, and numbers as their text.
fn values<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let values = Vec::<Value>::deserialize(deserializer)?;
    let text = |mut value: Value| {
        in_whole_numbers(&mut value);
        match value {
            Value::String(text) => Ok(text),
            Value::Number(number) => Ok(number.to_string()),
            _ => Err(D::Error::custom("expected an array of strings and numbers")),
        }
    };
    values.into_iter().map(text).collect()
}

/// Objects alone: an array would be read as the fields in their order.
fn call<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ToolCall, D::Error> {
    let fields = Map::<String, Value>::deserialize(deserializer)?;
    serde_json::from_value(Value::Object(fields)).map_err(D::Error::custom)
}
