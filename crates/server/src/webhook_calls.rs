//! The calls about webhooks: add, list, remove, rotate, readdress, resume, deliveries, redeliver.

use std::time::Duration;

use serde_json::{Value, json};

use crate::params::{Faults, Params};
use crate::webhook::{EndpointDraft, Webhooks};
use crate::wire::{merge, to_json};
use rulekeep::Error;
use rulekeep::event::{EventId, EventType};
use rulekeep::extension::WebhookId;
use rulekeep::intent::InvalidValue;

/// Every call by its name.
pub(crate) const CALLS: &[(&str, Call)] = &[
    ("webhook/add", add),
    ("webhook/list", |webhooks, _| Ok(json!({ "endpoints": webhooks.list()? }))),
    ("webhook/remove", remove),
    ("webhook/rotate", rotate),
    ("webhook/readdress", readdress),
    ("webhook/resume", resume),
    ("webhook/deliveries", deliveries),
    ("webhook/redeliver", redeliver),
];

/// A call by its name.
pub(crate) fn find(name: &str) -> Option<Call> {
    CALLS.iter().find(|(known, _)| *known == name).map(|(_, call)| *call)
}

/// A call on webhooks.
pub(crate) type Call = fn(&Webhooks, &Params) -> Result<Value, Error>;

const FAULTS: Faults = Faults::Input;

/// Adds an endpoint: `{url, events?, agentId?, secret?}`.
fn add(webhooks: &Webhooks, params: &Params) -> Result<Value, Error> {
    // A misspelt field that is dropped would tell an endpoint more than was meant.
    params.only_given(&[&["url", "events", "agentId", "secret"]])?;
    let mut draft = EndpointDraft::to(params.text("url", FAULTS)?);
    for word in params.texts("events")? {
        let event_type: EventType =
            word.parse().map_err(|error: InvalidValue| Error::input("events", error.to_string()))?;
        draft = draft.of_type(event_type);
    }
    if let Some(agent_id) = params.optional_text("agentId", FAULTS)? {
        draft = draft.agent(agent_id);
    }
    if let Some(secret) = params.optional_text("secret", FAULTS)? {
        draft = draft.secret(secret);
    }
    to_json(&webhooks.add(&draft)?)
}

/// Takes one away: `{id}`.
fn remove(webhooks: &Webhooks, params: &Params) -> Result<Value, Error> {
    let id = id(params)?;
    webhooks.remove(id)?;
    Ok(json!({ "id": id }))
}

/// Gives one a new secret: `{id, overlapSeconds?}`.
fn rotate(webhooks: &Webhooks, params: &Params) -> Result<Value, Error> {
    let id = id(params)?;
    let overlap = params.optional_whole("overlapSeconds", FAULTS)?.unwrap_or(OVERLAP);
    let secret = webhooks.rotate(id, Duration::from_secs(overlap))?;
    Ok(json!({ "id": id, "secret": secret }))
}

/// Gives one another address: `{id, url}`.
fn readdress(webhooks: &Webhooks, params: &Params) -> Result<Value, Error> {
    let id = id(params)?;
    webhooks.readdress(id, params.text("url", FAULTS)?)?;
    Ok(json!({ "id": id }))
}

/// Sends again to one that is off or broken: `{id}`.
fn resume(webhooks: &Webhooks, params: &Params) -> Result<Value, Error> {
    let id = id(params)?;
    webhooks.resume(id)?;
    Ok(json!({ "id": id }))
}

/// What was sent last, or what was given up: `{id, page?, state?}`.
fn deliveries(webhooks: &Webhooks, params: &Params) -> Result<Value, Error> {
    let page = params.optional_whole("page", FAULTS)?.unwrap_or(1);
    if page == 0 {
        return Err(Error::input("page", "expected a number of 1 or more"));
    }
    match params.optional_text("state", FAULTS)? {
        None => to_json(&webhooks.deliveries(id(params)?, page)?),
        Some("parked") => to_json(&webhooks.parked(id(params)?, page)?),
        Some(_) => Err(Error::input("state", "expected parked, or none for the last attempts")),
    }
}

/// Sends an event once more, to one endpoint or all that want it: `{eventId, id?}`.
fn redeliver(webhooks: &Webhooks, params: &Params) -> Result<Value, Error> {
    let event: EventId = params.word("eventId", FAULTS)?;
    let mut answer = json!({ "eventId": event });
    if let Some(id) = params.optional_word::<WebhookId>("id", FAULTS)? {
        webhooks.redeliver_to(event, id)?;
        merge(&mut answer, json!({ "endpoints": 1 }));
    } else {
        merge(&mut answer, to_json(&webhooks.redeliver(event)?)?);
    }
    Ok(answer)
}

fn id(params: &Params) -> Result<WebhookId, Error> {
    params.word("id", FAULTS)
}

/// Seconds that an old secret signs beside the new one: a day.
const OVERLAP: u64 = 24 * 3600;
