//! Tool calls in the form that the mandate engine uses.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::mandate::Part;
use crate::model::{Digest, Intent, TargetKind, ToolCall};
use crate::parse::{ArgumentRole, argument_role, calls_of};

/// The salted digest of a call's tool and arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct CallDigest(pub(super) Digest);

/// The prefix of a [`CallDigest`] that is kept in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CallKey([u8; 8]);

impl CallDigest {
    /// The first eight bytes: enough to distinguish the calls of one task, at most 100,000.
    pub(super) fn key(self) -> CallKey {
        let (key, _) = self.0.as_bytes().split_first_chunk().unwrap_or((&[0; 8], &[]));
        CallKey(*key)
    }
}

/// The tool and the arguments of a call.
pub(super) struct Called {
    pub(super) tool: String,
    pub(super) arguments: Map<String, Value>,
}

impl Called {
    /// The calls in a text, as the parser finds them; none if it is not JSON.
    pub(super) fn all_in(text: &str) -> Vec<Self> {
        calls_of(text).into_iter().map(Self::from).collect()
    }

    /// The digest that identifies a call: equal for the same tool and arguments.
    pub(super) fn digest(salt: Digest, tool: &str, arguments: &Map<String, Value>) -> CallDigest {
        // `serde_json` maps are ordered by key.
        let arguments = serde_json::to_vec(arguments).unwrap_or_default();
        let hash = Sha256::new().chain_update(salt.as_bytes()).chain_update((tool.len() as u64).to_le_bytes());
        CallDigest(Digest::new(hash.chain_update(tool).chain_update(arguments).finalize().into()))
    }

    /// Returns whether the call reads a file or page by its location, so that its whole result is external text.
    pub(super) fn reads_by_place(&self) -> bool {
        let is_place = |key: &String| {
            let last = key.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_ascii_lowercase();
            ["path", "file", "url", "uri", "link", "href", "website", "page_url"]
                .iter()
                .any(|word| last.ends_with(word))
        };
        self.arguments.keys().any(is_place)
    }
}

impl From<ToolCall> for Called {
    fn from(call: ToolCall) -> Self {
        Self { tool: call.name, arguments: call.arguments }
    }
}

/// The kind of an argument, if the tool vocabulary knows its key.
pub(super) fn part_of_key(key: &str) -> Option<Part> {
    Some(match argument_role(key)? {
        ArgumentRole::Recipient => Part::Party,
        ArgumentRole::Content | ArgumentRole::Query | ArgumentRole::Request => Part::Content,
        ArgumentRole::Command | ArgumentRole::Script | ArgumentRole::Sql => Part::Code,
        ArgumentRole::Code => Part::Program,
        ArgumentRole::Url => Part::Place,
        ArgumentRole::Path => Part::Path,
        ArgumentRole::Amount => Part::Amount,
        ArgumentRole::Secret => Part::Secret,
        // An id, a user, a project: the words of the value decide.
        ArgumentRole::Idle | ArgumentRole::Nested | ArgumentRole::Doing => return None,
        ArgumentRole::Method
        | ArgumentRole::Currency
        | ArgumentRole::Count
        | ArgumentRole::Force
        | ArgumentRole::Bulk
        | ArgumentRole::DryRun
        | ArgumentRole::Environment
        | ArgumentRole::Access
        | ArgumentRole::Visibility
        | ArgumentRole::Public => Part::Option,
    })
}

/// The targets and amounts that the parser found in a request.
pub(super) fn targets_of(intent: &Intent) -> Vec<(Part, String)> {
    let built = intent.known.is_none().then(|| intent.facts());
    let Some(facts) = intent.known.as_deref().or(built.as_ref()) else { return Vec::new() };
    let part = |kind: TargetKind| match kind {
        TargetKind::Recipient | TargetKind::Account => Part::Party,
        TargetKind::Path => Part::Path,
        TargetKind::Host => Part::Place,
        TargetKind::Table => Part::Name,
    };
    let targets = facts.targets().into_iter().map(|target| (part(target.kind), target.value));
    let amounts = facts.amounts().map(|amount| (Part::Amount, amount.value.to_string()));
    targets.chain(amounts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of_text(text: &str) -> Called {
        let mut calls = Called::all_in(text);
        assert_eq!(calls.len(), 1, "{text}");
        calls.remove(0)
    }

    #[test]
    fn a_call_is_the_same_in_every_form() {
        let arguments = json!({ "to": "ann", "count": 2, "share": 2.0, "id": 9_007_199_254_740_993_i64 });
        let written = arguments.to_string();
        for text in [
            json!({ "tool": "send", "arguments": arguments }),
            json!({ "tool": "send", "to": "ann", "count": 2, "share": 2.0, "id": 9_007_199_254_740_993_i64 }),
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "send", "arguments": arguments, "_meta": {} } }),
            json!({ "function": { "name": "send", "arguments": written } }),
            json!({ "tool_calls": [{ "id": "1", "type": "function", "function": { "name": "send", "arguments": written } }] }),
            json!({ "output": [{ "type": "function_call", "call_id": "c", "name": "send", "arguments": written }] }),
            json!({ "name": "send", "input": arguments, "type": "tool_use", "id": "x" }),
            json!({ "role": "assistant", "content": [{ "type": "tool_use", "id": "t", "name": "send", "input": arguments }] }),
            json!({ "candidates": [{ "content": { "parts": [{ "functionCall": { "name": "send", "args": arguments } }] } }] }),
            json!([{ "tool": "send", "arguments": arguments }]),
            json!(json!({ "tool": "send", "arguments": arguments }).to_string()),
        ] {
            let called = of_text(&text.to_string());
            assert_eq!((called.tool.as_str(), Value::Object(called.arguments)), ("send", arguments.clone()), "{text}");
        }
        assert!(Called::all_in("send it to ann").is_empty() && Called::all_in("[1]").is_empty());
        let batch = json!([{ "tool": "send", "arguments": {} }, { "tool": "delete", "arguments": {} }]);
        let tools: Vec<String> = Called::all_in(&batch.to_string()).into_iter().map(|call| call.tool).collect();
        assert_eq!(tools, ["send", "delete"]);
    }

    #[test]
    fn of_several_objects_of_arguments_none_is_left_out() {
        for text in [
            r#"{"tool":"send","arguments":{"to":"ann"},"params":{"to":"eve"}}"#,
            r#"{"tool":"send","arguments":{"to":"ann","to":"eve"}}"#,
            r#"{"function":{"name":"send","arguments":{"to":"ann"}},"arguments":{"to":"eve"}}"#,
            r#"{"tool":"delete","id":"eve"}"#,
            r#"{"to":"eve"}"#,
        ] {
            let called = Called::all_in(text);
            assert!(called.iter().any(|called| json!(called.arguments).to_string().contains("eve")), "{text}");
        }
    }

    #[test]
    fn a_call_is_found_again_in_its_text() {
        let arguments = json!({ "call": { "name": "x" }, "arguments": [1.5, 1e300], "name": "y", "to": "ann" });
        for call in [
            ToolCall::new("send", arguments.clone()),
            ToolCall::new("", arguments.clone()).of_server("mail"),
            ToolCall::new("send", json!({})),
        ] {
            let called = of_text(&call.to_text());
            assert_eq!((called.tool, called.arguments), (call.name, call.arguments));
        }
    }

    #[test]
    fn the_digest_is_of_the_tool_and_all_arguments() {
        let of = |salt, tool, arguments: Value| {
            Called::digest(Digest::new([salt; 32]), tool, arguments.as_object().unwrap())
        };
        let one = of(1, "send", json!({ "a": 1, "b": [2] }));
        assert_eq!(one, of(1, "send", json!({ "b": [2], "a": 1 })));
        for other in [
            of(2, "send", json!({ "a": 1, "b": [2] })),
            of(1, "sends", json!({ "a": 1, "b": [2] })),
            of(1, "send", json!({ "a": 1 })),
        ] {
            assert_ne!(one, other);
        }
    }
}
