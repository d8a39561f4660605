//! Trust as a governor keeps it: each change with its cause, listed, and the same when it is made anew from the log.

use crate::common;

use std::fs;

use common::{Hand, NOON, builder, code, intent, reading};
use rulekeep::event::{EventFilter, EventType};
use rulekeep::proof::ProofId;
use rulekeep::trust::{Score, TrustCause, TrustModel};
use rulekeep::{Agent, Decision, Governor, Intent, Outcome, RiskLevel, Tier};
use serde_json::json;

const DAY: i64 = 86_400_000;

fn score(score: i64) -> Score {
    Score::saturating(score)
}

fn success(governor: &Governor, agent: &str) {
    let verdict = governor.enforce(&intent(agent, &["document:write"])).unwrap();
    assert_eq!(verdict.decision, Decision::Allow);
    governor.report(&verdict.proof_id, Outcome::Success).unwrap();
}

fn failure(governor: &Governor, agent: &str) {
    let verdict = governor.enforce(&reading(agent)).unwrap();
    governor.report(&verdict.proof_id, Outcome::Failure).unwrap();
}

fn denied(governor: &Governor, agent: &str) {
    assert_eq!(governor.enforce(&intent(agent, &["file:delete"])).unwrap().decision, Decision::Deny);
}

/// Some of everything that moves trust, over some days.
fn live(governor: &Governor, hand: &Hand) {
    for agent in ["a", "b"] {
        governor.agents().register(Agent::new(agent).at_tier(Tier::T4)).unwrap();
    }
    for day in 0..6 {
        hand.set(NOON + day * DAY);
        success(governor, "a");
        success(governor, "b");
        if day % 3 == 1 {
            failure(governor, "b");
        }
        for _ in 0..5 {
            denied(governor, "a");
        }
    }
    governor.trust().adjust("b", score(720), "looked into").unwrap();
    hand.set(NOON + 40 * DAY);
    success(governor, "a");
    let verdict = governor.enforce(&intent("b", &["email:send"])).unwrap();
    let asked = governor.escalations().pending().unwrap().pop().unwrap();
    assert_eq!(asked.proof_id, verdict.proof_id);
    governor.escalations().reject(asked.id, rulekeep::escalation::Review::by("mail-lead")).unwrap();
    let verdict = governor.enforce(&reading("a")).unwrap();
    governor.report(&verdict.proof_id, Outcome::Success).unwrap();
    governor.trust().correct(&verdict.proof_id, "it was the wrong document").unwrap();
}

#[test]
fn every_change_is_listed_with_its_cause_and_without_a_gap() {
    let hand = Hand::at(NOON);
    let governor = builder().clock(hand.clone()).open_in_memory().unwrap();
    live(&governor, &hand);
    let mut seen = Vec::new();
    for agent in ["a", "b"] {
        let all = governor.trust().history(agent, 1, 200).unwrap();
        assert_eq!((all.total, all.has_more), (all.items.len() as u64, false));
        let trust = governor.agents().get(agent).unwrap().trust;
        assert_eq!((all.items[0].change.to, all.items[0].change.to_tier), (trust.score, trust.tier));
        for pair in all.items.windows(2) {
            assert_eq!(pair[0].change.from, pair[1].change.to, "{pair:?}");
            assert_eq!(pair[0].change.from_tier, pair[1].change.to_tier, "{pair:?}");
            assert!(pair[0].timestamp >= pair[1].timestamp);
        }
        assert_eq!(all.items.last().unwrap().cause, TrustCause::Registered);
        seen.extend(all.items.iter().map(|item| item.cause));
        let paged: Vec<_> = (1..=100)
            .map(|page| governor.trust().history(agent, page, 3).unwrap())
            .take_while(|page| !page.items.is_empty())
            .flat_map(|page| page.items)
            .collect();
        assert_eq!(paged, all.items);
    }
    for cause in [
        TrustCause::Registered,
        TrustCause::Outcome,
        TrustCause::Denials,
        TrustCause::Rejection,
        TrustCause::Adjusted,
        TrustCause::Idle,
        TrustCause::Correction,
    ] {
        assert!(seen.contains(&cause), "{cause}");
    }
}

#[test]
fn trust_made_anew_from_the_log_is_what_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let hand = Hand::at(NOON);
    let open = || builder().clock(hand.clone()).open(folder.path()).unwrap();
    let governor = open();
    live(&governor, &hand);
    let check = governor.trust().verify().unwrap();
    assert_eq!((check.agents, check.differing), (2, vec![]));
    let before: Vec<_> = ["a", "b"].iter().map(|agent| governor.trust().history(agent, 1, 200).unwrap()).collect();
    governor.close().unwrap();

    fs::remove_dir_all(folder.path().join("view")).unwrap();
    let governor = open();
    let after: Vec<_> = ["a", "b"].iter().map(|agent| governor.trust().history(agent, 1, 200).unwrap()).collect();
    assert_eq!(after, before);
    assert_eq!(governor.trust().verify().unwrap().differing, []);
    governor.close().unwrap();

    // By other numbers from here on.
    let strict = TrustModel { daily_gain_cap: 18, promotion_margin: 20, ..TrustModel::default() };
    let governor = builder().clock(hand.clone()).trust_model(strict).open(folder.path()).unwrap();
    hand.set(NOON + 41 * DAY);
    success(&governor, "a");
    assert_eq!(governor.trust().verify().unwrap().differing, []);
    governor.close().unwrap();
    let governor = open();
    hand.set(NOON + 42 * DAY);
    success(&governor, "a");
    assert_eq!(governor.trust().verify().unwrap().differing, []);
}

/// Decisions that are allowed and of which nothing is reported yet.
fn hoard(governor: &Governor, count: usize) -> Vec<ProofId> {
    let decide = |_| governor.enforce(&intent("a", &["document:write"])).unwrap().proof_id;
    (0..count).map(decide).collect()
}

#[test]
fn a_success_of_a_seven_day_old_decision_earns_nothing() {
    let hand = Hand::at(NOON);
    let governor = builder().clock(hand.clone()).open_in_memory().unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T3)).unwrap();
    let hoarded = hoard(&governor, 2);
    hand.set(NOON + 7 * DAY - 1);
    let before = governor.agents().get("a").unwrap().trust.score;
    let on_time = governor.report(&hoarded[0], Outcome::Success).unwrap().score;
    assert!(on_time > before);
    // Another day, in which nothing was gained yet.
    hand.set(NOON + 8 * DAY);
    assert_eq!(governor.report(&hoarded[1], Outcome::Success).unwrap().score, on_time);
    assert_eq!(governor.log().record(&hoarded[1]).unwrap().outcome, Some(Outcome::Success));
    assert_eq!(governor.trust().history("a", 1, 10).unwrap().total, 2, "it was registered and gained once");
    assert_eq!(governor.trust().verify().unwrap().differing, []);
}

#[test]
fn successes_hoarded_before_a_tier_was_lost_earn_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let hand = Hand::at(NOON);
    let open = || builder().clock(hand.clone()).open(folder.path()).unwrap();
    let governor = open();
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    let hoarded = hoard(&governor, 20);
    hand.set(NOON + 1);
    let harm = Intent::new("a", "send_money", RiskLevel::Critical, ["payment:transfer"]).unwrap();
    let harm = governor.enforce(&harm).unwrap().proof_id;
    let fallen = governor.report(&harm, Outcome::Failure).unwrap();
    assert!(fallen.tier < Tier::T4);
    governor.close().unwrap();
    let governor = open();
    hand.set(NOON + DAY);
    for proof_id in &hoarded {
        assert_eq!(governor.report(proof_id, Outcome::Success).unwrap(), fallen);
    }
    let fresh = hoard(&governor, 1);
    assert!(governor.report(&fresh[0], Outcome::Success).unwrap().score > fallen.score);
    assert_eq!(governor.trust().verify().unwrap().differing, []);
}

#[test]
fn trust_is_made_anew_whatever_the_clock_did() {
    let hand = Hand::at(NOON);
    let governor = builder().clock(hand.clone()).open_in_memory().unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T3)).unwrap();
    for day in [3, -2, 5, 0, 1, 20, 2] {
        hand.set(NOON + day * DAY);
        success(&governor, "a");
        failure(&governor, "a");
    }
    assert_eq!(governor.trust().verify().unwrap().differing, []);
}

#[test]
fn an_adjustment_needs_a_reason_and_stays_below_the_ceiling() {
    let governor = builder().open_in_memory().unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T2)).unwrap();
    assert_eq!(code(governor.trust().adjust("a", score(500), " ")), "INVALID_INPUT");
    assert_eq!(code(governor.trust().adjust("nobody", score(500), "why")), "AGENT_NOT_FOUND");
    let mut events = governor.subscribe(&EventFilter::all().of_type(EventType::TierChanged)).unwrap();
    assert_eq!(governor.trust().adjust("a", score(810), "proven elsewhere").unwrap().trust.tier, Tier::T5);
    assert!(serde_json::to_string(&events.wait().unwrap()).unwrap().contains("proven elsewhere"));
    let change = rulekeep::agent::AgentChange::default().ceiling(score(600));
    assert_eq!(governor.agents().update("a", change, "black box").unwrap().trust.score, score(600));
    assert_eq!(governor.trust().history("a", 1, 1).unwrap().items[0].cause, TrustCause::Ceiling);
    assert_eq!(code(governor.trust().adjust("a", score(601), "more")), "CONFLICT");
    assert_eq!(governor.trust().verify().unwrap().differing, []);
}

#[test]
fn a_success_that_was_none_is_taken_back_once_it_is_known() {
    let governor = builder().open_in_memory().unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T2)).unwrap();
    let before = governor.agents().get("a").unwrap().trust.score;
    let verdict = governor.enforce(&reading("a")).unwrap();
    assert_eq!(code(governor.trust().correct(&verdict.proof_id, "why")), "CONFLICT");
    governor.report(&verdict.proof_id, Outcome::Success).unwrap();
    let mut changes = governor.subscribe(&EventFilter::all().of_type(EventType::ScoreChanged)).unwrap();
    governor.log().flush().unwrap();
    while changes.poll().unwrap().is_some() {}
    assert!(governor.trust().correct(&verdict.proof_id, "why").unwrap().score < before);
    governor.log().flush().unwrap();
    let event = json!(changes.poll().unwrap().unwrap());
    assert_eq!(event["data"]["proofId"], json!(verdict.proof_id), "it says which record it belongs to");
    assert_eq!(governor.trust().history("a", 1, 1).unwrap().items[0].proof_id, Some(verdict.proof_id));
    // What an operator writes names none, whatever it looks like.
    governor.trust().adjust("a", score(900), &format!("{}: as it was", verdict.proof_id)).unwrap();
    governor.log().flush().unwrap();
    assert_eq!(json!(changes.poll().unwrap().unwrap())["data"]["proofId"], json!(null));
    assert_eq!(governor.log().record(&verdict.proof_id).unwrap().outcome, Some(Outcome::Success));
}

#[test]
fn denials_by_the_policies_cost_and_those_by_a_stop_do_not() {
    let governor = builder().open_in_memory().unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    let before = governor.agents().get("a").unwrap().trust.score;
    governor.agents().suspend("a", "").unwrap();
    (0..20).for_each(|_| denied(&governor, "a"));
    governor.agents().resume("a", "").unwrap();
    let stop = governor.kill_switch().set(rulekeep::kill_switch::KillSwitchScope::All, "ann", "drill").unwrap();
    (0..20).for_each(|_| denied(&governor, "a"));
    governor.kill_switch().lift(&stop.id, "ann", "over").unwrap();
    assert_eq!(governor.agents().get("a").unwrap().trust.score, before);
    (0..4).for_each(|_| denied(&governor, "a"));
    assert_eq!(governor.agents().get("a").unwrap().trust.score, before);
    denied(&governor, "a");
    let after = governor.agents().get("a").unwrap().trust.score;
    assert!(after < before);
    (0..20).for_each(|_| denied(&governor, "a"));
    assert_eq!(governor.agents().get("a").unwrap().trust.score, after, "once in an hour");
}

#[test]
fn a_decision_that_repeats_another_says_so() {
    let governor = builder().open_in_memory().unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    governor.agents().register(Agent::new("b").at_tier(Tier::T4)).unwrap();
    let first = governor.enforce(&reading("a")).unwrap();
    let again = reading("a").with_context("retryOf", first.proof_id.to_string());
    let second = governor.enforce(&again).unwrap();
    assert_eq!(governor.log().record(&second.proof_id).unwrap().retry_of, Some(first.proof_id));
    assert_eq!(governor.log().record(&first.proof_id).unwrap().retry_of, None);
    let foreign = reading("b").with_context("retryOf", first.proof_id.to_string());
    assert_eq!(code(governor.enforce(&foreign)), "INVALID_INTENT");
    for wrong in [json!("prf_x"), json!(7), json!("prf_00000000000000000000000000")] {
        assert_eq!(code(governor.enforce(&reading("a").with_context("retryOf", wrong))), "INVALID_INTENT");
    }
    assert!(governor.verify().unwrap().valid);
}

#[test]
fn a_correction_is_made_once_and_the_same_again_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let open = || builder().open(folder.path()).unwrap();
    let mut governor = open();
    for (agent, at) in [("a", 400), ("b", 3)] {
        governor.agents().register(Agent::new(agent).at_score(score(at))).unwrap();
    }
    let mut corrected = Vec::new();
    for agent in ["a", "b"] {
        let verdict = governor.enforce(&reading(agent)).unwrap();
        governor.report(&verdict.proof_id, Outcome::Success).unwrap();
        governor.trust().correct(&verdict.proof_id, "not so, key=AKIAIOSFODNN7EXAMPLE").unwrap();
        corrected.push((agent, verdict.proof_id));
    }
    // One that found nothing to take.
    let verdict = governor.enforce(&reading("b")).unwrap();
    governor.report(&verdict.proof_id, Outcome::Success).unwrap();
    governor.trust().adjust("b", score(0), "found out").unwrap();
    governor.trust().correct(&verdict.proof_id, "not so, key=AKIAIOSFODNN7EXAMPLE").unwrap();
    governor.trust().adjust("b", score(100), "looked into").unwrap();
    corrected.push(("b", verdict.proof_id));
    success(&governor, "a");

    for (round, view) in [("running", true), ("reopened", true), ("without a view", false)] {
        if round != "running" {
            governor.close().unwrap();
            if !view {
                fs::remove_dir_all(folder.path().join("view")).unwrap();
            }
            governor = open();
        }
        for (agent, id) in &corrected {
            let before = governor.agents().get(agent).unwrap().trust;
            assert_eq!(code(governor.trust().correct(id, "something else")), "CONFLICT", "{round}");
            let again = governor.trust().correct(id, "not so, key=AKIAIOSFODNN7EXAMPLE").unwrap();
            assert_eq!((again, governor.agents().get(agent).unwrap().trust), (before, before), "{round}");
        }
        assert_eq!(governor.trust().verify().unwrap().differing, [], "{round}");
    }
}

#[test]
fn of_many_who_correct_one_record_at_once_one_does() {
    let governor = builder().open_in_memory().unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    // In few rounds nobody may look while another corrects.
    for round in 0..200 {
        let is_same = round % 2 == 0;
        let verdict = governor.enforce(&reading("a")).unwrap();
        governor.report(&verdict.proof_id, Outcome::Success).unwrap();
        let changes = governor.trust().history("a", 1, 1).unwrap().total;
        let start = std::sync::Barrier::new(8);
        let correct = &|number: usize| {
            start.wait();
            let note = if is_same { "not so".to_owned() } else { format!("not so, says {number}") };
            governor.trust().correct(&verdict.proof_id, &note)
        };
        let done: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|number| scope.spawn(move || correct(number))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(done.iter().filter(|done| done.is_ok()).count(), if is_same { 8 } else { 1 });
        assert!(done.into_iter().filter(Result::is_err).all(|refused| code(refused) == "CONFLICT"));
        assert_eq!(governor.trust().history("a", 1, 1).unwrap().total, changes + 1);
    }
    assert_eq!(governor.trust().verify().unwrap().differing, []);
}
