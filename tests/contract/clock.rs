//! The time by which a governor decides: never before the last entry, not far ahead of the time since boot, and what has
//! ended stays ended.

use crate::common;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use common::{NOON, code, error};
use rulekeep::agent::AgentState;
use rulekeep::escalation::{PreApproval, PreApprovalId, PreApprovalState, Review};
use rulekeep::kill_switch::KillSwitchScope;
use rulekeep::proof::{EvidenceSelection, ExportRange};
use rulekeep::status::Health;
use rulekeep::system::{Clock, Timestamp};
use rulekeep::{Agent, Decision, Governor, GovernorBuilder, Intent, Outcome, PolicySet, ProofQuery, RiskLevel, Tier};
use serde_json::json;

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// A machine: what its clock shows, and the time since it was booted.
#[derive(Clone)]
struct Machine(Arc<[AtomicI64; 2]>);

impl Machine {
    fn at(millis: i64) -> Self {
        Self(Arc::new([AtomicI64::new(millis), AtomicI64::new(1000)]))
    }

    /// Time passes, asleep or awake.
    fn pass(&self, millis: i64) {
        self.0.iter().for_each(|hand| _ = hand.fetch_add(millis, Ordering::SeqCst));
    }

    /// The clock alone is set.
    fn step(&self, millis: i64) {
        self.0[0].fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for Machine {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0[0].load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        self.since_boot().unwrap()
    }

    fn since_boot(&self) -> Option<Duration> {
        Some(Duration::from_millis(self.0[1].load(Ordering::SeqCst).unsigned_abs()))
    }
}

const POLICIES: &str = r#"
name = "shop"
[[rule]]
id = "mail"
effect = "allow"
match.capabilities = ["email:send"]
limit = { count = 2, per = "1h" }
[[rule]]
id = "reading"
effect = "allow"
match.capabilities = ["email:read"]
[[rule]]
id = "money"
effect = "escalate"
match.capabilities = ["payment:transfer"]
reviewer = "ann"
expires = "10m"
"#;

fn builder(machine: &Machine) -> GovernorBuilder {
    Governor::builder().policies(PolicySet::from_toml(POLICIES).unwrap()).clock(machine.clone())
}

fn in_folder(machine: &Machine, folder: &Path) -> Governor {
    let governor = builder(machine).open(folder).unwrap();
    let _ = governor.agents().register(Agent::new("a").at_tier(Tier::T4));
    governor
}

fn in_memory(machine: &Machine) -> Governor {
    let governor = builder(machine).open_in_memory().unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    governor
}

fn intent(capability: &str) -> Intent {
    Intent::new("a", "act", RiskLevel::Medium, [capability]).unwrap()
}

fn decide(governor: &Governor, capability: &str) -> Decision {
    governor.enforce(&intent(capability)).unwrap().decision
}

fn time(millis: i64) -> DateTime<Utc> {
    Timestamp::from_millis(millis).into()
}

fn approve_beforehand(governor: &Governor, until: i64) -> PreApprovalId {
    let approval: PreApproval = serde_json::from_value(json!({
        "agentId": "a", "capabilities": ["payment:transfer"], "rules": ["money"], "maxRisk": "HIGH", "count": 2,
        "until": Timestamp::from_millis(until),
    }))
    .unwrap();
    governor.escalations().pre_approve(approval, Review::by("ann")).unwrap()
}

#[test]
fn after_a_step_of_a_day_ahead_nothing_is_decided_unconfirmed() {
    let machine = Machine::at(NOON);
    let governor = in_memory(&machine);
    let proof_id = governor.enforce(&intent("email:read")).unwrap().proof_id;
    machine.pass(HOUR);
    machine.step(DAY + 1);
    let refused = error(governor.enforce(&intent("email:read")));
    assert_eq!(refused.code(), "STORAGE_UNAVAILABLE");
    for part in ["2027-01-16T09:00:00.001Z", "2027-01-15T09:00:00.000Z", "clock/accept"] {
        assert!(refused.to_string().contains(part), "{refused} lacks {part}");
    }
    let records = EvidenceSelection::Records(vec![proof_id]);
    assert_eq!(code(governor.log().erase_evidence(&records, "asked for")), "STORAGE_UNAVAILABLE");
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive.rka");
    assert_eq!(code(governor.log().archive(Timestamp::from_millis(NOON), archive)), "STORAGE_UNAVAILABLE");
    let status = governor.status();
    assert_eq!((status.components.gateway, status.components.proof_chain), (Health::Unhealthy, Health::Degraded));
    assert!(status.warnings.iter().any(|warning| warning.contains("2027-01-15T09:00:00.000Z was expected")));
    // What makes safer goes on, at the time that was expected.
    governor.kill_switch().set(KillSwitchScope::All, "ann", "").unwrap();
    assert_eq!(governor.kill_switch().list()[0].timestamp, Timestamp::from_millis(NOON + HOUR));

    let report = governor.log().accept_clock("ann", "the clock was wrong for a day").unwrap();
    assert_eq!((report.from.as_millis(), report.to.as_millis()), (NOON + HOUR, NOON + HOUR + DAY + 1));
    let status = governor.status();
    assert_eq!((status.components.gateway, status.components.proof_chain), (Health::Healthy, Health::Healthy));
    assert_eq!(decide(&governor, "email:read"), Decision::Deny, "all are stopped");
    assert!(governor.verify().unwrap().valid);
}

#[test]
fn a_clock_that_is_more_than_an_hour_away_is_told_and_decides() {
    for step in [HOUR + 1, -HOUR - 1] {
        let machine = Machine::at(NOON);
        let governor = in_memory(&machine);
        machine.pass(3 * DAY);
        machine.step(step);
        assert_eq!(decide(&governor, "email:read"), Decision::Allow);
        let status = governor.status();
        assert_eq!(status.components.proof_chain, Health::Degraded, "{step}");
        assert!(status.warnings[0].contains("was expected from the time since boot"), "{:?}", status.warnings);
        machine.step(-step);
        // What was decided ahead of time stands there until the clock has passed it.
        let expected = if step > 0 { Health::Degraded } else { Health::Healthy };
        assert_eq!(governor.status().components.proof_chain, expected, "{step}");
    }
}

#[test]
fn a_machine_that_slept_for_a_week_decides_on() {
    let machine = Machine::at(NOON);
    let governor = in_memory(&machine);
    machine.pass(7 * DAY);
    assert_eq!(decide(&governor, "email:read"), Decision::Allow);
    assert!(governor.status().warnings.is_empty());
}

#[test]
fn across_a_restart_time_may_have_passed_and_never_gone_back() {
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine::at(NOON);
    let open = || in_folder(&machine, folder.path());
    let last = |governor: &Governor| governor.query(&ProofQuery::entity("a").page_size(1)).unwrap().items[0].timestamp;
    assert_eq!(decide(&open(), "email:read"), Decision::Allow);
    machine.step(29 * DAY);
    let governor = open();
    assert!(governor.status().warnings.is_empty());
    decide(&governor, "email:read");
    governor.close().unwrap();
    machine.step(31 * DAY);
    let governor = open();
    let status = governor.status();
    assert!(status.warnings[0].contains("31 days past the last entry"), "{:?}", status.warnings);
    assert_eq!(status.components.proof_chain, Health::Healthy);
    decide(&governor, "email:read");
    assert_eq!(last(&governor).as_millis(), NOON + 60 * DAY);
    governor.close().unwrap();
    machine.step(-2 * DAY);
    let governor = open();
    decide(&governor, "email:read");
    assert_eq!(last(&governor).as_millis(), NOON + 60 * DAY, "a clock behind the last entry is not believed");
    assert_eq!(governor.status().components.proof_chain, Health::Degraded);
    // It was not set yet, and is now.
    machine.step(5 * DAY);
    decide(&governor, "email:read");
    assert_eq!(last(&governor).as_millis(), NOON + 63 * DAY);
    assert_eq!(governor.status().components.proof_chain, Health::Healthy);
}

#[test]
fn after_a_confirmed_step_back_times_limits_and_gains_restart() {
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine::at(NOON + 365 * DAY);
    let governor = in_folder(&machine, folder.path());
    assert_eq!([decide(&governor, "email:send"), decide(&governor, "email:send")], [Decision::Allow; 2]);
    assert_eq!(decide(&governor, "email:send"), Decision::Deny);
    let before = governor.enforce(&intent("email:read")).unwrap().proof_id;
    governor.report(&before, Outcome::Success).unwrap();
    let approval = approve_beforehand(&governor, NOON + 366 * DAY);
    assert_eq!(decide(&governor, "payment:transfer"), Decision::Allow);
    machine.step(-365 * DAY);
    assert_eq!(decide(&governor, "email:send"), Decision::Deny, "it is not believed");
    let report = governor.log().accept_clock("ann", "").unwrap();
    assert_eq!(report.to.as_millis(), NOON);
    machine.pass(1000);
    assert_eq!([decide(&governor, "email:send"), decide(&governor, "email:send")], [Decision::Allow; 2]);
    assert_eq!(decide(&governor, "email:send"), Decision::Deny);

    let check = |governor: &Governor| {
        assert!(governor.verify().unwrap().valid);
        let of = |from: i64, to: i64| ProofQuery::entity("a").from(time(from)).to(time(to));
        let total = |query: &ProofQuery| governor.query(query).unwrap().total;
        let all = governor.query(&ProofQuery::entity("a")).unwrap();
        let (old, new) = (of(NOON + 365 * DAY, NOON + 366 * DAY), of(NOON, NOON + DAY));
        assert_eq!(total(&old) + total(&new), all.total);
        assert_eq!(total(&new), 3);
        assert!(governor.query(&new).unwrap().items.iter().all(|record| record.timestamp.as_millis() == NOON + 1000));
        assert_eq!(total(&of(NOON + 2 * DAY, NOON + 364 * DAY)), 0);
        let mut sequences: Vec<_> = all.items.iter().map(|record| record.id).collect();
        let newest_first = sequences.clone();
        sequences.sort_by_key(|id| std::cmp::Reverse(all.items.iter().position(|record| record.id == *id)));
        sequences.reverse();
        assert_eq!(sequences, newest_first);
        let stats = governor.stats("a", time(NOON)..=time(NOON + DAY)).unwrap();
        assert_eq!(stats.total_records, 3);
        let standing = governor.escalations().pre_approvals().remove(0);
        // It would last longer than its uses are counted.
        assert_eq!((standing.id, standing.state), (approval, PreApprovalState::Revoked));
    };
    check(&governor);
    governor.close().unwrap();
    let governor = in_folder(&machine, folder.path());
    check(&governor);
    assert_eq!(decide(&governor, "email:send"), Decision::Deny, "a restart forgets nothing of the new time");
    assert_eq!(decide(&governor, "payment:transfer"), Decision::Escalate);
    governor.close().unwrap();
    std::fs::remove_dir_all(folder.path().join("view")).unwrap();
    let governor = in_folder(&machine, folder.path());
    assert_eq!(decide(&governor, "email:send"), Decision::Deny, "nor does an index that is rebuilt");
    assert_eq!(governor.trust().verify().unwrap().differing, []);
}

#[test]
fn used_parts_of_a_pre_approval_stay_used_after_a_step_back() {
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine::at(NOON);
    let governor = in_folder(&machine, folder.path());
    approve_beforehand(&governor, NOON + DAY);
    assert_eq!(decide(&governor, "payment:transfer"), Decision::Allow);
    machine.step(-HOUR);
    governor.log().accept_clock("ann", "").unwrap();
    assert_eq!(decide(&governor, "payment:transfer"), Decision::Allow);
    assert_eq!(decide(&governor, "payment:transfer"), Decision::Escalate, "it was for two uses");
    governor.close().unwrap();
    let governor = in_folder(&machine, folder.path());
    assert_eq!(decide(&governor, "payment:transfer"), Decision::Escalate);
}

#[test]
fn a_clock_that_was_a_little_behind_is_compared_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine::at(NOON);
    assert_eq!(decide(&in_folder(&machine, folder.path()), "email:read"), Decision::Allow);
    machine.step(-10_000);
    let governor = in_folder(&machine, folder.path());
    machine.step(20 * DAY);
    assert_eq!(code(governor.enforce(&intent("email:read"))), "STORAGE_UNAVAILABLE");
}

#[test]
fn a_log_whose_time_stepped_back_is_exported_and_read_back() {
    let machine = Machine::at(NOON + DAY);
    let folder = tempfile::tempdir().unwrap();
    let governor = in_folder(&machine, folder.path());
    decide(&governor, "email:read");
    machine.step(-DAY);
    governor.log().accept_clock("ann", "").unwrap();
    decide(&governor, "email:read");
    let mut export = Vec::new();
    governor.log().export(&ExportRange::all().with_entries(), &mut export, &mut |_, _| ()).unwrap();
    let copy = tempfile::tempdir().unwrap();
    let copy = copy.path().join("copy");
    rulekeep::maintenance::import(&copy, &mut &export[..], &mut |_, _| ()).unwrap();
    let read = Governor::open_read_only(&copy).unwrap();
    assert!(read.verify().unwrap().valid);
    assert_eq!(read.query(&ProofQuery::entity("a")).unwrap().total, 2);
}

#[test]
fn an_export_of_a_period_ends_before_the_first_later_record() {
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine::at(NOON);
    let governor = in_folder(&machine, folder.path());
    decide(&governor, "email:read");
    machine.step(DAY);
    decide(&governor, "email:read");
    machine.step(-DAY);
    governor.log().accept_clock("ann", "").unwrap();
    decide(&governor, "email:read");
    let until = ExportRange::all().until(Timestamp::from_millis(NOON + HOUR));
    let export = |range: &ExportRange| governor.log().export(range, &mut Vec::new(), &mut |_, _| ());
    assert_eq!(export(&until).unwrap().records, 1);
    assert_eq!(code(export(&until.with_entries())), "INVALID_INPUT");
}

#[test]
fn a_pre_approval_that_was_seen_to_be_over_stays_over() {
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine::at(NOON);
    let governor = in_folder(&machine, folder.path());
    approve_beforehand(&governor, NOON + HOUR);
    assert_eq!(decide(&governor, "payment:transfer"), Decision::Allow);
    machine.step(HOUR);
    let state = |governor: &Governor| governor.escalations().pre_approvals()[0].state;
    assert_eq!(state(&governor), PreApprovalState::Expired);
    machine.step(-HOUR);
    // As a process finds it that comes after a crash.
    assert_eq!(state(&builder(&machine).open_read_only(folder.path()).unwrap()), PreApprovalState::Expired);
    assert_eq!(state(&governor), PreApprovalState::Expired);
    assert_eq!(decide(&governor, "payment:transfer"), Decision::Escalate);
    governor.log().accept_clock("ann", "").unwrap();
    assert_eq!(decide(&governor, "payment:transfer"), Decision::Escalate);
    governor.close().unwrap();
    let governor = in_folder(&machine, folder.path());
    assert_eq!(
        (state(&governor), decide(&governor, "payment:transfer")),
        (PreApprovalState::Expired, Decision::Escalate)
    );
}

#[test]
fn a_stop_takes_back_what_the_clock_of_the_moment_says_is_over() {
    let machine = Machine::at(NOON);
    let governor = in_memory(&machine);
    let id = approve_beforehand(&governor, NOON + HOUR);
    machine.step(2 * HOUR);
    let stop = governor.kill_switch().set(KillSwitchScope::All, "ann", "").unwrap().id;
    machine.step(-2 * HOUR);
    governor.log().accept_clock("ann", "").unwrap();
    governor.kill_switch().lift(&stop, "ann", "").unwrap();
    assert_ne!(governor.escalations().pre_approvals()[0].state, PreApprovalState::Active);
    assert_eq!(decide(&governor, "payment:transfer"), Decision::Escalate);
    assert_eq!(code(governor.escalations().revoke(&id, Review::by("ann"))), "CONFLICT");
}

#[test]
fn an_ended_approval_grants_nothing_when_the_clock_steps_back() {
    let machine = Machine::at(NOON);
    let governor = in_memory(&machine);
    let asked = intent("payment:transfer");
    assert_eq!(governor.enforce(&asked).unwrap().decision, Decision::Escalate);
    let id = governor.escalations().pending().unwrap()[0].id;
    governor.escalations().approve(id, Review::by("ann")).unwrap();
    machine.step(11 * 60_000);
    assert_eq!(code(governor.escalations().claim(id, &asked)), "CONFLICT");
    machine.step(-11 * 60_000);
    governor.log().accept_clock("ann", "").unwrap();
    assert_eq!(code(governor.escalations().claim(id, &asked)), "CONFLICT");
}

#[test]
fn a_success_decided_before_a_step_back_earns_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine::at(NOON);
    let governor = in_folder(&machine, folder.path());
    let decided = || governor.enforce(&intent("email:read")).unwrap().proof_id;
    let (first, second) = (decided(), decided());
    machine.step(-HOUR);
    governor.log().accept_clock("ann", "").unwrap();
    // The clock passes the time of these decisions again.
    machine.pass(2 * HOUR);
    let score = |governor: &Governor| governor.agents().get("a").unwrap().trust.score;
    let before = score(&governor);
    governor.report(&first, Outcome::Success).unwrap();
    assert_eq!(score(&governor), before);
    governor.close().unwrap();
    let governor = in_folder(&machine, folder.path());
    governor.report(&second, Outcome::Success).unwrap();
    assert_eq!(score(&governor), before, "a restart forgets it");
    let new = governor.enforce(&intent("email:read")).unwrap().proof_id;
    governor.report(&new, Outcome::Success).unwrap();
    assert!(score(&governor) > before);
    assert_eq!(governor.trust().verify().unwrap().differing, []);
}

#[test]
fn a_suspension_outlasts_a_clock_that_steps() {
    let machine = Machine::at(NOON);
    let governor = in_memory(&machine);
    machine.step(HOUR);
    governor.agents().suspend("a", "seen").unwrap();
    machine.step(-2 * HOUR);
    governor.log().accept_clock("ann", "").unwrap();
    assert_eq!(governor.agents().get("a").unwrap().state, AgentState::Suspended);
    assert_eq!(decide(&governor, "email:read"), Decision::Deny);
}
