//! Conditions of rules: a typed, total, cost-bounded subset of CEL, the Common Expression Language.
//!
//! A source text is parsed (`token`, `parse`) and its names and types are checked against what a condition may read
//! (`names`, `types`, `check`, `construct`, `facts`). Depth and cost are bounded. The result is a [`Condition`]: a
//! tree (`tree`) that is evaluated over a [`Scope`] (`evaluate`, `functions`, `time`, `value`). Every evaluation ends
//! with true, false or an error. It reads no clock; its result depends only on the source, the bindings and the
//! scope. `docs/reference/policies.md` describes the language.

mod check;
mod construct;
mod contradiction;
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
use contradiction::{Literal, alternatives, contradiction, together};
use error::Fault;
pub(crate) use error::{ConditionError, EvaluationError};
use evaluate::Run;
use facts::Facts;
#[cfg(all(test, not(conformance)))]
pub(super) use names::tests::described;
use tree::{Kind, Node, Root};
use types::Type;
use value::Value;

use rulekeep_types::{Capability, Label, Members, RiskLevel, Tier, Timestamp};

/// A compiled boolean expression: checked and bounded. Cloning is cheap.
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
    /// Names and sources of the bindings, for errors inside them.
    bindings: Box<[(Box<str>, Arc<str>)]>,
}

impl Condition {
    /// Compiles a source of type bool. A source of type dyn is checked for a bool at run time.
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

    /// Returns whether the condition holds.
    pub(crate) fn evaluate(&self, scope: &Scope<'_>) -> Result<bool, EvaluationError> {
        let root = &self.0.root;
        let result = match Run::new(scope).value(root, None) {
            Ok(Value::Bool(holds)) => Ok(holds),
            Ok(other) => Err(other.expected("bool").at(root.at)),
            Err(fault) => Err(fault),
        };
        result.map_err(|fault| self.error(fault))
    }

    /// The source text.
    pub(crate) fn source(&self) -> &str {
        &self.0.source
    }

    /// The literal context keys that the condition and its bindings read, sorted.
    pub(crate) fn context_keys(&self) -> &[Box<str>] {
        &self.0.keys
    }

    /// The keys that are read without `has` or `in`: if one is missing, evaluation fails.
    pub(crate) fn unasked_keys(&self) -> &[Box<str>] {
        &self.0.unasked
    }

    /// Returns whether the condition, or a binding it uses, reads `now`.
    pub(crate) fn reads_now(&self) -> bool {
        self.0.reads_now
    }

    /// The maximum number of nodes that an evaluation visits, with each macro's list counted as 256 items.
    pub(crate) fn cost(&self) -> u32 {
        self.0.cost
    }

    /// The result, if no input can change it.
    pub(crate) fn constant(&self) -> Option<bool> {
        match self.0.root.kind {
            Kind::Constant(Value::Bool(holds)) => Some(holds),
            _ => None,
        }
    }

    /// A value that no request has, if `when` can never hold while `unless` does not. `known` are the words that a tier,
    /// a risk and, unless empty, an agent's id may be.
    pub(crate) fn contradiction(when: Option<&Self>, unless: Option<&Self>, known: [&[&str]; 3]) -> Option<String> {
        let roots = [Root::Tier, Root::Risk, Root::AgentId].into_iter().zip(known);
        let known = roots
            .filter(|(_, words)| !words.is_empty())
            .map(|(root, words)| Literal::word(root, words.iter().copied()));
        let conditions = [(when, true), (unless, false)].into_iter();
        let conditions = conditions.filter_map(|(condition, wanted)| Some(alternatives(&condition?.0.root, wanted)));
        contradiction(&conditions.fold(vec![known.collect()], |all, each| together(all, &each)))
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

/// Named values that a condition may use, in the order in which they were added.
#[derive(Debug, Default, Clone)]
pub(crate) struct Bindings(Vec<Bound>);

/// One compiled named value.
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
    /// Adds a value, which may use those added before it. The name must be an identifier without a meaning so far;
    /// errors about it have position 0.
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

/// The values that a condition may read. All are borrowed; building a scope allocates nothing.
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
    pub context: Members<'a>,
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

/// Maximum length of a source, in bytes.
const MAX_SOURCE_BYTES: usize = 4 * 1024;
/// Maximum number of tokens in a source.
const MAX_TOKENS: usize = 2_000;
/// Maximum height of a tree, and nesting depth of a source.
const MAX_DEPTH: u32 = 32;
/// Maximum nesting depth of macros, bindings included.
const MAX_MACROS: u32 = 2;
/// Maximum length of a list or map that a macro iterates over.
const MAX_LIST_ITEMS: usize = 256;
/// Maximum number of nodes that an evaluation may visit.
const MAX_COST: u32 = 100_000;
/// Maximum number of nodes evaluated at compile time, for each level of the tree.
const MAX_FOLDED_COST: u32 = 10_000;
/// Maximum size of a compiled regular expression, in bytes.
const MAX_PATTERN_BYTES: usize = 64 * 1024;
/// Maximum length of a text for `matches`, in bytes.
const MAX_MATCHED_BYTES: usize = 4 * 1024;
/// Maximum length of a text made by `+`, in bytes: as long as a whole context.
const MAX_TEXT_BYTES: usize = 64 * 1024;
/// Maximum length of a list made by `+`.
const MAX_BUILT_ITEMS: usize = 4 * MAX_LIST_ITEMS;
/// Maximum number of text bytes and list items that one evaluation looks at: sixty-four whole contexts.
const MAX_WORK: usize = 4 * 1024 * 1024;
/// Maximum nesting depth of compared values: deeper than any context.
const MAX_VALUE_DEPTH: usize = 64;
const MAX_BINDINGS: usize = 64;
const MAX_NAME_BYTES: usize = 64;

// Compiled once, evaluated from any thread.
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Condition>();
    is_shared::<Bindings>();
};
