//! The one error of the public face, and the value error of the vocabulary.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::error_code::{self, ErrorCode};
use super::{BrokenKind, DenialClass, ProofId, closed_words};

/// A text that is not a value of the type it was given for: what was wrong, and
/// what was expected instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{value:?} is no {what}: expected {expected}")]
pub struct InvalidValue {
    what: &'static str,
    value: String,
    expected: &'static str,
}

impl InvalidValue {
    /// A value that is not what was expected.
    pub fn new(what: &'static str, value: &str, expected: &'static str) -> Self {
        Self { what, value: excerpt(value), expected }
    }

    /// The kind of value that was expected, for example `capability`.
    pub fn what(&self) -> &'static str {
        self.what
    }
}

/// The start of a text, short enough for an error message.
pub fn excerpt(text: &str) -> String {
    const LONGEST: usize = 60;
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let mut start: String = text.chars().take(LONGEST).collect();
    start.push('…');
    start
}

closed_words! {
    /// How bad a problem in a policy document is.
    pub enum Severity("severity") {
        /// The document does not load.
        Error = "error",
        /// The document loads, but probably does not say what was meant.
        Warning = "warning",
    }
}

/// A problem in a policy document, with its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Problem {
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, in which rule and field, and what was expected.
    pub message: String,
}

impl Problem {
    /// A problem at a place.
    pub fn new(line: usize, column: usize, severity: Severity, message: impl Into<String>) -> Self {
        Self { line, column, severity, message: message.into() }
    }
}

/// Everything that a call of the governor can answer instead of a result.
///
/// [`Error::code`] and [`Error::http_status`] are the contract's; the message is
/// one line that says what was wrong, where, and what was expected. No variant
/// ever carries a secret.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A request's field is missing or malformed.
    #[error("{field}: {message}")]
    InvalidInput {
        /// The field's name in the request.
        field: &'static str,
        /// What is wrong and what was expected.
        message: String,
    },
    /// An intent that a caller built lacks a field or has a malformed one.
    #[error("intent {field}: {message}")]
    InvalidIntent {
        /// The field's name in the intent.
        field: &'static str,
        /// What is wrong and what was expected.
        message: String,
    },
    /// No agent of that id is registered.
    #[error("no agent {agent_id:?} is registered; register it, or build the governor with auto-registration")]
    AgentNotFound {
        /// The id that was asked for.
        agent_id: String,
    },
    /// A policy set does not load, or its evaluation failed.
    #[error("{message}")]
    Policy {
        /// The first problem, or the failure.
        message: String,
        /// Every problem of the document, with its place.
        problems: Vec<Problem>,
        /// The record of the DENY that a failed evaluation comes to.
        proof_id: Option<ProofId>,
    },
    /// A query's parameter is out of its range.
    #[error("{parameter}: {message}")]
    InvalidQuery {
        /// The parameter's name in the query.
        parameter: &'static str,
        /// What is wrong and what was expected.
        message: String,
    },
    /// The log has no record of that id.
    #[error("no {} {proof_id} in this log", kind_of(proof_id))]
    ProofNotFound {
        /// The id that was asked for.
        proof_id: String,
    },
    /// The record is of the past of this log that is kept elsewhere.
    #[error("no proof record {proof_id} in this log: {place}")]
    ProofElsewhere {
        /// The id that was asked for.
        proof_id: String,
        /// Where to look for it.
        place: String,
    },
    /// There is nothing of that id: no endpoint of a webhook, no API key, no event.
    #[error("there is no {what} {id}")]
    NotFound {
        /// What was asked for.
        what: &'static str,
        /// The id that was asked for.
        id: String,
    },
    /// There is no task of that id, or it is another agent's.
    #[error(
        "there is no task {task_id:?} of this agent; open one with `task/open`, or check which agent it belongs to"
    )]
    TaskNotFound {
        /// The id that was asked for.
        task_id: String,
    },
    /// What stood beside a record was erased for good; the record stands.
    #[error("the evidence of {proof_id} was erased")]
    EvidenceErased {
        /// The record's id.
        proof_id: String,
    },
    /// The request contradicts what already stands.
    #[error("{message}")]
    Conflict {
        /// What stands, and what was asked instead.
        message: String,
    },
    /// An input, a context or a body is larger than allowed.
    #[error("{what} has {size} bytes, at most {limit} are accepted")]
    PayloadTooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size in bytes.
        size: usize,
        /// The most that is accepted, in bytes.
        limit: usize,
    },
    /// No key came, or none that holds.
    #[error("{message}")]
    Unauthorized {
        /// What was expected.
        message: String,
    },
    /// More requests than the key's plan has room for.
    #[error("{message}")]
    RateLimited {
        /// What the limit is.
        message: String,
        /// How long to wait, at the least, until a request has room again.
        retry_after: Duration,
    },
    /// The key does not permit the request.
    #[error("{message}")]
    Forbidden {
        /// What is missing.
        message: String,
    },
    /// The log is damaged or was tampered with; it is read-only until an operator decides.
    #[error("the proof log is broken and read-only: {message}")]
    ChainBroken {
        /// Where it breaks and how.
        message: String,
    },
    /// The log is not the one that a checkpoint, which was kept elsewhere, vouches for.
    #[error("the log contradicts the checkpoint ({kind}): {message}")]
    Contradicted {
        /// Whether entries are gone, or others than they were.
        kind: BrokenKind,
        /// What was there, and what is.
        message: String,
    },
    /// An export is not as it was written.
    #[error("the export breaks at line {line}: expected {expected}, found {found}")]
    ExportBroken {
        /// The line, counted from 1.
        line: u64,
        /// What should be there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// An archive is not as it was written.
    #[error("the archive does not hold: {message}")]
    ArchiveBroken {
        /// What was expected, and what was found.
        message: String,
    },
    /// The store cannot be used, or no longer.
    #[error("the store is unavailable: {message}")]
    StorageUnavailable {
        /// Why, and what to do.
        message: String,
    },
    /// The call needs a feature that this program was built without.
    #[error("this program was built without {feature}: build it with the feature `{feature}` of rulekeep")]
    NotBuilt {
        /// The feature's name in `Cargo.toml`.
        feature: &'static str,
    },
    /// A fault of this library.
    #[error("internal error: {message}")]
    Internal {
        /// What did not hold.
        message: String,
    },
}

/// What an id is of: an escalation is looked for by the record that asked.
fn kind_of(id: &str) -> &'static str {
    if id.starts_with("esc_") { "escalation" } else { "proof record" }
}

impl Error {
    /// The contract's code, for example `AGENT_NOT_FOUND`.
    pub const fn code(&self) -> &'static str {
        self.kind().code
    }

    /// The HTTP status that goes with the code.
    pub const fn http_status(&self) -> u16 {
        self.kind().http_status
    }

    /// The code with its status, its meaning and what the caller can do.
    const fn kind(&self) -> ErrorCode {
        match self {
            Self::InvalidInput { .. } | Self::ExportBroken { .. } | Self::ArchiveBroken { .. } => {
                error_code::INVALID_INPUT
            }
            Self::InvalidIntent { .. } => error_code::INVALID_INTENT,
            Self::InvalidQuery { .. } => error_code::INVALID_QUERY,
            Self::Unauthorized { .. } => error_code::UNAUTHORIZED,
            Self::Forbidden { .. } => error_code::FORBIDDEN,
            Self::AgentNotFound { .. } => error_code::AGENT_NOT_FOUND,
            Self::ProofNotFound { .. } | Self::ProofElsewhere { .. } | Self::EvidenceErased { .. } => {
                error_code::PROOF_NOT_FOUND
            }
            Self::TaskNotFound { .. } => error_code::TASK_NOT_FOUND,
            Self::NotFound { .. } => error_code::NOT_FOUND,
            Self::Conflict { .. } => error_code::CONFLICT,
            Self::PayloadTooLarge { .. } => error_code::PAYLOAD_TOO_LARGE,
            Self::Policy { .. } => error_code::POLICY_ERROR,
            Self::RateLimited { .. } => error_code::RATE_LIMITED,
            Self::Internal { .. } => error_code::INTERNAL,
            Self::NotBuilt { .. } => error_code::NOT_IMPLEMENTED,
            Self::ChainBroken { .. } | Self::Contradicted { .. } => error_code::CHAIN_BROKEN,
            Self::StorageUnavailable { .. } => error_code::STORAGE_UNAVAILABLE,
        }
    }

    /// What a program can act on beside the code: the field, the limit, the problems.
    pub fn details(&self) -> Option<Value> {
        match self {
            Self::InvalidInput { field, .. } | Self::InvalidIntent { field, .. } => Some(json!({ "field": field })),
            Self::AgentNotFound { agent_id } => Some(json!({ "agentId": agent_id })),
            Self::Policy { proof_id: Some(proof_id), .. } => {
                Some(json!({ "proofId": proof_id, "denialClass": DenialClass::Error, "retryable": false }))
            }
            Self::Policy { problems, .. } if !problems.is_empty() => Some(json!({ "problems": problems })),
            Self::InvalidQuery { parameter, .. } => Some(json!({ "parameter": parameter })),
            Self::Contradicted { kind, .. } => Some(json!({ "kind": kind })),
            Self::ProofNotFound { proof_id } => Some(json!({ "proofId": proof_id })),
            Self::NotFound { id, .. } => Some(json!({ "id": id })),
            Self::TaskNotFound { task_id } => Some(json!({ "taskId": task_id })),
            Self::ProofElsewhere { proof_id, place } => Some(json!({ "proofId": proof_id, "place": place })),
            Self::EvidenceErased { proof_id } => Some(json!({ "proofId": proof_id, "erased": true })),
            Self::RateLimited { .. } => Some(json!({ "retryAfter": self.retry_after() })),
            Self::PayloadTooLarge { size, limit, .. } => Some(json!({ "size": size, "limit": limit })),
            Self::NotBuilt { feature } => Some(json!({ "feature": feature })),
            Self::ExportBroken { line, expected, found } => {
                Some(json!({ "line": line, "expected": expected, "found": found }))
            }
            _ => None,
        }
    }

    /// For [`Error::RateLimited`]: how long to wait, in whole seconds, rounded up; what the header `Retry-After` says.
    pub fn retry_after(&self) -> Option<u64> {
        match self {
            Self::RateLimited { retry_after, .. } => {
                Some((retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0)).max(1))
            }
            _ => None,
        }
    }

    /// [`Error::TaskNotFound`] for an id.
    pub fn task_not_found(id: impl std::fmt::Display) -> Self {
        Self::TaskNotFound { task_id: id.to_string() }
    }

    /// [`Error::NotFound`] for an id.
    pub fn not_found(what: &'static str, id: impl std::fmt::Display) -> Self {
        Self::NotFound { what, id: id.to_string() }
    }

    /// [`Error::InvalidInput`] that names a field.
    pub fn input(field: &'static str, message: impl Into<String>) -> Self {
        Self::InvalidInput { field, message: message.into() }
    }

    /// [`Error::InvalidIntent`] that names a field.
    pub fn intent(field: &'static str, message: impl Into<String>) -> Self {
        Self::InvalidIntent { field, message: message.into() }
    }

    /// [`Error::InvalidQuery`] that names a parameter.
    pub fn query(parameter: &'static str, message: impl Into<String>) -> Self {
        Self::InvalidQuery { parameter, message: message.into() }
    }

    pub(crate) fn agent_not_found(agent_id: &str) -> Self {
        Self::AgentNotFound { agent_id: excerpt(agent_id) }
    }

    pub(crate) fn proof_not_found(proof_id: &ProofId) -> Self {
        Self::ProofNotFound { proof_id: proof_id.to_string() }
    }

    /// For a text that is no proof id, and so names no record.
    /// [`Error::ProofNotFound`] for a text that is no proof id.
    pub fn unknown_proof(text: &str) -> Self {
        Self::ProofNotFound { proof_id: excerpt(text) }
    }

    /// [`Error::StorageUnavailable`] with its cause.
    pub fn storage(message: impl Into<String>) -> Self {
        Self::StorageUnavailable { message: message.into() }
    }
}
