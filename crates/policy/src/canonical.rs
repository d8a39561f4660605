//! The canonical form of rules: the same text for the same meaning, whatever the format and the order of fields and
//! list items. Rules serialize to it.

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::clauses::Vocabulary;
use super::pattern::CapabilityPattern;
use super::reviewers::Reviewers;
use super::rule::Rule;
use rulekeep_types::{Capability, Digest};

/// SHA-256 over the vocabulary, the reviewers and the rules in order. The order counts because `reasoning` cites
/// rules in it; the document's name and description do not count.
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
        // JSON contains no raw line break, so a line break separates the rules.
        hash.update(b"\n");
        hash.update(json(rule));
    }
    Digest::new(hash.finalize().into())
}

/// SHA-256 over one rule and the people it asks.
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

/// A text that is equal for two rules with the same clauses and effect, whatever their ids and constraints. A rule
/// with a limit equals no other, because it has counters of its own.
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
