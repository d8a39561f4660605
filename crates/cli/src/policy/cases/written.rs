//! Rules as written in their documents: the names and positions of clauses, and the set with one rule changed.

use rulekeep::{Error, PolicySet, document};
use serde_json::{Map, Value, json};

/// The documents of a set.
#[derive(Debug)]
pub(in crate::policy) struct Written {
    documents: Vec<Document>,
    /// Every rule, in the order of the set.
    pub(in crate::policy) rules: Vec<WrittenRule>,
}

#[derive(Debug)]
struct Document {
    set: PolicySet,
    fields: Map<String, Value>,
    /// The key of the list of rules, which has two possible names.
    list: &'static str,
}

/// A rule as written.
#[derive(Debug, Clone)]
pub(in crate::policy) struct WrittenRule {
    pub(in crate::policy) id: String,
    pub(super) effect: String,
    pub(in crate::policy) fields: Map<String, Value>,
    /// Requests that the rule must match and must not match, from its own examples.
    pub(super) examples: Vec<Map<String, Value>>,
    document: usize,
    index: usize,
}

/// A clause of a rule, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WrittenClause {
    /// The name of the clause in explanations.
    pub(super) name: String,
    place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Match(&'static str),
    Context(usize),
    Rule(&'static str),
}

impl Written {
    pub(in crate::policy) fn of(policies: &PolicySet) -> Self {
        let (mut documents, mut rules) = (Vec::new(), Vec::new());
        for (text, format) in policies.sources() {
            // All of it loads, because the set was made from this text.
            let too_large = |_| String::new();
            let (json, _) = document::read(text, format, PolicySet::MAX_BYTES, too_large, |root, _| root.into_json());
            let (Some(Value::Object(mut fields)), Ok(set)) = (json, PolicySet::parse(text, format, format.as_str()))
            else {
                continue;
            };
            let list = if fields.contains_key("rules") { "rules" } else { "rule" };
            let document = documents.len();
            for (index, rule) in fields.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().enumerate() {
                let Value::Object(rule) = rule else { continue };
                // A changed rule must not be refused because of its examples.
                let examples = rule.remove("examples").map(listed).unwrap_or_default();
                let text = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
                let (id, effect) = (text("id"), text("effect"));
                rules.push(WrittenRule { id, effect, fields: rule.clone(), examples, document, index });
            }
            documents.push(Document { set, fields, list });
        }
        Self { documents, rules }
    }

    /// Returns the set with a rule changed, or left out.
    pub(super) fn with(&self, rule: &WrittenRule, changed: Option<&Map<String, Value>>) -> Result<PolicySet, Error> {
        let layer = |(number, document): (usize, &Document)| {
            if number != rule.document {
                return Ok(document.set.clone());
            }
            let mut fields = document.fields.clone();
            if let Some(rules) = fields.get_mut(document.list).and_then(Value::as_array_mut) {
                match changed {
                    Some(changed) => {
                        if let Some(place) = rules.get_mut(rule.index) {
                            *place = Value::Object(changed.clone());
                        }
                    }
                    None if rule.index < rules.len() => drop(rules.remove(rule.index)),
                    None => {}
                }
            }
            PolicySet::from_json(&Value::Object(fields).to_string())
        };
        let mut layers = self.documents.iter().enumerate().map(layer).collect::<Result<Vec<_>, _>>()?;
        if layers.len() == 1 { Ok(layers.remove(0)) } else { PolicySet::layered(&layers) }
    }

    /// Returns a set of one rule without one of its clauses.
    pub(super) fn alone_without(&self, rule: &WrittenRule, clause: &WrittenClause) -> Option<PolicySet> {
        let vocabulary = self.documents.get(rule.document)?.fields.get("vocabulary").cloned();
        let fields = json!({
            "name": rule.id, "vocabulary": vocabulary.unwrap_or_else(|| json!([])), "rule": [rule.without(clause)],
        });
        PolicySet::from_json(&fields.to_string()).ok()
    }
}

impl WrittenClause {
    /// Returns whether the clause is an expression, whose evaluation can fail.
    pub(super) fn is_condition(&self) -> bool {
        matches!(self.place, Place::Rule("when" | "unless"))
    }
}

impl WrittenRule {
    /// Returns the clauses of the rule, in the order in which an explanation lists them.
    pub(super) fn clauses(&self) -> Vec<WrittenClause> {
        let matches = self.fields.get("match").and_then(Value::as_object);
        let mut clauses: Vec<WrittenClause> = MATCH_CLAUSES
            .iter()
            .filter(|name| matches.is_some_and(|matches| matches.contains_key(**name)))
            .map(|name| WrittenClause { name: (*name).to_owned(), place: Place::Match(name) })
            .collect();
        let context = matches.and_then(|matches| matches.get("context")).and_then(Value::as_array);
        for (index, item) in context.into_iter().flatten().enumerate() {
            let key = item.get("key").and_then(Value::as_str).unwrap_or_default();
            clauses.push(WrittenClause { name: format!("context.{key}"), place: Place::Context(index) });
        }
        let rest = RULE_CLAUSES.iter().filter(|name| self.fields.contains_key(**name));
        clauses.extend(rest.map(|name| WrittenClause { name: (*name).to_owned(), place: Place::Rule(name) }));
        clauses
    }

    /// Returns the rule without one clause.
    pub(super) fn without(&self, clause: &WrittenClause) -> Map<String, Value> {
        let mut fields = self.fields.clone();
        let matches = fields.get_mut("match").and_then(Value::as_object_mut);
        match (&clause.place, matches) {
            (Place::Match(name), Some(matches)) => drop(matches.remove(*name)),
            (Place::Context(index), Some(matches)) => {
                let items = matches.get_mut("context").and_then(Value::as_array_mut);
                let Some(items) = items else { return fields };
                if *index < items.len() {
                    items.remove(*index);
                }
                if items.is_empty() {
                    matches.remove("context");
                }
            }
            (Place::Rule(name), _) => drop(fields.remove(*name)),
            (Place::Match(_) | Place::Context(_), None) => {}
        }
        fields
    }

    pub(super) fn has_limit(&self) -> bool {
        self.fields.contains_key("limit")
    }

    /// Returns the content of a clause of `match`.
    pub(super) fn clause(&self, name: &str) -> Option<&Value> {
        self.fields.get("match")?.get(name)
    }
}

/// Returns every example of a rule, those that it must match first.
fn listed(mut examples: Value) -> Vec<Map<String, Value>> {
    let lists = ["match", "not_match"].into_iter().filter_map(|name| Some(examples.get_mut(name)?.take()));
    let items = lists.flat_map(|list| if let Value::Array(items) = list { items } else { Vec::new() });
    items.filter_map(|item| if let Value::Object(fields) = item { Some(fields) } else { None }).collect()
}

const MATCH_CLAUSES: &[&str] =
    &["capabilities", "risk", "tiers", "classification", "actions", "agents", "labels", "groups", "environment"];
const RULE_CLAUSES: &[&str] = &["when", "unless", "limit"];
