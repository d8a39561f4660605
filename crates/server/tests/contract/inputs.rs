//! Invalid input over lines: the error names the field, and the governor's state is unchanged.

use serde_json::{Map, Value, json};

use crate::common::{call, in_memory, reading, refusal};

/// A context with this nesting depth; an empty object has depth one.
fn nested(levels: usize) -> Map<String, Value> {
    let Value::Object(context) = (1..levels).fold(json!({}), |inner, _| json!({ "k": inner })) else { unreachable!() };
    context
}

#[test]
fn a_too_deep_context_is_told_from_a_malformed_one_on_the_wire() {
    let governor = in_memory();
    for levels in [33, 63, 64, 100] {
        let mut intent = json!(reading("a"));
        intent["context"] = json!(nested(levels));
        let data = refusal(&governor, "enforce", &json!({ "intent": intent }));
        assert_eq!((&data["code"], &data["details"]["field"]), (&json!("INVALID_INTENT"), &json!("context")));
    }
}

#[test]
fn each_missing_field_of_an_intent_is_named() {
    let governor = in_memory();
    for field in ["agentId", "parsedAction", "riskLevel", "requiredCapabilities"] {
        let mut intent = json!({
            "agentId": "a", "parsedAction": "read_it", "riskLevel": "LOW", "requiredCapabilities": ["file:read"],
        });
        intent.as_object_mut().unwrap().remove(field);
        let data = refusal(&governor, "enforce", &json!({ "intent": intent }));
        let details = json!({ "field": field });
        assert_eq!((&data["code"], &data["details"]), (&json!("INVALID_INTENT"), &details));
    }
}

#[test]
fn each_malformed_field_of_an_intent_is_named() {
    let governor = in_memory();
    let many: Vec<String> = (0..65).map(|number| format!("own:word{number}")).collect();
    for (field, malformed) in [
        ("agentId", json!(" ")),
        ("parsedAction", json!("Read It")),
        ("riskLevel", json!("low")),
        ("riskLevel", json!(3)),
        ("requiredCapabilities", json!([])),
        ("requiredCapabilities", json!("file:read")),
        ("requiredCapabilities", json!(["file"])),
        ("requiredCapabilities", json!(["file:*"])),
        ("requiredCapabilities", json!(many)),
        ("context", json!("none")),
        ("id", json!("int_1")),
        ("timestamp", json!("2026-01-31")),
    ] {
        let mut intent = json!({
            "agentId": "a", "parsedAction": "read_it", "riskLevel": "LOW", "requiredCapabilities": ["file:read"],
        });
        intent[field] = malformed.clone();
        let data = refusal(&governor, "enforce", &json!({ "intent": intent }));
        let expected = (&json!("INVALID_INTENT"), &json!({ "field": field }));
        assert_eq!((&data["code"], &data["details"]), expected, "{field} = {malformed}");
    }
    assert_eq!(governor.status().metrics.proof_chain_length, 0);
}

#[test]
fn an_unlisted_word_is_named_with_what_was_expected() {
    let governor = in_memory();
    let answer = call(&governor, "proof/query", &json!({ "entityId": "a", "decision": "ALLOWED" }));
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("ALLOWED") && message.contains("DEGRADE"), "{message}");
    assert_eq!(answer["error"]["data"]["code"], "INVALID_QUERY");
}

#[test]
fn a_policy_file_that_does_not_load_leaves_the_old_set_in_force() {
    let governor = in_memory();
    let before = governor.policies().current().digest();
    let answer = refusal(&governor, "policy/load", &json!({ "text": "nmae = 1", "format": "toml" }));
    assert_eq!(answer["code"], "POLICY_ERROR");
    assert_eq!(governor.policies().current().digest(), before);
}

#[test]
fn a_level_that_is_none_is_not_quoted() {
    let params = json!({ "name": "x", "reason": "y", "riskLevel": "NONE ghp_abcdefghijklmnopqrstuvwxyzABCDEFGHIJ" });
    let data = refusal(&in_memory(), "catalogue/override", &params);
    assert!(!data.to_string().contains("ghp_"), "{data}");
}
