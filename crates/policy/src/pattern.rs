//! Patterns: globs over names, and capabilities with wildcards.

use std::fmt;

use serde::{Serialize, Serializer};

use rulekeep_types::Capability;

/// A glob: `*` matches any run of characters, `?` any single one. Everything else matches itself, with case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Glob(Box<str>);

impl Glob {
    /// Returns whether a text contains a wildcard.
    pub(super) fn is_glob(text: &str) -> bool {
        text.contains(['*', '?'])
    }

    /// Creates a glob; runs of `*` are merged into one.
    pub(super) fn new(text: &str) -> Self {
        let mut pattern = String::with_capacity(text.len());
        for c in text.chars() {
            if c != '*' || !pattern.ends_with('*') {
                pattern.push(c);
            }
        }
        Self(pattern.into())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The literal text that every match starts with.
    pub(super) fn literal_prefix(&self) -> &str {
        self.0.find(['*', '?']).and_then(|end| self.0.get(..end)).unwrap_or(&self.0)
    }

    /// The literal text that every match ends with.
    pub(super) fn literal_suffix(&self) -> &str {
        self.0.rfind(['*', '?']).and_then(|start| self.0.get(start + 1..)).unwrap_or(&self.0)
    }

    /// Returns whether the whole text matches.
    pub(super) fn matches(&self, text: &str) -> bool {
        self.fits(text, |wanted, found| wanted == '?' || wanted == found)
    }

    /// Returns whether everything that the other glob matches certainly matches this one: its `*` only by a `*`, its
    /// `?` by either.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.fits(&other.0, |wanted, found| wanted == found || wanted == '?' && found != '*')
    }

    /// Returns whether the whole text fits, comparing single characters with `is_fit`. The worst case is the product
    /// of both lengths, because only the last `*` is ever retried.
    fn fits(&self, text: &str, is_fit: impl Fn(char, char) -> bool) -> bool {
        let (mut pattern, mut rest) = (self.0.chars(), text.chars());
        let mut retry: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
        loop {
            let mut ahead = pattern.clone();
            match ahead.next() {
                Some('*') => {
                    if ahead.as_str().is_empty() {
                        return true;
                    }
                    retry = Some((ahead.clone(), rest.clone()));
                    pattern = ahead;
                    continue;
                }
                None if rest.as_str().is_empty() => return true,
                Some(wanted) => {
                    if let Some(found) = rest.next() {
                        if is_fit(wanted, found) {
                            pattern = ahead;
                            continue;
                        }
                    } else {
                        // No text is left for this character, and a retry would have even less.
                        return false;
                    }
                }
                None => {}
            }
            let Some((after_star, from)) = &mut retry else { return false };
            if from.next().is_none() {
                return false;
            }
            pattern = after_star.clone();
            rest = from.clone();
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn globs_match_whole_texts() {
        for (glob, text, expected) in [
            ("*", "", true),
            ("*", "anything", true),
            ("refund_*", "refund_order", true),
            ("refund_*", "refund_", true),
            ("refund_*", "a_refund_x", false),
            ("*_user", "delete_user", true),
            ("*_user", "delete_users", false),
            ("s?nd", "send", true),
            ("s?nd", "snd", false),
            ("?", "ü", true),
            ("a*b*c", "axxbyybzzc", true),
            ("a*b*c", "axxbyybzz", false),
            ("**a", "ba", true),
            ("a?", "a", false),
        ] {
            assert_eq!(Glob::new(glob).matches(text), expected, "{glob} against {text:?}");
        }
    }

    #[test]
    fn a_glob_covers_what_is_seen_to_lie_within_it() {
        for (wide, narrow, expected) in [
            ("*", "a*", true),
            ("a*", "ab*c", true),
            ("a?c", "abc", true),
            ("a?", "a*", false),
            ("?*", "a*", true),
            ("ab*", "a*", false),
            ("*_user", "delete_*_user", true),
        ] {
            assert_eq!(Glob::new(wide).covers(&Glob::new(narrow)), expected, "{wide} over {narrow}");
        }
    }

    #[test]
    fn a_hostile_glob_ends_soon() {
        let glob = Glob::new(&"a*".repeat(64));
        assert!(!glob.matches(&format!("{}b", "a".repeat(20).repeat(3))));
        let glob = Glob::new(&format!("{}b", "*a".repeat(500)));
        assert!(!glob.matches(&"a".repeat(2_000)));
    }

    /// The slow, obvious implementation: tries every split.
    fn slow(pattern: &[char], text: &[char]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some(('*', rest)) => (0..=text.len()).any(|cut| slow(rest, &text[cut..])),
            Some((wanted, rest)) => {
                text.split_first().is_some_and(|(found, left)| (*wanted == '?' || wanted == found) && slow(rest, left))
            }
        }
    }

    proptest! {
        #[test]
        fn the_fast_glob_agrees_with_the_obvious_one(pattern in "[ab*?]{0,8}", text in "[ab]{0,10}") {
            let (p, t): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
            prop_assert_eq!(Glob::new(&pattern).matches(&text), slow(&p, &t));
        }

        #[test]
        fn a_glob_that_covers_another_matches_all_that_it_matches(wide in "[ab*?]{0,5}", narrow in "[ab*?]{0,5}", text in "[ab]{0,6}") {
            let (wide, narrow) = (Glob::new(&wide), Glob::new(&narrow));
            prop_assert!(!wide.covers(&narrow) || !narrow.matches(&text) || wide.matches(&text));
            prop_assert!(wide.covers(&wide));
        }
    }
}
