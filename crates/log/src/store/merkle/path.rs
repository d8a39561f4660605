//! Inclusion and consistency proofs. SOURCE: RFC 6962, sections 2.1.1 and 2.1.2.

use std::ops::Range;

use super::nodes::{Nodes, Tree, TreeError, split};
use rulekeep_types::Digest;

impl Nodes {
    /// Returns the inclusion proof of the entry at `index` in the tree over the first `size` entries: the sibling
    /// hashes on the way to the root, from the leaf up.
    ///
    /// `leaves` returns the digests of the entries in a range, which never spans two blocks of 256.
    pub(crate) fn inclusion<E>(
        &self,
        index: u64,
        size: u64,
        leaves: impl FnMut(Range<u64>) -> Result<Vec<Digest>, E>,
    ) -> Result<Vec<Digest>, TreeError<E>> {
        if index >= size {
            return Err(TreeError::OutOfRange { place: index, size });
        }
        let mut tree = Tree::new(self, size, leaves);
        let mut path = Vec::new();
        let mut node = 0..size;
        while node.end - node.start > 1 {
            let middle = node.start + split(node.end - node.start);
            let sibling = if index < middle { middle..node.end } else { node.start..middle };
            node = if index < middle { node.start..middle } else { middle..node.end };
            path.push(tree.root_of(sibling)?);
        }
        path.reverse();
        Ok(path)
    }

    /// Returns the consistency proof from the tree over the first `old` entries to the tree over the first `size`. It
    /// is empty if either tree is empty or both are the same. `leaves` is as in [`Nodes::inclusion`].
    pub(crate) fn consistency<E>(
        &self,
        old: u64,
        size: u64,
        leaves: impl FnMut(Range<u64>) -> Result<Vec<Digest>, E>,
    ) -> Result<Vec<Digest>, TreeError<E>> {
        if old > size {
            return Err(TreeError::OutOfRange { place: old, size });
        }
        if old == 0 {
            return Ok(Vec::new());
        }
        let mut tree = Tree::new(self, size, leaves);
        let mut path = Vec::new();
        let mut node = 0..size;
        // Descends to the node that ends where the old tree ended.
        while node.end > old {
            let middle = node.start + split(node.end - node.start);
            let sibling = if old <= middle { middle..node.end } else { node.start..middle };
            node = if old <= middle { node.start..middle } else { middle..node.end };
            path.push(tree.root_of(sibling)?);
        }
        // If that node is the old tree itself, the verifier already knows its root.
        if node.start > 0 {
            path.push(tree.root_of(node)?);
        }
        path.reverse();
        Ok(path)
    }
}
