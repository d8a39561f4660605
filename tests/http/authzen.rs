//! OpenID AuthZEN 1.0.

use serde_json::{Value, json};

use crate::live::Live;

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
fn an_evaluation_that_is_none_is_refused() {
    let live = Live::new();
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
