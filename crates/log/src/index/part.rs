//! The index of a running log: loading it, persisting it, and rebuilding it from the journal.

use std::fs::{self, DirBuilder};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::persist::Changes;
use super::reading::Reading;
use super::recent::{NotRecent, Recent};
use super::{Held, Holding, Index, Mark};
use crate::journal::JournalPart;
use crate::queue::Refusal;
use crate::store::{self, Blocks, FolderLock, Position, RealFiles, StoreId, VIEW_FOLDER, ViewError};
use rulekeep_types::{AgentId, Error, Outcome, Sequence};

/// The index over the journal. It owns the index's folder. Only the writer changes the index, and a rebuild replaces
/// it.
pub(crate) struct IndexPart {
    // Held to read or change it; taken after the queue's lock is released.
    index: RwLock<Index>,
    /// The properties of recent decisions, for outcomes.
    pub(crate) recent: Recent,
    /// The folder of the persisted index; `None` in memory.
    pub(crate) view: Option<PathBuf>,
    cache_bytes: u64,
    /// The index cannot be persisted; it is in memory only.
    view_lost: AtomicBool,
    /// Part of the journal could not be read during a rebuild, so the index lacks entries.
    is_incomplete: AtomicBool,
    /// The log is closed, and the index released.
    is_closed: AtomicBool,
    /// The first difference from the journal that was found since the log was opened.
    mended: OnceLock<String>,
}

impl IndexPart {
    pub(crate) fn new(index: Index, view: Option<PathBuf>, cache_bytes: u64) -> Self {
        let [view_lost, is_incomplete, is_closed] = [const { AtomicBool::new(false) }; 3];
        let (index, recent) = (RwLock::new(index), Recent::new(super::recent::MOST));
        let mended = OnceLock::new();
        Self { index, recent, view, cache_bytes, view_lost, is_incomplete, is_closed, mended }
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Index> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The position after the last applied entry.
    pub(crate) fn applied(&self) -> Position {
        self.read().totals().applied
    }

    /// Persists the index; if that fails, rebuilds it. Only the writer calls this, and it changes nothing meanwhile,
    /// so queries can go on while sled writes.
    pub(crate) fn persist(&self, journal: &JournalPart) {
        let changes = {
            let index = self.read();
            // The tree is never behind the applied entries. It is read while the index is locked, so that both match.
            let nodes = journal.reader.nodes(index.first_node(), index.totals().applied.entries);
            index.changes(journal.store, &nodes)
        };
        self.write_changes(changes, journal);
    }

    /// Persists what takes too much memory, like [`Self::persist`].
    pub(crate) fn relieve(&self, journal: &JournalPart) {
        let full = self.read().full_changes();
        self.write_changes(full, journal);
        if self.read().is_heavy() {
            self.persist(journal);
        }
    }

    fn write_changes(&self, changes: Option<Changes>, journal: &JournalPart) {
        let Some(changes) = changes else { return };
        let written = changes.write();
        let mut index = self.write();
        match written {
            Ok(written) => index.forget_changes(written),
            Err(_) => self.rebuild(&mut index, journal),
        }
    }

    /// Rebuilds the index from the journal, persisted if a new folder can be opened, otherwise in memory.
    pub(crate) fn rebuild(&self, index: &mut Index, journal: &JournalPart) {
        // sled must release its folder first.
        *index = Index::new(None);
        let aside = self.view.as_deref().map_or(Ok(()), store::set_view_aside);
        let blocks = aside.ok().and_then(|()| Blocks::open(self.view.as_deref(), self.cache_bytes).ok());
        self.view_lost.store(blocks.is_none(), Ordering::Relaxed);
        *index = Index::new(blocks);
        if fill(index, journal).and_then(|()| index.persist(journal.store)).is_err() {
            self.view_lost.store(true, Ordering::Relaxed);
            self.rebuild_in_memory(index, journal);
        } else {
            self.is_incomplete.store(false, Ordering::Relaxed);
        }
    }

    /// Rebuilds an index that differs from the journal, and remembers the difference.
    pub(crate) fn mend(&self, journal: &JournalPart, found: &ViewError) {
        let _ = self.mended.set(found.to_string());
        self.rebuild(&mut self.write(), journal);
    }

    pub(crate) fn mended(&self) -> Option<&String> {
        self.mended.get()
    }

    /// Rebuilds the index from the journal, in memory only.
    pub(crate) fn rebuild_in_memory(&self, index: &mut Index, journal: &JournalPart) {
        *index = Index::new(None);
        // In memory only reading can fail.
        self.is_incomplete.store(fill(index, journal).is_err(), Ordering::Relaxed);
    }

    /// Rebuilds an incomplete index, if the journal can be read now.
    pub(crate) fn complete(&self, journal: &JournalPart) -> Result<(), Error> {
        if !self.is_incomplete() {
            return Ok(());
        }
        let mut index = self.write();
        if journal.breakage.get().is_some() {
            self.rebuild_in_memory(&mut index, journal);
        } else {
            self.rebuild(&mut index, journal);
        }
        if self.is_incomplete() { Err(Error::storage(UNREADABLE)) } else { Ok(()) }
    }

    /// Queries the index; if that fails, rebuilds it and queries it again.
    pub(crate) fn ask<T>(
        &self,
        journal: &JournalPart,
        ask: impl Fn(&Index) -> Result<T, ViewError>,
    ) -> Result<T, Error> {
        let first = ask(&self.read());
        if let Ok(answer) = first {
            return Ok(answer);
        }
        let mut index = self.write();
        self.rebuild(&mut index, journal);
        if self.is_incomplete() {
            return Err(Error::storage("the index failed and the journal cannot be read"));
        }
        ask(&index).map_err(|error| Error::storage("the index cannot be rebuilt").caused_by(error))
    }

    /// Returns the outcome of an entity's record.
    pub(crate) fn outcome_of(
        &self,
        journal: &JournalPart,
        entity: &AgentId,
        sequence: Sequence,
    ) -> Result<Option<Outcome>, Error> {
        match self.recent.outcome(sequence) {
            Ok(outcome) => Ok(outcome),
            Err(NotRecent) => self.ask(journal, |index| index.outcome_of(entity, sequence)),
        }
    }

    pub(crate) fn is_incomplete(&self) -> bool {
        self.is_incomplete.load(Ordering::Relaxed)
    }

    pub(crate) fn is_view_lost(&self) -> bool {
        self.view_lost.load(Ordering::Relaxed)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    pub(crate) fn check_open(&self) -> Result<(), Error> {
        if self.is_closed() { Err(Refusal::Closed.error()) } else { Ok(()) }
    }

    /// Releases the index and its folder.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        *self.write() = Index::new(None);
    }
}

fn fill(index: &mut Index, journal: &JournalPart) -> Result<(), ViewError> {
    let mut reading = Reading::into_index(index).persisting(journal.store).knowing(Arc::clone(&journal.erasures));
    let start = journal.reader.start();
    let read = journal.reader.verify(&mut reading, Position { entries: start.entries, link: start.link });
    match (reading.view_error, read) {
        (Some(error), _) => Err(error),
        (None, Err(_)) => Err(ViewError::Disagrees(UNREADABLE)),
        (None, Ok(_)) => Ok(()),
    }
}

/// Loads the index; returns an empty one with the error if that fails.
pub(crate) fn load_view(folder: Option<&Path>, cache_bytes: u64) -> (Index, Option<Mark>, Option<ViewError>) {
    match Blocks::open(folder, cache_bytes).and_then(Index::load) {
        Ok((index, mark)) => (index, mark, None),
        Err(error) => (Index::new(None), None, Some(error)),
    }
}

/// Reads the index in a store's folder from a copy, because sled may change what it opens. Returns `None` if another
/// process has the store open, or the index cannot be read, belongs to another store or knows more entries than `until`.
pub(crate) fn held_in(folder: &Path, store: StoreId, until: Position) -> Option<Result<Held, ViewError>> {
    let number = super::NEXT_IDENTITY.fetch_add(1, Ordering::Relaxed);
    let copy = std::env::temp_dir().join(format!("rulekeep-index-{}-{number}", std::process::id()));
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    // Fails if there is something of that name, which is not ours.
    builder.create(&copy).ok()?;
    let held = hold_copy(folder, &copy, store, until);
    // What cannot be deleted is the system's to clean up.
    let _ = fs::remove_dir_all(&copy);
    held
}

fn hold_copy(folder: &Path, copy: &Path, store: StoreId, until: Position) -> Option<Result<Held, ViewError>> {
    let lock = FolderLock::peek(&RealFiles::open(folder).ok()?)?;
    copy_files(&folder.join(VIEW_FOLDER), copy).ok()?;
    drop(lock);
    let (index, mark, _) = load_view(Some(copy), LEAST_CACHE);
    mark.filter(|mark| mark.store == store && mark.totals.applied.entries <= until.entries)?;
    Some(Holding::all(&index))
}

/// Copies the files in a folder, and those in its folders.
fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let (path, to) = entry.map(|entry| (entry.path(), to.join(entry.file_name())))?;
        if path.is_dir() {
            fs::create_dir(&to)?;
            copy_files(&path, &to)?;
        } else {
            fs::copy(&path, &to)?;
        }
    }
    Ok(())
}

/// Cache of an index that is read once, in bytes.
const LEAST_CACHE: u64 = 1 << 20;
const UNREADABLE: &str = "the journal cannot be read";
