//! Freezing the log, moving entries to archives, and erasing evidence.

use std::path::Path;
use std::sync::Arc;

use crate::governor::Log;
use crate::governor::keys::Rerecording;
use crate::governor::states::checked_note;
use crate::model::{ArchiveReport, Error, LONGEST_LIMIT_WINDOW, Timestamp, Verification};
use crate::proof::{self, EvidenceSelection};
use crate::store::{Files, RealFiles};

impl Log<'_> {
    /// Freezes the log permanently: its last entry says so with the cause. From then on, also after a restart, every
    /// call that would write fails with [`Error::Conflict`]. Queries, verification, exports and proofs still work. With
    /// a checkpoint key, a final checkpoint is made.
    ///
    /// ```
    /// use rulekeep::Governor;
    ///
    /// let governor = Governor::builder().auto_register().open_in_memory()?;
    /// let proof_id = governor.enforce_input("support-1", "Summarize the meeting notes")?.enforcement.proof_id;
    /// governor.log().freeze("the contract ended")?;
    /// assert_eq!(governor.enforce_input("support-1", "Summarize them again").unwrap_err().code(), "CONFLICT");
    /// assert!(governor.log().record(&proof_id).is_ok() && governor.verify()?.valid);
    /// # Ok::<(), rulekeep::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] when it is frozen already; [`Error::InvalidInput`] for a cause of more than 4,096
    /// characters; [`Error::ChainBroken`]; [`Error::StorageUnavailable`]. If only the final checkpoint fails, the log
    /// is frozen all the same.
    pub fn freeze(self, cause: &str) -> Result<(), Error> {
        let cause = checked_note(cause)?;
        self.governor.inner.here()?.base.log.freeze(self.governor.inner.base.clock.now(), cause)?;
        #[cfg(feature = "checkpoints")]
        self.governor.last_checkpoint()?;
        Ok(())
    }

    /// Moves the oldest entries to a new archive file, as far as whole sealed segments are older than `before`, and
    /// deletes them from the store. The report says which entry and time were reached; `None` if no whole segment is
    /// that old. Entries of the last 31 days stay, because rate limits may still count them, and so do entries that a
    /// webhook endpoint has not received yet.
    ///
    /// [`verify_archive`] verifies the file by itself. With a checkpoint key the archive ends with a signed checkpoint.
    /// Without one it is unsigned, and sealed by its links, its root and its SHA-256, which the log stores.
    ///
    /// Requests for archived records, and outcomes for them, fail with [`Error::ProofElsewhere`], which names the
    /// archive. Queries and statistics cover the remaining records, and wait while the index is rebuilt. The call waits
    /// for a background verification and for an erasure to finish.
    ///
    /// ```no_run
    /// use rulekeep::system::Timestamp;
    /// use rulekeep::Governor;
    ///
    /// let governor = Governor::open("governance")?;
    /// let before: Timestamp = "2026-01-01T00:00:00Z".parse()?;
    /// if let Some(archive) = governor.log().archive(before, "archives/2025.rka")? {
    ///     println!("{} records left; now keep {} safe", archive.records, archive.file);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] when the file exists or the log is frozen; [`Error::ChainBroken`] when the entries to
    /// archive do not verify; [`Error::StorageUnavailable`]. Until the archive is written, synced, read back and noted
    /// in the log, an error leaves the log unchanged and at most an unneeded file behind.
    pub fn archive(self, before: Timestamp, file: impl AsRef<Path>) -> Result<Option<ArchiveReport>, Error> {
        let (folder, name) = placed(file.as_ref())?;
        let now = self.governor.inner.here()?.base.clock.now();
        self.governor.inner.base.clock.check()?;
        let counted = Timestamp::from_millis(now.as_millis().saturating_sub(LONGEST_LIMIT_WINDOW));
        let count = self
            .governor
            .inner
            .base
            .log
            .archivable_up_to(before.min(counted), self.governor.inner.extensions.wanted_from())?;
        if count == 0 {
            return Ok(None);
        }
        // States are recorded again, so they must be what the journal says.
        self.governor.inner.base.log.wait_verified()?;
        let again = Rerecording::of(self.governor, now)?;
        let to: Arc<dyn Files> = Arc::new(folder);
        #[cfg(feature = "checkpoints")]
        let sign = |entries, root| self.governor.signed(entries, root);
        #[cfg(not(feature = "checkpoints"))]
        let sign = |_, _| Ok(None);
        let report =
            self.governor.inner.base.log.archive(now, count, &|key| again.may_leave(key), &to, &name, &sign)?;
        self.governor.inner.approvals.queue.forget_before(report.entries);
        self.governor.inner.approvals.given.forget_before(report.entries, now);
        self.governor.inner.tasks.forget_before(report.entries, now);
        Ok(Some(report))
    }

    /// Verifies archives and the log as one chain: each archive by itself, that each starts where the previous one
    /// ends, and that the log starts after the last. The result counts the records of all. Without archives it equals
    /// [`Governor::verify`](crate::Governor::verify).
    ///
    /// # Errors
    ///
    /// [`Error::ArchiveBroken`] for an archive that does not verify or does not fit; [`Error::StorageUnavailable`] when
    /// a file cannot be read.
    pub fn verify_with_archives<P: AsRef<Path>>(self, archives: &[P]) -> Result<Verification, Error> {
        let mut records = 0;
        let mut last: Option<ArchiveReport> = None;
        for file in archives {
            let archive = verify_archive(file)?;
            let goes_on = last.as_ref().is_none_or(|last| {
                (&last.store, last.entries, last.link, last.root, last.head_hash)
                    == (
                        &archive.store,
                        archive.from,
                        archive.previous_link,
                        archive.previous_root,
                        archive.previous_hash,
                    )
            });
            if !goes_on {
                let message = format!("{:?} does not begin where the archive before it ends", archive.file);
                return Err(Error::ArchiveBroken { message });
            }
            let noted = self.governor.inner.here()?.base.log.archived_sha256(archive.from, archive.entries);
            if noted.is_some_and(|noted| noted != archive.sha256) {
                let message = format!("{:?} is not the file that the log wrote: its SHA-256 differs", archive.file);
                return Err(Error::ArchiveBroken { message });
            }
            records += archive.records;
            last = Some(archive);
        }
        let start = self.governor.inner.base.log.begins();
        if let Some(last) = last
            && (last.entries, last.link, last.root, last.head_hash)
                != (start.entries, start.link, start.root, start.head_hash)
        {
            let message = format!("the log does not begin where {:?} ends, at entry {}", last.file, last.entries);
            return Err(Error::ArchiveBroken { message });
        }
        let mut verification = self.governor.verify()?;
        verification.records += records;
        Ok(verification)
    }

    /// Erases the evidence of the selected records permanently: their intents with context, and the details of the
    /// decisions. Returns the number of records whose evidence was erased. The records, the hash chain, checkpoints and
    /// proofs remain; reading the evidence then fails with [`Error::EvidenceErased`]. `cause` says why, in at most
    /// 4,096 characters, and is stored in the log.
    ///
    /// When the call returns, no file in the store's folder contains any of the evidence. After a crash during the
    /// call, reopening the store either completes the erasure, or nothing is erased and the log does not mention it.
    ///
    /// ```
    /// use rulekeep::proof::EvidenceSelection;
    /// use rulekeep::{Error, Governor};
    ///
    /// let governor = Governor::builder().auto_register().open_in_memory()?;
    /// let verdict = governor.enforce_input("support-1", "Summarize the meeting notes")?.enforcement;
    /// let selection = EvidenceSelection::Agent("support-1".parse()?);
    /// assert_eq!(governor.log().erase_evidence(&selection, "asked for by the customer")?, 1);
    /// assert!(matches!(governor.log().evidence(&verdict.proof_id), Err(Error::EvidenceErased { .. })));
    /// assert!(governor.verify()?.valid);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] when some of the evidence is under a minimum lifetime, belongs to a pending escalation, or
    /// is younger than 31 days and counts in a rate limit (the counters are rebuilt from it when the store is opened);
    /// [`Error::ProofNotFound`]; [`Error::InvalidInput`] for a cause that is too long or more than 10,000 ids;
    /// [`Error::StorageUnavailable`]; [`Error::ChainBroken`]. After an error nothing is erased, except that after
    /// [`Error::StorageUnavailable`] the result is only known once the store is reopened.
    pub fn erase_evidence(self, selection: &EvidenceSelection, cause: &str) -> Result<u64, Error> {
        let cause = checked_note(cause)?;
        if let EvidenceSelection::Records(ids) = selection
            && ids.len() > MOST_IDS
        {
            return Err(Error::input("proofIds", format!("expected at most {MOST_IDS} ids at once")));
        }
        if let Some(asked) = self.governor.inner.here()?.approvals.pending_in(selection) {
            let message = format!("{asked} is pending, and its reviewer needs the evidence; have it answered first");
            return Err(Error::Conflict { message });
        }
        let (retention, now) = (self.governor.inner.retention, self.governor.inner.base.clock.now());
        self.governor.inner.base.clock.check()?;
        let erased = self.governor.inner.base.log.erase(now, selection, &cause, &|time| retention.kept_until(time))?;
        self.governor.inner.tasks.forget_observed()?;
        Ok(erased)
    }
}

/// Verifies an archive from its file alone: every hash and link, its root, and that a checkpoint at its end covers
/// these entries. It does not check who signed the checkpoint: with the feature `checkpoints`,
/// `rulekeep::maintenance::verify_signed_archive` does.
///
/// # Errors
///
/// [`Error::ArchiveBroken`] when the file does not verify; [`Error::StorageUnavailable`] when it cannot be read.
pub fn verify_archive(file: impl AsRef<Path>) -> Result<ArchiveReport, Error> {
    let (folder, name) = placed(file.as_ref())?;
    proof::verify_archive(&folder, Path::new(&name))
}

/// Splits a path into its folder and the file's name.
fn placed(file: &Path) -> Result<(RealFiles, String), Error> {
    let name = file.file_name().and_then(std::ffi::OsStr::to_str);
    let name = name.ok_or_else(|| Error::input("file", "expected a path that ends in a file's name, in UTF-8"))?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder =
        RealFiles::open(folder).map_err(|error| Error::storage(folder.display().to_string()).caused_by(error))?;
    Ok((folder, name.to_owned()))
}

/// Maximum number of ids per erasure.
const MOST_IDS: usize = 10_000;
