//! The calls on webhooks.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::call::Call;
use super::params::given;
use super::spec::{Spec, Verb};
use crate::gateway::Gateway;
use crate::webhooks::{AddedEndpoint, DeliveryPage, Endpoint, EndpointDraft, Format, NotTaken, Redelivery};
use rulekeep::Error;
use rulekeep::agent::AgentId;
use rulekeep::event::{EventId, EventType};
use rulekeep::extension::WebhookId;

/// The settings of an endpoint to add.
// Unknown fields are refused: if a misspelled one were ignored, the endpoint would receive more than intended.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Add {
    /// The URL: `https`, with a public address.
    #[schema(format = "uri", max_length = 2048)]
    pub url: String,
    /// The event types to send; all if absent.
    pub events: Option<Vec<EventType>>,
    /// The agent whose events are sent; all agents if absent.
    #[schema(value_type = Option<AgentId>)]
    pub agent_id: Option<String>,
    /// A secret of your own, at least 24 bytes.
    pub secret: Option<String>,
    /// The form of deliveries; `event` if absent.
    pub format: Option<Format>,
    /// The person for whom escalations get an approval link. Everybody who reads the deliveries can use it.
    #[schema(schema_with = super::spec::person)]
    pub reviewer: Option<String>,
}

impl Call for Add {
    const SPEC: Spec =
        Spec::post("webhook/add", "/admin/webhooks", "Adds a webhook endpoint; only this answer has its secret")
            .no_null()
            .secret()
            .errors(&[409]);
    type Answer = AddedEndpoint;

    fn run(self, gateway: &Gateway) -> Result<AddedEndpoint, Error> {
        let mut draft = self.events.into_iter().flatten().fold(EndpointDraft::to(self.url), EndpointDraft::of_type);
        draft = given(draft, self.agent_id, EndpointDraft::agent);
        draft = given(given(draft, self.format, EndpointDraft::format), self.reviewer, EndpointDraft::reviewer);
        gateway.webhooks().add(&given(draft, self.secret, EndpointDraft::secret))
    }
}

/// No parameters.
#[derive(Deserialize, Serialize, ToSchema)]
pub struct List {}

impl Call for List {
    const SPEC: Spec = Spec::get("webhook/list", "/admin/webhooks", "Lists the webhook endpoints").errors(&[409]);
    type Answer = EndpointList;

    fn run(self, gateway: &Gateway) -> Result<EndpointList, Error> {
        Ok(EndpointList { endpoints: gateway.webhooks().list()? })
    }
}

/// Every endpoint.
#[derive(Deserialize, Serialize, ToSchema)]
pub struct EndpointList {
    /// The endpoints.
    pub endpoints: Vec<Endpoint>,
}

/// The id of the endpoint.
#[derive(Serialize, ToSchema)]
pub struct WebhookRef {
    id: WebhookId,
}

/// The endpoint to remove.
#[derive(Deserialize, Serialize, ToSchema)]
pub struct Remove {
    /// The endpoint.
    pub id: WebhookId,
}

impl Call for Remove {
    const SPEC: Spec = Spec::of(Verb::Delete, "webhook/remove", "/admin/webhooks/{id}", "Removes a webhook endpoint")
        .errors(&[404, 409]);
    type Answer = WebhookRef;

    fn run(self, gateway: &Gateway) -> Result<WebhookRef, Error> {
        gateway.webhooks().remove(self.id)?;
        Ok(WebhookRef { id: self.id })
    }
}

/// The endpoint, and the time for which its old secret signs as well.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rotate {
    /// The endpoint.
    pub id: WebhookId,
    /// The time for which the old secret signs as well, in seconds.
    #[schema(default = 86400)]
    pub overlap_seconds: Option<u64>,
}

/// The default time for which an old secret signs as well, in seconds: one day.
const OVERLAP: u64 = 24 * 3600;

impl Call for Rotate {
    const SPEC: Spec =
        Spec::post("webhook/rotate", "/admin/webhooks/{id}/rotate", "Rotates the secret of a webhook endpoint")
            .secret()
            .errors(&[404, 409]);
    type Answer = WebhookSecret;

    fn run(self, gateway: &Gateway) -> Result<WebhookSecret, Error> {
        let overlap = Duration::from_secs(self.overlap_seconds.unwrap_or(OVERLAP));
        Ok(WebhookSecret { id: self.id, secret: gateway.webhooks().rotate(self.id, overlap)? })
    }
}

/// The new secret of an endpoint, which is shown only here.
#[derive(Serialize, ToSchema)]
pub struct WebhookSecret {
    id: WebhookId,
    secret: String,
}

/// The endpoint, and its new URL.
#[derive(Deserialize, ToSchema)]
pub(super) struct Readdress {
    id: WebhookId,
    #[schema(format = "uri", max_length = 2048)]
    url: String,
}

impl Call for Readdress {
    const SPEC: Spec =
        Spec::post("webhook/readdress", "/admin/webhooks/{id}/readdress", "Changes the URL of a webhook endpoint")
            .errors(&[404, 409]);
    type Answer = WebhookRef;

    fn run(self, gateway: &Gateway) -> Result<WebhookRef, Error> {
        gateway.webhooks().readdress(self.id, &self.url)?;
        Ok(WebhookRef { id: self.id })
    }
}

/// The endpoint to resume.
#[derive(Deserialize, ToSchema)]
pub(super) struct Resume {
    id: WebhookId,
}

impl Call for Resume {
    const SPEC: Spec =
        Spec::post("webhook/resume", "/admin/webhooks/{id}/resume", "Resumes a webhook endpoint that is off or broken")
            .errors(&[404, 409]);
    type Answer = WebhookRef;

    fn run(self, gateway: &Gateway) -> Result<WebhookRef, Error> {
        gateway.webhooks().resume(self.id)?;
        Ok(WebhookRef { id: self.id })
    }
}

/// The deliveries to list.
#[derive(Deserialize, Serialize, ToSchema)]
pub struct Deliveries {
    /// The endpoint.
    pub id: WebhookId,
    /// The page, counted from 1.
    #[schema(minimum = 1, maximum = 18_446_744_073_709_551_615_u64, default = 1)]
    pub page: Option<u64>,
    /// `parked` for all parked events that have not been delivered since; absent for the most recent attempts.
    #[schema(pattern = "^parked$")]
    pub state: Option<String>,
}

impl Call for Deliveries {
    const SPEC: Spec = Spec::get(
        "webhook/deliveries",
        "/admin/webhooks/{id}/deliveries",
        "Lists the latest deliveries to a webhook endpoint, or its parked events",
    )
    .errors(&[404, 409]);
    type Answer = DeliveryPage;

    fn run(self, gateway: &Gateway) -> Result<DeliveryPage, Error> {
        let page = self.page.unwrap_or(1);
        if page == 0 {
            return Err(Error::input("page", "expected a number of 1 or more"));
        }
        match self.state.as_deref() {
            None => gateway.webhooks().deliveries(self.id, page),
            Some("parked") => gateway.webhooks().parked(self.id, page),
            Some(_) => Err(Error::input("state", "expected parked; omit it for the last attempts")),
        }
    }
}

/// The event to redeliver.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Redeliver {
    /// The event.
    pub event_id: EventId,
    /// The endpoint; absent for all endpoints that subscribe to the event.
    pub id: Option<WebhookId>,
}

impl Call for Redeliver {
    const SPEC: Spec =
        Spec::post("webhook/redeliver", "/admin/webhooks/redeliver", "Sends an event again").errors(&[404, 409]);
    type Answer = Redelivered;

    fn run(self, gateway: &Gateway) -> Result<Redelivered, Error> {
        let event_id = self.event_id;
        if let Some(id) = self.id {
            gateway.webhooks().redeliver_to(event_id, id)?;
            return Ok(Redelivered { event_id, endpoints: 1, not_taken: Vec::new() });
        }
        let Redelivery { endpoints, not_taken } = gateway.webhooks().redeliver(event_id)?;
        Ok(Redelivered { event_id, endpoints, not_taken })
    }
}

/// The endpoints that an event is sent to once more.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Redelivered {
    event_id: EventId,
    endpoints: u64,
    /// The endpoints that subscribe to the event but do not receive it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_taken: Vec<NotTaken>,
}
