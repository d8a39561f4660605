//! A guarded function: it runs only under a grant, the grant enforces the constraints of the decision, and the outcome is
//! reported to the governor.
//!
//! ```text
//! cargo run --release --example guarded_tool
//! ```

use std::collections::BTreeMap;

use rulekeep::grant::{Grant, GuardError};
use rulekeep::{Agent, Error, Governor, Tier};
use serde_json::{Value, json};

fn main() -> Result<(), Error> {
    let governor = Governor::builder().open_in_memory()?;
    governor.agents().register(Agent::new("mailer").at_tier(Tier::T4))?;
    governor.agents().register(Agent::new("stranger").at_tier(Tier::T1))?;
    let mut outbox = Outbox::default();

    let letter = json!({ "recipients": ["ann@example.com"], "subject": "Agenda", "body": "See you on Thursday." });
    let request =
        json!({ "method": "tools/call", "params": { "name": "send_email", "arguments": letter } }).to_string();
    for agent in ["mailer", "stranger"] {
        // Decides, runs the closure if the decision grants it, and reports its outcome.
        match governor.guard(agent, &request, |grant| outbox.send(&grant, &letter)) {
            Ok(done) => println!("{agent}: sent, {}", done.value),
            Err(GuardError::Refused { decided, .. }) => {
                println!("{agent}: {}, {}", decided.enforcement.decision, decided.enforcement.reasoning);
            }
            Err(error) => println!("{agent}: {error}"),
        }
    }
    println!("letters sent: {}", outbox.sent.values().sum::<usize>());
    governor.close()
}

/// The tool: a count of letters by recipient.
#[derive(Default)]
struct Outbox {
    sent: BTreeMap<String, usize>,
}

impl Outbox {
    /// Sends a letter. It takes a grant, so nobody can call it without a decision.
    fn send(&mut self, grant: &Grant, letter: &Value) -> Result<String, Box<dyn std::error::Error>> {
        // After DEGRADE a grant may lack a capability. This tool needs this one.
        grant.check_capability("email:send")?;
        let recipients = letter["recipients"].as_array().ok_or("no recipients")?;
        let recipients: Vec<&str> = recipients.iter().filter_map(Value::as_str).collect();
        grant.take_records(recipients.len() as u64)?;
        for recipient in &recipients {
            grant.check_target(recipient)?;
        }
        for recipient in &recipients {
            *self.sent.entry((*recipient).to_owned()).or_default() += 1;
        }
        Ok(format!("to {} recipient(s)", recipients.len()))
    }
}
