//! A new log in place of a broken one, which is kept as it is.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::model::{Digest, Error, RepairReport, Sequence, Timestamp};
use crate::proof::index::load_view;
use crate::proof::index::reading::{Chain, Reading};
use crate::proof::journal::entry::{Entry, NewState, RepairEntry, StateEntry, StoreEntry};
use crate::proof::journal::erase::Erasures;
use crate::proof::log::OpenLogError;
use crate::proof::queue::StateDraft;
use crate::store::{
    self, Below, Exchange, Files, FolderLock, Frame, FrameDraft, Inspection, Journal, JournalOptions, KeptCheckpoint,
    Kind, Known, Position, RealFiles, StoreId, Visitor,
};

/// The states that a broken log has.
#[derive(Debug, Default)]
pub(crate) struct FoundStates {
    /// As of the last entry that holds and that a witness confirms.
    pub(crate) good: BTreeMap<String, Vec<u8>>,
    /// What entries behind it say, as far as they can be read, in order.
    pub(crate) behind: BTreeMap<String, Vec<Vec<u8>>>,
    /// The first entry that holds and that no witness confirms.
    pub(crate) first_unconfirmed: Option<Sequence>,
    /// A witness names other entries than there are.
    pub(crate) is_contradicted: bool,
}

/// What a new log takes over.
#[derive(Debug, Default)]
pub(crate) struct RepairStates {
    /// Each with its cause.
    pub(crate) states: Vec<(StateDraft, String)>,
    pub(crate) agents: u64,
    /// Those that are suspended or retired where the last good entry did not say so.
    pub(crate) tightened: Vec<String>,
    /// What was not taken over, in words.
    pub(crate) notes: Vec<String>,
    /// The secrets beside the journal go with it.
    pub(crate) with_secrets: bool,
}

/// Says what a new log takes over of the states of a broken one.
pub(crate) type Carry<'a> = &'a dyn Fn(&FoundStates) -> Result<RepairStates, Error>;

/// What is known of a broken log from elsewhere than its journal and the files beside it.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    /// What its index says of it.
    pub(crate) index: Option<Known>,
    /// A checkpoint that was kept.
    pub(crate) checkpoint: Option<KeptCheckpoint>,
}

/// Puts a new log in place of a broken one in a folder, or finishes doing so. `checkpoint` is one of it that was kept.
pub(crate) fn repair(
    folder: &Path,
    now: Timestamp,
    fresh: StoreId,
    checkpoint: Option<KeptCheckpoint>,
    carry: Carry<'_>,
) -> Result<RepairReport, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::storage(format!("{}: {error}", folder.display()));
    if !folder.is_dir() {
        return Err(failed(&"there is no such folder"));
    }
    let real = RealFiles::open(folder).map_err(|error| failed(&error))?;
    let is_under_way = match store::refuse_foreign(&real) {
        Ok(()) => false,
        Err(store::OpenError::RepairUnfinished) => true,
        Err(error) => return Err(failed(&error)),
    };
    let _lock = FolderLock::acquire(&real).map_err(|error| failed(&OpenLogError::from(error)))?;
    let next = real.path_to(store::REPAIRED);
    let mut outside = Outside { index: None, checkpoint };
    if !is_under_way {
        // What is left of a repair that did not come as far as to change anything.
        if next.exists() {
            fs::remove_dir_all(&next).map_err(|error| failed(&error))?;
        }
        outside.index = known_of_view(&real.path_to(store::VIEW_FOLDER), &next).map_err(|error| failed(&error))?;
    }
    let real: Arc<dyn Files> = Arc::new(real);
    let report = repair_files(&real, &outside, now, fresh, carry)?;
    // Empty folders: another repair takes them away too.
    let _ = fs::remove_dir_all(&next);
    Ok(report)
}

/// What the view says of the journal, asked of a copy: to open a view is to write to it.
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
    let failed = |error: io::Error| Error::storage(format!("cannot repair the store: {error}"));
    let unfinished = Exchange::unfinished(&**files).map_err(failed)?;
    let exchange = match unfinished {
        Some(unfinished) => unfinished,
        None => prepare(files, outside, now, fresh, carry)?,
    };
    let report = exchange.finish(&**files).map_err(failed)?;
    serde_json::from_str(&report).map_err(|error| Error::storage(format!("the repair's report: {error}")))
}

/// Makes the new store beside the broken one, whole, so that nothing but names is left to change.
fn prepare(
    files: &Arc<dyn Files>,
    outside: &Outside,
    now: Timestamp,
    fresh: StoreId,
    carry: Carry<'_>,
) -> Result<Exchange, Error> {
    let inspect = |mut looking: Looking| {
        let found = store::inspect(&**files, &mut looking, outside.index.as_ref(), outside.checkpoint.as_ref());
        found.map(|inspection| (looking, inspection)).map_err(|error| Error::storage(error.to_string()))
    };
    let (mut looking, mut inspection) = inspect(Looking::by(None))?;
    // As when it is opened: evidence that is missing, and that no erasure covers, is a break.
    let mut erasures = None;
    if inspection.breakage.is_none() {
        erasures = looking.reading.unexplained_but_for();
    }
    if erasures.is_some() {
        (looking, inspection) = inspect(Looking::by(erasures.clone()))?;
    }
    let first_unconfirmed = Some(inspection.confirmed).filter(|confirmed| *confirmed < inspection.entries);
    if let Some(first) = first_unconfirmed {
        // How many are confirmed is known only now: read once more to tell the states before from those behind.
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
        let message = "the log is broken and was frozen for good: nothing is to be begun in its place; keep it as it \
                       is, it answers what can be read";
        return Err(Error::Conflict { message: message.to_owned() });
    }
    let mut carried = carry(&states)?;
    // Behind the store's entry and the repair's.
    for (place, (state, _)) in (2..).zip(&mut carried.states) {
        state.stand_at(Sequence::new(place));
    }
    let failed = |error: io::Error| Error::storage(format!("cannot write the new store: {error}"));
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
        // Times do not run backwards, and an id tells by its time of which log it is.
        timestamp: now.max(Timestamp::from_millis(latest)),
    };
    write_new(files, fresh, &entry, &carried).map_err(failed)?;
    let RepairEntry { entries, first_unconfirmed, records, link, root, head_hash, broken, kept: folder, .. } = entry;
    let RepairStates { agents, tightened, notes, .. } = carried;
    let report = RepairReport {
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
    };
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
    // The folder's own name, and those in it: what `HEAD` was synced with was only its own.
    files.sync_dir(Path::new(store::REPAIRED))?;
    files.sync_dir(Path::new(""))
}

/// A time as letters and digits: `20270115T080000Z`.
fn compact(at: Timestamp) -> String {
    let text = at.to_string();
    let seconds = text.split('.').next().unwrap_or(&text);
    seconds.chars().filter(char::is_ascii_alphanumeric).chain(['Z']).collect()
}

/// Checks entries as [`Reading`] does, and keeps what a new log needs to know.
struct Looking {
    reading: Reading<'static>,
    is_broken: bool,
    /// States of entries from here on stand behind what is believed.
    confirmed: u64,
    states: FoundStates,
}

impl Looking {
    /// Knows what was erased, or learns it on the way.
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
