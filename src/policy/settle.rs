//! From findings to a verdict that stands: with the limits that have no room
//! left, and with conditions that failed.
//!
//! A verdict is first found as if every limit had room. Where one has none, its
//! rule no longer grants and the verdict is found anew. A condition that fails may
//! hold or not: the verdict is found both ways, and stands if it is the same.

use std::sync::Arc;

use super::evaluate::{Engine, Findings, Standing};
use super::limit::{Charge, LimitUse, Meter};
use super::request::PolicyRequest;
use super::verdict::{ConditionFailure, PolicyVerdict};
use crate::model::{Decision, Error};

/// Conditions that failed, on which a verdict hangs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Undecided(pub(crate) Vec<ConditionFailure>);

impl Undecided {
    pub(crate) fn into_error(self, policies: &str) -> Error {
        let told: Vec<String> =
            self.0.iter().map(|failure| format!("rule {:?}, {}", failure.rule, failure.message)).collect();
        let message = format!(
            "policy {policies:?}: the decision hangs on a condition that failed: {}; send what it needs, or have the rule mended",
            told.join("; ")
        );
        Error::Policy { message, problems: Vec::new() }
    }
}

/// What is taken for given while rules are held against a request.
#[derive(Debug, Clone, Default)]
pub(super) struct Given {
    /// Groups whose limit is used up.
    spent: Vec<u32>,
    /// How conditions that failed are taken to stand.
    assumed: Vec<(u32, bool)>,
}

impl Given {
    pub(super) const fn has_spent(&self) -> bool {
        !self.spent.is_empty()
    }

    pub(super) fn is_spent(&self, group: u32) -> bool {
        self.spent.contains(&group)
    }

    pub(super) fn assumed(&self, group: u32) -> Option<bool> {
        self.assumed.iter().find(|(known, _)| *known == group).map(|(_, holds)| *holds)
    }

    fn with(&self, group: u32, holds: bool) -> Self {
        let mut given = self.clone();
        given.assumed.push((group, holds));
        given
    }
}

/// Findings, with what they say of limits.
pub(super) struct Settled {
    pub(super) findings: Findings,
    pub(super) limits: Vec<LimitUse>,
    pub(super) charges: Vec<Charge>,
}

impl Engine {
    /// Decides on a request.
    ///
    /// # Errors
    ///
    /// [`Undecided`] when conditions failed and the verdict hangs on them.
    pub(super) fn evaluate(
        &self,
        request: &PolicyRequest<'_>,
        meter: &mut dyn Meter,
    ) -> Result<PolicyVerdict, Undecided> {
        let settled = self.settle(request, Given::default(), meter);
        let Some(failed) = &settled.findings.failed else { return Ok(self.verdict(request, settled)) };
        let (group, message) = failed.clone();
        self.evaluate_both_ways(request, group, message, meter)
    }

    /// Findings as the limits leave them.
    pub(super) fn settle(&self, request: &PolicyRequest<'_>, mut given: Given, meter: &mut dyn Meter) -> Settled {
        let findings = self.find(request, &given);
        if !self.has_limits() {
            return Settled { findings, limits: Vec::new(), charges: Vec::new() };
        }
        let mut uses: Vec<(LimitUse, Charge)> = Vec::new();
        for group in self.limited(&findings) {
            let Some(rule) = self.lead(group) else { continue };
            let Some(limit) = &rule.limit else { continue };
            let (charges, is_known) = limit.charges(rule, request);
            let mut is_spent = !is_known;
            for charge in charges {
                let now = meter.used(&charge);
                let limit_use = LimitUse {
                    rule: Arc::clone(&rule.id),
                    counter: charge.counter.clone(),
                    used: now.amount,
                    most: charge.most,
                    amount: is_known.then_some(charge.amount),
                    charged: false,
                    frees_at: now.frees_at,
                };
                is_spent |= now.is_full || limit_use.is_spent();
                uses.push((limit_use, charge));
            }
            if is_spent {
                given.spent.push(group);
            }
        }
        let findings = if given.has_spent() { self.find(request, &given) } else { findings };
        let is_granting = matches!(findings.decision(), Decision::Allow | Decision::Degrade);
        let still: Vec<Arc<str>> = self
            .limited(&findings)
            .filter(|group| is_granting && !given.is_spent(*group))
            .filter_map(|group| Some(Arc::clone(&self.lead(group)?.id)))
            .collect();
        let mut charges = Vec::new();
        let mut limits = Vec::with_capacity(uses.len());
        for (mut limit, charge) in uses {
            if still.contains(&limit.rule) {
                limit.charged = true;
                charges.push(charge);
            }
            limits.push(limit);
        }
        Settled { findings, limits, charges }
    }

    /// The limited groups that grant something, each once.
    fn limited(&self, findings: &Findings) -> impl Iterator<Item = u32> {
        let mut groups: Vec<u32> = findings
            .groups_of(|standing| standing == Standing::Granted)
            .filter(|group| self.lead(*group).is_some_and(|rule| rule.limit.is_some()))
            .collect();
        groups.sort_unstable();
        groups.dedup();
        groups.into_iter()
    }

    /// The verdict that is the same however the failed conditions are taken to stand.
    fn evaluate_both_ways(
        &self,
        request: &PolicyRequest<'_>,
        group: u32,
        message: String,
        meter: &mut dyn Meter,
    ) -> Result<PolicyVerdict, Undecided> {
        let mut failures = vec![self.failure(group, message)];
        let mut open = vec![Given::default().with(group, false), Given::default().with(group, true)];
        let mut stands: Option<PolicyVerdict> = None;
        while let Some(given) = open.pop() {
            let settled = self.settle(request, given.clone(), meter);
            if let Some((group, message)) = &settled.findings.failed {
                // Each further condition that fails doubles the ways; past a few it is not worth it.
                let failure = self.failure(*group, message.clone());
                if !failures.contains(&failure) {
                    failures.push(failure);
                }
                if failures.len() > MOST_FAILURES {
                    return Err(Undecided(failures));
                }
                open.extend([given.with(*group, false), given.with(*group, true)]);
                continue;
            }
            let verdict = self.verdict(request, settled);
            match &stands {
                Some(known) if !is_same(known, &verdict) => return Err(Undecided(failures)),
                Some(_) => {}
                None => stands = Some(verdict),
            }
        }
        let Some(mut verdict) = stands else { return Err(Undecided(failures)) };
        for failure in &failures {
            let told = format!(
                " The condition of rule {:?} failed ({}), which changes nothing here.",
                failure.rule, failure.message
            );
            verdict.reasoning.push_str(&told);
        }
        verdict.failures = failures;
        Ok(verdict)
    }

    fn failure(&self, group: u32, message: String) -> ConditionFailure {
        let rule = self.lead(group).map_or_else(|| Arc::from(""), |rule| Arc::clone(&rule.id));
        ConditionFailure { rule, message }
    }
}

/// Whether two verdicts come to the same for whoever acts on them.
fn is_same(one: &PolicyVerdict, other: &PolicyVerdict) -> bool {
    one.decision == other.decision
        && one.granted == other.granted
        && one.denied == other.denied
        && one.constraints == other.constraints
        && one.reviewer == other.reviewer
        && one.on_approval == other.on_approval
        && one.charges == other.charges
}

/// Most conditions of one decision that may fail before it fails as a whole.
const MOST_FAILURES: usize = 6;
