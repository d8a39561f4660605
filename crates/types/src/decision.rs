//! Decisions of the policy engine, and the outcomes that a runtime reports afterwards.

use super::closed_words;

closed_words! {
    /// The decision on an intent: allow, deny, escalate or degrade.
    ///
    /// Other products call `Escalate` step-up, ask or require-approval, and `Degrade` modify or transform.
    ///
    /// ```
    /// use rulekeep::{Agent, Decision, Governor, Intent, RiskLevel, Tier};
    ///
    /// let governor = Governor::builder().open_in_memory()?;
    /// governor.agents().register(Agent::new("support-1").at_tier(Tier::T4))?;
    /// let intent = Intent::new("support-1", "read_document", RiskLevel::Low, ["document:read"])?;
    /// match governor.enforce(&intent)?.decision {
    ///     Decision::Allow => println!("carry the action out"),
    ///     Decision::Degrade => println!("carry out the part that is granted"),
    ///     Decision::Escalate => println!("wait for a reviewer"),
    ///     Decision::Deny => println!("do not act"),
    /// }
    /// assert_eq!("DENY".parse::<Decision>()?, Decision::Deny);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub enum Decision("decision") {
        /// The action is permitted; the caller proceeds with the granted capabilities.
        Allow = "ALLOW",
        /// The action is blocked.
        Deny = "DENY",
        /// The action needs the approval of a reviewer first.
        Escalate = "ESCALATE",
        /// Some of the required capabilities are granted, the others denied.
        Degrade = "DEGRADE",
    }
}

impl Decision {
    /// Rank by restrictiveness, from 0 for ALLOW over DEGRADE and ESCALATE to 3 for DENY.
    pub const fn strictness(self) -> u8 {
        match self {
            Self::Allow => 0,
            Self::Degrade => 1,
            Self::Escalate => 2,
            Self::Deny => 3,
        }
    }
}

closed_words! {
    /// The outcome of an action, as its runtime reports it after the decision.
    ///
    /// `Governor::report` records it and updates the agent's trust.
    ///
    /// ```
    /// use rulekeep::{Agent, Governor, Intent, Outcome, RiskLevel, Tier};
    ///
    /// let governor = Governor::builder().open_in_memory()?;
    /// governor.agents().register(Agent::new("support-1").at_tier(Tier::T4))?;
    /// let intent = Intent::new("support-1", "read_document", RiskLevel::Low, ["document:read"])?;
    /// let verdict = governor.enforce(&intent)?;
    ///
    /// let trust = governor.report(&verdict.proof_id, Outcome::Failure)?;
    /// assert!(trust.score < verdict.trust_snapshot.score, "a failure lowers trust");
    /// # Ok::<(), rulekeep::Error>(())
    /// ```
    pub enum Outcome("outcome") {
        /// The action succeeded.
        Success = "SUCCESS",
        /// The action failed or caused harm.
        Failure = "FAILURE",
        /// The action was handed to a reviewer.
        Escalated = "ESCALATED",
    }
}

impl Outcome {
    /// Adds a note of at most 4,096 characters, which is stored with the outcome.
    ///
    /// ```
    /// use rulekeep::{Governor, Outcome};
    ///
    /// let governor = Governor::builder().auto_register().open_in_memory()?;
    /// let verdict = governor.enforce_input("support-1", "Summarize the meeting notes")?.enforcement;
    /// governor.report(&verdict.proof_id, Outcome::Failure.note("the notes were empty"))?;
    /// # Ok::<(), rulekeep::Error>(())
    /// ```
    pub const fn note(self, note: &str) -> OutcomeReport<'_> {
        OutcomeReport { note: Some(note), ..self.report() }
    }

    const fn report<'a>(self) -> OutcomeReport<'a> {
        OutcomeReport { outcome: self, note: None, by_agent: false }
    }
}

/// An outcome to report, with an optional note and the party that reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct OutcomeReport<'a> {
    pub outcome: Outcome,
    pub note: Option<&'a str>,
    pub by_agent: bool,
}

impl OutcomeReport<'_> {
    /// Marks the outcome as reported by the agent itself.
    ///
    /// A failure that the runtime or an operator reports returns what the decision consumed of rate limits. A failure
    /// that the agent reports about itself does not.
    #[must_use]
    pub const fn by_agent(self) -> Self {
        self.keeping_limits()
    }

    /// Makes the report return nothing to rate limits.
    #[must_use]
    pub const fn keeping_limits(self) -> Self {
        Self { by_agent: true, ..self }
    }
}

impl From<Outcome> for OutcomeReport<'_> {
    fn from(outcome: Outcome) -> Self {
        outcome.report()
    }
}
