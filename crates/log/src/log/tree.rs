//! The log as a Merkle tree: its root, proofs against it, and the newest checkpoint of it.

use rulekeep_types::parts::BreakageParts;
use std::io;
use std::sync::Arc;

use super::ProofLog;
use crate::journal::read_error;
use crate::store::{self, Files, TreeError};
use rulekeep_types::{Breakage, BrokenKind, Digest, Error, Sequence};

impl ProofLog {
    /// Returns the number of entries on disk and the root of the tree over them. Includes everything enqueued before.
    pub fn tree_head(&self) -> Result<(u64, Digest), Error> {
        self.flush()?;
        // A broken log must not be vouched for.
        self.parts.journal.check_integrity()?;
        let (size, root) = self.parts.journal.reader.tree_head();
        // Entries written in the meantime may not be on disk yet.
        let is_durable = size == 0 || self.parts.journal.progress.wait_durable(Sequence::new(size - 1));
        if is_durable { Ok((size, root)) } else { Err(self.parts.queue.refused("the writer stopped")) }
    }

    /// Returns the root of the tree over the first `size` entries.
    pub fn root_at(&self, size: u64) -> Result<Digest, Error> {
        self.parts.index.check_open()?;
        self.parts.journal.reader.root_at(size).map_err(tree_error)
    }

    /// Returns the inclusion proof of an entry in the tree over the first `size` entries.
    pub fn inclusion(&self, index: u64, size: u64) -> Result<Vec<Digest>, Error> {
        self.parts.index.check_open()?;
        self.parts.journal.reader.inclusion(index, size).map_err(tree_error)
    }

    /// Returns the consistency proof from the tree over the first `old` entries to the one over the first `size`.
    pub fn consistency(&self, old: u64, size: u64) -> Result<Vec<Digest>, Error> {
        self.parts.index.check_open()?;
        self.parts.journal.reader.consistency(old, size).map_err(tree_error)
    }

    /// Returns the newest stored checkpoint.
    pub fn kept_checkpoint(&self) -> Result<Option<String>, Error> {
        let note = store::read_checkpoint(&*self.parts.journal.files)
            .map_err(|error| Error::storage("cannot read CHECKPOINT").caused_by(error))?;
        Ok(note.and_then(|note| String::from_utf8(note).ok()))
    }

    /// Stores a checkpoint beside the journal, replacing the last one.
    pub fn keep_checkpoint(&self, note: &str) -> Result<(), Error> {
        let note = note.to_owned();
        self.keep_beside(store::CHECKPOINT, |journal| {
            let write = Arc::new(move |files: &dyn Files| store::write_checkpoint(files, &note));
            journal.overdue.write(store::CHECKPOINT, &*journal.files, write)
        })
    }

    /// Accepts no new entries, because the stored checkpoint is not what the log's key signed.
    pub fn refuse_checkpoint(&self, entries: u64, expected: String, found: String) {
        let (file, kind) = (store::CHECKPOINT.to_owned(), BrokenKind::Tampering);
        let sequence = Sequence::new(entries);
        self.parts.note_breakage(Some(Breakage::from(BreakageParts {
            sequence,
            proof_id: None,
            file,
            offset: 0,
            kind,
            expected,
            found,
        })));
    }
}

fn tree_error(error: TreeError<io::Error>) -> Error {
    match error {
        TreeError::Leaves(Some(error)) => read_error(error),
        TreeError::Leaves(None) => Error::ChainBroken { message: format!("{error}; verify the log") },
        TreeError::OutOfRange { .. } | TreeError::Missing { .. } => Error::internal(error.to_string()),
    }
}
