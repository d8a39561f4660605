//! The checkpoint: the content of a log's signed note. SOURCE: <https://c2sp.org/tlog-checkpoint>.

use std::fmt;

use sha2::{Digest as _, Sha256};

use super::note::{self, Note};
use super::text::{self, Lines};
use super::{CheckpointError, CheckpointKey, VerifierKey};
use rulekeep_types::{Digest, excerpt};

/// A statement of a log's size and of the root of the Merkle tree over its entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    origin: Box<str>,
    size: u64,
    root: Digest,
}

impl Checkpoint {
    /// Largest number of entries in a log: a proof ID has 48 bits for the position.
    pub const MAX_SIZE: u64 = 1 << 48;

    /// Creates a checkpoint of the log `origin`, which must be the name of its key.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Malformed`] if `origin` is not a valid key name, [`CheckpointError::TooManyEntries`] if
    /// `size` is above [`Checkpoint::MAX_SIZE`], [`CheckpointError::EmptyRoot`] if `size` is 0 and `root` is not the
    /// hash of no bytes.
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

    /// Returns the checkpoint as a signed note, to be kept and passed on.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::OtherLog`] if the key has another name.
    pub fn sign(&self, key: &CheckpointKey) -> Result<String, CheckpointError> {
        self.check_origin(key.name())?;
        Ok(note::sign(&self.to_string(), key))
    }

    /// Reads a signed note and verifies the signature of the log's key. Signatures by other keys, such as those of
    /// witnesses, are ignored.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::NotSigned`] and [`CheckpointError::BadSignature`] for a missing or wrong signature;
    /// [`CheckpointError::OtherLog`] if the key signed a checkpoint of another log; otherwise an error in the text.
    pub fn open(note: &str, key: &VerifierKey) -> Result<Self, CheckpointError> {
        let opened = Self::parse(Note::parse(note)?.opened_by(key)?)?;
        opened.check_origin(key.name())?;
        Ok(opened)
    }

    /// Reads a signed note without verifying any signature, for a copy from a trusted source. The result proves
    /// nothing to others.
    ///
    /// # Errors
    ///
    /// [`CheckpointError`] for an error in the text.
    pub fn read_unverified(note: &str) -> Result<Self, CheckpointError> {
        Self::parse(Note::parse(note)?.unverified())
    }

    /// The name of the log.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Number of entries in the log.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The root of the Merkle tree (RFC 6962) over the entries.
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
        // Further lines may have any content, but must not be empty.
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
    /// Writes the text that is signed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}\n{}\n", self.origin, self.size, text::base64(self.root.as_bytes()))
    }
}

const WHAT: &str = "checkpoint";
