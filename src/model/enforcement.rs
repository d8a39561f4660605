//! What an enforcement answers.

use serde::{Deserialize, Serialize};

use super::{Capability, Constraints, Decision, ParseResult, ProofId, TrustSnapshot};

/// The verdict on an intent, with the proof record that was written for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Enforcement {
    /// What was decided.
    pub decision: Decision,
    /// Why, in words: the rules that decided.
    pub reasoning: String,
    /// What the caller may use.
    pub granted_capabilities: Vec<Capability>,
    /// What was refused.
    pub denied_capabilities: Vec<Capability>,
    /// Limits on what was granted.
    pub constraints: Constraints,
    /// The proof record of this decision.
    pub proof_id: ProofId,
    /// The agent's trust when it was decided.
    pub trust_snapshot: TrustSnapshot,
}

impl Enforcement {
    /// Whether the action may go on in full, under the constraints.
    pub fn is_allowed(&self) -> bool {
        self.decision == Decision::Allow
    }
}

/// An enforcement together with the parse that it rests on: the answer to the
/// combined form of the request.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct InputEnforcement {
    /// The verdict.
    #[serde(flatten)]
    pub enforcement: Enforcement,
    /// The parse, whose `intent` stands on the wire beside the verdict.
    #[serde(flatten)]
    pub parse: ParseResult,
}
