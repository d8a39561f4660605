//! The calls on events, and the threads that tell them: one a subscription, for
//! as long as the lines last.

use rulekeep::extension::Extension;
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Scope;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::params::{Faults, Params};
use super::rpc::{Fault, Notification};
use rulekeep::Governor;
use rulekeep::event::{EventFilter, Subscription};
use rulekeep::event::{EventId, EventType};
use rulekeep::extension::Reader;
use rulekeep::intent::InvalidValue;
use rulekeep::{Error, Event};

/// The subscriptions of one session.
pub(super) struct Subscriptions {
    last: u64,
    live: HashMap<String, Live>,
    /// Made by a call whose answer is not written yet.
    fresh: Vec<Told>,
    /// The input has ended, and all that will be told is on disk.
    ended: Arc<AtomicBool>,
}

/// A subscription as its session knows it.
struct Live {
    /// Whoever reads the cursor that the store keeps for it.
    reader: Option<Reader>,
    shared: Arc<Shared>,
}

/// What a session and the thread of a subscription share.
#[derive(Default)]
struct Shared {
    is_cancelled: AtomicBool,
    /// The last event that is told.
    last: Mutex<Option<EventId>>,
}

/// A subscription that is to be told.
struct Told {
    id: String,
    subscription: Subscription,
    shared: Arc<Shared>,
}

/// What a notification carries.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EventParams<'a> {
    subscription_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'a Event>,
    /// How many entries of the log were left out by now.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<u64>,
    /// Why nothing more will be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Fault>,
}

/// A call on a session's subscriptions.
pub(super) type Call = fn(&mut Subscriptions, &Governor, &Params) -> Result<Value, Error>;

/// Every call by its name.
pub(super) const CALLS: &[(&str, Call)] = &[
    ("event/subscribe", Subscriptions::subscribe),
    ("event/unsubscribe", Subscriptions::unsubscribe),
    ("event/acknowledge", Subscriptions::acknowledge),
    ("event/forget", forget),
];

/// The call of that name.
pub(super) fn find(name: &str) -> Option<Call> {
    CALLS.iter().find(|(known, _)| *known == name).map(|(_, call)| *call)
}

impl Subscriptions {
    pub(super) fn new() -> Self {
        Self { last: 0, live: HashMap::new(), fresh: Vec::new(), ended: Arc::default() }
    }

    fn subscribe(&mut self, governor: &Governor, params: &Params) -> Result<Value, Error> {
        if self.live.len() >= MOST_SUBSCRIPTIONS {
            let message =
                format!("there are {MOST_SUBSCRIPTIONS} subscriptions already; end one with event/unsubscribe");
            return Err(Error::Conflict { message });
        }
        let mut filter = EventFilter::all();
        for word in params.texts("types")? {
            let event_type: EventType =
                word.parse().map_err(|error: InvalidValue| Error::input("types", error.to_string()))?;
            filter = filter.of_type(event_type);
        }
        if let Some(agent_id) = params.optional_text("agentId", Faults::Input)? {
            filter = filter.agent(agent_id);
        }
        if let Some(event) = params.optional_word("after", Faults::Query)? {
            filter = filter.after(event);
        }
        if let Some(entries) = params.optional_whole("latest", Faults::Input)? {
            filter = filter.latest(entries);
        }
        let cursor = params.optional_text("cursor", Faults::Input)?;
        let subscription = match cursor {
            Some(name) => governor.log().cursor(name, &filter)?,
            None => governor.subscribe(&filter)?,
        };
        self.last += 1;
        let id = format!("sub_{}", self.last);
        let shared = Arc::<Shared>::default();
        let live = Live { reader: subscription.reader().cloned(), shared: Arc::clone(&shared) };
        self.live.insert(id.clone(), live);
        self.fresh.push(Told { id: id.clone(), subscription, shared });
        Ok(json!({ "subscriptionId": id }))
    }

    fn unsubscribe(&mut self, governor: &Governor, params: &Params) -> Result<Value, Error> {
        let id = params.text("subscriptionId", Faults::Input)?;
        let live = self.live.remove(id).ok_or_else(not_ours)?;
        live.shared.is_cancelled.store(true, Ordering::Release);
        // Its thread may take a moment to see that.
        if let Some(reader) = &live.reader {
            Extension::of(governor).free_cursor(reader);
        }
        Ok(json!({ "subscriptionId": id }))
    }

    /// Notes that an event of a named cursor was dealt with: `{subscriptionId, eventId}`.
    fn acknowledge(&mut self, governor: &Governor, params: &Params) -> Result<Value, Error> {
        let id = params.text("subscriptionId", Faults::Input)?;
        let event: EventId = params.word("eventId", Faults::Query)?;
        let live = self.live.get(id).ok_or_else(not_ours)?;
        let Some(reader) = &live.reader else {
            return Err(Error::Conflict { message: format!("{id} has no cursor: subscribe with one") });
        };
        let last = *live.shared.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| last.place() < event.place()) {
            return Err(Error::query("eventId", format!("{event} was not told by {id}")));
        }
        Extension::of(governor).acknowledge(reader, event)?;
        Ok(json!({ "subscriptionId": id, "eventId": event }))
    }

    /// Begins to tell what was subscribed to since it was last called. Events stand behind
    /// the answer to the call that asked for them.
    pub(super) fn start<'scope, W: Write + Send>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        output: &'scope Mutex<W>,
    ) {
        for told in self.fresh.drain(..) {
            let ended = Arc::clone(&self.ended);
            // Whoever read the events has gone when they cannot be written; the session finds out for itself.
            scope.spawn(move || told.tell(output, &ended));
        }
    }

    /// Lets every subscription tell what is on disk by now, and then end.
    pub(super) fn end(&self) {
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
            // Many events in a row go out in one.
            let mut lines = Vec::new();
            while let Ok(Some(event)) = &next {
                // Before anybody can have read it.
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

    /// Writes lines, unless it was cancelled: then none stands behind the answer that says so.
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
        let (event, error) = match told {
            Ok(event) => (Some(event), None),
            Err(error) => (None, Some(error.into())),
        };
        let skipped = Some(self.subscription.skipped()).filter(|skipped| *skipped > 0);
        let params = EventParams { subscription_id: &self.id, event, skipped, error };
        serde_json::to_writer(&mut *lines, &Notification::new("event", params))?;
        lines.push(b'\n');
        Ok(())
    }
}

/// Lets a cursor's name begin anew: `{cursor}`.
fn forget(_: &mut Subscriptions, governor: &Governor, params: &Params) -> Result<Value, Error> {
    let cursor = params.text("cursor", Faults::Input)?;
    governor.log().forget_cursor(cursor)?;
    Ok(json!({ "cursor": cursor }))
}

fn not_ours() -> Error {
    Error::input("subscriptionId", "expected a subscription of this session")
}

/// Each has a thread.
const MOST_SUBSCRIPTIONS: usize = 64;
/// How often a subscription that has nothing to tell looks whether it should end.
const LOOK_UP: Duration = Duration::from_millis(50);
/// Bytes after which a row of events is written.
const MOST_AT_ONCE: usize = 64 << 10;
