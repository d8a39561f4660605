//! Checking many segments at once. Each is held against its own header, and the
//! results are put together in order, as links of one chain. What is said where
//! something does not hold is left to a walk from front to back.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use super::files::StoreFile;
use super::head::Start;
use super::segment::{Offsets, Segment, SegmentHeader};
use super::walk::{Reached, Visitor, Walk};
use crate::model::Digest;

/// A visitor that can be put together from visitors of parts.
pub(crate) trait Parts: Visitor {
    /// Visits the entries of one segment, knowing nothing of those before.
    type Part: Visitor + Send;

    /// Makes one.
    fn part() -> Self::Part;

    /// Takes over what the next part has seen; false where it does not go on where this ended.
    fn join(&mut self, part: Self::Part) -> bool;

    /// Forgets all that was visited and joined.
    fn reset(&mut self);
}

/// A segment to be checked.
pub(super) struct Part {
    pub(super) number: u32,
    pub(super) file: Arc<dyn StoreFile>,
    /// Where its entries end, where that is known.
    pub(super) end: Option<usize>,
}

/// What was read of the segments.
pub(super) struct CheckedParts {
    pub(super) segments: Vec<(SegmentHeader, Offsets)>,
    /// Behind the last of them.
    pub(super) reached: Reached,
    /// The links at the watched places.
    pub(super) watched: Vec<Option<Digest>>,
}

struct CheckedPart<P> {
    part: P,
    header: SegmentHeader,
    offsets: Offsets,
    reached: Reached,
    watched: Vec<Option<Digest>>,
}

/// Checks the segments, which are the first of a journal that begins at `start`; `None` where anything does not hold, and
/// `visitor` is as new then. `watch`: numbers of entries behind which the link is wanted.
pub(super) fn check<V: Parts>(visitor: &mut V, parts: &[Part], start: &Start, watch: &[u64]) -> Option<CheckedParts> {
    visitor.begins(start);
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS).min(parts.len());
    let checked = thread::scope(|scope| {
        // A place for each thread: so none runs far ahead of the one that joins.
        let (done, results) = mpsc::sync_channel::<(usize, Option<CheckedPart<V::Part>>)>(threads);
        for _ in 0..threads {
            let (done, next) = (done.clone(), &next);
            scope.spawn(move || {
                while let Some((place, part)) = take(next, parts) {
                    let result = check_one::<V>(part, watch);
                    let failed = result.is_none();
                    if done.send((place, result)).is_err() || failed {
                        break;
                    }
                }
            });
        }
        drop(done);
        join(visitor, &results, start.reached(), parts.len(), watch.len())
    });
    if checked.is_none() {
        visitor.reset();
    }
    checked
}

fn take<'a>(next: &AtomicUsize, parts: &'a [Part]) -> Option<(usize, &'a Part)> {
    let place = next.fetch_add(1, Ordering::Relaxed);
    parts.get(place).map(|part| (place, part))
}

fn join<V: Parts>(
    visitor: &mut V,
    results: &mpsc::Receiver<(usize, Option<CheckedPart<V::Part>>)>,
    reached: Reached,
    count: usize,
    watch: usize,
) -> Option<CheckedParts> {
    let mut all = CheckedParts { segments: Vec::with_capacity(count), reached, watched: vec![None; watch] };
    let mut waiting = std::collections::BTreeMap::new();
    while all.segments.len() < count {
        let (place, checked) = results.recv().ok()?;
        waiting.insert(place, checked?);
        while let Some(checked) = waiting.remove(&all.segments.len()) {
            let CheckedPart { part, header, offsets, reached, watched } = checked;
            let goes_on = header.number == all.reached.next_segment
                && header.first.get() == all.reached.next
                && Some(header.link) == all.reached.link
                && all.reached.store.is_none_or(|store| store == header.store);
            if !goes_on || !visitor.join(part) {
                return None;
            }
            for (place, link) in all.watched.iter_mut().zip(watched) {
                *place = place.or(link);
            }
            all.reached = reached;
            all.segments.push((header, offsets));
        }
    }
    Some(all)
}

fn check_one<V: Parts>(part: &Part, watch: &[u64]) -> Option<CheckedPart<V::Part>> {
    let mut bytes = part.file.read_stored().ok()?;
    bytes.truncate(part.end.unwrap_or(bytes.len()));
    let header = SegmentHeader::decode(&bytes)?;
    let mut visitor = V::part();
    let start = Reached {
        next: header.first.get(),
        link: Some(header.link),
        next_segment: part.number,
        store: Some(header.store),
    };
    let mut walk = Walk::from(&mut visitor, start, watch);
    let walked = walk.segment(part.number, &bytes, false);
    if walk.breakage().is_some() {
        return None;
    }
    let (reached, watched) = (walk.reached(), watch.iter().map(|entries| walk.link_after(*entries)).collect());
    Some(CheckedPart { part: visitor, header, offsets: walked.offsets, reached, watched })
}

impl Part {
    pub(super) fn of_file(number: u32, file: &Arc<dyn StoreFile>) -> Self {
        Self { number, file: Arc::clone(file), end: None }
    }

    pub(super) fn of(segment: &Segment) -> std::io::Result<Self> {
        let end = usize::try_from(segment.end()).map_err(std::io::Error::other)?;
        Ok(Self { number: segment.header.number, file: Arc::clone(&segment.file), end: Some(end) })
    }
}

/// Each holds a segment in memory.
const MOST_THREADS: usize = 8;
