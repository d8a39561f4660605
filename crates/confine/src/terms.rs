//! The terms of the constraint `confine`: a list of which a run keeps every one.

use serde_json::Value;

/// One term: `"workspace"`, `"offline"`, or a table with own lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Term {
    /// The paths that may be read beside those of the system; `None` for those of the workspace.
    pub(crate) read: Option<Vec<String>>,
    /// The paths that may be written; `None` for those of the workspace.
    pub(crate) write: Option<Vec<String>>,
    /// The hosts that may be reached, `*` for all; `None` for those of the workspace.
    pub(crate) hosts: Option<Vec<String>>,
}

impl Term {
    /// Reads the value of the constraint: a term, or a list of terms.
    pub(crate) fn read(value: &Value) -> Result<Vec<Self>, String> {
        let terms = match value {
            Value::Array(terms) => terms.as_slice(),
            term => std::slice::from_ref(term),
        };
        if terms.is_empty() {
            return Err("`confine` is an empty list".to_owned());
        }
        terms.iter().map(Self::of).collect()
    }

    fn of(value: &Value) -> Result<Self, String> {
        let list = |value: &Value| -> Option<Vec<String>> {
            value.as_array()?.iter().map(|entry| entry.as_str().map(str::to_owned)).collect()
        };
        let unknown = || {
            format!("`confine` expects \"workspace\", \"offline\" or a table with read, write or hosts, not {value}")
        };
        match value {
            Value::String(word) if word == "workspace" => Ok(Self::default()),
            Value::String(word) if word == "offline" => Ok(Self { hosts: Some(Vec::new()), ..Self::default() }),
            Value::Object(fields) => {
                let mut term = Self::default();
                for (name, value) in fields {
                    let place = match name.as_str() {
                        "read" => &mut term.read,
                        "write" => &mut term.write,
                        "hosts" => &mut term.hosts,
                        _ => return Err(unknown()),
                    };
                    *place = Some(list(value).ok_or_else(unknown)?);
                }
                Ok(term)
            }
            _ => Err(unknown()),
        }
    }
}
