//! Finding a case that would notice a change to a rule: requests near the rule and near the cases are tried with both
//! sets, until one distinguishes them.

use rulekeep::agent::{AgentTraits, Label};
use rulekeep::intent::{Capability, risk_floor};
use rulekeep::policy::PolicyVerdict;
use rulekeep::system::Timestamp;
use rulekeep::trust::TrustSnapshot;
use rulekeep::{Agent, Intent, PolicySet, RiskLevel, Tier};
use serde_json::{Map, Value};

use super::mutants::{Mutation, part_that_differs};
use super::read::POLICY_ERROR;
use super::run::{CaseRequest, Run};
use super::written::WrittenRule;

/// Returns a request that distinguishes a change from the rule, if one was found, with both verdicts.
pub(super) fn witness(run: &Run<'_>, rule: &WrittenRule, changed: &PolicySet) -> Option<String> {
    let mut failing = None;
    for request in requests(run, rule).take(MAX_TRIED) {
        let told = |what: String| format!("add a case with {}: {what}", in_words(&request));
        match (request.evaluate(run.policies), request.evaluate(changed)) {
            (Ok(before), Ok(after)) if part_that_differs(&before, &after).is_some() => {
                return Some(told(both(&before, &after)));
            }
            (Ok(before), Err(_)) if failing.is_none() => {
                failing = Some(told(format!("it is {}, and {POLICY_ERROR} with the change", before.decision)));
            }
            (Err(_), Ok(after)) if failing.is_none() => {
                failing = Some(told(format!("it is {POLICY_ERROR}, and {} with the change", after.decision)));
            }
            _ => {}
        }
    }
    failing
}

/// Describes a kind of case that would notice a change, if no such request is known.
pub(super) fn advice(mutation: &Mutation, was_tried: bool) -> String {
    let what = match &mutation.clause {
        None => "add a case that this rule alone decides".to_owned(),
        Some(clause) => format!(
            "add a case that differs from what the rule matches in {clause} alone, and expect what is decided without the rule"
        ),
    };
    let tried = "no request that was tried shows a difference, which does not prove that there is none: conditions \
                 and context patterns are tried only with the rule's examples; declare it under [[equivalent]] only \
                 with a reason";
    if was_tried { format!("{what}; {tried}") } else { what }
}

/// Returns requests that a governor could get: near what the rule describes, where it overlaps other rules, and near
/// the cases that it decides.
fn requests<'a>(run: &'a Run<'_>, rule: &'a WrittenRule) -> impl Iterator<Item = CaseRequest> + 'a {
    let near_all = |bases: Vec<CaseRequest>| bases.into_iter().flat_map(|base| near(&base, rule).collect::<Vec<_>>());
    let others = run.tally.written.rules.iter().filter(|other| other.id != rule.id && other.effect != "deny");
    let met = others.take(MAX_OTHERS).flat_map(|other| meeting(rule, other));
    let decided = run.cases.iter().filter(|held| held.result.rules.contains(&rule.id));
    let of_cases = decided.filter_map(|held| held.request.clone()).take(MAX_CASES).collect();
    let all = near_all(bases(rule)).chain(met).chain(near_all(of_cases));
    // No governor gets a request below its risk floor.
    all.filter(|request| {
        request.risk >= risk_floor(&request.intent.parsed_action, &request.intent.required_capabilities)
    })
}

/// Returns requests to begin with: those of the rule's own examples, and one made from its clauses.
fn bases(rule: &WrittenRule) -> Vec<CaseRequest> {
    let base = of_rule(rule);
    let examples = rule.examples.iter().take(MAX_EXAMPLES);
    let of_examples = examples.filter_map(|example| of_example(base.as_ref()?, example));
    of_examples.chain(of_rule(rule)).collect()
}

/// Returns the request of an example; the rule supplies what the example leaves out.
fn of_example(base: &CaseRequest, example: &Map<String, Value>) -> Option<CaseRequest> {
    let mut request = base.clone();
    let text = |name: &str| example.get(name).and_then(Value::as_str);
    let list = |name: &str| example.get(name).and_then(Value::as_array);
    let table = |name: &str| example.get(name).and_then(Value::as_object);
    if let Some(agent) = text("agent") {
        request.intent.agent_id = agent.parse().ok()?;
    }
    if let Some(action) = text("action") {
        request.intent.parsed_action = action.parse().ok()?;
    }
    if let Some(capabilities) = list("capabilities") {
        request.intent.required_capabilities = all_parsed(capabilities);
    }
    if let Some(labels) = list("labels") {
        request.traits.labels = all_parsed(labels);
    }
    if let Some(groups) = list("groups") {
        request.traits.groups = all_parsed(groups);
    }
    if let Some(attributes) = table("attributes") {
        request.traits.attributes.clone_from(attributes);
    }
    if let Some(context) = table("context") {
        request.intent.context.extend(context.clone());
    }
    if let Some(now) = text("now") {
        request.now = now.parse().ok()?;
    }
    Some(request)
}

fn all_parsed<T: std::str::FromStr>(items: &[Value]) -> Vec<T> {
    items.iter().filter_map(|item| item.as_str()?.parse().ok()).collect()
}

/// Returns what the rule describes, with the capabilities of another rule and where that one matches too.
fn meeting(rule: &WrittenRule, other: &WrittenRule) -> Vec<CaseRequest> {
    let (Some(own), Some(theirs)) = (bases(rule).into_iter().next(), bases(other).into_iter().next()) else {
        return Vec::new();
    };
    let mut base = theirs.clone();
    if rule.clause("agents").is_some() {
        base.intent.agent_id.clone_from(&own.intent.agent_id);
    }
    if rule.clause("actions").is_some() {
        base.intent.parsed_action.clone_from(&own.intent.parsed_action);
    }
    if !rule.examples.is_empty() {
        base.now = own.now;
    }
    base.intent.context.extend(own.intent.context.clone());
    base.traits.labels.extend(own.traits.labels.iter().cloned());
    base.traits.groups.extend(own.traits.groups.iter().cloned());
    base.traits.attributes.extend(own.traits.attributes.clone());
    let capabilities = capabilities(other).into_iter().take(MAX_MET).map(|one| vec![one]);
    let capabilities = std::iter::once(theirs.intent.required_capabilities).chain(capabilities);
    let shapes = shapes(&base, rule);
    capabilities
        .flat_map(|wanted| {
            shapes.iter().flat_map(move |shape| at_every_level(shape, wanted.clone())).collect::<Vec<_>>()
        })
        .collect()
}

/// Returns requests for some capabilities at every tier and risk.
fn at_every_level(shape: &CaseRequest, capabilities: Vec<Capability>) -> impl Iterator<Item = CaseRequest> + use<'_> {
    let levels = Tier::ALL.iter().flat_map(|tier| RiskLevel::ALL.iter().map(move |risk| (*tier, *risk)));
    levels.map(move |(tier, risk)| {
        let mut request = shape.clone();
        request.intent.required_capabilities.clone_from(&capabilities);
        request.risk = risk;
        request.trust = TrustSnapshot::new(tier.middle(), tier);
        request
    })
}

/// Returns a request that the rule's clauses describe, as far as they do so literally.
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

/// Returns a request, and others that differ in agent, action, capability, context, risk and tier.
fn near<'a>(base: &'a CaseRequest, rule: &'a WrittenRule) -> impl Iterator<Item = CaseRequest> + 'a {
    let own = base.intent.required_capabilities.clone();
    let options = std::iter::once(own).chain(all_capabilities(rule).into_iter().map(|one| vec![one]));
    options
        .flat_map(move |capabilities| shapes(base, rule).into_iter().map(move |shape| (capabilities.clone(), shape)))
        .flat_map(|(capabilities, shape)| at_every_level(&shape, capabilities).collect::<Vec<_>>())
}

/// Returns the request, and variants in which what a clause names is removed or added.
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

/// Returns the classification and the environment that a rule names.
fn surroundings(rule: &WrittenRule) -> Map<String, Value> {
    let named = [("classification", "dataClassification"), ("environment", "environment")];
    let values =
        named.into_iter().filter_map(|(clause, key)| Some((key.to_owned(), rule.clause(clause)?.get(0)?.clone())));
    values.collect()
}

/// Returns a capability for each of the first patterns that a rule names.
fn capabilities(rule: &WrittenRule) -> Vec<Capability> {
    let patterns = rule.clause("capabilities").and_then(Value::as_array);
    let texts = patterns.into_iter().flatten().filter_map(Value::as_str).take(MAX_PATTERNS);
    let named: Vec<Capability> = texts.flat_map(one_of_each).collect();
    if named.is_empty() { "task:read".parse().into_iter().collect() } else { named }
}

/// Returns a writing and a reading capability if a pattern does not decide.
fn one_of_each(pattern: &str) -> Vec<Capability> {
    let Some((resource, operation)) = pattern.split_once(':') else { return Vec::new() };
    let resource = if resource == "*" { "task" } else { resource };
    let operations = if operation == "*" { vec!["write", "read"] } else { vec![operation] };
    operations.into_iter().filter_map(|operation| format!("{resource}:{operation}").parse().ok()).collect()
}

/// Returns the same, plus what a degrading rule leaves, and some that it does not name.
fn all_capabilities(rule: &WrittenRule) -> Vec<Capability> {
    let mut all = capabilities(rule);
    let left = rule.fields.get("to").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let left = left.take(MAX_PATTERNS).flat_map(one_of_each);
    let others = OTHERS.iter().filter_map(|text| text.parse().ok());
    for one in left.chain(others) {
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
    if !request.traits.attributes.is_empty() {
        words.push_str(", attributes ");
        words.push_str(&Value::Object(request.traits.attributes.clone()).to_string());
    }
    if request.now != Timestamp::from_millis(0) {
        words.extend([", at ".to_owned(), request.now.to_string()]);
    }
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

/// Describes the verdicts on a request without and with the change.
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

/// Returns a name that a glob matches, with a letter for each wildcard.
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
const MAX_EXAMPLES: usize = 4;
/// Largest number of other rules whose capabilities are tried, and of capabilities of each.
const MAX_OTHERS: usize = 32;
const MAX_MET: usize = 3;
/// Largest number of requests tried; each costs two evaluations.
const MAX_TRIED: usize = 20_000;
