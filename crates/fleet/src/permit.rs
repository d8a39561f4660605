//! Permits: the right to decide for a limited time, which a hub renews with every beat.
//!
//! A permit counts from the *sending* of the beat it answers, and a hub answers a beat only from a database transaction
//! that began after the beat arrived. A kill switch committed at time `s` is therefore in force everywhere at `s + T`:
//! every beat sent later is answered with the order. The module reads no clock and does no I/O.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// A reading of both clocks of a machine, also used as a deadline on both.
///
/// The boot clock (`CLOCK_BOOTTIME`) runs on during suspend and cannot be set. The wall clock runs on while a virtual
/// machine is paused. A deadline is reached as soon as either clock reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Time since the machine started, suspend included.
    pub boot: Duration,
    /// Milliseconds since the Unix epoch.
    pub wall_ms: i64,
}

impl Moment {
    /// Returns the deadline `term` after this moment, shortened by 1 % for clocks that run slow.
    #[must_use]
    pub fn after(self, term: Duration) -> Self {
        self.plus(term.saturating_sub(term / DRIFT))
    }

    /// Returns a moment that is at least `term` away even if the clocks run 1 % fast.
    #[must_use]
    pub fn long_after(self, term: Duration) -> Self {
        self.plus(term.saturating_add(term / (DRIFT / 2)))
    }

    /// Reports whether either clock has reached `deadline`.
    pub fn has_reached(self, deadline: Self) -> bool {
        self.boot >= deadline.boot || self.wall_ms >= deadline.wall_ms
    }

    /// Reports whether both clocks have reached `deadline`.
    pub fn has_passed(self, deadline: Self) -> bool {
        self.boot >= deadline.boot && self.wall_ms >= deadline.wall_ms
    }

    fn plus(self, term: Duration) -> Self {
        let millis = i64::try_from(term.as_millis()).unwrap_or(i64::MAX);
        Self { boot: self.boot.saturating_add(term), wall_ms: self.wall_ms.saturating_add(millis) }
    }
}

/// The two terms of a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermitTerms {
    /// The time for which every action may be decided.
    pub term: Duration,
    /// The further time for which reads of LOW risk may be decided without a connection.
    pub offline: Duration,
}

/// The ends of a permit on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// The end of the permit on the boot clock.
    pub until: Duration,
    /// The end of the permit for reads of LOW risk on the boot clock.
    pub offline_until: Duration,
    /// The end of the permit on the wall clock, in milliseconds since the Unix epoch.
    pub wall_until_ms: i64,
    /// The end of the permit for reads of LOW risk on the wall clock, in milliseconds since the Unix epoch.
    pub offline_wall_until_ms: i64,
}

impl Deadlines {
    /// Reports whether the permit covers an action of any kind at `now`.
    pub fn allows(&self, now: Moment) -> bool {
        !now.has_reached(Moment { boot: self.until, wall_ms: self.wall_until_ms })
    }

    /// Reports whether the permit covers a read of LOW risk at `now`.
    pub fn allows_low_read(&self, now: Moment) -> bool {
        !now.has_reached(Moment { boot: self.offline_until, wall_ms: self.offline_wall_until_ms })
    }
}

/// The governor's side: matches answers to beats and computes the deadlines of the permit.
#[derive(Debug, Clone, Default)]
pub struct PermitHolder {
    last: u64,
    sent: VecDeque<(u64, Moment)>,
    deadlines: Option<Deadlines>,
}

impl PermitHolder {
    /// Records that a beat is about to be sent and returns its number.
    ///
    /// Call it before the first byte leaves: the permit that answers this beat counts from here.
    pub fn sending(&mut self, boot: Duration, wall_ms: i64) -> u64 {
        self.last += 1;
        self.sent.push_back((self.last, Moment { boot, wall_ms }));
        if self.sent.len() > UNANSWERED {
            self.sent.pop_front();
        }
        self.last
    }

    /// Takes the answer to beat number `beat` and returns the new deadlines.
    ///
    /// Returns `None` and changes nothing if the beat is unknown, or a later beat was already answered or refused.
    pub fn granted(&mut self, beat: u64, terms: PermitTerms) -> Option<Deadlines> {
        let index = self.sent.iter().position(|(number, _)| *number == beat)?;
        let (_, sent) = self.sent.drain(..=index).next_back()?;
        let until = sent.after(terms.term);
        let offline = sent.after(terms.term.saturating_add(terms.offline));
        self.deadlines = Some(Deadlines {
            until: until.boot,
            offline_until: offline.boot,
            wall_until_ms: until.wall_ms,
            offline_wall_until_ms: offline.wall_ms,
        });
        self.deadlines
    }

    /// Ends the permit because a hub refused it. Answers to beats sent before are ignored from now on.
    pub fn refused(&mut self) {
        self.sent.clear();
        self.deadlines = None;
    }

    /// Returns the deadlines of the permit that is held.
    pub fn deadlines(&self) -> Option<Deadlines> {
        self.deadlines
    }
}

/// The hub's side: the order in which beats arrive and database transactions begin.
///
/// A hub shares one value among all its tasks. It stamps a beat with [`arrived`](Self::arrived) when the beat has been
/// received, takes [`begin_read`](Self::begin_read) before the first statement of a transaction, and grants a permit only
/// through [`ReadBegun::permit`].
#[derive(Debug, Default)]
pub struct ReadOrder {
    begun: AtomicU64,
}

/// The stamp of a beat that was received.
#[derive(Clone, Copy, Debug)]
pub struct Arrival(u64);

/// The stamp of a database transaction that was begun.
#[derive(Clone, Copy, Debug)]
pub struct ReadBegun(u64);

impl ReadOrder {
    /// Stamps a beat that was received.
    pub fn arrived(&self) -> Arrival {
        Arrival(self.begun.load(Ordering::SeqCst))
    }

    /// Stamps a transaction that is about to begin.
    pub fn begin_read(&self) -> ReadBegun {
        ReadBegun(self.begun.fetch_add(1, Ordering::SeqCst) + 1)
    }
}

impl ReadBegun {
    /// Returns the permit for a beat, or `None` if the beat arrived after this transaction began.
    ///
    /// Call it after the transaction has *committed a write* with synchronous replication. A former primary that a
    /// promotion left behind still answers reads, but its commits wait for a standby that no longer follows it.
    pub fn permit<T>(self, arrival: Arrival, terms: T) -> Option<T> {
        (self.0 > arrival.0).then_some(terms)
    }
}

/// The part of a term that is deducted for clock drift: one in a hundred.
const DRIFT: u32 = 100;

/// The number of unanswered beats that are remembered.
const UNANSWERED: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: PermitTerms = PermitTerms { term: Duration::from_secs(30), offline: Duration::from_secs(60) };

    fn at(seconds: u64) -> Moment {
        Moment { boot: Duration::from_secs(seconds), wall_ms: 1_000_000 + i64::try_from(seconds).unwrap() * 1000 }
    }

    fn send(holder: &mut PermitHolder, seconds: u64) -> u64 {
        holder.sending(at(seconds).boot, at(seconds).wall_ms)
    }

    #[test]
    fn a_permit_counts_from_the_sending_less_one_percent() {
        let mut holder = PermitHolder::default();
        let beat = send(&mut holder, 100);
        let deadlines = holder.granted(beat, TERMS).unwrap();
        assert_eq!(deadlines.until, Duration::from_millis(129_700));
        assert_eq!(deadlines.offline_until, Duration::from_millis(189_100));
        assert_eq!(deadlines.wall_until_ms, 1_129_700);
        assert!(deadlines.allows(at(129)) && !deadlines.allows(at(130)));
        assert!(deadlines.allows_low_read(at(189)) && !deadlines.allows_low_read(at(190)));
    }

    #[test]
    fn either_clock_ends_a_permit() {
        let mut holder = PermitHolder::default();
        let beat = send(&mut holder, 0);
        let deadlines = holder.granted(beat, TERMS).unwrap();
        assert!(!deadlines.allows(Moment { boot: at(40).boot, wall_ms: at(1).wall_ms }));
        assert!(!deadlines.allows(Moment { boot: at(1).boot, wall_ms: at(40).wall_ms }));
    }

    #[test]
    fn a_late_answer_to_an_earlier_beat_changes_nothing() {
        let mut holder = PermitHolder::default();
        let (first, second) = (send(&mut holder, 0), send(&mut holder, 10));
        let deadlines = holder.granted(second, TERMS);
        assert_eq!(holder.granted(first, TERMS), None);
        assert_eq!(holder.granted(second, TERMS), None);
        assert_eq!(holder.granted(99, TERMS), None);
        assert_eq!(holder.deadlines(), deadlines);
    }

    #[test]
    fn a_refusal_outlives_answers_that_were_under_way() {
        let mut holder = PermitHolder::default();
        let (first, second) = (send(&mut holder, 0), send(&mut holder, 10));
        holder.refused();
        assert_eq!((holder.granted(first, TERMS), holder.granted(second, TERMS)), (None, None));
        let third = send(&mut holder, 20);
        assert!(holder.granted(third, TERMS).is_some());
    }

    #[test]
    fn only_the_latest_unanswered_beats_are_remembered() {
        let mut holder = PermitHolder::default();
        let first = send(&mut holder, 0);
        for seconds in 1..=16 {
            send(&mut holder, seconds);
        }
        assert_eq!(holder.granted(first, TERMS), None);
        assert!(holder.granted(2, TERMS).is_some());
    }

    #[test]
    fn endless_terms_do_not_overflow() {
        let mut holder = PermitHolder::default();
        let beat = holder.sending(Duration::MAX, i64::MAX);
        let terms = PermitTerms { term: Duration::MAX, offline: Duration::MAX };
        assert_eq!(holder.granted(beat, terms).unwrap().offline_until, Duration::MAX);
    }

    #[test]
    fn a_read_that_began_before_the_arrival_grants_nothing() {
        let order = ReadOrder::default();
        let early = order.begin_read();
        let arrival = order.arrived();
        assert_eq!(early.permit(arrival, TERMS), None);
        assert_eq!(order.begin_read().permit(arrival, TERMS), Some(TERMS));
    }
}
