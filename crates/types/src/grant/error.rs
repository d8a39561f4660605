//! Errors of grants.

use std::time::Duration;

use crate::{Decision, Timestamp};

/// Reasons why a grant is refused or does not cover an action.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GrantError {
    /// The decision is DENY or ESCALATE and grants nothing.
    #[error("the decision is {decision}; expected ALLOW or DEGRADE")]
    NotGranted {
        /// The decision.
        decision: Decision,
    },
    /// The enforcement was not made by a governor in this process, for example read from JSON.
    #[error("this enforcement was not made by a governor in this process; expected one that enforce or claim returned")]
    NotIssued,
    /// The governor that made the decision has been dropped.
    #[error("the governor that decided is gone; expected it to be open")]
    GovernorGone,
    /// The agent is stopped, suspended or retired.
    #[error("the agent must not act any more: {reason}")]
    Barred {
        /// The reason it may not act.
        reason: String,
    },
    /// A constraint has a malformed value, so the grant is refused.
    #[error("the constraint {key} is {found}; expected {expected}")]
    Malformed {
        /// The constraint's name.
        key: &'static str,
        /// The malformed value, as JSON.
        found: String,
        /// The expected form.
        expected: &'static str,
    },
    /// The grant was not used in time, or `expiresAt` has passed.
    #[error("the grant expired at {at}; expected its use before, so ask for a new decision")]
    Expired {
        /// The expiry time.
        at: Timestamp,
    },
    /// The work took longer than `timeoutMs`.
    #[error("the deadline has passed; expected the work to end within timeoutMs, {} ms", timeout.as_millis())]
    Overdue {
        /// The value of `timeoutMs`.
        timeout: Duration,
    },
    /// All uses are consumed.
    #[error("the grant is used up; expected at most {most} of maxUses, so ask for a new decision")]
    UsedUp {
        /// The value of `maxUses`, or 1 if it is not set.
        most: u64,
    },
    /// A guard has reported the outcome of the work.
    #[error("the grant ended when the outcome of its work was reported; expected its use before")]
    Ended,
    /// The capability was not granted.
    #[error("the capability {capability:?} is not granted; expected one of the granted capabilities")]
    Capability {
        /// The capability, shortened if long.
        capability: String,
    },
    /// The target is not among `allowedTargets`.
    #[error("the target {target:?} is not granted; expected one of allowedTargets")]
    Target {
        /// The target, shortened if long.
        target: String,
    },
    /// Too few records are left of `maxRecords`.
    #[error("{asked} records are too many; expected at most {left}, which are left of maxRecords {most}")]
    Records {
        /// Number of records asked for.
        asked: u64,
        /// The value of `maxRecords`.
        most: u64,
        /// Number of records left.
        left: u64,
    },
    /// Too little is left of `maxAmount`.
    #[error("an amount of {asked} is too much; expected at most {left}, which is left of maxAmount {most}")]
    Amount {
        /// The amount asked for.
        asked: f64,
        /// The value of `maxAmount`.
        most: f64,
        /// The amount left.
        left: f64,
    },
    /// The amount is negative or not finite.
    #[error("an amount of {amount} cannot be counted; expected a finite number from 0")]
    InvalidAmount {
        /// The rejected amount.
        amount: f64,
    },
}
