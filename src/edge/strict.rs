//! JSON in which no object has a name twice, at any depth: of two values under one name, two readers could each take
//! another one.

use std::fmt;

use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};

use crate::model::excerpt;

/// A value that was read so. Whoever reads it has looked at its depth.
pub(super) struct Strict(pub(super) Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Self)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut read = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            read.push(item);
        }
        Ok(Value::Array(read))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut read = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            if read.contains_key(&name) {
                return Err(A::Error::custom(format!("the field {:?} stands twice", excerpt(&name))));
            }
            let Strict(value) = map.next_value()?;
            read.insert(name, value);
        }
        Ok(Value::Object(read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn what_has_no_name_twice_is_read_as_any_reader_does(
            text in r#"(\{("[a-c]":(null|true|-1|1\.5e3|18446744073709551615|"\\u00e9"|\[1,\{\}\]),?){0,4}\}|\[("x",?){0,3}\]|[0-9.eE-]{1,6})"#
        ) {
            let plain = serde_json::from_str::<Value>(&text);
            let strict = serde_json::from_str::<Strict>(&text).map(|Strict(value)| value);
            match (plain, strict) {
                (Ok(plain), Ok(strict)) => proptest::prop_assert_eq!(plain, strict),
                (Ok(_), Err(error)) => proptest::prop_assert!(error.to_string().contains("twice"), "{}", error),
                (Err(_), strict) => proptest::prop_assert!(strict.is_err()),
            }
        }
    }
}
