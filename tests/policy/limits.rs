//! Limits over time: exact while threads decide together, given back by failures,
//! and there again after a restart.

use crate::common;

use std::sync::Arc;

use common::{Hand, NOON};
use rulekeep::preview::ReplayRange;
use rulekeep::{Agent, Decision, Governor, Intent, Outcome, PolicySet, RiskLevel, Tier};

const HOUR: i64 = 3_600_000;

fn limited(limit: &str) -> PolicySet {
    PolicySet::from_toml(&format!(
        r#"
name = "limited"

[[rule]]
id = "mail"
effect = "allow"
match.capabilities = ["email:send"]
limit = {limit}

[[rule]]
id = "reading"
effect = "allow"
match.capabilities = ["email:read"]
"#
    ))
    .unwrap()
}

fn governor(limit: &str, clock: &Hand) -> Governor {
    let governor = Governor::builder().policies(limited(limit)).clock(clock.clone()).open_in_memory().unwrap();
    for (agent, group) in [("a", "sales"), ("b", "sales"), ("c", "support")] {
        governor.agents().register(Agent::new(agent).at_tier(Tier::T4).in_group(group)).unwrap();
    }
    governor
}

fn mail(agent: &str) -> Intent {
    Intent::new(agent, "send_mail", RiskLevel::Medium, ["email:send"]).unwrap()
}

fn decide(governor: &Governor, agent: &str) -> Decision {
    governor.enforce(&mail(agent)).unwrap().decision
}

#[test]
fn a_count_is_kept_for_each_agent_and_slides() {
    let clock = Hand::at(NOON);
    let governor = governor("{ count = 2, per = \"1h\" }", &clock);
    assert_eq!([decide(&governor, "a"), decide(&governor, "a"), decide(&governor, "b")], [Decision::Allow; 3]);
    let refused = governor.enforce(&mail("a")).unwrap();
    assert_eq!(refused.decision, Decision::Deny);
    assert!(refused.reasoning.contains(" Wait until 2027-01-15T09:00:00.000Z, "), "{}", refused.reasoning);
    assert!(
        refused.reasoning.contains("The limit of rule \"mail\" (2 per 1h for each agent) has 0 left until"),
        "{}",
        refused.reasoning
    );
    clock.set(NOON + HOUR);
    assert_eq!(decide(&governor, "a"), Decision::Allow, "the first two are an hour old");
}

#[test]
fn only_what_was_allowed_counts_and_a_preview_counts_nothing() {
    let governor = governor("{ count = 1, per = \"1h\" }", &Hand::at(NOON));
    let with_more = Intent::new("a", "mail_and_wipe", RiskLevel::Medium, ["email:send", "file:delete"]).unwrap();
    for _ in 0..3 {
        assert_eq!(governor.policies().preview(&mail("a")).unwrap().decision, Decision::Allow);
        governor.policies().explain(&mail("a")).unwrap();
    }
    // A degraded decision grants the mail, and uses the limit.
    assert_eq!(governor.enforce(&with_more).unwrap().decision, Decision::Degrade);
    assert_eq!(decide(&governor, "a"), Decision::Deny);
    let preview = governor.policies().preview(&mail("a")).unwrap();
    assert_eq!((preview.decision, preview.limits[0].used), (Decision::Deny, 1_000_000));
    let explained = governor.policies().explain(&mail("a")).unwrap();
    assert!(explained.rules[0].why.contains("is used up"), "{}", explained.rules[0].why);
}

#[test]
fn a_failure_gives_back_and_a_success_does_not() {
    let governor = governor("{ count = 1, per = \"1h\" }", &Hand::at(NOON));
    let first = governor.enforce(&mail("a")).unwrap();
    assert_eq!(decide(&governor, "a"), Decision::Deny);
    governor.report(&first.proof_id, Outcome::Failure).unwrap();
    governor.report(&first.proof_id, Outcome::Failure).unwrap();
    let second = governor.enforce(&mail("a")).unwrap();
    assert_eq!(second.decision, Decision::Allow);
    governor.report(&second.proof_id, Outcome::Success).unwrap();
    assert_eq!(decide(&governor, "a"), Decision::Deny);
}

#[test]
fn a_sum_counts_amounts_and_refuses_what_names_none() {
    let governor = governor("{ sum = \"amount\", max = 100, per = \"1d\" }", &Hand::at(NOON));
    let ask = |amount: serde_json::Value| governor.enforce(&mail("a").with_context("amount", amount)).unwrap().decision;
    assert_eq!(ask(60.5.into()), Decision::Allow);
    assert_eq!(ask(39.6.into()), Decision::Deny);
    assert_eq!(ask(39.5.into()), Decision::Allow);
    assert_eq!(ask(0.000_001.into()), Decision::Deny);
    for wrong in [serde_json::json!("1"), serde_json::json!(-5), serde_json::Value::Null] {
        assert_eq!(ask(wrong), Decision::Deny);
    }
    assert_eq!(decide(&governor, "b"), Decision::Deny, "without an amount nothing can be counted");
}

#[test]
fn a_preview_and_a_clock_that_steps_leave_the_counters_alone() {
    let clock = Hand::at(NOON);
    let governor = governor("{ count = 1, per = \"1h\" }", &clock);
    assert_eq!(decide(&governor, "a"), Decision::Allow);
    clock.set(NOON + 2 * HOUR);
    assert_eq!(governor.policies().preview(&mail("a")).unwrap().decision, Decision::Allow);
    clock.set(NOON + 60_000);
    assert_eq!(decide(&governor, "a"), Decision::Deny, "looking ahead took nothing out");
}

#[test]
fn another_measure_is_another_counter() {
    let governor = governor("{ sum = \"amount\", max = 100, per = \"1d\" }", &Hand::at(NOON));
    for _ in 0..3 {
        governor.enforce(&mail("a").with_context("amount", 0.01)).unwrap();
    }
    governor.policies().load(limited("{ count = 2, per = \"1d\" }")).unwrap();
    assert_eq!(
        [decide(&governor, "a"), decide(&governor, "a"), decide(&governor, "a")],
        [Decision::Allow, Decision::Allow, Decision::Deny]
    );
}

#[test]
fn groups_share_a_limit_and_past_it_a_person_can_be_asked() {
    let limit = "{ count = 2, per = \"1h\", by = \"group\", over = \"escalate\", reviewer = \"lead\" }";
    let governor = governor(limit, &Hand::at(NOON));
    assert_eq!([decide(&governor, "a"), decide(&governor, "b")], [Decision::Allow; 2]);
    assert_eq!([decide(&governor, "a"), decide(&governor, "b")], [Decision::Escalate; 2]);
    assert_eq!(decide(&governor, "c"), Decision::Allow, "another group");
    governor.agents().register(Agent::new("loner").at_tier(Tier::T4)).unwrap();
    assert_eq!(decide(&governor, "loner"), Decision::Escalate, "whoever is in no group is in no counter");
}

#[test]
fn no_two_threads_see_the_same_room() {
    let governor = governor("{ count = 50, per = \"1h\", by = \"all\" }", &Hand::at(NOON));
    let allowed: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..64)
            .map(|thread| {
                let governor = governor.clone();
                let agent = ["a", "b", "c"][thread % 3];
                scope.spawn(move || (0..5).filter(|_| decide(&governor, agent) == Decision::Allow).count())
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(allowed, 50);
}

#[test]
fn counters_are_there_again_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Hand::at(NOON);
    let open = || Governor::builder().clock(clock.clone()).open(folder.path()).unwrap();
    let governor = open();
    governor.policies().load(limited("{ count = 3, per = \"1h\" }")).unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    let first = governor.enforce(&mail("a")).unwrap();
    let second = governor.enforce(&mail("a")).unwrap();
    governor.report(&first.proof_id, Outcome::Failure).unwrap();
    governor.close().unwrap();

    clock.set(NOON + 1000);
    let governor = open();
    assert_eq!(governor.policies().preview(&mail("a")).unwrap().limits[0].used, 1_000_000, "one of two was given back");
    assert_eq!(
        [decide(&governor, "a"), decide(&governor, "a"), decide(&governor, "a")],
        [Decision::Allow, Decision::Allow, Decision::Deny]
    );
    // A failure from before the restart gives back too.
    governor.report(&second.proof_id, Outcome::Failure).unwrap();
    assert_eq!(decide(&governor, "a"), Decision::Allow);
    assert!(governor.verify().unwrap().valid);
    governor.close().unwrap();

    clock.set(NOON + 2 * HOUR);
    assert_eq!(decide(&open(), "a"), Decision::Allow);
}

#[test]
fn a_rule_without_a_limit_takes_no_counter() {
    let governor = Arc::new(governor("{ count = 1, per = \"1h\" }", &Hand::at(NOON)));
    let read = Intent::new("a", "read_mail", RiskLevel::Low, ["email:read"]).unwrap();
    for _ in 0..3 {
        let verdict = governor.enforce(&read).unwrap();
        assert_eq!(verdict.decision, Decision::Allow);
        assert!(governor.log().evidence(&verdict.proof_id).unwrap().detail.get("limits").is_none());
    }
}

#[test]
fn a_replay_tells_flips_that_hang_on_counters() {
    let governor = governor("{ count = 1, per = \"1h\" }", &Hand::at(NOON));
    assert_eq!([decide(&governor, "a"), decide(&governor, "a")], [Decision::Allow, Decision::Deny]);
    let replay = governor.policies().replay(&governor.policies().current(), &ReplayRange::all(), |_| {}).unwrap();
    // With nothing used the second is allowed: the candidate is the same set, the counter is not.
    assert_eq!((replay.records, replay.changed, replay.counter_dependent), (2, 0, 2));
    // The one that was allowed hangs too, but comes out the same: it is counted and not listed.
    let hanging: Vec<_> = replay.counter_dependent_changes.iter().map(|change| (change.was, change.now)).collect();
    assert_eq!(hanging, [(Decision::Deny, Decision::Allow)]);
    assert!(replay.changes.is_empty() && replay.by_rule.is_empty());
    // A set that denies for good does so whatever was used; what a limit had refused was refused by it.
    let closed = PolicySet::from_toml("name = \"closed\"").unwrap();
    let replay = governor.policies().replay(&closed, &ReplayRange::all(), |_| {}).unwrap();
    assert_eq!((replay.changed, replay.counter_dependent), (1, 0));
}
