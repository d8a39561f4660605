//! The Merkle tree of a journal, grown while the journal is read from front to back, and then by the writer.

use super::merkle::{BLOCK_LEAVES, Frontier, Nodes};
use rulekeep_types::Digest;

/// The tree over the entries in the files.
#[derive(Debug, Clone, Default)]
pub(super) struct Tree {
    frontier: Frontier,
    nodes: Nodes,
}

impl Tree {
    /// Creates the tree over the entries below these nodes of level 8.
    pub(super) fn over(blocks: &[Digest]) -> Self {
        let mut tree = Self::default();
        for block in blocks {
            tree.frontier.push_block(*block);
            tree.nodes.push(*block);
        }
        tree
    }

    /// Creates a tree that grows from an edge, without the nodes below it.
    pub(super) fn from_edge(frontier: Frontier) -> Self {
        Self { frontier, nodes: Nodes::default() }
    }

    /// Adds the next entry.
    pub(super) fn push(&mut self, leaf: &Digest) {
        if let Some(block) = self.frontier.push(leaf) {
            self.nodes.push(block);
        }
    }

    /// The growing edge.
    pub(super) fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    /// Number of entries.
    pub(super) fn size(&self) -> u64 {
        self.frontier.size()
    }

    /// The root over all entries.
    pub(super) fn root(&self) -> Digest {
        self.frontier.root()
    }

    /// The nodes that are kept.
    pub(super) fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// Appends the entries of a run.
    pub(super) fn join(&mut self, run: &Run) {
        for leaf in &run.before {
            self.push(leaf);
        }
        for block in &run.blocks {
            self.frontier.push_block(*block);
            self.nodes.push(*block);
        }
        for leaf in &run.behind {
            self.push(leaf);
        }
    }
}

/// Consecutive entries, starting anywhere.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// The entries before the first whole block.
    before: Vec<Digest>,
    blocks: Vec<Digest>,
    /// The entries after the last whole block, and the edge over them.
    behind: Vec<Digest>,
    edge: Frontier,
}

impl Run {
    pub(super) fn push(&mut self, sequence: u64, leaf: &Digest) {
        let has_begun = !self.blocks.is_empty() || !self.behind.is_empty();
        if !has_begun && !sequence.is_multiple_of(BLOCK_LEAVES) {
            return self.before.push(*leaf);
        }
        self.behind.push(*leaf);
        if let Some(block) = self.edge.push(leaf) {
            self.blocks.push(block);
            self.behind.clear();
            self.edge = Frontier::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(place: u64) -> Digest {
        let mut bytes = [0x5a; 32];
        bytes[..8].copy_from_slice(&place.to_be_bytes());
        Digest::new(bytes)
    }

    fn tree(size: u64) -> Tree {
        let mut tree = Tree::default();
        (0..size).for_each(|place| tree.push(&leaf(place)));
        tree
    }

    #[test]
    fn parts_cut_anywhere_join_to_the_tree_of_the_whole() {
        const SIZE: u64 = 1500;
        let whole = tree(SIZE);
        for cuts in [vec![1], vec![255, 256, 257], vec![256, 512], vec![100, 130, 900], vec![768], vec![1, 1030, 1499]]
        {
            let mut joined = Tree::default();
            let mut from = 0;
            for until in cuts.iter().copied().chain([SIZE]) {
                let mut run = Run::default();
                (from..until).for_each(|place| run.push(place, &leaf(place)));
                joined.join(&run);
                from = until;
            }
            assert_eq!((joined.size(), joined.root()), (SIZE, whole.root()), "{cuts:?}");
            assert_eq!(joined.nodes(), whole.nodes(), "{cuts:?}");
        }
    }
}
