//! A member's side of the conversation with the hubs, apart from network and governor.
//!
//! [`Session::beat`] makes the next beat; [`Session::answered`] verifies the answer and returns what the governor has to
//! do, in this order: orders first, the permit last, so that a permit never comes before the orders that it rests on.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rulekeep::proof::Digest;
use rulekeep::system::Timestamp;

use crate::order::{Chain, Stop};
use crate::permit::{Deadlines, Moment, PermitHolder, PermitTerms};
use crate::wire::{Answer, Beat};

/// A step that an answer makes a governor take.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Task {
    /// Set the kill switch of an order.
    Stop(u64, Stop),
    /// Lift the kill switch of an order.
    Lift(u64),
    /// Enforce the document of a `policies` order.
    Enforce(u64),
    /// Evaluate the document of a `policies` order beside the one in force; `None` ends that.
    Shadow(Option<u64>),
    /// Refuse these API keys.
    Revoke(BTreeSet<String>),
    /// Give these leases back.
    Recall(Vec<u64>),
    /// Decide until these moments.
    Permit(Deadlines),
    /// Stop deciding: the hub refuses a permit, for this reason.
    Refused(String),
}

/// A member's state between beats.
#[derive(Debug, Clone)]
pub struct Session {
    governor: String,
    boot: String,
    groups: Vec<String>,
    chain: Chain,
    /// The order that was in force in an earlier run; less is not accepted.
    least: (u64, Digest),
    nonce: Option<String>,
    permit: PermitHolder,
    stages: BTreeMap<u64, usize>,
    stops: BTreeSet<u64>,
    enforced: Option<u64>,
    shadowed: Option<u64>,
    revoked: BTreeSet<String>,
    refused: BTreeMap<u64, String>,
    offline_at_most: Duration,
    latest: Timestamp,
    /// The moment since which the document in force is not that of the orders.
    behind_since: Option<Moment>,
    /// The time that hubs took for the last beats.
    slow: Duration,
    anchored: u64,
    copied: u64,
    head: u64,
    report: Option<u64>,
    show: bool,
}

impl Session {
    /// Begins a run of a governor in the groups that it enrolled in. `least` is the order in force in its last run, and
    /// `stops` are the orders whose kill switches are set. The governor decides on LOW-risk reads without a permit for at
    /// most `offline_at_most`.
    pub fn new(
        governor: &str,
        boot: &str,
        groups: Vec<String>,
        chain: Chain,
        least: (u64, Digest),
        stops: BTreeSet<u64>,
        offline_at_most: Duration,
    ) -> Self {
        Self {
            governor: governor.to_owned(),
            boot: boot.to_owned(),
            groups,
            chain,
            least,
            nonce: None,
            permit: PermitHolder::default(),
            stages: BTreeMap::new(),
            stops,
            enforced: None,
            shadowed: None,
            revoked: BTreeSet::new(),
            refused: BTreeMap::new(),
            offline_at_most,
            latest: Timestamp::from_millis(0),
            behind_since: None,
            slow: Duration::ZERO,
            anchored: 0,
            copied: 0,
            head: 0,
            report: None,
            show: false,
        }
    }

    /// The next beat, and its number, under which the answer comes back.
    pub fn beat(&mut self, now: Moment, wait: Duration) -> (u64, Beat) {
        let number = self.permit.sending(now.boot, now.wall_ms);
        let beat = Beat {
            governor: self.governor.clone(),
            boot: self.boot.clone(),
            number,
            nonce: self.nonce.clone(),
            order: self.chain.seq(),
            head: self.chain.head(),
            refused: self.refused.clone(),
            open: 0,
            log: None,
            anchor: None,
            wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            returned: Vec::new(),
            report: None,
            is_leaving: false,
            at: Timestamp::from_millis(now.wall_ms),
        };
        (number, beat)
    }

    /// Takes the answer to a beat.
    pub fn answered(&mut self, number: u64, answer: &Answer, now: Timestamp) -> Vec<Task> {
        if !answer.nonce.is_empty() {
            self.nonce = Some(answer.nonce.clone());
        }
        for signed in &answer.orders {
            // Orders that it has already may come again.
            if signed.read().is_ok_and(|order| order.seq <= self.chain.seq()) {
                continue;
            }
            // Checked before it is added: the next answer must not rest on it either.
            let seq = self.chain.seq() + 1;
            let is_other = seq == self.least.0 && signed.digest() != self.least.1;
            let added = if is_other {
                Err(format!("order {seq} is another than the one that was in force"))
            } else {
                self.chain.add(signed).map(drop).map_err(|error| error.to_string())
            };
            if let Err(why) = added {
                self.permit.refused();
                return vec![Task::Refused(format!("a hub sent a false order: {why}"))];
            }
        }
        // A stage does not go back.
        for (order, stage) in &answer.stages {
            let reached = self.stages.entry(*order).or_default();
            *reached = (*reached).max(*stage);
        }
        (self.anchored, self.copied, self.head) = (answer.anchored, answer.copied, answer.head);
        (self.report, self.show) = (answer.report, answer.show);
        let mut tasks = self.follow_orders(now);
        if !answer.recall.is_empty() {
            tasks.push(Task::Recall(answer.recall.clone()));
        }
        match (answer.permit, &answer.refused) {
            (_, Some(why)) => {
                self.permit.refused();
                tasks.push(Task::Refused(why.clone()));
            }
            // A hub that has forgotten orders must not let the governor decide without them.
            (Some(term), None) if self.chain.seq() >= self.least.0 => {
                // At most what the operators have signed.
                let offline = self.chain.offline_for(&self.groups).min(self.offline_at_most);
                let terms = PermitTerms {
                    term: Duration::from_millis(term.term_ms).min(self.term()),
                    offline: Duration::from_millis(term.offline_ms).min(offline),
                };
                tasks.extend(self.permit.granted(number, terms).map(Task::Permit));
            }
            _ => {}
        }
        tasks
    }

    /// The tasks that bring the governor from what it does to what the orders say.
    fn follow_orders(&mut self, now: Timestamp) -> Vec<Task> {
        let mut tasks = Vec::new();
        // What could not be done is tried again.
        self.refused.clear();
        // A stage does not go back with the clock.
        self.latest = self.latest.max(now);
        let now = self.latest;
        let wanted = self.chain.stops_for(&self.groups);
        for (seq, stop) in wanted.iter().filter(|(seq, _)| !self.stops.contains(seq)) {
            tasks.push(Task::Stop(*seq, (*stop).clone()));
        }
        // Before all orders are known, nothing is known to be lifted.
        let is_lifted = |seq: &&u64| self.chain.seq() >= self.least.0 && !self.chain.stops().contains_key(seq);
        let lifted = self.stops.iter().filter(is_lifted);
        tasks.extend(lifted.map(|seq| Task::Lift(*seq)));
        let (enforced, shadowed) = self.chain.policies_for(&self.governor, &self.groups, &self.stages, now);
        match enforced.filter(|order| Some(*order) != self.enforced) {
            Some(order) => tasks.push(Task::Enforce(order)),
            None => self.behind_since = None,
        }
        if shadowed != self.shadowed {
            tasks.push(Task::Shadow(shadowed));
        }
        let revoked: BTreeSet<String> = self.chain.revoked_keys().difference(&self.revoked).cloned().collect();
        if !revoked.is_empty() {
            tasks.push(Task::Revoke(revoked));
        }
        tasks
    }

    /// Notes at a moment that a task is done, or why it could not be done. Then it is tried again with the next answer.
    pub fn done(&mut self, task: &Task, result: Result<(), String>, now: Moment) {
        if let Err(why) = result {
            if let Task::Enforce(_) = task {
                self.behind_since = self.behind_since.or(Some(now));
            }
            if let Task::Stop(order, _) | Task::Lift(order) | Task::Enforce(order) | Task::Shadow(Some(order)) = task {
                self.refused.insert(*order, why);
            }
            return;
        }
        match task {
            Task::Stop(order, _) => _ = self.stops.insert(*order),
            Task::Lift(order) => _ = self.stops.remove(order),
            Task::Enforce(order) => (self.enforced, self.behind_since) = (Some(*order), None),
            Task::Shadow(order) => self.shadowed = *order,
            Task::Revoke(keys) => self.revoked.extend(keys.iter().cloned()),
            Task::Recall(_) | Task::Permit(_) | Task::Refused(_) => {}
        }
    }

    /// Returns why a permit must not be used at a moment: a kill switch is not set, or the document of the orders is not in
    /// force for more than a term.
    pub fn withheld(&self, now: Moment) -> Option<String> {
        let is_unset = |order: &u64| self.chain.stops().contains_key(order) && !self.stops.contains(order);
        if let Some((order, why)) = self.refused.iter().find(|(order, _)| is_unset(order)) {
            return Some(format!("the kill switch of order {order} cannot be set: {why}"));
        }
        let is_late = self.behind_since.is_some_and(|since| now.has_reached(since.after(self.term())));
        let (order, why) = self.refused.last_key_value().filter(|_| is_late)?;
        Some(format!("order {order} is not in force for more than a term: {why}"))
    }

    /// The time for which a hub may hold the next beat open, at most `most`, and the time that its answer may take besides.
    /// A hub that hangs costs less than two thirds of what the permit has left; another one is asked then. A hub that is slow
    /// gets twice the time that it took before, as far as that goes.
    pub fn patience(&self, now: Moment, most: Duration) -> (Duration, Duration) {
        let left =
            self.permit.deadlines().filter(|held| held.allows(now)).map(|held| held.until.saturating_sub(now.boot));
        left.map_or((Duration::ZERO, LONGEST_CALL), |left| {
            let both = left * 7 / 12;
            let call = (left / 4).max(self.slow * 2).min(both).clamp(SHORTEST_CALL, LONGEST_CALL);
            (most.min(left / 3).min(both.saturating_sub(call)), call)
        })
    }

    /// Notes the time that a beat took, besides that for which the hub could hold it open.
    pub fn took(&mut self, time: Duration) {
        self.slow = time.max(self.slow / 2);
    }

    /// The groups that the governor is in.
    pub fn groups(&self) -> &[String] {
        &self.groups
    }

    /// The orders that are in force.
    pub const fn chain(&self) -> &Chain {
        &self.chain
    }

    /// The `policies` orders that are enforced and shadowed.
    pub const fn policies(&self) -> (Option<u64>, Option<u64>) {
        (self.enforced, self.shadowed)
    }

    /// The term of a permit, as the operators have signed it.
    fn term(&self) -> Duration {
        Duration::from_secs(self.chain.organisation().map_or(0, |organisation| organisation.permit_seconds))
    }

    /// The number of entries that the newest anchored checkpoint covers.
    pub const fn anchored(&self) -> u64 {
        self.anchored
    }

    /// The number of entries whose records are copied where they are wanted.
    pub const fn copied(&self) -> u64 {
        self.copied
    }

    /// The number of entries that the last beat of an earlier run named, where that is more than is anchored.
    pub fn continues(&self) -> Option<u64> {
        Some(self.head).filter(|head| self.show && *head > self.anchored)
    }

    /// Returns whether the run is known to the hub, and so is its log.
    pub const fn is_shown(&self) -> bool {
        self.nonce.is_some() && !self.show
    }

    /// Returns whether the next beat must carry a checkpoint.
    pub const fn must_show(&self) -> bool {
        self.show
    }

    /// The epoch for which the next beat must report all parts of shared limits.
    pub const fn must_report(&self) -> Option<u64> {
        self.report
    }
}

/// The longest and the shortest time that an answer may take, besides the time for which a hub holds a beat open.
const LONGEST_CALL: Duration = Duration::from_secs(5);
const SHORTEST_CALL: Duration = Duration::from_millis(250);
