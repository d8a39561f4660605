//! The hashes of leaves and nodes. SOURCE: RFC 6962, section 2.1: the first byte differs between leaves and nodes, so
//! that neither can be mistaken for the other.

use sha2::{Digest as _, Sha256};

use crate::model::Digest;

/// The root of the tree without leaves: SHA-256 of no bytes.
pub(super) fn empty() -> Digest {
    Digest::new(Sha256::digest([]).into())
}

/// Returns the hash of a leaf.
pub(super) fn leaf(leaf: &[u8]) -> Digest {
    let hasher = Sha256::new().chain_update([LEAF]).chain_update(leaf);
    Digest::new(hasher.finalize().into())
}

/// Returns the hash of a node, given the hashes of its children.
pub(super) fn node(left: &Digest, right: &Digest) -> Digest {
    let hasher = Sha256::new().chain_update([NODE]).chain_update(left.as_bytes()).chain_update(right.as_bytes());
    Digest::new(hasher.finalize().into())
}

const LEAF: u8 = 0;
const NODE: u8 = 1;
