//! What a log says of its own past and of its end: begun in place of a broken
//! one, its first entries archived, frozen.

use super::entry::{ArchiveEntry, FreezeEntry, RepairEntry};
use super::repair;
use crate::model::{Breakage, BrokenKind, Error, ProofId, Sequence, Timestamp};
use crate::store::{Finding, Frame, Kind, Position, Start};

/// The entries that tell of it.
#[derive(Debug)]
pub(super) struct Retained {
    pub(super) repair: Option<RepairEntry>,
    /// In their order.
    pub(super) archives: Vec<ArchiveEntry>,
    pub(super) freeze: Option<FreezeEntry>,
    /// The time of the last of these entries.
    pub(super) last_time: Timestamp,
}

impl Default for Retained {
    fn default() -> Self {
        Self { repair: None, archives: Vec::new(), freeze: None, last_time: Timestamp::from_millis(i64::MIN) }
    }
}

impl Retained {
    /// What such an entry is kept under among the states.
    pub(super) fn key(sequence: Sequence, kind: Kind) -> String {
        format!("{KEY_PREFIX}{:020}/{kind}", sequence.get())
    }

    /// Whether such an entry is kept under it.
    pub(super) fn is_key(key: &str) -> bool {
        key.starts_with(KEY_PREFIX)
    }

    /// What the states tell of it.
    pub(super) fn of_states(states: &[(String, Vec<u8>)]) -> Self {
        let mut retained = Self::default();
        for (key, body) in states {
            let kind = key.strip_prefix(KEY_PREFIX).and_then(|rest| rest.split_once('/')?.1.parse().ok());
            if let Some(kind) = kind {
                // It was read before it was put there, and is read again where it is not believed.
                let _ = retained.read(kind, body);
            }
        }
        retained
    }

    /// Takes in an entry of one of these kinds.
    pub(super) fn visit(&mut self, frame: &Frame<'_>) -> Option<Finding> {
        self.read(frame.kind, frame.body)
    }

    fn read(&mut self, kind: Kind, body: &[u8]) -> Option<Finding> {
        match kind {
            Kind::Repair => read(body, "a repair", |entry: RepairEntry| {
                self.last_time = entry.timestamp;
                self.repair = Some(entry);
            }),
            Kind::Archive => read(body, "an archive's entry", |entry: ArchiveEntry| {
                self.last_time = entry.timestamp;
                self.archives.push(entry);
            }),
            Kind::Freeze => read(body, "a freeze", |entry: FreezeEntry| {
                self.last_time = entry.timestamp;
                self.freeze = Some(entry);
            }),
            _ => None,
        }
    }

    /// Takes over what later entries tell.
    pub(super) fn join(&mut self, later: Self) {
        self.repair = later.repair.or(self.repair.take());
        self.archives.extend(later.archives);
        self.freeze = later.freeze.or(self.freeze.take());
        self.last_time = self.last_time.max(later.last_time);
    }

    /// Whether no entry says that the entries before `start` were archived.
    pub(super) fn missing_archive(&self, start: &Start) -> Option<Finding> {
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

    /// Where the entry at a place before `start` is.
    pub(super) fn archive_of(&self, place: u64) -> String {
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
    pub(super) fn not_found(&self, proof_id: &ProofId, start: &Start) -> Error {
        let place = proof_id.sequence().get();
        if place < start.entries {
            return Error::ProofElsewhere { proof_id: proof_id.to_string(), place: self.archive_of(place) };
        }
        match &self.repair {
            Some(entry) if proof_id.at() <= entry.timestamp => {
                Error::ProofElsewhere { proof_id: proof_id.to_string(), place: repair::place_of(entry) }
            }
            _ => Error::proof_not_found(proof_id),
        }
    }
}

/// Where they stand among the states; in their order, which is that of keys.
const KEY_PREFIX: &str = "log/";

/// What every entry has.
#[derive(serde::Deserialize)]
pub(super) struct Timed {
    pub(super) timestamp: Timestamp,
}

/// How it is said that a log is frozen.
pub(super) fn frozen(cause: &str, at: Timestamp) -> String {
    format!(
        "the log was frozen for good at {at} ({cause}): it is queried, verified and proved from, and takes nothing in; \
         begin another one in another folder"
    )
}

/// `HEAD` says that the log is frozen, and it is not.
pub(super) fn lost_freeze(is_noted: bool, freeze: Option<&FreezeEntry>, end: Position) -> Option<Breakage> {
    (is_noted && freeze.is_none()).then(|| Breakage {
        sequence: Sequence::new(end.entries),
        proof_id: None,
        file: "HEAD".to_owned(),
        offset: 0,
        kind: BrokenKind::Tampering,
        expected: "a freeze as the last entry, as HEAD has it".to_owned(),
        found: "another one".to_owned(),
    })
}

fn read<T: serde::de::DeserializeOwned>(body: &[u8], what: &str, take: impl FnOnce(T)) -> Option<Finding> {
    match serde_json::from_slice(body) {
        Ok(entry) => {
            take(entry);
            None
        }
        Err(_) => Some(Finding {
            proof_id: None,
            kind: BrokenKind::Tampering,
            expected: what.to_owned(),
            found: "a body that cannot be read".to_owned(),
        }),
    }
}
