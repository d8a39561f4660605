//! Refusals of a grant.

use std::time::Duration;

use crate::model::{Decision, Timestamp};

/// Reasons why there is no grant, or why it does not cover something.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GrantError {
    /// The decision grants nothing.
    #[error("the decision is {decision}; expected ALLOW or DEGRADE")]
    NotGranted {
        /// What was decided.
        decision: Decision,
    },
    /// The enforcement was read from JSON, so it is a claim and no decision.
    #[error("this enforcement was not made by a governor in this process; expected one that enforce or claim returned")]
    NotIssued,
    /// The governor that decided was dropped.
    #[error("the governor that decided is gone; expected it to be open")]
    GovernorGone,
    /// The agent must not act any more.
    #[error("the agent must not act any more: {reason}")]
    Barred {
        /// What keeps it from acting.
        reason: String,
    },
    /// A constraint has a value of a wrong form, so it grants nothing.
    #[error("the constraint {key} is {found}; expected {expected}")]
    Malformed {
        /// The constraint.
        key: &'static str,
        /// Its value, as JSON.
        found: String,
        /// What it has to be.
        expected: &'static str,
    },
    /// The grant was not used in time, or `expiresAt` is over.
    #[error("the grant expired at {at}; expected its use before, so ask for a new decision")]
    Expired {
        /// The time when it expired.
        at: Timestamp,
    },
    /// The work took longer than `timeoutMs`.
    #[error("the deadline has passed; expected the work to end within timeoutMs, {} ms", timeout.as_millis())]
    Overdue {
        /// `timeoutMs`.
        timeout: Duration,
    },
    /// Every use was taken.
    #[error("the grant is used up; expected at most {most} of maxUses, so ask for a new decision")]
    UsedUp {
        /// `maxUses`, or one.
        most: u64,
    },
    /// A guard reported the outcome of the work.
    #[error("the grant ended when the outcome of its work was reported; expected its use before")]
    Ended,
    /// A capability was not granted.
    #[error("the capability {capability:?} is not granted; expected one of the granted capabilities")]
    Capability {
        /// The capability, or its beginning.
        capability: String,
    },
    /// A target is not among `allowedTargets`.
    #[error("the target {target:?} is not granted; expected one of allowedTargets")]
    Target {
        /// The target, or its beginning.
        target: String,
    },
    /// There are not enough records left.
    #[error("{asked} records are too many; expected at most {left}, which are left of maxRecords {most}")]
    Records {
        /// The records that were asked for.
        asked: u64,
        /// `maxRecords`.
        most: u64,
        /// The records that are left.
        left: u64,
    },
    /// There is not enough of the amount left.
    #[error("an amount of {asked} is too much; expected at most {left}, which is left of maxAmount {most}")]
    Amount {
        /// The amount that was asked for.
        asked: f64,
        /// `maxAmount`.
        most: f64,
        /// The amount that is left.
        left: f64,
    },
    /// An amount cannot be counted.
    #[error("an amount of {amount} cannot be counted; expected a finite number from 0")]
    InvalidAmount {
        /// The amount.
        amount: f64,
    },
}
