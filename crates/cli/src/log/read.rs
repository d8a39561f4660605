//! `rulekeep log query`, `stats` and `show`.

use std::process::ExitCode;

use rulekeep::agent::AgentId;
use rulekeep::intent::IntentId;
use rulekeep::proof::{Order, ProofCursor};
use rulekeep::{Decision, Outcome, ProofRecord, RiskLevel};
use rulekeep_server::calls::agents;
use rulekeep_server::calls::records::{self, Get, List, RecordsForm};

use crate::client::Client;
use crate::operate::{Failed, Page, Reading, StoredIntent, show as show_answer, upper};
use crate::output::{self, Column, cell};
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
    #[command(flatten)]
    page: Page,
    #[command(flatten)]
    from_where: Reading,
}

/// The records to count.
#[derive(clap::Args)]
pub(crate) struct Stats {
    /// The agent's ID
    #[arg(value_name = "AGENT")]
    agent: AgentId,
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

/// A record, and what was asked for: its action and its command or tool, if the evidence tells.
pub(super) struct Row {
    record: ProofRecord,
    request: String,
}

/// The columns of a table of records.
pub(super) const COLUMNS: &[Column<Row>] = &[
    ("time", |row| cell(&row.record.timestamp)),
    ("id", |row| cell(&row.record.id)),
    ("agent", |row| cell(&row.record.entity_id)),
    ("decision", |row| cell(&row.record.decision)),
    ("risk", |row| cell(&row.record.risk_level)),
    ("outcome", |row| cell(&row.record.outcome)),
    ("request", |row| row.request.clone()),
    ("reasoning", |row| cell(&row.record.reasoning)),
];

/// The rows of records. The request is in the evidence, which may be erased.
pub(super) fn rows(client: &Client, records: &[ProofRecord]) -> Vec<Row> {
    let request = |record: &ProofRecord| {
        let found = client.make(Get { proof_id: record.id.to_string(), evidence: Some(true) });
        let evidence = found.ok().and_then(|found| found.evidence.flatten());
        let said = StoredIntent::read(evidence.as_ref().map(|evidence| &evidence.intent)).said();
        said.map_or_else(|| "-".to_owned(), |said: String| clean(&said))
    };
    records.iter().map(|record| Row { record: record.clone(), request: request(record) }).collect()
}

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
        ..RecordsForm::default()
    };
    let form = RecordsForm { decision, risk, outcome, open, intent_id, call_id, ..of };
    let client = query.from_where.client()?;
    let answer = client.make(List(form))?;
    if let (Some(agent_id), 0) = (entity_id, answer.total) {
        // An unknown agent is probably a typing error.
        client.make_json(agents::Get { agent_id })?;
    }
    if let (Some(next), false) = (answer.next_cursor, query.from_where.json) {
        eprintln!("more: --cursor {next}");
    }
    if query.from_where.json {
        return show_answer(&answer, true);
    }
    if answer.items.is_empty() {
        eprintln!("none");
    } else {
        output::print(&output::table(&rows(&client, &answer.items), COLUMNS))?;
    }
    if answer.has_more {
        eprintln!("page {}, {} in total; next: --page {}", answer.page, answer.total, answer.page + 1);
    }
    Ok(ExitCode::SUCCESS)
}

/// Counts records.
pub(super) fn stats(stats: Stats) -> Result<ExitCode, Failed> {
    let Stats { agent, period: Period { from, to }, from_where } = stats;
    let (client, agent_id) = (from_where.client()?, agent.to_string());
    client.make_json(agents::Get { agent_id: agent_id.clone() })?;
    show_answer(&client.make_json(records::Stats { entity_id: agent_id, from, to })?, from_where.json)
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
