//! Hearing of what happens: subscriptions to events.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::{Governor, checked_agent_id};
use crate::model::{AgentId, Error, Event, EventId, EventType};
use crate::proof::{Fed, Feed, events_of_entry};

/// Which events are wanted. All of them, unless something is named.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct EventFilter {
    types: Vec<EventType>,
    agent_id: Option<String>,
    after: Option<EventId>,
    most_behind: Option<u64>,
}

impl EventFilter {
    /// Every event from now on.
    pub fn all() -> Self {
        Self::default()
    }

    /// Only events of this type, and of others that are named so.
    pub fn of_type(mut self, event_type: EventType) -> Self {
        self.types.push(event_type);
        self
    }

    /// Only events about this agent.
    pub fn agent(mut self, agent_id: impl Into<String>) -> Self {
        self.agent_id = Some(agent_id.into());
        self
    }

    /// Not from now on, but from behind this event on: the last one that was dealt with. So
    /// nothing is missed between two runs of a program.
    pub fn after(mut self, event: EventId) -> Self {
        self.after = Some(event);
        self
    }

    /// Rather the latest than all: who falls more than `entries` entries of the log behind
    /// jumps ahead. [`Subscription::skipped`] counts what was left out. Without this
    /// nothing is left out, however slow the subscriber is.
    pub fn latest(mut self, entries: u64) -> Self {
        self.most_behind = Some(entries.max(1));
        self
    }
}

/// A place in the stream of events that moves on.
///
/// It reads what the log has on disk, so that a slow subscriber misses nothing and holds
/// nobody up: neither decisions nor other subscribers wait for it, and it keeps no more in
/// memory than what it has read ahead. Events come in the order of the log.
///
/// ```
/// use rulekeep::{Agent, EventFilter, EventType, Governor};
///
/// let governor = Governor::builder().open_in_memory()?;
/// governor.register_agent(Agent::new("support-1"))?;
/// let mut decisions = governor.subscribe(&EventFilter::all().of_type(EventType::Decision))?;
///
/// let verdict = governor.enforce_input("support-1", "Summarize the meeting notes")?.enforcement;
/// let event = decisions.wait()?.expect("the governor is open");
/// assert_eq!(event.event_type, EventType::Decision);
/// assert_eq!(event.id.sequence(), verdict.proof_id.sequence());
/// # Ok::<(), rulekeep::Error>(())
/// ```
pub struct Subscription {
    feed: Feed,
    types: Vec<EventType>,
    agent_id: Option<AgentId>,
    most_behind: Option<u64>,
    skipped: u64,
    /// Read, and not handed out yet.
    ready: VecDeque<Event>,
}

impl Governor {
    /// Events from now on, or from behind a given one on. An event is told once its entry is as
    /// safe as a `Sync` decision's, whatever the governor's durability.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidQuery`] for an event that this log does not tell;
    /// [`Error::InvalidInput`] for a malformed agent id; [`Error::StorageUnavailable`].
    pub fn subscribe(&self, filter: &EventFilter) -> Result<Subscription, Error> {
        let mut subscription = Subscription {
            feed: self.inner.log.feed(filter.after.map(|event| event.sequence())),
            types: Vec::new(),
            agent_id: None,
            most_behind: None,
            skipped: 0,
            ready: VecDeque::new(),
        };
        if let Some(after) = filter.after {
            subscription.pass(after)?;
        }
        subscription.types.clone_from(&filter.types);
        subscription.agent_id = filter.agent_id.as_deref().map(checked_agent_id).transpose()?;
        subscription.most_behind = filter.most_behind;
        subscription.ready.retain(|event| {
            is_wanted(&filter.types, event.event_type)
                && subscription.agent_id.as_ref().is_none_or(|agent| agent == event.agent_id())
        });
        Ok(subscription)
    }
}

#[cfg(feature = "webhooks")]
impl Subscription {
    /// The events of the entries from `next` on. Only types are looked at of the filter, and the agent.
    pub(super) fn from_entry(
        log: &crate::proof::ProofLog,
        next: crate::model::Sequence,
        types: &[EventType],
        agent_id: Option<&AgentId>,
    ) -> Self {
        Self {
            feed: log.feed(Some(next)),
            types: types.to_vec(),
            agent_id: agent_id.cloned(),
            most_behind: None,
            skipped: 0,
            ready: VecDeque::new(),
        }
    }

    /// The first entry whose events were not handed out, or not all of them.
    pub(crate) fn place(&self) -> u64 {
        self.ready.front().map_or_else(|| self.feed.place(), |event| event.id.sequence().get())
    }
}

impl Subscription {
    /// The next event; waits for it. None once the governor is closed and all was told.
    ///
    /// # Errors
    ///
    /// [`Error::ChainBroken`] or [`Error::StorageUnavailable`] where the log cannot be
    /// read: nothing behind that is told.
    pub fn wait(&mut self) -> Result<Option<Event>, Error> {
        self.next_until(None)
    }

    /// Like [`Subscription::wait`], for at most `time`; none also when nothing came.
    ///
    /// # Errors
    ///
    /// Those of [`Subscription::wait`].
    pub fn wait_for(&mut self, time: Duration) -> Result<Option<Event>, Error> {
        self.next_until(Instant::now().checked_add(time))
    }

    /// The next event, if there is one.
    ///
    /// # Errors
    ///
    /// Those of [`Subscription::wait`].
    pub fn poll(&mut self) -> Result<Option<Event>, Error> {
        self.wait_for(Duration::ZERO)
    }

    /// How many entries of the log were left out since it began, because it fell behind by more
    /// than [`EventFilter::latest`] allows.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// How many entries of the log are on disk and not read by it yet.
    pub fn behind(&self) -> u64 {
        self.feed.behind()
    }

    fn next_until(&mut self, deadline: Option<Instant>) -> Result<Option<Event>, Error> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            if let Some(most) = self.most_behind {
                self.skipped += self.feed.skip_to_last(most);
            }
            let types = &self.types;
            let read = self.feed.next(deadline, |frame| events_of_entry(frame, &|wanted| is_wanted(types, wanted)))?;
            match read {
                Fed::Entry(events) => {
                    let agent_id = self.agent_id.as_ref();
                    let wanted =
                        events.into_iter().filter(|event| agent_id.is_none_or(|agent| agent == event.agent_id()));
                    self.ready.extend(wanted);
                }
                Fed::Nothing | Fed::Ended => return Ok(None),
            }
        }
    }

    /// Goes behind an event that the log told.
    fn pass(&mut self, after: EventId) -> Result<(), Error> {
        let unknown = || Error::query("after", format!("this log tells no event {after}"));
        if self.feed.behind() == 0 {
            return Err(unknown());
        }
        let read = self.feed.next(Some(Instant::now()), |frame| events_of_entry(frame, &|_| true))?;
        let Fed::Entry(events) = read else { return Err(unknown()) };
        let at = events.iter().position(|event| event.id == after).ok_or_else(unknown)?;
        self.ready.extend(events.into_iter().skip(at + 1));
        Ok(())
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
