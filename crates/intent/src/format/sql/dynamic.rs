//! SQL that a statement runs from strings: with `EXEC`, `DO` or `PREPARE`.

use super::known::words;
use super::lex::{Kind, Token};

/// The strings of a text that runs some of its strings, with those concatenated by `+` or `||` joined. It is unknown
/// which of them runs, so all that could be SQL count.
pub(super) fn strings(text: &str, lower: &str, tokens: &[Token]) -> Vec<String> {
    let runs = tokens.iter().enumerate().any(|(place, token)| {
        token.kind == Kind::Word
            && lower.get(token.start..token.end).is_some_and(|word| words().run_strings.has(word))
            && !tokens.get(place + 1).is_some_and(|next| next.kind == Kind::Symbol)
    });
    if !runs {
        return Vec::new();
    }
    let mut found: Vec<String> = Vec::new();
    let mut joins = false;
    for token in tokens {
        let said = text.get(token.start..token.end).unwrap_or("");
        match token.kind {
            Kind::Text => match found.last_mut().filter(|_| joins) {
                Some(before) => before.push_str(&said.replace("''", "'")),
                None => found.push(said.replace("''", "'")),
            },
            Kind::Symbol if matches!(said, "+" | "||") => {
                joins = true;
                continue;
            }
            // `CONCAT('DR', 'OP TABLE x')`, `'...' + @name + '...'`
            Kind::Word | Kind::Name if joins => continue,
            _ => {}
        }
        joins = false;
    }
    found.retain(|said| says_sql(said));
    found
}

fn says_sql(text: &str) -> bool {
    let word = text.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or("");
    word.len() < text.trim().len() && words().openers.has(&word.to_ascii_lowercase())
}
