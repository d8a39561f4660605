//! The calls of governance that the gateway makes.

use rulekeep_server::gateway::Gateway;
use serde_json::Value;

/// Answers calls of the sidecar's protocol by their names, with named parameters.
///
/// The gateway uses `enforce`, `outcome/report`, `escalation/get`, `escalation/wait`, `escalation/claim`,
/// `catalogue/load`, `catalogue/pin`, with a task `task/observe`, and with
/// [`Governed::user_reviewer`](crate::Governed::user_reviewer) `escalation/approve`. Calls block; the gateway makes them on threads
/// for blocking work, several at a time.
pub trait Calls: Send + Sync + 'static {
    /// Makes one call.
    ///
    /// # Errors
    ///
    /// [`CallError`] with the code of the contract, or any other code where no answer came.
    fn call(&self, method: &str, params: Value) -> Result<Value, CallError>;
}

/// A call of governance that failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{code}: {message}")]
#[non_exhaustive]
pub struct CallError {
    /// The code of the contract, for example `CONFLICT`.
    pub code: String,
    /// What was wrong.
    pub message: String,
    /// Further details of the error, an object, or null.
    pub details: Value,
}

impl CallError {
    /// An error without details.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), details: Value::Null }
    }

    /// The same with details.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = details;
        self
    }
}

/// Governance in the same process.
pub struct InProcess {
    gateway: Gateway,
    key: String,
}

impl InProcess {
    /// Calls of a gateway with an API key of the scope `admin`: the catalogue is not open to keys of agents.
    pub fn new(gateway: Gateway, key: impl Into<String>) -> Self {
        Self { gateway, key: key.into() }
    }
}

impl Calls for InProcess {
    fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        self.gateway.call(Some(&self.key), "mcp", method, params).map_err(|error| {
            CallError::new(error.code(), error.to_string()).with_details(error.details().unwrap_or_default())
        })
    }
}

impl std::fmt::Debug for InProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InProcess").finish_non_exhaustive()
    }
}
