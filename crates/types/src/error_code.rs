//! The contract's error codes, each with its HTTP status, its meaning and what the caller can do.

/// An error code with its HTTP status, its meaning and what the caller can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorCode {
    /// The code, for example `AGENT_NOT_FOUND`.
    pub code: &'static str,
    /// The HTTP status that goes with the code.
    pub http_status: u16,
    /// The meaning, as sentences.
    pub meaning: &'static str,
    /// The remedy: sentences that tell the caller what to do.
    pub remedy: &'static str,
}

impl ErrorCode {
    /// A code of a transport, beside those of the library.
    pub const fn new(code: &'static str, http_status: u16, meaning: &'static str, remedy: &'static str) -> Self {
        Self { code, http_status, meaning, remedy }
    }
}

/// Defines the codes as constants and lists them.
macro_rules! codes {
    ($($name:ident $status:literal: $meaning:literal, $remedy:literal;)+) => {
        $(pub(super) const $name: ErrorCode = ErrorCode::new(stringify!($name), $status, $meaning, $remedy);)+

        /// Every code of [`Error`](crate::Error), in the order of the statuses.
        pub const ERROR_CODES: &[ErrorCode] = &[$($name),+];
    };
}

codes! {
    INVALID_INPUT 400:
        "A field of the request is missing, malformed or unknown, or a file that was handed in is not as it was written.",
        "Correct the field that `details.field` names.";
    INVALID_INTENT 400:
        "The intent lacks a field or has a malformed one, or the request has neither form of `enforce`.",
        "Correct the field that `details.field` names.";
    INVALID_QUERY 400:
        "A parameter of a query is malformed or out of its range.",
        "Correct the parameter that `details.parameter` names.";
    UNAUTHORIZED 401:
        "The API key is missing, malformed, unknown, revoked or expired.",
        "Send a valid key: `Authorization: Bearer <key>` over HTTP, `session/authenticate` on a socket.";
    FORBIDDEN 403:
        "The key, the connection or the reviewer may not do this.",
        "Use a key of the scope and for the agent that the request needs, or have another reviewer answer.";
    AGENT_NOT_FOUND 404:
        "No agent with this id is registered.",
        "Register the agent with `agent/register`, or open the governor with auto-registration.";
    PROOF_NOT_FOUND 404:
        "The log has no proof record or escalation with this id. `details.place` names the archive where the record moved to; `details.erased` says that its evidence was erased.",
        "Check the id, or look in the archive.";
    TASK_NOT_FOUND 404:
        "The agent has no task with this id.",
        "Open a task with `task/open`, or check which agent the task belongs to.";
    NOT_FOUND 404:
        "There is no API key, webhook endpoint or event with this id, or nothing at this HTTP path.",
        "Check the id or the path.";
    CONFLICT 409:
        "The request contradicts the current state, such as an agent that is registered already, another outcome that was reported, a closed task, a frozen log or a reused idempotency key.",
        "Read the current state, then decide whether to send another request.";
    PAYLOAD_TOO_LARGE 413:
        "An input, a context, a body or a line is larger than allowed: `details.size` and `details.limit`, in bytes.",
        "Send less.";
    POLICY_ERROR 422:
        "A policy set does not load, or the evaluation of a request failed. A failed evaluation is recorded as a DENY, which `details.proofId` names.",
        "Correct the policies; `details.problems` lists each problem with its line and column.";
    RATE_LIMITED 429:
        "The key's plan has no room for the request, or the caller sent too many refused keys.",
        "Wait for `details.retryAfter` seconds, which the header `Retry-After` repeats.";
    INTERNAL 500:
        "A fault of the library or the service.",
        "Report it with the message; nothing is allowed by it.";
    NOT_IMPLEMENTED 501:
        "The program was built without the feature that `details.feature` names.",
        "Build it with that feature.";
    CHAIN_BROKEN 503:
        "The log is damaged, was tampered with, or contradicts a checkpoint. It is read-only until an operator decides.",
        "Find the place with `rulekeep log verify`, then repair the log or restore a backup.";
    STORAGE_UNAVAILABLE 503:
        "The store cannot be used: it is closed, a write failed, the disk is full, or another process has it.",
        "Read the message, correct the cause, then try again.";
}
