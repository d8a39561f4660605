//! Constraints: converts a document's values to the JSON that a grant carries, in a form that merges to the same
//! result in any order.

use serde_json::{Map, Number, Value as Json};
use strsim::osa_distance;

use super::known_constraint::{CONFINE, KNOWN};
use rulekeep_types::document::{Node, Report, Value};
use rulekeep_types::hides_or_breaks;
use rulekeep_types::{Constraints, Timestamp, excerpt};

/// Reads a rule's `constraints`.
pub(super) fn constraints(node: Node, report: &mut Report<'_>) -> Constraints {
    let mut constraints = Constraints::new();
    for field in report.table(node, "constraints", "a table") {
        let path = format!("constraints.{}", excerpt(&field.name));
        let is_good_name = !field.name.trim().is_empty() && !field.name.chars().any(hides_or_breaks);
        if !is_good_name {
            report.error(field.at, "constraints", "a constraint's name is not blank and has no control characters");
        } else if constraints.get(&field.name).is_some() {
            report.error(field.at, &path, format!("the field {:?} occurs twice", excerpt(&field.name)));
        }
        let value_at = field.node.at;
        let Some(mut value) = json(field.node, &path, report) else { continue };
        if field.name == "expiresAt" {
            value = in_utc(&value);
        } else if field.name == CONFINE && !value.is_array() {
            value = Json::Array(vec![value]); // terms of several rules make one list
        }
        if let Some(meant) = slip(&field.name, KNOWN.iter().map(|(known, _)| *known)) {
            let name = excerpt(&field.name);
            report.warn(field.at, &path, format!("{name:?} is a key of your own; did you mean {meant:?}?"));
        }
        if let Some(expected) = misfit(&field.name, &value) {
            report.error(value_at, &path, format!("{} expects {expected}", field.name));
        }
        constraints.insert(field.name, value);
    }
    constraints
}

/// Returns whether it is known which of two values of a constraint is tighter. Unknown for a document's own keys,
/// where a smaller number may be the looser one.
pub(super) fn has_direction(name: &str) -> bool {
    KNOWN.iter().any(|(known, _)| *known == name)
}

/// The value that a known constraint expects, if the given value is not valid for it.
fn misfit(name: &str, value: &Json) -> Option<&'static str> {
    let (_, kind) = KNOWN.iter().find(|(known, _)| *known == name)?;
    (!kind.fits(value)).then(|| kind.expected())
}

/// The known key that another one differs from by a letter, by case or by underscores only.
pub(super) fn slip(name: &str, mut known: impl Iterator<Item = &'static str> + Clone) -> Option<&'static str> {
    if name.len() > LONGEST_SLIP || known.clone().any(|known| known == name) {
        return None;
    }
    let plain = |text: &str| text.replace(['_', '-'], "").to_lowercase();
    known.find(|known| osa_distance(&plain(name), &plain(known)) <= 1)
}

/// A timestamp in the form in which an earlier time is the lesser text; `null` if the value is no timestamp.
fn in_utc(value: &Json) -> Json {
    let time = value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    time.map_or(Json::Null, |time| Json::String(time.to_string()))
}

/// The JSON of a value. Lists are sets: sorted, without duplicates. A whole number is written as an integer, so that
/// 1 and 1.0 are the same constraint.
fn json(node: Node, path: &str, report: &mut Report<'_>) -> Option<Json> {
    let at = node.at;
    Some(match node.value {
        Value::Null => Json::Null,
        Value::Bool(flag) => Json::Bool(flag),
        Value::Text(text) => Json::String(text),
        Value::Integer(number) if number.unsigned_abs() <= LARGEST_EXACT => Json::from(number),
        Value::Float(number) if number.is_finite() && number.abs() <= EXACT_LIMIT => float(number),
        Value::Integer(_) | Value::Float(_) => {
            report.error(at, path, format!("expected a number between -{LARGEST_EXACT} and {LARGEST_EXACT}"));
            return None;
        }
        Value::List(items) => {
            let mut items: Vec<(String, Json)> = items
                .into_iter()
                .filter_map(|item| json(item, path, report))
                .map(|item| (item.to_string(), item))
                .collect();
            items.sort_by(|a, b| a.0.cmp(&b.0));
            items.dedup_by(|a, b| a.0 == b.0);
            Json::Array(items.into_iter().map(|(_, item)| item).collect())
        }
        Value::Table(fields) => {
            let mut map = Map::new();
            for field in fields {
                if let Some(value) = json(field.node, path, report) {
                    map.insert(field.name, value);
                }
            }
            Json::Object(map)
        }
    })
}

fn float(number: f64) -> Json {
    if number.fract() == 0.0 {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "whole and within the range that both types hold exactly"
        )]
        return Json::from(number as i64);
    }
    Number::from_f64(number).map_or(Json::Null, Json::Number)
}

const LONGEST_SLIP: usize = 32;
/// 2^53 - 1. Beyond it, different numbers compare equal when they are merged.
const LARGEST_EXACT: u64 = (1 << 53) - 1;
const EXACT_LIMIT: f64 = 9_007_199_254_740_991.0;
