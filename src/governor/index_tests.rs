//! A governor over an index that somebody edited, and outcomes that several threads report at once.

use std::path::Path;

use crate::model::KillSwitchScope;
use crate::model::{OpenVerification, VerificationState};
use crate::store::{BlockBatch, Blocks};
use crate::task::TaskRequest;
use crate::{Agent, Decision, Durability, Governor, Intent, Outcome, PolicySet, ProofQuery, RiskLevel, Tier};

fn edit_view(folder: &Path, edit: impl FnOnce(&Blocks, &mut BlockBatch)) {
    let blocks = Blocks::open(Some(&folder.join("view")), 1 << 20).unwrap();
    let mut batch = BlockBatch::default();
    edit(&blocks, &mut batch);
    blocks.apply_and_flush(batch).unwrap();
}

#[test]
fn an_erasure_that_stands_in_the_view_alone_takes_nothing_away() {
    let dir = tempfile::tempdir().unwrap();
    let governor = Governor::builder().auto_register().open(dir.path()).unwrap();
    let intent = Intent::new("a", "read_document", RiskLevel::Low, ["document:read"]).unwrap();
    let id = governor.enforce(&intent).unwrap().proof_id;
    governor.close().unwrap();
    drop(governor);
    edit_view(dir.path(), |_, batch| {
        let erasure = br#"{"cause":"x","agentId":"a","entries":4,"timestamp":"1970-01-01T00:00:00.300Z"}"#;
        batch.put(b"terasure/00000000000000000004", erasure);
    });
    let governor = Governor::builder().verification(OpenVerification::Behind).open(dir.path()).unwrap();
    assert!(governor.log().evidence(&id).is_ok() && governor.verify().unwrap().valid);
}

#[test]
fn an_erasure_in_the_view_alone_removes_nothing_at_verify() {
    let dir = tempfile::tempdir().unwrap();
    let governor = Governor::builder().auto_register().open(dir.path()).unwrap();
    let intent = Intent::new("a", "read_document", RiskLevel::Low, ["document:read"]).unwrap();
    let id = governor.enforce(&intent).unwrap().proof_id;
    governor.enforce(&intent).unwrap();
    governor.close().unwrap();
    drop(governor);
    edit_view(dir.path(), |_, batch| {
        let erasure = br#"{"cause":"x","agentId":"a","entries":4,"timestamp":"1970-01-01T00:00:00.300Z"}"#;
        batch.put(b"terasure/00000000000000000004", erasure);
    });
    crate::store::note_carried_out(&crate::store::RealFiles::open(dir.path()).unwrap(), 5).unwrap();
    let governor = Governor::builder().verification(OpenVerification::Behind).open(dir.path()).unwrap();
    // The forgery is found now or later; until then the evidence counts as erased.
    governor.verify().unwrap();
    governor.close().unwrap();
    drop(governor);
    let governor = Governor::builder().open(dir.path()).unwrap();
    assert!(governor.log().evidence(&id).is_ok());
}

/// The index's statement about an agent must not be written to the journal before it is verified.
#[test]
fn a_forged_state_is_not_written_down_with_an_outcome() {
    let dir = tempfile::tempdir().unwrap();
    let policies = "name = \"p\"\n[[rule]]\nid = \"all\"\neffect = \"allow\"\nmatch.capabilities = [\"*:*\"]\n";
    let governor = Governor::builder().policies(PolicySet::from_toml(policies).unwrap()).open(dir.path()).unwrap();
    governor.agents().register(Agent::new("evil").at_tier(Tier::T4)).unwrap();
    let intent = Intent::new("evil", "read_document", RiskLevel::Low, ["document:read"]).unwrap();
    let id = governor.enforce(&intent).unwrap().proof_id;
    governor.agents().suspend("evil", "found out").unwrap();
    governor.close().unwrap();
    drop(governor);
    edit_view(dir.path(), |blocks, batch| {
        let (key, value) = blocks.scan(b"tagent/evil").unwrap().swap_remove(0);
        let value = String::from_utf8(value).unwrap();
        let forged = value.replace("SUSPENDED", "ACTIVE").replace("suspended", "active");
        assert_ne!(forged, value);
        batch.put(&key, forged.as_bytes());
    });
    let governor = Governor::builder().verification(OpenVerification::Behind).open(dir.path()).unwrap();
    assert_eq!(governor.report(&id, Outcome::Success).unwrap_err().code(), "CHAIN_BROKEN");
    assert!(matches!(governor.log().verification(), VerificationState::Broken(_)));
    let warnings = governor.status().warnings;
    assert!(warnings.iter().any(|warning| warning.contains("no decision can be made")), "{warnings:?}");
    assert!(governor.agents().ensure(Agent::new("evil")).is_ok(), "a known agent is found without a verified log");
    governor.close().unwrap();
    drop(governor);
    // The next open with background verification does not trust that index again.
    let governor = Governor::builder().verification(OpenVerification::Behind).open(dir.path()).unwrap();
    assert_eq!(governor.log().verification(), VerificationState::Verified);
    assert_eq!(governor.enforce(&intent).unwrap().decision, Decision::Deny);
}

#[test]
fn a_forged_task_is_not_written_down_with_new_words() {
    for ends in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let governor = Governor::builder().auto_register().open(dir.path()).unwrap();
        let task = governor.tasks().open(TaskRequest::new("a", "Read notes.txt")).unwrap();
        let id = task.opened().unwrap().task_id;
        drop(task);
        governor.close().unwrap();
        drop(governor);
        edit_view(dir.path(), |blocks, batch| {
            let (key, value) = blocks.scan(b"ttask/").unwrap().swap_remove(0);
            let forged = String::from_utf8(value).unwrap().replace("\"maxCalls\":", "\"maxCalls\":9");
            batch.put(&key, forged.as_bytes());
        });
        let governor = Governor::builder().verification(OpenVerification::Behind).open(dir.path()).unwrap();
        let task = governor.tasks().get(id).unwrap();
        let refused = if ends { task.close(None).err() } else { task.say("and sum.txt").err() };
        assert_eq!(refused.unwrap().code(), "CHAIN_BROKEN", "ends: {ends}");
        assert!(matches!(governor.log().verification(), VerificationState::Broken(_)));
    }
}

#[test]
fn what_loosens_is_not_in_force_over_a_forged_index() {
    let all = PolicySet::from_toml("name = \"p\"\n[[rule]]\nid = \"all\"\neffect = \"allow\"\n").unwrap();
    for lifts in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let builder = Governor::builder().auto_register().durability(Durability::Buffered);
        let governor = builder.open(dir.path()).unwrap();
        let reads = Intent::new("a", "read_document", RiskLevel::Low, ["document:read"]).unwrap();
        // So many that the verification is not over when it is asked.
        for _ in 0..5_000 {
            governor.enforce(&reads).unwrap();
        }
        let stop = governor.kill_switch().set(KillSwitchScope::All, "ops", "a test").unwrap().id;
        governor.close().unwrap();
        drop(governor);
        edit_view(dir.path(), |blocks, batch| {
            let (key, value) = blocks.scan(b"tagent/a").unwrap().swap_remove(0);
            let value = String::from_utf8(value).unwrap();
            let forged = value.replace("\"ACTIVE\"", "\"SUSPENDED\"").replace("\"active\"", "\"suspended\"");
            assert_ne!(forged, value);
            batch.put(&key, forged.as_bytes());
        });
        let governor = Governor::builder().verification(OpenVerification::Behind).open(dir.path()).unwrap();
        let before = governor.policies().current().digest();
        let refused =
            if lifts { governor.kill_switch().lift(&stop, "ops", "") } else { governor.policies().load(all.clone()) };
        assert_eq!(refused.unwrap_err().code(), "CHAIN_BROKEN", "lifts: {lifts}");
        assert_eq!((governor.policies().current().digest(), governor.kill_switch().list().len()), (before, 1));
    }
}

#[test]
fn a_denial_hidden_by_the_index_is_shown_with_a_warning() {
    for when in [OpenVerification::Before, OpenVerification::Behind] {
        let dir = tempfile::tempdir().unwrap();
        let governor = Governor::builder().auto_register().open(dir.path()).unwrap();
        let ask = |capability, risk| Intent::new("bad", "do_it", risk, [capability]).unwrap();
        governor.enforce(&ask("document:read", RiskLevel::Low)).unwrap();
        let denied = governor.enforce(&ask("permission:admin", RiskLevel::Critical)).unwrap();
        assert_eq!(denied.decision, Decision::Deny);
        governor.close().unwrap();
        drop(governor);
        edit_view(dir.path(), |blocks, batch| {
            let (key, mut page) = blocks.scan(b"e").unwrap().swap_remove(0);
            let start = page.windows(3).position(|id| id == b"bad").unwrap() + 4;
            // The decision, the risk and the outcome of a posting are in its eighth byte.
            page.swap(start + 7, start + 16 + 7);
            batch.put(&key, &page);
        });
        let governor = Governor::builder().verification(when).open(dir.path()).unwrap();
        governor.inner.base.log.wait_verified().unwrap();
        let denials = governor.query(&ProofQuery::entity("bad").decision(Decision::Deny)).unwrap().items;
        assert_eq!(denials.iter().map(|record| record.id).collect::<Vec<_>>(), [denied.proof_id], "{when:?}");
        let warnings = governor.status().warnings;
        assert!(warnings.iter().any(|warning| warning.contains("index differed")), "{when:?}: {warnings:?}");
        let found = governor.verify().unwrap();
        assert!(found.valid && found.index_differed.is_none());
        assert_eq!(governor.enforce(&ask("document:read", RiskLevel::Low)).unwrap().decision, Decision::Allow);
    }
}

/// Many threads report the same decision at once, in two ways: one outcome is kept, and trust changes once.
#[test]
fn of_concurrent_outcomes_the_first_stands_and_moves_trust_once() {
    let policies = "name = \"p\"\n[[rule]]\nid = \"all\"\neffect = \"allow\"\nmatch.capabilities = [\"*:*\"]\n";
    for durability in [Durability::Sync, Durability::Buffered] {
        let dir = tempfile::tempdir().unwrap();
        let builder = Governor::builder().policies(PolicySet::from_toml(policies).unwrap()).durability(durability);
        let governor = builder.open(dir.path()).unwrap();
        governor.agents().register(Agent::new("a").at_tier(Tier::T3)).unwrap();
        let intent = Intent::new("a", "read_document", RiskLevel::Low, ["document:read"]).unwrap();
        for _ in 0..20 {
            let before = governor.trust().history("a", 1, 1).unwrap().total;
            let id = governor.enforce(&intent).unwrap().proof_id;
            let start = std::sync::Barrier::new(8);
            let reported: Vec<_> = std::thread::scope(|scope| {
                let report = |at: usize| {
                    start.wait();
                    let outcome = if at.is_multiple_of(2) { Outcome::Failure } else { Outcome::Success };
                    (outcome, governor.report(&id, outcome).map_err(|error| error.code()))
                };
                let threads: Vec<_> = (0..8).map(|at| scope.spawn(move || report(at))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let standing = governor.log().record(&id).unwrap().outcome;
            for (outcome, result) in reported {
                assert_eq!(result.err(), (Some(outcome) != standing).then_some("CONFLICT"), "{standing:?}, {outcome}");
            }
            let moves = governor.trust().history("a", 1, 200).unwrap();
            let of_this = moves.items.iter().filter(|moved| moved.proof_id == Some(id)).count() as u64;
            assert!(of_this <= 1, "trust moved {of_this} times");
            assert_eq!(moves.total - before, of_this);
        }
        assert!(governor.verify().unwrap().valid);
    }
}
