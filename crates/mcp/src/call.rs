//! Processing a tool call: the tool's status, the decision, the approval, the server, the outcome.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, CallToolResult, ClientRequest, ElicitRequest, ErrorData,
    InputRequest, InputRequiredResult, InputResponses, ServerRequest, ServerResult,
};
use rmcp::service::{RequestContext, ServiceError};
use rulekeep::Outcome;
use rulekeep::escalation::EscalationState;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::approval::{Answer, Waiting};
use crate::governance::{Asked, Permit, Verdict};
use crate::refusal::Refusal;
use crate::seal::{CallDigest, State};
use crate::shared::Shared;
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
    pub(crate) fn new(
        shared: Arc<Shared>,
        upstream: Arc<Upstream>,
        params: &CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Self {
        let (tool, given) = (params.name.to_string(), params.arguments.clone());
        let arguments = Value::Object(given.clone().unwrap_or_default());
        let whole = json!([shared.governance.options.server, tool, arguments]).to_string();
        let digest = Sha256::digest(whole).into();
        Self { shared, upstream, context, tool, given, arguments, digest }
    }

    /// Decides on the call, and forwards it if it is granted.
    pub(crate) async fn run(self, params: CallToolRequestParams) -> Result<CallToolResponse, ErrorData> {
        let state = match (params.request_state, &params.input_responses) {
            (None, None) => None,
            (state, _) => match state.and_then(|text| self.shared.sealer.open(&text, &self.digest)) {
                Some(state) => Some(state),
                None => return Ok(refused(self.stale())),
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
        let Some(waiting) = waiting else { return Ok(refused(self.stale())) };
        let answer = responses.get(QUESTION).map(|result| Answer::of(result, &self.shared.governance));
        self.answered(waiting, answer).await
    }

    async fn answered(self, waiting: Waiting, answer: Option<Answer>) -> Result<CallToolResponse, ErrorData> {
        match answer {
            Some(Answer::Declined) => {
                self.shared.pending.remove(&self.digest);
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
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
            let answer = self.upstream.forward(request, &self.context, permit.timeout).await;
            self.ended(&permit, answer).await
        });
        forwarded.await.unwrap_or_else(|_| Err(ErrorData::internal_error("the call did not finish", None)))
    }

    async fn ended(
        &self,
        permit: &Permit,
        answer: Result<ServerResult, ServiceError>,
    ) -> Result<CallToolResponse, ErrorData> {
        let governance = &self.shared.governance;
        let (outcome, observed, answer) = match answer {
            Ok(ServerResult::InputRequiredResult(asked)) => return self.server_asks(permit, asked).await,
            Ok(ServerResult::CallToolResult(result)) => completed(result),
            // A result without `content` is parsed as an empty one.
            Ok(ServerResult::EmptyResult(_)) => completed(CallToolResult::success(Vec::new())),
            Ok(_) => {
                let why = "the server's answer is not the result of a tool call; whether the call ran is unknown";
                (None, Value::Null, Ok(refused(Refusal::new("error", why))))
            }
            Err(ServiceError::McpError(error)) => (Some(Outcome::Failure), json!(error.message), Err(error)),
            Err(error) => {
                let why = format!("the server gave no result; whether the call ran is unknown: {error}");
                (None, Value::Null, Ok(refused(Refusal::new("error", why))))
            }
        };
        governance.report(permit, outcome).await;
        if observed.is_null() {
            return answer;
        }
        match governance.observe(&self.tool, &self.arguments, observed).await {
            Ok(()) => answer,
            Err(error) => {
                let why = "the call was made; its result is withheld, as it could not be recorded under the task. Do not repeat the call.";
                let refusal = Refusal::new("error", format!("{why} {error}"));
                Ok(refused(refusal.with("proofId", permit.proof_id.clone())))
            }
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

    fn stale(&self) -> Refusal {
        let why = format!(
            "the request state of this call of {:?} was not made by this gateway for this call, was used before, or has \
             expired. Make the call again without it.",
            self.tool
        );
        Refusal::new("error", why).with("retryable", true)
    }
}

fn completed(result: CallToolResult) -> (Option<Outcome>, Value, Result<CallToolResponse, ErrorData>) {
    let outcome = if result.is_error == Some(true) { Outcome::Failure } else { Outcome::Success };
    (Some(outcome), observed(&result), Ok(CallToolResponse::Complete(result)))
}

/// Returns the form of a result that is observed under a task: its only text, or its content without image and sound
/// data.
fn observed(result: &CallToolResult) -> Value {
    let mut content: Vec<Value> = result.content.iter().map(|block| json!(block)).collect();
    for block in &mut content {
        if let Some(block) = block.as_object_mut().filter(|block| block.contains_key("mimeType")) {
            block.remove("data");
        }
    }
    match (content.as_slice(), &result.structured_content) {
        ([block], None) if block["type"] == "text" => block["text"].clone(),
        (_, None) => json!({ "content": content }),
        (_, Some(structured)) => json!({ "content": content, "structuredContent": structured }),
    }
}

pub(crate) fn refused(refusal: Refusal) -> CallToolResponse {
    CallToolResponse::Complete(refusal.into())
}

/// The key of the gateway's own question among the input requests.
const QUESTION: &str = "approval";
