//! A server with tools that tests change, a client of either revision, and the gateway between them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::*;
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RequestContext, RunningService,
    RunningServiceCancellationToken, SubscriptionContext,
};
use rmcp::task_manager::{TaskExit, TaskManager, TaskOptions};
use rmcp::{ClientHandler, RoleClient, RoleServer, ServerHandler, ServiceExt as _};
use serde_json::{Value, json};

pub(super) use super::office::Office;

use crate::governance::Governance;
use crate::handler::Gate;
use crate::lines::Lines;
use crate::shared::Shared;
use crate::upstream::Connector;
use crate::{Calls, Governed};

/// The server behind the gateway.
#[derive(Clone, Default)]
pub(super) struct Server {
    pub(super) tools: Arc<Mutex<Vec<Tool>>>,
    /// The tool calls that reached it.
    pub(super) called: Arc<Mutex<Vec<CallToolRequestParams>>>,
    /// Other methods that reached it.
    pub(super) seen: Arc<Mutex<Vec<String>>>,
    pub(super) connections: Arc<AtomicUsize>,
    tasks: TaskManager,
    /// Lets tasks of `read_long` end.
    pub(super) end: Arc<tokio::sync::Notify>,
    /// Ends the latest connection.
    running: Arc<Mutex<Option<RunningServiceCancellationToken>>>,
}

impl Server {
    pub(super) fn with(tools: &[(&str, &str)]) -> Self {
        let server = Self::default();
        server.offer(tools);
        server
    }

    pub(super) fn offer(&self, tools: &[(&str, &str)]) {
        *self.tools.lock().unwrap() = tools.iter().map(|(name, description)| tool(name, description)).collect();
    }

    /// The names of the tools that were called.
    pub(super) fn calls(&self) -> Vec<String> {
        self.called.lock().unwrap().iter().map(|call| call.name.to_string()).collect()
    }
}

pub(super) fn tool(name: &str, description: &str) -> Tool {
    let schema = json!({ "type": "object", "properties": { "id": { "type": "string" } } });
    Tool::new(name.to_owned(), description.to_owned(), schema.as_object().unwrap().clone())
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_resources()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("wiki-server", "7"))
            .with_instructions("Ask for pages.")
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // One tool per page.
        let place: usize = request.and_then(|page| page.cursor).map_or(0, |cursor| cursor.parse().unwrap());
        let tools = self.tools.lock().unwrap();
        let mut result = ListToolsResult::with_all_items(tools.get(place).cloned().into_iter().collect());
        result.next_cursor = (place + 1 < tools.len()).then(|| (place + 1).to_string());
        result.cache_scope = Some(CacheScope::Public);
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.called.lock().unwrap().push(request.clone());
        let text = |text: &str| vec![ContentBlock::text(text)];
        match request.name.as_ref() {
            "read_broken" => Ok(CallToolResult::error(text("no such page")).into()),
            "read_refused" => Err(ErrorData::invalid_params("the id is malformed", None)),
            "read_changing" => {
                context.peer.notify_tool_list_changed().await.unwrap();
                Ok(CallToolResult::success(text("done")).into())
            }
            "read_gone" => {
                self.running.lock().unwrap().take().unwrap().cancel();
                std::future::pending().await
            }
            "read_slowly" => {
                if let Some(token) = context.meta.get_progress_token() {
                    let progress = ProgressNotificationParam::new(token, 0.5);
                    context.peer.notify_progress(progress).await.unwrap();
                }
                context.ct.cancelled().await;
                self.seen.lock().unwrap().push("cancelled".to_owned());
                Ok(CallToolResult::success(text("late")).into())
            }
            "read_asking" if request.input_responses.is_none() => {
                let schema = ElicitationSchema::builder().required_bool("sure").build().unwrap();
                let question = ElicitRequestParams::FormElicitationParams {
                    meta: None,
                    message: "Which page?".to_owned(),
                    requested_schema: schema,
                };
                let requests = [("page".to_owned(), InputRequest::Elicitation(ElicitRequest::new(question)))];
                Ok(InputRequiredResult::new(Some(requests.into()), Some("state of the server".to_owned())).into())
            }
            "read_long" => {
                let end = Arc::clone(&self.end);
                let task = self.tasks.spawn(TaskOptions::default().with_poll_interval_ms(1), move |task| {
                    Box::pin(async move {
                        tokio::select! {
                            () = task.cancelled() => Err(TaskExit::Cancelled),
                            () = end.notified() => Ok(CallToolResult::success(vec![ContentBlock::text("done")])),
                        }
                    })
                });
                Ok(CreateTaskResult::new(task).into())
            }
            "read_long_failing" => {
                let failed = Err(TaskExit::Error(ErrorData::internal_error("no page", None)));
                let task = self.tasks.spawn(TaskOptions::default(), move |_| Box::pin(async move { failed }));
                Ok(CreateTaskResult::new(task).into())
            }
            _ => Ok(CallToolResult::success(text("done")).into()),
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.seen.lock().unwrap().push("tasks/get".to_owned());
        self.tasks.get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(&self, request: UpdateTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.seen.lock().unwrap().push("tasks/update".to_owned());
        self.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.seen.lock().unwrap().push("tasks/cancel".to_owned());
        self.tasks.cancel_task(&request.task_id)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Ok(ReadResourceResult::new(vec![ResourceContents::text("a page", request.uri)]).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(vec![Prompt::new("greet", Some("Greets."), None)]))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        self.seen.lock().unwrap().push(request.method.clone());
        Ok(CustomResult::new(json!({ "asked": request.method, "params": request.params })))
    }

    async fn on_custom_notification(&self, notification: CustomNotification, _: NotificationContext<RoleServer>) {
        self.seen.lock().unwrap().push(notification.method);
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        subscription.sink().notify_tool_list_changed().await.unwrap();
        subscription.cancelled().await;
        self.seen.lock().unwrap().push("unsubscribed".to_owned());
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }
}

/// The user of the client.
#[derive(Clone)]
pub(super) struct User {
    name: &'static str,
    forms: bool,
    /// The answers to questions, in order; the last one is repeated.
    answers: Arc<Mutex<Vec<ElicitResult>>>,
    /// The questions that came.
    pub(super) asked: Arc<Mutex<Vec<String>>>,
    pub(super) progress: Arc<Mutex<Vec<f64>>>,
    /// Number of reports that the tools changed.
    pub(super) changes: Arc<AtomicUsize>,
}

impl User {
    pub(super) fn without_forms() -> Self {
        Self {
            name: "test-client",
            forms: false,
            answers: Arc::default(),
            asked: Arc::default(),
            progress: Arc::default(),
            changes: Arc::default(),
        }
    }

    pub(super) fn named(name: &'static str) -> Self {
        Self { name, ..Self::without_forms() }
    }

    pub(super) fn answering(answers: &[ElicitResult]) -> Self {
        Self { forms: true, answers: Arc::new(Mutex::new(answers.to_vec())), ..Self::without_forms() }
    }
}

pub(super) fn yes() -> ElicitResult {
    ElicitResult::new(ElicitationAction::Accept).with_content(json!({ "approve": true }))
}

impl ClientHandler for User {
    fn get_info(&self) -> ClientConfig {
        let builder = ClientCapabilities::builder().enable_tasks();
        let capabilities = if self.forms { builder.enable_elicitation().build() } else { builder.build() };
        ClientConfig::new(capabilities, Implementation::new(self.name, "1"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        if let ElicitRequestParams::FormElicitationParams { message, .. } = request {
            self.asked.lock().unwrap().push(message);
        }
        let mut answers = self.answers.lock().unwrap();
        Ok(if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() })
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.lock().unwrap().push(params.progress);
    }
}

/// The revision that a side supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Revision {
    /// Revision 2026-07-28.
    Stateless,
    /// Revision 2025-11-25.
    Session,
}

pub(super) const BOTH: [Revision; 2] = [Revision::Stateless, Revision::Session];

pub(super) type Client = RunningService<RoleClient, User>;

/// Options without a wait.
pub(super) fn governed() -> Governed {
    Governed::new("wiki").agent("a").wait(Duration::ZERO)
}

/// Connects a client through a new gateway.
pub(super) async fn connect(
    office: &Arc<Office>,
    governed: Governed,
    server: &Server,
    user: User,
    revision: Revision,
) -> Client {
    join(shared(office, governed, server), user, revision).await
}

/// Connects another client to a gateway.
pub(super) async fn join(shared: Arc<Shared>, user: User, revision: Revision) -> Client {
    let gate = Gate::new(shared);
    let (near, far) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(far);
    let lines = Lines::new(read, write, None);
    tokio::spawn(async move { Box::pin(gate.serve(lines)).await.unwrap().waiting().await });
    let lifecycle = match revision {
        Revision::Stateless => {
            ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
        }
        Revision::Session => ClientLifecycleMode::Initialize,
    };
    user.serve_with_lifecycle(near, lifecycle).await.unwrap()
}

/// A new gateway in front of the server.
pub(super) fn shared(office: &Arc<Office>, governed: Governed, server: &Server) -> Arc<Shared> {
    before(office, governed, connector(server))
}

/// The way to this server.
pub(super) fn connector(server: &Server) -> Connector {
    let server = server.clone();
    Connector::Stream(Box::new(move || {
        let (near, far) = tokio::io::duplex(1 << 16);
        let server = server.clone();
        server.connections.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(async move {
            let running = server.clone().serve(far).await.unwrap();
            *server.running.lock().unwrap() = Some(running.cancellation_token());
            running.waiting().await
        });
        near
    }))
}

/// A new gateway in front of what the connector reaches.
pub(super) fn before(office: &Arc<Office>, governed: Governed, upstream: Connector) -> Arc<Shared> {
    let governance = Governance::new(Arc::clone(office) as Arc<dyn Calls>, governed);
    Arc::new(Shared::new(governance, Arc::new(upstream)).unwrap())
}

pub(super) fn call(tool: &str) -> CallToolRequestParams {
    CallToolRequestParams::new(tool.to_owned()).with_arguments(json!({ "id": "7" }).as_object().unwrap().clone())
}

/// The fields of a refusal.
#[track_caller]
pub(super) fn refusal(result: &CallToolResult) -> &Value {
    assert_eq!((result.is_error, &result.structured_content), (Some(true), &None), "{result:?}");
    &result.meta.as_ref().unwrap().0[crate::refusal::REFUSAL]
}

#[track_caller]
pub(super) fn is_done(result: &CallToolResult) {
    assert!(result.is_error != Some(true), "{result:?}");
    assert_eq!(result.content[0].as_text().unwrap().text, "done");
}

/// The names of the tools that the client sees.
pub(super) async fn tools(client: &Client) -> Vec<String> {
    // Bypasses the cache of the client.
    let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(PaginatedRequestParams::default()));
    let ServerResult::ListToolsResult(listed) = client.send_request(request).await.unwrap() else { panic!() };
    listed.tools.iter().map(|tool| tool.name.to_string()).collect()
}

/// Waits until another task makes the condition true.
pub(super) async fn until(condition: impl Fn() -> bool) {
    let waited = async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waited).await.expect("it happens");
}
