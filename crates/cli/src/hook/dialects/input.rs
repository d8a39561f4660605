//! Reading standard input as a JSON object.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Largest event that is read, in bytes: far more than the files that agents write in one call.
pub const MAX_INPUT: usize = 16 << 20;

/// Parses an event: a JSON object in UTF-8, with or without a byte order mark, of at most 16 MiB, without duplicate
/// keys.
///
/// # Errors
///
/// Returns a description of the problem. It never includes the input, because events contain the contents of files.
pub fn read_input(input: &[u8]) -> Result<Value, String> {
    if input.len() > MAX_INPUT {
        return Err(format!("the event has {} bytes, more than the {MAX_INPUT} that are read", input.len()));
    }
    let text = input.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(input);
    match serde_json::from_slice(text) {
        Ok(Unique(object @ Value::Object(_))) => Ok(object),
        Ok(_) => Err("the event is not a JSON object".to_owned()),
        Err(error) => Err(format!("the event is not a JSON object: line {}, column {}", error.line(), error.column())),
    }
}

/// A JSON value without duplicate keys: hosts and hooks could otherwise read two different calls.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Unique;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Unique, E> {
        Ok(Unique(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Unique, E> {
        Ok(Unique(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Unique, E> {
        Ok(Unique(Number::from_f64(value).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Unique, A::Error> {
        let mut items = Vec::new();
        while let Some(Unique(item)) = access.next_element()? {
            items.push(item);
        }
        Ok(Unique(Value::Array(items)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Unique, A::Error> {
        let mut object = Map::new();
        while let Some((key, Unique(value))) = access.next_entry::<String, Unique>()? {
            if object.insert(key, value).is_some() {
                return Err(A::Error::custom("a key occurs twice in an object"));
            }
        }
        Ok(Unique(Value::Object(object)))
    }
}
