//! Rules for habits, merged until there are few enough.
//!
//! Two rules are merged if that permits the fewest calls never made. The width of a rule is the product of its
//! agents, tools, capabilities, targets and levels of risk. Rules are never merged if the result would cover a
//! refused request.

use std::collections::{BTreeMap, BTreeSet};

use rulekeep::{RiskLevel, Tier};

use super::targets::{self, Pattern};
use super::{Call, Form, Habits, Support};

/// A rule that allows habits.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) id: String,
    /// The IDs of agents, or prefixes followed by `*`.
    pub(super) agents: BTreeSet<String>,
    pub(super) form: Form,
    pub(super) whats: BTreeSet<String>,
    pub(super) capabilities: BTreeSet<String>,
    /// The patterns of targets; empty for requests without a target.
    pub(super) patterns: BTreeSet<Pattern>,
    pub(super) most_risk: RiskLevel,
    pub(super) least_tier: Tier,
    pub(super) support: Support,
}

/// Returns the rules for the habits in `calls`, at most `most` of them.
pub(super) fn rules(calls: &[Call], most: usize) -> Vec<Rule> {
    let refused: Vec<&Call> = calls.iter().filter(|call| !call.is_fine()).collect();
    let mut habits: Habits<'_> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.is_fine() && call.level() <= RiskLevel::Medium) {
        for capability in call.capabilities.iter().filter(|capability| !is_unknown(capability)) {
            let key = (call.role(), &call.form, call.what.as_str(), capability.as_str(), call.places.is_empty());
            habits.entry(key).or_default().push(call);
        }
    }
    let rules: Vec<Rule> = habits
        .into_iter()
        .filter_map(|((_, form, what, capability, _), habit)| Rule::of(form, what, capability, &habit, calls, &refused))
        .collect();
    let mut rules = merged(rules, most, &refused);
    rules.sort_by_key(|rule| std::cmp::Reverse(rule.support.calls));
    rules.truncate(most);
    for (number, rule) in rules.iter_mut().enumerate() {
        let first = rule.capabilities.first().map(|capability| capability.replace(':', "-")).unwrap_or_default();
        rule.id = format!("habit-{}-{first}", number + 1);
    }
    rules
}

/// Returns whether a capability means something unknown, which is never a habit.
pub(super) fn is_unknown(capability: &str) -> bool {
    capability.split(':').any(|half| half == "unknown")
}

/// Returns the agents of calls as a rule names them: by their role if several agents share it and no other ID starts
/// with it.
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
        .flat_map(|(role, ids)| {
            if is_shared(role, &ids) { vec![format!("{role}*")] } else { ids.into_iter().map(str::to_owned).collect() }
        })
        .collect()
}

/// Shortest prefix of an ID that counts as a role.
const LEAST_ROLE: usize = 3;

impl Rule {
    /// Creates the rule of one habit; `None` if too few calls support it, or it would cover a refused request.
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
        for call in &within {
            support.add(call);
        }
        let most_risk = within.iter().map(|call| call.risk).max()?;
        let lowest = within.iter().map(|call| call.tier).min()?;
        let rule = Self {
            id: String::new(),
            // An agent that loses one tier keeps its everyday work; one that loses two does not.
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

    /// Merges two rules.
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

    /// Returns whether the rule alone covers a request.
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

    /// The additional width of the merged rule; `None` for two rules that are never merged.
    fn cost(&self, other: &Self) -> Option<isize> {
        fn all<T: Ord>(one: &BTreeSet<T>, other: &BTreeSet<T>, width: impl Fn(&T) -> usize) -> usize {
            one.union(other).map(width).sum()
        }
        if self.form != other.form || self.patterns.is_empty() != other.patterns.is_empty() {
            return None;
        }
        let width = |one: &Self, other: &Self| {
            let agents = all(&one.agents, &other.agents, |name| if name.ends_with('*') { 3 } else { 1 });
            let (whats, capabilities) =
                (all(&one.whats, &other.whats, |_| 1), all(&one.capabilities, &other.capabilities, |_| 1));
            let targets = all(&one.patterns, &other.patterns, Pattern::width).max(1);
            let risks = if one.most_risk.max(other.most_risk) == RiskLevel::Low { 1 } else { 2 };
            (agents * whats * capabilities * targets * risks).cast_signed()
        };
        Some(width(self, other) - width(self, self) - width(other, other))
    }
}

impl Support {
    /// Merges the support of two rules; calls that need several capabilities are counted once for each.
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

/// Merges rules, cheapest pair first, while that costs nothing or there are more than `most`.
fn merged(rules: Vec<Rule>, most: usize, refused: &[&Call]) -> Vec<Rule> {
    let mut rules: BTreeMap<usize, Rule> = rules.into_iter().enumerate().collect();
    let mut next = rules.len();
    let mut pairs: BTreeSet<(isize, usize, usize)> = BTreeSet::new();
    for (one, rule) in &rules {
        pairs.extend(rules.range(one + 1..).filter_map(|(other, with)| Some((rule.cost(with)?, *one, *other))));
    }
    while let Some((cost, one, other)) = pairs.pop_first() {
        if cost > 0 && rules.len() <= most {
            break;
        }
        // One of them may already be part of another rule.
        let (Some(rule), Some(with)) = (rules.get(&one), rules.get(&other)) else { continue };
        let joined = rule.with(with);
        if length(&joined.patterns) > MAX_LENGTH || refused.iter().any(|call| joined.admits(call)) {
            continue;
        }
        rules.remove(&one);
        rules.remove(&other);
        pairs.extend(rules.iter().filter_map(|(other, with)| Some((joined.cost(with)?, *other, next))));
        rules.insert(next, joined);
        next += 1;
    }
    rules.into_values().collect()
}

/// Keeps as many patterns as one clause can hold, widest first.
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

/// Upper bound in bytes: a clause becomes one regular expression of at most 1,024 bytes.
const MAX_LENGTH: usize = 1_000;
