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
    /// What such an entry is kept under among the states.
    pub(super) fn key(frame: &Frame<'_>) -> String {
        format!("{KEY_PREFIX}{:020}/{}", frame.sequence.get(), frame.kind)
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
            Kind::Repair => read(body, "a repair", |entry| self.repair = Some(entry)),
            Kind::Archive => read(body, "an archive's entry", |entry| self.archives.push(entry)),
            Kind::Freeze => read(body, "a freeze", |entry| self.freeze = Some(entry)),
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

/// Where they stand among the states; in their order, which is that of keys.
const KEY_PREFIX: &str = "log/";

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
