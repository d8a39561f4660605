//! API keys, plans and rate limits in front of a governor, independent of any transport: takes a bearer token and a
//! call, and returns the response or an error.
//!
//! See `docs/reference/http.md`.
//!
//! ```
//! use rulekeep_server::gateway::{Gateway, KeyDraft, Plan, Scope};
//! use rulekeep::{Agent, Decision, Governor};
//! use rulekeep_server::calls::decisions::{Asked, DecisionForm, Enforce, InputForm};
//!
//! let governor = Governor::builder().open_in_memory()?;
//! governor.agents().register(Agent::new("support-1"))?;
//! let gateway = Gateway::new(&governor)?;
//!
//! let made = gateway.keys().create(KeyDraft::new(Scope::Agent, Plan::Free).agent("support-1"))?;
//! let bearer = Some(made.key.expose()); // shown here alone
//!
//! let asked = |agent: &str| {
//!     let input = Asked::text("Summarize the meeting notes");
//!     Enforce { form: DecisionForm::Input(InputForm { agent_id: agent.to_owned(), input, context: None }), task: None }
//! };
//! let verdict = gateway.admit(bearer, "10.0.0.7")?.make(asked("support-1"))?;
//! assert_eq!(verdict.enforcement.decision, Decision::Allow);
//!
//! assert_eq!(gateway.admit(bearer, "10.0.0.7")?.make(asked("support-2")).err().unwrap().code(), "FORBIDDEN");
//! assert_eq!(gateway.admit(None, "10.0.0.7").err().unwrap().code(), "UNAUTHORIZED");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod idempotency;
mod key;
mod keys;
mod limit;
mod people;

use crate::webhooks::{self, Webhooks};
use rulekeep::extension::{Extension, Follower};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

pub use key::{ApiKey, KeyDraft, KeyInfo, KeyState, NewKey, Plan, Scope};
pub use limit::Allowance;

use rulekeep::agent::AgentId;
use rulekeep::escalation::{EscalationId, Review};
use rulekeep::extension::KeyId;
use rulekeep::system::Timestamp;
use rulekeep::task::TaskId;
use rulekeep::{Enforcement, Error, Governor, Intent};

pub(crate) use idempotency::{Given, Made, Once};

use crate::tokens::Verifier;
use keys::Entry;
use limit::{Refusals, Time};
use people::People;

/// Checks API keys and limits, and passes requests on to a governor. A governor has only one gateway; cloning it is
/// cheap.
#[derive(Clone)]
pub struct Gateway {
    governor: Governor,
    state: Arc<State>,
    webhooks: Webhooks,
}

/// The state of keys, rejected keys and stored responses. It does not keep the governor open.
struct State {
    keys: keys::Keys,
    refusals: Refusals,
    answers: idempotency::Answers,
    /// The reviewers who sign in elsewhere.
    people: OnceLock<People>,
    /// Number of subscriptions of all sessions.
    subscriptions: Arc<AtomicUsize>,
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
    /// * [`Error::StorageUnavailable`] if the store contains keys that this version cannot read.
    /// * [`Error::Conflict`] if the governor has a gateway already.
    pub fn new(governor: &Governor) -> Result<Self, Error> {
        Self::with_webhooks(governor, webhooks::Settings::default())
    }

    /// Like [`Gateway::new`], with settings for the delivery of webhooks.
    ///
    /// # Errors
    ///
    /// See [`Gateway::new`]; also [`Error::InvalidInput`] for an invalid retry schedule.
    pub fn with_webhooks(governor: &Governor, settings: webhooks::Settings) -> Result<Self, Error> {
        let time = Time(Extension::of(governor).clock());
        let state = Arc::new(State {
            keys: keys::Keys::restored(governor, time.clone())?,
            refusals: Refusals::new(&time),
            answers: idempotency::Answers::new(),
            people: OnceLock::new(),
            subscriptions: Arc::default(),
        });
        Extension::of(governor).attach("gateway", Arc::clone(&state) as Arc<dyn Follower>)?;
        state.keys.expire(governor);
        let webhooks = Webhooks::start(governor, settings)?;
        Ok(Self { governor: governor.clone(), state, webhooks })
    }

    /// The webhook endpoints of the governor.
    pub const fn webhooks(&self) -> &Webhooks {
        &self.webhooks
    }

    /// The governor behind the gateway.
    pub fn governor(&self) -> &Governor {
        &self.governor
    }

    /// Number of subscriptions of all sessions.
    pub(crate) fn subscriptions(&self) -> &Arc<AtomicUsize> {
        &self.state.subscriptions
    }

    /// Accepts the tokens of an OpenID provider like API keys of the scope `reviewer`. The reviewer's name is the
    /// token's `claim`, for example `sub`; `email` counts only with `email_verified`.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] if it accepts tokens already.
    pub fn accept_tokens(&self, verifier: Verifier, claim: &str) -> Result<(), Error> {
        let people = People::new(verifier, claim.to_owned());
        let message = || "the gateway accepts the tokens of a provider already".to_owned();
        self.state.people.set(people).map_err(|_| Error::Conflict { message: message() })
    }

    /// The API keys of the store.
    pub fn keys(&self) -> Keys<'_> {
        Keys { gateway: self }
    }

    /// Returns the response stored under an idempotency key, or the one that `make` gives now.
    ///
    /// # Errors
    ///
    /// The errors of `make`; [`Error::Conflict`] if the stored response cannot be repeated.
    pub(crate) async fn once(
        &self,
        once: &Once<'_>,
        make: impl Future<Output = Result<Made, Error>>,
    ) -> Result<Given, Error> {
        self.state.answers.once(&self.governor, once, make).await
    }

    /// Admits a request by its API key, and takes room for it from the key's plan. `caller` is the origin of the
    /// request, for example an address. Callers that repeatedly send rejected keys have to wait.
    ///
    /// # Errors
    ///
    /// * [`Error::Unauthorized`] for a key that is missing, malformed, unknown, expired or revoked.
    /// * [`Error::RateLimited`] above the key's plan, and for a caller whose keys were rejected 20 times within a
    ///   minute. The latter also applies to tokens and to valid keys this caller has not used before, which slows
    ///   guessing; keys it already uses are not affected.
    pub fn admit(&self, bearer: Option<&str>, caller: &str) -> Result<Admitted, Error> {
        self.admit_or_say(bearer, caller).map_err(|refused| refused.error)
    }

    /// Opens an approval link. Links that are not valid count like rejected keys.
    ///
    /// # Errors
    ///
    /// See [`Webhooks::open_link`]; [`Error::RateLimited`] for a caller with many rejected keys or links.
    pub(crate) fn open_link(&self, link: &str, caller: &str) -> Result<webhooks::Opened, Error> {
        self.state.refusals.look(caller)?;
        let opened = self.webhooks.open_link(link);
        if matches!(opened, Err(Error::Unauthorized { .. })) {
            Extension::of(&self.governor).record_refused_key(caller);
            self.state.refusals.note(caller)?;
        }
        opened
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
        let found = match self.state.people.get().filter(|_| found.is_none() && text.contains('.')) {
            None => found.map(|entry| (entry, None)),
            Some(people) => {
                // Before a signature is checked.
                self.state.refusals.look(caller)?;
                match people.admit(text, now, &Time(Extension::of(&self.governor).clock())) {
                    Ok((entry, until)) => Some((entry, Some(until))),
                    Err(why) => return refused(caller, why),
                }
            }
        };
        let Some((entry, until)) = found else {
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
        Ok(Admitted { gateway: self.clone(), entry, until, allowance })
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}

fn accepted(gateway: &Gateway, entry: &Entry, until: Option<Timestamp>) -> Result<(), Error> {
    let now = Extension::of(gateway.governor()).clock().now();
    if until.is_some_and(|until| until <= now) {
        return Err(Error::Unauthorized { message: "the token has expired".to_owned() });
    }
    match gateway.state.keys.refusal(gateway.governor(), entry, now) {
        Some(message) => Err(Error::Unauthorized { message }),
        None => Ok(()),
    }
}

/// The reason a request was not admitted.
pub(crate) struct Refused {
    pub(crate) error: Error,
    /// The state of the plan if it is exhausted. Absent for a caller that has to wait because of rejected keys, since
    /// it would tell a valid key from an invalid one.
    pub(crate) allowance: Option<Allowance>,
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self { error, allowance: None }
    }
}

/// A request that the gateway admitted.
#[must_use = "nothing is done yet"]
pub struct Admitted {
    gateway: Gateway,
    entry: Arc<Entry>,
    /// The end of the token, if the caller sent one.
    until: Option<Timestamp>,
    allowance: Allowance,
}

impl Admitted {
    /// The id of the key that was used.
    pub fn key_id(&self) -> KeyId {
        self.entry.id()
    }

    /// The permissions of the key.
    pub fn scope(&self) -> Scope {
        self.entry.scope()
    }

    /// The remaining request allowance of the key.
    pub fn allowance(&self) -> Allowance {
        self.allowance
    }

    /// Returns whether a decision is answered without waiting for the disk.
    pub(crate) fn answers_at_once(&self) -> bool {
        Extension::of(self.gateway.governor()).answers_at_once()
    }

    pub(crate) fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// Checks that the key is still accepted.
    pub(crate) fn accepted(&self) -> Result<(), Error> {
        accepted(&self.gateway, &self.entry, self.until)
    }

    /// Takes room for one more request from the key's plan.
    pub(crate) fn take_room(&self) -> Result<(), Error> {
        self.entry.limit().take().map(drop).map_err(|(full, _)| full)
    }

    /// Returns whether the key gives access to an agent's data.
    pub(crate) fn is_for(&self, agent_id: &str) -> bool {
        self.entry.is_for(agent_id)
    }

    pub(crate) fn is_limited_to_agents(&self) -> bool {
        self.entry.is_limited_to_agents()
    }

    /// Returns a function that checks again whether the key is still accepted.
    pub(crate) fn look_again(&self) -> impl Fn() -> Result<(), Error> + Send + Sync + use<> {
        let (gateway, entry, until) = (self.gateway.clone(), Arc::clone(&self.entry), self.until);
        move || accepted(&gateway, &entry, until)
    }

    /// Decides an intent that the caller built, if the key permits it, optionally under a task.
    pub(crate) fn enforce(&self, intent: &Intent, task: Option<TaskId>) -> Result<Enforcement, Error> {
        let governor = self.gateway.governor();
        match (self.entry.takes_built_intents(), task) {
            (true, None) => governor.enforce(intent),
            (true, Some(task)) => governor.tasks().get(task)?.enforce_intent(intent),
            (false, None) => Extension::of(governor).enforce_parsed(intent),
            (false, Some(task)) => Extension::of(governor).enforce_parsed_under(task, intent),
        }
    }

    /// Completes when this escalation is no longer pending.
    pub(crate) fn answered(&self, id: EscalationId) -> impl Future<Output = ()> + Send + use<> {
        self.gateway.governor().escalations().answered(id)
    }

    /// A review, with the identity that the key proves.
    ///
    /// # Errors
    ///
    /// [`Error::Forbidden`] if the key belongs to another reviewer.
    pub(crate) fn identified(&self, review: Review) -> Result<Review, Error> {
        match self.entry.reviewer() {
            Some(own) if own != review.reviewer => Err(Error::Forbidden {
                message: format!("this API key belongs to {own:?}, who answers in that name alone"),
            }),
            _ => Ok(review.identified(self.entry.identity())),
        }
    }

    /// The agent that the holder of the key is.
    ///
    /// # Errors
    ///
    /// [`Error::Forbidden`] unless the key has the scope `agent` and is limited to a single agent.
    pub fn agent(&self) -> Result<&AgentId, Error> {
        self.entry.only_agent().ok_or_else(|| Error::Forbidden {
            message: "this needs an API key of the scope agent that is limited to a single agent".to_owned(),
        })
    }

    /// Checks that the key is an admin key.
    ///
    /// # Errors
    ///
    /// [`Error::Forbidden`] if it has another scope.
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

/// The API keys of a store.
#[derive(Debug, Clone, Copy)]
pub struct Keys<'a> {
    gateway: &'a Gateway,
}

impl Keys<'_> {
    /// Creates a key. Its text is only in the result; the store keeps a digest.
    ///
    /// # Errors
    ///
    /// * [`Error::InvalidInput`] for invalid settings.
    /// * [`Error::Conflict`] above 10,000 accepted keys, and for a frozen log.
    /// * [`Error::StorageUnavailable`] or [`Error::ChainBroken`] if the key cannot be recorded.
    pub fn create(&self, draft: KeyDraft) -> Result<NewKey, Error> {
        self.table().create(&self.gateway.governor, draft)
    }

    /// Creates an admin key with this name if no admin key is accepted, for the first start.
    ///
    /// # Errors
    ///
    /// See [`Keys::create`].
    pub fn ensure_admin(&self, name: &str) -> Result<Option<NewKey>, Error> {
        let draft = KeyDraft::new(Scope::Admin, Plan::Pro).name(name);
        self.table().ensure_admin(&self.gateway.governor, draft)
    }

    /// Lists every key, oldest first, without texts and digests.
    pub fn list(&self) -> Vec<KeyInfo> {
        self.table().expire(&self.gateway.governor);
        self.table().list()
    }

    /// Revokes a key for good, in every thread, starting when this returns.
    ///
    /// # Errors
    ///
    /// * [`Error::NotFound`] for an unknown id.
    /// * [`Error::StorageUnavailable`] or [`Error::ChainBroken`] if the revocation cannot be recorded. The key is
    ///   then rejected only until the store is opened again.
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
