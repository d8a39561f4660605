//! Values during evaluation. They borrow from the scope and the compiled tree where possible; JSON is read in place.

use std::cell::Cell;
use std::cmp::Ordering;
use std::ops::Deref;
use std::sync::Arc;

use serde_json::Value as Json;

use super::error::Problem;
use super::{MAX_VALUE_DEPTH, MAX_WORK};
use rulekeep_types::{Capability, Label, Members};

#[derive(Debug, Clone)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(Text<'a>),
    /// Milliseconds since 1970-01-01 UTC.
    Timestamp(i64),
    /// Milliseconds.
    Duration(i64),
    List(List<'a>),
    Map(Members<'a>),
}

/// A borrowed or newly made text. Cloning copies no bytes.
#[derive(Debug, Clone)]
pub(super) enum Text<'a> {
    Borrowed(&'a str),
    Made(Arc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Made(text) => text,
        }
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self::Made(text.into())
    }
}

/// A list, read in place.
#[derive(Debug, Clone)]
pub(super) enum List<'a> {
    Json(&'a [Json]),
    Labels(&'a [Label]),
    Capabilities(&'a [Capability]),
    Borrowed(&'a [Value<'a>]),
    Built(Arc<[Value<'a>]>),
}

impl<'a> Value<'a> {
    pub(super) fn text(text: &'a str) -> Self {
        Self::Text(Text::Borrowed(text))
    }

    /// Converts JSON. An integer that fits 64 bits is an int, every other number a double.
    pub(super) fn from_json(json: &'a Json) -> Result<Self, Problem> {
        Ok(match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(value), _) => Self::Int(value),
                (None, Some(value)) if number.is_f64() => Self::Double(value),
                _ => return Err(Problem::LargeInteger),
            },
            Json::String(text) => Self::text(text),
            Json::Array(items) => Self::List(List::Json(items)),
            Json::Object(map) => Self::Map(map.into()),
        })
    }

    /// The same value, borrowed from this one.
    pub(super) fn borrowed(&'a self) -> Value<'a> {
        match self {
            Self::Text(text) => Value::text(text),
            Self::List(List::Built(items)) => Value::List(List::Borrowed(items)),
            other => other.clone(),
        }
    }

    /// The same value without borrows; `None` for a map, which only a scope holds.
    pub(super) fn into_owned(self) -> Option<Value<'static>> {
        Some(match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Int(value) => Value::Int(value),
            Self::Double(value) => Value::Double(value),
            Self::Text(text) => Value::Text(Text::Made((*text).into())),
            Self::Timestamp(value) => Value::Timestamp(value),
            Self::Duration(value) => Value::Duration(value),
            Self::List(list) => {
                let items: Option<Vec<_>> = list.items().map(|item| item.ok().and_then(Value::into_owned)).collect();
                Value::List(List::Built(items?.into()))
            }
            Self::Map(_) => return None,
        })
    }

    /// The type's name, for messages.
    pub(super) const fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::Timestamp(_) => "timestamp",
            Self::Duration(_) => "duration",
            Self::List(_) => "list",
            Self::Map(_) => "map",
        }
    }

    pub(super) const fn expected(&self, expected: &'static str) -> Problem {
        Problem::WrongType { expected, found: self.type_name() }
    }
}

impl<'a> List<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Json(items) => items.len(),
            Self::Labels(items) => items.len(),
            Self::Capabilities(items) => items.len(),
            Self::Borrowed(items) => items.len(),
            Self::Built(items) => items.len(),
        }
    }

    pub(super) fn item(&self, index: usize) -> Result<Value<'a>, Problem> {
        let item = match self {
            Self::Json(items) => items.get(index).map(Value::from_json).transpose()?,
            Self::Labels(items) => items.get(index).map(|label| Value::text(label.as_str())),
            Self::Capabilities(items) => items.get(index).map(|capability| Value::text(capability.as_str())),
            Self::Borrowed(items) => items.get(index).map(Value::borrowed),
            Self::Built(items) => items.get(index).cloned(),
        };
        item.ok_or(Problem::MissingIndex)
    }

    pub(super) fn items(&self) -> impl Iterator<Item = Result<Value<'a>, Problem>> {
        (0..self.len()).map(|index| self.item(index))
    }
}

/// The remaining budget of one evaluation for the contents of texts and lists, which the static cost does not
/// include.
#[derive(Debug)]
pub(super) struct Work(Cell<usize>);

impl Work {
    pub(super) const fn new() -> Self {
        Self(Cell::new(MAX_WORK))
    }

    /// Spends the budget for looking at so many bytes or items.
    pub(super) fn spend(&self, amount: usize) -> Result<(), Problem> {
        let left = self.0.get().checked_sub(amount);
        self.0.set(left.unwrap_or(0));
        left.map(|_| ()).ok_or(Problem::MuchWork)
    }

    /// CEL's equality: numbers compare by value across their types; values of different types are unequal.
    pub(super) fn equal(&self, left: &Value<'_>, right: &Value<'_>) -> Result<bool, Problem> {
        self.equal_within(left, right, MAX_VALUE_DEPTH)
    }

    fn equal_within(&self, left: &Value<'_>, right: &Value<'_>, depth: usize) -> Result<bool, Problem> {
        match (left, right) {
            (Value::List(left), Value::List(right)) => self.equal_lists(left, right, depth),
            (Value::Map(left), Value::Map(right)) => self.equal_maps(*left, *right, depth),
            (Value::Null, Value::Null) => Ok(true),
            (Value::Text(left), Value::Text(right)) => {
                self.spend(left.len().min(right.len()))?;
                Ok(**left == **right)
            }
            _ => Ok(order(left, right) == Ok(Ordering::Equal)),
        }
    }

    fn equal_lists(&self, left: &List<'_>, right: &List<'_>, depth: usize) -> Result<bool, Problem> {
        let depth = depth.checked_sub(1).ok_or(Problem::DeepValue)?;
        if left.len() != right.len() {
            return Ok(false);
        }
        for (left, right) in left.items().zip(right.items()) {
            self.spend(1)?;
            if !self.equal_within(&left?, &right?, depth)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn equal_maps(&self, left: Members<'_>, right: Members<'_>, depth: usize) -> Result<bool, Problem> {
        let depth = depth.checked_sub(1).ok_or(Problem::DeepValue)?;
        if left.len() != right.len() {
            return Ok(false);
        }
        for (key, left) in left.iter() {
            self.spend(key.len())?;
            let Some(right) = right.get(key) else { return Ok(false) };
            if !self.equal_within(&Value::from_json(left.json())?, &Value::from_json(right)?, depth)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The order of two values, if their types have one.
pub(super) fn order(left: &Value<'_>, right: &Value<'_>) -> Result<Ordering, Unordered> {
    use Value::{Bool, Double, Duration, Int, Text, Timestamp};

    match (left, right) {
        (Int(left), Int(right)) | (Timestamp(left), Timestamp(right)) | (Duration(left), Duration(right)) => {
            Ok(left.cmp(right))
        }
        (Double(left), Double(right)) => left.partial_cmp(right).ok_or(Unordered::NotANumber),
        (Int(left), Double(right)) => order_across(*left, *right),
        (Double(left), Int(right)) => order_across(*right, *left).map(Ordering::reverse),
        (Text(left), Text(right)) => Ok((**left).cmp(&**right)),
        (Bool(left), Bool(right)) => Ok(left.cmp(right)),
        _ => Err(Unordered::Types),
    }
}

/// The reason two values have no order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unordered {
    Types,
    NotANumber,
}

/// Compares by value, without rounding the integer to a double first.
fn order_across(int: i64, double: f64) -> Result<Ordering, Unordered> {
    if double.is_nan() {
        return Err(Unordered::NotANumber);
    }
    Ok(match whole(double) {
        Some(whole) => int.cmp(&whole).then_with(|| 0.0_f64.partial_cmp(&double.fract()).unwrap_or(Ordering::Equal)),
        None if double > 0.0 => Ordering::Less,
        None => Ordering::Greater,
    })
}

/// The double without its fraction, if that fits 64 bits.
pub(super) fn whole(double: f64) -> Option<i64> {
    // Both ends are powers of two, and therefore exact as doubles.
    let fits = (-TWO_TO_63..TWO_TO_63).contains(&double);
    #[allow(clippy::cast_possible_truncation, reason = "the range is checked, and cutting the fraction is meant")]
    fits.then_some(double as i64)
}

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
