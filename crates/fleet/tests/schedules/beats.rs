//! Beats under random schedules: lost, delayed and repeated messages, restarts, copied and restored folders, cloned
//! processes, and databases that start again or go back to a copy. A healthy governor is never barred, a permit is only
//! given to a log that continues what was known, and two clones never both go on.

use crate::{Random, figures, mutant, schedules};
use rulekeep::checkpoint::{Checkpoint, CheckpointKey, ConsistencyProof};
use rulekeep::proof::Digest;
use rulekeep::system::Timestamp;
use rulekeep_fleet::budget::Report;
use rulekeep_fleet::log::{self, Head, TileId};
use rulekeep_fleet::membership::{Facts, Membership};
use rulekeep_fleet::order::{Chain, Command, Order, Organisation, SignedOrder};
use rulekeep_fleet::permit::Moment;
use rulekeep_fleet::session::{Session, Task};
use rulekeep_fleet::wire::{Anchor, Beat};
use std::collections::{BTreeSet, HashMap};
use std::sync::OnceLock;
use std::time::Duration;

/// The sound rules, and one naive rule in each mutant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    Sound,
    /// Nonces and challenges are the same each time.
    OneNonce,
    /// A database that goes back to a copy is taken for the same.
    OneEpoch,
    /// Of the log, only what is anchored is known.
    AnchorsAlone,
}

#[test]
fn no_schedule_bars_a_healthy_governor_or_admits_a_copy() {
    let count = schedules() / 4;
    let figures = figures("beats", count, |seed| World::new(seed, Rule::Sound).run());
    assert_eq!((figures.violated, figures.first), (0, None));
    assert!(figures.allowed > 2 * count, "the schedules permit too little to mean anything");
}

#[test]
fn the_checker_catches_each_naive_nonce_rule() {
    let mutants = [
        ("one nonce for all answers", Rule::OneNonce),
        ("one epoch for ever", Rule::OneEpoch),
        ("only anchors are known of a log", Rule::AnchorsAlone),
    ];
    for (name, rule) in mutants {
        let figures = mutant(name, |seed| World::new(seed, rule).run());
        assert!(figures.violated > 0, "{name} was not caught");
    }
}

const GOVERNORS: usize = 3;
const STEPS: usize = 120;

/// The organisation of all schedules: its first order, and the keys of its governors.
fn organisation() -> &'static (SignedOrder, Vec<CheckpointKey>) {
    static ORGANISATION: OnceLock<(SignedOrder, Vec<CheckpointKey>)> = OnceLock::new();
    ORGANISATION.get_or_init(|| {
        let key = |name: &str, seed: u8| CheckpointKey::from_seed(name, &[seed; 32]).unwrap();
        let ann = key("ann", 1);
        let founding = Organisation {
            name: "fleet.example.com".to_owned(),
            log: key("fleet.example.com", 2).verifier().to_string(),
            operators: vec![ann.verifier().to_string()],
            needed: 1,
            needed_to_loosen: 1,
            permit_seconds: 30,
        };
        let at = Timestamp::from_millis(0);
        let first = Order::next(&Chain::new(None), at, Command::Organisation(founding)).sign(&[ann]).unwrap();
        (first, (0..GOVERNORS).map(|n| key(&format!("g{n}"), 10 + u8::try_from(n).unwrap())).collect())
    })
}

#[derive(Clone)]
struct Log {
    head: Head,
    tiles: HashMap<TileId, Vec<u8>>,
}

impl Log {
    fn grow(&mut self, random: &mut Random) {
        let leaves: Vec<_> = (0..random.between(0, 3)).map(|_| random.next().to_be_bytes().to_vec()).collect();
        let appended = log::append(&self.head, &self.tiles, &leaves).unwrap();
        self.tiles.extend(appended.tiles);
        self.head = appended.head;
    }

    fn proof(&self, since: u64) -> Option<String> {
        let path = (0 < since && since < self.head.size).then(|| log::consistency(since, &self.head, &self.tiles))?;
        Some(ConsistencyProof::new(since, self.head.size, path.unwrap()).to_string())
    }

    fn continues(&self, (size, root): &(i64, String)) -> bool {
        let size = size.unsigned_abs();
        let own = (size <= self.head.size).then(|| log::root(size, &self.head, &self.tiles).unwrap());
        size == 0 || own.is_some_and(|own| own.to_string() == *root)
    }
}

/// A process of a governor.
#[derive(Clone)]
struct Process {
    governor: usize,
    boot: String,
    session: Session,
    log: Log,
    /// Whether its last beat was answered with a permit.
    is_permitted: bool,
}

type Heads = Vec<(i64, String)>;

struct World {
    random: Random,
    rule: Rule,
    now: i64,
    chain: Chain,
    rows: Vec<Membership>,
    /// The size and the root of each governor's log that the database was told last.
    heads: Heads,
    epoch: i64,
    copies: Vec<(Vec<Membership>, Heads)>,
    folders: Vec<(usize, Log)>,
    processes: Vec<Process>,
    /// Governors whose folder was restored or whose process was cloned.
    is_doubtful: [bool; GOVERNORS],
    sent: Vec<(usize, Beat)>,
    violations: i64,
    permits: u64,
}

impl World {
    fn new(seed: u64, rule: Rule) -> Self {
        let (first, keys) = organisation();
        let mut chain = Chain::new(None);
        chain.add(first).unwrap();
        let row = |key: &CheckpointKey| Membership {
            id: key.name().to_owned(),
            key: key.verifier().to_string(),
            has_left: true,
            ..Membership::default()
        };
        let mut world = Self {
            random: Random(seed),
            rule,
            now: 1_000_000,
            chain,
            rows: keys.iter().map(row).collect(),
            heads: vec![Default::default(); GOVERNORS],
            epoch: 1,
            copies: Vec::new(),
            folders: Vec::new(),
            processes: Vec::new(),
            is_doubtful: [false; GOVERNORS],
            sent: Vec::new(),
            violations: 0,
            permits: 0,
        };
        for governor in 0..GOVERNORS {
            let mut log = Log { head: Head::EMPTY, tiles: HashMap::new() };
            log.grow(&mut world.random);
            let process = world.process(governor, log);
            world.processes.push(process);
        }
        world
    }

    /// Returns the number of violations, and how many permits were given.
    fn run(mut self) -> (i64, u64) {
        for _ in 0..STEPS {
            self.now += self.random.between(1, 5000);
            self.step();
        }
        // In the end nothing is lost any more.
        for _ in 0..6 {
            for process in 0..self.processes.len() {
                self.beat(process, false);
            }
        }
        for governor in 0..GOVERNORS {
            let permitted = |process: &&Process| process.governor == governor && process.is_permitted;
            let permitted = self.processes.iter().filter(permitted).count();
            let is_right = if self.is_doubtful[governor] { permitted <= 1 } else { permitted == 1 };
            self.violations += i64::from(!is_right);
        }
        (self.violations, self.permits)
    }

    fn step(&mut self) {
        let process = self.random.index(self.processes.len());
        match self.random.between(0, 99) {
            0..60 => self.beat(process, true),
            60..75 if !self.sent.is_empty() => {
                // A message that was delayed, or that a stranger kept.
                let kept = self.random.index(self.sent.len());
                let (governor, beat) = self.sent[kept].clone();
                self.judge(governor, &beat, None);
            }
            75..82 => {
                let Process { governor, log, .. } = self.processes[process].clone();
                self.processes[process] = self.process(governor, log);
            }
            82..85 => self.copies.push((self.rows.clone(), self.heads.clone())),
            85..88 => self.epoch += i64::from(self.rule != Rule::OneEpoch),
            88..91 if !self.copies.is_empty() => {
                let copy = self.random.index(self.copies.len());
                (self.rows, self.heads) = self.copies[copy].clone();
                self.epoch += i64::from(self.rule != Rule::OneEpoch);
            }
            91..94 => {
                let Process { governor, log, .. } = self.processes[process].clone();
                self.folders.push((governor, log));
            }
            94 if !self.folders.is_empty() => {
                let folder = self.random.index(self.folders.len());
                let (governor, log) = self.folders[folder].clone();
                self.is_doubtful[governor] = true;
                self.processes.retain(|process| process.governor != governor);
                let restored = self.process(governor, log);
                self.processes.push(restored);
            }
            95 => {
                let clone = self.processes[process].clone();
                self.is_doubtful[clone.governor] = true;
                self.processes.push(clone);
            }
            _ => {}
        }
    }

    fn process(&mut self, governor: usize, log: Log) -> Process {
        let boot = format!("{:016x}", self.random.next());
        let name = organisation().1[governor].name();
        let session = Session::new(
            name,
            &boot,
            Vec::new(),
            self.chain.clone(),
            (0, Digest::ZERO),
            BTreeSet::new(),
            Duration::ZERO,
        );
        Process { governor, boot, session, log, is_permitted: false }
    }

    fn moment(&self) -> Moment {
        Moment { boot: Duration::from_millis(self.now.unsigned_abs()), wall_ms: self.now }
    }

    /// Lets a process beat. The message and its answer may be lost.
    fn beat(&mut self, index: usize, is_lossy: bool) {
        let moment = self.moment();
        self.processes[index].log.grow(&mut self.random);
        let Process { governor, boot, session, log, is_permitted } = &mut self.processes[index];
        let (number, mut beat) = session.beat(moment, Duration::ZERO);
        beat.log = session.is_shown().then_some(log.head);
        if session.must_show() {
            let key = &organisation().1[*governor];
            let note = Checkpoint::new(key.name(), log.head.size, log.head.root).unwrap().sign(key).unwrap();
            let continues = session.continues().and_then(|last| log.proof(last));
            beat.anchor = Some(Anchor { note, proof: log.proof(session.anchored()), continues });
        }
        *is_permitted = false;
        let boot = boot.clone();
        beat.report = session.must_report().map(|epoch| Report { epoch, boot, grants: Vec::new() });
        let governor = *governor;
        self.sent.push((governor, beat.clone()));
        if is_lossy && self.random.percent(15) {
            return;
        }
        let is_answered = !is_lossy || self.random.percent(85);
        self.judge(governor, &beat, is_answered.then_some((index, number)));
    }

    /// Lets a hub judge a beat, and perhaps a process take the answer.
    fn judge(&mut self, governor: usize, beat: &Beat, process: Option<(usize, u64)>) {
        let random = if self.rule == Rule::OneNonce { "nonce".to_owned() } else { self.random.next().to_string() };
        let facts = Facts {
            chain: &self.chain,
            order: Some(self.chain.head()),
            now: self.now,
            hub: "hub",
            clock: self.now,
            epoch: self.epoch,
            unverified: None,
            random: &random,
        };
        let (boot, head) = (self.rows[governor].boot.clone(), self.heads[governor].clone());
        let row = &mut self.rows[governor];
        let Ok(answer) = row.judge(beat, &facts, &mut Vec::new()) else { return };
        if row.head_size > head.0 {
            self.heads[governor] = (row.head_size, row.head_root.clone());
        }
        if self.rule == Rule::AnchorsAlone {
            (row.head_size, row.head_root) = (0, String::new());
        }
        let Some((index, number)) = process else { return };
        let Process { session, log, is_permitted, .. } = &mut self.processes[index];
        let tasks = session.answered(number, &answer, Timestamp::from_millis(self.now));
        if tasks.iter().any(|task| matches!(task, Task::Permit(_))) {
            (self.permits, *is_permitted) = (self.permits + 1, true);
            self.violations += i64::from(boot != beat.boot && !log.continues(&head));
        }
    }
}
