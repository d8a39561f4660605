//! Coverage: which rules decide some case, and which clauses the cases see both hold and fail.
//!
//! A clause counts as held when its rule matched. It counts as failed when it alone kept the rule from matching:
//! without the clause the rule would have matched the same request. A case that differs from the rule in two ways
//! counts for neither.

use std::collections::{BTreeMap, HashMap};

use rulekeep::PolicySet;
use rulekeep::policy::{PolicyVerdict, RuleTrace};

use super::report::{ClauseCoverage, Coverage, RuleCoverage, percent};
use super::run::CaseRequest;
use super::written::{Written, WrittenClause};

/// The coverage so far.
pub(super) struct Tally {
    pub(super) written: Written,
    rules: Vec<RuleTally>,
    /// Rules without one clause, by the numbers of both; created when first needed.
    without: HashMap<(usize, usize), Option<PolicySet>>,
}

struct RuleTally {
    line: usize,
    decided: usize,
    clauses: Vec<(WrittenClause, ClauseCoverage)>,
}

impl Tally {
    pub(super) fn of(policies: &PolicySet) -> Self {
        let written = Written::of(policies);
        let rules = written.rules.iter().map(|rule| {
            let clauses = rule.clauses().into_iter().map(|clause| {
                let coverage = ClauseCoverage { clause: clause.name.clone(), held: 0, failed: 0 };
                (clause, coverage)
            });
            RuleTally { line: 0, decided: 0, clauses: clauses.collect() }
        });
        let rules = rules.collect();
        Self { written, rules, without: HashMap::new() }
    }

    /// Adds a case, with the trace of every rule and the result.
    pub(super) fn add(
        &mut self,
        request: &CaseRequest,
        traces: &[RuleTrace],
        verdict: Result<&PolicyVerdict, &String>,
    ) {
        for (number, trace) in traces.iter().enumerate() {
            let Some(rule) = self.rules.get_mut(number) else { break };
            rule.line = trace.line;
            // If nothing was decided, no rule decided it, and no clause made the difference.
            let Ok(verdict) = verdict else { continue };
            rule.decided += usize::from(trace.decided);
            let is_spent = is_spent(verdict, &trace.rule);
            // A condition that could not be evaluated neither held nor failed.
            let is_broken = is_broken(verdict, &trace.rule);
            let mut alone = None;
            for (place, (clause, coverage)) in rule.clauses.iter_mut().enumerate() {
                if trace.matched {
                    let failed = clause.name == "limit" && is_spent;
                    coverage.failed += usize::from(failed);
                    coverage.held += usize::from(!failed);
                } else if trace.failed.as_ref() == Some(&clause.name)
                    && alone.is_none()
                    && !(is_broken && clause.is_condition())
                {
                    let Some(written) = self.written.rules.get(number) else { break };
                    let without = self
                        .without
                        .entry((number, place))
                        .or_insert_with(|| self.written.alone_without(written, clause))
                        .as_ref();
                    let request = request.policy_request();
                    let matches = without.is_some_and(|set| {
                        set.explain_with_usage(&request, &BTreeMap::new()).iter().any(|trace| trace.matched)
                    });
                    if matches {
                        coverage.failed += 1;
                        alone = Some(place);
                    }
                }
            }
        }
    }

    pub(super) fn coverage(&self) -> Coverage {
        let rules: Vec<RuleCoverage> = self
            .rules
            .iter()
            .zip(&self.written.rules)
            .map(|(tally, rule)| RuleCoverage {
                rule: rule.id.clone(),
                line: tally.line,
                decided: tally.decided,
                clauses: tally.clauses.iter().map(|(_, coverage)| coverage.clone()).collect(),
            })
            .collect();
        let clauses = || rules.iter().flat_map(|rule| &rule.clauses);
        Coverage {
            rules_percent: share(rules.iter().map(RuleCoverage::is_covered)),
            clauses_percent: share(clauses().map(ClauseCoverage::is_covered)),
            rules,
        }
    }

    /// The line of a rule, by its number in the set.
    pub(super) fn line(&self, rule: usize) -> usize {
        self.rules.get(rule).map_or(0, |rule| rule.line)
    }
}

fn is_spent(verdict: &PolicyVerdict, rule: &str) -> bool {
    verdict.limits.iter().any(|limit| &*limit.rule == rule && limit.is_spent())
}

fn is_broken(verdict: &PolicyVerdict, rule: &str) -> bool {
    verdict.failures.iter().any(|failure| &*failure.rule == rule)
}

fn share(covered: impl Iterator<Item = bool>) -> f64 {
    let (mut part, mut whole) = (0.0, 0.0);
    for is_covered in covered {
        whole += 1.0;
        part += if is_covered { 1.0 } else { 0.0 };
    }
    percent(part, whole)
}
