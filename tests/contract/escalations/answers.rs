//! What comes of an answer.

use rulekeep::escalation::{EscalationQuery, EscalationState};
use rulekeep::trust::Score;
use rulekeep::{Decision, Outcome, ProofQuery};
use serde_json::json;

use super::*;

#[test]
fn what_waits_says_who_asks_for_what_and_of_whom() {
    let (governor, _) = governor();
    let (id, verdict) = ask(&governor, &payment(40));
    let pending = governor.escalations().pending().unwrap();
    assert_eq!(pending.len(), 1);
    let asked = &pending[0];
    assert_eq!((asked.id, asked.proof_id, asked.agent_id.as_str()), (id, verdict.proof_id, "clerk"));
    assert_eq!(asked.intent.as_ref().unwrap()["context"]["amount"], 40);
    assert_eq!(asked.reviewer.as_deref(), Some("finance"));
    assert_eq!(asked.needs[0].people, ["ann", "bob", "Cleo"]);
    assert_eq!(asked.reason, verdict.reasoning);
    assert_eq!(asked.state, EscalationState::Pending);
    assert_eq!(asked.expires_at.as_millis() - asked.created_at.as_millis(), 3_600_000);
    assert_eq!(json!(asked.on_approval.granted), json!(["payment:transfer"]));
}

#[test]
fn an_approval_is_a_new_record_and_the_askers_outcome() {
    let (governor, _) = governor();
    let before = governor.agents().get("clerk").unwrap().trust;
    let (id, verdict) = ask(&governor, &payment(40));
    let resolved = governor.escalations().approve(id, by("ann").note("order 8812 was seen")).unwrap();
    assert_eq!(resolved.state, EscalationState::Approved);

    let answer = governor.log().record(&resolved.proof_id.unwrap()).unwrap();
    let asked = governor.log().record(&verdict.proof_id).unwrap();
    assert_eq!((answer.decision, answer.resolves), (Decision::Allow, Some(verdict.proof_id)));
    assert_eq!((answer.intent_id, answer.risk_level), (asked.intent_id, asked.risk_level));
    assert!(answer.reasoning.contains("ann") && answer.reasoning.contains("order 8812"), "{}", answer.reasoning);
    assert_eq!((asked.outcome, answer.outcome), (Some(Outcome::Escalated), None));
    assert_eq!(governor.agents().get("clerk").unwrap().trust, before, "an approval is no merit");

    let evidence = governor.log().evidence(&answer.id).unwrap();
    assert_eq!(evidence.intent, governor.log().evidence(&asked.id).unwrap().intent);
    assert_eq!(evidence.detail["resolution"]["votes"][0]["reviewer"], "ann");
    assert_eq!(evidence.detail["grantedCapabilities"], json!(["payment:transfer"]));
    assert!(governor.verify().unwrap().valid);
}

#[test]
fn an_approval_is_claimed_once_and_holds_until_it_expires() {
    let (governor, _) = governor();
    let (id, _) = ask(&governor, &payment(40));
    let resolved = governor.escalations().approve(id, by("bob")).unwrap();
    let granted = governor.escalations().claim(id, &payment(40)).unwrap();
    assert_eq!((granted.decision, Some(granted.proof_id)), (Decision::Allow, resolved.proof_id));
    assert_eq!(granted.constraints.get("maxAmount"), Some(&json!(100)));
    assert_eq!(granted.constraints.get("expiresAt"), Some(&json!("2027-01-15T09:00:00.000Z")));
    assert_eq!(code(governor.escalations().claim(id, &payment(40))), "CONFLICT");
    assert!(governor.escalations().get(id).unwrap().claimed_at.is_some());
    governor.report(&granted.proof_id, Outcome::Success).unwrap();
    assert_eq!(governor.log().record(&granted.proof_id).unwrap().outcome, Some(Outcome::Success));
}

#[test]
fn a_rejection_is_a_denial_and_costs_trust() {
    let (governor, _) = governor();
    let before = governor.agents().get("clerk").unwrap().trust.score;
    let (id, verdict) = ask(&governor, &payment(40));
    let resolved = governor.escalations().reject(id, by("cleo").note("no such order")).unwrap();
    assert_eq!(resolved.state, EscalationState::Rejected);
    let answer = governor.log().record(&resolved.proof_id.unwrap()).unwrap();
    assert_eq!((answer.decision, answer.resolves), (Decision::Deny, Some(verdict.proof_id)));
    assert_eq!(governor.log().record(&verdict.proof_id).unwrap().outcome, Some(Outcome::Escalated));
    assert!(governor.agents().get("clerk").unwrap().trust.score < before);
    assert!(governor.agents().get("clerk").unwrap().trust.score > Score::MIN);
    assert_eq!(code(governor.escalations().claim(id, &payment(40))), "CONFLICT");
    assert_eq!(code(governor.escalations().approve(id, by("ann"))), "CONFLICT");
}

#[test]
fn two_people_approve_where_a_rule_asks_for_two() {
    let (governor, _) = governor();
    let (id, _) = ask(&governor, &rights());
    let first = governor.escalations().approve(id, by("ann")).unwrap();
    assert_eq!((first.state, first.proof_id), (EscalationState::Pending, None));
    assert_eq!(code(governor.escalations().claim(id, &rights())), "CONFLICT");
    assert_eq!(code(governor.escalations().approve(id, by(" ANN "))), "CONFLICT", "one person is one");
    let second = governor.escalations().approve(id, by("bob")).unwrap();
    assert_eq!(second.state, EscalationState::Approved);
    assert!(governor.escalations().claim(id, &rights()).is_ok());
    let votes = governor.escalations().get(id).unwrap().votes;
    assert_eq!(votes.iter().map(|vote| vote.reviewer.as_str()).collect::<Vec<_>>(), ["ann", "bob"]);
}

#[test]
fn one_of_two_can_still_say_no() {
    let (governor, _) = governor();
    let (id, _) = ask(&governor, &rights());
    governor.escalations().approve(id, by("ann")).unwrap();
    assert_eq!(governor.escalations().reject(id, by("ann")).unwrap().state, EscalationState::Rejected);
}

#[test]
fn nobody_who_answers_in_time_is_a_denial() {
    let (governor, hand) = governor();
    let (id, verdict) = ask(&governor, &payment(40));
    hand.set(NOON + 3_600_000 - 1);
    assert_eq!(governor.escalations().get(id).unwrap().state, EscalationState::Pending);
    hand.set(NOON + 3_600_000);
    let ended = governor.escalations().get(id).unwrap();
    assert_eq!(ended.state, EscalationState::Expired);
    let answer = governor.log().record(&ended.resolution.unwrap()).unwrap();
    assert_eq!((answer.decision, answer.resolves), (Decision::Deny, Some(verdict.proof_id)));
    assert_eq!(governor.log().record(&verdict.proof_id).unwrap().outcome, Some(Outcome::Escalated));
    assert_eq!(code(governor.escalations().approve(id, by("ann"))), "CONFLICT");
}

#[test]
fn what_was_approved_and_not_taken_up_lapses() {
    let (governor, hand) = governor();
    let (id, _) = ask(&governor, &payment(40));
    governor.escalations().approve(id, by("ann")).unwrap();
    hand.set(NOON + 3_600_000);
    assert_eq!(code(governor.escalations().claim(id, &payment(40))), "CONFLICT");
    assert_eq!(governor.escalations().get(id).unwrap().state, EscalationState::Expired);
}

#[test]
fn what_was_never_taken_up_earns_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let hand = Hand::at(NOON);
    let open = || with_clock(&hand).open(folder.path()).unwrap();
    let governor = open();
    governor.agents().register(Agent::new("clerk").at_tier(Tier::T4)).unwrap();
    let approved = |governor: &Governor, amount| {
        let (id, _) = ask(governor, &payment(amount));
        (id, governor.escalations().approve(id, by("ann")).unwrap().proof_id.unwrap())
    };
    let (claimed, granted) = approved(&governor, 1);
    assert_eq!(code(governor.report(&granted, Outcome::Success)), "CONFLICT");
    let (_, lapsed) = approved(&governor, 2);
    let (given_up, failed) = approved(&governor, 3);
    let before = governor.report(&failed, Outcome::Escalated).unwrap();
    assert_eq!(code(governor.escalations().claim(given_up, &payment(3))), "CONFLICT");
    governor.escalations().claim(claimed, &payment(1)).unwrap();
    hand.set(NOON + 3_600_000);
    assert_eq!(code(governor.report(&lapsed, Outcome::Success)), "CONFLICT");
    governor.close().unwrap();

    for with_view in [true, false] {
        if !with_view {
            std::fs::remove_dir_all(folder.path().join("view")).unwrap();
        }
        let governor = open();
        assert_eq!(code(governor.report(&lapsed, Outcome::Success)), "CONFLICT");
        assert_eq!(governor.log().record(&lapsed).unwrap().outcome, None);
        assert_eq!(governor.agents().get("clerk").unwrap().trust, before);
        governor.close().unwrap();
    }
    let governor = open();
    assert!(governor.report(&granted, Outcome::Success).unwrap().score > before.score);
    governor.report(&lapsed, Outcome::Failure).unwrap();
}

#[test]
fn a_reported_outcome_ends_what_waits() {
    let (governor, _) = governor();
    for outcome in [Outcome::Failure, Outcome::Escalated, Outcome::Success] {
        let (id, verdict) = ask(&governor, &payment(40));
        governor.report(&verdict.proof_id, outcome).unwrap();
        assert_eq!(governor.escalations().get(id).unwrap().state, EscalationState::Expired);
        assert_eq!(code(governor.escalations().approve(id, by("ann"))), "CONFLICT");
        assert_eq!(governor.log().record(&verdict.proof_id).unwrap().outcome, Some(outcome));
    }
}

#[test]
fn pages_are_exact_by_state_and_agent() {
    let (governor, _) = governor();
    governor.agents().register(Agent::new("other").at_tier(Tier::T4)).unwrap();
    let mut ids = Vec::new();
    for amount in 0..7 {
        ids.push(ask(&governor, &payment(amount)).0);
    }
    let mut theirs = payment(9);
    theirs.agent_id = "other".parse().unwrap();
    let (other, _) = ask(&governor, &theirs);
    governor.escalations().approve(ids[1], by("ann")).unwrap();
    governor.escalations().claim(ids[1], &payment(1)).unwrap();
    governor.escalations().approve(ids[2], by("ann")).unwrap();
    governor.escalations().reject(ids[3], by("ann")).unwrap();

    let page = |query: EscalationQuery| {
        let page = governor.escalations().list(&query).unwrap();
        (page.total, page.has_more, page.items.iter().map(|item| item.id).collect::<Vec<_>>())
    };
    assert_eq!(page(EscalationQuery::all().page_size(3)), (8, true, vec![other, ids[6], ids[5]]));
    assert_eq!(page(EscalationQuery::all().page_size(3).page(3)), (8, false, vec![ids[1], ids[0]]));
    assert_eq!(page(EscalationQuery::all().state(EscalationState::Approved)), (2, false, vec![ids[2], ids[1]]));
    assert_eq!(page(EscalationQuery::all().state(EscalationState::Rejected)), (1, false, vec![ids[3]]));
    let pending = EscalationQuery::all().state(EscalationState::Pending);
    assert_eq!(page(pending.clone().agent("other")), (1, false, vec![other]));
    assert_eq!(page(pending.page_size(2).page(2)), (5, true, vec![ids[5], ids[4]].into_iter().rev().rev().collect()));
    for query in
        [EscalationQuery::all().page(0), EscalationQuery::all().page_size(0), EscalationQuery::all().page_size(201)]
    {
        assert_eq!(code(governor.escalations().list(&query)), "INVALID_QUERY");
    }
}

#[test]
fn an_agent_that_asks_for_too_much_is_denied() {
    let (governor, _) = governor();
    for amount in 0..100 {
        ask(&governor, &payment(amount));
    }
    let verdict = governor.enforce(&payment(100)).unwrap();
    assert_eq!(verdict.decision, Decision::Deny);
    assert!(verdict.reasoning.contains("are pending"), "{}", verdict.reasoning);
    governor.escalations().reject(governor.escalations().pending().unwrap()[0].id, by("ann")).unwrap();
    ask(&governor, &payment(101));
    assert_eq!(governor.query(&ProofQuery::entity("clerk").page_size(200)).unwrap().total, 103);
}
