//! The error codes of HTTP alone, beside those of the library.

use rulekeep::extension::{ERROR_CODES, ErrorCode};

pub(super) const METHOD_NOT_ALLOWED: ErrorCode = ErrorCode::new(
    "METHOD_NOT_ALLOWED",
    405,
    "The path has other methods. Only over HTTP.",
    "Use a method that the header `Allow` lists.",
);
pub(super) const REQUEST_TIMEOUT: ErrorCode = ErrorCode::new(
    "REQUEST_TIMEOUT",
    408,
    "The body did not arrive in time. Only over HTTP.",
    "Send the request again, with the same `Idempotency-Key`.",
);
pub(super) const UNSUPPORTED_MEDIA_TYPE: ErrorCode = ErrorCode::new(
    "UNSUPPORTED_MEDIA_TYPE",
    415,
    "The body is not declared as JSON in UTF-8, or it is compressed. Only over HTTP.",
    "Send `Content-Type: application/json` and no `Content-Encoding`.",
);

/// Every error code, in the order of the statuses.
pub(super) fn all() -> Vec<ErrorCode> {
    let own = [METHOD_NOT_ALLOWED, REQUEST_TIMEOUT, UNSUPPORTED_MEDIA_TYPE];
    let mut codes: Vec<ErrorCode> = ERROR_CODES.iter().copied().chain(own).collect();
    codes.sort_by_key(|code| code.http_status);
    codes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generated::{check_page, table};

    #[test]
    fn the_page_lists_every_error_code() {
        let rows = all().into_iter().map(|ErrorCode { code, http_status, meaning, remedy, .. }| {
            [format!("`{code}`"), http_status.to_string(), meaning.to_owned(), remedy.to_owned()]
        });
        check_page(
            "errors.md",
            "Errors",
            "Every failure carries one of these codes, in Rust, over lines of JSON-RPC and over HTTP.",
            &format!("{EXAMPLE}{}{NOTES}", table(["code", "HTTP status", "meaning", "what to do"], rows)),
            "cargo test -p rulekeep-server --lib the_page_lists_every_error_code",
        );
    }

    const EXAMPLE: &str = r#"| where | form |
|---|---|
| Rust | `error.code()`, `error.http_status()`, `error.details()` |
| JSON-RPC | `{"error": {"code": -32000, "message", "data": {"code", "httpStatus", "details"?}}}` |
| HTTP | `{"error": {"code", "message", "requestId", "details"?}}` with the status |
| HTTP, with `Accept: application/problem+json` | `{"type", "title", "status", "detail", "code", "requestId", "details"?}` (RFC 9457) |

"#;

    const NOTES: &str = "
- A refused request has changed nothing, except a failed evaluation, which is recorded as a DENY.
- After a 503 in the middle of a write it is unknown whether the record is kept. Nothing is allowed by it.
- The message is one line for people and may change. Programs read the code and the details.
- JSON-RPC has codes of its own for broken messages: [sidecar.md](sidecar.md).
";
}
