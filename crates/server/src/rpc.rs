//! JSON-RPC 2.0: parses requests and writes responses.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use rulekeep::Error;
use rulekeep::extension::excerpt;

/// A valid request.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) method: String,
    pub(super) params: Option<&'a RawValue>,
    /// Absent in a notification, which gets no response.
    pub(super) id: Option<&'a RawValue>,
}

/// An error in the terms of the protocol.
#[derive(Debug, Serialize)]
pub(super) struct Fault {
    code: i32,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
}

/// A response.
#[derive(Debug, Serialize)]
pub(super) struct Response<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Fault>,
    id: Option<&'a RawValue>,
}

/// A message that expects no response.
#[derive(Debug, Serialize)]
pub(super) struct Notification<P> {
    jsonrpc: &'static str,
    method: &'static str,
    params: P,
}

impl<P: Serialize> Notification<P> {
    pub(super) const fn new(method: &'static str, params: P) -> Self {
        Self { jsonrpc: VERSION, method, params }
    }
}

impl<'a> Response<'a> {
    pub(super) fn new(id: Option<&'a RawValue>, outcome: Result<Box<RawValue>, Fault>) -> Self {
        let (result, error) = match outcome {
            Ok(result) => (Some(result), None),
            Err(fault) => (None, Some(fault)),
        };
        Self { jsonrpc: VERSION, result, error, id }
    }
}

impl Fault {
    pub(super) fn parse(message: impl Into<String>) -> Self {
        Self::new(-32700, message)
    }

    pub(super) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(-32600, message)
    }

    pub(super) fn unknown_method(method: &str) -> Self {
        Self::new(-32601, format!("there is no method {:?}", excerpt(method)))
    }

    pub(super) fn invalid_params() -> Self {
        Self::new(-32602, "params: expected an object")
    }

    fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let mut data = json!({ "code": error.code(), "httpStatus": error.http_status() });
        if let (Value::Object(data), Some(details)) = (&mut data, error.details()) {
            data.insert("details".to_owned(), details);
        }
        Self { code: -32000, message: error.message(), data: Some(data) }
    }
}

/// A request as received, before any check.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
}

impl<'a> Request<'a> {
    /// Reads one request. An error carries the request's id if it could be read.
    pub(super) fn read(text: &'a str) -> Result<Self, (Option<&'a RawValue>, Fault)> {
        let no_request = || (None, Fault::invalid_request("expected an object with jsonrpc, method, params and id"));
        // A derived deserializer would also accept a list of the field values.
        let envelope = Some(text).filter(|text| text.starts_with('{')).map(serde_json::from_str::<Envelope<'a>>);
        let Some(Ok(envelope)) = envelope else { return Err(no_request()) };
        let id = envelope.id.filter(|id| is_id(id));
        let refuse = |message: &str| Err((id, Fault::invalid_request(message)));
        if envelope.id.is_some() && id.is_none() {
            return refuse("id: expected a string, a number or null");
        }
        if envelope.jsonrpc.is_none_or(|version| version.get() != "\"2.0\"") {
            return refuse("jsonrpc: expected \"2.0\"");
        }
        match envelope.method.map(|method| serde_json::from_str::<String>(method.get())) {
            Some(Ok(method)) => Ok(Self { method, params: envelope.params, id }),
            _ => refuse("method: expected a string"),
        }
    }
}

/// Deserializes a field that is present, also if it is `null`.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

fn is_id(id: &RawValue) -> bool {
    let first = id.get().bytes().next();
    first.is_some_and(|byte| byte == b'"' || byte == b'-' || byte.is_ascii_digit()) || id.get() == "null"
}

const VERSION: &str = "2.0";
