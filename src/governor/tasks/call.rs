//! Tool calls in the form that the mandate engine uses.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::mandate::Part;
use crate::model::{Digest, Intent, TargetKind};
use crate::parse::{ArgumentRole, argument_role};

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
    /// Reads a text as a call; `None` if it is not a JSON object. The arguments are searched under the usual keys; if
    /// none exists, every key is an argument.
    pub(super) fn of_text(text: &str) -> Option<Self> {
        let Value::Object(whole) = serde_json::from_str(text.trim()).ok()? else { return None };
        let inner =
            ["function", "function_call", "tool_call", "call"].iter().find_map(|key| whole.get(*key)?.as_object());
        let call = inner.unwrap_or(&whole);
        let tool = NAMES.iter().find_map(|key| call.get(*key)?.as_str()).unwrap_or_default().to_owned();
        let read = |value: &Value| match value {
            Value::Object(arguments) => Some(arguments.clone()),
            Value::String(written) => serde_json::from_str(written).ok(),
            _ => None,
        };
        let found = ARGUMENTS.iter().find_map(|key| Some((*key, read(call.get(*key)?)?)));
        let (taken, mut arguments) = found.map_or((None, Map::new()), |(key, found)| (Some(key), found));
        // It is unknown which of several objects a runtime uses as arguments, so the others count as arguments too,
        // except keys that only name the call.
        let is_beside =
            |key: &str| Some(key) != taken && !NAMES.contains(&key) && !(taken.is_some() && BESIDE.contains(&key));
        for (key, value) in call.iter().filter(|(key, _)| is_beside(key)) {
            arguments.entry(key.clone()).or_insert_with(|| value.clone());
        }
        if inner.is_some() {
            for (key, value) in whole.iter().filter(|(key, _)| ARGUMENTS.contains(&key.as_str())) {
                arguments.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        Some(Self { tool, arguments })
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

/// Keys that may name the tool of a call.
const NAMES: &[&str] =
    &["tool", "name", "tool_name", "function_name", "recipient_name", "function", "method", "action"];
/// Keys that may hold the arguments of a call.
const ARGUMENTS: &[&str] =
    &["arguments", "args", "parameters", "params", "tool_input", "action_input", "kwargs", "input"];
/// Keys beside them that are not arguments.
const BESIDE: &[&str] = &["id", "call_id", "callId", "tool_use_id", "type", "jsonrpc", "server", "index"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ToolCall;
    use serde_json::json;

    #[test]
    fn a_call_is_found_in_the_usual_forms() {
        let expected = json!({ "to": "ann" });
        for text in [
            json!({ "tool": "send", "arguments": { "to": "ann" } }),
            json!({ "name": "send", "input": { "to": "ann" }, "type": "tool_use", "id": "x" }),
            json!({ "function": { "name": "send", "arguments": "{\"to\":\"ann\"}" } }),
            json!({ "tool": "send", "to": "ann" }),
        ] {
            let called = Called::of_text(&text.to_string()).unwrap();
            assert_eq!((called.tool.as_str(), Value::Object(called.arguments)), ("send", expected.clone()), "{text}");
        }
        assert!(Called::of_text("send it to ann").is_none() && Called::of_text("[1]").is_none());
    }

    #[test]
    fn of_several_objects_of_arguments_none_is_left_out() {
        for text in [
            json!({ "tool": "send", "arguments": { "to": "ann" }, "params": { "to": "eve" } }),
            json!({ "function": { "name": "send", "arguments": { "to": "ann" } }, "arguments": { "to": "eve" } }),
            json!({ "tool": "delete", "id": "eve" }),
        ] {
            let called = Called::of_text(&text.to_string()).unwrap();
            assert!(Value::Object(called.arguments).to_string().contains("eve"), "{text}");
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
            let called = Called::of_text(&call.to_text()).unwrap();
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
