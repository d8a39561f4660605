//! Tests of conditions.

// Run by crates/conformance, which has the `cel` crate.
#[cfg(conformance)]
mod differential;
#[cfg(conformance)]
mod generate;
#[cfg(not(conformance))]
mod hostile;
#[cfg(not(conformance))]
mod language;
#[cfg(not(conformance))]
mod refusals;

use serde_json::{Value as Json, json};

use super::*;

/// The data that a scope borrows from.
#[derive(Debug)]
struct Facts {
    agent_id: String,
    labels: Vec<Label>,
    groups: Vec<Label>,
    attributes: serde_json::Map<String, Json>,
    action: String,
    risk: RiskLevel,
    capabilities: Vec<Capability>,
    context: serde_json::Map<String, Json>,
    score: u16,
    tier: Tier,
    now: Timestamp,
}

impl Facts {
    /// An ordinary request, for tests that name what they depend on.
    fn ordinary() -> Self {
        let context = json!({
            "amount": 1_500, "rate": 1.5, "one": 1.0, "currency": "EUR", "tags": ["a", "b"], "nested": { "deep": { "x": 1 } },
            "flag": true, "nothing": null, "huge": u64::MAX, "many": vec![0; 257], "full": vec![0; 256],
            "secret": "hunter2", "when": "2026-01-31T09:00:00Z", "long": "a".repeat(5_000),
        });
        Self {
            agent_id: "support-1".to_owned(),
            labels: vec!["support".parse().unwrap(), "eu".parse().unwrap()],
            groups: vec!["finance".parse().unwrap()],
            attributes: json!({ "team": "refunds", "level": 3 }).as_object().unwrap().clone(),
            action: "refund_order".to_owned(),
            risk: RiskLevel::High,
            capabilities: vec!["payment:transfer".parse().unwrap()],
            context: context.as_object().unwrap().clone(),
            score: 640,
            tier: Tier::T3,
            now: "2026-01-31T09:30:15Z".parse().unwrap(),
        }
    }

    fn scope(&self) -> Scope<'_> {
        Scope {
            agent_id: &self.agent_id,
            labels: &self.labels,
            groups: &self.groups,
            attributes: &self.attributes,
            action: &self.action,
            risk: self.risk,
            capabilities: &self.capabilities,
            context: (&self.context).into(),
            score: self.score,
            tier: self.tier,
            now: self.now,
        }
    }
}

/// Returns whether the condition holds in an ordinary request.
fn holds(source: &str) -> Result<bool, String> {
    let condition = Condition::compile(source, &Bindings::default()).map_err(|error| error.to_string())?;
    condition.evaluate(&Facts::ordinary().scope()).map_err(|error| error.to_string())
}

/// The error that a source is refused with.
fn refusal(source: &str) -> ConditionError {
    match Condition::compile(source, &Bindings::default()) {
        Ok(_) => panic!("{source} was accepted"),
        Err(error) => error,
    }
}
