//! What only the whole set shows: ids that stand twice, and rules that say less
//! than they seem to.

use std::collections::HashMap;

use super::document::{Document, LocatedRule, Report};
use super::pattern::CapabilityPattern;
use super::rule::{Effect, Levels, Rule};
use crate::model::{Problem, Severity};

/// Adds the problems of the set as a whole.
pub(super) fn check(document: &Document, report: &mut Report<'_>) {
    ids_are_unique(&document.rules, report);
    // Warnings on half a document would mislead.
    if report.has_errors() {
        return;
    }
    if !document.rules.iter().any(|located| grants(&located.rule)) {
        let message = if document.rules.is_empty() {
            "the policy has no rules: it denies everything"
        } else {
            "the policy has no allow or degrade rule: it grants nothing"
        };
        report.warn(0, "", message);
    }
    warn_of_beaten_allows(&document.rules, report);
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
    let is_left = |rule: &Rule| {
        delegates.iter().take(rule.layer).all(|left| {
            left.iter().any(|pattern| {
                rule.matches.capabilities.is_empty() || rule.matches.capabilities.iter().any(|one| one.meets(pattern))
            })
        })
    };
    let idle = rules.iter().filter(|rule| rule.effect == Effect::Allow && !is_left(rule));
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

fn grants(rule: &Rule) -> bool {
    matches!(rule.effect, Effect::Allow | Effect::Degrade)
}

/// Warns of each allow whose every request some wide deny refuses: one that asks
/// for nothing but capabilities, risk and tiers.
fn warn_of_beaten_allows(rules: &[LocatedRule], report: &mut Report<'_>) {
    let mut wide: Vec<&Rule> = Vec::new();
    for rule in
        rules.iter().map(|located| &located.rule).filter(|rule| rule.effect == Effect::Deny && rule.matches.is_wide())
    {
        // A deny that repeats another's reach adds nothing to look at.
        if wide.len() < MAX_WIDE_DENIES
            && !wide.iter().any(|known| beats(known, &rule.matches.capabilities, rule.matches.levels))
        {
            wide.push(rule);
        }
    }
    for located in rules.iter().filter(|located| located.rule.effect == Effect::Allow) {
        let allow = &located.rule.matches;
        if let Some(deny) = wide.iter().find(|deny| beats(deny, &allow.capabilities, allow.levels)) {
            report.rule = Some(format!("rule {:?}", located.rule.id));
            let message =
                format!("this allow never grants anything: the deny {:?} on line {} covers it", deny.id, deny.line);
            report.warn(located.at, "", message);
            report.rule = None;
        }
    }
}

/// Whether a wide rule speaks about all of some capabilities at all of some levels.
fn beats(deny: &Rule, capabilities: &[CapabilityPattern], levels: Levels) -> bool {
    let covers = &deny.matches.capabilities;
    let all_covered =
        || !capabilities.is_empty() && capabilities.iter().all(|narrow| covers.iter().any(|wide| wide.covers(narrow)));
    let everything = CapabilityPattern::new("*", "*");
    deny.matches.levels.contains(levels) && (covers.is_empty() || covers.contains(&everything) || all_covered())
}

/// A warning is worth a bounded search only.
const MAX_WIDE_DENIES: usize = 256;
