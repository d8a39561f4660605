//! The error codes of HTTP alone, beside those of the library.

use rulekeep::extension::ErrorCode;

pub(super) const METHOD_NOT_ALLOWED: ErrorCode = ErrorCode::new("METHOD_NOT_ALLOWED", 405);
pub(super) const REQUEST_TIMEOUT: ErrorCode = ErrorCode::new("REQUEST_TIMEOUT", 408);
pub(super) const UNSUPPORTED_MEDIA_TYPE: ErrorCode = ErrorCode::new("UNSUPPORTED_MEDIA_TYPE", 415);

#[cfg(test)]
pub(super) mod tests {
    use rulekeep::extension::ERROR_CODES;

    use super::*;
    use crate::generated::{check_page, table};

    /// The error codes of a status, each with its meaning and what the caller can do.
    pub(in crate::http) fn of_status(status: u16) -> impl Iterator<Item = [&'static str; 3]> {
        let own = [METHOD_NOT_ALLOWED, REQUEST_TIMEOUT, UNSUPPORTED_MEDIA_TYPE];
        let codes = ERROR_CODES.iter().copied().chain(own).filter(move |code| code.http_status == status);
        codes.map(|code| *DESCRIBED.iter().find(|[name, ..]| *name == code.code).expect("every code is described"))
    }

    #[test]
    fn the_page_lists_every_error_code() {
        let rows = (400..=599).flat_map(|status| {
            of_status(status).map(move |[code, meaning, remedy]| {
                [format!("`{code}`"), status.to_string(), meaning.to_owned(), remedy.to_owned()]
            })
        });
        check_page(
            "errors.md",
            "Errors",
            "Every failure carries one of these codes, in Rust, over lines of JSON-RPC and over HTTP.",
            &format!("{EXAMPLE}{}{NOTES}", table(["code", "HTTP status", "meaning", "what to do"], rows)),
            "cargo test -p rulekeep-server --lib the_page_lists_every_error_code",
        );
    }

    const DESCRIBED: &[[&str; 3]] = &[
        [
            "INVALID_INPUT",
            "A field of the request is missing, malformed or unknown, or a file that was handed in is not as it was written.",
            "Correct the field that `details.field` names.",
        ],
        [
            "INVALID_INTENT",
            "The intent lacks a field or has a malformed one, or the request has neither form of `enforce`.",
            "Correct the field that `details.field` names.",
        ],
        [
            "INVALID_QUERY",
            "A parameter of a query is malformed or out of its range.",
            "Correct the parameter that `details.parameter` names.",
        ],
        [
            "UNAUTHORIZED",
            "The API key is missing, malformed, unknown, revoked or expired.",
            "Send a valid key: `Authorization: Bearer <key>` over HTTP, `session/authenticate` on a socket.",
        ],
        [
            "FORBIDDEN",
            "The key, the connection or the reviewer may not do this.",
            "Use a key of the scope and for the agent that the request needs, or have another reviewer answer.",
        ],
        [
            "AGENT_NOT_FOUND",
            "No agent with this id is registered.",
            "Register the agent with `agent/register`, or open the governor with auto-registration.",
        ],
        [
            "PROOF_NOT_FOUND",
            "The log has no proof record or escalation with this id. `details.place` names the archive where the record moved to; `details.erased` says that its evidence was erased.",
            "Check the id, or look in the archive.",
        ],
        [
            "TASK_NOT_FOUND",
            "The agent has no task with this id.",
            "Open a task with `task/open`, or check which agent the task belongs to.",
        ],
        [
            "NOT_FOUND",
            "There is no API key, webhook endpoint or event with this id, or nothing at this HTTP path.",
            "Check the id or the path.",
        ],
        [
            "METHOD_NOT_ALLOWED",
            "The path has other methods. Only over HTTP.",
            "Use a method that the header `Allow` lists.",
        ],
        [
            "REQUEST_TIMEOUT",
            "The body did not arrive in time. Only over HTTP.",
            "Send the request again, with the same `Idempotency-Key`.",
        ],
        [
            "CONFLICT",
            "The request contradicts the current state, such as an agent that is registered already, another outcome that was reported, a closed task, a frozen log or a reused idempotency key; or the agent was stopped while its decision was recorded, which `details.proofId` names.",
            "Read the current state, then decide whether to send another request.",
        ],
        [
            "PAYLOAD_TOO_LARGE",
            "An input, a context, a body or a line is larger than allowed: `details.size` and `details.limit`, in bytes.",
            "Send less.",
        ],
        [
            "UNSUPPORTED_MEDIA_TYPE",
            "The body is not declared as JSON in UTF-8, or it is compressed. Only over HTTP.",
            "Send `Content-Type: application/json` and no `Content-Encoding`.",
        ],
        [
            "POLICY_ERROR",
            "A policy set does not load, or the evaluation of a request failed. A failed evaluation is recorded as a DENY, which `details.proofId` names.",
            "Correct the policies; `details.problems` lists each problem with its line and column.",
        ],
        [
            "RATE_LIMITED",
            "The key's plan has no room for the request, or the caller sent too many refused keys.",
            "Wait for `details.retryAfter` seconds, which the header `Retry-After` repeats.",
        ],
        ["INTERNAL", "A fault of the library or the service.", "Report it with the message; nothing is allowed by it."],
        [
            "NOT_IMPLEMENTED",
            "The program was built without the feature that `details.feature` names.",
            "Build it with that feature.",
        ],
        [
            "CHAIN_BROKEN",
            "The log is damaged, was tampered with, or contradicts a checkpoint. It is read-only until an operator decides.",
            "Find the place with `rulekeep log verify`, then repair the log or restore a backup.",
        ],
        [
            "STORAGE_UNAVAILABLE",
            "The store cannot be used: it is closed, a write failed, the disk is full, another process has it, or this process was forked after it was opened.",
            "Read the message, correct the cause, then try again.",
        ],
    ];

    const EXAMPLE: &str = r#"| where | form |
|---|---|
| Rust | `error.code()`, `error.http_status()`, `error.details()` |
| JSON-RPC | `{"error": {"code": -32000, "message", "data": {"code", "httpStatus", "details"?}}}` |
| HTTP | `{"error": {"code", "message", "requestId", "details"?}}` with the status |
| HTTP, with `Accept: application/problem+json` | `{"type", "title", "status", "detail", "code", "requestId", "details"?}` (RFC 9457) |

"#;

    const NOTES: &str = "
- A refused request has changed nothing, except a failed evaluation, which is recorded as a DENY, and a decision that is
  withdrawn: its agent was stopped, or the permit ended, while its record was written. Its outcome is UNKNOWN.
- After a 503 in the middle of a write it is unknown whether the record is kept. Nothing is allowed by it.
- The message is one line for people and may change. Programs read the code and the details.
- JSON-RPC has codes of its own for broken messages: [sidecar.md](sidecar.md).
";
}
