//! `rulekeep keys` and `rulekeep kill-switch`.

use std::process::ExitCode;

use clap::Subcommand;
use rulekeep::extension::KeyId;
use rulekeep::kill_switch::{KillSwitchEntry, KillSwitchId};
use rulekeep::system::Timestamp;
use rulekeep_server::calls::{keys, kill_switch};
use rulekeep_server::gateway::{KeyInfo, Plan, Scope};

use super::{Failed, Reading, Table, Writing};
use crate::output::cell;

/// A subcommand of `rulekeep keys`.
#[derive(Subcommand)]
pub(crate) enum Keys {
    /// Lists the API keys, without their text
    #[command(after_help = "Examples:\n  rulekeep keys list")]
    List {
        #[command(flatten)]
        from: Reading,
    },
    /// Creates an API key and prints its text, which is shown only once
    #[command(
        after_help = "Examples:\n  rulekeep keys create --name runtime --scope agent --agent support-1\n  rulekeep keys create --scope admin --plan pro --json"
    )]
    Create {
        /// The scope: agent, reviewer, or admin, which permits everything
        #[arg(long)]
        scope: Scope,
        /// The rate limit: free, pro, or calls per minute and a burst, such as 60:10
        #[arg(long, default_value = "free", value_parser = plan)]
        plan: Plan,
        /// A name by which to recognize the key
        #[arg(long)]
        name: Option<String>,
        /// An agent that the key is limited to; can be given several times
        #[arg(long = "agent", value_name = "AGENT")]
        agents: Vec<String>,
        /// The reviewer in whose name a key of the scope reviewer answers escalations
        #[arg(long, value_name = "NAME")]
        reviewer: Option<String>,
        /// Lets the key enforce intents that its caller built
        #[arg(long)]
        built_intents: bool,
        /// The time at which the key expires, in ISO 8601
        #[arg(long, value_name = "TIME")]
        expires_at: Option<Timestamp>,
        #[command(flatten)]
        to: Writing,
    },
    /// Revokes an API key
    #[command(after_help = "Examples:\n  rulekeep keys revoke key_01m89vy2x6z7e9r8r000000003")]
    Revoke {
        /// The key's ID
        id: KeyId,
        #[command(flatten)]
        to: Writing,
    },
}

/// A subcommand of `rulekeep kill-switch`.
#[derive(Subcommand)]
pub(crate) enum KillSwitch {
    /// Lists the kill switches that are set, oldest first
    #[command(after_help = "Examples:\n  rulekeep kill-switch list")]
    List {
        #[command(flatten)]
        from: Reading,
    },
    /// Denies everything to an agent, a group or all agents from now on
    #[command(
        after_help = "Examples:\n  rulekeep kill-switch set --all --note \"an incident\"\n  rulekeep kill-switch set --agent support-1 --by dana"
    )]
    Set(Stop),
    /// Lifts a kill switch
    #[command(after_help = "Examples:\n  rulekeep kill-switch lift stp_01m89vy2x6z7e9r8r000000003 --note \"resolved\"")]
    Lift {
        /// The kill switch's ID
        id: KillSwitchId,
        /// The person who lifts the kill switch
        #[arg(long, value_name = "NAME", default_value = "operator")]
        by: String,
        /// The reason, for the log
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
        #[command(flatten)]
        to: Writing,
    },
}

/// The scope of a kill switch.
#[derive(clap::Args)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("scope").required(true))]
pub(crate) struct Stop {
    /// Stops this agent
    #[arg(long = "agent", value_name = "AGENT", group = "scope")]
    agent_id: Option<String>,
    /// Stops the agents of this group
    #[arg(long, value_name = "GROUP", group = "scope")]
    group: Option<String>,
    /// Stops all agents
    #[arg(long, group = "scope")]
    all: bool,
    /// The person who sets the kill switch
    #[arg(long, value_name = "NAME", default_value = "operator")]
    by: String,
    /// The reason, for the log
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    to: Writing,
}

const KEYS: Table<keys::KeyList, KeyInfo> = Table {
    rows: |list| &list.keys,
    next: |_| None,
    columns: &[
        ("id", |key| cell(&key.id)),
        ("name", |key| cell(&key.name)),
        ("scope", |key| cell(&key.scope)),
        ("plan", |key| cell(&key.plan)),
        ("state", |key| cell(&key.state)),
        ("agents", |key| cell(&key.agents)),
        ("created", |key| cell(&key.created_at)),
        ("expires", |key| cell(&key.expires_at)),
        ("last used", |key| cell(&key.last_used_at)),
    ],
};
const STOPS: Table<kill_switch::Stops, KillSwitchEntry> = Table {
    rows: |list| &list.stops,
    next: |_| None,
    columns: &[
        ("id", |stop| cell(&stop.id)),
        ("scope", |stop| cell(&stop.scope)),
        ("by", |stop| cell(&stop.by)),
        ("time", |stop| cell(&stop.timestamp)),
        ("note", |stop| cell(&stop.note)),
    ],
};

/// Runs a subcommand of `rulekeep keys`.
pub(crate) fn keys(command: Keys) -> Result<ExitCode, Failed> {
    match command {
        Keys::List { from } => from.list(keys::List {}, &KEYS),
        Keys::Create { scope, plan, name, agents, reviewer, built_intents, expires_at, to } => {
            let (agents, built_intents) = (Some(agents).filter(|agents| !agents.is_empty()), Some(built_intents));
            let done = to.run(keys::Create { scope, plan, agents, expires_at, name, built_intents, reviewer });
            done.inspect(|_| to.remark("the key is shown only once: store it now"))
        }
        Keys::Revoke { id, to } => to.run(keys::Revoke { id }),
    }
}

/// Runs a subcommand of `rulekeep kill-switch`.
pub(crate) fn kill_switch(command: KillSwitch) -> Result<ExitCode, Failed> {
    match command {
        KillSwitch::List { from } => from.list(kill_switch::List {}, &STOPS),
        KillSwitch::Set(Stop { agent_id, group, all, by, note, to }) => {
            let done = to.run(kill_switch::Set { agent_id, group, all: Some(all), by, note });
            done.inspect(|_| to.remark("actions granted before may still be running: see open"))
        }
        KillSwitch::Lift { id, by, note, to } => to.run(kill_switch::Lift { id, by, note }),
    }
}

fn plan(text: &str) -> Result<Plan, String> {
    match text {
        "free" => return Ok(Plan::Free),
        "pro" => return Ok(Plan::Pro),
        _ => {}
    }
    let numbers: Option<(u32, u32)> =
        text.split_once(':').and_then(|(rate, burst)| Some((rate.parse().ok()?, burst.parse().ok()?)));
    let (rate, burst) = numbers.ok_or("expected free, pro, or requests per minute and a burst, such as 60:10")?;
    Plan::enterprise(rate, burst).map_err(|error| error.to_string())
}
