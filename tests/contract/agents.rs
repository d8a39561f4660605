//! The registry: what is said of agents, who changes it, and agents as lines of text.

use crate::common;

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use common::{Hand, NOON, Still, builder, code, error, reading};
use rulekeep::agent::{AgentChange, AgentInfo, AgentState, Label, Observability};
use rulekeep::event::{EventFilter, EventType};
use rulekeep::trust::Score;
use rulekeep::{Agent, Decision, Durability, Error, Governor, Outcome, PolicySet, ProofQuery, Tier};
use serde_json::{Value, json};

const DAY: i64 = 86_400_000;

fn score(value: i64) -> Score {
    Score::saturating(value)
}

fn registered(governor: &Governor, agent: Agent) -> AgentInfo {
    governor.agents().register(agent).unwrap()
}

fn exported(governor: &Governor) -> String {
    let mut lines = Vec::new();
    governor.agents().export(&mut lines).unwrap();
    String::from_utf8(lines).unwrap()
}

#[test]
fn an_agents_fields_are_kept_changed_and_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let open = || builder().clock(Still::at(NOON)).open(folder.path()).unwrap();
    let governor = open();
    let agent = Agent::new("a").at_tier(Tier::T2).with_label("l").in_group("g").with_attribute("team", "blue");
    let agent = agent.owned_by("ann").with_ceiling(score(700)).with_observability(Observability::WhiteBox);
    let first = registered(&governor, agent);
    assert_eq!((first.owner.as_deref(), first.ceiling), (Some("ann"), Some(score(700))));
    assert_eq!(first.observability, Some(Observability::WhiteBox));

    let change = AgentChange::new().owner("bob").labels(["m", "l"]).without_observability();
    let second = governor.agents().update("a", change, "moved to bob").unwrap();
    assert_eq!((second.owner.as_deref(), second.observability), (Some("bob"), None));
    assert_eq!(second.labels.iter().map(Label::as_str).collect::<Vec<_>>(), ["l", "m"]);
    assert_eq!((&second.groups, &second.attributes, second.ceiling), (&first.groups, &first.attributes, first.ceiling));
    assert_eq!((second.trust, second.state), (first.trust, first.state));
    assert_eq!(governor.agents().get("a").unwrap(), second);
    drop(governor);
    let governor = open();
    assert_eq!(governor.agents().get("a").unwrap(), second);
    let bare = AgentChange::new().without_owner().without_ceiling().labels([""; 0]).groups([""; 0]);
    let mut bare = governor.agents().update("a", bare.attributes(serde_json::Map::new()), "").unwrap();
    registered(&governor, Agent::new("plain").at_tier(Tier::T2));
    let plain = governor.agents().get("plain").unwrap();
    bare.agent_id = plain.agent_id.clone();
    assert_eq!(bare, plain);
}

#[test]
fn policies_see_a_change_from_the_next_decision_on() {
    let policies = r#"
        name = "blue"
        [[rule]]
        id = "only-the-blue-ones"
        effect = "allow"
        match.labels = ["blue"]
    "#;
    let governor = Governor::builder().policies(PolicySet::from_toml(policies).unwrap()).open_in_memory().unwrap();
    registered(&governor, Agent::new("a"));
    assert_eq!(governor.enforce(&reading("a")).unwrap().decision, Decision::Deny);
    governor.agents().update("a", AgentChange::new().labels(["blue"]), "").unwrap();
    assert_eq!(governor.enforce(&reading("a")).unwrap().decision, Decision::Allow);
}

#[test]
fn no_new_agent_looks_like_another_for_what_nobody_sees() {
    let governor = builder().auto_register().open_in_memory().unwrap();
    for id in [" a", "a ", "a\u{a0}", "\u{200b}a", "b\u{202e}a", "a\u{ad}"] {
        for refused in [
            error(governor.agents().register(Agent::new(id))),
            error(governor.agents().ensure(Agent::new(id))),
            error(governor.enforce(&reading(id))),
        ] {
            assert_eq!(refused.code(), "INVALID_INPUT", "{id:?}");
            assert!(refused.to_string().contains("invisible"), "{refused}");
        }
    }
    assert_eq!(governor.agents().list().len(), 0);
}

#[test]
fn a_malformed_agent_or_change_is_refused_and_changes_nothing() {
    let governor = builder().open_in_memory().unwrap();
    let before = registered(&governor, Agent::new("a").owned_by("ann"));
    let long = "o".repeat(257);
    for owner in ["", " ", "a\tb", &long] {
        assert_eq!(code(governor.agents().register(Agent::new("b").owned_by(owner))), "INVALID_INPUT");
        assert_eq!(code(governor.agents().update("a", AgentChange::new().owner(owner), "")), "INVALID_INPUT");
    }
    for change in [
        AgentChange::new().labels(["a b"]),
        AgentChange::new().groups(vec!["g"; 65]),
        AgentChange::new().attributes([("big".to_owned(), Value::from("x".repeat(5000)))].into_iter().collect()),
    ] {
        assert_eq!(code(governor.agents().update("a", change, "")), "INVALID_INPUT");
    }
    assert_eq!(code(governor.agents().update("a", AgentChange::new(), &"n".repeat(4097))), "INVALID_INPUT");
    assert_eq!(code(governor.agents().update("nobody", AgentChange::new(), "")), "AGENT_NOT_FOUND");
    assert_eq!(governor.agents().list(), [before]);
    assert!(registered(&governor, Agent::new("b").owned_by("o".repeat(256))).owner.is_some());
}

#[test]
fn nobody_is_registered_above_a_ceiling() {
    let governor = builder().open_in_memory().unwrap();
    let caps = [(Observability::BlackBox, 600), (Observability::GreyBox, 800), (Observability::WhiteBox, 1000)];
    for (observability, most) in caps {
        let at = |value: i64| Agent::new(format!("{observability}-{value}")).at_score(score(value));
        assert!(governor.agents().register(at(most).with_observability(observability)).is_ok());
        if most < 1000 {
            let refused = error(governor.agents().register(at(most + 1).with_observability(observability)));
            assert!(matches!(refused, Error::InvalidInput { field: "score", .. }), "{refused}");
            assert!(
                refused.to_string().contains(&format!("the ceiling for its observability {observability}")),
                "{refused}"
            );
        }
    }
    // The lower of the two counts, whichever it is.
    let both = |own: i64, value: i64| {
        let agent = Agent::new(format!("both-{own}-{value}")).at_score(score(value)).with_ceiling(score(own));
        governor.agents().register(agent.with_observability(Observability::BlackBox)).is_ok()
    };
    assert_eq!([both(500, 500), both(500, 501), both(700, 600), both(700, 601)], [true, false, true, false]);
}

#[test]
fn a_lowered_ceiling_takes_the_score_down_at_once_and_tells_why() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Hand::at(NOON);
    let open = || builder().clock(clock.clone()).open(folder.path()).unwrap();
    let governor = open();
    registered(&governor, Agent::new("a").at_score(score(900)));
    let mut events = governor.subscribe(&EventFilter::all().of_type(EventType::ScoreChanged)).unwrap();
    let capped = governor.agents().update("a", AgentChange::new().ceiling(score(610)), "audit").unwrap();
    assert_eq!((capped.trust.score, capped.trust.tier), (score(610), Tier::T3));
    assert_eq!(governor.enforce(&reading("a")).unwrap().trust_snapshot, capped.trust);
    governor.log().flush().unwrap();
    let told = json!(events.wait().unwrap().expect("the drop is told"));
    assert_eq!((&told["data"]["from"], &told["data"]["to"]), (&json!(900), &json!(610)), "{told}");

    let boxed = AgentChange::new().observability(Observability::BlackBox);
    assert_eq!(governor.agents().update("a", boxed, "").unwrap().trust.score, score(600));
    // Raised again, nothing comes back; and a success does not pass it.
    let raised = AgentChange::new().without_ceiling();
    assert_eq!(governor.agents().update("a", raised, "").unwrap().trust.score, score(600));
    for day in 1..10 {
        clock.set(NOON + day * DAY);
        let proof = governor.enforce(&reading("a")).unwrap().proof_id;
        assert!(governor.report(&proof, Outcome::Success).unwrap().score <= score(600));
    }
    drop(governor);
    assert_eq!(open().agents().get("a").unwrap().trust.score, score(600));
}

#[test]
fn an_agent_is_registered_once_however_many_threads_try() {
    for auto in [false, true] {
        let governor = if auto { builder().auto_register() } else { builder() };
        let governor = governor.open_in_memory().unwrap();
        let (won, lost, start) = (AtomicUsize::new(0), AtomicUsize::new(0), Barrier::new(64));
        thread::scope(|scope| {
            for number in 0..64 {
                let (governor, won, lost, start) = (&governor, &won, &lost, &start);
                scope.spawn(move || {
                    start.wait();
                    for round in 0..10 {
                        let id = format!("agent-{round}");
                        if auto && number % 2 == 0 {
                            governor.enforce(&reading(&id)).unwrap();
                            continue;
                        }
                        match governor.agents().register(Agent::new(id)) {
                            Ok(_) => won.fetch_add(1, Ordering::Relaxed),
                            Err(error) if error.code() == "CONFLICT" => lost.fetch_add(1, Ordering::Relaxed),
                            Err(error) => panic!("{error}"),
                        };
                    }
                });
            }
        });
        let (won, lost) = (won.into_inner(), lost.into_inner());
        if auto {
            assert!(won <= 10 && won + lost == 320);
        } else {
            assert_eq!((won, lost), (10, 630));
        }
        assert_eq!((governor.agents().list().len(), governor.status().metrics.active_agents), (10, 10));
    }
}

/// What the operators of one agent have done, one after another.
fn operate(governor: &Governor, name: &str, rounds: usize) -> (Vec<String>, AgentState) {
    let mut state = AgentState::Active;
    let mut labels = Vec::new();
    registered(governor, Agent::new(name).owned_by("ann"));
    for round in 0..rounds {
        match round % 4 {
            0 => {
                labels = vec![format!("round-{round}")];
                governor.agents().update(name, AgentChange::new().labels(labels.clone()), "").unwrap();
            }
            1 => state = governor.agents().suspend(name, "").unwrap().state,
            2 => assert_eq!(governor.enforce(&reading(name)).unwrap().decision, Decision::Deny),
            _ => {
                state = governor.agents().resume(name, "").unwrap().state;
                assert_eq!(governor.enforce(&reading(name)).unwrap().decision, Decision::Allow);
            }
        }
    }
    (labels, state)
}

#[test]
fn changes_to_agents_by_64_threads_are_exact_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let open = || builder().clock(Still::at(NOON)).durability(Durability::Buffered).open(folder.path()).unwrap();
    let other = builder().open_in_memory().unwrap();
    for number in 0..40 {
        registered(&other, Agent::new(format!("imported-{number:02}")).in_group("imports"));
    }
    let lines = exported(&other);
    let governor = open();
    let start = Barrier::new(64);
    let imported = AtomicUsize::new(0);
    let expected = thread::scope(|scope| {
        let threads: Vec<_> = (0..64_usize)
            .map(|number| {
                let (governor, start, lines, imported) = (&governor, &start, &lines, &imported);
                scope.spawn(move || {
                    let name = format!("agent-{number:02}");
                    start.wait();
                    match number % 8 {
                        6 => {
                            let import = governor.agents().import(&mut lines.as_bytes()).unwrap();
                            assert_eq!(import.registered + import.skipped, 40);
                            imported.fetch_add(usize::try_from(import.registered).unwrap(), Ordering::Relaxed);
                            None
                        }
                        7 => {
                            for _ in 0..20 {
                                let listed = governor.agents().list();
                                assert!(listed.is_sorted_by(|a, b| a.agent_id < b.agent_id));
                                assert!(exported(governor).lines().count() > listed.len());
                            }
                            None
                        }
                        _ => Some((name.clone(), operate(governor, &name, 10 + number % 4))),
                    }
                })
            })
            .collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(imported.into_inner(), 40, "each was registered by one import");
    let before = governor.agents().list();
    assert_eq!(before.len(), 48 + 40);
    for (name, (labels, state)) in &expected {
        let info = governor.agents().get(name).unwrap();
        assert_eq!(info.labels.iter().map(ToString::to_string).collect::<Vec<_>>(), *labels, "{name}");
        assert_eq!((info.state, info.owner.as_deref()), (*state, Some("ann")), "{name}");
    }
    let active = before.iter().filter(|info| info.state == AgentState::Active).count() as u64;
    assert_eq!(governor.status().metrics.active_agents, active);
    governor.close().unwrap();
    drop(governor);
    let governor = open();
    assert_eq!(governor.agents().list(), before);
    assert_eq!(governor.status().metrics.active_agents, active);
}

#[test]
fn an_export_of_agents_imports_with_scores_without_history() {
    let here = builder().clock(Still::at(NOON)).open_in_memory().unwrap();
    let agent = Agent::new("full").at_score(score(555)).with_label("l").in_group("g").with_attribute("n", 1);
    registered(&here, agent.owned_by("ann").with_ceiling(score(590)).with_observability(Observability::GreyBox));
    registered(&here, Agent::new("Ünïcode \"quoted\"").at_tier(Tier::T5));
    registered(&here, Agent::new("suspended"));
    registered(&here, Agent::new("retired"));
    here.agents().suspend("suspended", "").unwrap();
    here.agents().retire("retired", "").unwrap();
    let proof = here.enforce(&reading("full")).unwrap().proof_id;
    here.report(&proof, Outcome::Failure).unwrap();
    let lines = exported(&here);
    assert_eq!(lines.lines().count(), 5);
    let manifest: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!((&manifest["rulekeepAgents"], &manifest["agents"]), (&json!(1), &json!(4)));

    let folder = tempfile::tempdir().unwrap();
    let open = || builder().clock(Still::at(NOON)).open(folder.path()).unwrap();
    let there = open();
    let import = there.agents().import(&mut lines.as_bytes()).unwrap();
    assert_eq!((import.registered, import.skipped), (4, 0));
    assert_eq!(there.agents().list(), here.agents().list());
    assert!(there.query(&ProofQuery::all()).unwrap().items.is_empty());
    // Whoever is there stays as it is.
    there.agents().resume("suspended", "").unwrap();
    let import = there.agents().import(&mut lines.as_bytes()).unwrap();
    assert_eq!((import.registered, import.skipped), (0, 4));
    assert_eq!(there.agents().get("suspended").unwrap().state, AgentState::Active);
    let agents = there.agents().list();
    drop(there);
    assert_eq!(open().agents().list(), agents);
}

#[test]
fn an_invalid_line_is_named_and_the_agents_before_it_stay() {
    let manifest = r#"{"rulekeepAgents":1}"#;
    let good = r#"{"agentId":"good","score":300,"state":"active","labels":[]}"#;
    let lines = |bad: &str| format!("{manifest}\n\n{good}\n{bad}\n");
    for bad in [
        "not json",
        "{}",
        r#"{"agentId":"","score":300,"state":"active"}"#,
        r#"{"agentId":"x","score":1001,"state":"active"}"#,
        r#"{"agentId":"x","score":300,"state":"asleep"}"#,
        r#"{"agentId":"x","score":300,"state":"active","labels":["a b"]}"#,
        r#"{"agentId":"x","score":700,"state":"active","observability":"black-box"}"#,
        r#"{"agentId":"x","score":700,"state":"active","ceiling":699}"#,
    ] {
        let governor = builder().open_in_memory().unwrap();
        let refused = error(governor.agents().import(&mut lines(bad).as_bytes()));
        assert!(matches!(&refused, Error::InvalidInput { field: "agents", message } if message.starts_with("line 4:")));
        assert_eq!(governor.agents().list().len(), 1, "{bad}: {refused}");
    }
    let governor = builder().open_in_memory().unwrap();
    for text in ["", "nothing", r#"{"rulekeepAgents":2}"#, good] {
        assert_eq!(code(governor.agents().import(&mut text.as_bytes())), "INVALID_INPUT", "{text}");
    }
    let longest = format!("{manifest}\n{}\n", " ".repeat(2 << 20));
    assert_eq!(code(governor.agents().import(&mut longest.as_bytes())), "INVALID_INPUT");
    assert!(governor.agents().list().is_empty());
    // One that was cut short says so, too.
    let cut = format!("{}\n{good}\n", r#"{"rulekeepAgents":1,"agents":2}"#);
    assert!(error(governor.agents().import(&mut cut.as_bytes())).to_string().contains("expected 2 agents, found 1"));
    assert_eq!(governor.agents().list().len(), 1);
}

#[test]
fn a_tier_that_was_not_won_back_does_not_come_by_an_import() {
    let governor = builder().open_in_memory().unwrap();
    let text = "{\"rulekeepAgents\":1}\n{\"agentId\":\"a\",\"score\":655,\"tier\":\"T3\",\"state\":\"active\"}\n";
    governor.agents().import(&mut text.as_bytes()).unwrap();
    assert_eq!(governor.agents().get("a").unwrap().trust.tier, Tier::T3);
}
