//! Letter styles, and combining marks on letters.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Returns whether a Latin letter has a style for formulas, signs or wide print, which folding turns into a plain
/// letter.
pub(super) const fn is_styled(c: char) -> bool {
    matches!(c,
        '\u{249c}'..='\u{24e9}' | '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}'
        | '\u{1d400}'..='\u{1d6a5}' | '\u{1f110}'..='\u{1f149}')
}

/// Returns whether a character is a combining mark. Folding has merged those that form a letter.
pub(super) fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

/// Removes the combining marks from every Latin word with a mark that belongs to no letter.
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
