//! The OpenAPI document: made from the table of routes, what each call is described as, and the types themselves.
//!
//! | file | subject |
//! |---|---|
//! | `answers.rs` | answers that are no type of the library |
//! | `bodies.rs` | bodies and queries of requests |
//! | `calls.rs` | every call: what it does, takes and gives |
//! | `tighten.rs` | what the builders cannot say |

mod answers;
mod bodies;
mod calls;
mod tighten;

use std::sync::LazyLock;

use axum::body::Bytes;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ComponentsBuilder, Type};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    ContentBuilder, HttpMethod, InfoBuilder, LicenseBuilder, ObjectBuilder, OpenApiBuilder, PathsBuilder, Ref, RefOr,
    Required, ResponseBuilder, Schema, ServerBuilder,
};
use utoipa::{PartialSchema, ToSchema};

use self::answers::{ErrorBody, Evaluated, EvaluatedAll, HealthWord, ProblemDetails};
use self::bodies::{EvaluationBody, EvaluationsBody};
use self::calls::{CALLS, Described, Shape};
use super::authzen;
use super::routes::{Method, ROUTES, Route};
use crate::gateway::is_for_agents;
use rulekeep::agent::{AgentId, Label};
use rulekeep::escalation::EscalationState;
use rulekeep::intent::IntentId;
use rulekeep::proof::{Order, ProofCursor, ProofId};
use rulekeep::system::Timestamp;
use rulekeep::{Decision, Outcome, RiskLevel, Tier};

/// Where it is served; nobody needs a key for it.
pub(super) const PATH: &str = "/openapi.json";

/// The document, as it is served and as it stands under `docs/`.
pub(super) fn document() -> Bytes {
    static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(written()));
    DOCUMENT.clone()
}

fn written() -> String {
    // A document that does not serialise would be a fault of this build; its tests read it.
    let mut document = serde_json::to_value(made()).unwrap_or_default();
    tighten::tighten(&mut document);
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

fn made() -> utoipa::openapi::OpenApi {
    let mut paths = PathsBuilder::new();
    let mut components = vocabulary();
    for route in ROUTES {
        let Some(described) = CALLS.iter().find(|described| described.call == route.call) else { continue };
        components = with_shapes(components, described);
        let path = format!("/v1{}", route.path);
        paths = paths.path(path, PathItem::new(method(route.method), operation(route, described)));
    }
    for (route, described) in [(&authzen::ONE, &EVALUATION), (&authzen::MANY, &EVALUATIONS)] {
        components = with_shapes(components, described);
        paths = paths.path(route.path, PathItem::new(HttpMethod::Post, operation(route, described)));
    }
    paths = paths.path(super::HEALTH, PathItem::new(HttpMethod::Get, health()));
    paths = paths.path(PATH, PathItem::new(HttpMethod::Get, itself()));
    let info = InfoBuilder::new()
        .title("Rulekeep")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "Governance of software agents: what an agent asks is parsed, decided by policy and trust, and recorded in a \
             hash-linked log.",
        ))
        .license(Some(LicenseBuilder::new().name("MIT OR Apache-2.0").identifier(Some("MIT OR Apache-2.0")).build()))
        .build();
    let tag =
        |(name, description): &(&str, &str)| TagBuilder::new().name(*name).description(Some(*description)).build();
    OpenApiBuilder::new()
        .info(info)
        .servers(Some([ServerBuilder::new().url("/").description(Some("Where this document is served")).build()]))
        .tags(Some(TAGS.iter().map(tag)))
        .security(Some([SecurityRequirement::new::<_, [&str; 0], &str>(SCHEME, [])]))
        .paths(paths)
        .components(Some(components.build()))
        .build()
}

/// What keys are called in the document.
const SCHEME: &str = "apiKey";

/// The first part of a call's name, and what it is about.
const TAGS: &[(&str, &str)] = &[
    ("contract", "Parsing, decisions, their records, and the service's health"),
    ("agent", "Agents"),
    ("trust", "Trust"),
    ("escalation", "What people decide"),
    ("proof", "The log"),
    ("checkpoint", "Signed checkpoints of the log"),
    ("stop", "Stops"),
    ("policy", "Policies"),
    ("catalogue", "Tools"),
    ("key", "API keys"),
    ("webhook", "Webhooks"),
    ("access", "OpenID AuthZEN"),
];

const EVALUATION: Described = Described {
    call: "access/evaluation",
    summary: "Decides as OpenID AuthZEN 1.0 asks, and records the decision",
    answer: Shape::of::<Evaluated>(),
    body: Some(Shape::of::<EvaluationBody>()),
    id: None,
    query: &[],
    errors: &[404, 422],
};

const EVALUATIONS: Described = Described {
    call: "access/evaluations",
    summary: "Decides on several in one request, each as if it had been asked alone",
    answer: Shape::of::<EvaluatedAll>(),
    body: Some(Shape::of::<EvaluationsBody>()),
    id: None,
    query: &[],
    errors: &[404, 422],
};

fn operation(route: &Route, described: &Described) -> OperationBuilder {
    let is_for_agents = is_for_agents(route.call);
    let scope = if is_for_agents { "agent" } else { "admin" };
    let needs = if is_for_agents {
        "Needs a key of the scope `agent`, for the agent that it concerns, or `admin`."
    } else {
        "Needs a key of the scope `admin`."
    };
    let mut operation = OperationBuilder::new()
        .operation_id(Some(described.call.replace('/', "_")))
        .summary(Some(described.summary))
        .description(Some(needs))
        .tag(tag_of(described.call))
        .security(SecurityRequirement::new(SCHEME, [scope]))
        .parameter_ref(parameter_ref("RequestId"));
    for name in route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
        operation = operation.parameter(path_parameter(name, described));
    }
    for parameter in described.query.iter().flat_map(|query| query()) {
        operation = operation.parameter(parameter);
    }
    let has_body = !matches!(route.method, Method::Get | Method::Delete);
    if route.method == Method::Post {
        operation = operation.parameter_ref(parameter_ref("IdempotencyKey"));
    }
    if let Some(body) = described.body.filter(|_| has_body) {
        let content = ContentBuilder::new().schema(Some(reference(body))).build();
        let is_required = if tighten::may_be_empty(body) { Required::False } else { Required::True };
        operation = operation
            .request_body(Some(RequestBodyBuilder::new().content(JSON, content).required(Some(is_required)).build()));
    }
    let mut answer = answered("What was asked for", described.answer);
    for name in ["RateLimit-Policy", "RateLimit"] {
        answer = answer.header_ref(name, header_ref(name));
    }
    if route.method == Method::Post {
        answer = answer.header_ref("Idempotent-Replayed", header_ref("Idempotent-Replayed"));
    }
    operation = operation.response("200", answer.build());
    let mut statuses = vec![400, 401, 429, 500, 503];
    // A key of an agent may be for others; one that is no administrator's is refused.
    statuses.push(403);
    if has_body {
        statuses.extend([408, 413, 415]);
    }
    if route.method == Method::Post {
        statuses.push(409);
    }
    // The document is the same in every build.
    if matches!(tag_of(described.call), "checkpoint" | "webhook") {
        statuses.push(501);
    }
    statuses.extend(described.errors);
    statuses.sort_unstable();
    statuses.dedup();
    for status in statuses {
        operation = operation.response(status.to_string(), Ref::from_response_name(refusal_name(status)));
    }
    operation
}

fn itself() -> OperationBuilder {
    let content = ContentBuilder::new().schema(Some(ObjectBuilder::new().schema_type(Type::Object))).build();
    let answer = ResponseBuilder::new().description("This document").content(JSON, content);
    OperationBuilder::new()
        .operation_id(Some("openapi"))
        .summary(Some("This document"))
        .description(Some("Needs no key."))
        .tag("contract")
        .securities(Some([SecurityRequirement::default()]))
        .response("200", answer.header_ref("X-Request-Id", header_ref("X-Request-Id")).build())
}

fn health() -> OperationBuilder {
    let answered = |what: &str| answered(what, Shape::of::<HealthWord>());
    OperationBuilder::new()
        .operation_id(Some("health"))
        .summary(Some("The service's health, in a word"))
        .description(Some("Needs no key."))
        .tag("contract")
        .securities(Some([SecurityRequirement::default()]))
        .response("200", answered("It governs").build())
        .response("503", answered("It governs nothing").build())
}

const JSON: &str = "application/json";
/// Headers of answers.
const HEADERS: &[(&str, &str)] = &[
    ("X-Request-Id", "The request's id: the one that it came with, or a new one"),
    ("RateLimit-Policy", "The plan of the key, in the fields of the IETF's draft on rate limits"),
    ("RateLimit", "What the key may still do, likewise"),
    ("Idempotent-Replayed", "`true` where it was answered before"),
    ("WWW-Authenticate", "`Bearer`"),
];
/// Statuses of errors.
const STATUSES: &[u16] = &[400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 501, 503];

fn refusal_name(status: u16) -> String {
    format!("Error{status}")
}

fn parameter_ref(name: &str) -> Ref {
    Ref::new(format!("#/components/parameters/{name}"))
}

fn header_ref(name: &str) -> Ref {
    Ref::new(format!("#/components/headers/{name}"))
}

fn answered(description: &str, shape: Shape) -> ResponseBuilder {
    let content = ContentBuilder::new().schema(Some(reference(shape))).build();
    ResponseBuilder::new()
        .description(description)
        .content(JSON, content)
        .header_ref("X-Request-Id", header_ref("X-Request-Id"))
}

fn refused(status: u16) -> utoipa::openapi::Response {
    let problem = ContentBuilder::new().schema(Some(reference(Shape::of::<ProblemDetails>()))).build();
    let mut answer = answered(codes(status), Shape::of::<ErrorBody>()).content("application/problem+json", problem);
    match status {
        401 => answer = answer.header_ref("WWW-Authenticate", header_ref("WWW-Authenticate")),
        429 => {
            let seconds = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1));
            let header = HeaderBuilder::new().schema(Some(seconds)).description(Some("Seconds to wait")).build();
            answer = answer.header("Retry-After", header);
        }
        _ => {}
    }
    answer.build()
}

/// Which codes come with a status.
const fn codes(status: u16) -> &'static str {
    match status {
        400 => "INVALID_INPUT, INVALID_INTENT or INVALID_QUERY: a field is missing or malformed",
        401 => "UNAUTHORIZED: the key is missing, or none that holds",
        403 => "FORBIDDEN: the key does not permit it",
        404 => "AGENT_NOT_FOUND, PROOF_NOT_FOUND or NOT_FOUND: there is nothing of that name",
        408 => "REQUEST_TIMEOUT: the body did not come in time",
        409 => {
            "CONFLICT: it contradicts what stands, or what was answered under the idempotency key is not answered again"
        }
        413 => "PAYLOAD_TOO_LARGE: the input, the context or the body is",
        415 => "UNSUPPORTED_MEDIA_TYPE: the body is not announced as JSON in UTF-8",
        422 => "POLICY_ERROR: the policy set does not load, or its evaluation failed",
        429 => "RATE_LIMITED: more requests than the key's plan has room for",
        500 => "INTERNAL: a fault of the service",
        501 => "NOT_IMPLEMENTED: this service was built without what it needs",
        _ => "STORAGE_UNAVAILABLE or CHAIN_BROKEN: the log cannot be written",
    }
}

fn request_id() -> Parameter {
    let description = "Comes back in the answer, where it has 1 to 128 visible characters";
    ParameterBuilder::new()
        .name("X-Request-Id")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .build()
}

fn idempotency_key() -> Parameter {
    let schema = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[!-~]([ -~]{0,253}[!-~])?$"));
    ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some("With the same one, the same request is answered again for a day, and done once"))
        .schema(Some(schema))
        .build()
}

fn path_parameter(name: &str, described: &Described) -> Parameter {
    let (schema, description) = match (name, described.id) {
        ("agentId", _) => (reference(Shape::of::<AgentId>()), "The agent"),
        ("proofId", _) => (reference(Shape::of::<ProofId>()), "The record"),
        (_, Some(id)) => (reference(id), "Which one"),
        (_, None) => (ObjectBuilder::new().schema_type(Type::String).into(), "Which one"),
    };
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(description))
        .schema(Some(schema))
        .build()
}

fn text_header(description: &str) -> utoipa::openapi::header::Header {
    let schema = ObjectBuilder::new().schema_type(Type::String);
    HeaderBuilder::new().schema(Some(schema)).description(Some(description)).build()
}

fn tag_of(call: &str) -> &str {
    if matches!(call, "intent" | "enforce" | "proof/query" | "proof/stats" | "admin/status") {
        return "contract";
    }
    match call.split('/').next() {
        Some("outcome") | None => "proof",
        Some(about) => about,
    }
}

const fn method(method: Method) -> HttpMethod {
    match method {
        Method::Get => HttpMethod::Get,
        Method::Post => HttpMethod::Post,
        Method::Put => HttpMethod::Put,
        Method::Patch => HttpMethod::Patch,
        Method::Delete => HttpMethod::Delete,
    }
}

fn reference(shape: Shape) -> RefOr<Schema> {
    RefOr::Ref(Ref::from_schema_name((shape.name)()))
}

fn with_shapes(mut components: ComponentsBuilder, described: &Described) -> ComponentsBuilder {
    for shape in [Some(described.answer), described.body, described.id].into_iter().flatten() {
        components = with_shape(components, shape);
    }
    components
}

fn with_shape(components: ComponentsBuilder, shape: Shape) -> ComponentsBuilder {
    let mut schemas = vec![((shape.name)().into_owned(), (shape.schema)())];
    (shape.parts)(&mut schemas);
    components.schemas_from_iter(schemas)
}

/// The words that parameters are written in, and errors.
fn vocabulary() -> ComponentsBuilder {
    fn named<T: ToSchema + PartialSchema>() -> Shape {
        Shape::of::<T>()
    }
    let key = Http::builder()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("rkp_<scope>_<72 hex digits>")
        .description(Some(
            "An API key. What it permits is its scope, `agent` or `admin`, and the agents that it is for.",
        ))
        .build();
    let mut components = ComponentsBuilder::new()
        .security_scheme(SCHEME, SecurityScheme::Http(key))
        .parameter("RequestId", request_id())
        .parameter("IdempotencyKey", idempotency_key());
    for (name, description) in HEADERS {
        components = components.header(*name, text_header(description));
    }
    for status in STATUSES {
        components = components.response(refusal_name(*status), refused(*status));
    }
    [
        named::<AgentId>(),
        named::<HealthWord>(),
        named::<Label>(),
        named::<Tier>(),
        named::<ProofId>(),
        named::<IntentId>(),
        named::<ProofCursor>(),
        named::<Timestamp>(),
        named::<Decision>(),
        named::<Outcome>(),
        named::<RiskLevel>(),
        named::<Order>(),
        named::<EscalationState>(),
        named::<ErrorBody>(),
        named::<ProblemDetails>(),
    ]
    .into_iter()
    .fold(components, with_shape)
}
