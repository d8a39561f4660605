//! Strict JSON: refuses duplicate names at any depth, because two readers could each take a different one of the
//! values, and values nested too deep. Also refuses what would be read back differently: integers that do not fit 64
//! bits, and names that the JSON library reserves. Works in one pass and builds no tree of what it refuses.

use std::cell::Cell;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::map::{Entry, VacantEntry};
use serde_json::{Map, Number, Value};

use rulekeep::extension::{RESERVED, excerpt, is_reserved};

/// The reason a text is refused.
#[derive(Debug)]
pub(super) enum Fault {
    /// The named field is nested too deep.
    TooDeep(String),
    /// Not JSON, not an object, or a duplicate name.
    Unreadable(serde_json::Error),
}

/// Reads an object whose fields are nested at most `deepest` levels.
pub(super) fn object(text: &str, deepest: usize) -> Result<Map<String, Value>, Fault> {
    let mut too_deep = None;
    let mut json = serde_json::Deserializer::from_str(text);
    let fields = json.deserialize_map(Fields { deepest, too_deep: &mut too_deep });
    match fields.and_then(|fields| json.end().map(|()| fields)) {
        Ok(fields) => Ok(fields),
        Err(error) => Err(too_deep.map_or(Fault::Unreadable(error), Fault::TooDeep)),
    }
}

struct Fields<'a> {
    deepest: usize,
    too_deep: &'a mut Option<String>,
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut fields, is_too_deep) = (Map::new(), Cell::new(false));
        let nested = Nested { left: self.deepest, is_too_deep: &is_too_deep };
        while let Some(name) = map.next_key::<String>()? {
            let place = vacant(&mut fields, name)?;
            match map.next_value_seed(nested) {
                Ok(value) => drop(place.insert(value)),
                Err(error) => {
                    *self.too_deep = is_too_deep.get().then(|| place.key().clone());
                    return Err(error);
                }
            }
        }
        Ok(fields)
    }
}

/// Reads a value with this many levels left.
#[derive(Clone, Copy)]
struct Nested<'a> {
    left: usize,
    is_too_deep: &'a Cell<bool>,
}

impl Nested<'_> {
    fn inner<E: serde::de::Error>(self) -> Result<Self, E> {
        let Some(left) = self.left.checked_sub(1) else {
            self.is_too_deep.set(true);
            return Err(E::custom("nested too deep"));
        };
        Ok(Self { left, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Nested<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Nested<'_> {
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

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        if is_rounded(value) {
            return Err(E::custom("a number beyond 64 bits would be rounded: send it as a string"));
        }
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
        let (inner, mut read) = (self.inner()?, Vec::new());
        while let Some(item) = items.next_element_seed(inner)? {
            read.push(item);
        }
        Ok(Value::Array(read))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let (inner, mut read) = (self.inner()?, Map::new());
        while let Some(name) = map.next_key::<String>()? {
            let place = vacant(&mut read, name)?;
            place.insert(map.next_value_seed(inner)?);
        }
        Ok(Value::Object(read))
    }
}

/// The vacant entry for a field whose name is allowed and new.
fn vacant<E: serde::de::Error>(fields: &mut Map<String, Value>, name: String) -> Result<VacantEntry<'_>, E> {
    if is_reserved(&name) {
        return Err(E::custom(RESERVED));
    }
    match fields.entry(name) {
        Entry::Vacant(place) => Ok(place),
        Entry::Occupied(other) => Err(E::custom(format!("the field {:?} occurs twice", excerpt(other.key())))),
    }
}

/// Returns whether a number may be an integer that was rounded.
fn is_rounded(number: f64) -> bool {
    const TOO_LARGE: f64 = 18_446_744_073_709_551_616.0;
    const TOO_SMALL: f64 = -9_223_372_036_854_775_808.0;
    // The lowest integer is read as an integer, so a float of this value was rounded to it.
    number <= TOO_SMALL || number >= TOO_LARGE
}

#[cfg(test)]
mod tests {
    use super::*;
    use rulekeep::extension::json_depth;

    #[test]
    fn the_deepest_level_is_read_and_one_more_names_its_field() {
        for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
            let nested = |levels: usize| format!(r#"{{"b":1,"c":{}0{}}}"#, open.repeat(levels), close.repeat(levels));
            assert!(object(&nested(5), 5).is_ok());
            assert!(matches!(object(&nested(6), 5), Err(Fault::TooDeep(field)) if field == "c"));
        }
        assert!(object(r#"{"a":0}"#, 0).is_ok());
        assert!(matches!(object(r#"{"a":1,"a":[]}"#, 0), Err(Fault::Unreadable(_))), "a name twice is not too deep");
    }

    #[test]
    fn nothing_follows_an_object() {
        assert!(object("{} ", 5).is_ok());
        for text in ["{}{}", "{}x", "[]", "", "{"] {
            assert!(object(text, 5).is_err(), "{text}");
        }
    }

    #[test]
    fn what_would_read_back_differently_is_refused_at_any_depth() {
        let reserved = r#"{"$serde_json::private::RawValue":"[1]"}"#;
        for text in [
            reserved.to_owned(),
            format!(r#"{{"a":{reserved}}}"#),
            format!(r#"{{"a":[{{"b":{reserved}}}]}}"#),
            r#"{"a":{"\u0024serde_json::private::Number":"1"}}"#.to_owned(),
            r#"{"a":12345678901234567890123}"#.to_owned(),
            r#"{"a":[18446744073709551616]}"#.to_owned(),
            r#"{"a":-9223372036854775809}"#.to_owned(),
            r#"{"a":1e300}"#.to_owned(),
        ] {
            assert!(matches!(object(&text, 5), Err(Fault::Unreadable(error)) if error.is_data()), "{text}");
        }
        let kept = object(r#"{"a":18446744073709551615,"b":-9223372036854775808,"c":1e18}"#, 5).unwrap();
        assert_eq!(Value::Object(kept).to_string(), r#"{"a":18446744073709551615,"b":-9223372036854775808,"c":1e+18}"#);
    }

    proptest::proptest! {
        #[test]
        fn what_has_no_name_twice_is_read_as_any_reader_does(
            text in r#"(\{("[a-c]":(null|true|-1|1\.5e3|18446744073709551615|"\\u00e9"|\[1,\{\}\]|\[\[\[1\]\]\]|\{"a":1,?("[ab]":2)?\}),?){0,4}\}|\[("x",?){0,3}\]|[0-9.eE-]{1,6})"#
        ) {
            let plain = serde_json::from_str::<Value>(&text);
            match (plain, object(&text, 2)) {
                (Ok(plain), Ok(fields)) => proptest::prop_assert_eq!(plain, Value::Object(fields)),
                (Ok(Value::Object(fields)), Err(Fault::TooDeep(field))) => {
                    proptest::prop_assert!(json_depth(&text) > 3 && fields.contains_key(&field));
                }
                (Ok(Value::Object(_)), Err(Fault::Unreadable(error))) => {
                    proptest::prop_assert!(error.to_string().contains("twice"), "{}", error);
                }
                (_, read) => proptest::prop_assert!(read.is_err()),
            }
        }
    }
}
