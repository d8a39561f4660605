//! The conditions that a verdict rests on, so that a stored response is not returned after they have changed.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::governor::Governor;
use crate::model::{AgentId, Digest, KillSwitchScope, ProofId};

/// The conditions that a verdict rests on: kill switches, policies, pre-approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Number of interventions so far.
    interventions: u64,
    policies: Digest,
    /// Number of changes to what agents may do: loaded policies and revoked pre-approvals.
    changes: u64,
}

impl Governor {
    /// The conditions that a decision made from now on rests on.
    pub(crate) fn standing(&self) -> Standing {
        let interventions = self.inner.stops.interventions();
        Standing {
            interventions: interventions.count(),
            policies: self.inner.policies.load().digest(),
            changes: interventions.changes(),
        }
    }

    /// The change since `then`, if any, that invalidates what these records grant: an ended permit, loaded policies, an
    /// ended pre-approval, or for one of their agents a kill switch, a suspension, an adjusted score or a changed profile.
    pub(crate) fn overtaken(&self, then: &Standing, granted: &[ProofId]) -> Option<&'static str> {
        // Whether a stored response granted only LOW-risk reads is not known.
        if !granted.is_empty()
            && self.inner.permits.refusal(&*self.inner.clock, self.inner.clock.now(), false).is_some()
        {
            return Some("the permit of this governor's organisation ended");
        }
        if self.inner.policies.load().digest() != then.policies {
            return Some("other policies were loaded");
        }
        let interventions = self.inner.stops.interventions();
        if interventions.changes() != then.changes {
            return Some("policies were loaded or the pre-approval was revoked");
        }
        if interventions.count() == then.interventions {
            return None;
        }
        let is_halted = |id| {
            self.inner.log.facts(id).map_or(true, |facts| interventions.is_since(then.interventions, &facts.entity))
        };
        granted.iter().any(is_halted).then_some("the agent was stopped by a kill switch, suspended or changed")
    }
}

/// Interventions since the governor was opened, including those that have ended: kill switches, suspensions,
/// retirements, adjusted scores and changed profiles.
#[derive(Debug, Default)]
pub(crate) struct Interventions {
    // Held to record or look up one; no other lock is acquired meanwhile.
    table: Mutex<InterventionTable>,
}

#[derive(Debug, Default)]
struct InterventionTable {
    changes: u64,
    count: u64,
    /// The last intervention for every agent. One for a group counts as such, because past members are not stored.
    of_all: u64,
    of_agents: HashMap<AgentId, u64>,
}

impl Interventions {
    /// Must be called once the intervention is effective, and before its caller returns.
    pub(crate) fn note(&self, scope: &KillSwitchScope) {
        let mut table = self.table();
        table.count += 1;
        let count = table.count;
        match scope {
            KillSwitchScope::Agent(agent) => _ = table.of_agents.insert(agent.clone(), count),
            KillSwitchScope::All | KillSwitchScope::Group(_) => table.of_all = count,
        }
    }

    /// Must be called once policies are in force or a pre-approval has ended, before the caller returns.
    pub(crate) fn note_change(&self) {
        self.table().changes += 1;
    }

    fn count(&self) -> u64 {
        self.table().count
    }

    fn changes(&self) -> u64 {
        self.table().changes
    }

    /// Returns whether an intervention after the first `count` concerned the agent.
    fn is_since(&self, count: u64, agent: &AgentId) -> bool {
        let table = self.table();
        table.of_all > count || table.of_agents.get(agent).is_some_and(|last| *last > count)
    }

    fn table(&self) -> MutexGuard<'_, InterventionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
