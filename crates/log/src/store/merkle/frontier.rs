//! The growing edge of the tree: the minimum needed to push a leaf and to compute the root.

use super::hash;
use super::nodes::BLOCK_LEVEL;
use rulekeep_types::Digest;

/// Number of leaves, and the roots of the complete subtrees over them: one for each set bit of the number, largest
/// subtree first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Frontier {
    size: u64,
    edge: Vec<Digest>,
}

impl Frontier {
    /// Creates the edge of a tree without leaves.
    pub(crate) const fn new() -> Self {
        Self { size: 0, edge: Vec::new() }
    }

    /// The roots of the complete subtrees, largest first.
    pub(crate) fn edge(&self) -> &[Digest] {
        &self.edge
    }

    /// Creates the edge of a tree of `size` leaves. Returns `None` if the number of subtrees does not match.
    pub(crate) fn of(size: u64, edge: Vec<Digest>) -> Option<Self> {
        (edge.len() == size.count_ones() as usize).then_some(Self { size, edge })
    }

    /// Number of leaves.
    pub(crate) const fn size(&self) -> u64 {
        self.size
    }

    /// Adds a leaf. Every 256th leaf completes a node of level 8, which is returned and goes to
    /// [`Nodes::push`](super::Nodes::push).
    pub(crate) fn push(&mut self, leaf: &Digest) -> Option<Digest> {
        self.push_subtree(0, hash::leaf(leaf.as_bytes()))
    }

    /// Adds the 256 leaves below a node of level 8, as [`Frontier::push`] returned it.
    // INVARIANT: the size is a multiple of 256.
    pub(crate) fn push_block(&mut self, block: Digest) {
        self.push_subtree(BLOCK_LEVEL, block);
    }

    /// The root of the tree.
    pub(crate) fn root(&self) -> Digest {
        let smallest_first = self.edge.iter().rev().copied();
        smallest_first.reduce(|right, left| hash::node(&left, &right)).unwrap_or_else(hash::empty)
    }

    /// Adds the root of a complete subtree of `2^level` leaves.
    // INVARIANT: the size is a multiple of 2^level.
    pub(super) fn push_subtree(&mut self, level: u32, root: Digest) -> Option<Digest> {
        let mut completed = (level == BLOCK_LEVEL).then_some(root);
        let mut above = root;
        // As in a binary counter, each carry joins two subtrees of the same size.
        for carried in 1..=(self.size >> level).trailing_ones() {
            let Some(left) = self.edge.pop() else { break };
            above = hash::node(&left, &above);
            if level + carried == BLOCK_LEVEL {
                completed = Some(above);
            }
        }
        self.edge.push(above);
        self.size += 1 << level;
        completed
    }
}

/// Computes the root over subtrees of one size, in order.
pub(super) fn root_over<'a>(level: u32, roots: impl IntoIterator<Item = &'a Digest>) -> Digest {
    let mut frontier = Frontier::new();
    for root in roots {
        frontier.push_subtree(level, *root);
    }
    frontier.root()
}
