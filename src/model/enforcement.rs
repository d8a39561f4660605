//! What an enforcement answers.

use serde::{Deserialize, Serialize};

use super::{
    Capability, Constraints, Decision, Grant, GrantError, GrantSource, ParseResult, ProofId, TrustSnapshot,
    closed_words,
};

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
    /// What a grant is made of, apart from the fields above.
    // INVARIANT: only the governor fills it, with what it decided.
    #[serde(skip)]
    pub(crate) source: GrantSource,
}

impl Enforcement {
    /// The same, refused by this.
    pub(crate) fn refused_by(mut self, class: Option<DenialClass>) -> Self {
        self.denial_class = class;
        self.retryable = class.map(DenialClass::is_retryable);
        self
    }

    /// Takes one use of what was decided: a [`Grant`], which enforces `maxRecords`, `timeoutMs`, `maxAmount`,
    /// `allowedTargets` and `expiresAt`. There is one use, or `maxUses`; clones share them. The first has to be taken
    /// before `expiresAt`, or within five minutes of the decision where that is not set; `timeoutMs` counts from here.
    ///
    /// The grant is made of what the governor decided. Changes of the fields do not change it, and an enforcement that
    /// was read from JSON has none.
    ///
    /// ```
    /// use rulekeep::{Enforcement, Governor};
    ///
    /// let governor = Governor::builder().auto_register().open_in_memory()?;
    /// let verdict = governor.enforce_input("support-1", "Summarize the meeting notes")?.enforcement;
    /// let copied: Enforcement = serde_json::from_str(&serde_json::to_string(&verdict)?)?;
    /// assert!(copied == verdict && copied.grant().is_err());
    /// let grant = verdict.grant()?;
    /// assert_eq!(grant.proof_id(), verdict.proof_id);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`GrantError::NotGranted`] after a DENY or an ESCALATE, [`GrantError::NotIssued`], [`GrantError::UsedUp`],
    /// [`GrantError::Malformed`] for a constraint of a wrong form, and those of [`Grant::check`].
    pub fn grant(&self) -> Result<Grant, GrantError> {
        self.source.grant(self.decision)
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
