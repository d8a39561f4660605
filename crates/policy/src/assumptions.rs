//! Evaluation under assumptions: limits without room, and conditions that failed.
//!
//! A verdict is first computed as if every limit had room. If a limit has none, its rule no longer grants and the
//! verdict is computed again. A condition that fails may hold or not: the verdict is computed both ways, and stands
//! if both are equal.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::evaluate::{Engine, Findings, Standing};
use super::limit::{Charge, LimitUse, Meter};
use super::request::PolicyRequest;
use super::rule::Effect;
use super::verdict::{ConditionFailure, Need, PolicyVerdict};
use rulekeep_types::{Decision, Error};

/// The failed conditions that a verdict depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Undecided(pub(crate) Vec<ConditionFailure>);

impl Undecided {
    pub(crate) fn into_error(self, policies: &str) -> Error {
        let told: Vec<String> = self
            .0
            .iter()
            .take(MOST_TOLD)
            .map(|failure| format!("rule {:?} at {}, {}", failure.rule, failure.place, failure.message))
            .collect();
        let message = format!(
            "policy {policies:?}: the decision depends on a condition that failed: {}; send the values it reads, or \
             fix the rule",
            told.join("; ")
        );
        Error::PolicyFailed { message, proof_id: None }
    }
}

/// The assumptions under which the rules are evaluated for a request.
#[derive(Debug, Clone, Default)]
pub(super) struct Assumptions {
    /// The groups whose limit is used up.
    spent: BTreeSet<u32>,
    /// The failed conditions that are assumed to hold.
    failed_hold: FailedHold,
    /// Whether a reviewer has approved: escalating rules are skipped, and rules that escalate past their limit grant.
    approved: bool,
}

/// The failed conditions that are assumed to hold.
#[derive(Debug, Clone, Default)]
enum FailedHold {
    #[default]
    None,
    /// The conditions of these groups.
    Of(Vec<u32>),
    /// The conditions of all rules with some effects.
    OfEffects([bool; Effect::ALL.len()]),
}

impl Assumptions {
    pub(super) fn has_spent(&self) -> bool {
        !self.spent.is_empty()
    }

    pub(super) fn is_spent(&self, group: u32) -> bool {
        self.spent.contains(&group)
    }

    pub(super) fn failed_holds(&self, group: u32, effect: Effect) -> bool {
        match &self.failed_hold {
            FailedHold::None => false,
            FailedHold::Of(groups) => groups.contains(&group),
            FailedHold::OfEffects(effects) => effects.get(effect as usize).copied().unwrap_or_default(),
        }
    }

    pub(super) const fn is_approved(&self) -> bool {
        self.approved
    }

    /// The same assumptions after an approval.
    pub(super) fn approved(&self) -> Self {
        Self { approved: true, ..self.clone() }
    }
}

/// The condition results of each group, so that none is evaluated twice for one request.
#[derive(Debug, Default)]
pub(super) struct ConditionCache(RefCell<BTreeMap<u32, Truth>>);

/// The result of a group's conditions.
#[derive(Debug, Clone)]
enum Truth {
    Holds(bool),
    Failed(String),
}

impl ConditionCache {
    /// Returns whether the conditions of a group hold, running them if needed; `None` if one failed.
    pub(super) fn ask(&self, group: u32, run: impl FnOnce() -> Result<bool, String>) -> Option<bool> {
        let told = |truth: &Truth| match truth {
            Truth::Holds(holds) => Some(*holds),
            Truth::Failed(_) => None,
        };
        if let Some(truth) = self.0.borrow().get(&group) {
            return told(truth);
        }
        let truth = run().map_or_else(Truth::Failed, Truth::Holds);
        let answer = told(&truth);
        self.0.borrow_mut().insert(group, truth);
        answer
    }

    fn has_failures(&self) -> bool {
        self.0.borrow().values().any(|truth| matches!(truth, Truth::Failed(_)))
    }

    /// The groups whose conditions failed, sorted, with the reasons.
    fn failures(&self) -> Vec<(u32, String)> {
        let failed = |(group, truth): (&u32, &Truth)| match truth {
            Truth::Failed(message) => Some((*group, message.clone())),
            Truth::Holds(_) => None,
        };
        self.0.borrow().iter().filter_map(failed).collect()
    }
}

/// Findings with the state of the limits.
pub(super) struct Resolved {
    pub(super) findings: Findings,
    pub(super) limits: Vec<LimitUse>,
    pub(super) charges: Vec<Charge>,
    /// The findings after an approval; only for an escalation.
    pub(super) approved: Option<Approved>,
}

/// The findings after an approval.
pub(super) struct Approved {
    pub(super) findings: Findings,
    pub(super) charges: Vec<Charge>,
}

impl Engine {
    /// Decides a request.
    ///
    /// # Errors
    ///
    /// [`Undecided`] if conditions failed and the verdict depends on them.
    pub(super) fn evaluate(
        &self,
        request: &PolicyRequest<'_>,
        meter: &mut dyn Meter,
    ) -> Result<PolicyVerdict, Undecided> {
        let cache = ConditionCache::default();
        let resolved = self.resolve_limits(request, Assumptions::default(), &cache, meter);
        // The reported verdict is the one without the rules whose conditions failed.
        let verdict = self.verdict(request, resolved);
        if !cache.has_failures() {
            return Ok(verdict);
        }
        self.stands_either_way(request, verdict, &cache, meter)
    }

    /// Returns the verdict if it is the same whether the rules whose conditions failed match or not.
    fn stands_either_way(
        &self,
        request: &PolicyRequest<'_>,
        mut verdict: PolicyVerdict,
        cache: &ConditionCache,
        meter: &mut dyn Meter,
    ) -> Result<PolicyVerdict, Undecided> {
        let stands = self
            .stands_by_groups(request, &verdict, cache, meter)
            .unwrap_or_else(|| self.stands_by_effects(request, &verdict, cache, meter));
        let failures: Vec<ConditionFailure> =
            cache.failures().into_iter().map(|(group, message)| self.failure(group, message)).collect();
        if !stands {
            return Err(Undecided(failures));
        }
        for failure in failures.iter().take(MOST_TOLD) {
            let told = format!(
                " The condition of rule {:?} at {} failed ({}), which does not affect this decision.",
                failure.rule, failure.place, failure.message
            );
            verdict.reasoning.push_str(&told);
        }
        verdict.failures = failures;
        Ok(verdict)
    }

    /// Returns whether the verdict stands in every combination of the failed conditions; `None` if there are too
    /// many. Assuming that some hold can cause further conditions to be evaluated, and to fail.
    fn stands_by_groups(
        &self,
        request: &PolicyRequest<'_>,
        verdict: &PolicyVerdict,
        cache: &ConditionCache,
        meter: &mut dyn Meter,
    ) -> Option<bool> {
        let mut tried = 0;
        loop {
            let failed: Vec<u32> = cache.failures().into_iter().map(|(group, _)| group).collect();
            if failed.len() > MOST_COMBINED {
                return None;
            }
            if failed.len() == tried {
                return Some(true);
            }
            tried = failed.len();
            for combination in 1..1_u32 << failed.len() {
                let holding = failed.iter().enumerate().filter(|(place, _)| combination & 1 << place != 0);
                let assumed = FailedHold::Of(holding.map(|(_, group)| *group).collect());
                if !self.stands(request, verdict, assumed, cache, meter) {
                    return Some(false);
                }
            }
        }
    }

    /// Returns whether the verdict stands when failed conditions are assumed to hold effect by effect, for large
    /// numbers of them. Rules of one effect change a verdict in the same direction, with three exceptions that leave
    /// it undecided if there is more than one: degrading rules, since each grants what another may withhold; rules
    /// with a limit, since each consumes its own; and escalations, since each names its reviewer.
    fn stands_by_effects(
        &self,
        request: &PolicyRequest<'_>,
        verdict: &PolicyVerdict,
        cache: &ConditionCache,
        meter: &mut dyn Meter,
    ) -> bool {
        let stands = (1..1_u8 << Effect::ALL.len()).all(|combination| {
            let effects = std::array::from_fn(|place| combination & 1 << place != 0);
            self.stands(request, verdict, FailedHold::OfEffects(effects), cache, meter)
        });
        let pulls_apart = |(group, _): &(u32, String)| {
            self.lead(*group)
                .is_some_and(|rule| matches!(rule.effect, Effect::Degrade | Effect::Escalate) || rule.limit.is_some())
        };
        stands && cache.failures().iter().filter(|failed| pulls_apart(failed)).count() <= 1
    }

    fn stands(
        &self,
        request: &PolicyRequest<'_>,
        verdict: &PolicyVerdict,
        failed_hold: FailedHold,
        cache: &ConditionCache,
        meter: &mut dyn Meter,
    ) -> bool {
        let assumed = Assumptions { failed_hold, ..Assumptions::default() };
        is_same(verdict, &self.verdict(request, self.resolve_limits(request, assumed, cache, meter)))
    }

    /// Resolves limits: computes the verdict as if every limit had room, and again without the rules whose limit has
    /// none.
    pub(super) fn resolve_limits(
        &self,
        request: &PolicyRequest<'_>,
        mut assumed: Assumptions,
        cache: &ConditionCache,
        meter: &mut dyn Meter,
    ) -> Resolved {
        let findings = self.find(request, &assumed, cache);
        if !self.has_limits() {
            let approved = self.find_approved(request, &findings, &assumed, cache);
            return Resolved { findings, limits: Vec::new(), charges: Vec::new(), approved };
        }
        let mut uses: Vec<(u32, LimitUse, Charge)> = Vec::new();
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
                uses.push((group, limit_use, charge));
            }
            if is_spent {
                assumed.spent.insert(group);
            }
        }
        let findings = if assumed.has_spent() { self.find(request, &assumed, cache) } else { findings };
        let is_granting = matches!(findings.decision(), Decision::Allow | Decision::Degrade);
        let still: BTreeSet<u32> =
            self.limited(&findings).filter(|group| is_granting && !assumed.is_spent(*group)).collect();
        let mut charges = Vec::new();
        let mut limits = Vec::with_capacity(uses.len());
        for (group, mut limit, charge) in uses {
            if still.contains(&group) {
                limit.charged = true;
                charges.push(charge);
            }
            limits.push(limit);
        }
        let approved = self.find_approved(request, &findings, &assumed, cache);
        Resolved { findings, limits, charges, approved }
    }

    /// Computes the findings after an approval.
    fn find_approved(
        &self,
        request: &PolicyRequest<'_>,
        findings: &Findings,
        assumed: &Assumptions,
        cache: &ConditionCache,
    ) -> Option<Approved> {
        if findings.decision() != Decision::Escalate {
            return None;
        }
        let mut assumed = assumed.approved();
        let findings = self.find(request, &assumed, cache);
        if !self.has_limits() {
            return Some(Approved { findings, charges: Vec::new() });
        }
        let (mut charges, mut is_past) = (Vec::new(), false);
        for group in self.limited(&findings) {
            let Some(rule) = self.lead(group) else { continue };
            let Some(limit) = &rule.limit else { continue };
            let (mut taken, is_known) = limit.charges(rule, request);
            let asks = limit.over.effect() == Effect::Escalate;
            if asks {
                // A reviewer who approves allows the use beyond the limit.
                for charge in &mut taken {
                    charge.most = i64::MAX;
                }
            }
            if is_known {
                charges.append(&mut taken);
            } else if !asks {
                // A use that cannot be counted is past the limit, and no approval goes beyond a limit that denies.
                assumed.spent.insert(group);
                is_past = true;
            }
        }
        if is_past {
            let findings = self.find(request, &assumed, cache);
            return Some(Approved { findings, charges: Vec::new() });
        }
        Some(Approved { findings, charges })
    }

    /// The groups with a limit that grant something, each once.
    fn limited(&self, findings: &Findings) -> impl Iterator<Item = u32> {
        let mut groups: Vec<u32> = findings
            .groups_of(|standing| standing == Standing::Granted)
            .filter(|group| self.lead(*group).is_some_and(|rule| rule.limit.is_some()))
            .collect();
        groups.sort_unstable();
        groups.dedup();
        groups.into_iter()
    }

    fn failure(&self, group: u32, message: String) -> ConditionFailure {
        let Some(rule) = self.lead(group) else {
            return ConditionFailure { rule: Arc::from(""), place: Box::default(), message };
        };
        ConditionFailure { rule: Arc::clone(&rule.id), place: self.citations().place(rule).into(), message }
    }
}

/// Maximum number of failed conditions for which every combination is tried.
const MOST_COMBINED: usize = 5;

/// Returns whether two verdicts have the same consequences.
fn is_same(one: &PolicyVerdict, other: &PolicyVerdict) -> bool {
    one.decision == other.decision
        && one.granted == other.granted
        && one.denied == other.denied
        && one.constraints == other.constraints
        && Need::asks_alike(&one.needs, &other.needs)
        && one.expires == other.expires
        && one.on_approval == other.on_approval
        && one.charges == other.charges
}

/// Maximum number of failed conditions named in the error.
const MOST_TOLD: usize = 3;
