//! Which rules leave another nothing to decide: proved from their clauses alone, and found without
//! comparing all with all.
//!
//! What is not proved is taken for not so: a glob covers another only when it is seen to, and a list of
//! capabilities only when each of them is covered by one pattern.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;

use super::pattern::{CapabilityPattern, Names};
use super::rule::{Effect, Levels, Match, Rule};
use crate::model::Tier;

/// The requests that a rule is about: its clauses, or a part of them.
pub(super) struct Reach<'a> {
    matches: &'a Match,
    /// Empty for any.
    capabilities: Cow<'a, [CapabilityPattern]>,
    levels: Levels,
}

impl<'a> Reach<'a> {
    /// All that a rule matches.
    pub(super) fn of(rule: &'a Rule) -> Self {
        let matches = &rule.matches;
        Self { matches, capabilities: Cow::Borrowed(&matches.capabilities), levels: matches.levels }
    }

    /// What a rule can grant of it; none when that is nothing.
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

    /// The part of it at one tier; none when it has none there.
    pub(super) fn at_tier(mut self, tier: Tier) -> Option<Self> {
        self.levels = self.levels.at_tier(tier)?;
        Some(self)
    }

    /// Whether whatever is in the other's reach is in this one too.
    fn covers(&self, other: &Self) -> bool {
        let (wide, narrow) = (self.matches, other.matches);
        self.levels.contains(other.levels)
            && covers_capabilities(&self.capabilities, &other.capabilities)
            && covers_names(&wide.actions, &narrow.actions, IsThere::Always)
            && covers_names(&wide.agents, &narrow.agents, IsThere::Always)
            && covers_names(&wide.labels, &narrow.labels, IsThere::Perhaps)
            && covers_names(&wide.groups, &narrow.groups, IsThere::Perhaps)
            && covers_environments(wide, narrow)
            && covers_context(wide, narrow)
    }
}

/// What of some capabilities remains; those are empty for any.
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

/// Whether a request has a name that a clause could look at: each has an agent and an action, some have labels.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IsThere {
    Always,
    Perhaps,
}

fn covers_names(wide: &Names, narrow: &Names, is_there: IsThere) -> bool {
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
    // A rule that restricts matches what cannot be compared as well, one that allows does not.
    wide.context.iter().all(|clause| {
        let mut same = narrow.context.iter().filter(|one| one.key == clause.key && one.pattern == clause.pattern);
        same.any(|one| !clause.allows || one.allows)
    })
}

/// The rules that always do what they say where their clauses hold, filed by what they name so that few have
/// to be compared with another.
pub(super) struct Coverers<'a> {
    rules: &'a [&'a Rule],
    /// Whether each is one of them.
    is_plain: Vec<bool>,
    by_effect: [HashMap<Key<'a>, Vec<usize>>; Effect::ALL.len()],
    /// How many comparisons are left: a warning is worth a bounded search only.
    budget: Cell<usize>,
}

/// A resource, an operation, an action and whoever asks, by kind; none for any, or for what is not filed by.
type Key<'a> = (Option<&'a str>, Option<&'a str>, Option<&'a str>, Option<(Asker, &'a str)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Asker {
    Agent,
    Label,
    Group,
}

impl<'a> Coverers<'a> {
    /// Those of some rules that are wanted, have no limit and no condition that could keep them from matching.
    pub(super) fn of(rules: &'a [&'a Rule], wanted: impl Fn(&Rule) -> bool) -> Self {
        let is_sure = |rule: &Rule| rule.limit.is_none() && rule.conditions.constant() == Some(true);
        let is_plain: Vec<bool> = rules.iter().map(|rule| is_sure(rule) && wanted(rule)).collect();
        let mut by_effect: [HashMap<Key<'a>, Vec<usize>>; Effect::ALL.len()] = Default::default();
        // Those that cover most come first, for a search is cut short.
        for is_wide in [true, false] {
            let filed = rules.iter().enumerate().zip(&is_plain).filter(|(_, is_plain)| **is_plain);
            for ((number, rule), _) in filed.filter(|((_, rule), _)| rule.matches.is_wide() == is_wide) {
                for key in keys(&rule.matches) {
                    by_effect[rule.effect as usize].entry(key).or_default().push(number);
                }
            }
        }
        Self { rules, is_plain, by_effect, budget: Cell::new(MOST_COMPARED) }
    }

    /// A rule of an effect that covers a reach and is wanted; it may be the one whose reach it is.
    pub(super) fn find(
        &self,
        effect: Effect,
        reach: &Reach<'_>,
        wanted: impl Fn(usize, &Rule) -> bool,
    ) -> Option<&'a Rule> {
        let filed = &self.by_effect[effect as usize];
        if filed.is_empty() {
            return None;
        }
        let probes = probes(reach);
        let numbers = probes.iter().filter_map(|key| filed.get(key)).flatten().copied();
        let candidates = numbers.take(MOST_CANDIDATES).take_while(|_| self.spend());
        let mut rules = candidates.filter_map(|number| Some((number, *self.rules.get(number)?)));
        rules.find(|(number, rule)| wanted(*number, rule) && Reach::of(rule).covers(reach)).map(|(_, rule)| rule)
    }

    /// Whether a rule is one of them.
    pub(super) fn has(&self, number: usize) -> bool {
        self.is_plain.get(number).copied().unwrap_or_default()
    }

    fn spend(&self) -> bool {
        let left = self.budget.get();
        self.budget.set(left.saturating_sub(1));
        left > 0
    }
}

/// Whether one rule's reach lies within another's.
pub(super) fn covers(wide: &Rule, narrow: &Rule) -> bool {
    Reach::of(wide).covers(&Reach::of(narrow))
}

/// Under which keys a rule is filed: for whatever it covers, one of the probes is among them.
fn keys(matches: &Match) -> Vec<Key<'_>> {
    let mut capabilities: Vec<_> = matches.capabilities.iter().map(halves).collect();
    if capabilities.is_empty() || capabilities.contains(&(None, None)) {
        capabilities = vec![(None, None)];
    }
    let actions = exact_only(&matches.actions);
    let room = MOST_KEYS / capabilities.len().max(1);
    let actions = if actions.is_empty() || actions.len() > room { vec![None] } else { actions };
    let room = room / actions.len().max(1);
    let by = [(Asker::Agent, &matches.agents), (Asker::Label, &matches.labels), (Asker::Group, &matches.groups)];
    let askers = by.into_iter().find_map(|(kind, names)| {
        let names = exact_only(names);
        (1..=room).contains(&names.len()).then(|| names.into_iter().map(|name| Some((kind, name?))).collect())
    });
    let askers: Vec<_> = askers.unwrap_or_else(|| vec![None]);
    let mut keys = Vec::with_capacity(capabilities.len() * actions.len() * askers.len());
    for &(resource, operation) in &capabilities {
        for action in &actions {
            keys.extend(askers.iter().map(|asker| (resource, operation, *action, *asker)));
        }
    }
    keys
}

/// The names of a clause that has no globs.
fn exact_only(names: &Names) -> Vec<Option<&str>> {
    if names.globs().is_empty() { names.exact().map(Some).collect() } else { Vec::new() }
}

/// Under which keys a rule can stand that covers a reach: by the first of each of its lists, which has to be covered
/// like all the others.
fn probes<'a>(reach: &'a Reach<'_>) -> Vec<Key<'a>> {
    let (resource, operation) = reach.capabilities.first().map_or((None, None), halves);
    let mut halves = vec![(None, None), (resource, None), (None, operation), (resource, operation)];
    halves.sort_unstable();
    halves.dedup();
    let mut actions = vec![None];
    actions.extend(reach.matches.actions.exact().next().map(Some));
    let first = |kind: Asker, names: &'a Names| names.exact().next().map(|name| Some((kind, name)));
    let mut askers = vec![None];
    askers.extend(first(Asker::Agent, &reach.matches.agents));
    askers.extend(first(Asker::Label, &reach.matches.labels));
    askers.extend(first(Asker::Group, &reach.matches.groups));
    let mut probes = Vec::with_capacity(halves.len() * actions.len() * askers.len());
    for (resource, operation) in halves {
        for action in &actions {
            probes.extend(askers.iter().map(|asker| (resource, operation, *action, *asker)));
        }
    }
    probes
}

fn halves(pattern: &CapabilityPattern) -> (Option<&str>, Option<&str>) {
    (pattern.resource.as_deref(), pattern.operation.as_deref())
}

/// Most keys that one rule is filed under.
const MOST_KEYS: usize = 64;
/// Most rules that one is compared with.
const MOST_CANDIDATES: usize = 256;
/// Most comparisons of a load: a tenth of a second or so.
const MOST_COMPARED: usize = 1_000_000;
