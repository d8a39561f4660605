//! The verdict of an enforcement and what became of the action afterwards.

use super::closed_words;

closed_words! {
    /// What an enforcement decides.
    ///
    /// Elsewhere `Escalate` is called step-up, ask or require-approval, and
    /// `Degrade` modify or transform.
    pub enum Decision("decision") {
        /// The action is permitted; the caller proceeds with the granted capabilities.
        Allow = "ALLOW",
        /// The action is blocked.
        Deny = "DENY",
        /// The action needs a person's approval first.
        Escalate = "ESCALATE",
        /// Some capabilities are granted, others refused.
        Degrade = "DEGRADE",
    }
}

impl Decision {
    /// How much it withholds: ALLOW, DEGRADE, ESCALATE, DENY from the least to the most.
    pub(crate) const fn strictness(self) -> u8 {
        match self {
            Self::Allow => 0,
            Self::Degrade => 1,
            Self::Escalate => 2,
            Self::Deny => 3,
        }
    }
}

closed_words! {
    /// What became of an action after its decision, as its runtime reports it.
    pub enum Outcome("outcome") {
        /// The action did what was asked.
        Success = "SUCCESS",
        /// The action failed or did harm.
        Failure = "FAILURE",
        /// The action went to a person.
        Escalated = "ESCALATED",
    }
}

impl Outcome {
    /// The outcome with a note of at most 4,096 characters that is kept with it.
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

/// A report of an outcome, with or without a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutcomeReport<'a> {
    pub(crate) outcome: Outcome,
    pub(crate) note: Option<&'a str>,
    pub(crate) by_agent: bool,
}

impl OutcomeReport<'_> {
    /// The report as the word of the agent that it is about. A failure that the runtime or an operator reports gives
    /// back what the decision used of limits; one that the agent reports of itself does not.
    #[must_use]
    pub const fn by_agent(self) -> Self {
        self.keeping_limits()
    }

    /// The report as one that gives nothing back of limits.
    pub(crate) const fn keeping_limits(self) -> Self {
        Self { by_agent: true, ..self }
    }
}

impl From<Outcome> for OutcomeReport<'_> {
    fn from(outcome: Outcome) -> Self {
        outcome.report()
    }
}
