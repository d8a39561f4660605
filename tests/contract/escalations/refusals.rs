//! Each way to have more granted than was asked for, or by somebody else, is refused.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rulekeep::escalation::EscalationState;
use rulekeep::proof::{Digest, EvidenceSelection};
use rulekeep::{Decision, Outcome, ProofQuery};
use serde_json::json;

use super::*;

#[test]
fn only_who_is_asked_answers_and_never_who_asks() {
    let (governor, _) = governor();
    let (id, _) = ask(&governor, &payment(40).with_context("requestedBy", "Ann"));
    for reviewer in ["mallory", "finance", "clerk", "CLERK", "ann", " Ａnn"] {
        assert_eq!(code(governor.escalations().approve(id, by(reviewer))), "FORBIDDEN", "{reviewer}");
        assert_eq!(code(governor.escalations().reject(id, by(reviewer))), "FORBIDDEN", "{reviewer}");
    }
    let said = error(governor.escalations().approve(id, by("mallory"))).to_string();
    assert!(said.ends_with("one of \"ann\", \"bob\", \"Cleo\" can answer it"), "{said}");
    let unknown =
        error(governor.escalations().get(EscalationId::of("prf_01kf7xqzzz0000000000000000".parse().unwrap())));
    assert_eq!(unknown.code(), "PROOF_NOT_FOUND");
    assert!(unknown.to_string().starts_with("no escalation esc_"), "{unknown}");
    for reviewer in ["", "  ", "a\nb", &"x".repeat(257)] {
        assert_eq!(code(governor.escalations().approve(id, by(reviewer))), "INVALID_INPUT", "{reviewer:?}");
    }
    let long = "x".repeat(4097);
    assert_eq!(code(governor.escalations().approve(id, by("bob").note(long))), "INVALID_INPUT");
    assert_eq!(governor.escalations().get(id).unwrap().votes, []);
    assert!(governor.escalations().approve(id, by("bob")).is_ok());
}

#[test]
fn who_asks_is_known_in_whatever_form_the_context_names_them() {
    let (governor, _) = governor();
    for named in [json!(["eve", "ANN"]), json!("\u{410}nn"), json!("a\u{200b}nn"), json!([" ann "])] {
        let (id, _) = ask(&governor, &payment(40).with_context("requestedBy", named.clone()));
        assert_eq!(code(governor.escalations().approve(id, by("ann"))), "FORBIDDEN", "{named}");
        assert!(governor.escalations().approve(id, by("bob")).is_ok(), "{named}");
    }
    for unread in [json!({ "name": "ann" }), json!(["ann", 7]), json!(true)] {
        let refused = error(governor.enforce(&payment(40).with_context("requestedBy", unread)));
        assert_eq!(refused.code(), "INVALID_INTENT");
        assert!(refused.to_string().contains("requestedBy: expected a name or a list of names"), "{refused}");
    }
}

#[test]
fn an_approval_is_for_exactly_what_was_asked() {
    let (governor, _) = governor();
    let (id, _) = ask(&governor, &payment(40));
    governor.escalations().approve(id, by("ann")).unwrap();
    let mut other_risk = payment(40);
    other_risk.risk_level = RiskLevel::Critical;
    let mut other_agent = payment(40);
    other_agent.agent_id = "other".parse().unwrap();
    let mut more = payment(40);
    more.required_capabilities.push("document:read".parse().unwrap());
    let others = [
        payment(41),
        payment(40).with_context("amount", 40.5),
        payment(40).with_context("amount", "40"),
        payment(40).with_context("to", "elsewhere"),
        Intent::new("clerk", "pay_invoice", RiskLevel::High, ["payment:transfer"]).unwrap(),
        other_risk,
        other_agent,
        more,
    ];
    for other in &others {
        assert_eq!(code(governor.escalations().claim(id, other)), "CONFLICT", "{other:?}");
    }
    assert!(governor.escalations().claim(id, &payment(40)).is_ok());
}

/// JavaScript reads 40.0 and writes 40.
#[test]
fn a_number_is_the_same_however_a_client_writes_it() {
    let (governor, _) = governor();
    let (id, _) = ask(&governor, &payment(40).with_context("amount", 40.0));
    governor.escalations().approve(id, by("ann")).unwrap();
    assert!(governor.escalations().claim(id, &payment(40)).is_ok());
}

#[test]
fn secrets_are_bound_too_and_shown_to_nobody() {
    let (governor, _) = governor();
    let with = |key: &str| payment(40).with_context("apiKey", key);
    let (id, _) = ask(&governor, &with("sk-live-0123456789abcdef0123456789abcdef"));
    let shown = serde_json::to_string(&governor.escalations().get(id).unwrap()).unwrap();
    assert!(!shown.contains("0123456789abcdef"), "{shown}");
    governor.escalations().approve(id, by("ann")).unwrap();
    let other = with("sk-live-ffffffffffffffffffffffffffffffff");
    assert_eq!(code(governor.escalations().claim(id, &other)), "CONFLICT");
    assert!(governor.escalations().claim(id, &with("sk-live-0123456789abcdef0123456789abcdef")).is_ok());
}

#[test]
fn a_reviewer_answers_what_they_were_shown() {
    let (governor, _) = governor();
    let (id, _) = ask(&governor, &payment(40));
    let digest = governor.escalations().get(id).unwrap().digest;
    assert_eq!(code(governor.escalations().approve(id, by("ann").of(Digest::ZERO))), "CONFLICT");
    assert!(governor.escalations().approve(id, by("ann").of(digest)).is_ok());
}

#[test]
fn under_other_policies_nothing_is_approved_or_taken_up() {
    let (governor, _) = governor();
    let (waits, _) = ask(&governor, &payment(40));
    let (approved, _) = ask(&governor, &payment(41));
    governor.escalations().approve(approved, by("ann")).unwrap();
    let (taken_up, _) = ask(&governor, &payment(42));
    governor.escalations().approve(taken_up, by("ann")).unwrap();
    governor.escalations().claim(taken_up, &payment(42)).unwrap();
    assert_eq!(governor.escalations().left_behind(), 0);
    governor.policies().load(policies(&POLICIES.replace("\"bob\", ", ""))).unwrap();
    assert_eq!(governor.escalations().left_behind(), 2);
    for (refused, way_on) in [
        (error(governor.escalations().approve(waits, by("ann"))), "reject it"),
        (error(governor.escalations().claim(approved, &payment(41))), "let it expire"),
    ] {
        let said = refused.to_string();
        assert_eq!(refused.code(), "CONFLICT");
        assert!(said.contains("differ from those it was escalated under") && said.contains(way_on), "{said}");
        assert!(said.contains("load those") && !said.contains("any more"), "{said}");
    }
    governor.policies().load(policies(POLICIES)).unwrap();
    assert_eq!(governor.escalations().left_behind(), 0);
    assert!(governor.escalations().approve(waits, by("ann")).is_ok());
    assert!(governor.escalations().claim(approved, &payment(41)).is_ok());
}

#[test]
fn an_agent_that_may_not_act_is_granted_nothing() {
    let (governor, _) = governor();
    let (waits, _) = ask(&governor, &payment(40));
    let (approved, _) = ask(&governor, &payment(41));
    governor.escalations().approve(approved, by("ann")).unwrap();
    governor.agents().suspend("clerk", "looked at").unwrap();
    assert_eq!(code(governor.escalations().approve(waits, by("ann"))), "CONFLICT");
    assert_eq!(code(governor.escalations().claim(approved, &payment(41))), "CONFLICT");
}

#[test]
fn trust_that_fell_into_a_denial_is_not_approved_over() {
    let (governor, _) = governor();
    let (id, _) = ask(&governor, &payment(40));
    for _ in 0..3 {
        let (_, other) = ask(&governor, &payment(1));
        governor.report(&other.proof_id, Outcome::Failure).unwrap();
    }
    let critical = payment(10_000_000);
    let (_, other) = ask(&governor, &critical);
    governor.report(&other.proof_id, Outcome::Failure).unwrap();
    assert!(governor.agents().get("clerk").unwrap().trust.tier <= Tier::T1);
    assert_eq!(code(governor.escalations().approve(id, by("ann"))), "CONFLICT");
    assert!(governor.escalations().reject(id, by("ann")).is_ok());
}

#[test]
fn of_many_who_take_it_up_one_has_it() {
    let (governor, _) = governor();
    let (id, _) = ask(&governor, &payment(40));
    governor.escalations().approve(id, by("ann")).unwrap();
    let granted = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| match governor.escalations().claim(id, &payment(40)) {
                Ok(_) => drop(granted.fetch_add(1, Ordering::Relaxed)),
                Err(error) => assert_eq!(error.code(), "CONFLICT"),
            });
        }
    });
    assert_eq!(granted.into_inner(), 1);
}

#[test]
fn of_many_who_answer_one_is_first() {
    let (governor, _) = governor();
    for _ in 0..10 {
        let (id, verdict) = ask(&governor, &payment(40));
        thread::scope(|scope| {
            for place in 0..8 {
                let governor = &governor;
                scope.spawn(move || {
                    let answer = if place % 2 == 0 {
                        governor.escalations().approve(id, by("ann"))
                    } else {
                        governor.escalations().reject(id, by("bob"))
                    };
                    assert!(answer.is_ok() || code(answer) == "CONFLICT");
                });
            }
        });
        let answers = governor.query(&ProofQuery::entity("clerk").page_size(200)).unwrap().items;
        assert_eq!(answers.iter().filter(|record| record.resolves == Some(verdict.proof_id)).count(), 1);
        let state = governor.escalations().get(id).unwrap().state;
        let granted = answers
            .iter()
            .any(|record| record.resolves == Some(verdict.proof_id) && record.decision == Decision::Allow);
        assert_eq!(granted, state == EscalationState::Approved);
    }
}

#[test]
fn what_waits_keeps_its_evidence_until_it_is_answered() {
    let (governor, _) = governor();
    let (id, verdict) = ask(&governor, &payment(40));
    let selections =
        [EvidenceSelection::Records(vec![verdict.proof_id]), EvidenceSelection::Agent("clerk".parse().unwrap())];
    for selection in &selections {
        assert_eq!(code(governor.log().erase_evidence(selection, "asked for")), "CONFLICT");
    }
    governor.escalations().reject(id, by("ann")).unwrap();
    assert_eq!(governor.log().erase_evidence(&selections[0], "asked for").unwrap(), 1);
    assert_eq!(governor.escalations().get(id).unwrap().intent, None);
}

#[test]
fn what_is_not_there_is_not_found() {
    let (governor, _) = governor();
    let allowed = governor.enforce(&common::reading("clerk")).unwrap();
    let id = EscalationId::of(allowed.proof_id);
    assert_eq!(code(governor.escalations().get(id)), "PROOF_NOT_FOUND");
    assert_eq!(code(governor.escalations().approve(id, by("ann"))), "PROOF_NOT_FOUND");
    assert_eq!(code(governor.escalations().claim(id, &payment(40))), "PROOF_NOT_FOUND");
}
