//! `rulekeep escalations`.

use std::process::ExitCode;

use clap::Subcommand;
use rulekeep::escalation::EscalationState;
use serde::Serialize;
use serde_json::Value;

use super::{Failed, Id, Page, Reading, Verb, Writing};
use crate::client::Client;
use crate::home::Home;
use crate::output;

/// A subcommand of `rulekeep escalations`.
#[derive(Subcommand)]
pub(crate) enum Escalations {
    /// Lists the escalations, newest first
    #[command(
        after_help = "Examples:\n  rulekeep escalations list\n  rulekeep escalations list --state pending --json"
    )]
    List {
        #[command(flatten)]
        params: Filters,
        #[command(flatten)]
        from: Reading,
    },
    /// Shows an escalation: the request, the reason for asking a reviewer, and the digest that an approval binds to
    #[command(after_help = "Examples:\n  rulekeep escalations show esc_01m89vy2x6z7e9r8r000000003")]
    Show {
        /// The escalation's ID, or that of its record
        id: String,
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

/// A filter for escalations.
#[derive(clap::Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Filters {
    /// Only those in this state: pending, approved, rejected or expired
    #[arg(long)]
    state: Option<EscalationState>,
    /// Only those of this agent
    #[arg(long = "agent", value_name = "AGENT")]
    agent_id: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    page: Page,
}

/// A reviewer's answer.
#[derive(clap::Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    /// The escalation's ID, or that of its record
    id: String,
    /// The reviewer who answers
    #[arg(long, value_name = "NAME", default_value = "operator")]
    reviewer: String,
    /// The reason, for the log
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// The digest of what the reviewer saw; refused if the request has another one by now
    #[arg(long)]
    digest: Option<String>,
    #[arg(skip)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    for_task: bool,
    #[command(flatten)]
    #[serde(skip)]
    to: Writing,
}

const LIST: Verb = Verb::list(
    "escalation/list",
    "/items",
    &[
        ("id", "/id"),
        ("state", "/state"),
        ("agent", "/agentId"),
        ("risk", "/riskLevel"),
        ("reviewer", "/reviewer"),
        ("expires", "/expiresAt"),
        ("asked", "/input"),
        ("reason", "/reason"),
    ],
);

/// Runs a subcommand.
pub(crate) fn escalations(command: Escalations) -> Result<ExitCode, Failed> {
    match command {
        Escalations::List { params, from } => from.run(&LIST, &params),
        Escalations::Show { id, from } => {
            let asked = from.client()?.call("escalation/get", super::parameters(&Id { id: &id })?)?;
            output::print(&if from.json { output::json(&asked) } else { described(&asked) })?;
            Ok(ExitCode::SUCCESS)
        }
        Escalations::Approve { answer, for_task } => approve(Answer { for_task, ..answer }),
        Escalations::Reject(answer) => answer.to.run(&Verb::one("escalation/reject"), &answer),
    }
}

/// Shows the request, and approves exactly what was shown.
fn approve(mut answer: Answer) -> Result<ExitCode, Failed> {
    let client = Client::operating(&Home::find()?)?;
    if answer.digest.is_none() {
        let asked = client.call("escalation/get", super::parameters(&Id { id: &answer.id })?)?;
        eprintln!("{}\n", described(&asked));
        answer.digest = asked["digest"].as_str().map(str::to_owned);
    }
    Verb::one("escalation/approve").run(&client, &answer, answer.to.json)
}

/// Returns an escalation as its reviewer reads it.
fn described(asked: &Value) -> String {
    let at = |place: &str| asked.pointer(place).cloned().unwrap_or_default();
    let below = |place: &str| Value::from(asked.pointer(place).map(output::flat).unwrap_or_default());
    let rows = [
        ("escalation", at("/id")),
        ("state", at("/state")),
        ("ended because", at("/why")),
        ("agent", at("/agentId")),
        ("risk", at("/riskLevel")),
        ("action", at("/intent/parsedAction")),
        ("capabilities", at("/intent/requiredCapabilities")),
        ("request", at("/input")),
        ("context", below("/intent/context")),
        ("unreadable", at("/unreadable")),
        ("reason", at("/reason")),
        ("task", below("/task")),
        ("needs", listed(asked, "needs", needed)),
        ("votes", listed(asked, "votes", voted)),
        ("would grant", at("/onApproval/granted")),
        ("would deny", at("/onApproval/denied")),
        ("constraints", below("/onApproval/constraints")),
        ("granted", below("/granted")),
        ("created", at("/createdAt")),
        ("expires", at("/expiresAt")),
        ("claimed", at("/claimedAt")),
        ("record", at("/proofId")),
        ("resolution", at("/resolution")),
        ("intent", at("/intent/id")),
        ("input digest", at("/inputDigest")),
        ("digest", at("/digest")),
    ];
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    output::named(rows.iter().filter(|(_, value)| !is_empty(value)).map(|(name, value)| (*name, value)))
}

fn listed(asked: &Value, name: &str, described: impl Fn(&Value) -> String) -> Value {
    let lines: Vec<String> = asked[name].as_array().into_iter().flatten().map(described).collect();
    lines.join("\n").into()
}

fn needed(need: &Value) -> String {
    let reviewer = need["reviewer"].as_str().unwrap_or("anybody but the requester");
    let people: Vec<&str> = need["people"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let people = if people.is_empty() { String::new() } else { format!(" ({})", people.join(", ")) };
    match need["approvals"].as_u64() {
        Some(count) if count > 1 => output::clean(&format!("{count} approvals by {reviewer}{people}")),
        _ => output::clean(&format!("1 approval by {reviewer}{people}")),
    }
}

fn voted(vote: &Value) -> String {
    let word = if vote["approved"] == true { "approved" } else { "rejected" };
    let note = vote["note"].as_str().map(|note| format!(": {note}")).unwrap_or_default();
    output::clean(&format!("{word} by {}{note}", vote["reviewer"].as_str().unwrap_or_default()))
}
