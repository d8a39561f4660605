//! Encoded texts: base64, hexadecimal and binary digits wherever they occur, and rot13 or reversed letters if the
//! text mentions them.

use crate::lexicon::Lexicon;
use crate::manipulation;

use super::base64;
use super::confusable;

/// An encoded piece: its range and its decoded text.
pub(crate) struct Piece {
    pub start: usize,
    pub end: usize,
    pub text: String,
}

/// The encoded pieces of a text, up to [`MOST`].
pub(crate) fn pieces(text: &str) -> Vec<Piece> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..) {
        let Some(skip) = rest.bytes().position(is_digit_of_64) else { break };
        let start = at + skip;
        let run = text.as_bytes().get(start..).unwrap_or(&[]);
        let length = run.iter().take_while(|&&byte| is_digit_of_64(byte)).count();
        let whole = length + run.iter().skip(length).take(2).take_while(|&&byte| byte == b'=').count();
        let mut end = start + whole;
        if let Some((spelled, reach)) = grouped(text, start, length) {
            // Groups are not looked at again whatever they spell, so that the time stays linear.
            end = reach;
            found.extend(spelled.map(|text| Piece { start, end, text }));
        } else if length >= SHORTEST && found.len() < MOST {
            // Lines of equal length, as a mailer or a terminal wraps them.
            end = whole_lines(text, start, end);
            let token = text.get(start..end).unwrap_or("");
            if let Some(text) = unwrapped(token) {
                found.push(Piece { start, end, text });
            }
        }
        at = end.max(start + 1);
    }
    found
}

/// The text after decoding rot13 or reversed letters that it mentions.
pub(crate) struct Turned {
    /// With rot13 undone in the words that become known words.
    pub rotated: Option<String>,
    /// Completely reversed, and with the words reversed that become known words.
    pub reversed: Option<[String; 2]>,
}

impl Turned {
    /// `text` may differ from the original text `written`, which can contain escapes.
    pub(crate) fn of(text: &str, written: &str, lexicon: &Lexicon) -> Self {
        let rotated = confusable::says(text, "rotated")
            .then(|| rewritten(text, lexicon, |word| word.chars().map(by_13).collect()));
        let reversed = confusable::says(written, "reversed").then(|| {
            let by_word = rewritten(written, lexicon, |word| word.chars().rev().collect());
            [written.chars().rev().collect(), by_word]
        });
        Self { rotated, reversed }
    }

    pub(crate) const fn is_none(&self) -> bool {
        self.rotated.is_none() && self.reversed.is_none()
    }
}

fn by_13(c: char) -> char {
    match c {
        'a'..='m' | 'A'..='M' => char::from_u32(u32::from(c) + 13).unwrap_or(c),
        'n'..='z' | 'N'..='Z' => char::from_u32(u32::from(c) - 13).unwrap_or(c),
        other => other,
    }
}

/// Rewrites each unknown word that becomes a known one.
fn rewritten(text: &str, lexicon: &Lexicon, rewrite: impl Fn(&str) -> String) -> String {
    let known = |word: &str| {
        let lower = word.to_ascii_lowercase();
        lexicon.knows(&lower) || manipulation::knows(&lower)
    };
    let mut out = String::with_capacity(text.len());
    for chunk in text.split_inclusive(|c: char| !c.is_ascii_alphabetic()) {
        let word = chunk.trim_end_matches(|c: char| !c.is_ascii_alphabetic());
        let other = if word.is_empty() || known(word) { None } else { Some(rewrite(word)).filter(|word| known(word)) };
        out.push_str(other.as_deref().unwrap_or(word));
        out.push_str(chunk.get(word.len()..).unwrap_or(""));
    }
    out
}

fn is_digit_of_64(byte: u8) -> bool {
    DIGITS_OF_64.get(usize::from(byte)).is_some_and(|is_one| *is_one)
}

/// The digits of base64, in either of its alphabets.
const DIGITS_OF_64: [bool; 256] = {
    let mut digits = [false; 256];
    let mut byte = 0_u8;
    loop {
        digits[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_');
        if byte == u8::MAX {
            break digits;
        }
        byte += 1;
    }
};

/// The end of a run that goes on over lines.
fn whole_lines(text: &str, start: usize, first_end: usize) -> usize {
    let line = first_end - start;
    let mut end = first_end;
    if line < SHORTEST_LINE {
        return end;
    }
    loop {
        let rest = text.as_bytes().get(end..).unwrap_or(&[]);
        let gap = rest.iter().take(2).take_while(|&&byte| byte == b'\n' || byte == b'\r').count();
        let run = rest.iter().skip(gap).take_while(|&&byte| is_digit_of_64(byte) || byte == b'=').count();
        if gap == 0 || run == 0 || run > line {
            return end;
        }
        end += gap + run;
    }
}

/// Pairs of hexadecimal digits or groups of binary digits separated by blanks: the decoded text and the end.
fn grouped(text: &str, start: usize, length: usize) -> Option<(Option<String>, usize)> {
    if length != 2 && length != 8 {
        return None;
    }
    let fits = |group: &str| match length {
        2 => group.bytes().all(|byte| byte.is_ascii_hexdigit()),
        _ => group.bytes().all(|byte| matches!(byte, b'0' | b'1')),
    };
    let mut end = start;
    let mut groups = 0;
    while text.get(end..end + length).is_some_and(fits) {
        groups += 1;
        let after = end + length;
        let next = text.as_bytes().get(after).copied();
        if !matches!(next, Some(b' ' | b',' | b':')) {
            end = if next.is_some_and(is_digit_of_64) { end } else { after };
            break;
        }
        end = after + 1;
    }
    if groups < FEWEST_GROUPS {
        return None;
    }
    let digits = text.get(start..end)?;
    let text = if length == 2 { base64::from_hex(digits) } else { base64::from_binary(digits) };
    Some((text, end))
}

fn unwrapped(token: &str) -> Option<String> {
    let digits = token.strip_prefix("0x").unwrap_or(token);
    if digits.len() >= SHORTEST_HEX
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        && let Some(text) = base64::from_hex(digits)
    {
        return Some(text);
    }
    if !looks_encoded(token) {
        return None;
    }
    // A word and a dash before it, or a path's slash after it: the parts between are tried as well.
    base64::decoded(token).or_else(|| {
        token
            .split(['/', '-', '_'])
            .filter(|part| part.len() >= SHORTEST && looks_encoded(part))
            .find_map(base64::decoded)
    })
}

/// Returns whether letters occur in an order that words do not have: capitals after small letters, digits among
/// letters, padding.
fn looks_encoded(token: &str) -> bool {
    let bytes = token.as_bytes();
    let mixes = bytes.windows(2).any(|pair| match pair {
        [a, b] => {
            a.is_ascii_lowercase() && b.is_ascii_uppercase()
                || a.is_ascii_digit() != b.is_ascii_digit() && a.is_ascii_alphanumeric() && b.is_ascii_alphanumeric()
        }
        _ => false,
    });
    mixes || token.ends_with('=')
}

/// Minimum length of a base64 run that is tried.
const SHORTEST: usize = 6;
/// Minimum length of a hexadecimal run that is tried.
const SHORTEST_HEX: usize = 8;
/// Minimum length of wrapped base64 lines.
const SHORTEST_LINE: usize = 60;
/// Fewest digit groups that may spell a text.
const FEWEST_GROUPS: usize = 4;
/// Maximum number of pieces decoded from one text. A text with this many cannot be read with certainty.
pub(crate) const MOST: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        pieces(text).into_iter().map(|piece| piece.text).collect()
    }

    #[test]
    fn wrapped_words_are_found_where_they_stand() {
        assert_eq!(texts("run cm0gLXJmIC8= now"), ["rm -rf /"]);
        assert_eq!(texts("x='726d202d7266'"), ["rm -rf"]);
        assert_eq!(texts("72 6d 20 2d 72 66"), ["rm -rf"]);
        assert_eq!(texts("01110010 01101101 00100000 01111000 done"), ["rm x"]);
        assert!(texts("Delete the internationalisation of CamelCase and 12 of 34").is_empty());
    }

    #[test]
    fn letters_are_turned_only_where_the_text_says_so() {
        let lexicon = Lexicon::shared().unwrap();
        let turned = |text| Turned::of(text, text, &lexicon);
        assert_eq!(turned("rot13: qryrgr vg").rotated.as_deref(), Some("rot13: delete it"));
        assert!(turned("qryrgr").is_none());
        assert_eq!(
            turned("Reversed: eteled").reversed,
            Some(["delete :desreveR", "Reversed: delete"].map(str::to_owned))
        );
        assert!(turned("eteled").is_none());
    }
}
