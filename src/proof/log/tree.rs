//! The log as a Merkle tree: its root, proofs against it, and the newest
//! checkpoint that was made of it.

use std::io;
use std::sync::PoisonError;

use super::ProofLog;
use super::answer::read_error;
use crate::model::{Breakage, BrokenKind, Digest, Error, Sequence};
use crate::store::{self, TreeError};

impl ProofLog {
    /// How many entries are on disk, and the root of the tree over them; all that was put in order before is among them.
    pub(crate) fn tree_head(&self) -> Result<(u64, Digest), Error> {
        self.flush()?;
        self.check_integrity()?;
        let (size, root) = self.shared.reader.tree_head();
        // What came meanwhile is in the file, and maybe not on disk yet.
        let is_durable = size == 0 || self.shared.progress.wait_durable(Sequence::new(size - 1));
        if is_durable { Ok((size, root)) } else { Err(self.refused("the writer stopped")) }
    }

    /// The root of the tree of the first `size` entries.
    pub(crate) fn root_at(&self, size: u64) -> Result<Digest, Error> {
        self.check_open()?;
        self.shared.reader.root_at(size).map_err(tree_error)
    }

    /// The inclusion proof of an entry in the tree of the first `size`.
    pub(crate) fn inclusion(&self, index: u64, size: u64) -> Result<Vec<Digest>, Error> {
        self.check_open()?;
        self.shared.reader.inclusion(index, size).map_err(tree_error)
    }

    /// The proof that the tree of the first `old` entries is how that of the first `size` began.
    pub(crate) fn consistency(&self, old: u64, size: u64) -> Result<Vec<Digest>, Error> {
        self.check_open()?;
        self.shared.reader.consistency(old, size).map_err(tree_error)
    }

    /// The newest checkpoint that was kept, as it was handed out.
    pub(crate) fn kept_checkpoint(&self) -> Result<Option<String>, Error> {
        let note = store::read_checkpoint(&*self.shared.files)
            .map_err(|error| Error::storage(format!("cannot read CHECKPOINT: {error}")))?;
        Ok(note.and_then(|note| String::from_utf8(note).ok()))
    }

    /// Keeps a checkpoint beside the journal, in the place of the last one.
    pub(crate) fn keep_checkpoint(&self, note: &str) -> Result<(), Error> {
        // Held so that the folder is not let go meanwhile.
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.is_none() {
            return Err(self.refused("the log is closed"));
        }
        store::write_checkpoint(&*self.shared.files, note)
            .map_err(|error| Error::storage(format!("cannot write CHECKPOINT: {error}")))
    }

    /// Takes nothing new in, because the checkpoint that was kept is not what the log's key signed.
    pub(crate) fn refuse_checkpoint(&self, entries: u64, expected: String, found: String) {
        let (file, kind) = (store::CHECKPOINT.to_owned(), BrokenKind::Tampering);
        let sequence = Sequence::new(entries);
        self.shared.note_breakage(Some(Breakage { sequence, proof_id: None, file, offset: 0, kind, expected, found }));
    }

    /// A broken log vouches for nothing.
    fn check_integrity(&self) -> Result<(), Error> {
        match self.shared.first_breakage() {
            Some(breakage) => Err(Error::ChainBroken { message: breakage.to_string() }),
            None => Ok(()),
        }
    }
}

fn tree_error(error: TreeError<io::Error>) -> Error {
    match error {
        TreeError::Leaves(Some(error)) => read_error(&error),
        TreeError::Leaves(None) => Error::ChainBroken { message: format!("{error}; verify the log") },
        TreeError::OutOfRange { .. } | TreeError::Missing { .. } => Error::Internal { message: error.to_string() },
    }
}
