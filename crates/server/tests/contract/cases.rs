//! The shared test cases of the calls, over lines. The Python and Node runners use the same file.

use regex::Regex;
use rulekeep::{Agent, Governor, PolicySet, Tier};
use serde_json::{Map, Value, json};

use crate::common::{Served, call};

#[test]
fn every_case_of_the_contract_holds_over_lines() {
    let file: Value = serde_json::from_str(include_str!("cases.json")).unwrap();
    let policies = PolicySet::from_toml(file["policies"].as_str().unwrap()).unwrap();
    let governor = Served::new(&Governor::builder().policies(policies).open_in_memory().unwrap());
    let cases = file["cases"].as_array().unwrap();
    assert!(cases.len() >= 40, "{}", cases.len());
    for (number, case) in cases.iter().enumerate() {
        let tier: Tier = case.get("tier").map_or(Tier::T4, |tier| tier.as_str().unwrap().parse().unwrap());
        let agent = format!("agent-{number}");
        governor.agents().register(Agent::new(agent.clone()).at_tier(tier)).unwrap();
        let mut names = Map::from_iter([("agent".to_owned(), json!(agent))]);
        for (place, step) in case["steps"].as_array().unwrap().iter().enumerate() {
            let place = format!("{}, step {place}", case["name"]);
            let found = call(&governor, step["method"].as_str().unwrap(), &filled(&step["params"], &names));
            let (found, kind) = match found.get("error") {
                Some(error) => (described(error), "error"),
                None => (found["result"].clone(), "result"),
            };
            let expected = step.get(kind).unwrap_or_else(|| panic!("{place}: {found}"));
            assert_matches(&found, &filled(expected, &names), &place);
            for (name, path) in step.get("save").and_then(Value::as_object).into_iter().flatten() {
                let pointer = format!("/{}", path.as_str().unwrap().replace('.', "/"));
                names.insert(name.clone(), found.pointer(&pointer).unwrap().clone());
            }
        }
    }
}

/// A JSON-RPC error with the fields that the cases compare.
fn described(error: &Value) -> Value {
    let mut found = error["data"].clone();
    found["message"] = error["message"].clone();
    found
}

/// A value with its named placeholders filled in.
fn filled(value: &Value, names: &Map<String, Value>) -> Value {
    match value {
        Value::Object(fields) => match fields.get("$repeat") {
            Some(long) => {
                json!(long[0].as_str().unwrap().repeat(usize::try_from(long[1].as_u64().unwrap()).unwrap()))
            }
            None => fields.iter().map(|(name, part)| (name.clone(), filled(part, names))).collect(),
        },
        Value::Array(items) => items.iter().map(|item| filled(item, names)).collect(),
        Value::String(text) => text.strip_prefix('$').map_or_else(|| value.clone(), |name| names[name].clone()),
        _ => value.clone(),
    }
}

fn assert_matches(found: &Value, expected: &Value, place: &str) {
    match expected {
        Value::Object(fields) if fields.contains_key("$matches") => {
            let regex = Regex::new(fields["$matches"].as_str().unwrap()).unwrap();
            assert!(found.as_str().is_some_and(|text| regex.is_match(text)), "{place}: {found}");
        }
        Value::Object(fields) => {
            assert!(found.is_object(), "{place}: {found}");
            for (name, part) in fields {
                let place = format!("{place}.{name}");
                match (found.get(name), part.get("$absent").is_some()) {
                    (found, true) => assert!(found.is_none(), "{place}: {found:?}"),
                    (None, false) => panic!("{place} is absent: {found}"),
                    (Some(_), false) if part.get("$any").is_some() => {}
                    (Some(found), false) => assert_matches(found, part, &place),
                }
            }
        }
        Value::Array(items) => {
            assert_eq!(found.as_array().map(Vec::len), Some(items.len()), "{place}: {found}");
            for (number, item) in items.iter().enumerate() {
                assert_matches(&found[number], item, &format!("{place}.{number}"));
            }
        }
        _ => assert_eq!(found, expected, "{place}"),
    }
}
