//! The segment: one file of the journal with a header, frames, and preallocated zeros after them.
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | `RKseg002` |
//! | 8..12 | the segment's number, counted from 0 |
//! | 12..20 | sequence of its first entry |
//! | 20..36 | the store's ID |
//! | 36..68 | link of the entry before its first |
//! | 68..72 | CRC-32 over bytes 0..68 |
//! | 72..128 | zero |
//!
//! Numbers are little-endian.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use super::files::StoreFile;
use super::frame;
use rulekeep_types::{Digest, Sequence};

/// The ID of a store: 16 random bytes, chosen when the store is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreId(pub [u8; 16]);

impl std::fmt::Display for StoreId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// The header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) number: u32,
    pub(crate) first: Sequence,
    pub(crate) store: StoreId,
    /// The link of the entry before the first one in the segment.
    pub(crate) link: Digest,
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&self.number.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.first.get().to_le_bytes());
        bytes[20..36].copy_from_slice(&self.store.0);
        bytes[36..CRC_AT].copy_from_slice(self.link.as_bytes());
        let crc = crc32fast::hash(&bytes[..CRC_AT]);
        bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads a header from the front of a file; `None` if it is damaged.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let header: &[u8; HEADER_BYTES] = bytes.get(..HEADER_BYTES)?.try_into().ok()?;
        let crc = u32::from_le_bytes(header[CRC_AT..CRC_AT + 4].try_into().ok()?);
        let rest_is_zero = header[CRC_AT + 4..].iter().all(|byte| *byte == 0);
        if !header.starts_with(MAGIC) || crc != crc32fast::hash(&header[..CRC_AT]) || !rest_is_zero {
            return None;
        }
        Some(Self {
            number: u32::from_le_bytes(header[8..12].try_into().ok()?),
            first: Sequence::new(u64::from_le_bytes(header[12..20].try_into().ok()?)),
            store: StoreId(header[20..36].try_into().ok()?),
            link: Digest::new(header[36..CRC_AT].try_into().ok()?),
        })
    }
}

/// An open segment. Frames can be read while others are appended.
pub(crate) struct Segment {
    pub(crate) header: SegmentHeader,
    pub(crate) file: Arc<dyn StoreFile>,
    pub(crate) is_sealed: bool,
    // The writer updates it after a batch is in the file; everybody reads it. Held for copying a few numbers.
    offsets: RwLock<Offsets>,
    // Held over each sync. True once a sync has failed.
    sync_failed: Mutex<bool>,
}

/// Offsets of the frames in a segment: of every [`STRIDE`]th one and of the first one after any gap, and the end.
#[derive(Debug, Clone)]
pub(crate) struct Offsets {
    marks: Vec<OffsetMark>,
    /// The place after the last frame, counted from the segment's first entry.
    next_place: u64,
    end: u32,
    /// Bytes were skipped since the last frame.
    gap: bool,
    /// The segment has been scanned. Otherwise the first read scans it.
    is_known: bool,
}

#[derive(Debug, Clone, Copy)]
struct OffsetMark {
    place: u64,
    offset: u32,
}

impl Offsets {
    pub(crate) fn new() -> Self {
        Self { marks: Vec::new(), next_place: 0, end: FIRST_OFFSET, gap: false, is_known: true }
    }

    /// Offsets of a segment that has not been scanned.
    pub(super) fn unknown() -> Self {
        Self { is_known: false, ..Self::new() }
    }

    /// Scans a segment's content, by the sizes that its frames claim.
    fn of_content(content: &[u8]) -> Self {
        let mut offsets = Self::new();
        let mut at = HEADER_BYTES;
        while let Some(size) =
            content.get(at..).and_then(frame::claimed_size).filter(|size| *size <= content.len() - at)
        {
            if offsets.push(offsets.next_place, size).is_none() {
                break;
            }
            at += size;
        }
        offsets
    }

    /// Records a frame of `size` bytes at `place`, at the end. Returns `None` past 4 GiB, which no segment reaches.
    pub(crate) fn push(&mut self, place: u64, size: usize) -> Option<()> {
        if place.is_multiple_of(STRIDE) || place != self.next_place || self.gap || self.marks.is_empty() {
            self.marks.push(OffsetMark { place, offset: self.end });
            self.gap = false;
        }
        self.next_place = place + 1;
        self.end = self.end.checked_add(u32::try_from(size).ok()?)?;
        Some(())
    }

    /// Moves the end past bytes that hold no frame.
    pub(crate) fn skip_to(&mut self, end: usize) {
        self.end = u32::try_from(end).unwrap_or(u32::MAX);
        self.gap = true;
    }

    pub(crate) fn end(&self) -> u64 {
        u64::from(self.end)
    }

    pub(crate) fn count(&self) -> u64 {
        self.next_place
    }

    /// Returns the range of bytes that holds the frame at `place`, and the number of frames before it in that range.
    fn span(&self, place: u64) -> Option<(u32, u32, u64)> {
        let behind = self.marks.partition_point(|mark| mark.place <= place);
        let mark = self.marks.get(behind.checked_sub(1)?).filter(|_| place < self.next_place)?;
        let end = self.marks.get(behind).map_or(self.end, |next| next.offset);
        Some((mark.offset, end, place - mark.place))
    }
}

impl Segment {
    pub(crate) fn new(header: SegmentHeader, file: Arc<dyn StoreFile>, is_sealed: bool, offsets: Offsets) -> Self {
        Self { header, file, is_sealed, offsets: RwLock::new(offsets), sync_failed: Mutex::new(false) }
    }

    /// Returns this segment with its content in a sealed file.
    pub(crate) fn sealed_in(&self, file: Arc<dyn StoreFile>) -> Self {
        let offsets = self.offsets.read().unwrap_or_else(PoisonError::into_inner).clone();
        Self::new(self.header, file, true, offsets)
    }

    /// The path of the segment's file in the store.
    pub(crate) fn path(number: u32) -> PathBuf {
        PathBuf::from(FOLDER).join(Self::name(number))
    }

    pub(crate) fn name(number: u32) -> String {
        format!("{number:010}.rkj")
    }

    /// Returns the number in a segment's file name; `None` if it is not one.
    pub(crate) fn number(name: &str) -> Option<u32> {
        let digits = name.strip_suffix(".rkj")?;
        (digits.len() == 10).then(|| digits.parse().ok()).flatten()
    }

    /// Makes everything written durable. After one failure every later sync fails, because the system reports an
    /// error only once: later syncs would succeed although data is lost.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let mut failed = self.sync_failed.lock().unwrap_or_else(PoisonError::into_inner);
        if *failed {
            return Err(io::Error::other("an earlier sync of the file failed"));
        }
        self.file.sync_data().inspect_err(|_| *failed = true)
    }

    /// Records the frames of a batch that is now in the file.
    pub(crate) fn extend(&self, sizes: &[usize]) -> Option<()> {
        let mut offsets = self.offsets.write().unwrap_or_else(PoisonError::into_inner);
        sizes.iter().try_for_each(|size| {
            let place = offsets.next_place;
            offsets.push(place, *size)
        })
    }

    /// Returns the offset at which the entries end; for a segment not yet scanned, the file's length.
    pub(crate) fn end(&self) -> io::Result<u64> {
        let offsets = self.offsets.read().unwrap_or_else(PoisonError::into_inner);
        if offsets.is_known { Ok(offsets.end()) } else { self.file.len() }
    }

    /// The offset at which the entries end, as far as the segment has been scanned.
    pub(super) fn known_end(&self) -> u64 {
        self.offsets.read().unwrap_or_else(PoisonError::into_inner).end()
    }

    /// Returns the offsets of the frames, scanning the segment if necessary.
    fn offsets(&self) -> io::Result<RwLockReadGuard<'_, Offsets>> {
        loop {
            let offsets = self.offsets.read().unwrap_or_else(PoisonError::into_inner);
            if offsets.is_known {
                return Ok(offsets);
            }
            drop(offsets);
            let found = Offsets::of_content(&self.file.read_all()?);
            *self.offsets.write().unwrap_or_else(PoisonError::into_inner) = found;
        }
    }

    /// Number of entries; scans the segment if necessary.
    pub(super) fn entries(&self) -> io::Result<u64> {
        Ok(self.offsets()?.count())
    }

    pub(crate) fn count(&self) -> u64 {
        self.offsets.read().unwrap_or_else(PoisonError::into_inner).count()
    }

    /// Returns about `most` bytes of frames starting with the one at `sequence`, which is complete; the last one may
    /// be cut. Returns `None` if the sequence is not in this segment.
    pub(crate) fn read_run(&self, sequence: Sequence, most: u32) -> std::io::Result<Option<Vec<u8>>> {
        let Some(place) = sequence.get().checked_sub(self.header.first.get()) else { return Ok(None) };
        let (span, end) = {
            let offsets = self.offsets()?;
            (offsets.span(place), offsets.end)
        };
        let Some((start, span_end, before)) = span else { return Ok(None) };
        let until = span_end.max(start.saturating_add(most)).min(end);
        let mut bytes = vec![0; (until - start) as usize];
        let read = self.file.read_at(&mut bytes, u64::from(start))?;
        bytes.truncate(read);
        let Some(at) = skip_frames(&bytes, before) else { return Ok(None) };
        bytes.drain(..at);
        Ok(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }

    /// Returns the frame at `sequence`; `None` if it is not in this segment.
    pub(crate) fn read(&self, sequence: Sequence) -> std::io::Result<Option<Vec<u8>>> {
        let run = self.read_run(sequence, 0)?;
        Ok(run.and_then(|mut run| {
            let size = frame::claimed_size(&run).filter(|size| *size <= run.len())?;
            run.truncate(size);
            Some(run)
        }))
    }
}

/// Returns the offset after the first `count` frames, by the sizes that they claim.
fn skip_frames(bytes: &[u8], count: u64) -> Option<usize> {
    (0..count).try_fold(0_usize, |at, _| at.checked_add(frame::claimed_size(bytes.get(at..)?)?))
}

/// The folder of the journal in the store.
pub const FOLDER: &str = "journal";
/// Size of a segment's header in bytes.
pub(crate) const HEADER_BYTES: usize = FIRST_OFFSET as usize;
const FIRST_OFFSET: u32 = 128;
const MAGIC: &[u8; 8] = b"RKseg002";
const CRC_AT: usize = 68;
/// Distance of the recorded offsets; a frame is found by reading from the nearest one before it.
const STRIDE: u64 = 8;
