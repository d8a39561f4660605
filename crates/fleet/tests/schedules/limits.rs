//! Shared limits under random schedules: takes, lost and late messages, cuts, crashes, suspends, departures and returns, and
//! restores of governors' folders and of the database. At each step, what was spent within the window and what can still be spent fit the limit.

use crate::{Random, figures, mutant, schedules};
use rulekeep_fleet::{
    budget::{Budget, Fence, Grant, GrantTerms, Report, Return, Share, Want},
    permit::Moment,
    purse::{Purse, Taken, Use},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// The sound rules, and one naive rule in each mutant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    Sound,
    /// A lease that has ended no longer counts.
    ExpiryReturns,
    /// A process goes on with the grants of the process before it, as the folder has them.
    NoBoot,
    /// A restored database grants at once.
    NoFence,
    /// A report counts as complete from any process whose log is not shorter than its anchor.
    AnyBootReports,
    /// A governor that had left when the copy was made holds nothing.
    LeftForEver,
    /// A reservation counts for the window alone, as if it were used at the moment it is granted.
    ReserveWithoutTerm,
    /// A lease is timed on a clock that stops in suspend.
    Monotonic,
    /// A lease is timed on a clock that stops while a virtual machine is paused.
    BootClockAlone,
    /// A lease is timed from the receipt of the grant.
    FromReceipt,
}

#[test]
fn nothing_is_spent_past_a_shared_limit() {
    for (name, folder, database) in [
        ("limits, no restore", false, false),
        ("limits, folders restored", true, false),
        ("limits, database restored", false, true),
        ("limits, both restored", true, true),
    ] {
        let figures = figures(name, schedules(), |seed| World::new(seed, Rule::Sound, folder, database).run());
        assert_eq!((figures.violated, figures.first), (0, None), "{name}: worst overshoot {}", figures.worst);
        assert_eq!(figures.worst, 0, "{name}: the schedules never reach the limit");
        assert!(figures.allowed > 10 * figures.schedules, "the schedules allow too little to mean anything");
    }
}

#[test]
fn the_checker_catches_each_naive_limit_rule() {
    let mutants = [
        ("expiry gives back", Rule::ExpiryReturns, false, false),
        ("no boot check", Rule::NoBoot, true, false),
        ("no fence", Rule::NoFence, false, true),
        ("any boot reports", Rule::AnyBootReports, true, true),
        ("governors that left never return", Rule::LeftForEver, false, true),
        ("reservations count for the window alone", Rule::ReserveWithoutTerm, false, false),
        ("leases on MONOTONIC", Rule::Monotonic, false, false),
        ("leases on the boot clock alone", Rule::BootClockAlone, false, false),
        ("leases from receipt", Rule::FromReceipt, false, false),
    ];
    for (name, rule, folder, database) in mutants {
        let figures = mutant(name, |seed| World::new(seed, rule, folder, database).run());
        assert!(figures.violated > 0, "{name} was not caught");
    }
}

/// The limit of each counter in millionths.
const MAX: i64 = 60 * UNIT;
const UNIT: i64 = 1_000_000;
const STEPS: usize = 160;
const TERMS: GrantTerms = GrantTerms { window: 60_000, lease: 20_000, reserve: 6000 };
const COUNTERS: [(&str, Share); 2] = [("money", Share::Reserve), ("calls", Share::Lease)];

#[derive(Clone, Default)]
struct Database {
    /// The epoch, its beginning, and the governors that have not reported, with the run that is expected to know.
    epoch: u64,
    since: i64,
    awaited: BTreeMap<String, Option<String>>,
    rows: BTreeMap<(String, u64), Grant>,
    governors: Vec<Row>,
    recalled: BTreeSet<(String, u64)>,
}

#[derive(Clone, Default)]
struct Row {
    boot: Option<String>,
    earlier: BTreeSet<String>,
    beat: u64,
    size: u64,
    is_refused: bool,
    has_left: bool,
    returns: u64,
}

impl Database {
    fn fence(&self) -> Fence {
        Fence::from_rows(self.epoch, self.since, self.awaited.clone())
    }
}

/// What the witness keeps outside the database.
#[derive(Default)]
struct Witness {
    epoch: u64,
    sizes: Vec<u64>,
    /// The leaves by which governors came back after they had left.
    returns: Vec<u64>,
}

/// A decision that waits for grants, with its amounts by counter.
struct Decision {
    request: u64,
    amounts: Vec<(usize, i64)>,
    deadline: i64,
}

struct Governor {
    boots: u64,
    boot: String,
    beat: u64,
    purse: Purse,
    size: u64,
    /// It has left, and starts again some time.
    is_gone: bool,
    waiting: Vec<Decision>,
    copy: Option<(u64, Purse)>,
    boot_clock: i64,
    monotonic: i64,
    wall: i64,
    drift: i64,
    wall_drift: i64,
    frozen_until: i64,
    cut_until: i64,
}

#[derive(Clone)]
struct Up {
    boot: String,
    beat: u64,
    size: u64,
    wants: Vec<Want>,
    returns: Vec<Return>,
    report: Option<Report>,
}

#[derive(Clone, Default)]
struct Down {
    boot: String,
    report: Option<u64>,
    answers: Vec<(u64, Option<Grant>)>,
    recalls: Vec<u64>,
    confirmed: Vec<Return>,
}

#[derive(Clone)]
enum Message {
    Up(Up),
    Down(Down),
}

struct World {
    random: Random,
    rule: Rule,
    restores: (bool, bool),
    /// Whether machines are paused, or else suspended.
    has_pauses: bool,
    now: i64,
    database: Database,
    is_restored: bool,
    copy: Option<Database>,
    witness: Witness,
    governors: Vec<Governor>,
    network: BTreeMap<(i64, u64), (usize, Message)>,
    spent: Vec<(i64, usize, i64)>,
    serial: u64,
    /// Whether something happened since the last check that can raise the sum: a grant, a use or a restart.
    is_changed: bool,
    worst: i64,
}

impl World {
    fn new(seed: u64, rule: Rule, folder: bool, database: bool) -> Self {
        let mut random = Random(seed);
        let governors = (0..5).map(|index| Governor::new(index, &mut random)).collect();
        let has_pauses = random.percent(50);
        Self {
            random,
            rule,
            has_pauses,
            restores: (folder, database),
            now: 0,
            database: Database { governors: vec![Row::default(); 5], ..Database::default() },
            is_restored: false,
            copy: None,
            witness: Witness { epoch: 0, sizes: vec![0; 5], returns: vec![0; 5] },
            governors,
            network: BTreeMap::new(),
            spent: Vec::new(),
            serial: 0,
            is_changed: true,
            worst: i64::MIN,
        }
    }

    /// Returns the worst overshoot, 0 if the limit was reached exactly, and the number of decisions that were allowed.
    fn run(mut self) -> (i64, u64) {
        for _ in 0..STEPS {
            let longest = if self.random.percent(5) { 20_000 } else { 2500 };
            let next = self.now + self.random.between(1, longest);
            while let Some((&(time, serial), _)) = self.network.first_key_value().filter(|((time, _), _)| *time <= next)
            {
                self.advance(time);
                if let Some((governor, message)) = self.network.remove(&(time, serial)) {
                    self.deliver(governor, message);
                }
                self.check();
            }
            self.advance(next);
            self.act();
            self.check();
        }
        (self.worst, self.spent.len() as u64)
    }

    fn check(&mut self) {
        if !std::mem::take(&mut self.is_changed) {
            return;
        }
        for (index, (counter, _)) in COUNTERS.iter().enumerate() {
            let within = self.spent.iter().rev().take_while(|(time, ..)| *time > self.now - TERMS.window);
            let spent: i64 = within.filter(|(_, of, _)| *of == index).map(|(.., amount)| amount).sum();
            let spendable: i64 =
                self.governors.iter().map(|each| each.purse.spendable(counter, each.moment(self.rule))).sum();
            self.worst = self.worst.max(spent + spendable - MAX);
        }
    }

    fn advance(&mut self, time: i64) {
        let passed = time - self.now;
        for governor in &mut self.governors {
            let frozen = (governor.frozen_until - self.now).clamp(0, passed);
            let seen = if self.has_pauses { passed - frozen } else { passed };
            governor.wall += passed * (1_000_000 + governor.wall_drift);
            governor.boot_clock += seen * (1_000_000 + governor.drift);
            governor.monotonic += (passed - frozen) * (1_000_000 + governor.drift);
        }
        self.now = time;
    }

    fn act(&mut self) {
        let index = self.random.index(5);
        let is_awake = self.now >= self.governors[index].frozen_until && !self.governors[index].is_gone;
        match self.random.between(0, 99) {
            0..58 if is_awake => (0..self.random.between(1, 4)).for_each(|_| self.begin(index)),
            58..72 if is_awake => self.beat(index, Vec::new()),
            72..75 => self.restart(index, false),
            75..79 if self.restores.0 => self.restart(index, true),
            79..82 => {
                let governor = &mut self.governors[index];
                governor.copy = Some((governor.size, governor.purse.clone()));
            }
            82..85 => self.copy = Some(self.database.clone()),
            85..88 if self.restores.1 => {
                if let Some(copy) = self.copy.clone() {
                    (self.database, self.is_restored) = (copy, true);
                }
            }
            88..91 => self.governors[index].cut_until = self.now + self.random.between(500, 40_000),
            91..96 => self.governors[index].frozen_until = self.now + self.random.between(500, 40_000),
            96..98 => self.readmit(index),
            98..100 if is_awake => self.leave(index),
            _ => {}
        }
    }

    /// Begins a decision that uses one counter or both.
    fn begin(&mut self, index: usize) {
        let mut amounts = Vec::new();
        let kind = self.random.index(10);
        if kind < 4 {
            amounts.push((0, self.random.between(1, 12) * UNIT));
        }
        if kind >= 3 {
            amounts.push((1, self.random.between(1, 6) * UNIT));
        }
        self.serial += 1;
        let deadline = self.now + self.random.between(300, 5000);
        self.governors[index].waiting.push(Decision { request: self.serial, amounts, deadline });
        self.retry(index);
    }

    /// Tries all decisions that wait, and sends what they ask for.
    fn retry(&mut self, index: usize) {
        let mut wants = Vec::new();
        let governor = &mut self.governors[index];
        let now = governor.moment(self.rule);
        for decision in std::mem::take(&mut governor.waiting) {
            let uses: Vec<_> = decision
                .amounts
                .iter()
                .map(|(of, amount)| Use { counter: COUNTERS[*of].0, share: COUNTERS[*of].1, amount: *amount })
                .collect();
            if self.now > decision.deadline {
                governor.purse.give_up(decision.request);
                continue;
            }
            match governor.purse.take(decision.request, &uses, now) {
                Taken::All => {
                    self.spent.extend(decision.amounts.iter().map(|(of, amount)| (self.now, *of, *amount)));
                    governor.size += 1;
                    self.is_changed = true;
                }
                Taken::Ask(asked) => {
                    wants.extend(asked);
                    governor.waiting.push(decision);
                }
                Taken::Short => {}
            }
        }
        if !wants.is_empty() {
            self.beat(index, wants);
        }
    }

    fn beat(&mut self, index: usize, wants: Vec<Want>) {
        let governor = &mut self.governors[index];
        governor.beat += 1;
        let returns = governor.purse.returning(governor.moment(self.rule));
        let up = Up { wants, returns, ..governor.message() };
        self.send(index, &Message::Up(up));
    }

    /// Sends over a link that loses, delays, repeats and reorders.
    fn send(&mut self, index: usize, message: &Message) {
        if self.random.percent(10) || self.now < self.governors[index].cut_until {
            return;
        }
        let copies = if self.random.percent(5) { 2 } else { 1 };
        for _ in 0..copies {
            let longest = if self.random.percent(12) { 30_000 } else { 400 };
            self.serial += 1;
            let time = self.now + self.random.between(1, longest);
            self.network.insert((time, self.serial), (index, message.clone()));
        }
    }

    fn deliver(&mut self, index: usize, message: Message) {
        match message {
            Message::Up(up) => self.serve(index, &up),
            Message::Down(down) if self.now < self.governors[index].frozen_until => {
                self.serial += 1;
                let time = self.governors[index].frozen_until;
                self.network.insert((time, self.serial), (index, Message::Down(down)));
            }
            Message::Down(down) => self.receive(index, down),
        }
    }

    fn receive(&mut self, index: usize, down: Down) {
        let governor = &mut self.governors[index];
        if governor.boot != down.boot {
            return;
        }
        for (number, answer) in down.answers {
            let Some(mut grant) = answer else {
                governor.purse.refused(number);
                continue;
            };
            if self.rule == Rule::FromReceipt {
                grant.ends += self.now - grant.granted;
            }
            governor.purse.granted(&grant);
            self.is_changed = true;
        }
        down.recalls.into_iter().for_each(|number| governor.purse.recall(number));
        governor.purse.confirmed(&down.confirmed);
        if let Some(epoch) = down.report {
            governor.beat += 1;
            let up = Up { report: Some(governor.purse.report(epoch)), ..governor.message() };
            self.send(index, &Message::Up(up));
        }
        self.retry(index);
    }

    /// One transaction of a hub.
    fn serve(&mut self, index: usize, up: &Up) {
        self.raise_if_restored();
        self.expire();
        let mut down = Down { boot: up.boot.clone(), ..Down::default() };
        let is_current = self.identify(index, up);
        down.confirmed.clone_from(&up.returns);
        for each in &up.returns {
            let mut budget = self.budget(&each.counter);
            if let Some(grant) = self.database.rows.get_mut(&(up.boot.clone(), each.number)) {
                let before = grant.counted();
                if let Ok(freed) = budget.give_back(grant, &up.boot, each.total) {
                    assert_eq!(before - grant.counted(), freed);
                }
            }
        }
        if is_current {
            if let Some(report) = &up.report {
                self.report(index, report, up.size);
            }
            let name = format!("g{index}");
            down.report = self.database.awaited.contains_key(&name).then_some(self.database.epoch);
            for want in &up.wants {
                down.answers.push((want.number, self.decide(want, &up.boot)));
            }
        } else {
            down.answers.extend(up.wants.iter().map(|want| (want.number, None)));
        }
        self.send(index, &Message::Down(down));
    }

    fn raise_if_restored(&mut self) {
        if !std::mem::take(&mut self.is_restored) || self.rule == Rule::NoFence {
            return;
        }
        self.witness.epoch += 1;
        let database = &mut self.database;
        // Those that an earlier fence still waits for stay awaited as the run that it expected.
        let longest = database.since.saturating_add(TERMS.longest());
        let earlier = if self.now < longest { std::mem::take(&mut database.awaited) } else { BTreeMap::new() };
        let rows = database.governors.iter().zip(&self.witness.returns).enumerate();
        let holds = |(row, returns): &(&Row, &u64)| {
            !row.has_left || (row.returns != **returns && self.rule != Rule::LeftForEver)
        };
        let awaited =
            rows.filter(|(_, row)| holds(row)).map(|(index, (row, _))| (format!("g{index}"), row.boot.clone()));
        (database.epoch, database.since, database.awaited) =
            (self.witness.epoch, self.now, awaited.chain(earlier).collect());
    }

    /// Lets a governor give everything back and end. Its goodbye may be lost.
    fn leave(&mut self, index: usize) {
        let governor = &mut self.governors[index];
        governor.purse.close();
        governor.beat += 1;
        let returns = governor.purse.returning(governor.moment(self.rule));
        let up = Up { returns, ..governor.message() };
        governor.waiting.clear();
        (governor.is_gone, governor.purse) = (true, Purse::new("gone"));
        if self.random.percent(70) {
            self.serve(index, &up);
            let row = &mut self.database.governors[index];
            row.has_left |= row.boot.as_ref() == Some(&up.boot) && row.beat == up.beat && !row.is_refused;
        }
    }

    fn expire(&mut self) {
        let (now, rule) = (self.now, self.rule);
        self.database.rows.retain(|_, grant| match (rule, grant.share) {
            (Rule::ExpiryReturns, Share::Lease) => grant.ends > now,
            (Rule::ReserveWithoutTerm, Share::Reserve) => grant.granted + TERMS.window > now,
            _ => grant.counts_until > now,
        });
    }

    /// Keeps the row of the governor, and returns whether the message comes from its current process and may be granted to.
    fn identify(&mut self, index: usize, up: &Up) -> bool {
        let row = &mut self.database.governors[index];
        if row.boot.as_ref() != Some(&up.boot) {
            if row.earlier.contains(&up.boot) {
                return false;
            }
            row.earlier.extend(row.boot.replace(up.boot.clone()));
            row.beat = 0;
            if std::mem::take(&mut row.has_left) {
                self.witness.returns[index] += 1;
                row.returns = self.witness.returns[index];
            }
        }
        if up.beat > row.beat {
            row.beat = up.beat;
            row.is_refused |= up.size < row.size.max(self.witness.sizes[index]);
            if !row.is_refused {
                row.size = up.size;
                if self.random.percent(30) {
                    self.witness.sizes[index] = up.size;
                }
            }
        }
        !row.is_refused && !row.has_left
    }

    fn report(&mut self, index: usize, report: &Report, size: u64) {
        let name = format!("g{index}");
        let anchored = self.database.governors[index].size.max(self.witness.sizes[index]);
        let is_complete = size >= anchored && self.database.fence().is_completed_by(&name, report);
        let is_current = report.epoch == self.database.epoch && size >= anchored;
        if !is_complete && (!is_current || self.rule != Rule::AnyBootReports) {
            return;
        }
        self.database.awaited.remove(&name);
        for grant in &report.grants {
            let key = (grant.boot.clone(), grant.number);
            if let Some(grant) = Grant::merge(self.database.rows.get(&key), grant, report.epoch) {
                self.database.rows.insert(key, grant);
            }
        }
    }

    fn budget(&self, counter: &str) -> Budget {
        let rows = || self.database.rows.values().filter(|grant| grant.counter == counter);
        let taken = rows().map(Grant::counted).sum();
        let holders: BTreeSet<_> = rows()
            .filter(|grant| grant.share == Share::Lease && grant.ends > self.now)
            .map(|grant| &grant.boot)
            .collect();
        let holders = u32::try_from(holders.len()).unwrap();
        Budget::new(MAX, taken, holders, TERMS, &self.database.fence(), self.now)
    }

    fn decide(&mut self, want: &Want, boot: &str) -> Option<Grant> {
        let mut budget = self.budget(&want.counter);
        let key = (boot.to_owned(), want.number);
        let grant = budget.decide(want, boot, self.database.rows.get(&key));
        match &grant {
            Some(grant) => {
                self.database.rows.insert(key, grant.clone());
            }
            None => self.recall(&budget, want),
        }
        grant
    }

    fn recall(&mut self, budget: &Budget, want: &Want) {
        let recalled = &self.database.recalled;
        let leases =
            self.database.rows.iter().filter(|(key, grant)| grant.counter == want.counter && !recalled.contains(*key));
        let chosen: Vec<_> = budget.recall(want.amount, leases.map(|(_, grant)| grant)).into_iter().cloned().collect();
        for grant in chosen {
            self.database.recalled.insert((grant.boot.clone(), grant.number));
            let holder = self.database.governors.iter().position(|row| row.boot.as_ref() == Some(&grant.boot));
            if let Some(holder) = holder {
                let down = Down { boot: grant.boot, recalls: vec![grant.number], ..Down::default() };
                self.send(holder, &Message::Down(down));
            }
        }
    }

    /// An operator readmits a governor; what it may have used counts as the whole limit.
    fn readmit(&mut self, index: usize) {
        self.raise_if_restored();
        let size = self.governors[index].size;
        let row = &mut self.database.governors[index];
        (row.is_refused, row.size, self.witness.sizes[index]) = (false, size, size);
        let boot = row.boot.clone().unwrap_or_default();
        if self.random.percent(50) && self.database.awaited.remove(&format!("g{index}")).is_some() {
            for (counter, _) in COUNTERS {
                let grant = Grant::charge(counter, &boot, MAX, &self.database.fence(), TERMS);
                self.database.rows.insert((format!("{counter} of {index}"), grant.number), grant);
            }
        }
    }

    /// Ends the process of a governor and starts another, after its folder was restored from the copy or as it is.
    fn restart(&mut self, index: usize, from_copy: bool) {
        let rule = self.rule;
        let governor = &mut self.governors[index];
        let mut purse = governor.purse.clone();
        if let Some((size, copied)) = governor.copy.clone().filter(|_| from_copy) {
            (governor.size, purse) = (size, copied);
        }
        self.is_changed = true;
        governor.boots += 1;
        governor.waiting.clear();
        (governor.frozen_until, governor.is_gone) = (0, false);
        if rule == Rule::NoBoot {
            governor.purse = purse;
            return;
        }
        governor.boot = format!("g{index}-{}", governor.boots);
        governor.purse = Purse::new(governor.boot.clone());
        governor.beat = 0;
    }
}

impl Governor {
    fn new(index: usize, random: &mut Random) -> Self {
        let boot = format!("g{index}-1");
        Self {
            boots: 1,
            purse: Purse::new(boot.clone()),
            boot,
            beat: 0,
            size: 0,
            is_gone: false,
            waiting: Vec::new(),
            copy: None,
            boot_clock: 0,
            monotonic: 0,
            wall: random.between(1, 1_000_000_000_000),
            drift: random.between(-9000, 9000),
            wall_drift: random.between(-9000, 9000),
            frozen_until: 0,
            cut_until: 0,
        }
    }

    /// A message that asks for nothing and returns nothing.
    fn message(&self) -> Up {
        let (wants, returns) = (Vec::new(), Vec::new());
        Up { boot: self.boot.clone(), beat: self.beat, size: self.size, wants, returns, report: None }
    }

    /// The clocks as the rule under test reads them; they are kept in nanoseconds.
    fn moment(&self, rule: Rule) -> Moment {
        let nanos = |time: i64| Duration::from_nanos(time.unsigned_abs());
        match rule {
            Rule::Monotonic => Moment { boot: nanos(self.monotonic), wall_ms: 0 },
            Rule::BootClockAlone => Moment { boot: nanos(self.boot_clock), wall_ms: 0 },
            _ => Moment { boot: nanos(self.boot_clock), wall_ms: self.wall / 1_000_000 },
        }
    }
}
