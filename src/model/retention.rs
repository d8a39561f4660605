//! What repairing and archiving report.

use serde::{Deserialize, Serialize};

use super::{Breakage, Digest, Sequence, Timestamp};

/// What a repair found and did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RepairReport {
    /// The folder, in that of the store, in which the broken log is kept as it was.
    pub kept: String,
    /// Where it breaks.
    pub broken: Breakage,
    /// How many of its entries hold, from the first on: what the new log says of it.
    pub entries: u64,
    /// The first of them that no witness confirms: neither `HEAD`, `CHECKPOINT` and the index, nor a checkpoint that was
    /// given. From it on they may have been rewritten, and are believed only where they tighten.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first_unconfirmed: Option<Sequence>,
    /// How many of them are proof records.
    pub records: u64,
    /// The link of the last entry that holds.
    pub link: Digest,
    /// The root of the Merkle tree over the entries that hold.
    pub root: Digest,
    /// The hash of the last proof record that holds.
    pub head_hash: Digest,
    /// How many agents the new log took over.
    pub agents: u64,
    /// The agents that the new log keeps tighter than the last entry that holds says: each to be looked at.
    pub tightened: Vec<String>,
    /// What was not taken over, and what else should be looked at.
    pub notes: Vec<String>,
    /// The id of the new store.
    pub store: String,
}

/// What an archive holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ArchiveReport {
    /// The file's name.
    pub file: String,
    /// The id of the store that it is of.
    pub store: String,
    /// The place of its first entry in the log.
    pub from: u64,
    /// How many entries the log had behind its last one.
    pub entries: u64,
    /// How many proof records it holds.
    pub records: u64,
    /// The time of its last entry.
    pub until: Timestamp,
    /// The link of the entry before its first one.
    pub previous_link: Digest,
    /// The link of its last entry.
    pub link: Digest,
    /// The hash of the proof record before its first one.
    pub previous_hash: Digest,
    /// The hash of its last proof record.
    pub head_hash: Digest,
    /// The root of the Merkle tree over the entries before its first one.
    pub previous_root: Digest,
    /// The root of the Merkle tree over all entries of the log up to its last one.
    pub root: Digest,
    /// Records whose evidence was erased before they were archived.
    pub erased: u64,
    /// SHA-256 of the file.
    pub sha256: Digest,
    /// The checkpoint at its end; `None` says that it is not signed. That the signature is by
    /// the log's key is for those who have the key: `verify_signed_archive`.
    pub checkpoint: Option<String>,
}
