//! Keys, plans and limits in front of a governor, without a transport: a bearer token and a call in, the contract's
//! answer or error out.
//!
//! `docs/reference/http.md` describes keys, plans and the order of checks.
//!
//! ```
//! use rulekeep_server::gateway::{Gateway, KeyDraft, Plan, Scope};
//! use rulekeep::{Agent, Governor};
//! use serde_json::json;
//!
//! let governor = Governor::builder().open_in_memory()?;
//! governor.agents().register(Agent::new("support-1"))?;
//! let gateway = Gateway::new(&governor)?;
//!
//! let made = gateway.keys().create(KeyDraft::new(Scope::Agent, Plan::Free).agent("support-1"))?;
//! let bearer = Some(made.key.expose()); // shown here alone
//!
//! let asked = |agent: &str| json!({ "agentId": agent, "input": "Summarize the meeting notes" });
//! let verdict = gateway.call(bearer, "10.0.0.7", "enforce", asked("support-1"))?;
//! assert_eq!(verdict["decision"], "ALLOW");
//!
//! assert_eq!(gateway.call(bearer, "10.0.0.7", "enforce", asked("support-2")).unwrap_err().code(), "FORBIDDEN");
//! assert_eq!(gateway.call(None, "10.0.0.7", "admin/status", json!({})).unwrap_err().code(), "UNAUTHORIZED");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod idempotency;
mod key;
mod keys;
mod limit;

use crate::webhooks::{self, Webhooks};
use rulekeep::extension::{Extension, Follower};
use std::sync::Arc;

pub use key::{ApiKey, KeyDraft, KeyInfo, KeyState, NewKey, Plan, Scope};
pub use limit::Allowance;

use rulekeep::escalation::EscalationId;
use rulekeep::extension::KeyId;
use rulekeep::task::TaskId;
use rulekeep::{Enforcement, Error, Governor, Intent};

pub(crate) use idempotency::{Given, Made, Once};

use keys::Entry;
use limit::{Refusals, Time};

/// Checks keys and limits, and hands requests on to a governor. A governor has one, which is cheap to clone.
#[derive(Clone)]
pub struct Gateway {
    governor: Governor,
    state: Arc<State>,
    webhooks: Webhooks,
}

/// The state of keys, refusals and stored responses. It does not keep the governor open.
struct State {
    keys: keys::Keys,
    refusals: Refusals,
    answers: idempotency::Answers,
}

impl Follower for State {
    fn expire(&self, governor: &Governor) {
        self.keys.expire(governor);
    }
}

impl Gateway {
    /// Opens the gateway of a governor, with the keys and webhooks of its store. Clone it for further users.
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] for keys in the store that this version cannot read; [`Error::Conflict`] when the
    /// governor has a gateway already.
    pub fn new(governor: &Governor) -> Result<Self, Error> {
        Self::with_webhooks(governor, webhooks::Settings::default())
    }

    /// Like [`Gateway::new`], with settings for the delivery of webhooks.
    ///
    /// # Errors
    ///
    /// Those of [`Gateway::new`]; [`Error::InvalidInput`] for a schedule that cannot be kept.
    pub fn with_webhooks(governor: &Governor, settings: webhooks::Settings) -> Result<Self, Error> {
        let time = Time(Extension::of(governor).clock());
        let state = Arc::new(State {
            keys: keys::Keys::restored(governor, time.clone())?,
            refusals: Refusals::new(&time),
            answers: idempotency::Answers::new(),
        });
        Extension::of(governor).attach("gateway", Arc::clone(&state) as Arc<dyn Follower>)?;
        state.keys.expire(governor);
        let webhooks = Webhooks::start(governor, settings)?;
        Ok(Self { governor: governor.clone(), state, webhooks })
    }

    /// The endpoints that events are sent to.
    pub const fn webhooks(&self) -> &Webhooks {
        &self.webhooks
    }

    /// The governor behind.
    pub fn governor(&self) -> &Governor {
        &self.governor
    }

    /// The keys: to make, list and revoke them.
    pub fn keys(&self) -> Keys<'_> {
        Keys { gateway: self }
    }

    /// The answer that was given under an idempotency key, or that `make` gives now.
    ///
    /// # Errors
    ///
    /// Those of `make`; [`Error::Conflict`] where what was given is not given again.
    pub(crate) async fn once(
        &self,
        once: &Once<'_>,
        make: impl Future<Output = Result<Made, Error>>,
    ) -> Result<Given, Error> {
        self.state.answers.once(&self.governor, once, make).await
    }

    /// Lets a request in by its key, and takes room for it from the key's plan. `caller` is where it came from, an
    /// address for example: callers whose keys are refused again and again have to wait.
    ///
    /// # Errors
    ///
    /// [`Error::Unauthorized`] for a key that is missing, malformed, unknown, expired or revoked;
    /// [`Error::RateLimited`] past the plan of the key, and for the next keys of a caller of whom 20 were refused within a
    /// minute. That caller gets it for right keys too that it has not used before, so that guessing is slow; keys that
    /// it has go on.
    pub fn admit(&self, bearer: Option<&str>, caller: &str) -> Result<Admitted, Error> {
        self.admit_or_say(bearer, caller).map_err(|refused| refused.error)
    }

    pub(crate) fn admit_or_say(&self, bearer: Option<&str>, caller: &str) -> Result<Admitted, Refused> {
        let now = Extension::of(&self.governor).clock().now();
        let refused = |name: &str, message: String| {
            Extension::of(&self.governor).record_refused_key(name);
            self.state.refusals.note(caller)?;
            Err(Error::Unauthorized { message }.into())
        };
        let Some(text) = bearer else {
            return refused(caller, "an API key is missing: expected Authorization: Bearer <API key>".to_owned());
        };
        let found = text.parse::<ApiKey>().ok().and_then(|key| self.state.keys.find(&key));
        let Some(entry) = found else {
            return refused(caller, "the API key is not known".to_owned());
        };
        if !entry.callers().knows(caller) {
            self.state.refusals.look(caller)?;
        }
        if let Some(message) = self.state.keys.refusal(&self.governor, &entry, now) {
            return refused(&entry.id().to_string(), message);
        }
        if !entry.callers().knows(caller) {
            entry.callers().add(caller);
        }
        entry.note_used(now);
        let taken = entry.limit().take();
        let allowance = taken.map_err(|(error, allowance)| Refused { error, allowance: Some(allowance) })?;
        Ok(Admitted { gateway: self.clone(), entry, allowance })
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}

fn accepted(gateway: &Gateway, entry: &Entry) -> Result<(), Error> {
    let now = Extension::of(gateway.governor()).clock().now();
    match gateway.state.keys.refusal(gateway.governor(), entry, now) {
        Some(message) => Err(Error::Unauthorized { message }),
        None => Ok(()),
    }
}

/// Why a request was not let in.
pub(crate) struct Refused {
    pub(crate) error: Error,
    /// What is said of the plan where it is used up. Of whoever has to wait for having sent wrong keys nothing is
    /// said: it would tell a right key from a wrong one.
    pub(crate) allowance: Option<Allowance>,
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self { error, allowance: None }
    }
}

/// A request that was let in.
#[must_use = "nothing is done yet"]
pub struct Admitted {
    gateway: Gateway,
    entry: Arc<Entry>,
    allowance: Allowance,
}

impl Admitted {
    /// The key by which it was let in.
    pub fn key_id(&self) -> KeyId {
        self.entry.id()
    }

    /// What that key permits.
    pub fn scope(&self) -> Scope {
        self.entry.scope()
    }

    /// What that key may still do.
    pub fn allowance(&self) -> Allowance {
        self.allowance
    }

    /// Whether a decision is answered without waiting for the disk.
    pub(crate) fn answers_at_once(&self) -> bool {
        Extension::of(self.gateway.governor()).answers_at_once()
    }

    pub(crate) fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// Makes sure that the key is accepted still.
    pub(crate) fn accepted(&self) -> Result<(), Error> {
        accepted(&self.gateway, &self.entry)
    }

    /// Takes room for one more request from the key's plan.
    pub(crate) fn take_room(&self) -> Result<(), Error> {
        self.entry.limit().take().map(drop).map_err(|(full, _)| full)
    }

    /// Whether what concerns an agent is open to the key.
    pub(crate) fn is_for(&self, agent_id: &str) -> bool {
        self.entry.is_for(agent_id)
    }

    pub(crate) fn is_limited_to_agents(&self) -> bool {
        self.entry.is_limited_to_agents()
    }

    /// Whether the key is accepted still, to be asked behind this.
    pub(crate) fn look_again(&self) -> impl Fn() -> Result<(), Error> + Send + Sync + use<> {
        let (gateway, entry) = (self.gateway.clone(), Arc::clone(&self.entry));
        move || accepted(&gateway, &entry)
    }

    /// Decides on an intent, perhaps under a task: one that its caller built, where the key may.
    pub(crate) fn enforce(&self, intent: &Intent, task: Option<TaskId>) -> Result<Enforcement, Error> {
        let governor = self.gateway.governor();
        match (self.entry.takes_built_intents(), task) {
            (true, None) => governor.enforce(intent),
            (true, Some(task)) => governor.tasks().get(task)?.enforce_intent(intent),
            (false, None) => Extension::of(governor).enforce_parsed(intent),
            (false, Some(task)) => Extension::of(governor).enforce_parsed_under(task, intent),
        }
    }

    /// Comes when that escalation is not pending any more.
    pub(crate) fn answered(&self, id: EscalationId) -> impl Future<Output = ()> + Send + use<> {
        self.gateway.governor().escalations().answered(id)
    }

    /// Makes sure that the key is one for everything.
    ///
    /// # Errors
    ///
    /// [`Error::Forbidden`] where it is one for agents.
    pub fn admin(&self) -> Result<(), Error> {
        if self.scope() == Scope::Admin {
            return Ok(());
        }
        Err(Error::Forbidden { message: "this needs an API key of the scope admin".to_owned() })
    }
}

impl std::fmt::Debug for Admitted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admitted").field("key", &self.entry.id()).finish_non_exhaustive()
    }
}

/// The keys of a store.
#[derive(Debug, Clone, Copy)]
pub struct Keys<'a> {
    gateway: &'a Gateway,
}

impl Keys<'_> {
    /// Makes a key. Its text is in the answer and nowhere else: the store keeps a digest.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a draft that does not hold; [`Error::Conflict`] past 10,000 keys that are
    /// accepted, and for a log that is frozen; [`Error::StorageUnavailable`]; [`Error::ChainBroken`].
    pub fn create(&self, draft: KeyDraft) -> Result<NewKey, Error> {
        self.table().create(&self.gateway.governor, draft)
    }

    /// Makes a key for administrators, named so, where none is accepted; for the first start.
    ///
    /// # Errors
    ///
    /// Those of [`Keys::create`].
    pub fn ensure_admin(&self, name: &str) -> Result<Option<NewKey>, Error> {
        let draft = KeyDraft::new(Scope::Admin, Plan::Pro).name(name);
        self.table().ensure_admin(&self.gateway.governor, draft)
    }

    /// Every key, the oldest first; neither texts nor digests.
    pub fn list(&self) -> Vec<KeyInfo> {
        self.table().expire(&self.gateway.governor);
        self.table().list()
    }

    /// Refuses a key from now on, in every thread. One that is revoked stays so.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for an unknown id. When it cannot be recorded, [`Error::StorageUnavailable`] or
    /// [`Error::ChainBroken`]: then it is refused until the store is opened again.
    pub fn revoke(&self, id: KeyId) -> Result<KeyInfo, Error> {
        self.table().revoke(&self.gateway.governor, id)
    }

    fn table(&self) -> &keys::Keys {
        &self.gateway.state.keys
    }
}

const _: fn() = || {
    fn shared_by_threads<T: Send + Sync + Clone>() {}
    shared_by_threads::<Gateway>();
};
