//! Tasks: a user's words as the ceiling of what an agent does for them.
//!
//! A task is opened with the user's words. Every call under it is held against them by the engine of mandates before it is
//! held against the policies' verdict. Opening a task, and every further word of the user, is a decision with a record of
//! its own, whose evidence keeps the words; observed results are kept in memory alone.
//!
//! | file | subject |
//! |---|---|
//! | `live.rs` | open tasks in memory, and what the log keeps of each |
//! | `open.rs` | opening, further words, delegation, closing |
//! | `call.rs` | a call as the engine of mandates takes it |
//! | `enforce.rs` | a decision under a task |
//! | `observe.rs` | results, and the loss of them |
//! | `under.rs` | what a mandate does to a verdict, and its reasons in words |
//! | `widen.rs` | approvals that widen a mandate |

mod call;
mod enforce;
mod live;
mod observe;
mod open;
mod under;
mod widen;

pub(super) use live::{KEY_PREFIX, TaskTable};
pub(super) use under::Under;

use serde_json::Value;

use super::{Governor, GuardError, Guarded};
use crate::model::{
    Enforcement, Error, Grant, Input, InputEnforcement, Intent, Mandate, OpenedTask, Outcome, TaskId, TaskInfo,
    TaskRequest, ToolCall,
};

/// The tasks of a governor. See [`Governor::tasks`].
///
/// Opening a task, saying more and vouching for values is the runtime's: what an agent can call must not reach it.
#[derive(Debug, Clone, Copy)]
pub struct Tasks<'a> {
    pub(super) governor: &'a Governor,
}

impl Tasks<'_> {
    /// Opens a task with the user's own words. They are its mandate: what they ask for, with the values that they name or
    /// the runtime vouches for, is the most that can be done under it.
    ///
    /// ```
    /// use rulekeep::task::{TaskRequest, ToolCall};
    /// use rulekeep::{Agent, Decision, Governor, Tier};
    /// use serde_json::json;
    ///
    /// let governor = Governor::builder().open_in_memory()?;
    /// governor.agents().register(Agent::new("assistant-1").at_tier(Tier::T5))?;
    /// let task = governor.tasks().open(TaskRequest::new("assistant-1", "Send the agenda to ann@example.com"))?;
    ///
    /// let asked = ToolCall::new("send_email", json!({ "recipients": ["ann@example.com"], "body": "The agenda" }));
    /// assert_eq!(task.enforce(&asked)?.enforcement.decision, Decision::Allow);
    ///
    /// // What the words do not ask for is refused, whatever the agent may do otherwise.
    /// let unasked = ToolCall::new("delete_email", json!({ "email_id": "7" }));
    /// assert_eq!(task.enforce(&unasked)?.enforcement.decision, Decision::Deny);
    /// task.close(None)?;
    /// # Ok::<(), rulekeep::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::AgentNotFound`], [`Error::InvalidInput`] for blank words or a limit out of its range,
    /// [`Error::PayloadTooLarge`]; [`Error::Forbidden`] where the agent is suspended or stopped, after a record of that;
    /// [`Error::StorageUnavailable`], [`Error::ChainBroken`].
    pub fn open(self, request: TaskRequest) -> Result<Task, Error> {
        self.governor.open_task(request, None)
    }

    /// A task that was opened before, also before a restart.
    ///
    /// # Errors
    ///
    /// [`Error::TaskNotFound`].
    pub fn get(self, id: TaskId) -> Result<Task, Error> {
        if self.governor.inner.tasks.knows(id) {
            Ok(Task { governor: self.governor.clone(), id })
        } else {
            Err(Error::task_not_found(id))
        }
    }
}

/// A task. Cheap to clone, and used from any number of threads.
#[derive(Debug, Clone)]
pub struct Task {
    governor: Governor,
    id: TaskId,
}

impl Task {
    /// The id of the task.
    pub const fn id(&self) -> TaskId {
        self.id
    }

    /// Decides on a call of the task's agent, by the mandate and by the policies, and records the decision.
    ///
    /// Inside the mandate the policies decide. A call that nothing in the words asks for is denied; one that is not sure,
    /// or has a value without a legitimate source, is escalated for a reviewer to endorse. The fourth call that is denied for
    /// one reason ends the task.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] where the task is no longer open, and those of [`Governor::enforce_input`].
    pub fn enforce(&self, call: &ToolCall) -> Result<InputEnforcement, Error> {
        self.governor.enforce_call_under(self.id, call)
    }

    /// Decides on a request of the task's agent in any form that the parser reads.
    ///
    /// # Errors
    ///
    /// Those of [`Task::enforce`].
    pub fn enforce_input<'a>(&self, input: impl Into<Input<'a>>) -> Result<InputEnforcement, Error> {
        self.governor.enforce_input_under(self.id, None, input.into())
    }

    /// Decides on an intent of the task's agent. Of a call only what the parser found is known then; what it would
    /// write is not.
    ///
    /// # Errors
    ///
    /// Those of [`Task::enforce`] and of [`Governor::enforce`].
    pub fn enforce_intent(&self, intent: &Intent) -> Result<Enforcement, Error> {
        self.governor.enforce_intent_under(self.id, intent, super::decide::RiskSource::Caller)
    }

    /// Decides on a call and runs `work` under its grant, as [`Governor::guard`] does.
    ///
    /// # Errors
    ///
    /// Those of [`Governor::guard`]; [`GuardError::Undecided`] where the task is no longer open.
    pub fn guard<T, E>(
        &self,
        call: &ToolCall,
        work: impl FnOnce(Grant) -> Result<T, E>,
    ) -> Result<Guarded<T>, GuardError<E>> {
        let decided = self.enforce(call).map_err(GuardError::Undecided)?;
        self.governor.guard_decided(decided, work)
    }

    /// Tells what a call returned, as text or as JSON. Ids and addresses of the entries that the user named become known;
    /// any other value that only a result supplies is endorsed by a reviewer before it is used.
    ///
    /// At most 8 MiB; 2 MiB of results are kept for a task. What is beyond is taken for anything that leaves.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] for a call that was not decided under the task, or a task that is not open;
    /// [`Error::PayloadTooLarge`].
    pub fn observe(&self, call: &ToolCall, result: &Value) -> Result<(), Error> {
        self.governor.observe_result(self.id, call, result)
    }

    /// Adds further words of the user, such as the second prompt of a conversation, and recorded like the first.
    ///
    /// # Errors
    ///
    /// Those of [`Tasks::open`], and [`Error::Conflict`] for a task that is not open.
    pub fn say(&self, words: &str) -> Result<Mandate, Error> {
        self.governor.say_more(self.id, words)
    }

    /// Delegates a part of the task to an agent, which may be the same one. A call under the new task must be inside both
    /// mandates; its calls count for both, and its results are observed under both.
    ///
    /// # Errors
    ///
    /// Those of [`Tasks::open`], and [`Error::Conflict`] for a task that is not open or is delegated eight times deep.
    pub fn delegate(&self, agent_id: &str, words: &str) -> Result<Self, Error> {
        self.governor.open_task(TaskRequest::new(agent_id, words), Some(self.id))
    }

    /// Closes the task, with the outcome of the whole where it is known. Tasks that were delegated from it close too.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] for a task that is not open; [`Error::StorageUnavailable`].
    pub fn close(&self, outcome: Option<Outcome>) -> Result<TaskInfo, Error> {
        self.governor.close_task(self.id, outcome)
    }

    /// The task as it stands.
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] where the log cannot be read.
    pub fn info(&self) -> Result<TaskInfo, Error> {
        self.governor.task_info(self.id)
    }

    /// The task as it was opened, with its mandate as it is now.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] for a task that is not open.
    pub fn opened(&self) -> Result<OpenedTask, Error> {
        self.governor.opened_task(self.id)
    }
}
