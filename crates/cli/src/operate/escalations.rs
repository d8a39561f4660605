//! `rulekeep escalations`.

use std::process::ExitCode;

use clap::Subcommand;
use rulekeep::escalation::{Escalation, EscalationId, EscalationPage, EscalationState, ReviewNeed, Vote};
use rulekeep::proof::Digest;
use rulekeep_server::calls::escalations::{Approve, Get, List, Reject, parse_id};
use rulekeep_server::calls::request::StoredIntent;
use serde_json::{Value, json};

use super::{Failed, Page, Reading, Table, Writing};
use crate::client::Client;
use crate::home::Home;
use crate::output::{self, cell};

/// A subcommand of `rulekeep escalations`.
#[derive(Subcommand)]
pub(crate) enum Escalations {
    /// Lists the escalations, newest first
    #[command(
        after_help = "Examples:\n  rulekeep escalations list\n  rulekeep escalations list --state pending --json"
    )]
    List {
        /// Only those in this state: pending, approved, rejected or expired
        #[arg(long)]
        state: Option<EscalationState>,
        /// Only those of this agent
        #[arg(long = "agent", value_name = "AGENT")]
        agent_id: Option<String>,
        #[command(flatten)]
        page: Page,
        #[command(flatten)]
        from: Reading,
    },
    /// Shows an escalation: the request, the reason for asking a reviewer, and the digest that an approval binds to
    #[command(after_help = "Examples:\n  rulekeep escalations show esc_01m89vy2x6z7e9r8r000000003")]
    Show {
        /// The escalation's ID, or that of its record
        #[arg(value_parser = parse_id)]
        id: EscalationId,
        #[command(flatten)]
        from: Reading,
    },
    /// Approves the request as shown; the approval binds to its digest
    #[command(
        after_help = "Examples:\n  rulekeep escalations approve esc_01m89vy2x6z7e9r8r000000003 --note \"as agreed\""
    )]
    Approve {
        #[command(flatten)]
        answer: Answer,
        /// Adds the approved values to the task's mandate, instead of approving this call only
        #[arg(long)]
        for_task: bool,
    },
    /// Rejects the request
    #[command(
        after_help = "Examples:\n  rulekeep escalations reject esc_01m89vy2x6z7e9r8r000000003 --note \"not on a Friday\""
    )]
    Reject(Answer),
}

/// A reviewer's answer.
#[derive(clap::Args)]
pub(crate) struct Answer {
    /// The escalation's ID, or that of its record
    #[arg(value_parser = parse_id)]
    id: EscalationId,
    /// The reviewer who answers
    #[arg(long, value_name = "NAME", default_value = "operator")]
    reviewer: String,
    /// The reason, for the log
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// The digest of what the reviewer saw; refused if the request has another one by now
    #[arg(long)]
    digest: Option<Digest>,
    #[command(flatten)]
    to: Writing,
}

const LIST: Table<EscalationPage, Escalation> = Table {
    rows: |escalations| &escalations.items,
    next: |escalations| escalations.has_more.then_some((escalations.page, escalations.total)),
    columns: &[
        ("id", |asked| cell(&asked.id)),
        ("state", |asked| cell(&asked.state)),
        ("agent", |asked| cell(&asked.agent_id)),
        ("risk", |asked| cell(&asked.risk_level)),
        ("reviewer", |asked| cell(&asked.reviewer)),
        ("expires", |asked| cell(&asked.expires_at)),
        ("asked", |asked| cell(&asked.input)),
        ("reason", |asked| cell(&asked.reason)),
    ],
};

/// Runs a subcommand.
pub(crate) fn escalations(command: Escalations) -> Result<ExitCode, Failed> {
    match command {
        Escalations::List { state, agent_id, page: Page { page, page_size }, from } => {
            from.list(List { state, agent_id, page, page_size }, &LIST)
        }
        Escalations::Show { id, from } => {
            let asked = from.client()?.make(Get { id })?;
            output::print(&if from.json { output::json(&asked) } else { described(&asked) })?;
            Ok(ExitCode::SUCCESS)
        }
        Escalations::Approve { answer, for_task } => approve(answer, for_task),
        Escalations::Reject(Answer { id, reviewer, note, digest, to }) => to.run(Reject { id, reviewer, note, digest }),
    }
}

/// Shows the request, and approves exactly what was shown.
fn approve(answer: Answer, for_task: bool) -> Result<ExitCode, Failed> {
    let Answer { id, reviewer, note, mut digest, to } = answer;
    let client = Client::operating(&Home::find()?)?;
    if digest.is_none() {
        let asked = client.make(Get { id })?;
        eprintln!("{}\n", described(&asked));
        digest = Some(asked.digest);
    }
    super::show(&client.make(Approve { id, reviewer, note, digest, for_task: Some(for_task) })?, to.json)
}

/// Returns an escalation as its reviewer reads it.
fn described(asked: &Escalation) -> String {
    output::named(details(asked).iter().map(|(name, value)| (*name, value)))
}

/// Returns everything that a reviewer has to know: names and values.
pub(crate) fn details(asked: &Escalation) -> Vec<(&'static str, Value)> {
    let intent = StoredIntent::read(asked.intent.as_ref());
    let lines = |lines: Vec<String>| Value::from(lines.join("\n"));
    let rows = [
        ("escalation", json!(asked.id)),
        ("state", json!(asked.state)),
        ("ended because", json!(asked.why)),
        ("agent", json!(asked.agent_id)),
        ("risk", json!(asked.risk_level)),
        ("action", json!(intent.parsed_action)),
        ("capabilities", json!(intent.required_capabilities)),
        ("request", json!(asked.input)),
        ("context", json!(output::flat(&intent.context))),
        ("unreadable", json!(asked.unreadable)),
        ("reason", json!(asked.reason)),
        ("task", json!(asked.task.as_ref().map(output::flat))),
        ("needs", lines(asked.needs.iter().map(needed).collect())),
        ("votes", lines(asked.votes.iter().map(voted).collect())),
        ("would grant", json!(asked.on_approval.granted)),
        ("would deny", json!(asked.on_approval.denied)),
        ("constraints", json!(output::flat(&asked.on_approval.constraints))),
        ("granted", json!(asked.granted.as_ref().map(output::flat))),
        ("created", json!(asked.created_at)),
        ("expires", json!(asked.expires_at)),
        ("claimed", json!(asked.claimed_at)),
        ("record", json!(asked.proof_id)),
        ("resolution", json!(asked.resolution)),
        ("intent", json!(intent.id)),
        ("input digest", json!(asked.input_digest)),
        ("digest", json!(asked.digest)),
    ];
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    rows.into_iter().filter(|(_, value)| !is_empty(value)).collect()
}

fn needed(need: &ReviewNeed) -> String {
    let reviewer = need.reviewer.as_deref().unwrap_or("anybody but the requester");
    let people = if need.people.is_empty() { String::new() } else { format!(" ({})", need.people.join(", ")) };
    output::clean(&format!("{} by {reviewer}{people}", output::counted(need.approvals.into(), "approval")))
}

fn voted(vote: &Vote) -> String {
    let word = if vote.approved { "approved" } else { "rejected" };
    let note = vote.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
    output::clean(&format!("{word} by {}{note}", vote.reviewer))
}
