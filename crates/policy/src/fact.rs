//! The facts of an intent as match clauses read them.

use rulekeep_types::{Intent, TargetKind, UnreadKind};

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
    pub(super) fn values(self, intent: &Intent) -> impl Iterator<Item = (&str, Option<&str>)> {
        let kind = match self {
            Self::Recipients => Some(TargetKind::Recipient),
            Self::Paths => Some(TargetKind::Path),
            Self::Hosts => Some(TargetKind::Host),
            Self::Tables => Some(TargetKind::Table),
            Self::Accounts => Some(TargetKind::Account),
            Self::Tool | Self::Server | Self::Formats | Self::Targets => None,
        };
        let one = match self {
            Self::Tool => intent.fact("tool"),
            Self::Server => intent.fact("server"),
            _ => None,
        };
        let formats = (self == Self::Formats).then(|| intent.formats()).into_iter().flatten();
        let targets = self.is_target().then(|| intent.named_targets(kind)).into_iter().flatten();
        one.into_iter().chain(formats).map(|text| (text, None)).chain(targets)
    }

    /// Returns whether a part of the fact could not be parsed.
    pub(super) fn is_unread(self, intent: &Intent) -> bool {
        self.is_target() && intent.has_unread(&[UnreadKind::Target, UnreadKind::Argument])
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
