//! The permit gate: without a permit of its organisation, a governor that requires one grants nothing.

use crate::common;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use common::{NOON, Still, code, in_memory, intent, policies, reading};
use rulekeep::escalation::{EscalationId, Review};
use rulekeep::extension::{Extension, Permit};
use rulekeep::grant::GrantError;
use rulekeep::intent::DenialClass;
use rulekeep::kill_switch::KillSwitchScope;
use rulekeep::system::{Clock, Timestamp};
use rulekeep::{Agent, Decision, Enforcement, Governor, GovernorBuilder, Intent, PolicySet, RiskLevel, Tier};

/// A machine whose wall clock and time since boot pass as the test says.
#[derive(Clone)]
struct Machine(Arc<[AtomicI64; 2]>);

impl Machine {
    fn new() -> Self {
        Self(Arc::new([AtomicI64::new(NOON), AtomicI64::new(1_000)]))
    }

    fn pass_wall(&self, millis: i64) {
        self.0[0].fetch_add(millis, Ordering::SeqCst);
    }

    fn pass_boot(&self, millis: i64) {
        self.0[1].fetch_add(millis, Ordering::SeqCst);
    }

    fn pass(&self, millis: i64) {
        self.pass_wall(millis);
        self.pass_boot(millis);
    }

    /// A permit of so many milliseconds from now, with an offline term after it.
    fn permit(&self, lasts: i64, offline: i64) -> Permit {
        let boot = |after: i64| self.since_boot().unwrap() + Duration::from_millis(after.unsigned_abs());
        let wall = |after: i64| Timestamp::from_millis(self.now().as_millis() + after);
        Permit {
            until: boot(lasts),
            offline_until: boot(lasts + offline),
            wall_until: wall(lasts),
            offline_wall_until: wall(lasts + offline),
        }
    }
}

impl Clock for Machine {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0[0].load(Ordering::SeqCst))
    }

    fn since_boot(&self) -> Option<Duration> {
        Some(Duration::from_millis(self.0[1].load(Ordering::SeqCst).unsigned_abs()))
    }
}

const POLICIES: &str = r#"
name = "permit"
[[rule]]
id = "all"
effect = "allow"
match.capabilities = ["document:read", "document:write"]
[[rule]]
id = "money"
effect = "escalate"
match.capabilities = ["payment:transfer"]
reviewer = "ann"
[[rule]]
id = "pay"
effect = "allow"
match.capabilities = ["payment:transfer"]
"#;

fn builder(machine: &Machine) -> GovernorBuilder {
    Governor::builder().policies(PolicySet::from_toml(POLICIES).unwrap()).clock(machine.clone())
}

/// A governor that requires a permit and has one of ten seconds, with an offline term of ten more.
fn permitted(machine: &Machine) -> Governor {
    let governor = builder(machine).require_permit().open_in_memory().unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    Extension::of(&governor).grant_permit(machine.permit(10_000, 10_000));
    governor
}

fn writing() -> Intent {
    intent("a", &["document:write"])
}

#[track_caller]
fn assert_without_permit(enforcement: &Enforcement) {
    assert_eq!(enforcement.decision, Decision::Deny, "{}", enforcement.reasoning);
    assert_eq!((enforcement.denial_class, enforcement.retryable), (Some(DenialClass::NoPermit), Some(true)));
    assert!(enforcement.reasoning.contains("no permit of its organisation"), "{}", enforcement.reasoning);
}

#[test]
fn nothing_changes_while_no_permit_is_required() {
    let governor = in_memory();
    Extension::of(&governor).revoke_permit();
    assert_eq!(governor.enforce(&reading("a")).unwrap().decision, Decision::Allow);
}

#[test]
fn a_governor_that_requires_a_permit_denies_until_it_has_one() {
    let machine = Machine::new();
    let governor = builder(&machine).auto_register().open_in_memory().unwrap();
    let extension = Extension::of(&governor);
    assert_eq!(governor.enforce(&writing()).unwrap().decision, Decision::Allow);
    extension.require_permit().unwrap();
    let denied = governor.enforce(&writing()).unwrap();
    assert_without_permit(&denied);
    assert_eq!(denied.reasoning, "Denied: this governor has no permit of its organisation yet.");
    assert_eq!(extension.permit(), None);
    extension.grant_permit(machine.permit(1_000, 0));
    assert_eq!(extension.permit(), Some(machine.permit(1_000, 0)));
    assert_eq!(governor.enforce(&writing()).unwrap().decision, Decision::Allow);
    extension.revoke_permit();
    let revoked = governor.enforce(&writing()).unwrap();
    assert_without_permit(&revoked);
    assert!(revoked.reasoning.ends_with("; it was revoked."), "{}", revoked.reasoning);
}

#[test]
fn the_time_since_boot_ends_a_permit_though_the_clock_stands() {
    let machine = Machine::new();
    let governor = permitted(&machine);
    machine.pass_boot(9_999);
    assert_eq!(governor.enforce(&writing()).unwrap().decision, Decision::Allow);
    machine.pass_boot(1);
    let denied = governor.enforce(&writing()).unwrap();
    assert_without_permit(&denied);
    let at = Timestamp::from_millis(NOON);
    assert!(denied.reasoning.ends_with(&format!("; it ended {at}.")), "{}", denied.reasoning);
}

#[test]
fn the_wall_clock_ends_a_permit_though_the_machine_was_paused() {
    let machine = Machine::new();
    let governor = permitted(&machine);
    machine.pass_wall(10_000);
    let denied = governor.enforce(&writing()).unwrap();
    assert_without_permit(&denied);
    let at = Timestamp::from_millis(NOON + 10_000);
    assert!(denied.reasoning.ends_with(&format!("; it ended {at}.")), "{}", denied.reasoning);
}

#[test]
fn an_earlier_permit_replaces_a_later_one() {
    let machine = Machine::new();
    let governor = permitted(&machine);
    Extension::of(&governor).grant_permit(machine.permit(1_000, 0));
    machine.pass(1_000);
    assert_without_permit(&governor.enforce(&writing()).unwrap());
}

#[test]
fn offline_only_low_risk_reads_are_decided() {
    let machine = Machine::new();
    let governor = permitted(&machine);
    machine.pass(10_000);
    assert_eq!(governor.enforce(&reading("a")).unwrap().decision, Decision::Allow);
    let risky = Intent::new("a", "read", RiskLevel::Medium, ["document:read"]).unwrap();
    let mixed = intent("a", &["document:read", "document:write"]);
    for refused in [risky, mixed, writing()] {
        assert_without_permit(&governor.enforce(&refused).unwrap());
    }
    // What the policies deny stays denied by them.
    let unknown = governor.enforce(&intent("a", &["information:read"])).unwrap();
    assert_eq!((unknown.decision, unknown.denial_class), (Decision::Deny, Some(DenialClass::Policy)));
    machine.pass(10_000);
    assert_without_permit(&governor.enforce(&reading("a")).unwrap());
}

#[test]
fn a_kill_switch_and_a_suspension_come_before_the_permit() {
    let machine = Machine::new();
    let governor = permitted(&machine);
    machine.pass(10_000);
    governor.agents().suspend("a", "").unwrap();
    assert_eq!(governor.enforce(&writing()).unwrap().denial_class, Some(DenialClass::Suspended));
    governor.kill_switch().set(KillSwitchScope::All, "ann", "").unwrap();
    assert_eq!(governor.enforce(&writing()).unwrap().denial_class, Some(DenialClass::KillSwitch));
}

#[test]
fn a_permit_lifts_no_kill_switch() {
    let machine = Machine::new();
    let governor = permitted(&machine);
    governor.kill_switch().set(KillSwitchScope::All, "ann", "").unwrap();
    Extension::of(&governor).grant_permit(machine.permit(10_000, 0));
    assert_eq!(governor.enforce(&reading("a")).unwrap().denial_class, Some(DenialClass::KillSwitch));
}

#[test]
fn without_a_permit_nothing_is_approved_and_no_approval_claimed() {
    let machine = Machine::new();
    let governor = permitted(&machine);
    let paying = intent("a", &["payment:transfer"]);
    let asked: Vec<EscalationId> =
        (0..2).map(|_| EscalationId::of(governor.enforce(&paying).unwrap().proof_id)).collect();
    governor.escalations().approve(asked[0], Review::by("ann")).unwrap();
    machine.pass(10_000);
    let refused = governor.escalations().approve(asked[1], Review::by("ann")).unwrap_err();
    assert!(refused.to_string().contains("no permit of its organisation"), "{refused}");
    assert_eq!(code(governor.escalations().claim(asked[0], &paying)), "CONFLICT");
    // With another permit both go on.
    Extension::of(&governor).grant_permit(machine.permit(10_000, 0));
    assert_eq!(governor.escalations().claim(asked[0], &paying).unwrap().decision, Decision::Allow);
    governor.escalations().approve(asked[1], Review::by("ann")).unwrap();
}

#[test]
fn a_grant_ends_with_the_permit_except_a_low_risk_read_offline() {
    let machine = Machine::new();
    let governor = permitted(&machine);
    let (read, written) = (governor.enforce(&reading("a")).unwrap(), governor.enforce(&writing()).unwrap());
    let writes = written.grant().unwrap();
    machine.pass(10_000);
    assert!(matches!(writes.check(), Err(GrantError::Barred { .. })));
    read.grant().unwrap().check().unwrap();
    machine.pass(10_000);
    assert!(matches!(read.grant(), Err(GrantError::Barred { .. } | GrantError::UsedUp { .. })));
}

#[test]
fn previews_show_a_missing_permit_and_stored_responses_lapse() {
    let machine = Machine::new();
    let governor = permitted(&machine);
    let extension = Extension::of(&governor);
    let standing = extension.standing();
    let granted = governor.enforce(&writing()).unwrap().proof_id;
    assert_eq!(extension.change_since(&standing, &[granted]), None);
    machine.pass(10_000);
    assert!(extension.change_since(&standing, &[granted]).is_some_and(|why| why.contains("permit")));
    let preview = governor.policies().preview(&writing()).unwrap();
    assert_eq!(preview.decision, Decision::Deny);
    assert!(preview.reasoning.contains("no permit"), "{}", preview.reasoning);
}

#[test]
fn tasks_and_pending_decisions_need_the_permit_too() {
    let machine = Machine::new();
    let governor = permitted(&machine);
    Extension::of(&governor).revoke_permit();
    assert_without_permit(&governor.enforce_pending(&writing()).unwrap().wait().unwrap());
    assert_without_permit(&governor.enforce_input("a", "Read the document notes").unwrap().enforcement);
    let refused = governor.tasks().open(rulekeep::task::TaskRequest::new("a", "Read the notes")).unwrap_err();
    assert_eq!(refused.code(), "FORBIDDEN");
}

#[test]
fn a_restart_with_a_required_permit_waits_for_the_permit() {
    let machine = Machine::new();
    let folder = tempfile::tempdir().unwrap();
    let open = || builder(&machine).auto_register().require_permit().open(folder.path()).unwrap();
    let governor = open();
    Extension::of(&governor).grant_permit(machine.permit(10_000, 0));
    assert_eq!(governor.enforce(&writing()).unwrap().decision, Decision::Allow);
    governor.close().unwrap();
    drop(governor);
    let governor = open();
    assert_without_permit(&governor.enforce(&writing()).unwrap());
}

#[test]
fn a_clock_without_the_time_since_boot_is_refused() {
    let unclear = || Governor::builder().policies(policies()).clock(Still::at(NOON));
    assert_eq!(code(unclear().require_permit().open_in_memory()), "CONFLICT");
    let governor = unclear().open_in_memory().unwrap();
    assert_eq!(code(Extension::of(&governor).require_permit()), "CONFLICT");
}
