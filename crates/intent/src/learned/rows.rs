//! Labeled rows in the text format of `data/intents`, and the adaptation of the table to a user's own rows.

use std::sync::Arc;

use crate::language::tokenise;
use crate::lexicon::Lexicon;
use rulekeep_types::{Capability, Error, RiskLevel};

use super::clause::{Clause, Stance, clauses};
use super::read::{keys_of, weigh};
use super::table::IntentTable;

/// A labeled request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(feature = "training"), allow(unreachable_pub, reason = "public for the trainer alone"))]
pub struct Row {
    /// The request.
    pub text: String,
    /// The capabilities it needs, the primary one first.
    pub capabilities: Vec<Capability>,
    /// The risk of the request.
    pub risk: RiskLevel,
    /// Other primary capabilities that are equally valid.
    pub accepted: Vec<Capability>,
}

/// Reads groups of rows. `#resource:operation R` starts a group, where R is L, M, H or C, and each line after it is a
/// request. `text || capability,...|RISK` and `text || capability,...|RISK|accepted,...` label a single request.
///
/// # Errors
///
/// [`Error::InvalidInput`] with the line and what was expected.
#[cfg_attr(not(feature = "training"), allow(unreachable_pub, reason = "public for the trainer alone"))]
pub fn read(text: &str) -> Result<Vec<Row>, Error> {
    let mut group: Option<(Capability, RiskLevel)> = None;
    let mut rows = Vec::new();
    for (number, line) in text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty()) {
        let wrong = |what: String| Error::input("rows", format!("line {}: {what}", number + 1));
        let list = |part: &str| -> Result<Vec<Capability>, Error> {
            let parts = part.split(',').map(str::trim).filter(|one| !one.is_empty());
            parts.map(|one| one.parse::<Capability>().map_err(|error| wrong(error.to_string()))).collect()
        };
        let level = |word: &str| {
            level(word)
                .ok_or_else(|| wrong(format!("{word:?} is not a risk level; expected LOW, MEDIUM, HIGH or CRITICAL")))
        };
        if let Some(opening) = line.strip_prefix('#') {
            let (capability, risk) =
                opening.split_once(' ').ok_or_else(|| wrong("expected `#resource:operation R`".to_owned()))?;
            let capability =
                capability.parse().map_err(|error: rulekeep_types::InvalidValue| wrong(error.to_string()))?;
            group = Some((capability, level(risk)?));
        } else if let Some((text, label)) = line.split_once("||") {
            let mut parts = label.trim().split('|');
            let capabilities = list(parts.next().unwrap_or_default())?;
            if capabilities.is_empty() {
                return Err(wrong("expected a capability behind `||`".to_owned()));
            }
            let risk = level(parts.next().unwrap_or_default())?;
            let accepted = list(parts.next().unwrap_or_default())?;
            rows.push(Row { text: text.trim().to_owned(), capabilities, risk, accepted });
        } else {
            let (capability, risk) = group
                .clone()
                .ok_or_else(|| wrong("expected `#resource:operation R` before the first row".to_owned()))?;
            rows.push(Row { text: line.to_owned(), capabilities: vec![capability], risk, accepted: Vec::new() });
        }
    }
    Ok(rows)
}

fn level(word: &str) -> Option<RiskLevel> {
    Some(match word.trim() {
        "L" | "LOW" => RiskLevel::Low,
        "M" | "MEDIUM" => RiskLevel::Medium,
        "H" | "HIGH" => RiskLevel::High,
        "C" | "CRITICAL" => RiskLevel::Critical,
        _ => return None,
    })
}

/// Returns the table with the weights of some words moved, so that these rows are read as labeled. Known words move
/// little, others as far as needed.
///
/// # Errors
///
/// [`Error::PayloadTooLarge`] for more than [`MOST_ROWS`] rows; [`Error::InvalidInput`] for a capability that the
/// table lacks.
pub(crate) fn adapt(table: &Arc<IntentTable>, rows: &[Row], lexicon: &Lexicon) -> Result<IntentTable, Error> {
    if rows.len() > MOST_ROWS {
        return Err(Error::PayloadTooLarge { what: "rows", size: rows.len(), limit: MOST_ROWS });
    }
    let mut own = table.without_own();
    own.open_with(rows.iter().filter_map(|row| row.text.split_whitespace().next()).map(str::to_ascii_lowercase));
    for _ in 0..ROUNDS {
        let mut is_settled = true;
        for row in rows {
            is_settled &= !nudge(&mut own, row, lexicon)?;
        }
        if is_settled {
            break;
        }
    }
    own.mark(rows);
    Ok(own)
}

/// Moves the words of a row one step if it is not read as labeled.
fn nudge(own: &mut IntentTable, row: &Row, lexicon: &Lexicon) -> Result<bool, Error> {
    let Some(wanted) = row.capabilities.first() else { return Ok(false) };
    let target = own.place_of(wanted).ok_or_else(|| {
        Error::input("rows", format!("{wanted}: no request is read as this capability; expected one of the taxonomy's"))
    })?;
    let lower = row.text.to_ascii_lowercase();
    let tokens = tokenise(&row.text, &lower, lexicon);
    let cut = clauses(&tokens, &*own);
    // Of several clauses, the one closest to the label.
    let nearest = cut.iter().filter(|clause| clause.stance == Stance::Asked).map(|clause| {
        let weighed = weigh(clause, own);
        let likely = own.likely(&weighed.sums, clause.words.len());
        (clause, weighed.sums, likely)
    });
    let of = |likely: &super::table::Likely| likely.of.get(target).copied().unwrap_or_default();
    let Some((clause, sums, likely)) = nearest.max_by(|one, other| of(&one.2).total_cmp(&of(&other.2))) else {
        return Ok(false);
    };
    let steps = own.steps(&sums, clause.words.len(), &likely, target, row.risk);
    let Some(steps) = steps else { return Ok(false) };
    let moves: Vec<(String, f64)> = moved(clause, own);
    for (key, share) in moves {
        own.shift(&key, &steps, share);
    }
    Ok(true)
}

/// The keys of a clause that move, and the distance of each relative to an unknown word.
fn moved(clause: &Clause<'_>, table: &IntentTable) -> Vec<(String, f64)> {
    keys_of(clause)
        .into_iter()
        .map(|key| {
            let share = if table.is_builtin(&key) { KNOWN_SHARE } else { 1.0 };
            (key, share)
        })
        .collect()
}

/// Maximum number of rows that a table is adapted to.
pub(crate) const MOST_ROWS: usize = 10_000;
/// Number of passes over the rows.
const ROUNDS: usize = 12;
/// The distance that a known word moves, relative to an unknown one.
const KNOWN_SHARE: f64 = 0.15;
