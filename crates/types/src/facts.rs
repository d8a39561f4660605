//! Facts: the targets, amounts, tool and unread parts that a request names.
//!
//! The parser writes them to the reserved context key [`FACTS_KEY`]. For an intent without that key, facts come from
//! the context keys that its caller set.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Capability, Intent, closed_words};

/// Context key that holds the facts of an intent. A value that a caller sets under it is ignored.
pub const FACTS_KEY: &str = "facts";
/// Maximum size of the facts, in bytes of their JSON.
pub const MAX_FACTS_BYTES: usize = 16 * 1024;

closed_words! {
    /// The kind of a target: recipient, path, host, table or account.
    pub enum TargetKind("targetKind") {
        /// A person or mailbox that receives a message.
        Recipient = "recipient",
        /// A file or a folder.
        Path = "path",
        /// A host name or web address.
        Host = "host",
        /// A database table or schema.
        Table = "table",
        /// An account, such as a bank account.
        Account = "account",
    }
}

closed_words! {
    /// The part a target plays in a request.
    pub enum TargetRole("targetRole") {
        /// The target is named; its part is unknown.
        Named = "named",
        /// A primary recipient of a message.
        To = "to",
        /// A recipient of a copy.
        Cc = "cc",
        /// A recipient of a blind copy.
        Bcc = "bcc",
        /// The target is read.
        Read = "read",
        /// The target is changed or removed.
        Write = "write",
        /// The place something is taken from.
        Source = "source",
        /// The place something is moved or copied to.
        Destination = "destination",
    }
}

closed_words! {
    /// The kind of a part of a request that the parser could not read.
    pub enum UnreadKind("unreadKind") {
        /// A target that is a pattern or variable, is too long, or exceeds the number kept.
        Target = "target",
        /// An amount of money whose sum or currency is unknown.
        Amount = "amount",
        /// An argument of a tool call that is too large or too deeply nested.
        Argument = "argument",
        /// Text without a known word, or in another script.
        Text = "text",
        /// Code in a form that the parser does not understand.
        Code = "code",
    }
}

/// The facts that a request names and decisions rely on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Facts {
    /// The name of the called tool, as sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The name of the tool's server, as sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The formats that were parsed, outermost first: `tool_call` and `shell` for a tool that runs a command.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub formats: Vec<String>,
    /// The recipients, paths, hosts, tables and accounts, in the order of the request; at most 64.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<Target>,
    /// The amounts of money; at most 32.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub amounts: Vec<Amount>,
    /// The parts that could not be read; at most 32.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<Unread>,
    /// Capabilities that an uncertain reading may mean instead of the primary one; at most 4. The strictest decision
    /// over all of them counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<Capability>,
    /// SHA-256, in hex, of the word table used to parse English.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// SHA-256, in hex, of the labeled rows with which the operator adapted that table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<String>,
}

/// A recipient, path, host, table or account that a request names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Target {
    /// The kind of target.
    pub kind: TargetKind,
    /// The part it plays in the request.
    pub role: TargetRole,
    /// The normalized form: an address without the display name, a host in lowercase, a path without dot segments.
    pub value: String,
    /// The form that was sent; absent if it is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<String>,
}

/// An amount of money that a request names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Amount {
    /// The amount of a single payment.
    pub value: f64,
    /// The ISO 4217 code of the currency; absent if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// Number of payments of that amount.
    pub count: u64,
}

/// A part of a request that the parser could not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Unread {
    /// The kind of part.
    pub kind: UnreadKind,
    /// The position or the beginning of the part.
    pub found: String,
}

impl Target {
    #[doc(hidden)]
    pub fn new(kind: TargetKind, role: TargetRole, value: String, original: &str) -> Self {
        let original = (value != original).then(|| original.to_owned());
        Self { kind, role, value, original }
    }
}

impl Amount {
    #[doc(hidden)]
    pub const fn new(value: f64, currency: Option<String>, count: u64) -> Self {
        Self { value, currency, count }
    }
}

impl Unread {
    #[doc(hidden)]
    pub const fn new(kind: UnreadKind, found: String) -> Self {
        Self { kind, found }
    }
}

impl Intent {
    /// The facts of the intent. A parsed intent carries the parser's; an intent built by its caller has those of the
    /// context keys `target`, `amount` and `currency`.
    ///
    /// ```
    /// use rulekeep::intent::Parser;
    ///
    /// let text = r#"{"tool": "send_email", "arguments": {"to": ["a@x.example", "b@y.example"], "body": "Hi"}}"#;
    /// let parsed = Parser::new()?.parse_text(&"desk".parse()?, text, &serde_json::Map::new())?;
    /// let facts = parsed.intent.facts();
    /// assert_eq!(facts.tool.as_deref(), Some("send_email"));
    /// assert_eq!(facts.targets.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn facts(&self) -> Facts {
        match self.context.get(FACTS_KEY) {
            Some(written) => serde_json::from_value(written.clone()).unwrap_or_default(),
            None => self.built_facts(),
        }
    }

    fn built_facts(&self) -> Facts {
        let named = |target: &str| Target {
            kind: TargetKind::Path,
            role: TargetRole::Named,
            value: target.to_owned(),
            original: None,
        };
        let targets = match self.context.get("target") {
            Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).map(named).collect(),
            Some(Value::String(target)) => vec![named(target)],
            _ => Vec::new(),
        };
        let currency = self.context.get("currency").and_then(Value::as_str).map(str::to_owned);
        let amount = self.context.get("amount").and_then(Value::as_f64);
        Facts {
            targets,
            amounts: amount.map(|value| Amount::new(value, currency, 1)).into_iter().collect(),
            ..Facts::default()
        }
    }

    /// Iterates over the targets of a kind: the normalized form, and the sent form where it differs.
    pub fn named_targets(&self, kind: Option<TargetKind>) -> impl Iterator<Item = (&str, Option<&str>)> {
        let written = self.context.get(FACTS_KEY);
        let listed = written.and_then(|facts| facts.get("targets")).and_then(Value::as_array);
        listed.into_iter().flatten().filter_map(move |target| {
            let is_kind = kind.is_none_or(|kind| target.get("kind").and_then(Value::as_str) == Some(kind.as_str()));
            let value = target.get("value")?.as_str().filter(|_| is_kind)?;
            Some((value, target.get("original").and_then(Value::as_str)))
        })
    }

    /// Returns whether the parser wrote the facts. For other intents the caller's context keys count.
    pub fn has_facts(&self) -> bool {
        self.context.get(FACTS_KEY).is_some_and(Value::is_object)
    }

    /// The text of a fact: `tool` or `server`.
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.context.get(FACTS_KEY)?.get(name)?.as_str()
    }

    /// Capabilities that an uncertain reading may mean instead of the primary one.
    pub fn readings(&self) -> impl Iterator<Item = Capability> {
        let readings = self.context.get(FACTS_KEY).and_then(|facts| facts.get("readings")).and_then(Value::as_array);
        readings.into_iter().flatten().filter_map(|reading| reading.as_str()?.parse().ok())
    }

    /// A copy of the intent with `reading` as its primary capability.
    #[must_use]
    pub fn read_as(&self, reading: Capability) -> Self {
        let mut intent = self.clone();
        intent.required_capabilities.retain(|one| *one != reading);
        intent.required_capabilities.insert(0, reading);
        intent
    }

    /// The formats that were parsed, outermost first.
    pub fn formats(&self) -> impl Iterator<Item = &str> {
        let formats = self.context.get(FACTS_KEY).and_then(|facts| facts.get("formats")).and_then(Value::as_array);
        formats.into_iter().flatten().filter_map(Value::as_str)
    }

    /// Returns whether a part of one of these kinds could not be read.
    pub fn has_unread(&self, kinds: &[UnreadKind]) -> bool {
        let unread = self.context.get(FACTS_KEY).and_then(|facts| facts.get("unread")).and_then(Value::as_array);
        unread.into_iter().flatten().any(|item| {
            let kind = item.get("kind").and_then(Value::as_str);
            kinds.iter().any(|known| kind == Some(known.as_str()))
        })
    }
}
