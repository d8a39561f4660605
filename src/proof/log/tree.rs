//! The log as a Merkle tree: its root, proofs against it, and the newest
//! checkpoint that was made of it.

use std::io;
use std::sync::Arc;

use super::ProofLog;
use crate::model::{Breakage, BrokenKind, Digest, Error, Sequence};
use crate::proof::journal::read_error;
use crate::store::{self, Files, TreeError};

impl ProofLog {
    /// How many entries are on disk, and the root of the tree over them; all that was put in order before is among them.
    pub(crate) fn tree_head(&self) -> Result<(u64, Digest), Error> {
        self.flush()?;
        // A broken log vouches for nothing.
        self.parts.journal.check_integrity()?;
        let (size, root) = self.parts.journal.reader.tree_head();
        // What came meanwhile is in the file, and maybe not on disk yet.
        let is_durable = size == 0 || self.parts.journal.progress.wait_durable(Sequence::new(size - 1));
        if is_durable { Ok((size, root)) } else { Err(self.parts.queue.refused("the writer stopped")) }
    }

    /// The root of the tree of the first `size` entries.
    pub(crate) fn root_at(&self, size: u64) -> Result<Digest, Error> {
        self.parts.index.check_open()?;
        self.parts.journal.reader.root_at(size).map_err(tree_error)
    }

    /// The inclusion proof of an entry in the tree of the first `size`.
    pub(crate) fn inclusion(&self, index: u64, size: u64) -> Result<Vec<Digest>, Error> {
        self.parts.index.check_open()?;
        self.parts.journal.reader.inclusion(index, size).map_err(tree_error)
    }

    /// The proof that the tree of the first `old` entries is how that of the first `size` began.
    pub(crate) fn consistency(&self, old: u64, size: u64) -> Result<Vec<Digest>, Error> {
        self.parts.index.check_open()?;
        self.parts.journal.reader.consistency(old, size).map_err(tree_error)
    }

    /// The newest checkpoint that was kept, as it was handed out.
    pub(crate) fn kept_checkpoint(&self) -> Result<Option<String>, Error> {
        let note = store::read_checkpoint(&*self.parts.journal.files)
            .map_err(|error| Error::storage(format!("cannot read CHECKPOINT: {error}")))?;
        Ok(note.and_then(|note| String::from_utf8(note).ok()))
    }

    /// Keeps a checkpoint beside the journal, in the place of the last one.
    pub(crate) fn keep_checkpoint(&self, note: &str) -> Result<(), Error> {
        let note = note.to_owned();
        self.keep_beside(store::CHECKPOINT, |journal| {
            let write = Arc::new(move |files: &dyn Files| store::write_checkpoint(files, &note));
            journal.overdue.write(store::CHECKPOINT, &*journal.files, write)
        })
    }

    /// Takes nothing new in, because the checkpoint that was kept is not what the log's key signed.
    pub(crate) fn refuse_checkpoint(&self, entries: u64, expected: String, found: String) {
        let (file, kind) = (store::CHECKPOINT.to_owned(), BrokenKind::Tampering);
        let sequence = Sequence::new(entries);
        self.parts.note_breakage(Some(Breakage { sequence, proof_id: None, file, offset: 0, kind, expected, found }));
    }
}

fn tree_error(error: TreeError<io::Error>) -> Error {
    match error {
        TreeError::Leaves(Some(error)) => read_error(&error),
        TreeError::Leaves(None) => Error::ChainBroken { message: format!("{error}; verify the log") },
        TreeError::OutOfRange { .. } | TreeError::Missing { .. } => Error::Internal { message: error.to_string() },
    }
}
