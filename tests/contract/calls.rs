//! Requests by the ids that their callers gave them.

use crate::common;

use common::{Hand, NOON, builder, code, error, intent};
use rulekeep::intent::Input;
use rulekeep::{Agent, Decision, Durability, Governor, Intent, Outcome, ProofQuery, Tier};
use serde_json::{Map, Value, json};

const DAY: i64 = 24 * 3_600_000;

fn context(call_id: &str) -> Map<String, Value> {
    Map::from_iter([("callId".to_owned(), json!(call_id))])
}

fn opened(clock: &Hand, folder: &std::path::Path) -> Governor {
    let governor = builder().clock(clock.clone()).durability(Durability::Buffered).open(folder).unwrap();
    for agent in ["a", "b"] {
        governor.agents().ensure(Agent::new(agent).at_tier(Tier::T4)).unwrap();
    }
    governor
}

fn built(call_id: &str) -> Intent {
    intent("a", &["document:read"]).with_context("callId", call_id)
}

#[test]
fn a_decision_and_its_outcome_are_found_by_the_callers_id() {
    let (clock, folder) = (Hand::at(NOON), tempfile::tempdir().unwrap());
    let governor = opened(&clock, folder.path());
    let read = context("call_1");
    let asked = governor.enforce_input("a", Input::new("Read the file notes.txt").context(&read)).unwrap();
    assert_eq!(asked.parse.intent.context["callId"], "call_1");
    let built = governor.enforce(&built("call_2")).unwrap();
    governor.enforce(&intent("a", &["document:read"])).unwrap();
    governor.close().unwrap();
    drop(governor);
    // Another process, later.
    let governor = opened(&clock, folder.path());
    for (call_id, proof_id) in [("call_1", asked.enforcement.proof_id), ("call_2", built.proof_id)] {
        let record = governor.log().record_of_call("a", call_id).unwrap();
        assert_eq!((record.id, record.decision), (proof_id, Decision::Allow));
        governor.report(&record.id, Outcome::Success).unwrap();
        let page = governor.query(&ProofQuery::entity("a").call(call_id)).unwrap();
        assert_eq!((page.total, page.items[0].outcome), (1, Some(Outcome::Success)));
        assert_eq!(governor.log().evidence(&proof_id).unwrap().intent["context"]["callId"], call_id);
    }
    assert_eq!(code(governor.log().record_of_call("a", "call_3")), "PROOF_NOT_FOUND");
    assert_eq!(code(governor.log().record_of_call("b", "call_1")), "PROOF_NOT_FOUND", "it is another agent's");
    for query in [ProofQuery::all().call("call_1"), ProofQuery::entity("a").call(" ")] {
        assert_eq!(code(governor.query(&query)), "INVALID_QUERY");
    }
}

#[test]
fn one_id_stands_for_one_request() {
    let (clock, folder) = (Hand::at(NOON), tempfile::tempdir().unwrap());
    let mut governor = opened(&clock, folder.path());
    let one = context("call_1");
    let ask = |governor: &Governor, text: &str| governor.enforce_input("a", Input::new(text).context(&one));
    let first = ask(&governor, "Pay 40 EUR for invoice 8812").unwrap().enforcement;
    for is_reopened in [false, true] {
        // The same again is decided again, by what holds now.
        let again = ask(&governor, "Pay 40 EUR for invoice 8812").unwrap().enforcement;
        assert_eq!(again.decision, first.decision);
        // Texts that are parsed to the same are two requests.
        for other in ["Pay 40 EUR for invoice 8813", "Pay 41 EUR for invoice 8812", "Read the file notes.txt"] {
            assert_eq!(code(ask(&governor, other)), "CONFLICT", "{other} {is_reopened}");
        }
        assert_eq!(code(governor.enforce(&built("call_1"))), "CONFLICT");
        let of_b = governor.enforce_input("b", Input::new("Read the file notes.txt").context(&one));
        assert!(of_b.is_ok(), "another agent's ids are its own");
        governor.close().unwrap();
        governor = opened(&clock, folder.path());
    }
    assert_eq!(governor.query(&ProofQuery::entity("a").call("call_1")).unwrap().total, 3);
    // After a restart the wrong one is refused each time it is asked, and does not take the id over.
    for _ in 0..2 {
        assert_eq!(code(ask(&governor, "Read the file notes.txt")), "CONFLICT");
    }
    assert!(ask(&governor, "Pay 40 EUR for invoice 8812").is_ok());
    // A day later nobody asks for it again.
    clock.set(NOON + DAY + 1);
    drop(governor);
    let governor = opened(&clock, folder.path());
    assert!(ask(&governor, "Read the file notes.txt").is_ok());
    assert!(governor.verify().unwrap().valid);
}

#[test]
fn of_two_requests_at_once_with_one_id_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let governor = opened(&Hand::at(NOON), folder.path());
    for round in 0..50 {
        let call_id = format!("call_{round}");
        let decided = std::thread::scope(|scope| {
            let ask = |text: &'static str| {
                let (governor, context) = (&governor, context(&call_id));
                scope.spawn(move || governor.enforce_input("a", Input::new(text).context(&context)).is_ok())
            };
            [ask("Read the file one.txt"), ask("Read the file two.txt")].map(|thread| thread.join().unwrap())
        });
        assert_eq!(decided.iter().filter(|is_decided| **is_decided).count(), 1);
    }
}

#[test]
fn an_id_that_is_none_or_comes_too_late_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let governor = opened(&Hand::at(NOON), folder.path());
    for wrong in [json!(7), json!(""), json!("a\nb"), json!("x".repeat(257)), json!(["a"])] {
        let asked = intent("a", &["document:read"]).with_context("callId", wrong.clone());
        assert_eq!(code(governor.enforce(&asked)), "INVALID_INTENT", "{wrong}");
    }
    let parsed = governor.parse("a", "Read the file notes.txt").unwrap().intent;
    let refused = error(governor.enforce(&parsed.with_context("callId", "call_1")));
    assert!(refused.to_string().contains("together with the parsed input"), "{refused}");
    let one = context("call_1");
    let parsed = governor.parse("a", Input::new("Read the file notes.txt").context(&one)).unwrap().intent;
    let later = governor.enforce(&parsed).unwrap();
    assert_eq!(governor.log().record_of_call("a", "call_1").unwrap().id, later.proof_id);
    let at_once = governor.enforce_input("a", Input::new("Read the file notes.txt").context(&one));
    assert!(at_once.is_ok(), "the two forms ask the same");
}
