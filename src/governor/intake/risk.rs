//! The effective risk: a caller can raise it but never lower it below the floor.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use crate::model::{Action, Capability, Intent, Operation, Resource, RiskLevel, names_production, risk_floor};
use crate::parse::{Parsed, Parser};

/// The risk floors of action names, cached because a runtime uses the same few names repeatedly.
#[derive(Default)]
pub(crate) struct ActionFloors {
    // Read by every decision, written at the first use of a name; held to look up or insert one.
    known: RwLock<HashMap<Action, RiskLevel>>,
}

impl ActionFloors {
    fn of(&self, action: &Action, parser: &Parser) -> RiskLevel {
        if let Some(floor) = self.known.read().unwrap_or_else(PoisonError::into_inner).get(action) {
            return *floor;
        }
        let floor = parser.action_floor(action);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        // Names come from callers, who could send ever new ones.
        if known.len() < MOST_KNOWN {
            known.insert(action.clone(), floor);
        }
        floor
    }
}

/// More names than a runtime has tools.
const MOST_KNOWN: usize = 4096;

/// The source of an intent's risk level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RiskSource {
    /// The caller: never below the risk floor, and for a parsed intent never below the parser's level.
    Caller,
    /// An earlier parse, identified by the intent's id; an intent without one is refused.
    Parse,
    /// The parser, in the same call: never below the risk floor.
    Parser,
    /// An operator who overrode the called tool: used as it is.
    Operator,
}

impl RiskSource {
    pub(crate) const fn of(parsed: &Parsed) -> Self {
        if parsed.is_set { Self::Operator } else { Self::Parser }
    }
}

/// The higher of the intent's risk level and the floor of its action and capabilities. The floor rises by one level for
/// changes in production and for bulk operations.
pub(crate) fn effective_risk(parser: &Parser, floors: &ActionFloors, intent: &Intent) -> RiskLevel {
    let floor = risk_floor(&intent.parsed_action, &intent.required_capabilities)
        .max(floors.of(&intent.parsed_action, parser))
        .max(amount_floor(intent));
    let raised = (is_in_production(intent) && changes_something(intent)) || is_bulk(intent);
    let floor = if raised { floor.raised() } else { floor };
    floor.max(intent.risk_level)
}

/// The risk level that a success earns trust for: the floor of the granted capabilities. The caller's own statements do
/// not count, or an agent could earn more by overstating its risk.
pub(crate) fn earned_risk(intent: &Intent, granted: &[Capability]) -> RiskLevel {
    if granted.is_empty() { RiskLevel::Low } else { risk_floor(&intent.parsed_action, granted) }
}

/// The floor of a transfer by the amount in the context. Without an amount, a payment could be of any size.
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
        // 10,000 or more, negative, or not a number.
        _ => RiskLevel::Critical,
    }
}

/// Returns whether the context names more than 1,000 records of anything but public information.
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
