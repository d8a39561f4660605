//! The calls on events, and the threads that deliver them: one for each subscription, as long as the session lasts.

use rulekeep::extension::Extension;
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, Scope};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::call::to_bytes;
use super::params::{Params, given};
#[cfg(test)]
use super::spec::Shape;
use super::spec::Spec;
use crate::rpc::{Fault, Notification};
use rulekeep::event::{EventFilter, EventId, EventType, Subscription};
use rulekeep::extension::Reader;
use rulekeep::{Error, Event, Governor};

/// The subscriptions of one session.
pub(crate) struct Subscriptions {
    last: u64,
    live: HashMap<String, Live>,
    /// Subscriptions made by a call whose response is not written yet.
    fresh: Vec<Told>,
    /// Set when the input has ended and everything to be delivered is on disk.
    ended: Arc<AtomicBool>,
    /// Number of subscriptions of all sessions of the gateway.
    total: Arc<AtomicUsize>,
}

/// A subscription's share of the total, free again when this is dropped.
struct Share(Arc<AtomicUsize>);

/// A subscription as its session sees it.
struct Live {
    /// The reader of its stored cursor.
    reader: Option<Reader>,
    shared: Arc<Shared>,
}

/// The state shared by a session and a subscription's thread.
#[derive(Default)]
struct Shared {
    is_cancelled: AtomicBool,
    /// The last event that was delivered.
    last: Mutex<Option<EventId>>,
}

/// A subscription whose events are delivered.
struct Told {
    id: String,
    subscription: Subscription,
    shared: Arc<Shared>,
    /// Held until the thread ends.
    _share: Share,
}

/// The parameters of a notification.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EventParams<'a> {
    subscription_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'a Event>,
    /// The number of log entries skipped so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<u64>,
    /// The reason the subscription ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Fault>,
}

/// A call on a session's subscriptions, with its parameters as fields.
trait SessionCall: DeserializeOwned + ToSchema {
    const SPEC: Spec;
    type Answer: Serialize + ToSchema;

    fn run(self, subscriptions: &mut Subscriptions, governor: &Governor) -> Result<Self::Answer, Error>;
}

/// A row of the table of session calls.
pub(crate) struct SessionEntry {
    pub(crate) spec: &'static Spec,
    pub(crate) run: fn(Params, &mut Subscriptions, &Governor) -> Result<Vec<u8>, Error>,
    #[cfg(test)]
    pub(crate) request: Shape,
    #[cfg(test)]
    pub(crate) answer: Shape,
}

impl SessionEntry {
    const fn of<C: SessionCall>() -> Self {
        Self {
            spec: &C::SPEC,
            run: |params, subscriptions, governor| {
                to_bytes(&params.typed::<C>(&C::SPEC)?.run(subscriptions, governor)?)
            },
            #[cfg(test)]
            request: Shape::of::<C>(),
            #[cfg(test)]
            answer: Shape::of::<C::Answer>(),
        }
    }
}

/// Every session call.
pub(crate) static CALLS: &[SessionEntry] = &[
    SessionEntry::of::<Subscribe>(),
    SessionEntry::of::<Unsubscribe>(),
    SessionEntry::of::<Acknowledge>(),
    SessionEntry::of::<Forget>(),
];

/// The session call with this name.
pub(crate) fn find(name: &str) -> Option<&'static SessionEntry> {
    CALLS.iter().find(|entry| entry.spec.method == name)
}

/// The events to subscribe to, and the start.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Subscribe {
    types: Option<Vec<EventType>>,
    agent_id: Option<String>,
    after: Option<EventId>,
    latest: Option<u64>,
    /// The name of a stored cursor, which records what has been processed.
    cursor: Option<String>,
}

impl SessionCall for Subscribe {
    const SPEC: Spec = Spec::of_session("event/subscribe", "Subscribes to events, from now on or after a given one")
        .queried(&["after"]);
    type Answer = SubscriptionRef;

    fn run(self, subscriptions: &mut Subscriptions, governor: &Governor) -> Result<SubscriptionRef, Error> {
        if subscriptions.live.len() >= MOST_SUBSCRIPTIONS {
            let message =
                format!("there are {MOST_SUBSCRIPTIONS} subscriptions already; end one with event/unsubscribe");
            return Err(Error::Conflict { message });
        }
        let share = Share::of(&subscriptions.total)?;
        let mut filter = self.types.into_iter().flatten().fold(EventFilter::all(), EventFilter::of_type);
        filter = given(filter, self.agent_id, EventFilter::agent);
        filter = given(filter, self.after, EventFilter::after);
        filter = given(filter, self.latest, EventFilter::latest);
        let subscription = match self.cursor {
            Some(name) => governor.log().cursor(&name, &filter)?,
            None => governor.subscribe(&filter)?,
        };
        Ok(SubscriptionRef { subscription_id: subscriptions.add(subscription, share) })
    }
}

/// A subscription of this session to end.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Unsubscribe {
    subscription_id: String,
}

impl SessionCall for Unsubscribe {
    const SPEC: Spec = Spec::of_session("event/unsubscribe", "Ends a subscription");
    type Answer = SubscriptionRef;

    fn run(self, subscriptions: &mut Subscriptions, governor: &Governor) -> Result<SubscriptionRef, Error> {
        let live = subscriptions.live.remove(&self.subscription_id).ok_or_else(not_ours)?;
        live.shared.is_cancelled.store(true, Ordering::Release);
        // Its thread may take a moment to notice.
        if let Some(reader) = &live.reader {
            Extension::of(governor).free_cursor(reader);
        }
        Ok(SubscriptionRef { subscription_id: self.subscription_id })
    }
}

/// The id of the subscription.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SubscriptionRef {
    subscription_id: String,
}

/// An event of a named cursor that has been processed, with all events before it.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Acknowledge {
    subscription_id: String,
    event_id: EventId,
}

impl SessionCall for Acknowledge {
    const SPEC: Spec =
        Spec::of_session("event/acknowledge", "Acknowledges an event and all events before it").queried(&["eventId"]);
    type Answer = Self;

    fn run(self, subscriptions: &mut Subscriptions, governor: &Governor) -> Result<Self, Error> {
        let Self { subscription_id: id, event_id: event } = &self;
        let live = subscriptions.live.get(id).ok_or_else(not_ours)?;
        let Some(reader) = &live.reader else {
            return Err(Error::Conflict { message: format!("{id} has no cursor: subscribe with one") });
        };
        let last = *live.shared.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| last.place() < event.place()) {
            return Err(Error::query("eventId", format!("{event} was not delivered by {id}")));
        }
        Extension::of(governor).acknowledge(reader, *event)?;
        Ok(self)
    }
}

/// The name of a cursor to reset.
#[derive(Serialize, Deserialize, ToSchema)]
struct Forget {
    cursor: String,
}

impl SessionCall for Forget {
    const SPEC: Spec = Spec::of_session("event/forget", "Forgets a named cursor, so that its name starts anew");
    type Answer = Self;

    fn run(self, _: &mut Subscriptions, governor: &Governor) -> Result<Self, Error> {
        governor.log().forget_cursor(&self.cursor)?;
        Ok(self)
    }
}

impl Subscriptions {
    /// Creates the subscriptions of a session; `total` counts those of all sessions.
    pub(crate) fn new(total: &Arc<AtomicUsize>) -> Self {
        Self { last: 0, live: HashMap::new(), fresh: Vec::new(), ended: Arc::default(), total: Arc::clone(total) }
    }

    /// Adds a subscription to be delivered. Returns its id.
    fn add(&mut self, subscription: Subscription, share: Share) -> String {
        self.last += 1;
        let id = format!("sub_{}", self.last);
        let shared = Arc::<Shared>::default();
        let live = Live { reader: subscription.reader().cloned(), shared: Arc::clone(&shared) };
        self.live.insert(id.clone(), live);
        self.fresh.push(Told { id: id.clone(), subscription, shared, _share: share });
        id
    }

    /// Starts to deliver the subscriptions made since the last call. Events come after the response to the call that
    /// subscribed.
    pub(crate) fn start<'scope, W: Write + Send>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        output: &'scope Mutex<W>,
    ) {
        for told in self.fresh.drain(..) {
            let (id, ended) = (told.id.clone(), Arc::clone(&self.ended));
            // If events cannot be written, the reader is gone; the session notices by itself.
            if Builder::new().spawn_scoped(scope, move || told.tell(output, &ended)).is_err() {
                self.live.remove(&id);
                let error = Error::internal("the system starts no thread for this subscription");
                let mut lines = Vec::new();
                let _ = line(&mut lines, &id, Err(error), None)
                    .and_then(|()| output.lock().unwrap_or_else(PoisonError::into_inner).write_all(&lines));
            }
        }
    }

    /// Lets every subscription deliver what is on disk, and then end.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }
}

impl Told {
    fn tell<W: Write>(mut self, output: &Mutex<W>, ended: &AtomicBool) -> io::Result<()> {
        while !self.is_cancelled() {
            let is_last = ended.load(Ordering::Acquire);
            let mut next = self.subscription.wait_for(if is_last { Duration::ZERO } else { LOOK_UP });
            if is_last && matches!(next, Ok(None)) {
                break;
            }
            // Several events in a row are written at once.
            let mut lines = Vec::new();
            while let Ok(Some(event)) = &next {
                // Recorded before anybody can have read the event.
                *self.shared.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(event.id);
                self.line(&mut lines, Ok(event))?;
                next = if lines.len() < MOST_AT_ONCE { self.subscription.poll() } else { Ok(None) };
            }
            let failed = next.err();
            let is_over = failed.is_some();
            if let Some(error) = failed {
                self.line(&mut lines, Err(error))?;
            }
            if !self.write(output, &lines)? || is_over {
                break;
            }
        }
        Ok(())
    }

    /// Writes lines, unless the subscription is canceled: then none follows the response that confirms it.
    fn write<W: Write>(&self, output: &Mutex<W>, lines: &[u8]) -> io::Result<bool> {
        if lines.is_empty() {
            return Ok(true);
        }
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_cancelled() {
            return Ok(false);
        }
        output.write_all(lines)?;
        output.flush()?;
        Ok(true)
    }

    fn is_cancelled(&self) -> bool {
        self.shared.is_cancelled.load(Ordering::Acquire)
    }

    fn line(&self, lines: &mut Vec<u8>, told: Result<&Event, Error>) -> io::Result<()> {
        line(lines, &self.id, told, Some(self.subscription.skipped()).filter(|skipped| *skipped > 0))
    }
}

impl Share {
    fn of(total: &Arc<AtomicUsize>) -> Result<Self, Error> {
        let more = |count: usize| (count < MOST_IN_TOTAL).then_some(count + 1);
        match total.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(Self(Arc::clone(total))),
            Err(_) => Err(Error::Conflict {
                message: format!(
                    "all connections together have {MOST_IN_TOTAL} subscriptions already; end one of them"
                ),
            }),
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Adds the line of a notification: an event, or the error that ends the subscription.
fn line(lines: &mut Vec<u8>, id: &str, told: Result<&Event, Error>, skipped: Option<u64>) -> io::Result<()> {
    let (event, error) = match told {
        Ok(event) => (Some(event), None),
        Err(error) => (None, Some(error.into())),
    };
    let params = EventParams { subscription_id: id, event, skipped, error };
    serde_json::to_writer(&mut *lines, &Notification::new("event", params))?;
    lines.push(b'\n');
    Ok(())
}

fn not_ours() -> Error {
    Error::input("subscriptionId", "expected a subscription of this session")
}

/// Maximum number of subscriptions of a session, each with its own thread.
const MOST_SUBSCRIPTIONS: usize = 64;
/// Maximum number of subscriptions of all sessions.
const MOST_IN_TOTAL: usize = 256;
/// Interval at which an idle subscription checks whether it should end.
const LOOK_UP: Duration = Duration::from_millis(50);
/// Number of bytes after which a batch of events is written.
const MOST_AT_ONCE: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_sessions_together_have_a_bounded_total() {
        let total = Arc::default();
        let mut shares: Vec<Share> = (0..MOST_IN_TOTAL).map(|_| Share::of(&total).unwrap()).collect();
        assert_eq!(Share::of(&total).err().map(|error| error.code()), Some("CONFLICT"));
        shares.pop();
        assert!(Share::of(&total).is_ok());
    }
}
