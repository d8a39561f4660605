//! The conditions of a rule: `when` must hold, `unless` must not, and both may use the names that the rule's `let`
//! defines.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use super::condition::{Bindings, Condition, Scope};
use super::rule::{Clause, Match};
use rulekeep_types::document::{Fields, Node, Report};
use rulekeep_types::{RiskLevel, Tier, excerpt};

/// The conditions of one rule.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    when: Option<Condition>,
    unless: Option<Condition>,
    /// Each name and its expression, in document order.
    named: Vec<(Box<str>, Box<str>)>,
}

impl Conditions {
    /// Reads `let`, `when` and `unless` of a rule.
    pub(super) fn read(fields: &mut Fields, report: &mut Report<'_>) -> Self {
        let mut bindings = Bindings::default();
        let mut named = Vec::new();
        if let Some(node) = fields.take("let") {
            named = name_all(node, &mut bindings, report);
        }
        let let_at = named.iter().map(|(at, ..)| *at).collect::<Vec<_>>();
        let mut condition = |name: &'static str| compiled(fields.take(name)?, name, &bindings, report);
        let (when, unless) = (condition("when"), condition("unless"));
        let named: Vec<_> = named.into_iter().map(|(_, name, source)| (name, source)).collect();
        let conditions = Self { when, unless, named };
        for (place, at) in let_at.into_iter().enumerate() {
            if let Some((name, _)) = conditions.named.get(place)
                && !report.has_errors()
                && !conditions.uses(name)
            {
                report.warn(at, &format!("let.{name}"), format!("nothing uses the name {name:?}"));
            }
        }
        conditions
    }

    /// Returns whether a condition or another name uses a name.
    fn uses(&self, name: &str) -> bool {
        let others = self.named.iter().filter(|(other, _)| **other != *name).map(|(_, source)| &**source);
        let conditions = self.when.iter().chain(&self.unless).map(Condition::source);
        others.chain(conditions).any(|source| mentions(source, name))
    }

    /// Returns whether a name is bound to something other than the context key of the same name.
    pub(super) fn names_otherwise(&self, name: &str) -> bool {
        self.named.iter().any(|(known, source)| **known == *name && !reads_key(source, name))
    }

    /// The context keys that the conditions read, and whether they test first that the key exists.
    pub(super) fn keys(&self) -> impl Iterator<Item = (&str, bool)> {
        let conditions = self.when.iter().chain(&self.unless);
        conditions.flat_map(|condition| {
            let unasked = condition.unasked_keys();
            condition.context_keys().iter().map(|key| (&**key, !unasked.contains(key)))
        })
    }

    /// Returns whether a condition reads `now`.
    pub(super) fn read_now(&self) -> bool {
        self.when.iter().chain(&self.unless).any(Condition::reads_now)
    }

    /// The maximum number of steps of the conditions together.
    pub(super) fn cost(&self) -> u64 {
        self.when.iter().chain(&self.unless).map(|condition| u64::from(condition.cost())).sum()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.when.is_none() && self.unless.is_none()
    }

    /// Returns the fixed result of the conditions, if no input can change it.
    pub(super) fn constant(&self) -> Option<bool> {
        let when = self.when.as_ref().map_or(Some(true), Condition::constant);
        let unless = self.unless.as_ref().map_or(Some(false), Condition::constant);
        match (when, unless) {
            (Some(false), _) | (_, Some(true)) => Some(false),
            (Some(true), Some(false)) => Some(true),
            _ => None,
        }
    }

    /// A value that no request has, if the conditions never hold for requests that the clauses match.
    pub(super) fn contradiction(&self, matches: &Match) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let tiers = Tier::ALL.iter().filter(|tier| matches.levels.has_tier(**tier)).map(|tier| tier.as_str());
        let risks = RiskLevel::ALL.iter().filter(|risk| matches.levels.has_risk(**risk)).map(|risk| risk.as_str());
        let agents = matches.agents.exact().filter(|_| matches.agents.globs().is_empty());
        let [tiers, risks, agents]: [Vec<&str>; 3] = [tiers.collect(), risks.collect(), agents.collect()];
        Condition::contradiction(self.when.as_ref(), self.unless.as_ref(), [&tiers, &risks, &agents])
    }

    /// The condition that keeps the rule from matching, if any.
    ///
    /// # Errors
    ///
    /// The reason a condition failed, without any value from the context.
    pub(super) fn failing(&self, scope: &Scope<'_>) -> Result<Option<Clause<'_>>, String> {
        let unless = || match &self.unless {
            Some(unless) => {
                let holds = unless.evaluate(scope).map_err(|error| format!("unless: {error}"))?;
                Ok(holds.then_some(Clause::Unless(unless)))
            }
            None => Ok(None),
        };
        let Some(when) = &self.when else { return unless() };
        match when.evaluate(scope) {
            Ok(true) => unless(),
            Ok(false) => Ok(Some(Clause::When(when))),
            // If `unless` holds, the rule does not match even though `when` failed.
            Err(error) => match unless() {
                Ok(Some(clause)) => Ok(Some(clause)),
                _ => Err(format!("when: {error}")),
            },
        }
    }

    /// Returns whether the rule has no condition and no `let`.
    pub(super) fn says_nothing(&self) -> bool {
        self.texts().next().is_none()
    }

    /// The labeled texts of the conditions, for the canonical form.
    fn texts(&self) -> impl Iterator<Item = [Cow<'_, str>; 2]> {
        // No name contains a full stop, so a label cannot be forged.
        let named = self.named.iter().map(|(name, source)| [format!("let.{name}").into(), (&**source).into()]);
        let when = self.when.iter().map(|when| ["when".into(), when.source().into()]);
        let unless = self.unless.iter().map(|unless| ["unless".into(), unless.source().into()]);
        named.chain(when).chain(unless)
    }
}

impl Serialize for Conditions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.texts())
    }
}

/// Reads each name of `let` with its place and its expression.
fn name_all(node: Node, bindings: &mut Bindings, report: &mut Report<'_>) -> Vec<(usize, Box<str>, Box<str>)> {
    let mut named = Vec::new();
    for field in report.table(node, "let", "a table of expressions") {
        let path = format!("let.{}", excerpt(&field.name));
        let at = field.node.at;
        let Some(source) = report.text(field.node, &path) else { continue };
        match bindings.add(&field.name, &source) {
            Ok(()) => named.push((field.at, field.name.into(), source.into())),
            Err(error) => report.error(report.lines.within(at, &source, error.at), &path, error.message),
        }
    }
    named
}

/// Returns whether a source contains a word as a whole, not after a dot.
fn mentions(source: &str, word: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    source.match_indices(word).any(|(at, _)| {
        let before = source.get(..at).and_then(|text| text.trim_end().chars().last());
        let after = source.get(at + word.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(|c| is_of_name(c) || c == '.') && !after.is_some_and(is_of_name)
    })
}

/// Returns whether a source reads a context key.
fn reads_key(source: &str, key: &str) -> bool {
    [format!("context.{key}"), format!("context[\"{key}\"]"), format!("context['{key}']")]
        .iter()
        .any(|read| source.contains(read.as_str()))
}

fn compiled(node: Node, name: &str, bindings: &Bindings, report: &mut Report<'_>) -> Option<Condition> {
    let at = node.at;
    let source = report.text(node, name)?;
    match Condition::compile(&source, bindings) {
        Ok(condition) => {
            if let Some(holds) = condition.constant() {
                let so = if holds == (name == "unless") { "; the rule never matches" } else { "" };
                report.warn(at, name, format!("this condition is always {holds}, whatever the request{so}"));
            }
            Some(condition)
        }
        Err(error) => {
            report.error(report.lines.within(at, &source, error.at), name, error.message);
            None
        }
    }
}
