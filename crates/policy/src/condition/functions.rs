//! The semantics of operators and functions. Nothing wraps, rounds to fit or panics: a result that does not exist is
//! a problem.

use super::error::Problem;
use super::time::{
    duration_part, duration_text, in_range, moved_to_zone, parse_duration, parse_timestamp, timestamp_in_range,
    timestamp_part, timestamp_text,
};
use super::tree::{Function, Operator, Part};
use super::value::{List, Text, Value, Work, whole};
use super::{MAX_BUILT_ITEMS, MAX_TEXT_BYTES};

type Result<T> = std::result::Result<T, Problem>;

pub(super) fn negate<'a>(value: &Value<'_>) -> Result<Value<'a>> {
    match value {
        Value::Int(value) => value.checked_neg().map(Value::Int).ok_or(Problem::Overflow),
        Value::Double(value) => Ok(Value::Double(-value)),
        other => Err(other.expected("int or double")),
    }
}

pub(super) fn operate<'a>(operator: Operator, left: Value<'a>, right: Value<'a>, work: &Work) -> Result<Value<'a>> {
    use Operator::{Add, Subtract};
    use Value::{Double, Duration, Int, Timestamp};

    match (operator, left, right) {
        (_, Int(left), Int(right)) => integers(operator, left, right).map(Int),
        (Operator::Add, Double(left), Double(right)) => Ok(Double(left + right)),
        (Operator::Subtract, Double(left), Double(right)) => Ok(Double(left - right)),
        (Operator::Multiply, Double(left), Double(right)) => Ok(Double(left * right)),
        (Operator::Divide, Double(left), Double(right)) => Ok(Double(left / right)),
        (Add, Value::Text(left), Value::Text(right)) => joined(&left, &right, work),
        (Add, Value::List(left), Value::List(right)) => chained(&left, &right, work),
        (Add, Timestamp(left), Duration(right)) | (Add, Duration(left), Timestamp(right)) => {
            bounded(left.checked_add(right), timestamp_in_range).map(Timestamp)
        }
        (Subtract, Timestamp(left), Duration(right)) => {
            bounded(left.checked_sub(right), timestamp_in_range).map(Timestamp)
        }
        (Add, Duration(left), Duration(right)) => bounded(left.checked_add(right), in_range).map(Duration),
        (Subtract, Timestamp(left), Timestamp(right)) | (Subtract, Duration(left), Duration(right)) => {
            bounded(left.checked_sub(right), in_range).map(Duration)
        }
        (_, left, right) => {
            let (left, right) = (left.type_name(), right.type_name());
            Err(Problem::NoOperator { operator: operator.sign(), left, right })
        }
    }
}

fn integers(operator: Operator, left: i64, right: i64) -> Result<i64> {
    let divides = matches!(operator, Operator::Divide | Operator::Remainder);
    if divides && right == 0 {
        return Err(Problem::DivisionByZero);
    }
    let result = match operator {
        Operator::Add => left.checked_add(right),
        Operator::Subtract => left.checked_sub(right),
        Operator::Multiply => left.checked_mul(right),
        Operator::Divide => left.checked_div(right),
        Operator::Remainder => left.checked_rem(right),
    };
    result.ok_or(Problem::Overflow)
}

fn joined<'a>(left: &str, right: &str, work: &Work) -> Result<Value<'a>> {
    let length = left.len().saturating_add(right.len());
    if length > MAX_TEXT_BYTES {
        return Err(Problem::LongText);
    }
    work.spend(length)?;
    Ok(Value::Text([left, right].concat().into()))
}

fn chained<'a>(left: &List<'a>, right: &List<'a>, work: &Work) -> Result<Value<'a>> {
    let length = left.len().saturating_add(right.len());
    if length > MAX_BUILT_ITEMS {
        return Err(Problem::LongList);
    }
    work.spend(length)?;
    let items: Result<Vec<_>> = left.items().chain(right.items()).collect();
    Ok(Value::List(List::Built(items?.into())))
}

fn bounded(result: Option<i64>, bounds: fn(i64) -> Option<i64>) -> Result<i64> {
    result.and_then(bounds).ok_or(Problem::Overflow)
}

pub(super) fn call<'a>(function: Function, value: Value<'a>, work: &Work) -> Result<Value<'a>> {
    match (function, value) {
        (Function::Size, value) => size(&value, work).map(Value::Int),
        (Function::ToInt, value) => to_int(&value).map(Value::Int),
        (Function::ToDouble, value) => to_double(&value).map(Value::Double),
        (Function::ToText, value) => to_text(value).map(Value::Text),
        (Function::ToTimestamp, Value::Timestamp(millis)) => Ok(Value::Timestamp(millis)),
        (Function::ToTimestamp, Value::Text(text)) => {
            parse_timestamp(&text).map(Value::Timestamp).ok_or(Problem::Unreadable("timestamp"))
        }
        (Function::ToDuration, Value::Duration(millis)) => Ok(Value::Duration(millis)),
        (Function::ToDuration, Value::Text(text)) => parse_duration(&text).map(Value::Duration).ok_or(
            Problem::Unreadable("duration in whole milliseconds: its units are h, m, s, ms, us and ns, a day is 24h"),
        ),
        (Function::ToTimestamp | Function::ToDuration, other) => Err(other.expected("string")),
        (Function::Part(part), Value::Timestamp(millis)) => Ok(Value::Int(timestamp_part(millis, part))),
        (Function::Part(part), Value::Duration(millis)) => {
            let duration = Value::Duration(millis);
            duration_part(millis, part).map(Value::Int).ok_or_else(|| duration.expected("timestamp"))
        }
        (Function::Part(_), other) => Err(other.expected("timestamp")),
    }
}

/// A part of a timestamp by the clocks of a time zone.
pub(super) fn part_in<'a>(part: Part, of: &Value<'_>, zone: &str) -> Result<Value<'a>> {
    let Value::Timestamp(millis) = of else { return Err(of.expected("timestamp")) };
    let there = moved_to_zone(*millis, zone).ok_or(Problem::Unreadable("time zone"))?;
    Ok(Value::Int(timestamp_part(there, part)))
}

/// The number of characters of a text, items of a list, or entries of a map.
fn size(value: &Value<'_>, work: &Work) -> Result<i64> {
    let size = match value {
        Value::Text(text) => {
            work.spend(text.len())?;
            text.chars().count()
        }
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        other => return Err(other.expected("string, list or map")),
    };
    i64::try_from(size).map_err(|_| Problem::Overflow)
}

fn to_int(value: &Value<'_>) -> Result<i64> {
    match value {
        Value::Int(value) => Ok(*value),
        // SOURCE: the CEL conformance tests exclude the smallest int, because doubles below it round to it.
        Value::Double(value) => whole(*value).filter(|whole| *whole != i64::MIN).ok_or(Problem::Overflow),
        Value::Text(text) => text.parse().map_err(|_| Problem::Unreadable("int")),
        Value::Timestamp(millis) => Ok(millis.div_euclid(1_000)),
        other => Err(other.expected("int, double, string or timestamp")),
    }
}

fn to_double(value: &Value<'_>) -> Result<f64> {
    match value {
        Value::Double(value) => Ok(*value),
        #[allow(clippy::cast_precision_loss, reason = "the nearest double is what the conversion means")]
        Value::Int(value) => Ok(*value as f64),
        Value::Text(text) => text.parse().map_err(|_| Problem::Unreadable("double")),
        other => Err(other.expected("int, double or string")),
    }
}

fn to_text(value: Value<'_>) -> Result<Text<'_>> {
    Ok(Text::from(match value {
        Value::Text(text) => return Ok(text),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::Timestamp(millis) => timestamp_text(millis),
        Value::Duration(millis) => duration_text(millis),
        other => return Err(other.expected("string, bool, number, timestamp or duration")),
    }))
}
