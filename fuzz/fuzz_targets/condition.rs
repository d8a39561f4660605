//! Any text compiles as a condition, or is refused with a place in it. A compiled condition evaluates twice to the
//! same result: true, false or an error without a value of the context.
#![no_main]

use libfuzzer_sys::fuzz_target;
use condition::{Bindings, Condition, Scope};
use rulekeep::system::Timestamp;
use rulekeep::{RiskLevel, Tier};

// Conditions are private to the policy engine, so the target compiles their files as well.
#[allow(dead_code)]
#[path = "../../crates/policy/src/condition/mod.rs"]
mod condition;

fuzz_target!(|source: &str| {
    let condition = match Condition::compile(source, &Bindings::default()) {
        Ok(condition) => condition,
        Err(error) => {
            assert!(source.is_char_boundary(error.at));
            return;
        }
    };
    let context = serde_json::json!({
        "amount": 1500, "rate": 1.5, "name": SECRET, "flag": true, "nothing": null, "tags": ["a", 1, null],
        "nested": { "deep": { "x": [1, 2] } }, "huge": u64::MAX,
    });
    let Some(context) = context.as_object() else { return };
    let labels = ["support".parse().unwrap(), "eu".parse().unwrap()];
    let scope = Scope {
        agent_id: "support-1",
        labels: &labels,
        groups: &labels,
        attributes: context,
        action: "refund_order",
        risk: RiskLevel::High,
        capabilities: &["payment:transfer".parse().unwrap()],
        context,
        score: 640,
        tier: Tier::T3,
        now: Timestamp::from_millis(1_769_851_815_000),
    };
    let result = condition.evaluate(&scope);
    assert_eq!(result, condition.evaluate(&scope));
    if let Some(constant) = condition.constant() {
        assert_eq!(result, Ok(constant));
    }
    if let Err(error) = result {
        assert!(source.contains(SECRET) || !error.to_string().contains(SECRET));
    }
});

const SECRET: &str = "hunter2-5f1c";
