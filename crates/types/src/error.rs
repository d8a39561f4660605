//! The public error type, and the error of values that fail to parse.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::error_code::{self, ErrorCode};
use super::{BrokenKind, DenialClass, ProofId, closed_words};

/// A text that is not a valid value of its type, with the form that was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{value:?} is not a valid {what}: expected {expected}")]
pub struct InvalidValue {
    what: &'static str,
    value: String,
    expected: &'static str,
}

impl InvalidValue {
    /// Creates the error for a value of the kind `what`.
    pub fn new(what: &'static str, value: &str, expected: &'static str) -> Self {
        Self { what, value: excerpt(value), expected }
    }

    /// The kind of value expected, for example `capability`.
    pub fn what(&self) -> &'static str {
        self.what
    }
}

/// Shortens a text to at most 60 characters for an error message.
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
    /// The severity of a problem in a policy document.
    pub enum Severity("severity") {
        /// The document does not load.
        Error = "error",
        /// The document loads, but probably does not mean what its author intended.
        Warning = "warning",
    }
}

/// A problem in a policy document, with its position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Problem {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The severity of the problem.
    pub severity: Severity,
    /// The problem, the rule and field concerned, and the expected value.
    pub message: String,
}

impl Problem {
    /// Creates a problem at a position.
    pub fn new(line: usize, column: usize, severity: Severity, message: impl Into<String>) -> Self {
        Self { line, column, severity, message: message.into() }
    }
}

/// The error that caused an [`Error`].
pub type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// The error of every fallible call of the governor.
///
/// [`Error::code`], [`Error::http_status`] and [`Error::message`] are those of the service contract. The message is one
/// line that names the problem, its place and the expected value. `Display` leaves out the causes, which `source` has.
/// No variant contains a secret.
///
/// ```
/// use rulekeep::{Error, Governor};
///
/// let governor = Governor::builder().open_in_memory()?;
/// let error = governor.enforce_input("nobody", "Read the file notes.txt").unwrap_err();
/// assert!(matches!(&error, Error::AgentNotFound { agent_id } if agent_id == "nobody"));
/// assert_eq!((error.code(), error.http_status()), ("AGENT_NOT_FOUND", 404));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A field of a request is missing or malformed.
    #[error("{field}: {message}")]
    InvalidInput {
        /// The field's name in the request.
        field: &'static str,
        /// The problem and the expected value.
        message: String,
    },
    /// A field of an intent is missing or malformed.
    #[error("intent {field}: {message}")]
    InvalidIntent {
        /// The field's name in the intent.
        field: &'static str,
        /// The problem and the expected value.
        message: String,
    },
    /// No agent with this id is registered.
    #[error("no agent {agent_id:?} is registered; check the id, or register the agent first")]
    AgentNotFound {
        /// The requested id.
        agent_id: String,
    },
    /// A policy set or another document does not load.
    #[error("{message}")]
    InvalidPolicy {
        /// The first problem.
        message: String,
        /// Every problem in the document, with its position.
        problems: Vec<Problem>,
        /// The reason the file cannot be read.
        #[source]
        cause: Option<Cause>,
    },
    /// The evaluation of a policy set failed: a condition that the decision depends on.
    #[error("{message}")]
    PolicyFailed {
        /// The condition, and the reason.
        message: String,
        /// The record of the DENY that results, if the request was to be decided.
        proof_id: Option<ProofId>,
    },
    /// A parameter of a query is out of range.
    #[error("{parameter}: {message}")]
    InvalidQuery {
        /// The parameter's name in the query.
        parameter: &'static str,
        /// The problem and the expected value.
        message: String,
    },
    /// The log has no record with this id.
    #[error("no {} {proof_id} in this log", kind_of(proof_id))]
    ProofNotFound {
        /// The requested id.
        proof_id: String,
    },
    /// The record belongs to a part of the log that is stored elsewhere, such as an archive.
    #[error("no proof record {proof_id} in this log: {place}")]
    ProofElsewhere {
        /// The requested id.
        proof_id: String,
        /// The place that has the record.
        place: String,
    },
    /// Nothing has this id: no webhook endpoint, API key or event.
    #[error("there is not a valid {what} {id}")]
    NotFound {
        /// The kind of thing requested.
        what: &'static str,
        /// The requested id.
        id: String,
    },
    /// No task has this id, or it belongs to another agent.
    #[error(
        "there is no task {task_id:?} of this agent; open one with `task/open`, or check which agent it belongs to"
    )]
    TaskNotFound {
        /// The requested id.
        task_id: String,
    },
    /// The evidence of the record was erased permanently; the record itself remains.
    #[error("the evidence of {proof_id} was erased")]
    EvidenceErased {
        /// The record's id.
        proof_id: String,
    },
    /// The request conflicts with the current state.
    #[error("{message}")]
    Conflict {
        /// The current state and the conflicting request.
        message: String,
    },
    /// A recorded decision was not handed out: while the disk was waited for, its agent was stopped, suspended or
    /// retired, or the permit ended. The outcome UNKNOWN is recorded for it.
    #[error("the decision {proof_id} was recorded but is not in force: {why}; the action is not allowed")]
    Withdrawn {
        /// The record of the decision.
        proof_id: ProofId,
        /// The reason the agent may not act.
        why: String,
    },
    /// A request text, context or body exceeds its maximum size.
    #[error("{what} has {size} bytes, at most {limit} are accepted")]
    PayloadTooLarge {
        /// The part that is too large.
        what: &'static str,
        /// The actual size in bytes.
        size: usize,
        /// The maximum size in bytes.
        limit: usize,
    },
    /// The API key is missing or invalid.
    #[error("{message}")]
    Unauthorized {
        /// The expected credentials.
        message: String,
    },
    /// The rate limit of the API key's plan is exhausted.
    #[error("{message}")]
    RateLimited {
        /// The limit.
        message: String,
        /// Minimum time to wait until a request can succeed.
        retry_after: Duration,
    },
    /// The API key does not permit the request.
    #[error("{message}")]
    Forbidden {
        /// The missing permission.
        message: String,
    },
    /// The log is damaged or was tampered with. It is read-only until an operator repairs it.
    #[error("the proof log is broken and read-only: {message}")]
    ChainBroken {
        /// The place and kind of the break.
        message: String,
    },
    /// The log contradicts a checkpoint that was stored elsewhere.
    #[error("the log contradicts the checkpoint ({kind}): {message}")]
    Contradicted {
        /// The kind of contradiction: missing or changed entries.
        kind: BrokenKind,
        /// The state at the checkpoint, and the current one.
        message: String,
    },
    /// An export file is damaged or was changed.
    #[error("the export breaks at line {line}: expected {expected}, found {found}")]
    ExportBroken {
        /// The line, counted from 1.
        line: u64,
        /// The expected content.
        expected: String,
        /// The content found.
        found: String,
    },
    /// An archive file is damaged or was changed.
    #[error("the archive does not verify: {message}")]
    ArchiveBroken {
        /// The expected and the actual content.
        message: String,
    },
    /// The store cannot be used, or can no longer be used.
    #[error("the store is unavailable: {message}")]
    StorageUnavailable {
        /// The problem and the remedy.
        message: String,
        /// The error that led to it.
        #[source]
        cause: Option<Cause>,
    },
    /// The process was forked after the governor was opened. Only the process that opened a governor can use it.
    #[error("this governor was opened by process {opened_by}, from which this one was forked; open one after the fork")]
    OtherProcess {
        /// The process that opened the governor.
        opened_by: u32,
    },
    /// A bug in this library.
    #[error("internal error: {message}")]
    Internal {
        /// The violated assumption.
        message: String,
        /// The error that showed it.
        #[source]
        cause: Option<Cause>,
    },
}

/// The kind of thing an id names: an escalation is looked up by the record that opened it.
fn kind_of(id: &str) -> &'static str {
    if id.starts_with("esc_") { "escalation" } else { "proof record" }
}

impl Error {
    /// The error code of the service contract, for example `AGENT_NOT_FOUND`.
    pub const fn code(&self) -> &'static str {
        self.kind().code
    }

    /// The HTTP status of the error code.
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
            Self::Conflict { .. } | Self::Withdrawn { .. } => error_code::CONFLICT,
            Self::PayloadTooLarge { .. } => error_code::PAYLOAD_TOO_LARGE,
            Self::InvalidPolicy { .. } | Self::PolicyFailed { .. } => error_code::POLICY_ERROR,
            Self::RateLimited { .. } => error_code::RATE_LIMITED,
            Self::Internal { .. } => error_code::INTERNAL,
            Self::ChainBroken { .. } | Self::Contradicted { .. } => error_code::CHAIN_BROKEN,
            Self::StorageUnavailable { .. } | Self::OtherProcess { .. } => error_code::STORAGE_UNAVAILABLE,
        }
    }

    /// Machine-readable details beside the code: the field, the limit, the problems; `None` if there are none.
    pub fn details(&self) -> Option<Value> {
        match self {
            Self::InvalidInput { field, .. } | Self::InvalidIntent { field, .. } => Some(json!({ "field": field })),
            Self::AgentNotFound { agent_id } => Some(json!({ "agentId": agent_id })),
            Self::PolicyFailed { proof_id: Some(proof_id), .. } => {
                Some(json!({ "proofId": proof_id, "denialClass": DenialClass::Error, "retryable": false }))
            }
            Self::InvalidPolicy { problems, .. } if !problems.is_empty() => Some(json!({ "problems": problems })),
            Self::InvalidQuery { parameter, .. } => Some(json!({ "parameter": parameter })),
            Self::Contradicted { kind, .. } => Some(json!({ "kind": kind })),
            Self::ProofNotFound { proof_id } => Some(json!({ "proofId": proof_id })),
            Self::Withdrawn { proof_id, .. } => Some(json!({ "proofId": proof_id })),
            Self::NotFound { id, .. } => Some(json!({ "id": id })),
            Self::TaskNotFound { task_id } => Some(json!({ "taskId": task_id })),
            Self::ProofElsewhere { proof_id, place } => Some(json!({ "proofId": proof_id, "place": place })),
            Self::EvidenceErased { proof_id } => Some(json!({ "proofId": proof_id, "erased": true })),
            Self::RateLimited { .. } => Some(json!({ "retryAfter": self.retry_after() })),
            Self::PayloadTooLarge { size, limit, .. } => Some(json!({ "size": size, "limit": limit })),
            Self::ExportBroken { line, expected, found } => {
                Some(json!({ "line": line, "expected": expected, "found": found }))
            }
            _ => None,
        }
    }

    /// Whole seconds to wait after [`Error::RateLimited`], rounded up and at least 1: the value of `Retry-After`.
    pub fn retry_after(&self) -> Option<u64> {
        match self {
            Self::RateLimited { retry_after, .. } => {
                Some((retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0)).max(1))
            }
            _ => None,
        }
    }

    /// Creates [`Error::TaskNotFound`] for an id.
    pub fn task_not_found(id: impl std::fmt::Display) -> Self {
        Self::TaskNotFound { task_id: id.to_string() }
    }

    /// Creates [`Error::NotFound`] for a kind of thing and an id.
    pub fn not_found(what: &'static str, id: impl std::fmt::Display) -> Self {
        Self::NotFound { what, id: id.to_string() }
    }

    /// Creates [`Error::InvalidInput`] for a field.
    pub fn input(field: &'static str, message: impl Into<String>) -> Self {
        Self::InvalidInput { field, message: message.into() }
    }

    /// Creates [`Error::InvalidIntent`] for a field.
    pub fn intent(field: &'static str, message: impl Into<String>) -> Self {
        Self::InvalidIntent { field, message: message.into() }
    }

    /// Creates [`Error::InvalidQuery`] for a parameter.
    pub fn query(parameter: &'static str, message: impl Into<String>) -> Self {
        Self::InvalidQuery { parameter, message: message.into() }
    }

    #[doc(hidden)]
    pub fn agent_not_found(agent_id: &str) -> Self {
        Self::AgentNotFound { agent_id: excerpt(agent_id) }
    }

    #[doc(hidden)]
    pub fn proof_not_found(proof_id: &ProofId) -> Self {
        Self::ProofNotFound { proof_id: proof_id.to_string() }
    }

    /// Creates [`Error::ProofNotFound`] for a text that is not a proof id.
    pub fn unknown_proof(text: &str) -> Self {
        Self::ProofNotFound { proof_id: excerpt(text) }
    }

    /// Creates [`Error::StorageUnavailable`].
    pub fn storage(message: impl Into<String>) -> Self {
        Self::StorageUnavailable { message: message.into(), cause: None }
    }

    /// Creates [`Error::Internal`].
    pub fn internal(message: impl Into<String>) -> Self {
        Self::Internal { message: message.into(), cause: None }
    }

    /// Adds the cause, if the variant keeps one.
    #[must_use]
    pub fn caused_by(mut self, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        if let Self::InvalidPolicy { cause, .. }
        | Self::StorageUnavailable { cause, .. }
        | Self::Internal { cause, .. } = &mut self
        {
            *cause = Some(Arc::from(error.into()));
        }
        self
    }

    /// The text of this error and of its causes, on one line.
    pub fn message(&self) -> String {
        let (mut text, mut source) = (self.to_string(), std::error::Error::source(self));
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn an_error_with_a_cause_tells_each_text_once() {
        let disk = || std::io::Error::other("the disk is full");
        let load = Error::InvalidPolicy { message: "policy \"a.toml\"".to_owned(), problems: Vec::new(), cause: None };
        for error in [Error::storage("cannot write HEAD"), Error::internal("cannot write HEAD"), load] {
            let (alone, told) = (error.to_string(), error.clone().caused_by(disk()));
            assert_eq!((told.to_string(), told.message()), (alone.clone(), format!("{alone}: the disk is full")));
            assert!(told.source().is_some() && error.source().is_none() && told.details() == error.details());
            let outer = Error::storage("restored").caused_by(told);
            assert_eq!(outer.message(), format!("the store is unavailable: restored: {alone}: the disk is full"));
        }
        assert!(Error::input("a", "b").caused_by(disk()).source().is_none());
    }
}
