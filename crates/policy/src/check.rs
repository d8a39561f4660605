//! Checks across all rules of a set: duplicate ids, and rules that do less than they appear to.

use std::collections::HashMap;

use super::cover::{self, Coverers, Reach};
use super::document::Document;
use super::naming::DocumentNames;
use super::pattern::CapabilityPattern;
use super::rule::{Effect, Rule};
use super::unmatchable;
use rulekeep_types::document::Report;
use rulekeep_types::{Action, Capability, Operation, Problem, Resource, RiskLevel, Severity, Tier, risk_floor};

/// Reports the problems of a document as a whole.
pub(super) fn check(document: &Document, report: &mut Report<'_>) {
    ids_are_unique(&document.rules, report);
    if let Some(message) = too_many_steps(&document.rules) {
        report.error(0, "", message);
    }
    // Warnings about an incomplete document would mislead.
    if report.has_errors() {
        return;
    }
    warn_of_idle_rules(&document.rules, report);
}

/// Warnings about all rules of all documents; `delegates` are the capabilities that each document delegates to the
/// later ones.
pub(super) fn warnings_of_all(rules: &[&Rule], delegates: &[Vec<CapabilityPattern>]) -> Vec<Problem> {
    let warning = |message: String| Problem::new(1, 1, Severity::Warning, message);
    if rules.is_empty() {
        return vec![warning("the policy has no rules: it denies everything".to_owned())];
    }
    if !rules.iter().any(|rule| grants(rule)) {
        return vec![warning("the policy has no allow or degrade rule: it grants nothing".to_owned())];
    }
    let rules = &opening(rules.iter().copied(), delegates)[..];
    if !is_something_open(rules) {
        return vec![warning(
            "the policy can grant nothing: no granting rule can match, or deny rules cover them all".to_owned(),
        )];
    }
    closed_tiers(rules).into_iter().map(warning).collect()
}

/// Explains why the conditions of some rules are too expensive together; `None` if they are not. One request may need
/// all of them.
pub(super) fn too_many_steps(rules: &[Rule]) -> Option<String> {
    let cost: u64 = rules.iter().map(|rule| rule.conditions.cost()).sum();
    (cost > MOST_STEPS)
        .then(|| format!("the conditions take up to {cost} steps together; at most {MOST_STEPS} are allowed"))
}

fn ids_are_unique(rules: &[Rule], report: &mut Report<'_>) {
    let mut first_lines: HashMap<&str, usize> = HashMap::with_capacity(rules.len());
    for rule in rules {
        if let Some(line) = first_lines.get(&*rule.id) {
            report.rule = Some(format!("rule {:?}", rule.id));
            report.error(rule.at, "id", format!("another rule has the id {:?}, on line {line}", rule.id));
            report.rule = None;
        } else {
            first_lines.insert(&rule.id, rule.line);
        }
    }
}

/// Reports rules of different documents that have the same id.
pub(super) fn ids_across_layers(rules: &[Rule], names: &DocumentNames) -> Vec<Problem> {
    let mut first: HashMap<&str, &Rule> = HashMap::with_capacity(rules.len());
    let mut problems = Vec::new();
    for rule in rules {
        if let Some(other) = first.insert(&rule.id, rule) {
            let (place, other) = (names.place(rule), names.place(other));
            let message = format!("the rule at {place} has the id {:?}, which the rule at {other} has too", rule.id);
            problems.push(Problem::new(rule.line, 1, Severity::Error, message));
        }
    }
    problems
}

/// Warns of rules in later documents that grant what no earlier document delegates to them.
pub(super) fn idle_grants(rules: &[Rule], delegates: &[Vec<CapabilityPattern>], names: &DocumentNames) -> Vec<Problem> {
    // Their constraints and limits apply nonetheless.
    let says_more = |rule: &Rule| !rule.constraints.is_empty() || rule.limit.is_some();
    let is_idle = |rule: &&Rule| rule.effect == Effect::Allow && !says_more(rule) && !is_left(rule, delegates);
    let idle = rules.iter().filter(is_idle);
    idle.map(|rule| {
        let message = format!(
            "the allow {:?} at {} grants nothing by itself: an earlier document does not name its capabilities under delegates",
            rule.id,
            names.place(rule)
        );
        Problem::new(rule.line, 1, Severity::Warning, message)
    })
    .collect()
}

/// Returns whether every earlier document delegates something that the rule names.
fn is_left(rule: &Rule, delegates: &[Vec<CapabilityPattern>]) -> bool {
    let named = &rule.matches.capabilities;
    let leaves = |left: &Vec<CapabilityPattern>| {
        left.iter().any(|pattern| named.is_empty() || named.iter().any(|one| one.meets(pattern)))
    };
    delegates.iter().take(rule.layer).all(leaves)
}

fn grants(rule: &Rule) -> bool {
    rule.effect.grants()
}

/// Warns of rules that a deny rule of another document covers.
pub(super) fn covered_across(rules: &[Rule], names: &DocumentNames) -> Vec<Problem> {
    let all: Vec<&Rule> = rules.iter().collect();
    let denies = Coverers::of(&all, |rule| rule.effect == Effect::Deny && can_match(rule));
    let open = rules.iter().filter(|rule| rule.effect != Effect::Deny && can_match(rule));
    let covered = open.filter_map(|rule| {
        let reach = Reach::of(rule);
        let of = |is_own: bool| denies.find(Effect::Deny, &reach, move |_, deny| (deny.layer == rule.layer) == is_own);
        // The check of the rule's own document has reported it already.
        let deny = if of(true).is_none() { of(false) } else { None }?;
        let (effect, place, by) = (rule.effect, names.place(rule), names.place(deny));
        let message = format!(
            "the {effect} {:?} at {place} never {}: the deny {:?} at {by} covers it",
            rule.id,
            does(rule.effect),
            deny.id
        );
        Some(Problem::new(rule.line, 1, Severity::Warning, message))
    });
    covered.take(MOST_TOLD).collect()
}

/// Warns of each rule that never decides anything, or not what it says, because another rule covers it or no request
/// can match it.
fn warn_of_idle_rules(rules: &[Rule], report: &mut Report<'_>) {
    let all: Vec<&Rule> = rules.iter().collect();
    let coverers = Coverers::of(&all, can_match);
    for (number, rule) in rules.iter().enumerate() {
        if let Some(message) = idleness(&coverers, number, rule) {
            report.rule = Some(format!("rule {:?}", rule.id));
            report.warn(rule.at, "", message);
            report.rule = None;
        }
    }
}

fn idleness(coverers: &Coverers<'_>, number: usize, rule: &Rule) -> Option<String> {
    if !can_match(rule) {
        // A condition that is always false has its own warning.
        return rule.never.as_ref().map(|reason| format!("this rule can never match: {reason}"));
    }
    if let Some(message) = too_low_a_risk(rule).or_else(|| unmatchable::unless_built(rule)) {
        return Some(message);
    }
    let reach = Reach::of(rule);
    let any = |_: usize, _: &Rule| true;
    let effect = rule.effect;
    if effect != Effect::Deny
        && let Some(deny) = coverers.find(Effect::Deny, &reach, any)
    {
        let does = does(effect);
        return Some(format!("this {effect} never {does}: the deny {:?} on line {} covers it", deny.id, deny.line));
    }
    if effect == Effect::Degrade
        && let Some(deny) = coverers.find(Effect::Deny, &Reach::granted_by(rule)?, any)
    {
        let (id, line) = (&deny.id, deny.line);
        return Some(format!("this degrade grants nothing: the deny {id:?} on line {line} covers what remains"));
    }
    // Constraints and limits apply to what the reviewer approves, and to what a degrade leaves.
    if effect == Effect::Allow && rule.constraints.is_empty() && rule.limit.is_none() {
        if let Some(asks) = coverers.find(Effect::Escalate, &reach, any) {
            let (id, line) = (&asks.id, asks.line);
            return Some(format!(
                "this allow never grants without an approval: the escalate {id:?} on line {line} covers it"
            ));
        }
        if let Some(degrade) = coverers.find(Effect::Degrade, &reach, any) {
            let (id, line) = (&degrade.id, degrade.line);
            return Some(format!("this allow never decides anything: the degrade {id:?} on line {line} covers it"));
        }
    }
    // Of two equal rules the earlier one is kept.
    let is_kept = |other: usize, known: &Rule| {
        number < other && coverers.has(number) && says_as_much(rule, known) && cover::covers(rule, known)
    };
    // The first escalation determines the reviewer, so a later one does not silence an earlier one.
    let comes_in_time = |other: usize| effect != Effect::Escalate || other < number;
    let silences = |other: usize, known: &Rule| {
        other != number && comes_in_time(other) && says_as_much(known, rule) && !is_kept(other, known)
    };
    let known = coverers.find(effect, &reach, silences)?;
    Some(format!("this rule is redundant: {:?} on line {} covers it", known.id, known.line))
}

const fn does(effect: Effect) -> &'static str {
    if matches!(effect, Effect::Allow) { "grants anything" } else { "decides anything" }
}

/// Returns whether any rule can grant something: the capability is delegated to its document, and no deny covers the
/// rule.
pub(super) fn grants_something(rules: &[Rule], delegates: &[Vec<CapabilityPattern>]) -> bool {
    is_something_open(&opening(rules.iter(), delegates))
}

/// The rules without those that grant what no earlier document delegates to theirs; these only narrow.
fn opening<'a>(rules: impl Iterator<Item = &'a Rule>, delegates: &[Vec<CapabilityPattern>]) -> Vec<&'a Rule> {
    rules.filter(|rule| !grants(rule) || is_left(rule, delegates)).collect()
}

/// Returns whether some granting rule can match something that no deny covers.
fn is_something_open(rules: &[&Rule]) -> bool {
    let denies = Coverers::of(rules, |rule| rule.effect == Effect::Deny);
    let is_open = |reach: Reach<'_>| denies.find(Effect::Deny, &reach, |_, _| true).is_none();
    let mut granting = rules.iter().filter(|rule| grants(rule) && can_match(rule));
    granting.any(|rule| Reach::granted_by(rule).is_some_and(is_open))
}

/// Lists the tiers at which nothing can be granted: no rule names them, or denies cover everything that rules open
/// there.
fn closed_tiers(rules: &[&Rule]) -> Vec<String> {
    let denies = Coverers::of(rules, |rule| rule.effect == Effect::Deny);
    let opened = |tier: Tier| rules.iter().filter_map(move |rule| opened_at(rule, tier));
    let is_named = |tier: Tier| opened(tier).next().is_some();
    let is_open = |tier: Tier| opened(tier).any(|reach| denies.find(Effect::Deny, &reach, |_, _| true).is_none());
    let closed: Vec<Tier> = Tier::ALL.iter().copied().filter(|tier| !is_open(*tier)).collect();
    if closed.len() == Tier::ALL.len() {
        // In this case the warnings about the rules say it.
        return Vec::new();
    }
    let (denied, left_out): (Vec<Tier>, Vec<Tier>) = closed.into_iter().partition(|tier| is_named(*tier));
    let listed = |tiers: &[Tier]| tiers.iter().map(|tier| tier.as_str()).collect::<Vec<_>>().join(", ");
    let mut told = Vec::new();
    if !left_out.is_empty() {
        told.push(format!("no rule grants anything to agents at {} or escalates their requests", listed(&left_out)));
    }
    if !denied.is_empty() {
        told.push(format!("deny rules cover everything that rules grant to agents at {} or escalate", listed(&denied)));
    }
    told
}

/// The part of a rule that it grants or escalates at a tier.
fn opened_at(rule: &Rule, tier: Tier) -> Option<Reach<'_>> {
    let reach = if rule.effect == Effect::Escalate { Some(Reach::of(rule)) } else { Reach::granted_by(rule) };
    reach.filter(|_| can_match(rule))?.at_tier(tier)
}

/// Returns whether a rule tells readers and callers nothing that another rule of its effect does not.
fn says_as_much(known: &Rule, rule: &Rule) -> bool {
    let adds_words = (rule.reason.is_some() && rule.reason != known.reason)
        || (rule.severity.is_some() && rule.severity != known.severity);
    let does_as_much = match known.effect {
        Effect::Deny => true,
        Effect::Escalate => {
            rule.reviewer == known.reviewer && rule.approvals <= known.approvals && rule.expires >= known.expires
        }
        Effect::Degrade => false,
        Effect::Allow => rule.constraints.is_empty() && rule.limit.is_none(),
    };
    does_as_much && !adds_words
}

/// Returns whether a request can match, as far as the rule alone shows.
fn can_match(rule: &Rule) -> bool {
    rule.conditions.constant() != Some(false) && rule.never.is_none()
}

/// Warns that a governor assigns a higher risk to everything that the rule names than the rule accepts. A tool's
/// owner can override the risk, so this is no proof that nothing matches.
fn too_low_a_risk(rule: &Rule) -> Option<String> {
    let levels = rule.matches.levels;
    let most = RiskLevel::ALL.iter().copied().filter(|risk| levels.has_risk(*risk)).max()?;
    // No risk floor is above HIGH.
    if most >= RiskLevel::High {
        return None;
    }
    let least = rule.matches.capabilities.iter().map(least_risk).min().filter(|least| *least > most)?;
    Some(format!(
        "this rule can match only when a tool's risk is overridden: its match implies risk {least} or higher, and its \
         range ends at {most}"
    ))
}

/// The lowest risk that a governor assigns to anything a pattern matches.
fn least_risk(pattern: &CapabilityPattern) -> RiskLevel {
    let (resource, operation) = (pattern.resource.as_deref(), pattern.operation.as_deref());
    let is_read = operation.is_none_or(|word| word == Operation::Read.as_str());
    let is_credential = resource.is_none_or(|word| word == Resource::Credential.as_str());
    // Reading the public part of a key is harmless, judged by the action's name.
    if is_read && is_credential {
        return RiskLevel::Low;
    }
    let resources: Vec<&str> =
        resource.map_or_else(|| Resource::ALL.iter().map(|word| word.as_str()).collect(), |word| vec![word]);
    let operations: Vec<&str> =
        operation.map_or_else(|| Operation::ALL.iter().map(|word| word.as_str()).collect(), |word| vec![word]);
    // An operation of a document's own is at least MEDIUM; a resource of its own is never milder than the mildest
    // resource of the taxonomy.
    let mut least = if operation.is_none() { RiskLevel::Medium } else { RiskLevel::High };
    for resource in resources {
        for operation in &operations {
            let capability: Option<Capability> = format!("{resource}:{operation}").parse().ok();
            let floor = capability.map_or(RiskLevel::Low, |capability| risk_floor(&Action::unknown(), &[capability]));
            least = least.min(floor);
            if least == RiskLevel::Low {
                return least;
            }
        }
    }
    least
}

/// Maximum number of steps of all conditions of a set: about one second.
const MOST_STEPS: u64 = 10_000_000;
/// Maximum number of warnings of one kind.
const MOST_TOLD: usize = 100;
