//! Patterns: lists of globs over names, and capabilities with wildcards.

use std::fmt;

use serde::{Serialize, Serializer};

use rulekeep_types::{Capability, Glob};

/// The names and globs of a clause: any of them may match; an empty list matches anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Names {
    // INVARIANT: both are sorted without duplicates.
    exact: Vec<Box<str>>,
    globs: Vec<Glob>,
}

impl Names {
    pub(super) fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut names = Self::default();
        for text in texts {
            if Glob::is_glob(text) {
                names.globs.push(Glob::new(text));
            } else {
                names.exact.push(text.into());
            }
        }
        names.exact.sort();
        names.exact.dedup();
        names.globs.sort();
        names.globs.dedup();
        names
    }

    /// Returns whether the clause is absent.
    pub(super) fn is_any(&self) -> bool {
        self.exact.is_empty() && self.globs.is_empty()
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        self.is_any()
            || self.exact.binary_search_by(|name| (**name).cmp(text)).is_ok()
            || self.globs.iter().any(|glob| glob.matches(text))
    }

    pub(super) fn exact(&self) -> impl Iterator<Item = &str> {
        self.exact.iter().map(|name| &**name)
    }

    pub(super) fn globs(&self) -> &[Glob] {
        &self.globs
    }

    /// Every name and glob, sorted.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.exact().chain(self.globs.iter().map(Glob::as_str))
    }
}

impl Serialize for Names {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.texts())
    }
}

/// A capability pattern; either half may be `*`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CapabilityPattern {
    /// `None` for `*`.
    pub(super) resource: Option<Box<str>>,
    /// `None` for `*`.
    pub(super) operation: Option<Box<str>>,
}

impl CapabilityPattern {
    pub(super) fn new(resource: &str, operation: &str) -> Self {
        let half = |word: &str| if word == "*" { None } else { Some(word.into()) };
        Self { resource: half(resource), operation: half(operation) }
    }

    pub(super) fn matches(&self, capability: &Capability) -> bool {
        let half = |pattern: &Option<Box<str>>, word: &str| pattern.as_deref().is_none_or(|wanted| wanted == word);
        half(&self.resource, capability.resource_word()) && half(&self.operation, capability.operation_word())
    }

    /// Returns whether everything that `other` matches also matches this pattern.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let half = |wide: &Option<Box<str>>, narrow: &Option<Box<str>>| wide.is_none() || wide == narrow;
        half(&self.resource, &other.resource) && half(&self.operation, &other.operation)
    }

    /// The pattern of the capabilities that match both; `None` if there are none.
    pub(super) fn both(&self, other: &Self) -> Option<Self> {
        let half = |a: &Option<Box<str>>, b: &Option<Box<str>>| a.clone().or_else(|| b.clone());
        self.meets(other).then(|| Self {
            resource: half(&self.resource, &other.resource),
            operation: half(&self.operation, &other.operation),
        })
    }

    /// Returns whether some capability matches both.
    pub(super) fn meets(&self, other: &Self) -> bool {
        let half = |a: &Option<Box<str>>, b: &Option<Box<str>>| a.is_none() || b.is_none() || a == b;
        half(&self.resource, &other.resource) && half(&self.operation, &other.operation)
    }
}

impl Serialize for CapabilityPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for CapabilityPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (resource, operation) = (self.resource.as_deref(), self.operation.as_deref());
        write!(f, "{}:{}", resource.unwrap_or("*"), operation.unwrap_or("*"))
    }
}
