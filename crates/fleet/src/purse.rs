//! Purses: a governor's parts of the budgets that the organisation shares.
//!
//! A purse belongs to one process and is never stored: a new process begins with an empty one, and what the earlier one
//! held counts as spent. The calls map to messages: wants and returns go up, grants, refusals and recalls come down.

use crate::{
    budget::{Grant, Report, Return, Share, Want},
    permit::Moment,
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

/// An amount that a decision uses of one counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use<'a> {
    /// The name of the counter.
    pub counter: &'a str,
    /// The way in which the counter is shared.
    pub share: Share,
    /// The amount, in millionths.
    pub amount: i64,
}

/// The outcome of [`Purse::take`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// All uses were taken.
    All,
    /// Nothing was taken: send these requests, then call [`Purse::take`] again with the same request number.
    Ask(Vec<Want>),
    /// Nothing was taken: a limit is used up.
    Short,
}

/// The grants of one process.
#[derive(Clone, Debug, Default)]
pub struct Purse {
    boot: String,
    epoch: u64,
    last: u64,
    entries: BTreeMap<u64, Entry>,
    closed: Vec<(Moment, Grant)>,
    refused: BTreeSet<u64>,
    /// The parts of grants that the last decisions took, to put them back.
    taken: VecDeque<(u64, Vec<(u64, i64)>)>,
    rates: BTreeMap<String, Rate>,
}

impl Purse {
    /// Creates the empty purse of the process with boot id `boot`.
    pub fn new(boot: impl Into<String>) -> Self {
        Self { boot: boot.into(), ..Self::default() }
    }

    /// Takes all uses of a decision, or none. `request` identifies the decision among those that are waiting.
    ///
    /// A decision that stops waiting must call [`give_up`](Self::give_up).
    pub fn take(&mut self, request: u64, uses: &[Use<'_>], now: Moment) -> Taken {
        if self.refused.contains(&request) || uses.iter().any(|each| each.amount < 0 || each.share == Share::Charge) {
            self.give_up(request);
            return Taken::Short;
        }
        let mut wants: Vec<Want> = Vec::new();
        for each in uses {
            let same = uses.iter().filter(|other| (other.counter, other.share) == (each.counter, each.share));
            let need = same.fold(0_i64, |sum, other| sum.saturating_add(other.amount));
            let rests = self.entries.values().map(|entry| entry.rest_for(request, each, now));
            let have = rests.fold(0, i64::saturating_add);
            if have < need {
                wants.push(self.ask(request, Use { amount: need.saturating_sub(have), ..*each }, now));
            }
        }
        wants.dedup();
        if !wants.is_empty() {
            return Taken::Ask(wants);
        }
        let mut parts = Vec::new();
        for each in uses {
            self.spend(request, each, now, &mut parts);
        }
        if self.taken.len() >= MOST_TAKEN {
            self.taken.pop_front();
        }
        self.taken.push_back((request, parts));
        self.entries.values_mut().for_each(|entry| entry.waiting.retain(|waiting| *waiting != request));
        Taken::All
    }

    /// Puts back what [`take`](Self::take) took for a decision that was not made in the end, into the grants that it came
    /// from: a use of another grant counts for another time. Of a lease it can be spent again; a reservation is given
    /// back. What has been settled meanwhile stays spent.
    pub fn put_back(&mut self, request: u64) {
        let Some(place) = self.taken.iter().position(|(taken, _)| *taken == request) else { return };
        let Some((_, parts)) = self.taken.remove(place) else { return };
        for (number, part) in parts {
            let Some(entry) = self.entries.get_mut(&number) else { continue };
            let Some(held) = entry.held.as_mut().filter(|held| held.grant.returned == 0) else { continue };
            held.spent = held.spent.saturating_sub(part).max(0);
            entry.is_unwanted |= entry.want.share == Share::Reserve && held.spent == 0;
        }
    }

    /// Ends the wait of a decision. What it reserved is given back with the next message, also if it is granted later.
    pub fn give_up(&mut self, request: u64) {
        self.refused.remove(&request);
        for entry in self.entries.values_mut().filter(|entry| entry.waiting.contains(&request)) {
            entry.waiting.retain(|waiting| *waiting != request);
            entry.is_unwanted |= entry.want.share == Share::Reserve;
        }
    }

    /// Takes a grant. It can be spent for its term, counted from the time at which it was first asked for.
    ///
    /// A grant of an earlier epoch, of another process, or with an unknown number is ignored. A repetition changes nothing.
    pub fn granted(&mut self, grant: &Grant) {
        let Some(entry) = self.entries.get_mut(&grant.number) else { return };
        let is_same = (&entry.want.counter, entry.want.share) == (&grant.counter, grant.share);
        if entry.held.is_some() || !is_same || grant.epoch < self.epoch || grant.boot != self.boot {
            return;
        }
        self.epoch = grant.epoch;
        let term = |end: i64| Duration::from_millis(u64::try_from(end.saturating_sub(grant.granted)).unwrap_or(0));
        let (until, idle_from) = (entry.asked.after(term(grant.ends)), entry.asked.after(term(grant.ends) / 2));
        let counts_until = entry.asked.long_after(term(grant.counts_until));
        entry.confirmed = 0;
        entry.held = Some(Held { grant: grant.clone(), spent: 0, until, idle_from, counts_until });
    }

    /// Takes a refusal: decisions that wait for this request find the limit used up.
    pub fn refused(&mut self, number: u64) {
        if let Some(entry) = self.entries.get_mut(&number).filter(|entry| entry.held.is_none()) {
            self.refused.extend(entry.waiting.drain(..));
            (entry.is_unwanted, entry.confirmed) = (true, entry.want.amount);
        }
    }

    /// Asks a lease back: the rest of it is no longer spent and goes with the next message.
    pub fn recall(&mut self, number: u64) {
        if let Some(entry) = self.entries.get_mut(&number).filter(|entry| entry.want.share == Share::Lease) {
            entry.is_unwanted = true;
        }
    }

    /// Asks every lease back, because the process is about to end.
    pub fn close(&mut self) {
        let leases = self.entries.values_mut().filter(|entry| entry.want.share == Share::Lease);
        leases.for_each(|entry| entry.is_unwanted = true);
    }

    /// Returns what to give back with the next message: the rests of grants that were recalled, given up, have ended, or
    /// are leases left idle for half their term.
    ///
    /// Repeats each return until it is [`confirmed`](Self::confirmed), and forgets grants that no longer count.
    pub fn returning(&mut self, now: Moment) -> Vec<Return> {
        let mut returns = Vec::new();
        for (number, entry) in &mut self.entries {
            let total = entry.close_if_due(now);
            if total > entry.confirmed {
                returns.push(Return { counter: entry.want.counter.clone(), number: *number, total });
            }
        }
        self.closed.retain(|(counts_until, _)| !now.has_passed(*counts_until));
        self.entries.retain(|_, entry| {
            let is_settled = entry.is_settled(now);
            self.closed.extend(entry.held.take_if(|_| is_settled).map(|held| (held.counts_until, held.grant)));
            !is_settled
        });
        returns
    }

    /// Marks returns that a hub has answered for as settled.
    pub fn confirmed(&mut self, returns: &[Return]) {
        for each in returns {
            if let Some(entry) = self.entries.get_mut(&each.number) {
                entry.confirmed = entry.confirmed.max(each.total);
            }
        }
    }

    /// Returns all grants that still count, for a database in epoch `epoch`, and ignores grants of earlier epochs from now on.
    pub fn report(&mut self, epoch: u64) -> Report {
        self.epoch = self.epoch.max(epoch);
        let open = self.entries.values().filter_map(|entry| Some(&entry.held.as_ref()?.grant));
        let grants = open.chain(self.closed.iter().map(|(_, grant)| grant)).cloned().collect();
        Report { epoch, boot: self.boot.clone(), grants }
    }

    /// Returns the amount of a counter that can still be spent, reservations included.
    pub fn spendable(&self, counter: &str, now: Moment) -> i64 {
        let of_counter = self.entries.values().filter(|entry| entry.want.counter == counter);
        of_counter.fold(0, |sum, entry| sum.saturating_add(entry.rest(now)))
    }

    fn ask(&mut self, request: u64, each: Use<'_>, now: Moment) -> Want {
        let is_open = |entry: &&mut Entry| entry.held.is_none() && !entry.is_unwanted && entry.is_for(request, &each);
        if let Some(entry) = self.entries.values_mut().find(is_open) {
            if !entry.waiting.contains(&request) {
                entry.waiting.push(request);
            }
            return entry.want.clone();
        }
        let rate = self.rates.get(each.counter).map_or(0, |rate| rate.at(now).recent / MINUTE);
        self.last += 1;
        let (counter, waiting) = (each.counter.to_owned(), vec![request]);
        let want = Want { counter, number: self.last, share: each.share, amount: each.amount, rate };
        let entry = Entry { want: want.clone(), asked: now, waiting, held: None, confirmed: 0, is_unwanted: false };
        self.entries.insert(self.last, entry);
        want
    }

    fn spend(&mut self, request: u64, each: &Use<'_>, now: Moment, parts: &mut Vec<(u64, i64)>) {
        let mut due = each.amount;
        for (number, entry) in &mut self.entries {
            let part = entry.rest_for(request, each, now).min(due);
            if let Some(held) = entry.held.as_mut().filter(|_| part > 0) {
                held.spent = held.spent.saturating_add(part);
                due -= part;
                parts.push((*number, part));
            }
        }
        if each.share == Share::Lease {
            let rate = self.rates.entry(each.counter.to_owned()).or_default();
            let recent = rate.at(now).recent.saturating_add(each.amount);
            *rate = Rate { updated: now.boot, recent };
        }
    }
}

/// One request of a purse and the grant that answered it.
#[derive(Clone, Debug)]
struct Entry {
    want: Want,
    asked: Moment,
    waiting: Vec<u64>,
    held: Option<Held>,
    confirmed: i64,
    is_unwanted: bool,
}

#[derive(Clone, Debug)]
struct Held {
    grant: Grant,
    spent: i64,
    until: Moment,
    idle_from: Moment,
    counts_until: Moment,
}

impl Entry {
    fn is_for(&self, request: u64, each: &Use<'_>) -> bool {
        let is_same = self.want.counter == each.counter && self.want.share == each.share;
        is_same && (each.share == Share::Lease || self.waiting.contains(&request))
    }

    /// The rest that may be spent at `now`.
    fn rest(&self, now: Moment) -> i64 {
        let held = self.held.as_ref().filter(|held| !self.is_unwanted && !now.has_reached(held.until));
        held.map_or(0, |held| held.grant.counted().saturating_sub(held.spent).max(0))
    }

    fn rest_for(&self, request: u64, each: &Use<'_>, now: Moment) -> i64 {
        if self.is_for(request, each) { self.rest(now) } else { 0 }
    }

    /// Gives the rest back if the grant is no longer needed, and returns all that was given back.
    fn close_if_due(&mut self, now: Moment) -> i64 {
        let Some(held) = &mut self.held else {
            return if self.is_unwanted && self.want.share == Share::Reserve { self.want.amount } else { 0 };
        };
        let is_idle = self.want.share == Share::Lease && held.spent == 0 && now.has_reached(held.idle_from);
        if self.is_unwanted || is_idle || now.has_reached(held.until) {
            held.grant.returned = held.grant.returned.max(held.grant.amount.saturating_sub(held.spent));
        }
        held.grant.returned
    }

    fn is_settled(&self, now: Moment) -> bool {
        match &self.held {
            Some(held) => held.spent >= held.grant.counted() && self.confirmed >= held.grant.returned,
            None => self.waiting.is_empty() && now.has_passed(self.asked.long_after(LATE_ANSWER)),
        }
    }
}

/// The use of a counter, of which a minute forgets all by degrees.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    updated: Duration,
    recent: i64,
}

impl Rate {
    fn at(self, now: Moment) -> Self {
        let passed = now.boot.saturating_sub(self.updated).as_secs().min(MINUTE.unsigned_abs());
        let kept = i128::from(self.recent) * i128::from(MINUTE.unsigned_abs() - passed) / i128::from(MINUTE);
        Self { updated: now.boot, recent: i64::try_from(kept).unwrap_or(0) }
    }
}

/// The decisions whose parts are remembered; what older ones took stays spent.
const MOST_TAKEN: usize = 4096;
/// The seconds over which a rate is estimated.
const MINUTE: i64 = 60;

/// The time for which a request that nobody waits for is remembered, so that a late grant is used or returned.
const LATE_ANSWER: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, Fence, GrantTerms};

    const TERMS: GrantTerms = GrantTerms { window: 3_600_000, lease: 60_000, reserve: 10_000 };
    const MONEY: &str = "payments/sum of amount/organisation";
    const CALLS: &str = "calls/count/organisation";

    fn at(seconds: u64) -> Moment {
        Moment { boot: Duration::from_secs(seconds), wall_ms: i64::try_from(seconds).unwrap() * 1000 }
    }

    fn money(amount: i64) -> Use<'static> {
        Use { counter: MONEY, share: Share::Reserve, amount }
    }

    fn calls(amount: i64) -> Use<'static> {
        Use { counter: CALLS, share: Share::Lease, amount }
    }

    fn asked(taken: Taken) -> Vec<Want> {
        match taken {
            Taken::Ask(wants) => wants,
            other => panic!("expected requests, found {other:?}"),
        }
    }

    fn grant(want: &Want, epoch: u64) -> Grant {
        let fence = Fence::from_rows(epoch, 0, []);
        Budget::new(1000, 0, 1, TERMS, &fence, 5_000_000).decide(want, "b1", None).unwrap()
    }

    #[test]
    fn a_decision_takes_all_its_uses_or_none() {
        let mut purse = Purse::new("b1");
        let wants = asked(purse.take(1, &[money(30), calls(5)], at(0)));
        assert_eq!(wants.iter().map(|want| (want.number, want.amount)).collect::<Vec<_>>(), [(1, 30), (2, 5)]);
        purse.granted(&grant(&wants[0], 0));
        assert_eq!(asked(purse.take(1, &[money(30), calls(5)], at(0))), wants[1..]);
        purse.granted(&grant(&wants[1], 0));
        assert_eq!(purse.take(1, &[money(30), calls(5)], at(1)), Taken::All);
        assert_eq!((purse.spendable(MONEY, at(1)), purse.spendable(CALLS, at(1))), (0, 0));
    }

    #[test]
    fn a_lease_is_spent_locally_and_a_reused_counter_is_summed() {
        let mut purse = Purse::new("b1");
        let wants = asked(purse.take(1, &[calls(4), calls(6)], at(0)));
        assert_eq!((wants.len(), wants[0].amount), (1, 10));
        purse.granted(&grant(&Want { amount: 25, ..wants[0].clone() }, 0));
        assert_eq!(purse.take(1, &[calls(4), calls(6)], at(1)), Taken::All);
        assert_eq!(purse.take(2, &[calls(15)], at(1)), Taken::All);
        assert_eq!(asked(purse.take(3, &[calls(1)], at(31)))[0].rate, 0);
        let twice = asked(purse.take(4, &[money(4), money(6)], at(31)));
        purse.granted(&grant(&twice[0], 0));
        assert_eq!(purse.take(4, &[money(4), money(6)], at(31)), Taken::All);
        assert_eq!(purse.spendable(MONEY, at(31)), 0);
    }

    #[test]
    fn the_wanted_rate_follows_recent_use() {
        let mut purse = Purse::new("b1");
        let wants = asked(purse.take(1, &[calls(600)], at(0)));
        purse.granted(&grant(&wants[0], 0));
        assert_eq!(purse.take(1, &[calls(600)], at(0)), Taken::All);
        assert_eq!(asked(purse.take(2, &[calls(1)], at(30)))[0].rate, 5);
        purse.refused(2);
        assert_eq!(asked(purse.take(3, &[calls(1)], at(600)))[0].rate, 0);
    }

    #[test]
    fn decisions_share_a_lease_request_but_not_a_reservation() {
        let mut purse = Purse::new("b1");
        let first = asked(purse.take(1, &[calls(5)], at(0)));
        assert_eq!(asked(purse.take(2, &[calls(9)], at(1))), first);
        let own = asked(purse.take(3, &[money(5)], at(1)));
        assert_ne!(asked(purse.take(4, &[money(5)], at(1))), own);
        purse.refused(first[0].number);
        assert_eq!(
            (purse.take(1, &[calls(5)], at(1)), purse.take(2, &[calls(9)], at(1))),
            (Taken::Short, Taken::Short)
        );
        purse.granted(&grant(&own[0], 0));
        assert!(matches!(purse.take(4, &[money(5)], at(1)), Taken::Ask(_)));
    }

    #[test]
    fn a_refusal_gives_back_what_was_reserved_beside() {
        let mut purse = Purse::new("b1");
        let wants = asked(purse.take(1, &[money(30), calls(5)], at(0)));
        purse.granted(&grant(&wants[0], 0));
        purse.refused(wants[1].number);
        assert_eq!(purse.take(1, &[money(30), calls(5)], at(0)), Taken::Short);
        assert_eq!(purse.returning(at(0)), [Return { counter: MONEY.to_owned(), number: 1, total: 30 }]);
    }

    #[test]
    fn a_late_answer_to_an_abandoned_request_is_returned() {
        let mut purse = Purse::new("b1");
        let wants = asked(purse.take(1, &[money(30)], at(0)));
        purse.give_up(1);
        let returns = purse.returning(at(1));
        assert_eq!((returns.len(), returns[0].total), (1, 30));
        purse.confirmed(&returns);
        assert_eq!(purse.returning(at(2)), []);
        purse.granted(&grant(&wants[0], 0));
        assert_eq!(purse.spendable(MONEY, at(2)), 0);
        assert_eq!((purse.returning(at(2)), purse.returning(at(3))), (returns.clone(), returns.clone()));
        purse.confirmed(&returns);
        assert_eq!(purse.returning(at(4)), []);
    }

    #[test]
    fn a_grant_after_a_refusal_is_returned() {
        let mut purse = Purse::new("b1");
        let wants = asked(purse.take(1, &[money(30), calls(5)], at(0)));
        for want in &wants {
            purse.refused(want.number);
        }
        assert_eq!((purse.take(1, &[money(30)], at(0)), purse.returning(at(0))), (Taken::Short, vec![]));
        for want in &wants {
            purse.granted(&grant(want, 0));
        }
        assert_eq!(purse.returning(at(1)).iter().map(|each| each.total).collect::<Vec<_>>(), [30, 5]);
    }

    #[test]
    fn a_lease_ends_on_either_clock_and_returns_its_rest() {
        let mut purse = Purse::new("b1");
        let wants = asked(purse.take(1, &[calls(5)], at(0)));
        assert_eq!(asked(purse.take(1, &[calls(5)], at(50))), wants);
        purse.granted(&grant(&Want { amount: 20, ..wants[0].clone() }, 0));
        assert_eq!(purse.take(1, &[calls(5)], at(58)), Taken::All);
        assert_eq!((purse.spendable(CALLS, at(59)), purse.spendable(CALLS, at(60))), (15, 0));
        assert_eq!(purse.spendable(CALLS, Moment { boot: at(1).boot, wall_ms: 60_000 }), 0);
        assert_eq!(purse.returning(at(60))[0].total, 15);
    }

    #[test]
    fn recalled_and_idle_leases_are_returned() {
        let mut purse = Purse::new("b1");
        let wants = asked(purse.take(1, &[calls(5)], at(0)));
        purse.granted(&grant(&wants[0], 0));
        assert_eq!(purse.returning(at(29)), []);
        assert_eq!(purse.returning(at(30))[0].total, 5);
        let wants = asked(purse.take(2, &[calls(5)], at(30)));
        purse.granted(&grant(&wants[0], 0));
        purse.recall(wants[0].number);
        assert_eq!(purse.spendable(CALLS, at(31)), 0);
        assert_eq!(purse.returning(at(31)).len(), 2);
    }

    #[test]
    fn repeated_foreign_and_unknown_grants_change_nothing() {
        let mut purse = Purse::new("b1");
        let wants = asked(purse.take(1, &[calls(5)], at(0)));
        let lease = grant(&wants[0], 0);
        purse.granted(&Grant { boot: "b0".to_owned(), ..lease.clone() });
        purse.granted(&Grant { number: 9, ..lease.clone() });
        purse.granted(&Grant { counter: MONEY.to_owned(), ..lease.clone() });
        assert_eq!(purse.spendable(CALLS, at(1)), 0);
        purse.granted(&lease);
        assert_eq!(purse.take(1, &[calls(5)], at(1)), Taken::All);
        purse.returning(at(2));
        purse.granted(&lease);
        assert_eq!(purse.spendable(CALLS, at(2)), 0);
    }

    #[test]
    fn a_grant_of_an_earlier_epoch_is_ignored_after_a_report() {
        let mut purse = Purse::new("b1");
        let wants = asked(purse.take(1, &[calls(5), money(7)], at(0)));
        purse.granted(&grant(&wants[0], 3));
        let report = purse.report(4);
        assert_eq!((report.epoch, report.grants.len()), (4, 1));
        purse.granted(&grant(&wants[1], 3));
        assert_eq!(purse.spendable(MONEY, at(1)), 0);
        purse.granted(&grant(&wants[1], 4));
        assert_eq!(purse.spendable(MONEY, at(1)), 7);
    }

    #[test]
    fn a_report_names_spent_grants_until_they_have_left_the_window() {
        let mut purse = Purse::new("b1");
        let wants = asked(purse.take(1, &[money(7)], at(0)));
        purse.granted(&grant(&wants[0], 0));
        assert_eq!(purse.take(1, &[money(7)], at(1)), Taken::All);
        purse.returning(at(3610));
        assert_eq!(purse.report(1).grants[0].counted(), 7);
        purse.returning(at(3700));
        assert_eq!(purse.report(1).grants, []);
    }

    #[test]
    fn a_use_is_put_back_into_the_grant_that_it_came_from() {
        let mut purse = Purse::new("b1");
        // An old lease of 20, of which a decision that is still being made takes 6.
        let wants = asked(purse.take(1, &[calls(4)], at(0)));
        purse.granted(&grant(&Want { amount: 20, ..wants[0].clone() }, 0));
        assert_eq!((purse.take(1, &[calls(4)], at(1)), purse.take(2, &[calls(6)], at(20))), (Taken::All, Taken::All));
        // It is recalled, and a new one of 10 is granted, of which 6 are used.
        purse.recall(wants[0].number);
        assert_eq!(purse.returning(at(21))[0].total, 10);
        let wants = asked(purse.take(3, &[calls(6)], at(22)));
        purse.granted(&grant(&Want { amount: 10, ..wants[0].clone() }, 0));
        assert_eq!(purse.take(3, &[calls(6)], at(22)), Taken::All);
        // What the decision took counts with the old lease, which leaves the window before the new one.
        purse.put_back(2);
        assert_eq!(purse.spendable(CALLS, at(23)), 4);
        purse.put_back(3);
        purse.put_back(3);
        assert_eq!(purse.spendable(CALLS, at(23)), 10);
    }

    #[test]
    fn amounts_out_of_range_take_nothing() {
        let mut purse = Purse::new("b1");
        assert_eq!(purse.take(1, &[money(-1)], at(0)), Taken::Short);
        assert_eq!(purse.take(2, &[money(0), calls(0)], at(0)), Taken::All);
        let wants = asked(purse.take(3, &[money(i64::MAX), money(i64::MAX)], at(0)));
        assert_eq!(wants[0].amount, i64::MAX);
    }
}
