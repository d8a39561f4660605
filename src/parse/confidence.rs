//! How likely a reading is right, and which others come next.

use crate::model::{Action, Alternative};

use super::reading::{Act, Reading};
use super::sign::Sign;

/// How likely the primary act is right. The table's own figure is calibrated when it is trained; that of a reader of
/// structured text is moved by what else it saw.
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

/// Other readings, the likeliest first: what else the primary act's words may mean, and the other acts of the request.
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

/// The action's name; what cannot be one reads as unknown.
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

/// Two decimals are more than the number can bear out.
fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// Slope and offset of the score of structured forms, and what an unclear part leaves of a reading's confidence.
const STRUCTURED: (f64, f64) = (2.08, -3.1);
const UNCLEAR_SHARE: f64 = 0.6;
const LEAST: f64 = 0.05;
const MOST_SURE: f64 = 0.98;
/// The confidence of a reading that was not understood.
const UNKNOWN: f64 = 0.2;
/// Most alternatives.
const MOST: usize = 4;
/// Longest name that is made.
const LONGEST_NAME: usize = 64;
