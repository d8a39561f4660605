//! `rulekeep agents`.

use std::process::ExitCode;

use clap::Subcommand;
use rulekeep::agent::AgentInfo;
use rulekeep::trust::{Score, TrustEntry, TrustPage};
use rulekeep_server::calls::agents::{AgentPage, Get, List, Register, Resume, Retire, Suspend};
use rulekeep_server::calls::trust::{Adjust, History};

use super::{Failed, Page, Reading, Table, Writing, score};
use crate::output::cell;

/// A subcommand of `rulekeep agents`.
#[derive(Subcommand)]
pub(crate) enum Agents {
    /// Lists the agents with their trust and state
    #[command(after_help = "Examples:\n  rulekeep agents list\n  rulekeep agents list --page-size 10 --json")]
    List {
        #[command(flatten)]
        page: Page,
        #[command(flatten)]
        from: Reading,
    },
    /// Shows everything known about an agent
    #[command(after_help = "Examples:\n  rulekeep agents show support-1")]
    Show {
        #[arg(value_name = "AGENT", help = "The agent's id")]
        agent_id: String,
        #[command(flatten)]
        from: Reading,
    },
    /// Registers an agent
    #[command(
        after_help = "Examples:\n  rulekeep agents register billing-2 --tier T2 --owner dana --label team=billing"
    )]
    Register {
        #[arg(value_name = "AGENT", help = "The agent's id")]
        agent_id: String,
        /// The initial score, 0 to 1000
        #[arg(long, conflicts_with = "tier", value_parser = score)]
        score: Option<Score>,
        /// The initial tier, T0 to T5; the score is in the middle of it
        #[arg(long, value_parser = super::upper::<rulekeep::Tier>)]
        tier: Option<rulekeep::Tier>,
        /// A label; can be given several times
        #[arg(long = "label", value_name = "LABEL")]
        labels: Vec<String>,
        /// A group of the agent; can be given several times
        #[arg(long = "group", value_name = "GROUP")]
        groups: Vec<String>,
        /// The person responsible for the agent
        #[arg(long)]
        owner: Option<String>,
        /// The highest score that the agent can reach, 0 to 1000
        #[arg(long, value_parser = score)]
        ceiling: Option<Score>,
        #[command(flatten)]
        to: Writing,
    },
    /// Suspends an agent: all its requests are denied until it is resumed
    #[command(after_help = "Examples:\n  rulekeep agents suspend support-1 --note \"acts oddly\"")]
    Suspend(Standing),
    /// Lets a suspended agent act again
    #[command(after_help = "Examples:\n  rulekeep agents resume support-1")]
    Resume(Standing),
    /// Retires an agent for good
    #[command(after_help = "Examples:\n  rulekeep agents retire support-1 --note \"the project ended\"")]
    Retire(Standing),
    /// Shows how an agent's trust came about, or sets its score
    #[command(
        after_help = "Examples:\n  rulekeep agents trust support-1\n  rulekeep agents trust support-1 --score 400 --note \"passed its review\""
    )]
    Trust(Trust),
}

/// A change of an agent's state.
#[derive(clap::Args)]
pub(crate) struct Standing {
    #[arg(value_name = "AGENT", help = "The agent's id")]
    agent_id: String,
    /// The reason, for the log
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    to: Writing,
}

/// The trust of an agent.
#[derive(clap::Args)]
pub(crate) struct Trust {
    #[arg(value_name = "AGENT", help = "The agent's id")]
    agent_id: String,
    /// Sets the score, 0 to 1000; needs the operator's key
    #[arg(long, requires = "note", conflicts_with = "store", value_parser = score)]
    score: Option<Score>,
    /// The reason for setting the score
    #[arg(long, value_name = "TEXT", requires = "score")]
    note: Option<String>,
    #[command(flatten)]
    page: Page,
    #[command(flatten)]
    from: Reading,
}

const LIST: Table<AgentPage, AgentInfo> = Table {
    rows: |agents| &agents.items,
    next: |agents| agents.has_more.then_some((agents.page, agents.total as u64)),
    columns: &[
        ("agent", |agent| cell(&agent.agent_id)),
        ("state", |agent| cell(&agent.state)),
        ("tier", |agent| cell(&agent.trust.tier)),
        ("score", |agent| cell(&agent.trust.score)),
        ("owner", |agent| cell(&agent.owner)),
        ("groups", |agent| cell(&agent.groups)),
        ("labels", |agent| cell(&agent.labels)),
    ],
};
const HISTORY: Table<TrustPage, TrustEntry> = Table {
    rows: |history| &history.items,
    next: |history| history.has_more.then_some((history.page, history.total)),
    columns: &[
        ("time", |entry| cell(&entry.timestamp)),
        ("from", |entry| cell(&entry.change.from)),
        ("to", |entry| cell(&entry.change.to)),
        ("tier", |entry| cell(&entry.change.to_tier)),
        ("cause", |entry| cell(&entry.cause)),
        ("record", |entry| cell(&entry.proof_id)),
        ("note", |entry| cell(&entry.note)),
    ],
};

/// Runs a subcommand.
pub(crate) fn agents(command: Agents) -> Result<ExitCode, Failed> {
    match command {
        Agents::List { page: Page { page, page_size }, from } => from.list(List { page, page_size }, &LIST),
        Agents::Show { agent_id, from } => show(&agent_id, &from),
        Agents::Register { agent_id, score, tier, labels, groups, owner, ceiling, to } => {
            let (labels, groups) = (Some(labels), Some(groups));
            to.run(Register { agent_id, score, tier, labels, groups, owner, ceiling, ..Register::default() })
        }
        Agents::Suspend(Standing { agent_id, note, to }) => to.run(Suspend { agent_id, note }),
        Agents::Resume(Standing { agent_id, note, to }) => to.run(Resume { agent_id, note }),
        Agents::Retire(Standing { agent_id, note, to }) => to.run(Retire { agent_id, note }),
        Agents::Trust(Trust { agent_id, score, note, page: Page { page, page_size }, from }) => match (score, note) {
            (Some(score), Some(note)) => Writing { json: from.json }.run(Adjust { agent_id, score, note }),
            _ => from.list(History { agent_id, page, page_size }, &HISTORY),
        },
    }
}

/// Shows an agent. `agent/get` returns the trust only; the list, sorted by ID, has everything.
fn show(agent_id: &str, from: &Reading) -> Result<ExitCode, Failed> {
    let client = from.client()?;
    let trust = client.make_json(Get { agent_id: agent_id.to_owned() })?;
    for page in 1.. {
        let page = client.make(List { page: Some(page), page_size: Some(200) })?;
        if let Some(known) = page.items.iter().find(|known| known.agent_id.as_str() == agent_id) {
            return super::show(known, from.json);
        }
        if !page.has_more {
            break;
        }
    }
    super::show(&trust, from.json)
}
