//! Verifying many segments in parallel. Each segment is verified against its own header, and the results are joined
//! in order, as links of one chain. Describing a break is left to a walk from front to back.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use super::files::{FrameSink, StoreFile};
use super::frame::Frame;
use super::segment::{Offsets, Segment, SegmentHeader};
use super::tree::{Run, Tree};
use super::walk::{Growth, Reached, Visitor, Walk};
use rulekeep_types::Digest;

/// A visitor that can be assembled from visitors of single segments.
pub trait Parts: Visitor {
    /// The visitor of one segment, which knows nothing of the segments before.
    type Part: Visitor + Send;
    /// The data needed to create a part.
    type Plan: Send + Sync;

    /// Returns the data to create parts with.
    fn plan(&self) -> Self::Plan;

    /// Creates a part.
    fn part(plan: &Self::Plan) -> Self::Part;

    /// Takes over what the next part has seen. Returns false if it does not continue where this one ended.
    fn join(&mut self, part: Self::Part) -> bool;

    /// Discards everything visited and joined.
    fn reset(&mut self);
}

/// A segment to be verified.
pub(super) struct Part {
    pub(super) number: u32,
    pub(super) file: Arc<dyn StoreFile>,
    /// Offset at which its entries end, if known.
    pub(super) end: Option<usize>,
}

/// The result of verifying consecutive segments.
pub(super) struct CheckedParts {
    pub(super) segments: Vec<(SegmentHeader, Offsets)>,
    /// The state after the last of the segments.
    pub(super) reached: Reached,
    /// The links at the watched positions.
    pub(super) watched: Vec<Option<Digest>>,
}

struct CheckedPart<P> {
    part: P,
    header: SegmentHeader,
    offsets: Offsets,
    reached: Reached,
    watched: Vec<Option<Digest>>,
    /// The entries to add to the tree, if a tree is wanted.
    run: Option<Run>,
}

/// Options of verifying segments.
#[derive(Clone, Copy, Default)]
pub struct Manner<'a> {
    /// Largest number of threads; 0 for one per processor, and never more than 8.
    pub(crate) threads: usize,
    /// Called with the number of entries verified so far, counted from the first of the journal.
    pub(crate) progress: Option<&'a dyn Fn(u64)>,
    /// Set to stop before the next segment.
    pub(crate) stop: Option<&'a AtomicBool>,
}

impl Manner<'_> {
    pub(crate) fn is_stopped(&self) -> bool {
        is_set(self.stop)
    }

    fn tell(&self, entries: u64) {
        if let Some(progress) = self.progress {
            progress(entries);
        }
    }
}

/// Verifies the segments, which follow `start`. Returns `None`, with `visitor` reset, if anything is wrong or
/// `manner` stopped it. `watch` lists numbers of entries after which the link is wanted. The tree grows up to the
/// given number of entries.
pub(super) fn check<V: Parts>(
    visitor: &mut V,
    parts: &[Part],
    start: Reached,
    watch: &[u64],
    manner: Manner<'_>,
    tree: Option<(&mut Tree, u64)>,
) -> Option<CheckedParts> {
    let (tree, until) = tree.unzip();
    let next = AtomicUsize::new(0);
    let wanted = match manner.threads {
        0 => thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let threads = wanted.min(MOST_THREADS).min(parts.len());
    let (plan, stop) = (visitor.plan(), manner.stop);
    let checked = thread::scope(|scope| {
        // Bounded to one result per thread, so that no thread runs far ahead of the join.
        let (done, results) = mpsc::sync_channel::<(usize, Option<CheckedPart<V::Part>>)>(threads);
        for _ in 0..threads {
            let (done, next, plan) = (done.clone(), &next, &plan);
            scope.spawn(move || {
                while let Some((place, part)) = take(next, parts) {
                    let is_stopped = is_set(stop);
                    let result = if is_stopped { None } else { check_one::<V>(part, plan, watch, until) };
                    let failed = result.is_none();
                    if done.send((place, result)).is_err() || failed {
                        break;
                    }
                }
            });
        }
        drop(done);
        join(visitor, &results, parts.len(), (start, watch.len()), manner, tree)
    });
    if checked.is_none() {
        visitor.reset();
    }
    checked
}

fn is_set(stop: Option<&AtomicBool>) -> bool {
    stop.is_some_and(|stop| stop.load(Ordering::Acquire))
}

fn take<'a>(next: &AtomicUsize, parts: &'a [Part]) -> Option<(usize, &'a Part)> {
    let place = next.fetch_add(1, Ordering::Relaxed);
    parts.get(place).map(|part| (place, part))
}

fn join<V: Parts>(
    visitor: &mut V,
    results: &mpsc::Receiver<(usize, Option<CheckedPart<V::Part>>)>,
    count: usize,
    (start, watch): (Reached, usize),
    manner: Manner<'_>,
    mut tree: Option<&mut Tree>,
) -> Option<CheckedParts> {
    let mut all = CheckedParts { segments: Vec::with_capacity(count), reached: start, watched: vec![None; watch] };
    let mut waiting = std::collections::BTreeMap::new();
    while all.segments.len() < count {
        let (place, checked) = results.recv().ok()?;
        waiting.insert(place, checked?);
        while let Some(checked) = waiting.remove(&all.segments.len()) {
            let CheckedPart { part, header, offsets, reached, watched, run } = checked;
            let goes_on = header.number == all.reached.next_segment
                && header.first.get() == all.reached.next
                && Some(header.link) == all.reached.link
                && all.reached.store.is_none_or(|store| store == header.store);
            if !goes_on || !visitor.join(part) {
                return None;
            }
            if let (Some(tree), Some(run)) = (&mut tree, run) {
                tree.join(&run);
            }
            for (place, link) in all.watched.iter_mut().zip(watched) {
                *place = place.or(link);
            }
            all.reached = reached;
            all.segments.push((header, offsets));
            manner.tell(all.reached.next);
        }
    }
    Some(all)
}

fn check_one<V: Parts>(
    part: &Part,
    plan: &V::Plan,
    watch: &[u64],
    tree_until: Option<u64>,
) -> Option<CheckedPart<V::Part>> {
    check_sealed::<V>(part, plan, watch, tree_until).or_else(|| check_content::<V>(part, plan, watch, tree_until))
}

/// Verifies a sealed segment block by block, while each is in the processor's cache. Returns `None` if that is not
/// possible or anything is wrong.
fn check_sealed<V: Parts>(
    part: &Part,
    plan: &V::Plan,
    watch: &[u64],
    tree_until: Option<u64>,
) -> Option<CheckedPart<V::Part>> {
    let mut checking = Checking {
        part: V::part(plan),
        header: None,
        offsets: Offsets::new(),
        next: 0,
        link: Digest::ZERO,
        watch,
        watched: vec![None; watch.len()],
        run: tree_until.map(|until| (Run::default(), until)),
    };
    let holds = part.file.each_stored(&mut checking).ok()?;
    let Checking { part: visitor, header, offsets, next, link, watched, run, .. } = checking;
    let header = header.filter(|header| holds && header.number == part.number)?;
    let is_whole = part.end.is_none_or(|end| offsets.end() == end as u64);
    let next_segment = header.number.checked_add(1)?;
    let reached = Reached { next, link: Some(link), next_segment, store: Some(header.store) };
    let run = run.map(|(run, _)| run);
    is_whole.then_some(CheckedPart { part: visitor, header, offsets, reached, watched, run })
}

/// The progress of verifying a sealed segment.
struct Checking<'a, P> {
    part: P,
    header: Option<SegmentHeader>,
    offsets: Offsets,
    next: u64,
    link: Digest,
    watch: &'a [u64],
    watched: Vec<Option<Digest>>,
    run: Option<(Run, u64)>,
}

impl<P: Visitor> Checking<'_, P> {
    fn note_watched(&mut self) {
        for (entries, place) in self.watch.iter().zip(&mut self.watched) {
            if *entries == self.next {
                *place = Some(self.link);
            }
        }
    }
}

impl<P: Visitor> FrameSink for Checking<'_, P> {
    fn header(&mut self, header: &[u8]) -> bool {
        self.header = SegmentHeader::decode(header);
        let Some(header) = self.header else { return false };
        (self.next, self.link) = (header.first.get(), header.link);
        self.note_watched();
        true
    }

    fn frame(&mut self, without_evidence: &[u8], evidence: &[u8]) -> bool {
        let Ok(frame) = Frame::decode_apart(without_evidence, evidence) else { return false };
        let digest = frame.digest();
        let first = self.header.map_or(0, |header| header.first.get());
        if frame.sequence.get() != self.next
            || frame.expected_link(&self.link, &digest) != frame.link
            || self.offsets.push(self.next - first, frame.size()).is_none()
            || self.part.visit(&frame, &digest).is_some()
        {
            return false;
        }
        if let Some((run, _)) = self.run.as_mut().filter(|(_, until)| self.next < *until) {
            run.push(self.next, &digest);
        }
        self.link = frame.link;
        self.next += 1;
        self.note_watched();
        true
    }
}

fn check_content<V: Parts>(
    part: &Part,
    plan: &V::Plan,
    watch: &[u64],
    tree_until: Option<u64>,
) -> Option<CheckedPart<V::Part>> {
    let mut bytes = part.file.read_stored().ok()?;
    bytes.truncate(part.end.unwrap_or(bytes.len()));
    let header = SegmentHeader::decode(&bytes)?;
    let mut visitor = V::part(plan);
    let start = Reached { next_segment: part.number, ..Reached::before(&header) };
    let mut walk = Walk::from(&mut visitor, start, watch);
    if let Some(until) = tree_until {
        walk = walk.growing(Growth::Run(Run::default()), until);
    }
    let walked = walk.segment(part.number, &bytes, false);
    if walk.breakage().is_some() {
        return None;
    }
    let (reached, watched) = (walk.reached(), watch.iter().map(|entries| walk.link_after(*entries)).collect());
    let run = walk.into_run();
    Some(CheckedPart { part: visitor, header, offsets: walked.offsets, reached, watched, run })
}

impl Part {
    pub(super) fn of_file(number: u32, file: &Arc<dyn StoreFile>) -> Self {
        Self { number, file: Arc::clone(file), end: None }
    }

    pub(super) fn of(segment: &Segment) -> std::io::Result<Self> {
        let end = usize::try_from(segment.end()?).map_err(std::io::Error::other)?;
        Ok(Self { number: segment.header.number, file: Arc::clone(&segment.file), end: Some(end) })
    }
}

/// Upper bound of the threads: each holds a segment in memory.
const MOST_THREADS: usize = 8;
