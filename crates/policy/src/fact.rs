//! The facts of an intent as match clauses read them.

use rulekeep_types::{Facts, TargetKind, UnreadKind};

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

    /// Each value in normalized form, with the original if it differs.
    pub(super) fn values(self, facts: &Facts) -> impl Iterator<Item = (&str, Option<&str>)> {
        let kind = match self {
            Self::Recipients => Some(TargetKind::Recipient),
            Self::Paths => Some(TargetKind::Path),
            Self::Hosts => Some(TargetKind::Host),
            Self::Tables => Some(TargetKind::Table),
            Self::Accounts => Some(TargetKind::Account),
            Self::Tool | Self::Server | Self::Formats | Self::Targets => None,
        };
        let one = match self {
            Self::Tool => facts.tool.as_deref(),
            Self::Server => facts.server.as_deref(),
            _ => None,
        };
        let formats = if self == Self::Formats { &*facts.formats } else { &[] };
        let targets = if self.is_target() { &*facts.targets } else { &[] };
        let targets = targets.iter().filter(move |target| kind.is_none_or(|kind| target.kind == kind));
        one.into_iter()
            .chain(formats.iter().map(String::as_str))
            .map(|text| (text, None))
            .chain(targets.map(|target| (&*target.value, target.original.as_deref())))
    }

    /// Returns whether a part of the fact could not be parsed.
    pub(super) fn is_unread(self, facts: &Facts) -> bool {
        self.is_target() && facts.has_unread(&[UnreadKind::Target, UnreadKind::Argument])
    }

    /// Returns whether the fact describes what is acted on, rather than the way in which it is requested.
    pub(super) const fn is_target(self) -> bool {
        !matches!(self, Self::Tool | Self::Server | Self::Formats)
    }

    /// Returns whether an intent has at most one value of the fact.
    pub(super) const fn is_single(self) -> bool {
        matches!(self, Self::Tool | Self::Server)
    }
}
