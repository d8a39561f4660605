//! What an enforcement answers.

use serde::{Deserialize, Serialize};

use super::{Capability, Constraints, Decision, ParseResult, ProofId, TrustSnapshot, closed_words};

closed_words! {
    /// What refused a request.
    pub enum DenialClass("denialClass") {
        /// A rule denies it, or none grants it.
        Policy = "policy",
        /// No rule grants it at the agent's tier; at the highest one it would not be denied.
        Trust = "trust",
        /// The agent is suspended or revoked.
        Suspended = "suspended",
        /// A kill switch stops the agent.
        KillSwitch = "kill_switch",
        /// A limit has no room for it.
        Limit = "limit",
        /// Nothing grants it, and something in it could not be read.
        Unread = "unread",
        /// A condition failed.
        Error = "error",
        /// Nothing in the user's words asks for it, or its task has no call left.
        Mandate = "mandate",
        /// What was observed under its task would leave to somebody whom the user did not name.
        Exfiltration = "exfiltration",
    }
}

impl DenialClass {
    /// Whether the same request can be allowed later though nobody changes a policy: a limit has room again, an operator
    /// lifts a stop or resumes the agent. Trust is earned too slowly to wait for.
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Limit | Self::KillSwitch | Self::Suspended)
    }
}

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
    /// What refused it, on a DENY.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denial_class: Option<DenialClass>,
    /// Whether the same request can be allowed later though nobody changes a policy, on a DENY.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
}

impl Enforcement {
    /// The same, refused by this.
    pub(crate) fn refused_by(mut self, class: Option<DenialClass>) -> Self {
        self.denial_class = class;
        self.retryable = class.map(DenialClass::is_retryable);
        self
    }

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
