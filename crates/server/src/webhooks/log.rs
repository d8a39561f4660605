//! What was sent and what came of it: the last of it, in memory.

use std::collections::VecDeque;

use serde::Serialize;

use super::outbox::{Answer, Done, End, Parked};
use rulekeep::event::{EventId, EventType};
use rulekeep::extension::closed_words;
use rulekeep::system::Timestamp;

closed_words! {
    /// What an attempt came to.
    pub enum DeliveryResult("delivery result") {
        /// The receiver took it.
        Delivered = "delivered",
        /// It did not; where it is tried again, `nextAttempt` says when.
        Failed = "failed",
        /// It did not, and it was the last attempt.
        Parked = "parked",
    }
}

/// An attempt to deliver an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Delivery {
    /// The event.
    pub event_id: EventId,
    /// Its type.
    #[serde(rename = "type")]
    pub event_type: EventType,
    /// When it was sent.
    pub at: Timestamp,
    /// Which attempt it was, counted from 1; none where it was asked for by hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// What it came to.
    pub result: DeliveryResult,
    /// The status that was answered, if one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long it took; none where it was before the governor was opened, and in a list of what is parked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub millis: Option<u64>,
    /// When it is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt: Option<Timestamp>,
}

/// A page of attempts, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DeliveryPage {
    /// The attempts.
    pub items: Vec<Delivery>,
    /// How many are kept in all.
    pub total: u64,
    /// The page, counted from 1.
    pub page: u64,
    /// Attempts a page.
    pub page_size: u64,
    /// Whether a later page has more.
    pub has_more: bool,
}

/// The last attempts of an endpoint.
#[derive(Default)]
pub(super) struct DeliveryLog {
    /// The newest last.
    kept: VecDeque<Delivery>,
}

impl DeliveryLog {
    /// What is known of before: the events that were given up.
    pub(super) fn of_parked(parked: &[Parked]) -> Self {
        // What is more than is kept can be had as parked.
        let known = parked.get(parked.len().saturating_sub(MOST)..).unwrap_or_default();
        Self { kept: known.iter().map(Delivery::of_parked).collect() }
    }

    /// Takes in an attempt; the oldest leaves where there are too many.
    pub(super) fn add(&mut self, done: &Done, answer: &Answer, at: Timestamp, millis: u64) {
        let (status, error) = match answer {
            Answer::Delivered(status) => (Some(*status), None),
            Answer::Gone => (Some(410), Some("nothing is wanted there any more".to_owned())),
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
    /// The attempt after which an event was given up.
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
    /// A page of all that is parked, the newest first, counted from 1.
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

/// Attempts that are kept.
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
