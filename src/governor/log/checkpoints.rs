//! Checkpoints of the log: making and storing them, and proofs against them.

use std::io::BufRead;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::checkpoint::{
    Checkpoint, CheckpointError, CheckpointKey, ConsistencyProof, InclusionProof, VerifierKey, verify_inclusion,
};
use crate::governor::{Governor, GovernorBuilder, Hold as _, Log};
use crate::model::parts::BreakageParts;
use crate::model::{
    ArchiveReport, Breakage, BrokenKind, Digest, Error, ProofId, Sequence, Verification, VerifyOptions,
};
use crate::proof::{self, ExportReport, ProofLog};

/// Settings and state of checkpoints.
#[derive(Default)]
pub(crate) struct Checkpoints {
    key: Option<CheckpointKey>,
    // Held while a checkpoint is made and stored, so that the stored one is the newest.
    newest: Mutex<Option<Made>>,
}

/// A checkpoint that was made.
#[derive(Clone)]
struct Made {
    size: u64,
    note: Arc<str>,
}

impl Checkpoints {
    /// Restores the stored checkpoint. A signature in the key's name that the key did not make breaks the log. A
    /// signature by another key is that of a former key: the checkpoint's content was verified when the log was opened.
    pub(crate) fn resume(&self, log: &ProofLog) -> Result<(), Error> {
        let Some(key) = &self.key else { return Ok(()) };
        let Some(note) = log.kept_checkpoint()? else { return Ok(()) };
        match Checkpoint::open(&note, &key.verifier()) {
            Ok(checkpoint) => {
                let made = Made { size: checkpoint.size(), note: note.into() };
                *self.newest.hold() = Some(made);
            }
            Err(error @ CheckpointError::BadSignature { .. }) => {
                let entries = Checkpoint::read_unverified(&note).map_or(0, |checkpoint| checkpoint.size());
                log.refuse_checkpoint(entries, "a checkpoint as it was signed".to_owned(), error.to_string());
            }
            Err(_) => {}
        }
        Ok(())
    }

    fn key(&self) -> Result<&CheckpointKey, Error> {
        self.key.as_ref().ok_or_else(|| Error::Conflict {
            message: "no checkpoint key is configured, which checkpoints and proofs are signed with".to_owned(),
        })
    }
}

impl GovernorBuilder {
    /// Sets the key that signs checkpoints of the log. A key and its name belong to one log.
    pub fn checkpoints(mut self, key: CheckpointKey) -> Self {
        self.checkpoints.key = Some(key);
        self
    }
}

/// Verifies an archive like [`verify_archive`](crate::maintenance::verify_archive), and that it ends with a checkpoint
/// signed by this key.
///
/// # Errors
///
/// The errors of [`verify_archive`](crate::maintenance::verify_archive); [`Error::ArchiveBroken`] also when it is
/// unsigned or signed by another key.
pub fn verify_signed_archive(file: impl AsRef<Path>, key: &VerifierKey) -> Result<ArchiveReport, Error> {
    let report = crate::governor::verify_archive(file)?;
    let broken = |message: String| Error::ArchiveBroken { message };
    let note = report.checkpoint.as_deref().ok_or_else(|| broken("it is not signed".to_owned()))?;
    let checkpoint = Checkpoint::open(note, key).map_err(|error| broken(error.to_string()))?;
    if (checkpoint.size(), checkpoint.root()) != (report.entries, report.root) {
        return Err(broken("its checkpoint covers other entries".to_owned()));
    }
    Ok(report)
}

/// Creates a store from an export like [`import`](crate::maintenance::import), if the export begins with the entries of
/// a checkpoint that was kept elsewhere. Without one, a forged export can be imported: its hashes fit each other.
///
/// # Errors
///
/// The errors of [`import`](crate::maintenance::import); [`Error::ExportBroken`] also for entries that are not those of
/// the checkpoint.
pub fn import_against(
    folder: impl AsRef<Path>,
    export: &mut dyn BufRead,
    checkpoint: &Checkpoint,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<ExportReport, Error> {
    proof::import(folder.as_ref(), export, Some((checkpoint.size(), checkpoint.root())), progress)
}

impl Log<'_> {
    /// Returns a signed checkpoint of everything decided and reported so far, which is on disk then. It is also stored
    /// beside the journal and replaces the previous one. Without new entries the same checkpoint is returned.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] without a key; [`Error::ChainBroken`] for a broken log; [`Error::StorageUnavailable`] when
    /// it cannot be written.
    pub fn checkpoint(self) -> Result<String, Error> {
        self.governor.made_checkpoint().map(|made| made.note.to_string())
    }

    /// Returns a proof that a record is in the log, together with its checkpoint: a `tlog-proof` file of C2SP, which
    /// [`verify_inclusion`](crate::checkpoint::verify_inclusion) verifies. The newest checkpoint is used, or a new one
    /// is made if the record is newer.
    ///
    /// # Errors
    ///
    /// [`Error::ProofNotFound`], and the errors of [`Log::checkpoint`](crate::handle::Log::checkpoint).
    pub fn prove(self, proof_id: &ProofId) -> Result<String, Error> {
        let key = self.governor.inner.here()?.checkpoints.key()?.verifier();
        let record = self.governor.log().record(proof_id)?;
        let index = proof_id.sequence().get();
        let newest = self.governor.inner.checkpoints.newest.hold().clone();
        let made = match newest.filter(|made| made.size > index) {
            Some(made) => made,
            None => self.governor.made_checkpoint()?,
        };
        let path = self.governor.inner.base.log.inclusion(index, made.size)?;
        let proof = InclusionProof::new(index, path, &*made.note).to_string();
        // The proof is made of stored bytes, which may have changed since they were verified.
        match verify_inclusion(&record, &proof, &key) {
            Ok(_) => Ok(proof),
            Err(error) => Err(Error::ChainBroken { message: format!("{error}; verify the log") }),
        }
    }

    /// Returns the newest checkpoint that is stored beside the journal, if any.
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] when it cannot be read.
    pub fn stored_checkpoint(self) -> Result<Option<String>, Error> {
        self.governor.inner.here()?.base.log.kept_checkpoint()
    }

    /// Returns a proof like [`Log::prove`](crate::handle::Log::prove), against a checkpoint that was made earlier. It
    /// needs no key and writes nothing. The log must agree with the checkpoint, whose signature is not verified.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a checkpoint that cannot be read; [`Error::Conflict`] when the record is newer;
    /// [`Error::Contradicted`] when the log has fewer or other entries; [`Error::ProofNotFound`]; and
    /// [`Error::ChainBroken`] for a broken log.
    pub fn prove_with_checkpoint(self, proof_id: &ProofId, note: &str) -> Result<String, Error> {
        let kept = Checkpoint::read_unverified(note).map_err(|error| Error::input("checkpoint", error.to_string()))?;
        self.agree(&kept)?;
        let index = self.record(proof_id)?.id.sequence().get();
        if index >= kept.size() {
            let message = format!("the checkpoint has {} entries and ends before {proof_id}", kept.size());
            return Err(Error::Conflict { message });
        }
        let path = self.governor.inner.here()?.base.log.inclusion(index, kept.size())?;
        Ok(InclusionProof::new(index, path, note).to_string())
    }

    /// Returns a proof that the log of `old_size` entries is a prefix of the log of `new_size` entries, for checkpoints
    /// of these sizes. [`verify_consistency`](crate::checkpoint::verify_consistency) verifies it.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidQuery`] for a size that the log never had or sizes in the wrong order; [`Error::ChainBroken`] or
    /// [`Error::StorageUnavailable`] when the log cannot be read.
    pub fn prove_consistency(self, old_size: u64, new_size: u64) -> Result<String, Error> {
        let (size, _) = self.governor.inner.here()?.base.log.tree_head()?;
        if new_size > size {
            return Err(Error::query("toSize", format!("is {new_size}, but the log has {size} entries")));
        }
        if old_size > new_size {
            return Err(Error::query(
                "fromSize",
                format!("is {old_size}, which is after toSize {new_size}: give the earlier size first"),
            ));
        }
        let path = self.governor.inner.base.log.consistency(old_size, new_size)?;
        Ok(ConsistencyProof::new(old_size, new_size, path).to_string())
    }

    /// Returns the public key for this governor's checkpoints.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] when the governor has no checkpoint key.
    pub fn checkpoint_key(self) -> Result<VerifierKey, Error> {
        self.governor.inner.here()?.checkpoints.key().map(CheckpointKey::verifier)
    }

    /// Verifies the log against a checkpoint that was stored elsewhere, signed by `key`: every entry that the log had
    /// then is still there, unchanged.
    ///
    /// # Errors
    ///
    /// [`Error::Contradicted`] with [`BrokenKind::Missing`] when the log has fewer entries than the checkpoint, and
    /// with [`BrokenKind::Tampering`] when its entries differ; [`Error::InvalidInput`] for a checkpoint that cannot be
    /// read or is not signed by the key; otherwise the errors of [`Governor::verify`].
    pub fn verify_checkpoint(self, note: &str, key: &VerifierKey) -> Result<(), Error> {
        self.agree(&opened(note, key)?)
    }

    /// Verifies the log like [`Log::verify`](crate::handle::Log::verify), and against a checkpoint that was stored
    /// elsewhere, signed by `key`. A log with fewer or other entries than the checkpoint is invalid. It stays writable
    /// if it does not contradict itself, because only the caller knows the checkpoint.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a checkpoint that cannot be read or is not signed by the key;
    /// [`Error::StorageUnavailable`] when the log cannot be read.
    pub fn verify_with_checkpoint(
        self,
        options: &VerifyOptions,
        note: &str,
        key: &VerifierKey,
    ) -> Result<Verification, Error> {
        let kept = opened(note, key)?;
        let mut found = self.verify(options)?;
        if found.valid {
            found.first_broken = self.contradiction(&kept)?;
            found.valid = found.first_broken.is_none();
        }
        Ok(found)
    }

    /// Fails if the log contradicts a checkpoint.
    fn agree(self, kept: &Checkpoint) -> Result<(), Error> {
        self.governor.inner.here()?;
        let Some(Breakage { kind, expected, found, .. }) = self.contradiction(kept)? else {
            return Ok(());
        };
        let message = match kind {
            BrokenKind::Missing => format!("the log had {expected} by the checkpoint, and has {found}"),
            _ => format!(
                "the log had the {expected} by the checkpoint, and has {found}: it was rewritten, or is another log"
            ),
        };
        Err(Error::Contradicted { kind, message })
    }

    /// The contradiction between the log and a checkpoint, if any.
    fn contradiction(self, kept: &Checkpoint) -> Result<Option<Breakage>, Error> {
        let (size, _) = self.governor.inner.base.log.tree_head()?;
        let breakage = |kind, expected, found| {
            Breakage::from(BreakageParts {
                sequence: Sequence::new(kept.size()),
                proof_id: None,
                file: "checkpoint".to_owned(),
                offset: 0,
                kind,
                expected,
                found,
            })
        };
        if kept.size() > size {
            let (expected, found) = (format!("{} entries", kept.size()), size.to_string());
            return Ok(Some(breakage(BrokenKind::Missing, expected, found)));
        }
        let root = self.governor.inner.base.log.root_at(kept.size())?;
        Ok((root != kept.root()).then(|| {
            let expected = format!("root {} over its first {} entries", kept.root(), kept.size());
            breakage(BrokenKind::Tampering, expected, format!("root {root}"))
        }))
    }
}

/// Opens a checkpoint that `key` signed.
pub(crate) fn opened(note: &str, key: &VerifierKey) -> Result<Checkpoint, Error> {
    Checkpoint::open(note, key).map_err(|error| Error::input("checkpoint", error.to_string()))
}

fn sign(key: &CheckpointKey, entries: u64, root: Digest) -> Result<String, Error> {
    let signed = Checkpoint::new(key.name(), entries, root).and_then(|checkpoint| checkpoint.sign(key));
    signed.map_err(|error| Error::internal(error.to_string()))
}

impl Governor {
    /// Makes the final checkpoint of a frozen log.
    pub(crate) fn last_checkpoint(&self) -> Result<(), Error> {
        if self.inner.checkpoints.key.is_some() { self.made_checkpoint().map(drop) } else { Ok(()) }
    }

    /// The signed checkpoint of the log when it had `entries` entries and this root.
    pub(crate) fn signed(&self, entries: u64, root: Digest) -> Result<Option<String>, Error> {
        let Some(key) = &self.inner.checkpoints.key else { return Ok(None) };
        sign(key, entries, root).map(Some)
    }

    fn made_checkpoint(&self) -> Result<Made, Error> {
        let key = self.inner.here()?.checkpoints.key()?;
        // Only what the journal says is signed.
        self.inner.base.log.wait_verified()?;
        let mut newest = self.inner.checkpoints.newest.hold();
        let (size, root) = self.inner.base.log.tree_head()?;
        if let Some(same) = newest.as_ref().filter(|made| made.size == size) {
            return Ok(same.clone());
        }
        let note = sign(key, size, root)?;
        self.inner.base.log.keep_checkpoint(&note)?;
        let made = Made { size, note: note.into() };
        *newest = Some(made.clone());
        Ok(made)
    }
}
