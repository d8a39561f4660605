//! The load: many agents and intents, each different from the last.

use rulekeep::{Agent, Error, Governor, Intent, Tier};
use serde_json::json;

/// The agent with a tenth of the records.
pub(crate) const BUSY: &str = "agent-0";
const AGENTS: u64 = 1_000;
/// The requests of agents, for the recommended policies.
const ASKED: [(&str, &[&str]); 6] = [
    ("read_document", &["document:read"]),
    ("send_email", &["email:send"]),
    ("update_task", &["task:write"]),
    ("search_web", &["web:read"]),
    ("delete_file", &["file:delete"]),
    ("read_calendar", &["calendar:read"]),
];

pub(crate) fn register(governor: &Governor) -> Result<(), Error> {
    for agent in 0..AGENTS {
        governor.agents().register(Agent::new(format!("agent-{agent}")).at_tier(Tier::T4))?;
    }
    Ok(())
}

/// Returns the intent with this number. A tenth of the intents are the busy agent's.
pub(crate) fn intent(number: u64) -> Result<Intent, Error> {
    // Any odd factor would do; consecutive numbers must give different results.
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let agent =
        if number.is_multiple_of(10) { BUSY.to_owned() } else { format!("agent-{}", 1 + (mixed >> 32) % (AGENTS - 1)) };
    let (action, capabilities) = ASKED[(mixed >> 7) as usize % ASKED.len()];
    let intent = Intent::new(&agent, action, rulekeep::RiskLevel::Low, capabilities)?;
    Ok(intent
        .with_context("target", json!(format!("item-{:x}@example.com", mixed >> 20)))
        .with_context("requestId", json!(format!("{mixed:016x}")))
        .with_context("recordCount", json!(mixed % 97)))
}
