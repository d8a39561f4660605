//! The table of API keys: creation, listing, revocation and lookup.

use rulekeep::extension::Extension;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

use super::key::{ApiKey, KeyDraft, KeyInfo, KeyRecord, NewKey, Plan, Scope};
use super::limit::{PlanLimit, Time};
use rulekeep::Error;
use rulekeep::Governor;
use rulekeep::agent::AgentId;
use rulekeep::escalation::ReviewerIdentity;
use rulekeep::extension::KeyId;
use rulekeep::extension::{API_KEY as KEY_PREFIX, Wait, with_context};
use rulekeep::intent::InvalidValue;
use rulekeep::proof::{Digest, VerificationState};
use rulekeep::system::Timestamp;

/// A key with its counters.
pub(super) struct Entry {
    record: KeyRecord,
    /// The issuer and subject of the tokens, for a person without an API key.
    person: Option<(String, String)>,
    revoked_at: ArcSwapOption<Timestamp>,
    /// Whether the key was observed as expired.
    is_expired: AtomicBool,
    /// Whether the revocation or expiry is recorded in the log.
    is_recorded: AtomicBool,
    limit: PlanLimit,
    /// Milliseconds since 1970-01-01 UTC; 0 if the key has not been used.
    last_used: AtomicI64,
    callers: Callers,
}

impl Entry {
    fn new(record: KeyRecord, time: &Time) -> Arc<Self> {
        Self::of(record, None, time)
    }

    /// The entry of a reviewer who proves who they are by tokens of this issuer and subject.
    pub(super) fn of_person(reviewer: String, issuer: &str, subject: &str, now: Timestamp, time: &Time) -> Arc<Self> {
        let digest = Digest::new(Sha256::digest(format!("{}\n{issuer}{subject}", issuer.len())).into());
        let mut random = [0; 16];
        random.copy_from_slice(&digest.as_bytes()[..16]);
        let record = KeyRecord {
            id: KeyId::new(Timestamp::from_millis(0), u128::from_be_bytes(random)),
            name: None,
            scope: Scope::Reviewer,
            plan: Plan::Pro,
            agents: Vec::new(),
            built_intents: false,
            reviewer: Some(reviewer),
            digest,
            created_at: now,
            expires_at: None,
            revoked_at: None,
            expired: false,
        };
        Self::of(record, Some((issuer.to_owned(), subject.to_owned())), time)
    }

    fn of(record: KeyRecord, person: Option<(String, String)>, time: &Time) -> Arc<Self> {
        Arc::new(Self {
            revoked_at: ArcSwapOption::new(record.revoked_at.map(Arc::new)),
            is_expired: AtomicBool::new(record.expired),
            is_recorded: AtomicBool::new(record.revoked_at.is_some() || record.expired),
            limit: PlanLimit::new(record.plan, time),
            last_used: AtomicI64::new(0),
            callers: Callers::default(),
            record,
            person,
        })
    }

    pub(super) fn id(&self) -> KeyId {
        self.record.id
    }

    pub(super) fn scope(&self) -> Scope {
        self.record.scope
    }

    /// The reviewer whom the key belongs to.
    pub(super) fn reviewer(&self) -> Option<&str> {
        self.record.reviewer.as_deref()
    }

    /// The identity that the key proves of a reviewer.
    pub(super) fn identity(&self) -> ReviewerIdentity {
        let id = self.id();
        if let Some((issuer, subject)) = self.person.clone() {
            return ReviewerIdentity::Oidc { issuer, subject };
        }
        if self.record.reviewer.is_some() { ReviewerIdentity::Key { id } } else { ReviewerIdentity::AdminKey { id } }
    }

    pub(super) fn limit(&self) -> &PlanLimit {
        &self.limit
    }

    pub(super) fn callers(&self) -> &Callers {
        &self.callers
    }

    /// Returns whether the key gives access to this agent's data.
    pub(super) fn is_for(&self, agent_id: &str) -> bool {
        self.record.agents.is_empty() || self.record.agents.iter().any(|known| known.as_str() == agent_id)
    }

    pub(super) fn only_agent(&self) -> Option<&AgentId> {
        let [agent] = self.record.agents.as_slice() else { return None };
        Some(agent)
    }

    pub(super) fn is_limited_to_agents(&self) -> bool {
        !self.record.agents.is_empty()
    }

    pub(super) fn takes_built_intents(&self) -> bool {
        self.record.takes_built_intents()
    }

    /// The reason the key is not accepted; `None` if it is.
    pub(super) fn refusal(&self, now: Timestamp) -> Option<String> {
        if let Some(at) = self.revoked_at.load().as_deref() {
            return Some(format!("the API key was revoked at {at}"));
        }
        let expires_at = self.record.expires_at?;
        if expires_at <= now {
            self.is_expired.store(true, Ordering::Release);
        }
        self.is_expired.load(Ordering::Acquire).then(|| format!("the API key expired at {expires_at}"))
    }

    pub(super) fn note_used(&self, now: Timestamp) {
        self.last_used.store(now.as_millis(), Ordering::Relaxed);
    }

    pub(super) fn info(&self) -> KeyInfo {
        let last_used = Some(self.last_used.load(Ordering::Relaxed)).filter(|millis| *millis != 0);
        self.current().info(last_used.map(Timestamp::from_millis))
    }

    fn current(&self) -> KeyRecord {
        let revoked_at = self.revoked_at.load().as_deref().copied();
        KeyRecord { revoked_at, expired: self.is_expired.load(Ordering::Acquire), ..self.record.clone() }
    }
}

/// The last eight callers that the key was accepted from, as hashes.
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
        // 0 marks an empty place.
        self.hasher.hash_one(caller).max(1)
    }
}

/// All keys, indexed for lookup.
#[derive(Default, Clone)]
struct Table {
    /// By the first bytes of their digests. A received key is hashed before the lookup, so that the lookup time
    /// reveals nothing about any key.
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
    // Held while creating and revoking keys, so that the table changes in the order of the journal.
    turn: Mutex<()>,
    most: usize,
}

impl Keys {
    pub(super) fn restored(governor: &Governor, time: Time) -> Result<Self, Error> {
        let mut table = Table::default();
        for (key, value) in Extension::of(governor).states(&[KEY_PREFIX]) {
            let record: KeyRecord = serde_json::from_str(&value).map_err(|error| {
                Error::storage(format!("the state {key} is not an API key that this version can read")).caused_by(error)
            })?;
            table.add(Entry::new(record, &time));
        }
        Ok(Self { time, table: ArcSwap::from_pointee(table), turn: Mutex::default(), most: MOST_KEYS })
    }

    /// The entry of a key text, also if the key is no longer accepted.
    pub(super) fn find(&self, key: &ApiKey) -> Option<Arc<Entry>> {
        let digest = key.digest();
        let table = self.table.load();
        let found = table.by_digest.get(&start_of(&digest))?;
        found.iter().find(|entry| entry.record.digest.as_bytes().ct_eq(digest.as_bytes()).into()).map(Arc::clone)
    }

    pub(super) fn list(&self) -> Vec<KeyInfo> {
        self.table.load().by_id.values().map(|entry| entry.info()).collect()
    }

    /// The reason a key is no longer accepted. The first time it is seen as expired, that is recorded; if the log is
    /// not verified yet or recording fails, it is tried again the next time.
    pub(super) fn refusal(&self, governor: &Governor, entry: &Entry, now: Timestamp) -> Option<String> {
        let refusal = entry.refusal(now)?;
        if !entry.is_recorded.load(Ordering::Acquire) && governor.log().verification() == VerificationState::Verified {
            let _turn = self.turn();
            let _ = record_end(governor, entry, "an API key expired");
        }
        Some(refusal)
    }

    /// Records each key that has expired.
    pub(super) fn expire(&self, governor: &Governor) {
        let now = Extension::of(governor).clock().now();
        for entry in self.table.load().by_id.values() {
            let _ = self.refusal(governor, entry, now);
        }
    }

    pub(super) fn create(&self, governor: &Governor, draft: KeyDraft) -> Result<NewKey, Error> {
        Extension::of(governor).wait_until_verified()?;
        let turn = self.turn();
        self.make_room(governor)?;
        self.create_in_turn(governor, draft, &turn)
    }

    /// Creates an admin key if none is accepted.
    pub(super) fn ensure_admin(&self, governor: &Governor, draft: KeyDraft) -> Result<Option<NewKey>, Error> {
        let turn = self.turn();
        let now = Extension::of(governor).clock().now();
        let has_one = |entry: &Arc<Entry>| entry.scope() == Scope::Admin && entry.refusal(now).is_none();
        if self.table.load().by_id.values().any(has_one) {
            return Ok(None);
        }
        self.create_in_turn(governor, draft, &turn).map(Some)
    }

    /// If the table is full, removes the oldest key that is no longer accepted.
    fn make_room(&self, governor: &Governor) -> Result<(), Error> {
        let (table, now) = (self.table.load(), Extension::of(governor).clock().now());
        if table.by_id.len() < self.most {
            return Ok(());
        }
        let over = table.by_id.values().find(|entry| entry.refusal(now).is_some()).ok_or_else(|| {
            let message = format!("this store has {} valid keys, the maximum; revoke one first", self.most);
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
        keep(governor, &record, "an API key was created")?;
        let info = record.info(None);
        self.change(|table| table.add(Entry::new(record, &self.time)));
        Ok(NewKey { info, key })
    }

    /// Revokes a key. When this returns, every thread rejects the key, even if the revocation could not be recorded.
    pub(super) fn revoke(&self, governor: &Governor, id: KeyId) -> Result<KeyInfo, Error> {
        let now = Extension::of(governor).clock().now();
        let entry = self.table.load().by_id.get(&id).map(Arc::clone);
        let entry = entry.ok_or_else(|| Error::not_found("API key", id))?;
        let is_new = entry.revoked_at.load().is_none();
        if is_new {
            entry.revoked_at.store(Some(Arc::new(now)));
        }
        // Records now what could not be recorded in an earlier attempt.
        if is_new || !entry.is_recorded.load(Ordering::Acquire) {
            let recorded = Extension::of(governor).wait_until_verified().and_then(|()| {
                let _turn = self.turn();
                record_end(governor, &entry, "an API key was revoked")
            });
            recorded.map_err(|error| {
                with_context(
                    error,
                    &format!("the key {id} is refused, but its revocation is not recorded and is lost on a restart"),
                )
            })?;
        }
        Ok(entry.info())
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

/// Maximum number of keys in a store, apart from one that lets an administrator in again.
const MOST_KEYS: usize = 10_000;

fn start_of(digest: &Digest) -> [u8; 8] {
    let mut start = [0; 8];
    start.copy_from_slice(&digest.as_bytes()[..8]);
    start
}

fn checked(draft: KeyDraft, id: KeyId, digest: Digest, now: Timestamp) -> Result<KeyRecord, Error> {
    const MOST_AGENTS: usize = 1_000;
    const MOST_CHARS: usize = 256;
    let KeyDraft { scope, plan, name, agents, expires_at, built_intents, reviewer } = draft;
    if scope != Scope::Agent && !agents.is_empty() {
        return Err(Error::input("agents", format!("expected none: a key of the scope {scope} covers all agents")));
    }
    if (scope == Scope::Reviewer) != reviewer.is_some() {
        return Err(Error::input(
            "reviewer",
            "expected the reviewer's name for a key of the scope reviewer, and only for it",
        ));
    }
    if built_intents && agents.is_empty() {
        return Err(Error::input(
            "builtIntents",
            "expected it together with agents: any other key can enforce built intents anyway",
        ));
    }
    if agents.len() > MOST_AGENTS {
        return Err(Error::input("agents", format!("expected at most {MOST_AGENTS}, found {}", agents.len())));
    }
    let is_no_name = |name: &String| {
        name.trim().is_empty() || name.chars().count() > MOST_CHARS || name.chars().any(char::is_control)
    };
    for (field, name) in [("name", &name), ("reviewer", &reviewer)] {
        if name.as_ref().is_some_and(is_no_name) {
            return Err(Error::input(field, "expected 1 to 256 characters, not blank, without control characters"));
        }
    }
    if expires_at.is_some_and(|at| at <= now) {
        return Err(Error::input("expiresAt", "expected a time in the future"));
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
        reviewer,
        digest,
        created_at: now,
        expires_at,
        revoked_at: None,
        expired: false,
    })
}

fn record_end(governor: &Governor, entry: &Entry, cause: &str) -> Result<(), Error> {
    keep(governor, &entry.current(), cause)?;
    entry.is_recorded.store(true, Ordering::Release);
    Ok(())
}

fn keep(governor: &Governor, record: &KeyRecord, cause: &str) -> Result<(), Error> {
    let value = serde_json::to_string(record)
        .map_err(|error| Error::internal("a key cannot be serialized").caused_by(error))?;
    Extension::of(governor).keep(key_of(record.id), value, cause, Wait::OnDisk)
}

fn key_of(id: KeyId) -> String {
    format!("{KEY_PREFIX}{id}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rulekeep::proof::OpenVerification;
    use rulekeep::system::Clock;
    use rulekeep::{Durability, Intent, RiskLevel};

    fn draft(scope: Scope) -> KeyDraft {
        KeyDraft::new(scope, Plan::Pro)
    }

    #[test]
    fn a_full_table_forgets_expired_keys_and_admits_administrators() {
        let governor = Governor::builder().open_in_memory().unwrap();
        let restored = || Keys::restored(&governor, Time(Extension::of(&governor).clock())).unwrap();
        let keys = Keys { most: 2, ..restored() };
        let [old, other] = [Scope::Agent, Scope::Agent].map(|scope| keys.create(&governor, draft(scope)).unwrap());
        let full = keys.create(&governor, draft(Scope::Agent)).unwrap_err();
        assert_eq!(full.code(), "CONFLICT");
        assert!(keys.ensure_admin(&governor, draft(Scope::Admin)).unwrap().is_some(), "nobody can get in");
        for gone in [&old, &other] {
            keys.revoke(&governor, gone.info.id).unwrap();
        }
        let made = keys.create(&governor, draft(Scope::Agent)).unwrap();
        // Both may have been created in the same millisecond, and then either counts as the oldest.
        let stayed = [&old, &other].into_iter().filter(|gone| keys.find(&gone.key).is_some()).count();
        assert!(stayed == 1 && keys.find(&made.key).is_some(), "{stayed}");
        assert_eq!(restored().list(), keys.list(), "a restart knows others");
    }

    #[derive(Clone, Default)]
    struct Hand(Arc<AtomicI64>);

    impl Clock for Hand {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(self.0.load(Ordering::SeqCst))
        }
    }

    #[test]
    fn a_key_seen_expired_stays_so_whatever_the_clock_does() {
        let hand = Hand::default();
        let governor = Governor::builder().clock(hand.clone()).open_in_memory().unwrap();
        let restored = || Keys::restored(&governor, Time(Extension::of(&governor).clock())).unwrap();
        let keys = restored();
        let [used, unused] = [(); 2]
            .map(|()| keys.create(&governor, draft(Scope::Agent).expires_at(Timestamp::from_millis(1000))).unwrap());
        let refused = |keys: &Keys, made: &NewKey| {
            let now = Extension::of(&governor).clock().now();
            keys.refusal(&governor, &keys.find(&made.key).unwrap(), now).is_some()
        };
        assert!(!refused(&keys, &used));
        hand.0.store(2000, Ordering::SeqCst);
        assert!(refused(&keys, &used));
        // A key that nobody has used expires too, before the clock steps back.
        keys.expire(&governor);
        hand.0.store(0, Ordering::SeqCst);
        governor.log().accept_clock("ann", "").unwrap();
        assert!(Extension::of(&governor).clock().now().as_millis() < 1000);
        for known in [&keys, &restored()] {
            assert!(refused(known, &used) && refused(known, &unused));
            assert!(known.list().iter().all(|key| key.state == super::super::key::KeyState::Expired));
        }
    }

    #[test]
    fn an_expiry_is_recorded_once_the_log_is_verified() {
        let (hand, dir) = (Hand::default(), tempfile::tempdir().unwrap());
        let open = || {
            let builder = Governor::builder().auto_register().clock(hand.clone()).durability(Durability::Buffered);
            builder.verification(OpenVerification::Behind).open(dir.path()).unwrap()
        };
        let governor = open();
        let time = Time(Extension::of(&governor).clock());
        let expiring = draft(Scope::Agent).expires_at(Timestamp::from_millis(1000));
        Keys::restored(&governor, time).unwrap().create(&governor, expiring).unwrap();
        let reads = Intent::new("a", "read_document", RiskLevel::Low, ["document:read"]).unwrap();
        for _ in 0..500 {
            governor.enforce(&reads).unwrap();
        }
        governor.close().unwrap();
        drop(governor);
        hand.0.store(2000, Ordering::SeqCst);
        let governor = open();
        let _gateway = super::super::Gateway::new(&governor).unwrap();
        let is_recorded = || Extension::of(&governor).states(&[KEY_PREFIX])[0].1.contains("\"expired\":true");
        while !is_recorded() {
            std::thread::yield_now();
        }
        assert_eq!(governor.log().verification(), VerificationState::Verified);
    }
}
