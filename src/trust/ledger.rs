//! The agents that are registered, each behind a lock of its own.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde::{Deserialize, Serialize};

use super::state::TrustState;
use crate::model::{AgentId, AgentState, AgentTraits};

/// What is kept of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentRecord {
    pub(crate) agent_id: AgentId,
    pub(crate) state: AgentState,
    #[serde(flatten)]
    pub(crate) traits: AgentTraits,
    pub(crate) trust: TrustState,
}

/// One agent. A decision holds it for reading until its record is in order, a
/// change for writing; so a record shows exactly the trust that was in force.
pub(crate) struct AgentCell {
    record: RwLock<AgentRecord>,
}

impl AgentCell {
    fn new(record: AgentRecord) -> Self {
        Self { record: RwLock::new(record) }
    }

    /// Holds the agent still. Taken before the log's lock.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, AgentRecord> {
        // A record is replaced as a whole, so it is whole after a panic too.
        self.record.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds the agent to change it. Taken before the log's lock.
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, AgentRecord> {
        self.record.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All agents.
pub(crate) struct Ledger {
    hasher: RandomState,
    // Each shard is held to look up or put in one agent, before that agent's own lock.
    shards: [RwLock<HashMap<AgentId, Arc<AgentCell>>>; SHARDS],
}

impl Ledger {
    /// No agents.
    pub(crate) fn new() -> Self {
        Self { hasher: RandomState::new(), shards: std::array::from_fn(|_| RwLock::default()) }
    }

    /// An agent.
    pub(crate) fn get(&self, id: &AgentId) -> Option<Arc<AgentCell>> {
        self.shard(id)?.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// Puts an agent in unless one of that id is there, calling `record` while
    /// nobody else can. `Ok(Err(cell))` is the agent that was there.
    pub(crate) fn insert<E>(
        &self,
        agent: AgentRecord,
        record: impl FnOnce(&AgentRecord) -> Result<(), E>,
    ) -> Result<Result<Arc<AgentCell>, Arc<AgentCell>>, E> {
        let Some(shard) = self.shard(&agent.agent_id) else { return Ok(Err(Arc::new(AgentCell::new(agent)))) };
        let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
        match shard.entry(agent.agent_id.clone()) {
            Entry::Occupied(entry) => Ok(Err(Arc::clone(entry.get()))),
            Entry::Vacant(entry) => {
                record(&agent)?;
                Ok(Ok(Arc::clone(entry.insert(Arc::new(AgentCell::new(agent))))))
            }
        }
    }

    /// All agents, sorted by id.
    pub(crate) fn all(&self) -> Vec<Arc<AgentCell>> {
        let mut agents: Vec<(AgentId, Arc<AgentCell>)> = Vec::new();
        for shard in &self.shards {
            let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
            agents.extend(shard.iter().map(|(id, cell)| (id.clone(), Arc::clone(cell))));
        }
        agents.sort_by(|(a, _), (b, _)| a.cmp(b));
        agents.into_iter().map(|(_, cell)| cell).collect()
    }

    fn shard(&self, id: &AgentId) -> Option<&RwLock<HashMap<AgentId, Arc<AgentCell>>>> {
        let place = usize::try_from(self.hasher.hash_one(id) % SHARDS as u64).ok()?;
        self.shards.get(place)
    }
}

/// Few enough to be cheap, many enough that two cores seldom meet.
const SHARDS: usize = 16;
