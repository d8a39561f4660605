//! What only the whole set shows: ids that stand twice, and rules that say less
//! than they seem to.

use std::collections::HashMap;

use super::document::{Document, LocatedRule, Report};
use super::pattern::CapabilityPattern;
use super::rule::{Effect, Rule};
use crate::model::{Action, Classification, Problem, Resource, Severity, Tier};

/// Adds the problems of the set as a whole.
pub(super) fn check(document: &Document, report: &mut Report<'_>) {
    ids_are_unique(&document.rules, report);
    conditions_are_bounded(&document.rules, report);
    // Warnings on half a document would mislead.
    if report.has_errors() {
        return;
    }
    warn_of_idle_rules(&document.rules, report);
}

/// Warnings of all rules together, whichever document they stand in.
pub(super) fn warnings_of_all(rules: &[&Rule]) -> Vec<Problem> {
    let warning = |message: String| Problem::new(1, 1, Severity::Warning, message);
    if rules.is_empty() {
        return vec![warning("the policy has no rules: it denies everything".to_owned())];
    }
    if !rules.iter().any(|rule| grants(rule)) {
        return vec![warning("the policy has no allow or degrade rule: it grants nothing".to_owned())];
    }
    left_out_tiers(rules).map(warning).into_iter().collect()
}

/// A request can come to need every condition of a document.
fn conditions_are_bounded(rules: &[LocatedRule], report: &mut Report<'_>) {
    let cost: u64 = rules.iter().map(|located| located.rule.conditions.cost()).sum();
    if cost > MOST_STEPS {
        let message = format!("the conditions take up to {cost} steps together; at most {MOST_STEPS} are allowed");
        report.error(0, "", message);
    }
}

fn ids_are_unique(rules: &[LocatedRule], report: &mut Report<'_>) {
    let mut first_lines: HashMap<&str, usize> = HashMap::with_capacity(rules.len());
    for located in rules {
        let rule = &located.rule;
        if let Some(line) = first_lines.get(&*rule.id) {
            report.rule = Some(format!("rule {:?}", rule.id));
            report.error(located.at, "id", format!("another rule has the id {:?}, on line {line}", rule.id));
            report.rule = None;
        } else {
            first_lines.insert(&rule.id, rule.line);
        }
    }
}

/// Rules of different documents that have one id.
pub(super) fn ids_across_layers(rules: &[Rule]) -> Vec<Problem> {
    let mut first: HashMap<&str, usize> = HashMap::with_capacity(rules.len());
    let mut problems = Vec::new();
    for rule in rules {
        if let Some(layer) = first.insert(&rule.id, rule.layer) {
            let message = format!("a rule of document {} has the id {:?} too, on another layer", layer + 1, rule.id);
            problems.push(Problem::new(rule.line, 1, Severity::Error, message));
        }
    }
    problems
}

/// Warnings of rules of later documents that grant what no earlier one leaves to them.
pub(super) fn idle_grants(rules: &[Rule], delegates: &[Vec<CapabilityPattern>]) -> Vec<Problem> {
    let idle = rules.iter().filter(|rule| rule.effect == Effect::Allow && !is_left(rule, delegates));
    idle.map(|rule| {
        let message = format!(
            "the allow {:?} of document {} grants nothing by itself: an earlier document does not name its capabilities under delegates",
            rule.id,
            rule.layer + 1
        );
        Problem::new(rule.line, 1, Severity::Warning, message)
    })
    .collect()
}

/// Whether all earlier documents leave something that the rule names to it.
fn is_left(rule: &Rule, delegates: &[Vec<CapabilityPattern>]) -> bool {
    let named = &rule.matches.capabilities;
    let leaves = |left: &Vec<CapabilityPattern>| {
        left.iter().any(|pattern| named.is_empty() || named.iter().any(|one| one.meets(pattern)))
    };
    delegates.iter().take(rule.layer).all(leaves)
}

fn grants(rule: &Rule) -> bool {
    matches!(rule.effect, Effect::Allow | Effect::Degrade)
}

/// Warns of each rule that never decides anything: because a wide rule, one that asks for
/// nothing but capabilities, risk and tiers, covers it, or because no request can match it.
fn warn_of_idle_rules(rules: &[LocatedRule], report: &mut Report<'_>) {
    let mut wide: Vec<&Rule> = Vec::new();
    for rule in rules.iter().map(|located| &located.rule).filter(|rule| is_wide(rule)) {
        // A rule that repeats another's reach adds nothing to look at.
        if wide.len() < MAX_WIDE && !wide.iter().any(|known| known.effect == rule.effect && beats(known, rule)) {
            wide.push(rule);
        }
    }
    for located in rules {
        let rule = &located.rule;
        let covering = wide.iter().find(|known| known.id != rule.id && silences(known, rule));
        let message = match covering {
            Some(deny) if deny.effect == Effect::Deny && rule.effect != Effect::Deny => {
                let does = if rule.effect == Effect::Allow { "grants anything" } else { "decides anything" };
                let (effect, id, line) = (rule.effect, &deny.id, deny.line);
                format!("this {effect} never {does}: the deny {id:?} on line {line} covers it")
            }
            Some(known) => {
                format!("this rule says nothing that {:?} on line {} does not say", known.id, known.line)
            }
            None if !is_matchable(rule) => {
                "this rule can never match: what it names is more sensitive than its classification".to_owned()
            }
            None => continue,
        };
        report.rule = Some(format!("rule {:?}", rule.id));
        report.warn(located.at, "", message);
        report.rule = None;
    }
}

/// Whether some rule can grant anything: it is not of a later layer that nothing is left to, and
/// no wide deny covers it.
pub(super) fn grants_something(rules: &[Rule], delegates: &[Vec<CapabilityPattern>]) -> bool {
    let denies: Vec<&Rule> =
        rules.iter().filter(|rule| rule.effect == Effect::Deny && is_wide(rule)).take(MAX_WIDE).collect();
    rules.iter().any(|rule| {
        grants(rule) && is_left(rule, delegates) && !denies.iter().any(|deny| beats(deny, rule)) && is_matchable(rule)
    })
}

/// Tells of tiers at which nobody is granted or could be granted anything.
fn left_out_tiers(rules: &[&Rule]) -> Option<String> {
    let opens = |rule: &Rule, tier: Tier| rule.effect != Effect::Deny && rule.matches.levels.has_tier(tier);
    let is_left_out = |tier: &&Tier| !rules.iter().any(|rule| opens(rule, **tier));
    let left_out: Vec<&str> = Tier::ALL.iter().filter(is_left_out).map(|tier| tier.as_str()).collect();
    (!left_out.is_empty() && left_out.len() < Tier::ALL.len())
        .then(|| format!("no rule grants anything to agents at {}, nor asks a person for them", left_out.join(", ")))
}

fn is_wide(rule: &Rule) -> bool {
    rule.matches.is_wide() && !rule.is_conditional() && rule.limit.is_none()
}

/// Whether a wide rule leaves another nothing to decide.
fn silences(wide: &Rule, rule: &Rule) -> bool {
    let says_as_much = match wide.effect {
        Effect::Deny => true,
        Effect::Escalate => rule.effect == Effect::Escalate && rule.reviewer == wide.reviewer,
        Effect::Degrade => false,
        Effect::Allow => rule.effect == Effect::Allow && rule.constraints.is_empty() && rule.limit.is_none(),
    };
    // Of two that cover each other the earlier is kept.
    let is_twin = wide.effect == rule.effect && is_wide(rule) && beats(rule, wide);
    says_as_much && beats(wide, rule) && (!is_twin || wide.line < rule.line)
}

/// Whether data can be as little sensitive as the rule wants it: some resources never are.
fn is_matchable(rule: &Rule) -> bool {
    let Some(most) = rule.matches.levels.classes().max() else { return true };
    let least = |pattern: &CapabilityPattern| {
        // The public part of a key is no secret, whatever its resource is called.
        let resource = pattern.resource.as_deref().filter(|resource| *resource != Resource::Credential.as_str())?;
        let capability = format!("{resource}:{}", pattern.operation.as_deref().unwrap_or("read")).parse().ok()?;
        Classification::floor(&Action::unknown(), &[capability])
    };
    rule.matches.capabilities.is_empty()
        || rule.matches.capabilities.iter().any(|pattern| least(pattern).is_none_or(|least| least <= most))
}

/// Whether a wide rule speaks about all that another speaks about, at all of its levels.
fn beats(wide: &Rule, rule: &Rule) -> bool {
    let (capabilities, levels) = (&rule.matches.capabilities, rule.matches.levels);
    let covers = &wide.matches.capabilities;
    let all_covered =
        || !capabilities.is_empty() && capabilities.iter().all(|narrow| covers.iter().any(|wide| wide.covers(narrow)));
    let everything = CapabilityPattern::new("*", "*");
    wide.matches.levels.contains(levels) && (covers.is_empty() || covers.contains(&everything) || all_covered())
}

/// Most steps of all conditions of a document: about a second.
const MOST_STEPS: u64 = 10_000_000;
/// A warning is worth a bounded search only.
const MAX_WIDE: usize = 256;
