//! Reports of repairing a log and of verifying an archive.

use serde::Deserialize;

use super::{Breakage, Digest, Sequence, Timestamp};

crate::parts::outward! {
    /// The result of a repair.
    #[derive(Eq, Deserialize)]
    pub struct RepairReport from RepairReportParts {
        /// The folder inside the store that keeps the broken log unchanged.
        pub kept: String,
        /// The first break in the old log.
        pub broken: Breakage,
        /// Number of valid entries before the break, which the new log refers to.
        pub entries: u64,
        /// The first valid entry that nothing confirms: neither `HEAD`, `CHECKPOINT` and the index, nor a checkpoint that
        /// was passed in. Entries from here on may have been rewritten, so the repair adopts them only where they restrict
        /// an agent further.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub first_unconfirmed: Option<Sequence>,
        /// Number of proof records among the valid entries.
        pub records: u64,
        /// The chain link of the last valid entry.
        pub link: Digest,
        /// The root of the Merkle tree over the valid entries.
        pub root: Digest,
        /// The hash of the last valid proof record.
        pub head_hash: Digest,
        /// Number of agents the new log took over.
        pub agents: u64,
        /// Agents that the new log restricts further than the last valid entry does; review each.
        pub tightened: Vec<String>,
        /// Parts that were not taken over, and other points to review.
        pub notes: Vec<String>,
        /// The id of the new store.
        pub store: String,
    }
}

crate::parts::outward! {
    /// The contents of an archive.
    #[derive(Eq)]
    pub struct ArchiveReport from ArchiveReportParts {
        /// The file's name.
        pub file: String,
        /// The id of the store the archive belongs to.
        pub store: String,
        /// The position of its first entry in the log.
        pub from: u64,
        /// Number of log entries up to and including its last one.
        pub entries: u64,
        /// Number of proof records in the archive.
        pub records: u64,
        /// The time of its last entry.
        pub until: Timestamp,
        /// The chain link of the entry before its first one.
        pub previous_link: Digest,
        /// The chain link of its last entry.
        pub link: Digest,
        /// The hash of the proof record before its first one.
        pub previous_hash: Digest,
        /// The hash of its last proof record.
        pub head_hash: Digest,
        /// The root of the Merkle tree over the entries before its first one.
        pub previous_root: Digest,
        /// The root of the Merkle tree over all log entries up to its last one.
        pub root: Digest,
        /// Number of records whose evidence was erased before archiving.
        pub erased: u64,
        /// SHA-256 of the file.
        pub sha256: Digest,
        /// The signed checkpoint at its end; `None` if it is unsigned. `verify_signed_archive` checks the signature against
        /// the log's public key.
        pub checkpoint: Option<String>,
    }
}
