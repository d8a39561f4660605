//! The table of keys: made, listed, revoked, and found by what is sent.

use rulekeep::extension::Extension;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption};
use subtle::ConstantTimeEq;

use super::key::{ApiKey, KeyDraft, KeyInfo, KeyRecord, NewKey, Scope};
use super::limit::{PlanLimit, Time};
use rulekeep::Error;
use rulekeep::Governor;
use rulekeep::agent::AgentId;
use rulekeep::extension::KeyId;
use rulekeep::extension::{API_KEY as KEY_PREFIX, Wait, with_context};
use rulekeep::intent::InvalidValue;
use rulekeep::proof::Digest;
use rulekeep::system::Timestamp;

/// A key, and what is counted of it.
pub(super) struct Entry {
    record: KeyRecord,
    revoked_at: ArcSwapOption<Timestamp>,
    /// Whether the log says that it was revoked.
    is_recorded: AtomicBool,
    limit: PlanLimit,
    /// Milliseconds; 0 when it was not used yet.
    last_used: AtomicI64,
    callers: Callers,
}

impl Entry {
    fn new(record: KeyRecord, time: &Time) -> Arc<Self> {
        Arc::new(Self {
            revoked_at: ArcSwapOption::new(record.revoked_at.map(Arc::new)),
            is_recorded: AtomicBool::new(record.revoked_at.is_some()),
            limit: PlanLimit::new(record.plan, time),
            last_used: AtomicI64::new(0),
            callers: Callers::default(),
            record,
        })
    }

    pub(super) fn id(&self) -> KeyId {
        self.record.id
    }

    pub(super) fn scope(&self) -> Scope {
        self.record.scope
    }

    pub(super) fn limit(&self) -> &PlanLimit {
        &self.limit
    }

    pub(super) fn callers(&self) -> &Callers {
        &self.callers
    }

    /// Whether what concerns this agent is open to it.
    pub(super) fn is_for(&self, agent_id: &str) -> bool {
        self.record.agents.is_empty() || self.record.agents.iter().any(|known| known.as_str() == agent_id)
    }

    pub(super) fn is_limited_to_agents(&self) -> bool {
        !self.record.agents.is_empty()
    }

    pub(super) fn takes_built_intents(&self) -> bool {
        self.record.takes_built_intents()
    }

    /// Why it is no longer accepted.
    pub(super) fn refusal(&self, now: Timestamp) -> Option<String> {
        if let Some(at) = self.revoked_at.load().as_deref() {
            return Some(format!("the API key was revoked at {at}"));
        }
        let expired = self.record.expires_at.filter(|at| *at <= now)?;
        Some(format!("the API key expired at {expired}"))
    }

    pub(super) fn note_used(&self, now: Timestamp) {
        self.last_used.store(now.as_millis(), Ordering::Relaxed);
    }

    pub(super) fn info(&self, now: Timestamp) -> KeyInfo {
        let last_used = Some(self.last_used.load(Ordering::Relaxed)).filter(|millis| *millis != 0);
        self.current().info(now, last_used.map(Timestamp::from_millis))
    }

    fn current(&self) -> KeyRecord {
        KeyRecord { revoked_at: self.revoked_at.load().as_deref().copied(), ..self.record.clone() }
    }
}

/// From where a key was accepted: the last eight, as hashes.
#[derive(Default)]
pub(super) struct Callers {
    hasher: RandomState,
    seen: [AtomicU64; 8],
    next: AtomicUsize,
}

impl Callers {
    pub(super) fn knows(&self, caller: &str) -> bool {
        let hash = self.hash(caller);
        self.seen.iter().any(|seen| seen.load(Ordering::Relaxed) == hash)
    }

    pub(super) fn add(&self, caller: &str) {
        let place = self.next.fetch_add(1, Ordering::Relaxed) % self.seen.len();
        if let Some(seen) = self.seen.get(place) {
            seen.store(self.hash(caller), Ordering::Relaxed);
        }
    }

    fn hash(&self, caller: &str) -> u64 {
        // 0 is an empty place.
        self.hasher.hash_one(caller).max(1)
    }
}

/// All keys, as they are found.
#[derive(Default, Clone)]
struct Table {
    /// By the first bytes of their digests: what is sent is hashed before it is looked for, so that how long that takes
    /// says nothing of any key.
    by_digest: HashMap<[u8; 8], Vec<Arc<Entry>>>,
    by_id: BTreeMap<KeyId, Arc<Entry>>,
}

impl Table {
    fn add(&mut self, entry: Arc<Entry>) {
        self.by_digest.entry(start_of(&entry.record.digest)).or_default().push(Arc::clone(&entry));
        self.by_id.insert(entry.id(), entry);
    }

    fn remove(&mut self, entry: &Entry) {
        self.by_id.remove(&entry.id());
        if let Some(found) = self.by_digest.get_mut(&start_of(&entry.record.digest)) {
            found.retain(|other| other.id() != entry.id());
        }
    }
}

/// All keys of a store.
pub(super) struct Keys {
    time: Time,
    table: ArcSwap<Table>,
    // Held to make and revoke, so that the table goes the same way as the journal.
    turn: Mutex<()>,
    most: usize,
}

impl Keys {
    pub(super) fn restored(governor: &Governor, time: Time) -> Result<Self, Error> {
        let mut table = Table::default();
        for (key, value) in Extension::of(governor).states(&[KEY_PREFIX]) {
            let record: KeyRecord = serde_json::from_str(&value).map_err(|error| Error::StorageUnavailable {
                message: format!("the state {key} is no API key that this version reads: {error}"),
            })?;
            table.add(Entry::new(record, &time));
        }
        Ok(Self { time, table: ArcSwap::from_pointee(table), turn: Mutex::default(), most: MOST_KEYS })
    }

    /// The key whose text this is, also one that is no longer accepted.
    pub(super) fn find(&self, key: &ApiKey) -> Option<Arc<Entry>> {
        let digest = key.digest();
        let table = self.table.load();
        let found = table.by_digest.get(&start_of(&digest))?;
        found.iter().find(|entry| entry.record.digest.as_bytes().ct_eq(digest.as_bytes()).into()).map(Arc::clone)
    }

    pub(super) fn list(&self, now: Timestamp) -> Vec<KeyInfo> {
        self.table.load().by_id.values().map(|entry| entry.info(now)).collect()
    }

    pub(super) fn create(&self, governor: &Governor, draft: KeyDraft) -> Result<NewKey, Error> {
        let turn = self.turn();
        self.make_room(governor)?;
        self.create_in_turn(governor, draft, &turn)
    }

    /// A key for an operator where none is accepted.
    pub(super) fn ensure_admin(&self, governor: &Governor, draft: KeyDraft) -> Result<Option<NewKey>, Error> {
        let turn = self.turn();
        let now = Extension::of(governor).clock().now();
        let has_one = |entry: &Arc<Entry>| entry.scope() == Scope::Admin && entry.refusal(now).is_none();
        if self.table.load().by_id.values().any(has_one) {
            return Ok(None);
        }
        self.create_in_turn(governor, draft, &turn).map(Some)
    }

    /// Where the table is full, the oldest key that is accepted no longer is forgotten.
    fn make_room(&self, governor: &Governor) -> Result<(), Error> {
        let (table, now) = (self.table.load(), Extension::of(governor).clock().now());
        if table.by_id.len() < self.most {
            return Ok(());
        }
        let over = table.by_id.values().find(|entry| entry.refusal(now).is_some()).ok_or_else(|| {
            let message = format!("this store has {} keys that are accepted, the most there can be", self.most);
            Error::Conflict { message }
        })?;
        Extension::of(governor).forget(&key_of(over.id()), "an API key was forgotten")?;
        self.change(|table| table.remove(over));
        Ok(())
    }

    fn create_in_turn(&self, governor: &Governor, draft: KeyDraft, _: &MutexGuard<'_, ()>) -> Result<NewKey, Error> {
        let now = Extension::of(governor).clock().now();
        let key = ApiKey::new(
            draft.scope,
            [Extension::of(governor).entropy().bits(), Extension::of(governor).entropy().bits()],
        );
        let id = KeyId::new(now, Extension::of(governor).entropy().bits());
        let record = checked(draft, id, key.digest(), now)?;
        keep(governor, &record, "an API key was made")?;
        let info = record.info(now, None);
        self.change(|table| table.add(Entry::new(record, &self.time)));
        Ok(NewKey { info, key })
    }

    /// From its return on, and in every thread, the key is refused; also where that could not be recorded.
    pub(super) fn revoke(&self, governor: &Governor, id: KeyId) -> Result<KeyInfo, Error> {
        let _turn = self.turn();
        let now = Extension::of(governor).clock().now();
        let entry = self.table.load().by_id.get(&id).map(Arc::clone);
        let entry = entry.ok_or_else(|| Error::not_found("API key", id))?;
        if entry.revoked_at.load().is_none() {
            entry.revoked_at.store(Some(Arc::new(now)));
        }
        // What could not be recorded when it was tried before is recorded now.
        if !entry.is_recorded.load(Ordering::Acquire) {
            keep(governor, &entry.current(), "an API key was revoked").map_err(|error| {
                with_context(
                    error,
                    &format!("the key {id} is refused, but that is not recorded and gone after a restart"),
                )
            })?;
            entry.is_recorded.store(true, Ordering::Release);
        }
        Ok(entry.info(now))
    }

    fn change(&self, change: impl FnOnce(&mut Table)) {
        let mut table = Table::clone(&self.table.load());
        change(&mut table);
        self.table.store(Arc::new(table));
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keys that one store has, at the most, but for one that lets an administrator in again.
const MOST_KEYS: usize = 10_000;

fn start_of(digest: &Digest) -> [u8; 8] {
    let mut start = [0; 8];
    start.copy_from_slice(&digest.as_bytes()[..8]);
    start
}

fn checked(draft: KeyDraft, id: KeyId, digest: Digest, now: Timestamp) -> Result<KeyRecord, Error> {
    const MOST_AGENTS: usize = 1_000;
    const MOST_CHARS: usize = 256;
    let KeyDraft { scope, plan, name, agents, expires_at, built_intents } = draft;
    if scope == Scope::Admin && !agents.is_empty() {
        return Err(Error::input("agents", "expected none: a key of the scope admin is for everything"));
    }
    if built_intents && agents.is_empty() {
        return Err(Error::input(
            "builtIntents",
            "expected it beside agents: any other key enforces built intents anyway",
        ));
    }
    if agents.len() > MOST_AGENTS {
        return Err(Error::input("agents", format!("expected at most {MOST_AGENTS}, found {}", agents.len())));
    }
    let is_no_name = |name: &String| {
        name.trim().is_empty() || name.chars().count() > MOST_CHARS || name.chars().any(char::is_control)
    };
    if name.as_ref().is_some_and(is_no_name) {
        return Err(Error::input("name", "expected 1 to 256 characters, not blank, without control characters"));
    }
    if expires_at.is_some_and(|at| at <= now) {
        return Err(Error::input("expiresAt", "expected a time to come"));
    }
    let agents: Result<Vec<AgentId>, InvalidValue> = agents.iter().map(|agent| agent.parse()).collect();
    let agents = agents.map_err(|error| Error::input("agents", error.to_string()))?;
    Ok(KeyRecord {
        id,
        name,
        scope,
        plan,
        agents,
        built_intents,
        digest,
        created_at: now,
        expires_at,
        revoked_at: None,
    })
}

fn keep(governor: &Governor, record: &KeyRecord, cause: &str) -> Result<(), Error> {
    let value = serde_json::to_string(record)
        .map_err(|error| Error::Internal { message: format!("a key does not serialise: {error}") })?;
    Extension::of(governor).keep(key_of(record.id), value, cause, Wait::OnDisk)
}

fn key_of(id: KeyId) -> String {
    format!("{KEY_PREFIX}{id}")
}

#[cfg(test)]
mod tests {
    use super::super::key::Plan;
    use super::*;

    fn draft(scope: Scope) -> KeyDraft {
        KeyDraft::new(scope, Plan::Pro)
    }

    #[test]
    fn a_full_table_forgets_what_is_accepted_no_longer_and_always_lets_an_administrator_in() {
        let governor = Governor::builder().open_in_memory().unwrap();
        let restored = || Keys::restored(&governor, Time(Arc::clone(Extension::of(&governor).clock()))).unwrap();
        let keys = Keys { most: 2, ..restored() };
        let [old, other] = [Scope::Agent, Scope::Agent].map(|scope| keys.create(&governor, draft(scope)).unwrap());
        let full = keys.create(&governor, draft(Scope::Agent)).unwrap_err();
        assert_eq!(full.code(), "CONFLICT");
        assert!(keys.ensure_admin(&governor, draft(Scope::Admin)).unwrap().is_some(), "nobody can get in");
        for gone in [&old, &other] {
            keys.revoke(&governor, gone.info.id).unwrap();
        }
        let made = keys.create(&governor, draft(Scope::Agent)).unwrap();
        // They may be of one millisecond, and then either is the oldest.
        let stayed = [&old, &other].into_iter().filter(|gone| keys.find(&gone.key).is_some()).count();
        assert!(stayed == 1 && keys.find(&made.key).is_some(), "{stayed}");
        let now = Extension::of(&governor).clock().now();
        assert_eq!(restored().list(now), keys.list(now), "a restart knows others");
    }
}
