//! Verifying stored data while the log is in use.
//!
//! Callers and background threads all use [`verify`]. A break that it finds makes the log read-only; the position at
//! which it ends is where the next verification may begin. `behind.rs` has the thread that verifies a log opened on
//! the basis of its index.

mod behind;

use std::io;
use std::sync::Arc;

pub(crate) use behind::{Behind, Believed};

use super::erase::carry_out_again;
use crate::index::reading::Reading;
use crate::index::{Held, HoldPlace, Holding};
use crate::parts::Parts;
use crate::store::{Manner, Position, ViewError};
use rulekeep_types::{ChainPosition, Verification};

/// Options of a verification.
pub(crate) struct Verifying<'a> {
    /// The position after which to verify; `None` for the whole journal.
    pub(crate) since: Option<&'a ChainPosition>,
    /// The checksums of the index, to be compared.
    pub(crate) held: Option<&'a Held>,
    pub(crate) manner: Manner<'a>,
}

/// Verifies the entries applied so far. If the index is compared, also returns how it differs from the journal.
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
        // The given position does not belong to this log, which says nothing about the log itself.
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
    // Recorded only if everything up to here was verified: only the caller knows about the entries before a position
    // it supplied. A log that was archived meanwhile would count too many records.
    let last = *parts.maintenance.verified();
    if parts.journal.reader.start() == start && verifying.since.is_none_or(|since| last == Some(*since)) {
        parts.maintenance.note_verified(position);
    }
    Ok((verification, verifying.held.and_then(|held| held.differs_from(&reading.held))))
}

/// Reads the checksums of the index, in pieces so that the log stays in use.
pub(crate) fn held(parts: &Parts) -> Result<Held, ViewError> {
    let (mut place, mut holding) = (HoldPlace::default(), Holding::new());
    while parts.index.read().hold(&mut place, &mut holding)? {}
    Ok(holding.done())
}
