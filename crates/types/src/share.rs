//! Limits that hold for a whole organisation: how their uses are obtained, and the names of their counters.

use super::closed_words;

closed_words! {
    /// The way a governor obtains uses of a limit that its organisation shares.
    pub enum Share("share") {
        /// Each use is reserved with the organisation before the decision.
        Reserve = "reserve",
        /// Uses come out of an amount that the organisation lent the governor.
        Lease = "lease",
    }
}

/// The name of an organisation among the subjects that limits count for.
pub const ORGANISATION: &str = "organisation";

/// Returns whether a counter counts the uses of a whole organisation: `<rule>/<measure>/organisation`. Neither part
/// contains a slash, so no counter of an agent or a group has this form.
pub fn is_shared_counter(counter: &str) -> bool {
    let mut parts = counter.split('/');
    parts.next().is_some() && parts.next().is_some() && parts.next() == Some(ORGANISATION) && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_counters_of_the_organisation_are_shared() {
        for shared in ["pay/count/organisation", "pay/sum of amount/organisation"] {
            assert!(is_shared_counter(shared), "{shared}");
        }
        for local in [
            "pay/count/all",
            "pay/count/agent/organisation",
            "pay/count/group/organisation",
            "pay/organisation",
            "pay/count/organisation/x",
        ] {
            assert!(!is_shared_counter(local), "{local}");
        }
    }
}
