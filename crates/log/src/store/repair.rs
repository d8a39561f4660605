//! Repair of a broken journal: finding how far it is sound, and replacing the store while keeping all of the broken
//! one.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::archive::Past;
use super::checkpoint::{self, Found, Kept};
use super::files::{self, Files, OpenMode, StoreFile, TextFile};
use super::head::{self, Head, Start};
use super::known::Known;
use super::lock;
use super::merkle::BLOCK_LEAVES;
use super::open_error::{OpenError, RECOVERED};
use super::recovery::{self, Survey};
use super::secrets;
use super::segment::{self, StoreId};
use super::walk::{Growth, Visitor, Walk};
use super::witness::Witnesses;
use rulekeep_types::{Breakage, BrokenKind, Digest};

/// The result of inspecting a journal.
pub struct Inspection {
    /// The store's ID; `None` if it cannot be read.
    pub(crate) store: Option<StoreId>,
    /// The first break; `None` if the journal is sound.
    pub(crate) breakage: Option<Breakage>,
    /// Number of entries, from the first on, that witnesses confirm. It may exceed the number of sound entries.
    pub(crate) confirmed: u64,
    /// A witness names other entries than the journal holds: someone rewrote the journal.
    pub(crate) is_contradicted: bool,
    /// Number of sound entries, from the first on.
    pub(crate) entries: u64,
    /// The link of the last sound entry.
    pub(crate) link: Digest,
    /// The root of the tree over the sound entries.
    pub(crate) root: Digest,
}

/// Reads a journal like [`open`](super::open), without changing anything. `index` is what the index knows of the
/// journal, `given` a checkpoint that was kept elsewhere.
pub fn inspect(
    files: &dyn Files,
    visitor: &mut dyn Visitor,
    index: Option<&Known>,
    given: Option<&Kept>,
) -> Result<Inspection, OpenError> {
    let mut survey = Survey::of(files)?;
    let (has_head, head_entries, kept_entries) = (survey.has_head(), survey.head_entries(), survey.kept_entries());
    if recovery::ends_unfinished(&survey.segments, has_head)? {
        survey.segments.pop();
    }
    let view_entries = survey.seen_by(index.map(|index| (index.store, index.entries)));
    let index = index.filter(|index| index.entries == view_entries);
    let given = given.map_or(Found::Nothing, |given| Found::Checkpoint(given.clone()));
    let given_entries = given.entries();
    let Survey { names, head, head_broken, kept, start, before, segments } = survey;
    let known = head_entries.max(view_entries).max(kept_entries).max(given_entries);
    let root_before = before.root();
    let watch = [head_entries, view_entries, kept_entries, given_entries];
    let walk = Walk::starting(visitor, &start, known, &watch).mending();
    let mut walk = walk.growing(Growth::Tree(before), u64::MAX);
    recovery::compare_with_start(&mut walk, &start, root_before);
    if segments.is_empty() {
        let foreign = recovery::foreign_name(&names);
        if let Some(name) = foreign.filter(|name| !has_head && ![recovery::VIEW, checkpoint::NAME].contains(name)) {
            return Err(OpenError::NotAStore(name.to_owned()));
        }
        if has_head || foreign.is_some() {
            walk.broken(segment::FOLDER, BrokenKind::Missing, "the journal's segments", "none");
        }
    }
    recovery::walk_segments(&mut walk, segments, start.segment, &mut |_, _, _, _| {})?;
    walk.end();
    recovery::compare_with_head(&mut walk, head.as_ref(), head_broken);
    recovery::compare_with_view(&mut walk, view_entries);
    recovery::compare_with_checkpoint(&mut walk, &kept);
    recovery::compare_with_checkpoint(&mut walk, &given);
    let past = if start == Start::WHOLE { None } else { Past::open(files, start).ok() };
    let root_at = |entries| match (&past, walk.linked_tree()) {
        (Some(past), Some(tree)) if entries < start.entries => {
            tree.nodes().root(entries, |range| past.leaves(range)).ok()
        }
        _ => walk.root_after(entries),
    };
    let breakage = match walk.breakage().cloned() {
        None => match recovery::other_root(&|entries| Ok(root_at(entries)), head.as_ref(), &kept)? {
            None => recovery::other_root(&|entries| Ok(root_at(entries)), None, &given)?,
            found => found,
        },
        found => found,
    };
    let mut witnesses = Witnesses::default();
    if let Some(Head { entries, link, root, .. }) = &head {
        let has_root = root_at(*entries).is_none_or(|found| found == *root);
        witnesses.say(*entries, walk.link_after(*entries).map(|found| found == *link && has_root));
    }
    for kept in [&kept, &given].into_iter().filter_map(Found::checkpoint) {
        witnesses.say(kept.entries, root_at(kept.entries).map(|root| kept.has_root(&root)));
    }
    if let Some(index) = index {
        witnesses.say(index.entries, walk.link_after(index.entries).map(|link| link == index.link));
        let blocks =
            walk.linked_tree().map_or_else(Vec::new, |tree| tree.nodes().blocks(0, tree.size() / BLOCK_LEAVES));
        let same = blocks.iter().zip(index.whole_nodes()).map(|(found, named)| found == named);
        for (place, is_same) in (1..).zip(same) {
            witnesses.say(place * BLOCK_LEAVES, Some(is_same));
        }
    }
    let (store, link) = (walk.store(), walk.sound_link());
    let tree = walk.into_tree().unwrap_or_default();
    let (entries, root) = (tree.size(), tree.root());
    let (confirmed, is_contradicted) = (witnesses.confirmed(), witnesses.contradict());
    Ok(Inspection { store, breakage, confirmed, is_contradicted, entries, link, root })
}

/// The replacement of the store in the folder by the one made in [`NEXT`]. The old store is kept in a folder of its
/// own.
///
/// A file records the work from before the first step until after the last one. Each step can be repeated, so after a
/// crash the exchange continues where it stopped.
pub struct Exchange {
    /// The old store is moved aside completely; the new one is being moved into its place.
    is_aside: bool,
    /// Name of the folder in which the old store is kept.
    kept: String,
    /// Text for the caller who started the repair.
    pub(crate) report: String,
}

impl Exchange {
    /// Prepares an exchange. `kept` is the name of a folder that does not exist.
    pub(crate) fn new(kept: String, report: String) -> Self {
        Self { is_aside: false, kept, report }
    }

    /// Returns the exchange that a crash interrupted, if any.
    pub(crate) fn unfinished(files: &dyn Files) -> io::Result<Option<Self>> {
        let lines = match files::read_text(files, NAME)? {
            TextFile::Missing => return Ok(None),
            TextFile::Malformed => String::new(),
            TextFile::Whole(lines) => lines,
        };
        let read = || {
            let mut parts = lines.splitn(3, '\n');
            let (stage, kept, report) = (parts.next()?, parts.next()?, parts.next()?);
            let is_known = [ASIDE, PLACE].contains(&stage) && is_kept(kept);
            let (is_aside, kept, report) = (stage == PLACE, kept.to_owned(), report.to_owned());
            is_known.then_some(Self { is_aside, kept, report })
        };
        read().map(Some).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "REPAIR is invalid"))
    }

    /// Carries out the remaining steps and returns the report.
    pub(crate) fn finish(mut self, files: &dyn Files) -> io::Result<String> {
        if !self.is_aside {
            self.write(files)?;
            self.move_aside(files)?;
            self.is_aside = true;
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
            if [segment::FOLDER, RECOVERED].contains(&name.as_str()) {
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
        let stage = if self.is_aside { PLACE } else { ASIDE };
        files::replace_text(files, NAME, &format!("{stage}\n{}\n{}", self.kept, self.report))
    }
}

fn move_all(files: &dyn Files, from: &Path, to: &Path) -> io::Result<()> {
    files.list(from)?.iter().try_for_each(|name| files.rename(&from.join(name), &to.join(name)))
}

/// Returns whether a name is that of a folder in which a broken store is kept.
fn is_kept(name: &str) -> bool {
    name.strip_prefix(KEPT).is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'))
}

/// Returns a folder name for a store found broken at `time`, which consists of letters and digits. Avoids `names`.
pub fn kept_name(time: &str, names: &[String]) -> String {
    let first = format!("{KEPT}{time}");
    let later = (2_u32..).map(|count| format!("{first}-{count}"));
    std::iter::once(first.clone()).chain(later).find(|name| !names.contains(name)).unwrap_or(first)
}

/// The files below a subfolder.
pub struct Below {
    files: Arc<dyn Files>,
    folder: PathBuf,
}

impl Below {
    pub(crate) fn new(files: Arc<dyn Files>, folder: impl Into<PathBuf>) -> Self {
        Self { files, folder: folder.into() }
    }

    fn path(&self, path: &Path) -> PathBuf {
        // Joining an empty path would add a trailing slash.
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

    fn check_place(&self) -> io::Result<()> {
        self.files.check_place()
    }
}

/// Deletes the remains of a new store whose creation was interrupted.
pub fn clear_next(files: &dyn Files) -> io::Result<()> {
    for folder in [Path::new(NEXT).join(segment::FOLDER), PathBuf::from(NEXT)] {
        for name in files.list(&folder)?.iter().filter(|name| *name != segment::FOLDER) {
            files.remove(&folder.join(name))?;
        }
    }
    Ok(())
}

/// The file that records a repair in progress.
pub(crate) const NAME: &str = "REPAIR";
const MARK_NEXT: &str = "REPAIR.next";
/// The folder in which the new store is made.
pub const NEXT: &str = "repair.next";
/// Prefix of the folders in which broken stores are kept.
const KEPT: &str = "damaged-";
/// Stage: the broken store is being moved aside.
const ASIDE: &str = "aside";
/// Stage: the new store is being moved into its place.
const PLACE: &str = "place";
