//! `rulekeep log query`, `stats` and `show`.

use std::process::ExitCode;

use rulekeep::agent::AgentId;
use rulekeep::intent::IntentId;
use rulekeep::proof::{Order, ProofCursor};
use rulekeep::system::Timestamp;
use rulekeep::{Decision, Outcome, RiskLevel};
use rulekeep_server::calls::agents;
use rulekeep_server::calls::records::{self, Get, List, ListedRecord, RecordPage, RecordsForm};
use rulekeep_server::calls::request::StoredIntent;
use serde_json::{Map, Value, json};

use crate::client::Client;
use crate::operate::{Failed, Page, Reading, show as show_answer, upper};
use crate::output::{self, Column, Standard, cell};
use crate::times::Period;

/// A filter for records: those that match every condition.
#[derive(clap::Args)]
pub(crate) struct Query {
    /// Only records of this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<AgentId>,
    #[command(flatten)]
    period: Period,
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
    /// Prints the table as CSV (RFC 4180); an apostrophe precedes cells that a spreadsheet would compute
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    #[command(flatten)]
    page: Page,
    #[command(flatten)]
    from_where: Reading,
}

/// The records to count.
#[derive(clap::Args)]
pub(crate) struct Stats {
    /// The agent's ID (default: all agents together)
    #[arg(value_name = "AGENT")]
    agent: Option<AgentId>,
    /// The same, with the name that other commands use
    #[arg(long = "agent", value_name = "AGENT", conflicts_with = "agent")]
    named: Option<AgentId>,
    #[command(flatten)]
    period: Period,
    #[command(flatten)]
    from_where: Reading,
}

/// The record to show.
#[derive(clap::Args)]
pub(crate) struct Show {
    /// The record's ID
    #[arg(value_name = "RECORD")]
    proof_id: String,
    /// Also shows what the decision depended on
    #[arg(long)]
    evidence: bool,
    #[command(flatten)]
    from_where: Reading,
}

/// The columns of a table of records.
pub(super) const COLUMNS: &[Column<ListedRecord>] = &[
    ("time", |row| cell(&row.record.timestamp)),
    ("id", |row| cell(&row.record.id)),
    ("agent", |row| cell(&row.record.entity_id)),
    ("decision", |row| cell(&row.record.decision)),
    ("risk", |row| cell(&row.record.risk_level)),
    ("outcome", |row| cell(&row.record.outcome)),
    ("action", |row| cell(&row.request.as_ref().map(|request| &request.action))),
    ("tool", |row| cell(&row.request.as_ref().map(|request| &request.tool))),
    ("command", |row| cell(&row.request.as_ref().map(|request| &request.command))),
    ("reasoning", |row| cell(&row.record.reasoning)),
];

/// Lists records.
pub(super) fn query(query: Query) -> Result<ExitCode, Failed> {
    let Query {
        agent,
        period: Period { from, to },
        decision,
        risk,
        outcome,
        open,
        intent_id,
        call_id,
        order,
        cursor,
        ..
    } = query;
    let Page { page, page_size } = query.page;
    let (entity_id, open) = (agent.map(|agent| agent.to_string()), Some(open));
    let of = RecordsForm {
        entity_id: entity_id.clone(),
        from,
        to,
        order,
        cursor,
        page,
        page_size,
        request: Some(true),
        ..RecordsForm::default()
    };
    let form = RecordsForm { decision, risk, outcome, open, intent_id, call_id, ..of };
    let client = query.from_where.client()?;
    let answer = client.make(List(form))?;
    if let (Some(agent_id), 0) = (entity_id, answer.total) {
        // An unknown agent is probably a typing error.
        client.make_json(agents::Get { agent_id })?;
    }
    if query.from_where.json {
        return show_answer(&answer, true);
    }
    if let Some(next) = answer.next_cursor {
        eprintln!("more: --cursor {next}");
    }
    let rows = answer.items;
    if query.csv {
        let mut out = Standard::new();
        let written = output::csv(&mut out, &rows, COLUMNS);
        out.end(written)?;
    } else if rows.is_empty() {
        eprintln!("none");
    } else {
        output::print(&output::table(&rows, COLUMNS))?;
    }
    if answer.has_more {
        eprintln!("page {}, {} in total; next: --page {}", answer.page, answer.total, answer.page + 1);
    }
    Ok(ExitCode::SUCCESS)
}

/// Counts records.
pub(super) fn stats(stats: Stats) -> Result<ExitCode, Failed> {
    let Stats { agent, named, period: Period { from, to }, from_where } = stats;
    let client = from_where.client()?;
    let Some(agent_id) = agent.or(named).map(|agent| agent.to_string()) else {
        return show_answer(&stats_of_all(&client, from, to)?, from_where.json);
    };
    client.make_json(agents::Get { agent_id: agent_id.clone() })?;
    show_answer(&client.make_json(records::Stats { entity_id: agent_id, from, to })?, from_where.json)
}

/// Counts the records of all agents, by queries for their totals.
fn stats_of_all(client: &Client, from: Option<Timestamp>, to: Option<Timestamp>) -> Result<Value, Failed> {
    let ask = |form: RecordsForm| client.make(List(RecordsForm { from, to, page_size: Some(1), ..form }));
    let newest = ask(RecordsForm::default())?;
    let oldest = ask(RecordsForm { order: Some(Order::OldestFirst), ..RecordsForm::default() })?;
    let time = |page: &RecordPage| page.items.first().map(|listed| listed.record.timestamp);
    let (mut decisions, mut risks, mut outcomes) = (Map::new(), Map::new(), Map::new());
    for decision in Decision::ALL {
        let form = RecordsForm { decision: Some(*decision), ..RecordsForm::default() };
        decisions.insert(decision.to_string(), ask(form)?.total.into());
    }
    for risk in RiskLevel::ALL {
        risks.insert(risk.to_string(), ask(RecordsForm { risk: Some(*risk), ..RecordsForm::default() })?.total.into());
    }
    for outcome in Outcome::ALL {
        let form = RecordsForm { outcome: Some(*outcome), ..RecordsForm::default() };
        outcomes.insert(outcome.to_string(), ask(form)?.total.into());
    }
    Ok(json!({
        "totalRecords": newest.total,
        "decisionBreakdown": decisions,
        "riskBreakdown": risks,
        "outcomeBreakdown": outcomes,
        "period": {
            "from": time(&oldest).map(|first| from.unwrap_or(first)),
            "to": time(&newest).map(|last| to.unwrap_or(last)),
        },
    }))
}

/// Shows a record.
pub(super) fn show(Show { proof_id, evidence, from_where }: Show) -> Result<ExitCode, Failed> {
    if evidence || from_where.json {
        return from_where.run(Get { proof_id, evidence: Some(evidence) });
    }
    // The request stands in the evidence, but is what a reader looks for first.
    let client = from_where.client()?;
    let found = client.make(Get { proof_id, evidence: Some(true) })?;
    let kept = found.evidence.flatten();
    let said = StoredIntent::read(kept.as_ref().map(|evidence| &evidence.intent)).said();
    let mut shown = serde_json::to_value(&found.record).unwrap_or_default();
    let text = kept.and_then(|evidence| evidence.input).and_then(|input| serde_json::to_value(input).ok());
    if let Some(fields) = shown.as_object_mut() {
        fields.extend(said.map(|said| ("request".to_owned(), said.into())));
        fields.extend(text.map(|text| ("input".to_owned(), text)));
    }
    show_answer(&shown, false)
}
