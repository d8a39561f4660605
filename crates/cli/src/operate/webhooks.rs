//! `rulekeep webhooks`.

use std::process::ExitCode;

use clap::Subcommand;
use rulekeep::event::EventType;
use serde::Serialize;

use super::{Failed, Id, Nothing, Reading, Verb, Writing};

/// A subcommand of `rulekeep webhooks`.
#[derive(Subcommand)]
pub(crate) enum Webhooks {
    /// Lists the endpoints to which events are sent
    #[command(after_help = "Examples:\n  rulekeep webhooks list")]
    List {
        #[command(flatten)]
        from: Reading,
    },
    /// Adds an endpoint and prints the secret that signs its events, which is shown only once
    #[command(
        after_help = "Examples:\n  rulekeep webhooks add https://audit.example/rulekeep\n  rulekeep webhooks add https://audit.example/rulekeep --event alert.triggered --agent support-1"
    )]
    Add {
        #[command(flatten)]
        params: Endpoint,
        #[command(flatten)]
        to: Writing,
    },
    /// Removes an endpoint
    #[command(after_help = "Examples:\n  rulekeep webhooks remove whk_01m89vy2x6z7e9r8r000000003")]
    Remove {
        /// The endpoint's ID
        id: String,
        #[command(flatten)]
        to: Writing,
    },
    /// Gives an endpoint a new secret; the old one also signs for a while
    #[command(
        after_help = "Examples:\n  rulekeep webhooks rotate whk_01m89vy2x6z7e9r8r000000003 --overlap-seconds 3600"
    )]
    Rotate {
        #[command(flatten)]
        params: Rotation,
        #[command(flatten)]
        to: Writing,
    },
    /// Shows the latest deliveries to an endpoint, or the parked ones
    #[command(
        after_help = "Examples:\n  rulekeep webhooks deliveries whk_01m89vy2x6z7e9r8r000000003\n  rulekeep webhooks deliveries whk_01m89vy2x6z7e9r8r000000003 --state parked"
    )]
    Deliveries {
        #[command(flatten)]
        params: Attempts,
        #[command(flatten)]
        from: Reading,
    },
    /// Sends an event again
    #[command(after_help = "Examples:\n  rulekeep webhooks redeliver evt_01m89vy2x6z7e9r8r000000003")]
    Redeliver {
        #[command(flatten)]
        params: Redelivery,
        #[command(flatten)]
        to: Writing,
    },
}

/// An endpoint to add.
#[derive(clap::Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Endpoint {
    /// The endpoint's URL: https, and public
    url: String,
    /// A type of events to send; can be given several times (default: all types)
    #[arg(long = "event", value_name = "TYPE")]
    events: Vec<EventType>,
    /// Sends only events of this agent
    #[arg(long = "agent", value_name = "AGENT")]
    agent_id: Option<String>,
}

/// A secret to rotate.
#[derive(clap::Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rotation {
    /// The endpoint's ID
    id: String,
    /// Seconds for which the old secret also signs (default: one day)
    #[arg(long, value_name = "N")]
    overlap_seconds: Option<u64>,
}

/// A filter for deliveries.
#[derive(clap::Args, Serialize)]
pub(crate) struct Attempts {
    /// The endpoint's ID
    id: String,
    /// parked: deliveries that were given up
    #[arg(long)]
    state: Option<String>,
    /// The page, counted from 1
    #[arg(long, value_name = "N")]
    page: Option<u64>,
}

/// An event to send again.
#[derive(clap::Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Redelivery {
    /// The event's ID
    event_id: String,
    /// The endpoint (default: all endpoints that want the event)
    #[arg(long)]
    id: Option<String>,
}

const LIST: Verb = Verb::list(
    "webhook/list",
    "/endpoints",
    &[
        ("id", "/id"),
        ("url", "/url"),
        ("state", "/state"),
        ("events", "/events"),
        ("agent", "/agentId"),
        ("parked", "/parked"),
        ("next attempt", "/nextAttempt"),
        ("reason", "/reason"),
    ],
);
const DELIVERIES: Verb = Verb::list(
    "webhook/deliveries",
    "/items",
    &[
        ("event", "/eventId"),
        ("type", "/type"),
        ("time", "/at"),
        ("attempt", "/attempt"),
        ("result", "/result"),
        ("status", "/status"),
        ("error", "/error"),
    ],
);
const SECRET: &str = "the secret is shown only once: store it now";

/// Runs a subcommand.
pub(crate) fn webhooks(command: Webhooks) -> Result<ExitCode, Failed> {
    match command {
        Webhooks::List { from } => from.run(&LIST, &Nothing {}),
        Webhooks::Add { params, to } => to.run(&Verb::one("webhook/add").remark(SECRET), &params),
        Webhooks::Remove { id, to } => to.run(&Verb::one("webhook/remove"), &Id { id: &id }),
        Webhooks::Rotate { params, to } => to.run(&Verb::one("webhook/rotate").remark(SECRET), &params),
        Webhooks::Deliveries { params, from } => from.run(&DELIVERIES, &params),
        Webhooks::Redeliver { params, to } => to.run(&Verb::one("webhook/redeliver"), &params),
    }
}
