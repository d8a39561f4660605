//! What a log says of its own past and of its end: begun in place of a broken
//! one, its first entries archived, frozen.

use super::entry::{ArchiveEntry, FreezeEntry, RepairEntry};
use super::repair;
use crate::model::{BrokenKind, Error, ProofId};
use crate::store::{Finding, Frame, Kind};

/// The entries that tell of it.
#[derive(Debug, Default)]
pub(super) struct Retained {
    pub(super) repair: Option<RepairEntry>,
    /// In their order.
    pub(super) archives: Vec<ArchiveEntry>,
    pub(super) freeze: Option<FreezeEntry>,
}

impl Retained {
    /// Takes in an entry of one of these kinds.
    pub(super) fn visit(&mut self, frame: &Frame<'_>) -> Option<Finding> {
        match frame.kind {
            Kind::Repair => read(frame.body, "a repair", |entry| self.repair = Some(entry)),
            Kind::Archive => read(frame.body, "an archive's entry", |entry| self.archives.push(entry)),
            Kind::Freeze => read(frame.body, "a freeze", |entry| self.freeze = Some(entry)),
            _ => None,
        }
    }

    /// Takes over what later entries tell.
    pub(super) fn join(&mut self, later: Self) {
        self.repair = later.repair.or(self.repair.take());
        self.archives.extend(later.archives);
        self.freeze = later.freeze.or(self.freeze.take());
    }

    /// The error for a record that is not in the log.
    pub(super) fn not_found(&self, proof_id: &ProofId) -> Error {
        match &self.repair {
            Some(entry) if proof_id.at() <= entry.timestamp => {
                Error::ProofElsewhere { proof_id: proof_id.to_string(), place: repair::place_of(entry) }
            }
            _ => Error::proof_not_found(proof_id),
        }
    }
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
