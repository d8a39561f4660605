//! Purses: a governor's parts of the budgets that the organisation shares.
//!
//! A purse belongs to one process and is never stored: a new process begins with an empty one, and what the earlier one
//! held counts as spent. The calls map to messages: wants and returns go up, grants, refusals and recalls come down.

use crate::{
    budget::{Grant, Report, Return, Share, Want},
    permit::Moment,
};
use std::{
    collections::{BTreeMap, BTreeSet},
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
        for each in uses {
            self.spend(request, each, now);
        }
        Taken::All
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
        let is_current = grant.epoch >= self.epoch && grant.boot == self.boot;
        let Some(entry) = self.entries.get_mut(&grant.number).filter(|entry| is_current && entry.is_answered_by(grant))
        else {
            return;
        };
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

    /// Returns the epoch of the latest grant or report.
    pub fn epoch(&self) -> u64 {
        self.epoch
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
        let want =
            Want { counter: each.counter.to_owned(), number: self.last, share: each.share, amount: each.amount, rate };
        let entry = Entry {
            want: want.clone(),
            asked: now,
            waiting: vec![request],
            held: None,
            confirmed: 0,
            is_unwanted: false,
        };
        self.entries.insert(self.last, entry);
        want
    }

    fn spend(&mut self, request: u64, each: &Use<'_>, now: Moment) {
        let mut due = each.amount;
        for entry in self.entries.values_mut() {
            let part = entry.rest_for(request, each, now).min(due);
            if let Some(held) = entry.held.as_mut().filter(|_| part > 0) {
                held.spent = held.spent.saturating_add(part);
                due -= part;
            }
            entry.waiting.retain(|waiting| *waiting != request);
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
    fn is_answered_by(&self, grant: &Grant) -> bool {
        self.held.is_none() && self.want.counter == grant.counter && self.want.share == grant.share
    }

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

/// The seconds over which a rate is estimated.
const MINUTE: i64 = 60;

/// The time for which a request that nobody waits for is remembered, so that a late grant is used or returned.
const LATE_ANSWER: Duration = Duration::from_secs(600);
