//! Checkpoints of a proof log: signed statements of how large it is and what its
//! Merkle root is, and proofs against them that a stranger can check.
//!
//! A [`Checkpoint`] is signed by the log's [`CheckpointKey`] as a text that can be
//! kept anywhere. With an earlier one in hand and the log's [`VerifierKey`], anybody
//! can hold the log to it: [`verify_inclusion`] tells whether a record is in it,
//! [`verify_consistency`] whether a later checkpoint only added to it. Both need
//! texts and the key, and neither the log nor this machine.
//!
//! The texts are those of C2SP: signed notes, `tlog-checkpoint` and `tlog-proof`;
//! for consistency proofs, which have none there, one in the same manner. All of
//! them are in `docs/reference/proof-log.md`.
//!
//! ```
//! use rulekeep::checkpoint::{Checkpoint, CheckpointKey};
//! use rulekeep::proof::Digest;
//! use rulekeep::system::SystemEntropy;
//!
//! let key = CheckpointKey::generate("example.com/agents", &SystemEntropy)?;
//! let note = Checkpoint::new("example.com/agents", 1, Digest::new([7; 32]))?.sign(&key)?;
//!
//! // What the auditor has: the text, and the public key.
//! let public = key.verifier().to_string().parse()?;
//! assert_eq!(Checkpoint::open(&note, &public)?.size(), 1);
//! # Ok::<(), rulekeep::checkpoint::CheckpointError>(())
//! ```
//!
//! | file | subject |
//! |---|---|
//! | `key.rs` | the log's key, and its public half as text |
//! | `note.rs` | signed notes: any text and its signatures |
//! | `head.rs` | the checkpoint: what the note of a log says |
//! | `proof_file.rs` | the texts of proofs |
//! | `verify.rs` | checking a proof |
//! | `text.rs`, `error.rs` | what all texts share; what can be wrong with them |
// It knows the vocabulary only. The tree that proofs are made from is the log's, and checking them is another hand's
// (`ct-merkle`), so that a mistake in the one does not hide in the other.

mod error;
mod head;
mod key;
mod note;
mod proof_file;
mod text;
mod verify;

pub use error::CheckpointError;
pub use head::Checkpoint;
pub use key::{CheckpointKey, VerifierKey};
pub use proof_file::{ConsistencyProof, InclusionProof};
pub use verify::{verify_consistency, verify_inclusion};

#[cfg(test)]
mod tests;
