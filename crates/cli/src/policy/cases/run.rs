//! Running cases against a policy set: each becomes a request, and its verdict is compared with the expected one.

use std::collections::BTreeMap;

use rulekeep::agent::AgentTraits;
use rulekeep::document::did_you_mean;
use rulekeep::intent::{Capability, InvalidValue};
use rulekeep::policy::{PolicyRequest, PolicyVerdict};
use rulekeep::system::Timestamp;
use rulekeep::trust::TrustSnapshot;
use rulekeep::{Intent, PolicySet, RiskLevel};
use serde_json::{Value, json};

use super::coverage::Tally;
use super::read::{Asked, Case, Expect, Outcome, POLICY_ERROR};
use super::report::{CaseDifference, CaseReport, CaseResult, MutantReport};
use super::written::Written;
use super::{CaseReader, PolicyCases};
use crate::policy::explain::add_environment;

/// Cases that were run against a set.
pub(super) struct Run<'a> {
    pub(super) policies: &'a PolicySet,
    pub(super) cases: Vec<Held<'a>>,
    pub(super) tally: Tally,
}

/// A case, its request and its result.
pub(super) struct Held<'a> {
    pub(super) case: &'a Case,
    /// The request; `None` if the text could not be read.
    pub(super) request: Option<CaseRequest>,
    pub(super) verdict: Option<PolicyVerdict>,
    pub(super) result: CaseResult,
}

/// A request to the policies, with everything it borrows.
#[derive(Debug, Clone)]
pub(in crate::policy) struct CaseRequest {
    pub(super) intent: Intent,
    pub(super) risk: RiskLevel,
    pub(super) trust: TrustSnapshot,
    pub(super) traits: AgentTraits,
    pub(super) now: Timestamp,
    pub(super) used: BTreeMap<String, f64>,
}

impl<'a> Run<'a> {
    pub(super) fn of(cases: &'a PolicyCases, policies: &'a PolicySet, reader: &dyn CaseReader) -> Self {
        let mut tally = Tally::of(policies);
        let cases = cases.cases.iter().map(|case| Held::of(case, policies, reader, &mut tally)).collect();
        Self { policies, cases, tally }
    }

    pub(super) fn into_report(self, mutants: Option<MutantReport>) -> CaseReport {
        CaseReport {
            policies: self.policies.name().to_owned(),
            policy_digest: self.policies.digest(),
            cases: self.cases.into_iter().map(|held| held.result).collect(),
            coverage: self.tally.coverage(),
            mutants,
        }
    }
}

impl<'a> Held<'a> {
    fn of(case: &'a Case, policies: &PolicySet, reader: &dyn CaseReader, tally: &mut Tally) -> Self {
        let mut result = CaseResult {
            name: case.name.clone(),
            line: case.line,
            passed: false,
            warning: None,
            differences: Vec::new(),
            decision: None,
            reasoning: String::new(),
            rules: Vec::new(),
        };
        let request = match CaseRequest::of(case, policies, reader) {
            Ok(request) => request,
            Err(message) => {
                result.differences.push(difference("input", json!("a text that can be read"), json!(message)));
                return Self { case, request: None, verdict: None, result };
            }
        };
        let least = reader.risk(&request.intent);
        if request.risk < least {
            let risk = request.risk;
            result.warning =
                Some(format!("the case states risk {risk}, but a governor rates the request {least} or higher"));
        }
        let verdict = request.evaluate(policies);
        let traces = policies.explain_with_usage(&request.policy_request(), &request.used);
        tally.add(&request, &traces, verdict.as_ref());
        if verdict.is_ok() {
            let decided = traces.into_iter().filter(|trace| trace.decided);
            result.rules = decided.map(|trace| trace.rule).collect();
        }
        let verdict = match verdict {
            Ok(verdict) => {
                result.differences = case.expect.differences(&verdict);
                result.differences.extend(case.expect.missing_rules(&result.rules, &tally.written));
                result.decision = Some(verdict.decision);
                result.reasoning.clone_from(&verdict.reasoning);
                Some(verdict)
            }
            Err(message) => {
                match case.expect.outcome {
                    Outcome::Decision(decision) => {
                        let found = json!(format!("{POLICY_ERROR}: {message}"));
                        result.differences.push(difference("decision", json!(decision), found));
                    }
                    Outcome::PolicyError => result.reasoning = message,
                }
                None
            }
        };
        result.differences.extend(idle_uses(case, &tally.written));
        result.passed = result.differences.is_empty();
        Self { case, request: Some(request), verdict, result }
    }
}

/// Returns a difference for each use of a limit that does not exist.
fn idle_uses<'a>(case: &'a Case, written: &'a Written) -> impl Iterator<Item = CaseDifference> + 'a {
    let has_limit = |id: &str| written.rules.iter().any(|rule| rule.id == id && rule.has_limit());
    let idle = case.used.keys().filter(move |id| !has_limit(id));
    let limited = || written.rules.iter().filter(|rule| rule.has_limit()).map(|rule| rule.id.as_str());
    idle.map(move |id| {
        let meant = did_you_mean(id, limited());
        difference(&format!("used.{id}"), json!(format!("a rule with a limit{meant}")), Value::Null)
    })
}

impl CaseRequest {
    pub(super) fn of(case: &Case, policies: &PolicySet, reader: &dyn CaseReader) -> Result<Self, String> {
        let (intent, risk) = match &case.asked {
            Asked::Intent { intent, risk } => ((**intent).clone(), *risk),
            Asked::Text { text, context } => {
                let agent = case.agent_id.parse().map_err(|error: InvalidValue| error.to_string())?;
                let mut intent = reader.read(&agent, text, context).map_err(|error| error.to_string())?;
                add_environment(policies, &intent.facts(), &mut intent.context)?;
                (intent, None)
            }
        };
        let risk = risk.unwrap_or_else(|| reader.risk(&intent));
        let (traits, used) = (case.traits.clone(), case.used.clone());
        Ok(Self { intent, risk, trust: case.trust, traits, now: case.now, used })
    }

    pub(in crate::policy) fn policy_request(&self) -> PolicyRequest<'_> {
        PolicyRequest::new(&self.intent, self.trust).at_risk(self.risk).of_agent(&self.traits).at(self.now)
    }

    pub(super) fn evaluate(&self, policies: &PolicySet) -> Result<PolicyVerdict, String> {
        policies.evaluate_with_usage(&self.policy_request(), &self.used).map_err(|error| error.to_string())
    }
}

impl Expect {
    /// Returns the differences of a verdict from the expected one, except for rules.
    pub(super) fn differences(&self, verdict: &PolicyVerdict) -> Vec<CaseDifference> {
        let mut differences = Vec::new();
        match self.outcome {
            Outcome::Decision(expected) if expected != verdict.decision => {
                differences.push(difference("decision", json!(expected), json!(verdict.decision)));
            }
            Outcome::Decision(_) => {}
            Outcome::PolicyError => {
                differences.push(difference("error", json!(POLICY_ERROR), json!(verdict.decision)));
            }
        }
        for (what, expected, found) in
            [("granted", &self.granted, &verdict.granted), ("denied", &self.denied, &verdict.denied)]
        {
            if let Some(expected) = expected
                && sorted(expected) != sorted(found)
            {
                differences.push(difference(what, json!(expected), json!(found)));
            }
        }
        for (key, expected) in &self.constraints {
            let found = verdict.constraints.get(key).unwrap_or(&Value::Null);
            if !is_equal(expected, found) {
                differences.push(difference(&format!("constraints.{key}"), expected.clone(), found.clone()));
            }
        }
        for key in &self.unconstrained {
            if let Some(found) = verdict.constraints.get(key) {
                differences.push(difference(&format!("constraints.{key}"), Value::Null, found.clone()));
            }
        }
        if let Some(reviewer) = &self.reviewer
            && Some(&**reviewer) != verdict.reviewer.as_deref()
        {
            differences.push(difference("reviewer", json!(reviewer), json!(verdict.reviewer)));
        }
        differences
    }

    fn missing_rules(&self, decided: &[String], written: &Written) -> Option<CaseDifference> {
        let all = || written.rules.iter().map(|rule| rule.id.as_str());
        let told = |rule: &String| {
            if all().any(|id| id == rule) {
                return rule.clone();
            }
            format!("{rule} (there is no such rule{})", did_you_mean(rule, all()))
        };
        let is_missing = self.rules.iter().any(|rule| !decided.contains(rule));
        let expected = || self.rules.iter().map(told).collect::<Vec<_>>();
        is_missing.then(|| difference("rules", json!(expected()), json!(decided)))
    }
}

fn sorted(capabilities: &[Capability]) -> Vec<&str> {
    let mut texts: Vec<&str> = capabilities.iter().map(Capability::as_str).collect();
    texts.sort_unstable();
    texts.dedup();
    texts
}

/// Compares values: 1 and 1.0 are the same number, and a list in a constraint is a set.
fn is_equal(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            let has = |all: &[Value], one: &Value| all.iter().any(|item| is_equal(item, one));
            a.iter().all(|one| has(b, one)) && b.iter().all(|one| has(a, one))
        }
        (a, b) => a == b,
    }
}

fn difference(what: &str, expected: Value, found: Value) -> CaseDifference {
    CaseDifference { what: what.to_owned(), expected, found }
}
