//! The conditions of a rule: `when` must hold, `unless` must not, and both may
//! use what the rule's `let` names.

use std::borrow::Cow;

use super::condition::{Bindings, Condition, Scope};
use super::document::{Fields, Report};
use super::rule::Clause;
use super::tree::{Node, Value};
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
        let mut condition = |name: &'static str| compiled(fields.take(name)?, name, &bindings, report);
        let (when, unless) = (condition("when"), condition("unless"));
        Self { when, unless, named }
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

    /// What stands in them, for the canonical form.
    pub(super) fn texts(&self) -> impl Iterator<Item = [Cow<'_, str>; 2]> {
        // No name holds a full stop, so none can pass for what it is not.
        let named = self.named.iter().map(|(name, source)| [format!("let.{name}").into(), (&**source).into()]);
        let when = self.when.iter().map(|when| ["when".into(), when.source().into()]);
        let unless = self.unless.iter().map(|unless| ["unless".into(), unless.source().into()]);
        named.chain(when).chain(unless)
    }
}

fn name_all(node: Node, bindings: &mut Bindings, report: &mut Report<'_>) -> Vec<(Box<str>, Box<str>)> {
    let (at, kind) = (node.at, node.kind());
    let Value::Table(fields) = node.value else {
        report.error(at, "let", format!("expected a table of expressions, found {kind}"));
        return Vec::new();
    };
    let mut named: Vec<(Box<str>, Box<str>)> = Vec::new();
    for field in fields {
        let path = format!("let.{}", excerpt(&field.name));
        let at = field.node.at;
        let Some(source) = report.text(field.node, &path) else { continue };
        match bindings.add(&field.name, &source) {
            Ok(()) => named.push((field.name.into(), source.into())),
            Err(error) => report.error(report.lines.within(at, &source, error.at), &path, error.message),
        }
    }
    named
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
