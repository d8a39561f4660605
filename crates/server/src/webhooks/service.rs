//! All endpoints of a governor: restored when it is opened, changed, and stopped.

use rulekeep::extension::Extension;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use super::address::{self, Reach};
use super::courier::{Courier, PARKED, Tools, notes};
use super::endpoint::{AddedEndpoint, EndpointDraft, EndpointRecord, NotTaken, Redelivery, Removed};
use super::links::Links;
use super::outbox::{Cursor, Note, Outbox, Parked, Refusal};
use super::schedule::Schedule;
use super::secrets::{Kept, SecretPrint, Secrets, address_print, masked};
use super::sender::{self, Sender};
use super::{Settings, Webhooks};
use rulekeep::Error;
use rulekeep::Governor;
use rulekeep::event::EventId;
use rulekeep::extension::{ENDPOINT, ENDPOINT_PLACE as CURSOR, Follower, Wait};
use rulekeep::extension::{WebhookId, checked_person};
use rulekeep::intent::InvalidValue;
use rulekeep::proof::Sequence;
use rulekeep::signature::Secret;
use rulekeep::system::Timestamp;

/// The endpoints of a governor.
pub(super) struct Service {
    reach: Reach,
    schedule: Schedule,
    /// The URL of the server that answers approval links, without a slash at its end.
    base: Option<String>,
    /// Held while endpoints are changed; locked before `couriers`.
    secrets: Mutex<Secrets>,
    couriers: Mutex<BTreeMap<WebhookId, Arc<Courier>>>,
}

impl Webhooks {
    /// Adds an endpoint, which receives events from now on. The secret is only in the result.
    ///
    /// # Errors
    ///
    /// * [`Error::InvalidInput`] for an address that is not public or not `https`, and for a secret of fewer than 24
    ///   bytes.
    /// * [`Error::Conflict`] if there are 32 endpoints already.
    /// * [`Error::StorageUnavailable`] if the endpoint cannot be stored, also while the file of secrets cannot be
    ///   read, because it is not overwritten then.
    pub fn add(&self, draft: &EndpointDraft) -> Result<AddedEndpoint, Error> {
        let Self { governor, service } = self;
        address::checked_url(&draft.url, service.reach).map_err(|why| Error::input("url", why))?;
        let agent_id = draft.agent_id.as_deref().map(str::parse).transpose();
        let agent_id = agent_id.map_err(|error: InvalidValue| Error::input("agentId", error.to_string()))?;
        let secret = match &draft.secret {
            Some(text) => Secret::from_text(text).map_err(|error| Error::input("secret", error.to_string()))?,
            None => Secret::generate(&**Extension::of(governor).entropy()),
        };
        let reviewer = draft.reviewer.as_deref().map(|name| checked_person("reviewer", name)).transpose()?;
        if reviewer.is_some() && service.base.is_none() {
            return Err(Error::input("reviewer", NO_BASE));
        }
        let mut secrets = service.secrets();
        if service.couriers().len() >= MOST_ENDPOINTS {
            let message = format!("there are {MOST_ENDPOINTS} endpoints already; remove one with webhook/remove");
            return Err(Error::Conflict { message });
        }
        let now = Extension::of(governor).clock().now();
        let id = WebhookId::new(now, Extension::of(governor).entropy().bits());
        let record = EndpointRecord {
            id,
            url: masked(&draft.url),
            address: address_print(id, &draft.url),
            events: draft.events.clone(),
            agent_id,
            format: draft.format,
            reviewer,
            schedule: service.schedule.clone(),
            secrets: vec![SecretPrint { print: secret.print(), until: None }],
            created: now,
        };
        let text = secret.reveal();
        // The secret is stored first and the endpoint last, so that nothing named in the journal is ever missing.
        let link = link_key(governor, &record);
        secrets.keep(governor, id, Some(Kept { url: draft.url.clone(), secrets: vec![secret], link }))?;
        let next = Extension::of(governor).next_entry().get();
        let cursor = Cursor { next, ordinal: 0, attempts: 0, retry_at: None, failing: false, off: None };
        keep_place(governor, id, &Note { cursor: cursor.clone(), parked: None }, "endpoint added")?;
        keep_record(governor, &record, "endpoint added")?;
        service.start_courier(governor, record, cursor, Vec::new(), &secrets)?;
        Ok(AddedEndpoint { id, secret: text })
    }

    /// Removes an endpoint and its secrets. Pending events are not delivered.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for an unknown id; [`Error::StorageUnavailable`] as for [`Webhooks::add`].
    pub fn remove(&self, id: WebhookId) -> Result<(), Error> {
        let Self { governor, service } = self;
        let mut secrets = service.secrets();
        let courier = service.courier(id)?;
        secrets.ready(governor)?;
        // After this it must neither send nor store anything.
        courier.stop();
        let has_ended = courier.wait_ended(PATIENCE);
        let (mut cursor, parked) = courier.position();
        let removed = serde_json::to_string(&Removed { removed: true }).unwrap_or_default();
        if let Err(error) =
            Extension::of(governor).keep(format!("{ENDPOINT}{id}"), removed, "endpoint removed", Wait::Committed)
        {
            // It still exists, and continues; if it cannot, it gives the reason.
            if has_ended {
                let _ = service.start_courier(governor, courier.record(), cursor, parked, &secrets);
            } else {
                courier.give_up("it was still stopping when its removal could not be recorded: resume it");
            }
            return Err(error);
        }
        service.couriers().remove(&id);
        // From here on it is removed. Its secrets are deleted even if its position, which nobody uses any more,
        // cannot be.
        cursor.off = Some("removed".to_owned());
        let cleared = keep_place(governor, id, &Note { cursor, parked: Some(Vec::new()) }, "endpoint removed");
        secrets.keep(governor, id, None).and(cleared)
    }

    /// Rotates an endpoint's secret and returns the new one. The earlier secrets continue to sign as well for
    /// `overlap`, so that the receiver can change over without a gap.
    ///
    /// # Errors
    ///
    /// * [`Error::NotFound`] for an unknown id.
    /// * [`Error::Conflict`] if eight secrets are signing already, or if the address is lost.
    /// * [`Error::StorageUnavailable`] as for [`Webhooks::add`].
    pub fn rotate(&self, id: WebhookId, overlap: Duration) -> Result<String, Error> {
        let Self { governor, service } = self;
        let mut secrets = service.secrets();
        let courier = service.courier(id)?;
        secrets.ready(governor)?;
        let now = Extension::of(governor).clock().now();
        let millis = i64::try_from(overlap.as_millis()).unwrap_or(i64::MAX);
        let end = Timestamp::from_millis(now.as_millis().saturating_add(millis));
        let mut record = courier.record();
        let Some(url) = secrets.url(&record).map(str::to_owned) else {
            return Err(Error::Conflict {
                message: format!("endpoint {id} cannot be reached: {}", secrets.missing_address()),
            });
        };
        let old = secrets.live(id, &record.secrets);
        record.secrets.retain_mut(|print| {
            let until = print.until.map_or(end, |until| until.min(end));
            print.until = Some(until);
            until > now && old.iter().any(|live| live.secret.print() == print.print)
        });
        if record.secrets.len() >= MOST_SECRETS {
            let message = format!("{MOST_SECRETS} secrets are valid already; wait, or rotate with a shorter overlap");
            return Err(Error::Conflict { message });
        }
        let new = Secret::generate(&**Extension::of(governor).entropy());
        let text = new.reveal();
        record.secrets.insert(0, SecretPrint { print: new.print(), until: None });
        let still = |secret: &Secret| record.secrets.iter().any(|print| print.print == secret.print());
        let kept = old.into_iter().map(|live| live.secret).filter(still);
        // A lost key is made anew; the links that it signed are void.
        let link = secrets.kept(id).and_then(|kept| kept.link).or_else(|| link_key(governor, &record));
        secrets.keep(governor, id, Some(Kept { url, secrets: [new].into_iter().chain(kept).collect(), link }))?;
        keep_record(governor, &record, "secret rotated")?;
        let live = secrets.live(id, &record.secrets);
        courier.change(record, live);
        if courier.is_broken() {
            service.again(governor, &courier, &secrets)?;
        }
        Ok(text)
    }

    /// Changes an endpoint's URL, starting with the next event; or restores it after `SECRETS` was lost. Position and
    /// secrets are kept.
    ///
    /// # Errors
    ///
    /// * [`Error::NotFound`] for an unknown id.
    /// * [`Error::InvalidInput`] and [`Error::StorageUnavailable`] as for [`Webhooks::add`].
    pub fn readdress(&self, id: WebhookId, url: &str) -> Result<(), Error> {
        let Self { governor, service } = self;
        address::checked_url(url, service.reach).map_err(|why| Error::input("url", why))?;
        let mut secrets = service.secrets();
        let courier = service.courier(id)?;
        secrets.ready(governor)?;
        let before = courier.record();
        courier.stop();
        if !courier.wait_ended(PATIENCE) {
            // No second thread is started while this one may still be sending, and it does not restart by itself.
            courier.give_up("it was still stopping when its URL was changed: resume it");
            return Err(still_ending(id));
        }
        let (cursor, parked) = courier.position();
        let record = EndpointRecord { url: masked(url), address: address_print(id, url), ..before.clone() };
        let old = secrets.kept(id);
        let link = old.as_ref().and_then(|kept| kept.link.clone()).or_else(|| link_key(governor, &record));
        let kept = Kept { url: url.to_owned(), secrets: secrets.all(id), link };
        let moved = secrets.keep(governor, id, Some(kept)).and_then(|()| {
            let recorded = keep_record(governor, &record, "endpoint URL changed");
            if recorded.is_err() {
                // Restores the URL named in the journal. If that fails too, the endpoint reports a different URL.
                let _ = secrets.keep(governor, id, old);
            }
            recorded
        });
        let record = if moved.is_ok() { record } else { before };
        let taken = service.start_courier(governor, record, cursor, parked, &secrets);
        moved.and(taken)
    }

    /// Resumes an endpoint that is off or broken, from its position.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for an unknown id; [`Error::Conflict`] for an endpoint that is running, or that is still
    /// broken.
    pub fn resume(&self, id: WebhookId) -> Result<(), Error> {
        let Self { governor, service } = self;
        // Held to the end, so that of two concurrent calls the second finds the endpoint running.
        let mut secrets = service.secrets();
        let courier = service.courier(id)?;
        if courier.is_broken() {
            // If this fails, the endpoint reports it.
            let _ = secrets.ready(governor);
            return service.again(governor, &courier, &secrets);
        }
        if courier.resume() {
            return Ok(());
        }
        Err(Error::Conflict { message: format!("endpoint {id} is active: there is nothing to resume") })
    }

    /// Sends an event once more to each running endpoint that subscribes to it, immediately and out of order. Returns
    /// the number of these endpoints, and those that subscribe but do not receive it. A parked event that is
    /// delivered this way is no longer parked.
    ///
    /// # Errors
    ///
    /// * [`Error::NotFound`] for an event that is not in the log.
    /// * [`Error::Conflict`] if endpoints subscribe to it but none receives it, because they are off or broken, or
    ///   have 100 redeliveries waiting.
    /// * [`Error::StorageUnavailable`] if the log cannot be read.
    pub fn redeliver(&self, id: EventId) -> Result<Redelivery, Error> {
        let Self { governor, service } = self;
        let event = Extension::of(governor).event(id)?;
        let mut redelivery = Redelivery { endpoints: 0, not_taken: Vec::new() };
        let couriers = service.couriers().clone();
        for (id, courier) in couriers {
            match courier.redeliver(governor, &event)? {
                Ok(()) => redelivery.endpoints += 1,
                Err(Refusal::Unwanted) => {}
                Err(why) => redelivery.not_taken.push(NotTaken { id, reason: why.to_string() }),
            }
        }
        match redelivery.not_taken.first() {
            Some(NotTaken { id, reason }) if redelivery.endpoints == 0 => {
                Err(Error::Conflict { message: format!("endpoint {id} {reason}") })
            }
            _ => Ok(redelivery),
        }
    }

    /// Sends an event once more to a single endpoint; see [`Webhooks::redeliver`].
    ///
    /// # Errors
    ///
    /// See [`Webhooks::redeliver`]; also [`Error::NotFound`] for an unknown endpoint, and [`Error::InvalidInput`] for
    /// one that does not subscribe to the event.
    pub fn redeliver_to(&self, event: EventId, id: WebhookId) -> Result<(), Error> {
        let Self { governor, service } = self;
        let courier = service.courier(id)?;
        let event = Extension::of(governor).event(event)?;
        courier.redeliver(governor, &event)?.map_err(|why| match why {
            Refusal::Unwanted => Error::input("id", format!("endpoint {id} {why}")),
            _ => Error::Conflict { message: format!("endpoint {id} {why}") },
        })
    }
}

impl Service {
    /// Restores the endpoints stored in the journal.
    pub(super) fn start(governor: &Governor, settings: Settings) -> Result<Self, Error> {
        let schedule = match settings.schedule {
            Some(waits) => Schedule::new(&waits).map_err(|expected| Error::input("webhookSchedule", expected))?,
            None => Schedule::default(),
        };
        let reach = if settings.allow_private { Reach::Private } else { Reach::Public };
        let states: BTreeMap<String, String> =
            Extension::of(governor).states(&[ENDPOINT, CURSOR]).into_iter().collect();
        let mut secrets = Secrets::default();
        if !states.is_empty() {
            // Decisions continue without the secrets; the endpoints are broken and give the reason.
            let _ = secrets.ready(governor);
        }
        let base = settings.public_url.map(|url| url.trim_end_matches('/').to_owned());
        let is_url = |url: &String| {
            let address = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
            address.is_some_and(|address| !address.is_empty() && !address.contains(['?', '#', '@', ' ', '|', '>']))
        };
        if base.as_ref().is_some_and(|url| !is_url(url)) {
            return Err(Error::input("publicUrl", "expected an http or https URL without a query"));
        }
        let service = Self { reach, schedule, base, secrets: Mutex::new(secrets), couriers: Mutex::default() };
        for (key, value) in &states {
            let Some(id) = key.strip_prefix(ENDPOINT) else { continue };
            if serde_json::from_str::<Removed>(value).is_ok_and(|state| state.removed) {
                continue;
            }
            let record: EndpointRecord = restored(value)?;
            let cursor = states.get(&format!("{CURSOR}{id}")).map(|value| restored::<Cursor>(value));
            let parked = states.get(&format!("{CURSOR}{id}{PARKED}")).map(|value| restored::<Vec<Parked>>(value));
            let cursor =
                cursor.ok_or_else(|| Error::storage(format!("endpoint {id} has no position in the journal")))??;
            let parked = parked.transpose()?.unwrap_or_default();
            service.start_courier(governor, record, cursor, parked, &service.secrets())?;
        }
        Ok(service)
    }

    /// Starts the thread of an endpoint.
    fn start_courier(
        &self,
        governor: &Governor,
        record: EndpointRecord,
        cursor: Cursor,
        parked: Vec<Parked>,
        secrets: &Secrets,
    ) -> Result<(), Error> {
        let id = record.id;
        let live = secrets.live(id, &record.secrets);
        let has_secret = live.iter().any(|live| live.until.is_none());
        let url = secrets.url(&record).map(str::to_owned);
        let key = secrets.kept(id).and_then(|kept| kept.link);
        let links = record.reviewer.clone().zip(self.base.clone()).zip(key);
        let links = links.map(|((reviewer, base), key)| Links { base, webhook: id, reviewer, key });
        let failure = match &url {
            None => Some(secrets.missing_address().to_owned()),
            Some(url) => {
                let refused = address::checked_url(url, self.reach).err();
                let refused = refused.or_else(|| (!has_secret).then(|| secrets.missing().to_owned()));
                refused.or_else(|| (record.reviewer.is_some() && links.is_none()).then(|| NO_BASE.to_owned()))
            }
        };
        let sender = Sender::new(url.as_deref().unwrap_or_default(), self.reach, sender::LONGEST);
        let source =
            Extension::of(governor).events_from(Sequence::new(cursor.next), &record.events, record.agent_id.as_ref());
        let is_broken = failure.is_some();
        let outbox = Outbox::new(record.schedule.clone(), cursor, parked);
        let courier = Arc::new(Courier::new(record, outbox, live, links, &sender, failure));
        let mut started = Ok(());
        if !is_broken {
            let tools = Tools {
                governor: Extension::of(governor).weakly(),
                clock: Extension::of(governor).clock(),
                entropy: Arc::clone(Extension::of(governor).entropy()),
                sender,
                source,
            };
            started = courier.start(tools);
        }
        self.couriers().insert(id, courier);
        started
    }

    /// Restarts an endpoint.
    fn again(&self, governor: &Governor, courier: &Courier, secrets: &Secrets) -> Result<(), Error> {
        let record = courier.record();
        let id = record.id;
        courier.stop();
        if !courier.wait_ended(PATIENCE) {
            return Err(still_ending(id));
        }
        let (mut cursor, parked) = courier.position();
        cursor.off = None;
        self.start_courier(governor, record, cursor, parked, secrets)?;
        match self.courier(id)?.shown(Extension::of(governor).clock().now()).reason {
            Some(reason) => Err(Error::Conflict { message: format!("endpoint {id} cannot be reached: {reason}") }),
            None => Ok(()),
        }
    }

    pub(super) fn all(&self) -> Vec<Arc<Courier>> {
        self.couriers().values().cloned().collect()
    }

    pub(super) fn courier(&self, id: WebhookId) -> Result<Arc<Courier>, Error> {
        let found = self.couriers().get(&id).cloned();
        found.ok_or_else(|| Error::not_found("endpoint", id))
    }

    fn secrets(&self) -> MutexGuard<'_, Secrets> {
        // A failed operation leaves the previous state.
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn couriers(&self) -> MutexGuard<'_, BTreeMap<WebhookId, Arc<Courier>>> {
        self.couriers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Follower for Service {
    fn stop(&self) {
        let couriers = self.all();
        for courier in &couriers {
            courier.stop();
        }
        let deadline = Instant::now() + PATIENCE;
        for courier in couriers {
            courier.wait_ended(deadline.saturating_duration_since(Instant::now()));
        }
    }

    fn problems(&self) -> Vec<String> {
        self.all().iter().filter_map(|courier| courier.failure()).collect()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Does not wait, because the last owner may be one of the threads.
        self.all().iter().for_each(|courier| courier.stop());
    }
}

/// A new key for approval links, if the endpoint has them.
fn link_key(governor: &Governor, record: &EndpointRecord) -> Option<Secret> {
    record.reviewer.as_ref().map(|_| Secret::generate(&**Extension::of(governor).entropy()))
}

fn still_ending(id: WebhookId) -> Error {
    Error::Conflict { message: format!("endpoint {id} is still stopping: try again") }
}

fn keep_record(governor: &Governor, record: &EndpointRecord, cause: &str) -> Result<(), Error> {
    let value = serde_json::to_string(record)
        .map_err(|error| Error::internal("an endpoint cannot be serialized").caused_by(error))?;
    Extension::of(governor).keep(format!("{ENDPOINT}{}", record.id), value, cause, Wait::Committed)
}

fn keep_place(governor: &Governor, id: WebhookId, note: &Note, cause: &str) -> Result<(), Error> {
    let states = notes(note)?;
    states.into_iter().try_for_each(|(part, value)| {
        Extension::of(governor).keep(format!("{CURSOR}{id}{part}"), value, cause, Wait::Committed)
    })
}

fn restored<T: DeserializeOwned>(value: &str) -> Result<T, Error> {
    serde_json::from_str(value).map_err(|error| Error::storage("an endpoint's state cannot be read").caused_by(error))
}

/// The reason an endpoint cannot have approval links.
const NO_BASE: &str = "approval links need the URL at which reviewers reach this server: serve with --public-url, or set public_url in config.toml";
/// Maximum number of endpoints, each with its own thread.
const MOST_ENDPOINTS: usize = 32;
const MOST_SECRETS: usize = 8;
/// The time to wait for a thread to end.
const PATIENCE: Duration = Duration::from_secs(2);
