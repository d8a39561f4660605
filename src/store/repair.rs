//! A broken journal: how far it holds, and putting another store in its place,
//! so that all of the broken one is kept as it is.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::archive;
use super::checkpoint::{self, Found};
use super::files::{self, Files, OpenMode, StoreFile};
use super::frame::Frame;
use super::head::{self, Start};
use super::lock;
use super::merkle::Frontier;
use super::recovery::{self, OpenError};
use super::secrets;
use super::segment::{self, StoreId};
use super::walk::{Finding, Visitor, Walk};
use crate::model::{Breakage, BrokenKind, Digest};

/// What was found of a journal.
pub(crate) struct Inspection {
    /// None where nothing says it.
    pub(crate) store: Option<StoreId>,
    /// Where it breaks; `None` for one that holds.
    pub(crate) breakage: Option<Breakage>,
    /// No entry contradicts another, and yet they are not what `HEAD` or `CHECKPOINT` say: which are
    /// others than they were cannot be told.
    pub(crate) is_other: bool,
    /// How many entries hold, from the first on.
    pub(crate) entries: u64,
    /// The link of the last of them.
    pub(crate) link: Digest,
    /// The root of the tree over them.
    pub(crate) root: Digest,
}

/// Reads a journal as [`open`](super::open) does, and changes nothing. `view` is how many entries the view says
/// it has applied.
pub(crate) fn inspect(
    files: &dyn Files,
    visitor: &mut dyn Visitor,
    view: Option<(StoreId, u64)>,
) -> Result<Inspection, OpenError> {
    let names = files.list(Path::new("")).map_err(|error| OpenError::Io("list the folder", error))?;
    let (head, head_broken) = recovery::read_head(files)?;
    let kept = checkpoint::read(files).map_err(|error| OpenError::Io("read CHECKPOINT", error))?;
    let kept_entries = if let Found::Checkpoint(kept) = &kept { kept.entries } else { 0 };
    let head_entries = head.as_ref().map_or(0, |head| head.entries);
    let start = head.as_ref().and_then(|head| head.start).unwrap_or(Start::WHOLE);
    let before = archive::tree(files, &start)?;
    let mut segments = recovery::load(files)?;
    segments.retain(|source| source.number >= start.segment);
    if recovery::ends_unfinished(&segments, head.is_some() || head_broken)? {
        segments.pop();
    }
    let first_store = segments.iter().find_map(|source| recovery::header_of(&*source.file)).map(|header| header.store);
    let view_entries = view.filter(|(store, _)| Some(*store) == first_store).map_or(0, |(_, entries)| entries);

    let mut good = Good::new(visitor, &start, before.frontier(), &[head_entries, kept_entries]);
    let known = head_entries.max(view_entries).max(kept_entries);
    let mut walk = Walk::starting(&mut good, &start, known, &[head_entries]);
    recovery::compare_with_start(&mut walk, &start, before.root());
    let last_number = segments.last().map(|source| source.number);
    if last_number.is_none() {
        if let Some(name) = recovery::foreign_name(&names).filter(|_| head.is_none() && !head_broken)
            && ![recovery::VIEW, checkpoint::NAME].contains(&name)
        {
            return Err(OpenError::NotAStore(name.to_owned()));
        }
        if head.is_some() || head_broken || recovery::foreign_name(&names).is_some() {
            walk.broken(segment::FOLDER, BrokenKind::Missing, "the journal's segments", "none");
        }
    }
    let mut expected = start.segment;
    for source in segments {
        for missing in expected..source.number {
            walk.missing_segment(missing);
        }
        expected = source.number + 1;
        let bytes = source.file.read_all().map_err(|error| OpenError::Io("read a segment", error))?;
        walk.segment(source.number, &bytes, Some(source.number) == last_number);
    }
    walk.end();
    let holds_by_itself = walk.breakage().is_none();
    recovery::compare_with_head(&mut walk, head.as_ref(), head_broken);
    recovery::compare_with_view(&mut walk, view_entries);
    recovery::compare_with_checkpoint(&mut walk, &kept);
    let (store, found) = (walk.store(), walk.breakage().cloned());
    let breakage = match found {
        None => recovery::other_root(&|entries| Ok(good.root_at(entries)), head.as_ref(), &kept)?,
        found => found,
    };
    let is_tampering = breakage.as_ref().is_some_and(|breakage| breakage.kind == BrokenKind::Tampering);
    Ok(Inspection {
        store,
        breakage,
        is_other: holds_by_itself && is_tampering,
        entries: good.frontier.size(),
        link: good.link,
        root: good.frontier.root(),
    })
}

/// Follows the entries as long as they hold.
struct Good<'a> {
    visitor: &'a mut dyn Visitor,
    is_broken: bool,
    frontier: Frontier,
    link: Digest,
    /// The root after so many entries.
    roots: Vec<(u64, Option<Digest>)>,
}

impl<'a> Good<'a> {
    fn new(visitor: &'a mut dyn Visitor, start: &Start, frontier: &Frontier, watch: &[u64]) -> Self {
        let roots = watch.iter().map(|&size| (size, (size == frontier.size()).then(|| frontier.root()))).collect();
        Self { visitor, is_broken: false, frontier: frontier.clone(), link: start.link, roots }
    }

    fn root_at(&self, entries: u64) -> Option<Digest> {
        self.roots.iter().find(|(size, _)| *size == entries).and_then(|(_, root)| *root)
    }
}

impl Visitor for Good<'_> {
    fn visit(&mut self, frame: &Frame<'_>, digest: &Digest) -> Option<Finding> {
        let finding = self.visitor.visit(frame, digest);
        if finding.is_none() && !self.is_broken {
            self.frontier.push(digest);
            self.link = frame.link;
            for (size, root) in &mut self.roots {
                if *size == self.frontier.size() {
                    *root = Some(self.frontier.root());
                }
            }
        }
        finding
    }

    fn begins(&mut self, start: &Start) {
        self.visitor.begins(start);
    }

    fn ends(&mut self) -> Option<Finding> {
        self.visitor.ends()
    }

    fn broken(&mut self) {
        self.is_broken = true;
        self.visitor.broken();
    }
}

/// Puts the store that was made in [`NEXT`] in the place of the one in the folder,
/// which is kept in a folder of its own. What is to be done stands in a file from
/// before the first step until behind the last one, and each step can be taken
/// again: so after a crash it is gone on with.
pub(crate) struct Exchange {
    stage: Stage,
    /// Where the broken one is kept.
    kept: String,
    /// For whoever asked for it.
    pub(crate) report: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The broken one is being moved aside.
    Aside,
    /// All of it is; the new one is being moved into its place.
    Place,
}

impl Exchange {
    /// One that is to begin. `kept` is the name of a folder that is not there.
    pub(crate) fn new(kept: String, report: String) -> Self {
        Self { stage: Stage::Aside, kept, report }
    }

    /// One that a crash has cut short.
    pub(crate) fn unfinished(files: &dyn Files) -> io::Result<Option<Self>> {
        let content = match files.open(Path::new(NAME), OpenMode::Read) {
            Ok(file) => file.read_all()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let read = || {
            let text = std::str::from_utf8(&content).ok()?;
            let (lines, crc) = text.strip_suffix('\n')?.rsplit_once('\n')?;
            let mut parts = lines.splitn(3, '\n');
            let (stage, kept, report) = (parts.next()?, parts.next()?, parts.next()?);
            let stage = match stage {
                ASIDE => Stage::Aside,
                PLACE => Stage::Place,
                _ => return None,
            };
            let is_whole = crc == checksum(lines) && is_kept(kept);
            is_whole.then(|| Self { stage, kept: kept.to_owned(), report: report.to_owned() })
        };
        read().map(Some).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "REPAIR does not hold"))
    }

    /// Does all that is left to do.
    pub(crate) fn finish(mut self, files: &dyn Files) -> io::Result<String> {
        if self.stage == Stage::Aside {
            self.write(files)?;
            self.move_aside(files)?;
            self.stage = Stage::Place;
            self.write(files)?;
        }
        let next = Path::new(NEXT);
        let journal = Path::new(segment::FOLDER);
        files.create_dir(journal)?;
        move_all(files, &next.join(journal), journal)?;
        files.sync_dir(journal)?;
        for name in files.list(next)?.iter().filter(|name| [head::NAME, secrets::NAME].contains(&name.as_str())) {
            files.rename(&next.join(name), Path::new(name))?;
        }
        files.sync_dir(Path::new(""))?;
        files.remove(Path::new(NAME))?;
        files.sync_dir(Path::new(""))?;
        Ok(self.report)
    }

    fn move_aside(&self, files: &dyn Files) -> io::Result<()> {
        let kept = Path::new(&self.kept);
        let mut synced = vec![kept.to_owned(), PathBuf::new()];
        files.create_dir(kept)?;
        for name in files.list(Path::new(""))? {
            let stays = [NAME, MARK_NEXT, NEXT, lock::NAME].contains(&name.as_str()) || is_kept(&name);
            let (from, to) = (PathBuf::from(&name), kept.join(&name));
            if stays {
                continue;
            }
            if [segment::FOLDER, recovery::RECOVERED].contains(&name.as_str()) {
                files.create_dir(&to)?;
                move_all(files, &from, &to)?;
                synced.extend([to, from]);
            } else {
                files.rename(&from, &to)?;
            }
        }
        synced.iter().try_for_each(|folder| files.sync_dir(folder))
    }

    fn write(&self, files: &dyn Files) -> io::Result<()> {
        let stage = if self.stage == Stage::Aside { ASIDE } else { PLACE };
        let lines = format!("{stage}\n{}\n{}", self.kept, self.report);
        let content = format!("{lines}\n{}\n", checksum(&lines));
        files::replace(files, Path::new(NAME), Path::new(MARK_NEXT), content.as_bytes())
    }
}

fn move_all(files: &dyn Files, from: &Path, to: &Path) -> io::Result<()> {
    files.list(from)?.iter().try_for_each(|name| files.rename(&from.join(name), &to.join(name)))
}

fn checksum(lines: &str) -> String {
    format!("crc32:{:08x}", crc32fast::hash(lines.as_bytes()))
}

/// Whether a name is that of a folder in which a broken store is kept.
fn is_kept(name: &str) -> bool {
    name.strip_prefix(KEPT).is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'))
}

/// The name of the folder for a store that is found broken at `time`, which is letters and digits; not one of `names`.
pub(crate) fn kept_name(time: &str, names: &[String]) -> String {
    let first = format!("{KEPT}{time}");
    let later = (2_u32..).map(|count| format!("{first}-{count}"));
    std::iter::once(first.clone()).chain(later).find(|name| !names.contains(name)).unwrap_or(first)
}

/// The files below a folder of others.
pub(crate) struct Below {
    files: Arc<dyn Files>,
    folder: PathBuf,
}

impl Below {
    pub(crate) fn new(files: Arc<dyn Files>, folder: impl Into<PathBuf>) -> Self {
        Self { files, folder: folder.into() }
    }

    fn path(&self, path: &Path) -> PathBuf {
        // Joined with nothing a path would end in a slash.
        if path.as_os_str().is_empty() { self.folder.clone() } else { self.folder.join(path) }
    }
}

impl Files for Below {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.files.create_dir(&self.path(path))
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn StoreFile>> {
        self.files.open(&self.path(path), mode)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.files.list(&self.path(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.files.rename(&self.path(from), &self.path(to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.files.remove(&self.path(path))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.files.sync_dir(&self.path(path))
    }
}

/// Takes away what is left of a new store whose making was cut short.
pub(crate) fn clear_next(files: &dyn Files) -> io::Result<()> {
    for folder in [Path::new(NEXT).join(segment::FOLDER), PathBuf::from(NEXT)] {
        for name in files.list(&folder)?.iter().filter(|name| *name != segment::FOLDER) {
            files.remove(&folder.join(name))?;
        }
    }
    Ok(())
}

/// The file that says that a repair is under way.
pub(super) const NAME: &str = "REPAIR";
const MARK_NEXT: &str = "REPAIR.next";
/// The folder of the new store.
pub(crate) const NEXT: &str = "repair.next";
/// What the names of the folders start with in which broken stores are kept.
const KEPT: &str = "damaged-";
const ASIDE: &str = "aside";
const PLACE: &str = "place";
