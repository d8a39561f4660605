//! The checkpoint: what a log's signed note says. SOURCE: <https://c2sp.org/tlog-checkpoint>.

use std::fmt;

use sha2::{Digest as _, Sha256};

use super::note::{self, Note};
use super::text::{self, Lines};
use super::{CheckpointError, CheckpointKey, VerifierKey};
use crate::model::{Digest, excerpt};

/// How many entries a log has, and the root of the Merkle tree over them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    origin: Box<str>,
    size: u64,
    root: Digest,
}

impl Checkpoint {
    /// The most entries that a log can have: a proof id has 48 bits for their places.
    pub const MAX_SIZE: u64 = 1 << 48;

    /// A checkpoint of the log `origin`, which is the name of its key.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Malformed`] for an origin that is no key's name,
    /// [`CheckpointError::TooManyEntries`], [`CheckpointError::EmptyRoot`].
    pub fn new(origin: &str, size: u64, root: Digest) -> Result<Self, CheckpointError> {
        if !text::is_name(origin) {
            let expected = "the name of a log: 1 to 256 bytes without spaces, control characters and +";
            return Err(CheckpointError::Malformed { what: WHAT, line: 1, expected });
        }
        if size > Self::MAX_SIZE {
            return Err(CheckpointError::TooManyEntries { size, limit: Self::MAX_SIZE });
        }
        if size == 0 && root.as_bytes().as_slice() != Sha256::digest([]).as_slice() {
            return Err(CheckpointError::EmptyRoot { root });
        }
        Ok(Self { origin: origin.into(), size, root })
    }

    /// The checkpoint as a signed note, to be kept and handed on.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::OtherLog`] where the key has another name.
    pub fn sign(&self, key: &CheckpointKey) -> Result<String, CheckpointError> {
        self.check_origin(key.name())?;
        Ok(note::sign(&self.to_string(), key))
    }

    /// Reads a signed note, and believes it because the log's key signed it.
    /// Signatures by other keys, as of witnesses, are ignored.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::NotSigned`] and [`CheckpointError::BadSignature`];
    /// [`CheckpointError::OtherLog`] where the key signed for another log than its
    /// own; otherwise what is wrong with the text.
    pub fn open(note: &str, key: &VerifierKey) -> Result<Self, CheckpointError> {
        let opened = Self::parse(Note::parse(note)?.opened_by(key)?)?;
        opened.check_origin(key.name())?;
        Ok(opened)
    }

    /// Reads a signed note without asking who signed it: for a copy whose keeper is
    /// trusted. It proves nothing to anybody else.
    ///
    /// # Errors
    ///
    /// What is wrong with the text.
    pub fn read_unverified(note: &str) -> Result<Self, CheckpointError> {
        Self::parse(Note::parse(note)?.unverified())
    }

    /// The log's name.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// How many entries the log has.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The root of the Merkle tree (RFC 6962) over them.
    pub const fn root(&self) -> Digest {
        self.root
    }

    fn check_origin(&self, expected: &str) -> Result<(), CheckpointError> {
        if &*self.origin == expected {
            Ok(())
        } else {
            Err(CheckpointError::OtherLog { found: excerpt(&self.origin), expected: expected.to_owned() })
        }
    }

    /// Reads a note's text.
    fn parse(note_text: &str) -> Result<Self, CheckpointError> {
        let mut lines = Lines::new(WHAT, note_text);
        let origin = lines.read("the name of the log", Some)?;
        let size = lines.read("the number of entries, without leading zeros", text::decimal)?;
        let root = lines.read("the root, 32 bytes in base 64", text::hash)?;
        // Whatever stands behind may be of any kind, but has no empty lines.
        for place in 4.. {
            match lines.next() {
                Some("") => {
                    let expected = "no empty line";
                    return Err(CheckpointError::Malformed { what: WHAT, line: place, expected });
                }
                Some(_) => {}
                None => break,
            }
        }
        Self::new(origin, size, root)
    }
}

impl fmt::Display for Checkpoint {
    /// The text that is signed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}\n{}\n", self.origin, self.size, text::base64(self.root.as_bytes()))
    }
}

const WHAT: &str = "checkpoint";
