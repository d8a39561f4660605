//! Who waits for people.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use rulekeep::Decision;

use super::*;

const LONG: Duration = Duration::from_secs(600);

#[test]
fn who_waits_gets_what_was_approved() {
    let (governor, _) = governor();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| governor.escalations().enforce_or_wait(&payment(40), LONG).unwrap());
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
    let verdict = governor.escalations().enforce_or_wait(&payment(40), Duration::ZERO).unwrap();
    assert_eq!(verdict.decision, Decision::Escalate);
    let id = EscalationId::of(verdict.proof_id);
    assert_eq!(governor.escalations().wait(id, &payment(40), Duration::ZERO).unwrap(), None);
    let allowed = governor.escalations().enforce_or_wait(&common::reading("clerk"), LONG).unwrap();
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
        let waiting = scope.spawn(|| block_on(governor.escalations().claim_async(id, &payment(40)).unwrap()).unwrap());
        let denied =
            scope.spawn(|| block_on(governor.escalations().claim_async(other, &payment(41)).unwrap()).unwrap());
        governor.escalations().approve(id, by("ann")).unwrap();
        governor.escalations().reject(other, by("ann")).unwrap();
        assert_eq!(waiting.join().unwrap().decision, Decision::Allow);
        assert_eq!(denied.join().unwrap().decision, Decision::Deny);
    });
    assert_eq!(code(block_on(governor.escalations().claim_async(id, &payment(40)).unwrap())), "CONFLICT");
}
