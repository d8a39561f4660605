//! Limits, where people grant what is counted, and suspensions that come in between.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rulekeep::intent::DenialClass;
use rulekeep::proof::{ExportRange, ProofQuery};
use rulekeep::{Error, Outcome};
use serde_json::Value;

use super::*;

/// A person is asked about every payment, and payments have a limit.
fn with_limit(limit: &str) -> (Governor, Hand) {
    let (governor, hand) = governor();
    let text = format!(
        "name = \"l\"\n[[rule]]\nid = \"money\"\neffect = \"escalate\"\nmatch.capabilities = [\"payment:transfer\"]\n\
         reviewer = \"ann\"\n[[rule]]\nid = \"payments\"\neffect = \"allow\"\nmatch.capabilities = [\"payment:transfer\"]\n\
         limit = {{ {limit} }}\n"
    );
    governor.policies().load(policies(&text)).unwrap();
    (governor, hand)
}

/// How many of those are approved, by as many threads at once, and that each other one is refused for the limit.
fn approved_at_once(governor: &Governor, asked: &[EscalationId]) -> usize {
    let (start, granted) = (Barrier::new(asked.len()), AtomicUsize::new(0));
    thread::scope(|scope| {
        for id in asked {
            scope.spawn(|| {
                start.wait();
                match governor.escalations().approve(*id, by("ann")) {
                    Ok(_) => _ = granted.fetch_add(1, Ordering::Relaxed),
                    Err(Error::Conflict { message }) => assert!(message.contains("is used up"), "{message}"),
                    Err(error) => panic!("{error}"),
                }
            });
        }
    });
    granted.into_inner()
}

#[test]
fn concurrent_approvals_grant_no_more_than_a_limit_has_room_for() {
    let (governor, hand) = with_limit("count = 3, per = \"1h\", by = \"all\"");
    // Of many agents: what is approved for one waits for it.
    let payments: Vec<Intent> = (0..8)
        .map(|number| {
            let agent = format!("clerk-{number}");
            governor.agents().register(Agent::new(&*agent).at_tier(Tier::T4)).unwrap();
            let mut payment = payment(number);
            payment.agent_id = agent.parse().unwrap();
            payment
        })
        .collect();
    for round in 1..=60 {
        let asked: Vec<_> = payments.iter().map(|payment| ask(&governor, payment).0).collect();
        assert_eq!(approved_at_once(&governor, &asked), 3, "round {round}");
        for (payment, id) in payments.iter().zip(&asked) {
            if governor.escalations().claim(*id, payment).is_err() {
                governor.report(&governor.escalations().get(*id).unwrap().proof_id, Outcome::Escalated).unwrap();
            }
        }
        hand.set(NOON + round * 3_600_000);
    }
    assert!(governor.verify().unwrap().valid);
}

#[test]
fn a_sum_holds_and_a_failure_makes_room_for_what_waits() {
    let (governor, _) = with_limit("sum = \"amount\", max = 100, per = \"1d\"");
    let asked = [60, 60, 40].map(|amount| ask(&governor, &payment(amount)).0);
    let first = governor.escalations().approve(asked[0], by("ann")).unwrap().proof_id.unwrap();
    assert_eq!(code(governor.escalations().approve(asked[1], by("ann"))), "CONFLICT");
    governor.escalations().approve(asked[2], by("ann")).unwrap();
    governor.report(&first, Outcome::Failure).unwrap();
    governor.escalations().approve(asked[1], by("ann")).unwrap();
}

#[test]
fn a_limit_holds_where_secrets_prevent_a_new_evaluation() {
    let folder = tempfile::tempdir().unwrap();
    let secret = || payment(1).with_context("key", "sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    let (governor, hand) = with_limit("count = 1, per = \"1h\"");
    let set = governor.policies().current();
    drop(governor);
    let governor = with_clock(&hand).policies(PolicySet::clone(&set)).open(folder.path()).unwrap();
    governor.agents().register(Agent::new("clerk").at_tier(Tier::T4)).unwrap();
    let asked: Vec<_> = (0..4).map(|_| ask(&governor, &secret()).0).collect();
    assert_eq!(approved_at_once(&governor, &asked), 1);
    governor.close().unwrap();
    let governor = with_clock(&hand).policies(PolicySet::clone(&set)).open(folder.path()).unwrap();
    let waits = governor.escalations().pending().unwrap();
    assert_eq!((waits.len(), code(governor.escalations().approve(waits[0].id, by("ann")))), (3, "CONFLICT"));
}

#[test]
fn a_limit_that_asks_is_what_a_person_goes_beyond() {
    let (governor, _) = with_limit("count = 1, per = \"1d\", over = \"escalate\", reviewer = \"ann\"");
    for amount in 0..3 {
        let (id, _) = ask(&governor, &payment(amount));
        governor.escalations().approve(id, by("ann")).unwrap();
    }
}

#[test]
fn a_pre_approval_goes_beyond_no_limit_either() {
    let (governor, _) = with_limit("count = 2, per = \"1d\"");
    let terms = serde_json::from_value(serde_json::json!({
        "agentId": "clerk", "capabilities": ["payment:transfer"], "rules": ["money"], "until": "2027-01-16T00:00:00Z",
    }));
    let class =
        rulekeep::escalation::PreApproval::new(terms.unwrap(), rulekeep::system::Timestamp::from_millis(NOON)).unwrap();
    governor.escalations().pre_approve(class, by("ann")).unwrap();
    let mut decisions = (0..3).map(|amount| governor.enforce(&payment(amount)).unwrap().decision);
    assert_eq!(decisions.next(), Some(Decision::Allow));
    assert_eq!(decisions.next(), Some(Decision::Allow));
    assert_eq!(decisions.next(), Some(Decision::Escalate), "a person is asked, who cannot go beyond it either");
}

#[test]
fn no_approval_grants_what_a_denying_limit_cannot_count() {
    for (limit, counted) in
        [("sum = \"amount\", max = 100, per = \"1d\"", true), ("count = 9, per = \"1d\", by = \"group\"", false)]
    {
        let (governor, _) = with_limit(limit);
        let terms = serde_json::from_value(serde_json::json!({
            "agentId": "clerk", "capabilities": ["payment:transfer", "document:read"], "rules": ["money"],
            "until": "2027-01-16T00:00:00Z",
        }));
        let class =
            rulekeep::escalation::PreApproval::new(terms.unwrap(), rulekeep::system::Timestamp::from_millis(NOON))
                .unwrap();
        governor.escalations().pre_approve(class, by("ann")).unwrap();
        assert_eq!(governor.enforce(&payment(60)).unwrap().decision == Decision::Allow, counted, "{limit}");
        // It names no amount; and the clerk is in no group.
        let bare = Intent::new("clerk", "pay_invoice", RiskLevel::High, ["payment:transfer"]).unwrap();
        for _ in 0..2 {
            let (id, verdict) = ask(&governor, &bare);
            let refused = common::error(governor.escalations().approve(id, by("ann")));
            assert_eq!(refused.code(), "CONFLICT", "{limit}: {}", verdict.reasoning);
            assert!(refused.to_string().contains("it would grant nothing"), "{refused}");
        }
    }
}

#[test]
fn a_limit_that_asks_is_gone_beyond_by_what_it_cannot_count_too() {
    let (governor, _) =
        with_limit("sum = \"amount\", max = 100, per = \"1d\", over = \"escalate\", reviewer = \"ann\"");
    let bare = Intent::new("clerk", "pay_invoice", RiskLevel::High, ["payment:transfer"]).unwrap();
    let (id, _) = ask(&governor, &bare);
    governor.escalations().approve(id, by("ann")).unwrap();
}

#[test]
fn nothing_is_approved_nor_taken_up_behind_a_suspension() {
    let (governor, _) = governor();
    let (id, _) = ask(&governor, &payment(1));
    governor.escalations().approve(id, by("ann")).unwrap();
    governor.escalations().claim(id, &payment(1)).unwrap();
    for round in 0..20 {
        let asked: Vec<_> = (0..8).map(|amount| (ask(&governor, &payment(amount)).0, payment(amount))).collect();
        let start = Barrier::new(asked.len() + 1);
        thread::scope(|scope| {
            for (id, intent) in &asked {
                scope.spawn(|| {
                    start.wait();
                    let answered = governor.escalations().approve(*id, by("ann")).map(drop);
                    if let Err(error) = answered.and_then(|()| governor.escalations().claim(*id, intent).map(drop)) {
                        assert_eq!(error.code(), "CONFLICT", "{error}");
                    }
                });
            }
            start.wait();
            governor.agents().suspend("clerk", &format!("round {round}")).unwrap();
        });
        for (id, intent) in &asked {
            assert_eq!(code(governor.escalations().claim(*id, intent)), "CONFLICT");
        }
        governor.agents().resume("clerk", "").unwrap();
        for open in governor.escalations().pending().unwrap() {
            governor.report(&open.proof_id, Outcome::Escalated).unwrap();
        }
    }
    let mut export = Vec::new();
    governor.log().export(&ExportRange::all().with_entries(), &mut export, &mut |_, _| {}).unwrap();
    let (mut is_suspended, mut suspensions, mut granted, mut taken_up) = (false, 0, 0, 0);
    for line in String::from_utf8(export).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let body: Value =
            line["entry"]["body"].as_str().map_or(Value::Null, |body| serde_json::from_str(body).unwrap());
        if body["state"]["key"] == "agent/clerk" {
            let was_suspended = std::mem::replace(&mut is_suspended, body["state"]["value"]["state"] == "suspended");
            suspensions += u32::from(is_suspended && !was_suspended);
        }
        let is_granted = !line["record"]["resolves"].is_null() && line["record"]["decision"] == "ALLOW";
        let is_taken_up = body["cause"] == "claimed";
        assert!(!is_suspended || !is_granted && !is_taken_up, "{line} is behind a suspension");
        (granted, taken_up) = (granted + u32::from(is_granted), taken_up + u32::from(is_taken_up));
    }
    assert_eq!(suspensions, 20);
    assert!(granted > 0 && taken_up > 0 && taken_up <= granted, "{granted} {taken_up}");
}

#[test]
fn a_request_beyond_the_pending_ones_is_refused_for_a_limit() {
    let (governor, _) = governor();
    for amount in 0..100 {
        ask(&governor, &payment(amount));
    }
    let refused = governor.enforce(&payment(100)).unwrap();
    assert_eq!((refused.decision, refused.denial_class), (Decision::Deny, Some(DenialClass::Limit)));
    assert_eq!(refused.retryable, Some(true), "{}", refused.reasoning);
    let record = governor.query(&ProofQuery::entity("clerk")).unwrap().items.remove(0);
    assert_eq!(record.id, refused.proof_id);
}

#[test]
fn an_approval_is_not_claimed_outside_the_hours_of_its_rules() {
    let (governor, hand) = governor();
    let rule = "\n[[rule]]\nid = \"office-hours\"\neffect = \"deny\"\nmatch.capabilities = [\"payment:transfer\"]\n\
                when = \"now.getMinutes() >= 30\"\n";
    governor.policies().load(policies(&(POLICIES.to_owned() + rule))).unwrap();
    let (id, _) = ask(&governor, &payment(40));
    governor.escalations().approve(id, by("ann")).unwrap();
    hand.set(NOON + 31 * 60_000);
    let refused = error(governor.escalations().claim(id, &payment(40)));
    assert!(refused.code() == "CONFLICT" && refused.message().contains("would deny"), "{refused}");
    hand.set(NOON + 29 * 60_000);
    assert_eq!(governor.escalations().claim(id, &payment(40)).unwrap().decision, Decision::Allow);
}
