//! A router whose requests and responses are checked against the document that it serves.

use std::collections::{BTreeSet, HashMap};

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use http_body_util::BodyExt;
use jsonschema::Validator;
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;
use tower::ServiceExt;

use rulekeep_server::gateway::{KeyDraft, Plan, Scope};
use rulekeep_server::http::router;

use crate::common::Served;

pub(crate) struct Live {
    runtime: Runtime,
    router: Router,
    pub(crate) document: Value,
    pub(crate) admin: String,
    /// The operations that were answered, with their status.
    pub(crate) seen: BTreeSet<(String, u16)>,
    validators: HashMap<String, Validator>,
}

/// A request to make.
pub(crate) struct Asked<'a> {
    pub(crate) operation: &'a str,
    pub(crate) path: &'a [(&'a str, &'a str)],
    pub(crate) query: &'a str,
    pub(crate) body: Option<Value>,
    pub(crate) key: Option<&'a str>,
    pub(crate) headers: &'a [(&'a str, &'a str)],
}

impl Live {
    pub(crate) fn new(governor: &Served) -> Self {
        let gateway = &governor.gateway;
        let plan = Plan::enterprise(60_000_000, 1_000_000).unwrap();
        let admin = gateway.keys().create(KeyDraft::new(Scope::Admin, plan)).unwrap();
        let (runtime, router) = (Runtime::new().unwrap(), router(gateway));
        let mut live = Self {
            runtime,
            router,
            document: Value::Null,
            admin: admin.key.expose().to_owned(),
            seen: BTreeSet::new(),
            validators: HashMap::new(),
        };
        let (status, _, body) = live.send(Request::get("/openapi.json").body(Body::empty()).unwrap());
        assert_eq!(status, StatusCode::OK, "it needs no key");
        live.document = serde_json::from_slice(&body).unwrap();
        live
    }

    pub(crate) fn send(&self, mut request: Request<Body>) -> (StatusCode, HeaderMap, Vec<u8>) {
        request.headers_mut().insert(header::HOST, HeaderValue::from_static("localhost"));
        self.runtime.block_on(async {
            let response = self.router.clone().oneshot(request).await.unwrap();
            let (parts, body) = response.into_parts();
            (parts.status, parts.headers, body.collect().await.unwrap().to_bytes().to_vec())
        })
    }

    /// Makes a request with an admin key and expects success.
    pub(crate) fn ask(
        &mut self,
        operation: &str,
        path: &[(&str, &str)],
        query: &str,
        body: impl Into<Option<Value>>,
    ) -> Value {
        let (body, key) = (body.into(), self.admin.clone());
        let asked = Asked { operation, path, query, body, key: Some(&key), headers: &[] };
        let (status, answer) = self.check(&asked);
        assert_eq!(status, 200, "{operation}: {answer}");
        answer
    }

    /// Makes a request, and checks it and its response against the document.
    pub(crate) fn check(&mut self, asked: &Asked<'_>) -> (u16, Value) {
        let (method, path, operation) = self.operation(asked.operation);
        if let Some(body) = &asked.body {
            let schema = operation["requestBody"]["content"]["application/json"]["schema"].clone();
            // A request that violates the document is sent on purpose, and must be refused.
            let faults = self.faults(&schema, body);
            let (status, answer) = self.answered(asked, &method, &path, &operation);
            assert!(faults.is_empty() || status != 200, "{} is taken with {body}: {faults:#?}", asked.operation);
            return (status, answer);
        }
        self.answered(asked, &method, &path, &operation)
    }

    fn answered(&mut self, asked: &Asked<'_>, method: &str, path: &str, operation: &Value) -> (u16, Value) {
        let mut uri = path.to_owned();
        for (name, value) in asked.path {
            uri = uri.replace(&format!("{{{name}}}"), value);
        }
        if !asked.query.is_empty() {
            uri = format!("{uri}?{}", asked.query);
        }
        let mut request = Request::builder().method(method.to_ascii_uppercase().as_str()).uri(uri);
        if let Some(key) = asked.key {
            request = request.header("Authorization", format!("Bearer {key}"));
        }
        for (name, value) in asked.headers {
            request = request.header(*name, *value);
        }
        let body = match &asked.body {
            None => Body::empty(),
            Some(body) => {
                if !asked.headers.iter().any(|(name, _)| *name == "Content-Type") {
                    request = request.header("Content-Type", "application/json");
                }
                Body::from(body.to_string())
            }
        };
        let (status, headers, body) = self.send(request.body(body).unwrap());
        let body: Value = serde_json::from_slice(&body).unwrap();
        let name = asked.operation;
        let described = self.resolved(&operation["responses"][status.as_u16().to_string()]).clone();
        assert!(described.is_object(), "{name}: {status} is not described: {body}");
        let content_type = headers["content-type"].to_str().unwrap();
        let schema = described["content"][content_type]["schema"].clone();
        assert!(schema.is_object(), "{name}: {content_type} is not described of {status}");
        let faults = self.faults(&schema, &body);
        assert!(faults.is_empty(), "{name}: {status}: {faults:#?}\n{body:#}");
        let unknown = self.undescribed(&schema, &body, "");
        assert!(unknown.is_empty(), "{name}: {status} has {unknown:?} besides");
        for (header, _) in described["headers"].as_object().unwrap() {
            let is_there = headers.contains_key(header.as_str());
            assert!(is_there || header == "Idempotent-Replayed", "{name}: {status} has no {header}");
        }
        for header in ["ratelimit", "ratelimit-policy", "retry-after", "www-authenticate", "idempotent-replayed"] {
            let is_said =
                described["headers"].as_object().unwrap().keys().any(|known| known.eq_ignore_ascii_case(header));
            let is_error = status != StatusCode::OK && header.starts_with("ratelimit");
            assert!(is_said || is_error || !headers.contains_key(header), "{name}: {status} has {header} besides");
        }
        let code = body.pointer("/error/code").or_else(|| body.get("code").filter(|_| status != StatusCode::OK));
        if let Some(code) = code.and_then(Value::as_str) {
            let said = described["description"].as_str().unwrap();
            assert!(said.contains(code), "{name}: {status} says {code}, and not one of: {said}");
        }
        self.seen.insert((name.to_owned(), status.as_u16()));
        (status.as_u16(), body)
    }

    /// The method, path and description of an operation.
    fn operation(&self, id: &str) -> (String, String, Value) {
        for (path, item) in self.document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                if operation["operationId"] == id {
                    return (method.clone(), path.clone(), operation.clone());
                }
            }
        }
        panic!("{id} is not described")
    }

    /// Every operation except the document itself.
    pub(crate) fn operations(&self) -> BTreeSet<String> {
        let items = self.document["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap());
        let ids = items.map(|(_, operation)| operation["operationId"].as_str().unwrap().to_owned());
        ids.filter(|id| !["openapi", "health"].contains(&id.as_str())).collect()
    }

    /// The violations of a schema of the document by a value.
    pub(crate) fn faults(&mut self, schema: &Value, value: &Value) -> Vec<String> {
        let whole = json!({ "allOf": [schema], "components": self.document["components"] });
        let validator = self
            .validators
            .entry(schema.to_string())
            .or_insert_with(|| jsonschema::options().should_validate_formats(true).build(&whole).unwrap());
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
    }

    /// The fields of a value that a schema does not name, at any depth.
    pub(crate) fn undescribed(&self, schema: &Value, value: &Value, place: &str) -> Vec<String> {
        match value {
            Value::Object(fields) => {
                let mut known = Map::new();
                if !self.properties(schema, &mut known) {
                    return Vec::new();
                }
                let found = fields.iter().flat_map(|(name, value)| match known.get(name) {
                    None => vec![format!("{place}/{name}")],
                    Some(schema) => self.undescribed(schema, value, &format!("{place}/{name}")),
                });
                found.collect()
            }
            Value::Array(items) => {
                let schema = self.resolved(schema)["items"].clone();
                items.iter().flat_map(|item| self.undescribed(&schema, item, &format!("{place}/-"))).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Collects the fields that a schema names. Returns false if it names none, or allows further ones.
    fn properties(&self, schema: &Value, known: &mut Map<String, Value>) -> bool {
        let schema = self.resolved(schema);
        if schema.get("additionalProperties").is_some_and(|more| *more != false) {
            return false;
        }
        let before = known.len();
        if let Some(properties) = schema["properties"].as_object() {
            known.extend(properties.clone());
        }
        let parts = ["allOf", "oneOf", "anyOf"].iter().filter_map(|part| schema[*part].as_array()).flatten();
        let parts: Vec<&Value> = parts.filter(|part| part.get("$ref").is_some() || part["type"] == "object").collect();
        // A part that allows further fields makes the whole allow them.
        parts.into_iter().all(|part| self.properties(part, known)) && known.len() > before
    }

    fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(reference) => self.resolved(self.document.pointer(&reference[1..]).unwrap()),
            None => schema,
        }
    }
}
