//! The Merkle tree of RFC 6962, section 2.1, over the entries of the journal: the root at any size, and inclusion and
//! consistency proofs.
//!
//! A leaf is the 32-byte digest of an entry. The writer spends three SHA-256 compressions on each entry and keeps one
//! digest in memory for 256 entries; the levels below are recomputed from the entries when a proof is requested. The
//! tree takes digests and returns digests; it knows neither files nor records. It does not verify proofs; whoever
//! holds a checkpoint does.
//!
//! | file | subject |
//! |---|---|
//! | `hash.rs` | the hashes of leaves and nodes |
//! | `frontier.rs` | the growing edge: pushing a leaf, the current root |
//! | `nodes.rs` | the nodes that are kept, and the root of any earlier size |
//! | `path.rs` | inclusion and consistency proofs |

mod frontier;
mod hash;
mod nodes;
#[cfg_attr(not(any(test, feature = "checkpoints")), expect(dead_code, reason = "proofs are for checkpoints"))]
mod path;

pub(crate) use frontier::Frontier;
pub use nodes::TreeError;
pub(super) use nodes::{BLOCK_LEAVES, Nodes};

#[cfg(test)]
mod tests;
