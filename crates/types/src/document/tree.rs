//! The tree that both formats are read into, with the position of each value.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::PolicyFormat;
use super::place::Lines;
use crate::json_depth;

/// A value of a document and its position.
pub struct Node {
    /// The byte offset at which the value starts.
    pub at: usize,
    /// The value at this position.
    pub value: Value,
}

/// A value that exists in both TOML and JSON.
pub enum Value {
    /// `null`, only in JSON.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number that fits 64 bits.
    Integer(i64),
    /// A number that is not an integer of 64 bits.
    Float(f64),
    /// A string; also a TOML date or time, as written.
    Text(String),
    /// A list of values.
    List(Vec<Node>),
    /// A table; its fields are in the order of the document.
    Table(Vec<Field>),
}

/// A field of a table: its name and value.
pub struct Field {
    /// The field's name.
    pub name: String,
    /// The byte offset at which the name starts.
    pub at: usize,
    /// The field's value.
    pub node: Node,
}

/// A syntax error in the text, with its byte offset.
pub(super) struct SyntaxError {
    pub(super) at: usize,
    pub(super) message: String,
}

impl Node {
    /// Parses a text.
    pub(super) fn read(text: &str, format: PolicyFormat) -> Result<Self, Vec<SyntaxError>> {
        match format {
            PolicyFormat::Toml => read_toml(text),
            PolicyFormat::Json => read_json(text).map_err(|error| vec![error]),
        }
    }

    /// Returns the kind of the value for a message, for example `a string`.
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Integer(_) | Value::Float(_) => "a number",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }

    /// Converts the value to JSON; lists keep their order.
    pub fn into_json(self) -> serde_json::Value {
        use serde_json::Value as Json;
        match self.value {
            Value::Null => Json::Null,
            Value::Bool(flag) => Json::Bool(flag),
            Value::Text(text) => Json::String(text),
            Value::Integer(number) => number.into(),
            Value::Float(number) => number.into(),
            Value::List(items) => items.into_iter().map(Self::into_json).collect(),
            Value::Table(fields) => fields.into_iter().map(|field| (field.name, field.node.into_json())).collect(),
        }
    }

    /// Returns a table's field if it is a string.
    pub fn text_of(&self, name: &str) -> Option<&str> {
        let Value::Table(fields) = &self.value else { return None };
        match &fields.iter().find(|field| field.name == name)?.node.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Adds the content to a hash, each value after its kind and length; positions and the order of fields do not
    /// count.
    pub fn note(&self, hash: &mut Sha256) {
        let mut head = |kind: u8, length: usize| {
            hash.update([kind]);
            hash.update((length as u64).to_le_bytes());
        };
        match &self.value {
            Value::Null => head(b'n', 0),
            Value::Bool(flag) => head(b'b', usize::from(*flag)),
            Value::Integer(number) => {
                head(b'i', 0);
                hash.update(number.to_le_bytes());
            }
            Value::Float(number) => {
                head(b'f', 0);
                hash.update(number.to_le_bytes());
            }
            Value::Text(text) => {
                head(b't', text.len());
                hash.update(text);
            }
            Value::List(items) => {
                head(b'l', items.len());
                for item in items {
                    item.note(hash);
                }
            }
            Value::Table(fields) => {
                head(b'o', fields.len());
                let mut fields: Vec<&Field> = fields.iter().collect();
                fields.sort_by_key(|field| &field.name);
                for field in fields {
                    hash.update((field.name.len() as u64).to_le_bytes());
                    hash.update(&field.name);
                    field.node.note(hash);
                }
            }
        }
    }

    /// Returns a description for a message: a number itself, otherwise the kind of value.
    pub fn told(&self) -> String {
        match self.value {
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            _ => self.kind().to_owned(),
        }
    }
}

fn read_toml(text: &str) -> Result<Node, Vec<SyntaxError>> {
    if let Some(at) = long_dotted_key(text) {
        return Err(vec![SyntaxError { at, message: format!("a key has more than {MAX_DEPTH} parts") }]);
    }
    let (document, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(errors
            .iter()
            .map(|error| SyntaxError {
                at: error.span().map_or(0, |span| span.start),
                message: format!("this is not TOML: {}{}", error.message(), doubled(text, error)),
            })
            .collect());
    }
    let at = document.span().start;
    Ok(Node { at, value: table(document.into_inner()) })
}

/// The key that occurs twice, if that is the error.
fn doubled(text: &str, error: &toml::de::Error) -> String {
    let key = error.span().filter(|_| error.message() == "duplicate key").and_then(|span| text.get(span));
    key.map(|key| format!(" {:?}", crate::excerpt(key))).unwrap_or_default()
}

/// The offset of a key or header with more parts than a policy ever nests. The TOML reader limits the nesting of
/// values, but each part of a dotted key opens a table too, and tables are dropped recursively.
fn long_dotted_key(text: &str) -> Option<usize> {
    let mut run = 0;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skipped = match c {
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '"' | '\'' => string_length(rest, c),
            _ => c.len_utf8(),
        };
        match c {
            '.' => run += 1,
            '=' | ',' | '{' | '[' | '\n' => run = 0,
            _ => {}
        }
        if run > MAX_DEPTH {
            return Some(text.len() - rest.len());
        }
        rest = rest.get(skipped..).unwrap_or_default();
    }
    None
}

/// Length of the TOML string at the start of `text`, including its quotes. Without closing quotes it extends to the end
/// of the line or text.
fn string_length(text: &str, quote: char) -> usize {
    let triple = [quote; 3].iter().collect::<String>();
    let is_long = text.starts_with(&triple);
    let mut at = if is_long { 3 } else { 1 };
    while let Some(rest) = text.get(at..) {
        let Some(c) = rest.chars().next() else { break };
        if is_long && rest.starts_with(&triple) {
            // Up to two quotes may precede the closing three.
            let quotes = rest.chars().take(5).take_while(|c| *c == quote).count();
            return at + quotes;
        }
        if !is_long && c == quote {
            return at + 1;
        }
        if !is_long && c == '\n' {
            return at;
        }
        let escapes = c == '\\' && quote == '"';
        let after = if escapes { rest.chars().nth(1).filter(|c| is_long || *c != '\n') } else { None };
        at += c.len_utf8() + after.map_or(0, char::len_utf8);
    }
    text.len()
}

fn table(fields: DeTable<'_>) -> Value {
    let mut fields: Vec<Field> = fields
        .into_iter()
        .map(|(name, node)| Field {
            at: name.span().start,
            name: name.into_inner().into_owned(),
            node: toml_node(node),
        })
        .collect();
    fields.sort_by_key(|field| field.at);
    Value::Table(fields)
}

fn toml_node(node: Spanned<DeValue<'_>>) -> Node {
    let at = node.span().start;
    let value = match node.into_inner() {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(integer) => Value::Integer(integer),
            // Over 64 bits: as a float, readers of whole numbers reject it.
            Err(_) => Value::Float(number.as_str().parse().unwrap_or(f64::INFINITY)),
        },
        DeValue::Float(number) => Value::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(flag) => Value::Bool(flag),
        DeValue::Datetime(time) => Value::Text(time.to_string()),
        DeValue::Array(items) => Value::List(items.into_iter().map(toml_node).collect()),
        DeValue::Table(fields) => table(fields),
    };
    Node { at, value }
}

fn read_json(text: &str) -> Result<Node, SyntaxError> {
    if json_depth(text) > MAX_DEPTH {
        return Err(SyntaxError { at: 0, message: format!("the document nests more than {MAX_DEPTH} levels deep") });
    }
    let raw = serde_json::from_str(text)
        .map_err(|error| not_json(Lines::of(text).offset(error.line(), error.column()), &error))?;
    json_node(raw, text)
}

/// Reads a slice of `text`, which is known to be JSON of limited depth; its position is that of the slice.
fn json_node(raw: &RawValue, text: &str) -> Result<Node, SyntaxError> {
    let piece = raw.get();
    let at = place(piece, text);
    let refused = |error: serde_json::Error| not_json(at, &error);
    let value = match piece.as_bytes().first() {
        Some(b'{') => {
            let JsonFields(fields) = serde_json::from_str(piece).map_err(refused)?;
            let field = |(name, value): (&RawValue, &RawValue)| {
                let at = place(name.get(), text);
                let node = json_node(value, text)?;
                serde_json::from_str(name.get())
                    .map(|name| Field { name, at, node })
                    .map_err(|error| not_json(at, &error))
            };
            Value::Table(fields.into_iter().map(field).collect::<Result<_, _>>()?)
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(piece).map_err(refused)?;
            Value::List(items.into_iter().map(|item| json_node(item, text)).collect::<Result<_, _>>()?)
        }
        _ => match serde_json::from_str(piece).map_err(refused)? {
            serde_json::Value::String(text) => Value::Text(text),
            serde_json::Value::Bool(flag) => Value::Bool(flag),
            serde_json::Value::Number(number) => match number.as_i64() {
                Some(integer) => Value::Integer(integer),
                None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            _ => Value::Null,
        },
    };
    Ok(Node { at, value })
}

/// The byte offset of a slice within its text.
fn place(piece: &str, text: &str) -> usize {
    piece.as_ptr().addr().saturating_sub(text.as_ptr().addr())
}

fn not_json(at: usize, error: &serde_json::Error) -> SyntaxError {
    let message = error.to_string();
    let reason = message.split(" at line ").next().unwrap_or(&message);
    SyntaxError { at, message: format!("this is not JSON: {reason}") }
}

/// The fields of a JSON object in their order, including duplicates.
struct JsonFields<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de> Deserialize<'de> for JsonFields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = JsonFields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(JsonFields(fields))
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

/// Maximum nesting, far more than the schema has levels.
const MAX_DEPTH: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_places_are_those_of_the_values() {
        let text = r#"{"a": [1, "ü\"]", {"b": true}], "c": null}"#;
        let node = Node::read(text, PolicyFormat::Json).ok().unwrap();
        let Value::Table(fields) = node.value else { panic!("no table") };
        assert_eq!(fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>(), ["a", "c"]);
        let Value::List(items) = &fields[0].node.value else { panic!("no list") };
        let starts: Vec<&str> = items.iter().map(|item| &text[item.at..=item.at]).collect();
        assert_eq!(starts, ["1", "\"", "{"]);
    }

    #[test]
    fn hostile_nesting_is_refused_and_does_not_overflow() {
        let deep_list = format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000));
        let deep_key = format!("{} = 1", vec!["a"; 100_000].join("."));
        let deep_header = format!("[{}]", vec!["a"; 100_000].join("."));
        let deep_quoted = format!("{} = 1", vec!["\"=\""; 100_000].join("."));
        let deep_blank = format!("{} = 1", vec!["a"; 100_000].join(" . "));
        for text in [deep_list, deep_key, deep_header, deep_quoted, deep_blank] {
            assert!(Node::read(&text, PolicyFormat::Toml).is_err(), "{} was accepted", &text[..20]);
        }
        let deep = "[".repeat(100_000);
        assert!(Node::read(&deep, PolicyFormat::Json).is_err());
    }
}
