//! The conditions that a verdict rests on, so that a stored response is not returned after they have changed.

use crate::governor::Rules;
use crate::model::{Digest, ProofId};

/// The conditions that a verdict rests on: kill switches, policies, pre-approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Number of interventions so far.
    interventions: u64,
    policies: Digest,
    /// Number of changes to what agents may do: loaded policies and revoked pre-approvals.
    changes: u64,
}

impl Rules {
    /// The conditions that a decision made from now on rests on.
    pub(crate) fn standing(&self) -> Standing {
        let interventions = self.roster.stops.interventions();
        Standing {
            interventions: interventions.count(),
            policies: self.policies.load().digest(),
            changes: interventions.changes(),
        }
    }

    /// The change since `then`, if any, that invalidates what these records grant: an ended permit, loaded policies, an
    /// ended pre-approval, or for one of their agents a kill switch, a suspension, an adjusted score or a changed profile.
    pub(crate) fn overtaken(&self, then: &Standing, granted: &[ProofId]) -> Option<&'static str> {
        // Whether a stored response granted only LOW-risk reads is not known.
        if !granted.is_empty() && self.roster.permits.refusal(&*self.base.clock, self.base.clock.now(), false).is_some()
        {
            return Some("the permit of this governor's organisation ended");
        }
        if self.policies.load().digest() != then.policies {
            return Some("other policies were loaded");
        }
        let interventions = self.roster.stops.interventions();
        if interventions.changes() != then.changes {
            return Some("policies were loaded or the pre-approval was revoked");
        }
        if interventions.count() == then.interventions {
            return None;
        }
        let is_halted = |id| {
            self.base.log.facts(id).map_or(true, |facts| interventions.is_since(then.interventions, &facts.entity))
        };
        granted.iter().any(is_halted).then_some("the agent was stopped by a kill switch, suspended or changed")
    }
}
