//! Checkpoints of the log, made and kept, and proofs against them.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::background::Background;
use super::log::Log;
use super::{Governor, GovernorBuilder};
use crate::checkpoint::{
    Checkpoint, CheckpointError, CheckpointKey, ConsistencyProof, InclusionProof, VerifierKey, verify_inclusion,
};
use crate::model::{
    ArchiveReport, Breakage, BrokenKind, Digest, Error, ProofId, Sequence, Verification, VerifyOptions,
};
use crate::proof::ProofLog;

/// How checkpoints are made.
#[derive(Default)]
pub(super) struct Checkpoints {
    key: Option<CheckpointKey>,
    hook: Option<Hook>,
    // Held while one is made and kept, so that the one that is kept is the newest.
    newest: Mutex<Option<Made>>,
    every: Option<Duration>,
    // Held to start it, to stop it, and to note how it went.
    regular: Mutex<Regular>,
}

/// What makes them every so often.
#[derive(Default)]
struct Regular {
    background: Option<Background>,
    failed: Option<String>,
}

type Hook = Arc<dyn Fn(&str) + Send + Sync>;

/// A checkpoint that was made.
#[derive(Clone)]
struct Made {
    size: u64,
    note: Arc<str>,
}

impl Checkpoints {
    /// Takes the checkpoint over that was kept. A signature in the key's name that the key did not make breaks the
    /// log; one by another key is a former key's: what it says of the log held when the log was opened.
    pub(super) fn resume(&self, log: &ProofLog) -> Result<(), Error> {
        let Some(key) = &self.key else { return Ok(()) };
        let Some(note) = log.kept_checkpoint()? else { return Ok(()) };
        match Checkpoint::open(&note, &key.verifier()) {
            Ok(checkpoint) => {
                let made = Made { size: checkpoint.size(), note: note.into() };
                *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
            }
            Err(error @ CheckpointError::BadSignature { .. }) => {
                let entries = Checkpoint::read_unverified(&note).map_or(0, |checkpoint| checkpoint.size());
                log.refuse_checkpoint(entries, "a checkpoint as it was signed".to_owned(), error.to_string());
            }
            Err(_) => {}
        }
        Ok(())
    }

    fn regular(&self) -> MutexGuard<'_, Regular> {
        self.regular.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why the last one that was to be made by itself was not.
    pub(super) fn failure(&self) -> Option<String> {
        let regular = self.regular();
        let has_ended = regular.background.as_ref().is_some_and(|background| !background.is_alive());
        regular.failed.clone().or_else(|| has_ended.then(|| "the thread that makes them has ended".to_owned()))
    }

    fn key(&self) -> Result<&CheckpointKey, Error> {
        self.key.as_ref().ok_or_else(|| Error::Conflict {
            message: "this governor signs no checkpoints: give it a key, GovernorBuilder::checkpoints".to_owned(),
        })
    }
}

impl GovernorBuilder {
    /// Signs checkpoints of the log with this key. One key and name is for one log.
    pub fn checkpoints(mut self, key: CheckpointKey) -> Self {
        self.checkpoints.key = Some(key);
        self
    }

    /// Makes a checkpoint every so often while something is added to the log, and one at
    /// [`Governor::close`]. Where that fails, [`Governor::status`] says so until one is made
    /// again. It needs a key.
    pub fn checkpoint_every(mut self, every: Duration) -> Self {
        self.checkpoints.every = Some(every);
        self
    }

    /// Hands each new checkpoint out, to be kept where those who can write the
    /// folder cannot: called with the signed note by whoever had it made, on that
    /// thread, once the note is on disk.
    ///
    /// ```
    /// use rulekeep::checkpoint::CheckpointKey;
    /// use rulekeep::system::SystemEntropy;
    /// use rulekeep::Governor;
    /// # let dir = tempfile::tempdir()?;
    /// # let elsewhere = dir.path().join("elsewhere");
    ///
    /// let key = CheckpointKey::generate("example.com/agents", &SystemEntropy)?;
    /// let governor = Governor::builder()
    ///     .checkpoints(key.clone())
    ///     .on_checkpoint(move |note| drop(std::fs::write(&elsewhere, note)))
    ///     .open_in_memory()?;
    /// let note = governor.log().checkpoint()?;
    /// governor.log().verify_checkpoint(&note, &key.verifier())?;
    /// # assert_eq!(std::fs::read_to_string(dir.path().join("elsewhere"))?, note);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_checkpoint(mut self, hook: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.checkpoints.hook = Some(Arc::new(hook));
        self
    }
}

/// Checks an archive as [`verify_archive`](crate::maintenance::verify_archive) does, and that it
/// ends in a checkpoint that this key signed.
///
/// # Errors
///
/// Those of [`verify_archive`](crate::maintenance::verify_archive); [`Error::ArchiveBroken`] too
/// where it is not signed, or not by the key.
pub fn verify_signed_archive(file: impl AsRef<Path>, key: &VerifierKey) -> Result<ArchiveReport, Error> {
    let report = super::verify_archive(file)?;
    let broken = |message: String| Error::ArchiveBroken { message };
    let note = report.checkpoint.as_deref().ok_or_else(|| broken("it is not signed".to_owned()))?;
    let checkpoint = Checkpoint::open(note, key).map_err(|error| broken(error.to_string()))?;
    if (checkpoint.size(), checkpoint.root()) != (report.entries, report.root) {
        return Err(broken("its checkpoint is of other entries".to_owned()));
    }
    Ok(report)
}

impl Log<'_> {
    /// A signed checkpoint of all that was decided and reported before, which is
    /// on disk then. It is kept beside the journal as well, in the place of the
    /// last one. While nothing is added to the log it is the same.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] without a key; [`Error::ChainBroken`], for a broken log
    /// vouches for nothing; [`Error::StorageUnavailable`].
    pub fn checkpoint(self) -> Result<String, Error> {
        self.governor.made_checkpoint().map(|made| made.note.to_string())
    }

    /// The proof that a record is in the log, with the checkpoint that it is for: a
    /// `tlog-proof` file of C2SP, which
    /// [`verify_inclusion`](crate::checkpoint::verify_inclusion) checks. The newest
    /// checkpoint serves; where it is older than the record, a new one is made.
    ///
    /// # Errors
    ///
    /// [`Error::ProofNotFound`], and those of [`Log::checkpoint`](crate::handle::Log::checkpoint).
    pub fn prove(self, proof_id: &ProofId) -> Result<String, Error> {
        let key = self.governor.inner.checkpoints.key()?.verifier();
        let record = self.governor.log().record(proof_id)?;
        let index = proof_id.sequence().get();
        let newest = self.governor.inner.checkpoints.newest.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let made = match newest.filter(|made| made.size > index) {
            Some(made) => made,
            None => self.governor.made_checkpoint()?,
        };
        let path = self.governor.inner.log.inclusion(index, made.size)?;
        let proof = InclusionProof::new(index, path, &*made.note).to_string();
        // Made of stored bytes that may have changed since they were verified.
        match verify_inclusion(&record, &proof, &key) {
            Ok(_) => Ok(proof),
            Err(error) => Err(Error::ChainBroken { message: format!("{error}; verify the log") }),
        }
    }

    /// The proof that the log of `old_size` entries is how that of `new_size` began,
    /// for the checkpoints of these sizes;
    /// [`verify_consistency`](crate::checkpoint::verify_consistency) checks it.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidQuery`] for sizes that the log never had or that are the
    /// wrong way round; [`Error::ChainBroken`]; [`Error::StorageUnavailable`].
    pub fn prove_consistency(self, old_size: u64, new_size: u64) -> Result<String, Error> {
        let (size, _) = self.governor.inner.log.tree_head()?;
        if new_size > size {
            return Err(Error::query("toSize", format!("is {new_size}, and the log has {size} entries")));
        }
        if old_size > new_size {
            return Err(Error::query(
                "fromSize",
                format!("is {old_size}, and toSize is {new_size}: give the earlier one first"),
            ));
        }
        let path = self.governor.inner.log.consistency(old_size, new_size)?;
        Ok(ConsistencyProof::new(old_size, new_size, path).to_string())
    }

    /// The public half of the key that signs this governor's checkpoints.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] without a key.
    pub fn checkpoint_key(self) -> Result<VerifierKey, Error> {
        self.governor.inner.checkpoints.key().map(CheckpointKey::verifier)
    }

    /// Holds the log against a checkpoint of it that was kept elsewhere, signed by
    /// `key`: everything that the log had then is still there, unchanged.
    ///
    /// # Errors
    ///
    /// [`Error::Contradicted`]: [`BrokenKind::Missing`] where the log has fewer
    /// entries by now, its end cut off or begun anew; [`BrokenKind::Tampering`] where
    /// it had others. [`Error::InvalidInput`] for a note that cannot be read or is
    /// not signed by the key; otherwise those of [`Governor::verify`].
    pub fn verify_checkpoint(self, note: &str, key: &VerifierKey) -> Result<(), Error> {
        let Some(Breakage { kind, expected, found, .. }) = self.contradiction(&opened(note, key)?)? else {
            return Ok(());
        };
        let message = match kind {
            BrokenKind::Missing => format!("the log had {expected} by the checkpoint, and has {found}"),
            _ => format!(
                "the log had the {expected} by the checkpoint, and has {found}: it was rewritten, or is another one"
            ),
        };
        Err(Error::Contradicted { kind, message })
    }

    /// Verifies the log like [`Log::verify`](crate::handle::Log::verify), and holds it against a checkpoint of it that was
    /// kept elsewhere, signed by `key`. A log that has fewer entries than the checkpoint says, or others, is not valid;
    /// where it does not contradict itself it goes on, for only the caller knows the checkpoint.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a note that cannot be read or is not signed by the key;
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

    /// What the log contradicts a checkpoint in.
    fn contradiction(self, kept: &Checkpoint) -> Result<Option<Breakage>, Error> {
        let (size, _) = self.governor.inner.log.tree_head()?;
        let breakage = |kind, expected, found| Breakage {
            sequence: Sequence::new(kept.size()),
            proof_id: None,
            file: "checkpoint".to_owned(),
            offset: 0,
            kind,
            expected,
            found,
        };
        if kept.size() > size {
            let (expected, found) = (format!("{} entries", kept.size()), size.to_string());
            return Ok(Some(breakage(BrokenKind::Missing, expected, found)));
        }
        let root = self.governor.inner.log.root_at(kept.size())?;
        Ok((root != kept.root()).then(|| {
            let expected = format!("root {} over its first {} entries", kept.root(), kept.size());
            breakage(BrokenKind::Tampering, expected, format!("root {root}"))
        }))
    }
}

/// The checkpoint of a note that `key` signed.
pub(super) fn opened(note: &str, key: &VerifierKey) -> Result<Checkpoint, Error> {
    Checkpoint::open(note, key).map_err(|error| Error::input("checkpoint", error.to_string()))
}

impl Governor {
    /// The last checkpoint of a log that is frozen.
    pub(super) fn last_checkpoint(&self) -> Result<(), Error> {
        if self.inner.checkpoints.key.is_some() { self.made_checkpoint().map(drop) } else { Ok(()) }
    }

    /// The signed checkpoint of the log when it had so many entries and that root.
    pub(super) fn signed(&self, entries: u64, root: Digest) -> Result<Option<String>, Error> {
        let Some(key) = &self.inner.checkpoints.key else { return Ok(None) };
        let signed = Checkpoint::new(key.name(), entries, root).and_then(|checkpoint| checkpoint.sign(key));
        signed.map(Some).map_err(|error| Error::Internal { message: error.to_string() })
    }

    /// Starts what makes checkpoints by itself, if that is wanted.
    pub(super) fn start_checkpoints(&self) -> Result<(), Error> {
        let checkpoints = &self.inner.checkpoints;
        let Some(every) = checkpoints.every else { return Ok(()) };
        checkpoints.key()?;
        let inner = Arc::downgrade(&self.inner);
        let work = move || {
            let Some(inner) = inner.upgrade() else { return false };
            Self { inner }.regular_checkpoint();
            true
        };
        let background = Background::start("rulekeep-checkpoint", every, work)
            .map_err(|error| Error::storage(format!("cannot start a thread: {error}")))?;
        checkpoints.regular().background = Some(background);
        Ok(())
    }

    /// Stops what makes checkpoints by itself, with a last one.
    pub(super) fn stop_checkpoints(&self) -> Result<(), Error> {
        let background = self.inner.checkpoints.regular().background.take();
        let Some(background) = background else { return Ok(()) };
        background.stop();
        // A log that takes nothing in vouches for nothing; why, it says itself.
        if self.inner.log.refusal().is_some() { Ok(()) } else { self.made_checkpoint().map(drop) }
    }

    fn regular_checkpoint(&self) {
        let failed = self.made_checkpoint().err().map(|error| error.to_string());
        self.inner.checkpoints.regular().failed = failed;
    }

    fn made_checkpoint(&self) -> Result<Made, Error> {
        let Checkpoints { hook, newest, .. } = &self.inner.checkpoints;
        let key = self.inner.checkpoints.key()?;
        // What is signed is what the journal says.
        self.inner.log.wait_verified()?;
        let made = {
            let mut newest = newest.lock().unwrap_or_else(PoisonError::into_inner);
            let (size, root) = self.inner.log.tree_head()?;
            if let Some(same) = newest.as_ref().filter(|made| made.size == size) {
                return Ok(same.clone());
            }
            let signed = Checkpoint::new(key.name(), size, root).and_then(|checkpoint| checkpoint.sign(key));
            let note = signed.map_err(|error| Error::Internal { message: error.to_string() })?;
            self.inner.log.keep_checkpoint(&note)?;
            let made = Made { size, note: note.into() };
            *newest = Some(made.clone());
            made
        };
        if let Some(hook) = hook {
            hook(&made.note);
        }
        Ok(made)
    }
}
