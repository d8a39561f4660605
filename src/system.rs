//! What comes from outside beside files: time and randomness. Both come in
//! through small traits, so that a test can say what they are.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rand::RngExt;

pub use crate::model::{ClockReport, Timestamp};

/// Where the governor takes the time from.
pub trait Clock: Send + Sync {
    /// The time now. It may step back; the log does not, unless an operator confirms it.
    fn now(&self) -> Timestamp;

    /// The time since some moment that stays the same, with the time that the machine slept. [`Clock::now`] is compared
    /// with it while a governor runs: what steps more than an hour away is told, what steps more than a day ahead is not
    /// believed. `None` where there is no such clock; then nothing is compared. As it is built in, `None`.
    fn since_boot(&self) -> Option<Duration> {
        None
    }

    /// The time since some moment that stays the same. It never steps back; limits of rates are counted in it. As it is
    /// built in, the time since the process first asked.
    fn monotonic(&self) -> Duration {
        static FIRST: OnceLock<Instant> = OnceLock::new();
        FIRST.get_or_init(Instant::now).elapsed()
    }
}

/// Where the governor takes random bits from: the salts of evidence rest on
/// them, so they must be unpredictable in production.
pub trait Entropy: Send + Sync {
    /// 128 fresh random bits.
    fn bits(&self) -> u128;
}

/// The operating system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    /// `CLOCK_BOOTTIME` on Linux and Android, `CLOCK_MONOTONIC` on Apple's systems, which both go on in a suspended
    /// machine; `None` elsewhere.
    fn since_boot(&self) -> Option<Duration> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let clock = rustix::time::ClockId::Boottime;
        #[cfg(target_vendor = "apple")]
        let clock = rustix::time::ClockId::Monotonic;
        #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
        {
            Duration::try_from(rustix::time::clock_gettime(clock)).ok()
        }
        #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
        None
    }
}

/// A cryptographic generator for each thread, seeded by the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn bits(&self) -> u128 {
        rand::rng().random()
    }
}

#[cfg(all(test, any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
mod tests {
    use super::*;

    #[test]
    fn the_time_since_boot_goes_on() {
        let first = SystemClock.since_boot().unwrap();
        while SystemClock.since_boot().unwrap() == first {}
        assert!(SystemClock.since_boot().unwrap() > first);
    }
}
