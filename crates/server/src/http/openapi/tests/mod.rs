//! Makes the OpenAPI document, and checks that the stored one is the same.
//!
//! `schemas.rs` adds what the derived schemas cannot express; `together.rs` lists the fields that belong
//! together; `page.rs` makes the page of all calls.

mod page;
mod schemas;
mod together;

use serde_json::{Map, Value, json};

use self::schemas::{Schemas, not_null};
use super::{HealthWord, PATH};
use crate::calls::{CALLS, Entry, Shape, Spec, Verb};
use crate::gateway::Scope;
use crate::generated;
use crate::http::answer::{ErrorBody, ProblemDetails};
use crate::http::{BASE, HEALTH, authzen, error_code};

#[test]
fn the_document_is_the_one_that_the_calls_describe() {
    let mut text = serde_json::to_string_pretty(&made()).unwrap();
    text.push('\n');
    let command = "cargo test -p rulekeep-server --lib the_document_is_the_one_that_the_calls_describe";
    generated::check_at("crates/server/src/http/openapi/openapi.json", &text, command);
}

fn made() -> Value {
    let mut schemas = Schemas::default();
    let mut paths = Map::new();
    let of_contract = CALLS.iter().map(|entry| (format!("{BASE}{}", entry.spec.path), entry));
    let of_authzen = authzen::CALLS.iter().map(|entry| (entry.spec.path.to_owned(), entry));
    for (path, entry) in of_contract.chain(of_authzen) {
        let operation = operation(entry, &mut schemas);
        let operations = paths.entry(path).or_insert_with(|| json!({}));
        operations[entry.spec.verb.name().to_ascii_lowercase()] = operation;
    }
    paths.insert(HEALTH.to_owned(), json!({ "get": health(&mut schemas) }));
    paths.insert(PATH.to_owned(), json!({ "get": itself() }));
    let responses: Map<String, Value> =
        STATUSES.iter().map(|status| (refusal_name(*status), refused(*status, &mut schemas))).collect();
    let headers: Map<String, Value> = HEADERS
        .iter()
        .map(|(name, said)| ((*name).to_owned(), json!({ "description": said, "schema": { "type": "string" } })))
        .collect();
    let tags: Vec<Value> = TAGS.iter().map(|(name, said)| json!({ "name": name, "description": said })).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Rulekeep",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Governance of software agents: requests are parsed, decided by policy and trust, and recorded \
                            in a hash-linked log.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/", "description": "Where this document is served" }],
        "tags": tags,
        "security": [{ SCHEME: [] }],
        "paths": paths,
        "components": {
            "schemas": schemas.finished(),
            "responses": responses,
            "headers": headers,
            "parameters": { "RequestId": request_id(), "IdempotencyKey": idempotency_key() },
            "securitySchemes": { SCHEME: {
                "type": "http",
                "scheme": "bearer",
                "bearerFormat": "rkp_<scope>_<72 hex digits>",
                "description": "An API key. It permits what its scope, `agent` or `admin`, and its list of agents permit.",
            } },
        },
    })
}

/// The name of the security scheme in the document.
const SCHEME: &str = "apiKey";

/// The tags: the first part of a call's name, and its subject.
const TAGS: &[(&str, &str)] = &[
    ("contract", "Decisions, their records, and the service's health"),
    ("agent", "Agents"),
    ("trust", "Trust"),
    ("escalation", "Escalations and pre-approvals"),
    ("proof", "The proof log"),
    ("checkpoint", "Signed checkpoints of the log"),
    ("task", "Tasks"),
    ("command", "Commands that start as far as they are granted"),
    ("stop", "Kill switches"),
    ("clock", "The clock"),
    ("policy", "Policies"),
    ("catalogue", "The catalogue of tools"),
    ("key", "API keys"),
    ("webhook", "Webhooks"),
    ("access", "OpenID AuthZEN"),
];

fn operation(entry: &Entry, schemas: &mut Schemas) -> Value {
    let spec = entry.spec;
    let needs = match spec.scopes {
        [] => "Needs a key of the scope `admin`.",
        [Scope::Agent] => "Needs a key of the scope `agent` for the agent concerned, or of the scope `admin`.",
        [Scope::Reviewer] => "Needs a key of the scope `reviewer` or `admin`.",
        _ => "Needs a key of the scope `agent` for the agent concerned, or of the scope `reviewer` or `admin`.",
    };
    let mut request = schemas.request(entry);
    let mut parameters = vec![json!({ "$ref": "#/components/parameters/RequestId" })];
    for name in spec.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
        parameters.extend(request.take(name).map(|taken| parameter("path", name, taken, true)));
    }
    let mut operation = json!({
        "operationId": spec.method.replace('/', "_"),
        "summary": spec.summary,
        "description": needs,
        "tags": [tag_of(spec.method)],
        "security": [{ SCHEME: if spec.scopes.is_empty() { &[Scope::Admin] } else { spec.scopes } }],
    });
    if !spec.verb.has_body() {
        for (name, schema, is_required) in request.take_all() {
            parameters.push(parameter("query", &name, schema, is_required));
        }
    } else if !request.is_empty() {
        let is_required = request.is_required();
        let name = schemas.add_request(spec, request);
        operation["requestBody"] = json!({ "content": json_content(&name), "required": is_required });
    }
    let mut answer = answered("The answer", &schemas.add(entry.answer));
    for name in ["RateLimit-Policy", "RateLimit"] {
        answer["headers"][name] = header_ref(name);
    }
    if spec.verb == Verb::Post {
        parameters.push(json!({ "$ref": "#/components/parameters/IdempotencyKey" }));
        answer["headers"]["Idempotent-Replayed"] = header_ref("Idempotent-Replayed");
    }
    operation["parameters"] = Value::Array(parameters);
    let refusals = statuses(spec).into_iter().map(|status| {
        let reference = json!({ "$ref": format!("#/components/responses/{}", refusal_name(status)) });
        (status.to_string(), reference)
    });
    operation["responses"] = refusals.chain([("200".to_owned(), answer)]).collect::<Map<_, _>>().into();
    operation
}

/// The error statuses that a call can have.
fn statuses(spec: &Spec) -> Vec<u16> {
    // An agent's key may be limited to other agents; a key that is not an admin key is refused.
    let mut statuses = vec![400, 401, 403, 429, 500, 503];
    if spec.verb.has_body() {
        statuses.extend([408, 413, 415]);
    }
    if spec.verb == Verb::Post {
        statuses.push(409);
    }
    // The document is the same in every build.
    if matches!(tag_of(spec.method), "checkpoint" | "webhook") {
        statuses.push(501);
    }
    statuses.extend(spec.errors);
    statuses
}

/// A parameter of a path or a query, where `null` cannot occur.
fn parameter(place: &str, name: &str, mut schema: Value, is_required: bool) -> Value {
    not_null(&mut schema);
    let said = match name {
        "agentId" if place == "path" => Some(json!("The agent")),
        "proofId" if place == "path" => Some(json!("The record")),
        "taskId" if place == "path" => Some(json!("The task")),
        _ if place == "path" => Some(json!("Its id")),
        _ => schema.as_object_mut().and_then(|schema| schema.remove("description")),
    };
    let mut parameter = json!({ "name": name, "in": place, "required": is_required, "schema": schema });
    if let Some(said) = said {
        parameter["description"] = said;
    }
    parameter
}

fn itself() -> Value {
    json!({
        "operationId": "openapi",
        "summary": "Returns this document",
        "description": "Needs no key.",
        "tags": ["contract"],
        "security": [{}],
        "responses": { "200": {
            "description": "This document",
            "headers": { "X-Request-Id": header_ref("X-Request-Id") },
            "content": { JSON: { "schema": { "type": "object" } } },
        } },
    })
}

fn health(schemas: &mut Schemas) -> Value {
    let name = schemas.add(Shape::of::<HealthWord>());
    json!({
        "operationId": "health",
        "summary": "Returns the service's health in one word",
        "description": "Needs no key.",
        "tags": ["contract"],
        "security": [{}],
        "responses": {
            "200": answered("Healthy or degraded: the service decides", &name),
            "503": answered("Unhealthy: the service may not decide", &name),
        },
    })
}

const JSON: &str = "application/json";
/// Response headers.
const HEADERS: &[(&str, &str)] = &[
    ("X-Request-Id", "The id of the request: the client's own, or a new one"),
    ("RateLimit-Policy", "The plan of the key, as in the IETF draft on rate limit headers"),
    ("RateLimit", "The remaining requests of the key, as in the same draft"),
    ("Idempotent-Replayed", "`true` when the answer is a stored one"),
    ("WWW-Authenticate", "`Bearer`"),
];
/// Error statuses.
const STATUSES: &[u16] = &[400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 501, 503];

fn refusal_name(status: u16) -> String {
    format!("Error{status}")
}

fn header_ref(name: &str) -> Value {
    json!({ "$ref": format!("#/components/headers/{name}") })
}

fn json_content(schema: &str) -> Value {
    json!({ JSON: { "schema": { "$ref": format!("#/components/schemas/{schema}") } } })
}

fn answered(description: &str, schema: &str) -> Value {
    json!({
        "description": description,
        "content": json_content(schema),
        "headers": { "X-Request-Id": header_ref("X-Request-Id") },
    })
}

fn refused(status: u16, schemas: &mut Schemas) -> Value {
    let mut answer = answered(&codes(status), &schemas.add(Shape::of::<ErrorBody>()));
    let problem = schemas.add(Shape::of::<ProblemDetails>());
    answer["content"]["application/problem+json"] = json_content(&problem)[JSON].take();
    match status {
        401 => answer["headers"]["WWW-Authenticate"] = header_ref("WWW-Authenticate"),
        429 => {
            let seconds = json!({ "type": "integer", "minimum": 1 });
            answer["headers"]["Retry-After"] = json!({ "description": "Seconds to wait", "schema": seconds });
        }
        _ => {}
    }
    answer
}

/// The error codes of a status.
fn codes(status: u16) -> String {
    let codes = error_code::tests::of_status(status).map(|[code, meaning, _]| format!("{code}: {meaning}"));
    codes.collect::<Vec<_>>().join(" ")
}

fn request_id() -> Value {
    json!({
        "name": "X-Request-Id",
        "in": "header",
        "required": false,
        "description": "Returned in the answer if it has 1 to 128 visible ASCII characters",
        "schema": { "type": "string" },
    })
}

fn idempotency_key() -> Value {
    json!({
        "name": "Idempotency-Key",
        "in": "header",
        "required": false,
        "description": "A repeated request with the same key gets the first answer for a day, and is done once",
        "schema": { "type": "string", "pattern": "^[!-~]([ -~]{0,253}[!-~])?$" },
    })
}

fn tag_of(method: &str) -> &str {
    if matches!(method, "intent" | "enforce" | "proof/query" | "proof/stats" | "admin/status") {
        return "contract";
    }
    match method.split('/').next() {
        Some("outcome") | None => "proof",
        Some(about) => about,
    }
}
