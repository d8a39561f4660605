//! An endpoint: what it is told, as it is asked for, as it is kept, as it is shown.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::schedule::Schedule;
use super::secrets::{SecretPrint, masked};
use rulekeep::agent::AgentId;
use rulekeep::event::EventType;
use rulekeep::extension::WebhookId;
use rulekeep::extension::closed_words;
use rulekeep::system::Timestamp;

/// An endpoint that is to be added.
#[derive(Clone)]
#[must_use]
pub struct EndpointDraft {
    pub(super) url: String,
    pub(super) events: Vec<EventType>,
    pub(super) agent_id: Option<String>,
    pub(super) secret: Option<String>,
}

impl EndpointDraft {
    /// An endpoint at this address, told every event from now on.
    pub fn to(url: impl Into<String>) -> Self {
        Self { url: url.into(), events: Vec::new(), agent_id: None, secret: None }
    }

    /// Only events of this type, and of others that are named so.
    pub fn of_type(mut self, event_type: EventType) -> Self {
        self.events.push(event_type);
        self
    }

    /// Only events about this agent.
    pub fn agent(mut self, agent_id: impl Into<String>) -> Self {
        self.agent_id = Some(agent_id.into());
        self
    }

    /// A secret of your own: `whsec_` and base 64, or any text of at least 24 bytes. Default: a new one.
    pub fn secret(mut self, text: impl Into<String>) -> Self {
        self.secret = Some(text.into());
        self
    }
}

impl std::fmt::Debug for EndpointDraft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EndpointDraft").field("url", &masked(&self.url)).finish_non_exhaustive()
    }
}

/// An endpoint that was added.
#[derive(Clone, Serialize, utoipa::ToSchema)]
#[non_exhaustive]
pub struct AddedEndpoint {
    /// Its id.
    pub id: WebhookId,
    /// The secret that signs, in the form that libraries of Standard Webhooks take. It is shown here and never again.
    pub secret: String,
}

impl std::fmt::Debug for AddedEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AddedEndpoint").field("id", &self.id).finish_non_exhaustive()
    }
}

closed_words! {
    /// How an endpoint does.
    pub enum EndpointState("endpoint state") {
        /// It is told.
        Active = "active",
        /// An event was given up, and none was delivered since: each next one is tried at once, and once more after the
        /// last step.
        Failing = "failing",
        /// Nothing is sent until it is resumed.
        Off = "off",
        /// It cannot be told: its secret is gone, or the log cannot be read.
        Broken = "broken",
    }
}

/// An endpoint as it stands.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Endpoint {
    /// Its id.
    pub id: WebhookId,
    /// Where it is: what follows the host is left out, for tokens stand there.
    pub url: String,
    /// What it is told; everything where nothing is named.
    pub events: Vec<EventType>,
    /// Of whom it is told; of everybody without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// How it does.
    pub state: EndpointState,
    /// Why it is off or broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it was added.
    pub created: Timestamp,
    /// How long is waited between the attempts, of which the first is immediate.
    #[serde(serialize_with = "seconds")]
    #[schema(value_type = Vec<f64>)]
    pub schedule: Vec<Duration>,
    /// The secrets that sign now.
    pub secrets: Vec<SecretPrint>,
    /// The entry of the log that it is told of next.
    pub next_entry: u64,
    /// How often the next event has failed.
    pub attempts: u32,
    /// When it is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt: Option<Timestamp>,
    /// How many events were given up and not redelivered.
    pub parked: u64,
}

/// What [`Webhooks::redeliver`](super::Webhooks::redeliver) came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Redelivery {
    /// How many endpoints it is sent to.
    pub endpoints: u64,
    /// Those that want it and that it is not sent to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_taken: Vec<NotTaken>,
}

/// An endpoint that an event is not sent to though it wants it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[non_exhaustive]
pub struct NotTaken {
    /// The endpoint.
    pub id: WebhookId,
    /// Why not, and what to do.
    pub reason: String,
}

#[expect(clippy::ptr_arg, reason = "serde hands out the field")]
fn seconds<S: serde::Serializer>(waits: &Vec<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(waits.iter().map(Duration::as_secs_f64))
}

/// An endpoint as the journal keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EndpointRecord {
    pub(super) id: WebhookId,
    /// As it may be seen.
    pub(super) url: String,
    /// The print of the address itself; none fits where it was kept before there were prints.
    #[serde(default)]
    pub(super) address: String,
    pub(super) events: Vec<EventType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) agent_id: Option<AgentId>,
    pub(super) schedule: Schedule,
    pub(super) secrets: Vec<SecretPrint>,
    pub(super) created: Timestamp,
}

/// What stands in the place of one that was removed.
#[derive(Serialize, Deserialize)]
pub(super) struct Removed {
    pub(super) removed: bool,
}

impl EndpointRecord {
    pub(super) fn wants(&self, event: &rulekeep::Event) -> bool {
        (self.events.is_empty() || self.events.contains(&event.event_type))
            && self.agent_id.as_ref().is_none_or(|agent_id| Some(agent_id) == event.agent_id())
    }
}
