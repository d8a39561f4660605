//! Checking what is stored, while the log is in use.
//!
//! All of it goes by [`verify`]: the caller's verifications, and those of threads of ours. What it finds broken
//! makes the log read-only; where it ends is where the next one may begin. `behind.rs` has the thread that reads
//! all of the journal when a log was opened without, `scrub.rs` the one that reads it again and again.

mod behind;
mod scrub;

use std::io;
use std::sync::{Arc, PoisonError};

pub(super) use behind::{Behind, Believed};
pub(super) use scrub::Scrub;

use super::apply::Reading;
use super::index::{Held, HoldPlace, Holding};
use super::shared::Shared;
use crate::model::{ChainPosition, Verification};
use crate::store::{Manner, Position, ViewError};

/// What is to be verified, and how.
pub(super) struct Verifying<'a> {
    /// Behind which place; the whole journal without one.
    pub(super) since: Option<&'a ChainPosition>,
    /// What the index says, to be compared.
    pub(super) held: Option<&'a Held>,
    /// Threads at the most; 0 for as many as there are processors.
    pub(super) threads: usize,
    /// Called with how many entries are checked.
    pub(super) progress: Option<&'a dyn Fn(u64)>,
    /// Called before so many bytes are read; false to stop.
    pub(super) pace: Option<&'a (dyn Fn(u64) -> bool + Sync)>,
}

/// Verifies what is applied by now. Beside it, where the index says something else than the journal.
pub(super) fn verify(shared: &Shared, verifying: &Verifying<'_>) -> io::Result<(Verification, Option<String>)> {
    let start = shared.reader.start();
    let totals = *shared.index().totals();
    let until: Position = totals.applied;
    let since = verifying.since.map(|since| Position { entries: since.entries, link: since.link });
    let rule = verifying.held.map(Held::rule);
    let mut reading = Reading::checking_range(Arc::clone(&shared.erasures), verifying.since, until, rule);
    let manner = Manner { threads: verifying.threads, progress: verifying.progress, pace: verifying.pace };
    let found = shared.reader.verify_parts(&mut reading, since, until, manner)?;
    let chain = reading.verified();
    let breakage = if found.began_elsewhere {
        // The place was none of this log; that says nothing against the log itself.
        found.breakage
    } else {
        shared.note_breakage(found.breakage)
    };
    let mut verification = Verification::new(chain.records, chain.head_hash, breakage);
    verification.checked.from = verifying.since.map_or(start.entries, |since| since.entries);
    if !verification.valid {
        return Ok((verification, None));
    }
    let position = ChainPosition::new(until.entries, until.link, chain.records, chain.head_hash);
    verification.checked.until = Some(position);
    // Verified is what was verified in one piece: behind a place that a caller brought, only its caller knows.
    let mut last = shared.verified.lock().unwrap_or_else(PoisonError::into_inner);
    // Of a log whose first entries have left meanwhile it counts too many.
    let extends = shared.reader.start() == start && verifying.since.is_none_or(|since| *last == Some(*since));
    if extends && last.is_none_or(|last| last.entries <= position.entries) {
        *last = Some(position);
    }
    Ok((verification, verifying.held.and_then(|held| held.differs_from(&reading.held))))
}

impl Shared {
    /// Where the last verification ended that found nothing broken.
    pub(super) fn verified_until(&self) -> Option<ChainPosition> {
        *self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that the index says, read in pieces so that the log goes on meanwhile.
    pub(super) fn held(&self) -> Result<Held, ViewError> {
        let (mut place, mut holding) = (HoldPlace::default(), Holding::new());
        while self.index().hold(&mut place, &mut holding)? {}
        Ok(holding.done())
    }
}
