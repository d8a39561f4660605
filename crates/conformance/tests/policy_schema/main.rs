//! Tests of the JSON Schemas of policy documents and policy cases. The schemas are generated here and
//! committed in `docs/` and in the package of the command line, which prints them. They name exactly
//! the fields that the loader accepts. `RULEKEEP_BLESS=1` rewrites the files.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on
#![allow(dead_code)] // the fields are read by serde and schemars alone

mod cases;
#[path = "../../../../tests/common/generated.rs"]
mod generated;
mod policy;
mod words;

use std::collections::BTreeSet;
use std::path::Path;

use cases::CasesDocument;
use policy::PolicyDocument;
use rulekeep::intent::Classification;
use rulekeep::policy::{AlertOn, Effect, PolicyFormat};
use rulekeep::{Decision, Error, PolicySet, RiskLevel, Tier};
use rulekeep_cli::policy::PolicyCases;
use schemars::{Schema, schema_for};
use serde_json::{Value, json};

#[test]
fn the_committed_schemas_are_those_of_the_documents() {
    for (file, schema) in [("policy.schema.json", policy_schema()), ("policy-cases.schema.json", cases_schema())] {
        let made = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
        generated::check(file, &made, "cargo test -p rulekeep-conformance --test policy_schema");
        generated::check(
            &format!("../../crates/cli/src/policy/{file}"),
            &made,
            "cargo test -p rulekeep-conformance --test policy_schema",
        );
    }
}

#[test]
fn schema_and_loader_name_the_same_fields_and_refuse_another() {
    let schema = policy_schema();
    for (table, document) in POLICY_TABLES {
        let problems = PolicySet::validate(document, PolicyFormat::Toml);
        assert_eq!(known(problems.iter().map(|one| one.message.as_str())), fields(&schema, table), "{table}");
        let refusal = toml::from_str::<PolicyDocument>(document).unwrap_err().to_string();
        assert!(refusal.contains("unknown field `qqqqqqqq`"), "{table}: {refusal}");
    }
    let schema = cases_schema();
    for (table, document) in CASES_TABLES {
        let Err(Error::InvalidPolicy { problems, .. }) = PolicyCases::from_toml(document) else { panic!("{table}") };
        assert_eq!(known(problems.iter().map(|one| one.message.as_str())), fields(&schema, table), "{table}");
        let refusal = toml::from_str::<CasesDocument>(document).unwrap_err().to_string();
        assert!(refusal.contains("unknown field `qqqqqqqq`"), "{table}: {refusal}");
    }
}

#[test]
fn no_table_of_a_schema_is_left_unprobed() {
    for (schema, probed) in [(policy_schema(), POLICY_TABLES), (cases_schema(), CASES_TABLES)] {
        let probed: BTreeSet<&str> = probed.iter().map(|(table, _)| *table).collect();
        let definitions = schema.as_value()["$defs"].as_object().unwrap();
        let closed = definitions.iter().filter(|(_, one)| one["additionalProperties"] == Value::Bool(false));
        for (table, _) in closed {
            assert!(probed.contains(table.as_str()), "{table} is not held against the loader");
        }
    }
}

#[test]
fn schema_and_loader_refuse_the_same_fields_beside_each_other() {
    let schema = policy_schema();
    let rule_schema = &schema.as_value()["$defs"]["Rule"];
    for rule in [
        json!({ "effect": "allow" }),
        json!({ "effect": "allow", "reviewer": "a" }),
        json!({ "effect": "allow", "match": { "not": { "labels": ["ci"] } } }),
        json!({ "effect": "allow", "match": { "not": {} } }),
        json!({ "effect": "allow", "to": ["web:read"] }),
        json!({ "effect": "escalate" }),
        json!({ "effect": "escalate", "reviewer": "a" }),
        json!({ "effect": "escalate", "reviewer": "a", "constraints": { "maxRecords": 1 } }),
        json!({ "effect": "escalate", "reviewer": "a", "approvals": 2, "expires": "1h" }),
        json!({ "effect": "deny", "approvals": 2 }),
        json!({ "effect": "allow", "expires": "1h" }),
        json!({ "effect": "degrade" }),
        json!({ "effect": "degrade", "to": ["web:read"] }),
        json!({ "effect": "deny", "limit": { "count": 1, "per": "1h" } }),
        json!({ "effect": "allow", "limit": { "count": 1, "per": "1h" } }),
        json!({ "effect": "allow", "limit": { "per": "1h" } }),
        json!({ "effect": "allow", "limit": { "count": 1, "sum": "a", "max": 1, "per": "1h" } }),
        json!({ "effect": "allow", "limit": { "sum": "a", "max": 1, "per": "1h" } }),
        json!({ "effect": "allow", "limit": { "sum": "a", "per": "1h" } }),
        json!({ "effect": "allow", "limit": { "count": 1, "per": "1h", "over": "escalate" } }),
        json!({ "effect": "allow", "limit": { "count": 1, "per": "1h", "over": "escalate", "reviewer": "a" } }),
        json!({ "effect": "allow", "limit": { "count": 1, "per": "1h", "reviewer": "a" } }),
        json!({ "effect": "allow", "limit": { "count": 1, "per": "1h", "by": "organisation" } }),
        json!({ "effect": "allow", "limit": { "count": 1, "per": "1h", "by": "organisation", "share": "lease" } }),
        json!({ "effect": "allow", "limit": { "count": 1, "per": "1h", "by": "all", "share": "lease" } }),
        json!({ "effect": "allow", "limit": { "count": 1, "per": "1h", "share": "reserve" } }),
    ] {
        let mut whole = rule.clone();
        whole["id"] = json!("a");
        let text = json!({ "name": "t", "rule": [whole] }).to_string();
        let loads = PolicySet::from_json(&text).is_ok();
        assert_eq!(accepts(schema.as_value(), rule_schema, &whole), loads, "{rule}");
    }
    let alert_schema = &schema.as_value()["$defs"]["Alert"];
    for alert in [
        json!({ "on": "denials" }),
        json!({ "on": "denials", "per": "10m" }),
        json!({ "on": "denials", "count": 1 }),
        json!({ "on": "denials", "count": 1, "per": "10m" }),
        json!({ "on": "critical" }),
        json!({ "on": "critical", "per": "10m" }),
        json!({ "on": "critical", "count": 2 }),
        json!({ "on": "critical", "count": 2, "per": "10m" }),
        json!({ "on": "critical", "below": "T3" }),
        json!({ "on": "critical", "match": { "agents": ["a"] } }),
        json!({ "on": "tier" }),
        json!({ "on": "tier", "below": "T3" }),
        json!({ "on": "key", "count": 3, "per": "1m" }),
        json!({ "on": "key", "match": { "agents": ["a"] } }),
        json!({ "on": "chain" }),
        json!({ "on": "chain", "count": 1 }),
        json!({ "on": "chain", "count": 2, "per": "10m" }),
        json!({ "on": "chain", "match": { "agents": ["a"] } }),
    ] {
        let mut whole = alert.clone();
        whole["id"] = json!("a");
        let text = json!({ "name": "t", "alert": [whole] }).to_string();
        let loads = PolicySet::from_json(&text).is_ok();
        assert_eq!(accepts(schema.as_value(), alert_schema, &whole), loads, "{alert}");
    }
    let schema = cases_schema();
    let expect_schema = &schema.as_value()["$defs"]["Expect"];
    for expect in [
        json!({}),
        json!({ "decision": "ALLOW", "granted": [] }),
        json!({ "error": "POLICY_ERROR" }),
        json!({ "error": "POLICY_ERROR", "granted": [] }),
        json!({ "error": "POLICY_ERROR", "decision": "DENY" }),
    ] {
        let text = json!({ "case": [{ "name": "a", "input": "a", "expect": expect }] }).to_string();
        let loads = PolicyCases::from_json(&text).is_ok();
        assert_eq!(accepts(schema.as_value(), expect_schema, &expect), loads, "{expect}");
    }
}

/// Whether a table fits a schema, as far as which fields go together is concerned.
fn accepts(root: &Value, schema: &Value, table: &Value) -> bool {
    let Value::Object(schema) = schema else { return schema != &Value::Bool(false) };
    let get = |name: &str| schema.get(name).map_or(&Value::Null, |value| value);
    let all = |name: &str| get(name).as_array().cloned().unwrap_or_default();
    let fits = |other: &Value| accepts(root, other, table);
    let referred = get("$ref").as_str().and_then(|path| root.pointer(path.trim_start_matches('#')));
    let has = |name: &Value| table.get(name.as_str().unwrap()).is_some();
    let branch = match schema.get("if").map(fits) {
        Some(true) => schema.get("then").is_none_or(fits),
        Some(false) => schema.get("else").is_none_or(fits),
        None => true,
    };
    let count = table.as_object().map_or(0, serde_json::Map::len) as u64;
    branch
        && referred.is_none_or(fits)
        && schema.get("const").is_none_or(|value| value == table)
        && schema.get("enum").and_then(Value::as_array).is_none_or(|words| words.contains(table))
        && all("required").iter().all(has)
        && get("minProperties").as_u64().is_none_or(|least| count >= least)
        && get("maxProperties").as_u64().is_none_or(|most| count <= most)
        && all("allOf").iter().all(fits)
        && (schema.get("oneOf").is_none() || all("oneOf").iter().filter(|one| fits(one)).count() == 1)
        && get("properties").as_object().is_none_or(|fields| {
            fields.iter().all(|(name, one)| table.get(name).is_none_or(|value| accepts(root, one, value)))
        })
}

#[test]
fn schema_and_loader_know_the_same_words() {
    let (policy, cases) = (policy_schema(), cases_schema());
    assert_eq!(words(&policy, "Effect"), texts(Effect::ALL));
    assert_eq!(words(&policy, "AlertOn"), texts(AlertOn::ALL));
    assert_eq!(words(&policy, "Risk"), texts(RiskLevel::ALL));
    assert_eq!(words(&policy, "Tier"), texts(Tier::ALL));
    assert_eq!(words(&policy, "Classification"), texts(Classification::ALL));
    assert_eq!(words(&cases, "Decision"), texts(Decision::ALL));
}

#[test]
fn shipped_and_documented_policies_match_the_schema() {
    let folder = Path::new(ROOT);
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    let mut documents = vec![read("policies/recommended.toml"), read("examples/policies/support.toml")];
    for page in ["README.md", "docs/reference/policies.md", "docs/reference/policy-tests.md"] {
        documents.extend(shown(&read(page), "[[rule]]"));
    }
    assert!(documents.len() > 2);
    for document in documents {
        assert!(PolicySet::from_toml(&document).is_ok(), "{document}");
        toml::from_str::<PolicyDocument>(&document).unwrap_or_else(|error| panic!("{error}\n{document}"));
    }
    let mut documents = shown(&read("docs/reference/policy-tests.md"), "[[case]]");
    assert!(!documents.is_empty());
    documents.push(read("policies/recommended.cases.toml"));
    for document in documents {
        PolicyCases::from_toml(&document).unwrap();
        toml::from_str::<CasesDocument>(&document).unwrap_or_else(|error| panic!("{error}\n{document}"));
    }
}

#[test]
fn a_document_with_all_of_it_goes_through_its_shape_and_back() {
    let document: PolicyDocument = toml::from_str(ALL_OF_IT).unwrap();
    let mut shape = serde_json::to_value(&document).unwrap();
    drop_absent(&mut shape);
    let (first, again) = (PolicySet::from_toml(ALL_OF_IT).unwrap(), PolicySet::from_json(&shape.to_string()).unwrap());
    assert_eq!(again.digest(), first.digest());
    assert_eq!(again.alerts(), first.alerts());
    assert_eq!((first.alerts().len(), first.warnings()), (2, &[][..]));
    let in_toml = PolicySet::from_toml(&toml::to_string(&shape).unwrap()).unwrap();
    assert_eq!((in_toml.digest(), in_toml.alerts()), (first.digest(), first.alerts()));
}

/// What stands in a shape as null is what a document leaves out.
fn drop_absent(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_absent);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_absent),
        _ => {}
    }
}

fn policy_schema() -> Schema {
    without_null(schema_for!(PolicyDocument))
}

fn cases_schema() -> Schema {
    without_null(schema_for!(CasesDocument))
}

/// What may be absent may not be null: the loader refuses that.
fn without_null(schema: Schema) -> Schema {
    let mut value = schema.to_value();
    drop_null(&mut value);
    Schema::try_from(value).unwrap()
}

fn drop_null(value: &mut Value) {
    if let Value::Object(fields) = value {
        if let Some(Value::Array(types)) = fields.get_mut("type") {
            types.retain(|kind| kind != "null");
            if let [only] = &types[..] {
                let only = only.clone();
                fields.insert("type".to_owned(), only);
            }
        }
        if let Some(Value::Array(mut ways)) = fields.remove("anyOf") {
            ways.retain(|way| way["type"] != "null");
            match &ways[..] {
                [Value::Object(only)] => fields.extend(only.clone()),
                _ => drop(fields.insert("anyOf".to_owned(), Value::Array(ways))),
            }
        }
        fields.values_mut().for_each(drop_null);
    } else if let Value::Array(items) = value {
        items.iter_mut().for_each(drop_null);
    }
}

/// The fields that a schema gives a table; the document itself has no name.
fn fields(schema: &Schema, table: &str) -> BTreeSet<String> {
    let schema = schema.as_value();
    let table = if table.is_empty() { schema } else { &schema["$defs"][table] };
    // Which schema it is held against is no field of a document's own.
    table["properties"].as_object().unwrap().keys().filter(|name| *name != "$schema").cloned().collect()
}

/// The fields that the loader says it knows, where it met one that it does not.
fn known<'a>(messages: impl Iterator<Item = &'a str> + Clone) -> BTreeSet<String> {
    let mut lists = messages.clone().filter_map(|message| message.split("; expected one of ").nth(1));
    let Some(list) = lists.next() else { panic!("{:?}", messages.collect::<Vec<_>>()) };
    list.split(" (").next().unwrap_or_default().split(", ").map(str::to_owned).collect()
}

fn words(schema: &Schema, name: &str) -> BTreeSet<String> {
    let listed = schema.as_value()["$defs"][name]["enum"].as_array().unwrap();
    listed.iter().map(|word| word.as_str().unwrap().to_owned()).collect()
}

fn texts<T: ToString>(all: &[T]) -> BTreeSet<String> {
    all.iter().map(ToString::to_string).collect()
}

/// The TOML documents of a page that have something in them.
fn shown(page: &str, what: &str) -> Vec<String> {
    let blocks = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.filter(|block| block.contains(what)).map(str::to_owned).collect()
}

/// The folder of the library.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A document with reviewers, approvals, an expiry and alerts.
const ALL_OF_IT: &str = r#"
name = "all"

[reviewers]
finance-lead = ["ann", "bob"]

[[rule]]
id = "reading"
effect = "allow"
match.capabilities = ["*:read"]

[[rule]]
id = "refunds"
effect = "escalate"
reviewer = "finance-lead"
approvals = 2
expires = "90m"
match.capabilities = ["payment:transfer"]

[[alert]]
id = "many-denials"
on = "denials"
per = "10m"
match = { agents = ["bot-*"], labels = ["beta"], groups = ["desk"] }
severity = "HIGH"
cooldown = "1h"

[[alert]]
id = "drop"
on = "tier"
below = "T3"
"#;

/// Each table of a policy document, with a field that is none of its own.
const POLICY_TABLES: &[(&str, &str)] = &[
    ("", "name = \"a\"\nqqqqqqqq = 1"),
    ("Rule", "name = \"a\"\n[[rule]]\nid = \"a\"\neffect = \"deny\"\nqqqqqqqq = 1"),
    ("Match", "name = \"a\"\n[[rule]]\nid = \"a\"\neffect = \"deny\"\nmatch = { qqqqqqqq = 1 }"),
    ("Not", "name = \"a\"\n[[rule]]\nid = \"a\"\neffect = \"deny\"\nmatch.not = { qqqqqqqq = 1 }"),
    ("RiskRange", "name = \"a\"\n[[rule]]\nid = \"a\"\neffect = \"deny\"\nmatch = { risk = { qqqqqqqq = 1 } }"),
    ("TierRange", "name = \"a\"\n[[rule]]\nid = \"a\"\neffect = \"deny\"\nmatch = { tiers = { qqqqqqqq = 1 } }"),
    (
        "ContextClause",
        "name = \"a\"\n[[rule]]\nid = \"a\"\neffect = \"deny\"\nmatch = { context = [{ key = \"a\", matches = \"a\", qqqqqqqq = 1 }] }",
    ),
    (
        "Limit",
        "name = \"a\"\n[[rule]]\nid = \"a\"\neffect = \"allow\"\nlimit = { count = 1, per = \"1h\", qqqqqqqq = 1 }",
    ),
    ("Examples", "name = \"a\"\n[[rule]]\nid = \"a\"\neffect = \"deny\"\nexamples = { qqqqqqqq = 1 }"),
    ("Example", "name = \"a\"\n[[rule]]\nid = \"a\"\neffect = \"deny\"\nexamples = { match = [{ qqqqqqqq = 1 }] }"),
    ("Alert", "name = \"a\"\n[[alert]]\nid = \"a\"\non = \"critical\"\nqqqqqqqq = 1"),
    ("AlertMatch", "name = \"a\"\n[[alert]]\nid = \"a\"\non = \"critical\"\nmatch = { qqqqqqqq = 1 }"),
];

/// The same of a document of cases.
const CASES_TABLES: &[(&str, &str)] = &[
    ("", "qqqqqqqq = 1\n[[case]]\nname = \"a\"\ninput = \"a\"\nexpect = { decision = \"DENY\" }"),
    ("Defaults", "case = []\n[defaults]\nqqqqqqqq = 1"),
    ("Case", "[[case]]\nname = \"a\"\ninput = \"a\"\nexpect = { decision = \"DENY\" }\nqqqqqqqq = 1"),
    ("Intent", "[[case]]\nname = \"a\"\nintent = { qqqqqqqq = 1 }\nexpect = { decision = \"DENY\" }"),
    ("Agent", "[[case]]\nname = \"a\"\nagent = { qqqqqqqq = 1 }\nexpect = { decision = \"DENY\" }"),
    ("Expect", "[[case]]\nname = \"a\"\nexpect = { decision = \"DENY\", qqqqqqqq = 1 }"),
    ("Equivalent", "case = []\n[[equivalent]]\nrule = \"a\"\nmutation = \"a\"\nreason = \"a\"\nqqqqqqqq = 1"),
];
