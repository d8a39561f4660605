//! The texts of proofs. SOURCE: <https://c2sp.org/tlog-proof> for inclusion. There is no standard for consistency, so
//! that format is our own, in the same style.

use std::fmt;
use std::str::FromStr;

use super::text::{self, Lines};
use super::{CheckpointError, note};
use rulekeep_types::Digest;

/// The proof that an entry is in the log of a checkpoint, with that checkpoint: a `tlog-proof` file of C2SP.
///
/// A parsed proof is not verified yet; [`verify_inclusion`](super::verify_inclusion) does that.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InclusionProof {
    /// Position of the entry in the log, counted from 0.
    pub index: u64,
    /// The sibling hashes on the way to the root, from the leaf up.
    pub path: Vec<Digest>,
    /// The signed note of the checkpoint, unchanged.
    pub checkpoint: String,
}

impl InclusionProof {
    /// Creates a proof from its parts.
    pub fn new(index: u64, path: Vec<Digest>, checkpoint: impl Into<String>) -> Self {
        Self { index, path, checkpoint: checkpoint.into() }
    }
}

impl fmt::Display for InclusionProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{INCLUSION}\nindex {}\n", self.index)?;
        write_path(f, &self.path)?;
        write!(f, "\n{}", self.checkpoint)
    }
}

impl FromStr for InclusionProof {
    type Err = CheckpointError;

    fn from_str(file: &str) -> Result<Self, CheckpointError> {
        const WHAT: &str = "inclusion proof";
        text::check_size(WHAT, file, MAX_BYTES)?;
        let last_line = file.lines().count().max(1);
        let expected = "an empty line and a signed checkpoint";
        let parts = file.split_once("\n\n");
        let (head, checkpoint) = parts.ok_or(CheckpointError::Malformed { what: WHAT, line: last_line, expected })?;
        let mut lines = Lines::new(WHAT, head);
        lines.read(INCLUSION, |line| (line == INCLUSION).then_some(()))?;
        // The extra line is data for whoever made the proof. It is not signed, so it is ignored.
        if head.split('\n').nth(1).is_some_and(|line| line.starts_with("extra ")) {
            lines.read("extra <base 64>", |line| line.strip_prefix("extra ").and_then(text::bytes))?;
        }
        let index = lines.read("index <place>", |line| line.strip_prefix("index ").and_then(text::decimal))?;
        Ok(Self { index, path: read_path(WHAT, lines)?, checkpoint: checkpoint.to_owned() })
    }
}

/// The proof that a log only grew from one checkpoint to another.
///
/// A parsed proof is not verified yet; [`verify_consistency`](super::verify_consistency) verifies it against the two
/// checkpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConsistencyProof {
    /// Size of the earlier checkpoint.
    pub old: u64,
    /// Size of the later checkpoint.
    pub new: u64,
    /// The hashes of RFC 6962, section 2.1.2.
    pub path: Vec<Digest>,
}

impl ConsistencyProof {
    /// Creates a proof from its parts.
    pub fn new(old: u64, new: u64, path: Vec<Digest>) -> Self {
        Self { old, new, path }
    }
}

impl fmt::Display for ConsistencyProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{CONSISTENCY}\nold {}\nnew {}\n", self.old, self.new)?;
        write_path(f, &self.path)
    }
}

impl FromStr for ConsistencyProof {
    type Err = CheckpointError;

    fn from_str(file: &str) -> Result<Self, CheckpointError> {
        const WHAT: &str = "consistency proof";
        text::check_size(WHAT, file, MAX_BYTES)?;
        let mut lines = Lines::new(WHAT, file);
        lines.read(CONSISTENCY, |line| (line == CONSISTENCY).then_some(()))?;
        let old = lines.read("old <size>", |line| line.strip_prefix("old ").and_then(text::decimal))?;
        let new = lines.read("new <size>", |line| line.strip_prefix("new ").and_then(text::decimal))?;
        Ok(Self { old, new, path: read_path(WHAT, lines)? })
    }
}

fn write_path(f: &mut fmt::Formatter<'_>, path: &[Digest]) -> fmt::Result {
    path.iter().try_for_each(|hash| writeln!(f, "{}", text::base64(hash.as_bytes())))
}

/// Reads the remaining lines, each a hash.
fn read_path(what: &'static str, lines: Lines<'_>) -> Result<Vec<Digest>, CheckpointError> {
    let first = lines.next_number();
    let hashes = lines.enumerate().map(|(place, line)| {
        let too_many = place >= MAX_HASHES;
        let hash = if too_many { None } else { text::hash(line) };
        let expected = if too_many { "at most 64 hashes" } else { "a hash, 32 bytes in base 64" };
        hash.ok_or(CheckpointError::Malformed { what, line: first + place, expected })
    });
    hashes.collect()
}

const INCLUSION: &str = "c2sp.org/tlog-proof@v1";
const CONSISTENCY: &str = "rulekeep/tlog-consistency@v1";
/// Upper bound of hashes: a tree of 2^48 leaves needs 48 for inclusion and 49 for consistency.
const MAX_HASHES: usize = 64;
/// Upper bound in bytes: a checkpoint, and as much again for the lines before it.
const MAX_BYTES: usize = 2 * note::MAX_BYTES;
