//! HTTP responses and errors.

use std::fmt::{Arguments, Write as _};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::error_code::{METHOD_NOT_ALLOWED, REQUEST_TIMEOUT, UNSUPPORTED_MEDIA_TYPE};
use crate::gateway::Allowance;
use rulekeep::Error;

/// The reasons a request is refused.
#[derive(Debug)]
pub(super) enum Refusal {
    /// An error of the call.
    Of(Error),
    /// Unknown path.
    Path,
    /// The path does not support the method.
    Method,
    /// The body's content type is not JSON.
    MediaType,
    /// The body is compressed or otherwise encoded.
    Coding,
    /// The body did not arrive in time.
    Slow,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Of(error)
    }
}

impl Refusal {
    fn code(&self) -> &'static str {
        match self {
            Self::Of(error) => error.code(),
            Self::Path => "NOT_FOUND",
            Self::Method => METHOD_NOT_ALLOWED.code,
            Self::MediaType | Self::Coding => UNSUPPORTED_MEDIA_TYPE.code,
            Self::Slow => REQUEST_TIMEOUT.code,
        }
    }

    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Of(error) => StatusCode::from_u16(error.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            Self::Path => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::MediaType | Self::Coding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Of(error) => error.message(),
            Self::Path => "nothing is served at this path".to_owned(),
            Self::Method => "this method is not allowed here; the header Allow lists those that are".to_owned(),
            Self::MediaType => "expected a body of Content-Type: application/json, in UTF-8".to_owned(),
            Self::Coding => "expected a body without Content-Encoding".to_owned(),
            Self::Slow => "the body did not arrive in time".to_owned(),
        }
    }

    fn details(&self) -> Option<Value> {
        match self {
            Self::Of(error) => error.details(),
            _ => None,
        }
    }
}

/// The parts common to every response to one request.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    request_id: HeaderValue,
    /// Whether the client asks for problem documents (RFC 9457).
    pub(super) wants_problem: bool,
}

impl Frame {
    pub(super) fn of(headers: &HeaderMap, fresh_id: impl FnOnce() -> u128) -> Self {
        let is_fit =
            |id: &&HeaderValue| (1..=128).contains(&id.len()) && id.as_bytes().iter().all(u8::is_ascii_graphic);
        let given = headers.get(&REQUEST_ID).filter(is_fit).cloned();
        let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let wants_problem = accepts.flat_map(|value| value.split(',')).any(|accepted| {
            let mut parts = accepted.split(';').map(str::trim);
            parts.next().is_some_and(|essence| essence.eq_ignore_ascii_case(PROBLEM)) && !parts.any(is_weight_of_none)
        });
        let request_id = given.unwrap_or_else(|| written(format_args!("req_{:032x}", fresh_id())));
        Self { request_id, wants_problem }
    }

    pub(super) fn answer(&self, body: impl Into<Body>) -> Response {
        self.finished(StatusCode::OK, "application/json", body)
    }

    pub(super) fn refusal(&self, refusal: &Refusal) -> Response {
        let (code, message) = (refusal.code(), refusal.message());
        let request_id = self.request_id.to_str().unwrap_or_default();
        let details = refusal.details();
        let (content_type, body) = if self.wants_problem {
            let problem = ProblemDetails {
                r#type: format!("urn:rulekeep:error:{code}"),
                title: code.to_ascii_lowercase().replace('_', " "),
                status: refusal.status().as_u16(),
                detail: message,
                code,
                request_id,
                details,
            };
            (PROBLEM, json!(problem))
        } else {
            ("application/json", json!(ErrorBody { error: ErrorObject { code, message, request_id, details } }))
        };
        let mut response = self.finished(refusal.status(), content_type, body.to_string().into_bytes());
        let headers = response.headers_mut();
        match refusal {
            Refusal::Of(Error::Unauthorized { .. }) => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Refusal::Of(error) => {
                if let Some(seconds) = error.retry_after() {
                    headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
                }
            }
            Refusal::Coding => {
                headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
            }
            // The rest of the body is not read, so no further request can follow.
            Refusal::Slow => {
                headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            Refusal::Path | Refusal::Method | Refusal::MediaType => {}
        }
        response
    }

    fn finished(&self, status: StatusCode, content_type: &'static str, body: impl Into<Body>) -> Response {
        let mut response = Response::new(body.into());
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(REQUEST_ID, self.request_id.clone());
        response
    }
}

/// An error response.
#[derive(Serialize, ToSchema)]
pub(super) struct ErrorBody<'a> {
    error: ErrorObject<'a>,
}

/// The description of an error.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ErrorObject<'a> {
    /// The error code, for programs.
    #[schema(pattern = "^[A-Z_]+$")]
    code: &'static str,
    /// One line for people.
    message: String,
    /// The value of the header `X-Request-Id`.
    request_id: &'a str,
    /// Further information for programs: the field, the limit, the problems.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    details: Option<Value>,
}

/// An error in the form of RFC 9457, for clients that accept `application/problem+json`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProblemDetails<'a> {
    #[schema(pattern = "^urn:rulekeep:error:[A-Z_]+$")]
    r#type: String,
    title: String,
    status: u16,
    detail: String,
    #[schema(pattern = "^[A-Z_]+$")]
    code: &'static str,
    request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    details: Option<Value>,
}

/// Returns whether a parameter of an accepted media type is `q=0`, which excludes the type.
fn is_weight_of_none(parameter: &str) -> bool {
    let Some((name, weight)) = parameter.split_once('=') else { return false };
    name.trim().eq_ignore_ascii_case("q") && weight.trim().parse::<f32>().is_ok_and(|weight| weight <= 0.0)
}

/// Adds the key's remaining allowance, in the fields of the IETF rate limit draft.
pub(super) fn put_allowance(headers: &mut HeaderMap, allowance: &Allowance) {
    let name = allowance.plan.name();
    let (rate, burst) = (allowance.plan.per_minute(), allowance.plan.burst());
    headers.insert(POLICY, written(format_args!("\"{name}\";q={rate};w=60, \"burst\";q={burst}")));
    let (remaining, reset) = (allowance.remaining, allowance.reset_seconds);
    headers.insert(LIMIT, written(format_args!("\"burst\";r={remaining};t={reset}")));
}

/// Creates a header value from visible ASCII text.
fn written(text: Arguments<'_>) -> HeaderValue {
    let mut field = String::with_capacity(64);
    // Writing to a string cannot fail.
    let _ = field.write_fmt(text);
    HeaderValue::try_from(field).unwrap_or(HeaderValue::from_static(""))
}

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit");
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const PROBLEM: &str = "application/problem+json";
