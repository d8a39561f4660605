//! What a verdict rests on, so that one that was given before is not given again when that has gone.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Governor;
use crate::model::{AgentId, Digest, KillSwitchScope, ProofId};

/// The state of affairs that a verdict rests on: kill switches, policies, pre-approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Interventions that there had been.
    interventions: u64,
    policies: Digest,
    /// Changes that there had been in what agents may do: policies that were loaded, approvals given beforehand that were taken
    /// back.
    changes: u64,
}

impl Governor {
    /// What a decision rests on that is made from now on.
    pub(crate) fn standing(&self) -> Standing {
        let interventions = self.inner.stops.interventions();
        Standing {
            interventions: interventions.count(),
            policies: self.inner.policies.load().digest(),
            changes: interventions.changes(),
        }
    }

    /// What came since `then`, so that what these records grant is no leave to act any more: policies, the end of an
    /// approval of a class; of one of the agents a stop, a suspension, another score set by an operator, or another
    /// profile.
    pub(crate) fn overtaken(&self, then: &Standing, granted: &[ProofId]) -> Option<&'static str> {
        if self.inner.policies.load().digest() != then.policies {
            return Some("other policies were loaded");
        }
        let interventions = self.inner.stops.interventions();
        if interventions.changes() != then.changes {
            return Some("policies were loaded, or the pre-approval was taken back,");
        }
        if interventions.count() == then.interventions {
            return None;
        }
        let is_halted = |id| {
            self.inner.log.facts(id).map_or(true, |facts| interventions.is_since(then.interventions, &facts.entity))
        };
        granted.iter().any(is_halted).then_some("a stop, a suspension or another change of the agent came")
    }
}

/// When agents were kept from acting, or may have been: stops, suspensions, retirements, scores that were set and profiles that
/// were changed since the governor was opened, also those that have ended.
#[derive(Debug, Default)]
pub(super) struct Interventions {
    // Held to note or look up one; nothing else is taken meanwhile.
    table: Mutex<InterventionTable>,
}

#[derive(Debug, Default)]
struct InterventionTable {
    changes: u64,
    count: u64,
    /// The last one of everybody. One of a group counts as such, for who was in it then is not kept.
    of_all: u64,
    of_agents: HashMap<AgentId, u64>,
}

impl Interventions {
    /// To be noted once it bites, and before whoever asked for it hears so.
    pub(super) fn note(&self, scope: &KillSwitchScope) {
        let mut table = self.table();
        table.count += 1;
        let count = table.count;
        match scope {
            KillSwitchScope::Agent(agent) => _ = table.of_agents.insert(agent.clone(), count),
            KillSwitchScope::All | KillSwitchScope::Group(_) => table.of_all = count,
        }
    }

    /// To be noted once other policies are in force or an approval of a class is not any more, likewise.
    pub(super) fn note_change(&self) {
        self.table().changes += 1;
    }

    fn count(&self) -> u64 {
        self.table().count
    }

    fn changes(&self) -> u64 {
        self.table().changes
    }

    /// Whether one came behind the first `count` that was the agent's too.
    fn is_since(&self, count: u64, agent: &AgentId) -> bool {
        let table = self.table();
        table.of_all > count || table.of_agents.get(agent).is_some_and(|last| *last > count)
    }

    fn table(&self) -> MutexGuard<'_, InterventionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
