//! Calls that continue as a task of the server (extension `io.modelcontextprotocol/tasks`). A task belongs to the client
//! whose call created it, and the outcome of the call is reported when the task ends.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CancelTaskParams, CancelTaskRequest, ClientRequest, DetailedTask, ErrorData, GetTaskParams, GetTaskRequest,
    RequestMetaObject, ServerResult, TaskPayload,
};
use rulekeep::Outcome;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::call::{observed, outcome};
use crate::governance::{Governance, Permit};
use crate::upstream::Upstream;

/// The newest tasks of a gateway's clients.
#[derive(Default)]
pub(crate) struct Tasks(Mutex<VecDeque<Arc<Task>>>);

/// A call that continues as a task.
pub(crate) struct Task {
    id: String,
    /// The client whose call created the task.
    client: Value,
    tool: String,
    arguments: Value,
    standing: tokio::sync::Mutex<Standing>,
}

/// The record of the call's outcome.
enum Standing {
    Open(Permit),
    Recorded,
    /// The result could not be recorded under the task of governance, for this reason.
    Withheld(String),
}

impl Tasks {
    /// Adds a task, and forgets the oldest one if there are too many.
    pub(crate) fn add(&self, task: Task) -> Arc<Task> {
        let task = Arc::new(task);
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tasks.len() >= MOST_TASKS {
            tasks.pop_front();
        }
        tasks.push_back(Arc::clone(&task));
        task
    }

    /// Finds a task of this client.
    pub(crate) fn find(&self, id: &str, client: &Value) -> Result<Arc<Task>, ErrorData> {
        let tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = tasks.iter().rfind(|task| task.id == id && task.client == *client).map(Arc::clone);
        found.ok_or_else(|| ErrorData::invalid_params(format!("this client has no task {id:?}"), None))
    }
}

impl Task {
    pub(crate) fn new(id: String, client: Value, tool: String, arguments: Value, permit: Permit) -> Self {
        Self { id, client, tool, arguments, standing: tokio::sync::Mutex::new(Standing::Open(permit)) }
    }

    /// Records the outcome of the call once the task has ended, before the client sees the result.
    pub(crate) async fn settle(&self, governance: &Governance, state: &DetailedTask) -> Result<(), ErrorData> {
        let (outcome, observed) = match &state.payload {
            TaskPayload::Completed { result } => {
                let result = Value::Object(result.clone());
                (Some(outcome(&result)), observed(result))
            }
            TaskPayload::Failed { error } => {
                (Some(Outcome::Failure), error.get("message").cloned().unwrap_or_default())
            }
            TaskPayload::Cancelled => (None, Value::Null),
            _ => return Ok(()),
        };
        let mut standing = self.standing.lock().await;
        if let Standing::Open(permit) = &*standing {
            governance.report(permit, outcome).await;
            let recorded = if observed.is_null() {
                Ok(())
            } else {
                governance.observe(&self.tool, &self.arguments, observed).await
            };
            *standing = recorded.map_or_else(|error| Standing::Withheld(error.to_string()), |()| Standing::Recorded);
        }
        match &*standing {
            Standing::Withheld(why) => {
                let why = format!("the result of the task is withheld, as it could not be recorded: {why}");
                Err(ErrorData::internal_error(why, None))
            }
            _ => Ok(()),
        }
    }

    /// Asks the server for the task until it has ended, whether or not the client does, and to cancel it when the time
    /// that the decision allows is over.
    pub(crate) async fn watch(
        self: Arc<Self>,
        governance: Governance,
        upstream: Arc<Upstream>,
        meta: RequestMetaObject,
        mut interval: Option<u64>,
        timeout: Option<Duration>,
    ) {
        let mut end = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            let pause = interval.map_or(USUAL_PAUSE, Duration::from_millis).clamp(LEAST_PAUSE, MOST_PAUSE);
            let next = Instant::now() + pause;
            tokio::time::sleep_until(end.map_or(next, |end| end.min(next))).await;
            if !matches!(&*self.standing.lock().await, Standing::Open(_)) {
                return;
            }
            if end.take_if(|end| *end <= Instant::now()).is_some() {
                let cancel = CancelTaskRequest::new(CancelTaskParams::new(&self.id));
                let cancelled = upstream.send(ClientRequest::CancelTaskRequest(cancel), &meta).await;
                tracing::info!(task = self.id, ?cancelled, "the time that the decision allows is over");
            }
            let get = GetTaskRequest::new(GetTaskParams::new(&self.id));
            match upstream.send(ClientRequest::GetTaskRequest(get), &meta).await {
                Ok(ServerResult::GetTaskResult(state)) => {
                    interval = state.task.task.poll_interval_ms;
                    // A result that is withheld is refused to the client when it asks.
                    let _ = self.settle(&governance, &state.task).await;
                }
                lost => {
                    tracing::warn!(task = self.id, ?lost, "the outcome of a task is unknown");
                    let mut standing = self.standing.lock().await;
                    if let Standing::Open(permit) = &*standing {
                        governance.report(permit, None).await;
                        *standing = Standing::Recorded;
                    }
                }
            }
        }
    }
}

/// The identity of a client: the number of its session, or without sessions its name and version.
pub(crate) fn client(session: Option<u64>, context: &rmcp::service::RequestContext<rmcp::RoleServer>) -> Value {
    session.map_or_else(|| json!(context.client_info()), |session| json!(session))
}

/// Number of tasks that clients can ask about.
const MOST_TASKS: usize = 1000;
/// The time between two questions, if the server names none, and its limits.
const USUAL_PAUSE: Duration = Duration::from_secs(5);
const LEAST_PAUSE: Duration = Duration::from_millis(500);
const MOST_PAUSE: Duration = Duration::from_secs(60);
