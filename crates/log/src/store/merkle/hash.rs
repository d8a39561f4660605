//! The hashes of leaves and nodes. SOURCE: RFC 6962, section 2.1: the first byte differs between leaves and nodes, so
//! that neither can be mistaken for the other.

use rulekeep_types::Digest;

/// The root of the tree without leaves: SHA-256 of no bytes.
pub(super) fn empty() -> Digest {
    Digest::of(&[])
}

/// Returns the hash of a leaf.
pub(super) fn leaf(leaf: &[u8]) -> Digest {
    Digest::of_parts(&[&[LEAF], leaf])
}

/// Returns the hash of a node, given the hashes of its children.
pub(super) fn node(left: &Digest, right: &Digest) -> Digest {
    Digest::of_parts(&[&[NODE], left.as_bytes(), right.as_bytes()])
}

const LEAF: u8 = 0;
const NODE: u8 = 1;
