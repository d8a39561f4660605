//! Freezing a log, and archiving its first entries.

use rulekeep_types::parts::ArchiveReportParts;
use std::fs;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use crate::ProofLog;
use crate::index::reading::Reading;
use crate::journal::entry::{ArchiveEntry, FreezeEntry, is_kept, time_of};
use crate::journal::{read_error, retention};
use crate::store::{self, ArchiveError, Archived, Archiving, Counted, Files, Kind, OpenMode, Start};
use rulekeep_types::{ArchiveReport, Digest, Error, Sequence, Timestamp};

/// Signs a checkpoint of a log with this number of entries and this root; returns `None` without a key.
pub(crate) type Sign<'a> = &'a dyn Fn(u64, Digest) -> Result<Option<String>, Error>;

impl ProofLog {
    /// Freezes the log for good. Returns once that is on disk.
    pub fn freeze(&self, now: Timestamp, cause: String) -> Result<(), Error> {
        self.parts.index.check_open()?;
        let entry = |timestamp| FreezeEntry { cause: cause.clone(), timestamp };
        let (sequence, at) = self.parts.queue.freeze(now, entry, |at| retention::frozen(&cause, at))?;
        self.parts.journal.progress.wait_over();
        if !self.parts.journal.progress.wait_durable(sequence) || self.parts.queue.has_failed() {
            return Err(self.parts.queue.refused("the writer stopped"));
        }
        self.parts.journal.add_past(|past| past.freeze = Some(FreezeEntry { cause, timestamp: at }));
        Ok(())
    }

    /// Number of segments, from the first on, that hold only entries before that time, and neither the entry `wanted`
    /// nor a later one.
    pub fn archivable_up_to(&self, before: Timestamp, wanted: u64) -> Result<usize, Error> {
        self.flush()?;
        let mut count = 0;
        for last in Archiving::candidates(&self.parts.journal.reader) {
            let Some(timestamp) = self.parts.journal.look(last, time_of)? else {
                return Err(Error::ChainBroken { message: format!("entry {last} cannot be read; verify the log") });
            };
            if timestamp >= before || last.get() >= wanted {
                break;
            }
            count += 1;
        }
        Ok(count)
    }

    /// Moves the first segments to an archive. All states in them must have been written again to later entries,
    /// except those whose keys `may_leave` allows to go.
    pub fn archive(
        &self,
        now: Timestamp,
        count: usize,
        may_leave: &dyn Fn(&str) -> bool,
        to: &Arc<dyn Files>,
        name: &str,
        sign: Sign<'_>,
    ) -> Result<ArchiveReport, Error> {
        // Unverified data covers all entries, so the verification must be done first.
        self.behind.wait();
        let _turn = self.parts.maintenance.archiving();
        let _erasing = self.parts.maintenance.erasing();
        // Held so that the folder is not released meanwhile.
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.is_none() {
            return Err(self.parts.queue.refused("the log is closed"));
        }
        if let Some(refusal) = self.refusal() {
            return Err(refusal);
        }
        self.flush()?;
        let parts = &self.parts;
        let files = &*parts.journal.files;
        let mut reading = counting(Reading::checking(Arc::clone(&parts.journal.erasures)));
        let survey = Archiving::survey(files, &parts.journal.reader, count, &mut reading).map_err(not_archived)?;
        // The entries about the log's own past are covered by the archive entry.
        if let Some(key) = reading.states.keys().find(|key| !is_kept(key) && !may_leave(key)) {
            return Err(Error::internal(format!("the state {key:?} would go with the archive")));
        }
        let note = sign(survey.entries, survey.root)?;
        let counted = counted(&reading);
        let path = Path::new(name);
        let written = survey.write(files, parts.journal.store.to_string(), &counted, note.as_deref(), (&**to, path));
        written.map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => Error::Conflict {
                message: format!("the file {name:?} exists already; choose another name for the archive"),
            },
            _ => Error::storage("cannot write the archive").caused_by(error),
        })?;
        // Verifies what is in the file, not what was meant to be written.
        let report = verify_archive(&**to, path)?;
        let start = survey.start_behind(counted.head_hash);
        if (report.entries, report.link, report.root, report.head_hash)
            != (start.entries, start.link, start.root, start.head_hash)
        {
            return Err(Error::ArchiveBroken { message: "the written archive differs from the journal".to_owned() });
        }
        let Start { entries, link, root, head_hash, .. } = start;
        let (file, from, sha256) = (name.to_owned(), survey.from(), report.sha256);
        let entry =
            |timestamp| ArchiveEntry { file: file.clone(), from, entries, link, root, head_hash, sha256, timestamp };
        let (sequence, at) = parts.queue.entry(now, Kind::Archive, Some(start), entry)?;
        parts.queue.hurry();
        parts.journal.add_past(|past| past.archives.push(entry(at)));
        self.complete(sequence)?;
        Ok(report)
    }

    /// Waits until the archive entry is on disk and the log begins after it; then deletes the archived segments.
    fn complete(&self, sequence: Sequence) -> Result<(), Error> {
        let parts = &self.parts;
        if !parts.journal.progress.wait_applied(sequence.get() + 1, None) {
            return Err(self.parts.queue.refused("the writer stopped"));
        }
        {
            // Queries find archived records up to here, and not after.
            let mut index = parts.index.write();
            parts.index.rebuild(&mut index, &parts.journal);
        }
        parts.index.recent.clear();
        // It counted archived records.
        *parts.maintenance.verified() = None;
        // The old index is sound, but lists records that are gone.
        if let Some(aside) = parts.index.view.as_ref().map(|view| view.with_extension("damaged")) {
            let _ = fs::remove_dir_all(aside);
        }
        // If this fails the log keeps working; the next open deletes the segments.
        store::remove_archived(&*parts.journal.files, &parts.journal.reader).map_err(|error| {
            Error::storage("the archive is complete, but its segments cannot be removed").caused_by(error)
        })
    }

    /// Returns the SHA-256 of the archive of these entries as recorded in the log; `None` if it is not recorded any
    /// more.
    pub fn archived_sha256(&self, from: u64, entries: u64) -> Option<Digest> {
        let past = self.parts.journal.past();
        let noted = past.archives.iter().find(|archive| (archive.from, archive.entries) == (from, entries));
        noted.map(|archive| archive.sha256)
    }

    /// The beginning of the log.
    pub fn begins(&self) -> Start {
        self.parts.journal.reader.start()
    }
}

/// Verifies an archive from the file alone.
pub fn verify_archive(files: &dyn Files, name: &Path) -> Result<ArchiveReport, Error> {
    let file = files
        .open(name, OpenMode::Read)
        .map_err(|error| Error::storage(format!("cannot read the archive {}", name.display())).caused_by(error))?;
    let mut reading = counting(Reading::learning());
    let Archived { manifest, root_before, note, sha256 } = store::verify_archive(&file, &mut reading, counted)
        .map_err(|error| match error {
            ArchiveError::Io(error) => Error::storage("cannot read the archive").caused_by(error),
            broken @ ArchiveError::Broken { .. } => Error::ArchiveBroken { message: broken.to_string() },
        })?;
    Ok(ArchiveReport::from(ArchiveReportParts {
        file: name.to_string_lossy().into_owned(),
        store: manifest.store,
        from: manifest.from,
        entries: manifest.entries,
        records: manifest.records,
        until: manifest.until,
        previous_link: manifest.previous_link,
        link: manifest.link,
        previous_hash: manifest.previous_hash,
        head_hash: manifest.head_hash,
        previous_root: root_before,
        root: manifest.root,
        erased: reading.erased.unwrap_or(0),
        sha256,
        checkpoint: note,
    }))
}

/// Makes a reading count erased evidence.
fn counting(mut reading: Reading<'static>) -> Reading<'static> {
    reading.erased = Some(0);
    reading
}

/// The totals to be stored in an archive of these entries.
fn counted(reading: &Reading<'_>) -> Counted {
    let chain = reading.verified();
    Counted { records: chain.records, head_hash: chain.head_hash, until: Timestamp::from_millis(chain.latest) }
}

fn not_archived(error: ArchiveError) -> Error {
    match error {
        ArchiveError::Io(error) => read_error(error),
        broken @ ArchiveError::Broken { .. } => Error::ChainBroken { message: broken.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl ProofLog {
        /// Number of segments, from the first on, that hold only entries before that time.
        pub(crate) fn archivable(&self, before: Timestamp) -> Result<usize, Error> {
            self.archivable_up_to(before, u64::MAX)
        }

        /// Returns the number of entries and the root over them.
        pub(crate) fn shared_root(&self) -> (u64, Digest) {
            self.parts.journal.reader.tree_head()
        }

        /// Returns the root over the first `size` entries.
        pub(crate) fn root_of(&self, size: u64) -> Digest {
            self.parts.journal.reader.root_at(size).unwrap()
        }
    }
}
