//! Opening a log: reading and checking the journal, taking the view or making it anew, and starting the writer.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::{Open, ProofLog};
use crate::model::{Recovered, Timestamp};
use crate::proof::apply::Reading;
use crate::proof::entry::{RecoveryEntry, StoreEntry};
use crate::proof::index::Index;
use crate::proof::intake::{Durability, Intake, Refusal};
use crate::proof::progress::Progress;
use crate::proof::retention;
use crate::proof::shared::{Shared, load_view};
use crate::proof::used::UsedLimit;
use crate::proof::writer::{Pace, Writer};
use crate::store::{
    self, Files, FolderLock, FrameDraft, Journal, JournalOptions, Kind, LockError, MemoryFiles, RealFiles, StoreId,
    ViewError,
};

/// Where a log is kept.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// In a folder, which is made when it is not there.
    Folder(PathBuf),
    /// In memory; gone when the log is.
    Memory,
}

/// How a log is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogOptions {
    pub(crate) durability: Durability,
    /// Memory for the view's cache, in bytes.
    pub(crate) cache_bytes: u64,
    /// Drafts that may wait for the writer.
    pub(crate) queue: usize,
    /// How long a caller waits for room in the queue.
    pub(crate) patience: Duration,
    pub(crate) journal: JournalOptions,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Sync,
            cache_bytes: 16 << 20,
            queue: 1 << 16,
            patience: Duration::from_secs(2),
            journal: JournalOptions::default(),
        }
    }
}

/// What a log held when it was opened.
pub(crate) struct Startup {
    /// Every state by its key, as JSON.
    pub(crate) states: Vec<(String, Vec<u8>)>,
    /// What was used of limits and may still count, in order.
    pub(crate) used: Vec<UsedLimit>,
    /// The log was made just now.
    pub(crate) created: bool,
    /// A write had been cut short, and this was set aside.
    pub(crate) recovered: Option<Recovered>,
}

/// Why a log could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenLogError {
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Store(#[from] store::OpenError),
    #[error("cannot {0}: {1}")]
    Io(&'static str, #[source] std::io::Error),
    #[error("{0} is a file, not a folder")]
    NotAFolder(PathBuf),
}

impl ProofLog {
    /// Opens the log, verifying all of it, or makes a new one. A broken log
    /// opens too: it answers queries, and refuses everything new.
    pub(crate) fn open(
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
                make_folder(folder)?;
                store::refuse_foreign(&RealFiles::new(folder.clone()))?;
                let lock = FolderLock::acquire(folder)?;
                (Arc::new(RealFiles::new(folder.clone())), Some(lock), Some(folder.join(store::VIEW_FOLDER)))
            }
            Place::Memory => (Arc::new(MemoryFiles::new()), None, None),
        };
        Self::open_files(files, lock, view, options, now, fresh)
    }

    pub(in crate::proof) fn open_files(
        files: Arc<dyn Files>,
        lock: Option<FolderLock>,
        view: Option<PathBuf>,
        options: &LogOptions,
        now: Timestamp,
        fresh: StoreId,
    ) -> Result<(Self, Startup), OpenLogError> {
        // A folder that holds no store yet must not be given a view before it is known to become one.
        let (mut index, mark, load_error) = match files.list(Path::new("")) {
            Ok(names) if is_store(&names) => load_view(view.as_deref(), options.cache_bytes),
            _ => (Index::new(None), None, Some(ViewError::Disagrees("there is none yet"))),
        };
        let mut reading = Reading::into_index(&mut index);
        let view_entries = mark.map(|mark| (mark.store, mark.totals.applied.entries));
        let opened = store::open(Arc::clone(&files), &mut reading, view_entries, fresh, options.journal)?;
        let Reading { states, used, census, view_error, past, .. } = reading;
        let view_error = load_error.or(view_error).or_else(|| {
            let mark = mark?;
            let applied = mark.totals.applied;
            let same = mark.store == opened.store && (applied.entries == 0 || opened.view_link == Some(applied.link));
            (!same).then_some(ViewError::Disagrees("it was made from another journal"))
        });
        let view_error = view_error.or_else(|| {
            (!index.agrees_with(&census)).then_some(ViewError::Disagrees("its sums are not the journal's"))
        });
        let (journal, breakage) = match opened.journal {
            Ok(journal) => (Some(journal), None),
            Err(breakage) => (None, Some(breakage)),
        };
        let freeze = past.freeze.clone();
        let breakage = breakage.or_else(|| retention::lost_freeze(opened.frozen, freeze.as_ref(), opened.position));
        let mut journal = journal.filter(|_| breakage.is_none());

        let shared = Shared {
            intake: Intake::new(options.queue, options.patience, options.durability == Durability::Sync),
            progress: Progress::new(opened.position.entries),
            index: RwLock::new(index),
            reader: opened.reader,
            store: opened.store,
            files,
            view,
            cache_bytes: options.cache_bytes,
            view_lost: AtomicBool::new(false),
            index_incomplete: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            syncs: AtomicU64::new(0),
            past: RwLock::new(past),
            archiving: Mutex::new(()),
            breakage: Mutex::new(breakage.clone()),
        };
        {
            let mut index = shared.index.write().unwrap_or_else(PoisonError::into_inner);
            match (&breakage, view_error) {
                // The view is left as it is: it may help to tell what happened.
                (Some(_), _) => shared.index_in_memory(&mut index),
                (None, Some(_)) => shared.rebuild(&mut index),
                (None, None) => {}
            }
        }
        // What is written next stands on the index's last hash and time.
        if shared.index_incomplete.load(Ordering::Relaxed) {
            let error = std::io::Error::other("reading it again for the index failed");
            return Err(OpenLogError::Io("read the journal", error));
        }
        let shared = Arc::new(shared);
        let writer = if let (Some(journal), Some(freeze)) = (&mut journal, &freeze) {
            shared
                .keep_frozen(journal, freeze, opened.frozen)
                .map_err(|error| OpenLogError::Io("write HEAD", error))?;
            shared.intake.start_at(opened.position.entries, now);
            shared.progress.over();
            None
        } else if let Some(journal) = journal {
            Some(Self::start(&shared, journal, options, opened.created, opened.recovered.as_ref(), now)?)
        } else {
            let message = breakage.as_ref().map_or_else(String::new, ToString::to_string);
            shared.intake.refuse(Refusal::Broken(message));
            shared.intake.start_at(opened.position.entries, now);
            shared.progress.over();
            None
        };
        let open = Mutex::new(Some(Open { writer, _lock: lock }));
        let log = Self { shared, durability: options.durability, open };
        Ok((
            log,
            Startup {
                states: states.into_iter().collect(),
                used: used.into_list(),
                created: opened.created,
                recovered: opened.recovered,
            },
        ))
    }

    /// Writes what a new or a recovered journal must say first, then starts the writer.
    fn start(
        shared: &Arc<Shared>,
        mut journal: Journal,
        options: &LogOptions,
        created: bool,
        recovered: Option<&Recovered>,
        now: Timestamp,
    ) -> Result<JoinHandle<()>, OpenLogError> {
        let error = |error| OpenLogError::Io("write to the store", error);
        let at = now.max(Timestamp::from_millis(shared.index().totals().last_time));
        let mut first_entries = Vec::new();
        if journal.position().entries == 0 {
            let store = StoreEntry {
                format: store::FORMAT,
                store: shared.store.to_string(),
                timestamp: at,
                made_by: format!("rulekeep {}", env!("CARGO_PKG_VERSION")),
            };
            first_entries.push((Kind::Store, json(&store).map_err(error)?));
        }
        if let Some(Recovered { copy, bytes, segment, offset }) = recovered.cloned() {
            let entry = RecoveryEntry { copy, bytes, segment, offset, timestamp: at };
            first_entries.push((Kind::Recovery, json(&entry).map_err(error)?));
        }
        for (kind, body) in &first_entries {
            let staged = journal.stage(&FrameDraft { kind: *kind, body, evidence: &[] }).map_err(error)?;
            shared.index.write().unwrap_or_else(PoisonError::into_inner).advance(staged.position);
        }
        journal.write().map_err(error)?;
        let entries = journal.position().entries;
        // Before anything is acknowledged, `HEAD` stands beside the journal: whoever wrote the first entry may not
        // have come as far.
        if created || !first_entries.is_empty() || entries == 1 {
            journal.note_head().map_err(error)?;
        }
        shared.intake.start_at(entries, at);
        shared.progress.durable(entries);
        shared.progress.applied(entries);

        let gather = match options.durability {
            Durability::Sync => Duration::ZERO,
            Durability::Buffered => FLUSH_INTERVAL,
        };
        let pace = Pace { gather, idle: IDLE, persist_every: PERSIST_EVERY };
        let head_hash = shared.index().totals().head_hash;
        let writer = Writer::new(Arc::clone(shared), journal, pace, head_hash);
        thread::Builder::new().name("rulekeep-writer".to_owned()).spawn(move || writer.run()).map_err(error)
    }
}

/// How long a Buffered record may wait in memory.
const FLUSH_INTERVAL: Duration = Duration::from_millis(10);
/// Quiet after which the index is persisted and the head noted.
const IDLE: Duration = Duration::from_secs(1);
const PERSIST_EVERY: u64 = 1 << 16;

/// Whether a folder of these names holds a journal and a view of it.
fn is_store(names: &[String]) -> bool {
    [store::JOURNAL_FOLDER, store::VIEW_FOLDER].iter().all(|wanted| names.iter().any(|name| name == wanted))
}

pub(super) fn make_folder(folder: &Path) -> Result<(), OpenLogError> {
    let error = |error| OpenLogError::Io("make the folder", error);
    let is_new = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let made: Vec<&Path> = folder.ancestors().take_while(is_new).collect();
    std::fs::create_dir_all(folder).map_err(error)?;
    // A folder whose name is not on disk goes with all that is in it when the power fails.
    for parent in made.iter().filter_map(|made| made.parent()) {
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        RealFiles::new(parent).sync_dir(Path::new("")).map_err(error)?;
    }
    Ok(())
}

fn json(entry: &impl serde::Serialize) -> std::io::Result<Vec<u8>> {
    Ok(serde_json::to_vec(entry)?)
}
