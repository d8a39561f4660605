//! Knowledge of SQL from `data/sql.toml`.

use std::sync::LazyLock;

use crate::table::{WordSet, Words};
use serde::Deserialize;

use crate::reading::Act;
use crate::sign::Sign;
use rulekeep_types::{Operation, Resource, RiskLevel};

/// Returns whether a list of `[words]` contains the lower-case word.
pub(super) fn holds(list: &str, word: &str) -> bool {
    KNOWN.words.get(list).is_some_and(|words| words.contains(word))
}

/// Returns whether a list of `[client]` contains the command.
pub(super) fn is_client(list: &str, command: &str) -> bool {
    KNOWN.client.get(list).is_some_and(|words| words.contains(command))
}

/// The entries of a list.
pub(super) fn phrases(list: &str) -> impl Iterator<Item = &'static str> {
    KNOWN.words.get(list).into_iter().flatten().map(String::as_str)
}

/// A list's entries in spoken form, with blanks in place of `_`.
pub(super) fn spoken(list: &str) -> &'static [String] {
    KNOWN.spoken.get(list).map_or(&[], Vec::as_slice)
}

/// The rule of the longest key of `[statements]` that the words start with.
pub(super) fn statement(words: &[&str]) -> Option<&'static Rule> {
    (1..=words.len().min(LONGEST_HEAD))
        .rev()
        .find_map(|count| KNOWN.statements.get(words.get(..count).unwrap_or(&[]).join(" ").as_str()))
}

/// The rule of a function that does more than compute.
pub(super) fn call(name: &str) -> Option<&'static Rule> {
    KNOWN.calls.named.get(name).or_else(|| {
        KNOWN.calls.families.iter().find(|(start, _)| name.starts_with(start.as_str())).map(|(_, rule)| rule)
    })
}

/// Returns whether a function only computes, or a word before a bracket is not a function.
pub(super) fn only_computes(name: &str) -> bool {
    KNOWN.harmless.contains(name) || KNOWN.families.iter().any(|start| name.starts_with(start.as_str()))
}

/// An act that could not be parsed with certainty.
pub(super) fn unclear(verb: &str, noun: &str) -> Act {
    Act { verb: verb.to_owned(), resource: Resource::Database, ..Act::unclear_execution(noun) }
}

pub(super) fn database(verb: &str, noun: &str, operation: Operation) -> Act {
    Act::new(verb, noun, Resource::Database, operation, 0.9)
}

/// A rule: `capability RISK verb_noun`, then signs.
#[derive(Debug)]
pub(super) struct Rule {
    resource: Resource,
    operation: Operation,
    /// `None` leaves the level to the rubric's table.
    risk: Option<RiskLevel>,
    verb: String,
    noun: String,
    signs: Vec<Sign>,
}

impl Rule {
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split_whitespace();
        let (resource, operation) = parts.next()?.split_once(':')?;
        let risk = Some(parts.next()?).filter(|level| *level != "-").map(str::parse).transpose().ok()?;
        let (verb, noun) = parts.next()?.rsplit_once('_')?;
        Some(Self {
            resource: resource.parse().ok()?,
            operation: operation.parse().ok()?,
            risk,
            verb: verb.to_owned(),
            noun: noun.to_owned(),
            signs: parts.map(Sign::from_word).collect::<Option<_>>()?,
        })
    }

    pub(super) fn act(&self) -> Act {
        let mut act = Act::new(&self.verb, &self.noun, self.resource, self.operation, 0.9);
        act.risk = self.risk;
        for &sign in &self.signs {
            act.signs.add(sign);
            if sign == Sign::Unclear {
                act.sure = 0.6;
            }
        }
        act
    }
}

/// Maximum number of words of a key.
const LONGEST_HEAD: usize = 3;

/// The lists whose entries are searched in sentences.
const SPOKEN: &[&str] = &["about", "runs"];

#[derive(Default)]
struct Known {
    statements: Words<Rule>,
    words: Words<WordSet>,
    spoken: Words<Vec<String>>,
    client: Words<WordSet>,
    calls: Calls,
    harmless: WordSet,
    families: Vec<String>,
}

#[derive(Default)]
struct Calls {
    named: Words<Rule>,
    families: Vec<(String, Rule)>,
}

#[derive(Default, Deserialize)]
struct Text {
    statements: Words<String>,
    words: Words<String>,
    client: Words<String>,
    calls: Words<String>,
    harmless: Words<String>,
}

impl Text {
    fn known(self) -> Known {
        let lists = |lists: Words<String>| {
            lists
                .into_iter()
                .map(|(name, words)| (name, words.split_whitespace().map(str::to_owned).collect()))
                .collect()
        };
        let rules = |rules: Words<String>| {
            rules.into_iter().filter_map(|(name, rule)| Some((name, Rule::read(&rule)?))).collect::<Words<_>>()
        };
        let mut calls = Calls::default();
        for (name, rule) in rules(self.calls) {
            match name.strip_suffix('*') {
                Some(start) => calls.families.push((start.to_owned(), rule)),
                None => {
                    calls.named.insert(name, rule);
                }
            }
        }
        let spoken = SPOKEN.iter().filter_map(|&list| {
            let phrases = self.words.get(list)?.split_whitespace();
            Some((list.to_owned(), phrases.map(|phrase| phrase.trim_end_matches('_').replace('_', " ")).collect()))
        });
        let mut known = Known {
            spoken: spoken.collect(),
            statements: rules(self.statements),
            words: lists(self.words),
            client: lists(self.client),
            calls,
            ..Known::default()
        };
        for name in self.harmless.values().flat_map(|words| words.split_whitespace()) {
            match name.strip_suffix('*') {
                Some(start) => known.families.push(start.to_owned()),
                None => {
                    known.harmless.insert(name.to_owned());
                }
            }
        }
        known
    }
}

// A test ensures that the file parses. Otherwise no function would be known as harmless.
static KNOWN: LazyLock<Known> =
    LazyLock::new(|| toml::from_str::<Text>(include_str!("../../data/sql.toml")).map(Text::known).unwrap_or_default());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_of_the_data_reads() {
        let text: Text = toml::from_str(include_str!("../../data/sql.toml")).unwrap();
        for (name, rule) in text.statements.iter().chain(&text.calls) {
            assert!(Rule::read(rule).is_some(), "{name}: {rule}");
        }
        for list in text.words.values().chain(text.client.values()).chain(text.harmless.values()) {
            assert!(!list.trim().is_empty());
        }
    }

    #[test]
    fn the_longest_head_decides() {
        assert_eq!(statement(&["drop", "view", "x"]).unwrap().risk, Some(RiskLevel::Medium));
        assert_eq!(statement(&["drop", "gizmo"]).unwrap().risk, Some(RiskLevel::High));
        assert!(statement(&["frobnicate"]).is_none());
    }
}
