//! What repairing and archiving report.

use serde::{Deserialize, Serialize};

use super::{Breakage, Digest};

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
