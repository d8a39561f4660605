//! The journal: a sequence of segments with one writer, which appends entries and has full segments sealed, and any
//! number of readers.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use super::archive::Past;
use super::files::{self, Files, OpenMode, StoreFile};
use super::frame::{self, Frame, FrameDraft, Kind};
use super::head::{FORMAT, Head, HeadError, Start};
use super::merkle::{BLOCK_LEAVES, TreeError};
use super::parallel::{self, Manner, Part, Parts};
use super::sealer::{Sealer, Sealing};
use super::segment::{self, Offsets, Segment, SegmentHeader, StoreId};
use super::tree::Tree;
use super::walk::{Growth, Reached, Visitor, Walk};
use rulekeep_types::{Breakage, BrokenKind, Digest, Sequence};

/// A position in the journal: a number of entries, and the link of the last of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub(crate) entries: u64,
    pub(crate) link: Digest,
}

/// A staged entry.
#[derive(Debug, Clone, Copy)]
pub struct Staged {
    /// The position after the entry.
    pub(crate) position: Position,
    /// The digest of the entry's body.
    pub(crate) digest: Digest,
}

/// The journal's writing end. There is one, owned by one thread.
pub struct Journal {
    files: Arc<dyn Files>,
    reader: Reader,
    store: StoreId,
    active: Arc<Segment>,
    /// Offset in the active segment at which the next batch is written.
    end: u64,
    /// Offset up to which the active segment's file is filled with zeros.
    allocated: u64,
    /// The position after the last staged entry.
    staged: Position,
    /// The position after the last entry in the file.
    written: Position,
    /// Number of entries known to be on disk.
    durable: u64,
    buffer: Vec<u8>,
    sizes: Vec<usize>,
    /// The digests of the batch's bodies. They are added to the tree once the batch is in the file.
    leaves: Vec<Digest>,
    segment_bytes: u64,
    /// The file of the next segment, created but not begun. It is empty, which the next open treats as absent.
    spare: Option<Arc<dyn StoreFile>>,
    sealer: Sealer,
    /// The active segment is sealed; nothing can be added to it.
    is_full: bool,
    /// An entry that freezes the log is staged or written.
    freezes: bool,
    is_frozen: bool,
    nonce: String,
    /// Number of entries named by the last `HEAD` written, if any was.
    noted: Option<u64>,
    /// The reason the next segment could not be begun. Meanwhile the active one keeps growing.
    unrolled: Option<String>,
}

/// The position at which an opened journal continues.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// The position after the last entry.
    pub(crate) at: Position,
    /// Length of the active segment's file in bytes.
    pub(crate) allocated: u64,
    /// The active segment is sealed, so the next entry begins another.
    pub(crate) is_full: bool,
}

/// Options of a journal.
#[derive(Debug, Clone, Copy)]
pub struct JournalOptions {
    /// Size in bytes at which a segment is full. Default: 16 MiB.
    pub(crate) segment_bytes: u64,
    pub(crate) sealing: Sealing,
    /// Random bytes that distinguish the `HEAD` of this opening from any other.
    pub(crate) nonce: [u8; 16],
}

impl Default for JournalOptions {
    fn default() -> Self {
        Self { segment_bytes: SEGMENT_BYTES, sealing: Sealing::Behind, nonce: [0; 16] }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // Readers may keep the file open longer.
        self.active.file.unlock();
    }
}

impl Journal {
    /// Creates an empty journal.
    pub(crate) fn create(files: Arc<dyn Files>, store: StoreId, options: JournalOptions) -> io::Result<Self> {
        files.create_dir(Path::new(segment::FOLDER))?;
        let start = Position { entries: 0, link: Digest::ZERO };
        let active = Arc::new(new_segment(
            &*files,
            SegmentHeader { number: 0, first: Sequence::FIRST, store, link: start.link },
        )?);
        files.sync_dir(Path::new(""))?;
        active.file.lock()?;
        let reader = Reader::new(vec![Arc::clone(&active)], Tree::default(), None);
        let place = Place { at: start, allocated: segment::HEADER_BYTES as u64, is_full: false };
        Ok(Self::resume(files, reader, store, active, place, options))
    }

    /// Continues after the last entry of `active`, which is locked.
    pub(crate) fn resume(
        files: Arc<dyn Files>,
        reader: Reader,
        store: StoreId,
        active: Arc<Segment>,
        place: Place,
        options: JournalOptions,
    ) -> Self {
        let end = active.known_end();
        let Place { at, allocated, is_full } = place;
        let sealer = Sealer::new(Arc::clone(&files), reader.clone(), options.sealing);
        Self {
            files,
            reader,
            store,
            active,
            end,
            allocated,
            staged: at,
            written: at,
            durable: at.entries,
            buffer: Vec::new(),
            sizes: Vec::new(),
            leaves: Vec::new(),
            segment_bytes: options.segment_bytes,
            spare: None,
            sealer,
            is_full,
            freezes: false,
            is_frozen: false,
            nonce: hex::encode(options.nonce),
            noted: None,
            unrolled: None,
        }
    }

    /// Queues a full segment for sealing that was left when the journal was opened.
    pub(crate) fn seal(&self, full: Arc<Segment>) {
        self.sealer.take(full);
    }

    /// Returns a reading end.
    pub(crate) fn reader(&self) -> Reader {
        self.reader.clone()
    }

    /// The position after the last staged entry.
    pub(crate) fn position(&self) -> Position {
        self.staged
    }

    /// Adds an entry to the batch, in memory only.
    pub(crate) fn stage(&mut self, draft: &FrameDraft<'_>) -> io::Result<Staged> {
        let sequence = Sequence::new(self.staged.entries);
        let behind = u32::try_from(self.staged.entries - self.durable).map_err(io::Error::other)?;
        let digest = frame::digest(draft.body);
        let link = draft
            .encode(sequence, behind, &self.staged.link, &digest, &mut self.buffer)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "an entry of more than 4 GiB"))?;
        self.freezes |= draft.kind == Kind::Freeze;
        self.sizes.push(draft.size());
        self.leaves.push(digest);
        self.staged = Position { entries: self.staged.entries + 1, link };
        Ok(Staged { position: self.staged, digest })
    }

    /// Number of staged bytes.
    pub(crate) fn staged_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Writes the batch to the file, in one write.
    pub fn write(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let size = self.buffer.len() as u64;
        if (self.end + size > self.segment_bytes && self.active.count() > 0) || self.is_full {
            match self.roll() {
                // The active segment keeps growing for a while; the next batch tries again.
                Err(error) if files::is_passing(&error) && self.may_outgrow(size) => {
                    self.unrolled = Some(error.to_string());
                }
                rolled => rolled?,
            }
        }
        self.make_room(size)?;
        self.active.file.write_at(&self.buffer, self.end)?;
        self.active.extend(&self.sizes).ok_or_else(|| io::Error::other("a segment of more than 4 GiB"))?;
        self.end += size;
        self.written = self.staged;
        self.is_frozen |= self.freezes;
        self.reader.grow(&self.leaves);
        self.buffer.clear();
        self.sizes.clear();
        self.leaves.clear();
        Ok(())
    }

    /// Makes everything written durable. Returns the number of entries on disk.
    pub(crate) fn sync(&mut self) -> io::Result<u64> {
        if self.durable != self.written.entries {
            self.active.sync()?;
            self.durable = self.written.entries;
        }
        Ok(self.durable)
    }

    /// Writes `HEAD` for the entries on disk.
    pub(crate) fn note_head(&mut self) -> io::Result<()> {
        // Checked first, because the check compares `HEAD` with the last one written.
        self.check_held()?;
        self.sync()?;
        let Position { entries, link } = self.written;
        let (_, root) = self.reader.tree_head();
        let start = self.reader.past().map(|past| past.start);
        let (store, frozen) = (self.store.to_string(), self.is_frozen);
        let nonce = self.nonce.clone();
        Head { format: FORMAT, store, entries, link, root, start, frozen, nonce }.write(&*self.files)?;
        self.noted = Some(entries);
        Ok(())
    }

    /// Checks that the store is still this one. Fails if the folder is no longer at its path, the active segment was
    /// removed, or `HEAD` is not the last one written: another store may be there, and writes would be lost. A file
    /// that cannot be looked at is checked again the next time.
    pub(crate) fn check_held(&self) -> io::Result<()> {
        self.files.check_place()?;
        let number = self.active.header.number;
        let is_there = match self.has_name(number) {
            // A sealed segment has another name.
            Err(error) => !files::is_absence(&error) || self.is_full,
            looked => looked?,
        };
        if !is_there {
            let name = Segment::name(number);
            return Err(io::Error::other(format!("{name} was removed, replaced or cut: the store was replaced")));
        }
        let Some(noted) = self.noted else { return Ok(()) };
        match Head::read(&*self.files) {
            // A `HEAD` with more entries was written but could not be made durable.
            Ok(Some(head)) if head.nonce == self.nonce && head.entries >= noted => Ok(()),
            Err(HeadError::Io(error)) if !files::is_absence(&error) => Ok(()),
            _ => Err(io::Error::other("HEAD is not the one that this governor wrote: the store was replaced")),
        }
    }

    /// Returns whether the name of segment `number` still leads to all of the active segment.
    fn has_name(&self, number: u32) -> io::Result<bool> {
        let named = self.files.open(&Segment::path(number), OpenMode::Read)?;
        Ok(named.identity()? == self.active.file.identity()? && named.len()? >= self.end)
    }

    /// The reason the next segment cannot be begun; `None` if it can be, or need not be.
    pub(crate) fn unrolled(&self) -> Option<&str> {
        self.unrolled.as_deref()
    }

    /// Tries again to begin the next segment, if that failed before. Errors that may pass are kept for the next try.
    pub(crate) fn retry_roll(&mut self) -> io::Result<()> {
        if self.unrolled.is_none() {
            return Ok(());
        }
        match self.roll() {
            Err(error) if files::is_passing(&error) => self.unrolled = Some(error.to_string()),
            rolled => rolled?,
        }
        Ok(())
    }

    /// Marks the journal as frozen.
    pub(crate) fn freeze(&mut self) {
        self.is_frozen = true;
    }

    /// Makes the journal begin after archived entries. The entry that records the archive must be on disk.
    pub(crate) fn begin_at(&mut self, start: Start) -> io::Result<()> {
        self.reader.begin_at(Past::open(&*self.files, start)?);
        self.note_head()
    }

    /// Writes the batch, releases the unused space and writes `HEAD`.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        self.write()?;
        self.trim()?;
        self.note_head()?;
        if self.spare.take().is_some() {
            // If it stays, the next open sets it aside.
            let _ = self.files.remove(&Segment::path(self.active.header.number + 1));
        }
        self.sealer.stop();
        Ok(())
    }

    /// Seals the active segment and begins the next. After an error that may pass, the active one can still be used.
    fn roll(&mut self) -> io::Result<()> {
        self.check_held()?;
        let header = SegmentHeader {
            number: self.active.header.number + 1,
            first: Sequence::new(self.written.entries),
            store: self.store,
            link: self.written.link,
        };
        // Operations that need a descriptor come first, so that nothing has changed if none is left.
        let file = match &self.spare {
            Some(spare) => Arc::clone(spare),
            None => self.files.open(&Segment::path(header.number), OpenMode::Create)?,
        };
        file.lock()?;
        self.spare = Some(Arc::clone(&file));
        self.files.sync_dir(Path::new(segment::FOLDER))?;
        self.note_head()?;
        self.trim()?;
        if let Err(error) = file.write_at(&header.encode(), 0).and_then(|()| file.sync_data()) {
            // INVARIANT: the header of a next segment exists nowhere while entries are still written to this one. If
            // it may exist, the error is not treated as passing.
            file.set_len(0).and_then(|()| file.sync_data()).map_err(io::Error::other)?;
            return Err(error);
        }
        self.spare = None;
        let next = Arc::new(Segment::new(header, file, false, Offsets::new()));
        self.reader.push(Arc::clone(&next));
        let full = std::mem::replace(&mut self.active, next);
        full.file.unlock();
        self.unrolled = None;
        if !self.is_full {
            self.sealer.take(full);
        }
        self.is_full = false;
        self.end = segment::HEADER_BYTES as u64;
        self.allocated = self.end;
        Ok(())
    }

    /// Returns whether `size` more bytes may go into the active segment although it is full.
    fn may_outgrow(&self, size: u64) -> bool {
        !self.is_full && self.end + size <= self.segment_bytes.saturating_mul(MOST_OUTGROWN).min(LARGEST_SEGMENT)
    }

    fn trim(&mut self) -> io::Result<()> {
        self.active.file.set_len(self.end)?;
        self.active.sync()?;
        self.allocated = self.end;
        self.durable = self.written.entries;
        Ok(())
    }

    /// Fills the file with zeros ahead of `size` more bytes, and syncs them. A sync that also grows the file costs
    /// many times one that does not, and an entry that was cut short must be visible against zeros.
    fn make_room(&mut self, size: u64) -> io::Result<()> {
        let needed = self.end + size;
        if needed <= self.allocated {
            return Ok(());
        }
        let ahead = self.end.clamp(LEAST_AHEAD, MOST_AHEAD).min(self.segment_bytes);
        // On a nearly full disk, the space needed now may still fit.
        self.fill((needed + ahead).next_multiple_of(PAGE)).or_else(|_| self.fill(needed.next_multiple_of(PAGE)))
    }

    /// Fills the file with zeros up to `until`, and syncs them.
    fn fill(&mut self, until: u64) -> io::Result<()> {
        let zeros = vec![0; ZEROS_AT_ONCE];
        let mut at = self.allocated;
        while at < until {
            let count = usize::try_from(until - at).unwrap_or(ZEROS_AT_ONCE).min(ZEROS_AT_ONCE);
            self.active.file.write_at(zeros.get(..count).unwrap_or_default(), at)?;
            at += count as u64;
        }
        self.active.sync()?;
        self.allocated = until;
        Ok(())
    }
}

/// The journal's reading end. Clones share its state.
#[derive(Clone)]
pub struct Reader {
    // The writer pushes when it starts a segment; everybody reads. Held to clone an `Arc`.
    segments: Arc<RwLock<Vec<Arc<Segment>>>>,
    // The writer pushes after each write; proofs read it. Held for hashing alone.
    tree: Arc<Mutex<Tree>>,
    // Held by the sealer or an erasure while it rewrites a segment's files from what it read of them.
    rewriting: Arc<Mutex<()>>,
    // The writer replaces it after archiving. Held to clone an `Arc`.
    past: Arc<RwLock<Option<Arc<Past>>>>,
}

impl Reader {
    pub(super) fn new(segments: Vec<Arc<Segment>>, tree: Tree, past: Option<Past>) -> Self {
        let past = Arc::new(RwLock::new(past.map(Arc::new)));
        let (segments, tree) = (Arc::new(RwLock::new(segments)), Arc::new(Mutex::new(tree)));
        Self { segments, tree, rewriting: Arc::default(), past }
    }

    /// Returns where the journal begins.
    pub(crate) fn start(&self) -> Start {
        self.past().map_or(Start::WHOLE, |past| past.start)
    }

    fn past(&self) -> Option<Arc<Past>> {
        self.past.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn begin_at(&self, past: Past) {
        *self.past.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(past));
    }

    /// Returns the sealed segments from the first one up to the first unsealed one.
    pub(super) fn sealed(&self) -> Vec<Arc<Segment>> {
        let (_, segments) = self.current();
        segments.into_iter().take_while(|segment| segment.is_sealed).collect()
    }

    /// Drops the segments that are archived from the list.
    pub(super) fn forget_archived(&self) {
        let first = self.start().segment;
        let mut segments = self.segments.write().unwrap_or_else(PoisonError::into_inner);
        segments.retain(|segment| segment.header.number >= first);
    }

    /// Returns where the journal begins, and the segments from there on.
    pub(super) fn current(&self) -> (Start, Vec<Arc<Segment>>) {
        // INVARIANT: segments are dropped from the list after the beginning has moved past them. So a beginning that
        // is read after the list has all of its segments in it.
        let mut segments = self.all_segments();
        let start = self.start();
        segments.retain(|segment| segment.header.number >= start.segment);
        (start, segments)
    }

    /// Returns the number of entries in the files and the root of the tree over them. The last entries may not be on
    /// disk yet.
    pub(crate) fn tree_head(&self) -> (u64, Digest) {
        let tree = self.tree();
        (tree.size(), tree.root())
    }

    /// Returns the root of the tree over the first `size` entries.
    pub(crate) fn root_at(&self, size: u64) -> Result<Digest, TreeError<io::Error>> {
        if let (entries, root) = self.tree_head()
            && entries == size
        {
            return Ok(root);
        }
        let leaves = self.leaves_at(&[size.saturating_sub(1)], size)?;
        self.tree().nodes().root(size, |range| leaves.of(&range))
    }

    /// Returns the inclusion proof of an entry in the tree over the first `size` entries.
    #[cfg(feature = "checkpoints")]
    pub(crate) fn inclusion(&self, index: u64, size: u64) -> Result<Vec<Digest>, TreeError<io::Error>> {
        let leaves = self.leaves_at(&[index, size.saturating_sub(1)], size)?;
        self.tree().nodes().inclusion(index, size, |range| leaves.of(&range))
    }

    /// Returns the consistency proof from the tree over the first `old` entries to the one over the first `size`.
    #[cfg(feature = "checkpoints")]
    pub(crate) fn consistency(&self, old: u64, size: u64) -> Result<Vec<Digest>, TreeError<io::Error>> {
        let leaves = self.leaves_at(&[old.saturating_sub(1), size.saturating_sub(1)], size)?;
        self.tree().nodes().consistency(old, size, |range| leaves.of(&range))
    }

    /// Adds entries to the tree that are in the files now.
    fn grow(&self, leaves: &[Digest]) {
        let mut tree = self.tree();
        for leaf in leaves {
            tree.push(leaf);
        }
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the leaves around these entries of the first `size`, below the nodes that are kept. They are read before
    /// the tree is locked, because the writer waits for that lock.
    fn leaves_at(&self, entries: &[u64], size: u64) -> Result<Leaves, TreeError<io::Error>> {
        let mut leaves = Leaves::default();
        for entry in entries.iter().filter(|entry| **entry < size) {
            let start = entry - entry % BLOCK_LEAVES;
            if leaves.blocks.iter().all(|(known, _)| *known != start) {
                let range = start..size.min(start + BLOCK_LEAVES);
                leaves.blocks.push((start, self.digests(range).map_err(|error| TreeError::Leaves(Some(error)))?));
            }
        }
        Ok(leaves)
    }

    /// Returns the digests of entries as stored; fewer if one cannot be read.
    fn digests(&self, range: Range<u64>) -> io::Result<Vec<Digest>> {
        let mut digests = Vec::new();
        let mut next = range.start;
        if let Some(past) = self.past().filter(|past| next < past.start.entries) {
            let until = range.end.min(past.start.entries);
            digests = past.leaves(next..until)?;
            next += digests.len() as u64;
            if next < until {
                return Ok(digests);
            }
        }
        while next < range.end {
            let Some(run) = self.read_run(Sequence::new(next), RUN_BYTES)? else { break };
            let (before, mut at) = (next, 0);
            while let Some(rest) = run.get(at..).filter(|rest| !rest.is_empty() && next < range.end) {
                let Some(frame) = Frame::decode(rest).ok().filter(|frame| frame.sequence.get() == next) else { break };
                digests.push(frame.digest());
                at += frame.size();
                next += 1;
            }
            if next == before {
                break;
            }
        }
        Ok(digests)
    }

    /// Returns the frame of the entry at `sequence`; `None` if it does not exist.
    pub fn read(&self, sequence: Sequence) -> io::Result<Option<Vec<u8>>> {
        match self.segment_of(sequence) {
            Some(segment) => segment.read(sequence),
            None => Ok(None),
        }
    }

    /// Returns the frame of the entry at `sequence` and about `most` bytes of the frames after it, the last of which
    /// may be cut. Returns `None` if the entry does not exist.
    pub(crate) fn read_run(&self, sequence: Sequence, most: u32) -> io::Result<Option<Vec<u8>>> {
        match self.segment_of(sequence) {
            Some(segment) => segment.read_run(sequence, most),
            None => Ok(None),
        }
    }

    fn segment_of(&self, sequence: Sequence) -> Option<Arc<Segment>> {
        let segments = self.segments.read().unwrap_or_else(PoisonError::into_inner);
        let behind = segments.partition_point(|segment| segment.header.first <= sequence);
        behind.checked_sub(1).and_then(|index| segments.get(index).cloned())
    }

    /// Like [`Reader::verify`], in parallel, starting with the segment that holds the entry after `since`. The link
    /// at `since` is compared too. Returns `Interrupted` if `manner` stopped it.
    pub(crate) fn verify_parts<V: Parts>(
        &self,
        visitor: &mut V,
        since: Option<Position>,
        until: Position,
        manner: Manner<'_>,
    ) -> io::Result<Verified> {
        let (start, segments) = self.current();
        Ok(Self::check_parts(visitor, (&start, segments), since, until, manner, None)?.0)
    }

    fn check_parts<V: Parts>(
        visitor: &mut V,
        (start, mut segments): (&Start, Vec<Arc<Segment>>),
        since: Option<Position>,
        until: Position,
        manner: Manner<'_>,
        mut tree: Option<Tree>,
    ) -> io::Result<(Verified, Option<Tree>)> {
        let mut reached = start.reached();
        if let Some(since) = since {
            let behind = segments.partition_point(|segment| segment.header.first.get() <= since.entries);
            segments.drain(..behind.saturating_sub(1));
            reached = segments.first().map_or(reached, |segment| Reached::before(&segment.header));
        } else {
            visitor.begins(start);
        }
        let parts = segments.iter().map(|segment| Part::of(segment)).collect::<io::Result<Vec<Part>>>()?;
        let watch: Vec<u64> = since.iter().chain([&until]).map(|position| position.entries).collect();
        let wanted: Vec<Option<Digest>> = since.iter().chain([&until]).map(|position| Some(position.link)).collect();
        let before = tree.clone();
        let growing = tree.as_mut().map(|tree| (tree, until.entries));
        match parallel::check(visitor, &parts, reached, &watch, manner, growing) {
            Some(checked) if checked.watched == wanted && (since.is_some() || visitor.ends().is_none()) => {
                Ok((Verified::default(), tree))
            }
            // The slow walk tells what is broken, and where.
            _ => {
                visitor.reset();
                Self::walk(visitor, &segments, (start, reached), since, until, manner, before)
            }
        }
    }

    /// Like [`Reader::verify_parts`] of the whole journal, with the root of the tree over the entries up to `until`.
    pub(crate) fn verify_tree<V: Parts>(
        &self,
        visitor: &mut V,
        until: Position,
        manner: Manner<'_>,
    ) -> io::Result<(Verified, Digest)> {
        let (start, segments) = self.current();
        let before =
            self.past().filter(|past| past.start == start).map_or_else(|| Ok(Tree::default()), |past| past.tree())?;
        let (verified, tree) = Self::check_parts(visitor, (&start, segments), None, until, manner, Some(before))?;
        Ok((verified, tree.unwrap_or_default().root()))
    }

    /// Returns nodes of level 8, starting at number `from`, of the tree over the first `size` entries.
    pub(crate) fn nodes(&self, from: u64, size: u64) -> Vec<Digest> {
        self.tree().nodes().blocks(from, size / BLOCK_LEAVES)
    }

    /// Walks everything in the files, compares it with `until`, and returns the first break.
    pub fn verify(&self, visitor: &mut dyn Visitor, until: Position) -> io::Result<Option<Breakage>> {
        let (start, segments) = self.current();
        let place = (&start, start.reached());
        Ok(Self::walk(visitor, &segments, place, None, until, Manner::default(), None)?.0.breakage)
    }

    /// Walks segments. `reached` is the state right before the first of them.
    fn walk(
        visitor: &mut dyn Visitor,
        segments: &[Arc<Segment>],
        (start, reached): (&Start, Reached),
        since: Option<Position>,
        until: Position,
        manner: Manner<'_>,
        tree: Option<Tree>,
    ) -> io::Result<(Verified, Option<Tree>)> {
        let watch: Vec<u64> = since.iter().chain([&until]).map(|position| position.entries).collect();
        let mut walk = match since {
            None => Walk::starting(visitor, start, 0, &watch),
            Some(_) => Walk::from(visitor, reached, &watch),
        };
        if let Some(tree) = tree {
            walk = walk.growing(Growth::Tree(tree), until.entries);
        }
        for segment in segments {
            // The end in memory is at or after `until`, and always between two entries. Bytes appended while the file
            // is read lie after it.
            let end = usize::try_from(segment.end()?).map_err(io::Error::other)?;
            if manner.is_stopped() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let mut bytes = segment.file.read_stored()?;
            bytes.truncate(end);
            walk.segment(segment.header.number, &bytes, false);
        }
        if since.is_none() {
            walk.end();
        }
        let mut found = Verified::default();
        if let Some(since) = since
            && walk.breakage().is_none()
            && walk.link_after(since.entries) != Some(since.link)
        {
            let expected = format!("{} entries that end in link {}, as was verified before", since.entries, since.link);
            let other = match walk.link_after(since.entries) {
                Some(link) => format!("link {link}"),
                None if since.entries < start.entries => {
                    format!("a log whose first {} entries were archived", start.entries)
                }
                None => format!("{} entries", walk.entries()),
            };
            let kind = if since.entries < start.entries { BrokenKind::Missing } else { BrokenKind::Tampering };
            walk.broken(segment::FOLDER, kind, &expected, &other);
            found.began_elsewhere = true;
        }
        if walk.breakage().is_none() && walk.link_after(until.entries) != Some(until.link) {
            let expected = format!("{} entries that end in link {}", until.entries, until.link);
            let found = format!("{} entries", walk.entries());
            walk.broken(segment::FOLDER, BrokenKind::Missing, &expected, &found);
        }
        found.breakage = walk.breakage().cloned();
        Ok((found, walk.into_tree()))
    }

    /// Returns the number of segments, and how many of them are full but not sealed.
    pub(crate) fn segments(&self) -> (u64, u64) {
        let segments = self.segments.read().unwrap_or_else(PoisonError::into_inner);
        let full = segments.split_last().map_or(&[][..], |(_, full)| full);
        (segments.len() as u64, full.iter().filter(|segment| !segment.is_sealed).count() as u64)
    }

    /// Locks the right to rewrite a segment's files.
    pub(super) fn rewriting(&self) -> MutexGuard<'_, ()> {
        self.rewriting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all segments as they are now, in order.
    pub(super) fn all_segments(&self) -> Vec<Arc<Segment>> {
        self.segments.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the segment of the same number.
    pub(super) fn replace(&self, segment: Segment) {
        let mut segments = self.segments.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = segments.iter_mut().find(|known| known.header.number == segment.header.number) {
            *place = Arc::new(segment);
        }
    }

    fn push(&self, segment: Arc<Segment>) {
        self.segments.write().unwrap_or_else(PoisonError::into_inner).push(segment);
    }
}

/// The result of a verification.
#[derive(Debug, Default)]
pub(crate) struct Verified {
    pub(crate) breakage: Option<Breakage>,
    /// The break is that the journal does not contain the position where verification was to begin.
    pub(crate) began_elsewhere: bool,
}

/// The leaves of some blocks of the tree.
#[derive(Default)]
struct Leaves {
    /// Each block's first entry and its leaves.
    blocks: Vec<(u64, Vec<Digest>)>,
}

impl Leaves {
    fn of(&self, range: &Range<u64>) -> io::Result<Vec<Digest>> {
        let block = self.blocks.iter().find(|(start, _)| *start == range.start);
        block.map(|(_, leaves)| leaves.clone()).ok_or_else(|| io::Error::other("entries that were not read ahead"))
    }
}

fn new_segment(files: &dyn Files, header: SegmentHeader) -> io::Result<Segment> {
    let file: Arc<dyn StoreFile> = files.open(&Segment::path(header.number), OpenMode::Create)?;
    file.write_at(&header.encode(), 0)?;
    file.sync_data()?;
    files.sync_dir(Path::new(segment::FOLDER))?;
    Ok(Segment::new(header, file, false, Offsets::new()))
}

/// Size at which a segment is full. Small enough to be read whole, large enough that ten million records are a few
/// hundred files.
const SEGMENT_BYTES: u64 = 16 << 20;
/// Upper bound of an outgrown segment, as a multiple of its normal size. Verification reads a segment whole.
const MOST_OUTGROWN: u64 = 64;
/// Largest size of a segment: offsets in it have 32 bits.
const LARGEST_SEGMENT: u64 = 2 << 30;
/// Bounds of the zeros ahead in bytes; in between, as many as the segment has bytes.
const LEAST_AHEAD: u64 = 256 << 10;
const MOST_AHEAD: u64 = 4 << 20;
const PAGE: u64 = 4096;
const ZEROS_AT_ONCE: usize = 256 << 10;
/// Number of bytes read at once of the entries below a node.
const RUN_BYTES: u32 = 128 << 10;
