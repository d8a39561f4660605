//! Knowledge of SQL from `data/sql.toml`.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::reading::Act;
use crate::sign::Sign;
use crate::table::{self, Words, lists};
use rulekeep_types::{Error, Operation, Resource, RiskLevel};

/// The table.
///
/// INVARIANT: every parser has passed [`check`], so the empty table stands in for none that is used.
fn known() -> &'static Known {
    static EMPTY: LazyLock<Known> = LazyLock::new(Known::default);
    KNOWN.as_ref().unwrap_or(&EMPTY)
}

/// Refuses a table that does not read.
pub(in crate::format) fn check() -> Result<(), Error> {
    KNOWN.as_ref().map(|_| ()).map_err(|fault| Error::internal(fault.as_str()))
}

static KNOWN: LazyLock<Result<Known, String>> =
    LazyLock::new(|| table::read("sql", include_str!("../../data/sql.toml")));

/// Words by what they say in a statement.
pub(super) fn words() -> &'static SqlWords {
    &known().words
}

/// Commands of database clients.
pub(super) fn client() -> &'static Client {
    &known().client
}

/// The rule of the longest key of `[statements]` that the words start with.
pub(super) fn statement(words: &[&str]) -> Option<&'static Rule> {
    (1..=words.len().min(LONGEST_HEAD))
        .rev()
        .find_map(|count| known().statements.get(words.get(..count).unwrap_or(&[]).join(" ").as_str()))
}

/// The rule of a function that does more than compute.
pub(super) fn call(name: &str) -> Option<&'static Rule> {
    let calls = &known().calls;
    calls.get(name).or_else(|| {
        let families =
            calls.iter().filter(|(key, _)| key.strip_suffix('*').is_some_and(|start| name.starts_with(start)));
        families.max_by_key(|(key, _)| key.len()).map(|(_, rule)| rule)
    })
}

/// An act that could not be parsed with certainty.
pub(super) fn unclear(verb: &str, noun: &str) -> Act {
    Act { verb: verb.to_owned(), resource: Resource::Database, ..Act::unclear_execution(noun) }
}

pub(super) fn database(verb: &str, noun: &str, operation: Operation) -> Act {
    Act::new(verb, noun, Resource::Database, operation, 0.9)
}

/// A rule: `capability RISK verb_noun`, then signs.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Rule {
    resource: Resource,
    operation: Operation,
    /// `None` leaves the level to the rubric's table.
    risk: Option<RiskLevel>,
    verb: String,
    noun: String,
    signs: Vec<Sign>,
}

impl TryFrom<String> for Rule {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::read(&text).ok_or_else(|| format!("`{text}` is not `capability RISK verb_noun` with signs"))
    }
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

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    statements: Words<Rule>,
    words: SqlWords,
    client: Client,
    calls: Words<Rule>,
}

lists! {
    SqlWords {}
    noise head run_strings past_columns now openers objects determiners clauses alterations definitions
    privileges shown starters connectors not_after names_follow production scratch unlimited access_tables
    access_columns money_columns audit_tables secret_tables secrets secret_inside secret_tails secret_heads
    cards identities persons person_tables reading_pragmas hostile_pragmas hostile_extensions about runs remade
    spoken_openers set_kinds transactions phrase_parts explained explain_options harmless
}

lists! {
    Client {}
    reads runs writes feeds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_does_not_read_is_refused() {
        check().unwrap();
        let error = table::read::<Words<Rule>>("x", "\"drop\" = \"database:wipe HIGH drop_it\"").unwrap_err();
        assert!(error.contains("database:wipe"), "{error}");
    }

    #[test]
    fn the_longest_head_decides() {
        assert_eq!(statement(&["drop", "view", "x"]).unwrap().risk, Some(RiskLevel::Medium));
        assert_eq!(statement(&["drop", "gizmo"]).unwrap().risk, Some(RiskLevel::High));
        assert!(statement(&["frobnicate"]).is_none());
    }

    #[test]
    fn a_function_is_known_by_the_start_of_its_family() {
        assert_eq!(call("pg_ls_dir").unwrap().noun, "files");
        assert!(call("pg_size").is_none());
    }
}
