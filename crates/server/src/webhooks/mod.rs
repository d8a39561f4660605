//! Events to web addresses: at least once, in the
//! order of the log, signed.
//!
//! What is sent follows from the log: each endpoint has a place in it, and the
//! place is a state in the log itself, so that a crash neither loses nor invents
//! an event. Each endpoint has a thread of its own; one that hangs delays nobody.
//! `docs/reference/webhooks.md` says the rest.
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
//! | `endpoint.rs` | an endpoint as it is asked for, kept, shown |
//! | `address.rs` | where an endpoint may be |
//! | `schedule.rs` | when an event is tried again |
//! | `outbox.rs` | what is to be sent next, without I/O |
//! | `sender.rs` | one delivery over the wire |
//! | `courier.rs` | the thread of an endpoint |
//! | `service.rs` | all endpoints of a governor |
//! | `secrets.rs` | the file beside the journal |
//! | `log.rs` | what was sent last |

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

/// How webhooks are delivered.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The waits between the attempts to deliver an event to an endpoint that is added from now on: 1 to 32, each at
    /// most 7 days. The first attempt is immediate; after the last one the event is parked. Default: 5 s, 5 min, 30 min,
    /// 2 h, 5 h, 10 h, 14 h, 20 h and 24 h.
    pub schedule: Option<Vec<Duration>>,
    /// Whether endpoints may be at loopback and private addresses, at loopback without TLS too. For tests, and for
    /// receivers in a network of your own.
    pub allow_private: bool,
}

/// The endpoints of a governor. Cheap to clone.
#[derive(Clone)]
pub struct Webhooks {
    governor: Governor,
    service: Arc<Service>,
}

impl Webhooks {
    /// Delivers the events of a governor to its endpoints until it is closed.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] when that runs already; [`Error::InvalidInput`] for a schedule that cannot be kept;
    /// [`Error::StorageUnavailable`] for endpoints that cannot be read.
    pub fn start(governor: &Governor, settings: Settings) -> Result<Self, Error> {
        let service = Arc::new(Service::start(governor, settings)?);
        Extension::of(governor).attach("webhooks", Arc::clone(&service) as Arc<dyn Follower>)?;
        Ok(Self { governor: governor.clone(), service })
    }

    /// Adds an endpoint, which is told of what happens from now on. The secret is in the answer and is shown nowhere else.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for an address that is not of the internet or not `https`, and for a secret of fewer than
    /// 24 bytes; [`Error::Conflict`] where there are 32 endpoints already; [`Error::StorageUnavailable`], also while the
    /// file of secrets cannot be read, for it is not written over then.
    pub fn add(&self, draft: &EndpointDraft) -> Result<AddedEndpoint, Error> {
        self.service.add(&self.governor, draft)
    }

    /// Every endpoint, as it stands.
    ///
    /// # Errors
    ///
    /// [`Error::Internal`] alone.
    pub fn list(&self) -> Result<Vec<Endpoint>, Error> {
        let now = Extension::of(&self.governor).clock().now();
        Ok(self.service.all().iter().map(|courier| courier.shown(now)).collect())
    }

    /// Takes an endpoint away, with its secrets. What was not delivered is not.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for an unknown id; [`Error::StorageUnavailable`], as with [`Webhooks::add`].
    pub fn remove(&self, id: WebhookId) -> Result<(), Error> {
        self.service.remove(&self.governor, id)
    }

    /// Gives an endpoint a new secret and hands it out. Those before it go on signing beside it for `overlap`, so that
    /// the receiver can change over without a gap.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for an unknown id; [`Error::Conflict`] where eight secrets sign or the address is lost;
    /// [`Error::StorageUnavailable`], as with [`Webhooks::add`].
    pub fn rotate(&self, id: WebhookId, overlap: Duration) -> Result<String, Error> {
        self.service.rotate(&self.governor, id, overlap)
    }

    /// Gives an endpoint another address, from the next event on; or the one that it had, where `SECRETS` was lost. Its
    /// place and its secrets stay.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for an unknown id; for an address what [`Webhooks::add`] has;
    /// [`Error::StorageUnavailable`], as there.
    pub fn readdress(&self, id: WebhookId, url: &str) -> Result<(), Error> {
        self.service.readdress(&self.governor, id, url)
    }

    /// Sends again to an endpoint that is off or broken, from where it was left.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for an unknown id; [`Error::Conflict`] for one that is at work, and for one that is broken
    /// still.
    pub fn resume(&self, id: WebhookId) -> Result<(), Error> {
        self.service.resume(&self.governor, id)
    }

    /// A page of the last attempts to deliver to an endpoint, the newest first; pages are counted from 1. The last 1,000
    /// are kept in memory; what was given up is in [`Webhooks::parked`].
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for an unknown id.
    pub fn deliveries(&self, id: WebhookId, page: u64) -> Result<DeliveryPage, Error> {
        Ok(self.service.courier(id)?.deliveries(page))
    }

    /// A page of the events that were given up and have not arrived since, the newest first, each with its last attempt;
    /// pages are counted from 1. All of them are there, over restarts too.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for an unknown id.
    pub fn parked(&self, id: WebhookId, page: u64) -> Result<DeliveryPage, Error> {
        Ok(self.service.courier(id)?.parked(page))
    }

    /// Sends an event once more, to each endpoint that wants it and is at work: once, at once, beside the order. Hands
    /// out how many these are, and which want it and do not take it. An event that had been given up and arrives is so no
    /// longer.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for an event that the log does not tell; [`Error::Conflict`] where endpoints want it and
    /// none takes it: they are off or broken, or have 100 waiting already; [`Error::StorageUnavailable`].
    pub fn redeliver(&self, event: EventId) -> Result<Redelivery, Error> {
        self.service.redeliver(&self.governor, event)
    }

    /// Sends an event once more to one endpoint, as [`Webhooks::redeliver`] does to all.
    ///
    /// # Errors
    ///
    /// Those of [`Webhooks::redeliver`]; [`Error::NotFound`] also for an unknown endpoint; [`Error::InvalidInput`] for one
    /// that is not told the like.
    pub fn redeliver_to(&self, event: EventId, endpoint: WebhookId) -> Result<(), Error> {
        self.service.redeliver_to(&self.governor, event, endpoint)
    }
}

impl std::fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhooks").finish_non_exhaustive()
    }
}
