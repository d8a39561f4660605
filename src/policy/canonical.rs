//! The canonical form of rules: one text for one meaning, whichever format and
//! order of fields or list items it was written in.

use std::borrow::Cow;
use std::time::Duration;

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::clauses::Vocabulary;
use super::limit::Limit;
use super::pattern::CapabilityPattern;
use super::reviewers::Reviewers;
use super::rule::{DEFAULT_EXPIRY, Effect, Match, Rule};
use crate::model::{Capability, Constraints, Digest, RiskLevel};

/// SHA-256 over the vocabulary, the reviewers and the rules in their order. Their order counts
/// because `reasoning` names rules in it; names and descriptions do not.
pub(super) fn digest(
    vocabularies: &[Vocabulary],
    delegates: &[Vec<CapabilityPattern>],
    reviewers: &Reviewers,
    rules: &[Rule],
) -> Digest {
    let mut hash = Sha256::new();
    for vocabulary in vocabularies {
        let own: Vec<&Capability> = vocabulary.own().collect();
        hash.update(json(&own));
    }
    if delegates.iter().any(|left| !left.is_empty()) {
        let left: Vec<Vec<String>> =
            delegates.iter().map(|left| left.iter().map(ToString::to_string).collect()).collect();
        hash.update(json(&left));
    }
    let people = reviewers.canonical();
    if !people.is_empty() {
        hash.update(json(&people));
    }
    for rule in rules {
        // JSON holds no bare line break, so it parts the rules.
        hash.update(b"\n");
        hash.update(json(&CanonicalRule::of(rule)));
    }
    Digest::new(hash.finalize().into())
}

/// SHA-256 over one rule and the people behind the name that it asks.
pub(super) fn rule_digest(rule: &Rule, reviewers: &Reviewers) -> Digest {
    let mut people: Vec<&str> = rule
        .asks()
        .and_then(|name| reviewers.people(name))
        .into_iter()
        .flat_map(|all| all.iter())
        .map(|one| &**one)
        .collect();
    people.sort_unstable();
    let mut hash = Sha256::new();
    hash.update(json(&CanonicalRule::of(rule)));
    hash.update(b"\n");
    hash.update(json(&people));
    Digest::new(hash.finalize().into())
}

/// The text that is equal for two rules that match and do the same, whatever
/// they are called, and whatever constraints they set.
///
/// A limited rule is nobody's twin: its counters are its own.
pub(super) fn twin_key(rule: &Rule) -> String {
    let id = rule.limit.as_ref().map(|_| &*rule.id);
    json(&CanonicalRule { id, reason: None, severity: None, constraints: None, ..CanonicalRule::of(rule) })
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_base(layer: &usize) -> bool {
    *layer == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_one(approvals: &u8) -> bool {
    *approvals == 1
}

fn is_default(expires: &Duration) -> bool {
    *expires == DEFAULT_EXPIRY
}

#[derive(Serialize)]
struct CanonicalRule<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "is_base")]
    layer: usize,
    effect: Effect,
    reviewer: Option<&'a str>,
    #[serde(skip_serializing_if = "is_one")]
    approvals: u8,
    #[serde(skip_serializing_if = "is_default")]
    expires: Duration,
    to: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(rename = "match")]
    matches: CanonicalMatch<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<[Cow<'a, str>; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    severity: Option<RiskLevel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    constraints: Option<&'a Constraints>,
}

impl<'a> CanonicalRule<'a> {
    fn of(rule: &'a Rule) -> Self {
        Self {
            id: Some(&rule.id),
            layer: rule.layer,
            effect: rule.effect,
            reviewer: rule.reviewer.as_deref(),
            approvals: rule.approvals,
            expires: rule.expires,
            to: rule.to.iter().map(ToString::to_string).collect(),
            reason: rule.reason.as_deref(),
            matches: CanonicalMatch::of(&rule.matches),
            conditions: rule.conditions.texts().collect(),
            severity: rule.severity,
            limit: rule.limit.as_ref().map(Limit::canonical),
            constraints: Some(&rule.constraints),
        }
    }
}

#[derive(Serialize)]
struct CanonicalMatch<'a> {
    agents: Vec<&'a str>,
    labels: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<&'a str>,
    actions: Vec<&'a str>,
    capabilities: Vec<String>,
    levels: u16,
    environment: &'a [Box<str>],
    context: Vec<[&'a str; 2]>,
}

impl<'a> CanonicalMatch<'a> {
    fn of(matches: &'a Match) -> Self {
        Self {
            agents: matches.agents.texts().collect(),
            labels: matches.labels.texts().collect(),
            groups: matches.groups.texts().collect(),
            actions: matches.actions.texts().collect(),
            capabilities: matches.capabilities.iter().map(ToString::to_string).collect(),
            levels: matches.levels.bits(),
            environment: &matches.environment,
            context: matches.context.iter().map(|clause| [&*clause.key, clause.pattern.0.as_str()]).collect(),
        }
    }
}

fn json<T: Serialize>(value: &T) -> String {
    // Strings, numbers and string keys always serialise.
    serde_json::to_string(value).unwrap_or_default()
}
