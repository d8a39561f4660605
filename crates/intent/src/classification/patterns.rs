//! The patterns of sensitive data: selects those worth trying on a text, and records what they find.

use std::sync::LazyLock;

use regex::{Regex, RegexSet};
use serde::Deserialize;

use super::Contents;
use super::checks::{self, Check};
use super::looks::{Look, Looks};
use crate::sign::Sign;
use rulekeep_types::Classification;

/// Compiles the patterns if that has not happened yet, so that no request has to wait for it.
pub(crate) fn prepare() {
    LazyLock::force(&GROUPS);
}

/// Records what the patterns find in a text.
pub(super) fn scan(text: &str, contents: &mut Contents) {
    let looks = Looks::of(text);
    if looks.is_empty() {
        return;
    }
    for group in GROUPS.iter().filter(|group| looks.has(group.look) && group.may_match(text)) {
        for index in &group.set.matches(text) {
            if let Some(pattern) = group.patterns.get(index) {
                pattern.scan(text, contents);
            }
        }
    }
}

impl Pattern {
    fn scan(&self, text: &str, contents: &mut Contents) {
        if !self.near.is_empty() {
            let lower = text.to_ascii_lowercase();
            if !self.near.iter().any(|word| lower.contains(word.as_str())) {
                return;
            }
        }
        let mut seen: Vec<&str> = Vec::new();
        for found in self.form.captures_iter(text).take(MOST_MATCHES) {
            let Some(value) = found.get(1).or_else(|| found.get(0)) else { continue };
            let part_of_more = self.look == Look::Digits && goes_on(text, value.start(), value.end());
            let value = value.as_str().trim_matches('_');
            if part_of_more && self.check != Some(Check::Iban)
                || !self.check.is_none_or(|check| checks::passes(check, value))
            {
                continue;
            }
            if self.fewest > 1 {
                if !seen.contains(&value) {
                    seen.push(value);
                }
                if seen.len() < self.fewest {
                    continue;
                }
            }
            if let Some((sign, class)) = self.tells {
                contents.note(sign, class);
            }
            if self.secret {
                contents.keep(value);
            }
            if self.fewest > 1 {
                return;
            }
        }
    }
}

/// Returns whether digits continue beyond the match, with or without a separator: then the match is a part of a
/// longer number.
fn goes_on(text: &str, start: usize, end: usize) -> bool {
    let mut after = text.get(end..).unwrap_or("").bytes();
    let mut before = text.get(..start).unwrap_or("").bytes().rev();
    let next = match after.next() {
        Some(b' ' | b'-') => after.next(),
        other => other,
    };
    let last = match before.next() {
        Some(b'-') => before.next(),
        other => other,
    };
    next.is_some_and(|byte| byte.is_ascii_digit()) || last.is_some_and(|byte| byte.is_ascii_digit())
}

struct Pattern {
    form: Regex,
    look: Look,
    /// The sign and class that a match stands for; `None` for a pattern that only hides its value.
    tells: Option<(Sign, Classification)>,
    check: Option<Check>,
    near: Vec<String>,
    fewest: usize,
    secret: bool,
}

/// Patterns that are tried on the same texts.
struct Group {
    look: Look,
    /// Matches wherever a pattern of the group does, and costs less than asking all of them.
    heads: Option<Regex>,
    set: RegexSet,
    patterns: Vec<Pattern>,
}

impl Group {
    fn may_match(&self, text: &str) -> bool {
        self.heads.as_ref().is_none_or(|heads| heads.is_match(text))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    patterns: Vec<PatternText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PatternText {
    sign: Option<String>,
    class: Option<String>,
    look: Look,
    head: Option<String>,
    form: String,
    check: Option<Check>,
    #[serde(default)]
    near: String,
    #[serde(default)]
    fewest: usize,
    #[serde(default)]
    secret: bool,
}

// A test ensures that the file parses and that no pattern is dropped.
static GROUPS: LazyLock<Vec<Group>> = LazyLock::new(|| {
    let document: Document = toml::from_str(include_str!("../data/patterns.toml")).unwrap_or_default();
    Look::ALL
        .into_iter()
        .filter_map(|look| {
            let texts: Vec<&PatternText> = document.patterns.iter().filter(|text| text.look == look).collect();
            let patterns: Vec<Pattern> = texts.iter().copied().filter_map(Pattern::read).collect();
            let set = RegexSet::new(patterns.iter().map(|pattern| pattern.form.as_str())).ok()?;
            let heads: Option<Vec<&str>> = texts.iter().map(|text| text.head.as_deref()).collect();
            let heads = heads.and_then(|heads| Regex::new(&heads.join("|")).ok());
            Some(Group { look, heads, set, patterns })
        })
        .collect()
});

impl Pattern {
    fn read(text: &PatternText) -> Option<Self> {
        // Only ASCII: these numbers and keys contain no other letters or digits. In a name `_` separates words as
        // well: "delete_ghp_...".
        let form = Regex::new(&text.form.replace(r"\b", r"(?-u:\b|_)").replace(r"\d", "[0-9]")).ok()?;
        Some(Self {
            form,
            look: text.look,
            tells: match (&text.sign, &text.class) {
                (Some(sign), Some(class)) => Some((Sign::from_word(sign)?, class.parse().ok()?)),
                (None, None) => None,
                _ => return None,
            },
            check: text.check,
            near: text.near.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect(),
            fewest: text.fewest,
            secret: text.secret,
        })
    }
}

/// Maximum number of matches of one pattern that are looked at.
const MOST_MATCHES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_of_the_data_reads() {
        let document: Document = toml::from_str(include_str!("../data/patterns.toml")).unwrap();
        assert_eq!(GROUPS.iter().map(|group| group.patterns.len()).sum::<usize>(), document.patterns.len());
    }

    #[test]
    fn whatever_a_pattern_matches_has_a_head_of_its_group() {
        use proptest::strategy::{Strategy, ValueTree};
        let document: Document = toml::from_str(include_str!("../data/patterns.toml")).unwrap();
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let mut tried = 0;
        for pattern in document.patterns.iter().filter(|pattern| pattern.head.is_some()) {
            let group = GROUPS.iter().find(|group| group.look == pattern.look).unwrap();
            assert!(group.heads.is_some());
            let texts =
                proptest::string::string_regex(&pattern.form.replace(r"\b", "").replace(r"\d", "[0-9]")).unwrap();
            for _ in 0..200 {
                let text = texts.new_tree(&mut runner).unwrap().current();
                assert!(group.may_match(&text), "{}: {text}", pattern.form);
                tried += 1;
            }
        }
        assert!(tried >= 2800);
    }
}
