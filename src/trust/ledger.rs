//! The registered agents, each behind a lock of its own.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde::{Deserialize, Serialize};

use super::state::TrustState;
use crate::model::{AgentId, AgentProfile, AgentState, AgentTraits};

/// The record of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentRecord {
    pub(crate) agent_id: AgentId,
    pub(crate) state: AgentState,
    #[serde(flatten)]
    pub(crate) profile: Profile,
    pub(crate) trust: TrustState,
}

impl AgentRecord {
    pub(crate) fn new(agent_id: AgentId, state: AgentState, profile: AgentProfile, trust: TrustState) -> Self {
        Self { agent_id, state, profile: profile.into(), trust }
    }

    /// The profile that an operator gave the agent.
    pub(crate) fn profile(&self) -> &AgentProfile {
        self.profile.0.as_deref().unwrap_or(&PLAIN)
    }

    /// The properties that policies see besides the ID.
    pub(crate) fn traits(&self) -> &AgentTraits {
        &self.profile().traits
    }

    pub(crate) fn with_profile(&self, profile: AgentProfile) -> Self {
        Self { profile: profile.into(), ..self.clone() }
    }
}

/// A profile that takes no memory if it is empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "AgentProfile", into = "AgentProfile")]
pub(crate) struct Profile(Option<Arc<AgentProfile>>);

impl From<AgentProfile> for Profile {
    fn from(profile: AgentProfile) -> Self {
        Self((profile != *PLAIN).then(|| Arc::new(profile)))
    }
}

impl From<Profile> for AgentProfile {
    fn from(profile: Profile) -> Self {
        profile.0.as_deref().unwrap_or(&PLAIN).clone()
    }
}

static PLAIN: LazyLock<AgentProfile> = LazyLock::new(AgentProfile::default);

/// One agent. A decision holds the read lock until its record is enqueued, a change holds the write lock. So a record
/// shows exactly the trust that was in force.
pub(crate) struct AgentCell {
    record: RwLock<AgentRecord>,
}

impl AgentCell {
    fn new(record: AgentRecord) -> Self {
        Self { record: RwLock::new(record) }
    }

    /// Locks the agent against changes. Taken before the log's lock.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, AgentRecord> {
        // A record is replaced as a whole, so it is consistent even after a panic.
        self.record.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the agent to change it. Taken before the log's lock.
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, AgentRecord> {
        self.record.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All agents.
pub(crate) struct Ledger {
    hasher: RandomState,
    // Each shard is locked to look up or insert one agent, before that agent's own lock, and never while waiting.
    shards: [RwLock<HashMap<AgentId, Arc<AgentCell>>>; SHARDS],
    // The IDs of agents being inserted. Locked to announce one, before a shard.
    coming: Mutex<HashSet<AgentId>>,
    /// Callers that insert the same agent wait here.
    came: Condvar,
    /// Number of active agents.
    active: AtomicU64,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            hasher: RandomState::new(),
            shards: std::array::from_fn(|_| RwLock::default()),
            coming: Mutex::default(),
            came: Condvar::new(),
            active: AtomicU64::new(0),
        }
    }
}

impl Ledger {
    /// Returns an agent by its ID.
    pub(crate) fn get(&self, id: &AgentId) -> Option<Arc<AgentCell>> {
        self.shard(id)?.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// Inserts an agent unless one with that ID exists. `record` is called before the agent becomes visible, while no
    /// other caller can insert it. `Ok(Err(cell))` is the existing agent.
    pub(crate) fn insert<E>(
        &self,
        mut agent: AgentRecord,
        record: impl FnOnce(&mut AgentRecord) -> Result<(), E>,
    ) -> Result<Result<Arc<AgentCell>, Arc<AgentCell>>, E> {
        let coming = match self.announce(&agent.agent_id) {
            Ok(coming) => coming,
            Err(cell) => return Ok(Err(cell)),
        };
        record(&mut agent)?;
        if agent.state == AgentState::Active {
            self.active.fetch_add(1, Ordering::Relaxed);
        }
        let id = agent.agent_id.clone();
        let cell = Arc::new(AgentCell::new(agent));
        if let Some(shard) = self.shard(&id) {
            shard.write().unwrap_or_else(PoisonError::into_inner).insert(id, Arc::clone(&cell));
        }
        drop(coming);
        Ok(Ok(cell))
    }

    /// Replaces the record of a locked agent.
    pub(crate) fn replace(&self, agent: &mut AgentRecord, changed: AgentRecord) {
        match (agent.state == AgentState::Active, changed.state == AgentState::Active) {
            (true, false) => _ = self.active.fetch_sub(1, Ordering::Relaxed),
            (false, true) => _ = self.active.fetch_add(1, Ordering::Relaxed),
            _ => {}
        }
        *agent = changed;
    }

    /// Number of active agents.
    pub(crate) fn active(&self) -> u64 {
        self.active.load(Ordering::Relaxed)
    }

    /// Returns a sample of agents, one from each shard that has any, selected by `bits`.
    pub(crate) fn sample(&self, bits: u128) -> Vec<Arc<AgentCell>> {
        let pick = |shard: &RwLock<HashMap<AgentId, Arc<AgentCell>>>| {
            let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
            let place = bits.checked_rem(shard.len() as u128)?;
            shard.values().nth(usize::try_from(place).ok()?).cloned()
        };
        self.shards.iter().filter_map(pick).collect()
    }

    /// Returns all agents, sorted by ID.
    pub(crate) fn all(&self) -> Vec<Arc<AgentCell>> {
        let mut agents: Vec<(AgentId, Arc<AgentCell>)> = Vec::new();
        for shard in &self.shards {
            let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
            agents.extend(shard.iter().map(|(id, cell)| (id.clone(), Arc::clone(cell))));
        }
        agents.sort_by(|(a, _), (b, _)| a.cmp(b));
        agents.into_iter().map(|(_, cell)| cell).collect()
    }

    /// Like [`Ledger::all`], including agents that are being inserted when it is called.
    pub(crate) fn all_to_come(&self) -> Vec<Arc<AgentCell>> {
        let mut coming = self.coming();
        let awaited = coming.clone();
        while !coming.is_disjoint(&awaited) {
            coming = self.came.wait(coming).unwrap_or_else(PoisonError::into_inner);
        }
        drop(coming);
        self.all()
    }

    /// Announces the insertion of an agent, or returns the existing one. Waits for another caller that inserts it
    /// already.
    fn announce(&self, id: &AgentId) -> Result<Coming<'_>, Arc<AgentCell>> {
        let mut coming = self.coming();
        loop {
            if let Some(cell) = self.get(id) {
                return Err(cell);
            }
            if coming.insert(id.clone()) {
                return Ok(Coming { ledger: self, id: id.clone() });
            }
            coming = self.came.wait(coming).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn coming(&self) -> MutexGuard<'_, HashSet<AgentId>> {
        self.coming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shard(&self, id: &AgentId) -> Option<&RwLock<HashMap<AgentId, Arc<AgentCell>>>> {
        let place = usize::try_from(self.hasher.hash_one(id) % SHARDS as u64).ok()?;
        self.shards.get(place)
    }
}

/// An agent that is being inserted.
struct Coming<'a> {
    ledger: &'a Ledger,
    id: AgentId,
}

impl Drop for Coming<'_> {
    fn drop(&mut self) {
        self.ledger.coming().remove(&self.id);
        self.ledger.came.notify_all();
    }
}

/// Number of shards: few enough to be cheap, enough that two cores seldom collide.
const SHARDS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Score, Timestamp};
    use std::sync::mpsc;
    use std::thread;

    fn agent(id: &str) -> AgentRecord {
        let trust = TrustState::new(Score::saturating(200), Timestamp::from_millis(0));
        AgentRecord::new(id.parse().unwrap(), AgentState::Active, AgentProfile::default(), trust)
    }

    #[test]
    fn only_writers_of_the_same_agent_wait_for_a_slow_record() {
        let ledger = &Ledger::default();
        let (go, waits) = mpsc::channel();
        let (says, started) = mpsc::channel();
        thread::scope(|scope| {
            let slow = scope.spawn(move || {
                ledger.insert(agent("slow"), |_| {
                    says.send(()).unwrap();
                    waits.recv()
                })
            });
            started.recv().unwrap();
            // More than there are shards.
            for other in 0..SHARDS * 4 {
                let other = format!("other-{other}");
                assert!(ledger.insert(agent(&other), |_| Ok::<(), ()>(())).unwrap().is_ok());
                assert!(ledger.get(&other.parse().unwrap()).is_some());
            }
            assert!(ledger.get(&"slow".parse().unwrap()).is_none(), "it is not recorded yet");
            let all = scope.spawn(|| ledger.all_to_come().len());
            let same = scope.spawn(move || ledger.insert(agent("slow"), |_| Ok::<(), ()>(())).unwrap().is_ok());
            go.send(()).unwrap();
            assert!(slow.join().unwrap().unwrap().is_ok());
            assert!(!same.join().unwrap(), "it was there");
            assert_eq!(all.join().unwrap(), SHARDS * 4 + 1);
        });
        assert_eq!(ledger.active(), SHARDS as u64 * 4 + 1);
    }

    #[test]
    fn an_agent_takes_little_beyond_what_is_its_own() {
        // Counted beside it: the text's and the cell's two counts each, and a place in a map that is seven eighths full
        // at the most and half that after it grew. `benches/registry.rs` measures the process.
        let (counts, place) = (4 * size_of::<usize>(), size_of::<(AgentId, Arc<AgentCell>)>() + 1);
        let each = size_of::<AgentCell>() + counts + place * 16 / 7;
        assert!(each < 200, "{each}");
    }

    #[test]
    fn an_agent_that_could_not_be_recorded_can_be_registered_again() {
        let ledger = Ledger::default();
        assert!(ledger.insert(agent("a"), |_| Err(())).is_err());
        assert!(ledger.get(&"a".parse().unwrap()).is_none());
        assert!(ledger.insert(agent("a"), |_| Ok::<(), ()>(())).unwrap().is_ok());
        assert_eq!(ledger.active(), 1);
    }

    #[test]
    fn an_agent_reads_back_as_written_with_and_without_a_profile() {
        let plain = agent("a");
        let text = serde_json::to_string(&plain).unwrap();
        assert_eq!(serde_json::from_str::<AgentRecord>(&text).unwrap(), plain);
        assert!(plain.profile.0.is_none());
        let owned = plain.with_profile(AgentProfile { owner: Some("ann".to_owned()), ..AgentProfile::default() });
        let text = serde_json::to_string(&owned).unwrap();
        assert!(text.contains(r#""owner":"ann""#), "{text}");
        assert_eq!(serde_json::from_str::<AgentRecord>(&text).unwrap(), owned);
    }
}
