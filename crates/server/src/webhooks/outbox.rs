//! Decides what an endpoint is sent, and when. Time and randomness are inputs, and nothing here waits or does I/O.
//!
//! An endpoint is a position in the journal. An event is taken when the previous one is settled: delivered, or parked
//! after its last attempt. So first deliveries are in order, and only one event at a time is in memory.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::schedule::{LONGEST_STEP, Schedule};
use rulekeep::event::{EventId, EventType};
use rulekeep::system::Timestamp;

/// The progress of an endpoint, as stored in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cursor {
    /// Entries before this one are settled.
    pub(super) next: u64,
    /// Events of that entry before this one are settled.
    pub(super) ordinal: u8,
    /// The number of failed attempts for the next event.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) attempts: u32,
    /// The time of the next attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) retry_at: Option<Timestamp>,
    /// Whether an event was parked and none was delivered since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) failing: bool,
    /// The reason nothing is sent any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) off: Option<String>,
}

/// A parked event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Parked {
    pub(super) event: EventId,
    #[serde(rename = "type")]
    pub(super) event_type: EventType,
    pub(super) at: Timestamp,
    pub(super) attempts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<u16>,
    pub(super) error: String,
}

/// An event to be delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) event: EventId,
    pub(super) event_type: EventType,
    /// The event's entry, and its place among that entry's events.
    pub(super) place: (u64, u8),
    pub(super) body: Vec<u8>,
}

/// The next action.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// Send this event, and then call [`Outbox::done`].
    Send(&'a Told),
    /// Nothing to do before this time.
    Until(Timestamp),
    /// The next event is needed: [`Outbox::offer`].
    Idle,
    /// Nothing is sent.
    Off,
}

/// The response to an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// A success status.
    Delivered(u16),
    /// The receiver wants no more events.
    Gone,
    /// Any other response, or an error.
    Failed { status: Option<u16>, error: String, retry_after: Option<Duration> },
}

/// The outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) event: EventId,
    pub(super) event_type: EventType,
    /// The number of the attempt, from 1; 0 for a requested redelivery.
    pub(super) attempt: u32,
    pub(super) end: End,
}

/// The state after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Delivered,
    RetryAt(Timestamp),
    Parked,
    /// The endpoint was switched off.
    Off,
    /// A requested redelivery, which is not tried again.
    Dropped,
}

/// The reason an event is not redelivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The endpoint does not subscribe to it.
    Unwanted,
    /// The endpoint cannot be served.
    Broken(String),
    Off,
    /// Too many redeliveries are waiting.
    Full,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unwanted => f.write_str("does not receive events of this type or agent"),
            Self::Broken(why) => write!(f, "cannot be reached: {why}"),
            Self::Off => f.write_str("is off: resume it, then redeliver"),
            Self::Full => {
                write!(f, "has {MOST_BY_HAND} redeliveries waiting already: redeliver this one once they are sent")
            }
        }
    }
}

/// The progress to be stored in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) cursor: Cursor,
    /// The parked events, if they changed.
    pub(super) parked: Option<Vec<Parked>>,
}

pub(super) struct Outbox {
    schedule: Schedule,
    cursor: Cursor,
    parked: Vec<Parked>,
    head: Option<Told>,
    /// Requested redeliveries; each is sent once, before everything else.
    by_hand: VecDeque<Told>,
    in_flight: Option<Flight>,
    unnoted: Unnoted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flight {
    Head,
    ByHand,
}

/// Progress that is not stored in the journal yet.
#[derive(Debug, Default)]
struct Unnoted {
    delivered: u32,
    since: Option<Timestamp>,
    /// The entry that the last record named.
    next: u64,
    at_once: bool,
    parked: bool,
}

impl Outbox {
    /// Creates an outbox that continues at the stored position.
    pub(super) fn new(schedule: Schedule, cursor: Cursor, parked: Vec<Parked>) -> Self {
        let unnoted = Unnoted { next: cursor.next, ..Unnoted::default() };
        Self { schedule, cursor, parked, head: None, by_hand: VecDeque::new(), in_flight: None, unnoted }
    }

    pub(super) fn cursor(&self) -> &Cursor {
        &self.cursor
    }

    pub(super) fn parked(&self) -> &[Parked] {
        &self.parked
    }

    /// The action to take at `now`.
    pub(super) fn step(&mut self, now: Timestamp) -> Step<'_> {
        if self.cursor.off.is_some() {
            return Step::Off;
        }
        if let Some(told) = self.by_hand.front() {
            self.in_flight = Some(Flight::ByHand);
            return Step::Send(told);
        }
        let Some(told) = &self.head else { return Step::Idle };
        match self.cursor.retry_at {
            // A clock that was set back delays an event at most by the longest wait.
            Some(at) if at > now && at.as_millis() - now.as_millis() <= LONGEST_WAIT => Step::Until(at),
            _ => {
                self.in_flight = Some(Flight::Head);
                Step::Send(told)
            }
        }
    }

    /// Takes the next event. One that is settled already is skipped.
    pub(super) fn offer(&mut self, told: Told) {
        if told.place < (self.cursor.next, self.cursor.ordinal) {
            return;
        }
        (self.cursor.next, self.cursor.ordinal) = told.place;
        self.head = Some(told);
    }

    /// Records that entries before `next` contain no wanted event.
    pub(super) fn passed(&mut self, next: u64) {
        if self.head.is_none() && self.in_flight.is_none() && next > self.cursor.next {
            (self.cursor.next, self.cursor.ordinal) = (next, 0);
        }
    }

    /// Sends an event once more, out of order.
    pub(super) fn redeliver(&mut self, told: Told) -> Result<(), Refusal> {
        if self.cursor.off.is_some() {
            return Err(Refusal::Off);
        }
        if self.by_hand.len() >= MOST_BY_HAND {
            return Err(Refusal::Full);
        }
        self.by_hand.push_back(told);
        Ok(())
    }

    /// Resumes sending, retrying a failed event at once. Returns false if the endpoint was not off.
    pub(super) fn resume(&mut self) -> bool {
        let was_off = self.cursor.off.take().is_some();
        if was_off {
            (self.cursor.attempts, self.cursor.retry_at, self.cursor.failing) = (0, None, false);
            self.unnoted.at_once = true;
        }
        was_off
    }

    /// Handles the response for the event of [`Step::Send`]. `chance` is a random number for the jitter.
    pub(super) fn done(&mut self, answer: &Answer, now: Timestamp, chance: u16) -> Option<Done> {
        match self.in_flight.take()? {
            Flight::Head => self.head_done(answer, now, chance),
            Flight::ByHand => self.by_hand_done(answer),
        }
    }

    fn head_done(&mut self, answer: &Answer, now: Timestamp, chance: u16) -> Option<Done> {
        let told = self.head.take()?;
        let (event, event_type, attempt) = (told.event, told.event_type, self.cursor.attempts.saturating_add(1));
        let end = match answer {
            Answer::Delivered(_) => {
                self.unpark(event);
                self.advance(&told);
                self.cursor.failing = false;
                self.unnoted.delivered += 1;
                self.unnoted.since.get_or_insert(now);
                End::Delivered
            }
            Answer::Gone => {
                self.head = Some(told);
                self.switch_off("the receiver answered 410: it accepts no more events");
                End::Off
            }
            Answer::Failed { status, error, retry_after } => {
                self.unnoted.at_once = true;
                self.cursor.attempts = attempt;
                let next = if self.cursor.failing {
                    (attempt == 1).then(|| self.schedule.after_long(now, *retry_after, chance))
                } else {
                    self.schedule.after(attempt, now, *retry_after, chance)
                };
                if let Some(at) = next {
                    self.cursor.retry_at = Some(at);
                    self.head = Some(told);
                    End::RetryAt(at)
                } else {
                    self.park(&told, attempt, now, *status, error);
                    if self.cursor.off.is_some() { End::Off } else { End::Parked }
                }
            }
        };
        Some(Done { event, event_type, attempt, end })
    }

    fn by_hand_done(&mut self, answer: &Answer) -> Option<Done> {
        let Told { event, event_type, .. } = self.by_hand.pop_front()?;
        let end = match answer {
            Answer::Delivered(_) => {
                self.unpark(event);
                self.recover();
                End::Delivered
            }
            Answer::Gone => {
                self.switch_off("the receiver answered 410: it accepts no more events");
                End::Off
            }
            Answer::Failed { .. } => End::Dropped,
        };
        Some(Done { event, event_type, attempt: 0, end })
    }

    fn park(&mut self, told: &Told, attempts: u32, at: Timestamp, status: Option<u16>, error: &str) {
        let error = error.chars().take(LONGEST_ERROR).collect();
        self.parked.retain(|parked| parked.event != told.event);
        self.parked.push(Parked { event: told.event, event_type: told.event_type, at, attempts, status, error });
        self.unnoted.parked = true;
        self.cursor.failing = true;
        self.advance(told);
        if self.parked.len() >= MOST_PARKED {
            self.switch_off("too many events were parked: repair the receiver, resume the endpoint, then redeliver");
        }
    }

    fn unpark(&mut self, event: EventId) {
        let before = self.parked.len();
        self.parked.retain(|parked| parked.event != event);
        if self.parked.len() != before {
            (self.unnoted.parked, self.unnoted.at_once) = (true, true);
        }
    }

    /// After a successful redelivery without anything left parked, the receiver counts as healthy, and a waiting
    /// event is retried at once.
    fn recover(&mut self) {
        if self.cursor.failing && self.parked.is_empty() {
            (self.cursor.attempts, self.cursor.retry_at, self.cursor.failing) = (0, None, false);
            self.unnoted.at_once = true;
        }
    }

    fn advance(&mut self, told: &Told) {
        let (sequence, ordinal) = told.place;
        (self.cursor.next, self.cursor.ordinal) = (sequence, ordinal.saturating_add(1));
        (self.cursor.attempts, self.cursor.retry_at) = (0, None);
    }

    pub(super) fn switch_off(&mut self, why: &str) {
        self.cursor.off = Some(why.to_owned());
        self.by_hand.clear();
        self.unnoted.at_once = true;
    }

    /// The progress to store now, if it is time: after several deliveries, or after each failure.
    pub(super) fn note(&mut self, now: Timestamp) -> Option<Note> {
        let unnoted = &self.unnoted;
        let waited =
            unnoted.since.is_some_and(|since| !(0..BATCH_MILLIS).contains(&(now.as_millis() - since.as_millis())));
        let passed = self.cursor.next.saturating_sub(unnoted.next) >= MOST_PASSED;
        let is_time = unnoted.at_once || waited || passed || unnoted.delivered >= BATCH;
        if is_time { Some(self.take_note()) } else { None }
    }

    /// The progress that is not stored yet, for use before the end.
    pub(super) fn last_note(&mut self) -> Option<Note> {
        let unnoted = &self.unnoted;
        (unnoted.at_once || unnoted.since.is_some()).then(|| self.take_note())
    }

    fn take_note(&mut self) -> Note {
        let parked = self.unnoted.parked.then(|| self.parked.clone());
        self.unnoted = Unnoted { next: self.cursor.next, ..Unnoted::default() };
        Note { cursor: self.cursor.clone(), parked }
    }

    /// Handles a record that could not be stored: it is tried again with the next one.
    pub(super) fn not_noted(&mut self, note: &Note, now: Timestamp) {
        self.unnoted.since.get_or_insert(now);
        self.unnoted.parked |= note.parked.is_some();
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The number of deliveries after which progress is stored, and the time in milliseconds.
const BATCH: u32 = 256;
const BATCH_MILLIS: i64 = 250;
/// The number of entries without a wanted event after which progress is stored.
const MOST_PASSED: u64 = 1 << 14;
/// The number of parked events at which an endpoint is switched off.
const MOST_PARKED: usize = 1000;
const MOST_BY_HAND: usize = 100;
const LONGEST_ERROR: usize = 200;
/// The longest wait with its jitter.
const LONGEST_WAIT: i64 = (LONGEST_STEP + LONGEST_STEP / 10).cast_signed();

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;
