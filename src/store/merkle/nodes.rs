//! The nodes of the tree that are kept, and the root of any part of it.

use std::ops::Range;

use super::frontier::root_over;
use super::hash;
use crate::model::Digest;

/// The complete nodes of the levels 8, 16, 24 and so on: one for 256 entries, for
/// 65,536, and for each 256 times as many.
///
/// Level 8 is what there is to keep; the levels above are worked out from it, and
/// spare a proof the walk over all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Nodes {
    /// `levels[n]` has the nodes of level `8 * (n + 1)`, in the order of their leaves.
    levels: Vec<Vec<Digest>>,
}

/// The leaves below a node of level 8.
pub(crate) const BLOCK_LEAVES: u64 = 1 << BLOCK_LEVEL;

/// The lowest level that is kept, and the distance between two levels that are.
pub(super) const BLOCK_LEVEL: u32 = 8;

/// Why a root or a proof cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TreeError<E> {
    /// What was asked for is not in the tree of that size.
    #[error("a tree of {size} entries has no {place}")]
    OutOfRange {
        /// The entry or the earlier size that was asked for.
        place: u64,
        /// The size of the tree.
        size: u64,
    },
    /// The nodes of so large a tree are not there.
    #[error("the tree's nodes are kept for fewer than {size} entries")]
    Missing {
        /// The size of the tree that was asked for.
        size: u64,
    },
    /// The leaves could not be read, or are fewer or more than were asked for.
    #[error("the entries below a node of the tree could not be read")]
    Leaves(Option<E>),
}

impl Nodes {
    /// Adds the next node of level 8, as [`Frontier::push`] hands it out.
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

    /// The nodes of level 8 from one to before another.
    pub(crate) fn blocks(&self, from: u64, until: u64) -> Vec<Digest> {
        let place = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let blocks = self.levels.first().map_or(&[][..], Vec::as_slice);
        blocks.get(place(from)..place(until)).unwrap_or_default().to_vec()
    }

    /// The root of the tree of the first `size` entries. `leaves` yields the digests
    /// of the entries in a range, which never spans two blocks of 256.
    pub(crate) fn root<E>(
        &self,
        size: u64,
        leaves: impl FnMut(Range<u64>) -> Result<Vec<Digest>, E>,
    ) -> Result<Digest, TreeError<E>> {
        if size == 0 { Ok(hash::empty()) } else { Tree::new(self, size, leaves).root_of(0..size) }
    }
}

/// The tree of one size, for as long as one root or proof takes.
pub(super) struct Tree<'a, F> {
    nodes: &'a Nodes,
    size: u64,
    leaves: F,
    /// The leaves' hashes of the blocks that were read: three at the most, the
    /// entry's, the last of the earlier tree and the last of this one.
    read: Vec<(u64, Vec<Digest>)>,
}

impl<'a, E, F: FnMut(Range<u64>) -> Result<Vec<Digest>, E>> Tree<'a, F> {
    pub(super) const fn new(nodes: &'a Nodes, size: u64, leaves: F) -> Self {
        Self { nodes, size, leaves, read: Vec::new() }
    }

    /// The hash of the node above a range of leaves.
    // INVARIANT: the range is a node's: not empty, within the size, its start a multiple of the power of two that its
    // length reaches up to. So it lies in one block or starts with one, and each half is a node's again.
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

    /// The hash of a complete node of level 8 or more, from those nodes that are
    /// kept at its level or at the next below it.
    fn complete(&self, start: u64, level: u32) -> Result<Digest, TreeError<E>> {
        let kept_at = level / BLOCK_LEVEL;
        let kept_level = kept_at * BLOCK_LEVEL;
        let first = start >> kept_level;
        let range = usize::try_from(first).ok().zip(usize::try_from(first + (1 << (level - kept_level))).ok());
        let kept = self.nodes.levels.get(kept_at as usize - 1);
        let below = kept.zip(range).and_then(|(kept, (first, end))| kept.get(first..end));
        below.map(|below| root_over(0, below)).ok_or(TreeError::Missing { size: self.size })
    }

    /// The hash of a node within one block.
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

/// The largest power of two below a length of two or more.
pub(super) const fn split(length: u64) -> u64 {
    1 << (length - 1).ilog2()
}

/// How many nodes of a level that is kept lie below one of the next.
const FAN_OUT: usize = 1 << BLOCK_LEVEL;
