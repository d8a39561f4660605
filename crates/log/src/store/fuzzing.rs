//! Properties that the fuzz targets of the journal's formats check: no input causes a panic or unbounded work, and no
//! change inside a journal is read as original. The tests below check the same on inputs of their own.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::LazyLock;

use super::files::{Files, FrameSink, OpenMode, StoreFile};
use super::frame::{self, Frame, FrameDraft, Kind};
use super::head::Start;
use super::memory::MemoryFiles;
use super::sealed::{self, SealWriter, Sealed, SealedFile};
use super::segment::{self, SegmentHeader, StoreId};
use super::walk::{Finding, Visitor, Walk};
use rulekeep_types::{Digest, Sequence};

/// Reads `input` as a frame.
///
/// # Panics
///
/// Panics if the result contradicts the input.
pub fn frame(input: &[u8]) {
    let claimed = frame::claimed_size(input);
    let parts = frame::parts(input).map(|parts| (parts.without_evidence.len(), parts.evidence.len(), parts.rest.len()));
    let Ok(frame) = Frame::decode(input) else { return };
    assert!(frame.size() <= input.len());
    assert_eq!(claimed, Some(frame.size()));
    let expected = (frame.size() - frame.evidence.len(), frame.evidence.len(), input.len() - frame.size());
    assert_eq!(parts, Some(expected));
    // Encoding what was decoded again yields the same sequence, body and evidence.
    let mut again = Vec::new();
    let draft = FrameDraft { kind: frame.kind, body: frame.body, evidence: frame.evidence };
    let link = draft.encode(frame.sequence, frame.behind, &Digest::ZERO, &frame.digest(), &mut again);
    let read = Frame::decode(&again).ok().map(|read| (read.kind, read.sequence, read.behind, read.body, read.evidence));
    assert_eq!(read, Some((frame.kind, frame.sequence, frame.behind, frame.body, frame.evidence)));
    assert!(link.is_some());
}

/// Writes `input` into a valid segment, at the offset given by its first two bytes, and walks it; then walks `input`
/// as a segment.
///
/// # Panics
///
/// Panics if a change is not detected.
pub fn segment(input: &[u8]) {
    for last in [false, true] {
        walk(input, 0, last);
    }
    let Some((place, text)) = input.split_first_chunk::<2>() else { return };
    let Good { bytes, checked, entries } = &*GOOD;
    let place = usize::from(u16::from_le_bytes(*place)) % bytes.len();
    let mut changed = bytes.clone();
    for (byte, new) in changed.iter_mut().skip(place).zip(text) {
        *byte = *new;
    }
    for last in [false, true] {
        let is_whole = walk(&changed, *entries, last);
        // The last frame's link is checked against the log's head, not against the segment.
        let differs = checked.iter().any(|range| changed.get(range.clone()) != bytes.get(range.clone()));
        assert!(!differs || !is_whole, "a change from byte {place} on is not found");
    }
}

/// Opens `input` as either file of a sealed segment beside the valid other one, then writes it into both, and reads
/// whatever opens.
///
/// # Panics
///
/// Panics if the number of bytes read differs from what the file claims.
pub fn sealed(input: &[u8]) {
    let Some(good) = sealed_good() else { unreachable!("the good segment can be sealed") };
    read_sealed(input, &good.evidence);
    read_sealed(&good.frames, input);
    let Some((place, text)) = input.split_first_chunk::<2>() else { return };
    let place = usize::from(u16::from_le_bytes(*place));
    let put = |bytes: &[u8]| {
        let mut changed = bytes.to_vec();
        let place = place % changed.len();
        for (byte, new) in changed.iter_mut().skip(place).zip(text) {
            *byte = *new;
        }
        changed
    };
    read_sealed(&put(&good.frames), &good.evidence);
    read_sealed(&good.frames, &put(&good.evidence));
}

fn sealed_good() -> Option<Sealed> {
    let (header, frames) = GOOD.bytes.split_first_chunk()?;
    let mut writer = SealWriter::new(NUMBER, header);
    writer.push(frames)?;
    writer.finish()
}

fn read_sealed(frames: &[u8], evidence: &[u8]) {
    let files = MemoryFiles::new();
    let put = |path: PathBuf, bytes: &[u8]| {
        files.open(&path, OpenMode::Create).and_then(|file| file.write_at(bytes, 0)).is_ok()
    };
    assert!(put(sealed::frames_path(NUMBER), frames) && put(sealed::evidence_path(NUMBER), evidence));
    let Ok(Some(file)) = SealedFile::open(&files, NUMBER) else { return };
    let len = file.len().unwrap_or(u64::MAX);
    // A forged table may claim a file of 4 GiB, so the test reads only a part of it.
    let mut read = vec![0; usize::try_from(len).unwrap_or(usize::MAX).min(MOST_READ)];
    let filled = file.read_at(&mut read, 0).unwrap_or(0);
    assert_eq!(filled, read.len());
    // Reading frame by frame yields the same bytes or reports damage.
    let mut frames = Collected::default();
    if file.each_stored(&mut frames).unwrap_or(false) {
        assert!(len > MOST_READ as u64 || frames.0 == read);
    }
    walk(&read, 0, false);
}

/// Returns whether a segment that must hold `known` entries is sound.
fn walk(bytes: &[u8], known: u64, last: bool) -> bool {
    let mut blind = Blind;
    let mut walk = Walk::starting(&mut blind, &Start::WHOLE, known, &[]);
    let walked = walk.segment(0, bytes, last);
    walk.breakage().is_none() && !walked.torn && walk.entries() >= known
}

/// Reassembles a segment from its frames.
#[derive(Default)]
pub(super) struct Collected(pub(super) Vec<u8>);

impl FrameSink for Collected {
    fn header(&mut self, header: &[u8]) -> bool {
        self.0.extend_from_slice(header);
        true
    }

    fn frame(&mut self, without_evidence: &[u8], evidence: &[u8]) -> bool {
        self.0.extend_from_slice(without_evidence);
        self.0.extend_from_slice(evidence);
        // Stops once there is enough to compare.
        self.0.len() <= MOST_READ
    }
}

/// A visitor that does not check the content of entries.
struct Blind;

impl Visitor for Blind {
    fn visit(&mut self, _: &Frame<'_>, _: &Digest) -> Option<Finding> {
        None
    }
}

/// A valid segment.
struct Good {
    bytes: Vec<u8>,
    /// The byte ranges covered by the header's checksum or by the link of a later entry.
    checked: Vec<Range<usize>>,
    entries: u64,
}

static GOOD: LazyLock<Good> = LazyLock::new(|| {
    let header = SegmentHeader { number: NUMBER, first: Sequence::FIRST, store: StoreId([7; 16]), link: Digest::ZERO };
    let mut good = Good { bytes: header.encode().to_vec(), checked: Vec::new(), entries: 0 };
    good.checked.push(0..segment::HEADER_BYTES);
    let mut link = Digest::ZERO;
    for number in 0_u8..12 {
        let body = format!(r#"{{"number":{number},"text":"{}"}}"#, "word ".repeat(usize::from(number) * 3));
        let evidence = vec![b'e' + number; usize::from(number) * 11];
        let draft = FrameDraft { kind: Kind::Decision, body: body.as_bytes(), evidence: &evidence };
        let start = good.bytes.len();
        let digest = frame::digest(draft.body);
        let sequence = Sequence::new(good.entries);
        if let Some(next) = draft.encode(sequence, 1, &link, &digest, &mut good.bytes) {
            link = next;
        }
        good.entries += 1;
        if number < 11 {
            good.checked.push(start..start + draft.size() - evidence.len());
        }
    }
    good
});

const NUMBER: u32 = 0;
const MOST_READ: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_that_was_put_into_a_journal_goes_unnoticed(
            place in any::<u16>(), text in proptest::collection::vec(any::<u8>(), 0..200), start in 0_usize..4,
        ) {
            let marks: [&[u8]; 4] = [b"", b"RKf2", b"RKseg002", b"RKblk002"];
            let input = [&place.to_le_bytes()[..], marks[start], &text].concat();
            frame(&input);
            frame(&input[2..]);
            segment(&input);
            sealed(&input);
        }
    }

    #[test]
    fn the_good_segment_is_good() {
        assert!(walk(&GOOD.bytes, GOOD.entries, false) && walk(&GOOD.bytes, GOOD.entries, true));
        assert_eq!(GOOD.checked.len(), 12);
    }
}
