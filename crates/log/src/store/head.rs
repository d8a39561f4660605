//! `HEAD`: the minimum that the journal must contain.
//!
//! `HEAD` is written when the store is opened, when a segment is sealed, each second while entries are written, and
//! at a clean close. Each write atomically replaces the file. A journal that lacks what `HEAD` names has lost
//! entries.

use std::cmp::Ordering;
use std::io;

use serde::{Deserialize, Serialize};

use super::files::{self, Files, TextFile};
use super::walk::Reached;
use rulekeep_types::Digest;

/// The minimum that the journal must contain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    /// Version of the store's format.
    pub(crate) format: u32,
    /// The store's ID in hex.
    pub(crate) store: String,
    /// Number of entries.
    pub(crate) entries: u64,
    /// The link of the last of them.
    pub(crate) link: Digest,
    /// The root of the Merkle tree over the entries.
    pub(crate) root: Digest,
    /// The beginning of the journal, if its first entries were archived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) start: Option<Start>,
    /// The log is frozen: it accepts no more entries.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) frozen: bool,
    /// Random bytes in hex that identify the opening that wrote the file.
    #[serde(default)]
    pub(crate) nonce: String,
}

/// The beginning of a journal whose first entries were archived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Start {
    /// The number of the first segment left.
    pub(crate) segment: u32,
    /// Number of archived entries.
    pub entries: u64,
    /// The link of the last archived entry.
    pub link: Digest,
    /// The root of the Merkle tree over the archived entries.
    pub root: Digest,
    /// The hash of the last archived proof record.
    pub head_hash: Digest,
}

impl Start {
    /// The beginning of a journal that has all its entries.
    pub(crate) const WHOLE: Self =
        Self { segment: 0, entries: 0, link: Digest::ZERO, root: Digest::ZERO, head_hash: Digest::ZERO };

    /// The state of a walk right before the first entry of the journal.
    pub(super) fn reached(&self) -> Reached {
        Reached { next: self.entries, link: Some(self.link), next_segment: self.segment, store: None }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_false(value: &bool) -> bool {
    !value
}

/// Version of the store's format that this library writes.
pub const FORMAT: u32 = 2;
/// The file's name in the store.
pub(crate) const NAME: &str = "HEAD";

/// The reason `HEAD` cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HeadError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("its content is invalid")]
    Malformed,
    #[error("its format {0} is newer than this library's {FORMAT}")]
    Newer(u32),
    #[error("its format {0} is older than this library's {FORMAT}")]
    Older(u32),
}

impl Head {
    /// Reads the file; `None` if it does not exist.
    pub(crate) fn read(files: &dyn Files) -> Result<Option<Self>, HeadError> {
        let head: Self = match files::read_text(files, NAME)? {
            TextFile::Missing => return Ok(None),
            TextFile::Malformed => return Err(HeadError::Malformed),
            TextFile::Whole(json) => serde_json::from_str(&json).map_err(|_| HeadError::Malformed)?,
        };
        match head.format.cmp(&FORMAT) {
            Ordering::Less => Err(HeadError::Older(head.format)),
            Ordering::Equal => Ok(Some(head)),
            Ordering::Greater => Err(HeadError::Newer(head.format)),
        }
    }

    /// Replaces the file, atomically and durably.
    pub(crate) fn write(&self, files: &dyn Files) -> io::Result<()> {
        files::replace_text(files, NAME, &serde_json::to_string(self).map_err(io::Error::other)?)
    }
}
