//! The formats of tool definitions: an MCP `tools/list` result, `OpenAI` and Anthropic `tools`, Gemini
//! `functionDeclarations`, and a plain list.

use std::collections::HashSet;
use std::io::{self, Write};

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::classification;
use rulekeep_types::{Classification, Digest, Error};

/// Maximum number of tools in a catalogue.
pub(crate) const MOST_TOOLS: usize = 10_000;
/// Maximum size of a load, in bytes of JSON.
pub(crate) const MAX_CATALOGUE_BYTES: usize = 4 << 20;
/// Maximum nesting depth of a load.
const MAX_DEPTH: usize = 64;
/// Maximum length of a tool or server name, in bytes.
const LONGEST_NAME: usize = 256;
/// Maximum length of a name that an error quotes, in bytes.
const LONGEST_SHOWN: usize = 60;
/// Length of the part of a name that is scanned for secrets, in bytes.
const LONGEST_SCANNED: usize = 1024;

/// The definition of one tool, as received.
#[derive(Debug)]
pub(super) struct Definition<'v> {
    pub name: &'v str,
    pub server: Option<&'v str>,
    pub source: &'static str,
    pub description: &'v str,
    pub schema: Option<&'v Map<String, Value>>,
    pub hints: Hints,
    /// The whole definition: text for the agent may be anywhere in it.
    pub whole: &'v Value,
    pub digest: Digest,
    /// SHA-256 over the description and the schema; `None` if both are empty, as in many definitions.
    pub shape: Option<Digest>,
}

/// MCP hints, as far as they were given.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Hints {
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub idempotent: Option<bool>,
    pub open_world: Option<bool>,
}

/// Reads the definitions of a load. A single invalid one refuses the whole load.
pub(super) fn definitions<'v>(value: &'v Value, server: Option<&'v str>) -> Result<Vec<Definition<'v>>, Error> {
    if depth(value, MAX_DEPTH) > MAX_DEPTH {
        return Err(Error::input("tools", format!("nested more than {MAX_DEPTH} levels deep")));
    }
    let size = size(value);
    if size > MAX_CATALOGUE_BYTES {
        return Err(Error::PayloadTooLarge { what: "catalogue", size, limit: MAX_CATALOGUE_BYTES });
    }
    if let Some(server) = server {
        check_name("server", server)?;
    }
    let mut found = Vec::new();
    let list = unwrapped(value);
    expect_tools(value, list)?;
    gather(list, None, server, &mut found)?;
    let mut names = HashSet::new();
    for definition in &found {
        if !names.insert(definition.name) {
            return Err(Error::input("tools", format!("the tool {} occurs twice", shown(definition.name))));
        }
    }
    if found.len() > MOST_TOOLS {
        return Err(too_many(found.len()));
    }
    Ok(found)
}

pub(super) fn too_many(count: usize) -> Error {
    Error::input("tools", format!("{count} tools; at most {MOST_TOOLS} are held"))
}

/// The list of tools inside a JSON-RPC message or an object.
fn unwrapped(value: &Value) -> &Value {
    let inside = |value: &'_ Value, key: &str| value.get(key).is_some();
    let value = value.get("result").filter(|_| !inside(value, "name")).unwrap_or(value);
    value.get("tools").filter(|tools| tools.is_array()).unwrap_or(value)
}

/// Refuses a message without tools, and says what it is: a server's error, or the answer to another request.
fn expect_tools(whole: &Value, list: &Value) -> Result<(), Error> {
    const EXPECTED: &str = "expected a tools/list result, a list of tools, or functionDeclarations";
    let Value::Object(fields) = list else { return Ok(()) };
    if TOOL_KEYS.iter().any(|key| fields.contains_key(*key)) {
        return Ok(());
    }
    if let Some(error) = whole.get("error").filter(|error| !error.is_null()) {
        let said = error.get("message").and_then(Value::as_str).or_else(|| error.as_str()).unwrap_or("");
        let said = if said.is_empty() { String::new() } else { format!(" {}", shown(said)) };
        return Err(Error::input("tools", format!("the server answered with an error{said}; {EXPECTED}")));
    }
    let found = match fields.get("tools") {
        Some(_) => "`tools` is not a list".to_owned(),
        None if fields.is_empty() => "an empty object".to_owned(),
        None => {
            let keys: Vec<String> = fields.keys().take(MOST_KEYS_SHOWN).map(|key| shown(key)).collect();
            format!("an object with {}", keys.join(", "))
        }
    };
    Err(Error::input("tools", format!("{EXPECTED}; found {found}")))
}

/// Keys of which a definition, or a container of definitions, has at least one.
const TOOL_KEYS: &[&str] =
    &["name", "function", "functionDeclarations", "function_declarations", "type", "description"];
/// Maximum number of keys that an error names for a message without tools.
const MOST_KEYS_SHOWN: usize = 5;

fn gather<'v>(
    value: &'v Value,
    source: Option<&'static str>,
    server: Option<&'v str>,
    found: &mut Vec<Definition<'v>>,
) -> Result<(), Error> {
    let wrong = |what: &str| Error::input("tools", format!("tool {}: {what}", found.len() + 1));
    let fields = match value {
        Value::Array(items) => {
            return items.iter().try_for_each(|item| {
                if item.is_object() {
                    gather(item, source, server, found)
                } else {
                    Err(Error::input("tools", format!("tool {}: expected an object", found.len() + 1)))
                }
            });
        }
        Value::Object(fields) => fields,
        _ => return Err(wrong("expected a tools/list result, a list of tools, or functionDeclarations")),
    };
    for key in ["functionDeclarations", "function_declarations"] {
        if let Some(declared) = fields.get(key) {
            return gather(declared, Some("gemini"), server, found);
        }
    }
    let (fields, source) = match fields.get("function") {
        Some(Value::Object(function)) => (function, "openai"),
        _ => (fields, source.unwrap_or_else(|| form(fields))),
    };
    let text = |key: &str| fields.get(key).and_then(Value::as_str);
    let name = match fields.get("name") {
        // Tools that the provider supplies have only a type.
        None => text("type").filter(|kind| *kind != "function").ok_or_else(|| wrong("name is missing"))?,
        Some(name) => name.as_str().ok_or_else(|| wrong("name: expected a string"))?,
    };
    check_name("name", name)?;
    let description = match fields.get("description") {
        None | Some(Value::Null) => "",
        Some(text) => text.as_str().ok_or_else(|| wrong("description: expected a string"))?,
    };
    let schema = ["inputSchema", "input_schema", "parameters", "parametersJsonSchema", "schema"]
        .iter()
        .find_map(|key| fields.get(*key))
        .and_then(Value::as_object);
    let annotations = fields.get("annotations").or_else(|| fields.get("hints")).and_then(Value::as_object);
    let hint = |key: &str| match annotations.and_then(|hints| hints.get(key)).or_else(|| fields.get(key)) {
        None | Some(Value::Null) => Ok(None),
        Some(hint) => hint.as_bool().map(Some).ok_or_else(|| wrong(&format!("{key}: expected true or false"))),
    };
    let hints = Hints {
        read_only: hint("readOnlyHint")?,
        destructive: hint("destructiveHint")?,
        idempotent: hint("idempotentHint")?,
        open_world: hint("openWorldHint")?,
    };
    let shape = shape(description, schema);
    let digest = digest(value);
    found.push(Definition { name, server, source, description, schema, hints, whole: value, digest, shape });
    Ok(())
}

/// The digest of the parts that remain when a tool is renamed.
fn shape(description: &str, schema: Option<&Map<String, Value>>) -> Option<Digest> {
    let properties = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let says_nothing = description.trim().is_empty() && properties.is_none_or(Map::is_empty);
    (!says_nothing).then(|| digest(&serde_json::json!([description, schema])))
}

/// The format of a definition, by the key of its schema.
fn form(fields: &Map<String, Value>) -> &'static str {
    if fields.contains_key("inputSchema") || fields.contains_key("annotations") {
        "mcp"
    } else if fields.contains_key("input_schema") {
        "anthropic"
    } else if fields.get("type").and_then(Value::as_str) == Some("function") {
        "openai"
    } else {
        "list"
    }
}

fn check_name(field: &'static str, name: &str) -> Result<(), Error> {
    if name.trim().is_empty() || name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
        let message = format!("{}: expected 1 to {LONGEST_NAME} bytes without control characters", shown(name));
        return Err(Error::input(field, message));
    }
    Ok(())
}

/// A name as an error quotes it: shortened, and omitted if it contains a secret.
pub(super) fn shown(name: &str) -> String {
    let cut = |most: usize| {
        let end = (0..=name.len().min(most)).rev().find(|&end| name.is_char_boundary(end)).unwrap_or(0);
        name.get(..end).unwrap_or("")
    };
    if classification::scan(cut(LONGEST_SCANNED), &[]).class() >= Classification::Confidential {
        return "\"***\"".to_owned();
    }
    let short = cut(LONGEST_SHOWN);
    format!("{short:?}{}", if short.len() < name.len() { "..." } else { "" })
}

/// SHA-256 over the JSON; the keys of a parsed value are sorted.
fn digest(value: &Value) -> Digest {
    let mut hash = Hashed(Sha256::new());
    // Writing to a hash cannot fail.
    let _ = serde_json::to_writer(&mut hash, value);
    Digest::new(hash.0.finalize().into())
}

struct Hashed(Sha256);

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The size of the JSON in bytes, counted without storing it.
fn size(value: &Value) -> usize {
    struct Counted(usize);
    impl Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counted = Counted(0);
    let _ = serde_json::to_writer(&mut counted, value);
    counted.0
}

/// The nesting depth of a value; the recursion stops one level past `limit`.
fn depth(value: &Value, limit: usize) -> usize {
    if limit == 0 {
        return 1;
    }
    match value {
        Value::Object(map) => 1 + map.values().map(|value| depth(value, limit - 1)).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(|item| depth(item, limit - 1)).max().unwrap_or(0),
        _ => 0,
    }
}
