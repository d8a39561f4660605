//! The facts of an intent as match clauses read them.

use rulekeep_types::Facts;
use rulekeep_types::facts::{Act, Kind, Kinds};

/// A fact that a clause can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fact {
    Tool,
    Server,
    Formats,
    Targets,
    Recipients,
    Paths,
    Hosts,
    Urls,
    Tables,
    Accounts,
}

impl Fact {
    /// The `match` clauses that list globs over a fact, each with the key that `context` uses for the same fact.
    pub(super) const CLAUSES: &'static [(&'static str, &'static str, Self)] = &[
        ("tools", "facts.tool", Self::Tool),
        ("servers", "facts.server", Self::Server),
        ("formats", "facts.formats", Self::Formats),
        ("targets", "facts.targets", Self::Targets),
        ("recipients", "facts.recipients", Self::Recipients),
        ("paths", "facts.paths", Self::Paths),
        ("hosts", "facts.hosts", Self::Hosts),
        ("urls", "facts.urls", Self::Urls),
        ("tables", "facts.tables", Self::Tables),
        ("accounts", "facts.accounts", Self::Accounts),
    ];

    /// The fact of a context key. `target` shows people the first target only; a rule on it checks all targets.
    pub(super) fn of_key(key: &str) -> Option<Self> {
        if key == "target" {
            return Some(Self::Targets);
        }
        Self::CLAUSES.iter().find(|(_, known, _)| *known == key).map(|(.., fact)| *fact)
    }

    /// The name of its clause in a document.
    pub(super) fn clause(self) -> &'static str {
        Self::CLAUSES.iter().find(|(.., fact)| *fact == self).map_or("targets", |(name, ..)| name)
    }

    /// The kinds of operands that the fact is about; none for the way in which something is requested.
    pub(super) const fn kinds(self) -> Kinds {
        match self {
            Self::Tool | Self::Server | Self::Formats => Kinds::NONE,
            Self::Targets => TARGETS,
            Self::Recipients => Kinds::of(&[Kind::Recipient, Kind::Any]),
            Self::Paths => Kinds::of(&[Kind::Path, Kind::Any]),
            Self::Hosts => Kinds::of(&[Kind::Host, Kind::Any]),
            Self::Urls => Kinds::of(&[Kind::Url, Kind::Any]),
            Self::Tables => Kinds::of(&[Kind::Table, Kind::Any]),
            Self::Accounts => Kinds::of(&[Kind::Account, Kind::Any]),
        }
    }

    /// Returns whether an act is requested by a name that is meant: of its tool, with or without the server, or of its
    /// server. `is_any_server` is false if a tool of a server is meant by its whole name alone.
    pub(super) fn is_named(self, act: &Act, is_any_server: bool, is_meant: impl Fn(&str) -> bool) -> bool {
        match (self, &act.tool, &act.server) {
            (Self::Tool, Some(tool), server) => {
                let whole = |server: &String| is_meant(&format!("mcp__{server}__{tool}"));
                (is_any_server || server.is_none()) && is_meant(tool) || server.as_ref().is_some_and(whole)
            }
            (Self::Server, _, Some(server)) => is_meant(server),
            _ => false,
        }
    }

    /// The values as they may be shown.
    pub(super) fn shown(self, facts: &Facts) -> Vec<&str> {
        let acts = facts.acts.iter();
        let mut values: Vec<&str> = match self {
            Self::Tool => acts.filter_map(|act| act.tool.as_deref()).collect(),
            Self::Server => acts.filter_map(|act| act.server.as_deref()).collect(),
            Self::Formats => facts.formats.iter().map(String::as_str).collect(),
            _ => {
                let operands = acts.flat_map(|act| &act.operands).filter(|operand| self.kinds().has(operand.kind));
                operands.map(|operand| operand.value.as_str()).collect()
            }
        };
        values.dedup();
        values
    }

    /// Returns whether a part of the fact could not be parsed.
    pub(super) fn is_unread(self, facts: &Facts) -> bool {
        facts.acts.iter().any(|act| act.open.iter().any(|open| open.kinds.meets(self.kinds())))
    }

    /// Returns whether the fact describes what is acted on, rather than the way in which it is requested.
    pub(super) const fn is_target(self) -> bool {
        !matches!(self, Self::Tool | Self::Server | Self::Formats)
    }
}

/// The kinds of operands that are targets.
pub(super) const TARGETS: Kinds =
    Kinds::of(&[Kind::Path, Kind::Host, Kind::Url, Kind::Recipient, Kind::Account, Kind::Table, Kind::Any]);
