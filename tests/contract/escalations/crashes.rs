//! The journal's bytes cut behind each entry are what a kill leaves of them.

use std::fs;
use std::path::Path;

use rulekeep::agent::AgentState;
use rulekeep::escalation::{EscalationQuery, EscalationState, PreApproval, PreApprovalState};
use rulekeep::kill_switch::KillSwitchScope;
use rulekeep::{Durability, Outcome};
use serde_json::json;
use tempfile::TempDir;

use super::*;

const JOURNAL: &str = "journal/0000000000.rkj";

/// A store, as it was when its agents were there, and the journal that it had in the end.
struct Journal {
    folder: TempDir,
    head: Vec<u8>,
    bytes: Vec<u8>,
    /// Where each entry begins, and where the last one ends.
    ends: Vec<usize>,
}

impl Journal {
    fn of(builder: &dyn Fn() -> GovernorBuilder, agents: [Agent; 2], then: impl FnOnce(&Governor)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let governor = builder().open(folder.path()).unwrap();
        for agent in agents {
            governor.agents().register(agent).unwrap();
        }
        let head = fs::read(folder.path().join("HEAD")).unwrap();
        then(&governor);
        let bytes = fs::read(folder.path().join(JOURNAL)).unwrap();
        drop(governor);
        let starts = bytes.windows(4).enumerate().filter(|(_, window)| *window == b"RKf2").map(|(at, _)| at);
        let ends = starts.chain([bytes.len()]).collect();
        Self { folder, head, bytes, ends }
    }

    /// What a crash leaves that took the last entries.
    fn without_last(&self, entries: usize) -> TempDir {
        let left = tempfile::tempdir().unwrap();
        common::copy_folder(self.folder.path(), left.path());
        fs::remove_dir_all(left.path().join("view")).ok();
        let mut torn = self.bytes.clone();
        torn[self.ends[self.ends.len() - 1 - entries]..].fill(0);
        fs::write(left.path().join(JOURNAL), torn).unwrap();
        fs::write(left.path().join("HEAD"), &self.head).unwrap();
        left
    }
}

fn opened(builder: &dyn Fn() -> GovernorBuilder, folder: &Path) -> Governor {
    let governor = builder().open(folder).unwrap();
    assert_eq!(governor.verify().unwrap().first_broken, None);
    governor
}

fn agents() -> [Agent; 2] {
    ["clerk", "temp"].map(|id| Agent::new(id).at_tier(Tier::T4).in_group("desk"))
}

#[test]
fn no_pre_approval_of_a_group_outlives_a_members_suspension() {
    let hand = Hand::at(NOON);
    let builder = || with_clock(&hand).durability(Durability::Sync);
    let journal = Journal::of(&builder, agents(), |governor| {
        let terms = json!({
            "group": "desk", "capabilities": ["payment:transfer"], "rules": ["money"], "until": "2027-01-16T00:00:00Z",
        });
        let class: PreApproval = serde_json::from_value(terms).unwrap();
        governor.escalations().pre_approve(class, by("ann")).unwrap();
        governor.agents().suspend("temp", "").unwrap();
    });
    let mut seen = Vec::new();
    for lost in 0..=2 {
        let left = journal.without_last(lost);
        let governor = opened(&builder, left.path());
        let state = governor.escalations().pre_approvals()[0].state;
        let is_suspended = governor.agents().get("temp").unwrap().state == AgentState::Suspended;
        assert!(!is_suspended || state == PreApprovalState::Revoked, "{lost} lost: {state}");
        seen.push((is_suspended, state));
    }
    assert_eq!((seen[0], seen[2]), ((true, PreApprovalState::Revoked), (false, PreApprovalState::Active)));
}

#[test]
fn what_a_stop_ends_is_ended_when_a_crash_came_before_it_was() {
    let hand = Hand::at(NOON);
    let builder = || with_clock(&hand).durability(Durability::Sync);
    let (mut asked, mut approved) = (Vec::new(), None);
    let journal = Journal::of(&builder, agents(), |governor| {
        asked = (0..3).map(|amount| ask(governor, &payment(amount))).collect();
        let (id, _) = ask(governor, &payment(9));
        governor.escalations().approve(id, by("ann")).unwrap();
        approved = Some(id);
        let report = governor.kill_switch().set(KillSwitchScope::agent("clerk").unwrap(), "ann", "").unwrap();
        assert_eq!(report.died, 4);
    });
    // Behind the stop stand two entries of each that waited, and one of what was approved.
    for lost in 0..=8 {
        let left = journal.without_last(lost);
        let governor = opened(&builder, left.path());
        let is_stopped = !governor.kill_switch().list().is_empty();
        assert_eq!(is_stopped, lost < 8, "{lost} lost");
        let listed = governor.escalations().list(&EscalationQuery::all()).unwrap();
        assert_eq!(listed.total, 4);
        for item in listed.items {
            let expected = match is_stopped {
                true => EscalationState::Expired,
                false if Some(item.id) == approved => EscalationState::Approved,
                false => EscalationState::Pending,
            };
            assert_eq!(item.state, expected, "{lost} lost");
        }
        for (amount, (id, verdict)) in (0..).zip(&asked) {
            let outcome = governor.log().record(&verdict.proof_id).unwrap().outcome;
            assert_eq!(outcome, is_stopped.then_some(Outcome::Escalated), "{lost} lost");
            assert_eq!(code(governor.escalations().claim(*id, &payment(amount))), "CONFLICT");
            if is_stopped {
                assert_eq!(code(governor.escalations().approve(*id, by("ann"))), "CONFLICT");
            }
        }
        let claimed = governor.escalations().claim(approved.unwrap(), &payment(9));
        assert_eq!(claimed.is_ok(), !is_stopped, "{lost} lost");
    }
}
