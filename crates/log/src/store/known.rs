//! Opening a journal from what is already known about it, reading only its end.

use super::head::Head;
use super::merkle::BLOCK_LEAVES;
use super::parallel::CheckedParts;
use super::recovery::{Source, header_of};
use super::segment::{Offsets, StoreId};
use super::walk::Reached;
use rulekeep_types::Digest;

/// Unverified knowledge about a journal, used until the whole journal is verified.
#[derive(Debug)]
pub struct Known {
    pub(crate) store: StoreId,
    /// Number of entries that are assumed to hold.
    pub(crate) entries: u64,
    /// The link of the last of these entries.
    pub(crate) link: Digest,
    /// The nodes of level 8 of the tree over these entries.
    pub(crate) nodes: Vec<Digest>,
}

impl Known {
    /// Returns the nodes of whole blocks, from which the tree continues.
    pub(super) fn whole_nodes(&self) -> &[Digest] {
        let count = usize::try_from(self.entries / BLOCK_LEAVES).unwrap_or(usize::MAX);
        self.nodes.get(..count).unwrap_or(&self.nodes)
    }

    /// Returns the segments that need not be read. Segments are read if they hold entries that are not known, that
    /// `HEAD` does not name, or that the tree lacks. Returns `None` if the segments contradict what is known.
    pub(super) fn ahead(&self, segments: &[Source], head: Option<&Head>, watch: &[u64]) -> Option<CheckedParts> {
        // A journal whose first entries were archived must be verified first: its beginning may be stated by any
        // entry.
        let head = head.filter(|head| head.store == self.store.to_string() && head.start.is_none())?;
        let in_nodes = self.whole_nodes().len() as u64 * BLOCK_LEAVES;
        let from = self.entries.min(head.entries).min(in_nodes);
        let mut headers = Vec::with_capacity(segments.len());
        for (number, source) in (0_u32..).zip(segments) {
            let header = header_of(&*source.file)?;
            let is_behind = headers.last().is_none_or(|last: &super::segment::SegmentHeader| last.first < header.first);
            if (source.number, header.number, header.store) != (number, number, self.store) || !is_behind {
                return None;
            }
            headers.push(header);
        }
        let read = headers.partition_point(|header| header.first.get() <= from).checked_sub(1)?;
        let reached = Reached::before(headers.get(read)?);
        headers.truncate(read);
        let watched = watch.iter().map(|entries| reached.link_after(*entries)).collect();
        let segments = headers.into_iter().map(|header| (header, Offsets::unknown())).collect();
        Some(CheckedParts { segments, reached, watched })
    }
}
