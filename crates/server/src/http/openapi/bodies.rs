//! What requests carry: bodies, and the parameters of queries. A field that is `null` counts as absent.
#![expect(dead_code, reason = "the fields are read by utoipa alone")]

use serde_json::Map;
use serde_json::Value;
use utoipa::openapi::schema::Type;
use utoipa::openapi::{ObjectBuilder, Schema};
use utoipa::{IntoParams, ToSchema};

use crate::gateway::{Plan, Scope};
use rulekeep::agent::{AgentId, Label, Observability};
use rulekeep::escalation::PreApprovalTerms;
use rulekeep::escalation::{EscalationState, PreApprovalId};
use rulekeep::event::{EventId, EventType};
use rulekeep::extension::Context;
use rulekeep::extension::WebhookId;
use rulekeep::intent::{Capability, IntentId};
use rulekeep::policy::PolicyFormat;
use rulekeep::proof::{Digest, Order, ProofCursor, ProofId};
use rulekeep::system::Timestamp;
use rulekeep::trust::Score;
use rulekeep::{Decision, Intent, Outcome, RiskLevel, Tier};

/// A request to parse.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ParseBody {
    agent_id: AgentId,
    /// What the agent wants to do, in words or in a structured form; at most 64 KiB.
    #[schema(max_length = 65536, pattern = r"\S")]
    input: String,
    context: Option<Context>,
    /// Whether to say from what it was read.
    explain: Option<bool>,
}

/// A request for a decision: on an intent, or on what is to be parsed first.
#[derive(ToSchema)]
#[serde(untagged)]
pub(super) enum DecisionBody {
    /// On an intent.
    Intent(IntentForm),
    /// On an input.
    Input(InputForm),
}

/// An intent, from `POST /intent` or built by the caller.
#[derive(ToSchema)]
pub(super) struct IntentForm {
    intent: Intent,
}

/// What is to be parsed first.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct InputForm {
    agent_id: AgentId,
    /// What the agent wants to do, in words or in a structured form; at most 64 KiB.
    #[schema(max_length = 65536, pattern = r"\S")]
    input: String,
    context: Option<Context>,
}

/// What became of an action.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OutcomeBody {
    proof_id: ProofId,
    outcome: Outcome,
    #[schema(max_length = 4096)]
    note: Option<String>,
}

/// Which reported SUCCESS was none, and why.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CorrectionBody {
    proof_id: ProofId,
    #[schema(max_length = 4096, pattern = r"\S")]
    note: String,
}

/// The intent that was agreed to.
#[derive(ToSchema)]
pub(super) struct ClaimBody {
    intent: Intent,
}

/// How long to wait.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WaitBody {
    /// Milliseconds.
    #[schema(maximum = 10000, default = 0)]
    timeout_ms: Option<u64>,
}

/// A record, or two sizes of the log.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProveBody {
    /// The record that is to be proved to be in the log.
    proof_id: Option<ProofId>,
    /// With `toSize`: that the log of that size is the beginning of the other.
    from_size: Option<u64>,
    to_size: Option<u64>,
}

/// An agent to register: at a score, or in the middle of a tier, or as a newcomer.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentBody {
    agent_id: AgentId,
    score: Option<Score>,
    tier: Option<Tier>,
    #[serde(flatten)]
    description: AgentDescriptionForm,
}

/// What is said of an agent.
#[derive(ToSchema)]
pub(super) struct AgentDescriptionForm {
    #[schema(max_items = 64)]
    labels: Option<Vec<Label>>,
    #[schema(max_items = 64)]
    groups: Option<Vec<Label>>,
    /// At most 4 KiB of JSON.
    #[schema(value_type = Option<Object>)]
    attributes: Option<Map<String, Value>>,
    #[schema(schema_with = person)]
    owner: Option<String>,
    ceiling: Option<Score>,
    observability: Option<Observability>,
}

/// What is to change of an agent; what is not named stays.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentChangeBody {
    #[serde(flatten)]
    description: AgentDescriptionForm,
    /// What is said no more.
    clear: Option<Vec<Clear>>,
    #[schema(max_length = 4096)]
    note: Option<String>,
}

/// What can be taken from an agent.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(super) enum Clear {
    Owner,
    Ceiling,
    Observability,
}

/// Agents of an export.
#[derive(ToSchema)]
pub(super) struct LinesBody {
    lines: Vec<String>,
}

/// Why.
#[derive(ToSchema)]
pub(super) struct NoteBody {
    #[schema(max_length = 4096)]
    note: Option<String>,
}

/// Where an agent's score is to be, and why.
#[derive(ToSchema)]
pub(super) struct AdjustBody {
    score: Score,
    #[schema(max_length = 4096, pattern = r"\S")]
    note: String,
}

/// Who is to be stopped, by whom, and why: one of `agentId`, `group` and `all: true`.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StopBody {
    agent_id: Option<AgentId>,
    group: Option<Label>,
    all: Option<bool>,
    #[schema(schema_with = required_person)]
    by: String,
    #[schema(max_length = 4096)]
    note: Option<String>,
}

/// Who lifts a stop, and why.
#[derive(ToSchema)]
pub(super) struct LiftBody {
    #[schema(schema_with = required_person)]
    by: String,
    #[schema(max_length = 4096)]
    note: Option<String>,
}

/// A person's word.
#[derive(ToSchema)]
pub(super) struct ReviewBody {
    #[schema(schema_with = required_person)]
    reviewer: String,
    #[schema(max_length = 4096)]
    note: Option<String>,
    /// The digest of what was looked at: refused where it is another by now.
    digest: Option<Digest>,
}

/// A reviewer's statement on a pre-approval.
#[derive(ToSchema)]
pub(super) struct PersonBody {
    #[schema(schema_with = required_person)]
    reviewer: String,
    #[schema(max_length = 4096)]
    note: Option<String>,
}

/// A pre-approval to give, or one that another reviewer gave and this one agrees to.
#[derive(ToSchema)]
#[serde(untagged)]
pub(super) enum GrantBody {
    /// A new one.
    PreApproval(PreApprovalForm),
    /// One that another person gave.
    Known(KnownForm),
}

/// The terms of a pre-approval, and the reviewer who gives it.
#[derive(ToSchema)]
pub(super) struct PreApprovalForm {
    #[serde(flatten)]
    terms: PreApprovalTerms,
    #[serde(flatten)]
    person: PersonBody,
}

/// The pre-approval that another reviewer gave, and the reviewer who agrees to it.
#[derive(ToSchema)]
pub(super) struct KnownForm {
    id: PreApprovalId,
    #[serde(flatten)]
    person: PersonBody,
}

/// A key to be made.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct KeyBody {
    scope: Scope,
    plan: Plan,
    /// The agents that it is limited to; only for the scope `agent`.
    #[schema(min_items = 1, max_items = 1000)]
    agents: Option<Vec<AgentId>>,
    /// From when on it is refused; in the future.
    expires_at: Option<Timestamp>,
    #[schema(schema_with = person)]
    name: Option<String>,
}

/// A policy document.
#[derive(ToSchema)]
pub(super) struct DocumentBody {
    /// At most 4 MiB.
    text: String,
    format: PolicyFormat,
}

/// A policy document, or several laid over each other.
#[derive(ToSchema)]
pub(super) struct PoliciesBody {
    /// At most 4 MiB.
    text: Option<String>,
    format: Option<PolicyFormat>,
    /// The base first.
    #[schema(min_items = 1)]
    layers: Option<Vec<DocumentBody>>,
}

/// A candidate set, and what it is held against.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReplayBody {
    #[serde(flatten)]
    policies: PoliciesBody,
    agent_id: Option<AgentId>,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
}

/// A set for the shadow; with `clear` none; with nothing it stays.
#[derive(ToSchema)]
pub(super) struct ShadowBody {
    clear: Option<bool>,
    /// At most 4 MiB.
    text: Option<String>,
    format: Option<PolicyFormat>,
    /// The base first.
    #[schema(min_items = 1)]
    layers: Option<Vec<DocumentBody>>,
}

/// Tools as they are defined: a list, or a message of MCP or of Gemini as it came.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolsBody {
    /// Definitions in the form of MCP, `OpenAI` or Anthropic.
    #[schema(value_type = Option<Vec<Object>>)]
    tools: Option<Vec<Value>>,
    /// Whose tools they are.
    #[schema(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    server: Option<String>,
    /// An answer of MCP to `tools/list`.
    #[schema(value_type = Option<Object>)]
    result: Option<Value>,
    #[schema(value_type = Option<Vec<Object>>)]
    function_declarations: Option<Vec<Value>>,
}

/// What a tool is, whatever its definition says.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OverrideBody {
    #[schema(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    name: String,
    #[schema(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    server: Option<String>,
    capabilities: Option<Vec<Capability>>,
    risk_level: Option<RiskLevel>,
    #[schema(pattern = r"\S")]
    reason: String,
}

/// A tool to pin.
#[derive(ToSchema)]
pub(super) struct PinBody {
    #[schema(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    name: String,
    #[schema(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    server: Option<String>,
    #[schema(default = true)]
    pinned: Option<bool>,
}

/// A tool.
#[derive(ToSchema)]
pub(super) struct ToolBody {
    #[schema(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    name: String,
    #[schema(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    server: Option<String>,
}

/// An endpoint to add.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EndpointBody {
    /// `https`, and an address that is public.
    #[schema(format = "uri", max_length = 2048)]
    url: String,
    /// What it is told; everything where nothing is named.
    events: Option<Vec<EventType>>,
    agent_id: Option<AgentId>,
    /// One of your own, of 24 bytes or more.
    secret: Option<String>,
}

/// How long the old secret signs beside the new one.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RotateBody {
    #[schema(default = 86400)]
    overlap_seconds: Option<u64>,
}

/// Another address.
#[derive(ToSchema)]
pub(super) struct AddressBody {
    #[schema(format = "uri", max_length = 2048)]
    url: String,
}

/// An event.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RedeliverBody {
    event_id: EventId,
    /// The endpoint; all that want it where none is named.
    id: Option<WebhookId>,
}

/// An access evaluation of `OpenID` `AuthZEN` 1.0.
#[derive(ToSchema)]
pub(super) struct EvaluationBody {
    subject: EvaluationSubject,
    action: EvaluationAction,
    resource: EvaluationResource,
    context: Option<EvaluationContext>,
}

/// Several access evaluations of `OpenID` `AuthZEN` 1.0: what one of them does not say stands beside them. Where there are
/// none, it is a single one.
#[derive(ToSchema)]
pub(super) struct EvaluationsBody {
    subject: Option<EvaluationSubject>,
    action: Option<EvaluationAction>,
    resource: Option<EvaluationResource>,
    context: Option<EvaluationContext>,
    #[schema(max_items = 100)]
    evaluations: Option<Vec<EvaluationPart>>,
    options: Option<EvaluationOptions>,
}

/// One of several.
#[derive(ToSchema)]
pub(super) struct EvaluationPart {
    subject: Option<EvaluationSubject>,
    action: Option<EvaluationAction>,
    resource: Option<EvaluationResource>,
    context: Option<EvaluationContext>,
}

/// Whether all are evaluated, or up to the first of an answer.
#[derive(ToSchema)]
pub(super) struct EvaluationOptions {
    #[serde(default)]
    #[schema(nullable = false)]
    evaluations_semantic: EvaluationSemantic,
}

/// What ends them.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum EvaluationSemantic {
    ExecuteAll,
    DenyOnFirstDeny,
    PermitOnFirstPermit,
}

/// Who wants it: `id` is the agent.
#[derive(ToSchema)]
pub(super) struct EvaluationSubject {
    r#type: String,
    id: AgentId,
    #[serde(default)]
    #[schema(value_type = Object)]
    properties: Map<String, Value>,
}

/// What is wanted: with the resource's type it is the capability `<type>:<name>`, in lower case, with `_` for blanks,
/// hyphens, dots and slashes.
#[derive(ToSchema)]
pub(super) struct EvaluationAction {
    #[schema(pattern = "^[A-Za-z][A-Za-z0-9_]*$", max_length = 40)]
    name: String,
    #[serde(default)]
    #[schema(value_type = Object)]
    properties: Map<String, Value>,
}

/// What it is wanted of.
#[derive(ToSchema)]
pub(super) struct EvaluationResource {
    #[schema(pattern = "^[A-Za-z][A-Za-z0-9_]*$", max_length = 40)]
    r#type: String,
    id: String,
    #[serde(default)]
    #[schema(value_type = Object)]
    properties: Map<String, Value>,
}

/// Whatever else is known.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EvaluationContext {
    /// How risky it is at the least.
    #[serde(default)]
    #[schema(nullable = false)]
    risk_level: RiskLevel,
    environment: Option<String>,
}

/// Which records: all that match, a page of them.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(super) struct RecordsQuery {
    /// Decisions from then on.
    from: Option<Timestamp>,
    /// Decisions until then, inclusive.
    to: Option<Timestamp>,
    outcome: Option<Outcome>,
    decision: Option<Decision>,
    risk: Option<RiskLevel>,
    /// Only what was granted or asked and has no outcome yet.
    open: Option<bool>,
    intent_id: Option<IntentId>,
    /// `newest` where nothing is said.
    order: Option<Order>,
    /// `start`, or the `nextCursor` of the page before; instead of `page`.
    cursor: Option<ProofCursor>,
    #[param(minimum = 1, maximum = 18_446_744_073_709_551_615_u64, default = 1)]
    page: Option<u64>,
    #[param(minimum = 1, maximum = 200, default = 50)]
    page_size: Option<u64>,
}

/// Of whom.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(super) struct EntityQuery {
    /// The agent.
    entity_id: AgentId,
}

/// Of whom, where it is not all.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(super) struct OptionalEntityQuery {
    /// The agent; all where none is named.
    entity_id: Option<AgentId>,
}

/// When.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PeriodQuery {
    /// Decisions from then on.
    from: Option<Timestamp>,
    /// Decisions until then, inclusive.
    to: Option<Timestamp>,
}

/// With what.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct EvidenceQuery {
    /// Whether to show what it depended on.
    #[param(default = false)]
    evidence: Option<bool>,
}

/// Which page.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(super) struct PageQuery {
    #[param(minimum = 1, maximum = 18_446_744_073_709_551_615_u64, default = 1)]
    page: Option<u64>,
    #[param(minimum = 1, maximum = 200, default = 50)]
    page_size: Option<u64>,
}

/// Which deliveries.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DeliveriesQuery {
    #[param(minimum = 1, maximum = 18_446_744_073_709_551_615_u64, default = 1)]
    page: Option<u64>,
    /// All that was given up and has not arrived; the last attempts where it is not there.
    #[param(pattern = "^parked$")]
    state: Option<String>,
}

/// Which escalations.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(super) struct EscalationsQuery {
    state: Option<EscalationState>,
    agent_id: Option<AgentId>,
}

/// A name, or nothing.
fn person() -> Schema {
    use utoipa::openapi::schema::SchemaType;
    named(ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::String, Type::Null])))
}

fn required_person() -> Schema {
    named(ObjectBuilder::new().schema_type(Type::String))
}

fn named(schema: ObjectBuilder) -> Schema {
    schema
        .pattern(Some(r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$"))
        .max_length(Some(256))
        .description(Some("A name: 1 to 256 characters, not blank, none a control character."))
        .into()
}
