//! Erasing evidence for good, so that erased evidence can be told from lost evidence.
//!
//! Evidence in an active or full segment is overwritten in place. For a sealed segment a new evidence file replaces
//! the old one. Links and checksums do not cover evidence, so the journal verifies before, during and after. Erasing
//! also removes duplicate files that a crash left beside the segments, and covers the copies of torn tails.
//!
//! `ERASED` records the number of entries already searched for erasures. When a store is opened, erasures after that
//! point are carried out. Without the file all of them are carried out again.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::files::{self, Files, OpenMode, StoreFile, TextFile};
use super::frame::{self, Frame, GONE};
use super::journal::Reader;
use super::open_error;
use super::sealed::{self, SealedFile};
use super::segment::{self, Segment};

/// Decides whether the evidence of an entry is to be erased.
pub(crate) type IsToGo<'a> = &'a dyn Fn(&Frame<'_>) -> bool;

/// Decides which segments, given as ranges of sequences, need to be read.
pub(crate) type IsWanted<'a> = &'a dyn Fn(&Range<u64>) -> bool;

impl Reader {
    /// Passes the entries of all wanted segments to `look`.
    pub(crate) fn each_entry(&self, is_wanted: IsWanted<'_>, look: &mut dyn FnMut(&Frame<'_>)) -> io::Result<()> {
        for segment in self.all_segments() {
            if is_wanted(&range_of(&segment)?) {
                each_frame(&content(&segment)?, &mut |_, frame| look(frame))?;
            }
        }
        Ok(())
    }

    /// Erases the evidence of all entries that `is_to_go` selects, durably. Concurrent readers may see a partial
    /// erasure.
    pub(crate) fn erase(&self, files: &dyn Files, is_wanted: IsWanted<'_>, is_to_go: IsToGo<'_>) -> io::Result<()> {
        for number in self.all_segments().iter().map(|segment| segment.header.number) {
            // The segment may have been sealed since the list was made.
            let _turn = self.rewriting();
            let Some(segment) = self.all_segments().into_iter().find(|segment| segment.header.number == number) else {
                continue;
            };
            if is_wanted(&range_of(&segment)?) {
                self.erase_in(files, &segment, is_to_go)?;
            }
        }
        let _turn = self.rewriting();
        self.remove_what_crashes_left(files)?;
        files.sync_dir(Path::new(segment::FOLDER))?;
        erase_copies(files, is_to_go)
    }

    fn erase_in(&self, files: &dyn Files, segment: &Arc<Segment>, is_to_go: IsToGo<'_>) -> io::Result<()> {
        let mut bytes = content(segment)?;
        let mut gone: Vec<(Range<usize>, u64)> = Vec::new();
        each_frame(&bytes, &mut |at, frame| {
            // Evidence that reads as erased may not be erased on disk: the process may have been killed before the
            // sync.
            let is_left = if segment.is_sealed { !frame.has_no_evidence() } else { !frame.evidence.is_empty() };
            if is_left && is_to_go(frame) {
                let end = at + frame.size();
                gone.push((end - frame.evidence.len()..end, frame.sequence.get()));
            }
        })?;
        if gone.is_empty() {
            return Ok(());
        }
        for (place, _) in &gone {
            if let Some(evidence) = bytes.get_mut(place.clone()) {
                evidence.fill(GONE);
                if !segment.is_sealed {
                    segment.file.write_at(evidence, place.start as u64)?;
                }
            }
        }
        if !segment.is_sealed {
            return segment.sync();
        }
        let number = segment.header.number;
        let is_gone = |sequence: u64| gone.binary_search_by_key(&sequence, |(_, sequence)| *sequence).is_ok();
        let file = sealed::put_without(files, number, &is_gone, &bytes)?;
        files.sync_dir(Path::new(segment::FOLDER))?;
        self.replace(segment.sealed_in(file));
        Ok(())
    }

    /// Removes files that hold evidence a second time: unfinished files, and the form of a segment that is not read.
    fn remove_what_crashes_left(&self, files: &dyn Files) -> io::Result<()> {
        let folder = Path::new(segment::FOLDER);
        let names = files.list(folder)?;
        let remove = |path: &Path| {
            let is_there = path.file_name().is_some_and(|name| names.iter().any(|known| name == known.as_str()));
            if is_there { files.remove(path) } else { Ok(()) }
        };
        for name in names.iter().filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "next"))
        {
            files.remove(&folder.join(name))?;
        }
        for segment in self.all_segments() {
            let number = segment.header.number;
            if segment.is_sealed {
                remove(&Segment::path(number))?;
            } else {
                remove(&sealed::frames_path(number))?;
                remove(&sealed::evidence_path(number))?;
            }
        }
        Ok(())
    }
}

/// Reads the number of entries already searched for erasures; 0 if unknown.
pub fn carried_out(files: &dyn Files) -> io::Result<u64> {
    let TextFile::Whole(json) = files::read_text(files, NAME)? else { return Ok(0) };
    Ok(serde_json::from_str::<Mark>(&json).map_or(0, |mark| mark.entries))
}

/// Records the number of entries already searched for erasures.
pub fn note_carried_out(files: &dyn Files, entries: u64) -> io::Result<()> {
    files::replace_text(files, NAME, &serde_json::to_string(&Mark { entries }).map_err(io::Error::other)?)
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mark {
    entries: u64,
}

/// The file's name in the store.
pub(crate) const NAME: &str = "ERASED";

fn range_of(segment: &Segment) -> io::Result<Range<u64>> {
    let first = segment.header.first.get();
    Ok(first..first + segment.entries()?)
}

/// Reads a segment up to the end of its entries.
fn content(segment: &Segment) -> io::Result<Vec<u8>> {
    // Bytes appended while the file is read lie after the end.
    let end = usize::try_from(segment.end()?).map_err(io::Error::other)?;
    let mut bytes = segment.file.read_stored()?;
    bytes.truncate(end);
    Ok(bytes)
}

/// Passes each entry of a segment and its offset to `look`.
pub(super) fn each_frame(bytes: &[u8], look: &mut dyn FnMut(usize, &Frame<'_>)) -> io::Result<()> {
    let mut at = segment::HEADER_BYTES;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let frame = Frame::decode(rest).map_err(|error| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{error} at byte {at}; verify the log"))
        })?;
        look(at, &frame);
        at += frame.size();
    }
    Ok(())
}

/// Erases evidence in the copies of torn tails. Bytes outside whole entries are erased too.
fn erase_copies(files: &dyn Files, is_to_go: IsToGo<'_>) -> io::Result<()> {
    let folder = Path::new(open_error::RECOVERED);
    for name in files.list(folder)?.iter().filter(|name| name.starts_with(open_error::TAIL)) {
        let path: PathBuf = folder.join(name);
        let bytes = files.open(&path, OpenMode::Read)?.read_all()?;
        let mut erased = bytes.clone();
        let mut goes_any = false;
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let (goes, size) = match Frame::decode(rest) {
                Ok(frame) if frame.evidence.is_empty() || !is_to_go(&frame) => (0, frame.size()),
                Ok(frame) => (frame.evidence.len(), frame.size()),
                Err(_) => {
                    let next = rest.get(1..).and_then(frame::find_magic).map_or(rest.len(), |place| place + 1);
                    (next, next)
                }
            };
            goes_any |= goes > 0;
            if let Some(place) = erased.get_mut(at + size - goes..at + size) {
                place.fill(GONE);
            }
            at += size;
        }
        if goes_any {
            let file: Arc<dyn StoreFile> = files.open(&path, OpenMode::Write)?;
            file.write_at(&erased, 0)?;
            file.sync_data()?;
        }
    }
    Ok(())
}

impl SealedFile {
    /// Builds the evidence file without that of some entries. Returns `None` if the stored files are damaged.
    pub(super) fn evidence_without(&self, number: u32, is_gone: &dyn Fn(u64) -> bool) -> io::Result<Option<Vec<u8>>> {
        let mut writer = super::blocks::BlockWriter::new(&number.to_le_bytes());
        for block in 0..self.frames.blocks() {
            let Some(frames) = self.frames.read(block)? else { return Ok(None) };
            let stored = match &self.evidence {
                Some(file) => file.read(block)?,
                None => None,
            };
            let Some(stored) = stored else { return Ok(None) };
            let Some(content) = sealed::block_without(&frames, &stored, is_gone) else { return Ok(None) };
            let start = self.frames.start(block);
            if start.and_then(|start| writer.push(start, &content)).is_none() {
                return Ok(None);
            }
        }
        Ok(writer.finish(self.frames.end()))
    }
}
