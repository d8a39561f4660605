//! Facts: the targets, amounts, tool and unread parts that a request names.
//!
//! The parser finds them. They are typed within a process; the JSON of an intent has them in its context, under the
//! reserved key [`FACTS_KEY`]. The facts of an intent that its caller built come from the context keys that the caller
//! set.

use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use super::{Capability, Intent, closed_words};

/// Key of the facts in the context of an intent's JSON. A value that a caller sets under it is ignored.
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

crate::parts::outward! {
    /// The facts that a request names and decisions rely on.
    #[derive(Default, Hash, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    // The fields here and below stand in the order of the JSON, which is that of their names.
    pub struct Facts from FactsParts {
        /// The amounts of money; at most 32.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub amounts: Vec<Amount>,
        /// The formats that were parsed, outermost first: `tool_call` and `shell` for a tool that runs a command.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub formats: Vec<String>,
        /// Capabilities that an uncertain reading may mean instead of the primary one; at most 4. The strictest decision
        /// over all of them counts.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub readings: Vec<Capability>,
        /// SHA-256, in hex, of the labeled rows with which the operator adapted that table.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub rows: Option<String>,
        /// The name of the tool's server, as sent.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub server: Option<String>,
        /// SHA-256, in hex, of the word table used to parse English.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub table: Option<String>,
        /// The recipients, paths, hosts, tables and accounts, in the order of the request; at most 64.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub targets: Vec<Target>,
        /// The name of the called tool, as sent.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub tool: Option<String>,
        /// The parts that could not be read; at most 32.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub unread: Vec<Unread>,
    }
}

/// A recipient, path, host, table or account that a request names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Target {
    /// The kind of target.
    pub kind: TargetKind,
    /// The form that was sent; absent if it is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<String>,
    /// The part it plays in the request.
    pub role: TargetRole,
    /// The normalized form: an address without the display name, a host in lowercase, a path without dot segments.
    pub value: String,
}

/// An amount of money that a request names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Amount {
    /// Number of payments of that amount.
    pub count: u64,
    /// The ISO 4217 code of the currency; absent if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// The amount of a single payment.
    pub value: f64,
}

impl Hash for Amount {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.count, &self.currency, self.value.to_bits()).hash(state);
    }
}

/// A part of a request that the parser could not read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Unread {
    /// The position or the beginning of the part.
    pub found: String,
    /// The kind of part.
    pub kind: UnreadKind,
}

impl Target {
    #[doc(hidden)]
    pub fn new(kind: TargetKind, role: TargetRole, value: String, original: &str) -> Self {
        let original = (value != original).then(|| original.to_owned());
        Self { kind, original, role, value }
    }
}

impl Amount {
    #[doc(hidden)]
    pub const fn new(value: f64, currency: Option<String>, count: u64) -> Self {
        Self { count, currency, value }
    }
}

impl Unread {
    #[doc(hidden)]
    pub const fn new(kind: UnreadKind, found: String) -> Self {
        Self { found, kind }
    }
}

impl Facts {
    /// Returns whether a part of one of these kinds could not be read.
    #[doc(hidden)]
    pub fn has_unread(&self, kinds: &[UnreadKind]) -> bool {
        self.unread.iter().any(|item| kinds.contains(&item.kind))
    }
}

impl Intent {
    /// The facts of the intent. A parsed intent carries the parser's; an intent built by its caller has those of the
    /// context keys `target`, `amount` and `currency`. The intent's JSON has the parser's facts in its context, where
    /// [`Intent::context`] has none.
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
        self.known.as_deref().cloned().unwrap_or_else(|| self.built_facts())
    }

    fn built_facts(&self) -> Facts {
        let named = |target: &str| Target::new(TargetKind::Path, TargetRole::Named, target.to_owned(), target);
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

    /// A copy of the intent with `reading` as its primary capability.
    #[must_use]
    pub fn read_as(&self, reading: Capability) -> Self {
        let mut intent = self.clone();
        intent.required_capabilities.retain(|one| *one != reading);
        intent.required_capabilities.insert(0, reading);
        intent
    }

    /// The context as its JSON has it, with the facts.
    #[doc(hidden)]
    pub fn members(&self) -> Members<'_> {
        Members { context: &self.context, facts: self.known.as_ref() }
    }
}

/// The facts that the parser found in a request, shared by the copies of its intent.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct ParsedFacts(Arc<Parsed>);

#[derive(Debug)]
struct Parsed {
    facts: Facts,
    /// For conditions, which look into the JSON; most requests meet none that reads facts.
    json: OnceLock<Value>,
}

impl From<Facts> for ParsedFacts {
    fn from(facts: Facts) -> Self {
        Self(Arc::new(Parsed { facts, json: OnceLock::new() }))
    }
}

impl ParsedFacts {
    /// Reads the facts of an intent's JSON. Where they cannot be read, nothing of the request is known.
    pub(super) fn of_json(json: Value) -> Self {
        let unread =
            || Facts { unread: vec![Unread::new(UnreadKind::Argument, FACTS_KEY.to_owned())], ..Facts::default() };
        serde_json::from_value(json).unwrap_or_else(|_| unread()).into()
    }

    fn json(&self) -> &Value {
        self.0.json.get_or_init(|| serde_json::to_value(&self.0.facts).unwrap_or_default())
    }
}

impl Deref for ParsedFacts {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.0.facts
    }
}

impl PartialEq for ParsedFacts {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

/// The members of a JSON object, such as an intent's context, whose facts are typed.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Members<'a> {
    context: &'a Map<String, Value>,
    facts: Option<&'a ParsedFacts>,
}

impl<'a> From<&'a Map<String, Value>> for Members<'a> {
    fn from(context: &'a Map<String, Value>) -> Self {
        Self { context, facts: None }
    }
}

impl<'a> Members<'a> {
    #[allow(missing_docs)]
    pub fn get(self, key: &str) -> Option<&'a Value> {
        match self.facts {
            Some(facts) if key == FACTS_KEY => Some(facts.json()),
            _ => self.context.get(key),
        }
    }

    #[allow(missing_docs, clippy::len_without_is_empty)]
    pub fn len(self) -> usize {
        self.context.len() + usize::from(self.facts.is_some_and(|_| !self.context.contains_key(FACTS_KEY)))
    }

    /// The members in the order of their names.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, Member<'a>)> {
        let mut facts = self.facts.map(|facts| (FACTS_KEY, Member::Facts(facts)));
        let is_other = move |name: &str| self.facts.is_none() || name != FACTS_KEY;
        let mut others = self.context.iter().filter(move |(name, _)| is_other(name)).peekable();
        std::iter::from_fn(move || {
            if others.peek().is_none_or(|(name, _)| name.as_str() > FACTS_KEY)
                && let Some(facts) = facts.take()
            {
                return Some(facts);
            }
            others.next().map(|(name, value)| (name.as_str(), Member::Json(value)))
        })
    }

    /// The members as a tree.
    pub fn to_json(self) -> Value {
        self.iter().map(|(name, member)| (name, member.json().clone())).collect()
    }
}

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// The value of one of the [`Members`].
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub enum Member<'a> {
    /// A value of the context.
    Json(&'a Value),
    /// The facts.
    Facts(&'a ParsedFacts),
}

impl<'a> From<&'a Value> for Member<'a> {
    fn from(value: &'a Value) -> Self {
        Self::Json(value)
    }
}

impl<'a> Member<'a> {
    #[allow(missing_docs)]
    pub fn json(self) -> &'a Value {
        match self {
            Self::Json(value) => value,
            Self::Facts(facts) => facts.json(),
        }
    }
}

impl Serialize for Member<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Json(value) => value.serialize(serializer),
            Self::Facts(facts) => facts.0.facts.serialize(serializer),
        }
    }
}
