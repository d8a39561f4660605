//! The log's own past and end: the broken log it replaces, its archives, and its freeze.

use super::entry::{ArchiveEntry, Entry, FreezeEntry, RepairEntry, kept_under};
use crate::store::{Finding, Position, Start};
use rulekeep_types::parts::BreakageParts;
use rulekeep_types::{Breakage, BrokenKind, Error, ProofId, Sequence, Timestamp};

/// The entries about the log's own past.
#[derive(Debug, Default)]
pub(crate) struct Retained {
    pub(crate) repair: Option<RepairEntry>,
    /// All archives, in the order of their entries.
    pub(crate) archives: Vec<ArchiveEntry>,
    pub(crate) freeze: Option<FreezeEntry>,
}

impl Retained {
    /// Reads the entries kept among the states.
    pub(crate) fn of_states(states: &[(String, Vec<u8>)]) -> Self {
        let mut retained = Self::default();
        for (key, body) in states {
            // Each body was parsed before it was stored; one that no longer parses is skipped.
            if let Some(entry) = kept_under(key).and_then(|(_, kind)| Entry::read(kind, body)) {
                retained.take(entry);
            }
        }
        retained
    }

    /// Adds an entry, if it is about the log's past.
    pub(crate) fn take(&mut self, entry: Entry<'_>) {
        match entry {
            Entry::Repair(entry) => self.repair = Some(*entry),
            Entry::Archive(entry) => self.archives.push(entry),
            Entry::Freeze(entry) => self.freeze = Some(entry),
            _ => {}
        }
    }

    /// Adds what later entries say.
    pub(crate) fn join(&mut self, later: Self) {
        self.repair = later.repair.or(self.repair.take());
        self.archives.extend(later.archives);
        self.freeze = later.freeze.or(self.freeze.take());
    }

    /// Returns a finding if entries before `start` are missing and no entry says that they were archived.
    pub(crate) fn missing_archive(&self, start: &Start) -> Option<Finding> {
        let is_it = |entry: &&ArchiveEntry| {
            (entry.entries, entry.link, entry.root, entry.head_hash)
                == (start.entries, start.link, start.root, start.head_hash)
        };
        if *start == Start::WHOLE || self.archives.iter().any(|entry| is_it(&entry)) {
            return None;
        }
        Some(Finding {
            proof_id: None,
            kind: BrokenKind::Missing,
            expected: format!("an entry that says that the first {} were archived, as HEAD has it", start.entries),
            found: "none".to_owned(),
        })
    }

    /// Describes the archive that holds the entry at a sequence before `start`.
    pub(crate) fn archive_of(&self, place: u64) -> String {
        let entry = self.archives.iter().rev().find(|entry| (entry.from..entry.entries).contains(&place));
        match (entry, self.archives.first()) {
            (Some(ArchiveEntry { file, from, entries, sha256, .. }), _) => {
                format!("entries {from} to {} were moved to the archive {file:?} ({sha256})", entries - 1)
            }
            (None, Some(first)) => format!("entry {place} was moved to an archive before {:?}", first.file),
            (None, None) => format!("entry {place} was moved to an archive"),
        }
    }

    /// The error for a record that is not in the log, which begins at `start`.
    pub(crate) fn not_found(&self, proof_id: &ProofId, start: &Start) -> Error {
        let place = proof_id.sequence().get();
        if place < start.entries {
            return Error::ProofElsewhere { proof_id: proof_id.to_string(), place: self.archive_of(place) };
        }
        match &self.repair {
            Some(entry) if proof_id.at() <= entry.timestamp => {
                Error::ProofElsewhere { proof_id: proof_id.to_string(), place: place_of(entry) }
            }
            _ => Error::proof_not_found(proof_id),
        }
    }
}

/// Describes where to look for an ID from before a repair.
fn place_of(repair: &RepairEntry) -> String {
    let RepairEntry { kept, timestamp, .. } = repair;
    format!("a repair restarted the log at {timestamp}; earlier records are in the folder {kept}")
}

/// The message for callers of a frozen log.
pub(crate) fn frozen(cause: &str, at: Timestamp) -> String {
    format!(
        "the log was frozen for good at {at} ({cause}): it can be read and verified but not written; start another \
         log in another folder"
    )
}

/// Returns a breakage if `HEAD` says that the log is frozen but it does not end in a freeze.
pub(crate) fn lost_freeze(is_noted: bool, freeze: Option<&FreezeEntry>, end: Position) -> Option<Breakage> {
    (is_noted && freeze.is_none()).then(|| {
        Breakage::from(BreakageParts {
            sequence: Sequence::new(end.entries),
            proof_id: None,
            file: "HEAD".to_owned(),
            offset: 0,
            kind: BrokenKind::Tampering,
            expected: "a freeze as the last entry, as HEAD has it".to_owned(),
            found: "another one".to_owned(),
        })
    })
}
