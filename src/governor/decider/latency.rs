//! Durations of recent enforcements: a histogram for every ten seconds of the last five minutes, from which mean and
//! percentiles are computed.
//!
//! The histogram is log-linear: each doubling from half a microsecond to four seconds has seventeen buckets, so a
//! duration is known within 3 %. Adding one takes a few relaxed atomic operations and no lock.

use std::array;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::governor::Hold as _;
use crate::model::LatencyMetrics;
use crate::model::parts::LatencyMetricsParts;

/// The durations of the enforcements in the window.
pub(crate) struct Latency {
    slots: Box<[Slot]>,
    // Held to clear a slot for its next interval; other threads only read the slot's interval.
    emptying: Mutex<()>,
}

/// The histogram of ten seconds.
struct Slot {
    /// The number of its interval since the governor was opened; `NONE` while it is cleared.
    interval: AtomicU64,
    nanos: AtomicU64,
    longest: AtomicU64,
    counts: [AtomicU32; COUNTERS],
}

impl Default for Latency {
    fn default() -> Self {
        Self { slots: (0..SLOTS).map(|_| Slot::new()).collect(), emptying: Mutex::default() }
    }
}

impl Latency {
    /// Adds an enforcement that took `took` and ended `at` after the governor was opened.
    pub(crate) fn add(&self, at: Duration, took: Duration) {
        let interval = at.as_secs() / SLOT_SECONDS;
        let Some(slot) = self.slot(interval) else { return };
        if slot.interval.load(Ordering::Acquire) != interval {
            self.begin(slot, interval);
        }
        // INVARIANT: a slot counts one interval for ten seconds and is cleared five minutes later. A thread that stalls
        // that long between the check and the addition counts in a later interval; nothing is lost.
        slot.add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    /// The metrics of the window that ends `at` after the opening: the mean in milliseconds, and the rest.
    pub(crate) fn over_window(&self, at: Duration) -> (f64, LatencyMetrics) {
        let now = at.as_secs() / SLOT_SECONDS;
        let mut sum = Sum { counts: vec![0; COUNTERS], nanos: 0, longest: 0 };
        for interval in now.saturating_sub(SLOTS - 1)..=now {
            if let Some(slot) = self.slot(interval) {
                slot.add_to(&mut sum, interval);
            }
        }
        (sum.mean_millis(), sum.metrics())
    }

    fn slot(&self, interval: u64) -> Option<&Slot> {
        self.slots.get(usize::try_from(interval % SLOTS).ok()?)
    }

    /// Clears a slot for an interval, unless another thread has.
    #[cold]
    fn begin(&self, slot: &Slot, interval: u64) {
        let _emptying = self.emptying.hold();
        let standing = slot.interval.load(Ordering::Acquire);
        // A late thread finds a later interval and counts there.
        if standing == NONE || standing < interval {
            slot.interval.store(NONE, Ordering::Release);
            slot.nanos.store(0, Ordering::Relaxed);
            slot.longest.store(0, Ordering::Relaxed);
            slot.counts.iter().for_each(|count| count.store(0, Ordering::Relaxed));
            slot.interval.store(interval, Ordering::Release);
        }
    }
}

impl Slot {
    fn new() -> Self {
        Self {
            interval: AtomicU64::new(NONE),
            nanos: AtomicU64::new(0),
            longest: AtomicU64::new(0),
            counts: array::from_fn(|_| AtomicU32::new(0)),
        }
    }

    fn add(&self, nanos: u64) {
        if let Some(count) = self.counts.get(counter_of(nanos)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
        if nanos > self.longest.load(Ordering::Relaxed) {
            self.longest.fetch_max(nanos, Ordering::Relaxed);
        }
    }

    fn add_to(&self, sum: &mut Sum, interval: u64) {
        if self.interval.load(Ordering::Acquire) != interval {
            return;
        }
        for (sum, count) in sum.counts.iter_mut().zip(&self.counts) {
            *sum += u64::from(count.load(Ordering::Relaxed));
        }
        sum.nanos += self.nanos.load(Ordering::Relaxed);
        sum.longest = sum.longest.max(self.longest.load(Ordering::Relaxed));
    }
}

/// The sum of the slots of a window.
struct Sum {
    counts: Vec<u64>,
    nanos: u64,
    longest: u64,
}

#[allow(clippy::cast_precision_loss)] // lengths that are told within 3 % need no more than 53 bits
impl Sum {
    fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    fn mean_millis(&self) -> f64 {
        match self.count() {
            0 => 0.0,
            count => self.nanos as f64 / count as f64 / NANOS_PER_MILLI,
        }
    }

    fn metrics(&self) -> LatencyMetrics {
        let [p50_ms, p90_ms, p99_ms] = [50, 90, 99].map(|percent| self.percentile_millis(percent));
        LatencyMetrics::from(LatencyMetricsParts {
            window_seconds: SLOTS * SLOT_SECONDS,
            count: self.count(),
            p50_ms,
            p90_ms,
            p99_ms,
            max_ms: self.longest as f64 / NANOS_PER_MILLI,
        })
    }

    /// The duration that this percentage does not exceed, by nearest rank; 0 without any.
    fn percentile_millis(&self, percent: u64) -> f64 {
        let rank = (self.count() * percent).div_ceil(100).max(1);
        let mut before = 0;
        let found = self.counts.iter().position(|count| {
            before += count;
            before >= rank
        });
        let longest = self.longest as f64;
        found.map_or(0.0, |counter| length_of(counter).min(longest)) / NANOS_PER_MILLI
    }
}

/// The bucket of a duration.
fn counter_of(nanos: u64) -> usize {
    if nanos < 1 << SHORTEST_BITS {
        return 0;
    }
    let bits = nanos.ilog2();
    // The position within the doubling, as a fraction of 2^64.
    let within = u128::from(nanos << (u64::BITS - bits));
    let step = usize::try_from((within * STEPS as u128) >> u64::BITS).unwrap_or(0);
    let doubling = (bits - SHORTEST_BITS) as usize;
    (1 + doubling * STEPS + step).min(COUNTERS - 1)
}

/// The duration in nanoseconds that represents a bucket: the harmonic mean of its ends, equally far from both by ratio.
#[allow(clippy::cast_precision_loss)] // small numbers
fn length_of(counter: usize) -> f64 {
    let shortest = f64::from(1_u32 << SHORTEST_BITS);
    let Some(place) = counter.checked_sub(1) else { return shortest };
    if counter == COUNTERS - 1 {
        // Beyond the longest distinguished duration.
        return f64::INFINITY;
    }
    let end = |place: usize| {
        let (doubling, step) = (place / STEPS, place % STEPS);
        shortest * (1_u64 << doubling) as f64 * (1.0 + step as f64 / STEPS as f64)
    };
    let (from, to) = (end(place), end(place + 1));
    2.0 * from * to / (from + to)
}

/// Length of a slot in seconds.
const SLOT_SECONDS: u64 = 10;
/// Number of slots in the window, including the current one.
const SLOTS: u64 = 30;
/// The interval of a slot that counts nothing.
const NONE: u64 = u64::MAX;
/// Durations below two to this power, in nanoseconds, share one bucket.
const SHORTEST_BITS: u32 = 9;
/// Number of doublings above it; longer durations share one bucket.
const DOUBLINGS: usize = 23;
/// Buckets per doubling: half the width of the widest is 1/35 of its duration.
const STEPS: usize = 17;
/// Two more for shorter and for longer durations.
const COUNTERS: usize = DOUBLINGS * STEPS + 2;
const NANOS_PER_MILLI: f64 = 1e6;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::thread;

    const SECOND: Duration = Duration::from_secs(1);

    fn close(told: f64, nanos: u64) -> bool {
        #[allow(clippy::cast_precision_loss)]
        let (nanos, told) = (nanos as f64, told * NANOS_PER_MILLI);
        (told - nanos).abs() <= 0.03 * nanos
    }

    proptest! {
        #[test]
        fn percentiles_are_those_of_a_sorted_list_within_three_percent(
            lengths in vec((9..32_u32, any::<u32>()), 1..300)
        ) {
            let latency = Latency::default();
            let mut nanos: Vec<u64> = lengths.iter().map(|(bits, rest)| (1 << bits) + u64::from(*rest) % (1 << bits)).collect();
            for (second, nanos) in (0..).zip(&nanos) {
                latency.add(SECOND * (second % 299), Duration::from_nanos(*nanos));
            }
            nanos.sort_unstable();
            let (mean, metrics) = latency.over_window(SECOND * 299);
            let at = |percent: usize| nanos[(nanos.len() * percent).div_ceil(100) - 1];
            prop_assert!(close(metrics.p50_ms, at(50)), "{} is not {}", metrics.p50_ms, at(50));
            prop_assert!(close(metrics.p90_ms, at(90)), "{} is not {}", metrics.p90_ms, at(90));
            prop_assert!(close(metrics.p99_ms, at(99)), "{} is not {}", metrics.p99_ms, at(99));
            #[allow(clippy::cast_precision_loss)]
            let (longest, sum, count) =
                (*nanos.last().unwrap() as f64, nanos.iter().sum::<u64>() as f64, nanos.len() as f64);
            prop_assert!((metrics.max_ms - longest / 1e6).abs() < 1e-9);
            prop_assert!((mean - sum / count / 1e6).abs() <= 1e-9 * mean);
            prop_assert_eq!(metrics.count, nanos.len() as u64);
        }
    }

    #[test]
    fn every_length_has_a_counter_and_longer_ones_no_earlier_one() {
        let lengths = (0..64).flat_map(|bits| {
            let nanos = 1_u64 << bits;
            [nanos - 1, nanos, nanos + nanos / 17, nanos + nanos / 2]
        });
        let counters: Vec<usize> = lengths.chain([u64::MAX]).map(counter_of).collect();
        assert!(counters.is_sorted());
        assert_eq!((counters[0], *counters.last().unwrap()), (0, COUNTERS - 1));
    }

    #[test]
    fn lengths_outside_the_range_count_as_the_nearest_bound() {
        let latency = Latency::default();
        assert_eq!(latency.over_window(SECOND), (0.0, Sum { counts: vec![], nanos: 0, longest: 0 }.metrics()));
        latency.add(SECOND, Duration::from_nanos(1));
        let close_to = |told: f64, millis: f64| (told - millis).abs() < 1e-12;
        assert!(close_to(latency.over_window(SECOND).1.p99_ms, 1e-6));
        latency.add(SECOND, SECOND * 60);
        assert!(close_to(latency.over_window(SECOND).1.p99_ms, 60_000.0));
    }

    #[test]
    fn what_is_older_than_the_window_is_gone_and_nothing_younger_is() {
        let latency = Latency::default();
        for second in 0..900 {
            latency.add(SECOND * second, SECOND);
            let from = (u64::from(second) / SLOT_SECONDS).saturating_sub(SLOTS - 1) * SLOT_SECONDS;
            assert_eq!(latency.over_window(SECOND * second).1.count, u64::from(second) - from + 1, "{second}");
        }
        assert_eq!(latency.over_window(SECOND * 1200).1.count, 0);
        assert!(latency.over_window(SECOND * 1200).0 < f64::MIN_POSITIVE);
    }

    #[test]
    fn none_is_lost_where_many_begin_the_same_interval() {
        let latency = &Latency::default();
        // One of them must clear the slot of an old interval, exactly once.
        (0..30).for_each(|slot| latency.add(SECOND * slot * 10, SECOND));
        thread::scope(|scope| {
            for thread in 0..8_u32 {
                scope.spawn(move || {
                    (0..3000).for_each(|turn| latency.add(SECOND * (300 + (turn + thread) % 300), SECOND));
                });
            }
        });
        assert_eq!(latency.over_window(SECOND * 599).1.count, 24_000);
    }
}
