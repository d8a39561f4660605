//! The contract's error codes, each with its HTTP status.

/// An error code with its HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorCode {
    /// The code, for example `AGENT_NOT_FOUND`.
    pub code: &'static str,
    /// The HTTP status that goes with the code.
    pub http_status: u16,
}

impl ErrorCode {
    /// A code of a transport, beside those of the library.
    pub const fn new(code: &'static str, http_status: u16) -> Self {
        Self { code, http_status }
    }
}

/// Defines the codes as constants and lists them.
macro_rules! codes {
    ($($name:ident $status:literal;)+) => {
        $(pub(super) const $name: ErrorCode = ErrorCode::new(stringify!($name), $status);)+

        /// Every code of [`Error`](crate::Error), in the order of the statuses.
        pub const ERROR_CODES: &[ErrorCode] = &[$($name),+];
    };
}

codes! {
    INVALID_INPUT 400;
    INVALID_INTENT 400;
    INVALID_QUERY 400;
    UNAUTHORIZED 401;
    FORBIDDEN 403;
    AGENT_NOT_FOUND 404;
    PROOF_NOT_FOUND 404;
    TASK_NOT_FOUND 404;
    NOT_FOUND 404;
    CONFLICT 409;
    PAYLOAD_TOO_LARGE 413;
    POLICY_ERROR 422;
    RATE_LIMITED 429;
    INTERNAL 500;
    NOT_IMPLEMENTED 501;
    CHAIN_BROKEN 503;
    STORAGE_UNAVAILABLE 503;
}
