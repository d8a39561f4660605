//! Targets and unread parts: the facts as the first form has them, and as conditions see them.

use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

use crate::closed_words;

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
