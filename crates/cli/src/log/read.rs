//! `rulekeep log query`, `stats` and `show`.

use std::process::ExitCode;

use rulekeep::agent::AgentId;
use rulekeep::intent::IntentId;
use rulekeep::proof::{Order, ProofCursor, ProofPage};
use rulekeep::system::Timestamp;
use rulekeep::{Decision, Outcome, ProofRecord, RiskLevel};
use rulekeep_server::calls::agents;
use rulekeep_server::calls::records::{self, Get, List, RecordsForm};

use crate::operate::{Failed, Page, Reading, Table, show as show_answer, upper};
use crate::output::cell;

/// A filter for records: those that match every condition.
#[derive(clap::Args)]
pub(crate) struct Query {
    /// Only records of this agent
    #[arg(long, value_name = "AGENT")]
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
    /// Only decisions from this time on, in ISO 8601 with an offset
    #[arg(long, value_name = "TIME")]
    from: Option<Timestamp>,
    /// Only decisions up to this time, inclusive
    #[arg(long, value_name = "TIME")]
    to: Option<Timestamp>,
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

/// The table of records.
pub(super) const RECORDS: Table<ProofPage, ProofRecord> = Table {
    rows: |records| &records.items,
    next: |records| records.has_more.then_some((records.page, records.total)),
    columns: &[
        ("time", |record| cell(&record.timestamp)),
        ("id", |record| cell(&record.id)),
        ("agent", |record| cell(&record.entity_id)),
        ("decision", |record| cell(&record.decision)),
        ("risk", |record| cell(&record.risk_level)),
        ("outcome", |record| cell(&record.outcome)),
        ("reasoning", |record| cell(&record.reasoning)),
    ],
};

/// Lists records.
pub(super) fn query(query: Query) -> Result<ExitCode, Failed> {
    let Query { agent, from, to, decision, risk, outcome, open, intent_id, call_id, order, cursor, .. } = query;
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
    RECORDS.show(&answer, query.from_where.json)
}

/// Counts records.
pub(super) fn stats(stats: Stats) -> Result<ExitCode, Failed> {
    let Stats { agent, from, to, from_where } = stats;
    let (client, agent_id) = (from_where.client()?, agent.to_string());
    client.make_json(agents::Get { agent_id: agent_id.clone() })?;
    show_answer(&client.make_json(records::Stats { entity_id: agent_id, from, to })?, from_where.json)
}

/// Shows a record.
pub(super) fn show(Show { proof_id, evidence, from_where }: Show) -> Result<ExitCode, Failed> {
    from_where.run(Get { proof_id, evidence: Some(evidence) })
}
