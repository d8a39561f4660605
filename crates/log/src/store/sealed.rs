//! Sealed segments: the content of full segments, compressed, with the evidence in a separate file.
//!
//! `NNNNNNNNNN.rks` holds the segment's header uncompressed and its frames without evidence in blocks.
//! `NNNNNNNNNN.rke` holds in the same number of blocks the evidence of these frames, each preceded by its length in
//! four bytes. Reading a sealed segment reproduces the original bytes of the segment. Erased evidence reads as bytes
//! of 1, and damaged blocks as bytes of 255, with which no frame starts.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::blocks::{BlockBuffers, BlockFile, BlockWriter};
use super::files::{self, Files, FrameSink, OpenMode, StoreFile};
use super::frame::{self, GONE};
use super::segment;

/// Returns the path of a sealed segment's frames.
pub(super) fn frames_path(number: u32) -> PathBuf {
    PathBuf::from(segment::FOLDER).join(format!("{number:010}{FRAMES}"))
}

/// Returns the path of a sealed segment's evidence.
pub(super) fn evidence_path(number: u32) -> PathBuf {
    PathBuf::from(segment::FOLDER).join(format!("{number:010}{EVIDENCE}"))
}

/// Returns the number in the file name of a sealed segment's frames.
pub(super) fn number(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(FRAMES)?;
    (digits.len() == 10).then(|| digits.parse().ok()).flatten()
}

/// The two files of a sealed segment.
pub(super) struct Sealed {
    pub(super) frames: Vec<u8>,
    pub(super) evidence: Vec<u8>,
}

/// Seals a segment from consecutive pieces, so that it need not be in memory as a whole.
pub(super) struct SealWriter {
    frames: BlockWriter,
    evidence: BlockWriter,
    frames_block: Vec<u8>,
    evidence_block: Vec<u8>,
    /// Offset in the segment at which the current block starts.
    start: usize,
    /// Offset in the segment of the next frame.
    at: usize,
}

impl SealWriter {
    /// Starts sealing a segment with this number and header.
    pub(super) fn new(number: u32, header: &[u8; segment::HEADER_BYTES]) -> Self {
        let (frames_block, evidence_block) = (Vec::new(), Vec::new());
        let (frames, evidence) = (BlockWriter::new(header), BlockWriter::new(&number.to_le_bytes()));
        let (start, at) = (header.len(), header.len());
        Self { frames, evidence, frames_block, evidence_block, start, at }
    }

    /// Takes the whole frames at the front of `bytes` and returns their size in bytes. Returns `None` past 4 GiB.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut rest = bytes;
        while let Some(parts) = frame::parts(rest) {
            self.frames_block.extend_from_slice(parts.without_evidence);
            push_evidence(&mut self.evidence_block, parts.evidence)?;
            self.at += rest.len() - parts.rest.len();
            rest = parts.rest;
            if self.frames_block.len() + self.evidence_block.len() >= BLOCK_BYTES {
                self.end_block()?;
            }
        }
        Some(bytes.len() - rest.len())
    }

    /// Returns the two files, once all frames are taken. Returns `None` past 4 GiB.
    pub(super) fn finish(mut self) -> Option<Sealed> {
        if !self.frames_block.is_empty() {
            self.end_block()?;
        }
        let end = u32::try_from(self.at).ok()?;
        Some(Sealed { frames: self.frames.finish(end)?, evidence: self.evidence.finish(end)? })
    }

    fn end_block(&mut self) -> Option<()> {
        let place = u32::try_from(self.start).ok()?;
        self.frames.push(place, &self.frames_block)?;
        self.evidence.push(place, &self.evidence_block)?;
        self.start = self.at;
        self.frames_block.clear();
        self.evidence_block.clear();
        Some(())
    }
}

/// Appends the evidence of a frame to a block.
fn push_evidence(block: &mut Vec<u8>, evidence: &[u8]) -> Option<()> {
    if !evidence.is_empty() && frame::is_gone(evidence) {
        block.extend_from_slice(&ERASED.to_le_bytes());
        return Some(());
    }
    block.extend_from_slice(&u32::try_from(evidence.len()).ok()?.to_le_bytes());
    block.extend_from_slice(evidence);
    Some(())
}

/// Returns the evidence of a block's frames, with that of some sequences erased. Returns `None` if the evidence does
/// not match the frames.
pub(super) fn block_without(frames: &[u8], evidence: &[u8], is_gone: &dyn Fn(u64) -> bool) -> Option<Vec<u8>> {
    let mut parts = EvidenceParts(Some(evidence));
    let mut content = Vec::with_capacity(evidence.len());
    let mut at = 0;
    for (without, whole) in lengths(frames) {
        let sequence = frame::claimed_sequence(frames.get(at..)?)?;
        at += without;
        match parts.next(whole - without) {
            Ok(bytes) if !is_gone(sequence) => push_evidence(&mut content, bytes)?,
            Err(LOST) => return None,
            Ok(_) | Err(_) => content.extend_from_slice(&ERASED.to_le_bytes()),
        }
    }
    Some(content)
}

/// Replaces a sealed segment's evidence file by one in which some entries are erased, so that the segment reads as
/// `expected`. The old file is gone once the folder is synced.
pub(super) fn put_without(
    files: &dyn Files,
    number: u32,
    is_gone: &dyn Fn(u64) -> bool,
    expected: &[u8],
) -> io::Result<Arc<dyn StoreFile>> {
    let broken = || io::Error::new(io::ErrorKind::InvalidData, "an invalid sealed segment; verify the log");
    let stored = SealedFile::open(files, number)?.ok_or_else(broken)?;
    let content = stored.evidence_without(number, is_gone)?.ok_or_else(broken)?;
    let path = evidence_path(number);
    let next = path.with_extension("next");
    let evidence = files::write_whole(files, &next, &content, OpenMode::Create)?;
    // The new file is read back before it replaces the old one.
    let frames = files.open(&frames_path(number), OpenMode::Read)?;
    let read = SealedFile::read(Stored { number, frames, evidence: Some(evidence) })?.ok_or_else(broken)?;
    let file: Arc<dyn StoreFile> = Arc::new(read);
    if file.read_all()? != expected {
        return Err(broken());
    }
    files.rename(&next, &path)?;
    Ok(file)
}

/// A sealed segment, read as the original segment.
pub(super) struct SealedFile {
    stored: Stored,
    header: [u8; segment::HEADER_BYTES],
    pub(super) frames: BlockFile,
    /// The evidence file; `None` if it is missing or damaged.
    pub(super) evidence: Option<BlockFile>,
    // The block read last, with its number. Held to clone or replace it.
    last: Mutex<Option<(usize, Arc<Vec<u8>>)>>,
}

/// The two files as stored.
#[derive(Clone)]
struct Stored {
    number: u32,
    frames: Arc<dyn StoreFile>,
    /// The evidence file; `None` if it is missing.
    evidence: Option<Arc<dyn StoreFile>>,
}

impl SealedFile {
    /// Opens the two files. Returns `None` if the head or the table of the frames is damaged.
    pub(crate) fn open(files: &dyn Files, number: u32) -> io::Result<Option<Self>> {
        let frames = files.open(&frames_path(number), OpenMode::Read)?;
        let evidence = match files.open(&evidence_path(number), OpenMode::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            opened => Some(opened?),
        };
        Self::read(Stored { number, frames, evidence })
    }

    /// Opens a sealed segment from two given files.
    pub(super) fn of(
        number: u32,
        frames: Arc<dyn StoreFile>,
        evidence: Arc<dyn StoreFile>,
    ) -> io::Result<Option<Self>> {
        Self::read(Stored { number, frames, evidence: Some(evidence) })
    }

    fn read(stored: Stored) -> io::Result<Option<Self>> {
        let mut header = [0; segment::HEADER_BYTES];
        let Some(frames) = BlockFile::open(Arc::clone(&stored.frames), &mut header)? else { return Ok(None) };
        if frames.end() > MOST_BYTES {
            return Ok(None);
        }
        let mut named = [0; 4];
        let evidence = match &stored.evidence {
            Some(file) => BlockFile::open(Arc::clone(file), &mut named)?,
            None => None,
        };
        let number = stored.number;
        let evidence = evidence.filter(|file| file.blocks() == frames.blocks() && u32::from_le_bytes(named) == number);
        Ok(Some(Self { stored, header, frames, evidence, last: Mutex::new(None) }))
    }

    /// Returns the segment's bytes that a block covers.
    fn block(&self, block: usize, len: usize) -> io::Result<Arc<Vec<u8>>> {
        if let Some((_, content)) =
            self.last.lock().unwrap_or_else(PoisonError::into_inner).as_ref().filter(|(last, _)| *last == block)
        {
            return Ok(Arc::clone(content));
        }
        let content = Arc::new(self.unpack(block, len)?);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((block, Arc::clone(&content)));
        Ok(content)
    }

    /// Combines frames and evidence to exactly `len` bytes.
    fn unpack(&self, block: usize, len: usize) -> io::Result<Vec<u8>> {
        let Some(frames) = self.frames.read(block)? else { return Ok(vec![LOST; len]) };
        let evidence = match &self.evidence {
            Some(file) => file.read(block)?,
            None => None,
        };
        let mut content = Vec::with_capacity(len);
        let mut parts = EvidenceParts(evidence.as_deref());
        let mut at = 0;
        for (without, whole) in lengths(&frames) {
            content.extend_from_slice(frames.get(at..at + without).unwrap_or_default());
            at += without;
            match parts.next(whole - without) {
                Ok(bytes) => content.extend_from_slice(bytes),
                Err(filler) => content.resize((content.len() + whole - without).min(len), filler),
            }
        }
        content.resize(len, LOST);
        Ok(content)
    }
}

impl StoreFile for SealedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let at = u32::try_from(offset + filled as u64).map_err(io::Error::other)?;
            let count = if let Some(header) = self.header.get(at as usize..).filter(|header| !header.is_empty()) {
                copy(rest, header)
            } else if let Some((block, start, end)) = self.frames.covering(at) {
                let len = (end - start) as usize;
                // Reading a whole block verifies what is stored, bypassing the block in memory.
                let content = if at == start && rest.len() >= len {
                    Arc::new(self.unpack(block, len)?)
                } else {
                    self.block(block, len)?
                };
                copy(rest, content.get((at - start) as usize..).unwrap_or_default())
            } else {
                break;
            };
            filled += count;
        }
        Ok(filled)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "a sealed segment is never written to"))
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(u64::from(self.frames.end()))
    }

    fn read_stored(&self) -> io::Result<Vec<u8>> {
        match Self::read(self.stored.clone())? {
            Some(file) => (&file as &dyn StoreFile).read_all(),
            None => Ok(vec![LOST; self.frames.end() as usize]),
        }
    }

    fn each_stored(&self, sink: &mut dyn FrameSink) -> io::Result<bool> {
        let Some(file) = Self::read(self.stored.clone())?.filter(|file| file.frames.end() == self.frames.end()) else {
            return Ok(false);
        };
        if !sink.header(&file.header) {
            return Ok(false);
        }
        let Some(evidence_file) = &file.evidence else { return Ok(false) };
        let (mut frames, mut evidence) = (BlockBuffers::default(), BlockBuffers::default());
        let mut gone = Vec::new();
        let mut at = segment::HEADER_BYTES;
        for (block, start) in file.frames.starts().enumerate() {
            if start as usize != at
                || !file.frames.read_into(block, &mut frames)?
                || !evidence_file.read_into(block, &mut evidence)?
            {
                return Ok(false);
            }
            let mut parts = EvidenceParts(Some(&evidence.content));
            let mut rest = frames.content.as_slice();
            while !rest.is_empty() {
                let Some((without, whole)) = frame::claimed_sizes(rest) else { return Ok(false) };
                let Some((frame, behind)) = rest.split_at_checked(without) else { return Ok(false) };
                if whole - without > MOST_BYTES as usize {
                    return Ok(false);
                }
                let bytes = match parts.next(whole - without) {
                    Ok(bytes) => bytes,
                    Err(LOST) => return Ok(false),
                    Err(filler) => {
                        gone.clear();
                        gone.resize(whole - without, filler);
                        &gone
                    }
                };
                if !sink.frame(frame, bytes) {
                    return Ok(false);
                }
                rest = behind;
                at += whole;
            }
            if parts.0.is_none_or(|left| !left.is_empty()) {
                return Ok(false);
            }
        }
        Ok(at == file.frames.end() as usize)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if len == self.len()? { Ok(()) } else { self.write_at(&[], len) }
    }
}

/// The evidence of a block's frames, read in order.
struct EvidenceParts<'a>(Option<&'a [u8]>);

impl<'a> EvidenceParts<'a> {
    /// Returns the next evidence, which must have `len` bytes, or the byte with which to fill its place.
    fn next(&mut self, len: usize) -> Result<&'a [u8], u8> {
        let (named, rest) = self.0.and_then(|left| left.split_first_chunk::<4>()).ok_or(LOST)?;
        let named = u32::from_le_bytes(*named);
        if named == ERASED {
            self.0 = Some(rest);
            return Err(GONE);
        }
        // After a length that does not match, nothing can be told apart.
        self.0 = None;
        let (bytes, rest) = rest.split_at_checked(len).filter(|_| named as usize == len).ok_or(LOST)?;
        self.0 = Some(rest);
        Ok(bytes)
    }
}

/// The lengths of each frame in a block, without its evidence and with it.
fn lengths(frames: &[u8]) -> impl Iterator<Item = (usize, usize)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = frames.get(at..).filter(|rest| !rest.is_empty())?;
        let (without, whole) = frame::claimed_sizes(rest).filter(|(without, _)| *without <= rest.len())?;
        at += without;
        Some((without, whole))
    })
}

fn copy(to: &mut [u8], from: &[u8]) -> usize {
    let count = to.len().min(from.len());
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
    count
}

const FRAMES: &str = ".rks";
const EVIDENCE: &str = ".rke";
/// Largest size of a segment in bytes; larger claims are treated as forged.
const MOST_BYTES: u32 = 256 << 20;
/// The length that marks erased evidence.
pub(super) const ERASED: u32 = u32::MAX;
/// The byte that stands for unreadable content.
const LOST: u8 = 255;
/// Least number of bytes in a block: about two dozen decisions. Small enough to be read for one of them.
const BLOCK_BYTES: usize = 32 << 10;

#[cfg(test)]
mod tests {
    use super::super::frame::{FrameDraft, Kind};
    use super::super::memory::MemoryFiles;
    use super::super::segment::{SegmentHeader, StoreId};
    use super::*;
    use crate::store::fuzzing::Collected;
    use proptest::prelude::*;
    use rulekeep_types::{Digest, Sequence};

    /// Builds a segment of entries with the given sizes of body and evidence.
    fn segment(sizes: &[(usize, usize)]) -> Vec<u8> {
        let header = SegmentHeader { number: 3, first: Sequence::new(9), store: StoreId([5; 16]), link: Digest::ZERO };
        let mut bytes = header.encode().to_vec();
        for (place, (body, evidence)) in sizes.iter().enumerate() {
            let text = |len: usize, salt: usize| {
                (0..len).map(|at| b"abcdefghijklmnopqrstuvw"[(at * salt + place) % 23]).collect::<Vec<u8>>()
            };
            let (body, evidence) = (text(*body, 7), text(*evidence, 3));
            let draft = FrameDraft { kind: Kind::Decision, body: &body, evidence: &evidence };
            draft.encode(Sequence::new(9 + place as u64), 0, &Digest::ZERO, &Digest::ZERO, &mut bytes).unwrap();
        }
        bytes
    }

    fn stored(content: &[u8]) -> MemoryFiles {
        let (header, frames) = content.split_first_chunk().unwrap();
        let mut writer = SealWriter::new(3, header);
        // Pushes two pieces, the first of which ends within a frame.
        let first = writer.push(&frames[..frames.len() / 2]).unwrap();
        assert_eq!(first + writer.push(&frames[first..]).unwrap(), frames.len());
        let sealed = writer.finish().unwrap();
        let files = MemoryFiles::new();
        for (path, bytes) in [(frames_path(3), sealed.frames), (evidence_path(3), sealed.evidence)] {
            files.open(&path, OpenMode::Create).unwrap().write_at(&bytes, 0).unwrap();
        }
        files
    }

    fn opened(files: &MemoryFiles) -> SealedFile {
        SealedFile::open(files, 3).unwrap().unwrap()
    }

    fn frame_by_frame(file: &SealedFile) -> Option<Vec<u8>> {
        let mut collected = Collected::default();
        file.each_stored(&mut collected).unwrap().then_some(collected.0)
    }

    fn whole(file: &SealedFile) -> Vec<u8> {
        (file as &dyn StoreFile).read_all().unwrap()
    }

    proptest! {
        #[test]
        fn what_was_sealed_is_read_as_it_was(
            sizes in proptest::collection::vec((1_usize..3_000, 0_usize..3_000), 0..80),
            at in any::<prop::sample::Index>(), len in 0_usize..100_000,
        ) {
            let content = segment(&sizes);
            let file = opened(&stored(&content));
            prop_assert_eq!(whole(&file), content.clone());
            prop_assert_eq!(frame_by_frame(&file), Some(content.clone()));
            let at = at.index(content.len());
            let mut part = vec![0; len];
            let read = file.read_at(&mut part, at as u64).unwrap();
            prop_assert_eq!(&part[..read], &content[at..content.len().min(at + len)]);
        }

        #[test]
        fn no_changed_byte_is_read_as_something_else_or_panics(place in any::<prop::sample::Index>(), bit in 0_u32..8) {
            let content = segment(&[(400, 500); 200]);
            let files = stored(&content);
            let frames_len = files.content(&frames_path(3)).len();
            let all = frames_len + files.content(&evidence_path(3)).len();
            let at = place.index(all);
            let (path, at) = if at < frames_len { (frames_path(3), at) } else { (evidence_path(3), at - frames_len) };
            files.change(&path, |bytes| bytes[at] ^= 1_u8 << bit);
            if let Some(file) = SealedFile::open(&files, 3).unwrap() {
                let read = whole(&file);
                prop_assert_eq!(read.len(), content.len());
                // Read frame by frame, the original comes back or damage is reported, except in the header.
                let frames = frame_by_frame(&file);
                prop_assert!(frames.is_none_or(|frames| frames[segment::HEADER_BYTES..] == content[segment::HEADER_BYTES..]));
                // Differences are filler bytes, or in the header, which has its own checksum.
                let other = read.iter().zip(&content).enumerate().filter(|(_, (a, b))| a != b);
                for (at, (read, _)) in other {
                    prop_assert!(*read == LOST || at < segment::HEADER_BYTES, "byte {} is read as {}", at, read);
                }
            }
        }

        #[test]
        fn no_file_makes_opening_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), is_marked in any::<bool>()) {
            let files = MemoryFiles::new();
            let mut bytes = bytes;
            if is_marked {
                bytes.splice(..0, *b"RKblk002");
                bytes.extend_from_slice(b"RKblk002");
            }
            for path in [frames_path(3), evidence_path(3)] {
                files.open(&path, OpenMode::Create).unwrap().write_at(&bytes, 0).unwrap();
            }
            if let Some(file) = SealedFile::open(&files, 3).unwrap() {
                let _ = (whole(&file).len(), frame_by_frame(&file));
            }
        }
    }

    #[test]
    fn a_segment_without_its_evidence_is_read_with_filler() {
        let content = segment(&[(40, 50), (40, 0), (40, 60)]);
        let files = stored(&content);
        files.change(&evidence_path(3), Vec::clear);
        let read = whole(&opened(&files));
        assert_eq!(read.len(), content.len());
        let first = segment::HEADER_BYTES + frame::HEADER_BYTES + 40;
        assert_eq!(read[..first], content[..first]);
        assert!(read[first..first + 50].iter().all(|byte| *byte == LOST));
    }
}
