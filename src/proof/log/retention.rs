//! A log that is frozen, and one whose first entries move to an archive.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use super::ProofLog;
use super::answer::read_error;
use crate::model::{ArchiveReport, Digest, Error, Sequence, Timestamp};
use crate::proof::apply::Reading;
use crate::proof::draft::ArchiveDraft;
use crate::proof::entry::{ArchiveEntry, FreezeEntry};
use crate::proof::erase::{self, Erasures};
use crate::proof::retention::{self, Retained, Timed};
use crate::store::{self, ArchiveError, Archived, Archiving, Counted, Files, Finding, Frame, OpenMode, Start, Visitor};

/// Gives the signed checkpoint of a log of so many entries and that root, where there is a key.
pub(crate) type Sign<'a> = &'a dyn Fn(u64, Digest) -> Result<Option<String>, Error>;

impl ProofLog {
    /// Takes nothing more in, for good; comes back when that is on disk.
    pub(crate) fn freeze(&self, now: Timestamp, cause: String) -> Result<(), Error> {
        self.check_open()?;
        let said = cause.clone();
        let (sequence, at) = self.shared.intake.freeze(now, cause.clone(), |at| retention::frozen(&said, at))?;
        self.shared.progress.wait_over();
        if !self.shared.progress.wait_durable(sequence) || self.shared.intake.has_failed() {
            return Err(self.refused("the writer stopped"));
        }
        let mut past = self.shared.past.write().unwrap_or_else(PoisonError::into_inner);
        past.freeze = Some(FreezeEntry { cause, timestamp: at });
        Ok(())
    }

    /// How many of the first segments have nothing but entries before that time.
    #[cfg(test)]
    pub(crate) fn archivable(&self, before: Timestamp) -> Result<usize, Error> {
        self.archivable_up_to(before, u64::MAX)
    }

    /// Likewise, and none that is at `wanted` or behind.
    pub(crate) fn archivable_up_to(&self, before: Timestamp, wanted: u64) -> Result<usize, Error> {
        self.flush()?;
        let mut count = 0;
        for last in Archiving::candidates(&self.shared.reader) {
            let bytes = self.shared.reader.read(last).map_err(|error| read_error(&error))?;
            let frame = bytes.as_deref().and_then(|bytes| Frame::decode(bytes).ok());
            let timed = frame.and_then(|frame| serde_json::from_slice::<Timed>(frame.body).ok());
            let Some(Timed { timestamp }) = timed else {
                return Err(Error::ChainBroken { message: format!("entry {last} cannot be read; verify the log") });
            };
            if timestamp >= before || last.get() >= wanted {
                break;
            }
            count += 1;
        }
        Ok(count)
    }

    /// Moves the first segments to a file. All states that stand in them must have been put in order again, but those
    /// that nobody needs: `may_leave` says so of their keys.
    pub(crate) fn archive(
        &self,
        now: Timestamp,
        count: usize,
        may_leave: &dyn Fn(&str) -> bool,
        to: &Arc<dyn Files>,
        name: &str,
        sign: Sign<'_>,
    ) -> Result<ArchiveReport, Error> {
        // What is believed until then is of all entries.
        self.behind.wait();
        let _turn = self.shared.archiving.lock().unwrap_or_else(PoisonError::into_inner);
        let _erasing = self.shared.erasing.lock().unwrap_or_else(PoisonError::into_inner);
        // Held so that the folder is not let go meanwhile.
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.is_none() {
            return Err(self.refused("the log is closed"));
        }
        if let Some(refusal) = self.refusal() {
            return Err(refusal);
        }
        self.flush()?;
        let shared = &self.shared;
        let files = &*shared.files;
        let mut counting = Counting::knowing(Arc::clone(&shared.erasures));
        let survey = Archiving::survey(files, &shared.reader, count, &mut counting).map_err(not_archived)?;
        if let Some(key) = counting.states.iter().find(|key| !may_leave(key)) {
            return Err(Error::Internal { message: format!("the state {key:?} would go with the archive") });
        }
        let note = sign(survey.entries, survey.root)?;
        let counted = counting.counted();
        let path = Path::new(name);
        let written = survey.write(files, shared.store.to_string(), &counted, note.as_deref(), (&**to, path));
        written.map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => Error::Conflict {
                message: format!("the file {name:?} is there already; an archive has a name of its own"),
            },
            _ => Error::storage(format!("cannot write the archive: {error}")),
        })?;
        // What came to stand in the file is what counts.
        let report = verify_archive(&**to, path)?;
        let start = survey.start_behind(counted.head_hash);
        if (report.entries, report.link, report.root, report.head_hash)
            != (start.entries, start.link, start.root, start.head_hash)
        {
            return Err(Error::ArchiveBroken { message: "what was written is not what the journal has".to_owned() });
        }
        let (file, from, sha256) = (name.to_owned(), survey.from(), report.sha256);
        let draft = ArchiveDraft { file, from, sha256, start };
        let entry = |at| ArchiveEntry::of(&draft, at);
        let (sequence, at) =
            shared.intake.archive(now, ArchiveDraft { file: draft.file.clone(), from, sha256, start })?;
        shared.past.write().unwrap_or_else(PoisonError::into_inner).archives.push(entry(at));
        self.complete(sequence)?;
        Ok(report)
    }

    /// Waits until the note of the archive is on disk and the log begins behind it; then takes away what went.
    fn complete(&self, sequence: Sequence) -> Result<(), Error> {
        let shared = &self.shared;
        shared.progress.wait_applied(sequence.get() + 1);
        if !shared.progress.has_applied(sequence.get() + 1) {
            return Err(self.refused("the writer stopped"));
        }
        {
            // Queries find what went until here, and no more from here on.
            let mut index = shared.index.write().unwrap_or_else(PoisonError::into_inner);
            shared.rebuild(&mut index);
        }
        shared.recent.clear();
        // It counted the records that went.
        *shared.verified.lock().unwrap_or_else(PoisonError::into_inner) = None;
        // The view of before lists what is gone; nothing is wrong with it.
        if let Some(aside) = shared.view.as_ref().map(|view| view.with_extension("damaged")) {
            let _ = fs::remove_dir_all(aside);
        }
        // Where that fails the log goes on: opening it again takes them away.
        store::remove_archived(&*shared.files, &shared.reader)
            .map_err(|error| Error::storage(format!("the archive stands, but its segments cannot be removed: {error}")))
    }

    /// The SHA-256 of the archive of these entries, as the log noted it; `None` where it does not tell any more.
    pub(crate) fn archived_sha256(&self, from: u64, entries: u64) -> Option<Digest> {
        let past = self.shared.past.read().unwrap_or_else(PoisonError::into_inner);
        let noted = past.archives.iter().find(|archive| (archive.from, archive.entries) == (from, entries));
        noted.map(|archive| archive.sha256)
    }

    /// Where the log begins.
    pub(crate) fn begins(&self) -> Start {
        self.shared.reader.start()
    }
}

/// Checks an archive by the file alone.
pub(crate) fn verify_archive(files: &dyn Files, name: &Path) -> Result<ArchiveReport, Error> {
    let file = files
        .open(name, OpenMode::Read)
        .map_err(|error| Error::storage(format!("cannot read the archive {}: {error}", name.display())))?;
    let mut counting = Counting::default();
    let Archived { manifest, root_before, note, sha256 } =
        store::verify_archive(&file, &mut counting, Counting::counted).map_err(|error| match error {
            ArchiveError::Io(error) => Error::storage(format!("cannot read the archive: {error}")),
            broken @ ArchiveError::Broken { .. } => Error::ArchiveBroken { message: broken.to_string() },
        })?;
    Ok(ArchiveReport {
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
        erased: counting.reading.erased.unwrap_or(0),
        sha256,
        checkpoint: note,
    })
}

/// Checks entries, and counts what an archive says of itself.
struct Counting {
    reading: Reading<'static>,
    states: BTreeSet<String>,
    until: Timestamp,
}

impl Default for Counting {
    fn default() -> Self {
        Self::of(Reading::learning())
    }
}

impl Counting {
    /// Of the log's own entries, whose evidence is gone only where that was erased.
    fn knowing(erasures: Arc<Erasures>) -> Self {
        Self::of(Reading::checking(erasures))
    }

    fn of(mut reading: Reading<'static>) -> Self {
        reading.erased = Some(0);
        Self { reading, states: BTreeSet::new(), until: Timestamp::from_millis(i64::MIN) }
    }

    fn counted(&self) -> Counted {
        let chain = self.reading.verified();
        Counted { records: chain.records, head_hash: chain.head_hash, until: self.until }
    }
}

impl Visitor for Counting {
    fn begins(&mut self, start: &Start) {
        self.reading.begins(start);
    }

    fn visit(&mut self, frame: &Frame<'_>, digest: &Digest) -> Option<Finding> {
        let finding = self.reading.visit(frame, digest);
        if let Ok(Timed { timestamp }) = serde_json::from_slice::<Timed>(frame.body) {
            self.until = self.until.max(timestamp);
        }
        // What the log says of its own past covers what leaves with it.
        let is_to_stay = |key: &String| !Retained::is_key(key) && !erase::is_key(key);
        self.states.extend(std::mem::take(&mut self.reading.states).into_keys().filter(is_to_stay));
        finding
    }

    fn broken(&mut self) {
        self.reading.broken();
    }
}

fn not_archived(error: ArchiveError) -> Error {
    match error {
        ArchiveError::Io(error) => read_error(&error),
        broken @ ArchiveError::Broken { .. } => Error::ChainBroken { message: broken.to_string() },
    }
}

#[cfg(test)]
impl ProofLog {
    /// How many entries there are, and the root over them.
    pub(in crate::proof) fn shared_root(&self) -> (u64, Digest) {
        self.shared.reader.tree_head()
    }

    /// The root of the first entries.
    pub(in crate::proof) fn root_of(&self, size: u64) -> Digest {
        self.shared.reader.root_at(size).unwrap()
    }
}
