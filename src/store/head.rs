//! `HEAD`: what the journal must contain, at the least.
//!
//! It is written when the store is opened, when a segment is sealed, each second
//! while entries are written, and at a clean close; always as a new file put in
//! the old one's place. A journal that lacks what `HEAD` names has lost it.

use std::cmp::Ordering;
use std::io;

use serde::{Deserialize, Serialize};

use super::files::{self, Files, TextFile};
use super::walk::Reached;
use crate::model::Digest;

/// What the journal must contain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    /// Version of the store's format.
    pub(crate) format: u32,
    /// The store's id in hex.
    pub(crate) store: String,
    /// How many entries.
    pub(crate) entries: u64,
    /// The link of the last of them.
    pub(crate) link: Digest,
    /// The root of the Merkle tree over them.
    pub(crate) root: Digest,
    /// Where the journal begins, if its first entries were archived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) start: Option<Start>,
    /// Nothing is taken in any more.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) frozen: bool,
    /// Random, in hex: of the opening that wrote the file.
    #[serde(default)]
    pub(crate) nonce: String,
}

/// Where a journal begins whose first entries were archived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Start {
    /// The number of its first segment.
    pub(crate) segment: u32,
    /// How many entries are archived.
    pub(crate) entries: u64,
    /// The link of the last of them.
    pub(crate) link: Digest,
    /// The root of the Merkle tree over them.
    pub(crate) root: Digest,
    /// The hash of the last proof record among them.
    pub(crate) head_hash: Digest,
}

impl Start {
    /// Of a journal that has all its entries.
    pub(crate) const WHOLE: Self =
        Self { segment: 0, entries: 0, link: Digest::ZERO, root: Digest::ZERO, head_hash: Digest::ZERO };

    /// Where the first entry of the journal goes on.
    pub(super) fn reached(&self) -> Reached {
        Reached { next: self.entries, link: Some(self.link), next_segment: self.segment, store: None }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_false(value: &bool) -> bool {
    !value
}

/// Version of the store's format that this library writes.
pub(crate) const FORMAT: u32 = 2;
/// The file's name in the store.
pub(crate) const NAME: &str = "HEAD";

/// Why there is no `HEAD` to go by.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HeadError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("its content does not hold")]
    Malformed,
    #[error("its format {0} is newer than this library's {FORMAT}")]
    Newer(u32),
    #[error("its format {0} is older than this library's {FORMAT}")]
    Older(u32),
}

impl Head {
    /// Reads the file; `None` when there is none.
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

    /// Puts this in the file's place and makes it last.
    pub(crate) fn write(&self, files: &dyn Files) -> io::Result<()> {
        files::replace_text(files, NAME, &serde_json::to_string(self).map_err(io::Error::other)?)
    }
}
