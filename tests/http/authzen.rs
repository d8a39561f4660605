//! OpenID AuthZEN 1.0.

use rulekeep::gateway::{KeyDraft, Plan, Scope};
use serde_json::{Value, json};

use crate::live::{Live, wide};

const PATH: &str = "/access/v1/evaluation";

fn asked(resource: &str, action: &str) -> Value {
    json!({
        "subject": { "type": "agent", "id": "a" },
        "action": { "name": action },
        "resource": { "type": resource, "id": "42" },
    })
}

#[test]
fn an_evaluation_is_a_decision_and_only_allow_is_a_yes() {
    let live = Live::new();
    for (place, (resource, action, yes, decision)) in [
        ("document", "read", true, "ALLOW"),
        ("Document", "READ", true, "ALLOW"),
        ("file", "delete", false, "DENY"),
        ("email", "send", false, "ESCALATE"),
        ("database", "write", false, "DENY"),
    ]
    .into_iter()
    .enumerate()
    {
        let answer = live.post(PATH, &live.agent, &asked(resource, action)).ok();
        assert_eq!(answer["decision"], yes, "{resource}:{action}: {answer}");
        if decision != "DENY" {
            assert_eq!(answer["context"]["decision"], decision);
        }
        let id = answer["context"]["proofId"].as_str().unwrap();
        let record = live.get(&format!("/v1/proof/records/{id}?evidence=true"), &live.agent).ok();
        assert_eq!((&record["entityId"], &record["decision"]), (&json!("a"), &answer["context"]["decision"]));
        assert_eq!(live.records("a"), place as u64 + 1);
    }
}

#[test]
fn a_context_does_not_hide_what_is_asked_for() {
    let live = Live::new();
    for (field, other) in [("target", json!("43")), ("resourceProperties", json!({ "owner": "eve" }))] {
        let mut body = asked("document", "read");
        body["resource"]["properties"] = json!({ "owner": "ann" });
        body["context"] = json!({ field: other });
        assert_eq!(live.post(PATH, &live.agent, &body).refusal(), (400, "INVALID_INPUT".into()), "{field}");
        let own = if field == "target" { json!("42") } else { json!({ "owner": "ann" }) };
        body["context"] = json!({ field: own });
        assert_eq!(live.post(PATH, &live.agent, &body).ok()["decision"], true, "{field}");
    }
    assert_eq!(live.records("a"), 2);
}

#[test]
fn an_evaluation_that_is_none_is_refused() {
    let live = Live::new();
    for wrong in [json!({ "id": "a" }), json!({ "id": "a", "type": 5 })] {
        let mut body = asked("document", "read");
        body["subject"] = wrong;
        assert_eq!(live.post(PATH, &live.agent, &body).refusal().0, 400);
    }
    for part in ["subject", "action", "resource"] {
        for value in [Value::Null, json!("x"), json!({}), json!([])] {
            let mut body = asked("document", "read");
            body[part] = value.clone();
            assert_eq!(live.post(PATH, &live.agent, &body).refusal().0, 400, "{part}: {value}");
        }
    }
    let mut body = asked("document", "read");
    body["context"] = json!({ "riskLevel": "none" });
    assert_eq!(live.post(PATH, &live.agent, &body).refusal().0, 400);
    body["context"] = json!("text");
    assert_eq!(live.post(PATH, &live.agent, &body).refusal().0, 400);
    let mut nobody = asked("document", "read");
    nobody["subject"]["id"] = json!("nobody");
    assert_eq!(live.post(PATH, &live.agent, &nobody).refusal(), (404, "AGENT_NOT_FOUND".into()));
    for wrong in ["", "ü", "a:b", "*"] {
        assert_eq!(live.post(PATH, &live.agent, &asked("document", wrong)).refusal().0, 400, "{wrong:?}");
    }
    assert_eq!(live.post(PATH, "x", &asked("document", "read")).refusal().0, 401);
    assert_eq!(live.records("a"), 0);
}

const SEVERAL: &str = "/access/v1/evaluations";

fn decisions(answer: &Value) -> Vec<bool> {
    answer["evaluations"].as_array().unwrap().iter().map(|one| one["decision"].as_bool().unwrap()).collect()
}

#[test]
fn several_are_decided_in_order_each_with_what_it_leaves_out_from_beside() {
    let live = Live::new();
    let mut body = asked("document", "read");
    body["evaluations"] = json!([
        {},
        { "resource": { "type": "file", "id": "7" }, "action": { "name": "delete" } },
        { "subject": { "type": "agent", "id": "b" }, "context": { "riskLevel": "MEDIUM" } },
    ]);
    let answer = live.post(SEVERAL, &live.agent, &body).ok();
    assert_eq!(decisions(&answer), [true, false, true]);
    assert_eq!((live.records("a"), live.records("b")), (2, 1));
    for one in answer["evaluations"].as_array().unwrap() {
        let id = one["context"]["proofId"].as_str().unwrap();
        let record = live.get(&format!("/v1/proof/records/{id}"), &live.agent).ok();
        assert_eq!(record["decision"], one["context"]["decision"]);
    }
}

#[test]
fn several_end_where_it_is_asked() {
    let live = Live::new();
    let (yes, no) = (json!({}), json!({ "action": { "name": "delete" } }));
    let mut body = asked("file", "read");
    for (semantic, evaluations, expected) in [
        ("execute_all", [&yes, &no, &yes], &[true, false, true][..]),
        ("deny_on_first_deny", [&yes, &no, &yes], &[true, false]),
        ("permit_on_first_permit", [&no, &yes, &no], &[false, true]),
    ] {
        let before = live.records("a");
        body["evaluations"] = json!(evaluations);
        body["options"] = json!({ "evaluations_semantic": semantic });
        assert_eq!(decisions(&live.post(SEVERAL, &live.agent, &body).ok()), expected, "{semantic}");
        assert_eq!(live.records("a") - before, expected.len() as u64, "{semantic}: what was not answered was decided");
    }
    body["options"] = json!({ "evaluations_semantic": "any" });
    assert_eq!(live.post(SEVERAL, &live.agent, &body).refusal().0, 400);
}

#[test]
fn one_of_several_that_is_none_is_refused_alone() {
    let live = Live::new();
    let limited = live.key(KeyDraft::new(Scope::Agent, wide()).agent("a"));
    let mut body = asked("document", "read");
    body["evaluations"] = json!([
        { "subject": { "type": "agent", "id": "b" } },
        { "action": "read" },
        7,
        { "context": { "riskLevel": "none" } },
        {},
    ]);
    let answer = live.post(SEVERAL, limited.key.expose(), &body).ok();
    let fault = |place: usize| &answer["evaluations"][place]["context"]["error"];
    assert_eq!(decisions(&answer), [false, false, false, false, true]);
    assert_eq!((&fault(0)["status"], &fault(0)["code"]), (&json!(403), &json!("FORBIDDEN")));
    for place in 1..4 {
        assert_eq!(fault(place)["status"], 400, "{answer}");
    }
    assert_eq!((live.records("a"), live.records("b")), (1, 0));
    body["subject"]["id"] = json!("nobody");
    body["evaluations"] = json!([{}]);
    let answer = live.post(SEVERAL, &live.agent, &body).ok();
    assert_eq!(answer["evaluations"][0]["context"]["error"]["code"], "AGENT_NOT_FOUND");
}

#[test]
fn none_of_several_is_a_single_one_and_too_many_are_refused() {
    let live = Live::new();
    let mut body = asked("document", "read");
    assert_eq!(live.post(SEVERAL, &live.agent, &body).ok()["decision"], true);
    body["evaluations"] = json!([]);
    assert_eq!(live.post(SEVERAL, &live.agent, &body).ok()["decision"], true);
    for wrong in [json!({}), json!("x"), json!(vec![json!({}); 101])] {
        body["evaluations"] = wrong;
        assert_eq!(live.post(SEVERAL, &live.agent, &body).refusal(), (400, "INVALID_INPUT".into()));
    }
    assert_eq!(live.records("a"), 2);
}

#[test]
fn each_of_several_takes_room_in_the_plan() {
    let live = Live::new();
    let key = live.key(KeyDraft::new(Scope::Agent, Plan::enterprise(1, 5).unwrap()));
    let mut body = asked("document", "read");
    body["evaluations"] = json!(vec![json!({}); 7]);
    let answer = live.post(SEVERAL, key.key.expose(), &body).ok();
    assert_eq!(decisions(&answer), [true, true, true, true, true, false, false]);
    assert_eq!(answer["evaluations"][5]["context"]["error"]["status"], 429);
    assert_eq!(live.records("a"), 5);
    assert_eq!(live.post(SEVERAL, key.key.expose(), &body).refusal().0, 429);
}
