//! Keys, plans and limits in front of a governor, without a transport: a bearer token and a call in, the contract's
//! answer or error out.
//!
//! `docs/gateway.md` has the whole of it.
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

mod answers;
mod key;
mod keys;
mod limit;

use crate::webhook::{self, Webhooks};
use rulekeep::extension::{Extension, Follower};
use std::sync::Arc;

pub use key::{ApiKey, KeyDraft, KeyInfo, KeyState, NewKey, Plan, Scope};
pub use limit::Allowance;

use rulekeep::escalation::EscalationId;
use rulekeep::extension::KeyId;
use rulekeep::{Enforcement, Error, Governor, Intent};
use serde_json::Value;

pub(crate) use answers::{Given, Made, Once};

use crate::calls::{self, Call, Job, Params, Spec, Subject};

use keys::Entry;
use limit::{Refusals, Time};

/// Checks keys and limits, and hands requests on to a governor. A governor has one, which is cheap to clone.
#[derive(Clone)]
pub struct Gateway {
    governor: Governor,
    desk: Arc<Desk>,
    webhooks: Webhooks,
}

/// The state of keys, refusals and stored responses. It does not keep the governor open.
struct Desk {
    keys: keys::Keys,
    refusals: Refusals,
    answers: answers::Answers,
}

impl Follower for Desk {}

impl Gateway {
    /// Opens the gateway of a governor, with the keys and webhooks of its store. Clone it for further users.
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] for keys in the store that this version cannot read; [`Error::Conflict`] when the
    /// governor has a gateway already.
    pub fn new(governor: &Governor) -> Result<Self, Error> {
        Self::with_webhooks(governor, webhook::Settings::default())
    }

    /// Like [`Gateway::new`], with settings for the delivery of webhooks.
    ///
    /// # Errors
    ///
    /// Those of [`Gateway::new`]; [`Error::InvalidInput`] for a schedule that cannot be kept.
    pub fn with_webhooks(governor: &Governor, settings: webhook::Settings) -> Result<Self, Error> {
        let time = Time(Arc::clone(Extension::of(governor).clock()));
        let desk = Arc::new(Desk {
            keys: keys::Keys::restored(governor, time.clone())?,
            refusals: Refusals::new(&time),
            answers: answers::Answers::new(),
        });
        Extension::of(governor).attach("gateway", Arc::clone(&desk) as Arc<dyn Follower>)?;
        let webhooks = Webhooks::start(governor, settings)?;
        Ok(Self { governor: governor.clone(), desk, webhooks })
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
        self.desk.answers.once(&self.governor, once, make).await
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
            Extension::of(&self.governor).note_refused_key(name);
            self.desk.refusals.note(caller)?;
            Err(Error::Unauthorized { message }.into())
        };
        let Some(text) = bearer else {
            return refused(caller, "an API key is missing: expected Authorization: Bearer <API key>".to_owned());
        };
        let found = text.parse::<ApiKey>().ok().and_then(|key| self.desk.keys.find(&key));
        let Some(entry) = found else {
            return refused(caller, "the API key is not known".to_owned());
        };
        if !entry.callers().knows(caller) {
            self.desk.refusals.look(caller)?;
        }
        if let Some(message) = entry.refusal(now) {
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

    /// [`Gateway::admit`] and [`Admitted::call`] in one.
    ///
    /// # Errors
    ///
    /// Those of the two.
    pub fn call(&self, bearer: Option<&str>, caller: &str, method: &str, params: Value) -> Result<Value, Error> {
        self.admit(bearer, caller)?.call(method, params)
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}

fn accepted(gateway: &Gateway, entry: &Entry) -> Result<(), Error> {
    match entry.refusal(Extension::of(gateway.governor()).clock().now()) {
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

    /// Makes a call of the sidecar's protocol by its name, for example `outcome/report`, with its named parameters.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for an unknown name and for parameters that are no object; [`Error::Forbidden`] where the
    /// key does not permit it; [`Error::Unauthorized`] where it was revoked or expired since it was admitted; else what is
    /// wrong with the parameters, and the errors of the governor.
    pub fn call(self, method: &str, params: Value) -> Result<Value, Error> {
        let Some(entry) = calls::find(method) else {
            return Err(Error::input("method", "there is no call of that name"));
        };
        self.may_call(entry.spec)?;
        let Value::Object(params) = params else { return Err(Error::input("params", "expected an object")) };
        let made = self.perform((entry.read)(Params::of(params))?)?;
        serde_json::from_slice(&made.answer)
            .map_err(|error| Error::Internal { message: format!("an answer is no JSON: {error}") })
    }

    /// Does what is asked, where the key permits it. A body may take its time to come, and a wait for people a while: a
    /// key that was accepted before may not be so now.
    pub(crate) fn perform(&self, job: Box<dyn Job>) -> Result<Made, Error> {
        accepted(&self.gateway, &self.entry)?;
        job.run_for(self)
    }

    pub(crate) fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// Whether the key is accepted still, to be asked behind this.
    pub(crate) fn look_again(&self) -> impl Fn() -> Result<(), Error> + Send + Sync + use<> {
        let (gateway, entry) = (self.gateway.clone(), Arc::clone(&self.entry));
        move || accepted(&gateway, &entry)
    }

    /// Makes several calls, one after the other, each as if it had been made alone: what the key does not permit is refused,
    /// and from the second on each takes room of its own from the plan. Ends behind the first that `is_last` holds of.
    pub(crate) fn run_each<C: Call>(
        &self,
        each: Vec<Result<C, Error>>,
        is_last: impl Fn(&Result<C::Answer, Error>) -> bool,
    ) -> Vec<Result<C::Answer, Error>> {
        let mut done = Vec::with_capacity(each.len());
        for (place, call) in each.into_iter().enumerate() {
            let room = if place == 0 { Ok(()) } else { self.entry.limit().take().map(drop).map_err(|(full, _)| full) };
            let answer = room.and(call).and_then(|call| {
                accepted(&self.gateway, &self.entry)?;
                call.run_for(self)
            });
            let is_last = is_last(&answer);
            done.push(answer);
            if is_last {
                break;
            }
        }
        done
    }

    /// Makes sure that the call is one that the key may make at all, before what it is about is read.
    pub(crate) fn may_call(&self, spec: &Spec) -> Result<(), Error> {
        if spec.is_for_agents() { Ok(()) } else { self.admin() }
    }

    /// Makes sure that the key permits what concerns this.
    pub(crate) fn permit(&self, subject: &Subject<'_>) -> Result<(), Error> {
        if matches!(subject, Subject::Everything) {
            return self.admin();
        }
        if !self.entry.is_limited_to_agents() {
            return Ok(());
        }
        let governor = self.gateway.governor();
        let is_permitted = match *subject {
            Subject::Everything => false,
            Subject::Agent(agent_id) => self.entry.is_for(agent_id),
            Subject::Record(id) => self.entry.is_for(governor.log().record(&calls::proof_id(id)?)?.entity_id.as_str()),
            Subject::Escalation(id) => self.entry.is_for(governor.escalations().get(id)?.agent_id.as_str()),
        };
        if is_permitted {
            return Ok(());
        }
        Err(Error::Forbidden { message: "this API key is limited to other agents".to_owned() })
    }

    /// Decides on an intent: one that its caller built, where the key may.
    pub(crate) fn enforce(&self, intent: &Intent) -> Result<Enforcement, Error> {
        let governor = self.gateway.governor();
        if self.entry.takes_built_intents() {
            governor.enforce(intent)
        } else {
            Extension::of(governor).enforce_parsed(intent)
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
        self.desk().create(&self.gateway.governor, draft)
    }

    /// Makes a key for administrators, named so, where none is accepted; for the first start.
    ///
    /// # Errors
    ///
    /// Those of [`Keys::create`].
    pub fn ensure_admin(&self, name: &str) -> Result<Option<NewKey>, Error> {
        let draft = KeyDraft::new(Scope::Admin, Plan::Pro).name(name);
        self.desk().ensure_admin(&self.gateway.governor, draft)
    }

    /// Every key, the oldest first; neither texts nor digests.
    pub fn list(&self) -> Vec<KeyInfo> {
        self.desk().list(Extension::of(&self.gateway.governor).clock().now())
    }

    /// Refuses a key from now on, in every thread. One that is revoked stays so.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for an unknown id. When it cannot be recorded, [`Error::StorageUnavailable`] or
    /// [`Error::ChainBroken`]: then it is refused until the store is opened again.
    pub fn revoke(&self, id: KeyId) -> Result<KeyInfo, Error> {
        self.desk().revoke(&self.gateway.governor, id)
    }

    fn desk(&self) -> &keys::Keys {
        &self.gateway.desk.keys
    }
}

const _: fn() = || {
    fn shared_by_threads<T: Send + Sync + Clone>() {}
    shared_by_threads::<Gateway>();
};
