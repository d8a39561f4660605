//! Reading the journal from front to back and verifying all of it.

use super::frame::{self, Frame, FrameError};
use super::head::Start;
use super::mend;
use super::segment::{self, Offsets, Segment, SegmentHeader, StoreId};
use super::tree::{Run, Tree};
use rulekeep_types::parts::BreakageParts;
use rulekeep_types::{Breakage, BrokenKind, Digest, ProofId, Sequence};

/// A receiver of the entries of a walk, in order.
pub trait Visitor {
    /// Checks an entry whose position in the journal has been verified, and returns what is wrong with it, if
    /// anything. `digest` was computed from its body.
    fn visit(&mut self, frame: &Frame<'_>, digest: &Digest) -> Option<Finding>;

    /// Called before the first entry if the journal's first entries were archived.
    fn begins(&mut self, _start: &Start) {}

    /// Called after the last entry if no break was found. Returns what is missing, if anything.
    fn ends(&mut self) -> Option<Finding> {
        None
    }

    /// Called once, at the first break, before any entry after it is visited.
    fn broken(&mut self) {}
}

/// An error that a visitor found in an entry.
#[derive(Debug, Clone)]
pub struct Finding {
    pub(crate) proof_id: Option<ProofId>,
    pub(crate) kind: BrokenKind,
    pub(crate) expected: String,
    pub(crate) found: String,
}

/// A walk over the segments of one store, from the first entry on.
pub(crate) struct Walk<'a> {
    visitor: &'a mut dyn Visitor,
    store: Option<StoreId>,
    /// Number of entries known to have been on disk: none of them may be missing or cut short.
    known: u64,
    next: u64,
    /// The link of the last entry; `None` after a break, where it is unknown.
    link: Option<Digest>,
    next_segment: u32,
    /// Numbers of entries after which to record the link, and the root if a tree grows.
    watched: Vec<Watched>,
    /// Each link so far follows from the one before, so that the last one covers all entries.
    is_linked: bool,
    /// Links are followed through entries with one flipped bit.
    mends: bool,
    /// The link of the last entry before the first break.
    sound_link: Digest,
    /// The tree over the linked entries, if wanted, and the number of entries up to which it grows.
    tree: Option<(Growth, u64)>,
    /// The tree over the entries before the first break.
    sound_tree: Option<Tree>,
    broken: Option<Breakage>,
}

struct Watched {
    entries: u64,
    link: Option<Digest>,
    root: Option<Digest>,
}

/// The part of the tree that a walk grows.
pub(super) enum Growth {
    /// The tree over all entries.
    Tree(Tree),
    /// The entries of one part, to be joined to the tree.
    Run(Run),
}

/// The state of a walk between two entries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reached {
    /// The sequence of the next entry.
    pub(super) next: u64,
    /// The link of the entry before; `None` after a break.
    pub(super) link: Option<Digest>,
    pub(super) next_segment: u32,
    pub(super) store: Option<StoreId>,
}

impl Reached {
    /// The link after `entries` entries, if the walk is exactly there.
    pub(super) fn link_after(&self, entries: u64) -> Option<Digest> {
        self.link.filter(|_| entries == self.next)
    }

    /// The state right before a segment, according to its header.
    pub(super) fn before(header: &SegmentHeader) -> Self {
        let (next, next_segment) = (header.first.get(), header.number);
        Self { next, link: Some(header.link), next_segment, store: Some(header.store) }
    }
}

/// The result of walking one segment.
pub(crate) struct SegmentWalk {
    pub(crate) header: Option<SegmentHeader>,
    pub(crate) offsets: Offsets,
    /// The last segment ends in an entry that was being written when the process or the machine stopped.
    pub(crate) torn: bool,
}

impl<'a> Walk<'a> {
    /// Starts a walk at `start` that calls `visitor`. At least `known` entries must be there.
    pub(crate) fn starting(visitor: &'a mut dyn Visitor, start: &Start, known: u64, watch: &[u64]) -> Self {
        visitor.begins(start);
        let mut walk = Self::from(visitor, start.reached(), watch);
        walk.known = known;
        walk
    }

    /// Asks the visitor whether anything is missing.
    pub(crate) fn end(&mut self) {
        if self.broken.is_none()
            && let Some(finding) = self.visitor.ends()
        {
            self.broken_at(segment::FOLDER, 0, finding.kind, &finding.expected, &finding.found);
        }
    }

    /// Starts a walk in the given state.
    pub(super) fn from(visitor: &'a mut dyn Visitor, reached: Reached, watch: &[u64]) -> Self {
        let Reached { next, link, next_segment, store } = reached;
        Self {
            visitor,
            store,
            known: 0,
            next,
            link,
            next_segment,
            watched: watch
                .iter()
                .map(|&entries| Watched { entries, link: link.filter(|_| entries == next), root: None })
                .collect(),
            is_linked: link.is_some(),
            mends: false,
            sound_link: link.unwrap_or(Digest::ZERO),
            tree: None,
            sound_tree: None,
            broken: None,
        }
    }

    /// Sets the number of entries that must be there.
    pub(super) fn knowing(self, known: u64) -> Self {
        Self { known, ..self }
    }

    /// Follows links through entries with one flipped bit. Such entries are still reported as broken.
    pub(super) fn mending(self) -> Self {
        Self { mends: true, ..self }
    }

    /// Grows a tree during the walk, up to `until` entries.
    pub(super) fn growing(mut self, tree: Growth, until: u64) -> Self {
        if let Growth::Tree(tree) = &tree {
            for watched in self.watched.iter_mut().filter(|watched| watched.entries == tree.size()) {
                watched.root = Some(tree.root());
            }
        }
        self.tree = Some((tree, until));
        self
    }

    /// The tree over the entries before the first break.
    pub(super) fn into_tree(self) -> Option<Tree> {
        let tree = if let Some((Growth::Tree(tree), _)) = self.tree { Some(tree) } else { None };
        self.sound_tree.or(tree)
    }

    /// The tree over all linked entries, including those after a break.
    pub(super) fn linked_tree(&self) -> Option<&Tree> {
        if let Some((Growth::Tree(tree), _)) = &self.tree { Some(tree) } else { None }
    }

    /// The entries to be joined to the tree.
    pub(super) fn into_run(self) -> Option<Run> {
        if let Some((Growth::Run(run), _)) = self.tree { Some(run) } else { None }
    }

    /// Continues in the state that a parallel verification reached, with the links it found at the watched positions.
    pub(super) fn go_on_from(&mut self, reached: Reached, watched: &[Option<Digest>]) {
        let Reached { next, link, next_segment, store } = reached;
        (self.next, self.link, self.next_segment, self.store) = (next, link, next_segment, store);
        for (place, found) in self.watched.iter_mut().zip(watched) {
            place.link = place.link.or(*found);
        }
    }

    /// The current state.
    pub(super) fn reached(&self) -> Reached {
        Reached { next: self.next, link: self.link, next_segment: self.next_segment, store: self.store }
    }

    /// Walks one segment. `last` says that it is the segment that was being written.
    pub(crate) fn segment(&mut self, number: u32, bytes: &[u8], last: bool) -> SegmentWalk {
        let name = Segment::name(number);
        let header = self.header(number, &name, bytes);
        let first = self.next;
        let mut offsets = Offsets::new();
        let mut at = segment::HEADER_BYTES;
        let mut torn = false;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let decoded = Frame::decode(rest);
            let half_written = decoded.as_ref().is_ok_and(|frame| {
                last && (frame.evidence.last() == Some(&0) || longest_zero_run(frame.evidence) >= LEAST_HOLE)
            });
            match decoded {
                Ok(frame) if !(half_written && self.is_torn(bytes, at)) => {
                    self.frame(&frame, &name, at);
                    let first = header.map_or(first, |header| header.first.get());
                    if offsets.push(frame.sequence.get().saturating_sub(first), frame.size()).is_none() {
                        self.broken_at(&name, at, BrokenKind::Damage, "a segment of less than 4 GiB", "a larger one");
                        break;
                    }
                    at += frame.size();
                }
                Err(_) if rest.iter().all(|byte| *byte == 0) => {
                    if !last {
                        self.broken_at(&name, at, BrokenKind::Damage, "the end of a sealed segment", "zeros");
                    }
                    break;
                }
                _ if last && self.is_torn(bytes, at) => {
                    torn = true;
                    break;
                }
                decoded => {
                    let found = decoded.err().unwrap_or(FrameError::Cut).to_string();
                    self.broken_at(&name, at, BrokenKind::Damage, "a whole entry", &found);
                    let next = next_frame(bytes, at + 1);
                    let extent = next.map_or(rest.len(), |(place, _)| place - at);
                    let is_mended = self.mend(rest.get(..extent).unwrap_or(rest));
                    let Some(next) = next else { break };
                    if !is_mended || next.1 != self.next {
                        self.lose_link();
                    }
                    self.next = next.1;
                    at = next.0;
                    offsets.skip_to(at);
                }
            }
        }
        SegmentWalk { header, offsets, torn }
    }

    /// Reports a segment whose file is missing.
    pub(crate) fn missing_segment(&mut self, number: u32) {
        self.broken_at(&Segment::name(number), 0, BrokenKind::Missing, "the segment's file", "no such file");
        self.lose_link();
        self.next_segment = number + 1;
    }

    /// Reports a break found outside the segments, unless there is an earlier one.
    pub(crate) fn broken(&mut self, file: &str, kind: BrokenKind, expected: &str, found: &str) {
        self.broken_at(file, 0, kind, expected, found);
    }

    /// Number of entries read, including those that could not be read.
    pub(crate) fn entries(&self) -> u64 {
        self.next
    }

    /// The link of the last entry.
    pub(crate) fn link(&self) -> Option<Digest> {
        self.link
    }

    /// The link of the last entry before the first break.
    pub(super) fn sound_link(&self) -> Digest {
        self.sound_link
    }

    /// The link after `entries` entries, if they are watched and were reached without a break.
    pub(crate) fn link_after(&self, entries: u64) -> Option<Digest> {
        self.watched.iter().find(|watched| watched.entries == entries).and_then(|watched| watched.link)
    }

    /// The root after `entries` watched entries, if they are linked.
    pub(super) fn root_after(&self, entries: u64) -> Option<Digest> {
        self.watched.iter().find(|watched| watched.entries == entries).and_then(|watched| watched.root)
    }

    /// The store that the segments belong to.
    pub(crate) fn store(&self) -> Option<StoreId> {
        self.store
    }

    /// The first break, if any.
    pub(crate) fn breakage(&self) -> Option<&Breakage> {
        self.broken.as_ref()
    }

    fn header(&mut self, number: u32, name: &str, bytes: &[u8]) -> Option<SegmentHeader> {
        let Some(header) = SegmentHeader::decode(bytes) else {
            self.broken_at(name, 0, BrokenKind::Damage, "a segment's header", "bytes that are not one");
            self.next_segment = number + 1;
            return None;
        };
        let store = *self.store.get_or_insert(header.store);
        if header.store != store {
            let found = format!("store {}", header.store);
            self.broken_at(name, 0, BrokenKind::Tampering, &format!("store {store}"), &found);
        }
        if (header.number, number) != (self.next_segment, self.next_segment) {
            let expected = format!("segment {}", self.next_segment);
            self.broken_at(name, 0, BrokenKind::Tampering, &expected, &format!("segment {}", header.number));
        }
        if header.first.get() != self.next {
            let expected = format!("entry {} first", self.next);
            self.broken_at(name, 0, BrokenKind::Missing, &expected, &format!("entry {} first", header.first));
        } else if self.link.is_some_and(|link| link != header.link) {
            let expected = self.link.map_or_else(String::new, |link| format!("link {link}"));
            self.broken_at(name, 0, BrokenKind::Tampering, &expected, &format!("link {}", header.link));
        }
        if self.link.is_none() {
            self.link = Some(header.link);
            self.next = header.first.get();
        }
        self.next_segment = number + 1;
        Some(header)
    }

    fn frame(&mut self, frame: &Frame<'_>, name: &str, at: usize) {
        if frame.sequence.get() != self.next {
            let kind = if frame.sequence.get() > self.next { BrokenKind::Missing } else { BrokenKind::Tampering };
            let expected = format!("entry {}", self.next);
            self.broken_at(name, at, kind, &expected, &format!("entry {}", frame.sequence));
            self.lose_link();
            self.next = frame.sequence.get();
        }
        let digest = frame.digest();
        if let Some(expected) =
            self.link.map(|link| frame.expected_link(&link, &digest)).filter(|link| *link != frame.link)
        {
            let found = format!("link {}", frame.link);
            self.broken_at(name, at, BrokenKind::Tampering, &format!("link {expected}"), &found);
            self.is_linked = false;
        }
        if let Some(finding) = self.visitor.visit(frame, &digest) {
            self.broken_at(name, at, finding.kind, &finding.expected, &finding.found);
            if let Some(broken) = self.broken.as_mut().filter(|broken| broken.sequence.get() == self.next) {
                broken.proof_id = finding.proof_id;
            }
        }
        if self.broken.is_none() {
            self.sound_link = frame.link;
        }
        self.follow(frame.sequence.get(), frame.link, &digest);
    }

    /// Advances past an entry with the given sequence, link and digest.
    fn follow(&mut self, sequence: u64, link: Digest, digest: &Digest) {
        self.link = Some(link);
        self.next = sequence + 1;
        if !self.is_linked {
            return;
        }
        if let Some((tree, _)) = self.tree.as_mut().filter(|(_, until)| sequence < *until) {
            match tree {
                // The tree may already have the first entries.
                Growth::Tree(tree) if tree.size() == sequence => tree.push(digest),
                Growth::Tree(_) => {}
                Growth::Run(run) => run.push(sequence, digest),
            }
        }
        for watched in self.watched.iter_mut().filter(|watched| watched.entries == self.next) {
            watched.link = Some(link);
            if let Some((Growth::Tree(tree), _)) = &self.tree
                && tree.size() == self.next
            {
                watched.root = Some(tree.root());
            }
        }
    }

    /// Advances past an unreadable entry if a single flipped bit is all that is wrong with it.
    fn mend(&mut self, bytes: &[u8]) -> bool {
        let mended = self.link.filter(|_| self.mends).and_then(|link| mend::mended(bytes, &link));
        if let Some((link, digest)) = &mended {
            self.follow(self.next, *link, digest);
        }
        mended.is_some()
    }

    fn lose_link(&mut self) {
        (self.link, self.is_linked) = (None, false);
    }

    fn broken_at(&mut self, file: &str, at: usize, kind: BrokenKind, expected: &str, found: &str) {
        if self.broken.is_some() {
            return;
        }
        self.visitor.broken();
        self.sound_tree = self.linked_tree().cloned();
        self.broken = Some(Breakage::from(BreakageParts {
            sequence: Sequence::new(self.next),
            proof_id: None,
            file: file.to_owned(),
            offset: at as u64,
            kind,
            expected: expected.to_owned(),
            found: found.to_owned(),
        }));
    }

    /// Returns whether the bytes at `at` are the remains of a write that was never acknowledged: no later entry says
    /// that it was on disk, nobody recorded it, and part of it is still the zeros that were there before.
    fn is_torn(&self, bytes: &[u8], at: usize) -> bool {
        if self.next < self.known || self.broken.is_some() {
            return false;
        }
        let mut from = at + 1;
        while let Some((place, sequence, durable)) = next_frame_with_mark(bytes, from) {
            if durable > self.next || sequence < self.next {
                return false;
            }
            from = place + 1;
        }
        let rest = bytes.get(at..).unwrap_or_default();
        let data = rest.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let claimed = frame::claimed_size(rest).unwrap_or(data.max(frame::HEADER_BYTES));
        // Space is preallocated, so the file is always longer than the entry being written. An entry past the end was
        // cut.
        let Some(extent) = rest.get(..claimed) else { return false };
        // An entry that is complete except for its own length was not cut short.
        if frame::is_whole_but_for_a_length(rest.get(..data).unwrap_or_default()) {
            return false;
        }
        // A flipped bit cannot turn the first byte of an entry into zero.
        extent.first() == Some(&0) || extent.last() == Some(&0) || longest_zero_run(extent) >= LEAST_HOLE
    }
}

/// Length of a run of zeros that no complete entry has: bodies and evidence are JSON, links are digests.
const LEAST_HOLE: usize = 32;

fn longest_zero_run(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte != 0).map(<[u8]>::len).max().unwrap_or(0)
}

/// Finds the next offset, starting at `from`, at which a whole frame starts. Returns the offset and its sequence.
fn next_frame(bytes: &[u8], from: usize) -> Option<(usize, u64)> {
    next_frame_with_mark(bytes, from).map(|(place, sequence, _)| (place, sequence))
}

fn next_frame_with_mark(bytes: &[u8], from: usize) -> Option<(usize, u64, u64)> {
    let mut from = from;
    loop {
        let rest = bytes.get(from..)?;
        let place = from + rest.windows(frame::MAGIC.len()).position(|window| window == frame::MAGIC)?;
        if let Ok(frame) = Frame::decode(bytes.get(place..)?) {
            return Some((place, frame.sequence.get(), frame.durable_before()));
        }
        from = place + 1;
    }
}
