//! Verifying as it is asked for: from a place on, with progress, with the view, with so many threads.

use crate::common;

use std::fs;
use std::sync::{Arc, Mutex};

use common::{Sample, decide, in_folder, in_memory};
use rulekeep::proof::{ChainPosition, OpenVerification, VerificationState, VerifyOptions, VerifySince};
use rulekeep::{Decision, Governor, Outcome};
use serde_json::json;

fn since(position: ChainPosition) -> VerifyOptions {
    VerifyOptions::new().since(VerifySince::Position(position))
}

fn decide_some(governor: &Governor, count: usize) {
    for _ in 0..count {
        decide(governor, "a");
    }
}

#[test]
fn what_a_verification_says_in_json_is_what_the_contract_has() {
    let governor = in_memory();
    decide(&governor, "a");
    let found = governor.log().verify(&VerifyOptions::new()).unwrap();
    assert_eq!(json!(found), json!({"valid": true, "records": 1, "headHash": found.head_hash}));
}

#[test]
fn a_verification_goes_on_where_the_last_one_ended() {
    let governor = in_memory();
    for _ in 0..20 {
        decide(&governor, "a");
    }
    let last = VerifyOptions::new().since(VerifySince::LastVerified);
    let first = governor.log().verify(&last).unwrap();
    let id = decide(&governor, "a");
    governor.report(&id, Outcome::Success).unwrap();
    let second = governor.log().verify(&last).unwrap();
    assert!(first.valid && second.valid);
    assert_eq!((first.records, second.records), (20, 21));
    assert_eq!(second.checked.from, first.checked.until.unwrap().entries);
    assert_eq!(second.checked.until.unwrap().entries, second.checked.from + 2);
    let third = governor.log().verify(&last).unwrap();
    assert_eq!((third.checked.from, third.head_hash), (second.checked.until.unwrap().entries, second.head_hash));
    let whole = governor.verify().unwrap();
    assert_eq!((whole.records, whole.head_hash, whole.checked.from), (21, second.head_hash, 0));
    assert_eq!(whole.checked.until, second.checked.until);
}

#[test]
fn a_kept_place_holds_after_a_restart_and_finds_a_rewritten_log() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("store");
    let governor = in_folder(&folder);
    decide_some(&governor, 5);
    let kept = json!(governor.verify().unwrap().checked.until.unwrap()).to_string();
    governor.close().unwrap();
    let kept: ChainPosition = serde_json::from_str(&kept).unwrap();

    let governor = in_folder(&folder);
    decide_some(&governor, 3);
    let found = governor.log().verify(&since(kept)).unwrap();
    assert!(found.valid);
    assert_eq!((found.records, found.checked.from), (8, kept.entries));
    governor.close().unwrap();

    fs::remove_dir_all(&folder).unwrap();
    let other = in_folder(&folder);
    decide_some(&other, 9);
    let found = other.log().verify(&since(kept)).unwrap();
    assert!(!found.valid && found.checked.until.is_none());
    let broken = found.first_broken.unwrap();
    assert!(broken.expected.contains(&kept.link.to_string()), "{broken}");
    assert!(broken.found.contains("link"), "{broken}");
    // Whoever brings a place of another log does not break this one.
    decide(&other, "a");
    assert!(other.verify().unwrap().valid);
    // Nor is one believed that lies behind the end.
    let mut ahead = other.verify().unwrap().checked.until.unwrap();
    ahead.entries += 1000;
    assert!(!other.log().verify(&since(ahead)).unwrap().valid);
    decide(&other, "a");
}

#[test]
fn progress_only_rises_and_ends_complete_on_any_thread_count() {
    let governor = in_memory();
    decide_some(&governor, 50);
    let whole = governor.verify().unwrap();
    for threads in [0, 1, 2, 100] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&seen);
        let options =
            VerifyOptions::new().threads(threads).on_progress(move |progress| told.lock().unwrap().push(progress));
        assert_eq!(governor.log().verify(&options).unwrap(), whole);
        let seen = seen.lock().unwrap();
        let entries = whole.checked.until.unwrap().entries;
        assert!(seen.windows(2).all(|pair| pair[0].done <= pair[1].done), "{seen:?}");
        assert!(seen.iter().all(|progress| progress.of == entries), "{seen:?}");
        assert_eq!(seen.last().map(|progress| progress.done), Some(entries));
    }
}

#[test]
fn damage_behind_the_place_is_named_and_ends_the_deciding() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("store");
    let governor = in_folder(&folder);
    decide_some(&governor, 5);
    let kept = governor.verify().unwrap().checked.until.unwrap();
    let id = decide(&governor, "a");
    governor.log().flush().unwrap();
    let segment = folder.join("journal/0000000000.rkj");
    let mut bytes = fs::read(&segment).unwrap();
    let text = id.to_string().into_bytes();
    let at = bytes.windows(text.len()).position(|window| window == text).unwrap();
    bytes[at + 10] ^= 1;
    fs::write(&segment, bytes).unwrap();

    let found = governor.log().verify(&since(kept)).unwrap();
    let broken = found.first_broken.unwrap();
    assert_eq!((broken.sequence, broken.kind.as_str()), (id.sequence(), "damage"), "{broken}");
    assert_eq!(found.records, kept.records);
    assert_eq!(common::code(governor.enforce(&common::reading("a"))), "CHAIN_BROKEN");
}

#[test]
fn a_torn_tail_that_was_set_aside_is_told_as_one() {
    let sample = Sample::new(6);
    let segment = sample.folder().join("journal/0000000000.rkj");
    let mut bytes = fs::read(&segment).unwrap();
    let whole = bytes.clone();
    // The front of an entry that never came to its end.
    bytes.extend_from_slice(&whole[128..160]);
    bytes.resize(bytes.len() + 4096, 0);
    fs::write(&segment, bytes).unwrap();
    let governor = Sample::builder().open(sample.folder()).unwrap();
    let found = governor.verify().unwrap();
    assert!(found.valid);
    assert_eq!(found.checked.torn.as_ref(), governor.log().opening().recovered.as_ref());
    assert!(found.checked.torn.is_some());
}

#[test]
fn the_view_of_an_intact_store_agrees() {
    let sample = Sample::new(60);
    let governor = Sample::builder().open(sample.folder()).unwrap();
    let found = governor.verify().unwrap();
    assert!(found.checked.is_index_compared && found.index_differed.is_none());
    let id = decide(&governor, "a");
    governor.report(&id, Outcome::Failure).unwrap();
    let found = governor.verify().unwrap();
    assert_eq!((found.index_differed, found.checked.from), (None, 0));
}

#[test]
fn a_log_verified_behind_knows_agents_policies_and_outcomes() {
    let sample = Sample::new(60);
    let governor = Sample::builder().verification(OpenVerification::Behind).open(sample.folder()).unwrap();
    assert_eq!(common::picture(&governor, &common::SAMPLE_AGENTS), sample.picture);
    // It was suspended before.
    assert_eq!(governor.enforce(&common::reading("c")).unwrap().decision, Decision::Deny);
    decide(&governor, "a");
    let ended = loop {
        match governor.log().verification() {
            VerificationState::Running(_) => std::thread::yield_now(),
            state => break state,
        }
    };
    assert_eq!(ended, VerificationState::Verified);
    governor.close().unwrap();
}
