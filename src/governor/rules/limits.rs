//! Counters of the policies' rate limits, exact under concurrency, and rebuilt from the journal when a store is opened.
//!
//! A decision that meets a limit holds the counters while it checks the limit, is enqueued and records its use, so two
//! decisions never share the same remaining capacity. Decisions without limits do not use the counters.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard};

use crate::governor::Hold as _;
use crate::governor::rules::shared_limits::Taking;
use crate::model::{Sequence, Timestamp, is_grant_counter, is_shared_counter};
use crate::policy::{Charge, Meter, Used};
use crate::proof::UsedLimit;

/// The counters of all limits.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    // Held for one decision that meets a limit; acquired after the agent's lock and before the log's.
    pub(crate) state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    by_counter: HashMap<Box<str>, Counter>,
    /// The counters that a record used, to return its uses.
    by_record: HashMap<Sequence, Vec<Box<str>>>,
}

/// A counter: the uses within its window.
#[derive(Debug, Default)]
struct Counter {
    /// Oldest first.
    uses: VecDeque<Use>,
    // INVARIANT: the sum over `uses`.
    total: i64,
}

#[derive(Debug, Clone, Copy)]
struct Use {
    at: Timestamp,
    record: Sequence,
    amount: i64,
}

impl Counters {
    /// Rebuilds the counters from the journal.
    pub(crate) fn restored(used: Vec<UsedLimit>) -> Self {
        let mut state = State::default();
        for UsedLimit { record, at, charges } in used {
            for (counter, amount) in charges.into_iter().filter(|(counter, _)| !is_shared_counter(counter)) {
                state.add(&counter, Use { at, record, amount });
            }
        }
        Self { state: Mutex::new(state) }
    }

    /// The counters for a decision at `now`. Limits of the organisation look unused, unless `taking` found them to have
    /// no room.
    pub(crate) fn meter<'a>(&'a self, now: Timestamp, taking: &'a Taking<'a>) -> LimitMeter<'a> {
        LimitMeter { taking: Some(taking), ..self.local_meter(now) }
    }

    /// The counters at `now` for what shares no limit with the organisation.
    pub(crate) fn local_meter(&self, now: Timestamp) -> LimitMeter<'_> {
        LimitMeter { counters: self, state: None, now, keeps: false, taking: None }
    }

    /// The counters for a preview, which leaves them unchanged. Limits of the organisation look unused.
    pub(crate) fn window(&self, now: Timestamp) -> LimitMeter<'_> {
        LimitMeter { keeps: true, ..self.local_meter(now) }
    }

    /// Returns what a decision used of rate limits, because its action failed; uses of a pre-approval stay consumed.
    pub(crate) fn give_back(&self, record: Sequence) {
        let mut state = self.lock();
        let used = state.by_record.remove(&record).unwrap_or_default();
        let (kept, given): (Vec<_>, Vec<_>) = used.into_iter().partition(|counter| is_grant_counter(counter));
        if !kept.is_empty() {
            state.by_record.insert(record, kept);
        }
        for counter in given {
            if let Some(counter) = state.by_counter.get_mut(&counter) {
                counter.remove(record);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The sums are consistent before any point that can panic.
        self.state.hold()
    }
}

/// The counters, held from the first check to the end of the decision.
pub(crate) struct LimitMeter<'a> {
    counters: &'a Counters,
    state: Option<MutexGuard<'a, State>>,
    now: Timestamp,
    /// True if uses outside the window are kept.
    keeps: bool,
    /// The uses of the organisation's limits that the decision takes; `None` for a preview.
    taking: Option<&'a Taking<'a>>,
}

impl LimitMeter<'_> {
    /// Locks the counters until the meter is dropped.
    pub(crate) fn hold(&mut self) {
        self.state.get_or_insert_with(|| self.counters.lock());
    }

    /// Records what a decision uses.
    pub(crate) fn reserve(&mut self, charges: &[Charge], record: Sequence, at: Timestamp) {
        for charge in charges.iter().filter(|charge| charge.share.is_none()) {
            let state = self.state.get_or_insert_with(|| self.counters.lock());
            state.add(&charge.counter, Use { at, record, amount: charge.amount });
        }
    }
}

impl Meter for LimitMeter<'_> {
    fn used(&mut self, charge: &Charge) -> Used {
        if charge.share.is_some() {
            // Only the organisation knows what is used.
            let is_full = self.taking.is_some_and(|taking| taking.is_short(&charge.counter));
            return Used { amount: if is_full { charge.most } else { 0 }, frees_at: None, is_full };
        }
        let state = self.state.get_or_insert_with(|| self.counters.lock());
        if self.keeps { state.look(charge, self.now) } else { state.used(charge, self.now) }
    }
}

impl State {
    /// Forgets all uses except those of pre-approvals, which count from `at`.
    pub(crate) fn restart(&mut self, at: Timestamp) {
        let Self { by_counter, by_record } = self;
        by_counter.retain(|name, _| is_grant_counter(name));
        for used in by_counter.values_mut().flat_map(|counter| &mut counter.uses) {
            used.at = at;
        }
        by_record.retain(|_, counters| {
            counters.retain(|name| is_grant_counter(name));
            !counters.is_empty()
        });
    }

    fn add(&mut self, counter: &str, used: Use) {
        if !self.by_counter.contains_key(counter) {
            self.by_counter.insert(counter.into(), Counter::default());
        }
        if let Some(known) = self.by_counter.get_mut(counter) {
            // Ordered by record, so that a binary search finds it.
            let place = known.uses.iter().rposition(|other| other.record <= used.record).map_or(0, |last| last + 1);
            known.uses.insert(place, used);
            known.total = known.total.saturating_add(used.amount);
        }
        self.by_record.entry(used.record).or_default().push(counter.into());
    }

    /// The state of a counter, without changing it.
    fn look(&self, charge: &Charge, now: Timestamp) -> Used {
        let Some(counter) = self.by_counter.get(&charge.counter) else {
            return Used { amount: 0, frees_at: None, is_full: false };
        };
        let oldest = counter.oldest(charge, now);
        let mut within = counter.uses.iter().filter(|known| known.at.as_millis() > oldest).peekable();
        let frees_at =
            within.peek().map(|first| Timestamp::from_millis(first.at.as_millis().saturating_add(charge.window)));
        let amount = within.map(|known| known.amount).fold(0, i64::saturating_add);
        Used { amount, frees_at, is_full: counter.uses.len() >= MOST_USES }
    }

    fn used(&mut self, charge: &Charge, now: Timestamp) -> Used {
        let Self { by_counter, by_record } = self;
        let Some(counter) = by_counter.get_mut(&charge.counter) else {
            return Used { amount: 0, frees_at: None, is_full: false };
        };
        let oldest = counter.oldest(charge, now);
        while let Some(first) = counter.uses.front().copied().filter(|first| first.at.as_millis() <= oldest) {
            counter.uses.pop_front();
            counter.total -= first.amount;
            if let Some(counters) = by_record.get_mut(&first.record) {
                counters.retain(|name| *name != charge.counter);
                if counters.is_empty() {
                    by_record.remove(&first.record);
                }
            }
        }
        let frees_at = counter
            .uses
            .front()
            .map(|first| Timestamp::from_millis(first.at.as_millis().saturating_add(charge.window)));
        Used { amount: counter.total, frees_at, is_full: counter.uses.len() >= MOST_USES }
    }
}

impl Counter {
    /// Uses at or before this time have left the window. If the clock stepped back, time stands still, as in the log.
    fn oldest(&self, charge: &Charge, now: Timestamp) -> i64 {
        let now = self.uses.back().map_or(now, |last| now.max(last.at));
        now.as_millis().saturating_sub(charge.window)
    }

    fn remove(&mut self, record: Sequence) {
        let Ok(place) = self.uses.binary_search_by_key(&record, |known| known.record) else { return };
        if let Some(used) = self.uses.remove(place) {
            self.total -= used.amount;
        }
    }
}

/// Maximum number of uses per counter; a counter with more counts as exhausted.
const MOST_USES: usize = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn charge(counter: &str, amount: i64) -> Charge {
        Charge { counter: counter.into(), amount, most: 10, window: 1000, share: None }
    }

    fn used(counters: &Counters, now: i64) -> i64 {
        counters.local_meter(Timestamp::from_millis(now)).used(&charge("c", 0)).amount
    }

    #[test]
    fn uses_leave_with_the_window_and_failures_give_back() {
        let counters = Counters::default();
        for (record, at) in [(1, 0), (2, 500), (3, 900)] {
            counters.local_meter(Timestamp::from_millis(at)).reserve(
                &[charge("c", 2)],
                Sequence::new(record),
                Timestamp::from_millis(at),
            );
        }
        assert_eq!(used(&counters, 999), 6);
        assert_eq!(used(&counters, 1000), 4, "the first use is a window old");
        counters.give_back(Sequence::new(3));
        counters.give_back(Sequence::new(3));
        counters.give_back(Sequence::new(1));
        assert_eq!(used(&counters, 1000), 2);
        assert_eq!(used(&counters, 1500), 0);
        assert!(counters.lock().by_record.is_empty());
    }

    #[test]
    fn what_is_noted_out_of_order_is_given_back_all_the_same() {
        let counters = Counters::default();
        let at = Timestamp::from_millis(0);
        for record in [7, 3, 5, 9, 1] {
            counters.local_meter(at).reserve(&[charge("c", 2)], Sequence::new(record), at);
        }
        for (given_back, left) in [(3, 8), (9, 6), (7, 4), (1, 2), (5, 0)] {
            counters.give_back(Sequence::new(given_back));
            assert_eq!(used(&counters, 1), left, "{given_back}");
        }
        assert!(counters.lock().by_record.is_empty());
    }

    #[test]
    fn a_failure_gives_back_nothing_of_a_class_approval() {
        let counters = Counters::default();
        let grant = format!("grant/{}/count", crate::model::PreApprovalId::new(Timestamp::from_millis(0), 1));
        let at = Timestamp::from_millis(0);
        counters.local_meter(at).reserve(&[charge("c", 2), charge(&grant, 3)], Sequence::new(1), at);
        counters.give_back(Sequence::new(1));
        assert_eq!(used(&counters, 1), 0);
        assert_eq!(counters.local_meter(at).used(&charge(&grant, 0)).amount, 3);
        assert_eq!(counters.local_meter(Timestamp::from_millis(1000)).used(&charge(&grant, 0)).amount, 0);
        assert!(counters.lock().by_record.is_empty());
    }

    proptest::proptest! {
        #[test]
        fn counters_agree_with_a_plain_list(steps in proptest::collection::vec((0..4_u8, 0..600_i64, 1..5_i64), 0..80)) {
            let counters = Counters::default();
            // The record, time and amount of uses that were not returned.
            let mut plain: Vec<(u64, i64, i64)> = Vec::new();
            let (mut now, mut record) = (0, 0);
            for (kind, wait, amount) in steps {
                now += wait;
                if kind == 0 {
                    let wanted = record - amount.unsigned_abs().min(record);
                    counters.give_back(Sequence::new(wanted));
                    plain.retain(|(known, ..)| *known != wanted);
                } else {
                    record += 1;
                    let at = Timestamp::from_millis(now);
                    counters.local_meter(at).reserve(&[charge("c", amount)], Sequence::new(record), at);
                    plain.push((record, now, amount));
                }
                let within: i64 = plain.iter().filter(|(_, at, _)| *at > now - 1000).map(|(.., amount)| amount).sum();
                proptest::prop_assert_eq!(used(&counters, now), within);
            }
        }
    }
}
