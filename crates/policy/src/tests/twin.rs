//! The slow, obvious twin: an interpreter of the JSON document that looks at every rule for every capability. It
//! shares no code with the engine except the vocabulary.

use crate::evaluate::MAX_RULES;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use super::*;
use rulekeep_types::{Capability, Classification, Constraints, Decision};

/// The twin's decision.
#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) decision: Decision,
    pub(super) granted: Vec<String>,
    pub(super) denied: Vec<String>,
    pub(super) constraints: Constraints,
    /// Ids of the deciding rules, in document order.
    pub(super) rules: Vec<String>,
    /// The reviewers who have to agree, and the approvals needed of each.
    pub(super) needs: BTreeMap<String, u64>,
    pub(super) expires: Duration,
}

/// The reviewers who have to agree, and the approvals needed of each.
pub(super) fn needs(verdict: &PolicyVerdict) -> BTreeMap<String, u64> {
    verdict.needs.iter().map(|need| (need.reviewer.to_string(), u64::from(need.approvals))).collect()
}

impl Answer {
    pub(super) fn of(verdict: &PolicyVerdict) -> Self {
        Self {
            decision: verdict.decision,
            granted: words(&verdict.granted),
            denied: words(&verdict.denied),
            constraints: verdict.constraints.clone(),
            rules: words(&verdict.rules),
            needs: needs(verdict),
            expires: verdict.expires,
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Denied,
    Person,
    Withheld,
    Granted,
    Unmatched,
}

pub(super) fn decide(document: &Value, request: &PolicyRequest<'_>) -> Answer {
    let rules = document["rule"].as_array().unwrap();
    let required = &request.intent.required_capabilities;
    let fates: Vec<(Fate, Vec<usize>)> =
        required.iter().map(|capability| fate(document, rules, request, capability)).collect();
    let any = |wanted: Fate| fates.iter().any(|(fate, _)| *fate == wanted);
    let refused = any(Fate::Denied) || any(Fate::Unmatched);
    let decision = if any(Fate::Person) && !refused {
        Decision::Escalate
    } else if fates.iter().all(|(fate, _)| *fate == Fate::Granted) {
        Decision::Allow
    } else if any(Fate::Granted) {
        Decision::Degrade
    } else {
        Decision::Deny
    };
    let mut answer = Answer {
        decision,
        granted: vec![],
        denied: vec![],
        constraints: Constraints::new(),
        rules: vec![],
        needs: BTreeMap::new(),
        expires: Duration::ZERO,
    };
    let mut deciding: BTreeSet<usize> = BTreeSet::new();
    for (capability, (fate, by)) in required.iter().zip(&fates) {
        let is_granted = *fate == Fate::Granted && decision != Decision::Escalate;
        if is_granted {
            answer.granted.push(capability.to_string());
            for &rule in by {
                if let Some(limits) = rules[rule].get("constraints") {
                    answer.constraints.tighten(&serde_json::from_value(limits.clone()).unwrap());
                }
            }
        } else {
            answer.denied.push(capability.to_string());
        }
        if decision != Decision::Escalate || *fate == Fate::Person {
            deciding.extend(by);
        }
    }
    if decision == Decision::Escalate {
        let asking = || deciding.iter().map(|rule| &rules[*rule]);
        for rule in asking() {
            let need = answer.needs.entry(rule["reviewer"].as_str().unwrap().to_owned()).or_default();
            *need = (*need).max(rule["approvals"].as_u64().unwrap_or(1));
        }
        let hours = |rule: &Value| match rule["expires"].as_str() {
            Some("1h") => 1,
            Some("2d") => 48,
            _ => 24,
        };
        answer.expires = Duration::from_secs(3600 * asking().map(hours).min().unwrap());
    }
    // The verdict lists only the first of them.
    answer.rules =
        deciding.into_iter().take(MAX_RULES).map(|rule| rules[rule]["id"].as_str().unwrap().to_owned()).collect();
    answer
}

fn fate(document: &Value, rules: &[Value], request: &PolicyRequest<'_>, capability: &Capability) -> (Fate, Vec<usize>) {
    let matching = |effect: &str| -> Vec<usize> {
        let fits = |rule: &Value| {
            rule["effect"] == effect
                && matches(effect, &rule["match"], request, capability)
                && rule["when"].as_str().is_none_or(|condition| holds(condition, request))
                && !rule["unless"].as_str().is_some_and(|condition| holds(condition, request))
        };
        (0..rules.len()).filter(|index| fits(&rules[*index])).collect()
    };
    let denies = matching("deny");
    if !denies.is_empty() {
        return (Fate::Denied, denies);
    }
    let is_built_in = capability.resource().is_some() && capability.operation().is_some();
    let is_named = texts(&document["vocabulary"]).contains(&capability.as_str());
    if !is_built_in && !is_named {
        return (Fate::Unmatched, vec![]);
    }
    let escalates = matching("escalate");
    if !escalates.is_empty() {
        return (Fate::Person, escalates);
    }
    let leaves = |rule: &usize| texts(&rules[*rule]["to"]).iter().any(|text| is_capability(text, capability));
    let (leaving, withholding): (Vec<usize>, Vec<usize>) = matching("degrade").into_iter().partition(leaves);
    if !withholding.is_empty() {
        return (Fate::Withheld, withholding);
    }
    // A degrading rule grants only where it reads the context as an allow does; it constrains in any case.
    let grants = |rule: &usize| matches("allow", &rules[*rule]["match"], request, capability);
    let granting = [leaving, matching("allow")].concat();
    if granting.iter().any(grants) { (Fate::Granted, granting) } else { (Fate::Unmatched, vec![]) }
}

fn matches(effect: &str, clauses: &Value, request: &PolicyRequest<'_>, capability: &Capability) -> bool {
    let intent = request.intent;
    let any = |field: &str, holds: &dyn Fn(&str) -> bool| {
        clauses.get(field).is_none() || texts(&clauses[field]).into_iter().any(holds)
    };
    let environment = intent.context.get("environment").and_then(Value::as_str).unwrap_or_default();
    let class = intent.context.get("dataClassification").filter(|value| !value.is_null());
    let class = class.map(|value| value.as_str().map_or(Classification::Restricted, Classification::of_word));
    let class = class.max(Classification::floor(&intent.parsed_action, &intent.required_capabilities));
    let end = |field: &str, end: &str| clauses.get(field).and_then(|range| range.get(end)).and_then(Value::as_str);
    let risk = |text: &str| text.parse::<RiskLevel>().unwrap();
    let tier = |text: &str| text.parse::<Tier>().unwrap();
    any("agents", &|glob| is_glob(glob, intent.agent_id.as_str()))
        && any("labels", &|glob| request.traits.labels.iter().any(|label| is_glob(glob, label.as_str())))
        && any("groups", &|glob| request.traits.groups.iter().any(|group| is_glob(glob, group.as_str())))
        && any("actions", &|glob| is_glob(glob, intent.parsed_action.as_str()))
        && any("capabilities", &|text| is_capability(text, capability))
        && end("risk", "min").is_none_or(|min| request.risk >= risk(min))
        && end("risk", "max").is_none_or(|max| request.risk <= risk(max))
        && end("tiers", "min").is_none_or(|min| request.trust.tier >= tier(min))
        && end("tiers", "max").is_none_or(|max| request.trust.tier <= tier(max))
        && any("classification", &|wanted| class.is_some_and(|class| class.as_str() == wanted))
        && any("environment", &|wanted| environment.trim().to_lowercase() == wanted.to_lowercase())
        && clauses.get("context").and_then(Value::as_array).into_iter().flatten().all(|clause| {
            let pattern = regex::Regex::new(clause["matches"].as_str().unwrap()).unwrap();
            match intent.context.get(clause["key"].as_str().unwrap()) {
                None => false,
                Some(Value::String(text)) => pattern.is_match(text),
                Some(Value::Number(number)) => pattern.is_match(&number.to_string()),
                Some(Value::Bool(flag)) => pattern.is_match(&flag.to_string()),
                Some(Value::Array(items)) if effect == "allow" => {
                    !items.is_empty() && items.iter().all(|item| pattern.is_match(&as_text(item)))
                }
                Some(Value::Array(items)) => {
                    items.is_empty() || items.iter().any(|item| pattern.is_match(&as_text(item)))
                }
                Some(_) => effect != "allow",
            }
        })
}

/// Conditions that cannot fail, for random sets.
pub(super) const CONDITIONS: &[&str] = &[
    "has(context.amount) && double(context.amount) > 100.0",
    "agent.id.startsWith('bot')",
    "intent.risk in ['HIGH', 'CRITICAL']",
    "trust.score >= 500",
    "intent.capabilities.exists(c, c.endsWith(':send'))",
];

/// The same conditions, written by hand.
fn holds(condition: &str, request: &PolicyRequest<'_>) -> bool {
    let intent = request.intent;
    match CONDITIONS.iter().position(|known| *known == condition).unwrap() {
        0 => intent.context.get("amount").and_then(Value::as_f64).is_some_and(|amount| amount > 100.0),
        1 => intent.agent_id.as_str().starts_with("bot"),
        2 => request.risk >= RiskLevel::High,
        3 => request.trust.score.get() >= 500,
        _ => intent.required_capabilities.iter().any(|capability| capability.operation_word() == "send"),
    }
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn is_capability(pattern: &str, capability: &Capability) -> bool {
    let (resource, operation) = pattern.split_once(':').unwrap();
    (resource == "*" || resource == capability.resource_word())
        && (operation == "*" || operation == capability.operation_word())
}

fn is_glob(glob: &str, text: &str) -> bool {
    let pattern = regex::escape(glob).replace(r"\*", "(?s:.*)").replace(r"\?", "(?s:.)");
    regex::Regex::new(&format!("^(?:{pattern})$")).unwrap().is_match(text)
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}
