//! What a governor knows is the same after it was closed and opened again, with
//! its view or without; and what several threads or a wrong clock do to the
//! order of records.

use crate::common;

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::Barrier;
use std::thread;

use common::{Hand, NOON, SAMPLE_AGENTS, Sample, Still, builder, code, decide, intent, picture, reading};
use rulekeep::agent::AgentState;
use rulekeep::policy::PolicyFormat;
use rulekeep::trust::{Score, TrustSnapshot};
use rulekeep::{Agent, Decision, Durability, Error, Governor, Outcome, PolicySet, ProofQuery, RiskLevel, Tier};
use serde_json::json;

fn nothing_allowed() -> PolicySet {
    let text = "name = \"closed\"\n[[rule]]\nid = \"nothing\"\neffect = \"deny\"\nmatch.capabilities = [\"*:*\"]\n";
    PolicySet::from_toml(text).unwrap()
}

#[allow(clippy::module_inception)] // its tests are filtered by that name
mod restart {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_new_stores_folder_is_private_and_an_old_one_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt;

        let mode = |folder: &Path| fs::metadata(folder).unwrap().permissions().mode() & 0o777;
        let parent = tempfile::tempdir().unwrap();
        let made = parent.path().join("for").join("agents");
        drop(common::in_folder(&made));
        assert_eq!((mode(&made), mode(made.parent().unwrap())), (0o700, 0o700));

        let shared = parent.path().join("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o750)).unwrap();
        drop(common::in_folder(&shared));
        assert_eq!(mode(&shared), 0o750);
    }

    #[test]
    fn everything_is_the_same_with_the_view_and_without() {
        let sample = Sample::new(60);
        for with_view in [true, false] {
            let store = sample.copy();
            if !with_view {
                fs::remove_dir_all(store.path().join("view")).unwrap();
            }
            for time in ["first", "second"] {
                let governor = Sample::builder().open(store.path()).unwrap();
                assert_eq!(picture(&governor, &SAMPLE_AGENTS), sample.picture, "{time} time, view {with_view}");
                governor.close().unwrap();
            }
        }
    }

    #[test]
    fn everything_is_the_same_after_a_drop_without_closing() {
        let folder = tempfile::tempdir().unwrap();
        let governor = common::open_with(Sample::builder(), folder.path());
        for _ in 0..10 {
            decide(&governor, "a");
        }
        let before = picture(&governor, &["a"]);
        drop(governor);
        assert_eq!(picture(&common::open_with(Sample::builder(), folder.path()), &["a"]), before);
    }

    #[test]
    fn agents_come_back_with_score_labels_and_state() {
        let folder = tempfile::tempdir().unwrap();
        let open = || builder().clock(Still::at(NOON)).open(folder.path()).unwrap();
        let governor = open();
        governor
            .agents()
            .register(Agent::new("x").at_score(Score::try_from(777).unwrap()).with_label("z").with_label("b"))
            .unwrap();
        governor.agents().register(Agent::new("unïcode \"agent\"").at_tier(Tier::T0)).unwrap();
        governor.agents().register(Agent::new("out")).unwrap();
        governor.agents().suspend("x", "for a while").unwrap();
        governor.agents().retire("out", "for good").unwrap();
        let before = governor.agents().list();
        governor.close().unwrap();

        let governor = open();
        assert_eq!(governor.agents().list(), before);
        let x = governor.agents().get("x").unwrap();
        assert_eq!(
            (x.trust, x.state),
            (TrustSnapshot::new(Score::try_from(777).unwrap(), Tier::T4), AgentState::Suspended)
        );
        assert_eq!(json!(x.labels), json!(["b", "z"]));
        assert_eq!(governor.enforce(&reading("x")).unwrap().decision, Decision::Deny);
        assert_eq!(code(governor.agents().resume("out", "")), "CONFLICT");
        assert_eq!(code(governor.agents().register(Agent::new("x"))), "CONFLICT");
    }

    #[test]
    fn trust_that_outcomes_moved_comes_back_and_moves_on_from_there() {
        let folder = tempfile::tempdir().unwrap();
        let open = || common::open_with(Sample::builder(), folder.path());
        let governor = open();
        let first = decide(&governor, "a");
        let start = governor.agents().get("a").unwrap().trust.score;
        let after_one = governor.report(&first, Outcome::Failure).unwrap();
        assert!(after_one.score < start, "a failure costs trust");
        governor.close().unwrap();

        let governor = open();
        assert_eq!(governor.agents().get("a").unwrap().trust, after_one);
        let enforced = governor.enforce(&reading("a")).unwrap();
        assert_eq!(enforced.trust_snapshot, after_one);
        assert_eq!(code(governor.report(&first, Outcome::Success)), "CONFLICT");
        assert!(governor.report(&enforced.proof_id, Outcome::Failure).unwrap().score < after_one.score);
    }

    #[test]
    fn a_new_store_starts_with_the_recommended_policies() {
        let folder = tempfile::tempdir().unwrap();
        let recommended = PolicySet::recommended().unwrap().digest();
        for _ in 0..2 {
            let governor = Governor::open(folder.path()).unwrap();
            assert_eq!(governor.policies().current().digest(), recommended);
        }
    }

    #[test]
    fn loaded_policies_are_in_force_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let governor = common::in_folder(folder.path());
        governor.policies().load(nothing_allowed()).unwrap();
        governor.close().unwrap();
        let governor = Governor::open(folder.path()).unwrap();
        assert_eq!(
            (governor.policies().current().digest(), governor.policies().current().name()),
            (nothing_allowed().digest(), "closed")
        );
        assert_eq!(governor.enforce(&reading("a")).unwrap().decision, Decision::Deny);
    }

    #[test]
    fn loaded_policies_of_either_format_come_back() {
        let json = r#"{"name":"as json","rule":[{"id":"r","effect":"deny","match":{"capabilities":["*:*"]}}]}"#;
        for (text, format) in [(json, PolicyFormat::Json), (common::POLICIES, PolicyFormat::Toml)] {
            let folder = tempfile::tempdir().unwrap();
            let set = PolicySet::parse(text, format, "given").unwrap();
            Governor::open(folder.path()).unwrap().policies().load(set.clone()).unwrap();
            assert_eq!(Governor::open(folder.path()).unwrap().policies().current().digest(), set.digest());
        }
    }

    #[test]
    fn the_builders_policies_replace_those_of_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let governor = common::in_folder(folder.path());
        governor.policies().load(nothing_allowed()).unwrap();
        drop(governor);
        let governor = common::in_folder(folder.path());
        assert_eq!(governor.policies().current().digest(), common::policies().digest());
        assert_eq!(governor.enforce(&reading("a")).unwrap().decision, Decision::Allow);
        drop(governor);
        assert_eq!(Governor::open(folder.path()).unwrap().policies().current().digest(), common::policies().digest());
    }

    #[test]
    fn each_record_is_decided_by_the_policies_of_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let governor = common::in_folder(folder.path());
        let before = decide(&governor, "a");
        governor.policies().load(nothing_allowed()).unwrap();
        let after = decide(&governor, "a");
        governor.close().unwrap();
        let governor = Governor::open(folder.path()).unwrap();
        let digest = |id| governor.log().evidence(id).unwrap().detail["policyDigest"].clone();
        assert_eq!(digest(&before), json!(common::policies().digest()));
        assert_eq!(digest(&after), json!(nothing_allowed().digest()));
    }

    #[test]
    fn a_store_can_be_moved_to_another_folder() {
        let sample = Sample::new(20);
        let elsewhere = tempfile::tempdir().unwrap();
        let moved = elsewhere.path().join("moved");
        fs::rename(sample.folder(), &moved).unwrap();
        assert_eq!(picture(&Sample::builder().open(&moved).unwrap(), &SAMPLE_AGENTS), sample.picture);
    }

    #[test]
    fn a_buffered_store_that_was_closed_has_lost_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let open = || common::open_with(builder().durability(Durability::Buffered), folder.path());
        let governor = open();
        let ids: Vec<_> = (0..500).map(|_| decide(&governor, "a")).collect();
        governor.close().unwrap();
        let governor = open();
        assert!(ids.iter().all(|id| governor.log().record(id).is_ok()));
        assert_eq!(governor.stats("a", ..).unwrap().total_records, 500);
    }
}

mod clock {
    use super::*;

    fn open(clock: &Hand, folder: &Path) -> Governor {
        let governor = builder().clock(clock.clone()).open(folder).unwrap();
        if governor.agents().get("a").is_err() {
            governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
        }
        governor
    }

    #[test]
    fn timestamps_never_run_backwards_when_the_clock_does() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Hand::at(NOON);
        let governor = open(&clock, folder.path());
        for offset in [0, 5_000, 4_999, -3_600_000, 5_001, -NOON, 6_000] {
            clock.set(NOON + offset);
            decide(&governor, "a");
        }
        let seen: Vec<i64> =
            common::chain(&governor, &["a"]).iter().map(|record| record.timestamp.as_millis() - NOON).collect();
        assert_eq!(seen, [0, 5_000, 5_000, 5_000, 5_001, 5_001, 6_000]);
        assert!(governor.verify().unwrap().valid);
    }

    #[test]
    fn timestamps_never_run_backwards_over_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Hand::at(NOON);
        let governor = open(&clock, folder.path());
        decide(&governor, "a");
        governor.close().unwrap();
        clock.set(NOON - 86_400_000);
        for with_view in [true, false] {
            if !with_view {
                fs::remove_dir_all(folder.path().join("view")).unwrap();
            }
            let governor = open(&clock, folder.path());
            decide(&governor, "a");
            governor.close().unwrap();
        }
        let governor = open(&clock, folder.path());
        let records = common::chain(&governor, &["a"]);
        assert!(records.iter().all(|record| record.timestamp.as_millis() == NOON), "{records:?}");
        assert!(governor.verify().unwrap().valid);
    }

    #[test]
    fn ids_sort_as_the_records_stand_even_when_the_clock_steps_back() {
        let clock = Hand::at(NOON);
        let folder = tempfile::tempdir().unwrap();
        let governor = open(&clock, folder.path());
        let ids: Vec<String> = (0..20)
            .map(|step| {
                clock.set(NOON + if step % 2 == 0 { step * 10 } else { -step * 1_000 });
                decide(&governor, "a").to_string()
            })
            .collect();
        let times: Vec<&str> = ids.iter().map(|id| &id[4..14]).collect();
        assert!(times.is_sorted(), "{times:?}");
    }

    #[test]
    fn an_outcome_reported_by_a_clock_that_stepped_back_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Hand::at(NOON);
        let governor = open(&clock, folder.path());
        let proof_id = decide(&governor, "a");
        clock.set(NOON - 86_400_000);
        governor.report(&proof_id, Outcome::Success).unwrap();
        decide(&governor, "a");
        governor.close().unwrap();
        let governor = open(&clock, folder.path());
        assert_eq!(governor.log().record(&proof_id).unwrap().outcome, Some(Outcome::Success));
        assert!(governor.verify().unwrap().valid);
    }

    #[test]
    fn a_clock_at_either_end_of_time_is_borne() {
        for end in [i64::MIN, -1, 0, i64::MAX] {
            let folder = tempfile::tempdir().unwrap();
            let clock = Hand::at(end);
            let governor = open(&clock, folder.path());
            let proof_id = decide(&governor, "a");
            governor.report(&proof_id, Outcome::Success).unwrap();
            assert_eq!(governor.query(&ProofQuery::entity("a")).unwrap().total, 1, "{end}");
            assert_eq!(governor.stats("a", ..).unwrap().total_records, 1, "{end}");
            assert!(governor.verify().unwrap().valid, "{end}");
            governor.close().unwrap();
            assert!(open(&clock, folder.path()).log().record(&proof_id).is_ok(), "{end}");
        }
    }
}

mod threads {
    use super::*;

    const THREADS: usize = 8;
    const EACH: usize = 200;

    #[test]
    fn decisions_of_many_threads_are_all_there_once_and_linked() {
        let folder = tempfile::tempdir().unwrap();
        let governor = builder().open(folder.path()).unwrap();
        let agents: Vec<String> = (0..THREADS / 2).map(|number| format!("agent-{number}")).collect();
        for agent in &agents {
            governor.agents().register(Agent::new(agent).at_tier(Tier::T4)).unwrap();
        }
        let asked: [&[&str]; 4] =
            [&["document:read"], &["file:delete"], &["email:send"], &["database:read", "database:write"]];
        let start = Barrier::new(THREADS);
        let ids: Vec<_> = thread::scope(|scope| {
            let work = |number: usize| {
                let (governor, start, agent) = (governor.clone(), &start, &agents[number % agents.len()]);
                scope.spawn(move || {
                    start.wait();
                    let decide = |turn: usize| governor.enforce(&intent(agent, asked[turn % 4])).unwrap().proof_id;
                    (0..EACH).map(decide).collect::<Vec<_>>()
                })
            };
            let running: Vec<_> = (0..THREADS).map(work).collect();
            running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });

        let check = |governor: &Governor| {
            assert_eq!(ids.iter().collect::<HashSet<_>>().len(), THREADS * EACH);
            let names: Vec<&str> = agents.iter().map(String::as_str).collect();
            let records = common::chain(governor, &names);
            assert_eq!(records.iter().map(|record| record.id).collect::<HashSet<_>>(), ids.iter().copied().collect());
            assert_eq!(records.len(), THREADS * EACH);
            assert!(records.windows(2).all(|pair| pair[1].previous_hash == pair[0].hash));
            assert!(records.windows(2).all(|pair| pair[1].timestamp >= pair[0].timestamp));
            let verification = governor.verify().unwrap();
            assert_eq!((verification.valid, verification.records), (true, (THREADS * EACH) as u64));
            for name in names {
                let stats = governor.stats(name, ..).unwrap();
                assert_eq!(stats.total_records, 2 * EACH as u64);
                assert!(stats.decision_breakdown.values().all(|count| *count == EACH as u64 / 2), "{stats:?}");
            }
        };
        check(&governor);
        governor.close().unwrap();
        check(&builder().open(folder.path()).unwrap());
    }

    #[test]
    fn of_different_outcomes_at_once_exactly_one_stands() {
        let folder = tempfile::tempdir().unwrap();
        let governor = common::open_with(Sample::builder().durability(Durability::Sync), folder.path());
        for round in 0..40 {
            let proof_id = decide(&governor, "a");
            let before = governor.agents().get("a").unwrap().trust;
            let start = Barrier::new(6);
            let answers: Vec<(Outcome, Result<TrustSnapshot, rulekeep::Error>)> = thread::scope(|scope| {
                let report = |number: usize| {
                    let (governor, start, outcome) = (governor.clone(), &start, Outcome::ALL[number % 3]);
                    scope.spawn(move || {
                        start.wait();
                        (outcome, governor.report(&proof_id, outcome))
                    })
                };
                let running: Vec<_> = (0..6).map(report).collect();
                running.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let standing = governor.log().record(&proof_id).unwrap().outcome.expect("one of them stands");
            let after = governor.agents().get("a").unwrap().trust;
            for (outcome, answer) in answers {
                match answer {
                    Ok(trust) => assert_eq!((outcome, trust), (standing, after), "round {round}"),
                    Err(error) => {
                        assert_eq!(error.code(), "CONFLICT", "round {round}");
                        assert_ne!(outcome, standing, "round {round}");
                    }
                }
            }
            if standing == Outcome::Failure && before.score > Score::MIN {
                assert!(after.score < before.score, "round {round}: a failure that stands costs trust");
            }
        }
        let stats = governor.stats("a", ..).unwrap();
        let reported: u64 = Outcome::ALL
            .iter()
            .map(|outcome| governor.query(&ProofQuery::entity("a").outcome(*outcome)).unwrap().total)
            .sum();
        assert_eq!((stats.total_records, reported), (40, 40));
    }

    #[test]
    fn trust_moves_once_for_each_outcome_that_stands() {
        // The same outcomes, one after the other, in a store of their own: the slow twin.
        let expected = {
            let governor = Sample::builder().open_in_memory().unwrap();
            governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
            let ids: Vec<_> = (0..8).map(|_| decide(&governor, "a")).collect();
            for id in &ids {
                governor.report(id, Outcome::Failure).unwrap();
            }
            governor.agents().get("a").unwrap().trust
        };
        let governor = Sample::builder().open_in_memory().unwrap();
        governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
        let ids: Vec<_> = (0..8).map(|_| decide(&governor, "a")).collect();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for id in &ids {
                        governor.report(id, Outcome::Failure).unwrap();
                    }
                });
            }
        });
        assert_eq!(governor.agents().get("a").unwrap().trust, expected);
    }

    #[test]
    fn of_registrations_of_one_agent_at_once_exactly_one_is_taken() {
        let governor = builder().open_in_memory().unwrap();
        let start = Barrier::new(THREADS);
        let taken: usize = thread::scope(|scope| {
            let register = || {
                start.wait();
                governor.agents().register(Agent::new("a")).is_ok()
            };
            let running: Vec<_> = (0..THREADS).map(|_| scope.spawn(register)).collect();
            running.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum()
        });
        assert_eq!(taken, 1);
    }

    #[test]
    fn a_suspension_holds_for_every_decision_that_begins_after_it() {
        let governor = common::in_memory();
        let start = Barrier::new(5);
        thread::scope(|scope| {
            let decisions = || {
                start.wait();
                // Each thread's own decisions: once one was denied, none is allowed again.
                let mut suspended = false;
                for _ in 0..200 {
                    let decision = match governor.enforce(&reading("a")) {
                        // It was decided before, and not handed out after.
                        Err(Error::Withdrawn { .. }) => continue,
                        decided => decided.unwrap().decision,
                    };
                    assert!(!(suspended && decision == Decision::Allow), "allowed behind a denial");
                    suspended |= decision == Decision::Deny;
                }
            };
            for _ in 0..4 {
                scope.spawn(decisions);
            }
            start.wait();
            governor.agents().suspend("a", "now").unwrap();
            assert_eq!(governor.enforce(&reading("a")).unwrap().decision, Decision::Deny);
        });
    }

    #[test]
    fn what_is_asked_while_others_decide_is_consistent() {
        let governor = common::in_memory();
        thread::scope(|scope| {
            let deciding = scope.spawn(|| {
                for _ in 0..400 {
                    decide(&governor, "a");
                }
            });
            let mut seen = 0;
            while !deciding.is_finished() {
                let stats = governor.stats("a", ..).unwrap();
                assert!(stats.total_records >= seen, "a total went back");
                assert_eq!(stats.decision_breakdown.values().sum::<u64>(), stats.total_records);
                assert_eq!(stats.risk_breakdown[&RiskLevel::Low], stats.total_records);
                seen = stats.total_records;
                let page = governor.query(&ProofQuery::entity("a").page_size(200)).unwrap();
                assert!(page.total >= seen);
                assert!(page.items.windows(2).all(|pair| pair[0].previous_hash == pair[1].hash));
            }
        });
    }

    #[test]
    fn verifying_while_others_decide_finds_nothing_broken() {
        let folder = tempfile::tempdir().unwrap();
        for governor in [common::in_memory(), common::in_folder(folder.path())] {
            thread::scope(|scope| {
                let deciding: Vec<_> = (0..2)
                    .map(|_| scope.spawn(|| (0..200).map(|_| governor.enforce(&reading("a")).map(|_| ())).collect()))
                    .collect();
                while !deciding.iter().all(thread::ScopedJoinHandle::is_finished) {
                    let found = governor.verify().unwrap();
                    assert!(found.valid, "{:?}", found.first_broken);
                }
                let decided: Vec<Result<(), rulekeep::Error>> = deciding
                    .into_iter()
                    .flat_map(|thread: thread::ScopedJoinHandle<'_, Vec<_>>| thread.join().unwrap())
                    .collect();
                assert!(decided.iter().all(Result::is_ok));
            });
            assert_eq!(governor.verify().unwrap().records, 400);
        }
    }

    #[test]
    fn a_decision_is_in_the_next_query_of_its_own_thread() {
        let governor = Sample::builder().open_in_memory().unwrap();
        governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
        for count in 1..=100 {
            let proof_id = decide(&governor, "a");
            let page = governor.query(&ProofQuery::entity("a").page_size(1)).unwrap();
            assert_eq!((page.total, page.items[0].id), (count, proof_id));
        }
    }
}
