//! The risk that counts: a caller can raise it, and never talk it down.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use crate::model::{Action, Capability, Intent, Operation, Resource, RiskLevel, names_production, risk_floor};
use crate::parse::Parser;

/// The least risk that the names of actions imply, kept once the parser has
/// told it: a runtime asks for the same few names again and again.
#[derive(Default)]
pub(super) struct ActionFloors {
    // Read by every decision, written at the first sight of a name; held to look up or put in one.
    known: RwLock<HashMap<Action, RiskLevel>>,
}

impl ActionFloors {
    fn of(&self, action: &Action, parser: &Parser) -> RiskLevel {
        if let Some(floor) = self.known.read().unwrap_or_else(PoisonError::into_inner).get(action) {
            return *floor;
        }
        let floor = parser.action_floor(action);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        // Names come from callers, who could make up ever new ones.
        if known.len() < MOST_KNOWN {
            known.insert(action.clone(), floor);
        }
        floor
    }
}

/// More names than a runtime has tools.
const MOST_KNOWN: usize = 4096;

/// The higher of what the intent says and the least that its action and
/// capabilities imply by the rubric, with production counted for anything but
/// a read.
pub(super) fn effective_risk(parser: &Parser, floors: &ActionFloors, intent: &Intent) -> RiskLevel {
    let floor = risk_floor(&intent.parsed_action, &intent.required_capabilities)
        .max(floors.of(&intent.parsed_action, parser))
        .max(amount_floor(intent));
    let raised = (is_in_production(intent) && changes_something(intent)) || is_bulk(intent);
    let floor = if raised { floor.raised() } else { floor };
    floor.max(intent.risk_level)
}

/// What a success can be earned on: the least that the rubric says of what was granted. Nothing that a caller says
/// of itself counts, or it would earn by calling a small thing a large one.
pub(super) fn earned_risk(intent: &Intent, granted: &[Capability]) -> RiskLevel {
    if granted.is_empty() { RiskLevel::Low } else { risk_floor(&intent.parsed_action, granted) }
}

/// What moving money is at least, by the amount that the context names: a payment
/// that names none could be of any size.
fn amount_floor(intent: &Intent) -> RiskLevel {
    let mut transfers = intent
        .required_capabilities
        .iter()
        .filter(|capability| capability.operation() == Some(Operation::Transfer))
        .peekable();
    if transfers.peek().is_none() {
        return RiskLevel::Low;
    }
    let is_payment = transfers.any(|capability| capability.resource() == Some(Resource::Payment));
    let Some(amount) = intent.context.get("amount").filter(|amount| !amount.is_null()) else {
        return if is_payment { RiskLevel::High } else { RiskLevel::Medium };
    };
    match amount.as_f64() {
        Some(amount) if (0.0..=100.0).contains(&amount) => RiskLevel::Medium,
        Some(amount) if (0.0..10_000.0).contains(&amount) => RiskLevel::High,
        // 10,000 or more, less than nothing, or no number at all.
        _ => RiskLevel::Critical,
    }
}

/// Whether the context names more than 1,000 records of anything but public information.
fn is_bulk(intent: &Intent) -> bool {
    let count = intent.context.get("recordCount").and_then(serde_json::Value::as_f64);
    count.is_some_and(|count| count > 1000.0)
        && intent.required_capabilities.iter().any(|capability| capability.resource() != Some(Resource::Information))
}

fn is_in_production(intent: &Intent) -> bool {
    let environment = intent.context.get("environment").and_then(|value| value.as_str());
    environment.is_some_and(names_production)
}

fn changes_something(intent: &Intent) -> bool {
    intent.required_capabilities.iter().any(|capability| capability.operation() != Some(Operation::Read))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn risk(action: &str, capabilities: &[&str], context: &Value) -> RiskLevel {
        let mut intent = Intent::new("a", action, RiskLevel::Low, capabilities).unwrap();
        intent.context = context.as_object().unwrap().clone();
        effective_risk(&Parser::new().unwrap(), &ActionFloors::default(), &intent)
    }

    #[test]
    fn a_caller_cannot_talk_its_risk_down() {
        use RiskLevel::{Critical, High, Low, Medium};
        for (action, capabilities, context, expected) in [
            ("read_file", &["file:read"][..], json!({}), Low),
            ("delete_all_customers", &["customer:read"], json!({}), High),
            ("pay_invoice", &["payment:transfer"], json!({}), High),
            ("pay_invoice", &["payment:transfer"], json!({ "amount": 40 }), Medium),
            ("pay_invoice", &["payment:transfer"], json!({ "amount": 400 }), High),
            ("pay_invoice", &["payment:transfer"], json!({ "amount": 10_000 }), Critical),
            ("pay_invoice", &["payment:transfer"], json!({ "amount": -5 }), Critical),
            ("order_food", &["order:transfer"], json!({ "amount": "50000" }), Critical),
            ("order_food", &["order:transfer"], json!({ "amount": [50_000] }), Critical),
            ("order_food", &["order:transfer"], json!({}), Medium),
            ("save_settings", &["config:write"], json!({}), Medium),
            ("save_settings", &["config:write"], json!({ "environment": " LIVE " }), High),
            ("read_customers", &["customer:read"], json!({ "recordCount": 1_000_000_000 }), High),
            ("get_weather", &["information:read"], json!({ "recordCount": 5000 }), Low),
        ] {
            assert_eq!(risk(action, capabilities, &context), expected, "{action} {capabilities:?} {context}");
        }
    }
}
