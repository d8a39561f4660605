//! Webhooks: events delivered to endpoints, signed, at least once, in log order.
//!
//! The log determines what is sent. Each endpoint has a position in the log, and the position itself is stored in the
//! log, so that a crash neither loses nor invents an event. Each endpoint has its own thread; one that hangs delays
//! no other. See `docs/reference/webhooks.md`.
//!
//! ```
//! use rulekeep::event::EventType;
//! use rulekeep::Governor;
//! use rulekeep_server::webhooks::{EndpointDraft, Settings, Webhooks};
//!
//! let governor = Governor::builder().open_in_memory()?;
//! let webhooks = Webhooks::start(&governor, Settings::default())?;
//! let draft = EndpointDraft::to("https://hooks.example.com/rulekeep").of_type(EventType::Decision);
//! let endpoint = webhooks.add(&draft)?;
//! assert!(endpoint.secret.starts_with("whsec_")); // hand it to the receiver
//! webhooks.remove(endpoint.id)?;
//! # Ok::<(), rulekeep::Error>(())
//! ```
//!
//! | file | subject |
//! |---|---|
//! | `endpoint.rs` | an endpoint as requested, stored and shown |
//! | `address.rs` | the addresses allowed for endpoints |
//! | `schedule.rs` | the times of delivery attempts |
//! | `outbox.rs` | what is sent next, without I/O |
//! | `sender.rs` | a single delivery over the network |
//! | `courier.rs` | the thread of an endpoint |
//! | `service.rs` | all endpoints of a governor |
//! | `secrets.rs` | the file of secrets beside the journal |
//! | `log.rs` | the most recent deliveries |

mod address;
mod courier;
mod endpoint;
mod log;
mod outbox;
mod schedule;
mod secrets;
mod sender;
mod service;

use std::sync::Arc;
use std::time::Duration;

pub use endpoint::{AddedEndpoint, Endpoint, EndpointDraft, EndpointState, NotTaken, Redelivery};
pub use log::{Delivery, DeliveryPage, DeliveryResult};
pub use secrets::SecretPrint;

use rulekeep::Error;
use rulekeep::Governor;
use rulekeep::event::EventId;
use rulekeep::extension::WebhookId;
use rulekeep::extension::{Extension, Follower};
use service::Service;

/// The settings of webhook delivery.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The waits between delivery attempts, for endpoints added from now on: 1 to 32 waits of at most 7 days. The
    /// first attempt is immediate, and after the last one the event is parked. Default: 5 s, 5 min, 30 min, 2 h, 5 h,
    /// 10 h, 14 h, 20 h and 24 h.
    pub schedule: Option<Vec<Duration>>,
    /// Allows endpoints with loopback and private addresses, for loopback also without TLS. For tests, and for
    /// receivers in your own network. Default: false.
    pub allow_private: bool,
}

/// The webhook endpoints of a governor. Cloning is cheap.
#[derive(Clone)]
pub struct Webhooks {
    governor: Governor,
    service: Arc<Service>,
}

impl Webhooks {
    /// Starts delivering a governor's events to its endpoints, until the governor is closed.
    ///
    /// # Errors
    ///
    /// * [`Error::Conflict`] if delivery is already running.
    /// * [`Error::InvalidInput`] for an invalid schedule.
    /// * [`Error::StorageUnavailable`] if the stored endpoints cannot be read.
    pub fn start(governor: &Governor, settings: Settings) -> Result<Self, Error> {
        let service = Arc::new(Service::start(governor, settings)?);
        Extension::of(governor).attach("webhooks", Arc::clone(&service) as Arc<dyn Follower>)?;
        Ok(Self { governor: governor.clone(), service })
    }

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
        self.service.add(&self.governor, draft)
    }

    /// Lists every endpoint with its current state.
    ///
    /// # Errors
    ///
    /// [`Error::Internal`] only.
    pub fn list(&self) -> Result<Vec<Endpoint>, Error> {
        let now = Extension::of(&self.governor).clock().now();
        Ok(self.service.all().iter().map(|courier| courier.shown(now)).collect())
    }

    /// Removes an endpoint and its secrets. Pending events are not delivered.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for an unknown id; [`Error::StorageUnavailable`] as for [`Webhooks::add`].
    pub fn remove(&self, id: WebhookId) -> Result<(), Error> {
        self.service.remove(&self.governor, id)
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
        self.service.rotate(&self.governor, id, overlap)
    }

    /// Changes an endpoint's URL, starting with the next event; or restores it after `SECRETS` was lost. Position and
    /// secrets are kept.
    ///
    /// # Errors
    ///
    /// * [`Error::NotFound`] for an unknown id.
    /// * [`Error::InvalidInput`] and [`Error::StorageUnavailable`] as for [`Webhooks::add`].
    pub fn readdress(&self, id: WebhookId, url: &str) -> Result<(), Error> {
        self.service.readdress(&self.governor, id, url)
    }

    /// Resumes an endpoint that is off or broken, from its position.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for an unknown id; [`Error::Conflict`] for an endpoint that is running, or that is still
    /// broken.
    pub fn resume(&self, id: WebhookId) -> Result<(), Error> {
        self.service.resume(&self.governor, id)
    }

    /// Returns a page of the most recent delivery attempts of an endpoint, newest first, counted from 1. The last
    /// 1,000 are kept in memory; for parked events see [`Webhooks::parked`].
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for an unknown id.
    pub fn deliveries(&self, id: WebhookId, page: u64) -> Result<DeliveryPage, Error> {
        Ok(self.service.courier(id)?.deliveries(page))
    }

    /// Returns a page of the parked events that have not been delivered since, newest first, each with its last
    /// attempt, counted from 1. The list is complete and survives restarts.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for an unknown id.
    pub fn parked(&self, id: WebhookId, page: u64) -> Result<DeliveryPage, Error> {
        Ok(self.service.courier(id)?.parked(page))
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
    pub fn redeliver(&self, event: EventId) -> Result<Redelivery, Error> {
        self.service.redeliver(&self.governor, event)
    }

    /// Sends an event once more to a single endpoint; see [`Webhooks::redeliver`].
    ///
    /// # Errors
    ///
    /// See [`Webhooks::redeliver`]; also [`Error::NotFound`] for an unknown endpoint, and [`Error::InvalidInput`] for
    /// one that does not subscribe to the event.
    pub fn redeliver_to(&self, event: EventId, endpoint: WebhookId) -> Result<(), Error> {
        self.service.redeliver_to(&self.governor, event, endpoint)
    }
}

impl std::fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhooks").finish_non_exhaustive()
    }
}
