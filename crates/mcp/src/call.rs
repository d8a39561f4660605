//! Processing a tool call: the tool's status, the decision, the approval, the server, the outcome.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, CallToolResult, ClientRequest, ContentBlock,
    CreateTaskResult, ElicitRequest, ErrorData, InputRequest, InputRequiredResult, InputResponses, MetaObject,
    ServerRequest, ServerResult,
};
use rmcp::service::{RequestContext, ServiceError};
use rulekeep::Outcome;
use rulekeep::escalation::EscalationState;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::approval::{Answer, Waiting};
use crate::governance::{Asked, Permit, Verdict};
use crate::lines::Verbatim;
use crate::refusal::Refusal;
use crate::seal::{CallDigest, State};
use crate::shared::Shared;
use crate::tasks::{self, Task};
use crate::upstream::{Upstream, parameters};

/// A tool call in progress.
pub(crate) struct ToolCall {
    shared: Arc<Shared>,
    upstream: Arc<Upstream>,
    context: RequestContext<RoleServer>,
    tool: String,
    given: Option<Map<String, Value>>,
    /// The arguments for the decision: an empty object if none are given.
    arguments: Value,
    digest: CallDigest,
    /// The identity of the client.
    client: Value,
}

/// The way in which the client can be asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asking {
    /// With `input_required`, answered by a retry.
    InputRequired,
    /// With a request to the client.
    Request,
    /// The client cannot be asked.
    Never,
}

/// The state of an escalation.
enum Looked {
    Granted(Permit),
    Refused(Refusal),
    Pending,
}

impl ToolCall {
    /// Prepares a call. `session` is the number of the client's session; a client without sessions is known by its
    /// name and version alone.
    pub(crate) fn new(
        shared: Arc<Shared>,
        upstream: Arc<Upstream>,
        session: Option<u64>,
        params: &CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Self {
        let (tool, given) = (params.name.to_string(), params.arguments.clone());
        let arguments = Value::Object(given.clone().unwrap_or_default());
        let client = tasks::client(session, &context);
        let whole = json!([client, shared.governance.options.server, tool, arguments]).to_string();
        let digest = Sha256::digest(whole).into();
        Self { shared, upstream, context, tool, given, arguments, digest, client }
    }

    /// Decides on the call, and forwards it if it is granted.
    pub(crate) async fn run(self, params: CallToolRequestParams) -> Result<CallToolResponse, ErrorData> {
        let state = match (params.request_state, &params.input_responses) {
            (None, None) => None,
            (state, _) => match state.and_then(|text| self.shared.sealer.open(&text, &self.digest)) {
                Some(state) => Some(state),
                None => return Err(self.stale()),
            },
        };
        let responses = params.input_responses.unwrap_or_default();
        match state {
            Some(State::Input { server_state, proof_id, arguments }) => {
                let permit = Permit { proof_id, timeout: None, arguments };
                self.forward(permit, Some((responses, server_state))).await
            }
            Some(State::Approval { escalation }) => self.resume(&escalation, &responses).await,
            None => self.decide().await,
        }
    }

    async fn decide(self) -> Result<CallToolResponse, ErrorData> {
        if let Some(waiting) = self.shared.pending.find(&self.digest) {
            return self.wait(waiting).await;
        }
        match self.shared.governance.enforce(&self.tool, &self.arguments).await {
            Err(error) => Ok(refused(Refusal::of_error(&error))),
            Ok(Verdict::Refused(refusal)) => Ok(refused(refusal)),
            Ok(Verdict::Granted(permit)) => self.forward(permit, None).await,
            Ok(Verdict::Escalated(asked)) => self.ask(asked).await,
        }
    }

    /// Asks the client's user if possible, otherwise waits for a reviewer.
    async fn ask(self, asked: Asked) -> Result<CallToolResponse, ErrorData> {
        let governance = &self.shared.governance;
        let waiting = match Waiting::of(governance, asked, &self.tool, &self.arguments).await {
            Ok(waiting) => waiting,
            Err(error) => return Ok(refused(Refusal::of_error(&error))),
        };
        self.shared.pending.insert(self.digest, waiting.clone());
        match self.asking() {
            Asking::InputRequired => self.input_required(&waiting),
            Asking::Request => {
                let answer = self.answer_of_client(&waiting).await;
                self.answered(waiting, answer).await
            }
            Asking::Never => self.wait(waiting).await,
        }
    }

    /// Continues with the client's answer to `input_required`.
    async fn resume(self, escalation: &str, responses: &InputResponses) -> Result<CallToolResponse, ErrorData> {
        let waiting = self.shared.pending.find(&self.digest).filter(|waiting| waiting.asked.id == escalation);
        let Some(waiting) = waiting else { return Err(self.stale()) };
        let answer = responses.get(QUESTION).map(|result| Answer::of(result, &self.shared.governance));
        self.answered(waiting, answer).await
    }

    async fn answered(self, waiting: Waiting, answer: Option<Answer>) -> Result<CallToolResponse, ErrorData> {
        match answer {
            Some(Answer::Declined) => {
                self.withdraw(&waiting).await;
                let refusal = Refusal::new("declined", "the user at the client declined the call; do not repeat it");
                return Ok(refused(refusal.with("escalationId", waiting.asked.id)));
            }
            Some(Answer::Agreed) => {
                if let Err(error) = waiting.approve(&self.shared.governance).await {
                    tracing::warn!(escalation = waiting.asked.id, %error, "the user's approval is not accepted");
                }
            }
            None => {}
        }
        self.wait(waiting).await
    }

    /// Waits for a reviewer's answer, for as long as the options say.
    async fn wait(self, waiting: Waiting) -> Result<CallToolResponse, ErrorData> {
        match self.look(&waiting).await {
            Looked::Granted(permit) => self.forward(permit, None).await,
            Looked::Refused(refusal) => Ok(refused(refusal)),
            Looked::Pending if self.asking() == Asking::InputRequired => self.input_required(&waiting),
            Looked::Pending => Ok(refused(waiting.ticket())),
        }
    }

    async fn look(&self, waiting: &Waiting) -> Looked {
        let (governance, id) = (&self.shared.governance, waiting.asked.id.as_str());
        let escalation = tokio::select! {
            escalation = governance.escalation(id, governance.options.wait) => escalation,
            () = self.context.ct.cancelled() => {
                self.withdraw(waiting).await;
                return Looked::Refused(Refusal::new("declined", "the client canceled the call"));
            }
        };
        let escalation = match escalation {
            Ok(escalation) if escalation.state == EscalationState::Pending => return Looked::Pending,
            Ok(escalation) => escalation,
            Err(error) => return Looked::Refused(Refusal::of_error(&error)),
        };
        self.shared.pending.remove(&self.digest);
        if escalation.state != EscalationState::Approved {
            let why = format!("the escalation {id} ended without an approval: {}", escalation.state);
            return Looked::Refused(Refusal::new("escalated", why).with("escalationId", id));
        }
        match governance.claim(&waiting.asked).await {
            Ok(Verdict::Granted(permit)) => Looked::Granted(permit),
            Ok(Verdict::Refused(refusal)) => Looked::Refused(refusal),
            Ok(Verdict::Escalated(_)) => Looked::Refused(Refusal::new("error", "a claim was escalated again")),
            Err(error) => Looked::Refused(Refusal::of_error(&error)),
        }
    }

    /// Ends the question of a call that its user declined or its client canceled.
    async fn withdraw(&self, waiting: &Waiting) {
        self.shared.pending.remove(&self.digest);
        self.shared.governance.withdraw(&waiting.asked).await;
    }

    fn asking(&self) -> Asking {
        let form = self.context.client_capabilities().and_then(|capabilities| capabilities.elicitation);
        // A client that names neither mode supports forms.
        let has_forms = form.is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none());
        let has_session = self.context.protocol_version().is_none_or(|version| version.has_initialize());
        match (has_forms, has_session) {
            (false, _) => Asking::Never,
            (true, true) => Asking::Request,
            (true, false) => Asking::InputRequired,
        }
    }

    fn input_required(&self, waiting: &Waiting) -> Result<CallToolResponse, ErrorData> {
        let state = State::Approval { escalation: waiting.asked.id.clone() };
        let made = waiting.question(&self.shared.governance).and_then(|question| {
            Ok((InputRequest::Elicitation(ElicitRequest::new(question)), self.shared.sealer.seal(state, self.digest)?))
        });
        let (question, state) = made.map_err(|why| ErrorData::internal_error(why, None))?;
        let requests = [(QUESTION.to_owned(), question)].into();
        Ok(CallToolResponse::InputRequired(InputRequiredResult::new(Some(requests), Some(state))))
    }

    /// Asks a client that accepts requests. `None` if that fails, which approves nothing.
    async fn answer_of_client(&self, waiting: &Waiting) -> Option<Answer> {
        let question = waiting.question(&self.shared.governance).ok()?;
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(question));
        let answer = tokio::select! {
            answer = self.context.peer.send_request(request) => answer,
            () = self.context.ct.cancelled() => return None,
        };
        match answer {
            Ok(result) => {
                let result = serde_json::to_value(result).unwrap_or_default();
                Some(Answer::of(&result, &self.shared.governance))
            }
            Err(error) => {
                tracing::warn!(%error, "the client did not answer the question about a tool call");
                None
            }
        }
    }

    /// Forwards a granted call, and records its result and outcome even if the client disconnects.
    async fn forward(
        self,
        permit: Permit,
        input: Option<(InputResponses, Option<String>)>,
    ) -> Result<CallToolResponse, ErrorData> {
        let forwarded = tokio::spawn(async move {
            let given = permit.arguments.clone().or_else(|| self.given.clone());
            let mut params = parameters(&self.tool, given);
            if let Some((responses, state)) = input {
                params.input_responses = Some(responses);
                params.request_state = state;
            }
            let mut request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
            let text = Verbatim::follow(&mut request);
            let answer = self.upstream.forward(request, &self.context, permit.timeout).await;
            self.ended(&permit, answer, &text).await
        });
        forwarded.await.unwrap_or_else(|_| Err(ErrorData::internal_error("the call did not finish", None)))
    }

    async fn ended(
        &self,
        permit: &Permit,
        answer: Result<ServerResult, ServiceError>,
        text: &Verbatim,
    ) -> Result<CallToolResponse, ErrorData> {
        let governance = &self.shared.governance;
        let unknown = |why: String| (None, Value::Null, Ok(refused(Refusal::new("error", why))));
        let mut verbatim = None;
        let (outcome, observed, answer) = match answer.map(|result| text.value_or(result)) {
            Ok(result) if result["resultType"] == "input_required" => match InputRequiredResult::deserialize(result) {
                Ok(asked) => return self.server_asks(permit, asked).await,
                Err(error) => unknown(format!("the server's question cannot be read: {error}")),
            },
            Ok(result) if result["resultType"] == "task" && self.upstream.is_stateless() => {
                match CreateTaskResult::deserialize(result) {
                    Ok(created) => return Ok(self.continues(permit, created)),
                    Err(error) => unknown(format!("the server's task cannot be read: {error}")),
                }
            }
            Ok(result) if is_tool_result(&result) => {
                verbatim = self.context.extensions.get::<Verbatim>().map(|reply| (reply, self.complete(&result, text)));
                let outcome = outcome(&result);
                let typed = match verbatim {
                    // The text takes its place, unless the client used the id of the call twice.
                    Some(_) => CallToolResult::error(vec![ContentBlock::text("the result went to another request")]),
                    None => typed(&result),
                };
                (Some(outcome), observed(result), Ok(CallToolResponse::Complete(typed)))
            }
            Ok(_) => unknown(
                "the server's answer is not the result of a tool call; whether the call ran is unknown".to_owned(),
            ),
            Err(ServiceError::McpError(error)) if text.is_unreadable() => (None, Value::Null, Err(error)),
            Err(ServiceError::McpError(error)) => (Some(Outcome::Failure), json!(error.message), Err(error)),
            Err(error) => unknown(format!("the server gave no result; whether the call ran is unknown: {error}")),
        };
        governance.report(permit, outcome).await;
        if !observed.is_null()
            && let Err(error) = governance.observe(&self.tool, &self.arguments, observed).await
        {
            let why = "the call was made; its result is withheld, as it could not be recorded under the task. Do not repeat the call.";
            let refusal = Refusal::new("error", format!("{why} {error}"));
            return Ok(refused(refusal.with("proofId", permit.proof_id.clone())));
        }
        if let Some((reply, text)) = verbatim {
            reply.set(text);
        }
        answer
    }

    /// The text of a result for the client, marked as complete as revision 2026-07-28 requires.
    fn complete(&self, result: &Value, text: &Verbatim) -> String {
        let text = text.text().map_or_else(|| result.to_string(), str::to_owned);
        let has_session = self.context.protocol_version().is_none_or(|version| version.has_initialize());
        match text.strip_prefix('{') {
            Some(rest) if !has_session && result.get("resultType").is_none() => {
                let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
                format!(r#"{{"resultType":"complete"{comma}{rest}"#)
            }
            _ => text,
        }
    }

    /// Passes a question of the server on, with its state sealed, because the answer belongs to the decision that was
    /// made.
    async fn server_asks(
        &self,
        permit: &Permit,
        mut asked: InputRequiredResult,
    ) -> Result<CallToolResponse, ErrorData> {
        let has_session = self.context.protocol_version().is_none_or(|version| version.has_initialize());
        let state = State::Input {
            server_state: asked.request_state.take(),
            proof_id: permit.proof_id.clone(),
            arguments: permit.arguments.clone(),
        };
        let sealed = if has_session { None } else { self.shared.sealer.seal(state, self.digest).ok() };
        if sealed.is_none() {
            self.shared.governance.report(permit, Some(Outcome::Failure)).await;
            let why = "the server asks for input in a way that this client's revision of the protocol does not support";
            return Ok(refused(Refusal::new("error", why).with("proofId", permit.proof_id.clone())));
        }
        asked.request_state = sealed;
        Ok(CallToolResponse::InputRequired(asked))
    }

    /// Hands the client a task of the server, and follows it to its end.
    fn continues(&self, permit: &Permit, created: CreateTaskResult) -> CallToolResponse {
        let (id, client) = (created.task.task_id.clone(), self.client.clone());
        let task = Task::new(id, client, self.tool.clone(), self.arguments.clone(), permit.clone());
        let task = self.shared.tasks.add(task);
        let (governance, upstream) = (self.shared.governance.clone(), Arc::clone(&self.upstream));
        let (meta, interval) = (self.context.meta.clone(), created.task.poll_interval_ms);
        tokio::spawn(task.watch(governance, upstream, meta, interval, permit.timeout));
        CallToolResponse::Task(created)
    }

    fn stale(&self) -> ErrorData {
        let why = format!(
            "the request state of this call of {:?} was not made by this gateway for this call, was used before, or has \
             expired. Make the call again without it.",
            self.tool
        );
        ErrorData::invalid_params(why, None)
    }
}

/// Returns whether this is the result of a tool call that has ended, and not a task, for example. Its content may be of
/// kinds that the SDK does not know.
fn is_tool_result(result: &Value) -> bool {
    let Some(fields) = result.as_object() else { return false };
    let is_content = match fields.get("content") {
        Some(content) => content.is_array(),
        // Some servers leave out the content of an empty result.
        None => {
            ["structuredContent", "isError"].iter().any(|name| fields.contains_key(*name))
                || fields.keys().all(|name| matches!(&**name, "_meta" | "resultType"))
        }
    };
    is_content && fields.get("resultType").is_none_or(|kind| kind == "complete")
}

pub(crate) fn outcome(result: &Value) -> Outcome {
    match result.get("isError") {
        None | Some(Value::Null | Value::Bool(false)) => Outcome::Success,
        Some(_) => Outcome::Failure,
    }
}

/// Returns the form of a result that is observed under a task: its only text, or all that the client may show without
/// image and sound data.
pub(crate) fn observed(result: Value) -> Value {
    let Value::Object(mut fields) = result else { return Value::Null };
    fields.retain(|name, _| !matches!(&**name, "_meta" | "isError" | "resultType"));
    let content = fields.entry("content").or_insert_with(|| json!([]));
    for block in content.as_array_mut().into_iter().flatten() {
        if let Some(block) = block.as_object_mut().filter(|block| block.contains_key("mimeType")) {
            block.remove("data");
        }
    }
    let is_text = |block: &Value| {
        let mut names = block.as_object().into_iter().flat_map(Map::keys);
        block["text"].is_string() && names.all(|name| matches!(&**name, "type" | "text" | "annotations" | "_meta"))
    };
    match fields["content"].as_array().map(Vec::as_slice) {
        Some([block]) if is_text(block) && fields.len() == 1 => block["text"].clone(),
        _ => Value::Object(fields),
    }
}

/// Returns a result for a transport that keeps no text. Content of unknown kinds becomes text.
fn typed(result: &Value) -> CallToolResult {
    let block =
        |block: &Value| ContentBlock::deserialize(block).unwrap_or_else(|_| ContentBlock::text(block.to_string()));
    let mut typed = CallToolResult::success(result["content"].as_array().into_iter().flatten().map(block).collect());
    typed.is_error = result.get("isError").map(|_| outcome(result) == Outcome::Failure);
    typed.structured_content = result.get("structuredContent").cloned();
    typed.meta = result.get("_meta").and_then(|meta| MetaObject::deserialize(meta).ok());
    typed
}

pub(crate) fn refused(refusal: Refusal) -> CallToolResponse {
    CallToolResponse::Complete(refusal.into())
}

/// The key of the gateway's own question among the input requests.
const QUESTION: &str = "approval";
