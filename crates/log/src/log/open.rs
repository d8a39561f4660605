//! Opening a log: reading and verifying the journal, loading the index or rebuilding it, and starting the writer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::{Open, ProofLog};
use crate::commit;
use crate::index::reading::Reading;
use crate::index::{Held, Holding, Index, IndexPart, Mark, Totals, load_view};
use crate::journal::JournalPart;
use crate::journal::entry::{ERASURES, RecoveryEntry, StoreEntry, is_kept};
use crate::journal::erase::{self, Covered, Erasure, Erasures};
use crate::journal::overdue::Lateness;
use crate::journal::retention::{self, Retained};
use crate::journal::used::{UsedLimit, UsedLimits};
use crate::journal::writer::Writer;
use crate::maintenance::Maintenance;
use crate::maintenance::verify::{Behind, Believed};
use crate::parts::Parts;
use crate::queue::{Durability, Queue, Refusal, Room};
use crate::store::{
    self, Blocks, Files, FolderLock, FrameDraft, Journal, JournalOptions, Kind, Known, LockError, MemoryFiles,
    OverlayFiles, Position, Reader, RealFiles, StoreId, ViewError,
};
use rulekeep_types::{Breakage, ChainPosition, OpenVerification, Recovered, Sequence, Timestamp};

/// The place where a log is stored.
#[derive(Debug, Clone)]
pub enum Place {
    /// A folder, created if it does not exist.
    Folder(PathBuf),
    /// A folder that is not changed, even if another process writes to it meanwhile.
    ReadOnly(PathBuf),
    /// Memory only; the log is gone when it is dropped.
    Memory,
}

/// Options of opening a log.
#[derive(Debug, Clone)]
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct LogOptions {
    pub durability: Durability,
    /// Size of the index's cache in bytes. Default: 16 MiB.
    pub cache_bytes: u64,
    pub room: Room,
    /// The times for which files beside the entries may be overdue.
    pub lateness: Lateness,
    pub journal: JournalOptions,
    /// The time at which the whole journal is verified.
    pub verifying: OpenVerification,
    /// The log accepts no entries.
    pub is_read_only: bool,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Sync,
            cache_bytes: 16 << 20,
            room: Room::DEFAULT,
            lateness: Lateness::DEFAULT,
            journal: JournalOptions::default(),
            verifying: OpenVerification::default(),
            is_read_only: false,
        }
    }
}

/// The content of a log when it was opened.
pub struct Startup {
    /// All states by their keys, as JSON, without the entries about the log's own past.
    pub states: Vec<(String, Vec<u8>)>,
    /// The use of limits that may still count, in order.
    pub used: Vec<UsedLimit>,
    /// The log was created by this open.
    pub created: bool,
    /// A description of what was set aside, if a write had been cut short.
    pub recovered: Option<Recovered>,
    /// Number of records whose evidence was found although an erasure covers it. It was erased again.
    pub erased_evidence: u64,
}

/// The reason a log could not be opened.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // engines exchange it; the names say it
pub enum OpenLogError {
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Store(#[from] store::OpenError),
    #[error("cannot {0}")]
    Io(&'static str, #[source] std::io::Error),
    #[error("{0} is a file, not a folder")]
    NotAFolder(PathBuf),
}

impl ProofLog {
    /// Opens the log, verifying all of it unless the options say otherwise, or creates a new one. A broken log opens
    /// too: it answers queries and refuses new entries.
    pub fn open(
        place: &Place,
        options: &LogOptions,
        now: Timestamp,
        fresh: StoreId,
    ) -> Result<(Self, Startup), OpenLogError> {
        let (files, lock, view): (Arc<dyn Files>, _, _) = match place {
            Place::Folder(folder) => {
                if folder.exists() && !folder.is_dir() {
                    return Err(OpenLogError::NotAFolder(folder.clone()));
                }
                make_folder(folder).map_err(|error| OpenLogError::Io("make the folder", error))?;
                let files = RealFiles::open(folder).map_err(|error| OpenLogError::Io("open the folder", error))?;
                store::refuse_foreign(&files)?;
                let lock = FolderLock::acquire(&files)?;
                let view = files.path_to(store::VIEW_FOLDER);
                (Arc::new(files), Some(lock), Some(view))
            }
            Place::ReadOnly(folder) => {
                let options = LogOptions { is_read_only: true, ..options.clone() };
                return Self::open_to_read(folder, &options, now, fresh);
            }
            Place::Memory => (Arc::new(MemoryFiles::new()), None, None),
        };
        Self::open_files(files, lock, view, options, now, fresh)
    }

    /// Opens a log without changing anything; the index is built in memory.
    fn open_to_read(
        folder: &Path,
        options: &LogOptions,
        now: Timestamp,
        fresh: StoreId,
    ) -> Result<(Self, Startup), OpenLogError> {
        let mut tries = READ_TRIES;
        loop {
            let error = |error| OpenLogError::Io("read the folder", error);
            let missing = || error(std::io::Error::new(std::io::ErrorKind::NotFound, "there is no store"));
            let files = match OverlayFiles::open(folder) {
                Err(found) if found.kind() == std::io::ErrorKind::NotFound => return Err(missing()),
                files => Arc::new(files.map_err(error)?),
            };
            if !store::has_traces(&*files)? {
                return Err(missing());
            }
            let mut opened = Self::open_files(files, None, None, options, now, fresh);
            tries -= 1;
            // A concurrent writer may have sealed a segment, or appended after the point that was read last.
            let holds = opened.as_ref().is_ok_and(|(log, _)| log.state().breakage.is_none());
            if holds || tries == 0 {
                if let Ok((log, _)) = &mut opened {
                    log.beside = Some(folder.to_owned());
                }
                return opened;
            }
        }
    }

    #[doc(hidden)]
    pub fn open_files(
        files: Arc<dyn Files>,
        lock: Option<FolderLock>,
        view: Option<PathBuf>,
        options: &LogOptions,
        now: Timestamp,
        fresh: StoreId,
    ) -> Result<(Self, Startup), OpenLogError> {
        let ReadLog { index, opened, states, used, is_believed, view_error, differs, unexplained, seems_erased } =
            read(&files, view.as_deref(), options, fresh)?;
        let (past, erasures) =
            (Retained::of_states(&states), erase::of_states(states.iter().map(|(key, value)| (key, value))));
        let (journal, breakage) = match (opened.journal, unexplained) {
            (Ok(journal), None) => (Some(journal), None),
            (Ok(_), Some(breakage)) | (Err(breakage), _) => (None, Some(breakage)),
        };
        let freeze = past.freeze.clone();
        let breakage = breakage.or_else(|| retention::lost_freeze(opened.frozen, freeze.as_ref(), opened.position));
        let mut journal = journal.filter(|_| breakage.is_none());
        let mut erased_evidence = 0;
        if journal.is_some() {
            erased_evidence = carry_out(&erasures, &opened.reader, &*files, seems_erased)
                .map_err(|error| OpenLogError::Io("erase evidence", error))?;
        }

        let (on_disk, entries) = ((opened.reader, opened.store, files), opened.position.entries);
        let parts = Parts {
            queue: Queue::new(options.room, options.durability),
            journal: JournalPart::new(
                on_disk,
                entries,
                past,
                Erasures::of(&erasures),
                breakage.clone(),
                options.lateness,
            ),
            index: IndexPart::new(index, view, options.cache_bytes),
            maintenance: Maintenance::default(),
            opened_by: std::process::id(),
        };
        parts.maintenance.note_erased_evidence(erased_evidence);
        parts.maintenance.set_believes(is_believed);
        match (&breakage, view_error) {
            // The persisted index is left as it is: it may help to find out what happened.
            (Some(_), _) => parts.index.rebuild_in_memory(&mut parts.index.write(), &parts.journal),
            (None, Some(error)) if differs => parts.index.mend(&parts.journal, &error),
            (None, Some(_)) => parts.index.rebuild(&mut parts.index.write(), &parts.journal),
            (None, None) => {}
        }
        // Later entries depend on the last hash and time in the index.
        if parts.index.is_incomplete() {
            let error = std::io::Error::other("reading it again for the index failed");
            return Err(OpenLogError::Io("read the journal", error));
        }
        let believed = is_believed.then(|| {
            let (_, root) = parts.journal.reader.tree_head();
            Believed::new(opened.position, &states, used.clone(), root)
        });
        if breakage.is_none() && believed.is_none() {
            // Everything that was read is verified.
            let Totals { applied, records, head_hash, .. } = *parts.index.read().totals();
            let position = ChainPosition::new(applied.entries, applied.link, records, head_hash);
            parts.maintenance.note_verified(position);
            // If it cannot be stored, the next open verifies everything again.
            let _ = parts.index.read().note_broken(false);
        }
        let parts = Arc::new(parts);
        let writer = if let (Some(journal), Some(freeze)) = (&mut journal, &freeze) {
            let message = retention::frozen(&freeze.cause, freeze.timestamp);
            parts.queue.refuse(Refusal::Frozen(message));
            // From now on `HEAD` records the freeze, in case a crash came before.
            if !opened.frozen {
                journal.freeze();
                journal.close().map_err(|error| OpenLogError::Io("write HEAD", error))?;
            }
            None
        } else if options.is_read_only && journal.is_some() {
            parts.queue.refuse(Refusal::Frozen("the store was opened read-only: no decision can be made".to_owned()));
            None
        } else if let Some(journal) = journal {
            Some(Self::start(&parts, journal, opened.created, opened.recovered.as_ref(), now)?)
        } else {
            parts.queue.refuse(Refusal::Broken(breakage.as_ref().map_or_else(String::new, ToString::to_string)));
            None
        };
        if writer.is_none() {
            let era = parts.index.read().era_start();
            parts.queue.start_at(opened.position.entries, now, era);
            parts.journal.progress.over();
        }
        let behind = match believed {
            Some(believed) => Behind::start(&parts, believed),
            None => Ok(Behind::nothing()),
        };
        let open = Mutex::new(Some(Open { writer, _lock: lock }));
        let mut log = Self { parts, open, behind: Behind::nothing(), beside: None };
        // If it cannot be started, dropping the log closes it.
        log.behind = behind.map_err(|error| OpenLogError::Io("start verifying", error))?;
        let mut states = states;
        states.retain(|(key, _)| !is_kept(key));
        Ok((log, Startup { states, used, created: opened.created, recovered: opened.recovered, erased_evidence }))
    }

    /// Writes the first entries of a new or recovered journal, then starts the writer.
    fn start(
        parts: &Arc<Parts>,
        mut journal: Journal,
        created: bool,
        recovered: Option<&Recovered>,
        now: Timestamp,
    ) -> Result<JoinHandle<()>, OpenLogError> {
        let error = |error| OpenLogError::Io("write to the store", error);
        let last = Timestamp::from_millis(parts.index.read().totals().last_time);
        let at = now.max(last);
        let mut first_entries = Vec::new();
        if journal.position().entries == 0 {
            let store = StoreEntry::new(parts.journal.store, at);
            first_entries.push((Kind::Store, json(&store).map_err(error)?));
        }
        if let Some(Recovered { copy, bytes, segment, offset, .. }) = recovered.cloned() {
            let entry = RecoveryEntry { copy, bytes, segment, offset, timestamp: at };
            first_entries.push((Kind::Recovery, json(&entry).map_err(error)?));
        }
        for (kind, body) in &first_entries {
            let staged = journal.stage(&FrameDraft { kind: *kind, body, evidence: &[] }).map_err(error)?;
            parts.index.write().advance(staged.position);
        }
        journal.write().map_err(error)?;
        let entries = journal.position().entries;
        // `HEAD` must exist before anything is acknowledged: the process that wrote the first entry may have stopped
        // before writing it. An existing `HEAD` may stay for a while.
        match journal.note_head() {
            Err(failed) if created || !first_entries.is_empty() || entries == 1 => return Err(error(failed)),
            _ => {}
        }
        let era = parts.index.read().era_start();
        parts.queue.start_at(entries, if first_entries.is_empty() { last } else { at }, era);
        parts.journal.progress.durable(entries);
        parts.journal.progress.applied(entries);

        let head_hash = parts.index.read().totals().head_hash;
        let writer = Writer::new(journal, head_hash);
        *parts.journal.writer.lock().unwrap_or_else(PoisonError::into_inner) = Some(writer);
        let parts = Arc::clone(parts);
        let run = move || commit::run(&parts);
        thread::Builder::new().name("rulekeep-writer".to_owned()).spawn(run).map_err(error)
    }
}

/// The result of reading a log.
struct ReadLog {
    index: Index,
    opened: store::Opened,
    states: Vec<(String, Vec<u8>)>,
    used: Vec<UsedLimit>,
    /// Only the end of the journal was read.
    is_believed: bool,
    /// The reason the index cannot be used.
    view_error: Option<ViewError>,
    /// The index can be read, but differs from the journal.
    differs: bool,
    /// A record whose evidence is missing without an erasure.
    unexplained: Option<Breakage>,
    /// Evidence covered by an erasure exists, or may exist.
    seems_erased: bool,
}

/// Loads the index and reads the journal: all of it, or only its end if that is allowed and the index matches.
fn read(
    files: &Arc<dyn Files>,
    view: Option<&Path>,
    options: &LogOptions,
    fresh: StoreId,
) -> Result<ReadLog, OpenLogError> {
    // A folder without a store must not get an index before it is known to become a store.
    let (mut index, mark, load_error) = match files.list(Path::new("")) {
        Ok(names) if is_store(&names) => load_view(view, options.cache_bytes),
        _ => (Index::new(None), None, Some(ViewError::Disagrees("there is none yet"))),
    };
    // If the journal exists and its index does not, the index is built in the same reading.
    let (mut load_error, mut persisting) = (load_error, None);
    if load_error.is_some()
        && let Some((fresh, store)) = fresh_view(&**files, view, options.cache_bytes)
    {
        (index, load_error, persisting) = (fresh, None, Some(store));
    }
    let view_entries = mark.map(|mark| (mark.store, mark.totals.applied.entries));
    let opening = store::Opening {
        view: view_entries,
        known: None,
        fresh,
        options: JournalOptions { nonce: fresh.0, ..options.journal },
    };
    let behind = match mark.filter(|_| options.verifying == OpenVerification::Behind) {
        Some(mark) => open_known(files, &mut index, &mark, &opening)?,
        None => None,
    };
    let is_believed = behind.is_some();
    let (opened, states, used, held, view_error, unexplained, seems_erased) = if let Some(behind) = behind {
        let (opened, states, used) = behind;
        (opened, states, used, None, None, None, false)
    } else {
        if mark.is_some() && options.verifying == OpenVerification::Behind {
            // The index may have been filled with data that does not hold.
            drop(index);
            index = load_view(view, options.cache_bytes).0;
        }
        // Read before the journal, whose statements are then summed in the same way.
        let (held, hold_error) = match mark.map(|_| Holding::all(&index)).transpose() {
            Ok(held) => (held, None),
            Err(error) => (None, Some(error)),
        };
        // A record precedes the erasure that covers it, so the erasures are taken from the index beforehand.
        let told = index.persisted_states(ERASURES).map(|states| erase::of_states(&states)).unwrap_or_default();
        let mut reading = Reading::into_index(&mut index).expecting(Covered::of(&told));
        reading = reading.summing(held.as_ref().map(Held::rule));
        if let Some(store) = persisting {
            reading = reading.persisting(store);
        }
        let opened = store::open(Arc::clone(files), &mut reading, &opening)?;
        let unexplained = match &opened.journal {
            Ok(_) => reading
                .unexplained(&opened.reader, opened.position)
                .map_err(|error| OpenLogError::Io("read the journal", error))?,
            Err(_) => None,
        };
        let differs = held.and_then(|held| held.differs_from(&reading.held)).map(ViewError::Differs);
        let (chain, totals) = (reading.verified(), reading.totals().copied());
        let adds_up =
            totals.is_none_or(|totals| (chain.records, chain.head_hash) == (totals.records, totals.head_hash));
        let differs = differs.or((!adds_up).then_some(ViewError::Disagrees("its totals are not the journal's")));
        let Reading { states, used, view_error, erasures, finds_erased, .. } = reading;
        let seems_erased = finds_erased || erasures != told;
        (opened, states, used, hold_error.or(differs), view_error, unexplained, seems_erased)
    };
    let states: Vec<(String, Vec<u8>)> = states.into_iter().collect();
    let used = used.into_list();
    let view_error = load_error.or(view_error);
    let is_unread = view_error.is_some();
    let view_error = view_error.or(held).or_else(|| {
        let mark = mark?;
        let applied = mark.totals.applied;
        let same = mark.store == opened.store && (applied.entries == 0 || opened.view_link == Some(applied.link));
        (!same).then_some(ViewError::Disagrees("it was made from another journal"))
    });
    let view_error = view_error.or_else(|| {
        let holds = is_believed || keeps(&index, &states, &used, &opened.reader);
        (!holds).then_some(ViewError::Disagrees("what it goes on with is not the journal's"))
    });
    let differs = !is_unread && view_error.is_some();
    Ok(ReadLog { index, opened, states, used, is_believed, view_error, differs, unexplained, seems_erased })
}

/// Opens the journal on the basis of the index. Returns `None` if the index must not be trusted and everything has to
/// be read.
#[allow(clippy::type_complexity)] // said once
fn open_known(
    files: &Arc<dyn Files>,
    index: &mut Index,
    mark: &Mark,
    opening: &store::Opening<'_>,
) -> Result<Option<(store::Opened, BTreeMap<String, Vec<u8>>, UsedLimits)>, OpenLogError> {
    let (Ok(Some(mut kept)), Ok(false)) = (index.kept(), index.is_noted_broken()) else { return Ok(None) };
    // Evidence is not erased on the word of the index alone.
    let error = |error| OpenLogError::Io("read ERASED", error);
    let done = carried_out(&**files, mark.totals.applied.entries).map_err(error)?;
    if erase::of_states(&kept.states).iter().any(|(sequence, _)| sequence.get() >= done) {
        return Ok(None);
    }
    let nodes = std::mem::take(&mut kept.nodes);
    let Position { entries, link } = mark.totals.applied;
    let known = Known { store: mark.store, entries, link, nodes };
    let mut reading = Reading::into_index(index).going_on(&mark.totals, kept);
    let opening = store::Opening { known: Some(&known), ..*opening };
    let opened = match store::open(Arc::clone(files), &mut reading, &opening) {
        Ok(opened) => opened,
        Err(store::OpenError::NotAsKnown) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let totals = reading.totals().copied();
    let holds = reading.view_error.is_none()
        && totals.is_some_and(|totals| reading.leads_to(&totals) && totals.applied == opened.position)
        && opened.view_link == Some(mark.totals.applied.link);
    let Reading { states, used, .. } = reading;
    Ok(holds.then_some((opened, states, used)))
}

/// Replaces an unusable index by an empty one and returns it with the store's ID. Returns `None` without a journal,
/// or if no index can be created.
fn fresh_view(files: &dyn Files, view: Option<&Path>, cache_bytes: u64) -> Option<(Index, StoreId)> {
    let view = view?;
    let store = store::store_of(files)?;
    store::set_view_aside(view).ok()?;
    Some((Index::new(Some(Blocks::open(Some(view), cache_bytes).ok()?)), store))
}

/// Returns whether the persisted data with which a log starts matches the journal.
fn keeps(index: &Index, states: &[(String, Vec<u8>)], used: &[UsedLimit], reader: &store::Reader) -> bool {
    match index.kept() {
        Ok(None) => true,
        Ok(Some(kept)) => {
            let nodes = reader.nodes(0, index.totals().applied.entries);
            kept.states.iter().eq(states.iter().map(|(key, value)| (key, value)))
                && kept.used.into_list() == used
                && nodes.starts_with(&kept.nodes)
        }
        Err(_) => false,
    }
}

/// Returns whether a folder with these names holds a journal and an index.
fn is_store(names: &[String]) -> bool {
    [store::JOURNAL_FOLDER, store::VIEW_FOLDER].iter().all(|wanted| names.iter().any(|name| name == wanted))
}

/// Number of entries searched for erasures. A number larger than that of the entries belongs to another log and
/// counts as 0.
fn carried_out(files: &dyn Files, entries: u64) -> std::io::Result<u64> {
    Ok(store::carried_out(files)?).map(|done| if done > entries { 0 } else { done })
}

/// Carries out the erasures that a crash prevented, and all of them if evidence that they cover exists. Returns the
/// number of records whose evidence existed. `seems_erased` says whether any may exist.
fn carry_out(
    erasures: &[(Sequence, Erasure)],
    reader: &Reader,
    files: &dyn Files,
    seems_erased: bool,
) -> std::io::Result<u64> {
    let Some((last, _)) = erasures.last() else { return Ok(0) };
    let is_done = last.get() < carried_out(files, reader.tree_head().0)?;
    if is_done && !seems_erased {
        return Ok(0);
    }
    let covered = Covered::of(erasures);
    let found = covered.count_kept(reader)?;
    if !is_done || found > 0 {
        covered.carry_out(reader, files, last.get() + 1)?;
    }
    Ok(found)
}

/// Number of attempts to read a log that another process writes to.
const READ_TRIES: u32 = 5;

pub(crate) fn make_folder(folder: &Path) -> std::io::Result<()> {
    let is_new = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let made: Vec<&Path> = folder.ancestors().take_while(is_new).collect();
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    // Requests are private unless the operator decides otherwise; the permissions of an existing folder are not
    // changed.
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    // A folder whose name is not on disk is lost with its content in a power failure.
    for parent in made.iter().filter_map(|made| made.parent()) {
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        RealFiles::open(parent).and_then(|parent| parent.sync_dir(Path::new("")))?;
    }
    Ok(())
}

fn json(entry: &impl serde::Serialize) -> std::io::Result<Vec<u8>> {
    Ok(serde_json::to_vec(entry)?)
}
