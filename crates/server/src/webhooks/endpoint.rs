//! A webhook endpoint: as requested, as stored, and as shown.

use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::payload::{Format, is_sent};
use super::schedule::Schedule;
use super::secrets::{SecretPrint, masked};
use rulekeep::agent::AgentId;
use rulekeep::event::EventType;
use rulekeep::extension::WebhookId;
use rulekeep::extension::closed_words;
use rulekeep::system::Timestamp;

/// The settings of an endpoint to be added.
#[derive(Clone)]
#[must_use]
pub struct EndpointDraft {
    pub(super) url: String,
    pub(super) events: Vec<EventType>,
    pub(super) agent_id: Option<String>,
    pub(super) secret: Option<String>,
    pub(super) format: Format,
    pub(super) reviewer: Option<String>,
}

impl EndpointDraft {
    /// Creates settings for this URL that subscribe to every event from now on.
    pub fn to(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            events: Vec::new(),
            agent_id: None,
            secret: None,
            format: Format::default(),
            reviewer: None,
        }
    }

    /// Limits the endpoint to events of this type, in addition to types named before.
    pub fn of_type(mut self, event_type: EventType) -> Self {
        self.events.push(event_type);
        self
    }

    /// Limits the endpoint to events about this agent.
    pub fn agent(mut self, agent_id: impl Into<String>) -> Self {
        self.agent_id = Some(agent_id.into());
        self
    }

    /// Sets the form of deliveries. By default events are sent as they are.
    pub fn format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// Adds an approval link for this person to each escalation that the person can answer. Everybody who reads the
    /// deliveries can use the links.
    pub fn reviewer(mut self, reviewer: impl Into<String>) -> Self {
        self.reviewer = Some(reviewer.into());
        self
    }

    /// Sets the signing secret: `whsec_` and base64, or any text of at least 24 bytes. By default a new secret is
    /// generated.
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

/// A newly added endpoint.
#[derive(Clone, Serialize, utoipa::ToSchema)]
#[non_exhaustive]
pub struct AddedEndpoint {
    /// The endpoint's id.
    pub id: WebhookId,
    /// The signing secret, in the form that Standard Webhooks libraries accept. It is shown only here.
    pub secret: String,
}

impl std::fmt::Debug for AddedEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AddedEndpoint").field("id", &self.id).finish_non_exhaustive()
    }
}

closed_words! {
    /// The state of an endpoint.
    pub enum EndpointState("endpoint state") {
        /// Events are delivered to the endpoint.
        Active = "active",
        /// An event was parked and none was delivered since. Each following event is tried at once, and once more
        /// after the last wait of the schedule.
        Failing = "failing",
        /// Nothing is sent until the endpoint is resumed.
        Off = "off",
        /// Nothing can be sent: the secret is missing, or the log cannot be read.
        Broken = "broken",
    }
}

/// The description of an endpoint.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Endpoint {
    /// The endpoint's id.
    pub id: WebhookId,
    /// The URL without the part after the host, which often contains tokens.
    pub url: String,
    /// The event types subscribed to; empty for all types.
    pub events: Vec<EventType>,
    /// The agent whose events are sent; absent for all agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The form of deliveries.
    pub format: Format,
    /// The person whom the approval links are for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<String>,
    /// The state of the endpoint.
    pub state: EndpointState,
    /// The reason the endpoint is off or broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The time at which the endpoint was added.
    pub created: Timestamp,
    /// The waits between delivery attempts, in seconds. The first attempt is immediate.
    #[serde(serialize_with = "seconds", deserialize_with = "waits")]
    #[schema(value_type = Vec<f64>)]
    pub schedule: Vec<Duration>,
    /// The secrets that sign now.
    pub secrets: Vec<SecretPrint>,
    /// The log entry that is delivered next.
    pub next_entry: u64,
    /// The number of failed attempts for the next event.
    pub attempts: u32,
    /// The time of the next attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt: Option<Timestamp>,
    /// The number of parked events that were not redelivered.
    pub parked: u64,
}

/// The result of [`Webhooks::redeliver`](super::Webhooks::redeliver).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Redelivery {
    /// The number of endpoints that the event is sent to.
    pub endpoints: u64,
    /// The endpoints that subscribe to the event but do not receive it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_taken: Vec<NotTaken>,
}

/// An endpoint that subscribes to an event but does not receive it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[non_exhaustive]
pub struct NotTaken {
    /// The endpoint's id.
    pub id: WebhookId,
    /// The reason, and what to do about it.
    pub reason: String,
}

#[expect(clippy::ptr_arg, reason = "serde hands out the field")]
fn seconds<S: serde::Serializer>(waits: &Vec<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(waits.iter().map(Duration::as_secs_f64))
}

fn waits<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Duration>, D::Error> {
    let seconds = Vec::deserialize(deserializer)?;
    seconds.into_iter().map(|wait| Duration::try_from_secs_f64(wait).map_err(D::Error::custom)).collect()
}

/// The stored form of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EndpointRecord {
    pub(super) id: WebhookId,
    /// The URL as it may be shown.
    pub(super) url: String,
    /// The fingerprint of the full URL. Empty in records from before fingerprints existed, which matches no URL.
    #[serde(default)]
    pub(super) address: String,
    pub(super) events: Vec<EventType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) agent_id: Option<AgentId>,
    #[serde(default)]
    pub(super) format: Format,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reviewer: Option<String>,
    pub(super) schedule: Schedule,
    pub(super) secrets: Vec<SecretPrint>,
    pub(super) created: Timestamp,
}

/// The stored form of a removed endpoint.
#[derive(Serialize, Deserialize)]
pub(super) struct Removed {
    pub(super) removed: bool,
}

impl EndpointRecord {
    pub(super) fn wants(&self, event: &rulekeep::Event) -> bool {
        (self.events.is_empty() || self.events.contains(&event.event_type))
            && self.agent_id.as_ref().is_none_or(|agent_id| Some(agent_id) == event.agent_id())
            && is_sent(self.format, event)
    }
}
