//! What the log keeps of endpoints of webhooks, and the doors for those that
//! tell them. What the states mean is the edge's to know; here they are kept
//! whole, also by a program that was built without webhooks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Deserialize;

use crate::model::{Error, Sequence};
use crate::proof::StateDraft;

#[cfg(feature = "webhooks")]
pub(crate) use doors::{Service, Settings, Weakly};

/// What the keys of endpoints' states start with.
pub(crate) const ENDPOINT: &str = "webhook/";
/// What the keys of their places in the journal start with.
pub(crate) const CURSOR: &str = "webhook-cursor/";

/// The webhooks of a governor.
#[derive(Default)]
pub(crate) struct Webhooks {
    /// The last state of each key. Held while one is put in order, so that what is kept is what the journal says.
    states: Mutex<BTreeMap<String, String>>,
    #[cfg(feature = "webhooks")]
    service: std::sync::OnceLock<Box<dyn Service>>,
}

/// What of an endpoint is looked at here.
#[derive(Deserialize)]
struct Record {
    #[serde(default)]
    removed: bool,
}

/// What of a place in the journal is looked at here.
#[derive(Deserialize)]
struct Place {
    next: u64,
    off: Option<serde::de::IgnoredAny>,
}

impl Webhooks {
    /// As the log has them.
    pub(super) fn restored(states: &[(String, Vec<u8>)]) -> Self {
        let ours = states.iter().filter(|(key, _)| key.starts_with(ENDPOINT) || key.starts_with(CURSOR));
        let texts = ours.map(|(key, value)| (key.clone(), String::from_utf8_lossy(value).into_owned()));
        Self {
            states: Mutex::new(texts.collect()),
            #[cfg(feature = "webhooks")]
            service: std::sync::OnceLock::new(),
        }
    }

    /// The first entry that an endpoint has still to be told of, as the journal says.
    pub(super) fn wanted_from(&self) -> u64 {
        let states = self.states();
        let places = states.iter().filter(|(key, _)| key.starts_with(CURSOR) && is_of_one_that_is(key, &states));
        let wanted = places.filter_map(|(_, value)| serde_json::from_str::<Place>(value).ok());
        wanted.filter(|place| place.off.is_none()).map(|place| place.next).min().unwrap_or(u64::MAX)
    }

    /// Puts every state of an endpoint in order again, and the keys of all to `keys`: what one left that is none may leave.
    pub(super) fn rerecord(
        &self,
        mut order: impl FnMut(StateDraft) -> Result<Sequence, Error>,
        keys: &mut BTreeSet<String>,
    ) -> Result<(), Error> {
        let states = self.states();
        for (key, value) in &*states {
            if is_of_one_that_is(key, &states) {
                order(StateDraft::new(key.clone(), value.clone()))?;
            }
            keys.insert(key.clone());
        }
        Ok(())
    }

    #[cfg_attr(not(feature = "webhooks"), expect(clippy::unused_self, reason = "without webhooks nothing runs"))]
    pub(super) fn stop(&self) {
        #[cfg(feature = "webhooks")]
        if let Some(service) = self.service.get() {
            service.stop();
        }
    }

    /// What does not run that should.
    #[cfg_attr(not(feature = "webhooks"), expect(clippy::unused_self, reason = "without webhooks nothing runs"))]
    pub(super) fn troubles(&self) -> Vec<String> {
        #[cfg(feature = "webhooks")]
        if let Some(service) = self.service.get() {
            return service.troubles();
        }
        Vec::new()
    }

    fn states(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a state is of an endpoint that there is. A crash between the place of one and the endpoint itself, as it comes
/// or as it goes, leaves a place that is nobody's.
fn is_of_one_that_is(key: &str, states: &BTreeMap<String, String>) -> bool {
    let rest = key.strip_prefix(CURSOR).or_else(|| key.strip_prefix(ENDPOINT)).unwrap_or(key);
    let id = rest.split('/').next().unwrap_or(rest);
    let record = states.get(&format!("{ENDPOINT}{id}"));
    // One that cannot be read is not taken for gone.
    record.is_some_and(|value| !serde_json::from_str::<Record>(value).is_ok_and(|record| record.removed))
}

#[cfg(feature = "webhooks")]
mod doors {
    use std::any::Any;
    use std::sync::{Arc, Weak};
    use std::time::Duration;

    use super::{StateDraft, Webhooks};
    use crate::governor::{Governor, GovernorBuilder, Inner, Subscription};
    use crate::model::{AgentId, Error, Event, EventId, EventType, Sequence};
    use crate::proof::{Details, Fed, events_of_entry};
    use crate::system::{Clock, Entropy};

    /// What runs as long as the governor is open.
    pub(crate) trait Service: Any + Send + Sync {
        /// Ends what runs; what is sent at that moment is cut off.
        fn stop(&self);

        /// What does not run that should.
        fn troubles(&self) -> Vec<String>;
    }

    /// How webhooks are delivered.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct Settings {
        /// The steps for new endpoints; those of the documents without.
        pub(crate) schedule: Option<Vec<Duration>>,
        /// Loopback and private addresses may be endpoints.
        pub(crate) private: bool,
    }

    /// A governor that is not kept open by it.
    #[derive(Clone)]
    pub(crate) struct Weakly(Weak<Inner>);

    impl Weakly {
        pub(crate) fn upgrade(&self) -> Option<Governor> {
            self.0.upgrade().map(|inner| Governor { inner })
        }
    }

    impl GovernorBuilder {
        /// How long is waited before each attempt to deliver an event to an endpoint that is added from now on; the first
        /// step counts from when the event is there. After the last attempt the event is parked. Default: at once, then
        /// after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h.
        pub fn webhook_schedule(mut self, steps: Vec<Duration>) -> Self {
            self.webhooks.schedule = Some(steps);
            self
        }

        /// Lets endpoints be at loopback and private addresses, at loopback without TLS too. For tests, and for receivers in
        /// a network of your own.
        pub fn allow_private_webhooks(mut self) -> Self {
            self.webhooks.private = true;
            self
        }
    }

    impl Governor {
        /// Starts what delivers. The one place where this floor calls the one above it: without, whoever opens a store
        /// would have to remember that it has endpoints.
        pub(in crate::governor) fn start_webhooks(&self, settings: Settings) -> Result<(), Error> {
            let service = crate::edge::webhook::start(self, settings)?;
            // It is started once, by whoever opens.
            let _ = self.inner.webhooks.service.set(service);
            Ok(())
        }

        pub(crate) fn webhook_service(&self) -> Result<&dyn Any, Error> {
            let service = self.inner.webhooks.service.get().map(|service| &**service as &dyn Any);
            service.ok_or_else(|| Error::Internal { message: "webhooks were not started".to_owned() })
        }

        pub(crate) fn weakly(&self) -> Weakly {
            Weakly(Arc::downgrade(&self.inner))
        }

        pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
            &self.inner.clock
        }

        pub(crate) fn entropy(&self) -> &Arc<dyn Entropy> {
            &self.inner.entropy
        }

        /// The states of endpoints and their places, by their keys.
        pub(crate) fn webhook_states(&self) -> Vec<(String, String)> {
            self.inner.webhooks.states().iter().map(|(key, value)| (key.clone(), value.clone())).collect()
        }

        /// Keeps a state of an endpoint, and waits until it is as durable as the log promises.
        pub(crate) fn keep_webhook(&self, key: String, value: String, cause: &str) -> Result<(), Error> {
            self.inner.log.wait_verified()?;
            let sequence = self.note_webhook(key, value, cause)?;
            self.inner.log.settle(sequence)
        }

        /// Keeps where an endpoint stands; nobody waits for it.
        pub(crate) fn note_webhook(&self, key: String, value: String, cause: &str) -> Result<Sequence, Error> {
            let Webhooks { states, .. } = &self.inner.webhooks;
            let mut states = states.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let draft = StateDraft::new(key.clone(), value.clone());
            let sequence = self.inner.log.set_state(self.inner.clock.now(), draft, cause.to_owned())?;
            states.insert(key, value);
            Ok(sequence)
        }

        /// Waits until the log is verified; what it says before is not told to the world.
        pub(crate) fn wait_until_verified(&self) -> Result<(), Error> {
            self.inner.log.wait_verified()
        }

        /// The place of the entry that is put in order next.
        pub(crate) fn next_entry(&self) -> Sequence {
            Sequence::new(self.inner.log.feed(None).place())
        }

        /// The events of the entries from `next` on that are wanted.
        pub(crate) fn events_from(
            &self,
            next: Sequence,
            types: &[EventType],
            agent_id: Option<&AgentId>,
        ) -> Subscription {
            Subscription::from_entry(self, next, types, agent_id)
        }

        /// The event of that id.
        pub(crate) fn event(&self, id: EventId) -> Result<Event, Error> {
            let unknown = || Error::not_found("event", id);
            let mut feed = self.inner.log.feed(Some(id.sequence()));
            if feed.behind() == 0 {
                return Err(unknown());
            }
            let mut details = Details::default();
            let now = std::time::Instant::now();
            match feed.next(Some(now), |frame| events_of_entry(frame, &|_| true, &mut details))? {
                Fed::Entry(events) => events.into_iter().find(|event| event.id == id).ok_or_else(unknown),
                Fed::Nothing | Fed::Ended => Err(unknown()),
            }
        }

        /// The secrets as they were kept last.
        pub(crate) fn kept_secrets(&self) -> Result<Option<Vec<u8>>, Error> {
            self.inner.log.kept_secrets()
        }

        /// Keeps secrets beside the journal.
        pub(crate) fn keep_secrets(&self, content: &[u8]) -> Result<(), Error> {
            self.inner.log.keep_secrets(content)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn restored(states: &[(&str, &str)]) -> Webhooks {
        let states = states.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec()));
        Webhooks::restored(&states.collect::<Vec<_>>())
    }

    #[test]
    fn what_an_endpoint_has_still_to_be_told_is_wanted_and_what_one_is_not_told_is_not() {
        let webhooks = restored(&[
            ("agent/a", "{}"),
            ("webhook/whk_1", r#"{"url":"https://a.example"}"#),
            ("webhook/whk_2", r#"{"url":"https://b.example"}"#),
            ("webhook/whk_3", r#"{"url":"https://c.example"}"#),
            ("webhook-cursor/whk_1", r#"{"next":40,"ordinal":0}"#),
            ("webhook-cursor/whk_2", r#"{"next":30,"ordinal":2}"#),
            ("webhook-cursor/whk_3", r#"{"next":10,"ordinal":0,"off":"410"}"#),
            ("webhook-cursor/whk_3/parked", "[]"),
        ]);
        assert_eq!(webhooks.wanted_from(), 30);
        assert_eq!(restored(&[]).wanted_from(), u64::MAX);
        let (mut keys, mut ordered) = (BTreeSet::new(), 0);
        let order = |_| {
            ordered += 1;
            Ok(Sequence::FIRST)
        };
        webhooks.rerecord(order, &mut keys).unwrap();
        assert_eq!((keys.len(), ordered), (7, 7), "the agent's is not theirs");
    }

    #[test]
    fn a_place_that_a_crash_left_without_its_endpoint_is_nobodys() {
        let webhooks = restored(&[
            // It was being added,
            ("webhook-cursor/whk_1", r#"{"next":10,"ordinal":0}"#),
            // removed,
            ("webhook/whk_2", r#"{"removed":true}"#),
            ("webhook-cursor/whk_2", r#"{"next":20,"ordinal":0}"#),
            ("webhook-cursor/whk_2/parked", "[]"),
            // or is there.
            ("webhook/whk_3", r#"{"url":"https://a.example"}"#),
            ("webhook-cursor/whk_3", r#"{"next":30,"ordinal":0}"#),
        ]);
        assert_eq!(webhooks.wanted_from(), 30);
        let (mut keys, mut ordered) = (BTreeSet::new(), Vec::new());
        let order = |state: StateDraft| {
            ordered.push(state.key);
            Ok(Sequence::FIRST)
        };
        webhooks.rerecord(order, &mut keys).unwrap();
        assert_eq!(ordered, ["webhook-cursor/whk_3", "webhook/whk_3"]);
        assert_eq!(keys.len(), 6, "all of them may leave");
    }
}
