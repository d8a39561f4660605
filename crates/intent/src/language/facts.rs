//! Amounts, counts and targets that a sentence names.

use crate::learned::{IntentTable, Vocabulary as _};
use crate::lexicon::Lexicon;
use crate::reading::Facts;
use crate::roles::Role;
use rulekeep_types::{Resource, TargetKind, TargetRole, UnreadKind};

use super::token::{Kind, Token};

/// Records what the tokens name.
pub(super) fn gather(tokens: &[Token<'_>], lexicon: &Lexicon, facts: &mut Facts) {
    let mut spelled_until = 0;
    for (index, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Number(value) => number(tokens, index, index + 1, value, lexicon, facts),
            Kind::Word if index >= spelled_until => {
                if let Some((value, end)) = spelled(tokens, index) {
                    spelled_until = end;
                    number(tokens, index, end, value, lexicon, facts);
                }
            }
            Kind::Email => facts.note_target_as(TargetKind::Recipient, TargetRole::Named, token.text),
            Kind::Path => facts.note_target_as(TargetKind::Path, TargetRole::Named, token.text),
            Kind::Url => facts.note_target_as(TargetKind::Host, TargetRole::Named, token.text),
            _ => {}
        }
    }
}

/// The value of a number in words, and the place after its last token: "twelve thousand", "two hundred and fifty",
/// "twenty-five".
fn spelled(tokens: &[Token<'_>], index: usize) -> Option<(f64, usize)> {
    // INVARIANT: `total` holds the part completed by a thousand or a million, `group` the part below it.
    let (mut total, mut group, mut end) = (0.0, 0.0, index);
    for (place, token) in tokens.iter().enumerate().skip(index).take(LONGEST_SPELLED) {
        if token.word == "and" && place == end && group > 0.0 {
            continue;
        }
        let parts = token.word.split('-').map(cardinal).collect::<Option<Vec<_>>>();
        let Some(parts) = parts.filter(|_| token.kind == Kind::Word) else { break };
        for part in parts {
            match part {
                Cardinal::Unit(value) => group += value,
                // "Hundred customers" means one hundred.
                Cardinal::Factor(factor) if factor > 100.0 => {
                    total += f64::max(group, 1.0) * factor;
                    group = 0.0;
                }
                Cardinal::Factor(factor) => group = f64::max(group, 1.0) * factor,
            }
        }
        end = place + 1;
    }
    (end > index).then_some((total + group, end))
}

/// The number right after a verb of payment, unless it counts something.
pub(super) fn bare_amount(tokens: &[Token<'_>], from: usize, table: &IntentTable) -> Option<f64> {
    // "Refund order 17" names an order.
    let is_small = |token: &&Token<'_>| token.is(Role::Determiner) || token.kind == Kind::Mark;
    let skipped = tokens.get(from..)?.iter().take(2).take_while(is_small).count();
    let place = from + skipped;
    let Kind::Number(value) = tokens.get(place)?.kind else { return None };
    let next = tokens.get(place + 1);
    let factor = match next.map_or("", |next| next.word) {
        "thousand" | "grand" | "k" => 1e3,
        "million" | "mio" => 1e6,
        "billion" => 1e9,
        // "Transfer 300 shares": a count.
        _ if next.is_some_and(|next| next.kind == Kind::Word && next.word.ends_with('s') && table.knows(next.word)) => {
            return None;
        }
        _ => 1.0,
    };
    // A small number may mean anything, and must not make a payment look small.
    Some(value * factor).filter(|amount| *amount > LEAST_BARE)
}

/// Marks the amount of a payment as open if words multiply it or add what has no sum: "each employee", "daily",
/// "x 500", "and the rest".
pub(super) fn open_amounts(tokens: &[Token<'_>], lexicon: &Lexicon, facts: &mut Facts) {
    let is_number = |token: &Token<'_>| matches!(token.kind, Kind::Number(_));
    let has_number = |behind: &[Token<'_>]| behind.iter().take(3).any(is_number);
    let opens = |(place, token): (usize, &Token<'_>)| {
        let behind = tokens.get(place + 1..).unwrap_or_default();
        let next = behind.first();
        let before = place.checked_sub(1).and_then(|before| tokens.get(before));
        match token.word {
            // "$50 a day".
            "a" | "an" => {
                next.is_some_and(|next| SHORT_PERIODS.contains(&next.word))
                    && before.is_some_and(|before| is_number(before) || currency(before.word).is_some())
            }
            "each" | "every" | "per" => !next.is_some_and(|next| LONG_PERIODS.contains(&next.word)),
            "all" | "everyone" | "everybody" | "both" => {
                before.is_some_and(|before| before.word == "to" || lexicon.is_verb(before.word))
            }
            "rest" | "remainder" | "remaining" | "balance" => !has_number(behind),
            "x" | "×" | "*" => next.is_some_and(is_number),
            "times" => before.is_some_and(is_number),
            "plus" | "+" | "another" => {
                let sum = behind.get(1).map_or("", |unit| unit.word);
                next.is_some_and(|next| is_number(next) && !next.text.starts_with(['$', '€', '£']))
                    && currency(sum).is_none()
            }
            "at least" => true,
            "least" => before.is_some_and(|before| before.word == "at"),
            word => REPEATS.contains(&word),
        }
    };
    if facts.amounts.is_empty() {
        return;
    }
    if let Some((_, token)) = tokens.iter().enumerate().find(|&token| opens(token)) {
        facts.note_unread(UnreadKind::Amount, token.text);
    }
}

/// Words that repeat a payment, or leave to somebody else how much it is.
const REPEATS: &[&str] = &[
    "apiece",
    "hourly",
    "daily",
    "nightly",
    "weekly",
    "fortnightly",
    "biweekly",
    "repeatedly",
    "twice",
    "thrice",
    "whatever",
    "however",
    "minimum",
    "recurring",
];
/// Periods of which many make a month.
const SHORT_PERIODS: &[&str] =
    &["minute", "hour", "day", "night", "week", "fortnight", "shift", "time", "piece", "head"];
/// Periods of which one lasts a month or more.
const LONG_PERIODS: &[&str] = &["month", "quarter", "year", "annum"];

/// The smallest number that counts as money without a currency.
const LEAST_BARE: f64 = 100.0;

/// The effect of a number word: it adds or multiplies.
#[derive(Clone, Copy)]
enum Cardinal {
    Unit(f64),
    Factor(f64),
}

/// Returns whether a word is a number: "twenty", "twenty-five".
pub(super) fn is_number_word(word: &str) -> bool {
    word.split('-').all(|part| cardinal(part).is_some())
}

fn cardinal(word: &str) -> Option<Cardinal> {
    // Length and first letter rule out most words.
    if !(3..=9).contains(&word.len()) || !word.starts_with(['o', 't', 'f', 's', 'e', 'n', 'h', 'm', 'b', 'd']) {
        return None;
    }
    let (_, cardinal) = CARDINALS.iter().find(|(known, _)| *known == word)?;
    Some(*cardinal)
}

/// Reads the number at `index`; `behind` is the place after its last token.
fn number(tokens: &[Token<'_>], index: usize, behind: usize, value: f64, lexicon: &Lexicon, facts: &mut Facts) {
    let Some(token) = tokens.get(index) else { return };
    let next = tokens.get(behind);
    // "€ 500".
    let apart = index.checked_sub(1).and_then(|place| tokens.get(place)).map_or("", |before| before.text);
    let symbol =
        token.text.chars().next().filter(|c| !c.is_ascii_digit()).or(apart.chars().next()).and_then(|c| match c {
            '$' => Some("USD"),
            '€' => Some("EUR"),
            '£' => Some("GBP"),
            _ => None,
        });
    // "20 000 EUR", "1.5 million dollars".
    let (mut value, mut next) = (value, next);
    let mut place = behind;
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
    let counts = tokens.get(behind..).unwrap_or(&[]).iter().take(2).any(|near| {
        let named = lexicon.table().and_then(|table| table.names(near.word));
        near.word.ends_with('s')
            && named
                .is_some_and(|named| !matches!(named, Resource::Information | Resource::Calendar | Resource::Device))
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

/// Maximum number of tokens of a number in words.
const LONGEST_SPELLED: usize = 12;

const CARDINALS: &[(&str, Cardinal)] = &[
    ("one", Cardinal::Unit(1.0)),
    ("two", Cardinal::Unit(2.0)),
    ("three", Cardinal::Unit(3.0)),
    ("four", Cardinal::Unit(4.0)),
    ("five", Cardinal::Unit(5.0)),
    ("six", Cardinal::Unit(6.0)),
    ("seven", Cardinal::Unit(7.0)),
    ("eight", Cardinal::Unit(8.0)),
    ("nine", Cardinal::Unit(9.0)),
    ("ten", Cardinal::Unit(10.0)),
    ("eleven", Cardinal::Unit(11.0)),
    ("twelve", Cardinal::Unit(12.0)),
    ("thirteen", Cardinal::Unit(13.0)),
    ("fourteen", Cardinal::Unit(14.0)),
    ("fifteen", Cardinal::Unit(15.0)),
    ("sixteen", Cardinal::Unit(16.0)),
    ("seventeen", Cardinal::Unit(17.0)),
    ("eighteen", Cardinal::Unit(18.0)),
    ("nineteen", Cardinal::Unit(19.0)),
    ("twenty", Cardinal::Unit(20.0)),
    ("thirty", Cardinal::Unit(30.0)),
    ("forty", Cardinal::Unit(40.0)),
    ("fifty", Cardinal::Unit(50.0)),
    ("sixty", Cardinal::Unit(60.0)),
    ("seventy", Cardinal::Unit(70.0)),
    ("eighty", Cardinal::Unit(80.0)),
    ("ninety", Cardinal::Unit(90.0)),
    ("dozen", Cardinal::Factor(12.0)),
    ("hundred", Cardinal::Factor(100.0)),
    ("thousand", Cardinal::Factor(1e3)),
    ("million", Cardinal::Factor(1e6)),
    ("billion", Cardinal::Factor(1e9)),
];

/// The code of a currency word, and the number of currency units it stands for.
pub(super) fn currency(word: &str) -> Option<(&'static str, f64)> {
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
