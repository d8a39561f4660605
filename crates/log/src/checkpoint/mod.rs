//! Checkpoints of a proof log: signed statements of its size and Merkle root, and proofs against them that third
//! parties can verify.
//!
//! A [`Checkpoint`] is signed by the log's [`CheckpointKey`] as a text that can be kept anywhere. With an earlier
//! checkpoint and the log's [`VerifierKey`], anybody can verify the log: [`verify_inclusion`] checks that a record is
//! in it, [`verify_consistency`] that a later checkpoint only added to it. Both need only the texts and the key, not
//! the log.
//!
//! The texts follow C2SP: signed notes, `tlog-checkpoint` and `tlog-proof`. C2SP has no format for consistency
//! proofs; they use a similar one. All formats are in `docs/reference/proof-log.md`.
//!
//! ```
//! use rulekeep::checkpoint::{Checkpoint, CheckpointKey};
//! use rulekeep::proof::Digest;
//! use rulekeep::system::SystemEntropy;
//!
//! let key = CheckpointKey::generate("example.com/agents", &SystemEntropy)?;
//! let note = Checkpoint::new("example.com/agents", 1, Digest::new([7; 32]))?.sign(&key)?;
//!
//! // The auditor has the text and the public key.
//! let public = key.verifier().to_string().parse()?;
//! assert_eq!(Checkpoint::open(&note, &public)?.size(), 1);
//! # Ok::<(), rulekeep::checkpoint::CheckpointError>(())
//! ```
//!
//! | file | subject |
//! |---|---|
//! | `key.rs` | the log's key, and its public half as text |
//! | `note.rs` | signed notes: any text and its signatures |
//! | `head.rs` | the checkpoint: the content of a log's note |
//! | `proof_file.rs` | the texts of proofs |
//! | `verify.rs` | verifying a proof |
//! | `text.rs`, `error.rs` | what all texts share; the errors |
// This engine depends on the model types only. Proofs are made by the log's own tree and verified by an independent
// implementation (`ct-merkle`), so that a mistake in one does not hide in the other.

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
