//! Events: every type, in order, to any number of subscribers, none missed and none invented.

use crate::common;

use std::collections::HashMap;
use std::time::Duration;

use common::{Hand, NOON, builder, decide, in_folder, in_memory, intent, reading};
use proptest::prelude::*;
use rulekeep::event::{AlertKind, EventData, EventFilter, EventId, EventType, Subscription};
use rulekeep::{Agent, Decision, Durability, Event, Governor, Outcome, PolicySet, RiskLevel, Tier};
use serde_json::{Value, json};

/// A set whose one rule fails on what the context lacks.
const FAILING: &str = r#"
name = "failing"
[[rule]]
id = "small-sums"
effect = "allow"
match.capabilities = ["document:*"]
when = "context.amount < 10"
"#;

/// Everything that is there to be told.
fn told(subscription: &mut Subscription) -> Vec<Event> {
    std::iter::from_fn(|| subscription.poll().unwrap()).collect()
}

fn types(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(|event| event.event_type.as_str()).collect()
}

fn subscribe(governor: &Governor) -> Subscription {
    governor.subscribe(&EventFilter::all()).unwrap()
}

#[test]
fn a_decision_and_its_outcome_are_told_in_the_contracts_terms() {
    let governor = in_memory();
    let mut subscription = subscribe(&governor);
    let verdict = governor.enforce(&reading("a")).unwrap();
    governor.report(&verdict.proof_id, Outcome::Failure).unwrap();
    let events = told(&mut subscription);
    assert_eq!(types(&events), ["governance.decision", "proof.recorded", "trust.score_changed"]);

    let record = governor.log().record(&verdict.proof_id).unwrap();
    let shown: Vec<Value> = events.iter().map(|event| json!(event)).collect();
    for event in &shown {
        let keys: Vec<&str> = event.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["data", "id", "timestamp", "type"]);
        assert!(event["id"].as_str().unwrap().starts_with("evt_"));
    }
    assert_eq!(shown[0]["timestamp"], json!(record.timestamp));
    let decision = &shown[0]["data"];
    for field in [
        "decision",
        "reasoning",
        "grantedCapabilities",
        "deniedCapabilities",
        "constraints",
        "proofId",
        "trustSnapshot",
    ] {
        assert_eq!(decision[field], json!(verdict)[field], "{field}");
    }
    assert_eq!(
        (&decision["agentId"], &decision["intentId"], &decision["riskLevel"]),
        (&json!("a"), &json!(record.intent_id), &json!("LOW"))
    );
    assert_eq!(decision["policyDigest"], json!(governor.policies().current().digest()));
    assert!(!decision["rules"].as_array().unwrap().is_empty());

    let mut recorded = json!(record);
    recorded.as_object_mut().unwrap().remove("outcome");
    assert_eq!(shown[1]["data"], recorded);

    let change = &shown[2]["data"];
    let after = governor.agents().get("a").unwrap().trust;
    assert_eq!(
        change,
        &json!({
            "agentId": "a", "from": verdict.trust_snapshot.score, "to": after.score, "fromTier": "T4", "toTier": after.tier,
            "cause": "the outcome FAILURE was reported", "proofId": verdict.proof_id,
        })
    );
    assert!(after.score < verdict.trust_snapshot.score);
}

#[test]
fn a_fall_through_a_tier_is_told_beside_the_fall_of_the_score() {
    let governor = in_memory();
    let mut subscription = governor
        .subscribe(&EventFilter::all().of_type(EventType::TierChanged).of_type(EventType::ScoreChanged))
        .unwrap();
    let critical = rulekeep::Intent::new("a", "example_action", RiskLevel::Critical, ["document:read"]).unwrap();
    let proof_id = governor.enforce(&critical).unwrap().proof_id;
    governor.report(&proof_id, Outcome::Failure).unwrap();
    let events = told(&mut subscription);
    assert_eq!(types(&events), ["trust.score_changed", "trust.tier_changed"]);
    let EventData::Trust(changed) = &events[1].data else { panic!("{:?}", events[1]) };
    assert!(changed.change.to_tier < changed.change.from_tier);
    // The same outcome again changes nothing, and so tells nothing.
    governor.report(&proof_id, Outcome::Failure).unwrap();
    assert_eq!(told(&mut subscription), []);
}

#[test]
fn only_what_is_asked_for_is_told() {
    let governor = in_memory();
    governor.agents().register(Agent::new("b").at_tier(Tier::T4)).unwrap();
    let mut of_b = governor.subscribe(&EventFilter::all().agent("b")).unwrap();
    let mut records = governor.subscribe(&EventFilter::all().of_type(EventType::Recorded)).unwrap();
    let (a, b) = (decide(&governor, "a"), decide(&governor, "b"));
    let sequences = |events: Vec<Event>| events.iter().map(|event| event.id.sequence()).collect::<Vec<_>>();
    assert_eq!(sequences(told(&mut of_b)), [b.sequence(), b.sequence()]);
    assert_eq!(sequences(told(&mut records)), [a.sequence(), b.sequence()]);
    assert!(governor.subscribe(&EventFilter::all().agent("\n")).is_err());
}

#[test]
fn a_subscription_begins_now_or_after_any_event_of_any_run() {
    let dir = tempfile::tempdir().unwrap();
    let governor = in_folder(dir.path());
    let mut from_the_start = subscribe(&governor);
    for _ in 0..5 {
        decide(&governor, "a");
    }
    let all = told(&mut from_the_start);
    assert_eq!(all.len(), 10);
    assert_eq!(told(&mut subscribe(&governor)), []);
    governor.close().unwrap();

    let governor = in_folder(dir.path());
    let again = decide(&governor, "a");
    for (place, event) in all.iter().enumerate() {
        let mut rest = governor.subscribe(&EventFilter::all().after(event.id)).unwrap();
        let rest = told(&mut rest);
        assert_eq!(rest[..rest.len() - 2], all[place + 1..], "behind {place}");
        assert_eq!(rest.last().unwrap().id.sequence(), again.sequence());
    }
    let mut records = EventFilter::all().of_type(EventType::Recorded).after(all[0].id);
    assert_eq!(told(&mut governor.subscribe(&records).unwrap())[0], all[1]);
    records = records.agent("b");
    assert_eq!(told(&mut governor.subscribe(&records).unwrap()), []);
}

#[test]
fn an_event_that_this_log_does_not_tell_is_no_place_to_begin() {
    let (governor, other) = (in_memory(), in_memory());
    decide(&governor, "a");
    let mut subscription = subscribe(&other);
    decide(&other, "a");
    let foreign: Vec<EventId> = told(&mut subscription).iter().map(|event| event.id).collect();
    // Both logs hold one decision at the same place; only the links differ.
    let beyond = {
        let mut subscription = subscribe(&other);
        decide(&other, "a");
        told(&mut subscription)[0].id
    };
    for event in foreign.into_iter().chain([beyond]) {
        let error = governor.subscribe(&EventFilter::all().after(event)).unwrap_err();
        assert_eq!(error.code(), "INVALID_QUERY", "{error}");
        assert!(error.to_string().contains(&event.to_string()), "{error}");
    }
}

#[test]
fn who_is_slow_misses_nothing_and_holds_nobody_up() {
    let governor = builder().durability(Durability::Buffered).open_in_memory().unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    let (mut slow, mut quick) = (subscribe(&governor), subscribe(&governor));
    let mut latest = governor.subscribe(&EventFilter::all().of_type(EventType::Recorded).latest(10)).unwrap();
    let ids: Vec<_> = (0..3_000).map(|_| decide(&governor, "a").sequence()).collect();
    governor.log().flush().unwrap();
    let seen = |subscription: &mut Subscription| {
        let records = told(subscription).into_iter().filter(|event| event.event_type == EventType::Recorded);
        records.map(|event| event.id.sequence()).collect::<Vec<_>>()
    };
    assert_eq!(seen(&mut quick), ids);
    assert_eq!(slow.behind(), 3_000);
    assert_eq!(seen(&mut slow), ids);
    assert_eq!((slow.behind(), slow.skipped()), (0, 0));
    assert_eq!(seen(&mut latest), ids[ids.len() - 10..]);
    assert_eq!(latest.skipped(), 2_990);
}

#[test]
fn one_who_panics_and_one_who_sleeps_harm_nobody_else() {
    const EVENTS: usize = 400;
    let governor = in_memory();
    let (mut panicking, mut asleep, mut counting) = (subscribe(&governor), subscribe(&governor), subscribe(&governor));
    let (wake, woken) = std::sync::mpsc::channel::<()>();
    let panicked = std::thread::spawn(move || {
        let event = panicking.wait().unwrap().unwrap();
        panic!("a subscriber's own fault with {}", event.id);
    });
    let sleeper = std::thread::spawn(move || {
        let first = asleep.wait().unwrap().unwrap();
        woken.recv().unwrap();
        std::iter::once(first).chain(told(&mut asleep)).count()
    });
    let counted = std::thread::spawn(move || {
        let counted = std::iter::from_fn(|| counting.wait().unwrap()).take(EVENTS);
        counted.map(|event| event.id).collect::<std::collections::BTreeSet<_>>().len()
    });
    for _ in 0..EVENTS / 2 {
        decide(&governor, "a");
    }
    assert_eq!(counted.join().unwrap(), EVENTS);
    assert!(panicked.join().is_err());
    wake.send(()).unwrap();
    assert_eq!(sleeper.join().unwrap(), EVENTS, "it misses nothing either");
}

#[test]
fn an_escalation_is_told_with_its_id_and_who_is_asked() {
    let governor = in_memory();
    let mut subscription = governor.subscribe(&EventFilter::all().of_type(EventType::Decision)).unwrap();
    let verdict = governor.enforce(&intent("a", &["email:send"])).unwrap();
    assert_eq!(verdict.decision, Decision::Escalate);
    decide(&governor, "a");
    let events = told(&mut subscription);
    let asked = governor.escalations().pending().unwrap().remove(0);
    let shown = json!(events[0])["data"].clone();
    assert_eq!((&shown["escalationId"], &shown["reviewers"]), (&json!(asked.id), &json!(["mail-lead"])));
    assert_eq!(shown["proofId"], json!(verdict.proof_id));
    let other = json!(events[1])["data"].clone();
    assert!(other.get("escalationId").is_none() && other.get("reviewers").is_none(), "{other}");
}

#[test]
fn the_order_is_that_of_the_log_however_many_decide() {
    const EACH: usize = 200;
    let governor = in_memory();
    let mut subscription = governor.subscribe(&EventFilter::all().of_type(EventType::Decision)).unwrap();
    let reader = std::thread::spawn(move || {
        let next = |subscription: &mut Subscription| subscription.wait().unwrap();
        std::iter::from_fn(|| next(&mut subscription)).take(4 * EACH).collect::<Vec<_>>()
    });
    std::thread::scope(|scope| {
        for number in 0..4 {
            let governor = governor.clone();
            scope.spawn(move || {
                let agent = format!("agent-{number}");
                governor.agents().register(Agent::new(&agent).at_tier(Tier::T4)).unwrap();
                for _ in 0..EACH {
                    decide(&governor, &agent);
                }
            });
        }
    });
    let events = reader.join().unwrap();
    assert!(events.windows(2).all(|pair| pair[0].id.sequence() < pair[1].id.sequence()));
    let mut of_agent: HashMap<&str, usize> = HashMap::new();
    for event in &events {
        *of_agent.entry(event.agent_id().unwrap().as_str()).or_default() += 1;
    }
    assert_eq!(of_agent.len(), 4);
    assert!(of_agent.values().all(|count| *count == EACH));
}

#[test]
fn a_closed_governor_tells_what_is_left_and_then_ends() {
    let governor = builder().durability(Durability::Buffered).open_in_memory().unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    let mut subscription = subscribe(&governor);
    let waiting = std::thread::spawn({
        let mut subscription = governor.subscribe(&EventFilter::all().of_type(EventType::Alert)).unwrap();
        move || subscription.wait().unwrap()
    });
    decide(&governor, "a");
    governor.close().unwrap();
    assert_eq!(waiting.join().unwrap(), None);
    assert_eq!(subscription.wait().unwrap().unwrap().event_type, EventType::Decision);
    assert_eq!(subscription.wait().unwrap().unwrap().event_type, EventType::Recorded);
    assert_eq!(subscription.wait().unwrap(), None);
    assert_eq!(subscription.wait_for(Duration::MAX).unwrap(), None);
}

mod alerts {
    use super::*;

    fn failing(clock: Hand) -> Governor {
        let governor =
            Governor::builder().policies(PolicySet::from_toml(FAILING).unwrap()).clock(clock).open_in_memory().unwrap();
        governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
        governor
    }

    #[test]
    fn a_policy_error_is_told_once_a_minute_and_counted() {
        let clock = Hand::at(NOON);
        let governor = failing(clock.clone());
        let mut subscription = subscribe(&governor);
        for _ in 0..3 {
            let error = governor.enforce(&reading("a")).unwrap_err();
            assert_eq!(error.code(), "POLICY_ERROR");
        }
        // Asking ahead is nobody's concern.
        governor.policies().preview(&reading("a")).unwrap_err();
        governor.log().flush().unwrap();
        let events = told(&mut subscription);
        let alerts: Vec<_> = events.iter().filter(|event| event.event_type == EventType::Alert).collect();
        assert_eq!((alerts.len(), events.len()), (1, 7), "each refusal has its record: {events:?}");
        let shown = json!(alerts[0])["data"].clone();
        assert_eq!(
            (&shown["alert"], &shown["severity"], &shown["agentId"], &shown["occurrences"]),
            (&json!("policy-error"), &json!("HIGH"), &json!("a"), &json!(1))
        );
        assert!(shown["message"].as_str().unwrap().contains("small-sums"), "{shown}");
        let refused = json!(events[0])["data"].clone();
        assert_eq!((&refused["decision"], &refused["proofId"]), (&json!("DENY"), &shown["proofId"]), "{refused}");

        clock.set(NOON + 60_000);
        governor.enforce(&reading("a")).unwrap_err();
        governor.log().flush().unwrap();
        let events = told(&mut subscription);
        let Some(EventData::Alert(alert)) = events.last().map(|event| &event.data) else { panic!("{events:?}") };
        assert_eq!((alert.alert, alert.occurrences), (AlertKind::PolicyError, 3));
        assert!(governor.verify().unwrap().valid);
    }

    #[test]
    fn what_the_shadow_would_do_otherwise_is_told_with_its_record() {
        let governor = in_memory();
        let mut subscription = governor.subscribe(&EventFilter::all().of_type(EventType::Alert)).unwrap();
        governor.policies().shadow(Some(PolicySet::from_toml("name = \"closed\"").unwrap()));
        let (first, _) = (decide(&governor, "a"), decide(&governor, "a"));
        governor.policies().shadow(Some(PolicySet::from_toml(FAILING).unwrap()));
        let failed = decide(&governor, "a");
        governor.log().flush().unwrap();
        let events = told(&mut subscription);
        let alerts: Vec<_> = events
            .iter()
            .map(|event| match &event.data {
                EventData::Alert(alert) => (alert.alert, alert.proof_id, alert.message.as_str()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(alerts.len(), 2, "the like of a difference is told once: {alerts:?}");
        assert_eq!((alerts[0].0, alerts[0].1), (AlertKind::ShadowDiffers, Some(first)));
        assert_eq!(alerts[0].2, "the shadow set decides DENY and not ALLOW by no rule");
        assert_eq!((alerts[1].0, alerts[1].1), (AlertKind::ShadowError, Some(failed)));
    }

    #[test]
    fn each_agent_has_alerts_of_its_own() {
        let governor = failing(Hand::at(NOON));
        governor.agents().register(Agent::new("b").at_tier(Tier::T4)).unwrap();
        let mut of_b = governor.subscribe(&EventFilter::all().agent("b")).unwrap();
        for agent in ["a", "b", "b"] {
            governor.enforce(&reading(agent)).unwrap_err();
        }
        governor.log().flush().unwrap();
        let decided = ["governance.decision", "proof.recorded"];
        assert_eq!(types(&told(&mut of_b)), [&decided[..], &["alert.triggered"], &decided[..]].concat());
    }

    #[test]
    fn an_alert_is_there_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let open = || {
            let builder = Governor::builder().policies(PolicySet::from_toml(FAILING).unwrap());
            common::open_with(builder, dir.path())
        };
        let governor = open();
        let mut subscription = subscribe(&governor);
        governor.enforce(&reading("a")).unwrap_err();
        governor.log().flush().unwrap();
        let allowed = intent("a", &["document:read"]).with_context("amount", json!(5));
        assert_eq!(governor.enforce(&allowed).unwrap().decision, Decision::Allow);
        let events = told(&mut subscription);
        governor.close().unwrap();
        let governor = open();
        let mut rest = governor.subscribe(&EventFilter::all().after(events[0].id)).unwrap();
        assert_eq!(types(&events)[2], "alert.triggered");
        assert_eq!(told(&mut rest), events[1..]);
        assert!(governor.verify().unwrap().valid);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is done, with restarts in between: the events are those of the records and outcomes, each once.
    #[test]
    fn every_change_is_told_once(steps in proptest::collection::vec(0_u8..6, 1..40)) {
        let dir = tempfile::tempdir().unwrap();
        let mut governor = in_folder(dir.path());
        let first = decide(&governor, "a");
        let begin = {
            let mut all = governor.subscribe(&EventFilter::all()).unwrap();
            decide(&governor, "a");
            told(&mut all)[0].id
        };
        let (mut decided, mut moved) = (Vec::new(), 0_usize);
        let mut open = vec![first];
        for step in steps {
            match step {
                0..=2 => {
                    let id = decide(&governor, "a");
                    decided.push(id.sequence());
                    open.push(id);
                }
                3 | 4 => if let Some(id) = open.pop() {
                    let before = governor.agents().get("a").unwrap().trust;
                    let outcome = if step == 3 { Outcome::Success } else { Outcome::Failure };
                    let after = governor.report(&id, outcome).unwrap();
                    moved += usize::from(before.score != after.score);
                },
                _ => {
                    governor.close().unwrap();
                    governor = in_folder(dir.path());
                }
            }
        }
        let mut rest = governor.subscribe(&EventFilter::all().after(begin)).unwrap();
        let events = told(&mut rest);
        let of = |wanted: EventType| events.iter().filter(move |event| event.event_type == wanted).map(|event| event.id.sequence());
        prop_assert_eq!(of(EventType::Decision).collect::<Vec<_>>(), decided.clone());
        prop_assert_eq!(of(EventType::Recorded).skip(1).collect::<Vec<_>>(), decided);
        prop_assert_eq!(of(EventType::ScoreChanged).count(), moved);
        let mut ids: Vec<EventId> = events.iter().map(|event| event.id).collect();
        let told_ids = ids.len();
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), told_ids);
    }
}
