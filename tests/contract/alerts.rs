//! Alerts by the rules of the policies: each once a cooldown, with its records, and not one below its count; over
//! restarts, for many agents, and for a chain that breaks.

use crate::common;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{Hand, NOON, intent, reading};
use proptest::prelude::*;
use rulekeep::event::{Alert, AlertKind, EventData, EventFilter, EventType, Subscription};
use rulekeep::kill_switch::KillSwitchScope;
use rulekeep::proof::ProofId;
use rulekeep::{Agent, Decision, Event, Governor, GovernorBuilder, Intent, Outcome, PolicySet, RiskLevel, Tier};
use serde_json::json;

const RULES: &str = r#"
[[alert]]
id = "many-denials"
on = "denials"
count = 3
per = "10m"
severity = "HIGH"
cooldown = "30m"
match = { agents = ["a", "b*"] }

[[alert]]
id = "critical"
on = "critical"
severity = "CRITICAL"

[[alert]]
id = "less-trusted"
on = "tier"
below = "T4"
"#;

fn policies(alerts: &str) -> PolicySet {
    PolicySet::from_toml(&format!("{}\n{alerts}", common::POLICIES)).unwrap()
}

fn builder(clock: &Hand, alerts: &str) -> GovernorBuilder {
    Governor::builder().policies(policies(alerts)).clock(clock.clone())
}

fn in_memory(clock: &Hand, alerts: &str) -> Governor {
    let governor = builder(clock, alerts).open_in_memory().unwrap();
    for agent in ["a", "b1", "c"] {
        governor.agents().register(Agent::new(agent).at_tier(Tier::T4)).unwrap();
    }
    governor
}

fn in_folder(clock: &Hand, alerts: &str, folder: &Path) -> Governor {
    let governor = builder(clock, alerts).open(folder).unwrap();
    let _ = governor.agents().register(Agent::new("a").at_tier(Tier::T4));
    governor
}

fn alerts_of(governor: &Governor) -> Subscription {
    governor.subscribe(&EventFilter::all().of_type(EventType::Alert)).unwrap()
}

fn deny(governor: &Governor, agent: &str) -> ProofId {
    let verdict = governor.enforce(&intent(agent, &["file:delete"])).unwrap();
    assert_eq!(verdict.decision, Decision::Deny);
    verdict.proof_id
}

fn alert(event: Event) -> Alert {
    match event.data {
        EventData::Alert(alert) => *alert,
        other => panic!("{other:?}"),
    }
}

fn next(alerts: &mut Subscription) -> Alert {
    alert(alerts.wait().unwrap().expect("the governor is open"))
}

/// All alerts up to one that is raised at the end of it all: whoever follows the log has come so far then.
fn all(governor: &Governor, alerts: &mut Subscription) -> Vec<Alert> {
    static MARKS: AtomicUsize = AtomicUsize::new(0);
    let name = format!("mark-{}", MARKS.fetch_add(1, Ordering::Relaxed));
    governor.agents().register(Agent::new(&name).at_tier(Tier::T4)).unwrap();
    let mark = Intent::new(&name, "example_action", RiskLevel::Critical, ["document:read"]).unwrap();
    governor.enforce(&mark).unwrap();
    let told = std::iter::from_fn(|| Some(next(alerts)));
    told.take_while(|alert| alert.agent_id.as_ref().is_none_or(|agent| agent.as_str() != name)).collect()
}

#[test]
fn denials_alert_at_the_count_with_their_records_not_before() {
    let clock = Hand::at(NOON);
    let governor = in_memory(&clock, RULES);
    let mut alerts = alerts_of(&governor);
    let first = deny(&governor, "a");
    deny(&governor, "b1");
    deny(&governor, "b1");
    for _ in 0..5 {
        deny(&governor, "c");
    }
    governor.enforce(&reading("a")).unwrap();
    let second = deny(&governor, "a");
    assert_eq!(all(&governor, &mut alerts), []);

    let third = deny(&governor, "a");
    let told = next(&mut alerts);
    assert_eq!(
        (told.alert, told.rule.as_deref(), told.severity, told.occurrences),
        (AlertKind::Denials, Some("many-denials"), RiskLevel::High, 3)
    );
    assert_eq!((told.agent_id.unwrap().as_str(), told.proof_id), ("a", Some(third)));
    assert_eq!(told.proof_ids, [first, second, third]);
}

#[test]
fn a_rule_is_told_once_a_cooldown_and_counts_between() {
    let clock = Hand::at(NOON);
    let governor = in_memory(&clock, RULES);
    let mut alerts = alerts_of(&governor);
    for _ in 0..40 {
        deny(&governor, "a");
    }
    clock.set(NOON + 29 * 60_000);
    let (one, two) = (deny(&governor, "a"), deny(&governor, "a"));
    clock.set(NOON + 30 * 60_000);
    let three = deny(&governor, "a");
    let told: Vec<_> = all(&governor, &mut alerts).into_iter().map(|told| (told.occurrences, told.proof_ids)).collect();
    assert_eq!(told.len(), 2);
    assert_eq!(
        told[1],
        (40, vec![one, two, three]),
        "what is older than the time of the rule is counted and not named"
    );
}

#[test]
fn what_is_denied_by_a_stop_or_a_suspension_is_no_burst() {
    let clock = Hand::at(NOON);
    let governor = in_memory(&clock, RULES);
    let mut alerts = alerts_of(&governor);
    for amount in 0..3 {
        let asks = governor.enforce(&intent("a", &["email:send"]).with_context("amount", amount)).unwrap();
        assert_eq!(asks.decision, Decision::Escalate);
    }
    let stop = governor.kill_switch().set(KillSwitchScope::agent("a").unwrap(), "ann", "").unwrap();
    assert_eq!(stop.died, 3);
    governor.agents().suspend("b1", "").unwrap();
    for _ in 0..5 {
        deny(&governor, "a");
        deny(&governor, "b1");
    }
    governor.kill_switch().lift(&stop.id, "ann", "").unwrap();
    governor.agents().resume("b1", "").unwrap();
    deny(&governor, "a");
    deny(&governor, "a");
    assert_eq!(all(&governor, &mut alerts), []);
    let third = deny(&governor, "a");
    assert_eq!((next(&mut alerts).proof_id, alerts.poll().unwrap()), (Some(third), None));
}

#[test]
fn denials_too_far_apart_are_no_burst() {
    let clock = Hand::at(NOON);
    let governor = in_memory(&clock, RULES);
    let mut alerts = alerts_of(&governor);
    for number in 0..10 {
        clock.set(NOON + number * 301_000);
        deny(&governor, "a");
    }
    assert_eq!(all(&governor, &mut alerts), []);
}

#[test]
fn an_attempt_at_critical_risk_is_told_however_it_was_decided() {
    let clock = Hand::at(NOON);
    let governor = in_memory(&clock, RULES);
    let mut alerts = alerts_of(&governor);
    let mut attempts = Vec::new();
    for (agent, capability) in [("a", "document:read"), ("b1", "email:send"), ("c", "file:delete")] {
        let critical = Intent::new(agent, "example_action", RiskLevel::Critical, [capability]).unwrap();
        attempts.push(governor.enforce(&critical).unwrap().proof_id);
    }
    for attempt in attempts {
        let told = next(&mut alerts);
        assert_eq!((told.alert, told.severity), (AlertKind::Critical, RiskLevel::Critical));
        assert_eq!(told.proof_ids, [attempt]);
    }
}

#[test]
fn a_drop_below_a_tier_alerts_with_its_record_and_none_above() {
    let clock = Hand::at(NOON);
    let governor = in_memory(&clock, RULES);
    governor.agents().register(Agent::new("high").at_tier(Tier::T5)).unwrap();
    let mut alerts = alerts_of(&governor);
    let fall = |agent, risk| {
        let intent = Intent::new(agent, "example_action", risk, ["document:read"]).unwrap();
        let proof_id = governor.enforce(&intent).unwrap().proof_id;
        governor.report(&proof_id, Outcome::Failure).unwrap();
        proof_id
    };
    let tier = |agent| governor.agents().get(agent).unwrap().trust.tier;
    while tier("high") == Tier::T5 {
        fall("high", RiskLevel::Medium);
    }
    fall("a", RiskLevel::Low);
    assert_eq!((tier("high"), tier("a")), (Tier::T4, Tier::T4), "the test's own falls");
    assert_eq!(all(&governor, &mut alerts), []);
    let mut fell = fall("a", RiskLevel::Low);
    while tier("a") == Tier::T4 {
        fell = fall("a", RiskLevel::Low);
    }
    let told = next(&mut alerts);
    assert_eq!((told.alert, told.rule.as_deref()), (AlertKind::Tier, Some("less-trusted")));
    assert_eq!((told.agent_id.unwrap().as_str(), told.proof_ids), ("a", vec![fell]));
}

#[test]
fn rules_on_failed_conditions_replace_what_is_built_in() {
    const FAILING: &str = r#"
name = "failing"
[[rule]]
id = "small-sums"
effect = "allow"
match.capabilities = ["document:*"]
when = "context.amount < 10"
[[alert]]
id = "broken-rules"
on = "policy-error"
count = 3
per = "1h"
severity = "CRITICAL"
"#;
    let clock = Hand::at(NOON);
    let set = PolicySet::from_toml(FAILING).unwrap();
    let governor = Governor::builder().policies(set).clock(clock).open_in_memory().unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    let mut alerts = alerts_of(&governor);
    for _ in 0..2 {
        governor.enforce(&reading("a")).unwrap_err();
    }
    governor.log().flush().unwrap();
    assert_eq!(alerts.poll().unwrap(), None);
    governor.enforce(&reading("a")).unwrap_err();
    let told = next(&mut alerts);
    assert_eq!(
        (told.alert, told.rule.as_deref(), told.severity, told.occurrences),
        (AlertKind::PolicyError, Some("broken-rules"), RiskLevel::Critical, 3)
    );
}

#[test]
fn a_restart_amid_a_burst_neither_loses_nor_doubles_an_alert() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Hand::at(NOON);
    let governor = in_folder(&clock, RULES, folder.path());
    deny(&governor, "a");
    deny(&governor, "a");
    governor.close().unwrap();
    let governor = in_folder(&clock, RULES, folder.path());
    let mut alerts = alerts_of(&governor);
    deny(&governor, "a");
    let told = next(&mut alerts);
    assert_eq!((told.occurrences, told.proof_ids.len()), (3, 3), "those before the restart count");
    governor.close().unwrap();

    let governor = in_folder(&clock, RULES, folder.path());
    let mut alerts = alerts_of(&governor);
    for _ in 0..5 {
        deny(&governor, "a");
    }
    assert_eq!(all(&governor, &mut alerts), [], "the cooldown goes on");
    clock.set(NOON + 30 * 60_000);
    for _ in 0..3 {
        deny(&governor, "a");
    }
    assert_eq!(next(&mut alerts).occurrences, 8, "so does the count");
}

#[test]
fn what_nobody_looked_at_before_the_end_is_told_in_the_next_run() {
    for round in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let clock = Hand::at(NOON);
        let governor = in_folder(&clock, RULES, folder.path());
        let mut alerts = alerts_of(&governor);
        let begin = EventFilter::all().of_type(EventType::Alert);
        let first = {
            let mut all = governor.subscribe(&EventFilter::all()).unwrap();
            governor.enforce(&reading("a")).unwrap();
            all.wait().unwrap().unwrap().id
        };
        for _ in 0..3 {
            deny(&governor, "a");
        }
        // Sooner or later than whoever follows the log has come so far.
        if round % 2 == 0 {
            next(&mut alerts);
        }
        governor.close().unwrap();
        let governor = in_folder(&clock, RULES, folder.path());
        let mut alerts = governor.subscribe(&begin.after(first)).unwrap();
        let told = all(&governor, &mut alerts);
        assert_eq!(told.iter().map(|told| told.occurrences).collect::<Vec<_>>(), [3], "round {round}");
    }
}

#[test]
fn rules_that_come_later_look_at_what_comes_later() {
    let clock = Hand::at(NOON);
    let governor = in_memory(&clock, "");
    let mut alerts = alerts_of(&governor);
    for _ in 0..5 {
        deny(&governor, "a");
    }
    governor.policies().load(policies(RULES)).unwrap();
    for _ in 0..2 {
        deny(&governor, "a");
    }
    assert_eq!(all(&governor, &mut alerts), []);
    governor.policies().load(policies("")).unwrap();
    for _ in 0..5 {
        deny(&governor, "a");
    }
    governor.policies().load(policies(RULES)).unwrap();
    let told = all(&governor, &mut alerts);
    assert!(told.iter().all(|told| told.occurrences <= 7), "{told:?}");
}

#[test]
fn thousands_of_agents_are_told_apart() {
    const AGENTS: usize = 2_000;
    let clock = Hand::at(NOON);
    let governor =
        builder(&clock, RULES).durability(rulekeep::Durability::Buffered).auto_register().open_in_memory().unwrap();
    let mut alerts = alerts_of(&governor);
    for time in 0..3 {
        for agent in 0..AGENTS {
            // One of them is denied twice.
            if time < 2 || agent != 7 {
                deny(&governor, &format!("b{agent}"));
            }
        }
    }
    let told = all(&governor, &mut alerts);
    assert_eq!(told.len(), AGENTS - 1);
    assert!(told.iter().all(|told| told.occurrences == 3 && told.agent_id.as_ref().unwrap().as_str() != "b7"));
}

#[test]
fn an_operators_change_of_trust_that_is_a_fall_is_told_as_one() {
    let clock = Hand::at(NOON);
    let governor = in_memory(&clock, RULES);
    let mut alerts = alerts_of(&governor);
    let mut changes = governor
        .subscribe(&EventFilter::all().of_type(EventType::ScoreChanged).of_type(EventType::TierChanged))
        .unwrap();
    let change = rulekeep::agent::AgentChange::new().ceiling(rulekeep::trust::Score::try_from(300).unwrap());
    governor.agents().update("a", change, "seen elsewhere").unwrap();
    let told = [changes.wait().unwrap().unwrap(), changes.wait().unwrap().unwrap()];
    assert_eq!(told[0].event_type, EventType::ScoreChanged);
    let EventData::Trust(changed) = &told[1].data else { panic!("{told:?}") };
    assert_eq!((changed.change.from_tier, changed.change.to_tier), (Tier::T4, Tier::T1));
    assert!(changed.cause.contains("seen elsewhere"), "{}", changed.cause);
    let told = next(&mut alerts);
    assert_eq!((told.alert, told.proof_ids), (AlertKind::Tier, vec![]));
}

mod a_broken_chain {
    use super::*;

    /// A closed store, one byte of whose fourth entry from the end was flipped.
    fn broken(alerts: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let governor = in_folder(&Hand::at(NOON), alerts, folder.path());
        for _ in 0..10 {
            governor.enforce(&reading("a")).unwrap();
        }
        governor.close().unwrap();
        let journal = common::journal(folder.path());
        let mut bytes = std::fs::read(&journal).unwrap();
        let frames = common::frames(&bytes);
        bytes[frames[frames.len() - 4].start + 100] ^= 1;
        std::fs::write(&journal, bytes).unwrap();
        folder
    }

    #[test]
    fn an_alert_is_told_once_to_each_subscription_also_next_run() {
        let folder = broken("");
        let mut seen = Vec::new();
        for _ in 0..2 {
            let governor = builder(&Hand::at(NOON), "").open(folder.path()).unwrap();
            for _ in 0..2 {
                let mut subscription = governor.subscribe(&EventFilter::all()).unwrap();
                seen.push(subscription.wait().unwrap().unwrap());
                assert_eq!(common::code(subscription.wait()), "CHAIN_BROKEN");
                assert_eq!(common::code(subscription.poll()), "CHAIN_BROKEN");
            }
            governor.close().unwrap();
        }
        assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{seen:?}");
        let shown = json!(seen[0])["data"].clone();
        assert_eq!((&shown["alert"], &shown["severity"]), (&json!("chain"), &json!("CRITICAL")));
        assert!(shown.get("agentId").is_none() && seen[0].agent_id().is_none());

        let governor = builder(&Hand::at(NOON), "").open(folder.path()).unwrap();
        let mut behind = governor.subscribe(&EventFilter::all().after(seen[0].id)).unwrap();
        assert_eq!(common::code(behind.wait()), "CHAIN_BROKEN");
        let mut of_agent = governor.subscribe(&EventFilter::all().agent("a")).unwrap();
        assert_eq!(common::code(of_agent.wait()), "CHAIN_BROKEN", "it is about no agent");
    }

    #[test]
    fn is_told_as_the_rule_says() {
        let rule = "[[alert]]\nid = \"chain\"\non = \"chain\"\nseverity = \"HIGH\"";
        let folder = broken(rule);
        let governor = builder(&Hand::at(NOON), rule).open(folder.path()).unwrap();
        let told = alert(governor.subscribe(&EventFilter::all()).unwrap().wait().unwrap().unwrap());
        assert_eq!((told.rule.as_deref(), told.severity), (Some("chain"), RiskLevel::High));
    }

    #[test]
    fn that_is_found_later_is_told_to_those_who_wait() {
        let folder = tempfile::tempdir().unwrap();
        let governor = in_folder(&Hand::at(NOON), "", folder.path());
        let mut subscription = governor.subscribe(&EventFilter::all()).unwrap();
        for _ in 0..10 {
            governor.enforce(&reading("a")).unwrap();
        }
        while subscription.poll().unwrap().is_some() {}
        let waiting = std::thread::spawn(move || {
            [subscription.wait().map(|event| event.unwrap()), subscription.wait().map(|event| event.unwrap())]
        });
        let journal = common::journal(folder.path());
        let mut bytes = std::fs::read(&journal).unwrap();
        let frames = common::frames(&bytes);
        bytes[frames[frames.len() - 4].start + 100] ^= 1;
        std::fs::write(&journal, bytes).unwrap();
        assert!(!governor.verify().unwrap().valid);
        let [told, then] = waiting.join().unwrap();
        assert_eq!(alert(told.unwrap()).alert, AlertKind::Chain);
        assert_eq!(common::code(then), "CHAIN_BROKEN");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Against a slow, obvious twin: the alerts of any row of denials with restarts anywhere are those without.
    #[test]
    fn restarts_change_nothing_of_what_is_told(steps in prop::collection::vec((0_u8..2, 0_i64..400, prop::bool::weighted(0.15)), 1..40)) {
        let folder = tempfile::tempdir().unwrap();
        let clock = Hand::at(NOON);
        let mut governor = in_folder(&clock, RULES, folder.path());
        governor.agents().register(Agent::new("b1").at_tier(Tier::T4)).unwrap();
        let mut mark = governor.subscribe(&EventFilter::all()).unwrap();
        governor.enforce(&reading("a")).unwrap();
        let first = mark.wait().unwrap().unwrap().id;
        let mut now = NOON;
        let mut twin = Vec::new();
        let mut happened: [Vec<i64>; 2] = Default::default();
        let mut unsaid = [0_u64; 2];
        let mut told: [Option<i64>; 2] = [None; 2];
        for (agent, seconds, restarts) in steps {
            now += seconds * 1000;
            clock.set(now);
            let which = usize::from(agent);
            deny(&governor, ["a", "b1"][which]);
            happened[which].push(now);
            unsaid[which] += 1;
            let recent = happened[which].iter().filter(|at| now - **at <= 600_000).count();
            if recent >= 3 && told[which].is_none_or(|told| now - told >= 1_800_000) {
                twin.push((["a", "b1"][which].to_owned(), unsaid[which]));
                (happened[which], unsaid[which], told[which]) = (Vec::new(), 0, Some(now));
            }
            if restarts {
                governor.close().unwrap();
                governor = in_folder(&clock, RULES, folder.path());
            }
        }
        let mut alerts = governor.subscribe(&EventFilter::all().of_type(EventType::Alert).after(first)).unwrap();
        let seen: Vec<_> = all(&governor, &mut alerts)
            .into_iter()
            .map(|told| (told.agent_id.unwrap().to_string(), told.occurrences))
            .collect();
        prop_assert_eq!(seen, twin);
    }
}

#[test]
fn an_alert_written_before_rules_existed_still_reads() {
    let old = json!({
        "alert": "policy-error", "severity": "HIGH", "message": "m", "agentId": "a",
        "proofId": "prf_01kf0000000000000000000000", "occurrences": 2,
    });
    let read: Alert = serde_json::from_value(old.clone()).unwrap();
    assert_eq!((read.rule.as_deref(), read.occurrences), (None, 2));
    assert_eq!(json!(read), old);
}

#[test]
fn a_log_that_is_dropped_ends_whoever_follows_it() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Hand::at(NOON);
    let mut alerts = alerts_of(&in_folder(&clock, RULES, folder.path()));
    assert_eq!(alerts.wait_for(Duration::MAX).unwrap(), None);
    // The folder is free again.
    in_folder(&clock, RULES, folder.path()).close().unwrap();
}
