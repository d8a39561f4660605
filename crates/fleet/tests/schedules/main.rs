//! Random schedules over the state machines of beats, permits and shared limits, and mutants that the checkers must catch.
//!
//! `RULEKEEP_SCHEDULES` sets the number of schedules (default 2,000; nightly 100,000), `RULEKEEP_SEED` the first seed.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on

mod beats;
mod limits;
mod permits;

use std::{env, thread, time::Instant};

/// A small generator with a fixed sequence for each seed (`SplitMix64`), so that a seed names a schedule for ever.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + i64::try_from(self.next() % u64::try_from(high - low + 1).unwrap()).unwrap()
    }

    fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(length).unwrap()).unwrap()
    }

    fn percent(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}

/// The figures of many schedules.
#[derive(Default)]
struct Figures {
    schedules: u64,
    violated: u64,
    worst: i64,
    first: Option<u64>,
    allowed: u64,
}

impl Figures {
    fn add(&mut self, seed: u64, excess: i64, allowed: u64) {
        self.schedules += 1;
        self.allowed += allowed;
        if self.schedules == 1 || excess > self.worst {
            self.worst = excess;
        }
        if excess > 0 {
            self.violated += 1;
            self.first = Some(self.first.map_or(seed, |first| first.min(seed)));
        }
    }

    fn merge(mut self, other: &Self) -> Self {
        self.worst = if self.schedules == 0 { other.worst } else { self.worst.max(other.worst) };
        self.schedules += other.schedules;
        self.violated += other.violated;
        self.allowed += other.allowed;
        self.first = self.first.into_iter().chain(other.first).min();
        self
    }
}

/// Runs `schedules` seeds on two threads. `run` returns the excess over the bound (positive is a violation) and the number
/// of actions that were allowed.
fn figures(name: &str, schedules: u64, run: impl Fn(u64) -> (i64, u64) + Sync) -> Figures {
    figures_from(number("RULEKEEP_SEED", 1), name, schedules, run)
}

/// Runs the schedules of a mutant: 2,000 of them for the figures in the nightly form, otherwise until one is violated.
fn mutant(name: &str, run: impl Fn(u64) -> (i64, u64) + Sync) -> Figures {
    let part = if schedules() > 2000 { 2000 } else { 100 };
    let mut figures = Figures::default();
    while figures.violated == 0 && figures.schedules < 2000 {
        figures = figures_from(1 + figures.schedules, name, part, &run).merge(&figures);
    }
    figures
}

fn figures_from(first: u64, name: &str, schedules: u64, run: impl Fn(u64) -> (i64, u64) + Sync) -> Figures {
    let start = Instant::now();
    let part = |offset: u64| {
        let mut figures = Figures::default();
        for seed in (first + offset..first + schedules).step_by(2) {
            let (excess, allowed) = run(seed);
            figures.add(seed, excess, allowed);
        }
        figures
    };
    let sum = thread::scope(|scope| {
        let other = scope.spawn(|| part(1));
        part(0).merge(&other.join().unwrap())
    });
    println!(
        "{name}: {} of {} schedules violated, worst {:+}, first seed {:?}, {} allowed, {:.1} s",
        sum.violated,
        sum.schedules,
        sum.worst,
        sum.first,
        sum.allowed,
        start.elapsed().as_secs_f64()
    );
    sum
}

fn schedules() -> u64 {
    number("RULEKEEP_SCHEDULES", 2000)
}

fn number(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().unwrap())
}
