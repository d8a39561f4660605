//! Processes that are forked from one that has a governor open: they get an error from every call, and keep nothing.

use crate::common;

use std::fs;
use std::future::Future;
use std::io::Read;
use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use common::{ChildProcess, builder, child_folder, code, decide, journal, reading, say};
use fork::{Fork, fork, waitpid};
use rulekeep::escalation::EscalationQuery;
use rulekeep::event::{EventFilter, Subscription};
use rulekeep::handle::PendingEnforcement;
use rulekeep::kill_switch::KillSwitchScope;
use rulekeep::proof::{ExportRange, ProofId, VerifyOptions};
use rulekeep::status::Health;
use rulekeep::task::TaskRequest;
use rulekeep::{Agent, Durability, Enforcement, Error, Governor, Outcome, PolicySet, ProofQuery, Tier};

fn opened(folder: &Path) -> Governor {
    let governor = builder().durability(Durability::Sync).open(folder).unwrap();
    governor.agents().ensure(Agent::new("a").at_tier(Tier::T4)).unwrap();
    governor
}

/// Waits until the test's process lets this one go on.
fn wait_for_the_test() {
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// What a process had before it forked.
struct Before {
    decided: Enforcement,
    pending: PendingEnforcement,
    awaited: PendingEnforcement,
    events: Subscription,
}

/// Makes every kind of call; returns those that were not refused because of the fork.
fn accepted(governor: &Governor, before: Before) -> Vec<String> {
    let mut accepted = Vec::new();
    let mut note = |call: &str, result: Result<(), Error>| match result {
        Err(error @ Error::OtherProcess { .. }) if error.code() == "STORAGE_UNAVAILABLE" => {}
        result => accepted.push(format!("{call}: {result:?}")),
    };
    let (intent, id) = (reading("a"), before.decided.proof_id);
    note("enforce", governor.enforce(&intent).map(drop));
    note("enforce_input", governor.enforce_input("a", "Read the file notes.txt").map(drop));
    note("enforce_pending", governor.enforce_pending(&intent).map(drop));
    note("parse", governor.parse("a", "Read the file notes.txt").map(drop));
    note("report", governor.report(&id, Outcome::Success).map(drop));
    note("report_unknown", governor.report_unknown(&id, None));
    note("query", governor.query(&ProofQuery::entity("a")).map(drop));
    note("stats", governor.stats("a", ..).map(drop));
    note("verify", governor.verify().map(drop));
    note("verify with options", governor.log().verify(&VerifyOptions::new()).map(drop));
    note("record", governor.log().record(&id).map(drop));
    note("records", governor.log().records(&ProofQuery::all()).next().unwrap().map(drop));
    note("evidence", governor.log().evidence(&id).map(drop));
    note("export", governor.log().export(&ExportRange::all(), &mut Vec::new(), &mut |_, _| {}).map(drop));
    note("flush", governor.log().flush());
    note("register", governor.agents().register(Agent::new("b")).map(drop));
    note("ensure", governor.agents().ensure(Agent::new("a")).map(drop));
    note("get", governor.agents().get("a").map(drop));
    note("suspend", governor.agents().suspend("a", "").map(drop));
    note("load", governor.policies().load(PolicySet::recommended().unwrap()).map(drop));
    note("preview", governor.policies().preview(&intent).map(drop));
    note("kill switch", governor.kill_switch().set(KillSwitchScope::All, "ops", "").map(drop));
    note("escalations", governor.escalations().list(&EscalationQuery::all()).map(drop));
    note("open a task", governor.tasks().open(TaskRequest::new("a", "Read notes.txt")).map(drop));
    note("history", governor.trust().history("a", 1, 1).map(drop));
    note("subscribe", governor.subscribe(&EventFilter::all()).map(drop));
    note("close", governor.close());
    let Before { decided, pending, awaited, mut events } = before;
    note("look at a pending decision", pending.try_result().unwrap().map(drop));
    note("wait for it", pending.wait().map(drop));
    match pin!(awaited).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(settled) => note("await it", settled.map(drop)),
        Poll::Pending => note("await it", Ok(())),
    }
    note("wait for an event", events.wait().map(drop));
    if decided.grant().is_ok() {
        accepted.push("a grant".to_owned());
    }
    let status = governor.status();
    if status.status != Health::Unhealthy || !status.warnings.iter().any(|warning| warning.contains("forked")) {
        accepted.push(format!("status: {status:?}"));
    }
    accepted
}

#[test]
fn child_that_forks_and_decides() {
    let Some(folder) = child_folder() else { return };
    let governor = opened(&folder);
    let ask = || governor.enforce_pending(&reading("a")).unwrap();
    let events = governor.subscribe(&EventFilter::all()).unwrap();
    let before = Before { decided: governor.enforce(&reading("a")).unwrap(), pending: ask(), awaited: ask(), events };
    governor.log().flush().unwrap();
    let written = fs::read(journal(&folder)).unwrap();
    match fork().unwrap() {
        Fork::Child => {
            for line in accepted(&governor, before) {
                say(&line);
            }
            // Its clones are dropped too.
            drop(governor);
            say("dropped");
            std::process::exit(0);
        }
        Fork::Parent(pid) => waitpid(pid).unwrap(),
    };
    assert!(fs::read(journal(&folder)).unwrap() == written, "the forked process wrote");
    for _ in 0..20 {
        say(&format!("decided {}", decide(&governor, "a")));
    }
    assert!(governor.verify().unwrap().valid);
    drop(before);
    governor.close().unwrap();
    say("closed");
}

#[test]
fn a_forked_process_is_refused_and_its_parent_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("store");
    let mut process = ChildProcess::start("forked::child_that_forks_and_decides", &folder);
    assert_eq!(process.heard().as_deref(), Some("dropped"), "every call is refused, and nothing hangs");
    let mut ids: Vec<ProofId> = Vec::new();
    while let Some((_, id)) = process.heard().expect("the parent goes on").split_once(' ') {
        ids.push(id.parse().unwrap());
    }
    let governor = opened(&folder);
    assert!(ids.len() == 20 && ids.iter().all(|id| governor.log().record(id).is_ok()));
    assert_eq!(governor.verify().unwrap().records, 23);
}

/// Forks a process that calls nothing and lives until the test lets it go.
#[test]
fn child_that_forks_and_waits() {
    let Some(folder) = child_folder() else { return };
    let governor = opened(&folder);
    say(&format!("decided {}", decide(&governor, "a")));
    if matches!(fork().unwrap(), Fork::Child) {
        say("forked");
        wait_for_the_test();
        std::process::exit(0);
    }
    // Closing a handle of the file releases the process's lock on it, until it is renewed.
    let _ = fs::read(folder.join("LOCK"));
    wait_for_the_test();
}

#[test]
fn a_forked_process_does_not_keep_a_dead_ones_store() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("store");
    let mut process = ChildProcess::start("forked::child_that_forks_and_waits", &folder);
    // Both processes live as long as this is open.
    let lives = process.child.stdin.take();
    let decided = process.heard().unwrap();
    assert_eq!(process.heard().as_deref(), Some("forked"));
    assert_eq!(code(builder().open(&folder)), "STORAGE_UNAVAILABLE", "its parent has it");
    process.kill();
    let governor = opened(&folder);
    assert!(governor.log().record(&decided.strip_prefix("decided ").unwrap().parse().unwrap()).is_ok());
    decide(&governor, "a");
    assert!(governor.verify().unwrap().valid);
    assert_eq!(code(builder().open(&folder)), "STORAGE_UNAVAILABLE", "this process has it");
    // The forked process ends, and the store is still taken.
    drop(lives);
    assert!(process.heard().is_none());
    assert_eq!(code(builder().open(&folder)), "STORAGE_UNAVAILABLE", "this process has it still");
    governor.close().unwrap();
    opened(&folder);
}

#[test]
fn child_that_closes_beside_a_forked_one() {
    let Some(folder) = child_folder() else { return };
    let governor = opened(&folder);
    if matches!(fork().unwrap(), Fork::Child) {
        wait_for_the_test();
        std::process::exit(0);
    }
    governor.close().unwrap();
    drop(governor);
    say("closed");
    wait_for_the_test();
}

#[test]
fn a_closed_store_is_free_while_a_forked_process_lives() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("store");
    let mut process = ChildProcess::start("forked::child_that_closes_beside_a_forked_one", &folder);
    let lives = process.child.stdin.take();
    assert_eq!(process.heard().as_deref(), Some("closed"));
    let governor = opened(&folder);
    decide(&governor, "a");
    assert!(governor.verify().unwrap().valid);
    drop(lives);
}
