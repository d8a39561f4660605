//! The text as a person sees it: compatibility forms folded (NFKC), typographic quotes straightened, look-alike
//! letters of forged words rewritten in Latin, and invisible content removed, read separately and reported.
//!
//! `hidden` finds invisible characters, and `confusable` look-alikes. A text that can be read in more than one way is
//! not replaced but read a second time: `escapes`, `wrapped` and `respell` provide these other texts.

mod base64;
pub(super) mod confusable;
pub(super) mod escapes;
mod glance;
mod hidden;
mod letters;
pub(super) mod respell;
mod segment;
mod typos;
pub(super) mod wrapped;

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

use super::lexicon::Lexicon;
use super::sign::{Sign, Signs};

pub(crate) use wrapped::Turned;

/// A normalized text.
#[derive(Debug)]
pub(crate) struct Normalized<'a> {
    /// The text as a person sees it.
    pub text: Cow<'a, str>,
    /// Signs of what was hidden in the text.
    pub signs: Signs,
    /// Letters in a style that only looks like letters: suspicious if the words they spell are.
    pub styled: bool,
    /// Texts that no person sees.
    pub unseen: Vec<String>,
}

/// A name as a person sees it, in lower case: without invisible characters, each letter replaced by the Latin one
/// that it looks like. Two names with the same result look the same. Use it to refuse names, never to accept them.
pub fn seen_as(name: &str) -> String {
    let shown = hidden::strip(name).text;
    let letters = shown.nfkc().map(confusable::latin_of).flat_map(char::to_lowercase);
    letters.nfkc().map(confusable::latin_of).collect::<String>().trim().to_owned()
}

/// Folds the text and removes what is hidden in it.
pub(crate) fn normalize<'a>(text: &'a str, lexicon: &Lexicon) -> Normalized<'a> {
    if hidden::is_plain(text) {
        return Normalized { text: Cow::Borrowed(text), signs: Signs::default(), styled: false, unseen: Vec::new() };
    }
    let stripped = hidden::strip(text);
    let mut signs = Signs::default();
    if stripped.hides {
        signs.add(Sign::HiddenCharacters);
    }
    let mut styled = stripped.text.chars().any(letters::is_styled);
    // In JSON such a quote stands in a string, which a straight one would end.
    let is_json = text.trim_start().starts_with(['{', '[']);
    let straight = |c| straightened(c, if is_json { '\'' } else { '"' });
    let mut folded: String = stripped.text.nfkc().map(straight).collect();
    if folded.chars().any(letters::is_mark) {
        let before = folded.len();
        folded = letters::unmarked(&folded);
        styled |= folded.len() < before;
    }
    if let Some(unmixed) = confusable::unmixed(&folded, lexicon) {
        if unmixed.mixes {
            signs.add(Sign::MixedScripts);
        }
        styled |= unmixed.styled;
        folded = unmixed.text;
    }
    Normalized { text: Cow::Owned(folded), signs, styled, unseen: stripped.unseen }
}

const fn straightened(c: char, double: char) -> char {
    match c {
        '\u{2018}' | '\u{2019}' | '\u{201b}' | '\u{2032}' => '\'',
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' | '\u{ab}' | '\u{bb}' => double,
        '\u{2010}'..='\u{2013}' | '\u{2212}' => '-',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> (String, Signs) {
        let normalized = normalize(text, &Lexicon::shared().unwrap());
        (normalized.text.into_owned(), normalized.signs)
    }

    #[test]
    fn hidden_characters_are_taken_out_and_reported() {
        let (text, signs) = folded("del\u{200b}ete \u{202e}all");
        assert_eq!(text, "delete all");
        assert!(signs.has(Sign::HiddenCharacters));
    }

    #[test]
    fn full_width_letters_read_as_plain_ones() {
        let (text, signs) = folded("\u{ff44}\u{ff45}\u{ff4c}\u{ff45}\u{ff54}\u{ff45}");
        assert_eq!(text, "delete");
        assert!(!signs.has(Sign::HiddenCharacters));
    }

    #[test]
    fn a_word_of_two_scripts_is_reported() {
        assert!(folded("p\u{0430}ypal").1.has(Sign::MixedScripts));
        assert!(!folded("\u{043f}\u{0440}\u{0438}\u{0432}\u{0435}\u{0442} friend").1.has(Sign::MixedScripts));
    }

    #[test]
    fn a_plain_text_is_borrowed() {
        assert!(matches!(
            normalize("Delete it.\n", &Lexicon::default()),
            Normalized { text: Cow::Borrowed(_), styled: false, .. }
        ));
    }
}
