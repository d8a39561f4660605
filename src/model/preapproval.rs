//! Approvals given beforehand: how they stand, and what their uses are counted under.

use super::{PreApprovalId, closed_words};

closed_words! {
    /// How the pre-approval stands.
    pub enum PreApprovalState("pre-approval state") {
        /// Another person has to agree; it grants nothing yet.
        Pending = "pending",
        /// It grants what it covers.
        Active = "active",
        /// Its count is used up.
        Spent = "spent",
        /// Its time is over.
        Expired = "expired",
        /// It was taken back: by a person, a stop, a suspension, or other policies.
        Revoked = "revoked",
    }
}

/// What the keys of pre-approvals' states in the log start with, and the names of the counters of their uses.
pub(crate) const GRANT_PREFIX: &str = "grant/";

/// Whether a counter counts the uses of a pre-approval: `grant/<id>/count` or `grant/<id>/sum`.
///
/// What was approved was used, whether the action failed or not: a failure gives nothing of it back.
pub(crate) fn is_grant_counter(counter: &str) -> bool {
    counter
        .strip_prefix(GRANT_PREFIX)
        .and_then(|rest| rest.rsplit_once('/'))
        .is_some_and(|(id, what)| matches!(what, "count" | "sum") && id.parse::<PreApprovalId>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;

    #[test]
    fn no_counter_of_a_rule_is_taken_for_one_of_an_approval() {
        let id = PreApprovalId::new(Timestamp::from_millis(1), 7);
        assert!(is_grant_counter(&format!("grant/{id}/count")) && is_grant_counter(&format!("grant/{id}/sum")));
        for counter in ["grant/count/all".to_owned(), format!("grant/{id}/count/all"), format!("{id}/sum")] {
            assert!(!is_grant_counter(&counter), "{counter}");
        }
    }
}
