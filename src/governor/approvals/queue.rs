//! The escalations of a governor: open ones in full, and the log positions of the others.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use crate::governor::Hold as _;
use crate::model::{AgentId, EscalationId, EscalationRecord, EscalationState, ProofId, Sequence, Timestamp};

/// All escalations.
#[derive(Default)]
pub(crate) struct Queue {
    // Held to look up or change an entry, also while the writer's queue is locked; no other lock is acquired meanwhile.
    maps: Mutex<Maps>,
    // Held during the repair after a crash, before any escalation's or agent's lock, so that an answered escalation is
    // not answered again.
    pub(super) unmended: Mutex<Option<Unmended>>,
}

/// State that a crash may have left incomplete.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unmended {
    /// The log's last entries, if they are a resolving record and the record that opened the escalation.
    pub(super) last_answer: Option<(ProofId, ProofId)>,
}

#[derive(Default)]
struct Maps {
    /// Ordered by the position of the record that opened each, which is the order of opening.
    all: BTreeMap<Asked, Listed>,
    /// The same keys by state and by agent, for pages.
    by_state: HashMap<EscalationState, BTreeSet<Asked>>,
    by_agent: HashMap<AgentId, BTreeSet<Asked>>,
    /// Approved but unclaimed escalations, by the approving record.
    unclaimed: HashMap<ProofId, EscalationId>,
    open: HashMap<EscalationId, Arc<Open>>,
    by_expiry: BTreeSet<(Timestamp, EscalationId)>,
    pending: HashMap<AgentId, usize>,
    pending_in_all: usize,
}

/// The position of the record that opened an escalation, and the escalation's id. The id is needed because a repair
/// takes over escalations from another log, with positions of their own.
type Asked = (Sequence, EscalationId);

fn asked(id: EscalationId) -> Asked {
    (id.proof_id().sequence(), id)
}

/// The data kept in memory for every escalation.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    pub(super) id: EscalationId,
    pub(super) agent_id: AgentId,
    pub(super) state: EscalationState,
    /// The position of the log entry with its full state.
    pub(super) place: Sequence,
}

/// An open escalation: pending, or approved but unclaimed.
pub(super) struct Open {
    // Held during each change, so that of two answers one is first. Acquired before an agent's lock.
    standing: Mutex<EscalationRecord>,
    // Held to look up or change a waiter; never while external code runs.
    waiting: Mutex<Waiting>,
    ended: Condvar,
}

/// The tasks that wait for the escalation, each once.
#[derive(Default)]
struct Waiting {
    /// True if it is no longer pending. Kept apart from the record, whose lock is held while waiting for the disk.
    has_ended: bool,
    last: u64,
    wakers: BTreeMap<u64, Waker>,
}

impl Open {
    fn new(record: EscalationRecord) -> Arc<Self> {
        let waiting = Waiting { has_ended: record.state != EscalationState::Pending, ..Waiting::default() };
        Arc::new(Self { standing: Mutex::new(record), waiting: Mutex::new(waiting), ended: Condvar::new() })
    }

    /// Locks the record.
    pub(super) fn lock(&self) -> MutexGuard<'_, EscalationRecord> {
        // A record is changed only after the change is enqueued.
        self.standing.hold()
    }

    /// Notifies the waiters if the escalation has ended.
    pub(super) fn tell(&self) {
        let has_ended = self.lock().state != EscalationState::Pending;
        self.ended.notify_all();
        let mut waiting = self.waiting.hold();
        waiting.has_ended = has_ended;
        let wakers = std::mem::take(&mut waiting.wakers);
        drop(waiting);
        wakers.into_values().for_each(Waker::wake);
    }

    /// Waits up to `time` while it is pending.
    pub(super) fn wait(&self, time: Duration) -> EscalationState {
        let standing = self.lock();
        let is_pending = |record: &mut EscalationRecord| record.state == EscalationState::Pending;
        let (standing, _) =
            self.ended.wait_timeout_while(standing, time, is_pending).unwrap_or_else(PoisonError::into_inner);
        standing.state
    }

    /// Registers `waker`, to be woken when the escalation ends, in place of the earlier one of `place`; returns `false`
    /// if it has ended. Never blocks.
    pub(super) fn wake(&self, place: &mut Option<u64>, waker: &Waker) -> bool {
        let waker = waker.clone();
        let mut waiting = self.waiting.hold();
        let place = *place.get_or_insert_with(|| {
            waiting.last += 1;
            waiting.last
        });
        let before = waiting.wakers.insert(place, waker);
        let has_ended = waiting.has_ended;
        drop(waiting);
        drop(before);
        !has_ended
    }

    /// Removes a waker.
    pub(super) fn forget(&self, place: u64) {
        let gone = self.waiting.hold().wakers.remove(&place);
        drop(gone);
    }

    /// Number of waiting tasks.
    #[cfg(test)]
    pub(super) fn awaited_by(&self) -> usize {
        self.waiting.hold().wakers.len()
    }
}

impl Queue {
    /// Adds an escalation in its current state.
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

    /// Updates the tables after a change.
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

    /// Returns whether an escalation awaits a reviewer.
    pub(crate) fn is_pending(&self, id: EscalationId) -> bool {
        self.open(id).is_some_and(|open| open.lock().state == EscalationState::Pending)
    }

    /// The reason an agent cannot open further escalations, if any. Under a task, the task's own limit applies.
    pub(super) fn is_full_for(&self, agent: &AgentId, is_under_task: bool) -> Option<String> {
        let maps = self.lock();
        if !is_under_task && maps.pending.get(agent).is_some_and(|count| *count >= MOST_PENDING_OF_ONE) {
            return Some(format!("{MOST_PENDING_OF_ONE} of its escalations are pending"));
        }
        (maps.pending_in_all >= MOST_PENDING).then(|| format!("{MOST_PENDING} escalations are pending"))
    }

    /// Number of pending escalations.
    pub(crate) fn pending(&self) -> usize {
        self.lock().pending_in_all
    }

    pub(super) fn open(&self, id: EscalationId) -> Option<Arc<Open>> {
        self.lock().open.get(&id).cloned()
    }

    pub(super) fn listed(&self, id: EscalationId) -> Option<Listed> {
        self.lock().all.get(&asked(id)).cloned()
    }

    /// The escalation that a record approves, if it is unclaimed.
    pub(super) fn unclaimed(&self, approval: ProofId) -> Option<EscalationId> {
        self.lock().unclaimed.get(&approval).copied()
    }

    /// All open escalations, oldest first.
    pub(super) fn all_open(&self) -> Vec<Arc<Open>> {
        let mut open: Vec<_> = self.lock().open.iter().map(|(id, open)| (*id, Arc::clone(open))).collect();
        open.sort_unstable_by_key(|(id, _)| id.proof_id().sequence());
        open.into_iter().map(|(_, open)| open).collect()
    }

    /// The escalations that have expired at `now`.
    pub(super) fn due(&self, now: Timestamp) -> Vec<Arc<Open>> {
        let maps = self.lock();
        let due = maps.by_expiry.iter().take_while(|(at, _)| *at <= now);
        due.filter_map(|(_, id)| maps.open.get(id).cloned()).collect()
    }

    /// Number of matches, and one page of them, newest first. The lock is released from time to time for other callers.
    pub(super) fn page(
        &self,
        state: Option<EscalationState>,
        agent: Option<&AgentId>,
        skip: u64,
        take: u64,
    ) -> (u64, Vec<Listed>) {
        let (mut seen, mut page, mut before) = (0, Vec::new(), None);
        loop {
            let maps = self.lock();
            let (in_all, places) = maps.places(state, agent, before);
            let mut looked_at = 0;
            for listed in places.take(AT_ONCE).filter_map(|place| maps.all.get(place)) {
                looked_at += 1;
                before = Some(asked(listed.id));
                if agent.is_none() || state.is_none_or(|state| state == listed.state) {
                    if (skip..skip.saturating_add(take)).contains(&seen) {
                        page.push(listed.clone());
                    }
                    seen += 1;
                }
            }
            match in_all {
                Some(total) if looked_at < AT_ONCE || page.len() as u64 == take => return (total, page),
                None if looked_at < AT_ONCE => return (seen, page),
                _ => {}
            }
        }
    }

    /// Removes ended escalations whose last entry is before this position.
    pub(crate) fn forget_before(&self, first: u64) {
        let (mut from, end) = (Bound::Unbounded, Sequence::new(first));
        // Checks all of them, because the entry of one taken over by a repair is not where the escalation was opened.
        loop {
            let mut maps = self.lock();
            let (mut last, mut gone) = (None, Vec::new());
            for (asked, listed) in maps.all.range((from, Bound::Unbounded)).take(AT_ONCE) {
                last = Some(*asked);
                if listed.place < end {
                    gone.push(listed.clone());
                }
            }
            let Some(last) = last else { break };
            from = Bound::Excluded(last);
            for listed in &gone {
                maps.forget(listed);
            }
        }
        self.lock().unclaimed.retain(|approval, _| approval.sequence() >= end);
    }

    fn lock(&self) -> MutexGuard<'_, Maps> {
        // No code between two related changes can panic.
        self.maps.hold()
    }
}

impl Maps {
    fn note(&mut self, record: &EscalationRecord) {
        let id = record.id();
        let asked = asked(id);
        let listed = Listed { id, agent_id: record.agent_id.clone(), state: record.state, place: record.place };
        if let Some(before) = self.all.insert(asked, listed) {
            self.by_state.entry(before.state).or_default().remove(&asked);
        } else {
            self.by_agent.entry(record.agent_id.clone()).or_default().insert(asked);
        }
        self.by_state.entry(record.state).or_default().insert(asked);
        if let Some(approval) = record.resolution.filter(|_| record.grant.is_some()) {
            match record.claimed_at {
                None => _ = self.unclaimed.insert(approval, id),
                Some(_) => _ = self.unclaimed.remove(&approval),
            }
        }
    }

    fn forget(&mut self, listed: &Listed) {
        if self.open.contains_key(&listed.id) {
            return;
        }
        let asked = asked(listed.id);
        self.all.remove(&asked);
        self.by_state.entry(listed.state).or_default().remove(&asked);
        if let Some(theirs) = self.by_agent.get_mut(&listed.agent_id) {
            theirs.remove(&asked);
            if theirs.is_empty() {
                self.by_agent.remove(&listed.agent_id);
            }
        }
    }

    /// The keys of the escalations before one, in a state or of an agent, newest first; and their total, unless each
    /// must be checked.
    fn places(
        &self,
        state: Option<EscalationState>,
        agent: Option<&AgentId>,
        before: Option<Asked>,
    ) -> (Option<u64>, Box<dyn Iterator<Item = &Asked> + '_>) {
        let range = (Bound::Unbounded, before.map_or(Bound::Unbounded, Bound::Excluded));
        let found = match (agent, state) {
            (None, None) => {
                let places = self.all.range(range).rev().map(|(place, _)| place);
                return (Some(self.all.len() as u64), Box::new(places));
            }
            (None, Some(state)) => self.by_state.get(&state),
            (Some(agent), _) => self.by_agent.get(agent),
        };
        let Some(found) = found else { return (Some(0), Box::new(std::iter::empty())) };
        let is_total = agent.is_none() || state.is_none();
        (is_total.then_some(found.len() as u64), Box::new(found.range(range).rev()))
    }
}

/// Returns whether the escalation is pending or can still be claimed.
pub(super) fn is_open(record: &EscalationRecord) -> bool {
    match record.state {
        EscalationState::Pending => true,
        EscalationState::Approved => record.claimed_at.is_none(),
        EscalationState::Rejected | EscalationState::Expired => false,
    }
}

/// Maximum number of pending escalations of one agent.
const MOST_PENDING_OF_ONE: usize = 100;
/// Maximum number of pending escalations of all agents.
const MOST_PENDING: usize = 10_000;
/// Number of entries checked before the lock is released for other callers.
const AT_ONCE: usize = 1024;
