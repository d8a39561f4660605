//! JSON that borrows its strings from the text and keeps duplicate keys, because two readers could each take a
//! different one.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A value, borrowing from the text if nothing had to be unescaped.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json<'a> {
    Null,
    Bool(bool),
    Number(f64),
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

    #[expect(clippy::cast_precision_loss, reason = "amounts and counts are compared by size, not to the unit")]
    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Json::Number(value as f64))
    }

    #[expect(clippy::cast_precision_loss, reason = "amounts and counts are compared by size, not to the unit")]
    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Json::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Json::Number(value))
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
