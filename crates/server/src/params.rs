//! Reading a request's fields. Unknown fields are dropped, unless a call refuses them; `null` counts as absent.

use serde_json::{Map, Value};

use super::strict::{self, Fault};
use rulekeep::Error;
use rulekeep::extension::excerpt;
use rulekeep::intent::InvalidValue;

/// The named parameters of a call.
#[derive(Debug, Default)]
pub(super) struct Params {
    fields: Map<String, Value>,
}

/// How faults in a field are told: they have other codes in a query.
#[derive(Debug, Clone, Copy)]
pub(super) enum Faults {
    Input,
    Query,
}

impl Faults {
    pub(super) fn error(self, field: &'static str, message: impl Into<String>) -> Error {
        match self {
            Self::Input => Error::input(field, message),
            Self::Query => Error::query(field, message),
        }
    }
}

/// Deepest value that is read at all. A context's own limit lies far below, the
/// JSON reader's above.
const MAX_DEPTH: usize = 66;

impl Params {
    /// Reads an object.
    pub(super) fn read(text: &str) -> Result<Self, Error> {
        let fields = strict::object(text, MAX_DEPTH).map_err(|fault| match fault {
            Fault::Unreadable(error) if error.is_data() => Error::input("params", error.to_string()),
            Fault::Unreadable(error) => Error::input("params", format!("expected JSON: {error}")),
            Fault::TooDeep(field) => {
                let message = format!("nested more than {MAX_DEPTH} levels deep");
                match field.as_str() {
                    "intent" => Error::intent("context", message),
                    "context" => Error::input("context", message),
                    _ => Error::input("params", format!("{field:.40}: {message}")),
                }
            }
        })?;
        Ok(Self { fields })
    }

    pub(super) const fn of(fields: Map<String, Value>) -> Self {
        Self { fields }
    }

    /// Sets a field that was given elsewhere; an error where it says something else here.
    pub(super) fn fix(&mut self, field: &str, value: String) -> Result<(), Error> {
        match self.get(field) {
            Some(other) if other.as_str() != Some(&value) => {
                Err(Error::input("body", format!("{field}: is another than in the path")))
            }
            _ => {
                self.fields.insert(field.to_owned(), Value::from(value));
                Ok(())
            }
        }
    }

    /// Refuses fields that none of `known` names. For calls in which a misspelt one that is dropped lets something through.
    pub(super) fn only(&self, known: &[&[&str]]) -> Result<(), Error> {
        let is_known = |field: &str| known.iter().any(|some| some.contains(&field));
        match self.fields.keys().find(|field| !is_known(field)) {
            None => Ok(()),
            Some(field) => {
                let message =
                    format!("unknown field {:?}; expected some of {}", excerpt(field), known.concat().join(", "));
                Err(Error::input("params", message))
            }
        }
    }

    /// [`Params::only`], and no `null`: for calls in which a field that has got no value lets as much through as a misspelt one.
    pub(super) fn only_given(&self, known: &[&[&str]]) -> Result<(), Error> {
        self.only(known)?;
        match self.fields.iter().find(|(_, value)| value.is_null()) {
            None => Ok(()),
            Some((field, _)) => {
                let message = format!("{:?} is null; expected a value, or leave the field out", excerpt(field));
                Err(Error::input("params", message))
            }
        }
    }

    /// As if the field had not been given.
    pub(super) fn leave_out(&mut self, field: &str) {
        self.fields.remove(field);
    }

    pub(super) fn get(&self, field: &str) -> Option<&Value> {
        self.fields.get(field).filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, field: &'static str, faults: Faults) -> Result<&str, Error> {
        self.optional_text(field, faults)?.ok_or_else(|| faults.error(field, "is missing"))
    }

    pub(super) fn optional_text(&self, field: &'static str, faults: Faults) -> Result<Option<&str>, Error> {
        let text = |value: &'_ Value| value.as_str().is_some();
        match self.get(field) {
            Some(value) if !text(value) => Err(faults.error(field, "expected a string")),
            value => Ok(value.and_then(Value::as_str)),
        }
    }

    pub(super) fn word<T: std::str::FromStr<Err = InvalidValue>>(
        &self,
        field: &'static str,
        faults: Faults,
    ) -> Result<T, Error> {
        self.optional_word(field, faults)?.ok_or_else(|| faults.error(field, "is missing"))
    }

    pub(super) fn optional_word<T: std::str::FromStr<Err = InvalidValue>>(
        &self,
        field: &'static str,
        faults: Faults,
    ) -> Result<Option<T>, Error> {
        let word = self.optional_text(field, faults)?.map(str::parse).transpose();
        word.map_err(|error: InvalidValue| faults.error(field, error.to_string()))
    }

    pub(super) fn optional_whole(&self, field: &'static str, faults: Faults) -> Result<Option<u64>, Error> {
        self.get(field)
            .map(|value| whole(value).ok_or_else(|| faults.error(field, "expected a whole number of 0 or more")))
            .transpose()
    }

    pub(super) fn flag(&self, field: &'static str) -> Result<bool, Error> {
        let flag =
            self.get(field).map(|value| value.as_bool().ok_or_else(|| Error::input(field, "expected true or false")));
        flag.transpose().map(Option::unwrap_or_default)
    }

    pub(super) fn object(&self, field: &'static str) -> Result<Map<String, Value>, Error> {
        match self.get(field) {
            None => Ok(Map::new()),
            Some(Value::Object(object)) => Ok(object.clone()),
            Some(_) => Err(Error::input(field, "expected an object")),
        }
    }

    pub(super) fn texts(&self, field: &'static str) -> Result<Vec<&str>, Error> {
        let wrong = || Error::input(field, "expected an array of strings");
        match self.get(field) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => items.iter().map(|item| item.as_str().ok_or_else(wrong)).collect(),
            Some(_) => Err(wrong()),
        }
    }
}

/// A whole number, also one written `120.0`: JSON does not tell the two apart, and neither do many who write it.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=EXACT).contains(number))?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is whole and in between")]
        Some(number as u64)
    })
}

/// The same in all of a value.
pub(super) fn in_whole_numbers(value: &mut Value) {
    match value {
        Value::Number(_) => {
            if let Some(number) = whole(value) {
                *value = Value::from(number);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(in_whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(in_whole_numbers),
        _ => {}
    }
}

/// Up to here every whole number is one of 64 bits with a point.
const EXACT: f64 = 9_007_199_254_740_992.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Params, Error> {
        Params::read(text)
    }

    #[test]
    fn a_field_that_stands_twice_is_refused() {
        assert!(read(r#"{"agentId":"a","input":"x"}"#).is_ok());
        let error = read(r#"{"agentId":"a","agentId":"b"}"#).unwrap_err();
        assert_eq!(error.code(), "INVALID_INPUT");
        assert!(error.to_string().contains("agentId"), "{error}");
        for nested in [
            r#"{"intent":{"agentId":"a","agentId":"b"}}"#,
            r#"{"intent":{"agentId":"a","agent\u0049d":"b"}}"#,
            r#"{"context":{"list":[1,{"x":1,"x":1}]}}"#,
        ] {
            let error = read(nested).unwrap_err();
            assert!(error.to_string().contains("twice"), "{nested}: {error}");
        }
    }

    #[test]
    fn a_whole_number_may_have_a_point() {
        let whole = |text: &str| read(text).unwrap().optional_whole("n", Faults::Input).ok().flatten();
        for (text, number) in
            [(r#"{"n":120}"#, 120), (r#"{"n":120.0}"#, 120), (r#"{"n":1.2e2}"#, 120), (r#"{"n":-0.0}"#, 0)]
        {
            assert_eq!(whole(text), Some(number), "{text}");
        }
        assert_eq!(whole(r#"{"n":18446744073709551615}"#), Some(u64::MAX));
        for text in [r#"{"n":0.5}"#, r#"{"n":-1}"#, r#"{"n":-1.0}"#, r#"{"n":1e18}"#, r#"{"n":"1"}"#] {
            assert_eq!(whole(text), None, "{text}");
        }
        let mut value = serde_json::json!({ "plan": { "perMinute": 60.0, "burst": [1.5, 2.0] } });
        in_whole_numbers(&mut value);
        assert_eq!(value.to_string(), r#"{"plan":{"burst":[1.5,2],"perMinute":60}}"#);
    }

    #[test]
    fn null_counts_as_absent() {
        assert!(read(r#"{"note":null}"#).unwrap().get("note").is_none());
    }
}
