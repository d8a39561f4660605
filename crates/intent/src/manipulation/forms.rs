//! The phrase forms of manipulation, as the data file defines them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::table::{WordSet, Words};
use serde::Deserialize;

use crate::sign::Sign;

/// A word or phrase.
pub(super) type Item = Vec<String>;

pub(super) enum Part {
    OneOf(Vec<Item>),
    Any(Vec<Item>),
    Gap(usize),
    End,
}

pub(super) struct Form {
    pub sign: Sign,
    pub parts: Vec<Part>,
}

/// For each first letter, the word lengths that occur, one bit each.
struct Shapes([u32; 256]);

impl Default for Shapes {
    fn default() -> Self {
        Self([0; 256])
    }
}

impl Shapes {
    fn add(&mut self, word: &str) {
        let (first, bit) = Self::place(word.as_bytes());
        if let Some(lengths) = self.0.get_mut(first) {
            *lengths |= bit;
        }
    }

    fn fits(&self, word: &[u8]) -> bool {
        let (first, bit) = Self::place(word);
        self.0.get(first).is_some_and(|lengths| lengths & bit != 0)
    }

    fn place(word: &[u8]) -> (usize, u32) {
        let first = word.first().map_or(0, u8::to_ascii_lowercase);
        (usize::from(first), 1 << word.len().min(31))
    }
}

#[derive(Default)]
pub(super) struct Patterns {
    classes: BTreeMap<String, Vec<Item>>,
    pub forms: Vec<Form>,
    /// The forms that can start with a word.
    pub starts: Words<Vec<usize>>,
    /// First letters and lengths of those words, which rule out most words.
    shapes: Shapes,
    /// The words of all classes.
    pub words: WordSet,
}

impl Patterns {
    pub(super) fn class(&self, name: &str) -> &[Item] {
        self.classes.get(name).map_or(&[], Vec::as_slice)
    }

    pub(super) fn begins(&self, word: &str) -> bool {
        self.shapes.fits(word.as_bytes()) && self.starts.contains_key(word)
    }

    /// Returns whether any word of a text may start a form; ordinary sentences have none.
    pub(super) fn may_begin_in(&self, text: &str) -> bool {
        text.as_bytes()
            .split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'\'')
            .filter(|word| self.shapes.fits(word))
            .any(|word| {
                let mut lower = [0; LONGEST_START];
                let Some(lower) = lower.get_mut(..word.len()) else { return true };
                lower.copy_from_slice(word);
                lower.make_ascii_lowercase();
                std::str::from_utf8(lower).is_ok_and(|word| self.starts.contains_key(word))
            })
    }

    fn of(document: &Document) -> Self {
        let mut patterns = Self::default();
        for (name, words) in &document.classes {
            let items: Vec<Item> = words.split_whitespace().map(item).collect();
            patterns.words.extend(items.iter().flatten().cloned());
            patterns.classes.insert(name.clone(), items);
        }
        for group in &document.patterns {
            let Some(sign) = Sign::from_word(&group.sign) else { continue };
            for form in &group.forms {
                let parts: Vec<Part> = form.split_whitespace().map(|part| patterns.part(part)).collect();
                let index = patterns.forms.len();
                if let Some(Part::OneOf(items)) = parts.first() {
                    for first in items.iter().filter_map(|item| item.first()) {
                        patterns.shapes.add(first);
                        let forms = patterns.starts.entry(first.clone()).or_default();
                        if forms.last() != Some(&index) {
                            forms.push(index);
                        }
                    }
                }
                patterns.forms.push(Form { sign, parts });
            }
        }
        patterns
    }

    fn part(&self, text: &str) -> Part {
        if text == "$" {
            return Part::End;
        }
        if let Some(most) = text.strip_prefix('~') {
            return Part::Gap(most.parse().unwrap_or(1));
        }
        let (names, any) = text.strip_suffix('*').map_or((text, false), |names| (names, true));
        let mut items: Vec<Item> = Vec::new();
        for name in names.split('|') {
            match name.strip_prefix('@') {
                Some(class) => items.extend(self.class(class).iter().cloned()),
                None => items.push(item(name)),
            }
        }
        // The longest first: "find out" before "find".
        items.sort_by_key(|item| std::cmp::Reverse(item.len()));
        if any { Part::Any(items) } else { Part::OneOf(items) }
    }
}

/// Longer words are always looked up.
const LONGEST_START: usize = 32;

fn item(text: &str) -> Item {
    text.split('_').map(str::to_owned).collect()
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    classes: BTreeMap<String, String>,
    patterns: Vec<Group>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    sign: String,
    forms: Vec<String>,
}

// A test ensures that the file parses.
pub(super) static PATTERNS: LazyLock<Patterns> =
    LazyLock::new(|| Patterns::of(&toml::from_str(include_str!("../data/manipulation.toml")).unwrap_or_default()));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patterns_read_and_each_begins_with_words() {
        assert!(PATTERNS.forms.len() > 50);
        let document: Document = toml::from_str(include_str!("../data/manipulation.toml")).unwrap();
        for group in &document.patterns {
            for form in &group.forms {
                for name in form.split([' ', '|', '*']).filter_map(|part| part.strip_prefix('@')) {
                    assert!(document.classes.contains_key(name), "{form}: no class {name}");
                }
                assert!(!form.starts_with('~'), "{form}");
            }
        }
        assert!(
            PATTERNS
                .forms
                .iter()
                .all(|form| matches!(form.parts.first(), Some(Part::OneOf(items)) if !items.is_empty()))
        );
    }
}
