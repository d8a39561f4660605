//! Checking what is stored, while the log is in use.
//!
//! All of it goes by [`verify`]: the caller's verifications, and those of threads of ours. What it finds broken
//! makes the log read-only; where it ends is where the next one may begin. `behind.rs` has the thread that reads
//! all of the journal when a log was opened without, `scrub.rs` the one that reads it again and again.

mod behind;
mod scrub;

use std::io;
use std::sync::Arc;

pub(crate) use behind::{Behind, Believed};
pub(crate) use scrub::Scrub;

use super::erase::carry_out_again;
use crate::model::{ChainPosition, Verification};
use crate::proof::index::reading::Reading;
use crate::proof::index::{Held, HoldPlace, Holding};
use crate::proof::parts::Parts;
use crate::store::{Manner, Position, ViewError};

/// What is to be verified, and how.
pub(crate) struct Verifying<'a> {
    /// Behind which place; the whole journal without one.
    pub(crate) since: Option<&'a ChainPosition>,
    /// What the index says, to be compared.
    pub(crate) held: Option<&'a Held>,
    pub(crate) manner: Manner<'a>,
}

/// Verifies what is applied by now. Beside it, where the index says something else than the journal.
pub(crate) fn verify(parts: &Parts, verifying: &Verifying<'_>) -> io::Result<(Verification, Option<String>)> {
    let start = parts.journal.reader.start();
    let totals = *parts.index.read().totals();
    let until: Position = totals.applied;
    let since = verifying.since.map(|since| Position { entries: since.entries, link: since.link });
    let rule = verifying.held.map(Held::rule);
    let mut reading = Reading::checking_range(Arc::clone(&parts.journal.erasures), verifying.since, until, rule);
    let found = parts.journal.reader.verify_parts(&mut reading, since, until, verifying.manner)?;
    let chain = reading.verified();
    let breakage = if found.began_elsewhere {
        // The place was none of this log; that says nothing against the log itself.
        found.breakage
    } else {
        parts.note_breakage(found.breakage)
    };
    let mut verification = Verification::new(chain.records, chain.head_hash, breakage);
    verification.checked.from = verifying.since.map_or(start.entries, |since| since.entries);
    if !verification.valid {
        return Ok((verification, None));
    }
    if reading.finds_erased {
        verification.erased_evidence_found = carry_out_again(parts)?;
    }
    let position = ChainPosition::new(until.entries, until.link, chain.records, chain.head_hash);
    verification.checked.until = Some(position);
    // Verified is what was verified in one piece: behind a place that a caller brought, only its caller knows.
    // Of a log whose first entries have left meanwhile it counts too many.
    let last = *parts.maintenance.verified();
    if parts.journal.reader.start() == start && verifying.since.is_none_or(|since| last == Some(*since)) {
        parts.maintenance.note_verified(position);
    }
    Ok((verification, verifying.held.and_then(|held| held.differs_from(&reading.held))))
}

/// All that the index says, read in pieces so that the log goes on meanwhile.
pub(crate) fn held(parts: &Parts) -> Result<Held, ViewError> {
    let (mut place, mut holding) = (HoldPlace::default(), Holding::new());
    while parts.index.read().hold(&mut place, &mut holding)? {}
    Ok(holding.done())
}
