//! Grants: made of what the governor decided and of nothing else, ending by themselves, and enforcing their constraints.

use std::time::Duration;

use rulekeep::escalation::{EscalationId, Review};
use rulekeep::grant::{Grant, GrantError};
use rulekeep::kill_switch::KillSwitchScope;
use rulekeep::system::{Clock, Timestamp};
use rulekeep::{Agent, Decision, Enforcement, Governor, PolicySet, Tier};
use serde_json::json;

use crate::common::{Hand, NOON, in_memory, intent, reading};

const MINUTE: i64 = 60_000;

/// A governor whose one rule allows everything under these constraints.
fn allowing(constraints: &str) -> (Governor, Hand) {
    let (clock, text) = (Hand::at(NOON), format!("constraints = {{ {constraints} }}"));
    let rule = format!("name = \"p\"\n[[rule]]\nid = \"all\"\neffect = \"allow\"\n{text}");
    let policies = PolicySet::from_toml(&rule).unwrap();
    let governor = Governor::builder().policies(policies).clock(clock.clone()).open_in_memory().unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    (governor, clock)
}

fn allowed(governor: &Governor) -> Enforcement {
    governor.enforce(&reading("a")).unwrap()
}

fn refusal<T>(answer: Result<T, GrantError>) -> GrantError {
    answer.err().expect("expected a refusal")
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

#[test]
fn a_grant_names_its_decision_and_holds_what_was_granted() {
    let governor = in_memory();
    let verdict = governor.enforce(&intent("a", &["database:read", "database:delete"])).unwrap();
    assert_eq!(verdict.decision, Decision::Degrade);
    let grant = verdict.grant().unwrap();
    assert_eq!((grant.proof_id(), grant.agent_id().as_str()), (verdict.proof_id, "a"));
    assert_eq!(grant.granted_capabilities(), verdict.granted_capabilities);
    grant.check_capability("database:read").unwrap();
    let refused = refusal(grant.check_capability("database:delete"));
    assert_eq!(refused, GrantError::Capability { capability: "database:delete".to_owned() });
}

#[test]
fn nothing_but_allow_and_degrade_gives_a_grant() {
    let governor = in_memory();
    for (capability, decision) in [("file:delete", Decision::Deny), ("email:send", Decision::Escalate)] {
        let mut verdict = governor.enforce(&intent("a", &[capability])).unwrap();
        assert_eq!(refusal(verdict.grant()), GrantError::NotGranted { decision });
        verdict.decision = Decision::Allow;
        assert_eq!(refusal(verdict.grant()), GrantError::NotIssued, "whatever the fields say");
    }
}

#[test]
fn a_changed_enforcement_gives_no_more_than_was_decided() {
    let (governor, _) = allowing("maxRecords = 5");
    let mut verdict = allowed(&governor);
    let read: Enforcement = serde_json::from_value(json!(verdict)).unwrap();
    assert_eq!((&read, refusal(read.grant())), (&verdict, GrantError::NotIssued));
    assert!(!json!(verdict).to_string().contains("source"));

    verdict.constraints.insert("maxRecords", json!(1000));
    verdict.constraints.insert("maxUses", json!(1000));
    verdict.granted_capabilities.push("payment:transfer".parse().unwrap());
    let grant = verdict.grant().unwrap();
    assert_eq!(refusal(grant.take_records(6)), GrantError::Records { asked: 6, most: 5, left: 5 });
    assert!(grant.check_capability("payment:transfer").is_err());
    assert_eq!(refusal(verdict.grant()), GrantError::UsedUp { most: 1 });
}

#[test]
fn uses_are_counted_over_all_clones_and_never_come_back() {
    let (governor, _) = allowing("maxUses = 3");
    let verdict = allowed(&governor);
    let clones: Vec<Enforcement> = (0..8).map(|_| verdict.clone()).collect();
    let grants: Vec<Result<Grant, GrantError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = clones.iter().map(|clone| scope.spawn(|| clone.grant())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(grants.iter().filter(|grant| grant.is_ok()).count(), 3);
    drop(grants);
    assert_eq!(refusal(verdict.grant()), GrantError::UsedUp { most: 3 });
    assert!(allowed(&governor).grant().is_ok(), "another decision has uses of its own");
}

#[test]
fn records_and_amounts_are_shared_by_all_uses_of_a_grant() {
    let (governor, _) = allowing("maxUses = 2, maxRecords = 10, maxAmount = 0.3");
    let verdict = allowed(&governor);
    let (first, second) = (verdict.grant().unwrap(), verdict.grant().unwrap());
    first.take_records(6).unwrap();
    assert_eq!(refusal(second.take_records(5)), GrantError::Records { asked: 5, most: 10, left: 4 });
    second.take_records(4).unwrap();
    assert_eq!(refusal(first.take_records(u64::MAX)), GrantError::Records { asked: u64::MAX, most: 10, left: 0 });

    first.take_amount(0.1).unwrap();
    second.take_amount(0.2).expect("a tenth and two tenths are three tenths");
    assert!(matches!(refusal(first.take_amount(0.01)), GrantError::Amount { .. }));
    for amount in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(refusal(first.take_amount(amount)), GrantError::InvalidAmount { .. }), "{amount}");
    }
}

#[test]
fn targets_are_those_of_the_list_and_an_empty_list_has_none() {
    let (governor, _) = allowing("allowedTargets = [\"/srv/app/*\", \"ann@ours.example\"]");
    let grant = allowed(&governor).grant().unwrap();
    for target in ["/srv/app/a.txt", "ann@ours.example"] {
        grant.check_target(target).unwrap();
    }
    for target in ["/srv/app/../secret", "bob@ours.example", ""] {
        assert_eq!(refusal(grant.check_target(target)), GrantError::Target { target: target.to_owned() });
    }
    let (governor, _) = allowing("allowedTargets = []");
    assert!(allowed(&governor).grant().unwrap().check_target("a").is_err());
    let (governor, _) = allowing("maxRecords = 1");
    allowed(&governor).grant().unwrap().check_target("anything").unwrap();
}

#[test]
fn a_grant_without_time_limits_ends_five_minutes_after_it() {
    let (governor, clock) = allowing("maxUses = 3");
    let verdict = allowed(&governor);
    clock.set(NOON + 5 * MINUTE - 1);
    let grant = verdict.grant().unwrap();
    assert_eq!(grant.ends_at(), at(NOON + 5 * MINUTE));
    grant.check().unwrap();
    clock.set(NOON + 5 * MINUTE);
    let expired = GrantError::Expired { at: at(NOON + 5 * MINUTE) };
    assert_eq!((refusal(grant.check()), refusal(verdict.grant())), (expired.clone(), expired));
}

#[test]
fn expires_at_and_timeout_end_a_grant_whichever_comes_first() {
    let until = at(NOON + 10 * MINUTE);
    let (governor, clock) = allowing(&format!("maxUses = 9, timeoutMs = 480000, expiresAt = \"{until}\""));
    let verdict = allowed(&governor);
    let early = verdict.grant().unwrap();
    assert_eq!(early.ends_at(), at(NOON + 8 * MINUTE));
    clock.set(NOON + 6 * MINUTE);
    let late = verdict.grant().expect("expiresAt stands in place of the five minutes");
    assert_eq!(late.ends_at(), until);
    clock.set(NOON + 8 * MINUTE);
    assert!(matches!(refusal(early.take_records(1)), GrantError::Overdue { .. }));
    late.check().unwrap();
    clock.set(NOON + 10 * MINUTE);
    assert_eq!(refusal(late.check_target("x")), GrantError::Expired { at: until });
    assert_eq!(refusal(verdict.grant()), GrantError::Expired { at: until });
}

/// Shows the earlier a time, the more has passed.
struct Backward(Hand);

impl Clock for Backward {
    fn now(&self) -> Timestamp {
        at(2 * NOON - self.0.now().as_millis())
    }

    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }
}

#[test]
fn a_clock_that_steps_back_gives_no_more_time() {
    let clock = Hand::at(NOON);
    let policies = "name = \"p\"\n[[rule]]\nid = \"all\"\neffect = \"allow\"\nconstraints = { timeoutMs = 1000 }";
    let builder = Governor::builder().policies(PolicySet::from_toml(policies).unwrap()).auto_register();
    let governor = builder.clock(Backward(clock.clone())).open_in_memory().unwrap();
    let grant = allowed(&governor).grant().unwrap();
    clock.set(NOON + 999);
    grant.check().unwrap();
    clock.set(NOON + 1000);
    assert!(matches!(refusal(grant.check()), GrantError::Overdue { .. }));
}

#[test]
fn a_timeout_of_nothing_and_no_uses_grant_nothing() {
    let (governor, _) = allowing("timeoutMs = 0");
    assert!(matches!(refusal(allowed(&governor).grant()), GrantError::Overdue { .. }));
    let (governor, _) = allowing("maxUses = 0");
    assert_eq!(refusal(allowed(&governor).grant()), GrantError::UsedUp { most: 0 });
}

#[test]
fn nobody_who_is_stopped_suspended_or_retired_uses_a_grant() {
    let (governor, _) = allowing("maxUses = 9");
    let verdict = allowed(&governor);
    let grant = verdict.grant().unwrap();
    let stop = governor.kill_switch().set(KillSwitchScope::All, "ann", "fire").unwrap().id;
    for refused in [refusal(grant.take_records(1)), refusal(verdict.grant())] {
        assert!(matches!(&refused, GrantError::Barred { reason } if reason.contains("fire")), "{refused}");
    }
    governor.kill_switch().lift(&stop, "ann", "").unwrap();
    grant.take_records(1).unwrap();
    governor.agents().suspend("a", "on leave").unwrap();
    assert!(matches!(refusal(grant.check()), GrantError::Barred { .. }));
}

#[test]
fn a_grant_does_not_keep_its_governor_open_and_ends_with_it() {
    let (governor, _) = allowing("maxUses = 9");
    let verdict = allowed(&governor);
    let grant = verdict.grant().unwrap();
    drop(governor);
    assert_eq!(
        (refusal(grant.check()), refusal(verdict.grant())),
        (GrantError::GovernorGone, GrantError::GovernorGone)
    );
}

#[test]
fn a_claimed_approval_gives_a_grant_until_it_expires() {
    let governor = in_memory();
    let mail = intent("a", &["email:send"]);
    let asked = governor.enforce(&mail).unwrap();
    let id = EscalationId::of(asked.proof_id);
    governor.escalations().approve(id, Review::by("mail-lead")).unwrap();
    let claimed = governor.escalations().claim(id, &mail).unwrap();
    let grant = claimed.grant().unwrap();
    assert_eq!(Some(grant.ends_at()), claimed.constraints.expires_at());
    assert_eq!(grant.proof_id(), claimed.proof_id);
    grant.check_capability("email:send").unwrap();
    assert!(asked.grant().is_err(), "what asked is not what answered");
}

#[test]
fn a_pending_verdict_gives_its_grant_once() {
    let governor = in_memory();
    let pending = governor.enforce_pending(&reading("a")).unwrap();
    let looked = loop {
        if let Some(settled) = pending.try_result() {
            break settled.unwrap();
        }
    };
    let waited = pending.wait().unwrap();
    assert!(waited.grant().is_ok());
    assert_eq!(refusal(looked.grant()), GrantError::UsedUp { most: 1 });
}

#[test]
fn refusals_are_one_line_that_says_what_was_expected() {
    let (governor, _) = allowing("maxRecords = 5, timeoutMs = 1000");
    let grant = allowed(&governor).grant().unwrap();
    let told = refusal(grant.take_records(6)).to_string();
    assert_eq!(told, "6 records are too many; expected at most 5, which are left of maxRecords 5");
    let shown = format!("{grant:?}");
    assert!(shown.contains("maxRecords") && !shown.contains('\n'), "{shown}");
}
