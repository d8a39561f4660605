//! Guarded work: it runs only under a grant, and SUCCESS is reported only for what ended well and in time.

use std::cell::Cell;
use std::future::{pending, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use rulekeep::escalation::{EscalationQuery, Review};
use rulekeep::grant::{AgentCommand, Confiner, Grant, GrantError, GuardError, GuardRequest, Guarded};
use rulekeep::system::Timestamp;
use rulekeep::{Agent, Decision, Durability, Governor, Intent, Outcome, PolicySet, ProofQuery, RiskLevel, Tier};

use crate::common::{Hand, NOON};

const TEXT: &str = "Read the file /srv/notes.txt";
type Answer<T, E> = Result<Guarded<T>, GuardError<E>>;

fn ruled(rule: &str) -> (Governor, Hand) {
    let clock = Hand::at(NOON);
    let policies = PolicySet::from_toml(&format!("name = \"p\"\n[[rule]]\nid = \"all\"\n{rule}")).unwrap();
    let builder = Governor::builder().policies(policies).clock(clock.clone()).durability(Durability::Sync);
    let governor = builder.open_in_memory().unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    (governor, clock)
}

/// Everything is allowed, for a second.
fn allowing() -> (Governor, Hand) {
    ruled("effect = \"allow\"\nconstraints = { timeoutMs = 1000 }")
}

/// The outcomes of all records, the newest first.
fn outcomes(governor: &Governor) -> Vec<Option<Outcome>> {
    governor.query(&ProofQuery::entity("a")).unwrap().items.iter().map(|record| record.outcome).collect()
}

#[test]
fn work_that_ends_well_is_a_success_and_failed_work_a_failure() {
    let (governor, _) = allowing();
    let done = governor.guard("a", TEXT, |grant| grant.take_records(1).map(|()| 7)).unwrap();
    assert_eq!((done.value, done.decided.enforcement.decision), (7, Decision::Allow));
    assert!(done.unreported.is_none());
    assert_eq!(done.decided.enforcement.grant().err(), Some(GrantError::Ended), "its outcome is reported");
    let failed: Answer<(), &str> = governor.guard("a", TEXT, |_| Err("no such file"));
    let Err(GuardError::Failed { error, proof_id, unreported }) = failed else { panic!("it failed") };
    assert_eq!((error, unreported.is_none()), ("no such file", true));
    assert_eq!(governor.log().record(&proof_id).unwrap().outcome, Some(Outcome::Failure));
    assert_eq!(outcomes(&governor), [Some(Outcome::Failure), Some(Outcome::Success)]);
}

#[test]
fn nothing_runs_without_a_grant_and_no_outcome_is_reported_then() {
    let rules = [
        ("effect = \"deny\"", GrantError::NotGranted { decision: Decision::Deny }),
        ("effect = \"escalate\"\nreviewer = \"ann\"", GrantError::NotGranted { decision: Decision::Escalate }),
        ("effect = \"allow\"\nconstraints.maxUses = 0", GrantError::UsedUp { most: 0 }),
    ];
    for (rule, expected) in rules {
        let (governor, _) = ruled(rule);
        let refused: Answer<(), ()> = governor.guard("a", TEXT, |_| panic!("it must not run"));
        let Err(GuardError::Refused { decided, why }) = refused else { panic!("{rule}") };
        assert_eq!((why, &decided.parse.intent.agent_id.as_str()), (expected, &"a"));
        assert_eq!(outcomes(&governor), [None], "{rule}");
    }
    let (governor, _) = allowing();
    let unknown: Answer<(), ()> = governor.guard("nobody", TEXT, |_| panic!("it must not run"));
    assert!(matches!(unknown, Err(GuardError::Undecided(error)) if error.code() == "AGENT_NOT_FOUND"));
}

#[test]
fn work_past_its_deadline_is_a_failure_whatever_it_returns() {
    let (governor, clock) = allowing();
    let late: Answer<&str, ()> = governor.guard("a", TEXT, |_| {
        clock.set(NOON + 1000);
        Ok("the notes")
    });
    assert!(matches!(late, Err(GuardError::Late { why: GrantError::Overdue { .. }, unreported: None, .. })));
    assert_eq!(outcomes(&governor), [Some(Outcome::Failure)]);
}

#[test]
fn work_without_a_limit_of_its_policy_takes_as_long_as_it_takes() {
    let (governor, clock) = ruled("effect = \"allow\"");
    let done: Answer<&str, ()> = governor.guard("a", TEXT, |grant| {
        clock.set(NOON + 3_600_000);
        assert!(matches!(grant.check(), Err(GrantError::Expired { .. })), "it does nothing more under it");
        Ok("the notes")
    });
    assert_eq!((done.unwrap().value, outcomes(&governor)), ("the notes", vec![Some(Outcome::Success)]));
}

#[test]
fn a_panic_is_a_failure_and_goes_on_unwinding() {
    let (governor, _) = allowing();
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let _: Answer<(), ()> = governor.guard("a", TEXT, |_| std::panic::resume_unwind(Box::new("the tool broke")));
    }));
    assert_eq!(unwound.unwrap_err().downcast_ref(), Some(&"the tool broke"));
    assert_eq!(outcomes(&governor), [Some(Outcome::Failure)]);
    assert!(governor.verify().unwrap().valid);
}

#[test]
fn a_grant_that_outlives_its_work_holds_no_longer() {
    let (governor, _) = ruled("effect = \"allow\"\nconstraints.maxUses = 5");
    let kept: Grant = governor.guard("a", TEXT, Ok::<_, ()>).unwrap().value;
    assert_eq!((kept.check(), kept.take_records(1)), (Err(GrantError::Ended), Err(GrantError::Ended)));
}

#[test]
fn what_cannot_be_reported_is_told_beside_the_result() {
    let (governor, _) = allowing();
    let done = governor.guard("a", TEXT, |_| governor.close().map(|()| 7)).unwrap();
    assert_eq!((done.value, done.unreported.unwrap().code()), (7, "STORAGE_UNAVAILABLE"));

    let (governor, _) = allowing();
    let failed: Answer<(), &str> = governor.guard("a", TEXT, |_| {
        governor.close().unwrap();
        Err("no such file")
    });
    assert!(matches!(failed, Err(GuardError::Failed { unreported: Some(_), error: "no such file", .. })));

    let (governor, _) = allowing();
    let done = governor.guard("a", TEXT, |grant| governor.report(&grant.proof_id(), Outcome::Failure)).unwrap();
    assert_eq!(done.unreported.unwrap().code(), "CONFLICT", "another outcome stands");
}

#[test]
fn a_failure_of_unknown_effect_gives_nothing_back_of_a_limit() {
    let rule = "effect = \"allow\"\nconstraints.timeoutMs = 1000\nlimit = { count = 2, per = \"1h\" }";
    for (late, next) in [(true, false), (false, true)] {
        let (governor, clock) = ruled(rule);
        for round in 0..2 {
            let ended: Answer<(), ()> = governor.guard("a", TEXT, |_| {
                clock.set(NOON + if late { 1000 * (round + 1) } else { 0 });
                if late { Ok(()) } else { Err(()) }
            });
            assert!(ended.is_err());
        }
        assert_eq!(governor.guard("a", TEXT, |_| Ok::<_, ()>(())).is_ok(), next, "late: {late}");
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => thread::park(),
        }
    }
}

/// Polls until the work runs.
fn start<T>(future: &mut Pin<Box<impl Future<Output = T>>>, runs: &Cell<bool>) {
    while !runs.get() {
        assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
}

#[test]
fn awaited_work_is_reported_by_its_result() {
    let (governor, _) = allowing();
    let done = block_on(governor.guard_async("a", TEXT, async |grant| grant.take_records(1).map(|()| 7))).unwrap();
    assert_eq!((done.value, done.unreported.is_none()), (7, true));
    let failed: Answer<(), &str> = block_on(governor.guard_async("a", TEXT, |_| ready(Err("no such file"))));
    assert!(matches!(failed, Err(GuardError::Failed { error: "no such file", .. })));
    assert_eq!(outcomes(&governor), [Some(Outcome::Failure), Some(Outcome::Success)]);
}

#[test]
fn awaited_work_past_its_deadline_is_dropped_and_a_failure() {
    let (governor, clock) = allowing();
    let runs = Cell::new(false);
    let mut late: Pin<Box<_>> = Box::pin(governor.guard_async("a", TEXT, |_| {
        runs.set(true);
        pending::<Result<(), ()>>()
    }));
    start(&mut late, &runs);
    clock.set(NOON + 1000);
    let ended = block_on(late);
    assert!(matches!(ended, Err(GuardError::Late { why: GrantError::Overdue { .. }, unreported: None, .. })));

    let ended: Answer<(), ()> = block_on(governor.guard_async("a", TEXT, |_| {
        clock.set(NOON + 2000);
        ready(Ok(()))
    }));
    assert!(matches!(ended, Err(GuardError::Late { .. })), "ready, and too late");
    assert_eq!(outcomes(&governor), [Some(Outcome::Failure), Some(Outcome::Failure)]);
}

#[test]
fn dropped_awaited_work_is_a_failure_and_unpolled_is_nothing() {
    let (governor, _) = allowing();
    drop(governor.guard_async("a", TEXT, |_| pending::<Result<(), ()>>()));
    assert_eq!(outcomes(&governor), []);
    let runs = Cell::new(false);
    let mut dropped = Box::pin(governor.guard_async("a", TEXT, |_| {
        runs.set(true);
        pending::<Result<(), ()>>()
    }));
    start(&mut dropped, &runs);
    drop(dropped);
    assert_eq!(outcomes(&governor), [Some(Outcome::Failure)]);
}

#[test]
fn a_panic_of_awaited_work_is_a_failure() {
    let (governor, _) = allowing();
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        block_on(governor.guard_async("a", TEXT, async |_| -> Result<(), ()> {
            std::panic::resume_unwind(Box::new("the tool broke"))
        }))
    }));
    assert!(unwound.is_err());
    assert_eq!(outcomes(&governor), [Some(Outcome::Failure)]);
}

#[test]
fn awaited_work_can_be_handed_to_another_thread() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let (governor, _) = allowing();
    let guarded = governor.clone();
    let work = is_send(async move { guarded.guard_async("a", TEXT, async |_| Ok::<_, ()>(7)).await });
    let ended = thread::spawn(move || block_on(work)).join().unwrap();
    assert_eq!(ended.unwrap().value, 7);
}

#[test]
fn a_clock_is_asked_for_the_time_and_not_the_system() {
    let (governor, _) = allowing();
    let ends = governor.guard("a", TEXT, |grant| Ok::<_, ()>(grant.ends_at())).unwrap().value;
    assert_eq!(ends, Timestamp::from_millis(NOON + 1000));
}

#[test]
fn a_command_runs_only_as_far_as_it_is_granted() {
    let folder = tempfile::tempdir().unwrap();
    let command = AgentCommand::new(folder.path(), ["mkdir", "made"]).unwrap();
    let rules = [
        ("effect = \"allow\"", true),
        ("effect = \"deny\"", false),
        ("effect = \"escalate\"\nreviewer = \"ann\"", false),
        ("effect = \"degrade\"\nto = [\"file:read\"]", false),
        ("effect = \"allow\"\nconstraints = { confine = \"offline\" }", false),
    ];
    for (rule, runs) in rules {
        let (governor, _) = ruled(rule);
        let done = governor.guard_command("a", &command, std::process::Command::status);
        assert_eq!((done.is_ok(), folder.path().join("made").exists()), (runs, runs), "{rule}: {done:?}");
        let record = &governor.query(&ProofQuery::entity("a")).unwrap().items[0];
        let granted = matches!(record.decision, Decision::Allow | Decision::Degrade);
        let outcome = if runs { Outcome::Success } else { Outcome::Failure };
        assert_eq!(record.outcome, granted.then_some(outcome), "{rule}");
        std::fs::remove_dir(folder.path().join("made")).ok();
    }
}

#[test]
fn a_command_has_a_program_and_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    for (place, words) in [(folder.path(), &[][..]), (folder.path(), &[""]), (&folder.path().join("none"), &["true"])] {
        AgentCommand::new(place, words.iter().copied()).unwrap_err();
    }
    for program in ["/no/such/program", "no-such-program", "/bin/false"] {
        let error = Confiner::attempt(program).unwrap_err();
        assert_eq!(error.code(), "CONFLICT", "{program}");
    }
}

#[test]
fn guarded_work_waits_for_its_reviewer_and_runs_under_the_claim() {
    let (governor, _) = ruled("effect = \"escalate\"\nreviewer = \"ann\"");
    let intent = Intent::new("a", "read_file", RiskLevel::Low, ["file:read"]).unwrap();
    for request in [GuardRequest::input("a", TEXT), GuardRequest::from(&intent)] {
        let asked = governor.guard_wait(request, Duration::ZERO, |_| Ok::<_, GrantError>(()));
        let Err(refused @ GuardError::Refused { .. }) = asked else { panic!("nobody has answered") };
        assert!(refused.to_string().starts_with("the request was refused: ESCALATE: Escalated"), "{refused}");
        for (approves, ran) in [(true, true), (false, false)] {
            let reviewer = governor.clone();
            let known = governor.escalations().list(&EscalationQuery::all()).unwrap().total;
            let answering = thread::spawn(move || {
                let newest = || reviewer.escalations().list(&EscalationQuery::all()).unwrap();
                while newest().total == known {
                    thread::sleep(Duration::from_millis(2));
                }
                let (id, review) = (newest().items[0].id, Review::by("ann"));
                let escalations = reviewer.escalations();
                if approves { escalations.approve(id, review) } else { escalations.reject(id, review) }.unwrap();
            });
            let done = if approves {
                governor.guard_wait(request, Duration::from_secs(60), |grant| grant.check().map(|()| 7))
            } else {
                block_on(governor.guard_wait_async(request, |_| ready(Ok::<_, GrantError>(7))))
            };
            answering.join().unwrap();
            assert_eq!(done.as_ref().ok().map(|done| done.value), ran.then_some(7), "{done:?}");
            if let Ok(done) = done {
                let record = governor.log().record(&done.decided.enforcement.proof_id).unwrap();
                assert_eq!((record.decision, record.outcome), (Decision::Allow, Some(Outcome::Success)));
            }
        }
    }
}

#[test]
fn a_grant_of_a_closed_governor_is_over() {
    let (governor, _) = allowing();
    let grant = governor.enforce_input("a", TEXT).unwrap().enforcement.grant().unwrap();
    grant.check().unwrap();
    governor.close().unwrap();
    assert_eq!(grant.check(), Err(GrantError::Barred { reason: "the governor was closed".to_owned() }));
}
