//! Opening a journal: creating it or continuing an existing one, and distinguishing a torn tail from damage and
//! missing entries.

use rulekeep_types::parts::BreakageParts;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::archive::{self, Past};
use super::checkpoint::{self, Found};
use super::erase;
use super::files::{Files, OpenMode, StoreFile};
use super::head::{self, Head, HeadError, Start};
use super::journal::{Journal, JournalOptions, Place, Position, Reader};
use super::known::Known;
use super::merkle::TreeError;
use super::open_error::{OpenError, RECOVERED, TAIL};
use super::parallel::{self, CheckedParts, Manner, Part, Parts};
use super::repair;
use super::sealed::{self, SealedFile};
use super::segment::{self, Segment, SegmentHeader, StoreId};
use super::tree::Tree;
use super::walk::{Growth, SegmentWalk, Walk};
use rulekeep_types::{Breakage, BrokenKind, Digest, Recovered, Sequence};

/// The result of opening a journal.
pub struct Opened {
    pub(crate) store: StoreId,
    pub(crate) reader: Reader,
    /// The position after the last entry read.
    pub(crate) position: Position,
    /// The writing end, or the breakage that makes the journal read-only.
    pub(crate) journal: Result<Journal, Breakage>,
    /// A description of what was set aside, if the last write had been cut short.
    pub(crate) recovered: Option<Recovered>,
    /// The store was created by this open.
    pub(crate) created: bool,
    /// The link after the number of entries that the index has applied.
    pub(crate) view_link: Option<Digest>,
    /// The log is frozen, according to `HEAD`.
    pub(crate) frozen: bool,
}

/// Options of opening a journal.
pub struct Opening<'a> {
    /// The store of the index and the number of entries it has applied, if there is an index.
    pub(crate) view: Option<(StoreId, u64)>,
    /// Unverified knowledge about the journal; if given, only the end is read.
    pub(crate) known: Option<&'a Known>,
    /// The ID to use if a store is created.
    pub(crate) fresh: StoreId,
    pub(crate) options: JournalOptions,
}

/// Opens the journal in `files`, calling `visitor` for each entry that is read.
#[allow(clippy::too_many_lines)] // one step after the other, each of which stands on what the ones before have found
pub fn open<V: Parts>(files: Arc<dyn Files>, visitor: &mut V, opening: &Opening<'_>) -> Result<Opened, OpenError> {
    let Opening { view, known, fresh, options } = *opening;
    let mut survey = Survey::of(&*files)?;
    refuse_unfinished_repair(&survey.names)?;
    let (has_head, head_entries) = (survey.has_head(), survey.head_entries());
    drop_unfinished(&*files, &mut survey.segments, has_head)?;
    if survey.segments.is_empty() {
        refuse_traces(has_head, &survey.names)?;
        return create(files, fresh, options);
    }
    let (first_store, view_entries) = (survey.store(), survey.seen_by(view));
    let least = head_entries.max(view_entries).max(survey.kept_entries());
    let Survey { head, head_broken, kept, start, before, mut segments, .. } = survey;
    let frozen = head.as_ref().is_some_and(|head| head.frozen);
    let watch = [head_entries, view_entries];
    let before_root = before.root();
    let (tree, ahead) = if let Some(known) = known {
        let ahead = known.ahead(&segments, head.as_ref(), &watch).ok_or(OpenError::NotAsKnown)?;
        (Tree::over(known.whole_nodes()), Some(ahead))
    } else {
        let mut tree = before.clone();
        let ahead = check_ahead((visitor, &mut tree), &segments, &start, view_entries, &watch);
        (if ahead.is_some() { tree } else { before }, ahead)
    };
    let mut opened = Vec::with_capacity(segments.len());
    let mut unsealed = Vec::new();
    let mut take = |segment: Segment, is_last: bool| {
        let segment = Arc::new(segment);
        if !segment.is_sealed && !is_last {
            unsealed.push(Arc::clone(&segment));
        }
        opened.push(segment);
    };
    // The visitor keeps what the parallel verification joined.
    let walk = match &ahead {
        Some(ahead) => Walk::from(visitor, ahead.reached, &watch).knowing(least),
        None => Walk::starting(visitor, &start, least, &watch),
    };
    let mut walk = walk.growing(Growth::Tree(tree), u64::MAX);
    compare_with_start(&mut walk, &start, before_root);
    let mut expected = start.segment;
    if let Some(ahead) = ahead {
        expected = ahead.reached.next_segment;
        walk.go_on_from(ahead.reached, &ahead.watched);
        for (source, (header, offsets)) in segments.drain(..ahead.segments.len()).zip(ahead.segments) {
            take(Segment::new(header, source.file, source.is_sealed, offsets), false);
        }
    }
    let mut torn = false;
    let mut last_bytes = Vec::new();
    let last_number = segments.last().map_or(0, |source| source.number);
    let is_full = segments.last().is_some_and(|source| source.is_sealed);
    walk_segments(&mut walk, segments, expected, &mut |source, first, walked, bytes| {
        let Source { number, file, is_sealed } = source;
        (torn, last_bytes) = (walked.torn, bytes);
        let store = first_store.unwrap_or(fresh);
        let header = walked.header.unwrap_or(SegmentHeader { number, first, store, link: Digest::ZERO });
        take(Segment::new(header, file, is_sealed, walked.offsets), number == last_number);
    })?;
    compare_with_head(&mut walk, head.as_ref(), head_broken);
    compare_with_view(&mut walk, view_entries);

    compare_with_checkpoint(&mut walk, &kept);
    walk.end();

    let store = walk.store().unwrap_or(fresh);
    let position = Position { entries: walk.entries(), link: walk.link().unwrap_or(Digest::ZERO) };
    let view_link = (view_entries > 0).then(|| walk.link_after(view_entries)).flatten();
    let breakage = walk.breakage().cloned();
    let past = if start == Start::WHOLE { None } else { Past::open(&*files, start).ok() };
    let reader = Reader::new(opened.clone(), walk.into_tree().unwrap_or_default(), past);
    let breakage = match breakage {
        None => other_root(&|entries| root_at(&reader, entries), head.as_ref(), &kept)?,
        found => found,
    };
    if known.is_some() && breakage.is_some() {
        // Describing the break is left to an open that reads everything.
        return Err(OpenError::NotAsKnown);
    }
    let (journal, recovered) = match (breakage, opened.last()) {
        (Some(breakage), _) => (Err(breakage), None),
        (None, None) => return Err(OpenError::JournalGone("no readable file")),
        (None, Some(active)) => {
            let is_new = position.entries > head_entries || active.count() == 0;
            let end = End { position, bytes: last_bytes, is_new, torn, is_full };
            let (journal, recovered) = write_on(Arc::clone(&files), reader.clone(), store, active, &end, options)?;
            archive::remove_before(&*files, &start)
                .map_err(|error| OpenError::Io("remove what was archived", error))?;
            for full in unsealed {
                journal.seal(full);
            }
            (Ok(journal), recovered)
        }
    };
    Ok(Opened { store, reader, position, journal, recovered, created: false, view_link, frozen })
}

/// The state of a store's folder before its entries are read.
pub(super) struct Survey {
    /// Names of all files and folders in the store's folder.
    pub(super) names: Vec<String>,
    pub(super) head: Option<Head>,
    /// `HEAD` exists but is not valid.
    pub(super) head_broken: bool,
    pub(super) kept: Found,
    pub(super) start: Start,
    /// The tree over the archived entries.
    pub(super) before: Tree,
    /// Segments that are not archived. After a crash, archived ones may still be in the folder.
    pub(super) segments: Vec<Source>,
}

impl Survey {
    pub(super) fn of(files: &dyn Files) -> Result<Self, OpenError> {
        let names = files.list(Path::new("")).map_err(|error| OpenError::Io("list the folder", error))?;
        let (head, head_broken) = match Head::read(files) {
            Ok(head) => (head, false),
            Err(HeadError::Newer(format)) => return Err(OpenError::Newer(format)),
            Err(HeadError::Older(format)) => return Err(OpenError::Older(format)),
            Err(HeadError::Io(error)) => return Err(OpenError::Io("read HEAD", error)),
            Err(HeadError::Malformed) => (None, true),
        };
        let kept = checkpoint::read(files).map_err(|error| OpenError::Io("read CHECKPOINT", error))?;
        let start = head.as_ref().and_then(|head| head.start).unwrap_or(Start::WHOLE);
        let before = archive::tree(files, &start)?;
        let mut segments = load(files)?;
        segments.retain(|source| source.number >= start.segment);
        Ok(Self { names, head, head_broken, kept, start, before, segments })
    }

    /// Returns whether `HEAD` exists, valid or not.
    pub(super) fn has_head(&self) -> bool {
        self.head.is_some() || self.head_broken
    }

    pub(super) fn head_entries(&self) -> u64 {
        self.head.as_ref().map_or(0, |head| head.entries)
    }

    pub(super) fn kept_entries(&self) -> u64 {
        self.kept.entries()
    }

    /// The store named by the first readable segment header.
    fn store(&self) -> Option<StoreId> {
        self.segments.iter().find_map(|source| header_of(&*source.file)).map(|header| header.store)
    }

    /// Number of entries that the index has applied; 0 if it belongs to another store.
    pub(super) fn seen_by(&self, view: Option<(StoreId, u64)>) -> u64 {
        view.filter(|(store, _)| Some(*store) == self.store()).map_or(0, |(_, entries)| entries)
    }
}

/// Walks segments; the first one should have the number `expected`. Passes each one to `take`, with the sequence of
/// its first entry, the result of its walk and its content.
pub(super) fn walk_segments(
    walk: &mut Walk<'_>,
    segments: Vec<Source>,
    mut expected: u32,
    take: &mut dyn FnMut(Source, Sequence, SegmentWalk, Vec<u8>),
) -> Result<(), OpenError> {
    let last = segments.last().map(|source| source.number);
    for source in segments {
        for missing in expected..source.number {
            walk.missing_segment(missing);
        }
        expected = source.number + 1;
        let bytes = source.file.read_all().map_err(|error| OpenError::Io("read a segment", error))?;
        let first = Sequence::new(walk.entries());
        let walked = walk.segment(source.number, &bytes, Some(source.number) == last);
        take(source, first, walked, bytes);
    }
    Ok(())
}

/// Refuses to create a store in a folder that holds remains of a store or anything else.
fn refuse_traces(has_head: bool, names: &[String]) -> Result<(), OpenError> {
    match (has_head, foreign_name(names)) {
        (true, _) => Err(OpenError::JournalGone("a HEAD")),
        (false, Some(VIEW)) => Err(OpenError::JournalGone("a view")),
        (false, Some(checkpoint::NAME)) => Err(OpenError::JournalGone("a CHECKPOINT")),
        (false, Some(name)) => Err(OpenError::NotAStore(name.to_owned())),
        (false, None) => Ok(()),
    }
}

/// The root over the first `entries` entries; `None` if they cannot be read.
fn root_at(reader: &Reader, entries: u64) -> Result<Option<Digest>, OpenError> {
    match reader.root_at(entries) {
        Ok(root) => Ok(Some(root)),
        Err(TreeError::Leaves(Some(error))) => Err(OpenError::Io("read the journal", error)),
        Err(_) => Ok(None),
    }
}

/// The end of a sound journal.
struct End {
    position: Position,
    /// Content of the last segment.
    bytes: Vec<u8>,
    /// `HEAD` does not name all of the entries.
    is_new: bool,
    torn: bool,
    is_full: bool,
}

/// Makes the end of the journal durable and returns the writing end.
fn write_on(
    files: Arc<dyn Files>,
    reader: Reader,
    store: StoreId,
    active: &Arc<Segment>,
    end: &End,
    options: JournalOptions,
) -> Result<(Journal, Option<Recovered>), OpenError> {
    active.file.lock().map_err(|error| OpenError::Io("lock the newest segment", error))?;
    if end.is_new {
        settle(&*files, active, &end.bytes).map_err(|error| OpenError::Io("write to the journal", error))?;
    }
    let recovered = if end.torn { Some(set_aside(&*files, active, &end.bytes)?) } else { None };
    let place = Place { at: end.position, allocated: end.bytes.len() as u64, is_full: end.is_full };
    Ok((Journal::resume(files, reader, store, Arc::clone(active), place, options), recovered))
}

/// Returns whether the folder holds a `HEAD` or a segment, whatever their state.
pub fn has_traces(files: &dyn Files) -> Result<bool, OpenError> {
    let list = |folder: &str| files.list(Path::new(folder)).map_err(|error| OpenError::Io("list the folder", error));
    let names = list("")?;
    Ok(names.iter().any(|name| name == head::NAME)
        || names.iter().any(|name| name == segment::FOLDER) && !list(segment::FOLDER)?.is_empty())
}

/// Returns the store that the journal belongs to, from the first readable segment header.
pub fn store_of(files: &dyn Files) -> Option<StoreId> {
    // A store whose `HEAD` cannot be read is left alone.
    Head::read(files).ok()?;
    load(files).ok()?.iter().find_map(|source| header_of(&*source.file)).map(|header| header.store)
}

/// Verifies, in parallel, all segments completely covered by the index except the last. Returns `None` if there are
/// none, or if anything is wrong.
fn check_ahead<V: Parts>(
    (visitor, tree): (&mut V, &mut Tree),
    segments: &[Source],
    start: &Start,
    view_entries: u64,
    watch: &[u64],
) -> Option<CheckedParts> {
    let first = |source: &Source| header_of(&*source.file).map(|header| header.first.get());
    let is_seen = |pair: &[Source]| pair.get(1).and_then(first).is_some_and(|first| first <= view_entries);
    let seen = segments.windows(2).take_while(|pair| is_seen(pair));
    let part = |pair: &[Source]| pair.first().map(|source| Part::of_file(source.number, &source.file));
    let parts: Vec<Part> = seen.filter_map(part).collect();
    visitor.begins(start);
    if parts.is_empty() {
        return None;
    }
    parallel::check(visitor, &parts, start.reached(), watch, Manner::default(), Some((tree, u64::MAX)))
}

/// Refuses a folder that holds other files but no store, before anything is created in it.
pub fn refuse_foreign(files: &dyn Files) -> Result<(), OpenError> {
    let names = files.list(Path::new("")).map_err(|error| OpenError::Io("list the folder", error))?;
    refuse_unfinished_repair(&names)?;
    let is_store =
        names.iter().any(|name| [head::NAME, checkpoint::NAME, segment::FOLDER, VIEW].contains(&name.as_str()));
    match foreign_name(&names) {
        Some(name) if !is_store => Err(OpenError::NotAStore(name.to_owned())),
        _ => Ok(()),
    }
}

/// Refuses a folder in the middle of a repair, when its files belong to two stores.
fn refuse_unfinished_repair(names: &[String]) -> Result<(), OpenError> {
    if names.iter().any(|name| name == repair::NAME) { Err(OpenError::RepairUnfinished) } else { Ok(()) }
}

fn create(files: Arc<dyn Files>, store: StoreId, options: JournalOptions) -> Result<Opened, OpenError> {
    let journal = Journal::create(files, store, options).map_err(|error| OpenError::Io("make a store", error))?;
    let (position, reader) = (journal.position(), journal.reader());
    Ok(Opened {
        store,
        reader,
        position,
        journal: Ok(journal),
        recovered: None,
        created: true,
        view_link: None,
        frozen: false,
    })
}

/// A segment in the folder.
pub(super) struct Source {
    pub(super) number: u32,
    pub(super) file: Arc<dyn StoreFile>,
    is_sealed: bool,
}

/// Opens the segments' files, in order.
pub(super) fn load(files: &dyn Files) -> Result<Vec<Source>, OpenError> {
    let names = files.list(Path::new(segment::FOLDER)).map_err(|error| OpenError::Io("list the journal", error))?;
    let numbers =
        |number: fn(&str) -> Option<u32>| names.iter().filter_map(|name| number(name)).collect::<BTreeSet<u32>>();
    let (plain, sealed) = (numbers(Segment::number), numbers(sealed::number));
    let error = |error| OpenError::Io("open a segment", error);
    let open = |number: &u32| {
        // If both forms exist, a crash came before the original was removed: it is sealed again.
        if plain.contains(number) {
            let path = Segment::path(*number);
            let file =
                files.open(&path, OpenMode::Write).or_else(|_| files.open(&path, OpenMode::Read)).map_err(error)?;
            return Ok(Source { number: *number, file, is_sealed: false });
        }
        let file: Arc<dyn StoreFile> = match SealedFile::open(files, *number).map_err(error)? {
            Some(file) => Arc::new(file),
            // It is opened as a plain file, which the walk reports as damaged.
            None => files.open(&sealed::frames_path(*number), OpenMode::Read).map_err(error)?,
        };
        Ok(Source { number: *number, file, is_sealed: true })
    };
    plain.union(&sealed).map(open).collect()
}

/// Sets a last segment aside that was being created when the crash came: its header is incomplete, and it never held
/// an entry.
fn drop_unfinished(files: &dyn Files, segments: &mut Vec<Source>, has_head: bool) -> Result<(), OpenError> {
    let Some(Source { number, .. }) = segments.last() else { return Ok(()) };
    if !ends_unfinished(segments, has_head)? {
        return Ok(());
    }
    let error = |error| OpenError::Io("set an unfinished segment aside", error);
    files.create_dir(Path::new(RECOVERED)).map_err(error)?;
    let aside = PathBuf::from(RECOVERED).join(format!("unfinished-{}", Segment::name(*number)));
    files.rename(&Segment::path(*number), &aside).map_err(error)?;
    files.sync_dir(Path::new(segment::FOLDER)).map_err(error)?;
    segments.pop();
    Ok(())
}

/// Returns whether the last segment was being created when the crash came.
pub(super) fn ends_unfinished(segments: &[Source], has_head: bool) -> Result<bool, OpenError> {
    let Some(Source { number, file, is_sealed: false }) = segments.last() else { return Ok(false) };
    let bytes = file.len().map_err(|error| OpenError::Io("read a segment", error))?;
    // The first segment is created before `HEAD`, later ones while `HEAD` exists.
    let expected_here = has_head == (*number > 0);
    Ok(bytes <= segment::HEADER_BYTES as u64 && header_of(&**file).is_none() && expected_here)
}

pub(super) fn header_of(file: &dyn StoreFile) -> Option<SegmentHeader> {
    let mut bytes = [0; segment::HEADER_BYTES];
    file.read_at(&mut bytes, 0).ok()?;
    SegmentHeader::decode(&bytes)
}

pub(super) fn compare_with_head(walk: &mut Walk<'_>, head: Option<&Head>, head_broken: bool) {
    if head_broken {
        walk.broken(head::NAME, BrokenKind::Damage, "one line of JSON and its checksum", "invalid content");
    }
    let Some(head) = head else {
        // `HEAD` is written right after the first entry, before anything is acknowledged.
        if walk.entries() > 1 {
            walk.broken(head::NAME, BrokenKind::Missing, "a HEAD beside the journal", "no such file");
        }
        return;
    };
    if walk.store().is_some_and(|store| store.to_string() != head.store) {
        walk.broken(head::NAME, BrokenKind::Tampering, "the store of the segments", &format!("store {}", head.store));
    }
    if walk.entries() < head.entries {
        let expected = format!("the {} entries that HEAD names", head.entries);
        walk.broken(segment::FOLDER, BrokenKind::Missing, &expected, &format!("{} entries", walk.entries()));
    } else if walk.breakage().is_none() && walk.link_after(head.entries) != Some(head.link) {
        let found =
            walk.link_after(head.entries).map_or_else(|| "another link".to_owned(), |link| format!("link {link}"));
        let expected = format!("link {} after {} entries, as HEAD names it", head.link, head.entries);
        walk.broken(segment::FOLDER, BrokenKind::Tampering, &expected, &found);
    }
}

pub(super) fn compare_with_view(walk: &mut Walk<'_>, view_entries: u64) {
    if walk.entries() < view_entries {
        let expected = format!("the {view_entries} entries that the index has applied");
        walk.broken(segment::FOLDER, BrokenKind::Missing, &expected, &format!("{} entries", walk.entries()));
    }
}

/// Compares the beginning of the journal with `root`, the root over the digests of the archived entries.
pub(super) fn compare_with_start(walk: &mut Walk<'_>, start: &Start, root: Digest) {
    if let Some(finding) = archive::other_start(start, root) {
        walk.broken(archive::LEAVES, finding.kind, &finding.expected, &finding.found);
    }
}

pub(super) fn compare_with_checkpoint(walk: &mut Walk<'_>, kept: &Found) {
    match kept {
        Found::Malformed => {
            let expected = "a signed checkpoint of the log";
            walk.broken(checkpoint::NAME, BrokenKind::Damage, expected, "content that is none");
        }
        Found::Checkpoint(kept) if walk.entries() < kept.entries => {
            let expected = format!("the {} entries that {} names", kept.entries, kept.name);
            walk.broken(segment::FOLDER, BrokenKind::Missing, &expected, &format!("{} entries", walk.entries()));
        }
        Found::Nothing | Found::Checkpoint(_) => {}
    }
}

/// Compares the tree over the entries with the roots that `HEAD` and the checkpoint name. Returns the breakage if
/// they differ.
pub(super) fn other_root(
    root_at: &dyn Fn(u64) -> Result<Option<Digest>, OpenError>,
    head: Option<&Head>,
    kept: &Found,
) -> Result<Option<Breakage>, OpenError> {
    let breakage = |file: &str, entries, expected, found: Option<Digest>| {
        Breakage::from(BreakageParts {
            sequence: Sequence::new(entries),
            proof_id: None,
            file: file.to_owned(),
            offset: 0,
            kind: BrokenKind::Tampering,
            expected,
            found: found.map_or_else(|| "entries that cannot be read".to_owned(), |root| format!("root {root}")),
        })
    };
    if let Some(Head { entries, root, .. }) = head {
        let found = root_at(*entries)?;
        if found != Some(*root) {
            let expected = format!("root {root} over {entries} entries, as HEAD names it");
            return Ok(Some(breakage(head::NAME, *entries, expected, found)));
        }
    }
    if let Found::Checkpoint(kept) = kept {
        let (entries, found) = (kept.entries, root_at(kept.entries)?);
        if !found.is_some_and(|root| kept.has_root(&root)) {
            let expected = format!("root {} (base 64) over {entries} entries, as {} names it", kept.root(), kept.name);
            return Ok(Some(breakage(kept.name, entries, expected, found)));
        }
    }
    Ok(None)
}

/// Makes entries durable that no `HEAD` names, because new entries will depend on them and the process that wrote
/// them may have been killed before the sync. They are written again, because the system considers data written after
/// a failed sync.
fn settle(files: &dyn Files, active: &Segment, bytes: &[u8]) -> io::Result<()> {
    let end = usize::try_from(active.known_end()).unwrap_or(usize::MAX);
    active.file.write_at(bytes.get(..end).unwrap_or(bytes), 0)?;
    active.file.sync_data()?;
    files.sync_dir(Path::new(segment::FOLDER))?;
    files.sync_dir(Path::new(""))
}

/// Copies the torn tail of the active segment, then overwrites it with zeros.
fn set_aside(files: &dyn Files, active: &Segment, bytes: &[u8]) -> Result<Recovered, OpenError> {
    let error = |error| OpenError::Io("set a torn tail aside", error);
    let start = usize::try_from(active.known_end()).unwrap_or(usize::MAX);
    let tail = bytes.get(start..).unwrap_or_default();
    let tail = tail.get(..tail.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)).unwrap_or_default();
    files.create_dir(Path::new(RECOVERED)).map_err(error)?;
    let (name, file) = new_copy(files, active.header.number, active.known_end()).map_err(error)?;
    file.write_at(tail, 0).map_err(error)?;
    file.sync_data().map_err(error)?;
    files.sync_dir(Path::new(RECOVERED)).map_err(error)?;
    // Syncs the folder's own name too, before the tail is overwritten.
    files.sync_dir(Path::new("")).map_err(error)?;
    active.file.write_at(&vec![0; tail.len()], active.known_end()).map_err(error)?;
    active.file.sync_data().map_err(error)?;
    Ok(Recovered::new(
        format!("{RECOVERED}/{name}"),
        tail.len(),
        Segment::name(active.header.number),
        active.known_end(),
    ))
}

/// Creates a file for a copy, under a name that does not exist yet.
fn new_copy(files: &dyn Files, number: u32, offset: u64) -> io::Result<(String, Arc<dyn StoreFile>)> {
    for attempt in 0_u32.. {
        let name = format!("{TAIL}{number:010}-{offset}-{attempt}.bin");
        match files.open(&Path::new(RECOVERED).join(&name), OpenMode::Create) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (name, file)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Returns a name that shows the folder is not empty, preferring traces of a store.
pub(super) fn foreign_name(names: &[String]) -> Option<&str> {
    const OURS: [&str; 7] =
        [super::lock::NAME, segment::FOLDER, RECOVERED, "HEAD.next", "CHECKPOINT.next", erase::NAME, "ERASED.next"];
    const TRACES: [&str; 2] = [VIEW, checkpoint::NAME];
    let foreign = |name: &&str| !OURS.contains(name);
    let names = names.iter().map(String::as_str);
    names.clone().find(|name| TRACES.contains(name)).or_else(|| names.into_iter().find(foreign))
}

/// The folder of the index.
pub const VIEW: &str = "view";
