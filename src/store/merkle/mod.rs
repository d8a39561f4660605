//! The Merkle tree of RFC 6962, section 2.1, over the entries of the journal:
//! the root at any size, and inclusion and consistency proofs.
//!
//! A leaf is the 32 bytes of an entry's digest. The tree promises to cost the
//! writer three compressions of SHA-256 an entry, and memory of one digest for
//! 256 entries; what lies below that is worked out anew from the entries when a
//! proof is asked for. It takes in digests, hands out digests, and knows neither
//! files nor records. Checking a proof is for whoever holds a checkpoint.
//!
//! | file | subject |
//! |---|---|
//! | `hash.rs` | the hashes of leaves and nodes |
//! | `frontier.rs` | the growing edge: pushing a leaf, the root now |
//! | `nodes.rs` | the nodes that are kept, and the root of any earlier size |
//! | `path.rs` | inclusion and consistency proofs |

mod frontier;
mod hash;
mod nodes;
#[cfg_attr(not(any(test, feature = "checkpoints")), expect(dead_code, reason = "proofs are for checkpoints"))]
mod path;

pub(super) use frontier::Frontier;
pub(crate) use nodes::TreeError;
pub(super) use nodes::{BLOCK_LEAVES, Nodes};

#[cfg(test)]
mod tests;
