//! SQL in an English sentence.

use super::known::words;
use super::opening;
use crate::table::List;

/// The SQL in a text that asks for it to be run.
pub(super) fn find(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    if !may_hold_sql(bytes) {
        return None;
    }
    let mut looked = 0;
    let mut at = 0;
    while at < bytes.len() && looked < MOST_LOOKED {
        let is_start = bytes.get(at).is_some_and(u8::is_ascii_alphabetic)
            && at
                .checked_sub(1)
                .and_then(|before| bytes.get(before))
                .is_none_or(|before| !before.is_ascii_alphanumeric() && *before != b'_');
        let end = at + bytes.iter().skip(at).take_while(|byte| byte.is_ascii_alphabetic()).count();
        if !is_start || end == at {
            at += 1;
            continue;
        }
        let word = text.get(at..end).unwrap_or("");
        if word.len() <= LONGEST_OPENER && words().openers.has(&word.to_ascii_lowercase()) {
            looked += 1;
            if let Some(found) = statement(text, at) {
                return Some(found);
            }
        }
        at = end;
    }
    None
}

/// Returns whether a text contains a sign of a statement besides words: a mark, a quotation, two capitals in a row,
/// or the word.
fn may_hold_sql(bytes: &[u8]) -> bool {
    bytes.iter().any(|byte| matches!(byte, b';' | b'=' | b'*' | b'(' | b'`' | b'"' | b'\'' | b':'))
        || bytes.windows(2).any(|pair| pair.iter().all(u8::is_ascii_uppercase))
        || bytes.windows(3).any(|three| three.eq_ignore_ascii_case(b"sql"))
}

/// The statement that starts at a place.
fn statement(text: &str, at: usize) -> Option<&str> {
    let rest = text.get(at..)?;
    let before = text.get(..at)?;
    let quote = before.chars().next_back().filter(|c| matches!(c, '\'' | '"' | '`'));
    let near = (0..=at.saturating_sub(LONGEST_LEAD)).rev().find(|&start| text.is_char_boundary(start)).unwrap_or(0);
    let before = text.get(near..at)?;
    let sentence = before.rsplit(['.', '?', '!', ';', '\n']).next().unwrap_or("").to_ascii_lowercase();
    let asked = says(&sentence, &words().runs);
    if says(&sentence, &words().about) && !asked {
        return None;
    }
    if let Some(quote) = quote {
        let inside = rest.split(quote).next().unwrap_or(rest);
        // A quote of the same kind inside ends it early: `"GRANT ... TO "bob""` is then read to the end.
        let whole = opening::is_sql(inside) || opening::begins_sql(inside);
        return (asked && whole).then_some(if quote == '\'' { rest } else { inside });
    }
    let introduced = sentence.trim_end().ends_with(':') || asked && sentence.trim_end().ends_with("sql");
    if introduced {
        let one = rest.trim_end().trim_end_matches(['.', '!']);
        if opening::is_sql(one) {
            return Some(one);
        }
    }
    opening::begins_sql(rest).then_some(rest)
}

/// Returns whether a sentence contains a word or phrase of a list, in which `_` stands for a blank.
fn says(sentence: &str, list: &List) -> bool {
    list.iter().any(|phrase| {
        let phrase = phrase.trim_end_matches('_').replace('_', " ");
        sentence.match_indices(&phrase).any(|(at, _)| {
            let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
            edge(sentence.get(..at).and_then(|before| before.chars().next_back()))
                && edge(sentence.get(at + phrase.len()..).and_then(|after| after.chars().next()))
        })
    })
}

/// Number of bytes before a statement in which words that ask for it or mention it are searched.
const LONGEST_LEAD: usize = 200;
/// Maximum number of words tried as the start of a statement.
const MOST_LOOKED: usize = 32;
/// Maximum length of a word that starts a statement.
const LONGEST_OPENER: usize = 12;
