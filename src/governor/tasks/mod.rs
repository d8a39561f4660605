//! Tasks: a user's words limit what an agent may do for them.
//!
//! A task is opened with the user's words. The mandate engine compares every call with them and limits the policies'
//! verdict. Opening a task, and each further text of the user, is a decision with a record of its own, whose evidence
//! stores the words. Observed results are only kept in memory.
//!
//! | file | subject |
//! |---|---|
//! | `live.rs` | open tasks in memory, and their state in the log |
//! | `open.rs` | opening, further words, approvals that widen a mandate, delegation, closing |
//! | `call.rs` | tool calls in the form that the mandate engine uses |
//! | `enforce.rs` | decisions under a task |
//! | `observe.rs` | observed results, and their loss |
//! | `under.rs` | the effect of a mandate on a verdict, and its reasoning |

mod call;
mod enforce;
mod live;
mod observe;
mod open;
mod under;

pub(super) use under::Under;

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use self::live::{Table, TaskRecord};
use serde_json::Value;

use crate::governor::intake::risk::RiskSource;
use crate::governor::{Approvals, Base, Decider, Governor, GuardError, Guarded, Intake};
use crate::model::{
    Enforcement, Error, Facts, Grant, Input, InputEnforcement, Intent, Mandate, OpenedTask, Outcome, TaskId, TaskInfo,
    TaskRequest, ToolCall,
};

/// The tasks of a governor.
///
/// Lock order: a delegate, the task that it was delegated from, then the table of tasks and the log, or the locks of the
/// approvals.
pub(crate) struct TaskBook {
    base: Arc<Base>,
    intake: Arc<Intake>,
    approvals: Arc<Approvals>,
    decider: Arc<Decider>,
    // Held to look up, add or end a task; only the log's queue is locked while it is held.
    table: RwLock<Table>,
}

/// The tasks that the log stores.
pub(crate) type KeptTasks = HashMap<TaskId, TaskRecord>;

impl TaskBook {
    pub(crate) fn restored(approvals: &Arc<Approvals>, decider: &Arc<Decider>, kept: KeptTasks) -> Self {
        Self {
            base: Arc::clone(&decider.base),
            intake: Arc::clone(&decider.intake),
            approvals: Arc::clone(approvals),
            decider: Arc::clone(decider),
            table: RwLock::new(Table { kept, ..Table::default() }),
        }
    }
}

/// The tasks of a governor, see [`Governor::tasks`].
///
/// Only the runtime may open tasks, add words and vouch for values; agents must not be able to call these methods.
#[derive(Debug, Clone, Copy)]
pub struct Tasks<'a> {
    pub(super) governor: &'a Governor,
}

impl Tasks<'_> {
    /// Opens a task with the user's own words. They are its mandate: the agent may do at most what they ask for, with
    /// the values that they name or the runtime vouches for.
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
    /// [`Error::AgentNotFound`]; [`Error::InvalidInput`] for blank words or a limit out of range;
    /// [`Error::PayloadTooLarge`]; [`Error::Forbidden`] when the agent is suspended or stopped (a record is written);
    /// [`Error::StorageUnavailable`] or [`Error::ChainBroken`] when it cannot be recorded.
    pub fn open(self, request: TaskRequest) -> Result<Task, Error> {
        let id = self.governor.inner.here()?.tasks.open_task(request, None)?;
        Ok(Task { governor: self.governor.clone(), id })
    }

    /// Returns a task that was opened earlier, also before a restart.
    ///
    /// # Errors
    ///
    /// [`Error::TaskNotFound`] for an unknown task.
    pub fn get(self, id: TaskId) -> Result<Task, Error> {
        self.governor.inner.here()?.tasks.record(id)?;
        Ok(Task { governor: self.governor.clone(), id })
    }
}

/// A handle to one task, cheap to clone and usable from any number of threads.
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

    /// Decides on a call of the task's agent by the mandate and the policies, and records the decision.
    ///
    /// Within the mandate the policies decide. A call that the words do not ask for is denied. A call that they may ask
    /// for, or that has a value without a legitimate source, is escalated for a reviewer to endorse. A refused
    /// call does not end the task.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] when the task is no longer open, and the errors of [`Governor::enforce_input`].
    pub fn enforce(&self, call: &ToolCall) -> Result<InputEnforcement, Error> {
        self.governor.inner.here()?.tasks.enforce_call_under(self.id, call)
    }

    /// Decides on a request of the task's agent, in any form that the parser reads.
    ///
    /// # Errors
    ///
    /// The errors of [`Task::enforce`].
    pub fn enforce_input<'a>(&self, input: impl Into<Input<'a>>) -> Result<InputEnforcement, Error> {
        self.governor.inner.here()?.tasks.enforce_input_under(self.id, None, input.into())
    }

    /// Decides on an intent of the task's agent. Only the parser's findings about the call are known then, not the
    /// content it would write.
    ///
    /// # Errors
    ///
    /// The errors of [`Task::enforce`] and of [`Governor::enforce`].
    pub fn enforce_intent(&self, intent: &Intent) -> Result<Enforcement, Error> {
        self.governor.inner.here()?.tasks.enforce_intent_under(self.id, intent, RiskSource::Caller)
    }

    /// Decides on a call and runs `work` under its grant, like [`Governor::guard`].
    ///
    /// # Errors
    ///
    /// The errors of [`Governor::guard`]; [`GuardError::Undecided`] when the task is no longer open.
    pub fn guard<T, E>(
        &self,
        call: &ToolCall,
        work: impl FnOnce(Grant) -> Result<T, E>,
    ) -> Result<Guarded<T>, GuardError<E>> {
        let decided = self.enforce(call).map_err(GuardError::Undecided)?;
        self.governor.inner.decider.guard_decided(decided, work)
    }

    /// Reports the result of a call, as text or JSON. Ids and addresses of entries that the user named become known.
    /// Any other value that only a result contains must be endorsed by a reviewer before it is used.
    ///
    /// A result has at most 8 MiB, and a task keeps 2 MiB of results. Anything beyond is unknown: any outgoing value
    /// may contain it.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] for a call that was not decided under the task, or a task that is not open;
    /// [`Error::PayloadTooLarge`] for a result over 8 MiB.
    pub fn observe(&self, call: &ToolCall, result: &Value) -> Result<(), Error> {
        self.governor.inner.here()?.tasks.observe_result(self.id, call, result)
    }

    /// Notes files and folders, by their absolute paths, that do not exist yet and that a call of the task is about to
    /// create: the task may change and remove them. They are forgotten when the process ends.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] for a task that is not open.
    pub fn created<T: AsRef<str>>(&self, paths: impl IntoIterator<Item = T>) -> Result<(), Error> {
        self.governor.inner.here()?.tasks.note_created(self.id, paths, true)
    }

    /// Notes paths like [`created`](Self::created) whose content a call of the task downloads: running them is not the
    /// task's own work.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] for a task that is not open.
    pub fn fetched<T: AsRef<str>>(&self, paths: impl IntoIterator<Item = T>) -> Result<(), Error> {
        self.governor.inner.here()?.tasks.note_created(self.id, paths, false)
    }

    /// Takes back paths that were noted as created: the call was not granted, or a call removes them.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] for a task that is not open.
    pub fn disowned<T: AsRef<str>>(&self, paths: impl IntoIterator<Item = T>) -> Result<(), Error> {
        self.governor.inner.here()?.tasks.note_disowned(self.id, paths)
    }

    /// Returns whether the riskiest parts of a call only remove or run what the task created.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] for a task that is not open.
    pub fn is_own_work(&self, facts: &Facts) -> Result<bool, Error> {
        self.governor.inner.here()?.tasks.is_own_work(self.id, facts)
    }

    /// Notes that the user seems to have agreed to an escalated call, because it ran: the same call, and further files of
    /// the same project, need no second question. Unlike an approval this is forgotten when the process ends.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] for a task that is not open.
    pub fn presume(&self, escalated: &crate::model::ProofId) -> Result<(), Error> {
        self.governor.inner.here()?.tasks.presume_agreement(self.id, *escalated)
    }

    /// Adds further words of the user, such as the second prompt of a conversation, and records them like the first.
    ///
    /// # Errors
    ///
    /// The errors of [`Tasks::open`], and [`Error::Conflict`] for a task that is not open.
    pub fn say(&self, words: &str) -> Result<Mandate, Error> {
        self.governor.inner.here()?.tasks.say_more(self.id, words)
    }

    /// Delegates a part of the task to an agent, which may be the same one. A call under the new task must be within
    /// both mandates. It counts for both tasks, and its result is observed under both.
    ///
    /// # Errors
    ///
    /// The errors of [`Tasks::open`], and [`Error::Conflict`] for a task that is not open or is delegated eight levels
    /// deep.
    pub fn delegate(&self, agent_id: &str, words: &str) -> Result<Self, Error> {
        let id = self.governor.inner.here()?.tasks.open_task(TaskRequest::new(agent_id, words), Some(self.id))?;
        Ok(Self { governor: self.governor.clone(), id })
    }

    /// Closes the task, with its overall outcome if known, and the tasks delegated from it.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] for a task that is not open; [`Error::StorageUnavailable`] when it cannot be recorded.
    pub fn close(&self, outcome: Option<Outcome>) -> Result<TaskInfo, Error> {
        self.governor.inner.here()?.tasks.close_task(self.id, outcome)
    }

    /// Returns the task and its current state.
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] when the log cannot be read.
    pub fn info(&self) -> Result<TaskInfo, Error> {
        self.governor.inner.here()?.tasks.task_info(self.id)
    }

    /// Returns the open task with its current mandate.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] for a task that is not open.
    pub fn opened(&self) -> Result<OpenedTask, Error> {
        self.governor.inner.here()?.tasks.opened_task(self.id)
    }
}
