//! OpenID AuthZEN 1.0.

use rulekeep::{Durability, Governor, PolicySet};
use rulekeep_server::gateway::{KeyDraft, Plan, Scope};
use rulekeep_server::http::Server;
use serde_json::{Value, json};

use super::live::{Live, NOON, wide};
use crate::common::Hand;

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
    for (field, other, place) in [
        ("target", json!("43"), "resource.id"),
        ("subjectType", json!("user"), "subject.type"),
        ("resourceProperties", json!({ "owner": "eve" }), "resource.properties"),
    ] {
        let mut body = asked("document", "read");
        body["resource"]["properties"] = json!({ "owner": "ann" });
        body["context"] = json!({ field: other });
        let expected = format!("context: {field}: {place} contradicts context");
        assert_eq!(refusal(&live, &body), (400, expected));
        let own = match field {
            "target" => json!("42"),
            "subjectType" => json!("agent"),
            _ => json!({ "owner": "ann" }),
        };
        body["context"] = json!({ field: own });
        assert_eq!(live.post(PATH, &live.agent, &body).ok()["decision"], true, "{field}");
    }
    assert_eq!(live.records("a"), 3);
}

/// Allows everything that neither risk nor context speaks against.
const WATCHFUL: &str = r#"
name = "watchful"

[[rule]]
id = "small-things-are-fine"
effect = "allow"
match = { capabilities = ["*:*"], risk = { max = "MEDIUM" } }

[[rule]]
id = "large-things-need-a-person"
effect = "escalate"
reviewer = "ann"
match = { capabilities = ["*:*"], risk = { min = "HIGH" } }

[[rule]]
id = "restricted-things-need-a-person"
effect = "escalate"
reviewer = "ann"
match = { capabilities = ["*:*"], classification = ["RESTRICTED"] }

[[rule]]
id = "nothing-secret-is-touched"
effect = "deny"
match = { capabilities = ["*:*"], context = [{ key = "target", matches = "^secret/" }] }

[[rule]]
id = "nobody-writes-to-rivals"
effect = "deny"
match = { capabilities = ["*:*"], context = [{ key = "recipient", matches = "rival" }] }

[[rule]]
id = "guests-are-kept-out"
effect = "deny"
match = { capabilities = ["*:*"], context = [{ key = "subjectType", matches = "^guest$" }] }

[[rule]]
id = "what-is-held-stays"
effect = "deny"
match = { capabilities = ["*:*"] }
when = "has(context.resourceProperties) && has(context.resourceProperties.held) && context.resourceProperties.held == true"
"#;

fn watchful() -> Live {
    let policies = PolicySet::from_toml(WATCHFUL).unwrap();
    let clock = Hand::at(NOON);
    let builder = Governor::builder().policies(policies).clock(clock).durability(Durability::Buffered);
    Live::of(builder.open_in_memory().unwrap(), Server::new())
}

fn refusal(live: &Live, body: &Value) -> (u16, String) {
    let answer = live.post(PATH, &live.agent, body);
    let message = answer.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
    (answer.status, message)
}

fn decision(live: &Live, body: &Value) -> String {
    live.post(PATH, &live.agent, body).ok()["context"]["decision"].as_str().unwrap().to_owned()
}

/// The recorded context of a decision.
fn kept(live: &Live, body: &Value) -> Value {
    let answer = live.post(PATH, &live.agent, body).ok();
    let id = answer["context"]["proofId"].as_str().unwrap();
    let record = live.get(&format!("/v1/proof/records/{id}?evidence=true"), &live.agent).ok();
    record["evidence"]["intent"]["context"].clone()
}

#[test]
fn the_risk_that_a_context_claims_counts() {
    let live = watchful();
    let mut body = asked("document", "read");
    assert_eq!(decision(&live, &body), "ALLOW");
    for (claimed, expected) in [("LOW", "ALLOW"), ("MEDIUM", "ALLOW"), ("HIGH", "ESCALATE"), ("CRITICAL", "ESCALATE")] {
        body["context"] = json!({ "riskLevel": claimed });
        assert_eq!(decision(&live, &body), expected, "{claimed}");
    }
}

#[test]
fn policies_find_the_id_of_a_resource_as_the_target() {
    let live = watchful();
    let mut body = asked("document", "read");
    assert_eq!(kept(&live, &body)["target"], "42");
    body["resource"]["id"] = json!("secret/42");
    assert_eq!(decision(&live, &body), "DENY");
}

#[test]
fn policies_find_the_type_of_a_subject() {
    let live = watchful();
    let mut body = asked("document", "read");
    assert_eq!(kept(&live, &body)["subjectType"], "agent");
    body["subject"]["type"] = json!("guest");
    assert_eq!(decision(&live, &body), "DENY");
}

#[test]
fn an_attribute_counts_in_properties_as_it_does_in_the_context() {
    let live = watchful();
    for (resource, action, attributes, without, with) in [
        ("email", "send", json!({ "dataClassification": "RESTRICTED" }), "ALLOW", "ESCALATE"),
        ("email", "send", json!({ "recipient": "eve@rival.example" }), "ALLOW", "DENY"),
        ("order", "transfer", json!({ "amount": 50_000 }), "ALLOW", "ESCALATE"),
        ("order", "transfer", json!({ "amount": 50, "currency": "EUR" }), "ALLOW", "ALLOW"),
        ("config", "write", json!({ "environment": "production" }), "ALLOW", "ESCALATE"),
        ("customer", "read", json!({ "recordCount": 5000 }), "ALLOW", "ESCALATE"),
        ("document", "read", json!({ "riskLevel": "CRITICAL" }), "ALLOW", "ESCALATE"),
        ("document", "read", json!({ "target": "42", "requestedBy": "ann" }), "ALLOW", "ALLOW"),
    ] {
        let bare = asked(resource, action);
        assert_eq!(decision(&live, &bare), without, "{resource}:{action}");
        let mut said = bare.clone();
        said["context"] = attributes.clone();
        assert_eq!(decision(&live, &said), with, "{attributes} in the context");
        let top = kept(&live, &said);
        for (part, place) in [("resource", "resourceProperties"), ("action", "actionProperties")] {
            let mut body = bare.clone();
            body[part]["properties"] = attributes.clone();
            assert_eq!(decision(&live, &body), with, "{attributes} in {part}.properties");
            let mut expected = top.clone();
            expected[place] = attributes.clone();
            assert_eq!(kept(&live, &body), expected, "{attributes} in {part}.properties");
            // `null` counts as absent in both places.
            for name in attributes.as_object().unwrap().keys() {
                body["context"][name] = Value::Null;
            }
            assert_eq!(decision(&live, &body), with, "{attributes} in {part}.properties, null in the context");
        }
    }
    let mut body = asked("document", "read");
    body["resource"]["properties"] = json!({ "amount": null });
    body["context"] = json!({ "amount": 5 });
    assert_eq!(kept(&live, &body)["amount"], 5);
}

#[test]
fn an_unknown_part_of_an_evaluation_is_ignored() {
    let live = watchful();
    let mut body = asked("document", "read");
    body["foo"] = json!({ "bar": 1 });
    assert_eq!(decision(&live, &body), "ALLOW");
}

#[test]
fn an_unknown_property_stays_below_its_resource_for_conditions() {
    let live = watchful();
    let mut body = asked("document", "read");
    body["resource"]["properties"] = json!({ "held": false });
    let context = kept(&live, &body);
    assert_eq!((context.get("held"), &context["resourceProperties"]["held"]), (None, &json!(false)));
    assert_eq!(decision(&live, &body), "ALLOW");
    body["resource"]["properties"] = json!({ "held": true });
    assert_eq!(decision(&live, &body), "DENY");
}

#[test]
fn an_attribute_that_two_places_tell_differently_is_refused() {
    let live = watchful();
    for (name, one, other) in [
        ("amount", json!(50_000), json!(5)),
        ("currency", json!("EUR"), json!("USD")),
        ("dataClassification", json!("RESTRICTED"), json!("PUBLIC")),
        ("environment", json!("production"), json!("test")),
        ("recipient", json!("eve"), json!("ann")),
        ("recordCount", json!(5000), json!(5)),
        ("requestedBy", json!("eve"), json!("ann")),
        ("riskLevel", json!("CRITICAL"), json!("LOW")),
    ] {
        for (part, place) in [("resource", "resource.properties"), ("action", "action.properties")] {
            let mut body = asked("document", "read");
            body[part]["properties"] = json!({ name: one });
            body["context"] = json!({ name: other });
            let expected = format!("context: {name}: {place} contradicts context");
            assert_eq!(refusal(&live, &body), (400, expected));
        }
        let mut body = asked("document", "read");
        body["resource"]["properties"] = json!({ name: one });
        body["action"]["properties"] = json!({ name: other });
        let expected = format!("context: {name}: action.properties contradicts resource.properties");
        assert_eq!(refusal(&live, &body), (400, expected));
    }
    let mut body = asked("document", "read");
    body["action"]["properties"] = json!({ "target": "43" });
    let expected = "context: target: action.properties contradicts resource.id".to_owned();
    assert_eq!(refusal(&live, &body), (400, expected));
    body["action"]["properties"] = json!({ "riskLevel": "none" });
    let expected = "context: riskLevel: expected LOW, MEDIUM, HIGH or CRITICAL in action.properties".to_owned();
    assert_eq!(refusal(&live, &body), (400, expected));
    assert_eq!(live.records("a"), 0);
}

#[test]
fn an_array_is_no_part_of_an_evaluation() {
    let live = Live::new();
    for (part, array) in [
        ("subject", json!(["agent", "a", {}])),
        ("action", json!(["read", {}])),
        ("resource", json!(["document", "42", {}])),
    ] {
        let mut body = asked("document", "read");
        body[part] = array;
        assert_eq!(refusal(&live, &body), (400, format!("{part}: expected an object")));
    }
    assert_eq!(live.records("a"), 0);
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
fn a_batch_is_decided_in_order_with_the_shared_parts_filled_in() {
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
    let limited = live.key(KeyDraft::new(Scope::Agent, wide()).agent("a").built_intents());
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
