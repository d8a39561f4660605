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
//! | `payload.rs` | the body of a delivery |
//! | `links.rs` | approval links for a reviewer |
//! | `sender.rs` | a single delivery over the network |
//! | `courier.rs` | the thread of an endpoint |
//! | `service.rs` | all endpoints of a governor |
//! | `secrets.rs` | the file of secrets beside the journal |
//! | `log.rs` | the most recent deliveries |

mod address;
mod courier;
mod endpoint;
mod links;
mod log;
mod outbox;
mod payload;
mod schedule;
mod secrets;
mod sender;
mod service;

use std::sync::Arc;
use std::time::Duration;

pub use endpoint::{AddedEndpoint, Endpoint, EndpointDraft, EndpointState, NotTaken, Redelivery};
pub(crate) use links::{Opened, PATH as LINK_PATH};
pub use log::{Delivery, DeliveryPage, DeliveryResult};
pub use payload::Format;
pub use secrets::SecretPrint;

use rulekeep::Error;
use rulekeep::Governor;
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
    /// The URL at which reviewers reach this server, for approval links, such as `https://rulekeep.example.com`.
    /// Default: none, and no endpoint has links.
    pub public_url: Option<String>,
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

    /// Lists every endpoint with its current state.
    ///
    /// # Errors
    ///
    /// [`Error::Internal`] only.
    pub fn list(&self) -> Result<Vec<Endpoint>, Error> {
        let now = Extension::of(&self.governor).clock().now();
        Ok(self.service.all().iter().map(|courier| courier.shown(now)).collect())
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
}

impl std::fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhooks").finish_non_exhaustive()
    }
}
