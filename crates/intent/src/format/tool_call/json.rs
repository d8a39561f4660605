//! JSON that borrows its strings from the text and keeps duplicate keys, because two readers could each take a
//! different one.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A value, borrowing from the text if nothing had to be unescaped.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
    List(Vec<Self>),
    Fields(Vec<Field<'a>>),
}

/// A key and its value.
pub(super) type Field<'a> = (Cow<'a, str>, Json<'a>);

/// Parses the values of a text that follow one another. Returns them, and whether the text contains nothing else.
///
/// INVARIANT: the caller has checked the depth.
pub(super) fn values(text: &str) -> (Vec<Json<'_>>, bool) {
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<Json<'_>>() {
        match value {
            Ok(value) if values.len() < MOST_VALUES => values.push(value),
            _ => return (values, false),
        }
    }
    (values, true)
}

impl Json<'_> {
    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value as a tree without duplicate keys: the values of a key that stands twice become a list.
    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(flag) => Value::Bool(*flag),
            Self::Number(number) => Value::Number(number.clone()),
            Self::Text(text) => Value::String(text.clone().into_owned()),
            Self::List(items) => items.iter().map(Self::to_value).collect(),
            Self::Fields(fields) => {
                let mut map = Map::new();
                for (key, value) in fields {
                    add(&mut map, key, value.to_value());
                }
                Value::Object(map)
            }
        }
    }

    /// The same value, which borrows nothing.
    pub(super) fn into_owned<'b>(self) -> Json<'b> {
        match self {
            Self::Null => Json::Null,
            Self::Bool(flag) => Json::Bool(flag),
            Self::Number(number) => Json::Number(number),
            Self::Text(text) => Json::Text(text.into_owned().into()),
            Self::List(items) => Json::List(items.into_iter().map(Self::into_owned).collect()),
            Self::Fields(fields) => Json::Fields(
                fields.into_iter().map(|(key, value)| (key.into_owned().into(), value.into_owned())).collect(),
            ),
        }
    }
}

/// Adds a value to a map. Where the key has another value already, it gets a list of both.
pub(super) fn add(map: &mut Map<String, Value>, key: &str, value: Value) {
    match map.get_mut(key) {
        None => {
            map.insert(key.to_owned(), value);
        }
        Some(known) if *known == value => {}
        Some(known) => *known = Value::Array(vec![known.take(), value]),
    }
}

impl<'de> Deserialize<'de> for Json<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Number::from_f64(value).map_or(Json::Null, Json::Number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Json::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Json::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::with_capacity(4);
        while let Some((Key(key), value)) = map.next_entry()? {
            fields.push((key, value));
        }
        Ok(Json::Fields(fields))
    }
}

/// A key, borrowed if possible.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(KeyVisitor)
    }
}

struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Key<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Key(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Key(Cow::Owned(text.to_owned())))
    }
}

/// Maximum number of values in a row.
const MOST_VALUES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_stands_twice_is_kept_twice() {
        let (values, complete) = values(r#"{"name":"read","name":"delete"}"#);
        assert!(complete);
        assert_eq!(
            values,
            [Json::Fields(vec![
                ("name".into(), Json::Text("read".into())),
                ("name".into(), Json::Text("delete".into()))
            ])]
        );
    }

    #[test]
    fn what_follows_the_last_value_is_noticed() {
        assert_eq!(values("{} {}"), (vec![Json::Fields(vec![]), Json::Fields(vec![])], true));
        assert_eq!(values("{} and then"), (vec![Json::Fields(vec![])], false));
        assert_eq!(values("{"), (vec![], false));
    }
}
