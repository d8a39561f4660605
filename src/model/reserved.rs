//! Names of JSON that its library keeps for itself. An object with one of them is written like any other and read back as
//! something else, or not at all: what was decided, shown and recorded would not be one thing.

use serde_json::{Map, Value};

/// What they begin with. Which of them mean something depends on features that any crate of a program can turn on.
const PREFIX: &str = "$serde_json::private::";

/// Whether a name is one of them.
pub fn is_reserved(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Whether one stands in an object, at any depth.
pub(crate) fn has_reserved(map: &Map<String, Value>) -> bool {
    map.iter().any(|(name, value)| is_reserved(name) || is_inside(value))
}

fn is_inside(value: &Value) -> bool {
    match value {
        Value::Object(map) => has_reserved(map),
        Value::Array(items) => items.iter().any(is_inside),
        _ => false,
    }
}

/// How it is told.
pub const RESERVED: &str = "a name that begins with \"$serde_json::private::\" cannot be kept; give it another";
