//! The escalations of a governor: those that are open, whole; of those that ended, where to read them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use crate::model::{AgentId, EscalationId, EscalationRecord, EscalationState, Sequence, Timestamp};

/// All escalations.
#[derive(Default)]
pub(in crate::governor) struct Queue {
    // Held to look up or change an entry, also under the intake's lock; nothing else is taken meanwhile.
    maps: Mutex<Maps>,
}

#[derive(Default)]
struct Maps {
    /// By the place of the record that asks, which is the order in which they were asked.
    all: BTreeMap<Sequence, Listed>,
    open: HashMap<EscalationId, Arc<Open>>,
    by_expiry: BTreeSet<(Timestamp, EscalationId)>,
    pending: HashMap<AgentId, usize>,
    pending_in_all: usize,
}

/// What is kept in memory of every escalation.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    pub(super) id: EscalationId,
    pub(super) agent_id: AgentId,
    pub(super) state: EscalationState,
    /// The entry that has it whole.
    pub(super) place: Sequence,
}

/// One that waits for a person, or was approved and not taken up.
pub(super) struct Open {
    // Held over every step of it, so that of two who answer one is first. Taken before an agent's lock.
    standing: Mutex<EscalationRecord>,
    // Held to look up or change one; never while others' code runs.
    waiting: Mutex<Waiting>,
    ended: Condvar,
}

/// Who awaits it, each once.
#[derive(Default)]
struct Waiting {
    last: u64,
    wakers: BTreeMap<u64, Waker>,
}

impl Open {
    fn new(record: EscalationRecord) -> Arc<Self> {
        Arc::new(Self { standing: Mutex::new(record), waiting: Mutex::default(), ended: Condvar::new() })
    }

    /// Holds it still.
    pub(super) fn lock(&self) -> MutexGuard<'_, EscalationRecord> {
        // A record is changed only once what changes it is in order.
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells who waits that it may have ended.
    pub(super) fn tell(&self) {
        self.ended.notify_all();
        let wakers = std::mem::take(&mut self.waiting().wakers);
        wakers.into_values().for_each(Waker::wake);
    }

    /// Waits while it is pending, for so long at the most.
    pub(super) fn wait(&self, time: Duration) -> EscalationState {
        let standing = self.lock();
        let is_pending = |record: &mut EscalationRecord| record.state == EscalationState::Pending;
        let (standing, _) =
            self.ended.wait_timeout_while(standing, time, is_pending).unwrap_or_else(PoisonError::into_inner);
        standing.state
    }

    /// Has `waker` woken when it ends, in place of the one that was given for `place` before; false where it has.
    pub(super) fn wake(&self, place: &mut Option<u64>, waker: &Waker) -> bool {
        // The state is looked at behind it, so that no end falls between.
        let waker = waker.clone();
        let mut waiting = self.waiting();
        let place = *place.get_or_insert_with(|| {
            waiting.last += 1;
            waiting.last
        });
        let before = waiting.wakers.insert(place, waker);
        drop(waiting);
        drop(before);
        self.lock().state == EscalationState::Pending
    }

    /// Nobody awaits it there any more.
    pub(super) fn forget(&self, place: u64) {
        let gone = self.waiting().wakers.remove(&place);
        drop(gone);
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many await it.
    #[cfg(test)]
    pub(super) fn awaited_by(&self) -> usize {
        self.waiting().wakers.len()
    }
}

impl Queue {
    /// Takes one in, as it stands.
    pub(super) fn add(&self, record: EscalationRecord) -> Arc<Open> {
        let mut maps = self.lock();
        let id = record.id();
        maps.note(&record);
        let is_open = is_open(&record);
        if is_open {
            maps.by_expiry.insert((record.expires_at, id));
        }
        if record.state == EscalationState::Pending {
            *maps.pending.entry(record.agent_id.clone()).or_default() += 1;
            maps.pending_in_all += 1;
        }
        let open = Open::new(record);
        if is_open {
            maps.open.insert(id, Arc::clone(&open));
        }
        open
    }

    /// Notes what became of one.
    pub(super) fn changed(&self, before: EscalationState, record: &EscalationRecord) {
        let mut maps = self.lock();
        let id = record.id();
        maps.note(record);
        if before == EscalationState::Pending && record.state != EscalationState::Pending {
            maps.pending_in_all -= 1;
            if let Some(count) = maps.pending.get_mut(&record.agent_id) {
                *count -= 1;
                if *count == 0 {
                    maps.pending.remove(&record.agent_id);
                }
            }
        }
        if !is_open(record) {
            maps.open.remove(&id);
            maps.by_expiry.remove(&(record.expires_at, id));
        }
    }

    /// Why an agent can ask for nothing more, if so.
    pub(super) fn is_full_for(&self, agent: &AgentId) -> Option<String> {
        let maps = self.lock();
        if maps.pending.get(agent).is_some_and(|count| *count >= MOST_PENDING_OF_ONE) {
            return Some(format!("{MOST_PENDING_OF_ONE} of its requests wait for a person"));
        }
        (maps.pending_in_all >= MOST_PENDING).then(|| format!("{MOST_PENDING} requests wait for a person"))
    }

    /// How many wait for a person.
    pub(in crate::governor) fn pending(&self) -> usize {
        self.lock().pending_in_all
    }

    pub(super) fn open(&self, id: EscalationId) -> Option<Arc<Open>> {
        self.lock().open.get(&id).cloned()
    }

    pub(super) fn listed(&self, id: EscalationId) -> Option<Listed> {
        self.lock().all.get(&id.proof_id().sequence()).filter(|listed| listed.id == id).cloned()
    }

    /// All that are open, the oldest first.
    pub(super) fn all_open(&self) -> Vec<Arc<Open>> {
        let maps = self.lock();
        let mut open: Vec<_> = maps.open.iter().collect();
        open.sort_unstable_by_key(|(id, _)| id.proof_id().sequence());
        open.into_iter().map(|(_, open)| Arc::clone(open)).collect()
    }

    /// Those that expire at `now` or before.
    pub(super) fn due(&self, now: Timestamp) -> Vec<Arc<Open>> {
        let maps = self.lock();
        let due = maps.by_expiry.iter().take_while(|(at, _)| *at <= now);
        due.filter_map(|(_, id)| maps.open.get(id).cloned()).collect()
    }

    /// How many match, and those of a page, the newest first.
    pub(super) fn page(&self, matches: impl Fn(&Listed) -> bool, skip: u64, take: u64) -> (u64, Vec<Listed>) {
        let maps = self.lock();
        let (mut total, mut page) = (0, Vec::new());
        for listed in maps.all.values().rev().filter(|listed| matches(listed)) {
            if (skip..skip.saturating_add(take)).contains(&total) {
                page.push(listed.clone());
            }
            total += 1;
        }
        (total, page)
    }

    /// Forgets those that ended and whose last entry is before that place.
    pub(in crate::governor) fn forget_before(&self, first: u64) {
        let mut maps = self.lock();
        let Maps { all, open, .. } = &mut *maps;
        all.retain(|_, listed| listed.place.get() >= first || open.contains_key(&listed.id));
    }

    fn lock(&self) -> MutexGuard<'_, Maps> {
        // Nothing that can panic happens between two changes that belong together.
        self.maps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Maps {
    fn note(&mut self, record: &EscalationRecord) {
        let id = record.id();
        let listed = Listed { id, agent_id: record.agent_id.clone(), state: record.state, place: record.place };
        self.all.insert(id.proof_id().sequence(), listed);
    }
}

/// Whether anything can still become of it.
pub(super) fn is_open(record: &EscalationRecord) -> bool {
    match record.state {
        EscalationState::Pending => true,
        EscalationState::Approved => record.claimed_at.is_none(),
        EscalationState::Rejected | EscalationState::Expired => false,
    }
}

/// What one agent may have waiting: an agent that asks for more is not waiting for people any more.
const MOST_PENDING_OF_ONE: usize = 100;
/// What all agents may have waiting.
const MOST_PENDING: usize = 10_000;
