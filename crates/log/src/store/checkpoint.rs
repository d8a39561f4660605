//! `CHECKPOINT`: the newest signed checkpoint of the log. Every open compares it with the journal. The signature is
//! verified elsewhere, by those who have the key.

use std::io;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::files::{self, Files};
use rulekeep_types::Digest;

/// The claim of a checkpoint about the journal.
#[derive(Debug, Clone)]
pub struct Kept {
    /// The name that error messages use for the checkpoint.
    pub(super) name: &'static str,
    /// Number of entries the journal had.
    pub(super) entries: u64,
    /// The root of the tree over them, in base 64 as in the note.
    root: String,
}

/// The result of reading the `CHECKPOINT` file.
pub(super) enum Found {
    Nothing,
    Malformed,
    Checkpoint(Kept),
}

impl Found {
    pub(super) fn checkpoint(&self) -> Option<&Kept> {
        if let Self::Checkpoint(kept) = self { Some(kept) } else { None }
    }

    /// Number of entries the checkpoint claims; 0 without a checkpoint.
    pub(super) fn entries(&self) -> u64 {
        self.checkpoint().map_or(0, |kept| kept.entries)
    }
}

impl Kept {
    /// A checkpoint supplied by the caller.
    pub fn handed_in(entries: u64, root: &Digest) -> Self {
        Self { name: HANDED_IN, entries, root: STANDARD.encode(root.as_bytes()) }
    }

    /// Returns whether the checkpoint names this root.
    pub(super) fn has_root(&self, root: &Digest) -> bool {
        self.root == STANDARD.encode(root.as_bytes())
    }

    /// The root in base 64, for messages.
    pub(super) fn root(&self) -> &str {
        &self.root
    }

    /// Parses the number of entries and the root from a note. SOURCE: <https://c2sp.org/tlog-checkpoint>: the log's
    /// name, the number of entries and the root have a line each.
    pub(super) fn parse(note: &[u8]) -> Option<Self> {
        let mut lines = std::str::from_utf8(note).ok()?.split('\n');
        let (_name, entries, root) = (lines.next()?, lines.next()?, lines.next()?);
        let is_number = entries.bytes().all(|byte| byte.is_ascii_digit());
        let entries = entries.parse().ok().filter(|_| is_number)?;
        (root.len() == ROOT_CHARS && root.is_ascii()).then(|| Self { name: NAME, entries, root: root.to_owned() })
    }
}

/// Reads the `CHECKPOINT` file.
pub(crate) fn read(files: &dyn Files) -> io::Result<Found> {
    Ok(match read_note(files)? {
        None => Found::Nothing,
        Some(note) => Kept::parse(&note).map_or(Found::Malformed, Found::Checkpoint),
    })
}

/// Reads the whole file; `None` if it does not exist.
pub fn read_note(files: &dyn Files) -> io::Result<Option<Vec<u8>>> {
    files::read_if_there(files, Path::new(NAME))
}

/// Replaces the file with `note`, atomically and durably.
#[cfg(feature = "checkpoints")]
pub fn write_note(files: &dyn Files, note: &str) -> io::Result<()> {
    files::replace(files, NAME, note.as_bytes(), files::OpenMode::Create)
}

/// The file's name in the store.
pub const NAME: &str = "CHECKPOINT";
const HANDED_IN: &str = "the checkpoint";
/// Length of 32 bytes in base 64.
const ROOT_CHARS: usize = 44;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_checkpoint_says_nothing() {
        let root = STANDARD.encode([7; 32]);
        let kept = Kept::parse(format!("example.com/log\n12\n{root}\n\n— x y\n").as_bytes()).unwrap();
        assert_eq!(kept.entries, 12);
        assert!(kept.has_root(&Digest::new([7; 32])) && !kept.has_root(&Digest::new([8; 32])));
        for bad in ["", "a\n", "a\n12", "a\n12\n", "a\n+2\nx", &format!("a\n-1\n{root}\n"), &format!("a\n\n{root}\n")] {
            assert!(Kept::parse(bad.as_bytes()).is_none(), "{bad:?}");
        }
        assert!(Kept::parse(&[0xff; 90]).is_none());
    }
}
