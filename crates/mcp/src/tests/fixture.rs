//! A server with tools that tests change, a client in either revision, and the gateway in between.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::*;
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RequestContext, RunningService,
    RunningServiceCancellationToken,
};
use rmcp::{ClientHandler, RoleClient, RoleServer, ServerHandler, ServiceExt as _};
use rulekeep::policy::{PolicyFormat, PolicySet};
use rulekeep::{Agent, Governor, Tier};
use rulekeep_server::gateway::{Gateway, KeyDraft, Plan, Scope};
use serde_json::{Value, json};

use crate::governance::Governance;
use crate::handler::Gate;
use crate::shared::Shared;
use crate::upstream::Connector;
use crate::{CallError, Calls, Governed, InProcess};

const POLICIES: &str = r#"
name = "tests"

[reviewers]
ops = ["ann"]

[[rule]]
id = "reads"
effect = "allow"
match.capabilities = ["*:read", "email:send"]

[[rule]]
id = "no-deletions"
effect = "deny"
match.capabilities = ["*:delete"]

[[rule]]
id = "mail-needs-ops"
effect = "escalate"
match.capabilities = ["email:send"]
reviewer = "ops"
"#;

/// Governance with a key, and calls that a test lets fail.
pub(super) struct Office {
    pub(super) governor: Governor,
    calls: InProcess,
    failing: Mutex<Option<&'static str>>,
    pub(super) made: Mutex<Vec<String>>,
}

impl Office {
    pub(super) fn in_memory() -> Arc<Self> {
        Self::of(builder().open_in_memory().unwrap())
    }

    pub(super) fn in_folder(folder: &Path) -> Arc<Self> {
        Self::of(builder().open(folder).unwrap())
    }

    fn of(governor: Governor) -> Arc<Self> {
        if governor.agents().get("a").is_err() {
            governor.agents().register(Agent::new("a").at_tier(Tier::T5)).unwrap();
        }
        let gateway = Gateway::new(&governor).unwrap();
        let plan = Plan::enterprise(1_000_000, 1_000_000).unwrap();
        let key = gateway.keys().create(KeyDraft::new(Scope::Admin, plan)).unwrap();
        let calls = InProcess::new(gateway, key.key.expose());
        Arc::new(Self { governor, calls, failing: Mutex::default(), made: Mutex::default() })
    }

    /// Every call of this method fails from now on.
    pub(super) fn fail(&self, method: &'static str) {
        *self.failing.lock().unwrap() = Some(method);
    }

    /// What is granted from now on has to be over within 50 milliseconds.
    pub(super) fn hurry(&self) {
        let granting = "effect = \"allow\"\n";
        let text = POLICIES.replace(granting, &format!("{granting}constraints = {{ timeoutMs = 50 }}\n"));
        let set = PolicySet::parse(&text, PolicyFormat::Toml, "tests.toml").unwrap();
        self.governor.policies().load(set).unwrap();
    }

    /// The outcomes that were recorded, the newest first.
    pub(super) fn outcomes(&self) -> Vec<Value> {
        let page = self.calls.call("proof/query", json!({ "entityId": "a" })).unwrap();
        page["items"].as_array().unwrap().iter().map(|record| record["outcome"].clone()).collect()
    }

    pub(super) fn count(&self, method: &str) -> usize {
        self.made.lock().unwrap().iter().filter(|made| *made == method).count()
    }
}

impl Calls for Office {
    fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        self.made.lock().unwrap().push(method.to_owned());
        if *self.failing.lock().unwrap() == Some(method) {
            return Err(CallError::new("STORAGE_UNAVAILABLE", "a test took it away"));
        }
        self.calls.call(method, params)
    }
}

fn builder() -> rulekeep::GovernorBuilder {
    Governor::builder().policies(PolicySet::parse(POLICIES, PolicyFormat::Toml, "tests.toml").unwrap())
}

/// The server behind the gateway.
#[derive(Clone, Default)]
pub(super) struct Server {
    pub(super) tools: Arc<Mutex<Vec<Tool>>>,
    /// The calls that reached it.
    pub(super) called: Arc<Mutex<Vec<CallToolRequestParams>>>,
    /// Methods that reached it besides.
    pub(super) seen: Arc<Mutex<Vec<String>>>,
    pub(super) connections: Arc<AtomicUsize>,
    /// Ends the connection that was made last.
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
        // One tool a page.
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
            _ => Ok(CallToolResult::success(text("done")).into()),
        }
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

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }
}

/// The user of the client.
#[derive(Clone)]
pub(super) struct User {
    forms: bool,
    /// What is answered to questions, one after the other; the last one again and again.
    answers: Arc<Mutex<Vec<ElicitResult>>>,
    /// The questions that came.
    pub(super) asked: Arc<Mutex<Vec<String>>>,
    pub(super) progress: Arc<Mutex<Vec<f64>>>,
}

impl User {
    pub(super) fn without_forms() -> Self {
        Self { forms: false, answers: Arc::default(), asked: Arc::default(), progress: Arc::default() }
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
        let builder = ClientCapabilities::builder();
        let capabilities = if self.forms { builder.enable_elicitation().build() } else { builder.build() };
        ClientConfig::new(capabilities, Implementation::new("test-client", "1"))
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

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.lock().unwrap().push(params.progress);
    }
}

/// The revisions that a side speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Revision {
    /// 2026-07-28.
    Stateless,
    /// 2025-11-25.
    Session,
}

pub(super) const BOTH: [Revision; 2] = [Revision::Stateless, Revision::Session];

pub(super) type Client = RunningService<RoleClient, User>;

/// Settings that do not wait.
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
    let gate = Gate::new(shared(office, governed, server));
    let (near, far) = tokio::io::duplex(1 << 16);
    tokio::spawn(async move { Box::pin(gate.serve(far)).await.unwrap().waiting().await });
    let lifecycle = match revision {
        Revision::Stateless => {
            ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
        }
        Revision::Session => ClientLifecycleMode::Initialize,
    };
    user.serve_with_lifecycle(near, lifecycle).await.unwrap()
}

/// A new gateway before the server.
pub(super) fn shared(office: &Arc<Office>, governed: Governed, server: &Server) -> Arc<Shared> {
    let server = server.clone();
    let upstream = Connector::Stream(Box::new(move || {
        let (near, far) = tokio::io::duplex(1 << 16);
        let server = server.clone();
        server.connections.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(async move {
            let running = server.clone().serve(far).await.unwrap();
            *server.running.lock().unwrap() = Some(running.cancellation_token());
            running.waiting().await
        });
        near
    }));
    let governance = Governance::new(Arc::clone(office) as Arc<dyn Calls>, governed);
    Arc::new(Shared::new(governance, upstream).unwrap())
}

pub(super) fn call(tool: &str) -> CallToolRequestParams {
    CallToolRequestParams::new(tool.to_owned()).with_arguments(json!({ "id": "7" }).as_object().unwrap().clone())
}

/// The structured content of a refusal.
#[track_caller]
pub(super) fn refusal(result: &CallToolResult) -> &Value {
    assert_eq!(result.is_error, Some(true), "{result:?}");
    result.structured_content.as_ref().unwrap()
}

#[track_caller]
pub(super) fn is_done(result: &CallToolResult) {
    assert!(result.is_error != Some(true), "{result:?}");
    assert_eq!(result.content[0].as_text().unwrap().text, "done");
}

/// The names of the tools that the client sees.
pub(super) async fn tools(client: &Client) -> Vec<String> {
    // Past the cache of the client.
    let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(PaginatedRequestParams::default()));
    let ServerResult::ListToolsResult(listed) = client.send_request(request).await.unwrap() else { panic!() };
    listed.tools.iter().map(|tool| tool.name.to_string()).collect()
}
