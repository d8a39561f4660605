//! Requests of the client: tool calls and their tasks are governed, everything else passes through.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelTaskRequest, ClientNotification,
    ClientRequest, CompleteRequest, CompleteRequestParams, CompleteResult, CustomNotification, CustomRequest,
    CustomResult, DiscoverResult, ErrorCode, ErrorData, GetPromptRequest, GetPromptRequestParams, GetPromptResponse,
    GetTaskParams, GetTaskRequest, GetTaskResult, InitializeRequestParams, InitializeResult, ListPromptsRequest,
    ListPromptsResult, ListResourceTemplatesRequest, ListResourceTemplatesResult, ListResourcesRequest,
    ListResourcesResult, ListToolsRequest, ListToolsResult, PaginatedRequestParams, ReadResourceRequest,
    ReadResourceRequestParams, ReadResourceResponse, RootsListChangedNotification, ServerConfig, ServerResult,
    SetLevelRequest, SetLevelRequestParams, SubscribeRequest, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequest, UnsubscribeRequestParams, UpdateTaskParams, UpdateTaskRequest,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, json};

use crate::call::{ToolCall, refused};
use crate::calls::CallError;
use crate::catalogue::Listing;
use crate::lines::Verbatim;
use crate::offer::Offer;
use crate::refusal::Refusal;
use crate::shared::{Line, Shared, own_name};
use crate::tasks::{self, Task};
use crate::upstream::{Client, Session, Upstream, error_of};

/// Extracts a result of the expected kind.
macro_rules! expect {
    ($result:expr, $kind:ident) => {
        match $result {
            ServerResult::$kind(result) => Ok(result),
            _ => Err(unexpected()),
        }
    };
}

/// The server as one client sees it.
#[derive(Clone)]
pub(crate) struct Gate {
    shared: Arc<Shared>,
    /// The number of this gate; each session has one of its own.
    number: u64,
    /// The connection of a client with a session, set at its handshake.
    session: Arc<OnceLock<(Line, Client)>>,
}

impl Gate {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let number = shared.gates.fetch_add(1, Ordering::Relaxed);
        Self { shared, number, session: Arc::default() }
    }

    /// Ends the connections to the server, which has `grace` to leave by itself.
    pub(crate) async fn close(self, grace: Duration) {
        if let Some((line, _)) = self.session.get() {
            line.close(grace).await;
        }
        self.shared.stateless.close(grace).await;
    }

    async fn upstream(&self, context: &RequestContext<RoleServer>) -> Result<Arc<Upstream>, ErrorData> {
        if let Some((line, client)) = self.session.get() {
            return line.open(&self.shared, client).await;
        }
        let info = context.client_info().unwrap_or_else(own_name);
        self.shared.stateless.open(&self.shared, &Client { info, session: None }).await
    }

    async fn forward(
        &self,
        request: impl Into<ClientRequest>,
        context: &RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let upstream = self.upstream(context).await?;
        upstream.forward(request.into(), context, None).await.map_err(error_of)
    }

    /// Finds a task that a call of this client created.
    fn task(&self, id: &str, context: &RequestContext<RoleServer>) -> Result<Arc<Task>, ErrorData> {
        self.shared.tasks.find(id, &tasks::client(self.session.get().map(|_| self.number), context))
    }

    /// Passes on a notification of a client with a session.
    async fn notify(&self, notification: ClientNotification) {
        let Some((line, client)) = self.session.get() else { return };
        let Ok(upstream) = line.open(&self.shared, client).await else { return };
        if let Err(error) = upstream.peer().send_notification(notification).await {
            tracing::debug!(%error, "a notification of the client is not forwarded");
        }
    }

    /// Asks the server for all its tools, and records them.
    async fn learn(
        &self,
        upstream: &Upstream,
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<Listing>, ErrorData> {
        let (mut offer, mut cursor) = (Offer::default(), None);
        for _ in 0..MOST_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let mut request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page));
            let text = Verbatim::follow(&mut request);
            // This is a request of the gateway itself, so its progress is not reported to the client.
            let mut own = context.clone();
            own.meta.0.0.remove("progressToken");
            let answer = upstream.forward(request, &own, None).await.map_err(error_of)?;
            let page = text.value_or(answer);
            offer.add(page["tools"].as_array().ok_or_else(unexpected)?);
            cursor = page["nextCursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                let learned = self.shared.catalogue.learn(&self.shared.governance, offer.whole()).await;
                return learned.map_err(|error| unlearned(&error));
            }
        }
        Err(ErrorData::internal_error(format!("the server has more than {MOST_PAGES} pages of tools"), None))
    }
}

impl ServerHandler for Gate {
    fn get_info(&self) -> ServerConfig {
        let line = self.session.get().map_or(&self.shared.stateless, |(line, _)| line);
        line.config().unwrap_or_else(|| ServerConfig::default().with_server_info(own_name()))
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let session = Session {
            version: request.protocol_version.clone(),
            capabilities: request.capabilities.clone(),
            peer: context.peer.clone(),
        };
        let client = Client { info: request.client_info.clone(), session: Some(session) };
        let (line, client) = self.session.get_or_init(|| (Line::default(), client));
        line.open(&self.shared, client).await?;
        self.negotiate_initialize(&request)
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        self.upstream(&context).await?;
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, self.get_info()))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let upstream = self.upstream(&context).await?;
        let listing = self.learn(&upstream, &context).await?;
        let mut result = ListToolsResult::with_all_items(listing.admitted());
        // Another client may see other tools, and an operator may pin one at any time.
        (result.cache_scope, result.ttl_ms) = (Some(CacheScope::Private), Some(0));
        let told =
            [(QUARANTINED, listing.quarantined()), (LEFT_OUT, listing.left_out.iter().map(|one| json!(one)).collect())];
        for (key, tools) in told {
            if !tools.is_empty() {
                result.meta.get_or_insert_default().0.insert(key.to_owned(), Value::Array(tools));
            }
        }
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let upstream = self.upstream(&context).await?;
        let known = self.shared.catalogue.current();
        let is_settled = |listing: &Arc<Listing>| {
            listing.find(&request.name).is_some_and(|(_, standing)| standing.refusal("", "").is_none())
        };
        // An unknown or quarantined tool may have been pinned meanwhile.
        let listing = match known.filter(is_settled) {
            Some(listing) => listing,
            None => match self.learn(&upstream, &context).await {
                Ok(listing) => listing,
                Err(error) => return Ok(refused(Refusal::new("error", error.message))),
            },
        };
        let Some((_, standing)) = listing.find(&request.name) else {
            if let Some(refusal) = listing.left_out(&request.name) {
                return Ok(refused(refusal));
            }
            return Err(ErrorData::invalid_params(format!("the server has no tool {:?}", request.name), None));
        };
        if let Some(refusal) = standing.refusal(&self.shared.governance.options.server, &request.name) {
            return Ok(refused(refusal));
        }
        let session = self.session.get().map(|_| self.number);
        ToolCall::new(Arc::clone(&self.shared), upstream, session, &request, context).run(request).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let task = self.task(&request.task_id, &context)?;
        let request = ClientRequest::GetTaskRequest(GetTaskRequest::new(request));
        let result = expect!(self.forward(request, &context).await?, GetTaskResult)?;
        task.settle(&self.shared.governance, &result.task).await?;
        Ok(result)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.task(&request.task_id, &context)?;
        self.forward(ClientRequest::UpdateTaskRequest(UpdateTaskRequest::new(request)), &context).await.map(drop)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.task(&request.task_id, &context)?;
        self.forward(ClientRequest::CancelTaskRequest(CancelTaskRequest::new(request)), &context).await.map(drop)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.shared.catalogue.current()?.find(name).map(|(tool, _)| tool.clone())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // Requests that the SDK cannot parse come here. A server may be less strict than the gateway about a method's
        // name, so only known methods pass: another one may be a way to call a tool.
        let method = request.method.as_str();
        if !PASSED.contains(&method) {
            let message = format!("the gateway does not forward {method:?} with these parameters");
            return Err(match method {
                "tools/call" | "tools/list" => ErrorData::invalid_params(message, None),
                _ => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None),
            });
        }
        let has_session = context.protocol_version().is_none_or(|version| version.has_initialize());
        let mut result = match self.forward(ClientRequest::CustomRequest(request), &context).await? {
            ServerResult::CustomResult(result) => result.0,
            other => serde_json::to_value(other).map_err(|_| unexpected())?,
        };
        if let Some(result) = result.as_object_mut().filter(|_| !has_session) {
            result.entry("resultType").or_insert_with(|| json!("complete"));
        }
        Ok(CustomResult::new(result))
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let request = ClientRequest::CompleteRequest(CompleteRequest::new(request));
        expect!(self.forward(request, &context).await?, CompleteResult)
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let request = ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(request.unwrap_or_default()));
        expect!(self.forward(request, &context).await?, ListPromptsResult)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(request));
        match self.forward(request, &context).await? {
            ServerResult::GetPromptResult(result) => Ok(result.into()),
            ServerResult::InputRequiredResult(result) => Ok(result.into()),
            _ => Err(unexpected()),
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let request = ListResourcesRequest::with_param(request.unwrap_or_default());
        expect!(self.forward(ClientRequest::ListResourcesRequest(request), &context).await?, ListResourcesResult)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let request = ListResourceTemplatesRequest::with_param(request.unwrap_or_default());
        let request = ClientRequest::ListResourceTemplatesRequest(request);
        expect!(self.forward(request, &context).await?, ListResourceTemplatesResult)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(request));
        match self.forward(request, &context).await? {
            ServerResult::ReadResourceResult(result) => Ok(result.into()),
            ServerResult::InputRequiredResult(result) => Ok(result.into()),
            _ => Err(unexpected()),
        }
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.forward(ClientRequest::SetLevelRequest(SetLevelRequest::new(request)), &context).await.map(drop)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.forward(ClientRequest::SubscribeRequest(SubscribeRequest::new(request)), &context).await.map(drop)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.forward(ClientRequest::UnsubscribeRequest(UnsubscribeRequest::new(request)), &context).await.map(drop)
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let upstream = self.upstream(subscription.request_context()).await?;
        crate::listen::follow(&upstream, &self.shared.catalogue, &subscription).await
    }

    async fn on_custom_notification(&self, notification: CustomNotification, _: NotificationContext<RoleServer>) {
        tracing::warn!(method = ?notification.method, "an unknown notification is not forwarded");
    }

    async fn on_roots_list_changed(&self, _: NotificationContext<RoleServer>) {
        self.notify(ClientNotification::RootsListChangedNotification(RootsListChangedNotification::default())).await;
    }
}

fn unexpected() -> ErrorData {
    ErrorData::internal_error("the server answered with a result of another kind", None)
}

fn unlearned(error: &CallError) -> ErrorData {
    let message = format!("the tools of the server could not be loaded into the catalogue: {error}");
    ErrorData::internal_error(message, Some(json!({ "code": error.code })))
}

/// The methods of the protocol's revisions that pass with parameters that the SDK cannot parse.
const PASSED: &[&str] = &[
    "completion/complete",
    "logging/setLevel",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
];
/// The key in the metadata of `tools/list` for the tools in quarantine.
const QUARANTINED: &str = "rulekeep/quarantined";
/// The key in the metadata of `tools/list` for the tools that cannot be used.
const LEFT_OUT: &str = "rulekeep/leftOut";
const MOST_PAGES: usize = 100;
