//! Budgets: the hub's arithmetic for limits that hold over all governors of an organisation.
//!
//! A grant counts in full from the moment it is given until all its uses have left the window. Time alone never gives
//! anything back: only the process that got a grant returns the rest of it. The hub loads rows inside a transaction that
//! holds the lock of the budget's row, decides many requests with [`Budget`], and stores what came out. After the database
//! was restored, [`Fence`] keeps all budgets closed until what was granted since the copy is known again.
//!
//! Amounts are in millionths of the unit of the limit, times in milliseconds of the database's clock.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The way in which governors share a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Share {
    /// Each action reserves its exact amount at the hub.
    Reserve,
    /// Each governor holds an amount for some time and spends it locally.
    Lease,
    /// An operator charges uses of a governor that nobody can report.
    Charge,
}

/// A request for a part of a budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Want {
    /// The name of the counter.
    pub counter: String,
    /// The number of the request, unique within the boot of the governor. A repetition carries the same number.
    pub number: u64,
    /// The way in which the counter is shared.
    pub share: Share,
    /// The exact amount of a reservation; the smallest useful amount of a lease.
    pub amount: i64,
    /// The governor's own rate of use, per second; 0 for a reservation.
    pub rate: i64,
}

/// A part of a grant that its process gives back; `total` is all that was returned of it so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Return {
    /// The name of the counter.
    pub counter: String,
    /// The number of the grant.
    pub number: u64,
    /// All that was returned of the grant so far.
    pub total: i64,
}

/// A part of a budget that was given to one process: one row of the table of grants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// The name of the counter.
    pub counter: String,
    /// The boot id of the process that got the grant.
    pub boot: String,
    /// The number of the request, unique within the boot.
    pub number: u64,
    /// The way in which the counter is shared.
    pub share: Share,
    /// The amount that was granted.
    pub amount: i64,
    /// The part of the amount that the process gave back, in all.
    pub returned: i64,
    /// The epoch of the database in which the grant was last confirmed.
    pub epoch: u64,
    /// The time of the grant.
    pub granted: i64,
    /// The time from which the grant can no longer be spent.
    pub ends: i64,
    /// The time until which the grant counts against the budget.
    pub counts_until: i64,
}

impl Grant {
    /// Returns the amount that counts against the budget.
    pub fn counted(&self) -> i64 {
        self.amount.saturating_sub(self.returned).max(0)
    }

    /// Creates the row that charges `amount` to a counter for uses that no process can report.
    ///
    /// `boot` is the last boot the database knows of the governor. The row counts until every grant given before the
    /// fence was raised has left the window.
    #[must_use]
    pub fn charge(counter: &str, boot: &str, amount: i64, fence: &Fence, terms: GrantTerms) -> Self {
        Self {
            counter: counter.to_owned(),
            boot: boot.to_owned(),
            number: fence.epoch,
            share: Share::Charge,
            amount: amount.max(0),
            returned: 0,
            epoch: fence.epoch,
            granted: fence.since,
            ends: fence.since,
            counts_until: fence.since.saturating_add(terms.longest()),
        }
    }

    /// Combines a grant that its own process reported with the row the database knows, if any.
    ///
    /// Returns `None` if the two cannot be the same grant. What the process gave back stays given back.
    #[must_use]
    pub fn merge(known: Option<&Self>, reported: &Self, epoch: u64) -> Option<Self> {
        let amount = reported.amount.max(0);
        let mut grant = Self { amount, returned: reported.returned.clamp(0, amount), epoch, ..reported.clone() };
        if let Some(known) = known {
            if (&known.counter, &known.boot, known.number) != (&grant.counter, &grant.boot, grant.number) {
                return None;
            }
            grant.amount = amount.max(known.amount);
            grant.returned = grant.returned.max(known.returned);
            grant.counts_until = grant.counts_until.max(known.counts_until);
        }
        Some(grant)
    }
}

impl Grant {
    /// A reported grant, as no more than a hub could have granted.
    #[must_use]
    pub fn within(self, max: i64, now: i64, terms: GrantTerms) -> Self {
        let share = if self.share == Share::Charge { Share::Reserve } else { self.share };
        // At most the whole limit counts.
        let amount = self.amount.min(self.returned.saturating_add(max.max(0)));
        let ends = self.ends.min(now.saturating_add(terms.lease.max(terms.reserve)));
        let counts_until = self.counts_until.min(now.saturating_add(terms.longest()));
        Self { share, amount, ends, counts_until, ..self }
    }
}

/// The times that govern the grants of one counter, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantTerms {
    /// The length of the sliding window of the limit.
    pub window: i64,
    /// The time for which a lease may be spent.
    pub lease: i64,
    /// The time within which a reservation must be used; at least the time-out of the governors.
    pub reserve: i64,
}

impl GrantTerms {
    /// Returns the longest time for which a grant counts.
    pub fn longest(self) -> i64 {
        self.window.saturating_add(self.lease.max(self.reserve))
    }
}

/// One counter of the organisation within one transaction.
#[derive(Clone, Debug)]
pub struct Budget {
    max: i64,
    taken: i64,
    holders: u32,
    terms: GrantTerms,
    epoch: u64,
    now: i64,
    is_open: bool,
}

impl Budget {
    /// Creates a budget from its row, after grants with `counts_until <= now` were deleted and subtracted from `taken`.
    ///
    /// `holders` is the number of governors that hold leases on this counter. Nothing is granted while `fence` is closed.
    pub fn new(max: i64, taken: i64, holders: u32, terms: GrantTerms, fence: &Fence, now: i64) -> Self {
        Self { max, taken, holders, terms, epoch: fence.epoch, now, is_open: fence.is_open(now, terms) }
    }

    /// Returns the amount that counts against the limit, to be stored in the row.
    pub fn taken(&self) -> i64 {
        self.taken
    }

    /// Returns the amount that can still be granted.
    pub fn left(&self) -> i64 {
        if self.is_open { self.max.saturating_sub(self.taken).max(0) } else { 0 }
    }

    /// Decides a request of the process `boot`. `existing` is the row with the same boot and number, if there is one.
    ///
    /// A reservation is granted in full or not at all. A lease covers the governor's own rate for the term of a lease, but
    /// at most a quarter of its share of what is left, and at least what the waiting decision needs, if that fits.
    /// A repeated request returns the same grant and takes nothing. Store the grant in the same transaction.
    pub fn decide(&mut self, want: &Want, boot: &str, existing: Option<&Grant>) -> Option<Grant> {
        if let Some(grant) = existing {
            return Some(Grant { epoch: self.epoch, ..grant.clone() });
        }
        let left = self.left();
        if want.amount <= 0 || want.amount > left {
            return None;
        }
        let (amount, term) = match want.share {
            Share::Reserve => (want.amount, self.terms.reserve),
            Share::Lease => {
                let own = i128::from(want.rate) * i128::from(self.terms.lease) / 1000;
                let fair = left / (4 * i64::from(self.holders.max(1)));
                let own = i64::try_from(own.min(fair.into())).unwrap_or(0);
                (own.max(want.amount), self.terms.lease)
            }
            Share::Charge => return None,
        };
        self.taken = self.taken.saturating_add(amount);
        let ends = self.now.saturating_add(term);
        Some(Grant {
            counter: want.counter.clone(),
            boot: boot.to_owned(),
            number: want.number,
            share: want.share,
            amount,
            returned: 0,
            epoch: self.epoch,
            granted: self.now,
            ends,
            counts_until: ends.saturating_add(self.terms.window),
        })
    }

    /// Takes back a part of a grant from the process `boot`; `total` is all that it has returned of this grant so far.
    ///
    /// Returns the amount this frees, which is 0 for a repetition. Store the grant in the same transaction.
    ///
    /// # Errors
    /// [`GiveBackError`] if the process is not the one that got the grant, or the total is impossible.
    pub fn give_back(&mut self, grant: &mut Grant, boot: &str, total: i64) -> Result<i64, GiveBackError> {
        let number = grant.number;
        if grant.boot != boot || grant.share == Share::Charge {
            return Err(GiveBackError::OtherProcess { number, boot: boot.to_owned() });
        }
        if total < 0 || total > grant.amount || (grant.share == Share::Reserve && total != grant.amount) {
            return Err(GiveBackError::Amount { number, total, amount: grant.amount });
        }
        let freed = total.saturating_sub(grant.returned).max(0);
        grant.returned = grant.returned.max(total);
        self.taken = self.taken.saturating_sub(freed).max(0);
        Ok(freed)
    }

    /// Chooses the leases to ask back so that `amount` can be granted. `leases` are those not yet asked back.
    ///
    /// Takes the largest unspent rests first, estimated from the time that is left of each lease.
    pub fn recall<'a>(&self, amount: i64, leases: impl IntoIterator<Item = &'a Grant>) -> Vec<&'a Grant> {
        let mut short = i128::from(amount) - i128::from(self.left());
        let mut rests: Vec<_> = leases
            .into_iter()
            .filter(|grant| grant.share == Share::Lease && grant.ends > self.now)
            .map(|grant| {
                let term = i128::from(grant.ends.saturating_sub(grant.granted).max(1));
                (i128::from(grant.counted()) * i128::from(grant.ends - self.now) / term, grant)
            })
            .filter(|(rest, _)| *rest > 0)
            .collect();
        rests.sort_by_key(|(rest, grant)| (-rest, grant.number));
        let take = |(rest, grant): (i128, &'a Grant)| {
            let wanted = short > 0;
            short -= rest;
            wanted.then_some(grant)
        };
        rests.into_iter().map_while(take).collect()
    }
}

/// Reasons not to take back a part of a grant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GiveBackError {
    /// A process returned a grant it did not get.
    #[error("grant {number} cannot be returned by boot {boot:?}: only the process that got a grant returns it")]
    OtherProcess {
        /// The number of the grant.
        number: u64,
        /// The boot id of the process that tried to return it.
        boot: String,
    },
    /// The amount is negative, above the grant, or a part of a reservation.
    #[error(
        "grant {number} of {amount} cannot be returned by {total}: expected the whole reservation, or 0 to {amount} of a lease"
    )]
    Amount {
        /// The number of the grant.
        number: u64,
        /// The total that was said to be returned.
        total: i64,
        /// The amount of the grant.
        amount: i64,
    },
}

/// All grants that one process holds or has spent, sent when the epoch of the database has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The epoch for which the process reports; it accepts no grant of an earlier one from now on.
    pub epoch: u64,
    /// The boot id of the process.
    pub boot: String,
    /// The grants that still count.
    pub grants: Vec<Grant>,
}

impl Report {
    /// Returns whether it is the report of one process for an epoch.
    pub fn is_for(&self, epoch: u64, boot: &str) -> bool {
        (self.epoch, &*self.boot) == (epoch, boot) && self.grants.iter().all(|grant| grant.boot == boot)
    }
}

/// The state of a database whose identity or timeline has changed: who has not reported yet. One row a governor.
///
/// A report is complete only if it comes from the process that the restored copy knows: whatever was granted to the
/// governor after the copy was then granted to that process, which still knows it. No other process knows all of it. Such
/// governors, and silent ones, keep budgets closed until all earlier grants have left the window, or an operator decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fence {
    epoch: u64,
    since: i64,
    awaited: BTreeMap<String, Option<String>>,
}

impl Fence {
    /// Rebuilds a fence from its rows: governors that have not reported, with the boot id known when the epoch began.
    pub fn from_rows(epoch: u64, since: i64, awaited: impl IntoIterator<Item = (String, Option<String>)>) -> Self {
        Self { epoch, since, awaited: awaited.into_iter().collect() }
    }

    /// Returns the number of the epoch.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Reports whether a counter with these terms may be granted from.
    pub fn is_open(&self, now: i64, terms: GrantTerms) -> bool {
        self.awaited.is_empty() || now >= self.since.saturating_add(terms.longest())
    }

    /// Returns whether a report is all that a governor can hold, so that it is no longer awaited. The log of the governor
    /// must have been shown to continue the one that is known.
    pub fn is_completed_by(&self, governor: &str, report: &Report) -> bool {
        let expected = self.awaited.get(governor).and_then(Option::as_deref);
        expected.is_some_and(|boot| report.is_for(self.epoch, boot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: GrantTerms = GrantTerms { window: 86_400_000, lease: 60_000, reserve: 10_000 };

    fn want(share: Share, number: u64, amount: i64, rate: i64) -> Want {
        Want { counter: "payments/count/organisation".to_owned(), number, share, amount, rate }
    }

    fn budget(max: i64, taken: i64, holders: u32) -> Budget {
        Budget::new(max, taken, holders, TERMS, &Fence::default(), 1_000_000)
    }

    fn report(epoch: u64, boot: &str, grants: Vec<Grant>) -> Report {
        Report { epoch, boot: boot.to_owned(), grants }
    }

    fn fence(boot: Option<&str>) -> Fence {
        Fence::from_rows(7, 1_000_000, [("anna".to_owned(), boot.map(str::to_owned))])
    }

    #[test]
    fn a_reservation_is_granted_in_full_or_not_at_all() {
        let mut budget = budget(100, 60, 0);
        assert_eq!(budget.decide(&want(Share::Reserve, 1, 41, 0), "b1", None), None);
        let grant = budget.decide(&want(Share::Reserve, 2, 40, 0), "b1", None).unwrap();
        assert_eq!((grant.amount, budget.taken(), budget.left()), (40, 100, 0));
        assert_eq!((grant.ends, grant.counts_until), (1_010_000, 87_410_000));
    }

    #[test]
    fn a_repeated_request_takes_nothing() {
        let mut budget = budget(100, 0, 0);
        let request = want(Share::Reserve, 1, 40, 0);
        let grant = budget.decide(&request, "b1", None);
        assert_eq!(budget.decide(&request, "b1", grant.as_ref()), grant);
        assert_eq!(budget.taken(), 40);
    }

    #[test]
    fn a_lease_is_sized_by_rate_by_what_is_left_and_by_need() {
        for (holders, rate, at_least, left, expected) in [
            (0, 2, 1, 1000, Some(120)),   // the own rate for the term
            (10, 100, 1, 1000, Some(25)), // a quarter of the fair share
            (10, 100, 70, 1000, Some(70)),
            (10, 100, 70, 69, None),
            (1, 0, 5, 1000, Some(5)),
            (0, i64::MAX, 1, i64::MAX, Some(i64::MAX / 4)),
            (1, -5, 1, 10, Some(1)),
        ] {
            let grant = budget(left, 0, holders).decide(&want(Share::Lease, 1, at_least, rate), "b1", None);
            assert_eq!(grant.map(|grant| grant.amount), expected, "{holders} {rate} {at_least} {left}");
        }
    }

    #[test]
    fn amounts_out_of_range_are_refused_without_overflow() {
        for amount in [i64::MIN, -1, 0] {
            assert_eq!(budget(i64::MAX, i64::MIN, 0).decide(&want(Share::Reserve, 1, amount, 0), "b1", None), None);
        }
        assert_eq!(budget(10, i64::MAX, 0).left(), 0);
        assert_eq!(budget(-10, 0, 0).left(), 0);
        let terms = GrantTerms { window: i64::MAX, lease: i64::MAX, reserve: i64::MAX };
        let mut endless = Budget::new(i64::MAX, 0, u32::MAX, terms, &Fence::default(), i64::MAX);
        let grant = endless.decide(&want(Share::Reserve, 1, i64::MAX, 0), "b1", None).unwrap();
        assert_eq!((grant.counts_until, endless.left()), (i64::MAX, 0));
    }

    #[test]
    fn only_the_process_that_got_a_grant_returns_it_and_only_once() {
        let mut budget = budget(100, 0, 0);
        let mut lease = budget.decide(&want(Share::Lease, 1, 50, 0), "b1", None).unwrap();
        assert!(matches!(budget.give_back(&mut lease, "b2", 10), Err(GiveBackError::OtherProcess { .. })));
        assert!(matches!(budget.give_back(&mut lease, "b1", 51), Err(GiveBackError::Amount { .. })));
        assert!(matches!(budget.give_back(&mut lease, "b1", -1), Err(GiveBackError::Amount { .. })));
        assert_eq!(budget.give_back(&mut lease, "b1", 20), Ok(20));
        assert_eq!(budget.give_back(&mut lease, "b1", 20), Ok(0));
        assert_eq!(budget.give_back(&mut lease, "b1", 10), Ok(0));
        assert_eq!((lease.counted(), budget.taken()), (30, 30));
        let mut reservation = budget.decide(&want(Share::Reserve, 2, 10, 0), "b1", None).unwrap();
        assert!(matches!(budget.give_back(&mut reservation, "b1", 5), Err(GiveBackError::Amount { .. })));
        assert_eq!(budget.give_back(&mut reservation, "b1", 10), Ok(10));
    }

    #[test]
    fn a_recall_asks_for_the_largest_rests_until_the_request_fits() {
        let lease = |number, amount, ends| Grant {
            counter: "c".to_owned(),
            boot: "b".to_owned(),
            number,
            share: Share::Lease,
            amount,
            returned: 0,
            epoch: 0,
            granted: ends - 60_000,
            ends,
            counts_until: ends + 86_400_000,
        };
        let leases = [lease(1, 30, 1_060_000), lease(2, 40, 1_030_000), lease(3, 90, 999_999), lease(4, 25, 1_060_000)];
        let numbers =
            |amount| budget(100, 95, 3).recall(amount, &leases).iter().map(|grant| grant.number).collect::<Vec<_>>();
        assert_eq!(numbers(5), Vec::<u64>::new());
        assert_eq!(numbers(10), [1]);
        assert_eq!(numbers(40), [1, 4]);
        assert_eq!(numbers(1000), [1, 4, 2]);
    }

    #[test]
    fn a_closed_fence_waits_until_every_earlier_grant_has_expired() {
        let fence = fence(Some("b1"));
        let at = |now| Budget::new(100, 0, 0, TERMS, &fence, now).decide(&want(Share::Reserve, 1, 1, 0), "b1", None);
        assert_eq!(at(1_000_001), None);
        assert_eq!(at(1_000_000 + TERMS.longest() - 1), None);
        assert_eq!(at(1_000_000 + TERMS.longest()).unwrap().epoch, 7);
    }

    #[test]
    fn a_report_is_complete_from_the_awaited_process_alone() {
        let waiting = fence(Some("b1"));
        for (governor, epoch, boot) in [("bert", 7, "b1"), ("anna", 6, "b1"), ("anna", 7, "b2")] {
            assert!(!waiting.is_completed_by(governor, &report(epoch, boot, vec![])), "{governor} {epoch} {boot}");
        }
        assert!(waiting.is_completed_by("anna", &report(7, "b1", vec![])));
        assert!(!fence(None).is_completed_by("anna", &report(7, "b1", vec![])), "its process is not known");
    }

    #[test]
    fn a_reported_grant_keeps_the_larger_amount_and_the_return() {
        let known = budget(100, 0, 0).decide(&want(Share::Lease, 1, 50, 0), "b1", None).unwrap();
        let reported = Grant { returned: 20, epoch: 3, ..known.clone() };
        let merged = Grant::merge(Some(&known), &reported, 7).unwrap();
        assert_eq!((merged.counted(), merged.epoch), (30, 7));
        assert_eq!(Grant::merge(None, &reported, 7).unwrap(), merged);
        assert_eq!(Grant::merge(Some(&known), &Grant { number: 2, ..known.clone() }, 7), None);
        let forged = Grant { amount: -5, returned: -9, ..known.clone() };
        assert_eq!(Grant::merge(None, &forged, 7).unwrap().counted(), 0);
        assert_eq!(Grant::merge(Some(&known), &forged, 7).unwrap().counted(), 50);
    }

    #[test]
    fn a_reported_grant_is_no_more_than_a_hub_could_grant() {
        let honest = budget(100, 0, 0).decide(&want(Share::Lease, 1, 50, 0), "b1", None).unwrap();
        assert_eq!(honest.clone().within(100, 1_000_000, TERMS), honest);
        let made_up =
            Grant { share: Share::Charge, amount: i64::MAX, ends: i64::MAX, counts_until: i64::MAX, ..honest };
        let bounded = made_up.within(100, 1_000_000, TERMS);
        assert_eq!((bounded.share, bounded.counted()), (Share::Reserve, 100));
        assert_eq!(bounded.counts_until, 1_000_000 + TERMS.longest());
    }

    #[test]
    fn a_charge_counts_until_earlier_grants_leave_the_window() {
        let fence = fence(None);
        let mut charge = Grant::charge("c", "b1", 100, &fence, TERMS);
        assert_eq!((charge.counted(), charge.counts_until), (100, 1_000_000 + TERMS.longest()));
        assert!(budget(100, 100, 0).give_back(&mut charge, "b1", 100).is_err());
    }
}
