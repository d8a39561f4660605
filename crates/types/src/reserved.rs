//! Names that `serde_json` reserves for itself. An object with such a key is written like any other but read back as
//! something else or rejected, so the decided, shown and recorded values would differ.

use serde_json::{Map, Value};

/// Prefix of the reserved names. Any crate in the program can turn on the features that give some of them a meaning, so
/// all are refused.
const PREFIX: &str = "$serde_json::private::";

/// Returns whether `serde_json` reserves this name.
pub fn is_reserved(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Returns whether a key of the object is reserved, at any depth.
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

/// The error message for a reserved name.
pub const RESERVED: &str = "a name that begins with \"$serde_json::private::\" cannot be kept; give it another";
