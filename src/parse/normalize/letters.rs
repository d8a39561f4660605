//! Styles of letters and marks on them.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Latin letters in a style made for formulas, signs or wide print, which folding makes plain.
pub(super) const fn is_styled(c: char) -> bool {
    matches!(c,
        '\u{249c}'..='\u{24e9}' | '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}'
        | '\u{1d400}'..='\u{1d6a5}' | '\u{1f110}'..='\u{1f149}')
}

/// A mark that joins the letter before it and that folding has found no letter for.
pub(super) fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

/// The text with the marks gone from every Latin word that has one which belongs to no letter.
pub(super) fn unmarked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for chunk in text.split_inclusive(char::is_whitespace) {
        let is_latin = chunk.chars().any(|c| c.is_ascii_alphabetic());
        if is_latin && chunk.chars().any(is_mark) {
            out.extend(chunk.nfd().filter(|&c| !is_combining_mark(c)));
        } else {
            out.push_str(chunk);
        }
    }
    out
}

/// The word without accents, if it has any.
pub(super) fn unaccented(word: &str) -> Option<String> {
    if word.is_ascii() {
        return None;
    }
    let plain: String = word.nfd().filter(|&c| !is_combining_mark(c)).map(super::confusable::unstroked).collect();
    plain.is_ascii().then_some(plain)
}
