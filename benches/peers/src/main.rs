//! Compares policy evaluation with other engines: the same rules and requests in one run.
//!
//! `cargo run --release -- --json` prints one object on each line, `{"engine","rules","medianNs"}`: the median over
//! rounds of the mean decision time in a round. Before the timing, every engine decides every request, and all must
//! agree.
//!
//! Each rule allows one action; one in ten names the action requested most. A round requests that action, the action
//! of the last rule, and one that no rule names. Preparations of an engine (parsed requests, compiled policies) are
//! made before.

mod engines;

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use engines::Engine;

/// The numbers of rules.
const SIZES: [usize; 4] = [10, 100, 1_000, 10_000];
/// The time for which each engine is measured at each size.
const PATIENCE: Duration = Duration::from_secs(2);
const FEWEST_ROUNDS: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let json = std::env::args().any(|argument| argument == "--json");
    if !json {
        println!("{:<14}{:>8}{:>14}", "engine", "rules", "median ns");
    }
    for size in SIZES {
        let actions = actions(size);
        let requests = ["send_report", actions.last().map_or("", String::as_str), "nothing_named"];
        let mut engines = engines::all(&actions, &requests)?;
        agree(&mut engines, &requests)?;
        for engine in &mut engines {
            let median = median_nanos(engine.as_mut(), requests.len());
            if json {
                let line = serde_json::json!({ "engine": engine.name(), "rules": size, "medianNs": median });
                println!("{line}");
            } else {
                println!("{:<14}{size:>8}{median:>14}", engine.name());
            }
        }
    }
    Ok(())
}

/// The action of each rule.
fn actions(size: usize) -> Vec<String> {
    let action = |rule| if rule % 10 == 0 { "send_report".to_owned() } else { format!("other_{rule}") };
    (0..size).map(action).collect()
}

/// Checks that all engines decide every request alike.
fn agree(engines: &mut [Box<dyn Engine>], requests: &[&str]) -> Result<(), Box<dyn Error>> {
    for (place, request) in requests.iter().enumerate() {
        let expected = *request != "nothing_named";
        for engine in &mut *engines {
            let allowed = engine.decide(place);
            if allowed != expected {
                return Err(format!("{} decides {request} as {allowed}, expected {expected}", engine.name()).into());
            }
        }
    }
    Ok(())
}

fn median_nanos(engine: &mut dyn Engine, requests: usize) -> u64 {
    let started = Instant::now();
    let mut rounds: Vec<u64> = Vec::new();
    // Short decisions are timed in batches, because reading a clock takes tens of nanoseconds.
    let round = |engine: &mut dyn Engine, times: u32| {
        let started = Instant::now();
        for _ in 0..times {
            for request in 0..requests {
                black_box(engine.decide(black_box(request)));
            }
        }
        let decisions = u64::from(times) * requests as u64;
        u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX) / decisions
    };
    let once = round(engine, 1).max(1);
    let times = u32::try_from(20_000 / once).unwrap_or(1).max(1);
    while rounds.len() < FEWEST_ROUNDS || started.elapsed() < PATIENCE {
        rounds.push(round(engine, times));
    }
    rounds.sort_unstable();
    rounds.get(rounds.len() / 2).copied().unwrap_or(0)
}
