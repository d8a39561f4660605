//! The clock for decisions: the system's clock, but never before the last log entry, and not trusted when it runs far
//! ahead of the time since boot.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::governor::states::checked_note;
use crate::governor::{Hold as _, Log};
use crate::model::parts::ClockReportParts;
use crate::model::{ClockReport, Error, Timestamp, checked_person};
use crate::system::Clock;

/// The system's clock, compared with the log and with the time since boot.
pub(crate) struct DecisionClock {
    system: Arc<dyn Clock>,
    /// The time of the last log entry, maintained by the queue.
    last_entry: Arc<AtomicI64>,
    /// The clock's time at the last comparison.
    compared_at: AtomicI64,
    /// The clock's lead over the expected time then, in milliseconds.
    ahead: AtomicI64,
    // Held to compare or confirm; no other lock is acquired while it is held.
    believed: Mutex<Believed>,
}

/// The reference for comparisons.
#[derive(Debug, Default, Clone, Copy)]
struct Believed {
    /// The clock's time and the time since boot at the first comparison; `None` while the clock is more than an hour
    /// behind the last entry.
    start: Option<(i64, Duration)>,
    /// The last entry's time, and how many days (more than 30) the clock was past it when the store was opened.
    gap: Option<(i64, i64)>,
}

impl DecisionClock {
    pub(crate) fn new(system: Arc<dyn Clock>, last_entry: Arc<AtomicI64>) -> Self {
        let (compared_at, ahead) = (AtomicI64::new(i64::MIN), AtomicI64::new(0));
        let clock = Self { system, last_entry, compared_at, ahead, believed: Mutex::default() };
        clock.compare(clock.system.now().as_millis());
        clock
    }

    /// The time for a decision.
    pub(crate) fn now(&self) -> Timestamp {
        let shown = self.system.now().as_millis();
        if shown.abs_diff(self.compared_at.load(Ordering::Acquire)) >= COMPARED_EVERY {
            self.compare(shown);
        }
        let ahead = self.ahead.load(Ordering::Acquire);
        let believed = if ahead > MOST_AHEAD { shown.saturating_sub(ahead) } else { shown };
        Timestamp::from_millis(believed.max(self.last_entry.load(Ordering::Acquire)))
    }

    /// Fails if the clock is more than a day ahead of the expected time and nobody has confirmed it.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let ahead = self.ahead.load(Ordering::Acquire);
        if ahead <= MOST_AHEAD {
            return Ok(());
        }
        let shown = self.system.now().as_millis();
        let differs = differs(shown, shown - ahead, "the time since boot");
        Err(Error::storage(format!("{differs}; correct the clock, or confirm its time with clock/accept")))
    }

    /// Warnings about the clock, and whether each degrades the log's health.
    pub(crate) fn warnings(&self) -> Vec<(String, bool)> {
        let shown = self.system.now().as_millis();
        self.compare(shown);
        let ahead = self.ahead.load(Ordering::Acquire);
        let last = self.last_entry.load(Ordering::Acquire);
        let gap = self.believed.hold().gap;
        let mut warnings = Vec::new();
        if ahead.abs() > MOST_AWAY {
            warnings.push((differs(shown, shown - ahead, "the time since boot"), true));
        }
        if last.saturating_sub(shown) > MOST_AWAY {
            let by = "the last entry of the log, whose time is used until the clock has passed it";
            warnings.push((differs(shown, last, by), true));
        }
        if let Some((last, days)) = gap {
            let last = Timestamp::from_millis(last);
            let warning = format!("when the log was opened, the clock was {days} days past the last entry, of {last}");
            warnings.push((warning, false));
        }
        warnings
    }

    /// Accepts the clock's time as the new reference.
    fn accept(&self, shown: Timestamp) {
        let mut believed = self.believed.hold();
        *believed = Believed { start: self.system.since_boot().map(|boot| (shown.as_millis(), boot)), gap: None };
        self.ahead.store(0, Ordering::Release);
        self.compared_at.store(shown.as_millis(), Ordering::Release);
    }

    /// Compares the clock with the time since boot.
    fn compare(&self, shown: i64) {
        let mut believed = self.believed.hold();
        if let Some(boot) = self.system.since_boot() {
            let last = self.last_entry.load(Ordering::Acquire);
            match believed.start {
                Some((start, then)) => {
                    let passed = i64::try_from(boot.saturating_sub(then).as_millis()).unwrap_or(i64::MAX);
                    self.ahead.store(shown.saturating_sub(start.saturating_add(passed)), Ordering::Release);
                }
                // The clock may have been unset when the store was opened, and be set later.
                None if shown >= last.saturating_sub(MOST_AWAY) => {
                    let gap = if last > i64::MIN { shown.saturating_sub(last) } else { 0 };
                    let gap = (gap > LONGEST_GAP).then_some((last, gap / MILLIS_PER_DAY));
                    *believed = Believed { start: Some((shown, boot)), gap };
                }
                None => {}
            }
        }
        self.compared_at.store(shown, Ordering::Release);
    }
}

impl Clock for DecisionClock {
    fn now(&self) -> Timestamp {
        self.now()
    }

    fn monotonic(&self) -> Duration {
        self.system.monotonic()
    }

    fn since_boot(&self) -> Option<Duration> {
        self.system.since_boot()
    }
}

impl Log<'_> {
    /// Confirms the clock's time, whatever the log or the time since boot says. If the clock is before the last entry,
    /// log time restarts: later entries use the clock's time, and rate limits, amounts and the day's trust gains count
    /// from zero. What has expired stays expired. `by` names the operator (1 to 256 characters), `note` says why; both
    /// are recorded.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a malformed `by` or a note that is too long; [`Error::StorageUnavailable`] or
    /// [`Error::ChainBroken`] when it cannot be recorded.
    pub fn accept_clock(self, by: &str, note: &str) -> Result<ClockReport, Error> {
        let inner = &*self.governor.inner;
        let (by, note) = (checked_person("by", by)?, checked_note(note)?.trim().to_owned());
        inner.base.log.wait_verified()?;
        // What has expired by the previous time stays expired.
        self.governor.inner.here()?.approvals.end_what_is_due();
        inner.extensions.running().iter().for_each(|follower| follower.expire(self.governor));
        let shown = inner.base.clock.system.now();
        // Held from before the step until the counters are reset, so that no decision sees one without the other.
        let mut counters = inner.rules.limits.state.hold();
        let (sequence, from) = inner.base.log.accept_clock(shown, by, note)?;
        inner.base.clock.accept(shown);
        if shown < from {
            counters.restart(shown);
            drop(counters);
            self.governor.inner.approvals.end_long_pre_approvals(shown);
        } else {
            drop(counters);
        }
        inner.base.log.settle_in_any_case(sequence)?;
        self.governor.inner.roster.restart_trust(inner.base.clock.now())?;
        Ok(ClockReport::from(ClockReportParts { from, to: shown }))
    }
}

fn differs(shown: i64, expected: i64, by: &str) -> String {
    let [shown, expected] = [shown, expected].map(Timestamp::from_millis);
    format!("the clock shows {shown}, but {expected} was expected from {by}")
}

/// Deviation in milliseconds above which a warning is raised.
const MOST_AWAY: i64 = 3_600_000;
/// Lead in milliseconds above which the clock is not trusted.
const MOST_AHEAD: i64 = MILLIS_PER_DAY;
/// Pause in milliseconds after which the log may have been opened under a wrong clock.
const LONGEST_GAP: i64 = 30 * MILLIS_PER_DAY;
/// The clock is compared again once it has moved by this many milliseconds.
const COMPARED_EVERY: u64 = 10_000;
const MILLIS_PER_DAY: i64 = 86_400_000;
