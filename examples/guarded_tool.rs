//! Gating a function call: the tool runs only under a grant, which keeps it within what was decided, and what became of
//! it is reported.
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
        // Decision first, then the call, then the report of its outcome.
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

/// The tool: letters by recipient.
#[derive(Default)]
struct Outbox {
    sent: BTreeMap<String, usize>,
}

impl Outbox {
    /// Sends a letter: nobody can call it without a grant, nor beyond what that allows.
    fn send(&mut self, grant: &Grant, letter: &Value) -> Result<String, Box<dyn std::error::Error>> {
        // DEGRADE would grant some of what a call needs, and this tool has no lesser form.
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
