//! The hub: a stateless process between the governors of an organisation and its PostgreSQL database.
//!
//! Any number of hubs share a database. A hub can withhold an order; it cannot make one, because members verify the
//! operators' signatures. Whatever it answers rests on a transaction of the primary that began after the request had
//! arrived, so a permit never outlives its term after a later order.
//!
//! | file | subject |
//! |---|---|
//! | `store.rs`, `schema/` | connections, migrations, the database's identity |
//! | `orders.rs` | the chain of orders, and how far one is carried out |
//! | `batches.rs` | requests that are answered together |
//! | `enrol.rs` | enrolment |
//! | `beat.rs` | beats and permits |
//! | `clock.rs` | permits on the hubs' own clocks |
//! | `limits.rs` | grants of shared limits |
//! | `records.rs` | copied records, queries over them, bundles |
//! | `sequencer.rs` | the organisation's log: leaves, tiles, published checkpoints |
//! | `files.rs` | the log as files, and what brings a restored database up to date |
//! | `epoch.rs` | what a restored or promoted database may do |
//! | `http.rs` | the calls over HTTP, and the console page |
//! | `witness.rs` | the call of a witness over HTTP |

mod batches;
mod beat;
mod clock;
mod enrol;
mod epoch;
mod files;
mod http;
mod limits;
mod orders;
mod records;
mod sequencer;
mod store;
mod witness;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use rulekeep::checkpoint::{CheckpointKey, VerifierKey};
use rulekeep::system::{Entropy as _, SystemEntropy};
use tokio::sync::{mpsc, watch};

use crate::cosignature::WitnessKey;
use crate::log::LogError;
use crate::order::{Chain, OrderError, SignedOrder};
use crate::permit::ReadOrder;
use crate::wire::Reserve;
use store::Store;

pub use http::{MemberInfo, Members};
pub use records::{Found, Wanted};
pub use witness::witness_router;

/// The settings of a hub.
#[derive(Clone)]
pub struct Settings {
    /// The database's URL: `postgres://user@host/database`. Several hosts may be given; the primary is used.
    pub database: String,
    /// Certificates of the authorities that the database's certificate may be signed by, in PEM, besides public ones.
    pub database_ca: Option<Vec<u8>>,
    /// The key that signs checkpoints of the organisation's log.
    pub key: CheckpointKey,
    /// Witnesses, each with the URL of its `add-checkpoint` call.
    pub witnesses: Vec<(WitnessKey, String)>,
    /// A folder that checkpoints and tiles are written to, to be served and backed up apart from the database.
    pub publish: Option<PathBuf>,
    /// The bearer token of callers that may read: operators, auditors, the console. Without one nobody may.
    pub read_token: Option<String>,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The URL of the database may hold a password.
        let Self { key, witnesses, publish, .. } = self;
        let shown = &mut f.debug_struct("Settings");
        shown.field("key", key).field("witnesses", witnesses).field("publish", publish).finish_non_exhaustive()
    }
}

/// A running hub.
#[derive(Clone)]
pub struct Hub {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Settings,
    store: Store,
    orders: RwLock<Arc<Orders>>,
    // The number of the newest order that this hub knows; waiting beats watch it.
    newest: watch::Sender<u64>,
    beats: mpsc::Sender<batches::Waiting<beat::Arrived>>,
    // Relates the arrival of beats to the transactions that answer them.
    reads: ReadOrder,
    reservations: mpsc::Sender<batches::Waiting<Reserve>>,
    clock: clock::HubClock,
    // Keys do not change after enrolment.
    keys: Mutex<HashMap<String, VerifierKey>>,
    // The time at which all keys were read last. It is locked while they are read.
    keys_read: tokio::sync::Mutex<Option<tokio::time::Instant>>,
    // Taken while the database is used for a caller that is not known.
    strangers: tokio::sync::Semaphore,
    // Whether this hub has compared the log with what witnesses and files have: the database may say so of an earlier copy.
    has_compared: AtomicBool,
    // The largest log that this hub has seen.
    largest: AtomicU64,
    // The requests under way of each governor.
    requests: Mutex<HashMap<String, usize>>,
    // Wakes the sequencer for an order.
    leaves: tokio::sync::Notify,
    // Why the log was not extended or published the last time.
    problem: Mutex<Option<String>>,
}

/// The orders that a hub knows.
struct Orders {
    chain: Chain,
    signed: Vec<Arc<SignedOrder>>,
    /// The shared limits that each `policies` order names, read when they are asked for.
    limits_by_order: BTreeMap<u64, Arc<OnceLock<limits::Named>>>,
}

/// The reason a hub cannot answer or start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HubError {
    /// A setting is wrong.
    #[error("{0}")]
    Settings(String),
    /// The database does not answer or refuses a statement.
    #[error("the database: {0}")]
    Database(String),
    /// The database cannot store the content of a request.
    #[error("it cannot be stored: {0}")]
    Content(String),
    /// An order is refused.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// The caller may not do this.
    #[error("{0}")]
    Forbidden(String),
    /// The request is wrong.
    #[error("{0}")]
    Invalid(String),
    /// There is no such thing.
    #[error("{0}")]
    NotFound(String),
    /// The organisation's log cannot be extended or read.
    #[error("the organisation's log: {0}")]
    Log(String),
}

impl From<LogError> for HubError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::LongLeaf(_) => Self::Content(error.to_string()),
            _ => Self::Log(error.to_string()),
        }
    }
}

impl From<tokio_postgres::Error> for HubError {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(told) = error.as_db_error() else { return Self::Database(error.to_string()) };
        // Data exceptions, integrity, and exceeded limits of the program.
        let is_content = ["22", "23", "54"].iter().any(|class| told.code().code().starts_with(class));
        let message = told.message().to_owned();
        if is_content { Self::Content(message) } else { Self::Database(message) }
    }
}

impl Hub {
    /// Connects to the database, brings its schema up to date, and starts the hub's tasks.
    ///
    /// # Errors
    ///
    /// [`HubError::Settings`] or [`HubError::Database`].
    pub async fn start(settings: Settings) -> Result<Self, HubError> {
        if settings.read_token.as_ref().is_some_and(String::is_empty) {
            return Err(HubError::Settings("the token of readers is empty".to_owned()));
        }
        let store = Store::open(&settings.database, settings.database_ca.as_deref()).await?;
        let (beats, arrived) = mpsc::channel(QUEUE);
        let (reservations, asked) = mpsc::channel(QUEUE);
        let inner = Inner {
            settings,
            store,
            orders: RwLock::new(Arc::new(Orders {
                chain: Chain::new(None),
                signed: Vec::new(),
                limits_by_order: BTreeMap::new(),
            })),
            newest: watch::Sender::new(0),
            beats,
            reads: ReadOrder::default(),
            reservations,
            clock: clock::HubClock::new(),
            keys: Mutex::default(),
            keys_read: tokio::sync::Mutex::default(),
            strangers: tokio::sync::Semaphore::new(STRANGERS),
            has_compared: AtomicBool::new(false),
            largest: AtomicU64::new(0),
            requests: Mutex::default(),
            leaves: tokio::sync::Notify::new(),
            problem: Mutex::default(),
        };
        let hub = Self { inner: Arc::new(inner) };
        let client = hub.inner.store.client().await?;
        hub.inner.clock.exchange(&client).await?;
        hub.read_orders(&client).await?;
        drop(client);
        hub.check_key()?;
        tokio::spawn(batches::serve(hub.clone(), arrived));
        tokio::spawn(batches::serve(hub.clone(), asked));
        tokio::spawn(hub.clone().watch_orders());
        // Without an answer of the witness the hub serves, and gives no permits yet.
        hub.step().await;
        tokio::spawn(hub.clone().sequence());
        Ok(hub)
    }

    /// The reason that the organisation's log was not extended or published the last time, or that the hub gives no
    /// permits; `None` if all is well. For the operator of the hub.
    pub fn problem(&self) -> Option<String> {
        self.inner.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Refuses to sign with another key than that of the organisation's log.
    fn check_key(&self) -> Result<(), HubError> {
        let (orders, own) = (self.orders(), self.inner.settings.key.verifier().to_string());
        match orders.chain.organisation() {
            Some(organisation) if organisation.log != own => {
                let log = &organisation.log;
                Err(HubError::Settings(format!("the hub's key is {own}; the organisation's log is signed by {log}")))
            }
            _ => Ok(()),
        }
    }

    /// Computes the time that is left of permits, each given by its hub and its end, in milliseconds; 0 or less for one
    /// that has ended.
    fn permit_left(&self) -> impl Fn(&str, i64) -> i64 {
        let longest = self.orders().chain.longest_permit();
        move |hub, until| self.inner.clock.left(hub, until, longest)
    }

    fn orders(&self) -> Arc<Orders> {
        Arc::clone(&self.inner.orders.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").field("order", &self.orders().chain.seq()).finish_non_exhaustive()
    }
}

/// A random text that nobody can guess.
fn random() -> String {
    hex::encode(SystemEntropy.bits().to_be_bytes())
}

/// Requests that wait for the next transaction; further callers wait for room.
const QUEUE: usize = 16_384;
/// Connections to the database, of those of [`store`], that callers who are not known use at once.
const STRANGERS: usize = 2;
/// The pause after the database failed, and between two looks for news.
const PAUSE: Duration = Duration::from_millis(100);
