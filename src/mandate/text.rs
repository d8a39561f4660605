//! The normal forms in which values are compared. Two values are equal only if their normal forms are.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization as _;

use crate::model::is_invisible;

/// Returns a text in Unicode form NFKC and lower case, without invisible characters.
pub(super) fn folded(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase() && !is_invisible(char::from(byte))) {
        return Cow::Borrowed(text);
    }
    if text.is_ascii() {
        // The same result for ASCII, many times faster.
        let mut lower = text.to_ascii_lowercase();
        lower.retain(|c| !is_invisible(c));
        return lower.into();
    }
    text.nfkc().filter(|c| !is_invisible(*c)).flat_map(char::to_lowercase).collect::<String>().into()
}

/// The words of a folded text: its runs of letters and digits.
pub(super) fn words(folded: &str) -> impl Iterator<Item = &str> {
    folded.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// The words of a text, separated and enclosed by single blanks; one blank for a text without words.
pub(super) fn phrase(text: &str) -> String {
    let folded = folded(text);
    let mut phrase = String::with_capacity(folded.len() + 2);
    phrase.push(' ');
    for word in words(&folded) {
        phrase.push_str(word);
        phrase.push(' ');
    }
    phrase
}

/// Only the letters and digits of a text, so that account and phone numbers compare equal however they are grouped.
pub(super) fn squeezed(text: &str) -> String {
    folded(text).chars().filter(|c| c.is_alphanumeric()).collect()
}

/// Returns a text without blanks in normal form: without surrounding punctuation, a display name before an address,
/// the scheme of a web address, and a trailing slash.
pub(super) fn atom(text: &str) -> String {
    let text = text.trim();
    let folded = folded(shown_address(text).unwrap_or(text));
    // A wildcard is part of the value.
    let marks = |c: char| !c.is_alphanumeric() && !matches!(c, '/' | '~' | '_' | '+' | '.' | '\\' | '*' | '%');
    let bare = folded.trim_matches(marks).trim_end_matches('.');
    let bare = bare.strip_prefix("mailto:").unwrap_or(bare);
    let bare = bare.strip_prefix("https://").or_else(|| bare.strip_prefix("http://")).unwrap_or(bare);
    if bare.len() > 1 { bare.trim_end_matches('/').to_owned() } else { bare.to_owned() }
}

/// Returns the address after a display name, `Ann <ann@example.com>`; `None` if there is more than one address.
fn shown_address(text: &str) -> Option<&str> {
    let (name, address) = text.strip_suffix('>')?.split_once('<')?;
    let is_name = name.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '.' | '-' | '\'' | '"'));
    let is_one = address.matches('@').count() == 1
        && !address.contains(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | ',' | ';'));
    (is_name && is_one).then_some(address)
}

/// Returns a number in plain decimal form: `1,250.50`, `$1250.5` and `1250.50 EUR` are the same. Returns `None` if
/// the text is not a number.
pub(super) fn number(text: &str) -> Option<String> {
    let bare = text.trim().trim_matches(|c: char| !c.is_ascii_digit() && c != '-').trim_end_matches('-');
    let is_number = !bare.is_empty()
        && bare.len() <= LONGEST_NUMBER
        && bare.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | '\''))
        && !bare.trim_start_matches('-').contains('-');
    // Text around a number must be a currency; any other letter makes it a name.
    let rest = text.trim().replacen(bare, "", 1);
    let rest = rest.trim();
    let is_currency = rest.chars().all(|c| matches!(c, '$' | '€' | '£' | '¥' | '.' | ',' | ' ' | '#' | ':'))
        || rest.len() == 3 && rest.bytes().all(|byte| byte.is_ascii_alphabetic()) && text.contains(' ');
    if !is_number || !is_currency {
        return None;
    }
    // A comma followed by three digits groups thousands; a single one followed by one or two is a decimal point.
    let plain: String = match bare.rsplit_once(',') {
        Some((whole, part)) if !whole.contains(',') && !bare.contains('.') && part.len() <= 2 => {
            format!("{whole}.{part}")
        }
        _ => bare.chars().filter(|c| !matches!(c, ',' | '\'')).collect(),
    };
    plain.parse::<f64>().ok().filter(|value| value.is_finite()).map(decimal)
}

/// Formats a number as [`number`] does.
pub(super) fn decimal(value: f64) -> String {
    // Adding zero removes the sign of a negative zero.
    format!("{}", value + 0.0)
}

/// The kinds of values, by the form in which they are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A plain number.
    Number,
    /// An account or phone number: digits, possibly grouped, possibly with letters.
    Account,
    /// An address, a path or a token: one text without blanks that is more than a word.
    Atom,
    /// Words: a name, a title.
    Phrase,
}

/// Returns the shape of a value.
pub(super) fn shape(value: &str) -> Shape {
    let value = value.trim();
    let has_blank = value.contains(char::is_whitespace);
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let is_grouped = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '-' | '(' | ')' | '+' | '.');
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    if digits >= 8 && digits > letters && value.chars().all(is_grouped) && !is_date(value) {
        return Shape::Account;
    }
    if number(value).is_some() {
        return Shape::Number;
    }
    let bare = value.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '/' | '\\' | '~' | '_' | '*' | '%'));
    // Punctuation around a word does not make it a token: "@Bob" is Bob.
    if bare.is_empty() || bare.chars().all(char::is_alphabetic) {
        return Shape::Phrase;
    }
    let is_address = shown_address(value).is_some();
    let is_token = value.contains(['@', '/', '\\', '.', ':', '_', '#', '=', '*', '%']) || digits > 0 && letters > 0;
    if is_address || !has_blank && is_token { Shape::Atom } else { Shape::Phrase }
}

/// Returns whether a value is a date or a time of day in digits.
pub(super) fn is_date(value: &str) -> bool {
    let value = value.trim();
    let is_made = |c: char| c.is_ascii_digit() || matches!(c, '-' | ':' | '/' | ' ' | 'T' | 'Z' | '.' | '+');
    let parts: Vec<&str> = value.split(['-', ':', '/', ' ', 'T', '.']).filter(|part| !part.is_empty()).collect();
    (6..=35).contains(&value.len())
        && value.chars().all(is_made)
        && parts.len() >= 3
        && parts.iter().all(|part| part.len() <= 4 || part.ends_with('Z') || part.contains('+'))
}

/// Returns the normal form of a value. Two values are equal exactly if their normal forms are.
pub(super) fn normal_value(value: &str) -> String {
    match shape(value) {
        Shape::Number => number(value).unwrap_or_default(),
        Shape::Account => squeezed(value),
        Shape::Atom => atom(value),
        Shape::Phrase => phrase(value).trim().to_owned(),
    }
}

const LONGEST_NUMBER: usize = 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_the_same_however_it_is_written() {
        for (one, other) in [
            ("$1,250.50", "1250.5"),
            ("98,70", "98.70"),
            ("1250 EUR", "1250"),
            ("10,000", "10000"),
            ("DE89 3704 0044 0532 0130 00", "DE89370400440532013000"),
            ("+1 (555) 010-9988", "1-555-0109988"),
            ("Ann Lee <ann@example.com>", "ann@example.com"),
            ("https://www.Example.com/a/", "www.example.com/a"),
            ("Team  Meeting", "team meeting"),
            ("\u{ff41}nn@example.com", "ann@example.com"),
        ] {
            assert_eq!(normal_value(one), normal_value(other), "{one} {other}");
        }
    }

    #[test]
    fn ascii_folds_as_any_text_does() {
        for c in '\0'..='\x7f' {
            let text = format!("A{c}z");
            let slow: String = text.nfkc().filter(|c| !is_invisible(*c)).flat_map(char::to_lowercase).collect();
            assert_eq!(folded(&text), slow, "{c:?}");
        }
    }

    #[test]
    fn a_look_alike_is_another_value() {
        for (one, other) in [
            ("ann@example.com", "ann@examp1e.com"),
            ("ann@example.com", "\u{430}nn@example.com"),
            ("ann.lee@example.com", "ann-lee@example.com"),
            ("www.example.com", "www.example.com.evil.io"),
            ("example.com/a", "example.com/b"),
            ("DE89370400440532013000", "DE89370400440532013001"),
            ("100", "1000"),
        ] {
            assert_ne!(normal_value(one), normal_value(other), "{one} {other}");
        }
    }

    #[test]
    fn dates_and_names_are_no_numbers() {
        for text in ["2024-05-15", "v1.2.3", "12 monkeys", "10:30", "3x", "x3", "5EUR"] {
            assert_eq!(number(text), None, "{text}");
        }
        assert!(is_date("2024-05-15 10:00") && is_date("2024-05-15T10:00:00Z") && !is_date("2024"));
        assert_eq!(shape("2024-05-15 10:00:00"), Shape::Phrase);
    }
}
