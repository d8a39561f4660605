//! Sources of time and randomness, as small traits that tests can replace.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rand::RngExt;

pub use crate::{ClockReport, Timestamp};

/// A source of time for the governor.
pub trait Clock: Send + Sync {
    /// Returns the current time. It may step back; log time does not, unless an operator confirms the clock.
    fn now(&self) -> Timestamp;

    /// Returns the time since a fixed moment, including time the machine was asleep, or `None` without such a clock
    /// (the default).
    ///
    /// While a governor runs, [`Clock::now`] is compared with it. A deviation of more than an hour raises a warning; a
    /// clock more than a day ahead is not trusted. With `None` nothing is compared.
    fn since_boot(&self) -> Option<Duration> {
        None
    }

    /// Returns the time since a fixed moment; it never steps back. Request rate limits and deadlines of grants use it.
    /// The default counts from the first call in the process.
    fn monotonic(&self) -> Duration {
        static FIRST: OnceLock<Instant> = OnceLock::new();
        FIRST.get_or_init(Instant::now).elapsed()
    }
}

/// A source of random bits. It must be unpredictable in production, because it supplies the salts of evidence.
pub trait Entropy: Send + Sync {
    /// Returns 128 new random bits.
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

    /// Uses `CLOCK_BOOTTIME` on Linux and Android and `CLOCK_MONOTONIC` on Apple systems, which both continue while the
    /// machine is suspended; `None` elsewhere.
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

/// A cryptographic generator per thread, seeded by the operating system.
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
