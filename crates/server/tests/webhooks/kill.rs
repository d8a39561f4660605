//! `kill -9` of a process that decides and delivers, with the receiver in this process: everything committed arrives,
//! and nothing else.
//!
//! `RULEKEEP_KILL_ROUNDS` sets how often it is killed; default 10.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::thread;

use crate::common::receiver::{OK, Receiver, Reply, Request};
use crate::common::{ChildProcess, Served, builder, chain, child_folder, decide, say};
use rulekeep::event::{EventId, EventType};
use rulekeep::{Agent, Durability, Governor, Outcome, Tier};
use rulekeep_server::webhooks::EndpointDraft;

use super::soon;

const SECRET: &str = "the secret of the killed, 24 bytes and more";
const AGENTS: [&str; 2] = ["left", "right"];

fn rounds() -> usize {
    std::env::var("RULEKEEP_KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(10)
}

/// The number of deliveries that the parent waits for in a round: none, few or many.
fn patience(round: usize) -> usize {
    [1, 40, 0, 7, 600, 2, 63, 15, 3, 290][round % 10]
}

fn served(governor: &Governor) -> Served {
    Served::with(governor, soon(9))
}

fn registered(governor: &Governor) {
    for agent in AGENTS {
        // An earlier round may have registered it.
        let _ = governor.agents().register(Agent::new(agent).at_tier(Tier::T4));
    }
}

#[test]
fn child_that_decides_and_delivers() {
    let Some(folder) = child_folder() else { return };
    let round: usize = fs::read_to_string(folder.join("round")).unwrap().parse().unwrap();
    let durability = if round.is_multiple_of(2) { Durability::Sync } else { Durability::Buffered };
    let governor = served(&builder().durability(durability).open(folder.join("store")).expect("the folder opens"));
    registered(&governor);
    say("open");
    thread::scope(|scope| {
        for agent in AGENTS {
            let governor = &governor;
            scope.spawn(move || {
                for number in 0_usize.. {
                    let proof_id = decide(governor, agent);
                    if number % 3 == 0 {
                        governor.report(&proof_id, Outcome::Failure).expect("a first outcome is taken");
                    }
                }
            });
        }
    });
}

#[test]
fn committed_events_arrive_after_any_number_of_kills() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    // Some deliveries fail too, so that retries are interrupted as well.
    let receiver = Receiver::replying(|number, _| if number % 17 == 3 { Reply::Status(500) } else { OK });
    let governor = served(&builder().open(&store).unwrap());
    registered(&governor);
    let draft = EndpointDraft::to(&receiver.url).secret(SECRET);
    let draft = draft.of_type(EventType::Decision).of_type(EventType::Recorded);
    governor.webhooks().add(&draft).unwrap();
    governor.close().unwrap();

    let mut arrived = Vec::new();
    for round in 0..rounds() {
        fs::write(folder.path().join("round"), round.to_string()).unwrap();
        let mut child = ChildProcess::start("kill::child_that_decides_and_delivers", folder.path());
        assert_eq!(child.heard().as_deref(), Some("open"), "round {round}");
        arrived.extend(receiver.take(patience(round)));
        child.kill();
    }
    let governor = served(&builder().open(&store).unwrap());
    assert!(governor.verify().unwrap().valid);
    let records = chain(&governor, &AGENTS);
    let last = records.last().unwrap().id.sequence();
    // Interrupted deliveries arrive now.
    while arrived.last().is_none_or(|request| id_of(request).sequence() < last || kind_of(request) != "proof.recorded")
    {
        arrived.push(receiver.next());
    }
    governor.close().unwrap();
    arrived.extend(receiver.rest());

    let by_id: BTreeMap<String, _> = records.iter().map(|record| (record.id.to_string(), record)).collect();
    let mut of_record: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut latest = None;
    for request in &arrived {
        assert_eq!(request.verified(SECRET), Ok(request.event_id().as_str()));
        let id = id_of(request);
        of_record.entry(id.sequence().get()).or_default().insert(kind_of(request));
        if seen.insert(id) {
            assert!(latest < Some((id.sequence(), kind_of(request))), "{id} came late");
            latest = Some((id.sequence(), kind_of(request)));
        }
        if kind_of(request) == "proof.recorded" {
            let event = request.event();
            let record = by_id.get(event["data"]["id"].as_str().unwrap());
            let record = record.unwrap_or_else(|| panic!("{id} is of a record that is not in the log"));
            assert_eq!(event["data"]["hash"], record.hash.to_string(), "{id} tells something else than the log");
        }
    }
    let both: BTreeSet<String> = ["governance.decision", "proof.recorded"].map(str::to_owned).into();
    let expected: BTreeMap<u64, BTreeSet<String>> =
        records.iter().map(|record| (record.id.sequence().get(), both.clone())).collect();
    assert!(of_record == expected, "what arrived is not what was committed");
    assert_eq!(seen.len(), 2 * records.len(), "an event has one id, however often it is sent");
    println!("{} rounds, {} records, {} deliveries of {} events", rounds(), records.len(), arrived.len(), seen.len());
}

fn id_of(request: &Request) -> EventId {
    request.event_id().parse().unwrap()
}

fn kind_of(request: &Request) -> String {
    request.event()["type"].as_str().unwrap().to_owned()
}
