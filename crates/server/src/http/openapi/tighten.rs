//! What the builders cannot say: which fields go together, that an absent field of an answer is not `null`, and that
//! nobody writes `null` into a query. And descriptions as people read them who do not write Rust.

use serde_json::{Map, Value, json};

use super::calls::Shape;

/// Bodies of which nothing has to be there.
const MAY_BE_EMPTY: &[&str] = &["WaitBody", "NoteBody", "RotateBody", "ShadowBody", "AgentChangeBody"];

/// Whether a body need not come at all.
pub(super) fn may_be_empty(body: Shape) -> bool {
    MAY_BE_EMPTY.contains(&&*(body.name)())
}

/// Says the rest.
pub(super) fn tighten(document: &mut Value) {
    plain(document);
    let schemas = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut);
    for (name, schema) in schemas.into_iter().flatten() {
        if let (Some(more), Value::Object(schema)) = (together(name), &mut *schema) {
            schema.extend(more);
        }
        if let (Some(keyword), Value::Object(schema)) = (closed(name), &mut *schema) {
            schema.insert(keyword.to_owned(), Value::Bool(false));
        }
        if let (true, Value::Object(schema)) = (name == "PreApprovalTerms", &mut *schema) {
            // They stand beside a person's word, which are other fields.
            schema.remove("additionalProperties");
        }
        if !is_of_requests(name) || has_no_null(name) {
            without_null(schema);
        }
    }
    let paths = document.get_mut("paths").and_then(Value::as_object_mut);
    let operations = paths.into_iter().flatten().filter_map(|(_, path)| path.as_object_mut()).flatten();
    for (_, operation) in operations {
        for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(schema) = parameter.get_mut("schema") {
                not_null(schema);
            }
        }
    }
}

/// Bodies of which an unknown field is refused, and what says so: other keywords do not see the fields of parts.
fn closed(name: &str) -> Option<&'static str> {
    match name {
        "ReviewBody" | "KeyBody" | "EndpointBody" => Some("additionalProperties"),
        "PreApprovalForm" | "KnownForm" | "AgentBody" | "AgentChangeBody" => Some("unevaluatedProperties"),
        _ => None,
    }
}

/// Bodies of requests in which `null` is refused.
fn has_no_null(name: &str) -> bool {
    matches!(name, "ReviewBody" | "KeyBody" | "EndpointBody")
}

/// Of each description the first paragraph, in one line and without links.
fn plain(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(text)) = fields.get_mut("description") {
                let first = text.split("\n\n").next().unwrap_or_default();
                *text = first.replace('\n', " ").replace("[`", "`").replace("`]", "`");
            }
            fields.values_mut().for_each(plain);
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        _ => {}
    }
}

fn is_of_requests(name: &str) -> bool {
    ["Body", "Form"].iter().any(|end| name.ends_with(end)) && name != "ErrorBody"
        || name.starts_with("Evaluation")
        || matches!(name, "PreApprovalTerms" | "Intent" | "Context")
}

/// Which fields go together.
fn together(name: &str) -> Option<Map<String, Value>> {
    let given = |fields: &[&str]| {
        let properties: Map<String, Value> =
            fields.iter().map(|field| ((*field).to_owned(), json!({ "not": { "type": "null" } }))).collect();
        json!({ "required": fields, "properties": properties })
    };
    let text_alone = json!({ "not": given(&["layers"]) });
    let more = match name {
        "AgentBody" => json!({ "not": given(&["score", "tier"]) }),
        "IntentForm" => json!({ "not": given(&["input"]) }),
        "InputForm" => json!({ "not": given(&["intent"]) }),
        "StopBody" | "StopScope" => json!({ "oneOf": [
            given(&["agentId"]),
            given(&["group"]),
            { "required": ["all"], "properties": { "all": { "const": true } } },
        ] }),
        "ProveBody" => json!({ "oneOf": [given(&["proofId"]), given(&["fromSize"])], "allOf": [
            { "oneOf": [given(&["proofId"]), given(&["toSize"])] },
        ] }),
        "KeyBody" => json!({ "not": {
            "required": ["agents"],
            "properties": { "scope": { "const": "admin" }, "agents": { "type": "array", "minItems": 1 } },
        } }),
        "PoliciesBody" => json!({ "anyOf": [given(&["layers"]), given(&["text", "format"])] }),
        "ToolsBody" => json!({ "anyOf": [given(&["tools"]), given(&["result"]), given(&["functionDeclarations"])] }),
        "ShadowBody" => json!({ "anyOf": [
            { "required": ["clear"], "properties": { "clear": { "const": true } } },
            given(&["layers"]),
            given(&["text", "format"]),
            { "allOf": [text_alone, { "not": given(&["text"]) }] },
        ] }),
        "PreApprovalForm" => json!({ "oneOf": [given(&["agentId"]), given(&["group"])] }),
        _ => return None,
    };
    more.as_object().cloned()
}

/// What an answer does not have to say is left out, and not `null`: but for what is erased.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let required: Vec<Value> = fields.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
            for (name, property) in fields.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
                if !required.iter().any(|known| known == name) && name != "evidence" {
                    not_null(property);
                }
            }
            for part in ["allOf", "oneOf", "anyOf"] {
                fields.get_mut(part).into_iter().for_each(without_null);
            }
        }
        Value::Array(parts) => parts.iter_mut().for_each(without_null),
        _ => {}
    }
}

/// The same schema without `null`.
fn not_null(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    if let Some(Value::Array(types)) = fields.get_mut("type") {
        types.retain(|known| known != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            fields.insert("type".to_owned(), only);
        }
    }
    let Some(Value::Array(choices)) = fields.get_mut("oneOf") else { return };
    choices.retain(|choice| choice.get("type").is_none_or(|known| known != "null"));
    if let [Value::Object(only)] = choices.as_slice() {
        let only = only.clone();
        fields.remove("oneOf");
        fields.extend(only);
    }
}
