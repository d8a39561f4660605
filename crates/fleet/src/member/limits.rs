//! Shared limits at a governor: its purse, which the hub fills when a decision needs more.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rulekeep::extension::{Share as PolicyShare, SharedLimits, SharedUse, Taken};
use sha2::{Digest as _, Sha256};

use super::beats::now;
use super::{MemberError, Shared};
use crate::budget::{Share, Want};
use crate::purse::{Taken as Found, Use};
use crate::wire::{Reserve, Reserved};

/// The limits that a member shares.
pub(super) struct Limits {
    shared: Arc<Shared>,
}

impl Limits {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Asks a hub for parts of limits. Returns the counter of one that it refuses.
    fn ask(&self, wants: Vec<Want>, timeout: Duration) -> Result<Option<String>, MemberError> {
        let Shared { link, key, .. } = &*self.shared;
        let boot = self.shared.boot.clone();
        let request = Reserve { governor: key.name().to_owned(), boot, wants };
        let answer: Reserved = link.call(key, "/fleet/v1/reserve", &request, timeout)?;
        let mut purse = self.shared.purse();
        answer.grants.iter().for_each(|grant| purse.granted(grant));
        answer.refused.iter().for_each(|number| purse.refused(*number));
        let refused = request.wants.iter().find(|want| answer.refused.contains(&want.number));
        Ok(refused.map(|want| want.counter.clone()))
    }
}

impl SharedLimits for Limits {
    fn take(&self, request: &str, uses: &[SharedUse<'_>]) -> Taken {
        let mut short = uses.first().map_or("", |each| each.counter).to_owned();
        let Some(governor) = self.shared.governor.upgrade() else { return Taken::Short { counter: short.into() } };
        let decision = number_of(request);
        let uses: Vec<Use<'_>> = uses.iter().map(wanted).collect();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = self.shared.purse().take(decision, &uses, now(&governor));
            let wants = match found {
                Found::All => return Taken::All,
                Found::Short => return Taken::Short { counter: short.into() },
                Found::Ask(wants) => wants,
            };
            match self.ask(wants, deadline.saturating_duration_since(Instant::now())) {
                Ok(Some(refused)) => short = refused,
                Ok(None) if Instant::now() < deadline => {}
                // No answer counts as used up. What is granted late goes back with the next beat.
                _ => {
                    self.shared.purse().give_up(decision);
                    return Taken::Short { counter: short.into() };
                }
            }
        }
    }

    fn give_back(&self, request: &str) {
        self.shared.purse().put_back(number_of(request));
    }
}

/// A number for a request, whose name is random.
fn number_of(request: &str) -> u64 {
    Sha256::digest(request).iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn wanted<'a>(of: &SharedUse<'a>) -> Use<'a> {
    let share = if of.share == PolicyShare::Lease { Share::Lease } else { Share::Reserve };
    Use { counter: of.counter, share, amount: of.amount }
}

/// The time that a decision waits for a hub.
const PATIENCE: Duration = Duration::from_millis(250);
