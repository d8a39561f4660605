//! Gating a function call: the tool runs only when the governor allows it, and
//! what became of it is reported.
//!
//! ```text
//! cargo run --release --example guarded_tool
//! ```

use std::collections::BTreeMap;

use rulekeep::{Agent, Decision, Enforcement, Error, Governor, Outcome, Tier};
use serde_json::{Value, json};

fn main() -> Result<(), Error> {
    let governor = Governor::builder().open_in_memory()?;
    governor.agents().register(Agent::new("mailer").at_tier(Tier::T4))?;
    governor.agents().register(Agent::new("stranger").at_tier(Tier::T1))?;
    let mut outbox = Outbox::default();

    let letter = json!({ "recipients": ["ann@example.com"], "subject": "Agenda", "body": "See you on Thursday." });
    for agent in ["mailer", "stranger"] {
        match guarded(&governor, agent, "send_email", &letter, |arguments| outbox.send(arguments))? {
            Guarded::Done(receipt) => println!("{agent}: sent, {receipt}"),
            Guarded::Failed(why) => println!("{agent}: allowed, but the tool failed: {why}"),
            Guarded::Refused(verdict) => println!("{agent}: {}, {}", verdict.decision, verdict.reasoning),
        }
    }
    println!("letters sent: {}", outbox.sent.values().sum::<usize>());
    governor.close()
}

/// What became of a guarded call.
enum Guarded<T> {
    Done(T),
    Failed(String),
    Refused(Box<Enforcement>),
}

/// Runs a tool if the agent may: decision first, then the call, then the report.
///
/// Only ALLOW runs it. DEGRADE would grant some of what the call needs, and this
/// tool has no lesser form; ESCALATE waits for a person.
fn guarded<T>(
    governor: &Governor,
    agent: &str,
    tool: &str,
    arguments: &Value,
    call: impl FnOnce(&Value) -> Result<T, String>,
) -> Result<Guarded<T>, Error> {
    let request = json!({ "method": "tools/call", "params": { "name": tool, "arguments": arguments } });
    let verdict = governor.enforce_input(agent, &request.to_string())?.enforcement;
    if verdict.decision != Decision::Allow {
        return Ok(Guarded::Refused(Box::new(verdict)));
    }
    let called = within(&verdict, arguments).and_then(|()| call(arguments));
    let outcome = if called.is_ok() { Outcome::Success } else { Outcome::Failure };
    governor.report(&verdict.proof_id, outcome)?;
    Ok(called.map_or_else(Guarded::Failed, Guarded::Done))
}

/// What was granted has limits, and keeping to them is the runtime's part: here,
/// how many recipients one call may have, and which.
fn within(verdict: &Enforcement, arguments: &Value) -> Result<(), String> {
    let recipients: Vec<&str> =
        arguments["recipients"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if let Some(most) = verdict.constraints.max_records().filter(|most| recipients.len() as u64 > *most) {
        return Err(format!("{} recipients, {most} are granted", recipients.len()));
    }
    match recipients.iter().find(|recipient| !verdict.constraints.allows_target(recipient)) {
        Some(recipient) => Err(format!("{recipient} is not among the targets that are granted")),
        None => Ok(()),
    }
}

/// The tool: letters by recipient.
#[derive(Default)]
struct Outbox {
    sent: BTreeMap<String, usize>,
}

impl Outbox {
    fn send(&mut self, letter: &Value) -> Result<String, String> {
        let recipients = letter["recipients"].as_array().ok_or("no recipients")?;
        for recipient in recipients.iter().filter_map(Value::as_str) {
            *self.sent.entry(recipient.to_owned()).or_default() += 1;
        }
        Ok(format!("to {} recipient(s)", recipients.len()))
    }
}
