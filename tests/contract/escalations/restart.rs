//! Escalations outlast the process that asked.

use std::fs;

use rulekeep::escalation::{EscalationQuery, EscalationState};
use rulekeep::proof::OpenVerification;
use rulekeep::{Durability, Governor, ProofQuery};
use serde_json::json;

use super::*;

fn all(governor: &Governor) -> serde_json::Value {
    json!(governor.escalations().list(&EscalationQuery::all().page_size(200)).unwrap())
}

#[test]
fn all_is_the_same_after_a_restart_with_and_without_the_view() {
    let folder = tempfile::tempdir().unwrap();
    let hand = Hand::at(NOON);
    let open = || with_clock(&hand).open(folder.path()).unwrap();
    let governor = open();
    governor.agents().register(Agent::new("clerk").at_tier(Tier::T4)).unwrap();
    let (waits, _) = ask(&governor, &payment(1));
    let (approved, _) = ask(&governor, &payment(2));
    governor.escalations().approve(approved, by("ann")).unwrap();
    let (claimed, _) = ask(&governor, &payment(3));
    governor.escalations().approve(claimed, by("ann")).unwrap();
    governor.escalations().claim(claimed, &payment(3)).unwrap();
    let (rejected, _) = ask(&governor, &payment(4));
    governor.escalations().reject(rejected, by("bob").note("no")).unwrap();
    let (half, _) = ask(&governor, &rights());
    governor.escalations().approve(half, by("ann")).unwrap();
    let before = all(&governor);
    governor.close().unwrap();

    for with_view in [true, false] {
        if !with_view {
            fs::remove_dir_all(folder.path().join("view")).unwrap();
        }
        let governor = open();
        assert_eq!(all(&governor), before, "view {with_view}");
        governor.close().unwrap();
    }
    let governor = with_clock(&hand).verification(OpenVerification::Behind).open(folder.path()).unwrap();
    assert_eq!(all(&governor), before);
    assert!(governor.escalations().claim(approved, &payment(2)).is_ok());
    assert_eq!(code(governor.escalations().claim(claimed, &payment(3))), "CONFLICT");
    assert_eq!(governor.escalations().approve(half, by("bob")).unwrap().state, EscalationState::Approved);
    assert!(governor.escalations().approve(waits, by("ann")).is_ok());
    assert!(governor.verify().unwrap().valid);
}

#[test]
fn who_was_away_finds_what_expired_meanwhile_denied() {
    let folder = tempfile::tempdir().unwrap();
    let hand = Hand::at(NOON);
    let governor = with_clock(&hand).open(folder.path()).unwrap();
    governor.agents().register(Agent::new("clerk").at_tier(Tier::T4)).unwrap();
    let (id, verdict) = ask(&governor, &payment(1));
    governor.close().unwrap();
    hand.set(NOON + 7_200_000);
    let governor = with_clock(&hand).open(folder.path()).unwrap();
    assert_eq!(governor.escalations().get(id).unwrap().state, EscalationState::Expired);
    let answer = governor.query(&ProofQuery::entity("clerk")).unwrap().items.remove(0);
    assert_eq!(answer.resolves, Some(verdict.proof_id));
}

#[test]
fn what_expires_ends_without_anybody_asking() {
    let (governor, hand) = governor();
    let (_, verdict) = ask(&governor, &payment(1));
    hand.set(NOON + 7_200_000);
    let answered = || governor.log().record(&verdict.proof_id).unwrap().outcome.is_some();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !answered() {
        assert!(std::time::Instant::now() < until, "no thread looks after it");
        std::thread::yield_now();
    }
}

/// The journal's bytes cut behind each entry are what a kill leaves of them.
#[test]
fn a_crash_leaves_each_answer_whole_or_not_at_all() {
    const JOURNAL: &str = "journal/0000000000.rkj";
    let folder = tempfile::tempdir().unwrap();
    let hand = Hand::at(NOON);
    let builder = || with_clock(&hand).durability(Durability::Sync);
    let governor = builder().open(folder.path()).unwrap();
    governor.agents().register(Agent::new("clerk").at_tier(Tier::T4)).unwrap();
    let head = fs::read(folder.path().join("HEAD")).unwrap();
    let written = || {
        let bytes = fs::read(folder.path().join(JOURNAL)).unwrap();
        bytes.windows(4).enumerate().filter(|(_, window)| *window == b"RKf2").map(|(at, _)| at).collect::<Vec<_>>()
    };
    let (first, _) = ask(&governor, &payment(1));
    governor.escalations().approve(first, by("ann")).unwrap();
    let (second, _) = ask(&governor, &payment(2));
    governor.escalations().reject(second, by("ann")).unwrap();
    let starts = written();
    let bytes = fs::read(folder.path().join(JOURNAL)).unwrap();
    drop(governor);

    let registered = starts.len() - 7;
    // Between entries, and within one.
    for (cut, into) in (registered..starts.len()).flat_map(|cut| [(cut, 0), (cut, 90)]) {
        let left = tempfile::tempdir().unwrap();
        common::copy_folder(folder.path(), left.path());
        fs::remove_dir_all(left.path().join("view")).ok();
        let mut torn = bytes.clone();
        torn[starts[cut] + into..].fill(0);
        fs::write(left.path().join(JOURNAL), torn).unwrap();
        // As it was when nothing had been asked yet.
        fs::write(left.path().join("HEAD"), &head).unwrap();
        let governor = builder().open(left.path()).unwrap();
        assert_eq!(governor.verify().unwrap().first_broken, None, "cut {cut} + {into}");
        let records = governor.query(&ProofQuery::entity("clerk").page_size(200)).unwrap().items;
        for item in governor.escalations().list(&EscalationQuery::all()).unwrap().items {
            let asked = records.iter().find(|record| record.id == item.proof_id);
            let answers = records.iter().filter(|record| record.resolves == Some(item.proof_id)).count();
            match item.state {
                EscalationState::Pending => assert_eq!((asked.is_some(), answers), (true, 0), "cut {cut} + {into}"),
                EscalationState::Approved | EscalationState::Rejected => {
                    assert_eq!(answers, 1, "cut {cut} + {into}");
                    assert!(asked.unwrap().outcome.is_some(), "cut {cut} + {into}");
                }
                EscalationState::Expired => assert!(asked.is_none(), "cut {cut} + {into}"),
            }
        }
    }
}
