//! Conditions of rules: a typed, total, cost-bounded subset of CEL, the Common
//! Expression Language.
//!
//! It takes in a source text (`token`, `parse`), checks names and types against
//! what a condition may look at (`names`, `types`, `check`, `construct`, `facts`), bounds its depth and
//! cost, and hands out a [`Condition`]: a tree (`tree`) that is walked over a
//! [`Scope`] (`evaluate`, `functions`, `time`, `value`). Every evaluation ends with
//! true, false or an error; it reads no clock, and its result depends on the
//! source, the bindings and the scope alone. `docs/conditions.md` has the language.

mod check;
mod construct;
mod error;
mod evaluate;
mod facts;
mod functions;
mod names;
mod parse;
mod time;
mod token;
mod tree;
mod types;
mod value;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use check::Builder;
use error::Fault;
pub(crate) use error::{ConditionError, EvaluationError};
use evaluate::Run;
use facts::Facts;
#[cfg(test)]
pub(super) use names::described;
use tree::{Kind, Node};
use types::Type;
use value::Value;

use crate::model::{Capability, Label, RiskLevel, Tier, Timestamp};

/// A compiled boolean expression: checked, bounded, and cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Condition(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    source: Arc<str>,
    root: Node,
    keys: Box<[Box<str>]>,
    unasked: Box<[Box<str>]>,
    reads_now: bool,
    cost: u32,
    /// Names and sources of the bindings, for the errors inside them.
    bindings: Box<[(Box<str>, Arc<str>)]>,
}

impl Condition {
    /// Compiles a source of type bool; one of type dyn is asked for its truth at run time.
    pub(crate) fn compile(source: &str, bindings: &Bindings) -> Result<Self, ConditionError> {
        let (typed, builder) = parse::parse(source, &bindings.0)?;
        if !typed.kind.may_be(&Type::Bool) {
            return Err(ConditionError::new(0, format!("a condition is true or false; this is {}", typed.kind)));
        }
        Ok(Self(Arc::new(Compiled {
            source: source.into(),
            root: typed.node,
            reads_now: builder.reads_now,
            unasked: builder.keys.difference(&builder.asked).cloned().collect(),
            keys: sorted_keys(builder),
            cost: typed.facts.cost,
            bindings: bindings.0.iter().map(|bound| (bound.name.clone(), Arc::clone(&bound.source))).collect(),
        })))
    }

    /// Whether it holds.
    pub(crate) fn evaluate(&self, scope: &Scope<'_>) -> Result<bool, EvaluationError> {
        let root = &self.0.root;
        let result = match Run::new(scope).value(root, None) {
            Ok(Value::Bool(holds)) => Ok(holds),
            Ok(other) => Err(other.expected("bool").at(root.at)),
            Err(fault) => Err(fault),
        };
        result.map_err(|fault| self.error(fault))
    }

    /// The text it was compiled from.
    pub(crate) fn source(&self) -> &str {
        &self.0.source
    }

    /// The literal keys of the context that it reads, its bindings included; sorted.
    pub(crate) fn context_keys(&self) -> &[Box<str>] {
        &self.0.keys
    }

    /// Those of them that it reads without `has` or `in`: where one is missing it fails.
    pub(crate) fn unasked_keys(&self) -> &[Box<str>] {
        &self.0.unasked
    }

    /// Whether it, or a binding it uses, reads `now`.
    pub(crate) fn reads_now(&self) -> bool {
        self.0.reads_now
    }

    /// The most nodes that an evaluation visits, each macro's list taken as 256 items.
    pub(crate) fn cost(&self) -> u32 {
        self.0.cost
    }

    /// Its result when no input can change it.
    pub(crate) fn constant(&self) -> Option<bool> {
        match self.0.root.kind {
            Kind::Constant(Value::Bool(holds)) => Some(holds),
            _ => None,
        }
    }

    fn error(&self, fault: Fault) -> EvaluationError {
        let binding = fault.binding.and_then(|number| self.0.bindings.get(usize::from(number)));
        match binding {
            Some((name, source)) => {
                EvaluationError::new(fault.problem, fault.at, Arc::clone(source), Some(name.clone()))
            }
            None => EvaluationError::new(fault.problem, fault.at, Arc::clone(&self.0.source), None),
        }
    }
}

/// Named values that a condition may use, in the order they were added.
#[derive(Debug, Default, Clone)]
pub(crate) struct Bindings(Vec<Bound>);

/// One named value, compiled.
#[derive(Debug, Clone)]
struct Bound {
    name: Box<str>,
    source: Arc<str>,
    node: Arc<Node>,
    kind: Type,
    facts: Facts,
    keys: Box<[Box<str>]>,
    asked: Box<[Box<str>]>,
    reads_now: bool,
}

impl Bindings {
    /// Adds a value that may use those added before it. A name is an identifier
    /// that means nothing yet; positions in errors about it are 0.
    pub(crate) fn add(&mut self, name: &str, source: &str) -> Result<(), ConditionError> {
        if !token::is_name(name) || name.len() > MAX_NAME_BYTES {
            let message = format!("a name is at most {MAX_NAME_BYTES} ASCII letters, digits and _, found {name:?}");
            return Err(ConditionError::new(0, message));
        }
        let is_function = name == names::HAS || names::find(names::FUNCTIONS, name).is_some();
        if token::is_reserved(name) || is_function {
            return Err(ConditionError::new(0, format!("{name:?} is a reserved word")));
        }
        if self.0.len() >= MAX_BINDINGS {
            return Err(ConditionError::new(0, format!("more than {MAX_BINDINGS} named values")));
        }
        Builder::new(&self.0).check_free(0, name)?;
        let (typed, builder) = parse::parse(source, &self.0)?;
        let bound = Bound {
            name: name.into(),
            source: source.into(),
            node: Arc::new(typed.node),
            kind: typed.kind,
            facts: typed.facts,
            reads_now: builder.reads_now,
            asked: builder.asked.iter().cloned().collect(),
            keys: sorted_keys(builder),
        };
        self.0.push(bound);
        Ok(())
    }
}

/// What a condition may look at. Borrowed; building it allocates nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// `agent.id`
    pub agent_id: &'a str,
    /// `agent.labels`
    pub labels: &'a [Label],
    /// `agent.groups`
    pub groups: &'a [Label],
    /// `agent.attributes`
    pub attributes: &'a serde_json::Map<String, serde_json::Value>,
    /// `intent.action`
    pub action: &'a str,
    /// `intent.risk`
    pub risk: RiskLevel,
    /// `intent.capabilities`
    pub capabilities: &'a [Capability],
    /// `intent.context`, and `context` for short
    pub context: &'a serde_json::Map<String, serde_json::Value>,
    /// `trust.score`
    pub score: u16,
    /// `trust.tier`
    pub tier: Tier,
    /// `now`
    pub now: Timestamp,
}

fn sorted_keys(builder: Builder<'_>) -> Box<[Box<str>]> {
    builder.keys.into_iter().collect()
}

/// Longest source.
const MAX_SOURCE_BYTES: usize = 4 * 1024;
/// Most words and signs in a source.
const MAX_TOKENS: usize = 2_000;
/// Highest tree, and deepest nesting of a source.
const MAX_DEPTH: u32 = 32;
/// Deepest nesting of macros, bindings included.
const MAX_MACROS: u32 = 2;
/// Longest list or map that a macro goes through.
const MAX_LIST_ITEMS: usize = 256;
/// Most nodes that an evaluation may visit.
const MAX_COST: u32 = 100_000;
/// Most nodes that are evaluated at compile time, at each height of the tree.
const MAX_FOLDED_COST: u32 = 10_000;
/// Largest compiled regular expression.
const MAX_PATTERN_BYTES: usize = 64 * 1024;
/// Longest text that `matches` looks at.
const MAX_MATCHED_BYTES: usize = 4 * 1024;
/// Longest text that `+` makes: as long as a whole context.
const MAX_TEXT_BYTES: usize = 64 * 1024;
/// Longest list that `+` makes.
const MAX_BUILT_ITEMS: usize = 4 * MAX_LIST_ITEMS;
/// Most bytes of text and items of lists that one evaluation looks at: sixty-four whole contexts.
const MAX_WORK: usize = 4 * 1024 * 1024;
/// Deepest nesting of values that are compared: deeper than any context.
const MAX_VALUE_DEPTH: usize = 64;
const MAX_BINDINGS: usize = 64;
const MAX_NAME_BYTES: usize = 64;

// Compiled once, evaluated from any thread.
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Condition>();
    is_shared::<Bindings>();
};
