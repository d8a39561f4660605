//! What case would notice a change to a rule: requests near the rule and near the
//! cases are tried by both sets, until one tells them apart.

use serde_json::{Map, Value};

use super::mutants::{Mutation, part_that_differs};
use super::run::{CaseRequest, Run};
use super::written::WrittenRule;
use crate::model::{Agent, AgentTraits, Capability, Intent, Label, RiskLevel, Tier, Timestamp, TrustSnapshot};
use crate::policy::set::PolicySet;
use crate::policy::verdict::PolicyVerdict;

/// A request that tells a change from the rule, if one was found, and what both say of it.
pub(super) fn witness(run: &Run<'_>, rule: &WrittenRule, changed: &PolicySet) -> Option<String> {
    for base in bases(run, rule) {
        for request in near(&base, rule) {
            let (Ok(before), Ok(after)) = (request.evaluate(run.policies), request.evaluate(changed)) else { continue };
            if part_that_differs(&before, &after).is_some() {
                return Some(format!("add a case with {}: {}", in_words(&request), both(&before, &after)));
            }
        }
    }
    None
}

/// What kind of case would notice a change, where no request is known that does.
pub(super) fn advice(mutation: &Mutation, was_tried: bool) -> String {
    let what = match &mutation.clause {
        None => "add a case that this rule alone decides".to_owned(),
        Some(clause) => format!(
            "add a case that differs from what the rule matches in {clause} alone, and expect what is decided without the rule"
        ),
    };
    let tried = "no request that was tried tells the change from the rule, so it may change nothing: then say so under [[equivalent]]";
    if was_tried { format!("{what}; {tried}") } else { what }
}

/// Requests to begin with: one made from the rule, and those of cases that it decides.
fn bases(run: &Run<'_>, rule: &WrittenRule) -> Vec<CaseRequest> {
    let decided = run.cases.iter().filter(|held| held.result.rules.contains(&rule.id));
    let of_cases = decided.filter_map(|held| held.request.clone()).take(MAX_CASES);
    of_rule(rule).into_iter().chain(of_cases).collect()
}

/// A request that the rule's clauses describe, as far as they say it outright.
fn of_rule(rule: &WrittenRule) -> Option<CaseRequest> {
    let first = |name: &str| rule.clause(name)?.get(0)?.as_str();
    let agent = first("agents").map_or_else(|| "example".to_owned(), as_name);
    let action = first("actions").map_or_else(|| "do_it".to_owned(), as_name);
    let capability = capabilities(rule).into_iter().next()?;
    let mut intent = Intent::new(&agent, &action, RiskLevel::Low, [capability.as_str()]).ok()?;
    intent.context = surroundings(rule);
    let labels =
        |name: &str| -> Vec<Label> { first(name).and_then(|name| as_name(name).parse().ok()).into_iter().collect() };
    let mut traits = AgentTraits::default();
    (traits.labels, traits.groups) = (labels("labels"), labels("groups"));
    let trust = TrustSnapshot::new(Agent::NEWCOMER_SCORE, Agent::NEWCOMER_SCORE.tier());
    let (now, used) = (Timestamp::from_millis(0), std::collections::BTreeMap::new());
    Some(CaseRequest { intent, risk: RiskLevel::Low, trust, traits, now, used })
}

/// A request, and others that differ in agent, action, capability, context, risk and tier.
fn near<'a>(base: &'a CaseRequest, rule: &'a WrittenRule) -> impl Iterator<Item = CaseRequest> + 'a {
    let own = base.intent.required_capabilities.clone();
    let options = std::iter::once(own).chain(all_capabilities(rule).into_iter().map(|one| vec![one]));
    options
        .flat_map(move |capabilities| shapes(base, rule).into_iter().map(move |shape| (capabilities.clone(), shape)))
        .flat_map(|(capabilities, shape)| {
            let levels = Tier::ALL.iter().flat_map(|tier| RiskLevel::ALL.iter().map(move |risk| (*tier, *risk)));
            levels.map(move |(tier, risk)| {
                let mut request = shape.clone();
                request.intent.required_capabilities.clone_from(&capabilities);
                request.risk = risk;
                request.trust = TrustSnapshot::new(tier.middle(), tier);
                request
            })
        })
}

/// The request, and the same with what a clause names taken away or put in.
fn shapes(base: &CaseRequest, rule: &WrittenRule) -> Vec<CaseRequest> {
    let mut shapes = vec![base.clone()];
    let mut with = |change: &dyn Fn(&mut CaseRequest)| {
        let mut shape = base.clone();
        change(&mut shape);
        shapes.push(shape);
    };
    with(&|shape| shape.intent.context.extend(surroundings(rule)));
    with(&|shape| shape.intent.context = Map::new());
    if rule.clause("agents").is_some() {
        with(&|shape| other("another-agent").into_iter().for_each(|agent| shape.intent.agent_id = agent));
    }
    if rule.clause("actions").is_some() {
        with(&|shape| other("another_action").into_iter().for_each(|action| shape.intent.parsed_action = action));
    }
    if rule.clause("labels").is_some() {
        with(&|shape| shape.traits.labels = Vec::new());
    }
    if rule.clause("groups").is_some() {
        with(&|shape| shape.traits.groups = Vec::new());
    }
    if !base.used.is_empty() {
        with(&|shape| shape.used.clear());
    }
    if rule.has_limit() {
        with(&|shape| shape.used.extend([(rule.id.clone(), 1e9)]));
    }
    shapes
}

fn other<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

/// The class and the environment that a rule names.
fn surroundings(rule: &WrittenRule) -> Map<String, Value> {
    let named = [("classification", "dataClassification"), ("environment", "environment")];
    let values =
        named.into_iter().filter_map(|(clause, key)| Some((key.to_owned(), rule.clause(clause)?.get(0)?.clone())));
    values.collect()
}

/// A capability for each of the first patterns that a rule names.
fn capabilities(rule: &WrittenRule) -> Vec<Capability> {
    let patterns = rule.clause("capabilities").and_then(Value::as_array);
    let texts = patterns.into_iter().flatten().filter_map(Value::as_str).take(MAX_PATTERNS);
    let named = texts.filter_map(|text| {
        let (resource, operation) = text.split_once(':')?;
        let resource = if resource == "*" { "task" } else { resource };
        let operation = if operation == "*" { "write" } else { operation };
        format!("{resource}:{operation}").parse().ok()
    });
    let named: Vec<Capability> = named.collect();
    if named.is_empty() { "task:read".parse().into_iter().collect() } else { named }
}

/// The same, and some that it does not name.
fn all_capabilities(rule: &WrittenRule) -> Vec<Capability> {
    let mut all = capabilities(rule);
    let others = OTHERS.iter().filter_map(|text| text.parse().ok());
    for one in others {
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all
}

fn in_words(request: &CaseRequest) -> String {
    let capabilities: Vec<&str> = request.intent.required_capabilities.iter().map(Capability::as_str).collect();
    let mut words = format!(
        "agent {} at tier {}, action {}, risk {}, {}",
        request.intent.agent_id,
        request.trust.tier,
        request.intent.parsed_action,
        request.risk,
        capabilities.join(" and "),
    );
    let named = |what: &str, labels: &[Label]| {
        labels.iter().map(|label| format!(", {what} {label}")).collect::<Vec<_>>().concat()
    };
    words.push_str(&named("label", &request.traits.labels));
    words.push_str(&named("group", &request.traits.groups));
    if !request.intent.context.is_empty() {
        let context = Value::Object(request.intent.context.clone()).to_string();
        words.push_str(", context ");
        words.push_str(&context);
    }
    if !request.used.is_empty() {
        words.push_str(", its limit used up");
    }
    words
}

/// What the set says of a request, and what it would with the change.
fn both(before: &PolicyVerdict, after: &PolicyVerdict) -> String {
    match part_that_differs(before, after) {
        Some("decision") => format!("it is {}, and {} with the change", before.decision, after.decision),
        Some("reviewer") => {
            let name = |verdict: &PolicyVerdict| verdict.reviewer.as_deref().unwrap_or("nobody").to_owned();
            format!("it goes to {}, and to {} with the change", name(before), name(after))
        }
        part => format!("it is {} either way; {} differs", before.decision, part.unwrap_or("nothing")),
    }
}

/// A name that a glob matches: what it leaves open is a letter.
fn as_name(glob: &str) -> String {
    glob.replace(['*', '?'], "x")
}

const OTHERS: &[&str] = &[
    "task:read",
    "task:write",
    "task:delete",
    "task:send",
    "task:execute",
    "task:transfer",
    "task:admin",
    "credential:read",
    "unknown:read",
];
const MAX_PATTERNS: usize = 8;
const MAX_CASES: usize = 4;
