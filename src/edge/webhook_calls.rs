//! The calls about webhooks: add, list, remove, rotate, readdress, resume, deliveries, redeliver.

use serde_json::Value;

use super::params::Params;
use crate::governor::Governor;
use crate::model::Error;

/// The call of that name.
pub(super) fn find(name: &str) -> Option<super::wire::Call> {
    let found = CALLS.iter().find(|(known, _)| *known == name);
    found.map(|(_, call)| *call)
}

#[cfg(feature = "webhooks")]
pub(super) use with::CALLS;

/// Every call by its name.
#[cfg(not(feature = "webhooks"))]
pub(super) const CALLS: &[(&str, super::wire::Call)] = &[
    ("webhook/add", without),
    ("webhook/list", without),
    ("webhook/remove", without),
    ("webhook/rotate", without),
    ("webhook/readdress", without),
    ("webhook/resume", without),
    ("webhook/deliveries", without),
    ("webhook/redeliver", without),
];

#[cfg(not(feature = "webhooks"))]
fn without(_: &Governor, _: &Params) -> Result<Value, Error> {
    Err(Error::NotBuilt { feature: "webhooks" })
}

#[cfg(feature = "webhooks")]
mod with {
    use std::time::Duration;

    use serde_json::json;

    use super::{Error, Governor, Params, Value};
    use crate::edge::params::Faults;
    use crate::edge::webhook::EndpointDraft;
    use crate::edge::wire::{Call, merge, to_json};
    use crate::model::{EventId, EventType, InvalidValue, WebhookId};

    /// Every call by its name.
    pub(in crate::edge) const CALLS: &[(&str, Call)] = &[
        ("webhook/add", add),
        ("webhook/list", |governor, _| Ok(json!({ "endpoints": governor.webhooks().list()? }))),
        ("webhook/remove", remove),
        ("webhook/rotate", rotate),
        ("webhook/readdress", readdress),
        ("webhook/resume", resume),
        ("webhook/deliveries", deliveries),
        ("webhook/redeliver", redeliver),
    ];

    const FAULTS: Faults = Faults::Input;

    /// Adds an endpoint: `{url, events?, agentId?, secret?}`.
    fn add(governor: &Governor, params: &Params) -> Result<Value, Error> {
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
        to_json(&governor.webhooks().add(&draft)?)
    }

    /// Takes one away: `{id}`.
    fn remove(governor: &Governor, params: &Params) -> Result<Value, Error> {
        let id = id(params)?;
        governor.webhooks().remove(id)?;
        Ok(json!({ "id": id }))
    }

    /// Gives one a new secret: `{id, overlapSeconds?}`.
    fn rotate(governor: &Governor, params: &Params) -> Result<Value, Error> {
        let id = id(params)?;
        let overlap = params.optional_whole("overlapSeconds", FAULTS)?.unwrap_or(OVERLAP);
        let secret = governor.webhooks().rotate(id, Duration::from_secs(overlap))?;
        Ok(json!({ "id": id, "secret": secret }))
    }

    /// Gives one another address: `{id, url}`.
    fn readdress(governor: &Governor, params: &Params) -> Result<Value, Error> {
        let id = id(params)?;
        governor.webhooks().readdress(id, params.text("url", FAULTS)?)?;
        Ok(json!({ "id": id }))
    }

    /// Sends again to one that is off or broken: `{id}`.
    fn resume(governor: &Governor, params: &Params) -> Result<Value, Error> {
        let id = id(params)?;
        governor.webhooks().resume(id)?;
        Ok(json!({ "id": id }))
    }

    /// What was sent last, or what was given up: `{id, page?, state?}`.
    fn deliveries(governor: &Governor, params: &Params) -> Result<Value, Error> {
        let page = params.optional_whole("page", FAULTS)?.unwrap_or(1);
        if page == 0 {
            return Err(Error::input("page", "expected a number of 1 or more"));
        }
        match params.optional_text("state", FAULTS)? {
            None => to_json(&governor.webhooks().deliveries(id(params)?, page)?),
            Some("parked") => to_json(&governor.webhooks().parked(id(params)?, page)?),
            Some(_) => Err(Error::input("state", "expected parked, or none for the last attempts")),
        }
    }

    /// Sends an event once more, to one endpoint or all that want it: `{eventId, id?}`.
    fn redeliver(governor: &Governor, params: &Params) -> Result<Value, Error> {
        let event: EventId = params.word("eventId", FAULTS)?;
        let mut answer = json!({ "eventId": event });
        if let Some(id) = params.optional_word::<WebhookId>("id", FAULTS)? {
            governor.webhooks().redeliver_to(event, id)?;
            merge(&mut answer, json!({ "endpoints": 1 }));
        } else {
            merge(&mut answer, to_json(&governor.webhooks().redeliver(event)?)?);
        }
        Ok(answer)
    }

    fn id(params: &Params) -> Result<WebhookId, Error> {
        params.word("id", FAULTS)
    }

    /// Seconds that an old secret signs beside the new one: a day.
    const OVERLAP: u64 = 24 * 3600;
}
