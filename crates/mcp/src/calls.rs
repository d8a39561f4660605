//! The interface to governance that the gateway uses.

use serde_json::Value;

/// Makes calls of the sidecar's protocol, by name and with named parameters.
///
/// The gateway uses `enforce`, `outcome/report`, `escalation/get`, `escalation/wait`, `escalation/claim`,
/// `catalogue/load` and `catalogue/pin`. With a task it also uses `task/observe`, and with
/// [`Governed::user_reviewer`](crate::Governed::user_reviewer) `escalation/approve`. Calls block; the gateway makes
/// them on threads for blocking work, several at a time.
pub trait Calls: Send + Sync + 'static {
    /// Makes one call.
    ///
    /// # Errors
    ///
    /// [`CallError`] with an error code of the API, or any other code if there was no answer.
    fn call(&self, method: &str, params: Value) -> Result<Value, CallError>;
}

/// A failed call to governance.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{code}: {message}")]
#[non_exhaustive]
pub struct CallError {
    /// The error code of the API, for example `CONFLICT`.
    pub code: String,
    /// A description of the error.
    pub message: String,
    /// Further details of the error: an object, or null.
    pub details: Value,
}

impl CallError {
    /// Creates an error without details.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), details: Value::Null }
    }

    /// Sets the details of the error.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = details;
        self
    }
}
