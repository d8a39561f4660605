//! The keys of an intent's context that this library reads or writes, each with its type and its meaning.

use super::FACTS_KEY;

/// The caller's own id of the request, in a context.
pub(super) const CALL_ID: &str = "callId";
/// Context key of the people who asked the agent to act.
pub(super) const REQUESTED_BY: &str = "requestedBy";

/// Defines a list of keys; their descriptions are for the page `docs/reference/context.md` alone.
macro_rules! keys {
    ($(#[$comment:meta])* $names:ident, $described:ident: $($name:expr, $kind:literal, $meaning:literal;)+) => {
        $(#[$comment])*
        pub const $names: &[&str] = &[$($name),+];

        /// The same keys: the name, the type and the meaning of each.
        pub const $described: &[[&str; 3]] = &[$([$name, $kind, $meaning]),+];
    };
}

keys! {
    /// The keys that parsing adds to a context.
    PARSED_KEYS, PARSED:
    "dataClassification", "string",
        "Class of the data: `PUBLIC`, `INTERNAL`, `CONFIDENTIAL` or `RESTRICTED`. `match.classification` reads it, but never below what the action and the capabilities imply. A word that is none of these counts as `RESTRICTED`.";
    "operation", "string",
        "Operation of the primary capability.";
    "resource", "string",
        "Resource of the primary capability.";
    "target", "string, or list of strings",
        "The first recipient, path, host, table or account, as it was sent. Rules look at all of them (`facts.targets`). In a built intent it is the list of targets.";
    "recordCount", "number",
        "Largest number of records that the request names. More than 1,000 raise the risk by one level, unless the request only concerns `information`.";
    "amount", "number",
        "Sum of all amounts of money in the request; absent where one is unknown or their currencies differ. A transfer is at least MEDIUM up to 100, at least HIGH below 10,000, and CRITICAL otherwise. Without an amount a payment is at least HIGH, another transfer at least MEDIUM.";
    "currency", "string",
        "Currency of the amount, as an ISO 4217 code.";
    "parseConfidence", "number",
        "How sure the parse is, from 0 to 1.";
    "riskFactors", "list of strings",
        "Reasons for the risk level, in words.";
    "inputFormat", "string",
        "Form of the input: `text`, `tool_call`, `shell`, `sql`, `http` or `code`.";
    FACTS_KEY, "object",
        "Everything that the request names (below). The parser writes it; a caller's own value is not used.";
}

keys! {
    /// The keys of a context by which a caller says more of a request.
    CALLERS_KEYS, CALLERS:
    "environment", "string",
        "Where the action takes place. `match.environment` reads it; a name for production raises the risk of everything but reads by one level.";
    REQUESTED_BY, "string, or list of strings",
        "People on whose behalf the agent asks. None of them can answer the escalation.";
    "retryOf", "string",
        "Id of the proof record of this agent that the request repeats. The new record names it.";
    CALL_ID, "string",
        "The caller's own id of the request, 1 to 256 characters. Records can be looked up by it.";
}

/// The fields of [`Facts`](super::Facts): the name, the type and the meaning of each.
pub const FACTS: &[[&str; 3]] = &[
    ["tool", "string", "The tool that is called, as it was sent."],
    ["server", "string", "The server that the tool belongs to, as it was sent."],
    [
        "formats",
        "list of strings",
        "Forms that were read, the outermost first: `tool_call` and `shell` for a tool that runs a command line.",
    ],
    [
        "targets",
        "list of objects",
        "Every recipient, path, host, table and account as `{kind, role, value, original?}`, in the order of the request; at most 64. `value` is the plain form, `original` what was sent where it differs.",
    ],
    ["amounts", "list of objects", "Every amount of money as `{value, currency?, count}`; at most 32."],
    [
        "unread",
        "list of objects",
        "What could not be read, as `{kind, found}`; at most 32. `kind` is `target`, `amount`, `argument`, `text` or `code`. In a tool call an unread target or argument makes the risk at least MEDIUM.",
    ],
    [
        "readings",
        "list of strings",
        "Other capabilities that an unsure reading may mean; at most 4. A decision is the strictest over all of them.",
    ],
    ["table", "string", "SHA-256 of the table of words that English was read by, in hex."],
    ["rows", "string", "SHA-256 of the labeled rows that an operator adapted the table with, in hex."],
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Amount, Facts, Target, TargetKind, TargetRole, Unread, UnreadKind};

    #[test]
    fn every_fact_is_described() {
        let facts = Facts {
            tool: Some("t".to_owned()),
            server: Some("s".to_owned()),
            formats: vec!["text".to_owned()],
            targets: vec![Target::new(TargetKind::Path, TargetRole::Read, "a".to_owned(), "a")],
            amounts: vec![Amount::new(1.0, None, 1)],
            unread: vec![Unread::new(UnreadKind::Text, "x".to_owned())],
            readings: vec!["file:read".parse().unwrap()],
            table: Some("0".to_owned()),
            rows: Some("0".to_owned()),
        };
        let written = serde_json::to_value(facts).unwrap();
        let names: Vec<&str> = FACTS.iter().map(|[name, ..]| *name).collect();
        assert!(written.as_object().unwrap().keys().all(|name| names.contains(&name.as_str())), "{written}");
        assert_eq!(written.as_object().unwrap().len(), names.len());
    }
}
