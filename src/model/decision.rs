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
