//! What can be wrong with a key, a checkpoint or a proof.

use crate::model::Digest;

/// Why a key, a checkpoint or a proof is refused.
///
/// [`is_contradiction`](Self::is_contradiction) tells what speaks against the log
/// from what is only not in order with a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// A text is longer than any honest one.
    #[error("the {what} has {size} bytes, at most {limit} are read")]
    TooLarge {
        /// The kind of text.
        what: &'static str,
        /// Its size in bytes.
        size: usize,
        /// The most that is read, in bytes.
        limit: usize,
    },
    /// A text has another form.
    #[error("{what}, line {line}: expected {expected}")]
    Malformed {
        /// The kind of text.
        what: &'static str,
        /// The line, counted from 1 in that text.
        line: usize,
        /// What should stand there.
        expected: &'static str,
    },
    /// A checkpoint of a size that no log reaches.
    #[error("a log of {size} entries: at most {limit} are possible")]
    TooManyEntries {
        /// The size.
        size: u64,
        /// The most that is possible.
        limit: u64,
    },
    /// A checkpoint of an empty log with another root than that of nothing.
    #[error("the checkpoint of an empty log has the root {root}, expected the hash of nothing")]
    EmptyRoot {
        /// The root that stands there.
        root: Digest,
    },
    /// No signature is by the key.
    #[error("no signature by the key {key}")]
    NotSigned {
        /// The key's name and id.
        key: String,
    },
    /// A signature that says that it is by the key is not: the text was changed, or the signature made up.
    #[error("the signature by the key {key} does not fit the text")]
    BadSignature {
        /// The key's name and id.
        key: String,
    },
    /// The checkpoint is of another log than the key's.
    #[error("a checkpoint of the log {found:?}, expected one of {expected:?}")]
    OtherLog {
        /// The origin that stands in the checkpoint, or its start.
        found: String,
        /// The key's name.
        expected: String,
    },
    /// The record's fields have another hash than the record says.
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
        /// The place that the proof is for.
        index: u64,
        /// The place in the record's id.
        expected: u64,
    },
    /// The proof is between other sizes than the checkpoints'.
    #[error("a proof from {old} entries to {new}, the checkpoints are of {expected_old} and {expected_new}")]
    OtherSizes {
        /// The earlier size in the proof.
        old: u64,
        /// The later size in the proof.
        new: u64,
        /// The earlier checkpoint's size.
        expected_old: u64,
        /// The later checkpoint's size.
        expected_new: u64,
    },
    /// The later checkpoint is of a smaller log: its end was cut off, or the two are given the wrong way round.
    #[error("the log had {old} entries and has {new}: its end was cut off, or the checkpoints are the wrong way round")]
    Shrunk {
        /// The earlier size.
        old: u64,
        /// The later size.
        new: u64,
    },
    /// The entry is not shown to be in the tree of the checkpoint.
    #[error("entry {index} is not shown to be in the log of {size} entries")]
    NotIncluded {
        /// The entry's place.
        index: u64,
        /// The checkpoint's size.
        size: u64,
    },
    /// The later log is not shown to begin with the earlier one.
    #[error("the log of {new} entries is not shown to begin with that of {old}")]
    NotConsistent {
        /// The earlier size.
        old: u64,
        /// The later size.
        new: u64,
    },
}

impl CheckpointError {
    /// Whether everything could be read and was signed by the right key, and yet
    /// does not fit together: the record, the proof or the log is not what it was.
    pub const fn is_contradiction(&self) -> bool {
        matches!(
            self,
            Self::RecordChanged { .. } | Self::NotIncluded { .. } | Self::NotConsistent { .. } | Self::Shrunk { .. }
        )
    }
}
