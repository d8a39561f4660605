//! The named parameters of a call, read into its type. An unknown parameter is refused with a suggestion, because a
//! misspelled `context` must not let through what the context would have stopped. `null` counts as absent, unless the
//! call refuses it.

use std::fmt::Display;

use serde::de::{DeserializeOwned, DeserializeSeed, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};
use serde_json::{Map, Value};

use super::call::Call;
use super::escalations::parse_id;
use super::spec::{ALL, Spec};
use crate::strict;
use rulekeep::Error;
use rulekeep::escalation::EscalationId;
use rulekeep::extension::{did_you_mean, excerpt};
use rulekeep::proof::ProofId;
use rulekeep::task::TaskId;

/// The named parameters of a call.
#[derive(Debug, Default)]
pub struct Params {
    fields: Map<String, Value>,
}

/// Maximum length of a line, in bytes. A longer line is answered with `PAYLOAD_TOO_LARGE` and skipped without being
/// stored.
pub const MAX_LINE_BYTES: usize = 8 << 20;
/// Maximum size of `params`, in bytes, for calls that take neither documents nor tool results.
pub const MAX_REQUEST_BYTES: usize = 256 << 10;
/// Maximum nesting depth of a value. The limit of a context is far lower, that of the JSON parser higher.
const MAX_DEPTH: usize = 66;

/// Prefixes of the calls that take documents, tool results or host events.
const DOCUMENTS: &[&str] = &["policy/", "catalogue/", "agent/import", "task/observe", "hook/"];

impl Params {
    /// Takes the parameters as a call.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] and the other errors of malformed parameters.
    pub fn call<C: Call>(&mut self) -> Result<C, Error> {
        C::read(std::mem::take(self), &C::SPEC)
    }

    /// Takes the parameters of a call that the program adds to the protocol.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] if they are not the fields of the type.
    pub fn fields<T: DeserializeOwned>(&mut self) -> Result<T, Error> {
        std::mem::take(self).typed(&Spec::of_session("", ""))
    }

    /// Parses the text of a call's parameters, if it is within the call's size limit.
    pub(crate) fn of_call(method: &str, text: &str) -> Result<Self, Error> {
        let takes_documents = DOCUMENTS.iter().any(|subject| method.starts_with(subject));
        let (size, limit) = (text.len(), if takes_documents { MAX_LINE_BYTES } else { MAX_REQUEST_BYTES });
        if size > limit {
            return Err(Error::PayloadTooLarge { what: "params", size, limit });
        }
        Self::read(text)
    }

    /// Parses the text of an object.
    pub(crate) fn read(text: &str) -> Result<Self, Error> {
        let fields = strict::object(text, MAX_DEPTH).map_err(|fault| match fault {
            strict::Fault::Unreadable(error) if error.is_data() => Error::input("params", error.to_string()),
            strict::Fault::Unreadable(error) => Error::input("params", format!("expected JSON: {error}")),
            strict::Fault::TooDeep(field) => {
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

    pub(crate) const fn of(fields: Map<String, Value>) -> Self {
        Self { fields }
    }

    /// Sets a parameter given elsewhere, for example in the path; an error if the value differs here.
    pub(crate) fn fix(&mut self, name: &str, value: String) -> Result<(), Error> {
        match self.get(name) {
            Some(other) if other.as_str() != Some(&value) => {
                Err(Error::input("body", format!("{name}: differs from the one in the path")))
            }
            _ => {
                self.fields.insert(name.to_owned(), Value::from(value));
                Ok(())
            }
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.fields.remove(name).filter(|value| !value.is_null())
    }

    /// Takes a parameter out, also if it is `null`.
    pub(crate) fn take_any(&mut self, name: &str) -> Option<Value> {
        self.fields.remove(name)
    }

    /// Sets a parameter whose value was changed.
    pub(crate) fn put(&mut self, name: &str, value: Value) {
        self.fields.insert(name.to_owned(), value);
    }

    /// Drops parameters with other names, at the edge of a protocol that lets its messages have more.
    pub(crate) fn only(mut self, known: &[&str]) -> Self {
        self.fields.retain(|name, _| known.contains(&name.as_str()));
        self
    }

    /// Refuses parameters with other names.
    pub(crate) fn refuse_others(&self, known: &[&str]) -> Result<(), Error> {
        match self.fields.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(Error::input(ALL, unknown(name, known))),
            None => Ok(()),
        }
    }

    /// Reads the parameters into a type. An error names the first parameter that is missing or malformed, and what
    /// was expected.
    pub(crate) fn typed<T: DeserializeOwned>(self, spec: &Spec) -> Result<T, Error> {
        let fields = Fields { rest: self.fields.into_iter(), names: &[], value: None, refuses_null: spec.refuses_null };
        T::deserialize(fields).map_err(|fault| spec.fault(fault.name, fault.message))
    }
}

/// Parameters being read into a type.
struct Fields {
    rest: serde_json::map::IntoIter,
    /// The fields that the type has.
    names: &'static [&'static str],
    value: Option<(&'static str, Value)>,
    refuses_null: bool,
}

/// The error of a parameter.
#[derive(Debug)]
struct Fault {
    name: &'static str,
    message: String,
}

impl<'de> Deserializer<'de> for Fields {
    type Error = Fault;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_map(Self { names, ..self })
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_map(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

impl<'de> MapAccess<'de> for Fields {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        for (name, value) in self.rest.by_ref() {
            let known = self.names.iter().find(|known| **known == name).copied();
            if value.is_null() && self.refuses_null {
                let message = format!("{:?} is null; expected a value, or leave the field out", excerpt(&name));
                return Err(Fault { name: ALL, message });
            }
            if known.is_none() && !self.names.is_empty() {
                return Err(serde::de::Error::unknown_field(&name, self.names));
            }
            if value.is_null() {
                continue;
            }
            self.value = Some((known.unwrap_or(ALL), value));
            return seed.deserialize(name.into_deserializer()).map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let (name, mut value) = self.value.take().unwrap_or_default();
        if value.is_number() {
            in_whole_numbers(&mut value);
        }
        seed.deserialize(value).map_err(|error| Fault { name, message: expected(&error.to_string()) })
    }
}

/// States that a field is unknown, and suggests the one that was probably meant.
pub(crate) fn unknown(name: &str, known: &[&str]) -> String {
    match did_you_mean(name, known.iter().copied()) {
        meant if meant.is_empty() => {
            format!("unknown field {:?}; expected some of {}", excerpt(name), known.join(", "))
        }
        meant => format!("unknown field {:?}{meant}", excerpt(name)),
    }
}

impl std::error::Error for Fault {}

impl Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.name, self.message)
    }
}

impl serde::de::Error for Fault {
    fn custom<T: Display>(message: T) -> Self {
        Self { name: ALL, message: message.to_string() }
    }

    fn missing_field(name: &'static str) -> Self {
        Self { name, message: "is missing".to_owned() }
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        Self::custom(unknown(name, known))
    }
}

/// The expected value in JSON terms. The value found is not quoted, because it may be a misplaced secret.
fn expected(message: &str) -> String {
    let is_plain =
        ["invalid type: ", "invalid value: ", "unknown variant "].iter().any(|kind| message.starts_with(kind));
    let Some((_, expected)) = message.rsplit_once(", expected ").filter(|_| is_plain) else {
        return message.to_owned();
    };
    let expected = match expected {
        "u64" | "u32" | "u16" => "a whole number of 0 or more",
        "a boolean" => "true or false",
        "a map" => "an object",
        "a sequence" => "an array",
        other => other,
    };
    format!("expected {expected}")
}

/// An integer, also written as `120.0`, which JSON does not distinguish.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=EXACT).contains(number))?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is whole and in between")]
        Some(number as u64)
    })
}

/// Converts all such numbers within a value.
pub(crate) fn in_whole_numbers(value: &mut Value) {
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

/// Up to this bound every integer is exact as a double.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Narrows a query by a value, if there is one.
pub(super) fn given<Q, T>(query: Q, value: Option<T>, narrow: impl FnOnce(Q, T) -> Q) -> Q {
    match value {
        None => query,
        Some(value) => narrow(query, value),
    }
}

/// Parses a proof id. A malformed id names no record.
pub(crate) fn proof_id(text: &str) -> Result<ProofId, Error> {
    text.parse().map_err(|_| Error::unknown_proof(text))
}

/// Parses a task id. A malformed id names no task.
pub(crate) fn task_id(text: &str) -> Result<TaskId, Error> {
    text.parse().map_err(|_| Error::task_not_found(excerpt(text)))
}

/// Deserializes the id of an escalation, or of the record that asks for it.
pub(super) fn escalation_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<EscalationId, D::Error> {
    parse_id(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

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
        #[derive(serde::Deserialize)]
        struct Number {
            n: u64,
        }
        let spec = Spec::get("n", "/n", "");
        let whole = |text: &str| read(text).unwrap().typed::<Number>(&spec).ok().map(|number| number.n);
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
