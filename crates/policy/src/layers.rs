//! Layered documents: a later one may only narrow what the earlier ones say.

use std::collections::HashMap;

use serde_json::Value as Json;

use super::alert::{AlertRule, LocatedAlert};
use super::clauses::Vocabulary;
use super::document::Document;
use super::environments::Environments;
use super::pattern::CapabilityPattern;
use super::reviewers::Reviewers;
use super::rule::Rule;
use super::value;
use rulekeep_types::{Problem, Severity};

/// The merged content of layered documents.
#[derive(Default)]
pub(super) struct Layers {
    pub(super) names: Vec<String>,
    /// For each document, its vocabulary and that of the earlier documents.
    pub(super) vocabularies: Vec<Vocabulary>,
    pub(super) rules: Vec<Rule>,
    pub(super) delegates: Vec<Vec<CapabilityPattern>>,
    /// As narrowed by each later document.
    pub(super) reviewers: Reviewers,
    /// The environments of the first document. One that a later document names could widen what earlier ones allow.
    pub(super) environments: Environments,
    pub(super) alerts: Vec<AlertRule>,
    /// For each document, its warnings.
    pub(super) warnings: Vec<Vec<Problem>>,
}

impl Layers {
    /// Adds a document on top of those before it.
    ///
    /// # Errors
    ///
    /// The problems that it has in combination with them.
    pub(super) fn add(&mut self, mut document: Document, mut warnings: Vec<Problem>) -> Result<(), Vec<Problem>> {
        self.reviewers.narrow(document.reviewers, &self.rules)?;
        for LocatedAlert { alert, line } in document.alerts {
            if self.alerts.iter().any(|known| known.id == alert.id) {
                let message = format!("an alert of an earlier document has the id {:?} too", alert.id);
                return Err(vec![Problem::new(line, 1, Severity::Error, message)]);
            }
            self.alerts.push(alert);
        }
        warnings.extend(refuse_other_constraints(&self.rules, &mut document.rules));
        warnings.sort_by_key(|warning| (warning.line, warning.column));
        let layer = self.names.len();
        if layer == 0 {
            self.environments = document.environments;
        } else if !document.environments.is_empty() {
            let message = "environments are those of the first document; this table is not used";
            warnings.push(Problem::new(1, 1, Severity::Warning, message.to_owned()));
        }
        self.names.push(document.name);
        let mut vocabulary = self.vocabularies.last().cloned().unwrap_or_default();
        vocabulary.extend(document.vocabulary);
        self.vocabularies.push(vocabulary);
        self.rules.extend(document.rules.into_iter().map(|rule| Rule { layer, ..rule }));
        self.delegates.push(document.delegates);
        self.warnings.push(warnings);
        Ok(())
    }
}

/// Makes each rule of a later document a deny if it sets a constraint without a known direction to another value than
/// an earlier document, with a warning. Nobody can tell which of the two values is tighter, so neither document's
/// grant would be within both.
fn refuse_other_constraints(earlier: &[Rule], later: &mut [Rule]) -> Vec<Problem> {
    let mut known: HashMap<&str, Values<'_>> = HashMap::new();
    for rule in earlier {
        for (key, value) in own_constraints(rule) {
            known
                .entry(key)
                .and_modify(|values| values.note(value, rule))
                .or_insert(Values { first: (value, rule), other: None });
        }
    }
    let mut warnings = Vec::new();
    for rule in later {
        let other = own_constraints(rule).find_map(|(key, value)| Some((key, known.get(key)?.unlike(value)?)));
        let Some((key, other)) = other else { continue };
        let why = format!("constraints.{key} differs from that of the rule {:?} of an earlier document", other.id);
        let message = format!(
            "the {} {:?} grants nothing and denies what it matches: {why}, and neither of the two is clearly tighter",
            rule.effect, rule.id
        );
        warnings.push(Problem::new(rule.line, 1, Severity::Warning, message));
        rule.refuse(why);
    }
    warnings
}

/// The constraints of a rule under keys of the document's own.
fn own_constraints(rule: &Rule) -> impl Iterator<Item = (&str, &Json)> {
    rule.constraints.iter().filter(|(key, _)| !value::has_direction(key))
}

/// The values of one constraint in earlier documents: the first, and one rule with a different value, if any.
struct Values<'r> {
    first: (&'r Json, &'r Rule),
    other: Option<&'r Rule>,
}

impl<'r> Values<'r> {
    fn note(&mut self, value: &Json, rule: &'r Rule) {
        if self.other.is_none() && value != self.first.0 {
            self.other = Some(rule);
        }
    }

    /// A rule that sets a different value.
    fn unlike(&self, value: &Json) -> Option<&'r Rule> {
        if value == self.first.0 { self.other } else { Some(self.first.1) }
    }
}
