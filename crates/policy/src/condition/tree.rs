//! The compiled form: a tree of checked nodes of bounded height.

use std::sync::Arc;

use regex::Regex;

use super::value::Value;

/// A checked expression. `at` is the place of its operator or name in the source.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) at: u32,
}

// INVARIANT: no tree is higher than `MAX_DEPTH`, bindings included, so that evaluating and dropping it may recurse.
#[derive(Debug)]
pub(super) enum Kind {
    Constant(Value<'static>),
    Root(Root),
    /// A macro's variable, counted from the innermost macro.
    Variable(u32),
    /// A binding's number, for errors, and its value.
    Binding(u16, Arc<Node>),
    /// A flat chain, so that its length adds no depth.
    And(Box<[Node]>),
    Or(Box<[Node]>),
    Not(Box<Node>),
    Negate(Box<Node>),
    Ternary(Box<[Node; 3]>),
    Compare(Relation, Box<[Node; 2]>),
    In(Box<[Node; 2]>),
    /// A flat chain of operators of one precedence.
    Arithmetic(Box<Node>, Box<[Step]>),
    Field(Box<Node>, Box<str>),
    Has(Box<Node>, Box<str>),
    Index(Box<[Node; 2]>),
    List(Box<[Node]>),
    Call(Function, Box<Node>),
    /// A part of a timestamp in the time zone that the second node names.
    PartIn(Part, Box<[Node; 2]>),
    TextCall(TextFunction, Box<[Node; 2]>),
    Matches(Box<Node>, Regex),
    Macro(Macro, Box<[Node; 2]>),
}

/// One operator of a chain and its right operand.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) operator: Operator,
    pub(super) at: u32,
    /// Inside a macro only numbers and times may be added: texts and lists could grow without bound there.
    pub(super) grows: bool,
    pub(super) right: Node,
}

/// The values that a condition can start from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    Action,
    Actions,
    Risk,
    Capabilities,
    Context,
    AgentId,
    Labels,
    Groups,
    Attributes,
    Score,
    Tier,
    Now,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Relation {
    pub(super) const fn sign(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::Unequal => "!=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Operator {
    pub(super) const fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }
}

/// Functions of one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Size,
    ToInt,
    ToDouble,
    ToText,
    ToTimestamp,
    ToDuration,
    Part(Part),
}

/// A part of a timestamp; hours, minutes and seconds also apply to a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    FullYear,
    Month,
    Date,
    DayOfMonth,
    DayOfYear,
    DayOfWeek,
    Hours,
    Minutes,
    Seconds,
    Milliseconds,
}

/// Tests of one text against another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextFunction {
    Contains,
    StartsWith,
    EndsWith,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Macro {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
}
