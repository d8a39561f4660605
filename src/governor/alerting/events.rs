//! Event subscriptions.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::governor::alerting::cursor::Reader;
use crate::governor::{Alerting, Governor, checked_agent_id, conflict};
use crate::model::{AgentId, Error, Event, EventId, EventType, Sequence};
use crate::policy::AlertOn;
use crate::proof::{Details, Fed, Feed, events_of_entry};

/// A filter for events; it selects all unless narrowed.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct EventFilter {
    types: Vec<EventType>,
    agent_id: Option<String>,
    pub(crate) after: Option<EventId>,
    most_behind: Option<u64>,
}

impl EventFilter {
    /// Selects every event from now on.
    pub fn all() -> Self {
        Self::default()
    }

    /// Selects events of this type; repeated calls add types.
    pub fn of_type(mut self, event_type: EventType) -> Self {
        self.types.push(event_type);
        self
    }

    /// Selects events about this agent only.
    pub fn agent(mut self, agent_id: impl Into<String>) -> Self {
        self.agent_id = Some(agent_id.into());
        self
    }

    /// Starts after this event instead of now. With the last event that was processed, a program misses nothing between
    /// two runs.
    pub fn after(mut self, event: EventId) -> Self {
        self.after = Some(event);
        self
    }

    /// Prefers recent events over complete delivery: a subscriber that is more than `entries` log entries behind skips
    /// ahead. [`Subscription::skipped`] counts the skipped entries. Without this setting nothing is skipped, however
    /// slow the subscriber is.
    pub fn latest(mut self, entries: u64) -> Self {
        self.most_behind = Some(entries.max(1));
        self
    }
}

/// A subscription to events, read from the log in its order.
///
/// It reads entries that are on disk, so a slow subscriber misses nothing and delays neither decisions nor other
/// subscribers. Memory use is bounded by what it has read ahead.
///
/// ```
/// use rulekeep::event::{EventFilter, EventType};
/// use rulekeep::{Agent, Governor};
///
/// let governor = Governor::builder().open_in_memory()?;
/// governor.agents().register(Agent::new("support-1"))?;
/// let mut decisions = governor.subscribe(&EventFilter::all().of_type(EventType::Decision))?;
///
/// let verdict = governor.enforce_input("support-1", "Summarize the meeting notes")?.enforcement;
/// let event = decisions.wait()?.expect("the governor is open");
/// assert_eq!(event.event_type, EventType::Decision);
/// assert_eq!(event.id.sequence(), verdict.proof_id.sequence());
/// # Ok::<(), rulekeep::Error>(())
/// ```
pub struct Subscription {
    /// A weak reference, so a subscription does not keep the governor open.
    alerting: Weak<Alerting>,
    feed: Feed,
    /// The stored cursor it reads from, if any.
    pub(crate) reader: Option<Reader>,
    /// The last event that was returned.
    told: Option<EventId>,
    /// Whether the broken log has been reported.
    is_broken: bool,
    types: Vec<EventType>,
    agent_id: Option<AgentId>,
    most_behind: Option<u64>,
    skipped: u64,
    /// Events that are read but not returned yet.
    ready: VecDeque<Event>,
    details: Details,
}

impl Governor {
    /// Subscribes to events from now on, or after a given event. An event is delivered once its entry is as durable as
    /// a `Sync` decision, whatever the governor's durability.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidQuery`] when `after` is not an event of this log; [`Error::InvalidInput`] for a malformed agent
    /// id; [`Error::StorageUnavailable`] when the log cannot be read.
    pub fn subscribe(&self, filter: &EventFilter) -> Result<Subscription, Error> {
        self.inner.here()?.alerting.subscribe(filter)
    }
}

impl Alerting {
    pub(crate) fn subscribe(self: &Arc<Self>, filter: &EventFilter) -> Result<Subscription, Error> {
        let mut subscription = self.subscribe_from(filter.after.map(|event| event.sequence()), filter)?;
        if let Some(after) = filter.after {
            subscription.pass(after)?;
        }
        Ok(subscription)
    }

    /// Subscribes to the events of the entries from `from` on.
    pub(crate) fn subscribe_from(
        self: &Arc<Self>,
        from: Option<Sequence>,
        filter: &EventFilter,
    ) -> Result<Subscription, Error> {
        let agent_id = filter.agent_id.as_deref().map(checked_agent_id).transpose()?;
        let mut subscription = self.subscription(from, &filter.types, agent_id);
        subscription.most_behind = filter.most_behind;
        Ok(subscription)
    }

    /// Subscribes to the events of the entries from `from` on, filtered by type and agent only.
    pub(crate) fn subscription(
        self: &Arc<Self>,
        from: Option<Sequence>,
        types: &[EventType],
        agent_id: Option<AgentId>,
    ) -> Subscription {
        Subscription {
            alerting: Arc::downgrade(self),
            feed: self.base.log.feed(from),
            reader: None,
            told: None,
            is_broken: false,
            types: types.to_vec(),
            agent_id,
            most_behind: None,
            skipped: 0,
            ready: VecDeque::new(),
            details: Details::default(),
        }
    }
}

impl Subscription {
    /// The position of the first entry whose events were not all returned.
    pub fn place(&self) -> u64 {
        self.ready.front().map_or_else(|| self.feed.place(), |event| event.id.sequence().get())
    }

    /// Waits for the next event. Returns `None` when no more events can come, because the governor is closed or can no
    /// longer write.
    ///
    /// # Errors
    ///
    /// [`Error::ChainBroken`] when the log does not verify, after an [`EventType::Alert`] that reports it, or
    /// [`Error::StorageUnavailable`] when it cannot be read. No events follow.
    pub fn wait(&mut self) -> Result<Option<Event>, Error> {
        self.next_until(None)
    }

    /// Like [`Subscription::wait`], but waits at most for `time` and then returns `None`.
    ///
    /// # Errors
    ///
    /// The errors of [`Subscription::wait`].
    pub fn wait_for(&mut self, time: Duration) -> Result<Option<Event>, Error> {
        self.next_until(Instant::now().checked_add(time))
    }

    /// Returns the next event, if there is one, without waiting.
    ///
    /// # Errors
    ///
    /// The errors of [`Subscription::wait`].
    pub fn poll(&mut self) -> Result<Option<Event>, Error> {
        self.wait_for(Duration::ZERO)
    }

    /// Number of log entries skipped so far, because the subscription was further behind than [`EventFilter::latest`]
    /// allows.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Number of log entries that are on disk but not read yet.
    pub fn behind(&self) -> u64 {
        self.feed.behind()
    }

    /// Records that this event and all before it are processed, so that a [`Log::cursor`](crate::handle::Log::cursor)
    /// of the same name continues after it, also in another run. An event before the last acknowledged one changes
    /// nothing.
    ///
    /// The position is written with the first acknowledgment in 250 ms, with every 256th, and when the subscription is
    /// dropped or the governor closed.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] for a subscription without a cursor; [`Error::InvalidQuery`] for an event that was not
    /// returned yet; [`Error::StorageUnavailable`] or [`Error::ChainBroken`] when it cannot be recorded.
    pub fn acknowledge(&self, event: &EventId) -> Result<(), Error> {
        let Some(reader) = &self.reader else {
            return conflict("only events of a named cursor can be acknowledged".to_owned());
        };
        if self.told.is_none_or(|told| told.place() < event.place()) {
            return Err(Error::query("event", format!("{event} was not delivered by this subscription")));
        }
        let closed = || Error::storage("it is closed; open it again");
        self.alerting.upgrade().ok_or_else(closed)?.acknowledge(reader, *event)
    }

    /// The reader of its cursor, if it has one.
    pub fn reader(&self) -> Option<&Reader> {
        self.reader.as_ref()
    }

    /// The position of the entry that is read next.
    pub(crate) fn next_entry(&self) -> Sequence {
        Sequence::new(self.feed.place())
    }

    fn next_until(&mut self, deadline: Option<Instant>) -> Result<Option<Event>, Error> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.told = Some(event.id);
                return Ok(Some(event));
            }
            if let Some(most) = self.most_behind {
                self.skipped += self.feed.skip_to_last(most);
            }
            let (types, details) = (&self.types, &mut self.details);
            let is_wanted = |event_type| is_wanted(types, event_type);
            match self.feed.next(deadline, |frame| events_of_entry(frame, &is_wanted, details)) {
                Ok(Fed::Entry(events)) => {
                    let agent_id = self.agent_id.as_ref();
                    let wanted =
                        events.into_iter().filter(|event| agent_id.is_none_or(|agent| Some(agent) == event.agent_id()));
                    self.ready.extend(wanted);
                }
                Ok(Fed::Nothing) => return Ok(None),
                Ok(Fed::Ended) => {
                    self.free();
                    return Ok(None);
                }
                Err(error) => self.broken(error)?,
            }
        }
    }

    /// Releases its cursor, if any, for other readers.
    fn free(&self) {
        if let (Some(reader), Some(alerting)) = (&self.reader, self.alerting.upgrade())
            && alerting.base.log.check_process().is_ok()
        {
            alerting.free_cursor(reader);
        }
    }

    /// Turns the error of a broken log into an alert, once; returns any other error.
    fn broken(&mut self, error: Error) -> Result<(), Error> {
        let alert = if self.is_broken || !matches!(error, Error::ChainBroken { .. }) {
            None
        } else {
            self.is_broken = true;
            // The alert is about no agent.
            let is_told = is_wanted(&self.types, EventType::Alert) && self.agent_id.is_none();
            if is_told { self.chain_alert() } else { None }
        };
        if let Some(alert) = alert {
            self.ready.push_back(alert);
            return Ok(());
        }
        if self.is_broken {
            // No event after the break is returned.
            self.free();
        }
        Err(error)
    }

    fn chain_alert(&self) -> Option<Event> {
        let breakage = self.feed.breakage()?;
        let policies = self.alerting.upgrade().map(|alerting| alerting.rules.policies.load_full());
        let rule = policies.as_ref().and_then(|set| set.alerts().iter().find(|rule| rule.on == AlertOn::Chain));
        Some(self.feed.chain_alert(&breakage, rule.map(|rule| (Arc::clone(&rule.id), rule.severity))))
    }

    /// Skips up to and including an event of the log.
    fn pass(&mut self, after: EventId) -> Result<(), Error> {
        let unknown = || Error::query("after", format!("this log has no event {after}"));
        let is_there = self.feed.behind() > 0;
        let details = &mut self.details;
        let read = match self.feed.next(Some(Instant::now()), |frame| events_of_entry(frame, &|_| true, details)) {
            // The given event may be the alert that the log breaks here.
            Err(Error::ChainBroken { .. }) if self.chain_alert().is_some_and(|alert| alert.id == after) => {
                self.is_broken = true;
                return Ok(());
            }
            read if is_there => read?,
            _ => return Err(unknown()),
        };
        let Fed::Entry(events) = read else { return Err(unknown()) };
        let at = events.iter().position(|event| event.id == after).ok_or_else(unknown)?;
        let (types, agent_id) = (&self.types, self.agent_id.as_ref());
        let rest = events.into_iter().skip(at + 1).filter(|event| {
            is_wanted(types, event.event_type) && agent_id.is_none_or(|agent| Some(agent) == event.agent_id())
        });
        self.ready.extend(rest);
        Ok(())
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.free();
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription")
            .field("next", &self.feed.place())
            .field("types", &self.types)
            .finish_non_exhaustive()
    }
}

fn is_wanted(types: &[EventType], event_type: EventType) -> bool {
    types.is_empty() || types.contains(&event_type)
}
