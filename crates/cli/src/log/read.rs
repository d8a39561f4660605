//! `rulekeep log query`, `stats` and `show`.

use std::process::ExitCode;

use rulekeep::agent::AgentId;
use rulekeep::intent::IntentId;
use rulekeep::proof::{Order, ProofCursor};
use rulekeep::system::Timestamp;
use rulekeep::{Decision, Outcome, RiskLevel};
use serde::Serialize;
use serde_json::json;

use crate::operate::{Failed, Page, Reading, Verb, parameters, upper};
use crate::output::Column;

/// A filter for records: those that match every condition.
#[derive(clap::Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Query {
    /// Only records of this agent
    #[arg(long, value_name = "AGENT")]
    #[serde(rename = "entityId")]
    agent: Option<AgentId>,
    /// Only decisions from this time on, in ISO 8601 with an offset
    #[arg(long, value_name = "TIME")]
    from: Option<Timestamp>,
    /// Only decisions up to this time, inclusive
    #[arg(long, value_name = "TIME")]
    to: Option<Timestamp>,
    /// Only this decision: allow, deny, escalate or degrade
    #[arg(long, value_parser = upper::<Decision>)]
    decision: Option<Decision>,
    /// Only this effective risk: low, medium, high or critical
    #[arg(long, value_parser = upper::<RiskLevel>)]
    risk: Option<RiskLevel>,
    /// Only this outcome: success, failure or escalated
    #[arg(long, value_parser = upper::<Outcome>)]
    outcome: Option<Outcome>,
    /// Only granted actions and pending escalations without an outcome
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    open: bool,
    /// Only decisions on this intent
    #[arg(long = "intent", value_name = "INTENT")]
    intent_id: Option<IntentId>,
    /// Only the request to which its caller gave this ID
    #[arg(long = "call", value_name = "CALL", requires = "agent")]
    call_id: Option<String>,
    /// newest or oldest first (default: newest)
    #[arg(long)]
    order: Option<Order>,
    /// start, or the nextCursor of the previous page; such pages do not shift while the log grows
    #[arg(long, conflicts_with = "page")]
    cursor: Option<ProofCursor>,
    #[command(flatten)]
    #[serde(flatten)]
    page: Page,
    #[command(flatten)]
    #[serde(skip)]
    from_where: Reading,
}

/// The records to count.
#[derive(clap::Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Stats {
    /// The agent's ID
    #[arg(value_name = "AGENT")]
    #[serde(rename = "entityId")]
    agent: AgentId,
    /// Only decisions from this time on, in ISO 8601 with an offset
    #[arg(long, value_name = "TIME")]
    from: Option<Timestamp>,
    /// Only decisions up to this time, inclusive
    #[arg(long, value_name = "TIME")]
    to: Option<Timestamp>,
    #[command(flatten)]
    #[serde(skip)]
    from_where: Reading,
}

/// The record to show.
#[derive(clap::Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Show {
    /// The record's ID
    #[arg(value_name = "RECORD")]
    proof_id: String,
    /// Also shows what the decision depended on
    #[arg(long)]
    evidence: bool,
    #[command(flatten)]
    #[serde(skip)]
    from_where: Reading,
}

/// The columns of a table of records.
pub(super) const RECORDS: &[Column] = &[
    ("time", "/timestamp"),
    ("id", "/id"),
    ("agent", "/entityId"),
    ("decision", "/decision"),
    ("risk", "/riskLevel"),
    ("outcome", "/outcome"),
    ("reasoning", "/reasoning"),
];

/// Lists records.
pub(super) fn query(query: &Query) -> Result<ExitCode, Failed> {
    let client = query.from_where.client()?;
    let method = if query.agent.is_some() { "proof/query" } else { "proof/list" };
    let answer = client.call(method, parameters(query)?)?;
    if let (Some(agent), Some(0)) = (&query.agent, answer["total"].as_u64()) {
        // An unknown agent is probably a typing error.
        client.call("agent/get", json!({ "agentId": agent }))?;
    }
    if let (Some(next), false) = (answer["nextCursor"].as_str(), query.from_where.json) {
        eprintln!("more: --cursor {next}");
    }
    Verb::list(method, "/items", RECORDS).show(&answer, query.from_where.json)
}

/// Counts records.
pub(super) fn stats(stats: &Stats) -> Result<ExitCode, Failed> {
    let client = stats.from_where.client()?;
    client.call("agent/get", json!({ "agentId": stats.agent }))?;
    Verb::one("proof/stats").run(&client, stats, stats.from_where.json)
}

/// Shows a record.
pub(super) fn show(show: &Show) -> Result<ExitCode, Failed> {
    Verb::one("proof/get").run(&show.from_where.client()?, show, show.from_where.json)
}
