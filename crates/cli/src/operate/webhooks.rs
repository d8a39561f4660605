//! `rulekeep webhooks`.

use std::process::ExitCode;

use clap::Subcommand;
use rulekeep::event::{EventId, EventType};
use rulekeep::extension::WebhookId;
use rulekeep_server::calls::webhooks::{Add, Deliveries, EndpointList, List, Redeliver, Remove, Rotate};
use rulekeep_server::webhooks::{Delivery, DeliveryPage, Endpoint, Format};

use super::{Failed, Reading, Table, Writing};
use crate::output::cell;

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
        /// The endpoint's URL: https, and public
        url: String,
        /// A type of events to send; can be given several times (default: all types)
        #[arg(long = "event", value_name = "TYPE")]
        events: Vec<EventType>,
        /// Sends only events of this agent
        #[arg(long = "agent", value_name = "AGENT")]
        agent_id: Option<String>,
        /// The form of deliveries: event, or slack for a chat
        #[arg(long)]
        format: Option<Format>,
        /// The person for whom escalations get an approval link; whoever reads the deliveries can use it
        #[arg(long, value_name = "NAME")]
        reviewer: Option<String>,
        #[command(flatten)]
        to: Writing,
    },
    /// Removes an endpoint
    #[command(after_help = "Examples:\n  rulekeep webhooks remove whk_01m89vy2x6z7e9r8r000000003")]
    Remove {
        /// The endpoint's ID
        id: WebhookId,
        #[command(flatten)]
        to: Writing,
    },
    /// Gives an endpoint a new secret; the old one also signs for a while
    #[command(
        after_help = "Examples:\n  rulekeep webhooks rotate whk_01m89vy2x6z7e9r8r000000003 --overlap-seconds 3600"
    )]
    Rotate {
        /// The endpoint's ID
        id: WebhookId,
        /// Seconds for which the old secret also signs (default: one day)
        #[arg(long, value_name = "N")]
        overlap_seconds: Option<u64>,
        #[command(flatten)]
        to: Writing,
    },
    /// Shows the latest deliveries to an endpoint, or the parked ones
    #[command(
        after_help = "Examples:\n  rulekeep webhooks deliveries whk_01m89vy2x6z7e9r8r000000003\n  rulekeep webhooks deliveries whk_01m89vy2x6z7e9r8r000000003 --state parked"
    )]
    Deliveries {
        /// The endpoint's ID
        id: WebhookId,
        /// parked: deliveries that were given up
        #[arg(long)]
        state: Option<String>,
        /// The page, counted from 1
        #[arg(long, value_name = "N")]
        page: Option<u64>,
        #[command(flatten)]
        from: Reading,
    },
    /// Sends an event again
    #[command(after_help = "Examples:\n  rulekeep webhooks redeliver evt_01m89vy2x6z7e9r8r000000003")]
    Redeliver {
        /// The event's ID
        event_id: EventId,
        /// The endpoint (default: all endpoints that want the event)
        #[arg(long)]
        id: Option<WebhookId>,
        #[command(flatten)]
        to: Writing,
    },
}

const LIST: Table<EndpointList, Endpoint> = Table {
    rows: |list| &list.endpoints,
    next: |_| None,
    columns: &[
        ("id", |endpoint| cell(&endpoint.id)),
        ("url", |endpoint| cell(&endpoint.url)),
        ("state", |endpoint| cell(&endpoint.state)),
        ("events", |endpoint| cell(&endpoint.events)),
        ("agent", |endpoint| cell(&endpoint.agent_id)),
        ("parked", |endpoint| cell(&endpoint.parked)),
        ("next attempt", |endpoint| cell(&endpoint.next_attempt)),
        ("reason", |endpoint| cell(&endpoint.reason)),
    ],
};
const DELIVERIES: Table<DeliveryPage, Delivery> = Table {
    rows: |deliveries| &deliveries.items,
    next: |deliveries| deliveries.has_more.then_some((deliveries.page, deliveries.total)),
    columns: &[
        ("event", |delivery| cell(&delivery.event_id)),
        ("type", |delivery| cell(&delivery.event_type)),
        ("time", |delivery| cell(&delivery.at)),
        ("attempt", |delivery| cell(&delivery.attempt)),
        ("result", |delivery| cell(&delivery.result)),
        ("status", |delivery| cell(&delivery.status)),
        ("error", |delivery| cell(&delivery.error)),
    ],
};
const SECRET: &str = "the secret is shown only once: store it now";

/// Runs a subcommand.
pub(crate) fn webhooks(command: Webhooks) -> Result<ExitCode, Failed> {
    match command {
        Webhooks::List { from } => from.list(List {}, &LIST),
        Webhooks::Add { url, events, agent_id, format, reviewer, to } => {
            let events = Some(events).filter(|events| !events.is_empty());
            to.run(Add { url, events, agent_id, secret: None, format, reviewer }).inspect(|_| to.remark(SECRET))
        }
        Webhooks::Remove { id, to } => to.run(Remove { id }),
        Webhooks::Rotate { id, overlap_seconds, to } => {
            to.run(Rotate { id, overlap_seconds }).inspect(|_| to.remark(SECRET))
        }
        Webhooks::Deliveries { id, state, page, from } => from.list(Deliveries { id, page, state }, &DELIVERIES),
        Webhooks::Redeliver { event_id, id, to } => to.run(Redeliver { event_id, id }),
    }
}
