//! A person in the loop: an agent asks, a reviewer looks and agrees, the agent goes on.
//!
//! `cargo run --release --example approval`

use std::thread;
use std::time::Duration;

use rulekeep::escalation::Review;
use rulekeep::{Agent, Decision, Governor, Intent, Outcome, PolicySet, RiskLevel, Tier};

const POLICIES: &str = r#"
name = "payments"

[reviewers]
finance = ["ann", "bob"]

[[rule]]
id = "payments"
effect = "allow"
match.capabilities = ["payment:transfer"]

[[rule]]
id = "money-needs-a-person"
effect = "escalate"
match.capabilities = ["payment:transfer"]
reviewer = "finance"
expires = "1h"
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let governor = Governor::builder().policies(PolicySet::from_toml(POLICIES)?).open_in_memory()?;
    governor.agents().register(Agent::new("clerk").at_tier(Tier::T4))?;
    let intent = Intent::new("clerk", "pay_invoice", RiskLevel::High, ["payment:transfer"])?
        .with_context("amount", 420)
        .with_context("invoice", "2026-118");

    thread::scope(|scope| {
        // The runtime waits; whatever comes back is the verdict to act on.
        let clerk = scope.spawn(|| governor.escalations().enforce_or_wait(&intent, Duration::from_secs(60)));

        // The reviewer, somewhere else, sees what waits and answers what was shown.
        let asked = loop {
            match governor.escalations().pending()?.pop() {
                Some(asked) => break asked,
                None => thread::yield_now(),
            }
        };
        println!("{} asks {}: {}", asked.agent_id, asked.reviewer.as_deref().unwrap_or("anybody"), asked.reason);
        println!("  {}", serde_json::to_string(&asked.intent)?);
        governor.escalations().approve(asked.id, Review::by("ann").note("the goods have come").of(asked.digest))?;

        let verdict = clerk.join().map_err(|_| "the clerk panicked")??;
        println!("{}: {}", verdict.decision, verdict.reasoning);
        println!("  until {}", verdict.constraints.get("expiresAt").unwrap_or_default());
        assert_eq!(verdict.decision, Decision::Allow);
        governor.report(&verdict.proof_id, Outcome::Success)?;

        // It grants once.
        let again = governor.escalations().claim(asked.id, &intent);
        println!("once more: {}", again.err().map_or("granted?!".to_owned(), |error| error.to_string()));
        Ok(())
    })
}
