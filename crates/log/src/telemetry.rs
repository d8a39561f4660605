//! Metrics of the writer, with the feature `metrics`; otherwise compiled out.

use rulekeep_types::{Decision, RiskLevel};

/// Counts decisions that were added to the log.
#[cfg_attr(not(feature = "metrics"), allow(unused_variables, clippy::needless_pass_by_value))]
pub(crate) fn recorded(decisions: impl Iterator<Item = (Decision, RiskLevel)>) {
    #[cfg(feature = "metrics")]
    {
        let count = || {
            for (decision, risk) in decisions {
                let labels = [("decision", decision.as_str()), ("risk", risk.as_str())];
                metrics::counter!("rulekeep.decisions", &labels).increment(1);
                metrics::counter!("rulekeep.proof.records").increment(1);
            }
        };
        // A panic in the recorder must not end the writer thread.
        drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(count)));
    }
}
