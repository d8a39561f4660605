//! Interventions of operators, counted so that a stored response is not returned after one.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::governor::Hold as _;
use crate::model::{AgentId, KillSwitchScope};

/// Interventions since the governor was opened, including those that have ended: kill switches, suspensions,
/// retirements, adjusted scores and changed profiles.
#[derive(Debug, Default)]
pub(crate) struct Interventions {
    // Held to record or look up one; no other lock is acquired meanwhile.
    table: Mutex<InterventionTable>,
    /// Changed while the table is locked.
    count: AtomicU64,
}

#[derive(Debug, Default)]
struct InterventionTable {
    changes: u64,
    /// The last intervention for every agent. One for a group counts as such, because past members are not stored.
    of_all: u64,
    of_agents: HashMap<AgentId, u64>,
}

impl Interventions {
    /// Must be called once the intervention is effective, and before its caller returns.
    pub(crate) fn note(&self, scope: &KillSwitchScope) {
        let mut table = self.table.hold();
        let count = self.count.fetch_add(1, Ordering::AcqRel) + 1;
        match scope {
            KillSwitchScope::Agent(agent) => _ = table.of_agents.insert(agent.clone(), count),
            KillSwitchScope::All | KillSwitchScope::Group(_) => table.of_all = count,
        }
    }

    /// Must be called once policies are in force or a pre-approval has ended, before the caller returns.
    pub(crate) fn note_change(&self) {
        self.table.hold().changes += 1;
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    pub(crate) fn changes(&self) -> u64 {
        self.table.hold().changes
    }

    /// Returns whether an intervention after the first `count` concerned the agent.
    pub(crate) fn is_since(&self, count: u64, agent: &AgentId) -> bool {
        let table = self.table.hold();
        table.of_all > count || table.of_agents.get(agent).is_some_and(|last| *last > count)
    }
}
