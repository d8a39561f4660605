//! `kill -9` of a process that decides: what it acknowledged in Sync is there
//! afterwards, all of it, and the log goes on from where it was left.
//!
//! `RULEKEEP_KILL_ROUNDS` sets how often each test kills (default 10).

use crate::common;

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::thread;

use common::{ChildProcess, builder, child_folder, decide, frames, journal, reading, say};
use rulekeep::agent::AgentState;
use rulekeep::proof::ProofId;
use rulekeep::{Agent, Durability, Governor, Outcome, ProofQuery, Tier};

/// What each thread of a child acts for.
const AGENTS: [&str; 2] = ["left", "right"];

fn rounds() -> usize {
    std::env::var("RULEKEEP_KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(10)
}

/// How many acknowledgements the parent waits for in a round: none at all, few, many.
fn patience(round: usize) -> usize {
    [1, 40, 0, 7, 120, 2, 63, 15, 3, 90][round % 10]
}

/// Decides in two threads, saying each thing once it was acknowledged, until this process is killed.
fn decide_until_killed(durability: Durability) {
    let Some(folder) = child_folder() else { return };
    let governor = builder().durability(durability).open(folder).expect("the folder opens");
    for agent in AGENTS {
        // The child of an earlier round may have registered it.
        let _ = governor.agents().register(Agent::new(agent).at_tier(Tier::T4));
    }
    say("open");
    thread::scope(|scope| {
        for agent in AGENTS {
            let governor = governor.clone();
            scope.spawn(move || acknowledge(&governor, agent));
        }
    });
}

fn acknowledge(governor: &Governor, agent: &str) {
    for number in 0_usize.. {
        let proof_id = decide(governor, agent);
        say(&format!("decided {proof_id}"));
        if number % 3 == 0 {
            let outcome = Outcome::ALL[number / 3 % Outcome::ALL.len()];
            governor.report(&proof_id, outcome).expect("a first outcome is taken");
            say(&format!("reported {proof_id} {outcome}"));
        }
        if number % 5 == 0 {
            let name = format!("made-for-{proof_id}");
            governor.agents().register(Agent::new(&name).with_label("made")).expect("a new agent registers");
            say(&format!("registered {name}"));
            governor.agents().suspend(&name, "at once").expect("a registered agent is suspended");
            say(&format!("suspended {name}"));
        }
    }
}

#[test]
fn child_that_acknowledges_what_is_on_disk() {
    decide_until_killed(Durability::Sync);
}

#[test]
fn child_that_acknowledges_what_is_in_memory() {
    decide_until_killed(Durability::Buffered);
}

/// Each of these decides and reports in a thread of its own.
const CROWD: usize = 16;

/// Decides in many threads at once, without waiting for the disk, so that the writer's queue is never empty.
#[test]
fn child_of_a_crowd() {
    let Some(folder) = child_folder() else { return };
    // Each round the other durability.
    let durability = if folder.join("sync").exists() { Durability::Sync } else { Durability::Buffered };
    let governor = builder().durability(durability).open(folder.join("store")).expect("the folder opens");
    for member in 0..CROWD {
        // The child of an earlier round may have registered it.
        let _ = governor.agents().register(Agent::new(member_of(member)).at_tier(Tier::T4));
    }
    governor.log().flush().expect("a new agent is written");
    say("open");
    thread::scope(|scope| {
        for member in 0..CROWD {
            let governor = governor.clone();
            scope.spawn(move || {
                for number in 0_usize.. {
                    // Half of them tell nothing: a pipe would slow them down.
                    if member % 2 == 0 {
                        let _ = governor.enforce(&reading(&member_of(member)));
                        continue;
                    }
                    let proof_id = decide(&governor, &member_of(member));
                    if number % 4 == 0 {
                        governor.report(&proof_id, Outcome::Success).expect("a first outcome is taken");
                        say(&format!("reported {proof_id} {}", Outcome::Success));
                    }
                    say(&format!("decided {proof_id}"));
                }
            });
        }
    });
}

fn member_of(crowd: usize) -> String {
    format!("member-{crowd}")
}

#[test]
fn a_killed_crowd_leaves_all_that_it_was_told_in_sync() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let (mut told, mut told_in_sync, mut records) = (0, 0, 0);
    for round in 0..rounds() {
        let is_sync = round % 2 == 0;
        if is_sync {
            fs::write(folder.path().join("sync"), b"").unwrap();
        } else {
            fs::remove_file(folder.path().join("sync")).unwrap();
        }
        let mut acknowledged = Acknowledged::default();
        acknowledged.of_killed_child("kill::child_of_a_crowd", folder.path(), 20 * patience(round));
        told += acknowledged.decided.len();

        let governor = builder().open(&store).unwrap_or_else(|error| panic!("round {round}: {error}"));
        let verification = governor.verify().unwrap();
        assert!(verification.valid, "round {round}: {:?}", verification.first_broken);
        let least = if is_sync { acknowledged.decided.len() as u64 } else { 0 };
        assert!(verification.records >= records + least, "round {round}: what was on disk before is gone");
        records = verification.records;
        if is_sync {
            told_in_sync += acknowledged.decided.len();
            acknowledged.assert_is_all_there(&governor, round);
        }
        let counted: u64 = (0..CROWD).map(|member| governor.stats(&member_of(member), ..).unwrap().total_records).sum();
        assert_eq!(counted, records, "round {round}");
        if round % 3 == 0 {
            governor.close().unwrap();
        }
    }
    eprintln!("{} rounds, {told} acknowledged ({told_in_sync} in Sync), {records} records", rounds());
}

/// What children have said that they did.
#[derive(Default)]
struct Acknowledged {
    decided: Vec<ProofId>,
    reported: BTreeMap<ProofId, Outcome>,
    registered: Vec<String>,
    suspended: Vec<String>,
}

impl Acknowledged {
    /// Runs a child, kills it after so many acknowledgements, and keeps all that it said.
    fn of_killed_child(&mut self, child: &str, folder: &std::path::Path, patience: usize) {
        let mut child = ChildProcess::start(child, folder);
        assert_eq!(child.heard().as_deref(), Some("open"), "the child opens the folder");
        for _ in 0..patience {
            let said = child.heard().expect("the child goes on until it is killed");
            self.note(&said);
        }
        child.kill();
        // What was said before the end and not yet heard counts as well.
        while let Some(said) = child.heard() {
            self.note(&said);
        }
    }

    fn note(&mut self, said: &str) {
        let words: Vec<&str> = said.split(' ').collect();
        match words[..] {
            ["decided", id] => self.decided.push(id.parse().unwrap()),
            ["reported", id, outcome] => {
                self.reported.insert(id.parse().unwrap(), outcome.parse().unwrap());
            }
            ["registered", name] => self.registered.push(name.to_owned()),
            ["suspended", name] => self.suspended.push(name.to_owned()),
            _ => panic!("the child said {said:?}"),
        }
    }

    fn assert_is_all_there(&self, governor: &Governor, round: usize) {
        for id in &self.decided {
            assert!(governor.log().record(id).is_ok(), "round {round}: {id} was acknowledged and is gone");
        }
        for (id, outcome) in &self.reported {
            let found = governor.log().record(id).unwrap().outcome;
            assert_eq!(found, Some(*outcome), "round {round}: the outcome of {id} is gone");
            // The same again changes nothing, another one is refused: the outcome is known, not only shown.
            assert!(governor.report(id, *outcome).is_ok());
        }
        for name in &self.registered {
            assert!(governor.agents().get(name).is_ok(), "round {round}: {name} was registered and is gone");
        }
        for name in &self.suspended {
            let state = governor.agents().get(name).unwrap().state;
            assert_eq!(state, AgentState::Suspended, "round {round}: {name} was suspended");
        }
    }
}

#[test]
fn what_was_acknowledged_in_sync_survives_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let mut acknowledged = Acknowledged::default();
    for round in 0..rounds() {
        acknowledged.of_killed_child("kill::child_that_acknowledges_what_is_on_disk", &store, patience(round));
        let governor = builder().open(&store).unwrap_or_else(|error| panic!("round {round}: {error}"));
        let verification = governor.verify().unwrap();
        assert!(verification.valid, "round {round}: {:?}", verification.first_broken);
        assert!(verification.records >= acknowledged.decided.len() as u64, "round {round}");
        acknowledged.assert_is_all_there(&governor, round);
        // The log goes on, here and in the child of the next round.
        acknowledged.decided.push(decide(&governor, AGENTS[round % 2]));
        if round % 2 == 0 {
            governor.close().unwrap();
        }
    }
    assert!(!acknowledged.decided.is_empty());
}

#[test]
fn after_kill_9_what_is_listed_is_counted_and_linked() {
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = Acknowledged::default();
    for round in 0..rounds().min(3) {
        acknowledged.of_killed_child("kill::child_that_acknowledges_what_is_on_disk", folder.path(), 30 + round);
    }
    let governor = builder().open(folder.path()).unwrap();
    let records = common::chain(&governor, &AGENTS);
    assert_eq!(records.len() as u64, governor.verify().unwrap().records);
    assert!(records.windows(2).all(|pair| pair[1].previous_hash == pair[0].hash));
    let counted: u64 = AGENTS.iter().map(|agent| governor.stats(agent, ..).unwrap().total_records).sum();
    assert_eq!(counted, records.len() as u64);
    for outcome in Outcome::ALL {
        let listed: u64 = AGENTS
            .iter()
            .map(|agent| governor.query(&ProofQuery::entity(*agent).outcome(*outcome)).unwrap().total)
            .sum();
        assert_eq!(listed, records.iter().filter(|record| record.outcome == Some(*outcome)).count() as u64);
    }
}

#[test]
fn a_buffered_log_opens_and_verifies_after_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = Acknowledged::default();
    let mut records = 0;
    for round in 0..rounds() {
        acknowledged.of_killed_child(
            "kill::child_that_acknowledges_what_is_in_memory",
            folder.path(),
            10 * patience(round),
        );
        let governor = builder().open(folder.path()).unwrap_or_else(|error| panic!("round {round}: {error}"));
        let verification = governor.verify().unwrap();
        assert!(verification.valid, "round {round}: {:?}", verification.first_broken);
        assert!(verification.records >= records, "round {round}: what was on disk before is gone");
        records = verification.records + 1;
        // An agent registered in the buffer alone may be gone; then it is a new one.
        let _ = governor.agents().register(Agent::new(AGENTS[0]).at_tier(Tier::T4));
        governor.enforce(&reading(AGENTS[0])).unwrap();
        governor.close().unwrap();
    }
}

/// A store whose process was killed while it decided: what stands in its journal.
struct Killed {
    folder: tempfile::TempDir,
    /// Behind them stand the zeros that were written ahead.
    frames: Vec<Range<usize>>,
}

impl Killed {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut acknowledged = Acknowledged::default();
        acknowledged.of_killed_child("kill::child_that_acknowledges_what_is_on_disk", folder.path(), 40);
        let bytes = fs::read(journal(folder.path())).unwrap();
        let frames = frames(&bytes);
        assert!(frames.len() > 40 && frames.last().unwrap().end < bytes.len(), "space was made ahead");
        Self { folder, frames }
    }

    /// A copy whose journal was changed.
    fn changed(&self, change: impl FnOnce(&mut Vec<u8>)) -> tempfile::TempDir {
        let copy = tempfile::tempdir().unwrap();
        common::copy_folder(self.folder.path(), copy.path());
        let mut bytes = fs::read(journal(copy.path())).unwrap();
        change(&mut bytes);
        fs::write(journal(copy.path()), bytes).unwrap();
        copy
    }
}

#[test]
fn a_last_entry_cut_short_is_set_aside_and_nothing_else_lost() {
    let killed = Killed::new();
    let last = killed.frames.last().unwrap().clone();
    let copy = killed.changed(|_| ());
    let whole = builder().open(copy.path()).unwrap();
    let all = common::chain(&whole, &AGENTS);
    for keep in [1, 4, 20, 63, 64, 65, last.len() / 2, last.len() - 1] {
        let store = killed.changed(|bytes| bytes[last.start + keep..last.end].fill(0));
        let torn = fs::read(journal(store.path())).unwrap()[last.start..last.start + keep].to_vec();
        for time in ["first", "second"] {
            let governor = builder().open(store.path()).unwrap();
            assert!(governor.verify().unwrap().valid, "{keep} bytes kept, {time} time");
            let found = common::chain(&governor, &AGENTS);
            let before: Vec<_> =
                all.iter().filter(|record| record.id.sequence().get() + 1 < killed.frames.len() as u64).collect();
            assert!(before.iter().all(|record| found.iter().any(|found| found.id == record.id)), "{keep} bytes kept");
            decide(&governor, AGENTS[0]);
            governor.close().unwrap();
        }
        let kept: Vec<Vec<u8>> =
            common::files_below(&store.path().join("recovered")).iter().map(|file| fs::read(file).unwrap()).collect();
        assert_eq!(kept.len(), 1, "{keep} bytes kept: one copy of what was set aside");
        assert!(torn.starts_with(&kept[0]) && torn[kept[0].len()..].iter().all(|byte| *byte == 0), "{keep} bytes kept");
    }
}

#[test]
fn a_flipped_bit_after_a_crash_is_damage_and_no_torn_tail() {
    let killed = Killed::new();
    for back in [1, 2, 5] {
        let frame = killed.frames[killed.frames.len() - back].clone();
        for at in [frame.start, frame.start + 4, frame.start + 9, frame.start + 40, frame.start + 80, frame.end - 1] {
            let store = killed.changed(|bytes| bytes[at] ^= 4);
            let governor = builder().open(store.path()).unwrap();
            assert!(!governor.verify().unwrap().valid, "byte {} of the frame {back} from the end", at - frame.start);
            assert_eq!(common::code(governor.enforce(&reading(AGENTS[0]))), "CHAIN_BROKEN");
            assert!(!store.path().join("recovered").exists(), "nothing is set aside where it breaks");
        }
    }
}

#[test]
fn a_bit_flipped_in_a_length_after_a_crash_is_damage() {
    let killed = Killed::new();
    let frame = killed.frames.last().unwrap().clone();
    let mut taken_for_torn = Vec::new();
    for bit in 0..64 {
        let store = killed.changed(|bytes| bytes[frame.start + 20 + bit / 8] ^= 1 << (bit % 8));
        let governor = builder().open(store.path()).unwrap();
        if governor.verify().unwrap().valid {
            taken_for_torn.push((20 + bit / 8, bit % 8));
        }
    }
    assert_eq!(taken_for_torn, [], "an acknowledged entry was set aside as one that was never whole");
}

#[test]
fn an_entry_cut_short_before_whole_ones_is_damage() {
    let killed = Killed::new();
    for back in [3, 10] {
        let frame = killed.frames[killed.frames.len() - back].clone();
        let store = killed.changed(|bytes| bytes[frame.start + 100..frame.end].fill(0));
        let governor = builder().open(store.path()).unwrap();
        assert!(!governor.verify().unwrap().valid, "the frame {back} from the end");
        assert_eq!(common::code(governor.enforce(&reading(AGENTS[0]))), "CHAIN_BROKEN");
    }
}

#[test]
fn a_store_that_was_killed_while_it_was_made_can_be_opened() {
    let traces = ["", "journal", "journal/0000000000.rkj", "HEAD", "view"];
    for round in 0..rounds().max(traces.len()) {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store");
        let mut child = ChildProcess::start("kill::child_that_acknowledges_what_is_on_disk", &store);
        // As soon as another trace of the making is there.
        let trace = traces[round % traces.len()];
        while !store.join(trace).exists() {
            assert!(child.child.try_wait().unwrap().is_none(), "the child ended by itself");
            thread::yield_now();
        }
        child.kill();

        let governor = builder().open(&store).unwrap_or_else(|error| panic!("killed behind {trace:?}: {error}"));
        assert!(governor.verify().unwrap().valid, "killed behind {trace:?}");
        // The child may have registered it.
        let _ = governor.agents().register(Agent::new("left").at_tier(Tier::T4));
        decide(&governor, "left");
    }
}
