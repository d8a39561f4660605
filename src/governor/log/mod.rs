//! Access to the log: records, evidence, verification, exports, and the findings at opening.

#[cfg(feature = "checkpoints")]
pub(crate) mod checkpoints;
pub(crate) mod decision_clock;
pub(crate) mod repair;
pub(crate) mod retention;

use std::io::{BufRead, Write};
use std::path::Path;

use crate::governor::Governor;
use crate::model::{
    Error, IntentId, Opening, Order, ProofId, ProofRecord, Verification, VerificationState, VerifyOptions,
};
use crate::proof::{self, Evidence, ExportPoint, ExportRange, ExportReport, ProofQuery};

/// The proof log of a governor, see [`Governor::log`].
#[derive(Debug, Clone, Copy)]
pub struct Log<'a> {
    pub(crate) governor: &'a Governor,
}

impl<'a> Log<'a> {
    /// Iterates over all matching proof records that exist now, in bounded memory. The query's page and page size are
    /// ignored.
    ///
    /// An item is an error when the query is invalid or the index cannot be read, and then it is the last item, or when
    /// a record of a damaged log cannot be read.
    pub fn records(self, query: &ProofQuery) -> impl Iterator<Item = Result<ProofRecord, Error>> + use<'a> {
        self.governor.inner.base.log.records(query)
    }

    /// Iterates over the proof records of an intent, oldest first: one for each time it was decided.
    pub fn of_intent(self, intent_id: IntentId) -> impl Iterator<Item = Result<ProofRecord, Error>> {
        self.records(&ProofQuery::all().intent(intent_id).order(Order::OldestFirst))
    }

    /// Returns a proof record by its id.
    ///
    /// # Errors
    ///
    /// [`Error::ProofNotFound`], [`Error::ProofElsewhere`] for an archived record, [`Error::StorageUnavailable`].
    pub fn record(self, proof_id: &ProofId) -> Result<ProofRecord, Error> {
        self.governor.inner.here()?.base.log.record(proof_id)
    }

    /// Returns the evidence of a decision: the inputs it was based on, stored beside its record.
    ///
    /// # Errors
    ///
    /// [`Error::ProofNotFound`], [`Error::ProofElsewhere`] for an archived record, [`Error::EvidenceErased`],
    /// [`Error::StorageUnavailable`].
    pub fn evidence(self, proof_id: &ProofId) -> Result<Evidence, Error> {
        self.governor.inner.here()?.base.log.evidence(proof_id)
    }

    /// The findings when the store was opened: whether it is new, and whether a crash had cut a write short.
    pub fn opening(self) -> &'a Opening {
        &self.governor.inner.opening
    }

    /// Waits until every earlier decision and report is on disk; useful with
    /// [`Durability::Buffered`](crate::Durability::Buffered).
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] when an entry could not be written.
    pub fn flush(self) -> Result<(), Error> {
        self.governor.inner.here()?.base.log.flush()
    }

    /// Returns the progress of the verification that started when the log was opened, of interest with
    /// [`OpenVerification::Behind`](crate::proof::OpenVerification::Behind).
    pub fn verification(self) -> VerificationState {
        self.governor.inner.base.log.verification_state()
    }

    /// Verifies the log like [`Governor::verify`], with options: a starting position, progress reports, the number of
    /// threads, and a comparison of the index.
    ///
    /// Entries appended meanwhile are left to the next verification. A starting position that does not belong to this
    /// log is reported as broken, but the log stays writable.
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] when the log cannot be read.
    pub fn verify(self, options: &VerifyOptions) -> Result<Verification, Error> {
        let mut found = self.governor.inner.here()?.base.log.verify_with(options)?;
        found.checked.torn.clone_from(&self.governor.inner.opening.recovered);
        Ok(found)
    }

    /// Exports the current records with their evidence as lines of JSON, which can be verified with `jq` and
    /// `sha256sum`: see `docs/guides/auditors.md`. It runs in bounded memory while decisions continue. `progress`
    /// receives the number of log entries processed and their total.
    ///
    /// ```
    /// use rulekeep::proof::{ExportRange, verify_export};
    /// use rulekeep::Governor;
    ///
    /// let governor = Governor::builder().auto_register().open_in_memory()?;
    /// governor.enforce_input("support-1", "Summarize the meeting notes")?;
    ///
    /// let mut export = Vec::new();
    /// let written = governor.log().export(&ExportRange::all(), &mut export, &mut |_, _| {})?;
    /// let checked = verify_export(&mut export.as_slice(), &mut |_, _| {})?;
    /// assert_eq!((checked.records, checked.head_hash), (1, governor.verify()?.head_hash));
    /// assert_eq!(checked, written);
    /// # Ok::<(), rulekeep::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::ChainBroken`] if the log does not verify; [`Error::StorageUnavailable`] when it cannot be read or `out`
    /// cannot be written; [`Error::ProofNotFound`] for a range that starts after an unknown record;
    /// [`Error::InvalidInput`] for an end of an export with entries. Lines already written remain valid and can be
    /// resumed.
    pub fn export(
        self,
        range: &ExportRange,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<ExportReport, Error> {
        self.governor.inner.here()?.base.log.export(range, out, progress)
    }

    /// Resumes an interrupted export with its own range, up to the current end of the log. The caller first truncates
    /// the kept export to [`ExportPoint::bytes`]; `out` appends to it. The final line covers the whole export. Each
    /// record shows the outcome known when its line was written.
    ///
    /// # Errors
    ///
    /// The errors of [`Log::export`](crate::handle::Log::export); [`Error::Conflict`] when the export belongs to
    /// another log.
    pub fn resume_export(
        self,
        point: ExportPoint,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<ExportReport, Error> {
        self.governor.inner.here()?.base.log.resume_export(point, out, progress)
    }
}

impl Governor {
    /// Verifies the whole log by recomputing every hash in it. If it finds a break, the log becomes read-only.
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] when the log cannot be read.
    pub fn verify(&self) -> Result<Verification, Error> {
        self.log().verify(&VerifyOptions::new())
    }
}

/// Creates a store from a full export ([`ExportRange::with_entries`]) in a new or empty folder: the same records, ids,
/// hashes, outcomes, agents and policies. The export is verified while it is read, as by
/// [`verify_export`](crate::proof::verify_export); the folder stays empty unless all of it is valid. `progress`
/// receives the lines and bytes read.
///
/// # Errors
///
/// [`Error::ExportBroken`] at the first break; [`Error::InvalidInput`] when the export is not a full one;
/// [`Error::Conflict`] when the folder is not empty; [`Error::StorageUnavailable`] when a file cannot be read or
/// written.
pub fn import(
    folder: impl AsRef<Path>,
    export: &mut dyn BufRead,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<ExportReport, Error> {
    proof::import(folder.as_ref(), export, None, progress)
}
