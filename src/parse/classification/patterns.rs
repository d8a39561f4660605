//! The patterns of sensitive data: which are worth trying on a text, and what they find.

use std::sync::LazyLock;

use regex::{Regex, RegexSet};
use serde::Deserialize;

use super::Contents;
use super::checks::{self, Check};
use crate::model::Classification;
use crate::parse::sign::Sign;

/// Notes what the patterns find in a text.
pub(super) fn scan(text: &str, contents: &mut Contents) {
    let looks = Looks::of(text);
    if looks == Looks::default() {
        return;
    }
    for group in GROUPS.iter().filter(|group| looks.has(group.look)) {
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
            let value = value.as_str();
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
            contents.note(self.sign, self.class, self.secret.then_some(value));
            if self.fewest > 1 {
                return;
            }
        }
    }
}

/// Whether digits go on beyond the match, with or without a separator: then it is a part of a longer number.
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

/// What a text has that makes a group of patterns worth trying: a bit a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Looks(u8);

impl Looks {
    /// One pass over the bytes: an ordinary sentence has none of them.
    fn of(text: &str) -> Self {
        let (mut digits, mut at_signs, mut password, mut token) = (0_usize, 0_usize, false, false);
        let mut run = Run::default();
        let bytes = text.as_bytes();
        for (place, &byte) in bytes.iter().enumerate() {
            match byte {
                0..=b' ' => {
                    token |= run.may_hold_key();
                    run = Run::default();
                    continue;
                }
                b'0'..=b'9' => {
                    digits += 1;
                    run.odd += 1;
                }
                b'A'..=b'Z' | b'_' | b'=' => run.odd += 1,
                b'@' => {
                    at_signs += 1;
                    run.at_sign = true;
                }
                b':' => run.colon = true,
                b'-' => run.dashes += 1,
                _ => {}
            }
            run.length += 1;
            if byte | 0x20 == b'p' {
                let next = bytes.get(place + 1..place + 4).unwrap_or(&[]);
                password |= next.eq_ignore_ascii_case(b"ass")
                    || next.get(..2).is_some_and(|next| next.eq_ignore_ascii_case(b"wd"));
            }
        }
        let mut looks = Self::default();
        looks.add(Look::Digits, digits >= FEWEST_DIGITS);
        looks.add(Look::Token, token || run.may_hold_key());
        looks.add(Look::Password, password);
        looks.add(Look::Address, at_signs >= FEWEST_ADDRESSES);
        looks
    }

    fn add(&mut self, look: Look, there: bool) {
        self.0 |= u8::from(there) << look as u8;
    }

    const fn has(self, look: Look) -> bool {
        self.0 & 1 << look as u8 != 0
    }
}

/// What a run without blanks is made of.
#[derive(Default)]
struct Run {
    length: usize,
    /// Digits, capitals and the like, which keys have and words have not.
    odd: usize,
    dashes: usize,
    colon: bool,
    at_sign: bool,
}

impl Run {
    /// A key, a connection string with a password in it, or the first line of a key's block.
    const fn may_hold_key(&self) -> bool {
        self.length >= SHORTEST_TOKEN && self.odd + self.dashes > 0
            || self.colon && self.at_sign
            || self.dashes >= DASHES_OF_A_BLOCK
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Look {
    Digits,
    Token,
    Password,
    Address,
}

struct Pattern {
    form: Regex,
    look: Look,
    sign: Sign,
    class: Classification,
    check: Option<Check>,
    near: Vec<String>,
    fewest: usize,
    secret: bool,
}

/// Patterns that are tried on the same texts.
struct Group {
    look: Look,
    set: RegexSet,
    patterns: Vec<Pattern>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    patterns: Vec<PatternText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PatternText {
    sign: String,
    class: String,
    look: Look,
    form: String,
    check: Option<Check>,
    #[serde(default)]
    near: String,
    #[serde(default)]
    fewest: usize,
    #[serde(default)]
    secret: bool,
}

// A test rules out that the file does not read or that a pattern is left out.
static GROUPS: LazyLock<Vec<Group>> = LazyLock::new(|| {
    let document: Document = toml::from_str(include_str!("../data/patterns.toml")).unwrap_or_default();
    [Look::Digits, Look::Token, Look::Password, Look::Address]
        .into_iter()
        .filter_map(|look| {
            let patterns: Vec<Pattern> =
                document.patterns.iter().filter(|text| text.look == look).filter_map(Pattern::read).collect();
            let set = RegexSet::new(patterns.iter().map(|pattern| pattern.form.as_str())).ok()?;
            Some(Group { look, set, patterns })
        })
        .collect()
});

impl Pattern {
    fn read(text: &PatternText) -> Option<Self> {
        // Of ASCII letters and digits alone: that is what these numbers and keys are made of.
        let form = Regex::new(&text.form.replace(r"\b", r"(?-u:\b)").replace(r"\d", "[0-9]")).ok()?;
        Some(Self {
            form,
            look: text.look,
            sign: Sign::from_word(&text.sign)?,
            class: text.class.parse().ok()?,
            check: text.check,
            near: text.near.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect(),
            fewest: text.fewest,
            secret: text.secret,
        })
    }
}

/// Fewest digits of a text that a number of any kind can stand in.
const FEWEST_DIGITS: usize = 6;
/// Shortest run without blanks that a key can be.
const SHORTEST_TOKEN: usize = 16;
/// Dashes before and after the name of a block.
const DASHES_OF_A_BLOCK: usize = 5;
/// As many addresses are a list.
const FEWEST_ADDRESSES: usize = 5;
/// Most matches of one pattern that are looked at.
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
    fn an_ordinary_sentence_is_not_looked_into() {
        assert_eq!(Looks::of("Send the report of May 2024 to Bob before noon, please"), Looks::default());
    }
}
