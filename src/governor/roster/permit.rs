//! The permit gate: a governor that requires a permit decides only while its organisation lets it.
//!
//! A permit has deadlines on the time since boot, which goes on while the machine is suspended, and on the wall clock,
//! which goes on while a virtual machine is paused. Whichever comes first ends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;

use crate::governor::{Roster, conflict};
use crate::model::{Capability, Error, Operation, RiskLevel, Timestamp};
use crate::system::Clock;

/// The time for which a governor may decide, granted by its organisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permit {
    /// The end of the permit, as time since boot ([`Clock::since_boot`]).
    pub until: Duration,
    /// The end of the offline term, as time since boot. From `until` to this moment the policies decide only LOW-risk
    /// reads, and everything else is denied. No offline term if it is not after `until`.
    pub offline_until: Duration,
    /// The end of the permit by the wall clock.
    pub wall_until: Timestamp,
    /// The end of the offline term by the wall clock.
    pub offline_wall_until: Timestamp,
}

/// The permit in force, and whether decisions need one.
#[derive(Debug, Default)]
pub(crate) struct PermitGate {
    // Never reset.
    required: AtomicBool,
    // One pointer, so that no decision combines the deadlines of two permits. `None` before the first permit.
    held: ArcSwapOption<Held>,
}

#[derive(Debug)]
enum Held {
    Granted(Permit),
    Revoked,
}

impl PermitGate {
    /// Requires a permit for every decision from now on.
    pub(crate) fn require(&self, clock: &dyn Clock) -> Result<(), Error> {
        if clock.since_boot().is_none() {
            return conflict("a permit cannot be required: the clock does not tell the time since boot");
        }
        self.required.store(true, Ordering::Release);
        Ok(())
    }

    pub(crate) fn is_required(&self) -> bool {
        self.required.load(Ordering::Relaxed)
    }

    pub(crate) fn grant(&self, permit: Permit) {
        self.held.store(Some(Arc::new(Held::Granted(permit))));
    }

    pub(crate) fn revoke(&self) {
        self.held.store(Some(Arc::new(Held::Revoked)));
    }

    pub(crate) fn permit(&self) -> Option<Permit> {
        match self.held.load().as_deref() {
            Some(Held::Granted(permit)) => Some(*permit),
            Some(Held::Revoked) | None => None,
        }
    }

    /// The reason nothing, or only a LOW-risk read, may be decided at `now`; `None` if a permit is in force or none is
    /// required.
    pub(crate) fn refusal(&self, clock: &dyn Clock, now: Timestamp, is_low_read: bool) -> Option<String> {
        if !self.is_required() {
            return None;
        }
        let held = self.held.load();
        let permit = match held.as_deref() {
            Some(Held::Granted(permit)) => permit,
            Some(Held::Revoked) => return Some(format!("{NONE}; it was revoked")),
            None => return Some(format!("{NONE} yet")),
        };
        let boot = clock.since_boot();
        let is_within = |until: Duration, wall: Timestamp| boot.is_some_and(|boot| boot < until) && now < wall;
        if is_within(permit.until, permit.wall_until)
            || is_low_read && is_within(permit.offline_until, permit.offline_wall_until)
        {
            return None;
        }
        let past = boot.map_or(Duration::ZERO, |boot| boot.saturating_sub(permit.until));
        let past = i64::try_from(past.as_millis()).unwrap_or(i64::MAX);
        let by_boot = Timestamp::from_millis(now.as_millis().saturating_sub(past));
        Some(format!("{NONE}; it ended {}", by_boot.min(permit.wall_until)))
    }
}

impl Roster {
    /// The reason this governor's organisation does not let it decide on a request, if any.
    pub(crate) fn unpermitted(&self, risk: RiskLevel, required: &[Capability], now: Timestamp) -> Option<String> {
        self.permits.refusal(&*self.base.clock, now, is_low_read(risk, required))
    }
}

/// Returns whether a request is a LOW-risk read. One without capabilities is not.
pub(crate) fn is_low_read(risk: RiskLevel, required: &[Capability]) -> bool {
    risk == RiskLevel::Low
        && !required.is_empty()
        && required.iter().all(|capability| capability.operation() == Some(Operation::Read))
}

const NONE: &str = "this governor has no permit of its organisation";
