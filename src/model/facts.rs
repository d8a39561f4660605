//! Facts: what a request is about in full, in one form for whoever decides on it.
//!
//! The parser writes them under the reserved key [`FACTS_KEY`] of an intent's context. What an intent without that key
//! names is taken from the keys of its context that a caller sets.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Capability, Intent, closed_words};

/// Key of an intent's context under which its facts stand. A caller's own value under it is not looked at.
pub(crate) const FACTS_KEY: &str = "facts";
/// The most that facts take of a context, in bytes of their JSON.
pub(crate) const MAX_FACTS_BYTES: usize = 16 * 1024;

closed_words! {
    /// What a target is.
    pub enum TargetKind("targetKind") {
        /// A person or a mailbox that is written to.
        Recipient = "recipient",
        /// A file or a folder.
        Path = "path",
        /// A host or an address on the web.
        Host = "host",
        /// A table or a schema of a database.
        Table = "table",
        /// An account, such as that of a bank.
        Account = "account",
    }
}

closed_words! {
    /// What a request does with a target.
    pub enum TargetRole("targetRole") {
        /// It is named, and no more is known.
        Named = "named",
        /// It is written to, first of all.
        To = "to",
        /// It gets a copy.
        Cc = "cc",
        /// It gets a copy that others do not see.
        Bcc = "bcc",
        /// It is read.
        Read = "read",
        /// It is changed or removed.
        Write = "write",
        /// Something is taken from it.
        Source = "source",
        /// Something is brought to it.
        Destination = "destination",
    }
}

closed_words! {
    /// What could not be read.
    pub enum UnreadKind("unreadKind") {
        /// A target that is a pattern, a variable, too long, or beyond the number that is kept.
        Target = "target",
        /// An amount of which the sum or the currency is not known.
        Amount = "amount",
        /// An argument of a tool call, by its size or its depth.
        Argument = "argument",
        /// Words of which none is known, or of another script.
        Text = "text",
        /// Code that is not understood.
        Code = "code",
    }
}

/// Everything that a request names and a decision rests on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Facts {
    /// The tool that is called, as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The server that the tool belongs to, as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The forms that were read, the outermost first: `tool_call` and `shell` for a tool that runs a command.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub formats: Vec<String>,
    /// Every recipient, path, host, table and account, in the order of the request; at most 64.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<Target>,
    /// Every amount of money; at most 32.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub amounts: Vec<Amount>,
    /// What could not be read; at most 32.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<Unread>,
    /// Other capabilities that an unsure reading may mean in place of the primary one; at most 4. A decision is the
    /// strictest over all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<Capability>,
    /// SHA-256 of the table of words that English was read by, in hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// SHA-256 of the labelled rows that the operator adapted it to, in hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<String>,
}

/// A recipient, path, host, table or account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Target {
    /// What it is.
    pub kind: TargetKind,
    /// What the request does with it.
    pub role: TargetRole,
    /// Its plain form: an address without the name beside it, a host in lower case, a path without dot segments.
    pub value: String,
    /// As it was sent; absent where that is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<String>,
}

/// An amount of money.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Amount {
    /// How much, once.
    pub value: f64,
    /// In which currency, by its ISO 4217 code; absent where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// How often.
    pub count: u64,
}

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Unread {
    /// What it is.
    pub kind: UnreadKind,
    /// Where it stands or how it begins.
    pub found: String,
}

impl Target {
    pub(crate) fn new(kind: TargetKind, role: TargetRole, value: String, original: &str) -> Self {
        let original = (value != original).then(|| original.to_owned());
        Self { kind, role, value, original }
    }
}

impl Amount {
    pub(crate) const fn new(value: f64, currency: Option<String>, count: u64) -> Self {
        Self { value, currency, count }
    }
}

impl Unread {
    pub(crate) const fn new(kind: UnreadKind, found: String) -> Self {
        Self { kind, found }
    }
}

impl Intent {
    /// Everything that it names: what the parser found, or of an intent that was built the `target`, the `amount` and
    /// the `currency` of its context.
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

    /// The plain form of each target of a kind, and the one that was sent where it differs.
    pub(crate) fn named_targets(&self, kind: Option<TargetKind>) -> impl Iterator<Item = (&str, Option<&str>)> {
        let written = self.context.get(FACTS_KEY);
        let listed = written.and_then(|facts| facts.get("targets")).and_then(Value::as_array);
        listed.into_iter().flatten().filter_map(move |target| {
            let is_kind = kind.is_none_or(|kind| target.get("kind").and_then(Value::as_str) == Some(kind.as_str()));
            let value = target.get("value")?.as_str().filter(|_| is_kind)?;
            Some((value, target.get("original").and_then(Value::as_str)))
        })
    }

    /// Whether the parser wrote what it names. Of other intents the keys of the context count that a caller sets.
    pub(crate) fn has_facts(&self) -> bool {
        self.context.get(FACTS_KEY).is_some_and(Value::is_object)
    }

    /// The text of a fact: `tool` or `server`.
    pub(crate) fn fact(&self, name: &str) -> Option<&str> {
        self.context.get(FACTS_KEY)?.get(name)?.as_str()
    }

    /// Other capabilities that an unsure reading may mean in place of the primary one.
    pub(crate) fn readings(&self) -> impl Iterator<Item = Capability> {
        let readings = self.context.get(FACTS_KEY).and_then(|facts| facts.get("readings")).and_then(Value::as_array);
        readings.into_iter().flatten().filter_map(|reading| reading.as_str()?.parse().ok())
    }

    /// The same intent with another capability in the place of the primary one.
    pub(crate) fn read_as(&self, reading: Capability) -> Self {
        let mut intent = self.clone();
        intent.required_capabilities.retain(|one| *one != reading);
        intent.required_capabilities.insert(0, reading);
        intent
    }

    /// The forms that were read.
    pub(crate) fn formats(&self) -> impl Iterator<Item = &str> {
        let formats = self.context.get(FACTS_KEY).and_then(|facts| facts.get("formats")).and_then(Value::as_array);
        formats.into_iter().flatten().filter_map(Value::as_str)
    }

    /// Whether something of one of these kinds could not be read.
    pub(crate) fn has_unread(&self, kinds: &[UnreadKind]) -> bool {
        let unread = self.context.get(FACTS_KEY).and_then(|facts| facts.get("unread")).and_then(Value::as_array);
        unread.into_iter().flatten().any(|item| {
            let kind = item.get("kind").and_then(Value::as_str);
            kinds.iter().any(|known| kind == Some(known.as_str()))
        })
    }
}
