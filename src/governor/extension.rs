//! Access points for crates that build on a governor, such as a server that checks API keys or a service that delivers
//! events.
//!
//! These crates store their states in the log under prefixes of their own, and run beside the governor as a
//! [`Follower`]. Programs that only govern agents do not need this module.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::governor::commands::{AgentCommand, TOOL};
use crate::governor::intake::risk::RiskSource;
use crate::governor::state_kinds::{FORGOTTEN, is_extensions};
use crate::governor::{Governor, Hold as _, Inner, Subscription, conflict};

pub use crate::document::did_you_mean;
pub use crate::governor::alerting::cursor::Reader;
pub use crate::governor::roster::kill_switch::with_context;
pub use crate::governor::roster::permit::Permit;
pub use crate::governor::rules::shared_limits::{SharedLimits, SharedUse, Taken};
pub use crate::governor::rules::standing::Standing;
pub use crate::governor::state_kinds::{API_KEY, CONVERSATION, ENDPOINT, ENDPOINT_PLACE, FLEET};
#[cfg(feature = "schema")]
pub use crate::model::schema::{Context, words};
use crate::model::{
    AgentId, Enforcement, Error, EscalationId, Event, EventId, EventType, Input, InputEnforcement, Intent, ProofId,
    Review, Sequence, TaskId,
};
pub use crate::model::{
    RESERVED, Share, checked_person, closed_words, excerpt, is_invisible, is_reserved, json_depth, visible,
};
use crate::proof::{Details, Fed, StateDraft, events_of_entry};
use crate::system::{Clock, Entropy};

/// A service that runs as long as the governor is open.
pub trait Follower: Send + Sync {
    /// Stops the service; called once, when the governor is closed.
    fn stop(&self) {}

    /// Records expiries that are due, so that they stay effective; called before the log's time steps back.
    fn expire(&self, _governor: &Governor) {}

    /// Problems of the service, one sentence each, for the governor's status.
    fn problems(&self) -> Vec<String> {
        Vec::new()
    }
}

/// How long a call that stores a state waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Until the state is enqueued.
    Enqueued,
    /// Until it is as durable as the governor's decisions.
    Committed,
    /// Until it is on disk, whatever the governor's durability.
    OnDisk,
}

/// A governor, as seen by crates that build on it.
#[derive(Clone, Copy)]
pub struct Extension<'a> {
    pub(crate) governor: &'a Governor,
}

/// A weak reference to a governor, which does not keep it open.
#[derive(Clone)]
pub struct WeakGovernor(Weak<Inner>);

impl WeakGovernor {
    /// Returns the governor, unless its last owner dropped it.
    pub fn upgrade(&self) -> Option<Governor> {
        self.0.upgrade().map(|inner| Governor { inner })
    }
}

impl<'a> Extension<'a> {
    /// Creates the access points of a governor.
    pub const fn of(governor: &'a Governor) -> Self {
        Self { governor }
    }

    /// Runs a follower until the governor is closed.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] when a follower of this name is running.
    pub fn attach(self, name: &'static str, follower: Arc<dyn Follower>) -> Result<(), Error> {
        let mut followers = self.inner().here()?.extensions.followers.hold();
        if followers.contains_key(name) {
            return conflict(format!("this governor has its {name} already: clone that one"));
        }
        followers.insert(name, follower);
        Ok(())
    }

    /// Ends the place of a follower that has stopped, so that another one of its name can be attached.
    pub fn detach(self, name: &str) {
        if let Ok(inner) = self.inner().here() {
            inner.extensions.followers.hold().remove(name);
        }
    }

    /// Returns a weak reference to the governor.
    pub fn weakly(self) -> WeakGovernor {
        WeakGovernor(Arc::downgrade(&self.governor.inner))
    }

    /// Returns the governor's source of time.
    pub fn clock(self) -> Arc<dyn Clock> {
        Arc::clone(&self.inner().base.clock) as Arc<dyn Clock>
    }

    /// Returns the governor's source of random bits.
    pub fn entropy(self) -> &'a Arc<dyn Entropy> {
        &self.inner().base.entropy
    }

    /// Returns the states whose keys start with one of the prefixes, as pairs of key and value.
    pub fn states(self, prefixes: &[&str]) -> Vec<(String, String)> {
        let states = self.inner().extensions.states.hold();
        let ours = states.iter().filter(|(key, _)| prefixes.iter().any(|prefix| key.starts_with(prefix)));
        ours.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Stores a state in the log; `cause` says why it changed.
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] when it cannot be written; [`Error::ChainBroken`]; [`Error::Internal`] for a key
    /// without one of this module's prefixes.
    pub fn keep(self, key: String, value: String, cause: &str, wait: Wait) -> Result<(), Error> {
        if wait != Wait::Enqueued {
            self.wait_until_verified()?;
        }
        let sequence = self.put(key, Some(value), cause)?;
        match wait {
            Wait::Enqueued => Ok(()),
            Wait::Committed => self.inner().here()?.base.log.settle(sequence),
            Wait::OnDisk => self.inner().base.log.settle_in_any_case(sequence),
        }
    }

    /// Deletes the state of a key.
    ///
    /// # Errors
    ///
    /// The errors of [`Extension::keep`].
    pub fn forget(self, key: &str, cause: &str) -> Result<(), Error> {
        self.put(key.to_owned(), None, cause).map(drop)
    }

    fn put(self, key: String, value: Option<String>, cause: &str) -> Result<Sequence, Error> {
        if !is_extensions(&key) {
            return Err(Error::internal(format!("{key:?} is no key of an extension's state")));
        }
        let mut states = self.inner().extensions.states.hold();
        let draft = StateDraft::new(key.clone(), value.clone().unwrap_or_else(|| FORGOTTEN.to_owned()));
        let sequence = self.inner().base.set_state(draft, cause)?;
        match value {
            Some(value) => states.insert(key, value),
            None => states.remove(&key),
        };
        Ok(sequence)
    }

    /// Returns the secrets stored last, in a file beside the journal.
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] when they cannot be read.
    pub fn secrets(self) -> Result<Option<Vec<u8>>, Error> {
        self.inner().here()?.base.log.kept_secrets()
    }

    /// Stores secrets in a file beside the journal and replaces the previous ones.
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] when they cannot be written.
    pub fn keep_secrets(self, content: &[u8]) -> Result<(), Error> {
        self.inner().here()?.base.log.keep_secrets(content)
    }

    /// Waits until the log is verified. Its content must not be published before.
    ///
    /// # Errors
    ///
    /// [`Error::ChainBroken`] when the log does not verify.
    pub fn wait_until_verified(self) -> Result<(), Error> {
        self.inner().here()?.base.log.wait_verified()
    }

    /// Returns the position of the next log entry.
    pub fn next_entry(self) -> Sequence {
        Sequence::new(self.inner().base.log.feed(None).place())
    }

    /// Subscribes to the events of the entries from `next` on, of the given types (all if empty) and of one agent if
    /// given.
    pub fn events_from(self, next: Sequence, types: &[EventType], agent_id: Option<&AgentId>) -> Subscription {
        self.inner().alerting.subscription(Some(next), types, agent_id.cloned())
    }

    /// Returns an event by its id.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`]; [`Error::StorageUnavailable`] when the log cannot be read.
    pub fn event(self, id: EventId) -> Result<Event, Error> {
        let unknown = || Error::not_found("event", id);
        let mut feed = self.inner().here()?.base.log.feed(Some(id.sequence()));
        if feed.behind() == 0 {
            return Err(unknown());
        }
        let mut details = Details::default();
        match feed.next(Some(Instant::now()), |frame| events_of_entry(frame, &|_| true, &mut details))? {
            Fed::Entry(events) => events.into_iter().find(|event| event.id == id).ok_or_else(unknown),
            Fed::Nothing | Fed::Ended => Err(unknown()),
        }
    }

    /// Acknowledges an event of a cursor that another thread reads.
    ///
    /// # Errors
    ///
    /// The errors of [`Subscription::acknowledge`].
    pub fn acknowledge(self, reader: &Reader, event: EventId) -> Result<(), Error> {
        self.inner().here()?.alerting.acknowledge(reader, event)
    }

    /// Releases a cursor before its subscription is dropped; the subscription returns no more events.
    pub fn free_cursor(self, reader: &Reader) {
        self.inner().alerting.free_cursor(reader);
    }

    /// Decides on an intent like [`Governor::enforce`], but only if it has the id of a recent parse for its agent, and
    /// with at least the parse's risk and capabilities. For callers that may be the agent itself.
    ///
    /// # Errors
    ///
    /// The errors of [`Governor::enforce`]; [`Error::Forbidden`] for an intent that was not parsed, or too long ago.
    pub fn enforce_parsed(self, intent: &Intent) -> Result<Enforcement, Error> {
        self.inner().here()?.decider.enforce(intent, RiskSource::Parse)
    }

    /// Decides on an intent under a task like [`Task::enforce_intent`](crate::task::Task::enforce_intent), with the
    /// restrictions of [`Extension::enforce_parsed`].
    ///
    /// # Errors
    ///
    /// The errors of [`Extension::enforce_parsed`]; [`Error::TaskNotFound`] if the intent's agent has no such task;
    /// [`Error::Conflict`] for a task that is not open.
    pub fn enforce_parsed_under(self, task: TaskId, intent: &Intent) -> Result<Enforcement, Error> {
        self.governor.inner.here()?.tasks.enforce_intent_under(task, intent, RiskSource::Parse)
    }

    /// Decides on an input under a task like [`Task::enforce_input`](crate::task::Task::enforce_input), for callers
    /// that also name the agent: another agent's task is unknown to them.
    ///
    /// # Errors
    ///
    /// The errors of [`Governor::enforce_input`]; [`Error::TaskNotFound`] if this agent has no such task;
    /// [`Error::Conflict`] for a task that is not open.
    pub fn enforce_input_under(
        self,
        task: TaskId,
        agent_id: &str,
        input: Input<'_>,
    ) -> Result<InputEnforcement, Error> {
        self.governor.inner.here()?.tasks.enforce_input_under(task, Some(agent_id), input)
    }

    /// Returns the tool, the arguments and the context of the request to decide on for a command, see
    /// [`Governor::guard_command`].
    ///
    /// # Errors
    ///
    /// The errors of [`Governor::parse`].
    pub fn command_request(
        self,
        agent_id: &str,
        command: &AgentCommand,
    ) -> Result<(String, Value, Map<String, Value>), Error> {
        let context = self.governor.command_context(agent_id, command)?;
        Ok((TOOL.to_owned(), command.arguments(), context))
    }

    /// Returns the words with which a command starts that was decided on, so that it does no more than that.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] for a record of another command or folder, one that does not grant the whole command, and one
    /// that confines it if the governor has no confiner or the profile cannot be kept; the errors of
    /// [`Log::evidence`](crate::handle::Log::evidence).
    pub fn command_start(self, proof_id: &ProofId, command: &AgentCommand) -> Result<Vec<String>, Error> {
        self.governor.command_of(proof_id, command)
    }

    /// Checks that an escalation would accept a review now: it is pending, and the reviewer may answer it.
    ///
    /// # Errors
    ///
    /// The errors of [`Escalations::approve`](crate::handle::Escalations::approve), except those of recording it.
    pub fn check_review(self, id: EscalationId, review: Review) -> Result<(), Error> {
        self.governor.escalations().check(id, review)
    }

    /// Returns the conditions that a decision made from now on rests on.
    pub fn standing(self) -> Standing {
        self.inner().rules.standing()
    }

    /// Returns the change since `then`, if any, that invalidates what these records granted: an ended permit, loaded policies, a
    /// revoked pre-approval, or for one of their agents a kill switch, a suspension, an adjusted score or a changed profile.
    pub fn change_since(self, then: &Standing, granted: &[ProofId]) -> Option<&'static str> {
        self.inner().rules.overtaken(then, granted)
    }

    /// Raises the alert for a refused API key; `name` says where it came from.
    pub fn record_refused_key(self, name: &str) {
        self.governor.inner.rules.record_refused_key(name);
    }

    /// Returns whether decisions of every risk level are returned before they are on disk.
    pub fn answers_at_once(self) -> bool {
        self.inner().base.log.takes_at_once()
    }

    pub(super) fn inner(self) -> &'a Inner {
        &self.governor.inner
    }
}

/// States of extensions, and the running followers.
#[derive(Default)]
pub(crate) struct Extensions {
    /// The last state of each key. Held while one is enqueued, so that the states are those in the journal.
    states: Mutex<BTreeMap<String, String>>,
    followers: Mutex<BTreeMap<&'static str, Arc<dyn Follower>>>,
}

/// The fields of an endpoint's state that the library reads.
#[derive(Deserialize)]
struct EndpointState {
    #[serde(default)]
    removed: bool,
}

/// The fields of an endpoint's position that the library reads.
#[derive(Deserialize)]
struct Place {
    next: u64,
    off: Option<serde::de::IgnoredAny>,
}

impl Extensions {
    pub(crate) fn restored(states: BTreeMap<String, String>) -> Self {
        Self { states: Mutex::new(states), followers: Mutex::default() }
    }

    /// The first entry that an endpoint has not received yet; archives end before it.
    pub(crate) fn wanted_from(&self) -> u64 {
        let states = self.states.hold();
        let places = states.iter().filter(|(key, _)| key.starts_with(ENDPOINT_PLACE) && is_live(key, &states));
        let wanted = places.filter_map(|(_, value)| serde_json::from_str::<Place>(value).ok());
        wanted.filter(|place| place.off.is_none()).map(|place| place.next).min().unwrap_or(u64::MAX)
    }

    /// Passes on the live states of a kind, before an archive; none changes meanwhile.
    pub(crate) fn rerecord(
        &self,
        prefix: &str,
        mut record: impl FnMut(StateDraft) -> Result<Sequence, Error>,
    ) -> Result<(), Error> {
        let states = self.states.hold();
        let mut live = states.iter().filter(|(key, _)| key.starts_with(prefix) && is_live(key, &states));
        live.try_for_each(|(key, value)| record(StateDraft::new(key.clone(), value.clone())).map(drop))
    }

    /// The running followers; no lock is held while they work.
    pub(crate) fn running(&self) -> Vec<Arc<dyn Follower>> {
        self.followers.hold().values().cloned().collect()
    }
}

/// Returns whether a state belongs to an existing endpoint. A crash between recording an endpoint's position and the
/// endpoint leaves a position without one.
fn is_live(key: &str, states: &BTreeMap<String, String>) -> bool {
    let Some(rest) = key.strip_prefix(ENDPOINT_PLACE).or_else(|| key.strip_prefix(ENDPOINT)) else { return true };
    let id = rest.split('/').next().unwrap_or(rest);
    let endpoint = states.get(&format!("{ENDPOINT}{id}"));
    // An unreadable endpoint does not count as removed.
    endpoint.is_some_and(|value| !serde_json::from_str::<EndpointState>(value).is_ok_and(|state| state.removed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::governor::state_kinds::Restored;

    fn restored(states: &[(&str, &str)]) -> Extensions {
        let states = states.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec()));
        Extensions::restored(Restored::of(&states.collect::<Vec<_>>()).unwrap().extensions)
    }

    /// The keys that are enqueued again before an archive.
    fn again(extensions: &Extensions) -> Vec<String> {
        let mut again = Vec::new();
        let record = |state: StateDraft| {
            again.push(state.key);
            Ok(Sequence::FIRST)
        };
        extensions.rerecord("", record).unwrap();
        again
    }

    #[test]
    fn undelivered_events_are_wanted_and_unsubscribed_ones_are_not() {
        let extensions = restored(&[
            ("webhook/whk_1", r#"{"url":"https://a.example"}"#),
            ("webhook/whk_2", r#"{"url":"https://b.example"}"#),
            ("webhook/whk_3", r#"{"url":"https://c.example"}"#),
            ("webhook-cursor/whk_1", r#"{"next":40,"ordinal":0}"#),
            ("webhook-cursor/whk_2", r#"{"next":30,"ordinal":2}"#),
            ("webhook-cursor/whk_3", r#"{"next":10,"ordinal":0,"off":"410"}"#),
            ("webhook-cursor/whk_3/parked", "[]"),
        ]);
        assert_eq!(extensions.wanted_from(), 30);
        assert_eq!(restored(&[]).wanted_from(), u64::MAX);
        assert_eq!(again(&extensions).len(), 7);
    }

    #[test]
    fn a_place_that_a_crash_left_without_its_endpoint_is_nobodys() {
        let extensions = restored(&[
            // Only its position is recorded,
            ("webhook-cursor/whk_1", r#"{"next":10,"ordinal":0}"#),
            // it is removed,
            ("webhook/whk_2", r#"{"removed":true}"#),
            ("webhook-cursor/whk_2", r#"{"next":20,"ordinal":0}"#),
            ("webhook-cursor/whk_2/parked", "[]"),
            // or it exists.
            ("webhook/whk_3", r#"{"url":"https://a.example"}"#),
            ("webhook-cursor/whk_3", r#"{"next":30,"ordinal":0}"#),
        ]);
        assert_eq!(extensions.wanted_from(), 30);
        assert_eq!(again(&extensions), ["webhook-cursor/whk_3", "webhook/whk_3"]);
    }
}
