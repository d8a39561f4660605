//! How likely a reading is right, and which others come next.

use crate::model::{Action, Alternative};

use super::reading::{Act, Format, Reading};
use super::sign::Sign;

/// How likely the primary act is right: a logistic model of what the reader saw,
/// then calibrated for each kind of form.
pub(super) fn of(primary: &Act, reading: &Reading) -> f64 {
    if primary.is_unknown() {
        return UNKNOWN;
    }
    let (slope, offset) = match reading.format {
        Format::Text => TEXT,
        _ => STRUCTURED,
    };
    let score = score(primary, reading).mul_add(slope, offset);
    round((1.0 / (1.0 + (-score).exp())).clamp(LEAST, MOST_SURE))
}

/// What bears on whether the primary act is right.
fn features(primary: &Act, reading: &Reading) -> [f64; 6] {
    let rival = primary.rival.as_ref().map_or(0.0, |(_, margin)| 1.0 / (1.0 + f64::from(margin.max(0.0))));
    let others = f64::from(u8::try_from(reading.acts.len().saturating_sub(1).min(4)).unwrap_or(4));
    [
        primary.sure,
        f64::from(u8::from(primary.guess)),
        reading.facts.known.unwrap_or(1.0),
        rival,
        others,
        f64::from(u8::from(primary.signs.has(Sign::Unclear) || reading.facts.signs.has(Sign::Unclear))),
    ]
}

fn score(primary: &Act, reading: &Reading) -> f64 {
    features(primary, reading).iter().zip(WEIGHTS).map(|(feature, weight)| feature * weight).sum()
}

/// Other readings, the likeliest first: the next object of the same verb, the other acts of the request.
pub(super) fn alternatives(primary: &Act, reading: &Reading, confidence: f64) -> Vec<Alternative> {
    let left = 1.0 - confidence;
    let name = action_name(primary);
    let mut ranked: Vec<Alternative> = Vec::new();
    let mut add = |action: Action, likely: f64| {
        if action != name && !ranked.iter().any(|known| known.parsed_action == action) {
            ranked.push(Alternative::new(action, round(left * likely)));
        }
    };
    if let Some((noun, margin)) = &primary.rival {
        let noun: String =
            noun.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
        let other = Act::new(&primary.verb, &noun, primary.resource, primary.operation, 0.5);
        add(action_name(&other), 0.8 / (1.0 + f64::from(margin.max(0.0))));
    }
    for act in &reading.acts {
        add(action_name(act), 0.6 * act.sure);
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

/// Weights of the features, and slope and offset of each kind of form.
const WEIGHTS: [f64; 6] = [2.5, -0.3, 0.5, -1.1, -0.45, -0.5];
const TEXT: (f64, f64) = (1.0, -0.2);
const STRUCTURED: (f64, f64) = (2.08, -3.1);
const LEAST: f64 = 0.05;
const MOST_SURE: f64 = 0.98;
/// The confidence of a reading that was not understood.
const UNKNOWN: f64 = 0.2;
/// Most alternatives.
const MOST: usize = 4;
/// Longest name that is made.
const LONGEST_NAME: usize = 64;
