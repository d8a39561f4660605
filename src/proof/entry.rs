//! The bodies of the entries that are not decisions: JSON objects.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::erase::{Erasure, EvidenceSelection};
use crate::model::{AgentId, Alert, Breakage, Digest, Outcome, ProofId, Sequence, Timestamp, TrustCause};
use crate::store::{Kind, Start};

use super::draft::{ArchiveDraft, OutcomeBasis, TrustMove};

/// Whether the body of an entry can be read as what it is; of a decision it is not asked here.
pub(super) fn is_readable(kind: Kind, body: &[u8]) -> bool {
    match kind {
        Kind::Decision => false,
        Kind::Store => serde_json::from_slice::<StoreEntry>(body).is_ok(),
        Kind::Outcome => serde_json::from_slice::<OutcomeEntry<'_>>(body).is_ok(),
        Kind::State => serde_json::from_slice::<StateEntry<'_>>(body).is_ok(),
        Kind::Recovery => serde_json::from_slice::<RecoveryEntry>(body).is_ok(),
        Kind::Alert => serde_json::from_slice::<AlertEntry>(body).is_ok(),
        Kind::Erasure => read_erasure(body).is_some(),
        Kind::Freeze => serde_json::from_slice::<FreezeEntry>(body).is_ok(),
        Kind::Archive => serde_json::from_slice::<ArchiveEntry>(body).is_ok(),
        Kind::Repair => serde_json::from_slice::<RepairEntry>(body).is_ok(),
    }
}

/// What an erasure's body says; `None` where it says none.
pub(super) fn read_erasure(body: &[u8]) -> Option<Erasure> {
    serde_json::from_slice::<ErasureEntry<'_>>(body).ok().and_then(Erasure::of)
}

/// The first entry: the store itself.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoreEntry {
    pub(super) format: u32,
    pub(super) store: String,
    pub(super) timestamp: Timestamp,
    /// The version of the library that made it.
    pub(super) made_by: String,
}

/// What became of an action. A change of state that follows from it stands in
/// the same entry, so that neither can be there without the other.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OutcomeEntry<'a> {
    pub(super) proof_id: ProofId,
    pub(super) entity_id: AgentId,
    pub(super) outcome: Outcome,
    #[serde(borrow, skip_serializing_if = "Option::is_none", default)]
    pub(super) note: Option<Cow<'a, str>>,
    pub(super) timestamp: Timestamp,
    #[serde(borrow, skip_serializing_if = "Option::is_none", default)]
    pub(super) state: Option<NewState<'a>>,
    /// What became of the escalation that the record opened.
    #[serde(borrow, skip_serializing_if = "Option::is_none", default)]
    pub(super) asked: Option<NewState<'a>>,
    /// How the agent's trust moved.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) trust: Option<TrustMove>,
    /// What it moved by.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) basis: Option<OutcomeBasis>,
}

/// The new state of something, by its key.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct NewState<'a> {
    #[serde(borrow)]
    pub(super) key: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) value: &'a RawValue,
}

/// A change of state that no outcome made, and why.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StateEntry<'a> {
    #[serde(borrow)]
    pub(super) state: NewState<'a>,
    #[serde(borrow)]
    pub(super) cause: Cow<'a, str>,
    /// Whose trust moved.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) agent_id: Option<AgentId>,
    /// How it moved.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) trust: Option<TrustMove>,
    pub(super) timestamp: Timestamp,
}

impl StateEntry<'_> {
    /// The record that it belongs to: a correction begins its cause with the one that it corrects.
    pub(super) fn proof_id(&self) -> Option<ProofId> {
        let trust = self.trust.as_ref().filter(|trust| trust.cause == TrustCause::Correction);
        let (record, _) = trust.and_then(|_| self.cause.split_once(": "))?;
        record.parse().ok()
    }
}

/// Evidence that is taken away for good: that of some records, of an agent, from before a moment, or of an agent
/// from before a moment.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ErasureEntry<'a> {
    #[serde(borrow)]
    pub(super) cause: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) proof_ids: Option<Vec<ProofId>>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) agent_id: Option<AgentId>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) before: Option<Timestamp>,
    /// Of the first so many entries: decisions that were put in order meanwhile are none of these.
    pub(super) entries: u64,
    pub(super) timestamp: Timestamp,
}

impl<'a> ErasureEntry<'a> {
    pub(super) fn new(erasure: &Erasure, cause: &'a str, timestamp: Timestamp) -> Self {
        let (mut proof_ids, mut agent_id, mut before) = (None, None, None);
        match &erasure.selection {
            EvidenceSelection::Records(ids) => proof_ids = Some(ids.clone()),
            EvidenceSelection::Agent(agent) => agent_id = Some(agent.clone()),
            EvidenceSelection::AgentBefore(agent, moment) => {
                (agent_id, before) = (Some(agent.clone()), Some(*moment));
            }
            EvidenceSelection::Before(moment) => before = Some(*moment),
        }
        Self { cause: Cow::Borrowed(cause), proof_ids, agent_id, before, entries: erasure.entries, timestamp }
    }
}

/// Something that somebody should look at.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct AlertEntry {
    #[serde(flatten)]
    pub(super) alert: Alert,
    /// The entry that made whoever follows the log raise it.
    #[serde(rename = "upTo", skip_serializing_if = "Option::is_none", default)]
    pub(super) up_to: Option<Sequence>,
    pub(super) timestamp: Timestamp,
}

/// What was set aside when the store was opened.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RecoveryEntry {
    pub(super) copy: String,
    pub(super) bytes: usize,
    pub(super) segment: String,
    pub(super) offset: u64,
    pub(super) timestamp: Timestamp,
}

/// The last entry of a log that takes nothing in any more.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FreezeEntry {
    pub(super) cause: String,
    pub(super) timestamp: Timestamp,
}

/// The first entries were moved to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArchiveEntry {
    /// The file's name.
    pub(super) file: String,
    /// The first entry that it has.
    pub(super) from: u64,
    /// How many entries the log had where it ends.
    pub(super) entries: u64,
    /// The link of the last of them.
    pub(super) link: Digest,
    /// The root of the Merkle tree over them, those that are in earlier archives included.
    pub(super) root: Digest,
    /// The hash of the last proof record among them.
    pub(super) head_hash: Digest,
    /// SHA-256 of the file.
    pub(super) sha256: Digest,
    pub(super) timestamp: Timestamp,
}

impl ArchiveEntry {
    pub(super) fn of(draft: &ArchiveDraft, timestamp: Timestamp) -> Self {
        let ArchiveDraft { file, from, sha256, start } = draft;
        let Start { entries, link, root, head_hash, .. } = *start;
        Self { file: file.clone(), from: *from, entries, link, root, head_hash, sha256: *sha256, timestamp }
    }
}

/// Which log this one was begun in place of.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RepairEntry {
    /// The store's id; none where nothing could be read of it.
    pub(super) of: Option<String>,
    /// How many of its entries held, from the first on.
    pub(super) entries: u64,
    /// How many of them are proof records.
    pub(super) records: u64,
    /// The link of the last of them.
    pub(super) link: Digest,
    /// The root of the Merkle tree over them.
    pub(super) root: Digest,
    /// The hash of the last proof record among them.
    pub(super) head_hash: Digest,
    /// Where it breaks.
    pub(super) broken: Breakage,
    /// The folder in the store where all of it is kept as it was.
    pub(super) kept: String,
    pub(super) timestamp: Timestamp,
}
