//! Who waits for people.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use rulekeep::{Clock, Decision, Timestamp};

use super::*;

const LONG: Duration = Duration::from_secs(600);

#[test]
fn who_waits_gets_what_was_approved() {
    let (governor, _) = governor();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| governor.enforce_or_wait(&payment(40), LONG).unwrap());
        let asked = loop {
            if let Some(asked) = governor.escalations().pending().unwrap().pop() {
                break asked;
            }
            thread::yield_now();
        };
        let resolved = governor.escalations().approve(asked.id, by("ann")).unwrap();
        let granted = waiting.join().unwrap();
        assert_eq!((granted.decision, Some(granted.proof_id)), (Decision::Allow, resolved.proof_id));
        assert_eq!(code(governor.escalations().claim(asked.id, &payment(40))), "CONFLICT");
    });
}

#[test]
fn who_waits_for_a_no_gets_a_denial() {
    let (governor, _) = governor();
    let (id, _) = ask(&governor, &payment(40));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| governor.escalations().wait(id, &payment(40), LONG).unwrap().unwrap());
        let resolved = governor.escalations().reject(id, by("ann")).unwrap();
        let denied = waiting.join().unwrap();
        assert_eq!((denied.decision, Some(denied.proof_id)), (Decision::Deny, resolved.proof_id));
        assert!(denied.granted_capabilities.is_empty());
    });
}

#[test]
fn who_does_not_want_to_wait_has_the_escalation() {
    let (governor, _) = governor();
    let verdict = governor.enforce_or_wait(&payment(40), Duration::ZERO).unwrap();
    assert_eq!(verdict.decision, Decision::Escalate);
    let id = EscalationId::of(verdict.proof_id);
    assert_eq!(governor.escalations().wait(id, &payment(40), Duration::ZERO).unwrap(), None);
    let allowed = governor.enforce_or_wait(&common::reading("clerk"), LONG).unwrap();
    assert_eq!(allowed.decision, Decision::Allow);
}

#[test]
fn who_waits_until_it_expires_gets_a_denial() {
    let (governor, hand) = governor();
    let (id, _) = ask(&governor, &payment(40));
    hand.set(NOON + 3_600_000);
    let denied = governor.escalations().wait(id, &payment(40), LONG).unwrap().unwrap();
    assert_eq!(denied.decision, Decision::Deny);
}

/// Wakes the thread that polls.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn a_task_awaits_the_answer() {
    let (governor, _) = governor();
    let (id, _) = ask(&governor, &payment(40));
    let (other, _) = ask(&governor, &payment(41));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| block_on(governor.escalations().answer(id, &payment(40)).unwrap()).unwrap());
        let denied = scope.spawn(|| block_on(governor.escalations().answer(other, &payment(41)).unwrap()).unwrap());
        governor.escalations().approve(id, by("ann")).unwrap();
        governor.escalations().reject(other, by("ann")).unwrap();
        assert_eq!(waiting.join().unwrap().decision, Decision::Allow);
        assert_eq!(denied.join().unwrap().decision, Decision::Deny);
    });
    assert_eq!(code(block_on(governor.escalations().answer(id, &payment(40)).unwrap())), "CONFLICT");
}

/// A clock that counts how often it is read.
#[derive(Clone)]
struct Counting(common::Hand, Arc<AtomicUsize>);

impl Clock for Counting {
    fn now(&self) -> Timestamp {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.now()
    }

    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }
}

#[test]
fn where_the_log_takes_nothing_in_nobody_tries_to_end_all_that_is_due() {
    let (hand, read) = (Hand::at(NOON), Arc::new(AtomicUsize::new(0)));
    let clock = Counting(hand.clone(), Arc::clone(&read));
    let governor = GovernorBuilder::clock(with_clock(&hand), clock).open_in_memory().unwrap();
    governor.register_agent(Agent::new("clerk").at_tier(Tier::T4)).unwrap();
    let asked: Vec<_> = (0..100).map(|amount| ask(&governor, &payment(amount)).0).collect();
    governor.close().unwrap();
    hand.set(NOON + 7_200_000);
    read.store(0, Ordering::SeqCst);
    let listed = governor.escalations().pending().map(|pending| pending.len());
    let one = governor.escalations().get(asked[50]).map(|found| found.state);
    // Each that is tried reads it; the thread that looks for them may have come by once.
    let reads = read.load(Ordering::SeqCst);
    assert!(reads < 50, "{reads} times; {listed:?} {one:?}");
    // By then their time is over, and nobody takes them up.
    assert!(governor.escalations().approve(asked[50], by("ann")).is_err());
}
