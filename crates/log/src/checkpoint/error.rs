//! The errors of keys, checkpoints and proofs.

use rulekeep_types::Digest;

/// The reason a key, a checkpoint or a proof is rejected.
///
/// [`is_contradiction`](Self::is_contradiction) separates evidence against the log from texts that are merely
/// invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The text is longer than any valid one.
    #[error("the {what} has {size} bytes, at most {limit} are read")]
    TooLarge {
        /// Kind of text.
        what: &'static str,
        /// Size of the text in bytes.
        size: usize,
        /// Largest size that is read, in bytes.
        limit: usize,
    },
    /// The text does not have the expected form.
    #[error("{what}, line {line}: expected {expected}")]
    Malformed {
        /// Kind of text.
        what: &'static str,
        /// Line in that text, counted from 1.
        line: usize,
        /// Description of what was expected there.
        expected: &'static str,
    },
    /// The checkpoint has a size that no log reaches.
    #[error("a log of {size} entries: at most {limit} are possible")]
    TooManyEntries {
        /// The size in the checkpoint.
        size: u64,
        /// Largest possible size.
        limit: u64,
    },
    /// The checkpoint of an empty log has a root other than the hash of no bytes.
    #[error("the checkpoint of an empty log has the root {root}, expected the hash of nothing")]
    EmptyRoot {
        /// The root in the checkpoint.
        root: Digest,
    },
    /// The note has no signature by the key.
    #[error("no signature by the key {key}")]
    NotSigned {
        /// The key's name and ID.
        key: String,
    },
    /// A signature with the key's name and ID does not verify: the text was changed, or the signature was forged.
    #[error("the signature by the key {key} does not fit the text")]
    BadSignature {
        /// The key's name and ID.
        key: String,
    },
    /// The checkpoint is that of another log than the key's.
    #[error("a checkpoint of the log {found:?}, expected one of {expected:?}")]
    OtherLog {
        /// The origin in the checkpoint, possibly truncated.
        found: String,
        /// The key's name.
        expected: String,
    },
    /// The hash of the record's fields differs from the hash in the record.
    #[error("the record's fields have the hash {computed}, it says {stated}: it was changed")]
    RecordChanged {
        /// The hash in the record.
        stated: Digest,
        /// The hash over its fields.
        computed: Digest,
    },
    /// The proof is for another entry than the record's.
    #[error("a proof for entry {index}, the record is entry {expected}")]
    OtherEntry {
        /// The position in the proof.
        index: u64,
        /// The position in the record's ID.
        expected: u64,
    },
    /// The proof is between other sizes than those of the checkpoints.
    #[error("a proof from {old} entries to {new}, the checkpoints are of {expected_old} and {expected_new}")]
    OtherSizes {
        /// The earlier size in the proof.
        old: u64,
        /// The later size in the proof.
        new: u64,
        /// Size of the earlier checkpoint.
        expected_old: u64,
        /// Size of the later checkpoint.
        expected_new: u64,
    },
    /// The later checkpoint has a smaller size: the log was truncated, or the two are in the wrong order.
    #[error("the log had {old} entries and has {new}: its end was cut off, or the checkpoints are the wrong way round")]
    Shrunk {
        /// The earlier size.
        old: u64,
        /// The later size.
        new: u64,
    },
    /// The proof does not show that the entry is in the tree of the checkpoint.
    #[error("entry {index} is not shown to be in the log of {size} entries")]
    NotIncluded {
        /// The entry's position.
        index: u64,
        /// Size of the checkpoint.
        size: u64,
    },
    /// The proof does not show that the later log begins with the earlier one.
    #[error("the log of {new} entries is not shown to begin with that of {old}")]
    NotConsistent {
        /// The earlier size.
        old: u64,
        /// The later size.
        new: u64,
    },
}

impl CheckpointError {
    /// Returns whether all texts are readable and signed by the right key, but contradict each other: the record, the
    /// proof or the log was changed.
    pub const fn is_contradiction(&self) -> bool {
        matches!(
            self,
            Self::RecordChanged { .. } | Self::NotIncluded { .. } | Self::NotConsistent { .. } | Self::Shrunk { .. }
        )
    }
}
