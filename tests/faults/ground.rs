//! Random schedules of what happens to the ground under a decision: the process is killed, the clock steps, the folder is
//! moved or replaced by a backup, while people approve, revoke and suspend. Afterwards nothing that has ended allows
//! anything, no two processes were acknowledged at once, and nothing acknowledged is missing.
//!
//! `RULEKEEP_GROUND_SCHEDULES` sets how many schedules are run (default 4).

use crate::common;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::ChildStdin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{ChildProcess, Hand, NOON, child_folder, copy_folder, say};
use rulekeep::escalation::{PreApproval, PreApprovalState, Review};
use rulekeep::proof::ProofId;
use rulekeep::system::Timestamp;
use rulekeep::{Agent, Decision, Error, Governor, Intent, PolicySet, RiskLevel, Tier};
use serde_json::json;

const POLICIES: &str = "name = \"p\"\n[[rule]]\nid = \"money\"\neffect = \"escalate\"\n\
                        match.capabilities = [\"payment:transfer\"]\nreviewer = \"ann\"";
const CLOCK: &str = "RULEKEEP_TEST_CLOCK";

/// Does what the parent says, a line at a time, and answers each line with one.
#[test]
fn child_that_does_what_it_is_told() {
    let Some(folder) = child_folder() else { return };
    // Given as it would be by a program whose working directory changes later.
    std::env::set_current_dir(folder.parent().unwrap()).unwrap();
    let relative = PathBuf::from(folder.file_name().unwrap());
    let clock = Hand::at(std::env::var(CLOCK).unwrap().parse().unwrap());
    let builder = Governor::builder().policies(PolicySet::from_toml(POLICIES).unwrap()).clock(clock.clone());
    let governor = match builder.open(relative) {
        Ok(governor) => governor,
        Err(error) => return say(&format!("refused {error}")),
    };
    std::env::set_current_dir("/").unwrap();
    let _ = governor.agents().register(Agent::new("a").at_tier(Tier::T4));
    say("open");
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let (command, argument) = line.split_once(' ').unwrap_or((&line, ""));
        let done = match command {
            "clock" => {
                clock.set(argument.parse().unwrap());
                Ok("set".to_owned())
            }
            "accept" => governor.log().accept_clock("ann", "").map(|_| "accepted".to_owned()),
            "suspend" => governor.agents().suspend("a", "").map(|_| "suspended".to_owned()),
            "resume" => governor.agents().resume("a", "").map(|_| "resumed".to_owned()),
            "give" => give(&governor, argument.parse().unwrap()),
            "revoke" => governor
                .escalations()
                .revoke(&argument.parse().unwrap(), Review::by("ann"))
                .map(|()| "revoked".to_owned()),
            "ended" => Ok(ended(&governor)),
            "decide" => decide(&governor),
            other => panic!("{other:?}"),
        };
        say(&done.unwrap_or_else(|error| format!("refused {error}")));
    }
}

fn give(governor: &Governor, until: i64) -> Result<String, Error> {
    let approval: PreApproval = serde_json::from_value(json!({
        "agentId": "a", "capabilities": ["payment:transfer"], "rules": ["money"], "maxRisk": "HIGH",
        "until": Timestamp::from_millis(until),
    }))
    .unwrap();
    governor.escalations().pre_approve(approval, Review::by("ann")).map(|id| id.to_string())
}

/// The ids of all pre-approvals that are over.
fn ended(governor: &Governor) -> String {
    let standing = governor.escalations().pre_approvals();
    let over = standing.iter().filter(|one| matches!(one.state, PreApprovalState::Revoked | PreApprovalState::Expired));
    over.map(|one| one.id.to_string()).collect::<Vec<_>>().join(" ")
}

/// What was decided, and by which pre-approval.
fn decide(governor: &Governor) -> Result<String, Error> {
    let intent = Intent::new("a", "pay", RiskLevel::Medium, ["payment:transfer"]).unwrap();
    let verdict = governor.enforce(&intent)?;
    let by = match verdict.decision {
        Decision::Allow => governor.log().evidence(&verdict.proof_id)?.detail["grant"].as_str().unwrap().to_owned(),
        _ => String::new(),
    };
    Ok(format!("{} {} {by}", verdict.proof_id, verdict.decision))
}

/// A process that has the store open.
struct Process {
    child: ChildProcess,
    stdin: ChildStdin,
}

impl Process {
    fn start(store: &Path, clock: i64) -> Result<Self, String> {
        let environment = vec![(CLOCK.to_owned(), clock.to_string())];
        let test = "ground::child_that_does_what_it_is_told";
        let mut child = ChildProcess::start_with(test, store, environment);
        let stdin = child.child.stdin.take().unwrap();
        match child.heard().as_deref() {
            Some("open") => Ok(Self { child, stdin }),
            other => Err(other.unwrap_or("it ended").to_owned()),
        }
    }

    /// What it answers; the error where it refuses.
    fn tell(&mut self, line: &str) -> Result<String, String> {
        self.stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
        let answer = self.child.heard().expect("the child answers");
        match answer.strip_prefix("refused ") {
            Some(error) => Err(error.to_owned()),
            None => Ok(answer),
        }
    }
}

/// What is known of a log.
#[derive(Debug, Default, Clone)]
struct Known {
    acknowledged: BTreeSet<String>,
    given: Vec<String>,
    ended: BTreeSet<String>,
    is_suspended: bool,
}

impl Known {
    /// Notes a decision, which must not rest on anything that has ended.
    fn note(&mut self, decided: &str, story: &[String]) {
        let mut words = decided.split(' ');
        let (id, decision, by) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap_or_default());
        if self.is_suspended {
            assert_eq!(decision, "DENY", "{story:#?}");
        }
        assert!(!self.ended.contains(by), "{by} has ended and allows: {story:#?}");
        self.acknowledged.insert(id.to_owned());
    }
}

/// Numbers that look random, the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

const MINUTE: i64 = 60_000;

fn run(seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let dir = tempfile::tempdir().unwrap();
    let (store, backup, elsewhere) =
        (dir.path().join("store"), dir.path().join("backup"), dir.path().join("elsewhere"));
    let mut clock = NOON;
    let mut process = Process::start(&store, clock).unwrap();
    let (mut known, mut saved) = (Known::default(), None::<Known>);
    let mut story = Vec::new();
    for _ in 0..16 {
        let step = dice.roll(11);
        story.push(format!("{step}: clock {clock}, {known:?}"));
        match step {
            0..=2 => {
                if let Ok(decided) = process.tell("decide") {
                    known.note(&decided, &story);
                }
            }
            3 => {
                clock += (i64::try_from(dice.roll(240)).unwrap() - 120) * MINUTE;
                process.tell(&format!("clock {clock}")).unwrap();
                if dice.roll(2) == 0 {
                    process.tell("accept").unwrap();
                }
            }
            4 => {
                let until = clock + (1 + i64::try_from(dice.roll(90)).unwrap()) * MINUTE;
                known.given.extend(process.tell(&format!("give {until}")));
            }
            5 => {
                if let Some(id) = known.given.get(usize::try_from(dice.roll(4)).unwrap()).cloned() {
                    let _ = process.tell(&format!("revoke {id}"));
                    known.ended.insert(id);
                }
            }
            6 => {
                // A suspension takes back what was agreed to beforehand.
                process.tell("suspend").unwrap();
                known.ended.extend(known.given.iter().cloned());
                known.is_suspended = true;
                if dice.roll(2) == 0 {
                    process.tell("resume").unwrap();
                    known.is_suspended = false;
                }
            }
            7 => known.ended.extend(process.tell("ended").unwrap().split_whitespace().map(str::to_owned)),
            8 => {
                process.child.kill();
                if backup.exists() {
                    fs::remove_dir_all(&backup).unwrap();
                }
                copy_folder(&store, &backup);
                saved = Some(known.clone());
                process = Process::start(&store, clock).unwrap();
            }
            9 => {
                assert!(Process::start(&store, clock).is_err(), "two processes hold one store");
                fs::rename(&store, &elsewhere).unwrap();
                refused_soon(&mut process, &mut known, &story);
                assert!(Process::start(&elsewhere, clock).is_err(), "two processes hold one store that was moved");
                process.child.kill();
                fs::rename(&elsewhere, &store).unwrap();
                process = Process::start(&store, clock).unwrap();
            }
            _ => {
                let Some(at_backup) = saved.take() else { continue };
                fs::rename(&store, &elsewhere).unwrap();
                fs::rename(&backup, &store).unwrap();
                refused_soon(&mut process, &mut known, &story);
                let mut other = Process::start(&store, clock).unwrap();
                assert!(process.tell("decide").is_err(), "two processes are acknowledged: {story:#?}");
                process.child.kill();
                check(&elsewhere, &known, &story);
                fs::remove_dir_all(&elsewhere).unwrap();
                known = at_backup;
                if let Ok(decided) = other.tell("decide") {
                    known.note(&decided, &story);
                }
                process = other;
            }
        }
    }
    process.child.kill();
    check(&store, &known, &story);
}

/// Decides until that is refused, which is a second from now at the most.
fn refused_soon(process: &mut Process, known: &mut Known, story: &[String]) {
    let moved = Instant::now();
    while let Ok(decided) = process.tell("decide") {
        assert!(moved.elapsed() < Duration::from_millis(1100), "acknowledged for more than a second: {story:#?}");
        known.note(&decided, story);
    }
}

/// Everything that was acknowledged is there.
fn check(store: &Path, known: &Known, story: &[String]) {
    let governor = Governor::open_read_only(store).unwrap();
    assert!(governor.verify().unwrap().valid, "{story:#?}");
    for id in &known.acknowledged {
        assert!(governor.log().record(&id.parse::<ProofId>().unwrap()).is_ok(), "{id} is missing: {story:#?}");
    }
    let is_suspended = governor.agents().get("a").is_ok_and(|agent| agent.state != rulekeep::agent::AgentState::Active);
    assert_eq!(is_suspended, known.is_suspended, "{story:#?}");
}

#[test]
fn no_schedule_of_faults_allows_again_or_loses_acknowledged() {
    let schedules = std::env::var("RULEKEEP_GROUND_SCHEDULES").ok().and_then(|count| count.parse().ok()).unwrap_or(4);
    // They mostly wait.
    let next = AtomicU64::new(1);
    let work = || {
        while let Some(seed) = Some(next.fetch_add(1, Ordering::SeqCst)).filter(|seed| *seed <= schedules) {
            run(seed);
        }
    };
    thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(work))));
}
