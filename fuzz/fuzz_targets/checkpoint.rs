//! No text panics the parsers of keys, checkpoints and proofs; what they parse has a single spelling; and no path
//! found by the fuzzer proves a record.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rulekeep::checkpoint::{
    Checkpoint, CheckpointKey, ConsistencyProof, InclusionProof, VerifierKey, verify_consistency, verify_inclusion,
};
use rulekeep::{Governor, Intent, ProofQuery, ProofRecord, RiskLevel};

const ORIGIN: &str = "example.com/agents";

static KEY: LazyLock<CheckpointKey> =
    LazyLock::new(|| CheckpointKey::from_seed(ORIGIN, &[3; 32]).expect("a good name"));

static RECORD: LazyLock<ProofRecord> = LazyLock::new(|| {
    let governor = Governor::builder().auto_register().open_in_memory().expect("a store in memory opens");
    let intent = Intent::new("fuzz", "read_file", RiskLevel::Low, ["file:read"]).expect("a good intent");
    governor.enforce(&intent).expect("a store in memory takes it");
    let page = governor.query(&ProofQuery::entity("fuzz")).expect("a good query");
    page.items.into_iter().next().expect("the record is there")
});

/// The checkpoint that a note states, as if the log had signed it.
fn signed(size: u64, root: rulekeep::proof::Digest) -> Option<String> {
    Checkpoint::new(ORIGIN, size, root).ok().map(|checkpoint| checkpoint.sign(&KEY).expect("the key is of that name"))
}

fuzz_target!(|input: &str| {
    let key = KEY.verifier();
    if let Ok(other) = input.parse::<VerifierKey>() {
        assert_eq!(other.to_string(), input);
    }
    if let Ok(opened) = Checkpoint::open(input, &key) {
        assert!(input.starts_with(&opened.to_string()));
    }
    if let Ok(mut proof) = input.parse::<InclusionProof>() {
        assert_eq!(proof.to_string().parse().as_ref(), Ok(&proof));
        assert!(verify_inclusion(&RECORD, input, &key).is_err());
        let stated = Checkpoint::read_unverified(&proof.checkpoint).ok();
        if let Some(note) = stated.and_then(|stated| signed(stated.size(), stated.root())) {
            (proof.index, proof.checkpoint) = (RECORD.id.sequence().get(), note);
            assert!(verify_inclusion(&RECORD, &proof.to_string(), &key).is_err());
        }
    }
    if let Ok(proof) = input.parse::<ConsistencyProof>() {
        assert_eq!(proof.to_string().parse().as_ref(), Ok(&proof));
        let roots = [RECORD.hash, RECORD.evidence_hash];
        if let (Some(old), Some(new)) = (signed(proof.old, roots[0]), signed(proof.new, roots[1])) {
            assert!(verify_consistency(&old, &new, input, &key).is_err());
        }
    }
});
