//! Decisions whose commit stalls: what is stopped meanwhile is not handed out when the disk goes on.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use crate::escalation::{EscalationId, Review};
use crate::extension::{Extension, Permit};
use crate::kill_switch::KillSwitchScope;
use crate::model::{Error, Input};
use crate::proof::ExportRange;
use crate::store::MemoryFiles;
use crate::store::faulty::{Counted, Fault, FaultyFiles};
use crate::system::{Clock, Timestamp};
use crate::task::TaskRequest;
use crate::{Agent, Decision, Enforcement, Governor, GovernorBuilder, Intent, PolicySet, RiskLevel, Tier};

type Disk = Arc<FaultyFiles<MemoryFiles>>;

const POLICIES: &str = r#"
name = "stall"
[[rule]]
id = "all"
effect = "allow"
match.capabilities = ["*:*"]
[[rule]]
id = "money"
effect = "escalate"
match.capabilities = ["payment:transfer"]
reviewer = "ann"
"#;

fn opened(builder: GovernorBuilder) -> (Governor, Disk) {
    let disk = Arc::new(FaultyFiles::new(MemoryFiles::new(), Fault::Once, Counted::Changes, i64::MAX));
    let builder = builder.policies(PolicySet::from_toml(POLICIES).unwrap());
    let governor = builder.open_files(Arc::clone(&disk) as _).unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    (governor, disk)
}

fn asking(capability: &str) -> Intent {
    Intent::new("a", "do_it", RiskLevel::Low, [capability]).unwrap()
}

/// Runs `decide` on a disk that stalls; once its entry is enqueued and `stop` is in force, the disk goes on.
fn stalled<T: Send>(
    (governor, disk): &(Governor, Disk),
    decide: impl FnOnce(&Governor) -> T + Send,
    stop: impl FnOnce(&Governor) + Send,
    is_stopped: impl Fn(&Governor) -> bool,
) -> T {
    thread::scope(|scope| {
        let (stall, next) = (disk.stall(), Extension::of(governor).next_entry());
        let decided = scope.spawn(|| decide(governor));
        while Extension::of(governor).next_entry() == next {
            thread::yield_now();
        }
        let stopping = scope.spawn(|| stop(governor));
        while !is_stopped(governor) {
            thread::yield_now();
        }
        drop(stall);
        stopping.join().unwrap();
        decided.join().unwrap()
    })
}

/// Stops agent `a` by a kill switch while `decide` waits for the disk.
fn killed<T: Send>(opened: &(Governor, Disk), decide: impl FnOnce(&Governor) -> T + Send) -> T {
    let kill = |governor: &Governor| drop(governor.kill_switch().set(agent(), "ops", "incident").unwrap());
    stalled(opened, decide, kill, |governor| !governor.kill_switch().list().is_empty())
}

fn agent() -> KillSwitchScope {
    KillSwitchScope::Agent("a".parse().unwrap())
}

#[track_caller]
fn assert_withdrawn<T: std::fmt::Debug>(governor: &Governor, result: Result<T, Error>, why: &str) {
    let error = result.unwrap_err();
    let Error::Withdrawn { proof_id, .. } = &error else { panic!("{error:?}") };
    assert_eq!((error.code(), error.http_status()), ("CONFLICT", 409));
    assert_eq!(error.details().unwrap()["proofId"], proof_id.to_string());
    assert!(error.to_string().contains(why), "{error}");
    // The record stays, with the outcome UNKNOWN.
    let record = governor.log().record(proof_id).unwrap();
    assert_eq!((record.decision, record.outcome), (Decision::Allow, None));
    let mut export = Vec::new();
    governor.log().export(&ExportRange::all().with_entries(), &mut export, &mut |_, _| {}).unwrap();
    let unknown = |line: &&str| line.contains("unknown_outcome") && line.contains(&proof_id.to_string());
    assert!(String::from_utf8(export).unwrap().lines().any(|line| unknown(&line)), "UNKNOWN is not on record");
    assert!(governor.verify().unwrap().valid);
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return done;
        }
        thread::yield_now();
    }
}

#[test]
fn no_decision_outlives_a_kill_switch_during_a_stall() {
    type Decide = fn(&Governor) -> Result<Enforcement, Error>;
    let ways: [(&str, Decide); 6] = [
        ("enforce", |governor| governor.enforce(&asking("document:read"))),
        ("input", |governor| Ok(governor.enforce_input("a", Input::new("Read the file notes.txt"))?.enforcement)),
        ("wait", |governor| governor.enforce_pending(&asking("document:read"))?.wait()),
        ("await", |governor| block_on(governor.enforce_pending(&asking("document:read"))?)),
        ("look", |governor| {
            let pending = governor.enforce_pending(&asking("document:read"))?;
            loop {
                if let Some(settled) = pending.try_result() {
                    return settled;
                }
                thread::yield_now();
            }
        }),
        ("wait for an answer", |governor| {
            governor.escalations().enforce_or_wait(&asking("document:read"), Duration::ZERO)
        }),
    ];
    for (way, decide) in ways {
        let opened = opened(Governor::builder());
        let decided = killed(&opened, decide);
        assert!(decided.is_err(), "{way}: {decided:?}");
        assert_withdrawn(&opened.0, decided, "kill switch");
    }
}

#[test]
fn no_guarded_work_runs_if_a_kill_switch_comes_during_a_stall() {
    let opened = opened(Governor::builder());
    let ran = killed(&opened, |governor| governor.guard("a", "Read the file notes.txt", |_| Ok::<_, ()>(())).is_ok());
    assert!(!ran);
}

#[test]
fn no_task_call_outlives_a_kill_switch_during_a_stall() {
    let opened = opened(Governor::builder());
    let task = opened.0.tasks().open(TaskRequest::new("a", "Read the file notes.txt")).unwrap();
    let decided = killed(&opened, |_| task.enforce_input("Read the file notes.txt"));
    assert_withdrawn(&opened.0, decided, "kill switch");
}

#[test]
fn no_claim_outlives_a_kill_switch_during_a_stall() {
    for is_async in [false, true] {
        let opened = opened(Governor::builder());
        let asked = opened.0.enforce(&asking("payment:transfer")).unwrap();
        assert_eq!(asked.decision, Decision::Escalate);
        let id = EscalationId::of(asked.proof_id);
        opened.0.escalations().approve(id, Review::by("ann")).unwrap();
        let claimed = killed(&opened, |governor| {
            let intent = asking("payment:transfer");
            if is_async {
                return block_on(governor.escalations().claim_async(id, &intent)?);
            }
            governor.escalations().claim(id, &intent)
        });
        assert_withdrawn(&opened.0, claimed, "kill switch");
    }
}

#[test]
fn no_decision_outlives_a_suspension_during_a_stall() {
    let opened = opened(Governor::builder());
    let suspend = |governor: &Governor| drop(governor.agents().suspend("a", "found out").unwrap());
    let is_held = |governor: &Governor| governor.inner.roster.stops.load().held().next().is_some();
    let decided = stalled(&opened, |governor| governor.enforce(&asking("document:read")), suspend, is_held);
    assert_withdrawn(&opened.0, decided, "suspended");
}

#[test]
fn a_kill_switch_for_others_spares_a_stalled_decision() {
    let opened = opened(Governor::builder());
    let other = KillSwitchScope::Agent("b".parse().unwrap());
    let kill = |governor: &Governor| drop(governor.kill_switch().set(other, "ops", "").unwrap());
    let is_set = |governor: &Governor| !governor.kill_switch().list().is_empty();
    let decided = stalled(&opened, |governor| governor.enforce(&asking("document:read")), kill, is_set);
    assert_eq!(decided.unwrap().decision, Decision::Allow);
}

/// A machine whose clocks stand still until a test moves them.
#[derive(Clone)]
struct Machine(Arc<AtomicI64>);

impl Clock for Machine {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + self.0.load(Ordering::SeqCst))
    }

    fn since_boot(&self) -> Option<Duration> {
        Some(Duration::from_millis(self.0.load(Ordering::SeqCst).unsigned_abs()))
    }
}

#[test]
fn no_decision_outlives_its_permit_during_a_stall() {
    let machine = Machine(Arc::default());
    let opened = opened(Governor::builder().clock(machine.clone()));
    let extension = Extension::of(&opened.0);
    extension.require_permit().unwrap();
    let (until, wall) = (Duration::from_secs(5), Timestamp::from_millis(machine.now().as_millis() + 5_000));
    let later = |wall: Timestamp| Timestamp::from_millis(wall.as_millis() + 5_000);
    let permit = Permit { until, offline_until: until * 2, wall_until: wall, offline_wall_until: later(wall) };
    extension.grant_permit(permit);
    let end = |_: &Governor| machine.0.store(6_000, Ordering::SeqCst);
    let has_ended = |_: &Governor| machine.0.load(Ordering::SeqCst) > 5_000;
    let decided = stalled(&opened, |governor| governor.enforce(&asking("document:write")), end, has_ended);
    assert_withdrawn(&opened.0, decided, "no permit of its organisation");
    machine.0.store(0, Ordering::SeqCst);
    // A LOW-risk read lasts through the offline term.
    let read = stalled(&opened, |governor| governor.enforce(&asking("document:read")), end, has_ended);
    assert_eq!(read.unwrap().decision, Decision::Allow);
}
