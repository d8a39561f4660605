//! The stop switch: from the moment it is thrown nothing is granted to whom it covers, whatever else goes on.
//!
//! `RULEKEEP_KILL_ROUNDS` sets how often a child process is killed (default 20).

use crate::common;

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use common::{ChildProcess, builder, child_folder, code, in_folder, in_memory, intent, reading, say};
use rulekeep::agent::AgentChange;
use rulekeep::extension::Extension;
use rulekeep::kill_switch::{KillSwitchId, KillSwitchScope};
use rulekeep::proof::{Order, ProofId};
use rulekeep::{Agent, Decision, Durability, Enforcement, Error, Governor, Outcome, ProofQuery, ProofRecord};

fn agent(id: &str) -> KillSwitchScope {
    KillSwitchScope::agent(id).unwrap()
}

fn group(name: &str) -> KillSwitchScope {
    KillSwitchScope::group(name).unwrap()
}

fn enforced(governor: &Governor, agent: &str) -> Enforcement {
    governor.enforce(&reading(agent)).unwrap()
}

fn decision(governor: &Governor, agent: &str) -> Decision {
    enforced(governor, agent).decision
}

/// Every record in the order of the chain.
fn all_records(governor: &Governor) -> Vec<ProofRecord> {
    governor.log().records(&ProofQuery::all().order(Order::OldestFirst)).collect::<Result<_, _>>().unwrap()
}

fn is_open(record: &ProofRecord) -> bool {
    record.decision != Decision::Deny && record.outcome.is_none()
}

#[test]
fn the_stopped_are_denied_and_told_who_stopped_them_and_why() {
    let governor = in_memory();
    governor.agents().register(Agent::new("b")).unwrap();
    let report = governor
        .kill_switch()
        .set(agent("a"), "ann", "it mails key sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
        .unwrap();
    let denied = enforced(&governor, "a");
    assert_eq!(denied.decision, Decision::Deny);
    assert!(denied.granted_capabilities.is_empty());
    for part in ["for agent a was set by ann: it mails key", &report.id.to_string(), "only an operator"] {
        assert!(denied.reasoning.contains(part), "{} lacks {part:?}", denied.reasoning);
    }
    assert!(!denied.reasoning.contains("AAAAAAAA"), "{}", denied.reasoning);
    assert!(!governor.kill_switch().list()[0].note.contains("AAAAAAAA"));
    assert_eq!(governor.log().record(&denied.proof_id).unwrap().reasoning, denied.reasoning);
    assert_eq!(governor.policies().preview(&reading("a")).unwrap().decision, Decision::Deny);
    assert_eq!(decision(&governor, "b"), Decision::Allow);
}

#[test]
fn nothing_is_granted_behind_a_stop_while_64_threads_decide() {
    let governor = builder().auto_register().open_in_memory().unwrap();
    let stopped = AtomicBool::new(false);
    let asked = AtomicUsize::new(0);
    let start = Barrier::new(65);
    let mut after: Vec<Enforcement> = Vec::new();
    let sequence = thread::scope(|scope| {
        let threads: Vec<_> = (0..64)
            .map(|number| {
                let (governor, stopped, start, asked) = (&governor, &stopped, &start, &asked);
                scope.spawn(move || {
                    let agent = format!("agent-{number}");
                    let asks = [reading(&agent), intent(&agent, &["email:send"]), intent(&agent, &["database:write"])];
                    start.wait();
                    let mut after = Vec::new();
                    for round in 0.. {
                        let was_stopped = stopped.load(Ordering::SeqCst);
                        let verdict = governor.enforce(&asks[round % asks.len()]);
                        asked.fetch_add(1, Ordering::Relaxed);
                        let verdict = match verdict {
                            // It was decided before, and not handed out after.
                            Err(Error::Withdrawn { .. }) if !was_stopped => continue,
                            verdict => verdict.unwrap(),
                        };
                        if was_stopped {
                            after.push(verdict);
                            if after.len() == 10 {
                                break;
                            }
                        }
                    }
                    after
                })
            })
            .collect();
        start.wait();
        while asked.load(Ordering::Relaxed) < 1000 {
            thread::yield_now();
        }
        let report = governor.kill_switch().set(KillSwitchScope::All, "ann", "enough").unwrap();
        stopped.store(true, Ordering::SeqCst);
        for thread in threads {
            after.extend(thread.join().unwrap());
        }
        place_of(&governor, report.id)
    });
    assert!(after.iter().all(|verdict| verdict.decision == Decision::Deny));
    let records = all_records(&governor);
    let (before, behind): (Vec<_>, Vec<_>) = records.iter().partition(|record| record.id.sequence().get() < sequence);
    assert!(before.len() >= 1000 && before.iter().any(|record| record.decision == Decision::Allow));
    assert!(behind.len() >= 640);
    for record in behind {
        assert_eq!(record.decision, Decision::Deny, "{} is behind the stop at {sequence}", record.id.sequence());
    }
    assert!(governor.verify().unwrap().valid);
}

/// Where the entry of a stop stands: its state is in the export of all entries.
fn place_of(governor: &Governor, stop: KillSwitchId) -> u64 {
    let mut export = Vec::new();
    governor.log().export(&rulekeep::proof::ExportRange::all().with_entries(), &mut export, &mut |_, _| {}).unwrap();
    let key = format!("stop/{stop}");
    let text = String::from_utf8(export).unwrap();
    let line = text.lines().find(|line| line.contains(&key)).expect("the stop is in the log");
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    line["entry"]["sequence"].as_u64().unwrap_or_else(|| panic!("{line} has no sequence"))
}

#[test]
fn a_kill_switch_of_a_closed_log_holds_and_tells_it_is_unsaved() {
    let folder = tempfile::tempdir().unwrap();
    let governor = in_folder(folder.path());
    governor.close().unwrap();
    let error = governor.kill_switch().set(agent("a"), "ann", "").unwrap_err();
    assert_eq!(error.code(), "STORAGE_UNAVAILABLE");
    assert!(error.to_string().contains("in force, but it is not recorded and is lost on a restart"), "{error}");
    assert_eq!(governor.kill_switch().list().len(), 1);
    // It cannot be lifted unrecorded either.
    assert_eq!(
        code(governor.kill_switch().lift(&governor.kill_switch().list()[0].id, "ann", "")),
        "STORAGE_UNAVAILABLE"
    );
    assert_eq!(governor.kill_switch().list().len(), 1);
    drop(governor);
    assert!(in_folder(folder.path()).kill_switch().list().is_empty());
}

#[test]
fn a_frozen_log_tells_the_same() {
    let governor = in_memory();
    governor.log().freeze("moved").unwrap();
    let error = governor.kill_switch().set(KillSwitchScope::All, "ann", "").unwrap_err();
    assert_eq!(error.code(), "CONFLICT");
    assert!(error.to_string().contains("not recorded"), "{error}");
    assert_eq!(governor.kill_switch().list().len(), 1);
}

#[test]
fn a_stop_and_its_lifting_outlive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let governor = in_folder(folder.path());
    let kept = governor.kill_switch().set(agent("a"), "ann", "why").unwrap().id;
    let lifted = governor.kill_switch().set(group("g"), "bob", "").unwrap().id;
    governor.kill_switch().lift(&lifted, "ann", "again").unwrap();
    let stops = governor.kill_switch().list();
    governor.close().unwrap();
    drop(governor);
    let governor = in_folder(folder.path());
    assert_eq!(governor.kill_switch().list(), stops);
    assert_eq!(governor.kill_switch().list()[0].id, kept);
    assert_eq!(decision(&governor, "a"), Decision::Deny);
    governor.kill_switch().lift(&kept, "ann", "").unwrap();
    drop(governor);
    assert_eq!(decision(&in_folder(folder.path()), "a"), Decision::Allow);
}

#[test]
fn lifting_lets_act_again_unless_another_stop_covers_the_same() {
    let governor = in_memory();
    let first = governor.kill_switch().set(agent("a"), "ann", "one").unwrap().id;
    let second = governor.kill_switch().set(agent("a"), "bob", "two").unwrap().id;
    let all = governor.kill_switch().set(KillSwitchScope::All, "cal", "three").unwrap().id;
    assert!(enforced(&governor, "a").reasoning.contains("for every agent was set by cal"));
    governor.kill_switch().lift(&all, "cal", "").unwrap();
    assert!(enforced(&governor, "a").reasoning.contains("by ann"));
    governor.kill_switch().lift(&first, "cal", "").unwrap();
    assert!(enforced(&governor, "a").reasoning.contains("by bob"));
    governor.kill_switch().lift(&second, "cal", "").unwrap();
    assert_eq!(decision(&governor, "a"), Decision::Allow);
    assert!(governor.kill_switch().list().is_empty());
    assert_eq!(code(governor.kill_switch().lift(&first, "cal", "")), "CONFLICT");
}

#[test]
fn lifting_does_not_resume_a_suspended_agent_nor_the_reverse() {
    let governor = in_memory();
    let stop = governor.kill_switch().set(agent("a"), "ann", "").unwrap().id;
    governor.agents().suspend("a", "").unwrap();
    governor.agents().resume("a", "").unwrap();
    assert!(enforced(&governor, "a").reasoning.contains("kill switch"));
    governor.agents().suspend("a", "").unwrap();
    governor.kill_switch().lift(&stop, "ann", "").unwrap();
    assert!(enforced(&governor, "a").reasoning.contains("suspended"));
    governor.agents().resume("a", "").unwrap();
    assert_eq!(decision(&governor, "a"), Decision::Allow);
}

#[test]
fn a_group_is_stopped_with_joiners_and_without_leavers() {
    let governor = builder().open_in_memory().unwrap();
    governor.agents().register(Agent::new("in").in_group("g").in_group("h")).unwrap();
    governor.agents().register(Agent::new("out")).unwrap();
    governor.kill_switch().set(group("g"), "ann", "").unwrap();
    assert_eq!((decision(&governor, "in"), decision(&governor, "out")), (Decision::Deny, Decision::Allow));
    governor.agents().update("in", AgentChange::new().groups(["h"]), "").unwrap();
    governor.agents().update("out", AgentChange::new().groups(["g"]), "").unwrap();
    assert_eq!((decision(&governor, "in"), decision(&governor, "out")), (Decision::Allow, Decision::Deny));
    governor.agents().register(Agent::new("new").in_group("g")).unwrap();
    assert_eq!(decision(&governor, "new"), Decision::Deny);
}

#[test]
fn an_agent_is_stopped_that_is_not_registered_yet() {
    let governor = builder().auto_register().open_in_memory().unwrap();
    governor.kill_switch().set(agent("later"), "ann", "known from elsewhere").unwrap();
    assert_eq!(governor.policies().preview(&reading("later")).unwrap().decision, Decision::Deny);
    assert_eq!(decision(&governor, "later"), Decision::Deny);
    assert_eq!(decision(&governor, "other"), Decision::Allow);
}

#[test]
fn what_is_open_is_what_a_scan_finds() {
    let governor = builder().durability(Durability::Buffered).open_in_memory().unwrap();
    for (number, groups) in [&["g"][..], &[], &["g", "h"], &["h"]].into_iter().enumerate() {
        let agent = groups.iter().fold(Agent::new(number.to_string()), |agent, group| agent.in_group(*group));
        governor.agents().register(agent).unwrap();
    }
    let asked = [&["document:read"][..], &["email:send"], &["file:delete"], &["database:read", "database:write"]];
    for number in 0..600_usize {
        let verdict = governor.enforce(&intent(&(number % 4).to_string(), asked[number / 4 % 4])).unwrap();
        if number % 5 < 2 {
            governor.report(&verdict.proof_id, Outcome::ALL[number % 2]).unwrap();
        }
    }
    let scopes: [(KillSwitchScope, &[&str]); 4] = [
        (KillSwitchScope::All, &["0", "1", "2", "3"]),
        (agent("1"), &["1"]),
        (group("g"), &["0", "2"]),
        (group("nobody"), &[]),
    ];
    for (scope, agents) in scopes {
        let mut open: Vec<ProofRecord> = all_records(&governor)
            .into_iter()
            .filter(|record| is_open(record) && agents.contains(&record.entity_id.as_str()))
            .collect();
        open.reverse();
        let expected: Vec<ProofId> = open.iter().map(|record| record.id).collect();
        let mut paged = Vec::new();
        for page in 1.. {
            let found = governor.kill_switch().open_actions(&scope, page, 37).unwrap();
            assert_eq!(found.total, expected.len() as u64, "{scope}");
            paged.extend(found.items.iter().map(|record| record.id));
            if !found.has_more {
                break;
            }
        }
        assert_eq!(paged, expected, "{scope}");
        let report = governor.kill_switch().set(scope.clone(), "ann", "").unwrap();
        // What waited for a person waits no more.
        let (waiting, granted): (Vec<_>, Vec<_>) =
            open.into_iter().partition(|record| record.decision == Decision::Escalate);
        assert_eq!((report.open_total, report.died), (granted.len() as u64, waiting.len() as u64), "{scope}");
        let told: Vec<ProofId> = report.open.iter().map(|record| record.id).collect();
        assert_eq!(told, granted.iter().map(|record| record.id).collect::<Vec<_>>(), "{scope}");
        for record in waiting {
            let answers: Vec<_> =
                all_records(&governor).into_iter().filter(|answer| answer.resolves == Some(record.id)).collect();
            assert_eq!(answers.iter().map(|answer| answer.decision).collect::<Vec<_>>(), [Decision::Deny]);
        }
    }
    for (page, size) in [(0, 10), (1, 0), (1, 201)] {
        assert_eq!(code(governor.kill_switch().open_actions(&KillSwitchScope::All, page, size)), "INVALID_QUERY");
    }
    let records = all_records(&governor);
    let open: BTreeSet<ProofId> =
        governor.log().records(&ProofQuery::all().open()).map(|record| record.unwrap().id).collect();
    assert_eq!(open, records.iter().filter(|record| is_open(record)).map(|record| record.id).collect());
}

#[test]
fn a_report_shows_the_newest_thousand_and_counts_all() {
    let governor = builder().durability(Durability::Buffered).open_in_memory().unwrap();
    governor.agents().register(Agent::new("a")).unwrap();
    let ids: Vec<ProofId> = (0..1100).map(|_| enforced(&governor, "a").proof_id).collect();
    let last = ids[1099];
    let report = governor.kill_switch().set(agent("a"), "ann", "").unwrap();
    assert_eq!((report.open.len(), report.open_total, report.open[0].id), (1000, 1100, last));
}

#[test]
fn a_malformed_stop_stops_nothing() {
    let governor = in_memory();
    for by in ["", "  ", "a\nb", &"a".repeat(257)] {
        assert_eq!(code(governor.kill_switch().set(KillSwitchScope::All, by, "")), "INVALID_INPUT");
    }
    assert_eq!(code(governor.kill_switch().set(KillSwitchScope::All, "ann", &"n".repeat(4097))), "INVALID_INPUT");
    assert!(KillSwitchScope::agent("").is_err() && KillSwitchScope::group("a b").is_err());
    assert!(governor.kill_switch().list().is_empty());
    assert_eq!(decision(&governor, "a"), Decision::Allow);
}

#[test]
fn a_suspension_that_cannot_be_recorded_is_in_force_and_says_so() {
    let governor = in_memory();
    governor.close().unwrap();
    let error = governor.agents().suspend("a", "").unwrap_err();
    assert_eq!(error.code(), "STORAGE_UNAVAILABLE");
    assert!(error.to_string().contains("denied everything, but its suspension is not recorded"), "{error}");
}

fn rounds() -> usize {
    std::env::var("RULEKEEP_KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(20)
}

/// Decides in four threads and stops one agent after the other, until this process is killed.
#[test]
fn child_that_stops() {
    let Some(folder) = child_folder() else { return };
    let governor = builder().auto_register().open(folder).expect("the folder opens");
    say("open");
    thread::scope(|scope| {
        for number in 0..4 {
            let governor = governor.clone();
            scope.spawn(move || {
                for name in 0.. {
                    let _ = governor.enforce(&reading(&format!("{number}-{}", name % 50)));
                }
            });
        }
        for number in 0.. {
            let scope = [agent(&format!("{}-{}", number % 4, number % 50)), group(&format!("g-{number}"))];
            let id =
                governor.kill_switch().set(scope[number % 2].clone(), "ann", "again").expect("a stop is recorded").id;
            say(&format!("stopped {id}"));
            if number % 3 == 0 {
                governor.kill_switch().lift(&id, "ann", "").expect("a stop is lifted");
                say(&format!("lifted {id}"));
            }
        }
    });
}

#[test]
fn every_acknowledged_stop_holds_after_a_kill_and_no_lifted_one() {
    let folder = tempfile::tempdir().unwrap();
    let (mut on, mut off) = (BTreeSet::<KillSwitchId>::new(), BTreeSet::<KillSwitchId>::new());
    for round in 0..rounds() {
        let mut child = ChildProcess::start("stop::child_that_stops", folder.path());
        let mut note = |said: &str| match said.split(' ').collect::<Vec<_>>()[..] {
            ["stopped", id] => drop(on.insert(id.parse().unwrap())),
            ["lifted", id] => drop((on.remove(&id.parse().unwrap()), off.insert(id.parse().unwrap()))),
            _ => assert_eq!(said, "open"),
        };
        for _ in 0..=[1, 6, 2, 17, 4][round % 5] {
            note(&child.heard().expect("the child goes on until it is killed"));
        }
        child.kill();
        while let Some(said) = child.heard() {
            note(&said);
        }
        let governor = builder().open(folder.path()).unwrap();
        assert!(governor.verify().unwrap().valid, "round {round}");
        let found: BTreeSet<KillSwitchId> = governor.kill_switch().list().iter().map(|stop| stop.id).collect();
        // The last one may have been lifted and not said so.
        let missing: Vec<_> = on.difference(&found).collect();
        assert!(missing.len() <= 1, "round {round}: {missing:?} are gone");
        on.retain(|id| found.contains(id));
        assert!(found.is_disjoint(&off), "round {round}: one that was lifted is in force");
        for stop in governor.kill_switch().list() {
            if let KillSwitchScope::Agent(agent) = &stop.scope
                && governor.agents().get(agent.as_str()).is_ok()
            {
                assert_eq!(decision(&governor, agent.as_str()), Decision::Deny, "round {round}");
            }
        }
    }
    assert!(!on.is_empty() && !off.is_empty());
}

#[test]
fn only_an_organisations_order_lifts_what_the_organisation_set() {
    let folder = tempfile::tempdir().unwrap();
    let governor = in_folder(folder.path());
    let order = Extension::of(&governor).set_kill_switch(agent("a"), "ann", "wrong payees").unwrap();
    assert_eq!(governor.kill_switch().list()[0].by, "organisation/ann");
    let denied = enforced(&governor, "a");
    assert_eq!(denied.decision, Decision::Deny);
    assert!(denied.reasoning.ends_with("only an order of the organisation can lift it."), "{}", denied.reasoning);
    let refused = governor.kill_switch().lift(&order.id, "bob", "").unwrap_err();
    let told =
        format!("the kill switch {} was set by the organisation; only an order of the organisation lifts it", order.id);
    assert!(refused.code() == "CONFLICT" && refused.to_string().contains(&told), "{refused}");
    governor.close().unwrap();
    drop(governor);

    let governor = in_folder(folder.path());
    assert_eq!(code(governor.kill_switch().lift(&order.id, "bob", "")), "CONFLICT", "also after a restart");
    Extension::of(&governor).lift_kill_switch(&order.id, "ann", "corrected").unwrap();
    assert_eq!(decision(&governor, "a"), Decision::Allow);
}

#[test]
fn governor_and_organisation_do_not_speak_for_each_other() {
    let governor = in_memory();
    let local = governor.kill_switch().set(agent("a"), "ann", "").unwrap();
    assert_eq!(code(governor.kill_switch().set(agent("a"), " organisation/ann", "")), "INVALID_INPUT");
    assert_eq!(code(governor.kill_switch().lift(&local.id, "organisation/ann", "")), "INVALID_INPUT");
    assert_eq!(code(Extension::of(&governor).lift_kill_switch(&local.id, "ann", "")), "CONFLICT");
    governor.kill_switch().lift(&local.id, "ann", "").unwrap();
}
