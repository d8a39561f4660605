//! Pre-approvals: their states, and the names of the counters of their uses.

use super::{PreApprovalId, closed_words};

closed_words! {
    /// The state of a pre-approval.
    pub enum PreApprovalState("pre-approval state") {
        /// A second reviewer must agree; it grants nothing yet.
        Pending = "pending",
        /// The pre-approval is in force.
        Active = "active",
        /// The number of uses or the sum is used up.
        Spent = "spent",
        /// The pre-approval has expired.
        Expired = "expired",
        /// The pre-approval was revoked: by a person, a kill switch, a suspension, or a change of policies.
        Revoked = "revoked",
    }
}

/// Prefix of the log keys of pre-approvals, and of the names of the counters of their uses.
pub const GRANT_PREFIX: &str = "grant/";

/// Returns whether a counter counts the uses of a pre-approval: `grant/<id>/count` or `grant/<id>/sum`.
///
/// A use stays consumed even if the action fails.
pub fn is_grant_counter(counter: &str) -> bool {
    counter
        .strip_prefix(GRANT_PREFIX)
        .and_then(|rest| rest.rsplit_once('/'))
        .is_some_and(|(id, what)| matches!(what, "count" | "sum") && id.parse::<PreApprovalId>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;

    #[test]
    fn no_counter_of_a_rule_is_taken_for_one_of_an_approval() {
        let id = PreApprovalId::new(Timestamp::from_millis(1), 7);
        assert!(is_grant_counter(&format!("grant/{id}/count")) && is_grant_counter(&format!("grant/{id}/sum")));
        for counter in ["grant/count/all".to_owned(), format!("grant/{id}/count/all"), format!("{id}/sum")] {
            assert!(!is_grant_counter(&counter), "{counter}");
        }
    }
}
