//! Enforcements: the result of a request, with its decision and proof record.

use serde::{Deserialize, Serialize};

use super::facts::{Cause, Kind, Kinds};
use super::{
    Capability, Constraints, Decision, Facts, Grant, GrantError, GrantSource, ParseResult, ProofId, TrustSnapshot,
    closed_words,
};

closed_words! {
    /// The cause of a DENY.
    pub enum DenialClass("denialClass") {
        /// A rule denies the request, or no rule grants it.
        Policy = "policy",
        /// No rule grants it at the agent's tier, but it would not be denied at the highest tier.
        Trust = "trust",
        /// The agent is suspended or retired.
        Suspended = "suspended",
        /// A kill switch stops the agent.
        KillSwitch = "kill_switch",
        /// The governor has no permit of its organisation.
        NoPermit = "no_permit",
        /// A rate limit is exhausted.
        Limit = "limit",
        /// No rule grants it, and part of the request could not be read.
        Unread = "unread",
        /// Evaluating a condition failed.
        Error = "error",
        /// The user's words do not ask for it, or its task has no calls left.
        Mandate = "mandate",
        /// Data observed under its task would go to a recipient the user did not name.
        Exfiltration = "exfiltration",
    }
}

impl DenialClass {
    /// Returns whether the same request may be allowed later without a policy change: once a limit has room again, an
    /// operator lifts the kill switch or resumes the agent, or the governor gets a permit. Trust recovers too slowly to wait for.
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Limit | Self::KillSwitch | Self::NoPermit | Self::Suspended)
    }
}

/// A way to write a request that could not be read whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Rewrite {
    /// The beginning of the part that could not be read.
    pub part: String,
    /// The advice, as a clause: "name each file instead of a pattern".
    pub how: String,
}

impl Rewrite {
    /// The first part of a request that could not be read.
    #[doc(hidden)]
    pub fn of(facts: &Facts) -> Self {
        let open = facts.acts.iter().flat_map(|act| &act.open).find(|open| open.cause == Cause::Text);
        let pattern = || {
            let operands = facts.acts.iter().flat_map(|act| &act.operands);
            operands.filter(|operand| operand.pattern || operand.tree).map(|operand| &operand.value).next()
        };
        let (part, how) = match (open, pattern()) {
            (Some(open), _) if open.kinds.has(Kind::Command) => (&open.found, "write each command in full"),
            (Some(open), _)
                if open.kinds == Kinds::of(&[Kind::Path]) && !open.found.contains(['$', '`', '*', '?', '[']) =>
            {
                (&open.found, "write the whole path, or say the working folder")
            }
            (Some(open), _) => {
                (&open.found, "write the value itself instead of a variable, a substitution or a description")
            }
            (None, Some(value)) => (value, "name each file instead of a pattern or a folder"),
            (None, None) => return Self { part: String::new(), how: "name every file, host and recipient".to_owned() },
        };
        Self { part: part.clone(), how: how.to_owned() }
    }
}

crate::parts::outward! {
    /// The decision on an intent, with the proof record that was written for it.
    ///
    /// ```
    /// use rulekeep::{Agent, Decision, Governor, Intent, RiskLevel, Tier};
    ///
    /// let governor = Governor::builder().open_in_memory()?;
    /// governor.agents().register(Agent::new("support-1").at_tier(Tier::T4))?;
    /// let intent = Intent::new("support-1", "read_document", RiskLevel::Low, ["document:read"])?;
    ///
    /// let verdict = governor.enforce(&intent)?;
    /// assert_eq!(verdict.decision, Decision::Allow);
    /// assert_eq!(verdict.granted_capabilities[0].as_str(), "document:read");
    /// assert_eq!(governor.log().record(&verdict.proof_id)?.decision, Decision::Allow);
    /// let grant = verdict.grant()?; // the permission that the code which acts takes
    /// grant.check_capability("document:read")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[derive(Deserialize)]
    pub struct Enforcement from EnforcementParts {
        /// The decision on the intent.
        pub decision: Decision,
        /// A human-readable explanation that names the deciding rules.
        pub reasoning: String,
        /// The capabilities the caller may use.
        pub granted_capabilities: Vec<Capability>,
        /// The capabilities that were denied.
        pub denied_capabilities: Vec<Capability>,
        /// Constraints on the granted capabilities.
        pub constraints: Constraints,
        /// The proof record of this decision.
        pub proof_id: ProofId,
        /// The agent's trust at decision time.
        pub trust_snapshot: TrustSnapshot,
        /// The cause of a DENY; absent for other decisions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub denial_class: Option<DenialClass>,
        /// Whether the same request may be allowed later without a policy change; present on a DENY.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub retryable: Option<bool>,
        /// A way to write the request; present on a DENY for a part that could not be read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub rewrite: Option<Rewrite>,
        /// The source of grants, apart from the public fields.
        // INVARIANT: only the governor fills it, with its decision.
        #[serde(skip)]
        pub source: GrantSource,
    }
}

impl Enforcement {
    /// Sets the cause of a denial.
    #[must_use]
    pub fn refused_by(mut self, class: Option<DenialClass>) -> Self {
        self.denial_class = class;
        self.retryable = class.map(DenialClass::is_retryable);
        self
    }

    /// Consumes one use of the decision and returns a [`Grant`], which enforces `maxRecords`, `timeoutMs`, `maxAmount`,
    /// `allowedTargets` and `expiresAt`.
    ///
    /// A decision has one use, or `maxUses`; clones share them. The first use must start before `expiresAt`, or within
    /// five minutes of the decision if that is not set. `timeoutMs` counts from this call.
    ///
    /// The grant follows the governor's decision: changing the fields does not change it, and an enforcement read from
    /// JSON has none.
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
    /// [`GrantError::NotGranted`] after a DENY or an ESCALATE, [`GrantError::NotIssued`] for an enforcement read from
    /// JSON, [`GrantError::UsedUp`] when every use is consumed, [`GrantError::Malformed`] for a malformed constraint,
    /// and the errors of [`Grant::check`].
    pub fn grant(&self) -> Result<Grant, GrantError> {
        self.source.grant(self.decision)
    }

    /// Returns whether the decision is ALLOW, so the action may proceed in full, under the constraints.
    pub fn is_allowed(&self) -> bool {
        self.decision == Decision::Allow
    }
}

crate::parts::outward! {
    /// The result of parsing and enforcing a request in one call: the decision and the parse it rests on.
    pub struct InputEnforcement from InputEnforcementParts {
        /// The decision and its proof record.
        #[serde(flatten)]
        pub enforcement: Enforcement,
        /// The result of parsing the request. In JSON, `intent`, `confidence` and `alternatives` stand beside the fields
        /// of the decision.
        #[serde(flatten)]
        pub parse: ParseResult,
    }
}
