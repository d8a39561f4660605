//! `rulekeep agents`.

use std::process::ExitCode;

use clap::Subcommand;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Failed, Note, Page, Reading, Verb, Writing};

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
        #[command(flatten)]
        params: Registration,
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

/// An agent to register.
#[derive(clap::Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Registration {
    #[arg(value_name = "AGENT", help = "The agent's id")]
    agent_id: String,
    /// The initial score, 0 to 1000
    #[arg(long, conflicts_with = "tier")]
    score: Option<u16>,
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
    #[arg(long)]
    ceiling: Option<u16>,
}

/// A change of an agent's state.
#[derive(clap::Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Standing {
    #[arg(value_name = "AGENT", help = "The agent's id")]
    agent_id: String,
    #[command(flatten)]
    #[serde(flatten)]
    note: Note,
    #[command(flatten)]
    #[serde(skip)]
    to: Writing,
}

/// The trust of an agent.
#[derive(clap::Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Trust {
    #[arg(value_name = "AGENT", help = "The agent's id")]
    agent_id: String,
    /// Sets the score, 0 to 1000; needs the operator's key
    #[arg(long, requires = "note", conflicts_with = "store")]
    score: Option<u16>,
    /// The reason for setting the score
    #[arg(long, value_name = "TEXT", requires = "score")]
    note: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    page: Page,
    #[command(flatten)]
    #[serde(skip)]
    from: Reading,
}

const LIST: Verb = Verb::list(
    "agent/list",
    "/items",
    &[
        ("agent", "/agentId"),
        ("state", "/state"),
        ("tier", "/tier"),
        ("score", "/score"),
        ("owner", "/owner"),
        ("groups", "/groups"),
        ("labels", "/labels"),
    ],
);
const HISTORY: Verb = Verb::list(
    "trust/history",
    "/items",
    &[
        ("time", "/timestamp"),
        ("from", "/from"),
        ("to", "/to"),
        ("tier", "/toTier"),
        ("cause", "/cause"),
        ("record", "/proofId"),
        ("note", "/note"),
    ],
);

/// Runs a subcommand.
pub(crate) fn agents(command: Agents) -> Result<ExitCode, Failed> {
    match command {
        Agents::List { page, from } => from.run(&LIST, &page),
        Agents::Show { agent_id, from } => show(&agent_id, &from),
        Agents::Register { params, to } => to.run(&Verb::one("agent/register"), &params),
        Agents::Suspend(standing) => standing.to.run(&Verb::one("agent/suspend"), &standing),
        Agents::Resume(standing) => standing.to.run(&Verb::one("agent/resume"), &standing),
        Agents::Retire(standing) => standing.to.run(&Verb::one("agent/retire"), &standing),
        Agents::Trust(trust) if trust.score.is_some() => {
            Writing { json: trust.from.json }.run(&Verb::one("trust/adjust"), &trust)
        }
        Agents::Trust(trust) => trust.from.run(&HISTORY, &trust),
    }
}

/// Shows an agent. `agent/get` returns the trust only; the list, sorted by ID, has everything.
fn show(agent_id: &str, from: &Reading) -> Result<ExitCode, Failed> {
    let client = from.client()?;
    let mut found = client.call("agent/get", json!({ "agentId": agent_id }))?;
    for page in 1.. {
        let mut answer = client.call("agent/list", json!({ "page": page, "pageSize": 200 }))?;
        let has_more = answer["hasMore"] == true;
        let items = answer["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let known: Option<Value> = items.into_iter().find(|item| item["agentId"] == agent_id);
        if let Some(known) = known {
            found = known;
            break;
        }
        if !has_more {
            break;
        }
    }
    Verb::one("agent/get").show(&found, from.json)
}
