//! The patterns of sensitive data. One pass finds those that a text matches; only these are tried and recorded.

use std::sync::LazyLock;

use regex::Regex;
use regex::bytes::{RegexSet, RegexSetBuilder};
use serde::Deserialize;

use super::Contents;
use super::checks::{self, Check};
use crate::sign::Sign;
use rulekeep_types::Classification;

/// Compiles the patterns if that has not happened yet, so that no request has to wait for it.
pub(crate) fn prepare() {
    LazyLock::force(&PATTERNS);
}

/// Records what the patterns find in a text.
pub(super) fn scan(text: &str, contents: &mut Contents) {
    for index in &PATTERNS.set.matches(text.as_bytes()) {
        if let Some(pattern) = PATTERNS.all.get(index) {
            pattern.scan(text, contents);
        }
    }
}

impl Pattern {
    fn scan(&self, text: &str, contents: &mut Contents) {
        if !self.near.is_empty() {
            let lower = text.to_ascii_lowercase();
            // "hotel" is no "tel".
            let begins = |at: usize| !lower.get(..at).is_some_and(|before| before.ends_with(char::is_alphanumeric));
            if !self.near.iter().any(|word| lower.match_indices(word.as_str()).any(|(at, _)| begins(at))) {
                return;
            }
        }
        let mut seen: Vec<&str> = Vec::new();
        for found in self.form.captures_iter(text).take(MOST_MATCHES) {
            let Some(value) = found.get(1).or_else(|| found.get(0)) else { continue };
            let part_of_more = self.number && goes_on(text, value.start(), value.end());
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
    /// Whether a match within a longer number does not count.
    number: bool,
    /// The sign and class that a match stands for; `None` for a pattern that only hides its value.
    tells: Option<(Sign, Classification)>,
    check: Option<Check>,
    near: Vec<String>,
    fewest: usize,
    secret: bool,
}

/// The patterns, and a set that finds in one pass those that a text matches.
struct Patterns {
    set: RegexSet,
    all: Vec<Pattern>,
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
    #[serde(default)]
    number: bool,
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
static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| {
    let document: Document = toml::from_str(include_str!("../data/patterns.toml")).unwrap_or_default();
    let all: Vec<Pattern> = document.patterns.iter().filter_map(Pattern::read).collect();
    let forms = all.iter().map(|pattern| pattern.form.as_str());
    let set = RegexSetBuilder::new(forms).unicode(false).size_limit(MOST_BYTES).dfa_size_limit(MOST_STATES).build();
    Patterns { set: set.unwrap_or_else(|_| RegexSet::empty()), all }
});

impl Pattern {
    fn read(text: &PatternText) -> Option<Self> {
        // Only ASCII: these numbers and keys contain no other letters or digits. In a name `_` separates words as
        // well: "delete_ghp_...".
        let form = Regex::new(&text.form.replace(r"\b", r"(?-u:\b|_)").replace(r"\d", "[0-9]")).ok()?;
        Some(Self {
            form,
            number: text.number,
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

/// Maximum size of the states that a thread keeps, in bytes: with the usual 2 MiB they are built again and again.
const MOST_STATES: usize = 8 << 20;
/// Maximum size of the set, in bytes.
const MOST_BYTES: usize = 64 << 20;
/// Maximum number of matches of one pattern that are looked at.
const MOST_MATCHES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_of_the_data_reads() {
        let document: Document = toml::from_str(include_str!("../data/patterns.toml")).unwrap();
        assert_eq!(PATTERNS.all.len(), document.patterns.len());
        assert_eq!(PATTERNS.set.len(), document.patterns.len());
    }

    #[test]
    fn the_set_finds_what_each_pattern_matches() {
        use proptest::strategy::{Strategy, ValueTree};
        let document: Document = toml::from_str(include_str!("../data/patterns.toml")).unwrap();
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let mut tried = 0;
        for (index, (text, pattern)) in document.patterns.iter().zip(&PATTERNS.all).enumerate() {
            let form = text.form.replace(r"\b", "").replace(r"\d", "[0-9]");
            let Ok(texts) = proptest::string::string_regex(&form) else { continue };
            for _ in 0..50 {
                let text = texts.new_tree(&mut runner).unwrap().current();
                if !text.is_ascii() {
                    // Texts are folded before, as far as they look like plain letters.
                    continue;
                }
                let is_found = PATTERNS.set.matches(text.as_bytes()).matched(index);
                assert!(is_found || !pattern.form.is_match(&text), "{form}: {text}");
                tried += 1;
            }
        }
        assert!(tried >= 1000, "{tried}");
    }

    #[test]
    fn a_key_is_found_whole_behind_its_headers() {
        let key =
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEabc+/=\n-----END RSA PRIVATE KEY-----";
        for text in [key.to_owned(), key.replace('\n', "\\n")] {
            assert!(super::super::secrets_of(&text).iter().any(|found| found.contains("MIIEabc+/=")), "{text}");
        }
    }
}
