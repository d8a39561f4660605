//! Finds rules that leave another rule nothing to decide, proved from their clauses alone and without comparing every
//! pair.
//!
//! The proof is conservative: a glob covers another only where that is certain, and a list of capabilities only if a
//! single pattern covers each of them.

use std::borrow::Cow;
use std::cell::Cell;

use super::index::Index;
use super::pattern::{CapabilityPattern, Names};
use super::rule::{Effect, Levels, Match, Rule};
use rulekeep_types::Tier;

/// The requests that a rule applies to: its clauses, or a part of them.
pub(super) struct Reach<'a> {
    matches: &'a Match,
    /// Empty for any capability.
    capabilities: Cow<'a, [CapabilityPattern]>,
    levels: Levels,
}

impl<'a> Reach<'a> {
    /// Everything that a rule matches.
    pub(super) fn of(rule: &'a Rule) -> Self {
        let matches = &rule.matches;
        Self { matches, capabilities: Cow::Borrowed(&matches.capabilities), levels: matches.levels }
    }

    /// The part that a rule can grant; `None` if it can grant nothing.
    pub(super) fn granted_by(rule: &'a Rule) -> Option<Self> {
        match rule.effect {
            Effect::Deny | Effect::Escalate => None,
            Effect::Allow => Some(Self::of(rule)),
            Effect::Degrade => {
                let remains = remains(&rule.to, &rule.matches.capabilities);
                (!remains.is_empty()).then(|| Self { capabilities: Cow::Owned(remains), ..Self::of(rule) })
            }
        }
    }

    /// The part at one tier; `None` if there is none.
    pub(super) fn at_tier(mut self, tier: Tier) -> Option<Self> {
        self.levels = self.levels.at_tier(tier)?;
        Some(self)
    }

    /// Returns whether everything within the other reach is within this one too.
    fn covers(&self, other: &Self) -> bool {
        let (wide, narrow) = (self.matches, other.matches);
        wide.not.is_none()
            && self.levels.contains(other.levels)
            && covers_capabilities(&self.capabilities, &other.capabilities)
            && covers_names(&wide.actions, &narrow.actions, IsThere::Always)
            && covers_names(&wide.commands, &narrow.commands, IsThere::Perhaps)
            && covers_names(&wide.agents, &narrow.agents, IsThere::Always)
            && covers_names(&wide.labels, &narrow.labels, IsThere::Perhaps)
            && covers_names(&wide.groups, &narrow.groups, IsThere::Perhaps)
            && covers_environments(wide, narrow)
            && covers_context(wide, narrow)
            && wide.runs >= narrow.runs
            && (wide.trees || !narrow.trees)
    }
}

/// The patterns of `to` restricted to the matched capabilities, where an empty list stands for any.
fn remains(to: &[CapabilityPattern], matched: &[CapabilityPattern]) -> Vec<CapabilityPattern> {
    if matched.is_empty() {
        return to.to_vec();
    }
    to.iter().flat_map(|left| matched.iter().filter_map(|pattern| pattern.both(left))).collect()
}

fn covers_capabilities(wide: &[CapabilityPattern], narrow: &[CapabilityPattern]) -> bool {
    let everything = CapabilityPattern::new("*", "*");
    wide.is_empty()
        || wide.contains(&everything)
        || !narrow.is_empty() && narrow.iter().all(|one| wide.iter().any(|pattern| pattern.covers(one)))
}

/// The presence of a name that a clause could match: every request has an agent and an action, only some have labels.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IsThere {
    Always,
    Perhaps,
}

pub(super) fn covers_names(wide: &Names, narrow: &Names, is_there: IsThere) -> bool {
    if names_any(wide, is_there) {
        return true;
    }
    !narrow.is_any()
        && narrow.exact().all(|name| wide.matches(name))
        && narrow.globs().iter().all(|glob| wide.globs().iter().any(|wide| wide.covers(glob)))
}

fn names_any(names: &Names, is_there: IsThere) -> bool {
    names.is_any() || is_there == IsThere::Always && names.globs().iter().any(|glob| glob.as_str() == "*")
}

fn covers_environments(wide: &Match, narrow: &Match) -> bool {
    wide.environment.is_empty()
        || !narrow.environment.is_empty() && narrow.environment.iter().all(|name| wide.environment.contains(name))
}

fn covers_context(wide: &Match, narrow: &Match) -> bool {
    // A restricting rule also matches values that cannot be compared; an allowing rule does not.
    wide.context.iter().all(|clause| {
        let mut same = narrow.context.iter().filter(|one| one.key == clause.key);
        same.any(|one| {
            let is_within = || match (&clause.globs, &one.globs) {
                (Some(wide), Some(narrow)) => !clause.allows && wide.cover(narrow, one.fact, one.allows),
                _ => false,
            };
            (one.pattern == clause.pattern || is_within()) && (!clause.allows || one.allows)
        })
    })
}

/// The rules that always take effect when their clauses match, indexed so that few of them have to be compared.
pub(super) struct Coverers<'a> {
    rules: &'a [&'a Rule],
    /// Whether the rule of each number is one of them.
    is_plain: Vec<bool>,
    index: Index,
    /// The number of comparisons left: a warning is worth only a bounded search.
    budget: Cell<usize>,
}

impl<'a> Coverers<'a> {
    /// Collects the wanted rules that have no limit and no condition that could keep them from matching.
    pub(super) fn of(rules: &'a [&'a Rule], wanted: impl Fn(&Rule) -> bool) -> Self {
        let is_sure = |rule: &Rule| rule.limit.is_none() && rule.conditions.constant() == Some(true);
        let is_plain: Vec<bool> = rules.iter().map(|rule| is_sure(rule) && wanted(rule)).collect();
        let mut index = Index::default();
        // The search is bounded, so the rules that cover most come first.
        for is_wide in [true, false] {
            let plain = (0..).zip(rules).zip(&is_plain).filter(|(_, is_plain)| **is_plain);
            for ((number, rule), _) in plain.filter(|((_, rule), _)| rule.matches.is_wide() == is_wide) {
                index.add(number, rule);
            }
        }
        Self { rules, is_plain, index, budget: Cell::new(MOST_COMPARED) }
    }

    /// Finds a wanted rule of an effect that covers a reach; it may be the rule of that reach itself.
    pub(super) fn find(
        &self,
        effect: Effect,
        reach: &Reach<'_>,
        wanted: impl Fn(usize, &Rule) -> bool,
    ) -> Option<&'a Rule> {
        let numbers = self.index.numbers_of_rule(reach.matches, reach.levels);
        // A rule that covers the reach covers the first item of each of its lists, and is found by it.
        let first = reach.capabilities.first();
        let (resource, operation) =
            first.map_or((None, None), |first| (first.resource.as_deref(), first.operation.as_deref()));
        let buckets = self.index.buckets_of(&numbers, resource, operation);
        let entries = buckets.iter().flat_map(|bucket| self.index.entries(*bucket, effect));
        let entries = entries.filter(|entry| entry.may_match(&numbers));
        let candidates = entries.take(MOST_CANDIDATES).take_while(|_| self.spend()).map(|entry| entry.group as usize);
        let mut rules = candidates.filter_map(|number| Some((number, *self.rules.get(number)?)));
        rules.find(|(number, rule)| wanted(*number, rule) && Reach::of(rule).covers(reach)).map(|(_, rule)| rule)
    }

    /// Returns whether a rule is in the collection.
    pub(super) fn has(&self, number: usize) -> bool {
        self.is_plain.get(number).copied().unwrap_or_default()
    }

    fn spend(&self) -> bool {
        let left = self.budget.get();
        self.budget.set(left.saturating_sub(1));
        left > 0
    }
}

/// Returns whether one rule's reach lies within another's.
pub(super) fn covers(wide: &Rule, narrow: &Rule) -> bool {
    Reach::of(wide).covers(&Reach::of(narrow))
}

/// Maximum number of rules that one rule is compared with.
const MOST_CANDIDATES: usize = 256;
/// Maximum number of comparisons for one load: about a tenth of a second.
const MOST_COMPARED: usize = 1_000_000;
