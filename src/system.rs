//! What comes from outside beside files: time and randomness. Both come in
//! through small traits, so that a test can say what they are.

use std::time::{SystemTime, UNIX_EPOCH};

use rand::RngExt;

use crate::model::Timestamp;

/// Where the governor takes the time from.
pub trait Clock: Send + Sync {
    /// The time now. It may step back; the log never does.
    fn now(&self) -> Timestamp;
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
}

/// A cryptographic generator for each thread, seeded by the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn bits(&self) -> u128 {
        rand::rng().random()
    }
}
