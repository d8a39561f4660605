//! Acts: what a request does one after the other, each with its operands and with what could not be read.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::target::Amount;
use crate::{Action, Capability, RiskLevel, closed_words};

/// Maximum number of acts of a request.
pub const MOST_ACTS: usize = 64;
/// Maximum number of operands of a request.
pub const MOST_OPERANDS: usize = 256;
/// Maximum number of open parts of a request.
pub const MOST_OPEN: usize = 32;

closed_words! {
    /// The kind of an operand.
    pub enum Kind("kind") {
        /// A file or a folder: absolute, or relative to an unknown folder.
        Path = "path",
        /// The bare name or address of a host, in lower case.
        Host = "host",
        /// A web address with its scheme.
        Url = "url",
        /// A person or mailbox that receives a message.
        Recipient = "recipient",
        /// An account, such as a bank account.
        Account = "account",
        /// A database table or schema.
        Table = "table",
        /// An amount of money.
        Amount = "amount",
        /// A target whose kind the caller of a built intent does not say.
        Any = "any",
        /// A command that is run.
        Command = "command",
    }
}

closed_words! {
    /// The part an operand plays in an act.
    pub enum Role("role") {
        /// The operand is named or listed.
        Named = "named",
        /// The operand is read.
        Read = "read",
        /// The operand is created or changed.
        Write = "write",
        /// The operand is removed.
        Remove = "remove",
        /// Something is sent to the operand.
        SendTo = "send_to",
        /// The operand is run.
        Run = "run",
        /// The operand is paid.
        Pay = "pay",
    }
}

closed_words! {
    /// The reason why an act is open.
    pub enum Cause("cause") {
        /// Words could not be read.
        Text = "text",
        /// No argument names an operand that the act needs, such as the recipient of a reply.
        Unnamed = "unnamed",
        /// Code runs whose effects no text shows, and which lies in the working folder or is configured by it.
        Folder = "folder",
        /// A named file or a program's behavior runs code whose effects no text shows.
        Execution = "execution",
    }
}

/// One thing that a request does: a command, a call, a statement, or a sentence.
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Act {
    /// The amounts of money.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub amounts: Vec<Amount>,
    /// The command in normal form: without the wrappers before it, the program's folder and the options before a
    /// subcommand, and with the letters of each option sorted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The command as written, and again behind each of its wrappers, the outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// The effects, the most severe first; empty if the act only accompanies another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub does: Vec<Doing>,
    /// The names of deployment environments that a command is directed at: clusters, profiles, workspaces, stages. An
    /// empty name means that it may be directed at any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environments: Vec<String>,
    /// Whether an effect reaches the whole machine or a service elsewhere, such as a repository's host, even if no operand
    /// names it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub leaves: bool,
    /// The parts that could not be read, each with the kinds of operands that it may name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<Open>,
    /// Everything that the act reads, writes, removes, sends to, runs or pays.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operands: Vec<Operand>,
    /// The server of the called tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The called tool, without its server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

/// An effect of an act.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Doing {
    /// The action, as verb and noun.
    pub action: Action,
    /// The capability that it needs.
    pub capability: Capability,
    /// The risk of this effect alone.
    pub risk: RiskLevel,
}

/// Something that an act reads, writes, removes, sends to, runs or pays.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Operand {
    /// The kind of operand.
    pub kind: Kind,
    /// The form that was sent; absent if it is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<String>,
    /// Whether the value is a pattern of a shell, and stands for whatever matches it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pattern: bool,
    /// The path to which links lead; absent if they lead nowhere else, or are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real: Option<String>,
    /// The part it plays in the act.
    pub role: Role,
    /// Whether the operand stands for itself and everything below it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub tree: bool,
    /// The normalized form: an absolute path if the working folder is known, a bare host in lower case.
    pub value: String,
}

/// A part of an act that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Open {
    /// The reason.
    pub cause: Cause,
    /// The beginning of the part.
    pub found: String,
    /// The kinds of operands that the part may name.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<Kind>))]
    pub kinds: Kinds,
}

/// A set of kinds of operands.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Kinds(u16);

impl Kinds {
    /// Every kind.
    pub const ALL: Self = Self((1 << Kind::ALL.len()) - 1);
    /// Every kind but commands: what a known program or tool can act on.
    pub const OPERANDS: Self = Self(Self::ALL.0 & !(1 << Kind::Command as u16));
    /// The set without members.
    pub const NONE: Self = Self(0);

    /// The set of some kinds.
    pub const fn of(kinds: &[Kind]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < kinds.len() {
            bits |= 1 << kinds[at] as u16;
            at += 1;
        }
        Self(bits)
    }

    /// Returns whether a kind is in the set.
    pub const fn has(self, kind: Kind) -> bool {
        self.0 & 1 << kind as u16 != 0
    }

    /// Returns whether the sets have a kind in common.
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The kinds of both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn iter(self) -> impl Iterator<Item = Kind> {
        Kind::ALL.iter().copied().filter(move |kind| self.has(*kind))
    }
}

impl fmt::Debug for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl Serialize for Kinds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Kinds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let kinds = Vec::<Kind>::deserialize(deserializer)?;
        if kinds.is_empty() {
            return Err(D::Error::custom("expected a kind of operands"));
        }
        Ok(Self::of(&kinds))
    }
}

impl Act {
    #[doc(hidden)]
    pub const fn new() -> Self {
        Self {
            amounts: Vec::new(),
            command: None,
            commands: Vec::new(),
            does: Vec::new(),
            environments: Vec::new(),
            leaves: false,
            open: Vec::new(),
            operands: Vec::new(),
            server: None,
            tool: None,
        }
    }

    /// Returns whether every operand of a kind is known.
    pub fn is_complete(&self, kind: Kind) -> bool {
        self.open.iter().all(|open| !open.kinds.has(kind))
    }

    /// Returns whether an operand is the host of one of the act's addresses, which stands for it.
    #[doc(hidden)]
    pub fn is_host_of_url(&self, operand: &Operand) -> bool {
        let is_of = |url: &Operand| url.kind == Kind::Url && host_of(&url.value).as_deref() == Some(&*operand.value);
        operand.kind == Kind::Host && self.operands.iter().any(is_of)
    }

    /// Returns whether the act does something that needs this capability.
    pub fn needs(&self, capability: &Capability) -> bool {
        self.does.iter().any(|doing| doing.capability == *capability)
    }
}

impl Default for Act {
    fn default() -> Self {
        Self::new()
    }
}

impl Doing {
    #[doc(hidden)]
    pub const fn new(action: Action, capability: Capability, risk: RiskLevel) -> Self {
        Self { action, capability, risk }
    }
}

impl Operand {
    #[doc(hidden)]
    pub fn new(kind: Kind, role: Role, value: String, sent: &str) -> Self {
        let original = (value != sent).then(|| sent.to_owned());
        Self { kind, original, pattern: false, real: None, role, tree: false, value }
    }

    /// Returns whether it is a plain word that a program gets, which does not look like a place.
    #[doc(hidden)]
    pub fn is_word(&self) -> bool {
        let sent = self.original.as_deref().unwrap_or(&self.value);
        self.kind == Kind::Path && self.role == Role::Named && !sent.contains(['/', '.', '*', '\\', '~'])
    }

    /// The operand with the path to which links lead, if they lead elsewhere.
    #[doc(hidden)]
    pub fn led_to(&self) -> Option<Self> {
        let real = self.real.clone()?;
        Some(Self { original: None, real: None, value: real, ..self.clone() })
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn as_tree(mut self, tree: bool) -> Self {
        self.tree = tree;
        self
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn as_pattern(mut self, pattern: bool) -> Self {
        self.pattern = pattern;
        self
    }
}

impl Open {
    #[doc(hidden)]
    pub const fn new(cause: Cause, kinds: Kinds, found: String) -> Self {
        Self { cause, found, kinds }
    }
}

/// The bare host of an address: without scheme, user, port and path, in lower case, a number as its address; `None` if
/// it names none. Programs read any number of slashes of either kind behind the scheme of a web address.
#[doc(hidden)]
pub fn host_of(address: &str) -> Option<String> {
    let address = address.trim_matches(['<', '>']);
    let is_web = |scheme: &str| WEB.iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let rest = match address.split_once(':') {
        // Without slashes as well: `http:evil.example`.
        Some((scheme, rest)) if is_web(scheme) => rest,
        _ => address.split_once("://").map_or(address, |(_, rest)| rest),
    };
    let authority = rest.trim_start_matches(['/', '\\']).split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    // Characters that clients read as dots.
    let host = host.replace(['\u{3002}', '\u{ff0e}', '\u{ff61}'], ".");
    let host = host.trim_end_matches('.').to_lowercase();
    (!host.is_empty()).then(|| address_of(&host).unwrap_or(host))
}

/// The usual form of an address written as a number, with parts in other bases, or as one of version 6.
fn address_of(host: &str) -> Option<String> {
    if let Ok(address) = host.parse::<Ipv6Addr>() {
        return Some(address.to_ipv4_mapped().map_or_else(|| address.to_string(), |inner| inner.to_string()));
    }
    let parts: Vec<u32> = host
        .split('.')
        .map(|part| match (part.strip_prefix("0x"), part.strip_prefix('0')) {
            (Some(digits), _) => u32::from_str_radix(digits, 16),
            (None, Some(digits)) if !digits.is_empty() => u32::from_str_radix(digits, 8),
            _ => part.parse(),
        })
        .collect::<Result<_, _>>()
        .ok()?;
    let (last, first) = parts.split_last()?;
    let room = 32_u32.checked_sub(u32::try_from(first.len()).ok()? * 8).filter(|room| *room > 0)?;
    if first.iter().any(|part| *part > 255) || u64::from(*last) >= 1_u64 << room {
        return None;
    }
    let start = first.iter().zip([24, 16, 8]).fold(0, |sum, (part, shift)| sum | part << shift);
    Some(Ipv4Addr::from(start | last).to_string())
}

/// Schemes of web addresses.
const WEB: &[&str] = &["http", "https", "ws", "wss", "ftp"];

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_the_same_in_every_spelling() {
        for (address, host) in [
            ("https://user@Evil.example.:8443/a?b#c", "evil.example"),
            ("HTTPS:\\\\evil.example\\a", "evil.example"),
            ("https:/evil.example", "evil.example"),
            ("http:evil.example", "evil.example"),
            ("<https://evil.example>", "evil.example"),
            ("//evil.example/a", "evil.example"),
            ("git@evil.example:a/b.git", "evil.example"),
            ("https://evil\u{3002}example/", "evil.example"),
            ("http://0x0a000005/", "10.0.0.5"),
            ("http://167772165/", "10.0.0.5"),
            ("http://012.0.0.5/", "10.0.0.5"),
            ("http://10.5/", "10.0.0.5"),
            ("http://[::ffff:10.0.0.5]:80/", "10.0.0.5"),
            ("http://[FE80::1]/", "fe80::1"),
            ("http://256.1.1.1/", "256.1.1.1"),
            ("http://1.2.3.4.5/", "1.2.3.4.5"),
            ("postgres://u:p@db.example/x", "db.example"),
        ] {
            assert_eq!(host_of(address).as_deref(), Some(host), "{address}");
        }
        assert_eq!(host_of("https://"), None);
    }
}
