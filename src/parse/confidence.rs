//! How likely a reading is right, and which others come next.

use crate::model::{Action, Alternative};

use super::reading::Act;

/// The confidence in the primary act, lowered when other acts are shaky.
pub(crate) fn of(primary: &Act, acts: &[Act]) -> f64 {
    if primary.is_unknown() {
        return UNKNOWN;
    }
    let weakest = acts.iter().map(|act| act.sure).fold(primary.sure, f64::min);
    round(primary.sure.mul_add(0.85, weakest * 0.15).clamp(0.05, 0.97))
}

/// Other readings, the likeliest first: the other acts of the request, and that it was not understood.
pub(crate) fn alternatives(primary: &Act, acts: &[Act], confidence: f64) -> Vec<Alternative> {
    let left = 1.0 - confidence;
    let name = action_name(primary);
    let mut ranked: Vec<Alternative> = Vec::new();
    for act in acts {
        let action = action_name(act);
        if action != name && !ranked.iter().any(|known| known.parsed_action == action) {
            ranked.push(Alternative::new(action, round(left * act.sure)));
        }
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

/// The confidence of a reading that was not understood.
const UNKNOWN: f64 = 0.2;
/// Most alternatives.
const MOST: usize = 4;
/// Longest name that is made.
const LONGEST_NAME: usize = 64;
