//! Facts about a checked expression besides its nodes: its type, its bounds, and whether its value is constant.

use super::error::ConditionError;
use super::evaluate::Run;
use super::tree::{Kind, Node};
use super::types::Type;
use super::value::{List, Value};
use super::{MAX_COST, MAX_DEPTH, MAX_FOLDED_COST, MAX_LIST_ITEMS, Scope};
use rulekeep_types::{RiskLevel, Tier, Timestamp};

type Result<T> = std::result::Result<T, ConditionError>;

/// A checked expression with its facts.
#[derive(Debug)]
pub(super) struct Typed {
    pub(super) node: Node,
    pub(super) kind: Type,
    pub(super) facts: Facts,
    /// Set if the source has the form `a.b`, which `has` takes.
    pub(super) selects: bool,
}

/// The bounds and dependencies of a tree.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Facts {
    pub(super) height: u32,
    /// The maximum number of nodes that one evaluation can visit.
    pub(super) cost: u32,
    /// The nesting depth of its macros.
    pub(super) macros: u32,
    /// The number of surrounding macros that its variables belong to.
    pub(super) free: u32,
    pub(super) reads_scope: bool,
}

impl Facts {
    pub(super) fn leaf() -> Self {
        Self { height: 1, cost: 1, ..Self::default() }
    }

    pub(super) fn over<'t>(parts: impl IntoIterator<Item = &'t Typed>) -> Self {
        let mut facts = parts.into_iter().fold(Self::default(), |all, part| all.with(part.facts));
        facts.height = facts.height.saturating_add(1);
        facts.cost = facts.cost.saturating_add(1);
        facts
    }

    pub(super) fn with(self, other: Self) -> Self {
        Self {
            height: self.height.max(other.height),
            cost: self.cost.saturating_add(other.cost),
            macros: self.macros.max(other.macros),
            free: self.free.max(other.free),
            reads_scope: self.reads_scope || other.reads_scope,
        }
    }

    const fn is_constant(self) -> bool {
        !self.reads_scope && self.free == 0
    }
}

/// Checks the bounds of a node, and evaluates it at once if its value is constant.
pub(super) fn finish(at: usize, kind: Kind, of: Type, facts: Facts) -> Result<Typed> {
    if facts.height > MAX_DEPTH {
        return Err(ConditionError::new(at, format!("nested more than {MAX_DEPTH} deep")));
    }
    if facts.cost > MAX_COST {
        let message = format!(
            "may take {} steps, and {MAX_COST} are allowed; each list counts as {MAX_LIST_ITEMS} items",
            facts.cost
        );
        return Err(ConditionError::new(at, message));
    }
    let node = Node { kind, at: offset(at) };
    let foldable = facts.is_constant() && facts.cost <= MAX_FOLDED_COST && !matches!(node.kind, Kind::Constant(_));
    // A constant that fails is kept: `&&` and `||` may absorb it, and evaluation reports the failure.
    match foldable.then(|| folded(&node)).flatten() {
        Some(value) => {
            let node = Node { kind: Kind::Constant(value), at: node.at };
            Ok(Typed { node, kind: of, facts: Facts::leaf(), selects: false })
        }
        None => Ok(Typed { node, kind: of, facts, selects: false }),
    }
}

fn folded(node: &Node) -> Option<Value<'static>> {
    // INVARIANT: a folded node does not read the scope, so any scope will do.
    let nothing = serde_json::Map::new();
    let scope = Scope {
        agent_id: "",
        labels: &[],
        groups: &[],
        attributes: &nothing,
        action: "",
        risk: RiskLevel::Low,
        capabilities: &[],
        context: (&nothing).into(),
        score: 0,
        tier: Tier::T0,
        now: Timestamp::from_millis(0),
    };
    Run::new(&scope).value(node, None).ok().and_then(Value::into_owned)
}

pub(super) fn literal_length(node: &Node) -> Option<usize> {
    match &node.kind {
        Kind::List(items) => Some(items.len()),
        Kind::Constant(Value::List(List::Built(items))) => Some(items.len()),
        _ => None,
    }
}

pub(super) fn expect(found: &Typed, wanted: &Type) -> Result<()> {
    if found.kind.may_be(wanted) {
        return Ok(());
    }
    let at = usize::try_from(found.node.at).unwrap_or(usize::MAX);
    Err(ConditionError::new(at, format!("expected {wanted}, found {}", found.kind)))
}

pub(super) fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
