//! Checks of the constructs that depend on their surroundings: names, reads of the context, and macros with their
//! variables. Each method takes the parts of one construct and either refuses them, with a position, or builds the
//! node.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::error::ConditionError;
use super::facts::{Facts, Typed, expect, finish, literal_length, offset};
use super::names::{self, Named};
use super::tree::{Kind, Macro, Node, Operator, Root, Step};
use super::types::Type;
use super::value::Value;
use super::{Bound, MAX_LIST_ITEMS, MAX_MACROS};
use rulekeep_types::document::did_you_mean;

type Result<T> = std::result::Result<T, ConditionError>;

/// Builds the checked tree of one source.
pub(super) struct Builder<'b> {
    bindings: &'b [Bound],
    variables: Vec<(Box<str>, Type)>,
    /// The literal context keys that the source reads.
    pub(super) keys: BTreeSet<Box<str>>,
    /// The keys among them whose existence is tested with `has` or `in`.
    pub(super) asked: BTreeSet<Box<str>>,
    pub(super) reads_now: bool,
}

impl<'b> Builder<'b> {
    pub(super) fn new(bindings: &'b [Bound]) -> Self {
        Self { bindings, variables: Vec::new(), keys: BTreeSet::new(), asked: BTreeSet::new(), reads_now: false }
    }

    /// A name that is a value by itself: a variable, a binding, or a root.
    pub(super) fn name(&mut self, at: usize, name: &str) -> Result<Typed> {
        if let Some(up) = self.variables.iter().rev().position(|(known, _)| **known == *name) {
            let up = u32::try_from(up).unwrap_or(u32::MAX);
            let kind = self.variables.iter().rev().find(|(known, _)| **known == *name).map(|(_, kind)| kind.clone());
            let facts = Facts { free: up.saturating_add(1), ..Facts::leaf() };
            return finish(at, Kind::Variable(up), kind.unwrap_or(Type::Dyn), facts);
        }
        if let Some((number, bound)) = self.bindings.iter().enumerate().find(|(_, bound)| *bound.name == *name) {
            self.keys.extend(bound.keys.iter().cloned());
            self.asked.extend(bound.asked.iter().cloned());
            self.reads_now |= bound.reads_now;
            let number = u16::try_from(number).unwrap_or(u16::MAX);
            let mut facts = Facts::default().with(bound.facts);
            facts.height = facts.height.saturating_add(1);
            facts.cost = facts.cost.saturating_add(1);
            return finish(at, Kind::Binding(number, Arc::clone(&bound.node)), bound.kind.clone(), facts);
        }
        match names::find(names::ROOTS, name) {
            Some(Named::Value(root)) => self.root(at, root),
            Some(Named::Group(fields)) => {
                let fields: Vec<String> = names::names(fields).map(|field| format!("{name}.{field}")).collect();
                Err(ConditionError::new(at, format!("{name:?} is not a value by itself; use {}", fields.join(", "))))
            }
            None => Err(self.unknown(at, name)),
        }
    }

    /// A root's field: `agent.id`.
    pub(super) fn root_field(&mut self, at: usize, root: &str, field: &str) -> Result<Typed> {
        let Some(Named::Group(fields)) = names::find(names::ROOTS, root) else { return Err(self.unknown(at, root)) };
        let Some(found) = names::find(fields, field) else {
            let meant = did_you_mean(field, names::names(fields));
            return Err(ConditionError::new(at, format!("{root:?} has no field {field:?}{meant}")));
        };
        Ok(Typed { selects: true, ..self.root(at, found)? })
    }

    /// Returns whether the name is the start of a group of fields.
    pub(super) fn is_group(name: &str) -> bool {
        matches!(names::find(names::ROOTS, name), Some(Named::Group(_)))
    }

    fn root(&mut self, at: usize, root: Root) -> Result<Typed> {
        self.reads_now |= root == Root::Now;
        finish(at, Kind::Root(root), root.kind(), Facts { reads_scope: true, ..Facts::leaf() })
    }

    fn unknown(&self, at: usize, name: &str) -> ConditionError {
        if name == names::HAS || names::find(names::FUNCTIONS, name).is_some() {
            return ConditionError::new(at, format!("{name:?} is a function: {name}(...)"));
        }
        if let Some(sign) = names::sign_for(name) {
            return ConditionError::new(at, format!("unknown name {name:?}; did you mean {sign}?"));
        }
        let known = names::names(names::ROOTS)
            .chain(self.bindings.iter().map(|bound| &*bound.name))
            .chain(self.variables.iter().map(|(name, _)| &**name));
        ConditionError::new(at, format!("unknown name {name:?}{}", did_you_mean(name, known)))
    }

    pub(super) fn member(&mut self, at: usize, item: Typed, container: Typed) -> Result<Typed> {
        let takes = match &container.kind {
            Type::List(of) => item.kind.may_equal(of),
            Type::Map(_) => item.kind.may_be(&Type::Text),
            Type::Dyn => true,
            _ => false,
        };
        if !takes {
            return Err(ConditionError::new(at, format!("in does not take {} and {}", item.kind, container.kind)));
        }
        super::construct::check_words(at, None, &item.node, &container.node)?;
        super::construct::check_items(at, &item.node, &container.node)?;
        self.note_key(&container.node, &item.node);
        if let (Kind::Constant(Value::Text(key)), Kind::Root(Root::Context)) = (&item.node.kind, &container.node.kind) {
            let key: &str = key;
            self.asked.insert(key.into());
        }
        let facts = Facts::over([&item, &container]);
        finish(at, Kind::In(Box::new([item.node, container.node])), Type::Bool, facts)
    }

    /// A chain of operators of one precedence, evaluated from the left.
    pub(super) fn arithmetic(&self, first: Typed, steps: Vec<(usize, Operator, Typed)>) -> Result<Typed> {
        let at = steps.first().map_or(0, |(at, ..)| *at);
        let facts = Facts::over(std::iter::once(&first).chain(steps.iter().map(|(.., right)| right)));
        let inside_macro = !self.variables.is_empty();
        let mut kind = first.kind;
        let mut checked = Vec::with_capacity(steps.len());
        for (at, operator, right) in steps {
            let Some(result) = operator.result(&kind, &right.kind) else {
                let hint = match (&kind, &right.kind) {
                    (Type::Int, Type::Double) | (Type::Double, Type::Int) => "; convert with int(...) or double(...)",
                    _ => "",
                };
                let message = format!("{} does not take {kind} and {}{hint}", operator.sign(), right.kind);
                return Err(ConditionError::new(at, message));
            };
            if inside_macro && result.is_text_or_list() {
                let message =
                    "strings and lists cannot be concatenated inside a macro, where they could grow without bound";
                return Err(ConditionError::new(at, message));
            }
            kind = result;
            checked.push(Step { operator, at: offset(at), grows: !inside_macro, right: right.node });
        }
        finish(at, Kind::Arithmetic(Box::new(first.node), checked.into()), kind, facts)
    }

    pub(super) fn field(&mut self, at: usize, of: Typed, key: &str) -> Result<Typed> {
        let kind = match &of.kind {
            Type::Map(values) => (**values).clone(),
            Type::Dyn => Type::Dyn,
            other => return Err(ConditionError::new(at, format!("{other} has no field {key:?}"))),
        };
        self.note_context(&of.node, key);
        let facts = Facts::over([&of]);
        let typed = finish(at, Kind::Field(Box::new(of.node), key.into()), kind, facts)?;
        Ok(Typed { selects: true, ..typed })
    }

    pub(super) fn index(&mut self, at: usize, of: Typed, index: Typed) -> Result<Typed> {
        let (wanted, kind) = match &of.kind {
            Type::List(items) => (Type::Int, (**items).clone()),
            Type::Map(values) => (Type::Text, (**values).clone()),
            Type::Dyn if matches!(index.kind, Type::Int | Type::Text | Type::Dyn) => (Type::Dyn, Type::Dyn),
            Type::Dyn => return Err(ConditionError::new(at, format!("nothing can be indexed by {}", index.kind))),
            other => return Err(ConditionError::new(at, format!("{other} has no items"))),
        };
        expect(&index, &wanted)?;
        self.note_key(&of.node, &index.node);
        let facts = Facts::over([&of, &index]);
        finish(at, Kind::Index(Box::new([of.node, index.node])), kind, facts)
    }

    /// Opens the macro at `at`; its variable is defined until [`Self::close`].
    pub(super) fn open(&mut self, at: usize, range: &Typed, variable_at: usize, variable: &str) -> Result<()> {
        let of = match &range.kind {
            Type::List(items) => (**items).clone(),
            Type::Map(_) => Type::Text,
            Type::Dyn => Type::Dyn,
            other => return Err(ConditionError::new(at, format!("{other} has no items to iterate over"))),
        };
        self.check_free(variable_at, variable)?;
        self.variables.push((variable.into(), of));
        Ok(())
    }

    pub(super) fn close(&mut self, at: usize, kind: Macro, range: Typed, body: Typed) -> Result<Typed> {
        let variable = self.variables.pop();
        let result = match kind {
            Macro::Map => Type::list(body.kind.clone()),
            Macro::Filter => Type::list(variable.map_or(Type::Dyn, |(_, kind)| kind)),
            Macro::All | Macro::Exists | Macro::ExistsOne => Type::Bool,
        };
        if kind != Macro::Map {
            expect(&body, &Type::Bool)?;
        }
        let inner = body.facts;
        let macros = inner.macros.saturating_add(1);
        if macros > MAX_MACROS {
            return Err(ConditionError::new(at, format!("macros are nested more than {MAX_MACROS} deep")));
        }
        let items = u32::try_from(literal_length(&range.node).unwrap_or(MAX_LIST_ITEMS)).unwrap_or(u32::MAX);
        let body_facts =
            Facts { cost: inner.cost.saturating_mul(items), free: inner.free.saturating_sub(1), macros, ..inner };
        let mut facts = range.facts.with(body_facts);
        facts.height = facts.height.saturating_add(1);
        facts.cost = facts.cost.saturating_add(1);
        finish(at, Kind::Macro(kind, Box::new([range.node, body.node])), result, facts)
    }

    /// Refuses a new name that has a meaning already, so that no name is ambiguous.
    pub(super) fn check_free(&self, at: usize, name: &str) -> Result<()> {
        let taken = names::find(names::ROOTS, name).is_some()
            || self.variables.iter().any(|(known, _)| **known == *name)
            || self.bindings.iter().any(|bound| *bound.name == *name);
        if taken { Err(ConditionError::new(at, format!("{name:?} already means something else"))) } else { Ok(()) }
    }

    /// Records the key that `has` tests.
    pub(super) fn note_asked(&mut self, field: &Node) {
        if let Kind::Field(of, key) = &field.kind
            && matches!(of.kind, Kind::Root(Root::Context))
        {
            self.asked.insert(key.clone());
        }
    }

    fn note_key(&mut self, of: &Node, key: &Node) {
        if let Kind::Constant(Value::Text(key)) = &key.kind {
            self.note_context(of, key);
        }
    }

    fn note_context(&mut self, of: &Node, key: &str) {
        if matches!(of.kind, Kind::Root(Root::Context)) {
            self.keys.insert(key.into());
        }
    }
}
