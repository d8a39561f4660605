//! The keys of an intent's context that this library reads or writes. `docs/reference/context.md` describes them.

use super::FACTS_KEY;

/// The caller's own id of the request, in a context.
pub(super) const CALL_ID: &str = "callId";
/// Context key of the people who asked the agent to act.
pub(super) const REQUESTED_BY: &str = "requestedBy";

/// Context key of the decision that a request repeats.
pub const RETRY_OF: &str = "retryOf";

/// The keys that parsing adds to a context.
pub const PARSED_KEYS: &[&str] = &[
    "dataClassification",
    "operation",
    "resource",
    "target",
    "recordCount",
    "amount",
    "currency",
    "parseConfidence",
    "riskFactors",
    "inputFormat",
    FACTS_KEY,
];

/// The keys of a context by which a caller says more of a request.
pub const CALLERS_KEYS: &[&str] = &["environment", REQUESTED_BY, RETRY_OF, CALL_ID, "cwd", "home", "links"];
