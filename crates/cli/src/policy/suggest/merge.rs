//! Rules for habits, put together until there are few enough.
//!
//! Two rules are put together where that opens least that no call has used: the width of a rule is the product of its
//! agents, tools, capabilities, targets and levels of risk. What would cover a refused request is never put together.

use std::collections::{BTreeMap, BTreeSet};

use rulekeep::{RiskLevel, Tier};

use super::targets::{self, Pattern};
use super::{Call, Form, Habits, Support};

/// A rule that allows habits.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) id: String,
    /// Ids, or what they begin with and `*`.
    pub(super) agents: BTreeSet<String>,
    pub(super) form: Form,
    pub(super) whats: BTreeSet<String>,
    pub(super) capabilities: BTreeSet<String>,
    /// Empty for requests without a target.
    pub(super) patterns: BTreeSet<Pattern>,
    pub(super) most_risk: RiskLevel,
    pub(super) least_tier: Tier,
    pub(super) support: Support,
}

/// The rules for the habits in `calls`, at most `most` of them.
pub(super) fn rules(calls: &[Call], most: usize) -> Vec<Rule> {
    let refused: Vec<&Call> = calls.iter().filter(|call| !call.is_fine()).collect();
    let mut habits: Habits<'_> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.is_fine() && call.risk <= RiskLevel::Medium) {
        for capability in call.capabilities.iter().filter(|capability| !is_unknown(capability)) {
            let key = (call.role(), &call.form, call.what.as_str(), capability.as_str(), call.places.is_empty());
            habits.entry(key).or_default().push(call);
        }
    }
    let mut rules: Vec<Rule> = habits
        .into_iter()
        .filter_map(|((_, form, what, capability, _), habit)| Rule::of(form, what, capability, &habit, calls, &refused))
        .collect();
    while let Some((one, other, cost)) = cheapest(&rules, &refused) {
        if cost > 0 && rules.len() <= most {
            break;
        }
        let taken = rules.swap_remove(other);
        if let Some(rule) = rules.get_mut(one) {
            *rule = rule.with(&taken);
        }
    }
    rules.sort_by_key(|rule| std::cmp::Reverse(rule.support.calls));
    rules.truncate(most);
    for (number, rule) in rules.iter_mut().enumerate() {
        let first = rule.capabilities.first().map(|capability| capability.replace(':', "-")).unwrap_or_default();
        rule.id = format!("habit-{}-{first}", number + 1);
    }
    rules
}

/// Whether a capability stands for something that was not understood, which is nobody's habit.
pub(super) fn is_unknown(capability: &str) -> bool {
    capability.split(':').any(|half| half == "unknown")
}

/// The agents of calls as a rule names them: by the role where several agents share it and nobody else's id begins alike.
pub(super) fn agents<'a>(of: impl Iterator<Item = &'a Call>, all: &[Call]) -> BTreeSet<String> {
    let mut roles: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for call in of {
        roles.entry(call.role()).or_default().insert(&call.agent);
    }
    let is_shared = |role: &str, ids: &BTreeSet<&str>| {
        let begins = |call: &&Call| call.agent.starts_with(role);
        ids.len() > 1 && role.len() >= LEAST_ROLE && all.iter().filter(begins).all(|call| call.role() == role)
    };
    roles
        .into_iter()
        .flat_map(|(role, ids)| match is_shared(role, &ids) {
            true => vec![format!("{role}*")],
            false => ids.into_iter().map(str::to_owned).collect(),
        })
        .collect()
}

/// The shortest beginning of an id that stands for a role.
const LEAST_ROLE: usize = 3;

impl Rule {
    /// The rule of one habit; none where too little rests on it, or it would cover what was refused.
    fn of(form: &Form, what: &str, capability: &str, habit: &[&Call], all: &[Call], refused: &[&Call]) -> Option<Self> {
        let role = habit.first()?.role();
        let against: Vec<&&Call> = refused
            .iter()
            .filter(|call| call.role() == role && call.form == *form && call.what == what)
            .filter(|call| call.capabilities.iter().any(|needed| needed == capability))
            .collect();
        let may_widen =
            |pattern: &Pattern| !against.iter().any(|call| call.places.iter().any(|place| pattern.holds(place)));
        let seen: Vec<_> = habit.iter().flat_map(|call| call.places.iter().map(|place| (place, call.day()))).collect();
        let patterns = shortened(targets::patterns(&seen, capability.ends_with(":read"), &may_widen));
        let is_within =
            |call: &&&Call| call.places.iter().all(|place| patterns.iter().any(|pattern| pattern.holds(place)));
        let within: Vec<&&Call> = habit.iter().filter(is_within).collect();
        let mut support = Support::default();
        within.iter().for_each(|call| support.add(call));
        let most_risk = within.iter().map(|call| call.risk).max()?;
        let lowest = within.iter().map(|call| call.tier).min()?;
        let rule = Self {
            id: String::new(),
            // An agent that loses a tier goes on with its everyday work; one that loses two does not.
            least_tier: Tier::ALL.iter().rev().find(|tier| **tier < lowest).copied().unwrap_or(lowest),
            agents: agents(within.iter().map(|call| **call), all),
            form: form.clone(),
            whats: BTreeSet::from([what.to_owned()]),
            capabilities: BTreeSet::from([capability.to_owned()]),
            most_risk,
            patterns,
            support,
        };
        let is_clean = |rule: &Self| !refused.iter().any(|call| rule.admits(call));
        let strict = Self { least_tier: lowest, ..rule.clone() };
        [rule, strict].into_iter().find(|rule| rule.support.is_habit() && is_clean(rule))
    }

    /// Both as one.
    fn with(&self, other: &Self) -> Self {
        fn joined<T: Clone + Ord>(one: &BTreeSet<T>, other: &BTreeSet<T>) -> BTreeSet<T> {
            one.union(other).cloned().collect()
        }
        Self {
            id: String::new(),
            agents: joined(&self.agents, &other.agents),
            form: self.form.clone(),
            whats: joined(&self.whats, &other.whats),
            capabilities: joined(&self.capabilities, &other.capabilities),
            patterns: joined(&self.patterns, &other.patterns),
            most_risk: self.most_risk.max(other.most_risk),
            least_tier: self.least_tier.min(other.least_tier),
            support: self.support.with(&other.support),
        }
    }

    /// Whether it covers a request by itself.
    fn admits(&self, call: &Call) -> bool {
        let is_agent = |name: &String| match name.strip_suffix('*') {
            Some(start) => call.agent.starts_with(start),
            None => *name == call.agent,
        };
        call.form == self.form
            && self.whats.contains(&call.what)
            && call.capabilities.iter().all(|capability| self.capabilities.contains(capability))
            && call.risk <= self.most_risk
            && call.tier >= self.least_tier
            && self.agents.iter().any(is_agent)
            && call.places.is_empty() == self.patterns.is_empty()
            && call.places.iter().all(|place| self.patterns.iter().any(|pattern| pattern.holds(place)))
    }

    /// How much it lets through, where one agent, tool, capability and target at LOW risk is one.
    fn width(&self) -> usize {
        let agents: usize = self.agents.iter().map(|name| if name.ends_with('*') { 3 } else { 1 }).sum();
        let targets: usize = self.patterns.iter().map(Pattern::width).sum();
        let risks = if self.most_risk == RiskLevel::Low { 1 } else { 2 };
        agents * self.whats.len() * self.capabilities.len() * targets.max(1) * risks
    }
}

impl Support {
    /// Both as one; calls that need several capabilities are counted once for each.
    fn with(&self, other: &Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            approved: self.approved + other.approved,
            agents: self.agents.union(&other.agents).cloned().collect(),
            days: self.days.union(&other.days).copied().collect(),
            first: self.first.min(other.first),
            last: self.last.max(other.last),
            examples: self.examples.iter().chain(&other.examples).copied().take(3).collect(),
        }
    }
}

/// The two rules that are put together at the least cost.
fn cheapest(rules: &[Rule], refused: &[&Call]) -> Option<(usize, usize, isize)> {
    let mut best: Option<(usize, usize, isize)> = None;
    for (one, rule) in rules.iter().enumerate() {
        for (other, with) in rules.iter().enumerate().skip(one + 1) {
            if rule.form != with.form || rule.patterns.is_empty() != with.patterns.is_empty() {
                continue;
            }
            let joined = rule.with(with);
            let cost = joined.width().cast_signed() - rule.width().cast_signed() - with.width().cast_signed();
            let is_better = best.is_none_or(|(.., least)| cost < least);
            if is_better && length(&joined.patterns) <= MAX_LENGTH && !refused.iter().any(|call| joined.admits(call)) {
                best = Some((one, other, cost));
            }
        }
    }
    best
}

/// As many patterns as one clause takes, the widest first.
fn shortened(patterns: BTreeSet<Pattern>) -> BTreeSet<Pattern> {
    let mut sorted: Vec<Pattern> = patterns.into_iter().collect();
    sorted.sort_by_key(|pattern| std::cmp::Reverse(pattern.width()));
    let mut kept = BTreeSet::new();
    for pattern in sorted {
        kept.insert(pattern.clone());
        if length(&kept) > MAX_LENGTH {
            kept.remove(&pattern);
        }
    }
    kept
}

fn length(patterns: &BTreeSet<Pattern>) -> usize {
    patterns.iter().map(|pattern| pattern.regex().len() + 1).sum()
}

/// A clause becomes one regular expression, of at most 1,024 bytes.
const MAX_LENGTH: usize = 1_000;
