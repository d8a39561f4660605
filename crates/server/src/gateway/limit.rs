//! Rate limits by the generic cell rate algorithm of the `governor` crate: for each API key by its plan, and for
//! callers with rejected keys.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gcra::clock::{Clock as LimiterClock, Reference};
use gcra::middleware::{NoOpMiddleware, StateInformationMiddleware};
use gcra::nanos::Nanos;
use gcra::state::keyed::HashMapStateStore;
use gcra::state::{InMemoryState, NotKeyed};
use gcra::{Quota, RateLimiter};
use serde::Serialize;

use super::key::Plan;
use rulekeep::Error;
use rulekeep::system::Clock;

/// The governor's clock, adapted to the limiter.
#[derive(Clone)]
pub(super) struct Time(pub(super) Arc<dyn Clock>);

impl LimiterClock for Time {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::from(self.0.monotonic())
    }
}

/// The remaining request allowance of an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Allowance {
    /// The plan of the key.
    pub plan: Plan,
    /// The number of requests that can be made right now.
    pub remaining: u32,
    /// Seconds until the full burst is available again, rounded up.
    pub reset_seconds: u64,
}

/// Limits the requests of one key.
pub(super) struct PlanLimit {
    plan: Plan,
    limiter: RateLimiter<NotKeyed, InMemoryState, Time, StateInformationMiddleware>,
}

impl PlanLimit {
    pub(super) fn new(plan: Plan, time: &Time) -> Self {
        let quota = Quota::per_minute(plan.per_minute()).allow_burst(plan.burst());
        let limiter = RateLimiter::direct_with_clock(quota, time.clone()).with_middleware();
        Self { plan, limiter }
    }

    /// Takes room for one request. An error carries the allowance as well.
    pub(super) fn take(&self) -> Result<Allowance, (Error, Allowance)> {
        let each = Duration::from_secs(60) / self.plan.per_minute().get();
        match self.limiter.check() {
            Ok(state) => {
                let remaining = state.remaining_burst_capacity();
                let used = self.plan.burst().get().saturating_sub(remaining);
                let reset_seconds = rounded_up(each.saturating_mul(used));
                Ok(Allowance { plan: self.plan, remaining, reset_seconds })
            }
            Err(full) => {
                let retry_after = full.wait_time_from(self.limiter.clock().now());
                let message = format!(
                    "too many requests with this key: its plan permits {} a minute and a burst of {}",
                    self.plan.per_minute(),
                    self.plan.burst()
                );
                let others = self.plan.burst().get().saturating_sub(1);
                let reset_seconds = rounded_up(retry_after.saturating_add(each.saturating_mul(others)));
                let allowance = Allowance { plan: self.plan, remaining: 0, reset_seconds };
                Err((Error::RateLimited { message, retry_after }, allowance))
            }
        }
    }
}

/// Slows down callers that send rejected keys.
pub(super) struct Refusals {
    time: Time,
    limiter: RateLimiter<Box<str>, HashMapStateStore<Box<str>>, Time, NoOpMiddleware<Nanos>>,
    /// The callers that have to wait, and until when.
    blocked: Mutex<HashMap<Box<str>, Nanos>>,
}

/// Number of rejected keys that a caller may send at once, and then per minute.
const REFUSED: NonZeroU32 = NonZeroU32::MIN.saturating_add(19);
/// Maximum number of callers that are told apart; further ones share a single limit.
const CALLERS: usize = 65_536;
/// The name that they share.
const OTHERS: &str = "";

impl Refusals {
    pub(super) fn new(time: &Time) -> Self {
        let quota = Quota::per_minute(REFUSED);
        let limiter = RateLimiter::hashmap_with_clock(quota, time.clone());
        Self { time: time.clone(), limiter, blocked: Mutex::default() }
    }

    /// Counts a rejected key. Returns an error if it exceeds the limit.
    pub(super) fn note(&self, caller: &str) -> Result<(), Error> {
        let caller = self.counted_as(caller);
        match self.limiter.check_key(&caller) {
            Ok(()) => Ok(()),
            Err(full) => {
                let now = self.time.now();
                let mut blocked = self.blocked.lock().unwrap_or_else(PoisonError::into_inner);
                blocked.retain(|_, until| *until > now);
                blocked.insert(caller, full.earliest_possible());
                Err(too_many(full.wait_time_from(now)))
            }
        }
    }

    /// Returns an error while the caller has to wait because of too many rejected keys.
    pub(super) fn look(&self, caller: &str) -> Result<(), Error> {
        let now = self.time.now();
        let blocked = self.blocked.lock().unwrap_or_else(PoisonError::into_inner);
        match blocked.get(caller).or_else(|| blocked.get(OTHERS)) {
            Some(until) if *until > now => Err(too_many(until.duration_since(now).into())),
            _ => Ok(()),
        }
    }

    fn counted_as(&self, caller: &str) -> Box<str> {
        if self.limiter.len() < CALLERS {
            return caller.into();
        }
        self.limiter.retain_recent();
        if self.limiter.len() < CALLERS { caller.into() } else { OTHERS.into() }
    }
}

fn too_many(retry_after: Duration) -> Error {
    Error::RateLimited { message: "too many refused keys from this address".to_owned(), retry_after }
}

fn rounded_up(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}
