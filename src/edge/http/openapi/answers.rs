//! What answers carry, where it is not a type of the library as it stands.
#![expect(dead_code, reason = "the fields are read by utoipa alone")]

use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::edge::gateway::KeyInfo;
use crate::governor::{ClassStanding, Explanation, Preview, ShadowReport};
use crate::model::{
    ActEvidence, AgentId, AgentInfo, AgentState, Alternative, Capability, ClassApprovalId, ClassState, Constraints,
    Decision, Digest, Enforcement, EscalationState, EventId, EventType, Health, Intent, KillSwitchEntry, KillSwitchId,
    ParseResult, Problem, ProofId, ProofRecord, Timestamp, ToolClassification, TrustSnapshot, WebhookId,
};
use crate::policy::Source;
use crate::proof::Evidence;

/// What parsing gives.
#[derive(ToSchema)]
pub(super) struct Parsed {
    #[serde(flatten)]
    parse: ParseResult,
    /// From what it was read; only where `explain` asks for it.
    evidence: Option<Vec<ActEvidence>>,
}

/// A decision; with what was parsed, where it was.
#[derive(ToSchema)]
pub(super) struct Enforced {
    #[serde(flatten)]
    enforcement: Enforcement,
    intent: Option<Intent>,
    confidence: Option<f64>,
    alternatives: Option<Vec<Alternative>>,
}

/// What would be decided; with what was parsed, where it was.
#[derive(ToSchema)]
pub(super) struct Previewed {
    #[serde(flatten)]
    preview: Preview,
    intent: Option<Intent>,
    confidence: Option<f64>,
    alternatives: Option<Vec<Alternative>>,
}

/// What would be decided, and why, rule by rule; with what was parsed, where it was.
#[derive(ToSchema)]
pub(super) struct Explained {
    #[serde(flatten)]
    explanation: Explanation,
    intent: Option<Intent>,
    confidence: Option<f64>,
    alternatives: Option<Vec<Alternative>>,
}

/// A record; with its evidence, where that is asked for.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ShownRecord {
    #[serde(flatten)]
    record: ProofRecord,
    /// `null` where it was erased.
    evidence: Option<Evidence>,
    evidence_erased: Option<bool>,
}

/// An agent's trust.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentTrust {
    agent_id: AgentId,
    #[serde(flatten)]
    trust: TrustSnapshot,
}

/// An agent's trust and state.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentStanding {
    agent_id: AgentId,
    #[serde(flatten)]
    trust: TrustSnapshot,
    state: AgentState,
}

/// A page of agents.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentPage {
    items: Vec<AgentInfo>,
    total: u64,
    page: u64,
    page_size: u64,
    has_more: bool,
}

/// Every agent, a line each.
#[derive(ToSchema)]
pub(super) struct AgentExport {
    agents: u64,
    lines: Vec<String>,
}

/// What a person's word came to.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answered {
    state: EscalationState,
    /// The record of the answer; `null` while others have to agree.
    #[schema(required)]
    proof_id: Option<ProofId>,
}

/// Every class of actions that is agreed to.
#[derive(ToSchema)]
pub(super) struct Grants {
    grants: Vec<ClassStanding>,
}

/// How a class of actions stands.
#[derive(ToSchema)]
pub(super) struct Granted {
    id: ClassApprovalId,
    #[schema(required)]
    state: Option<ClassState>,
}

/// Which one it was.
#[derive(ToSchema)]
pub(super) struct GrantId {
    id: ClassApprovalId,
}

/// Which one it was.
#[derive(ToSchema)]
pub(super) struct LiftedStop {
    id: KillSwitchId,
}

/// The stops in force.
#[derive(ToSchema)]
pub(super) struct Stops {
    stops: Vec<KillSwitchEntry>,
}

/// Every key, without its text.
#[derive(ToSchema)]
pub(super) struct KeyList {
    keys: Vec<KeyInfo>,
}

/// A checkpoint.
#[derive(ToSchema)]
pub(super) struct CheckpointNote {
    /// A signed note as C2SP writes it.
    note: String,
}

/// A proof against checkpoints.
#[derive(ToSchema)]
pub(super) struct CheckpointProof {
    proof: String,
}

/// The set in force.
#[derive(ToSchema)]
pub(super) struct PoliciesShown {
    #[schema(required)]
    name: Option<String>,
    digest: Digest,
    rules: u64,
    documents: Vec<Source>,
}

/// The set that was loaded.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PoliciesLoaded {
    digest: Digest,
    rules: u64,
    warnings: Option<Vec<Problem>>,
    /// How many escalations can be neither approved nor taken up, as they were asked under other policies.
    left_behind: Option<u64>,
}

/// What is wrong with a document.
#[derive(ToSchema)]
pub(super) struct PoliciesValidated {
    /// Whether it would load.
    valid: bool,
    problems: Vec<Problem>,
}

/// The set in the shadow.
#[derive(ToSchema)]
pub(super) struct Shadowed {
    /// `null` where there is none.
    #[schema(required)]
    shadow: Option<ShadowReport>,
}

/// Every tool that is known.
#[derive(ToSchema)]
pub(super) struct Tools {
    tools: Vec<ToolClassification>,
}

/// Every endpoint.
#[derive(ToSchema)]
pub(super) struct EndpointList {
    endpoints: Vec<WebhookEndpoint>,
}

// What stands below is that of the feature `webhooks`, told here again: the document is the same without.

/// An endpoint as it stands.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WebhookEndpoint {
    id: WebhookId,
    /// What follows the host is left out, for tokens stand there.
    url: String,
    /// What it is told; everything where nothing is named.
    events: Vec<EventType>,
    agent_id: Option<AgentId>,
    state: WebhookState,
    /// Why it is off or broken.
    reason: Option<String>,
    created: Timestamp,
    /// How many seconds are waited before each attempt.
    schedule: Vec<f64>,
    secrets: Vec<WebhookSecretPrint>,
    /// The entry of the log that it is told of next.
    next_entry: u64,
    /// How often the next event has failed.
    attempts: u64,
    next_attempt: Option<Timestamp>,
    /// How many events were given up and not redelivered.
    parked: u64,
}

/// How an endpoint does.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(super) enum WebhookState {
    Active,
    Failing,
    Off,
    Broken,
}

/// What tells a secret from others, and not what it is.
#[derive(ToSchema)]
pub(super) struct WebhookSecretPrint {
    #[schema(pattern = "^[0-9a-f]{16}$")]
    print: String,
    /// Until when it signs; none for the one that is in force.
    until: Option<Timestamp>,
}

/// An endpoint's secret, which is shown here alone.
#[derive(ToSchema)]
pub(super) struct WebhookSecret {
    id: WebhookId,
    secret: String,
}

/// Which one it was.
#[derive(ToSchema)]
pub(super) struct WebhookRef {
    id: WebhookId,
}

/// A page of attempts, the newest first.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WebhookDeliveryPage {
    items: Vec<WebhookDelivery>,
    total: u64,
    page: u64,
    page_size: u64,
    has_more: bool,
}

/// An attempt to deliver an event.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WebhookDelivery {
    event_id: EventId,
    r#type: EventType,
    at: Timestamp,
    /// Counted from 1; none where it was asked for by hand.
    attempt: Option<u64>,
    result: WebhookResult,
    /// The status that was answered, if one was.
    status: Option<u16>,
    error: Option<String>,
    millis: Option<u64>,
    next_attempt: Option<Timestamp>,
}

/// What an attempt came to.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub(super) enum WebhookResult {
    Delivered,
    Failed,
    Parked,
}

/// How many endpoints an event is sent to once more.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Redelivered {
    event_id: EventId,
    endpoints: u64,
    /// Those that want it and do not take it.
    not_taken: Option<Vec<WebhookNotTaken>>,
}

/// An endpoint that an event is not sent to though it wants it.
#[derive(ToSchema)]
pub(super) struct WebhookNotTaken {
    id: WebhookId,
    /// Why not, and what to do.
    reason: String,
}

/// A decision of `OpenID` `AuthZEN` 1.0: true for ALLOW alone.
#[derive(ToSchema)]
pub(super) struct Evaluated {
    decision: bool,
    context: EvaluatedContext,
}

/// Decisions in the order of what was asked; a single one where that was.
#[derive(ToSchema)]
pub(super) struct EvaluatedAll {
    evaluations: Option<Vec<EvaluatedEach>>,
    decision: Option<bool>,
    context: Option<EvaluatedContext>,
}

/// One of several decisions.
#[derive(ToSchema)]
pub(super) struct EvaluatedEach {
    decision: bool,
    context: EvaluatedEachContext,
}

/// What was decided, and why; or why nothing was.
#[derive(ToSchema)]
#[serde(untagged)]
pub(super) enum EvaluatedEachContext {
    Decided(EvaluatedContext),
    Refused(EvaluatedFault),
}

/// Why one of several was not decided; it is not recorded.
#[derive(ToSchema)]
pub(super) struct EvaluatedFault {
    error: EvaluatedError,
}

/// An error as it would be answered alone.
#[derive(ToSchema)]
pub(super) struct EvaluatedError {
    status: u16,
    code: String,
    message: String,
}

/// What was decided, and why.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EvaluatedContext {
    decision: Decision,
    reason: String,
    proof_id: ProofId,
    granted_capabilities: Vec<Capability>,
    denied_capabilities: Vec<Capability>,
    constraints: Constraints,
}

/// How well the service works.
#[derive(ToSchema)]
pub(super) struct HealthWord {
    status: Health,
}

/// An error.
#[derive(ToSchema)]
pub(super) struct ErrorBody {
    error: ErrorObject,
}

/// What was wrong.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ErrorObject {
    /// What a program acts on.
    #[schema(pattern = "^[A-Z_]+$")]
    code: String,
    /// One line for people.
    message: String,
    /// That of the header `X-Request-Id`.
    request_id: String,
    /// What a program can act on besides: the field, the limit, the problems.
    #[schema(value_type = Option<Object>)]
    details: Option<Map<String, Value>>,
}

/// An error as RFC 9457 has it, for who accepts `application/problem+json`.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProblemDetails {
    #[schema(pattern = "^urn:rulekeep:error:[A-Z_]+$")]
    r#type: String,
    title: String,
    status: u16,
    detail: String,
    #[schema(pattern = "^[A-Z_]+$")]
    code: String,
    request_id: String,
    #[schema(value_type = Option<Object>)]
    details: Option<Map<String, Value>>,
}
