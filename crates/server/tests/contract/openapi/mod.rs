//! The OpenAPI document describes what the server does at every path.

mod live;
mod shapes;
mod walk;

use crate::common::{self, Served, builder};
use live::{Asked, Live};
use serde_json::{Value, json};

#[test]
fn every_reference_leads_somewhere_and_nothing_stands_unused() {
    let live = Live::new(&common::in_memory());
    let text = live.document.to_string();
    for kind in ["schemas", "responses", "parameters", "headers"] {
        for (name, _) in live.document["components"][kind].as_object().unwrap() {
            let reference = format!("\"#/components/{kind}/{name}\"");
            assert!(text.contains(&reference), "{name} is used by nothing");
        }
    }
    for part in text.split("\"#/").skip(1) {
        let place = part.split('"').next().unwrap();
        assert!(live.document.pointer(&format!("/{place}")).is_some(), "{place} is not there");
    }
}

#[test]
fn no_path_but_the_document_answers_without_a_key() {
    let mut live = Live::new(&common::in_memory());
    for operation in live.operations() {
        for key in [None, Some("rkp_admin_no")] {
            let path = [("agentId", "a"), ("proofId", "p"), ("id", "i")];
            let (status, answer) =
                live.check(&Asked { operation: &operation, path: &path, query: "", body: None, key, headers: &[] });
            // A caller with too many rejected keys has to wait.
            assert!(matches!(status, 401 | 429), "{operation}: {status} {answer}");
        }
    }
}

#[test]
fn every_refusal_is_as_it_is_described() {
    let governor = Served::new(&builder().open_in_memory().unwrap());
    let mut live = Live::new(&governor);
    let admin = live.admin.clone();
    let key = |live: &mut Live, body: Value| live.ask("key_create", &[], "", body)["key"].as_str().unwrap().to_owned();
    let agents = key(&mut live, json!({ "scope": "agent", "plan": "free", "agents": ["a"] }));
    let asked = |operation, body, key| Asked { operation, path: &[], query: "", body, key, headers: &[] };
    let parse = || Some(json!({ "agentId": "a", "input": "read the file notes.txt" }));
    let mut status = |asked: &Asked<'_>| live.check(asked).0;
    assert_eq!(status(&asked("intent", None, None)), 401);
    assert_eq!(status(&asked("intent", None, Some("rkp_agent_no"))), 401);
    assert_eq!(status(&asked("intent", parse(), Some(&admin))), 404);
    assert_eq!(status(&asked("intent", Some(json!({ "agentId": "a" })), Some(&admin))), 400);
    assert_eq!(status(&asked("enforce", Some(json!({})), Some(&admin))), 400);
    assert_eq!(status(&asked("enforce", parse(), Some(&admin))), 404);
    assert_eq!(status(&asked("proof_query", None, Some(&admin))), 400);
    assert_eq!(status(&asked("admin_status", None, Some(&agents))), 403);
    let other = Some(json!({ "agentId": "b", "input": "read the file notes.txt" }));
    assert_eq!(status(&asked("intent", other, Some(&agents))), 403);
    let text = [("Content-Type", "text/plain")];
    assert_eq!(status(&Asked { headers: &text, ..asked("intent", parse(), Some(&admin)) }), 415);
    let document = Some(json!({ "text": "name = 3", "format": "toml" }));
    assert_eq!(status(&asked("policy_load", document, Some(&admin))), 422);
    let idempotent = [("Idempotency-Key", "one")];
    let register = |agent: &str| Some(json!({ "agentId": agent }));
    for (agent, expected) in [("a", 200), ("a", 200), ("b", 409)] {
        let again = Asked { headers: &idempotent, ..asked("agent_register", register(agent), Some(&admin)) };
        assert_eq!(status(&again), expected, "{agent}");
    }
    let large = || Some(json!({ "agentId": "a", "input": "x".repeat(64 * 1024 + 1) }));
    assert_eq!(status(&asked("intent", large(), Some(&admin))), 413);
    let problem = [("Accept", "application/problem+json")];
    for (operation, body, key, expected) in [
        ("intent", None, None, 401),
        ("enforce", Some(json!({})), Some(&*admin), 400),
        ("admin_status", None, Some(&*agents), 403),
        ("policy_load", Some(json!({ "text": "name = 3", "format": "toml" })), Some(&*admin), 422),
    ] {
        assert_eq!(status(&Asked { headers: &problem, ..asked(operation, body, key) }), expected, "{operation}");
    }
    let statuses: Vec<u16> = (0..12).map(|_| status(&asked("intent", parse(), Some(&agents)))).collect();
    assert!(statuses.contains(&429), "{statuses:?}");
}
