//! Verifying proofs, with pure functions of texts and a key.

use std::collections::BTreeMap;

use ct_merkle::RootHash;
use serde_json::Value;
use sha2::Sha256;

use super::{Checkpoint, CheckpointError, ConsistencyProof, InclusionProof, VerifierKey};
use rulekeep_types::{Digest, ProofRecord};

/// Verifies that a record is in a log, unchanged, given only a proof file and the log's key. Returns the checkpoint
/// that the proof is for.
///
/// The record's hash is recomputed from its fields. Its `outcome` is not part of the hash and is not proven.
///
/// # Errors
///
/// [`CheckpointError`] for invalid texts or signatures; then [`CheckpointError::RecordChanged`],
/// [`CheckpointError::OtherEntry`] and [`CheckpointError::NotIncluded`].
///
/// # Examples
///
/// ```
/// use rulekeep::ProofRecord;
/// use rulekeep::checkpoint::{CheckpointError, VerifierKey, verify_inclusion};
///
/// fn audit(record: &str, proof: &str, key: &VerifierKey) -> Result<(), Box<dyn std::error::Error>> {
///     let record: ProofRecord = serde_json::from_str(record)?;
///     let checkpoint = verify_inclusion(&record, proof, key)?;
///     println!("{} is one of {} entries of {}", record.id, checkpoint.size(), checkpoint.origin());
///     Ok(())
/// }
/// ```
pub fn verify_inclusion(
    record: &ProofRecord,
    proof_text: &str,
    key: &VerifierKey,
) -> Result<Checkpoint, CheckpointError> {
    let proof: InclusionProof = proof_text.parse()?;
    let checkpoint = Checkpoint::open(&proof.checkpoint, key)?;
    let computed = hash_of(record);
    if computed != record.hash {
        return Err(CheckpointError::RecordChanged { stated: record.hash, computed });
    }
    let expected = record.id.sequence().get();
    if proof.index != expected {
        return Err(CheckpointError::OtherEntry { index: proof.index, expected });
    }
    // INVARIANT: a `Checkpoint` has at most 2^48 entries, and any path of whole hashes is accepted, so nothing here
    // panics.
    let path = ct_merkle::InclusionProof::try_from_bytes(concatenated(&proof.path));
    let held = path.and_then(|path| root(&checkpoint).verify_inclusion(record.hash.as_bytes(), proof.index, &path));
    held.map_err(|_| CheckpointError::NotIncluded { index: proof.index, size: checkpoint.size() })?;
    Ok(checkpoint)
}

/// Verifies that a log only grew between two checkpoints, given only a proof file and the log's key: every entry of
/// the earlier one is in the later one, unchanged and at the same position. Returns the later checkpoint.
///
/// # Errors
///
/// [`CheckpointError`] for invalid texts or signatures; then [`CheckpointError::Shrunk`],
/// [`CheckpointError::OtherSizes`] and [`CheckpointError::NotConsistent`].
pub fn verify_consistency(
    old_note: &str,
    new_note: &str,
    proof_text: &str,
    key: &VerifierKey,
) -> Result<Checkpoint, CheckpointError> {
    let old = Checkpoint::open(old_note, key)?;
    let new = Checkpoint::open(new_note, key)?;
    let proof: ConsistencyProof = proof_text.parse()?;
    if old.size() > new.size() {
        return Err(CheckpointError::Shrunk { old: old.size(), new: new.size() });
    }
    if (proof.old, proof.new) != (old.size(), new.size()) {
        let (expected_old, expected_new) = (old.size(), new.size());
        return Err(CheckpointError::OtherSizes { old: proof.old, new: proof.new, expected_old, expected_new });
    }
    let held = if old.size() == 0 {
        // Every log began empty, so there is nothing to prove. `Checkpoint` has checked the root of the empty log.
        proof.path.is_empty()
    } else {
        let path = ct_merkle::ConsistencyProof::try_from_bytes(concatenated(&proof.path));
        path.and_then(|path| root(&new).verify_consistency(&root(&old), &path)).is_ok()
    };
    if held { Ok(new) } else { Err(CheckpointError::NotConsistent { old: old.size(), new: new.size() }) }
}

/// Computes the hash of a record: SHA-256 of its canonical JSON without `hash` and `outcome`.
fn hash_of(record: &ProofRecord) -> Digest {
    // Sorted here, because features enabled by other crates decide whether a `serde_json` object is sorted.
    let fields: BTreeMap<String, Value> = match serde_json::to_value(record) {
        Ok(Value::Object(fields)) => {
            fields.into_iter().filter(|(name, _)| name != "hash" && name != "outcome").collect()
        }
        _ => BTreeMap::new(),
    };
    let json = serde_json::to_vec(&fields).unwrap_or_default();
    Digest::of(&json)
}

fn root(checkpoint: &Checkpoint) -> RootHash<Sha256> {
    RootHash::new((*checkpoint.root().as_bytes()).into(), checkpoint.size())
}

fn concatenated(path: &[Digest]) -> Vec<u8> {
    path.iter().flat_map(|hash| *hash.as_bytes()).collect()
}
