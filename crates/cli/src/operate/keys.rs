//! `rulekeep keys` and `rulekeep kill-switch`.

use std::process::ExitCode;

use clap::Subcommand;
use rulekeep::system::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Failed, Id, Note, Nothing, Reading, Verb, Writing};

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
        #[command(flatten)]
        params: Draft,
        #[command(flatten)]
        to: Writing,
    },
    /// Revokes an API key
    #[command(after_help = "Examples:\n  rulekeep keys revoke key_01m89vy2x6z7e9r8r000000003")]
    Revoke {
        /// The key's ID
        id: String,
        #[command(flatten)]
        to: Writing,
    },
}

/// A key to create.
#[derive(clap::Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Draft {
    /// The scope: agent, or admin, which permits everything
    #[arg(long)]
    scope: String,
    /// The rate limit: free, pro, or calls per minute and a burst, such as 60:10
    #[arg(long, default_value = "free", value_parser = plan)]
    plan: Value,
    /// A name by which to recognize the key
    #[arg(long)]
    name: Option<String>,
    /// An agent that the key is limited to; can be given several times
    #[arg(long = "agent", value_name = "AGENT")]
    agents: Vec<String>,
    /// Lets the key enforce intents that its caller built
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    built_intents: bool,
    /// The time at which the key expires, in ISO 8601
    #[arg(long, value_name = "TIME")]
    expires_at: Option<Timestamp>,
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
        #[command(flatten)]
        params: Lifting,
        #[command(flatten)]
        to: Writing,
    },
}

/// The scope of a kill switch.
#[derive(clap::Args, Serialize)]
#[serde(rename_all = "camelCase")]
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
    #[command(flatten)]
    #[serde(flatten)]
    note: Note,
    #[command(flatten)]
    #[serde(skip)]
    to: Writing,
}

/// The kill switch to lift.
#[derive(clap::Args, Serialize)]
pub(crate) struct Lifting {
    /// The kill switch's ID
    id: String,
    /// The person who lifts the kill switch
    #[arg(long, value_name = "NAME", default_value = "operator")]
    by: String,
    #[command(flatten)]
    #[serde(flatten)]
    note: Note,
}

const KEYS: Verb = Verb::list(
    "key/list",
    "/keys",
    &[
        ("id", "/id"),
        ("name", "/name"),
        ("scope", "/scope"),
        ("plan", "/plan"),
        ("state", "/state"),
        ("agents", "/agents"),
        ("created", "/createdAt"),
        ("expires", "/expiresAt"),
        ("last used", "/lastUsedAt"),
    ],
);
const STOPS: Verb = Verb::list(
    "stop/list",
    "/stops",
    &[("id", "/id"), ("scope", "/scope"), ("by", "/by"), ("time", "/timestamp"), ("note", "/note")],
);

/// Runs a subcommand of `rulekeep keys`.
pub(crate) fn keys(command: Keys) -> Result<ExitCode, Failed> {
    match command {
        Keys::List { from } => from.run(&KEYS, &Nothing {}),
        Keys::Create { params, to } => {
            to.run(&Verb::one("key/create").remark("the key is shown only once: store it now"), &params)
        }
        Keys::Revoke { id, to } => to.run(&Verb::one("key/revoke"), &Id { id: &id }),
    }
}

/// Runs a subcommand of `rulekeep kill-switch`.
pub(crate) fn kill_switch(command: KillSwitch) -> Result<ExitCode, Failed> {
    match command {
        KillSwitch::List { from } => from.run(&STOPS, &Nothing {}),
        KillSwitch::Set(stop) => {
            let verb = Verb::one("stop/set").remark("actions granted before may still be running: see open");
            stop.to.run(&verb, &stop)
        }
        KillSwitch::Lift { params, to } => to.run(&Verb::one("stop/lift"), &params),
    }
}

fn plan(text: &str) -> Result<Value, String> {
    if matches!(text, "free" | "pro") {
        return Ok(Value::from(text));
    }
    let numbers: Option<(u32, u32)> =
        text.split_once(':').and_then(|(rate, burst)| Some((rate.parse().ok()?, burst.parse().ok()?)));
    let (rate, burst) = numbers.ok_or("expected free, pro, or requests per minute and a burst, such as 60:10")?;
    Ok(json!({ "perMinute": rate, "burst": burst }))
}
