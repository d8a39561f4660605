//! The most recent delivery attempts and their results, in memory.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::outbox::{Answer, Done, End, Parked};
use rulekeep::event::{EventId, EventType};
use rulekeep::extension::closed_words;
use rulekeep::system::Timestamp;

closed_words! {
    /// The result of a delivery attempt.
    pub enum DeliveryResult("delivery result") {
        /// The receiver accepted the event.
        Delivered = "delivered",
        /// The attempt failed; `nextAttempt` is the time of the next one, if any.
        Failed = "failed",
        /// The last attempt failed, and the event was parked.
        Parked = "parked",
    }
}

/// An attempt to deliver an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Delivery {
    /// The event's id.
    pub event_id: EventId,
    /// The event's type.
    #[serde(rename = "type")]
    pub event_type: EventType,
    /// The time of sending.
    pub at: Timestamp,
    /// The number of the attempt, from 1; absent for a requested redelivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The result of the attempt.
    pub result: DeliveryResult,
    /// The HTTP status of the response, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The error, if the attempt failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Duration of the attempt in milliseconds; absent for an attempt from before the governor was opened, and in a
    /// list of parked events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub millis: Option<u64>,
    /// The time of the next attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt: Option<Timestamp>,
}

/// A page of delivery attempts, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DeliveryPage {
    /// The attempts on this page.
    pub items: Vec<Delivery>,
    /// The total number of stored attempts.
    pub total: u64,
    /// The page number, from 1.
    pub page: u64,
    /// The maximum number of attempts on a page.
    pub page_size: u64,
    /// True if there are further pages.
    pub has_more: bool,
}

/// The most recent attempts of an endpoint.
#[derive(Default)]
pub(super) struct DeliveryLog {
    /// Newest last.
    kept: VecDeque<Delivery>,
}

impl DeliveryLog {
    /// Starts with the attempts known from before: those of parked events.
    pub(super) fn of_parked(parked: &[Parked]) -> Self {
        // The remaining ones are available as parked events.
        let known = parked.get(parked.len().saturating_sub(MOST)..).unwrap_or_default();
        Self { kept: known.iter().map(Delivery::of_parked).collect() }
    }

    /// Adds an attempt, and removes the oldest if there are too many.
    pub(super) fn add(&mut self, done: &Done, answer: &Answer, at: Timestamp, millis: u64) {
        let (status, error) = match answer {
            Answer::Delivered(status) => (Some(*status), None),
            Answer::Gone => (Some(410), Some("it accepts no more events".to_owned())),
            Answer::Failed { status, error, .. } => (*status, Some(error.clone())),
        };
        let (result, next_attempt) = match done.end {
            End::Delivered => (DeliveryResult::Delivered, None),
            End::RetryAt(at) => (DeliveryResult::Failed, Some(at)),
            End::Parked => (DeliveryResult::Parked, None),
            End::Off | End::Dropped => (DeliveryResult::Failed, None),
        };
        if self.kept.len() >= MOST {
            self.kept.pop_front();
        }
        self.kept.push_back(Delivery {
            event_id: done.event,
            event_type: done.event_type,
            at,
            attempt: (done.attempt > 0).then_some(done.attempt),
            result,
            status,
            error,
            millis: Some(millis),
            next_attempt,
        });
    }

    /// A page, counted from 1.
    pub(super) fn page(&self, page: u64) -> DeliveryPage {
        DeliveryPage::of(self.kept.iter().rev().cloned(), page)
    }
}

impl Delivery {
    /// The attempt after which an event was parked.
    fn of_parked(parked: &Parked) -> Self {
        Self {
            event_id: parked.event,
            event_type: parked.event_type,
            at: parked.at,
            attempt: Some(parked.attempts),
            result: DeliveryResult::Parked,
            status: parked.status,
            error: Some(parked.error.clone()),
            millis: None,
            next_attempt: None,
        }
    }
}

impl DeliveryPage {
    /// A page of all parked events, newest first, counted from 1.
    pub(super) fn of_parked(parked: &[Parked], page: u64) -> Self {
        Self::of(parked.iter().rev().map(Delivery::of_parked), page)
    }

    fn of(all: impl ExactSizeIterator<Item = Delivery>, page: u64) -> Self {
        let total = all.len() as u64;
        let before = page.saturating_sub(1).saturating_mul(PAGE as u64);
        let skipped = usize::try_from(before).unwrap_or(usize::MAX);
        let items: Vec<_> = all.skip(skipped).take(PAGE).collect();
        let has_more = before.saturating_add(items.len() as u64) < total;
        Self { items, total, page, page_size: PAGE as u64, has_more }
    }
}

/// Maximum number of stored attempts.
const MOST: usize = 1000;
const PAGE: usize = 50;

#[cfg(test)]
mod tests {
    use super::*;
    use rulekeep::proof::Sequence;

    #[test]
    fn the_last_thousand_are_kept_and_paged_newest_first() {
        let mut log = DeliveryLog::default();
        for number in 0..1001 {
            let event = EventId::new(Timestamp::from_millis(0), [0; 3], 0, Sequence::new(number));
            let done = Done { event, event_type: EventType::Decision, attempt: 1, end: End::Delivered };
            log.add(&done, &Answer::Delivered(200), Timestamp::from_millis(0), 1);
        }
        let (first, last) = (log.page(1), log.page(20));
        assert_eq!((first.total, first.items.len(), first.has_more), (1000, 50, true));
        assert_eq!(first.items[0].event_id.sequence().get(), 1000);
        assert_eq!((last.items.len(), last.has_more), (50, false));
        assert_eq!(last.items[49].event_id.sequence().get(), 1, "the oldest has left");
        assert!(log.page(u64::MAX).items.is_empty());
    }

    #[test]
    fn all_that_is_parked_can_be_had_however_much_it_is() {
        let event = |number| EventId::new(Timestamp::from_millis(0), [0; 3], 0, Sequence::new(number));
        let given_up = |number| Parked {
            event: event(number),
            event_type: EventType::Decision,
            at: Timestamp::from_millis(0),
            attempts: 2,
            status: None,
            error: "500".to_owned(),
        };
        let parked: Vec<_> = (0..1010).map(given_up).collect();
        let last = DeliveryPage::of_parked(&parked, 21);
        assert_eq!((last.total, last.items.len(), last.has_more), (1010, 10, false));
        assert_eq!(last.items[9].event_id, event(0), "the oldest is there still");
        assert_eq!(DeliveryPage::of_parked(&parked, 1).items[0].event_id, event(1009));
        assert_eq!(DeliveryLog::of_parked(&parked).page(1).total, 1000);
    }
}
