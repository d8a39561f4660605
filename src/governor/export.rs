//! The log as lines that can be checked without us, and read back.

use std::io::{BufRead, Write};
use std::path::Path;

use super::log::Log;
use crate::model::Error;
use crate::proof::{self, ExportPoint, ExportRange, ExportReport};

impl Log<'_> {
    /// Writes the records that are there now, with their evidence, as lines of
    /// JSON that `jq` and `sha256sum` can check: `docs/guides/auditors.md` says
    /// how. In bounded memory, while decisions go on. `progress` gets how many
    /// entries of the log are done, and how many there are.
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
    /// [`Error::ChainBroken`] where the log does not hold, and
    /// [`Error::StorageUnavailable`] where it cannot be read or `out` cannot be
    /// written; what was written by then stands, and can be gone on with.
    /// [`Error::ProofNotFound`] for a range behind a record that is not there.
    pub fn export(
        self,
        range: &ExportRange,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<ExportReport, Error> {
        self.governor.inner.log.export(range, out, progress)
    }

    /// Goes on with an export that was cut short, with the range that it says of
    /// itself, up to what is there now. `out` writes on behind
    /// [`ExportPoint::bytes`] of what is kept; what stands there is cut off first.
    /// The line at the end covers all of it. The outcome beside a record is the
    /// one that was known when its line was written.
    ///
    /// # Errors
    ///
    /// Those of [`Log::export`](crate::handle::Log::export); [`Error::Conflict`] when the export is of
    /// another log.
    pub fn resume_export(
        self,
        point: ExportPoint,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<ExportReport, Error> {
        self.governor.inner.log.resume_export(point, out, progress)
    }
}

/// Makes a store of an export of everything
/// ([`ExportRange::with_entries`]) in a folder that is empty or not there:
/// the same records, ids and hashes, outcomes, agents and policies. The export
/// is checked as by [`verify_export`](crate::proof::verify_export) while it is read;
/// nothing comes to stand in the folder unless all of it holds. `progress`
/// gets the lines and bytes read.
///
/// # Errors
///
/// [`Error::ExportBroken`] at the first break; [`Error::InvalidInput`] when
/// the export is not one of everything; [`Error::Conflict`] when the folder
/// is not empty; [`Error::StorageUnavailable`].
pub fn import(
    folder: impl AsRef<Path>,
    export: &mut dyn BufRead,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<ExportReport, Error> {
    proof::import(folder.as_ref(), export, progress)
}
