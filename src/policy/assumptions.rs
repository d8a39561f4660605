//! Limits that have no room left and conditions that failed: the assumptions under which
//! a verdict is found, and whether it stands under all of them.
//!
//! A verdict is first found as if every limit had room. Where one has none, its
//! rule no longer grants and the verdict is found anew. A condition that fails may
//! hold or not: the verdict is found both ways, and stands if it is the same.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::evaluate::{Engine, Findings, Standing};
use super::limit::{Charge, LimitUse, Meter};
use super::request::PolicyRequest;
use super::rule::Effect;
use super::verdict::{ConditionFailure, Need, PolicyVerdict};
use crate::model::{Decision, Error};

/// Conditions that failed, on which a verdict depends.
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
            "policy {policies:?}: the decision hangs on a condition that failed: {}; send what it needs, or have the rule mended",
            told.join("; ")
        );
        Error::Policy { message, problems: Vec::new(), proof_id: None }
    }
}

/// The assumptions under which rules are evaluated on a request.
#[derive(Debug, Clone, Default)]
pub(super) struct Assumptions {
    /// Groups whose limit is used up.
    spent: BTreeSet<u32>,
    /// Which of the conditions that failed are taken to hold.
    failed_hold: FailedHold,
    /// A person has agreed: what asks for one is passed over, and what would ask past its limit grants.
    approved: bool,
}

/// Which of the conditions that failed are taken to hold.
#[derive(Debug, Clone, Default)]
enum FailedHold {
    #[default]
    None,
    /// Those of these groups.
    Of(Vec<u32>),
    /// All of rules of some effects.
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

    /// The same once a person has agreed.
    pub(super) fn approved(&self) -> Self {
        Self { approved: true, ..self.clone() }
    }
}

/// The results of the conditions of each group, so that none is evaluated twice for one request.
#[derive(Debug, Default)]
pub(super) struct ConditionCache(RefCell<BTreeMap<u32, Truth>>);

/// What a condition came to.
#[derive(Debug, Clone)]
enum Truth {
    Holds(bool),
    Failed(String),
}

impl ConditionCache {
    /// Whether the conditions of a group hold; none when one failed.
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

    /// The groups whose conditions failed, in order, and why.
    fn failures(&self) -> Vec<(u32, String)> {
        let failed = |(group, truth): (&u32, &Truth)| match truth {
            Truth::Failed(message) => Some((*group, message.clone())),
            Truth::Holds(_) => None,
        };
        self.0.borrow().iter().filter_map(failed).collect()
    }
}

/// Findings, with what they say of limits.
pub(super) struct Resolved {
    pub(super) findings: Findings,
    pub(super) limits: Vec<LimitUse>,
    pub(super) charges: Vec<Charge>,
    /// Findings once a person has agreed; only of an escalation.
    pub(super) approved: Option<Approved>,
}

/// What is found once a person has agreed.
pub(super) struct Approved {
    pub(super) findings: Findings,
    pub(super) charges: Vec<Charge>,
}

impl Engine {
    /// Decides on a request.
    ///
    /// # Errors
    ///
    /// [`Undecided`] when conditions failed and the verdict depends on them.
    pub(super) fn evaluate(
        &self,
        request: &PolicyRequest<'_>,
        meter: &mut dyn Meter,
    ) -> Result<PolicyVerdict, Undecided> {
        let cache = ConditionCache::default();
        let resolved = self.resolve_limits(request, Assumptions::default(), &cache, meter);
        // What is told is the verdict without the rules whose conditions failed.
        let verdict = self.verdict(request, resolved);
        if !cache.has_failures() {
            return Ok(verdict);
        }
        self.stands_either_way(request, verdict, &cache, meter)
    }

    /// The verdict, if it is the same whether the rules whose conditions failed match or not.
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
                " The condition of rule {:?} at {} failed ({}), which changes nothing here.",
                failure.rule, failure.place, failure.message
            );
            verdict.reasoning.push_str(&told);
        }
        verdict.failures = failures;
        Ok(verdict)
    }

    /// Whether a verdict stands in every combination of the conditions that failed; none where there are too many.
    /// With some taken to hold, others can come to be asked, and fail.
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

    /// The same by effects, for many: rules of one effect pull a verdict the same way. But for degrading ones, of
    /// which each grants what another may withhold; those that a limit binds, of which each takes its own; and
    /// escalations, of which each says who is asked: of these more than one leave it open.
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

    /// Resolves limits: finds the verdict as if every limit had room, and again without the limits that have none.
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

    /// What is found once a person has agreed to an escalation.
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
                // A person who agrees, agrees to more than it.
                for charge in &mut taken {
                    charge.most = i64::MAX;
                }
            }
            if is_known {
                charges.append(&mut taken);
            } else if !asks {
                // What cannot be counted is past it, and no person's word goes beyond a limit that denies.
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

    fn failure(&self, group: u32, message: String) -> ConditionFailure {
        let Some(rule) = self.lead(group) else {
            return ConditionFailure { rule: Arc::from(""), place: Box::default(), message };
        };
        ConditionFailure { rule: Arc::clone(&rule.id), place: self.citations().place(rule).into(), message }
    }
}

/// Conditions that failed of which every combination is looked at.
const MOST_COMBINED: usize = 5;

/// Whether two verdicts come to the same for whoever acts on them.
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

/// Most failed conditions that the reasoning tells of.
const MOST_TOLD: usize = 3;
