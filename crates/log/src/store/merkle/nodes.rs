//! The nodes of the tree that are kept in memory, and the root of any part of the tree.

use std::ops::Range;

use super::frontier::root_over;
use super::hash;
use rulekeep_types::Digest;

/// The complete nodes of the levels 8, 16, 24 and so on: one for 256 entries, one for 65,536 entries, and so on.
///
/// Level 8 is the essential one. The levels above are computed from it, so that a proof need not walk all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Nodes {
    /// The kept levels: `levels[n]` has the nodes of level `8 * (n + 1)`, in the order of their leaves.
    levels: Vec<Vec<Digest>>,
}

/// Number of leaves below a node of level 8.
pub(crate) const BLOCK_LEAVES: u64 = 1 << BLOCK_LEVEL;

/// The lowest level that is kept, and the distance between two kept levels.
pub(super) const BLOCK_LEVEL: u32 = 8;

/// The reason a root or a proof cannot be computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TreeError<E> {
    /// The requested entry or size is not in the tree.
    #[error("a tree of {size} entries has no {place}")]
    OutOfRange {
        /// The requested entry or earlier size.
        place: u64,
        /// The size of the tree.
        size: u64,
    },
    /// The kept nodes do not reach the requested size.
    #[error("the tree's nodes are kept for fewer than {size} entries")]
    Missing {
        /// The requested size of the tree.
        size: u64,
    },
    /// The leaves could not be read, or their number is wrong.
    #[error("the entries below a node of the tree could not be read")]
    Leaves(Option<E>),
}

impl Nodes {
    /// Adds the next node of level 8, as [`Frontier::push`] returns it.
    pub(crate) fn push(&mut self, block: Digest) {
        let mut completed = Some(block);
        let mut place = 0;
        while let Some(node) = completed.take() {
            if place == self.levels.len() {
                self.levels.push(Vec::new());
            }
            let Some(level) = self.levels.get_mut(place) else { return };
            level.push(node);
            if level.len().is_multiple_of(FAN_OUT) {
                let newest = level.get(level.len() - FAN_OUT..).unwrap_or_default();
                completed = Some(root_over(0, newest));
            }
            place += 1;
        }
    }

    /// Returns the nodes of level 8 with the numbers `from..until`.
    pub(crate) fn blocks(&self, from: u64, until: u64) -> Vec<Digest> {
        let place = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let blocks = self.levels.first().map_or(&[][..], Vec::as_slice);
        blocks.get(place(from)..place(until)).unwrap_or_default().to_vec()
    }

    /// Returns the root of the tree over the first `size` entries. `leaves` returns the digests of the entries in a
    /// range, which never spans two blocks of 256.
    pub(crate) fn root<E>(
        &self,
        size: u64,
        leaves: impl FnMut(Range<u64>) -> Result<Vec<Digest>, E>,
    ) -> Result<Digest, TreeError<E>> {
        if size == 0 { Ok(hash::empty()) } else { Tree::new(self, size, leaves).root_of(0..size) }
    }
}

/// The tree of one size, used for one root or proof.
pub(super) struct Tree<'a, F> {
    nodes: &'a Nodes,
    size: u64,
    leaves: F,
    /// Hashes of the leaves in blocks already read: at most three, for the entry, the end of the earlier tree and the
    /// end of this one.
    read: Vec<(u64, Vec<Digest>)>,
}

impl<'a, E, F: FnMut(Range<u64>) -> Result<Vec<Digest>, E>> Tree<'a, F> {
    pub(super) const fn new(nodes: &'a Nodes, size: u64, leaves: F) -> Self {
        Self { nodes, size, leaves, read: Vec::new() }
    }

    /// Returns the hash of the node over a range of leaves.
    // INVARIANT: the range is that of a node: not empty, within the size, its start a multiple of the smallest power
    // of two that is at least its length. So it lies in one block or starts with one, and each half is again the
    // range of a node.
    pub(super) fn root_of(&mut self, range: Range<u64>) -> Result<Digest, TreeError<E>> {
        let length = range.end - range.start;
        if length.is_power_of_two() && length >= BLOCK_LEAVES {
            return self.complete(range.start, length.trailing_zeros());
        }
        if length <= BLOCK_LEAVES {
            return self.in_block(range);
        }
        let middle = range.start + split(length);
        let left = self.root_of(range.start..middle)?;
        let right = self.root_of(middle..range.end)?;
        Ok(hash::node(&left, &right))
    }

    /// Returns the hash of a complete node of level 8 or more, from the kept nodes at its level or at the next level
    /// below.
    fn complete(&self, start: u64, level: u32) -> Result<Digest, TreeError<E>> {
        let kept_at = level / BLOCK_LEVEL;
        let kept_level = kept_at * BLOCK_LEVEL;
        let first = start >> kept_level;
        let range = usize::try_from(first).ok().zip(usize::try_from(first + (1 << (level - kept_level))).ok());
        let kept = self.nodes.levels.get(kept_at as usize - 1);
        let below = kept.zip(range).and_then(|(kept, (first, end))| kept.get(first..end));
        below.map(|below| root_over(0, below)).ok_or(TreeError::Missing { size: self.size })
    }

    /// Returns the hash of a node within one block.
    fn in_block(&mut self, range: Range<u64>) -> Result<Digest, TreeError<E>> {
        let block = range.start - range.start % BLOCK_LEAVES;
        if !self.read.iter().any(|(start, _)| *start == block) {
            let all = block..self.size.min(block + BLOCK_LEAVES);
            let expected = all.end - all.start;
            let leaves = (self.leaves)(all).map_err(|error| TreeError::Leaves(Some(error)))?;
            if leaves.len() as u64 != expected {
                return Err(TreeError::Leaves(None));
            }
            self.read.push((block, leaves.iter().map(|leaf| hash::leaf(leaf.as_bytes())).collect()));
        }
        let read = self.read.iter().find(|(start, _)| *start == block);
        let range = usize::try_from(range.start - block).ok().zip(usize::try_from(range.end - block).ok());
        let hashes = read.zip(range).and_then(|((_, hashes), (start, end))| hashes.get(start..end));
        hashes.map(|hashes| root_over(0, hashes)).ok_or(TreeError::Leaves(None))
    }
}

/// The largest power of two below `length`, which must be two or more.
pub(super) const fn split(length: u64) -> u64 {
    1 << (length - 1).ilog2()
}

/// Number of nodes of a kept level below one node of the next.
const FAN_OUT: usize = 1 << BLOCK_LEVEL;
