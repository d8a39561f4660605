//! Fields that belong together, as JSON Schema keywords.

use serde_json::{Map, Value, json};

/// The parameters of a call that belong together.
pub(super) fn of_call(method: &str) -> Value {
    let a_set = || json!({ "anyOf": [given(&["layers"]), given(&["text", "format"])] });
    match method {
        "access/evaluations" => {
            json!({ "anyOf": [given(&["evaluations"]), given(&["subject", "action", "resource"])] })
        }
        "agent/register" => json!({ "not": given(&["score", "tier"]) }),
        "catalogue/load" => {
            json!({ "anyOf": [given(&["tools"]), given(&["result"]), given(&["functionDeclarations"])] })
        }
        "checkpoint/prove" => {
            let one_of = |field| json!({ "oneOf": [given(&["proofId"]), given(&[field])] });
            json!({ "oneOf": one_of("fromSize")["oneOf"], "allOf": [one_of("toSize")] })
        }
        "key/create" => json!({ "not": {
            "required": ["agents"],
            "properties": { "scope": { "const": "admin" }, "agents": { "type": "array", "minItems": 1 } },
        } }),
        "outcome/report" => json!({ "oneOf": [
            { "required": ["proofId"], "not": { "anyOf": [{ "required": ["agentId"] }, { "required": ["callId"] }] } },
            { "required": ["agentId", "callId"], "not": { "required": ["proofId"] } },
        ] }),
        "policy/load" | "policy/replay" => a_set(),
        "policy/shadow" => json!({ "allOf": [{ "anyOf": [
            { "required": ["clear"], "properties": { "clear": { "const": true } } },
            given(&["layers"]),
            given(&["text", "format"]),
            { "not": { "anyOf": [given(&["layers"]), given(&["text"])] } },
        ] }] }),
        "proof/query" => json!({ "required": ["entityId"] }),
        "stop/set" => one_scope(),
        _ => Value::Null,
    }
}

/// The fields that belong together in a part of a request or response with this name.
pub(super) fn of_part(part: &str) -> Option<Value> {
    match part {
        "IntentForm" | "EnforceIntentForm" => Some(json!({ "not": given(&["input"]) })),
        "InputForm" | "EnforceInputForm" => Some(json!({ "not": given(&["intent"]) })),
        "PreApprovalForm" => Some(json!({ "oneOf": [given(&["agentId"]), given(&["group"])] })),
        "KillSwitchScope" => Some(one_scope()),
        _ => None,
    }
}

/// Requires exactly one of the scopes of a kill switch.
fn one_scope() -> Value {
    json!({ "oneOf": [
        given(&["agentId"]),
        given(&["group"]),
        { "required": ["all"], "properties": { "all": { "const": true } } },
    ] })
}

/// Requires all of the named fields.
fn given(names: &[&str]) -> Value {
    let properties: Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), json!({ "not": { "type": "null" } }))).collect();
    json!({ "required": names, "properties": properties })
}
