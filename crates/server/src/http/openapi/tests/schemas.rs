//! The schemas of the OpenAPI document, completed by what derived schemas cannot express: fields that belong
//! together, and response fields that are absent rather than `null`. Also shortens descriptions for readers who do
//! not write Rust.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::together;
use crate::calls::{Entry, Shape, Spec};

/// The schemas by name.
#[derive(Default)]
pub(super) struct Schemas {
    named: Map<String, Value>,
    /// The request schemas in which `null` is refused.
    without_null: BTreeSet<String>,
}

/// The fields of a request.
pub(super) struct Request(Map<String, Value>);

impl Schemas {
    /// Adds a type with the types it consists of. Returns its name.
    pub(super) fn add(&mut self, shape: Shape) -> String {
        let name = (shape.name)().into_owned();
        self.named.insert(name.clone(), json!((shape.schema)()));
        self.add_parts(shape);
        name
    }

    fn add_parts(&mut self, shape: Shape) {
        let mut parts = Vec::new();
        (shape.parts)(&mut parts);
        self.named.extend(parts.into_iter().map(|(name, schema)| (name, json!(schema))));
    }

    /// The parameters of a call, including those of its path.
    pub(super) fn request(&mut self, entry: &Entry) -> Request {
        self.add_parts(entry.request);
        let Value::Object(mut schema) = json!((entry.request.schema)()) else { return Request(Map::new()) };
        if let Value::Object(more) = together::of_call(entry.spec.method) {
            schema.extend(more);
        }
        Request(schema)
    }

    /// Adds the body of a call. Returns its name.
    pub(super) fn add_request(&mut self, spec: &Spec, request: Request) -> String {
        let words = spec.method.split('/').flat_map(|word| {
            let (first, rest) = word.split_at(1);
            [first.to_ascii_uppercase(), rest.to_owned()]
        });
        let name = words.chain(["Request".to_owned()]).collect::<String>();
        if spec.refuses_null {
            self.without_null.insert(name.clone());
        }
        self.named.insert(name.clone(), Value::Object(request.0));
        name
    }

    /// All schemas, with the final adjustments.
    pub(super) fn finished(mut self) -> Value {
        for (name, schema) in &mut self.named {
            plain(schema);
            let Value::Object(fields) = schema else { continue };
            if let Some(Value::Object(more)) = together::of_part(name) {
                fields.extend(more);
            }
            match name.as_str() {
                // The keyword that refuses unknown fields elsewhere does not see the fields of included parts.
                "PreApprovalForm" | "KnownForm" => _ = fields.insert("unevaluatedProperties".to_owned(), json!(false)),
                // They are combined with the fields of a person's statement.
                "PreApprovalTerms" => _ = fields.remove("additionalProperties"),
                _ => {}
            }
            if !is_of_requests(name) || self.without_null.contains(name) {
                without_null(schema);
            }
        }
        Value::Object(self.named)
    }
}

impl Request {
    /// Removes a field that is passed elsewhere. Returns its schema.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        if let Some(Value::Array(required)) = self.0.get_mut("required") {
            required.retain(|known| known != name);
            if required.is_empty() {
                self.0.remove("required");
            }
        }
        self.0.get_mut("properties")?.as_object_mut()?.remove(name)
    }

    /// Every field with its schema, and whether it is required.
    pub(super) fn take_all(self) -> Vec<(String, Value, bool)> {
        let Self(mut schema) = self;
        let required = schema.remove("required").unwrap_or_default();
        let is_required = |name: &str| required.as_array().is_some_and(|known| known.iter().any(|known| known == name));
        let Some(Value::Object(properties)) = schema.remove("properties") else { return Vec::new() };
        let fields = properties.into_iter().map(|(name, mut field)| {
            plain(&mut field);
            let is_required = is_required(&name);
            (name, field, is_required)
        });
        fields.collect()
    }

    /// Returns whether there are no fields.
    pub(super) fn is_empty(&self) -> bool {
        let has_fields = self.0.get("properties").and_then(Value::as_object).is_some_and(|fields| !fields.is_empty());
        !has_fields && !self.is_required()
    }

    /// Returns whether a body is required.
    pub(super) fn is_required(&self) -> bool {
        ["required", "oneOf", "anyOf"].iter().any(|keyword| self.0.contains_key(*keyword))
    }
}

/// Reduces each description to its first paragraph, in one line and without links.
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
    ["Request", "Form"].iter().any(|end| name.ends_with(end))
        || name.starts_with("Evaluation")
        || matches!(name, "PreApprovalTerms" | "Intent" | "Context")
}

/// Removes `null` from response fields, which are absent instead; except for erased fields.
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

/// Removes `null` from a schema.
pub(super) fn not_null(schema: &mut Value) {
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
