//! The cost of a large agent registry: the time of a registration and of a lookup by the number of agents, and the
//! memory of each, in a store in a folder.
//!
//! `cargo bench -p rulekeep-benches --bench registry`. `RULEKEEP_BENCH_AGENTS=1000` makes a small registry.

#![allow(clippy::expect_used)] // a bench that cannot be set up has nothing to measure
#![allow(clippy::print_stdout)] // it has nothing else to say

use std::hint::black_box;
use std::time::{Duration, Instant};

use rulekeep::{Agent, Durability, Governor};

fn main() {
    let most = std::env::var("RULEKEEP_BENCH_AGENTS").ok().and_then(|most| most.parse().ok()).unwrap_or(400_000);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let open = || Governor::builder().durability(Durability::Buffered).open(folder.path()).expect("the store opens");
    let governor = open();
    println!("{:>8} {:>14} {:>10} {:>8} {:>14}", "agents", "registration", "look", "RSS MiB", "bytes an agent");
    let (mut registered, mut before) = (0, None);
    for size in [1_000, 10_000, 100_000, 400_000] {
        if size > most {
            break;
        }
        while registered < size - LAST {
            register(&governor, registered);
            registered += 1;
            if registered % LAST == 0 {
                governor.log().flush().expect("what came so far is written");
            }
        }
        governor.log().flush().expect("what came so far is written");
        let registration = mean(registered..size, |number| register(&governor, number));
        registered = size;
        governor.log().flush().expect("all of it is written");
        let look = mean((0..LAST).map(|number| number * (size / LAST)), |number| {
            black_box(governor.agents().get(&name(number)).expect("it is registered"));
        });
        let rss = resident();
        let each = before.map(|(agents, bytes): (u64, i64)| {
            format!("{}", (rss - bytes) / i64::try_from(size - agents).unwrap_or(1) - ID_BYTES)
        });
        before = Some((size, rss));
        println!("{size:>8} {registration:>14.1?} {look:>10.1?} {:>8} {:>14}", rss >> 20, each.unwrap_or_default());
    }
    governor.close().expect("a clean close");
    drop(governor);
    let start = Instant::now();
    let governor = open();
    println!("opened with {} agents in {:.1?}", governor.agents().list().len(), start.elapsed());
}

fn name(number: u64) -> String {
    format!("agent-{number:06}")
}

fn register(governor: &Governor, number: u64) {
    governor.agents().register(Agent::new(name(number))).expect("the agent is new");
}

/// The mean time for one of the last agents.
fn mean(numbers: impl Iterator<Item = u64>, mut one: impl FnMut(u64)) -> Duration {
    let start = Instant::now();
    numbers.for_each(&mut one);
    start.elapsed() / u32::try_from(LAST).unwrap_or(1)
}

/// The resident memory of the process, in bytes.
fn resident() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<i64>().map_or(0, |kib| kib << 10)
}

/// The number of agents measured.
const LAST: u64 = 1_000;
/// The size of an id alone, in bytes.
const ID_BYTES: i64 = 12;
