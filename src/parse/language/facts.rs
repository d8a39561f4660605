//! Amounts, counts and targets that a sentence names.

use crate::model::Resource;
use crate::parse::lexicon::Lexicon;
use crate::parse::reading::Facts;

use super::token::{Kind, Token};

/// Notes what the tokens name.
pub(super) fn gather(tokens: &[Token<'_>], lexicon: &Lexicon, facts: &mut Facts) {
    for (index, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Number(value) => number(tokens, index, value, lexicon, facts),
            Kind::Email | Kind::Path | Kind::Url => facts.note_target(token.text),
            _ => {}
        }
    }
}

fn number(tokens: &[Token<'_>], index: usize, value: f64, lexicon: &Lexicon, facts: &mut Facts) {
    let Some(token) = tokens.get(index) else { return };
    let next = tokens.get(index + 1);
    let symbol = token.text.chars().next().and_then(|c| match c {
        '$' => Some("USD"),
        '€' => Some("EUR"),
        '£' => Some("GBP"),
        _ => None,
    });
    // "20 000 EUR", "1.5 million dollars".
    let (mut value, mut next) = (value, next);
    let mut place = index + 1;
    while let Some(more) = next {
        let grouped = matches!(more.kind, Kind::Number(_))
            && more.text.len() == 3
            && more.text.bytes().all(|b| b.is_ascii_digit());
        let factor = match more.word {
            "thousand" | "grand" | "k" => 1e3,
            "million" | "mio" => 1e6,
            "billion" => 1e9,
            _ if grouped && value < 1e9 => 1e3,
            _ => break,
        };
        value *= factor;
        place += 1;
        next = tokens.get(place);
    }
    let word = next.and_then(|next| currency(next.word));
    if let Some((code, factor)) = symbol.map(|code| (code, 1.0)).or(word) {
        facts.note_amount(value * factor, Some(code).filter(|code| !code.is_empty()));
        return;
    }
    let counts = tokens.get(index + 1..).unwrap_or(&[]).iter().take(2).any(|near| {
        near.entry.noun.is_some_and(|noun| {
            !matches!(lexicon.noun(noun).resource, Resource::Information | Resource::Calendar | Resource::Device)
        }) && near.word.ends_with('s')
    });
    if counts && value.fract() == 0.0 && (1.0..1e15).contains(&value) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole and within range, as just checked"
        )]
        facts.note_count(value as u64);
    }
}

/// The code of a currency's word, and how many of the unit one is.
fn currency(word: &str) -> Option<(&'static str, f64)> {
    Some(match word {
        "usd" | "dollar" | "dollars" | "bucks" | "buck" => ("USD", 1.0),
        "eur" | "euro" | "euros" => ("EUR", 1.0),
        "gbp" | "pound" | "pounds" | "quid" => ("GBP", 1.0),
        "chf" | "francs" => ("CHF", 1.0),
        "yen" | "jpy" => ("JPY", 1.0),
        "inr" | "rupees" => ("INR", 1.0),
        "cents" => ("", 0.01),
        _ => return None,
    })
}
