//! An escalation: an agent asks to pay an invoice, waits, and acts once a reviewer approves.
//!
//! ```text
//! cargo run --release --example approval
//! ```

use std::thread;
use std::time::Duration;

use rulekeep::escalation::Review;
use rulekeep::{Agent, Decision, Governor, Intent, Outcome, PolicySet, RiskLevel, Tier};

const POLICIES: &str = r#"
name = "payments"

[reviewers]
finance = ["ann", "bob"]

[[rule]]
id = "payments-need-approval"
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
        // The runtime blocks until a reviewer answers or the time is over. The verdict that comes back is final.
        let clerk = scope.spawn(|| governor.escalations().enforce_or_wait(&intent, Duration::from_secs(60)));

        // A reviewer lists what is pending and approves exactly what was shown: the digest binds the approval to it.
        let asked = loop {
            match governor.escalations().pending()?.pop() {
                Some(asked) => break asked,
                None => thread::yield_now(),
            }
        };
        println!("{} asks {}: {}", asked.agent_id, asked.reviewer.as_deref().unwrap_or("any reviewer"), asked.reason);
        println!("  {}", serde_json::to_string(&asked.intent)?);
        governor.escalations().approve(asked.id, Review::by("ann").note("the goods have arrived").of(asked.digest))?;

        let verdict = clerk.join().map_err(|_| "the clerk panicked")??;
        println!("{}: {}", verdict.decision, verdict.reasoning);
        println!("  until {}", verdict.constraints.get("expiresAt").unwrap_or_default());
        assert_eq!(verdict.decision, Decision::Allow);
        governor.report(&verdict.proof_id, Outcome::Success)?;

        // An approval can be claimed once.
        let again = governor.escalations().claim(asked.id, &intent);
        println!(
            "a second claim: {}",
            again.map_or_else(|error| error.to_string(), |verdict| verdict.decision.to_string())
        );
        Ok(())
    })
}
