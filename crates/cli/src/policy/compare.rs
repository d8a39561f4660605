//! `rulekeep policy diff`: two policy sets, rule by rule and decision by decision.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use rulekeep::policy::{PolicyRequest, PolicyVerdict};
use rulekeep::{Decision, PolicySet};
use serde::Serialize;
use serde_json::{Map, Value};

use super::cases::{PolicyCases, Written, WrittenRule};
use super::past::{self, Range};

/// The arguments of `rulekeep policy diff`.
#[derive(Args)]
pub struct Arguments {
    /// The policy document before: .toml or .json
    before: PathBuf,
    /// The policy document after
    after: PathBuf,
    /// Compares the decisions on these cases: .toml or .json
    #[arg(long, value_name = "FILE")]
    cases: Option<PathBuf>,
    /// Compares the decisions on the log of this store, which is only read
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    #[command(flatten)]
    range: Range,
    /// Prints the differences as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// The differences between two sets.
#[derive(Default, Serialize)]
struct Differences {
    rules: Vec<RuleDifference>,
    /// Changed decisions, those that became most permissive first.
    decisions: Vec<DecisionDifference>,
    /// Number of requests that both sets decided.
    compared: u64,
    /// Number of records whose evidence cannot be read: erased, or in another format.
    unreadable: u64,
}

#[derive(Serialize)]
struct RuleDifference {
    rule: String,
    /// The kind of change: `added`, `removed` or `changed`.
    change: &'static str,
    /// The clauses that differ, as written in the documents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    clauses: Vec<ClauseDifference>,
}

#[derive(Serialize)]
struct ClauseDifference {
    clause: String,
    before: Option<Value>,
    after: Option<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DecisionDifference {
    /// The name of a case, or the ID of a record.
    request: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    before: Outcome,
    after: Outcome,
}

#[derive(PartialEq, Serialize)]
struct Outcome {
    /// The decision; `None` if a condition failed.
    decision: Option<Decision>,
    granted: Vec<String>,
    constraints: Value,
    rules: Vec<String>,
}

/// Compares two sets. Returns whether there is no difference.
pub(super) fn run(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    let (before, after) = (PolicySet::from_file(&arguments.before)?, PolicySet::from_file(&arguments.after)?);
    let mut found = Differences { rules: rules(&before, &after), ..Differences::default() };
    if let Some(cases) = &arguments.cases {
        let parser = rulekeep::intent::Parser::new()?;
        let read =
            |agent: &_, text: &str, context: &_| parser.parse_text(agent, text, context).map(|parsed| parsed.intent);
        for (name, request) in PolicyCases::from_file(cases)?.requests(&after, &read) {
            let request = request.map_err(|why| format!("case {name:?} cannot be read: {why}"))?;
            found.compare(&before, &after, &request.policy_request(), || (name.to_owned(), None, None, None));
        }
    }
    if let Some(store) = &arguments.store {
        let governor = past::open(store)?;
        found.unreadable = arguments.range.each(&governor, |past| {
            let told = || {
                let (agent, action) = (past.record.entity_id.to_string(), past.intent.parsed_action.to_string());
                (past.record.id.to_string(), Some(agent), Some(action), Some(past.record.timestamp.to_string()))
            };
            if !past.is_barred() {
                found.compare(&before, &after, &past.request(), told);
            }
        })?;
        governor.close()?;
    }
    found
        .decisions
        .sort_by_key(|change| std::cmp::Reverse(freedom(change.after.decision) - freedom(change.before.decision)));
    if arguments.json {
        super::print_json(&found)?;
    } else {
        super::print(told(&found)?)?;
    }
    Ok(found.rules.is_empty() && found.decisions.is_empty())
}

impl Differences {
    fn compare(
        &mut self,
        before: &PolicySet,
        after: &PolicySet,
        request: &PolicyRequest<'_>,
        told: impl Fn() -> (String, Option<String>, Option<String>, Option<String>),
    ) {
        self.compared += 1;
        let [before, after] = [before, after].map(|set| Outcome::of(set.evaluate(request).ok()));
        let is_same = before.decision == after.decision
            && before.granted == after.granted
            && before.constraints == after.constraints;
        if !is_same {
            let (request, agent, action, at) = told();
            self.decisions.push(DecisionDifference { request, agent, action, at, before, after });
        }
    }
}

impl Outcome {
    fn of(verdict: Option<PolicyVerdict>) -> Self {
        let Some(verdict) = verdict else {
            return Self { decision: None, granted: Vec::new(), constraints: Value::Null, rules: Vec::new() };
        };
        Self {
            decision: Some(verdict.decision),
            granted: verdict.granted.iter().map(ToString::to_string).collect(),
            constraints: serde_json::to_value(&verdict.constraints).unwrap_or_default(),
            rules: verdict.rules.iter().map(ToString::to_string).collect(),
        }
    }
}

/// The rank of a decision by what it permits; a failed one permits nothing.
fn freedom(decision: Option<Decision>) -> i8 {
    match decision {
        None | Some(Decision::Deny) => 0,
        Some(Decision::Escalate) => 1,
        Some(Decision::Degrade) => 2,
        Some(Decision::Allow) => 3,
    }
}

/// Compares the rules of two sets by their IDs. The format, order and name of a document are not compared.
fn rules(before: &PolicySet, after: &PolicySet) -> Vec<RuleDifference> {
    let (old, new) = (Written::of(before).rules, Written::of(after).rules);
    let find =
        |rules: &[WrittenRule], id: &str| rules.iter().find(|rule| rule.id == id).map(|rule| rule.fields.clone());
    let ids: BTreeSet<&str> = old.iter().chain(&new).map(|rule| rule.id.as_str()).collect();
    ids.into_iter()
        .filter(|id| before.rule_digest(id) != after.rule_digest(id))
        .map(|id| {
            let (old, new) = (find(&old, id), find(&new, id));
            let change = match (&old, &new) {
                (None, _) => "added",
                (_, None) => "removed",
                (Some(_), Some(_)) => "changed",
            };
            let mut clauses = Vec::new();
            if change == "changed" {
                differing("", &old.unwrap_or_default(), &new.unwrap_or_default(), &mut clauses);
                if clauses.is_empty() {
                    // The rule's text is the same but its digest differs, so the list of people behind its reviewer
                    // differs.
                    clauses.push(ClauseDifference { clause: "reviewers".to_owned(), before: None, after: None });
                }
            }
            RuleDifference { rule: id.to_owned(), change, clauses }
        })
        .collect()
}

fn differing(path: &str, old: &Map<String, Value>, new: &Map<String, Value>, found: &mut Vec<ClauseDifference>) {
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for key in keys {
        let clause = format!("{path}{key}");
        match (old.get(key), new.get(key)) {
            (before, after) if before == after => {}
            (Some(Value::Object(before)), Some(Value::Object(after))) => {
                differing(&format!("{clause}."), before, after, found);
            }
            (before, after) => {
                found.push(ClauseDifference { clause, before: before.cloned(), after: after.cloned() });
            }
        }
    }
}

fn told(found: &Differences) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    for rule in &found.rules {
        writeln!(text, "{:<8} rule {}", rule.change, rule.rule)?;
        for ClauseDifference { clause, before, after } in &rule.clauses {
            let shown = |value: &Option<Value>| value.as_ref().map_or_else(|| "absent".to_owned(), Value::to_string);
            if clause == "reviewers" && before.is_none() && after.is_none() {
                writeln!(text, "           the people behind its reviewer")?;
            } else {
                writeln!(text, "           {clause}: {} -> {}", shown(before), shown(after))?;
            }
        }
    }
    for DecisionDifference { request, agent, action, at, before, after } in &found.decisions {
        let place = [at, agent, action].into_iter().flatten().chain([request]);
        let place: Vec<&str> = place.map(String::as_str).collect();
        let shown = |outcome: &Outcome| {
            let decision = outcome.decision.map_or("POLICY_ERROR", Decision::as_str);
            let rules = if outcome.rules.is_empty() { "no rule".to_owned() } else { outcome.rules.join(", ") };
            format!("{decision} ({rules})")
        };
        writeln!(text, "{}: {} -> {}", place.join("  "), shown(before), shown(after))?;
    }
    let (rules, decisions) = (found.rules.len(), found.decisions.len());
    writeln!(text, "{rules} rules differ; {decisions} of {} decisions differ", found.compared)?;
    if found.unreadable > 0 {
        writeln!(
            text,
            "{} records could not be compared: their evidence was erased or has another format",
            found.unreadable
        )?;
    }
    Ok(text)
}
