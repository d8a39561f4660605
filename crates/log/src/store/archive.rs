//! Archives: the first entries of a journal moved to a file of their own. An archive holds sealed segments unchanged,
//! with everything needed to verify them from the file alone.
//!
//! | part | content |
//! |---|---|
//! | 8 bytes | `RKarch01` |
//! | segments | for each segment its `.rks` file, then its `.rke` file, as they were in the journal |
//! | manifest | one line of JSON, see [`Manifest`] |
//! | note | a signed checkpoint of the log up to the last entry here; empty without a key |
//! | 8, 4, 4 bytes | offset of the manifest; lengths of manifest and note; little-endian |
//! | 32 bytes | SHA-256 over everything before |
//! | 8 bytes | `RKarch01` |
//!
//! The digests of the archived entries, 32 bytes each, stay beside the journal in `LEAVES`, because the tree over all
//! entries needs them. `LEAVES` is bound by the root that `HEAD` and the archive entry name.

use std::io;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::checkpoint::Kept;
use super::erase;
use super::files::{self, Files, OpenMode, StoreFile};
use super::frame::u32_at;
use super::head::Start;
use super::journal::Reader;
use super::merkle::Frontier;
use super::open_error::OpenError;
use super::sealed::{self, SealedFile};
use super::segment;
use super::tree::Tree;
use super::walk::{Finding, Growth, Visitor, Walk};
use rulekeep_types::{BrokenKind, Digest, Sequence, Timestamp};

/// The description of an archive's content, stored in the archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Manifest {
    format: u32,
    /// The store's ID in hex.
    pub(crate) store: String,
    /// The sequence of the first entry.
    pub(crate) from: u64,
    /// Number of entries in the log up to and including the last one here.
    pub(crate) entries: u64,
    /// The link of the entry before the first one here.
    pub(crate) previous_link: Digest,
    /// The link of the last entry.
    pub(crate) link: Digest,
    /// The hash of the last proof record before the first entry here.
    pub(crate) previous_hash: Digest,
    /// The hash of the last proof record.
    pub(crate) head_hash: Digest,
    /// Number of proof records in the archive.
    pub(crate) records: u64,
    /// The roots of the complete subtrees over the entries before the first one here, largest first.
    edge: Vec<Digest>,
    /// The root of the tree over all entries up to the last one here.
    pub(crate) root: Digest,
    /// The time of the last entry.
    pub(crate) until: Timestamp,
    segments: Vec<SegmentSizes>,
}

/// Sizes of a segment's two files, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SegmentSizes {
    number: u32,
    frames: u64,
    evidence: u64,
}

/// Totals that a visitor gathered over the entries of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    pub(crate) records: u64,
    pub(crate) head_hash: Digest,
    pub(crate) until: Timestamp,
}

/// An archive that was verified.
#[derive(Debug, Clone)]
pub struct Archived {
    pub(crate) manifest: Manifest,
    /// The root over the entries before the first one here.
    pub(crate) root_before: Digest,
    /// The signed checkpoint at the end of the archive. Its signature has not been verified.
    pub(crate) note: Option<String>,
    /// SHA-256 of the whole file.
    pub(crate) sha256: Digest,
}

/// The reason an archive could not be written or did not verify.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("expected {expected}, found {found}")]
    Broken { expected: String, found: String },
}

/// Sealed segments at the front of a journal that are about to be archived.
pub struct Archiving {
    start: Start,
    edge: Vec<Digest>,
    segments: Vec<u32>,
    /// Number of entries in the log up to and including the last archived one.
    pub(crate) entries: u64,
    link: Digest,
    pub(crate) root: Digest,
}

impl Archiving {
    /// Returns the last entry of each sealed segment that could be archived, in order.
    pub(crate) fn candidates(reader: &Reader) -> Vec<Sequence> {
        let (_, segments) = reader.current();
        let pairs = segments.windows(2).map_while(|pair| match pair {
            [sealed, next] if sealed.is_sealed => Some(next),
            _ => None,
        });
        pairs.map(|next| Sequence::new(next.header.first.get().saturating_sub(1))).collect()
    }

    /// Verifies the first `count` segments and stores the digests of their entries in `LEAVES`.
    pub(crate) fn survey(
        files: &dyn Files,
        reader: &Reader,
        count: usize,
        visitor: &mut dyn Visitor,
    ) -> Result<Self, ArchiveError> {
        // Holds the lock so that no segment is sealed or erased while it is read.
        let _turn = reader.rewriting();
        let start = reader.start();
        let before = tree(files, &start).map_err(io::Error::other)?;
        let edge = before.frontier().edge().to_vec();
        let file = files::open_or_make(files, Path::new(LEAVES), OpenMode::Create)?;
        let mut walk = Walk::starting(visitor, &start, 0, &[]).growing(Growth::Tree(before), u64::MAX);
        let (mut numbers, mut leaves) = (Vec::new(), Vec::new());
        for segment in reader.sealed().iter().take(count) {
            let bytes = segment.file.read_stored()?;
            walk.segment(segment.header.number, &bytes, false);
            if let Some(breakage) = walk.breakage() {
                return Err(broken("a valid journal", &breakage.to_string()));
            }
            erase::each_frame(&bytes, &mut |_, frame| leaves.extend_from_slice(frame.digest().as_bytes()))?;
            numbers.push(segment.header.number);
        }
        let (entries, link) = (walk.entries(), walk.link().unwrap_or(Digest::ZERO));
        file.write_at(&leaves, start.entries * LEAF_BYTES as u64)?;
        file.sync_data()?;
        files.sync_dir(Path::new(""))?;
        let root = walk.into_tree().unwrap_or_default().root();
        Ok(Self { start, edge, segments: numbers, entries, link, root })
    }

    /// Writes the archive under a name that does not exist yet, atomically: the file is complete or absent.
    pub fn write(
        &self,
        files: &dyn Files,
        store: String,
        counted: &Counted,
        note: Option<&str>,
        (to, name): (&dyn Files, &Path),
    ) -> io::Result<()> {
        if to.open(name, OpenMode::Read).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let next = name.with_extension("next");
        let file = files::open_or_make(to, &next, OpenMode::Create)?;
        file.set_len(0)?;
        let mut out = Out { file: &*file, at: 0, sha256: Sha256::new() };
        out.write(MAGIC)?;
        let mut segments = Vec::new();
        for number in &self.segments {
            let frames = out.copy(&*files.open(&sealed::frames_path(*number), OpenMode::Read)?)?;
            let evidence = out.copy(&*files.open(&sealed::evidence_path(*number), OpenMode::Read)?)?;
            segments.push(SegmentSizes { number: *number, frames, evidence });
        }
        let manifest = Manifest {
            format: FORMAT,
            store,
            from: self.start.entries,
            entries: self.entries,
            previous_link: self.start.link,
            link: self.link,
            previous_hash: self.start.head_hash,
            head_hash: counted.head_hash,
            records: counted.records,
            edge: self.edge.clone(),
            root: self.root,
            until: counted.until,
            segments,
        };
        let line = format!("{}\n", serde_json::to_string(&manifest)?);
        let (at, note) = (out.at, note.unwrap_or_default());
        out.write(line.as_bytes())?;
        out.write(note.as_bytes())?;
        out.write(&at.to_le_bytes())?;
        for length in [line.len(), note.len()] {
            out.write(&u32::try_from(length).map_err(io::Error::other)?.to_le_bytes())?;
        }
        let digest = out.sha256.clone().finalize();
        out.write(&digest)?;
        out.write(MAGIC)?;
        file.sync_data()?;
        to.rename(&next, name)?;
        to.sync_dir(Path::new(""))
    }

    /// Returns the beginning of the journal once these segments are gone.
    pub(crate) fn start_behind(&self, head_hash: Digest) -> Start {
        let segment = self.segments.last().map_or(self.start.segment, |last| last + 1);
        Start { segment, entries: self.entries, link: self.link, root: self.root, head_hash }
    }

    /// The sequence of the first archived entry.
    pub(crate) fn from(&self) -> u64 {
        self.start.entries
    }
}

/// Verifies an archive from its bytes alone. `counted` reads the totals from `visitor` after the last entry.
pub fn verify<V: Visitor>(
    file: &Arc<dyn StoreFile>,
    visitor: &mut V,
    counted: impl Fn(&V) -> Counted,
) -> Result<Archived, ArchiveError> {
    let (manifest, note, content, sha256) = envelope(file)?;
    let edge = Frontier::of(manifest.from, manifest.edge.clone())
        .ok_or_else(|| broken("as many subtrees as the entries before it have", "others"))?;
    let root_before = edge.root();
    let first = manifest.segments.first().map_or(0, |segment| segment.number);
    let (entries, link, head_hash) = (manifest.from, manifest.previous_link, manifest.previous_hash);
    let start = Start { segment: first, entries, link, root: root_before, head_hash };
    if manifest.from == 0 && (link, head_hash) != (Digest::ZERO, Digest::ZERO) {
        return Err(broken("nothing before the first entry", "a link"));
    }
    let edge = Growth::Tree(Tree::from_edge(edge));
    let mut walk = Walk::starting(visitor, &start, 0, &[]).growing(edge, u64::MAX);
    let mut at = MAGIC.len() as u64;
    for SegmentSizes { number, frames, evidence } in &manifest.segments {
        let part = |start: u64, len: u64| Arc::new(Slice { file: Arc::clone(file), start, len }) as Arc<dyn StoreFile>;
        let sealed = SealedFile::of(*number, part(at, *frames), part(at + frames, *evidence))?;
        at += frames + evidence;
        let bytes = sealed.ok_or_else(|| broken("a sealed segment", "other bytes"))?;
        walk.segment(*number, &(&bytes as &dyn StoreFile).read_all()?, false);
        if let Some(breakage) = walk.breakage() {
            return Err(broken("valid entries", &breakage.to_string()));
        }
    }
    if at != content {
        return Err(broken("segments up to the manifest", "others"));
    }
    let found = (walk.entries(), walk.link(), walk.store().map(|store| store.to_string()));
    if found != (manifest.entries, Some(manifest.link), Some(manifest.store.clone())) {
        return Err(broken("the entries, the link and the store of the manifest", "others"));
    }
    let (root, counted) = (walk.into_tree().unwrap_or_default().root(), counted(visitor));
    let Manifest { records, head_hash, until, .. } = manifest;
    if root != manifest.root || counted != (Counted { records, head_hash, until }) {
        return Err(broken("the root, the records and the last hash of the manifest", "others"));
    }
    if let Some(note) = &note {
        let fits =
            Kept::parse(note.as_bytes()).is_some_and(|kept| kept.entries == manifest.entries && kept.has_root(&root));
        if !fits {
            return Err(broken("a checkpoint of these entries", "another one"));
        }
    }
    Ok(Archived { manifest, root_before, note, sha256 })
}

/// Returns the manifest, the note, the offset at which the segments end, and the SHA-256 of the whole file.
fn envelope(file: &Arc<dyn StoreFile>) -> Result<(Manifest, Option<String>, u64, Digest), ArchiveError> {
    let not_one = || broken("an archive", "bytes that are not an archive, or only a part of one");
    let len = file.len()?;
    let end = len.checked_sub(TRAILER_BYTES as u64).filter(|end| *end >= MAGIC.len() as u64).ok_or_else(not_one)?;
    let mut trailer = [0; TRAILER_BYTES];
    let mut magic = [0; MAGIC.len()];
    if file.read_at(&mut trailer, end)? < trailer.len() || file.read_at(&mut magic, 0)? < magic.len() {
        return Err(not_one());
    }
    let (lengths, rest) = trailer.split_at(16);
    let (digest, last) = rest.split_at(32);
    if magic != *MAGIC || last != MAGIC {
        return Err(not_one());
    }
    let mut sha256 = hash(&**file, len - 40)?;
    let found = sha256.clone().finalize();
    if found[..] != *digest {
        return Err(broken(&format!("SHA-256 {}", hex::encode(digest)), &hex::encode(found)));
    }
    sha256.update(rest);
    let at = lengths.first_chunk().map_or(0, |at| u64::from_le_bytes(*at));
    let [manifest, note] = [8, 12].map(|at| u64::from(u32_at(lengths, at)));
    let is_whole = manifest + note <= MOST_TEXT && at.checked_add(manifest + note) == Some(end);
    if !is_whole {
        return Err(not_one());
    }
    let mut text = vec![0; usize::try_from(manifest + note).map_err(io::Error::other)?];
    file.read_at(&mut text, at)?;
    let (line, note) = text.split_at(usize::try_from(manifest).map_err(io::Error::other)?);
    let manifest: Manifest =
        serde_json::from_slice(line).map_err(|error| broken("a manifest", &format!("one that is none: {error}")))?;
    if manifest.format != FORMAT {
        return Err(broken(&format!("format {FORMAT}"), &manifest.format.to_string()));
    }
    let is_sane = |sizes: &SegmentSizes| sizes.frames <= len && sizes.evidence <= len;
    if !manifest.segments.iter().all(is_sane) {
        return Err(not_one());
    }
    let note = String::from_utf8(note.to_vec()).map_err(|_| broken("a note", "bytes that are no text"))?;
    Ok((manifest, Some(note).filter(|note| !note.is_empty()), at, Digest::new(sha256.finalize().into())))
}

fn hash(file: &dyn StoreFile, until: u64) -> io::Result<Sha256> {
    let mut sha256 = Sha256::new();
    each_chunk(file, until, &mut |chunk| {
        sha256.update(chunk);
        Ok(())
    })?;
    Ok(sha256)
}

/// Passes the first `until` bytes of a file to `take`, in chunks.
fn each_chunk(file: &dyn StoreFile, until: u64, take: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    let mut at = 0;
    while at < until {
        let most = usize::try_from(until - at).unwrap_or(CHUNK).min(CHUNK);
        let read = file.read_at(buffer.get_mut(..most).unwrap_or_default(), at)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        take(buffer.get(..read).unwrap_or_default())?;
        at += read as u64;
    }
    Ok(())
}

/// A file being written from front to back, with a running hash.
struct Out<'a> {
    file: &'a dyn StoreFile,
    at: u64,
    sha256: Sha256,
}

impl Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(bytes, self.at)?;
        self.sha256.update(bytes);
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn copy(&mut self, from: &dyn StoreFile) -> io::Result<u64> {
        let len = from.len()?;
        each_chunk(from, len, &mut |chunk| self.write(chunk))?;
        Ok(len)
    }
}

/// A part of a file, read as a file of its own.
struct Slice {
    file: Arc<dyn StoreFile>,
    start: u64,
    len: u64,
}

impl StoreFile for Slice {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX).min(buffer.len());
        self.file.read_at(buffer.get_mut(..left).unwrap_or_default(), self.start.saturating_add(offset))
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.len)
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
}

/// The part of the archived entries that stays with the journal: their digests.
pub(super) struct Past {
    pub(super) start: Start,
    leaves: Arc<dyn StoreFile>,
}

impl Past {
    pub(crate) fn open(files: &dyn Files, start: Start) -> io::Result<Self> {
        Ok(Self { start, leaves: files.open(Path::new(LEAVES), OpenMode::Read)? })
    }

    /// Returns the digests of a range of entries; fewer if some cannot be read.
    pub(super) fn leaves(&self, range: std::ops::Range<u64>) -> io::Result<Vec<Digest>> {
        let count = usize::try_from(range.end.saturating_sub(range.start)).map_err(io::Error::other)?;
        let mut bytes = vec![0; count.saturating_mul(LEAF_BYTES)];
        let read = self.leaves.read_at(&mut bytes, range.start * LEAF_BYTES as u64)?;
        bytes.truncate(read);
        Ok(digests(&bytes).collect())
    }

    /// Builds the tree over the archived entries; a smaller one if digests are missing.
    pub(super) fn tree(&self) -> io::Result<Tree> {
        let mut tree = Tree::default();
        while tree.size() < self.start.entries {
            let until = self.start.entries.min(tree.size() + (CHUNK / LEAF_BYTES) as u64);
            let leaves = self.leaves(tree.size()..until)?;
            if leaves.is_empty() {
                break;
            }
            for leaf in &leaves {
                tree.push(leaf);
            }
        }
        Ok(tree)
    }
}

/// Returns the tree over the entries before the first one in the journal; a smaller one if `LEAVES` lacks some.
pub(super) fn tree(files: &dyn Files, start: &Start) -> Result<Tree, OpenError> {
    if *start == Start::WHOLE {
        return Ok(Tree::default());
    }
    let error = |error| OpenError::Io("read LEAVES", error);
    let past = match Past::open(files, *start) {
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(Tree::default()),
        opened => opened.map_err(error)?,
    };
    past.tree().map_err(error)
}

/// Compares the tree of `LEAVES` with the root in `HEAD`. Returns the difference, if any.
pub(super) fn other_start(start: &Start, root: Digest) -> Option<Finding> {
    (*start != Start::WHOLE && root != start.root).then(|| Finding {
        proof_id: None,
        kind: BrokenKind::Damage,
        expected: format!("the digests of {} archived entries, of root {}", start.entries, start.root),
        found: format!("others, of root {root}"),
    })
}

/// Forgets the segments that are archived by now and deletes their files.
pub fn remove_archived(files: &dyn Files, reader: &Reader) -> io::Result<()> {
    let _turn = reader.rewriting();
    reader.forget_archived();
    remove_before(files, &reader.start())
}

/// Deletes all files left of the segments before the first one, even if only one of a pair is left.
pub(super) fn remove_before(files: &dyn Files, start: &Start) -> io::Result<()> {
    if *start == Start::WHOLE {
        return Ok(());
    }
    let folder = Path::new(segment::FOLDER);
    let number = |name: &str| name.split_once('.').filter(|(digits, _)| digits.len() == 10)?.0.parse::<u32>().ok();
    let mut names = files.list(folder)?;
    names.retain(|name| number(name).is_some_and(|number| number < start.segment));
    if names.is_empty() {
        return Ok(());
    }
    names.iter().try_for_each(|name| files.remove(&folder.join(name)))?;
    files.sync_dir(folder)
}

fn digests(bytes: &[u8]) -> impl Iterator<Item = Digest> + '_ {
    bytes.chunks_exact(LEAF_BYTES).filter_map(|leaf| leaf.try_into().ok().map(Digest::new))
}

fn broken(expected: &str, found: &str) -> ArchiveError {
    ArchiveError::Broken { expected: expected.to_owned(), found: found.to_owned() }
}

/// The file beside the journal that holds the digests of archived entries.
pub(super) const LEAVES: &str = "LEAVES";
const LEAF_BYTES: usize = 32;
const MAGIC: &[u8; 8] = b"RKarch01";
const FORMAT: u32 = 1;
const TRAILER_BYTES: usize = 16 + 32 + 8;
/// Largest size of manifest and note together, in bytes; larger claims are treated as forged.
const MOST_TEXT: u64 = 64 << 20;
const CHUNK: usize = 1 << 20;
