//! Escalations whose evidence cannot be read: they are listed beside the others, and can be rejected and nothing else.

use std::fs;
use std::path::Path;

use rulekeep::escalation::{Escalation, EscalationQuery, EscalationState};
use rulekeep::{Governor, ProofQuery};

use super::*;

/// A governor in a folder, and the clock by which it goes.
fn in_folder(folder: &Path) -> (Governor, Hand) {
    let hand = Hand::at(NOON);
    let governor = with_clock(&hand).open(folder).unwrap();
    governor.agents().register(Agent::new("clerk").at_tier(Tier::T4)).unwrap();
    (governor, hand)
}

fn marked(marker: &str) -> Intent {
    payment(40).with_context("order", marker)
}

/// Changes the text in the evidence that is kept on disk.
fn damage(folder: &Path, marker: &str) {
    let path = common::journal(folder);
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(marker.len()).position(|window| window == marker.as_bytes()).expect("it is kept as it is");
    bytes[at] ^= 0x20;
    fs::write(path, bytes).unwrap();
}

fn listed(governor: &Governor) -> Vec<Escalation> {
    governor.escalations().list(&EscalationQuery::all()).unwrap().items
}

#[test]
fn one_that_cannot_be_read_is_listed_beside_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let (governor, _) = in_folder(folder.path());
    let (first, _) = ask(&governor, &marked("order-first"));
    let (bad, _) = ask(&governor, &marked("order-bad"));
    let (last, _) = ask(&governor, &marked("order-last"));
    damage(folder.path(), "order-bad");

    let all = listed(&governor);
    assert_eq!(all.iter().map(|one| one.id).collect::<Vec<_>>(), [last, bad, first]);
    assert_eq!(governor.escalations().pending().unwrap().len(), 3);
    let one = governor.escalations().get(bad).unwrap();
    assert_eq!((&one.intent, &one), (&None, &all[1]));
    assert!(one.unreadable.unwrap().contains("verify the log"));
    for whole in [&all[0], &all[2]] {
        assert!(whole.intent.is_some() && whole.unreadable.is_none());
    }
    for id in [first, last] {
        assert_eq!(governor.escalations().approve(id, by("ann")).unwrap().state, EscalationState::Approved);
    }
}

#[test]
fn one_that_cannot_be_read_is_rejected_and_never_approved() {
    let folder = tempfile::tempdir().unwrap();
    let (governor, _) = in_folder(folder.path());
    let (bad, verdict) = ask(&governor, &marked("order-bad"));
    let (half, _) = ask(&governor, &rights().with_context("order", "order-half"));
    damage(folder.path(), "order-bad");
    damage(folder.path(), "order-half");

    for id in [bad, half] {
        let refused = error(governor.escalations().approve(id, by("ann")));
        assert_eq!(refused.code(), "CONFLICT");
        assert!(refused.to_string().contains("cannot be approved") && refused.to_string().contains("reject it"));
        assert!(governor.escalations().get(id).unwrap().votes.is_empty());
    }
    assert_eq!(code(governor.escalations().claim(bad, &marked("order-bad"))), "CONFLICT");
    assert_eq!(governor.escalations().reject(bad, by("ann")).unwrap().state, EscalationState::Rejected);
    let answers = governor.query(&ProofQuery::entity("clerk")).unwrap().items;
    let answer = answers.iter().find(|record| record.resolves == Some(verdict.proof_id)).unwrap();
    assert_eq!(answer.decision, Decision::Deny);
    assert!(listed(&governor).iter().any(|one| one.id == bad && one.unreadable.is_some()));
}

#[test]
fn one_that_cannot_be_read_expires() {
    let folder = tempfile::tempdir().unwrap();
    let (governor, hand) = in_folder(folder.path());
    let (bad, _) = ask(&governor, &marked("order-bad"));
    damage(folder.path(), "order-bad");
    hand.set(NOON + 3_600_000);
    assert_eq!(governor.escalations().get(bad).unwrap().state, EscalationState::Expired);
}

#[test]
fn what_was_approved_is_not_taken_up_once_it_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let (governor, _) = in_folder(folder.path());
    let [bad, good] = ["order-bad", "order-good"].map(|marker| {
        let (id, _) = ask(&governor, &marked(marker));
        governor.escalations().approve(id, by("ann")).unwrap();
        id
    });
    damage(folder.path(), "order-bad");
    let refused = error(governor.escalations().claim(bad, &marked("order-bad")));
    assert_eq!(refused.code(), "CONFLICT");
    assert!(refused.to_string().contains("cannot be claimed: its evidence"), "{refused}");
    assert!(governor.escalations().claim(good, &marked("order-good")).is_ok());
}

#[test]
fn one_whose_evidence_was_erased_says_so() {
    let (governor, _) = governor();
    let (id, verdict) = ask(&governor, &payment(40));
    governor.escalations().approve(id, by("ann")).unwrap();
    let selection = rulekeep::proof::EvidenceSelection::Records(vec![verdict.proof_id]);
    // What it takes of no limit can go at once.
    governor.log().erase_evidence(&selection, "asked for").unwrap();
    let shown = governor.escalations().get(id).unwrap();
    assert_eq!((shown.intent, shown.unreadable.as_deref()), (None, Some("its evidence was erased")));
    assert_eq!(code(governor.escalations().claim(id, &payment(40))), "CONFLICT");
}
