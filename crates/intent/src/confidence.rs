//! Confidence in a reading, and the alternative readings.

use rulekeep_types::{Action, Alternative};

use super::reading::{Act, Reading};
use super::sign::Sign;

/// The probability that the primary act is right. The word table's figure is calibrated in training; that of a
/// structured format is adjusted by what else its reader saw.
pub(super) fn of(primary: &Act, reading: &Reading) -> f64 {
    if primary.is_unknown() {
        return UNKNOWN;
    }
    let unclear = primary.signs.has(Sign::Unclear) || reading.facts.signs.has(Sign::Unclear);
    let sure = if primary.learned.is_some() {
        primary.sure * if unclear { UNCLEAR_SHARE } else { 1.0 }
    } else {
        let others = f64::from(u8::try_from(reading.acts.len().saturating_sub(1).min(4)).unwrap_or(4));
        let score = 2.5 * primary.sure - 0.3 * f64::from(u8::from(primary.guess)) - 0.45 * others + 0.5
            - 0.5 * f64::from(u8::from(unclear));
        1.0 / (1.0 + (-score.mul_add(STRUCTURED.0, STRUCTURED.1)).exp())
    };
    round(sure.clamp(LEAST, MOST_SURE))
}

/// Alternative readings, most likely first: other meanings of the primary act's words, and the other acts of the
/// request.
pub(super) fn alternatives(primary: &Act, reading: &Reading, confidence: f64) -> Vec<Alternative> {
    let name = action_name(primary);
    let mut ranked: Vec<Alternative> = Vec::new();
    let mut add = |action: Action, likely: f64| {
        if action != name && !ranked.iter().any(|known| known.parsed_action == action) {
            ranked.push(Alternative::new(action, round(likely.min(1.0 - confidence))));
        }
    };
    for &(resource, operation, likely) in &primary.others {
        add(action_name(&Act::new(operation.as_str(), resource.as_str(), resource, operation, likely)), likely);
    }
    for act in &reading.acts {
        add(action_name(act), 0.6 * act.sure * (1.0 - confidence));
    }
    ranked.sort_by(|one, other| other.confidence.total_cmp(&one.confidence));
    ranked.truncate(MOST);
    ranked
}

/// The name of the action; `unknown_action` if the parts form no valid name.
pub(crate) fn action_name(act: &Act) -> Action {
    let mut name = String::with_capacity(act.verb.len() + 1 + act.noun.len());
    for (place, part) in [act.verb.as_str(), act.noun.as_str()].into_iter().enumerate() {
        if place > 0 {
            name.push('_');
        }
        name.extend(part.chars().map(|c| match c {
            'a'..='z' | '0'..='9' => c,
            'A'..='Z' => c.to_ascii_lowercase(),
            _ => '_',
        }));
    }
    name.truncate(LONGEST_NAME);
    let name = name.trim_matches('_');
    name.parse().unwrap_or_else(|_| Action::unknown())
}

/// Rounds to two decimals, the precision that the number supports.
fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// Slope and offset of the score of structured formats, and the share of confidence that remains if a part is
/// unclear.
const STRUCTURED: (f64, f64) = (2.08, -3.1);
const UNCLEAR_SHARE: f64 = 0.6;
const LEAST: f64 = 0.05;
const MOST_SURE: f64 = 0.98;
/// The confidence of a reading that was not understood.
const UNKNOWN: f64 = 0.2;
/// Maximum number of alternatives.
const MOST: usize = 4;
/// Maximum length of a generated action name.
const LONGEST_NAME: usize = 64;
