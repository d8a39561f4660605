//! A broken journal: how far it holds, and putting another store in its place,
//! so that all of the broken one is kept as it is.

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
use super::recovery::{self, OpenError, Survey};
use super::secrets;
use super::segment::{self, StoreId};
use super::walk::{Growth, Visitor, Walk};
use super::witness::Witnesses;
use crate::model::{Breakage, BrokenKind, Digest};

/// What was found of a journal.
pub(crate) struct Inspection {
    /// None where nothing says it.
    pub(crate) store: Option<StoreId>,
    /// Where it breaks; `None` for one that holds.
    pub(crate) breakage: Option<Breakage>,
    /// How many entries witnesses confirm, from the first on; there may be more of them than hold.
    pub(crate) confirmed: u64,
    /// A witness names other entries than there are: somebody wrote the journal anew.
    pub(crate) is_contradicted: bool,
    /// How many entries hold, from the first on.
    pub(crate) entries: u64,
    /// The link of the last of them.
    pub(crate) link: Digest,
    /// The root of the tree over them.
    pub(crate) root: Digest,
}

/// Reads a journal as [`open`](super::open) does, and changes nothing. `index` is what the index says of the journal,
/// `given` a checkpoint of it that was kept elsewhere.
pub(crate) fn inspect(
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
    recovery::walk_segments(&mut walk, segments, start.segment, None, &mut |_, _, _, _| {})?;
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

/// Puts the store that was made in [`NEXT`] in the place of the one in the folder,
/// which is kept in a folder of its own. What is to be done stands in a file from
/// before the first step until behind the last one, and each step can be taken
/// again: so after a crash it is gone on with.
pub(crate) struct Exchange {
    /// All of the broken one is moved aside; the new one is being moved into its place.
    is_aside: bool,
    /// Where the broken one is kept.
    kept: String,
    /// For whoever asked for it.
    pub(crate) report: String,
}

impl Exchange {
    /// One that is to begin. `kept` is the name of a folder that is not there.
    pub(crate) fn new(kept: String, report: String) -> Self {
        Self { is_aside: false, kept, report }
    }

    /// One that a crash has cut short.
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
        read().map(Some).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "REPAIR does not hold"))
    }

    /// Does all that is left to do.
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
        let stage = if self.is_aside { PLACE } else { ASIDE };
        files::replace_text(files, NAME, &format!("{stage}\n{}\n{}", self.kept, self.report))
    }
}

fn move_all(files: &dyn Files, from: &Path, to: &Path) -> io::Result<()> {
    files.list(from)?.iter().try_for_each(|name| files.rename(&from.join(name), &to.join(name)))
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

    fn check_place(&self) -> io::Result<()> {
        self.files.check_place()
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
/// The broken one is being moved aside.
const ASIDE: &str = "aside";
/// The new one is being moved into its place.
const PLACE: &str = "place";
