//! Repairing a broken log: a new log replaces it, and the broken one is kept unchanged.

use rulekeep_types::parts::RepairReportParts;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::index::load_view;
use crate::index::reading::{Chain, Reading};
use crate::journal::entry::{Entry, NewState, RepairEntry, StateEntry, StoreEntry};
use crate::journal::erase::Erasures;
use crate::queue::StateDraft;
use crate::store::{
    self, Below, Exchange, Files, FolderLock, Frame, FrameDraft, Inspection, Journal, JournalOptions, KeptCheckpoint,
    Kind, Known, Position, RealFiles, StoreId, Visitor,
};
use rulekeep_types::{Digest, Error, RepairReport, Sequence, Timestamp};

/// The states of a broken log.
#[derive(Debug, Default)]
pub struct FoundStates {
    /// The states as of the last entry that is sound and confirmed by a witness.
    pub good: BTreeMap<String, Vec<u8>>,
    /// The values in later entries, as far as they can be read, in order.
    pub behind: BTreeMap<String, Vec<Vec<u8>>>,
    /// The first sound entry that no witness confirms.
    pub first_unconfirmed: Option<Sequence>,
    /// A witness names other entries than the log holds.
    pub is_contradicted: bool,
}

/// The states that a new log takes over.
#[derive(Debug, Default)]
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct RepairStates {
    /// The states, each with its cause.
    pub states: Vec<(StateDraft, String)>,
    pub agents: u64,
    /// The agents that are suspended or retired, although the last good entry did not say so.
    pub tightened: Vec<String>,
    /// Descriptions of what was not taken over.
    pub notes: Vec<String>,
    /// The secrets beside the journal are taken over too.
    pub with_secrets: bool,
}

/// Decides which states of a broken log a new one takes over.
pub(crate) type Carry<'a> = &'a dyn Fn(&FoundStates) -> Result<RepairStates, Error>;

/// Knowledge about a broken log from outside its journal and the files beside it.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    /// The knowledge in its index.
    pub(crate) index: Option<Known>,
    /// A checkpoint that was kept elsewhere.
    pub(crate) checkpoint: Option<KeptCheckpoint>,
}

/// Replaces a broken log in a folder by a new one, or completes a repair that was interrupted. `checkpoint` is a
/// checkpoint of the log that was kept elsewhere.
pub fn repair(
    folder: &Path,
    now: Timestamp,
    fresh: StoreId,
    checkpoint: Option<KeptCheckpoint>,
    carry: Carry<'_>,
) -> Result<RepairReport, Error> {
    let failed = || Error::storage(folder.display().to_string());
    if !folder.is_dir() {
        return Err(failed().caused_by("there is no such folder"));
    }
    let real = RealFiles::open(folder).map_err(|error| failed().caused_by(error))?;
    let is_under_way = match store::refuse_foreign(&real) {
        Ok(()) => false,
        Err(store::OpenError::RepairUnfinished) => true,
        Err(error) => return Err(failed().caused_by(error)),
    };
    let _lock = FolderLock::acquire(&real).map_err(|error| failed().caused_by(error))?;
    let next = real.path_to(store::REPAIRED);
    let mut outside = Outside { index: None, checkpoint };
    if !is_under_way {
        // Removes the remains of a repair that had not changed anything yet.
        if next.exists() {
            fs::remove_dir_all(&next).map_err(|error| failed().caused_by(error))?;
        }
        outside.index =
            known_of_view(&real.path_to(store::VIEW_FOLDER), &next).map_err(|error| failed().caused_by(error))?;
    }
    let real: Arc<dyn Files> = Arc::new(real);
    let report = repair_files(&real, &outside, now, fresh, carry)?;
    // The folders are empty; another repair would remove them too.
    let _ = fs::remove_dir_all(&next);
    Ok(report)
}

/// Reads what the index knows of the journal. Uses a copy, because opening the index writes to it.
fn known_of_view(view: &Path, next: &Path) -> io::Result<Option<Known>> {
    if !view.is_dir() {
        return Ok(None);
    }
    let copy = next.join(store::VIEW_FOLDER);
    copy_folder(view, &copy)?;
    let (index, mark, _) = load_view(Some(&copy), VIEW_CACHE);
    let nodes = index.kept().ok().flatten().map(|kept| kept.nodes).unwrap_or_default();
    drop(index);
    fs::remove_dir_all(next)?;
    Ok(mark.map(|mark| {
        let Position { entries, link } = mark.totals.applied;
        Known { store: mark.store, entries, link, nodes }
    }))
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

pub(crate) fn repair_files(
    files: &Arc<dyn Files>,
    outside: &Outside,
    now: Timestamp,
    fresh: StoreId,
    carry: Carry<'_>,
) -> Result<RepairReport, Error> {
    let failed = |error: io::Error| Error::storage("cannot repair the store").caused_by(error);
    let unfinished = Exchange::unfinished(&**files).map_err(failed)?;
    let exchange = match unfinished {
        Some(unfinished) => unfinished,
        None => prepare(files, outside, now, fresh, carry)?,
    };
    let report = exchange.finish(&**files).map_err(failed)?;
    serde_json::from_str(&report).map_err(|error| Error::storage("the repair's report").caused_by(error))
}

/// Creates the complete new store beside the broken one, so that only renaming is left.
fn prepare(
    files: &Arc<dyn Files>,
    outside: &Outside,
    now: Timestamp,
    fresh: StoreId,
    carry: Carry<'_>,
) -> Result<Exchange, Error> {
    let inspect = |mut looking: Looking| {
        let found = store::inspect(&**files, &mut looking, outside.index.as_ref(), outside.checkpoint.as_ref());
        found
            .map(|inspection| (looking, inspection))
            .map_err(|error| Error::storage("cannot read the broken store").caused_by(error))
    };
    let (mut looking, mut inspection) = inspect(Looking::by(None))?;
    // As when the log is opened, missing evidence without an erasure is a break.
    let mut erasures = None;
    if inspection.breakage.is_none() {
        erasures = looking.reading.unexplained_but_for();
    }
    if erasures.is_some() {
        (looking, inspection) = inspect(Looking::by(erasures.clone()))?;
    }
    let first_unconfirmed = Some(inspection.confirmed).filter(|confirmed| *confirmed < inspection.entries);
    if let Some(first) = first_unconfirmed {
        // The number of confirmed entries is known only now; the log is read again to separate the states before and
        // after.
        (looking, inspection) = inspect(Looking { confirmed: first, ..Looking::by(erasures) })?;
    }
    let (chain, is_frozen) = (looking.reading.verified(), looking.reading.past.freeze.is_some());
    let Chain { records, head_hash, latest, .. } = chain;
    let first_unconfirmed = first_unconfirmed.map(Sequence::new);
    let is_contradicted = inspection.is_contradicted;
    let states = FoundStates { first_unconfirmed, is_contradicted, ..looking.states };
    let Inspection { store: of, breakage, entries, link, root, .. } = inspection;
    let Some(broken) = breakage else {
        return Err(Error::Conflict { message: "the log is not broken: there is nothing to repair".to_owned() });
    };
    if is_frozen {
        let message = "the log is broken and was frozen for good, so it is not repaired; keep it as it is and read \
                       what can be read";
        return Err(Error::Conflict { message: message.to_owned() });
    }
    let mut carried = carry(&states)?;
    // The first two entries are the store's and the repair's.
    for (place, (state, _)) in (2..).zip(&mut carried.states) {
        state.stand_at(Sequence::new(place));
    }
    let failed = |error: io::Error| Error::storage("cannot write the new store").caused_by(error);
    let names = files.list(Path::new("")).map_err(failed)?;
    let kept = store::kept_name(&compact(now), &names);
    let entry = RepairEntry {
        of: of.map(|of| of.to_string()),
        entries,
        first_unconfirmed,
        records,
        link,
        root,
        head_hash,
        broken,
        kept: kept.clone(),
        // Times do not run backwards, and the time in an ID tells which log it belongs to.
        timestamp: now.max(Timestamp::from_millis(latest)),
    };
    write_new(files, fresh, &entry, &carried).map_err(failed)?;
    let RepairEntry { entries, first_unconfirmed, records, link, root, head_hash, broken, kept: folder, .. } = entry;
    let RepairStates { agents, tightened, notes, .. } = carried;
    let report = RepairReport::from(RepairReportParts {
        kept: folder,
        broken,
        entries,
        first_unconfirmed,
        records,
        link,
        root,
        head_hash,
        agents,
        tightened,
        notes,
        store: fresh.to_string(),
    });
    let report = serde_json::to_string(&report).map_err(|error| failed(error.into()))?;
    Ok(Exchange::new(kept, report))
}

fn write_new(files: &Arc<dyn Files>, fresh: StoreId, repair: &RepairEntry, carried: &RepairStates) -> io::Result<()> {
    store::clear_next(&**files)?;
    let below: Arc<dyn Files> = Arc::new(Below::new(Arc::clone(files), store::REPAIRED));
    let mut journal = Journal::create(below, fresh, JournalOptions::default())?;
    let at = repair.timestamp;
    let mut stage = |kind, body: Vec<u8>| {
        journal.stage(&FrameDraft { kind, body: &body, evidence: &[] })?;
        if journal.staged_bytes() < MOST_STAGED { Ok(()) } else { journal.write() }
    };
    stage(Kind::Store, serde_json::to_vec(&StoreEntry::new(fresh, at))?)?;
    stage(Kind::Repair, serde_json::to_vec(repair)?)?;
    for (StateDraft { key, value, .. }, cause) in &carried.states {
        let state = NewState { key: key.into(), value: serde_json::from_str(value)? };
        stage(
            Kind::State,
            serde_json::to_vec(&StateEntry { state, cause: cause.into(), agent_id: None, trust: None, timestamp: at })?,
        )?;
    }
    journal.write()?;
    journal.sync()?;
    if let Some(breakage) = journal.reader().verify(&mut Reading::learning(), journal.position())? {
        return Err(io::Error::other(breakage.to_string()));
    }
    journal.close()?;
    if carried.with_secrets
        && let Some(secrets) = store::read_secrets(&**files)?
    {
        store::write_secrets(&Below::new(Arc::clone(files), store::REPAIRED), &secrets)?;
    }
    // Syncs the folder's own name and the names in it; writing `HEAD` synced only its own.
    files.sync_dir(Path::new(store::REPAIRED))?;
    files.sync_dir(Path::new(""))
}

/// Formats a time as letters and digits: `20270115T080000Z`.
fn compact(at: Timestamp) -> String {
    let text = at.to_string();
    let seconds = text.split('.').next().unwrap_or(&text);
    seconds.chars().filter(char::is_ascii_alphanumeric).chain(['Z']).collect()
}

/// Verifies entries like [`Reading`], and collects the states for a new log.
struct Looking {
    reading: Reading<'static>,
    is_broken: bool,
    /// Number of confirmed entries; states of later entries are kept separately.
    confirmed: u64,
    states: FoundStates,
}

impl Looking {
    /// Creates a visitor that knows the erasures, or learns them while reading.
    fn by(erasures: Option<Arc<Erasures>>) -> Self {
        let reading = erasures.map_or_else(Reading::learning, Reading::checking);
        Self { reading, is_broken: false, confirmed: u64::MAX, states: FoundStates::default() }
    }
}

impl Visitor for Looking {
    fn visit(&mut self, frame: &Frame<'_>, digest: &Digest) -> Option<store::Finding> {
        let finding = self.reading.visit(frame, digest);
        for state in Entry::read(frame.kind, frame.body).iter().flat_map(Entry::states) {
            let (key, value) = (state.key.to_string(), state.value.get().as_bytes().to_vec());
            if self.is_broken || frame.sequence.get() >= self.confirmed {
                self.states.behind.entry(key).or_default().push(value);
            } else {
                self.states.good.insert(key, value);
            }
        }
        finding
    }

    fn begins(&mut self, start: &store::Start) {
        self.reading.begins(start);
    }

    fn ends(&mut self) -> Option<store::Finding> {
        self.reading.ends()
    }

    fn broken(&mut self) {
        self.is_broken = true;
        self.reading.broken();
    }
}

const VIEW_CACHE: u64 = 1 << 20;
const MOST_STAGED: usize = 4 << 20;
