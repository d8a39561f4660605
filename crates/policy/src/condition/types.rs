//! The static types, and the operand types of operators.

use std::fmt;

use super::tree::{Operator, Relation};

/// The static type of a value. `Dyn` is any type: the values of a context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Type {
    Dyn,
    Null,
    Bool,
    Int,
    Double,
    Text,
    Timestamp,
    Duration,
    List(Box<Type>),
    /// A map from strings to values of one type.
    Map(Box<Type>),
}

impl Type {
    pub(super) fn list(of: Self) -> Self {
        Self::List(Box::new(of))
    }

    pub(super) fn map(of: Self) -> Self {
        Self::Map(Box::new(of))
    }

    /// Returns whether a value of this type may be a value of the other.
    pub(super) fn may_be(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Dyn, _) | (_, Self::Dyn) => true,
            (Self::List(a), Self::List(b)) | (Self::Map(a), Self::Map(b)) => a.may_be(b),
            _ => self == other,
        }
    }

    /// Returns whether two values of these types can be equal. Numbers of different types are comparable.
    pub(super) fn may_equal(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Int | Self::Double, Self::Int | Self::Double) => true,
            (Self::List(a), Self::List(b)) | (Self::Map(a), Self::Map(b)) => a.may_equal(b),
            _ => self.may_be(other),
        }
    }

    /// The type of a value that has either type; `None` if they exclude each other.
    pub(super) fn join(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Dyn, _) | (_, Self::Dyn) => Some(Self::Dyn),
            (Self::List(a), Self::List(b)) => Some(Self::list(a.join(b).unwrap_or(Self::Dyn))),
            (Self::Map(a), Self::Map(b)) => Some(Self::map(a.join(b).unwrap_or(Self::Dyn))),
            _ => (self == other).then(|| self.clone()),
        }
    }

    /// Returns whether `<` and the other order relations accept the two types.
    pub(super) fn may_compare(&self, other: &Self) -> bool {
        let ordered = |of: &Self| !matches!(of, Self::Null | Self::List(_) | Self::Map(_));
        ordered(self) && ordered(other) && self.may_equal(other)
    }

    pub(super) fn is_text_or_list(&self) -> bool {
        matches!(self, Self::Text | Self::List(_))
    }
}

impl Relation {
    pub(super) fn takes(self, left: &Type, right: &Type) -> bool {
        match self {
            Self::Equal | Self::Unequal => left.may_equal(right),
            Self::Less | Self::AtMost | Self::Greater | Self::AtLeast => left.may_compare(right),
        }
    }
}

impl Operator {
    /// The result type; `None` if there is no such operator.
    pub(super) fn result(self, left: &Type, right: &Type) -> Option<Type> {
        use Type::{Double, Duration, Dyn, Int, Text, Timestamp};

        let additive = matches!(self, Self::Add | Self::Subtract);
        let add = self == Self::Add;
        match (left, right) {
            (Dyn, Dyn) => Some(Dyn),
            (Int, Int | Dyn) | (Dyn, Int) => Some(Int),
            (Double, Double | Dyn) | (Dyn, Double) if self != Self::Remainder => Some(Double),
            (Text, Text | Dyn) | (Dyn, Text) if add => Some(Text),
            (Type::List(a), Type::List(b)) if add => Some(Type::list(a.join(b).unwrap_or(Dyn))),
            (Type::List(_), Dyn) | (Dyn, Type::List(_)) if add => Some(Type::list(Dyn)),
            (Timestamp, Duration) if additive => Some(Timestamp),
            (Timestamp, Timestamp) if !add && additive => Some(Duration),
            (Timestamp, Dyn) if additive => Some(if add { Timestamp } else { Dyn }),
            (Duration, Duration) if additive => Some(Duration),
            (Duration, Timestamp) if add => Some(Timestamp),
            (Duration, Dyn) if additive => Some(if add { Dyn } else { Duration }),
            (Dyn, Timestamp) if additive => Some(if add { Timestamp } else { Duration }),
            (Dyn, Duration) if additive => Some(Dyn),
            _ => None,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Double => f.write_str("double"),
            Self::Text => f.write_str("string"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Duration => f.write_str("duration"),
            Self::List(of) => write!(f, "list<{of}>"),
            Self::Map(of) => write!(f, "map<string, {of}>"),
        }
    }
}
