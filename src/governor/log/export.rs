//! Exporting the log for independent verification, and importing it.

use std::io::{BufRead, Write};
use std::path::Path;

use crate::governor::Log;
use crate::model::Error;
use crate::proof::{self, ExportPoint, ExportRange, ExportReport};

impl Log<'_> {
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
    /// cannot be written; [`Error::ProofNotFound`] for a range that starts after an unknown record. Lines already
    /// written remain valid and can be resumed.
    pub fn export(
        self,
        range: &ExportRange,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<ExportReport, Error> {
        self.governor.inner.base.log.export(range, out, progress)
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
        self.governor.inner.base.log.resume_export(point, out, progress)
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
    proof::import(folder.as_ref(), export, progress)
}
