//! Checkpoints and proofs as a stranger checks them: from texts and the log's
//! public key. The log here is records of a governor among entries of other
//! kinds; the proofs come from a Merkle tree by another hand.
#![cfg(feature = "checkpoints")]

use crate::common;

use common::{builder, intent};
use ct_merkle::mem_backed_tree::MemoryBackedTree;
use proptest::prelude::*;
use rulekeep::checkpoint::{
    Checkpoint, CheckpointError, CheckpointKey, ConsistencyProof, InclusionProof, VerifierKey, verify_consistency,
    verify_inclusion,
};
use rulekeep::proof::Digest;
use rulekeep::{Agent, Outcome, ProofQuery, ProofRecord, Tier};
use serde_json::{Value, json};
use sha2::Sha256;

const ORIGIN: &str = "example.com/agents";

fn key() -> CheckpointKey {
    CheckpointKey::from_seed(ORIGIN, &[3; 32]).unwrap()
}

/// A log's leaves, and what it would hand out.
#[derive(Clone)]
struct Log {
    key: CheckpointKey,
    leaves: Vec<Digest>,
}

impl Log {
    fn of(leaves: Vec<Digest>) -> Self {
        Self { key: key(), leaves }
    }

    fn tree(&self) -> MemoryBackedTree<Sha256, [u8; 32]> {
        let mut tree = MemoryBackedTree::new();
        self.leaves.iter().for_each(|leaf| tree.push(*leaf.as_bytes()));
        tree
    }

    fn note(&self) -> String {
        let root = Digest::new(self.tree().root().as_bytes().as_slice().try_into().unwrap());
        Checkpoint::new(ORIGIN, self.leaves.len() as u64, root).unwrap().sign(&self.key).unwrap()
    }

    fn inclusion(&self, index: u64) -> InclusionProof {
        let path = self.tree().prove_inclusion(usize::try_from(index).unwrap());
        InclusionProof::new(index, digests(path.as_bytes()), self.note())
    }

    fn consistency(&self, old: usize) -> ConsistencyProof {
        let path = self.tree().prove_consistency(self.leaves.len() - old);
        ConsistencyProof::new(old as u64, self.leaves.len() as u64, digests(path.as_bytes()))
    }
}

fn digests(bytes: &[u8]) -> Vec<Digest> {
    bytes.chunks_exact(32).map(|hash| Digest::new(hash.try_into().unwrap())).collect()
}

fn leaf(place: usize) -> Digest {
    let mut bytes = [0xab; 32];
    bytes[..8].copy_from_slice(&place.to_be_bytes());
    Digest::new(bytes)
}

/// Records of a governor, and a log in which each has its place.
fn recorded() -> (Vec<ProofRecord>, Log) {
    let governor = builder().open_in_memory().unwrap();
    governor.agents().register(Agent::new("support \"1\" 日本").at_tier(Tier::T4)).unwrap();
    for capability in ["document:read", "task:delete", "email:send", "code:write", "file:read"] {
        let verdict = governor.enforce(&intent("support \"1\" 日本", &[capability])).unwrap();
        governor.report(&verdict.proof_id, Outcome::Success).unwrap();
    }
    let records = governor.query(&ProofQuery::entity("support \"1\" 日本")).unwrap().items;
    let mut leaves: Vec<Digest> = (0..300).map(leaf).collect();
    for record in &records {
        leaves[usize::try_from(record.id.sequence().get()).unwrap()] = record.hash;
    }
    (records, Log::of(leaves))
}

#[test]
fn a_stranger_checks_a_record_by_texts_alone() {
    let (records, log) = recorded();
    for record in records {
        let record_text = serde_json::to_string(&record).unwrap();
        let proof_text = log.inclusion(record.id.sequence().get()).to_string();
        let key_text = log.key.verifier().to_string();

        let record: ProofRecord = serde_json::from_str(&record_text).unwrap();
        let key: VerifierKey = key_text.parse().unwrap();
        let checkpoint = verify_inclusion(&record, &proof_text, &key).unwrap();
        assert_eq!((checkpoint.origin(), checkpoint.size()), (ORIGIN, 300));
        assert_eq!(checkpoint, Checkpoint::open(&log.note(), &key).unwrap());
    }
}

#[test]
fn a_record_of_which_any_field_was_changed_is_refused() {
    let (records, log) = recorded();
    let record = serde_json::to_value(&records[0]).unwrap();
    let proof = log.inclusion(records[0].id.sequence().get()).to_string();
    let changes = [
        ("id", json!("prf_01arz3ndektsv4rrffq69g5fav")),
        ("entityId", json!("support-2")),
        ("intentId", json!("int_01arz3ndektsv4rrffq69g5fav")),
        ("decision", json!("ESCALATE")),
        ("reasoning", json!("because")),
        ("trustScore", json!(1)),
        ("trustTier", json!("T0")),
        ("riskLevel", json!("CRITICAL")),
        ("timestamp", json!("2020-01-01T00:00:00.000Z")),
        ("hash", json!(Digest::new([1; 32]).to_string())),
        ("previousHash", json!(Digest::new([1; 32]).to_string())),
        ("evidenceHash", json!(Digest::new([1; 32]).to_string())),
    ];
    let fields = record.as_object().unwrap();
    assert_eq!(fields.len(), changes.len() + 1, "every field but the outcome is changed in turn");
    for (field, value) in changes {
        let mut changed = record.clone();
        assert_ne!(changed[field], value, "{field} is changed");
        changed[field] = value;
        let changed: ProofRecord = serde_json::from_value(changed).unwrap();
        let result = verify_inclusion(&changed, &proof, &log.key.verifier());
        assert!(matches!(result, Err(CheckpointError::RecordChanged { .. })), "{field}: {result:?}");
        assert!(result.unwrap_err().is_contradiction());
    }
    // The outcome is another entry's, and may come later.
    let mut without = record;
    without["outcome"] = Value::Null;
    let without: ProofRecord = serde_json::from_value(without).unwrap();
    assert!(verify_inclusion(&without, &proof, &log.key.verifier()).is_ok());
}

#[test]
fn the_proof_of_another_record_is_refused() {
    let (records, log) = recorded();
    let key = log.key.verifier();
    let other = log.inclusion(records[1].id.sequence().get());
    let result = verify_inclusion(&records[0], &other.to_string(), &key);
    assert!(matches!(result, Err(CheckpointError::OtherEntry { .. })), "{result:?}");
    let mut posing = other;
    posing.index = records[0].id.sequence().get();
    let result = verify_inclusion(&records[0], &posing.to_string(), &key);
    assert!(matches!(result, Err(CheckpointError::NotIncluded { .. })), "{result:?}");
}

#[test]
fn a_record_that_the_log_never_had_is_refused() {
    let (records, log) = recorded();
    let index = records[0].id.sequence().get();
    let mut elsewhere = log.clone();
    elsewhere.leaves[usize::try_from(index).unwrap()] = leaf(999);
    let result = verify_inclusion(&records[0], &elsewhere.inclusion(index).to_string(), &log.key.verifier());
    assert_eq!(result, Err(CheckpointError::NotIncluded { index, size: 300 }));
}

#[test]
fn a_change_of_any_byte_of_a_proof_is_refused() {
    let (records, log) = recorded();
    let key = log.key.verifier();
    let proof = log.inclusion(records[0].id.sequence().get()).to_string().into_bytes();
    for at in 0..proof.len() {
        let mut changed = proof.clone();
        changed[at] ^= 1 << (at % 7);
        if let Ok(changed) = String::from_utf8(changed) {
            assert!(verify_inclusion(&records[0], &changed, &key).is_err(), "{changed:?}");
        }
    }
    let (old, log) = (Log::of((0..13).map(leaf).collect()), Log::of((0..29).map(leaf).collect()));
    let (old, new, proof) = (old.note(), log.note(), log.consistency(13).to_string().into_bytes());
    for at in 0..proof.len() {
        let mut changed = proof.clone();
        changed[at] ^= 1 << (at % 7);
        // The newline at the very end may be absent; another letter there is refused.
        if let Ok(changed) = String::from_utf8(changed) {
            assert!(verify_consistency(&old, &new, &changed, &key).is_err(), "{changed:?}");
        }
    }
}

#[test]
fn a_checkpoint_by_another_key_proves_nothing() {
    let (records, mut log) = recorded();
    let index = records[0].id.sequence().get();
    log.key = CheckpointKey::from_seed(ORIGIN, &[4; 32]).unwrap();
    let result = verify_inclusion(&records[0], &log.inclusion(index).to_string(), &key().verifier());
    assert!(matches!(&result, Err(error @ CheckpointError::NotSigned { .. }) if !error.is_contradiction()));
}

#[test]
fn a_log_that_only_grew_fits_every_earlier_checkpoint() {
    let all: Vec<Digest> = (0..20).map(leaf).collect();
    let key = key().verifier();
    let new = Log::of(all.clone());
    for size in 1..=all.len() {
        let old = Log::of(all[..size].to_vec());
        let proof = new.consistency(size).to_string();
        let later = verify_consistency(&old.note(), &new.note(), &proof, &key).unwrap();
        assert_eq!(later, Checkpoint::open(&new.note(), &key).unwrap());
    }
    let empty = Digest::new(<[u8; 32]>::from(<Sha256 as sha2::Digest>::digest([])));
    let empty = Checkpoint::new(ORIGIN, 0, empty).unwrap().sign(&self::key()).unwrap();
    let from_nothing = |path| ConsistencyProof::new(0, 20, path).to_string();
    assert!(verify_consistency(&empty, &new.note(), &from_nothing(Vec::new()), &key).is_ok());
    assert!(verify_consistency(&empty, &new.note(), &from_nothing(vec![leaf(0)]), &key).is_err());
}

#[test]
fn a_cut_deleted_or_rewritten_log_fails_a_kept_checkpoint() {
    let key = key().verifier();
    let kept = Log::of((0..20).map(leaf).collect()).note();
    let check = |now: &Log, proof: ConsistencyProof| {
        let result = verify_consistency(&kept, &now.note(), &proof.to_string(), &key);
        let error = result.unwrap_err();
        assert!(error.is_contradiction(), "{error}");
        error
    };

    let cut = Log::of((0..15).map(leaf).collect());
    let found = check(&cut, ConsistencyProof::new(20, 15, Vec::new()));
    assert_eq!(found, CheckpointError::Shrunk { old: 20, new: 15 });

    let cut_and_grown = Log::of((0..15).chain(100..120).map(leaf).collect());
    let found = check(&cut_and_grown, cut_and_grown.consistency(20));
    assert_eq!(found, CheckpointError::NotConsistent { old: 20, new: 35 });

    let begun_anew = Log::of((100..130).map(leaf).collect());
    let found = check(&begun_anew, begun_anew.consistency(20));
    assert_eq!(found, CheckpointError::NotConsistent { old: 20, new: 30 });

    let one_entry_rewritten = Log::of((0..20).map(|place| leaf(if place == 3 { 999 } else { place })).collect());
    let found = check(&one_entry_rewritten, one_entry_rewritten.consistency(20));
    assert_eq!(found, CheckpointError::NotConsistent { old: 20, new: 20 });
}

#[test]
fn a_proof_between_other_checkpoints_is_refused() {
    let [old, new] = [13, 29].map(|size| Log::of((0..size).map(leaf).collect()));
    let proof = new.consistency(14).to_string();
    let result = verify_consistency(&old.note(), &new.note(), &proof, &key().verifier());
    assert!(matches!(result, Err(CheckpointError::OtherSizes { .. })), "{result:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // What checks the paths is another hand's, and says that it panics on numbers that are out of bounds.
    #[test]
    fn no_sizes_and_no_path_end_in_anything_but_a_refusal(
        old in any_size(), new in any_size(), hashes in prop::collection::vec(any::<[u8; 32]>(), 0..64),
    ) {
        let key = key();
        let sign = |size| Checkpoint::new(ORIGIN, size, leaf(1)).unwrap().sign(&key).unwrap();
        let path: Vec<Digest> = hashes.into_iter().map(Digest::new).collect();
        let proof = ConsistencyProof::new(old, new, path.clone()).to_string();
        let is_same = old == new && path.is_empty();
        prop_assert_eq!(verify_consistency(&sign(old), &sign(new), &proof, &key.verifier()).is_ok(), is_same);

        let (records, _) = &*RECORDED;
        let index = records[0].id.sequence().get();
        let proof = InclusionProof::new(index, path, sign(new)).to_string();
        prop_assert!(verify_inclusion(&records[0], &proof, &key.verifier()).is_err());
    }
}

static RECORDED: std::sync::LazyLock<(Vec<ProofRecord>, Log)> = std::sync::LazyLock::new(recorded);

fn any_size() -> impl Strategy<Value = u64> {
    prop_oneof![1..100_u64, 1..=Checkpoint::MAX_SIZE, Just(Checkpoint::MAX_SIZE), Just(Checkpoint::MAX_SIZE - 1)]
}

#[test]
fn the_texts_are_byte_for_byte_those_of_the_page() {
    let page = std::fs::read_to_string("docs/reference/proof-log.md").unwrap();
    let [old, log] = [13, 29].map(|size| Log::of((0..size).map(leaf).collect()));
    let key = log.key.verifier().to_string();
    for text in [key, old.note(), log.inclusion(5).to_string(), log.consistency(13).to_string()] {
        assert!(page.contains(&format!("\n```\n{}\n```\n", text.trim_end())), "the page lacks\n{text}");
    }
}
