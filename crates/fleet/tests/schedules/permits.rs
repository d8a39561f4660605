//! Permits under random delays, losses, cuts, restarts, suspends, pauses, stalled commits and promotions: no ALLOW after the kill switch
//! was committed and the term has passed.

use crate::{Random, figures, mutant, schedules};
use rulekeep_fleet::permit::{Arrival, Moment, PermitHolder, PermitTerms, ReadBegun, ReadOrder};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    time::Duration,
};

/// The sound rules, and one naive rule in each mutant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    Sound,
    Monotonic,
    BootClockAlone,
    FromReceipt,
    EarlyRead,
    ReadWithoutCommit,
    AnswerWithoutSecondLook,
}

#[test]
fn no_action_is_allowed_after_a_kill_switch_and_the_term() {
    let figures = figures("permits", schedules(), |seed| World::new(seed, Rule::Sound).run());
    assert_eq!((figures.violated, figures.first), (0, None), "worst {} ms", figures.worst);
    assert!(figures.allowed > figures.schedules, "the schedules allow too little to mean anything");
    assert!(figures.worst > -400, "the schedules do not come near the bound");
}

#[test]
fn the_checker_catches_each_naive_permit_rule() {
    let mutants = [
        ("permit on MONOTONIC", Rule::Monotonic),
        ("permit on the boot clock alone", Rule::BootClockAlone),
        ("permit counted from receipt", Rule::FromReceipt),
        ("permit from a read begun before the beat arrived", Rule::EarlyRead),
        ("permit from a read that commits nothing", Rule::ReadWithoutCommit),
        ("decisions answered as they were before the commit", Rule::AnswerWithoutSecondLook),
    ];
    for (name, rule) in mutants {
        let figures = mutant(name, |seed| World::new(seed, rule).run());
        assert!(figures.violated > 0, "{name} was not caught");
    }
}

const TERM: i64 = 30_000;
const OFFLINE: i64 = 45_000;
const TERMS: PermitTerms = PermitTerms { term: Duration::from_secs(30), offline: Duration::from_secs(45) };
const END: i64 = 220_000;

struct Member {
    process: u64,
    holder: PermitHolder,
    is_stopped: bool,
    boot: i64,
    monotonic: i64,
    wall: i64,
    drift: i64,
    wall_drift: i64,
    frozen_until: i64,
    is_paused: bool,
    cut_until: i64,
}

struct Hub {
    life: u64,
    order: ReadOrder,
    primary: usize,
    waiting: Vec<(Beat, Arrival)>,
}

#[derive(Clone, Copy)]
struct Beat {
    member: usize,
    process: u64,
    number: u64,
}

struct Read {
    begun: ReadBegun,
    primary: usize,
    is_stopped: bool,
}

#[derive(Clone, Copy)]
enum Event {
    Beat(usize),
    Arrive(usize, Beat),
    BeginRead(usize, u64),
    Snapshot(u64),
    Answer(usize, u64, u64),
    Receive(Beat, bool),
    Refused(Beat),
    Disturb,
    Stop,
    Promote,
    Follow(usize),
    Wake,
    SendBeat(usize),
    Cut(usize),
    /// The disk has taken a decision of a process.
    Committed(usize, u64),
}

struct World {
    random: Random,
    rule: Rule,
    now: i64,
    events: BinaryHeap<Reverse<(i64, u64)>>,
    bodies: BTreeMap<u64, Event>,
    members: Vec<Member>,
    hubs: Vec<Hub>,
    reads: BTreeMap<u64, Read>,
    stopped: [bool; 2],
    current: usize,
    stop_at: i64,
    has_pauses: bool,
    serial: u64,
    excess: i64,
    allowed: u64,
}

impl World {
    fn new(seed: u64, rule: Rule) -> Self {
        let mut random = Random(seed);
        let members = (0..5)
            .map(|_| Member {
                process: 1,
                holder: PermitHolder::default(),
                is_stopped: false,
                boot: random.between(0, 1_000_000_000),
                monotonic: 0,
                wall: random.between(1, 1_000_000_000_000),
                drift: extreme(&mut random),
                wall_drift: extreme(&mut random),
                frozen_until: 0,
                is_paused: false,
                cut_until: 0,
            })
            .collect();
        let hub = || Hub { life: 1, order: ReadOrder::default(), primary: 0, waiting: Vec::new() };
        let stop_at = random.between(15_000, 80_000);
        let has_pauses = random.percent(50);
        let mut world = Self {
            random,
            rule,
            now: 0,
            events: BinaryHeap::new(),
            bodies: BTreeMap::new(),
            members,
            hubs: vec![hub(), hub()],
            reads: BTreeMap::new(),
            stopped: [false; 2],
            current: 0,
            stop_at,
            has_pauses,
            serial: 0,
            excess: i64::MIN,
            allowed: 0,
        };
        for member in 0..5 {
            world.after(0, 3000, Event::Beat(member));
        }
        for hub in 0..2 {
            world.after(0, 500, Event::BeginRead(hub, 1));
        }
        world.after(stop_at, stop_at, Event::Stop);
        world.after(0, 8000, Event::Disturb);
        if world.random.percent(40) {
            world.after(10_000, 90_000, Event::Promote);
        }
        for late in (TERM - 400..TERM).step_by(10).chain([TERM, TERM + 1, TERM + OFFLINE, TERM + OFFLINE + 1]) {
            world.after(stop_at + late, stop_at + late, Event::Wake);
        }
        // The worst for the bound: beats sent just before the order, and links cut once they are answered.
        let part = if world.random.percent(50) { 50 } else { 0 };
        for member in 0..5 {
            if world.random.percent(part) {
                world.after(stop_at - 200, stop_at, Event::SendBeat(member));
                world.after(stop_at, stop_at + 400, Event::Cut(member));
            }
        }
        world
    }

    /// Returns by how many milliseconds the last ALLOW exceeded the bound, and how often a check allowed before.
    fn run(mut self) -> (i64, u64) {
        while let Some(Reverse((time, serial))) = self.events.pop() {
            if time > END {
                break;
            }
            self.advance(time - self.now);
            if let Some(event) = self.bodies.remove(&serial) {
                self.handle(event);
            }
            self.check();
        }
        (self.excess, self.allowed)
    }

    fn after(&mut self, low: i64, high: i64, event: Event) {
        let time = self.now + self.random.between(low, high);
        self.serial += 1;
        self.events.push(Reverse((time, self.serial)));
        self.bodies.insert(self.serial, event);
    }

    fn advance(&mut self, passed: i64) {
        for member in &mut self.members {
            let frozen = (member.frozen_until - self.now).clamp(0, passed);
            let lived = passed - frozen;
            member.wall += passed * (1_000_000 + member.wall_drift);
            member.monotonic += lived * (1_000_000 + member.drift);
            member.boot += if member.is_paused { lived } else { passed } * (1_000_000 + member.drift);
        }
        self.now += passed;
    }

    /// The clocks as the rule under test reads them; they are kept in nanoseconds.
    fn moment(&self, member: usize) -> Moment {
        let member = &self.members[member];
        let nanos = |time: i64| Duration::from_nanos(time.unsigned_abs());
        match self.rule {
            Rule::Monotonic => Moment { boot: nanos(member.monotonic), wall_ms: 0 },
            Rule::BootClockAlone => Moment { boot: nanos(member.boot), wall_ms: 0 },
            _ => Moment { boot: nanos(member.boot), wall_ms: member.wall / 1_000_000 },
        }
    }

    fn check(&mut self) {
        for index in 0..self.members.len() {
            let member = &self.members[index];
            if member.is_stopped || self.now < member.frozen_until {
                continue;
            }
            let (Some(deadlines), now) = (member.holder.deadlines(), self.moment(index)) else { continue };
            let late = self.now - self.stop_at;
            if deadlines.allows(now) {
                self.allowed += 1;
                self.excess = self.excess.max(late - TERM + 1);
                if self.random.percent(2) {
                    let stall = if self.random.percent(30) { 40_000 } else { 20 };
                    let process = self.members[index].process;
                    self.after(0, stall, Event::Committed(index, process));
                }
            }
            if deadlines.allows_low_read(now) {
                self.excess = self.excess.max(late - TERM - OFFLINE + 1);
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Beat(index) => self.beat(index),
            Event::Arrive(hub, beat) => {
                let arrival = self.hubs[hub].order.arrived();
                self.hubs[hub].waiting.push((beat, arrival));
            }
            Event::BeginRead(hub, life) => self.begin_read(hub, life),
            Event::Snapshot(read) => {
                if let Some(read) = self.reads.get_mut(&read) {
                    read.is_stopped = self.stopped[read.primary];
                }
            }
            Event::Answer(hub, life, read) => self.answer(hub, life, read),
            Event::Receive(beat, is_stopped) => self.receive(beat, is_stopped),
            Event::Refused(beat) => {
                if self.members[beat.member].process == beat.process {
                    self.members[beat.member].holder.refused();
                }
            }
            Event::Disturb => self.disturb(),
            Event::Stop => self.stopped[self.current] = true,
            Event::Promote => {
                self.stopped[1] = self.stopped[0];
                self.current = 1;
                for hub in 0..2 {
                    self.after(0, 60_000, Event::Follow(hub));
                }
            }
            Event::Follow(hub) => self.hubs[hub].primary = 1,
            Event::Wake => {}
            Event::SendBeat(index) => self.send_beat(index),
            Event::Cut(index) => self.members[index].cut_until = self.now + 90_000,
            Event::Committed(index, process) => self.committed(index, process),
        }
    }

    fn beat(&mut self, index: usize) {
        let pause = if self.random.percent(20) { 20_000 } else { 5000 };
        self.after(500, pause, Event::Beat(index));
        self.send_beat(index);
    }

    fn send_beat(&mut self, index: usize) {
        if self.now < self.members[index].frozen_until {
            return;
        }
        let now = self.moment(index);
        let member = &mut self.members[index];
        let beat =
            Beat { member: index, process: member.process, number: member.holder.sending(now.boot, now.wall_ms) };
        let hub = self.random.index(2);
        self.send(beat, Event::Arrive(hub, beat));
    }

    /// Sends over a link that loses, delays and repeats.
    fn send(&mut self, beat: Beat, event: Event) {
        if self.random.percent(10) || self.now < self.members[beat.member].cut_until {
            return;
        }
        let high = if self.random.percent(15) { 40_000 } else { 100 };
        self.after(1, high, event);
        if self.random.percent(5) {
            self.after(1, 20_000, event);
        }
    }

    fn begin_read(&mut self, hub: usize, life: u64) {
        if self.hubs[hub].life != life {
            return;
        }
        self.after(50, 1500, Event::BeginRead(hub, life));
        self.serial += 1;
        let (id, primary) = (self.serial, self.hubs[hub].primary);
        let read = Read { begun: self.hubs[hub].order.begin_read(), primary, is_stopped: false };
        self.reads.insert(id, read);
        let slow = if self.random.percent(25) { 15_000 } else { 40 };
        let snapshot = self.random.between(0, slow);
        let end = snapshot + self.random.between(0, slow);
        self.after(snapshot, snapshot, Event::Snapshot(id));
        self.after(end, end, Event::Answer(hub, life, id));
    }

    fn answer(&mut self, hub: usize, life: u64, read: u64) {
        let Some(read) = self.reads.remove(&read) else { return };
        let is_committed = read.primary == self.current || self.rule == Rule::ReadWithoutCommit;
        if self.hubs[hub].life != life || !is_committed {
            return;
        }
        for (beat, arrival) in std::mem::take(&mut self.hubs[hub].waiting) {
            let is_early = self.rule == Rule::EarlyRead;
            if self.random.percent(20) || (read.begun.permit(arrival, TERMS).is_none() && !is_early) {
                self.hubs[hub].waiting.push((beat, arrival));
            } else if self.random.percent(1) {
                self.send(beat, Event::Refused(beat));
            } else {
                self.send(beat, Event::Receive(beat, read.is_stopped));
            }
        }
    }

    fn receive(&mut self, beat: Beat, is_stopped: bool) {
        let now = self.moment(beat.member);
        let member = &mut self.members[beat.member];
        if self.now < member.frozen_until {
            let wait = member.frozen_until - self.now;
            self.after(wait, wait + 5, Event::Receive(beat, is_stopped));
        } else if member.process == beat.process {
            member.is_stopped |= is_stopped;
            let number = match self.rule {
                Rule::FromReceipt => member.holder.sending(now.boot, now.wall_ms),
                _ => beat.number,
            };
            member.holder.granted(number, TERMS);
        }
    }

    /// Answers a decision that was made before its commit: permit and kill switch are looked at once more.
    fn committed(&mut self, index: usize, process: u64) {
        let member = &self.members[index];
        if self.now < member.frozen_until {
            let wait = member.frozen_until - self.now;
            return self.after(wait, wait, Event::Committed(index, process));
        }
        let is_permitted = member.holder.deadlines().is_some_and(|held| held.allows(self.moment(index)));
        let is_answered = (is_permitted && !member.is_stopped) || self.rule == Rule::AnswerWithoutSecondLook;
        if member.process == process && is_answered {
            self.excess = self.excess.max(self.now - self.stop_at - TERM + 1);
        }
    }

    fn disturb(&mut self) {
        self.after(500, 12_000, Event::Disturb);
        let (index, length) = (self.random.index(5), self.random.between(1000, 70_000));
        let kind = self.random.index(6);
        let step = self.random.between(-3_600_000, 3_600_000) * 1_000_000;
        let (now, has_pauses) = (self.now, self.has_pauses);
        let member = &mut self.members[index];
        match kind {
            0 => {
                // A restart loses what the process knew, the order included; a new permit comes with the order.
                member.process += 1;
                member.holder = PermitHolder::default();
                member.is_stopped = false;
            }
            1 => member.cut_until = now + length,
            2 if now >= member.frozen_until => {
                (member.frozen_until, member.is_paused) = (now + length, has_pauses);
                self.after(length, length, Event::Wake);
            }
            // A clock that is set back while a pause hides time from the other clock is beyond any deadline.
            3 if !has_pauses => member.wall += step,
            4 => {
                let hub = self.random.index(2);
                let primary = self.hubs[hub].primary;
                let life = self.hubs[hub].life + 1;
                self.hubs[hub] = Hub { life, order: ReadOrder::default(), primary, waiting: Vec::new() };
                self.after(100, 5000, Event::BeginRead(hub, life));
            }
            _ => {}
        }
    }
}

/// A drift in millionths, often the largest that the rules allow for.
fn extreme(random: &mut Random) -> i64 {
    let drift = random.between(-9000, 9000);
    if random.percent(50) { drift.signum() * 9000 } else { drift }
}
