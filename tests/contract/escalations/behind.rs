//! A store that is opened before it is verified: what a crash left is mended before anybody answers or takes up.

use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use rulekeep::escalation::{EscalationState, PreApproval, PreApprovalState};
use rulekeep::kill_switch::KillSwitchScope;
use rulekeep::proof::{OpenVerification, VerificationState};
use rulekeep::{Durability, Outcome, ProofQuery};
use serde_json::json;
use tempfile::TempDir;

use super::*;

/// Enough that verifying them takes longer than opening the store.
const RECORDS: usize = 5_000;
/// As long as a test waits for what has to come.
const LONG: Duration = Duration::from_secs(60);

fn opened(hand: &Hand, folder: &Path) -> Governor {
    with_clock(hand).durability(Durability::Buffered).verification(OpenVerification::Behind).open(folder).unwrap()
}

/// Whether it is, once that is known.
fn is_verified(governor: &Governor) -> bool {
    while matches!(governor.log().verification(), VerificationState::Running(_)) {
        std::thread::yield_now();
    }
    governor.log().verification() == VerificationState::Verified
}

fn last_journal(folder: &Path) -> PathBuf {
    let files = common::files_below(&folder.join("journal"));
    files.into_iter().filter(|file| file.extension().is_some_and(|extension| extension == "rkj")).max().unwrap()
}

/// What a crash leaves that took the last entry of what `last` does, in a store that was closed before that.
fn left_without_last<T>(
    hand: &Hand,
    first: impl FnOnce(&Governor) -> T,
    last: impl FnOnce(&Governor, &T),
) -> (TempDir, T) {
    let (live, left) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let governor = opened(hand, live.path());
    for id in ["clerk", "a"] {
        governor.agents().register(Agent::new(id).at_tier(Tier::T4)).unwrap();
    }
    for _ in 0..RECORDS {
        governor.enforce(&common::reading("a")).unwrap();
    }
    let made = first(&governor);
    governor.close().unwrap();
    common::copy_folder(live.path(), left.path());
    let governor = opened(hand, live.path());
    assert!(is_verified(&governor));
    last(&governor, &made);
    governor.log().flush().unwrap();
    let journal = last_journal(live.path());
    let mut bytes = fs::read(&journal).unwrap();
    governor.close().unwrap();
    let cut = common::frames(&bytes).pop().unwrap().start;
    bytes[cut..].fill(0);
    fs::write(left.path().join("journal").join(journal.file_name().unwrap()), bytes).unwrap();
    (left, made)
}

/// What a crash leaves between the record that approves and the outcome of the one that asked.
fn half_approved(hand: &Hand) -> (TempDir, EscalationId) {
    let approve = |governor: &Governor, id: &EscalationId| _ = governor.escalations().approve(*id, by("ann")).unwrap();
    left_without_last(hand, |governor| ask(governor, &payment(7)).0, approve)
}

fn answers(governor: &Governor, id: EscalationId) -> usize {
    let records = governor.query(&ProofQuery::entity("clerk").page_size(200)).unwrap().items;
    records.iter().filter(|record| record.resolves == Some(id.proof_id())).count()
}

#[test]
fn what_has_an_answer_is_not_answered_again() {
    let hand = Hand::at(NOON);
    let (left, id) = half_approved(&hand);
    for answer in ["approve", "reject", "stop", "claim", "report"] {
        let copy = tempfile::tempdir().unwrap();
        common::copy_folder(left.path(), copy.path());
        let governor = opened(&hand, copy.path());
        let escalations = governor.escalations();
        match answer {
            "approve" => assert_eq!(code(escalations.approve(id, by("bob"))), "CONFLICT"),
            "reject" => assert_eq!(code(escalations.reject(id, by("bob"))), "CONFLICT"),
            "stop" => _ = governor.kill_switch().set(KillSwitchScope::All, "ann", "").unwrap(),
            "claim" => _ = escalations.claim(id, &payment(7)).unwrap(),
            _ => {
                let records = governor.query(&ProofQuery::entity("clerk")).unwrap().items;
                let approval = records.iter().find(|record| record.resolves == Some(id.proof_id())).unwrap().id;
                let reported = governor.report(&approval, Outcome::Success);
                assert_eq!(code(reported), "CONFLICT", "it was never taken up");
            }
        }
        assert_eq!(answers(&governor, id), 1, "{answer}");
        let expected = if answer == "stop" { EscalationState::Expired } else { EscalationState::Approved };
        assert_eq!(escalations.get(id).unwrap().state, expected, "{answer}");
        assert_eq!(governor.log().record(&id.proof_id()).unwrap().outcome, Some(Outcome::Escalated), "{answer}");
        assert_eq!(governor.verify().unwrap().first_broken, None, "{answer}");
    }
}

/// Tells that it was woken.
struct Told(Sender<()>);

impl Wake for Told {
    fn wake(self: Arc<Self>) {
        let _ = self.0.send(());
    }
}

#[test]
fn who_awaits_an_answer_that_a_crash_left_is_woken() {
    let hand = Hand::at(NOON);
    let (left, id) = half_approved(&hand);
    let governor = opened(&hand, left.path());
    let (told, woken) = mpsc::channel();
    let waker = Waker::from(Arc::new(Told(told)));
    let mut answer = pin!(governor.escalations().claim_async(id, &payment(7)).unwrap());
    let granted = loop {
        match answer.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(granted) => break granted.unwrap(),
            Poll::Pending => woken.recv_timeout(LONG).expect("nobody told it"),
        }
    };
    assert_eq!(granted.decision, Decision::Allow);
}

/// How many states of pre-approvals a journal has.
fn pre_approval_states(folder: &Path) -> usize {
    let bytes = fs::read(last_journal(folder)).unwrap();
    let count =
        |frame: &std::ops::Range<usize>| String::from_utf8_lossy(&bytes[frame.clone()]).contains("\"key\":\"grant/");
    common::frames(&bytes).iter().filter(|frame| count(frame)).count()
}

#[test]
fn a_revoked_pre_approval_is_recorded_once_the_log_is_verified() {
    let hand = Hand::at(NOON);
    let give = |governor: &Governor| {
        let terms = json!({
            "agentId": "clerk", "capabilities": ["payment:transfer"], "rules": ["money"], "until": "2027-01-16T00:00:00Z",
        });
        let approval: PreApproval = serde_json::from_value(terms).unwrap();
        governor.escalations().pre_approve(approval, by("ann")).unwrap()
    };
    let stop = |governor: &Governor, _: &_| {
        _ = governor.kill_switch().set(KillSwitchScope::agent("clerk").unwrap(), "ann", "").unwrap();
    };
    let (left, _) = left_without_last(&hand, give, stop);
    assert_eq!(pre_approval_states(left.path()), 1);
    for is_damaged in [false, true] {
        let copy = tempfile::tempdir().unwrap();
        common::copy_folder(left.path(), copy.path());
        if is_damaged {
            let journal = last_journal(copy.path());
            let mut bytes = fs::read(&journal).unwrap();
            let frames = common::frames(&bytes);
            // Late enough that opening is done when it is found.
            let frame = frames[frames.len() - 10].clone();
            bytes[frame.start + 80] ^= 1;
            fs::write(&journal, bytes).unwrap();
        }
        let governor = opened(&hand, copy.path());
        let state = governor.escalations().pre_approvals()[0].state;
        assert!(is_damaged || state == PreApprovalState::Revoked, "{state}");
        assert_eq!(is_verified(&governor), !is_damaged);
        let _ = governor.escalations().pending();
        let _ = governor.close();
        assert_eq!(pre_approval_states(copy.path()), if is_damaged { 1 } else { 2 }, "damaged: {is_damaged}");
    }
}
