//! People in the loop: what they may answer, what an approval grants and binds to, and that it grants once.

use crate::common;

mod answers;
mod behind;
mod crashes;
mod limits;
mod many;
mod preapprovals;
mod refusals;
mod restart;
mod texts;
mod unreadable;
mod waiting;

use common::{Hand, NOON, builder, code, error};
use rulekeep::escalation::{EscalationId, Review};
use rulekeep::{Agent, Decision, Enforcement, Governor, GovernorBuilder, Intent, PolicySet, RiskLevel, Tier};

const POLICIES: &str = r#"
name = "payments"

[reviewers]
finance = ["ann", "bob", "Cleo"]

[[rule]]
id = "reads"
effect = "allow"
match.capabilities = ["document:read"]

[[rule]]
id = "money"
effect = "escalate"
match.capabilities = ["payment:transfer"]
reviewer = "finance"
expires = "1h"

[[rule]]
id = "payments"
effect = "allow"
match.capabilities = ["payment:transfer"]
constraints = { maxAmount = 100 }

[[rule]]
id = "rights"
effect = "escalate"
match.capabilities = ["permission:write"]
reviewer = "finance"
approvals = 2
expires = "30m"

[[rule]]
id = "low-trust-pays-nothing"
effect = "deny"
match.capabilities = ["payment:transfer"]
match.tiers = { max = "T1" }
"#;

fn policies(text: &str) -> PolicySet {
    PolicySet::from_toml(text).unwrap_or_else(|error| panic!("{error}"))
}

fn with_clock(hand: &Hand) -> GovernorBuilder {
    builder().policies(policies(POLICIES)).clock(hand.clone())
}

/// A governor with the agent `clerk`, and the clock by which it goes.
fn governor() -> (Governor, Hand) {
    let hand = Hand::at(NOON);
    let governor = with_clock(&hand).open_in_memory().unwrap();
    governor.agents().register(Agent::new("clerk").at_tier(Tier::T4)).unwrap();
    (governor, hand)
}

fn payment(amount: u64) -> Intent {
    Intent::new("clerk", "pay_invoice", RiskLevel::High, ["payment:transfer"])
        .unwrap()
        .with_context("amount", amount)
        .with_context("requestedBy", "Dora")
}

fn rights() -> Intent {
    Intent::new("clerk", "grant_role", RiskLevel::High, ["permission:write"]).unwrap()
}

/// What an escalated intent is known by.
fn ask(governor: &Governor, intent: &Intent) -> (EscalationId, Enforcement) {
    let verdict = governor.enforce(intent).unwrap();
    assert_eq!(verdict.decision, Decision::Escalate, "{}", verdict.reasoning);
    (EscalationId::of(verdict.proof_id), verdict)
}

fn by(reviewer: &str) -> Review {
    Review::by(reviewer)
}
