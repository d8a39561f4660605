//! The agents that are registered, each behind a lock of its own.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde::{Deserialize, Serialize};

use super::state::TrustState;
use crate::model::{AgentId, AgentProfile, AgentState, AgentTraits};

/// What is kept of an agent.
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

    /// What an operator said of it.
    pub(crate) fn profile(&self) -> &AgentProfile {
        self.profile.0.as_deref().unwrap_or(&PLAIN)
    }

    /// What policies look at besides the id.
    pub(crate) fn traits(&self) -> &AgentTraits {
        &self.profile().traits
    }

    pub(crate) fn with_profile(&self, profile: AgentProfile) -> Self {
        Self { profile: profile.into(), ..self.clone() }
    }
}

/// A profile that takes no room where nothing was said.
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
    // Each shard is held to look up or put in one agent, before that agent's own lock, and never while something is
    // waited for.
    shards: [RwLock<HashMap<AgentId, Arc<AgentCell>>>; SHARDS],
    // Who is being put in: held to say so, before a shard.
    coming: Mutex<HashSet<AgentId>>,
    /// Whoever puts in the same agent waits here.
    came: Condvar,
    /// How many agents are active.
    active: AtomicU64,
}

impl Ledger {
    /// No agents.
    pub(crate) fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            shards: std::array::from_fn(|_| RwLock::default()),
            coming: Mutex::default(),
            came: Condvar::new(),
            active: AtomicU64::new(0),
        }
    }

    /// An agent.
    pub(crate) fn get(&self, id: &AgentId) -> Option<Arc<AgentCell>> {
        self.shard(id)?.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// Puts an agent in unless one of that id is there, calling `record` while
    /// nobody else can and before anybody sees it. `Ok(Err(cell))` is the agent that was there.
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

    /// Changes an agent that is held.
    pub(crate) fn replace(&self, agent: &mut AgentRecord, changed: AgentRecord) {
        match (agent.state == AgentState::Active, changed.state == AgentState::Active) {
            (true, false) => _ = self.active.fetch_sub(1, Ordering::Relaxed),
            (false, true) => _ = self.active.fetch_add(1, Ordering::Relaxed),
            _ => {}
        }
        *agent = changed;
    }

    /// How many agents are active.
    pub(crate) fn active(&self) -> u64 {
        self.active.load(Ordering::Relaxed)
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

    /// Like [`Ledger::all`], with those that are being put in when it is called.
    pub(crate) fn all_to_come(&self) -> Vec<Arc<AgentCell>> {
        let mut coming = self.coming();
        let awaited = coming.clone();
        while !coming.is_disjoint(&awaited) {
            coming = self.came.wait(coming).unwrap_or_else(PoisonError::into_inner);
        }
        drop(coming);
        self.all()
    }

    /// Says that an agent is being put in, or hands out the one of that id. Whoever puts it in already is waited for.
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

/// An agent that is being put in.
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

/// Few enough to be cheap, many enough that two cores seldom meet.
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
    fn nobody_waits_for_an_agent_that_is_slow_to_be_recorded_but_who_puts_in_the_same() {
        let ledger = &Ledger::new();
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
    fn an_agent_that_could_not_be_recorded_is_not_there_and_can_be_put_in_again() {
        let ledger = Ledger::new();
        assert!(ledger.insert(agent("a"), |_| Err(())).is_err());
        assert!(ledger.get(&"a".parse().unwrap()).is_none());
        assert!(ledger.insert(agent("a"), |_| Ok::<(), ()>(())).unwrap().is_ok());
        assert_eq!(ledger.active(), 1);
    }

    #[test]
    fn an_agent_reads_back_as_it_is_written_with_a_profile_and_without() {
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
