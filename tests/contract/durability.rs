//! When a decision comes back: by risk, by waiting, by asking and in tasks.

use crate::common;

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use common::{builder, intent, reading};
use rulekeep::handle::PendingEnforcement;
use rulekeep::{Decision, Durability, Enforcement, Error, Governor, RiskLevel};

/// All that a runtime needs to be: the thread sleeps until its task is woken.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Waits for all of some futures in one task.
struct All(Vec<(PendingEnforcement, Option<Result<Enforcement, Error>>)>);

impl Future for All {
    type Output = Vec<Result<Enforcement, Error>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        for (pending, result) in &mut self.0 {
            if result.is_none()
                && let Poll::Ready(ready) = Pin::new(pending).poll(context)
            {
                *result = Some(ready);
            }
        }
        if self.0.iter().any(|(_, result)| result.is_none()) {
            return Poll::Pending;
        }
        Poll::Ready(self.0.drain(..).filter_map(|(_, result)| result).collect())
    }
}

fn governor(durability: Durability, folder: &std::path::Path) -> Governor {
    common::open_with(builder().durability(durability), folder)
}

#[test]
fn one_thread_keeps_hundreds_of_decisions_in_flight_durably() {
    let folder = tempfile::tempdir().unwrap();
    let governor = governor(Durability::Sync, folder.path());
    let pending: Vec<_> = (0..300).map(|_| (governor.enforce_pending(&reading("a")).unwrap(), None)).collect();
    let decided = block_on(All(pending));
    assert_eq!(decided.len(), 300);
    for enforcement in &decided {
        let enforcement = enforcement.as_ref().unwrap();
        assert_eq!(enforcement.decision, Decision::Allow);
        assert_eq!(governor.log().record(&enforcement.proof_id).unwrap().decision, Decision::Allow);
    }
    // As many entries as that were on disk with far fewer syncs.
    assert!(governor.log().journal().syncs < 200, "{} syncs", governor.log().journal().syncs);
}

#[test]
fn a_decision_under_way_can_be_awaited_waited_for_and_asked() {
    let folder = tempfile::tempdir().unwrap();
    let governor = governor(Durability::Sync, folder.path());
    let awaited = block_on(governor.enforce_pending(&reading("a")).unwrap()).unwrap();
    let waited = governor.enforce_pending(&reading("a")).unwrap().wait().unwrap();
    let asked = governor.enforce_pending(&reading("a")).unwrap();
    let id = asked.proof_id();
    let asked = loop {
        match asked.try_result() {
            Some(result) => break result.unwrap(),
            None => thread::yield_now(),
        }
    };
    assert_eq!(asked.proof_id, id);
    for enforcement in [awaited, waited, asked] {
        assert!(governor.log().record(&enforcement.proof_id).is_ok());
    }
}

#[test]
fn a_decision_under_way_survives_its_governor() {
    let folder = tempfile::tempdir().unwrap();
    let governor = governor(Durability::Sync, folder.path());
    let pending: Vec<_> = (0..50).map(|_| governor.enforce_pending(&reading("a")).unwrap()).collect();
    drop(governor);
    let ids: Vec<_> = pending.into_iter().map(|pending| pending.wait().unwrap().proof_id).collect();
    let again = common::open_with(builder(), folder.path());
    assert!(ids.iter().all(|id| again.log().record(id).is_ok()));
}

#[test]
fn a_decision_that_is_not_waited_for_is_recorded_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let governor = governor(Durability::Sync, folder.path());
    let id = governor.enforce_pending(&reading("a")).unwrap().proof_id();
    governor.close().unwrap();
    assert_eq!(common::code(governor.enforce_pending(&reading("a"))), "STORAGE_UNAVAILABLE");
    assert!(common::open_with(builder(), folder.path()).log().record(&id).is_ok());
}

#[test]
fn an_invalid_intent_is_refused_before_anything_is_in_flight() {
    let governor = builder().open_in_memory().unwrap();
    assert_eq!(common::code(governor.enforce_pending(&reading("nobody"))), "AGENT_NOT_FOUND");
}

#[test]
fn in_a_buffered_log_a_verdict_can_be_read_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let governor = governor(Durability::Buffered, folder.path());
    assert!(governor.enforce_pending(&reading("a")).unwrap().try_result().unwrap().is_ok());
}

#[test]
fn the_risk_that_counts_is_the_one_that_was_decided_on() {
    let folder = tempfile::tempdir().unwrap();
    let governor = governor(Durability::SyncFrom(RiskLevel::High), folder.path());
    let syncs = || governor.log().journal().syncs;
    let before = syncs();
    // Claimed to be low; deleting is not.
    governor.enforce(&intent("a", &["account:delete"])).unwrap();
    assert!(syncs() > before, "it came back before a sync");
}

#[test]
fn a_durability_is_written_as_the_sidecar_takes_it() {
    for durability in [Durability::Sync, Durability::Buffered, Durability::SyncFrom(RiskLevel::High)] {
        assert_eq!(durability.to_string().parse::<Durability>().unwrap(), durability);
    }
    assert_eq!(Durability::SyncFrom(RiskLevel::Critical).to_string(), "sync-from:CRITICAL");
    for word in ["", "SYNC", "sync-from", "sync-from:", "sync-from:high", "sync-from:SEVERE"] {
        let message = word.parse::<Durability>().unwrap_err().to_string();
        assert!(message.contains("sync-from:HIGH"), "{message}");
    }
}
