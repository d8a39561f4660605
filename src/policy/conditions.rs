//! The conditions of a rule: `when` must hold, `unless` must not, and both may
//! use what the rule's `let` names.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use super::condition::{Bindings, Condition, Scope};
use super::rule::Clause;
use crate::document::{Fields, Node, Report};
use crate::model::excerpt;

/// The conditions of one rule.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    when: Option<Condition>,
    unless: Option<Condition>,
    /// Each name and its expression, in the order of the document.
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

    /// Whether a condition or another name uses a name.
    fn uses(&self, name: &str) -> bool {
        let others = self.named.iter().filter(|(other, _)| **other != *name).map(|(_, source)| &**source);
        let conditions = self.when.iter().chain(&self.unless).map(Condition::source);
        others.chain(conditions).any(|source| mentions(source, name))
    }

    /// Whether a name stands for something else than the key of the context that is called like it.
    pub(super) fn names_otherwise(&self, name: &str) -> bool {
        self.named.iter().any(|(known, source)| **known == *name && !reads_key(source, name))
    }

    /// The keys of the context that they read, and whether they ask first whether there is one.
    pub(super) fn keys(&self) -> impl Iterator<Item = (&str, bool)> {
        let conditions = self.when.iter().chain(&self.unless);
        conditions.flat_map(|condition| {
            let unasked = condition.unasked_keys();
            condition.context_keys().iter().map(|key| (&**key, !unasked.contains(key)))
        })
    }

    /// Whether the time has a part in them.
    pub(super) fn read_now(&self) -> bool {
        self.when.iter().chain(&self.unless).any(Condition::reads_now)
    }

    /// The most steps that they take together.
    pub(super) fn cost(&self) -> u64 {
        self.when.iter().chain(&self.unless).map(|condition| u64::from(condition.cost())).sum()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.when.is_none() && self.unless.is_none()
    }

    /// Whether they hold or do not, where nothing that is asked can change it.
    pub(super) fn constant(&self) -> Option<bool> {
        let when = self.when.as_ref().map_or(Some(true), Condition::constant);
        let unless = self.unless.as_ref().map_or(Some(false), Condition::constant);
        match (when, unless) {
            (Some(false), _) | (_, Some(true)) => Some(false),
            (Some(true), Some(false)) => Some(true),
            _ => None,
        }
    }

    /// The condition that keeps the rule from matching, if one does.
    ///
    /// # Errors
    ///
    /// Why one failed, in words without anything of the context.
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
            // The rule does not match all the same where its `unless` holds.
            Err(error) => match unless() {
                Ok(Some(clause)) => Ok(Some(clause)),
                _ => Err(format!("when: {error}")),
            },
        }
    }

    /// Whether the rule has none, not even a name.
    pub(super) fn says_nothing(&self) -> bool {
        self.texts().next().is_none()
    }

    /// What stands in them, for the canonical form.
    fn texts(&self) -> impl Iterator<Item = [Cow<'_, str>; 2]> {
        // No name holds a full stop, so none can pass for what it is not.
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

/// Each name with its place and its expression.
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

/// Whether a source has a word in it, as a whole and not behind a dot.
fn mentions(source: &str, word: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    source.match_indices(word).any(|(at, _)| {
        let before = source.get(..at).and_then(|text| text.trim_end().chars().last());
        let after = source.get(at + word.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(|c| is_of_name(c) || c == '.') && !after.is_some_and(is_of_name)
    })
}

/// Whether a source reads a key of the context.
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
                report.warn(at, name, format!("this condition is always {holds}, whatever is asked{so}"));
            }
            Some(condition)
        }
        Err(error) => {
            report.error(report.lines.within(at, &source, error.at), name, error.message);
            None
        }
    }
}
