//! How trust moves: successes raise an agent's score slowly, one failure lowers it at once, an operator corrects it.
//!
//! ```text
//! cargo run --release --example trust
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use rulekeep::system::{Clock, Timestamp};
use rulekeep::{Agent, Governor, Intent, Outcome, PolicySet, RiskLevel, Tier};

/// A clock that the example sets. A governor takes the time only from its clock, so a test can replace it.
#[derive(Clone)]
struct Calendar(Arc<AtomicI64>);

impl Clock for Calendar {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

const NEW_YEAR: i64 = 1_767_254_400_000; // 2026-01-01T08:00:00Z
const DAY: i64 = 24 * 60 * 60 * 1000;
const POLICIES: &str = r#"
name = "open"

[[rule]]
id = "everything"
effect = "allow"
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let calendar = Calendar(Arc::new(AtomicI64::new(NEW_YEAR)));
    let governor =
        Governor::builder().policies(PolicySet::from_toml(POLICIES)?).clock(calendar.clone()).open_in_memory()?;
    governor.agents().register(Agent::new("clerk").at_tier(Tier::T2))?;
    let read_customer = Intent::new("clerk", "read_customer", RiskLevel::Medium, ["customer:read"])?;
    let read_secret = Intent::new("clerk", "read_secret", RiskLevel::High, ["credential:read"])?;

    println!("day   score  tier");
    for day in 0..=120 {
        calendar.0.store(NEW_YEAR + day * DAY, Ordering::SeqCst);
        // Ten acts a day. A day's successes together gain what the riskiest of them gains alone.
        for _ in 0..9 {
            let verdict = governor.enforce(&read_customer)?;
            governor.report(&verdict.proof_id, Outcome::Success)?;
        }
        let verdict = governor.enforce(&read_secret)?;
        let outcome = if day == 100 { Outcome::Failure } else { Outcome::Success };
        let trust = governor.report(&verdict.proof_id, outcome)?;
        if day % 20 == 0 {
            println!("{day:>3}  {:>6}  {} {}  {outcome}", trust.score, trust.tier, trust.tier.name());
        }
    }

    governor.trust().adjust("clerk", 300_u64.try_into()?, "an incident is under investigation")?;
    println!("\nthe newest changes:");
    for entry in governor.trust().history("clerk", 1, 3)?.items {
        println!(
            "  {} -> {}: {:?} {}",
            entry.change.from,
            entry.change.to,
            entry.cause,
            entry.note.unwrap_or_default()
        );
    }
    println!("recomputed from the journal, the score is the same: {}", governor.trust().verify()?.differing.is_empty());
    Ok(governor.close()?)
}
