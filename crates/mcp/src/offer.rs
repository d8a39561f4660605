//! The tools that a server lists, read one by one. A tool that cannot be used is left out, and the others stay.

use std::collections::HashMap;

use rmcp::model::Tool;
use serde::Serialize;
use serde_json::Value;

/// The tools of all pages of a `tools/list`.
#[derive(Debug, Default)]
pub(crate) struct Offer {
    pub(crate) tools: Vec<Tool>,
    pub(crate) left_out: Vec<LeftOut>,
}

/// A tool that cannot be used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct LeftOut {
    pub(crate) name: String,
    pub(crate) why: String,
}

impl Offer {
    /// Adds the tools of one page.
    pub(crate) fn add(&mut self, tools: &[Value]) {
        for tool in tools {
            match usable(tool) {
                Ok(tool) => self.tools.push(tool),
                Err(why) => self.leave_out(tool["name"].as_str().unwrap_or_default(), why),
            }
        }
    }

    /// Leaves out tools that share a name, because a call would not say which of them it means.
    pub(crate) fn whole(mut self) -> Self {
        let mut counts: HashMap<String, usize> = HashMap::new();
        for tool in &self.tools {
            *counts.entry(tool.name.to_string()).or_default() += 1;
        }
        counts.retain(|_, count| *count > 1);
        self.tools.retain(|tool| !counts.contains_key(tool.name.as_ref()));
        for (name, count) in counts {
            self.leave_out(&name, format!("the server lists {count} tools of this name"));
        }
        self
    }

    fn leave_out(&mut self, name: &str, why: String) {
        tracing::warn!(tool = ?name, why, "a tool of the server is left out");
        self.left_out.push(LeftOut { name: name.to_owned(), why });
    }
}

/// Reads a tool. The limits are those of the catalogue, which refuses a whole list for one tool beyond them.
fn usable(tool: &Value) -> Result<Tool, String> {
    let read: Tool =
        serde_json::from_value(tool.clone()).map_err(|error| format!("its definition is invalid: {error}"))?;
    let name = read.name.as_ref();
    if name.trim().is_empty() || name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
        return Err(format!("its name is invalid: expected 1 to {LONGEST_NAME} bytes without control characters"));
    }
    if is_deeper(tool, MOST_LEVELS) {
        return Err(format!("its definition is nested more than {MOST_LEVELS} levels deep"));
    }
    if tool.to_string().len() > MOST_BYTES {
        return Err(format!("its definition has more than {MOST_BYTES} bytes"));
    }
    Ok(read)
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    let Some(left) = levels.checked_sub(1) else { return true };
    match value {
        Value::Array(items) => items.iter().any(|item| is_deeper(item, left)),
        Value::Object(fields) => fields.values().any(|field| is_deeper(field, left)),
        _ => false,
    }
}

const LONGEST_NAME: usize = 256;
const MOST_LEVELS: usize = 60;
const MOST_BYTES: usize = 256 << 10;
