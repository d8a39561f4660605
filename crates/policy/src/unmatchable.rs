//! Finds rules that no request can match, from their clauses and conditions alone.

use super::conditions::Conditions;
use super::cover::{IsThere, covers_names};
use super::fact::Fact;
use super::pattern::{CapabilityPattern, Names};
use super::rule::{ContextClause, Effect, Match, Rule};
use rulekeep_types::{Action, Capability, Classification, Resource};

/// The reason no request can match; `None` if one may.
pub(super) fn reason(matches: &Match, conditions: &Conditions) -> Option<String> {
    if !is_as_sensitive(matches) {
        return Some("what it names is more sensitive than its classification range allows".to_owned());
    }
    if let Some(clause) = excluded(matches) {
        return Some(format!("match.not.{clause} excludes all that match.{clause} names"));
    }
    let nothing = conditions.contradiction(matches)?;
    Some(format!("its conditions and clauses leave no value for {nothing}"))
}

/// Explains that only an intent that a caller builds can match an allow: the operands that it names are not those that
/// its capabilities act on.
pub(super) fn unless_built(rule: &Rule) -> Option<String> {
    let matches = &rule.matches;
    let of_others = |pattern: &CapabilityPattern| matches.speaks_of_others(Some(&pattern.example()?));
    if rule.effect != Effect::Allow || !matches.capabilities.iter().all(|pattern| of_others(pattern).is_some()) {
        return None;
    }
    let first = matches.capabilities.first()?;
    let named = of_others(first)?.fact?.clause();
    let needed = Match::kinds_of(first.example()?.resource()?)?;
    let clauses = Fact::CLAUSES.iter().filter(|(.., fact)| *fact != Fact::Targets && fact.kinds().meets(needed));
    let clauses: Vec<&str> = clauses.map(|(name, ..)| *name).collect();
    Some(format!(
        "this allow grants only intents that a caller builds: {named} say nothing about {first}; name {}",
        clauses.join(" or ")
    ))
}

/// Returns whether some data is as little sensitive as the clauses require.
fn is_as_sensitive(matches: &Match) -> bool {
    let Some(most) = matches.levels.classes().max() else { return true };
    let patterns = &matches.capabilities;
    patterns.is_empty() || patterns.iter().any(|pattern| least_class(pattern).is_none_or(|least| least <= most))
}

/// The lowest classification that the data can have; some resources are always sensitive.
fn least_class(pattern: &CapabilityPattern) -> Option<Classification> {
    // The public part of a key is not secret, whatever its resource is called.
    let capability = pattern.example().filter(|example| example.resource() != Some(Resource::Credential))?;
    Classification::floor(&Action::unknown(), &[capability])
}

/// The clause of which `not` excludes everything that it names.
fn excluded(matches: &Match) -> Option<&'static str> {
    let not = &matches.not.as_ref()?.clauses;
    let is_within = |named: &Names, not: &Names, is_there| !not.is_any() && covers_names(not, named, is_there);
    // An act may have further actions and commands, for which a restriction matches.
    let of_acts =
        |named: &Names, not: &Names| matches.allows && !named.is_any() && is_within(named, not, IsThere::Perhaps);
    let names = [
        ("agents", is_within(&matches.agents, &not.agents, IsThere::Always)),
        ("labels", is_within(&matches.labels, &not.labels, IsThere::Perhaps)),
        ("groups", is_within(&matches.groups, &not.groups, IsThere::Perhaps)),
        ("actions", of_acts(&matches.actions, &not.actions)),
        ("commands", of_acts(&matches.commands, &not.commands)),
        (
            "environment",
            !matches.environment.is_empty() && matches.environment.iter().all(|name| not.environment.contains(name)),
        ),
    ];
    let facts = || {
        matches.context.iter().filter(|_| matches.allows).find_map(|clause| {
            let covers = |other: &&ContextClause| {
                other.key == clause.key
                    && matches!((&other.globs, &clause.globs), (Some(wide), Some(named)) if wide.cover(named, clause.fact, true))
            };
            not.context.iter().find(covers).and(clause.fact).map(Fact::clause)
        })
    };
    names.into_iter().find(|(_, is_excluded)| *is_excluded).map(|(name, _)| name).or_else(facts)
}

impl CapabilityPattern {
    /// A capability of the pattern's resource; `None` if the resource is open.
    fn example(&self) -> Option<Capability> {
        format!("{}:{}", self.resource.as_deref()?, self.operation.as_deref().unwrap_or("read")).parse().ok()
    }
}
