//! The canonical form of rules: one text for one meaning, whichever format and
//! order of fields or list items it was written in. Rules serialize to it.

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::clauses::Vocabulary;
use super::pattern::CapabilityPattern;
use super::reviewers::Reviewers;
use super::rule::Rule;
use crate::model::{Capability, Digest};

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
        hash.update(json(&delegates));
    }
    let people = reviewers.canonical();
    if !people.is_empty() {
        hash.update(json(&people));
    }
    for rule in rules {
        // JSON holds no bare line break, so it parts the rules.
        hash.update(b"\n");
        hash.update(json(rule));
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
    hash.update(json(rule));
    hash.update(b"\n");
    hash.update(json(&people));
    Digest::new(hash.finalize().into())
}

/// The text that is equal for two rules that match and do the same, whatever
/// they are called, and whatever constraints they set.
///
/// A limited rule is nobody's twin: its counters are its own.
pub(super) fn twin_key(rule: &Rule) -> String {
    let mut value = serde_json::to_value(rule).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        let aside =
            |name: &str| matches!(name, "reason" | "severity" | "constraints") || name == "id" && rule.limit.is_none();
        fields.retain(|name, _| !aside(name));
    }
    value.to_string()
}

fn json<T: Serialize>(value: &T) -> String {
    // Strings, numbers and string keys always serialize.
    serde_json::to_string(value).unwrap_or_default()
}
