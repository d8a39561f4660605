//! The cost of an outcome report: until trust is updated and the entry is enqueued, with its record still on its way
//! to disk, and with its record so old that it is in a sealed segment.
//!
//! `cargo bench -p rulekeep-benches --bench outcome`. `RULEKEEP_BENCH_RECORDS` sets the distance of the old record;
//! default 100,000 records.

#![allow(missing_docs)] // criterion's macros make public items without any
#![allow(clippy::expect_used)] // a bench that cannot be set up has nothing to measure

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use rulekeep::proof::ProofId;
use rulekeep::{Agent, Durability, Governor, Intent, Outcome, RiskLevel, Tier};

const AGENT: &str = "bench";

fn governor(folder: &tempfile::TempDir) -> Governor {
    let governor = Governor::builder().durability(Durability::Buffered).open(folder.path()).expect("the store opens");
    governor.agents().register(Agent::new(AGENT).at_tier(Tier::T4)).expect("the agent is new");
    governor
}

fn decide(governor: &Governor) -> ProofId {
    let intent = Intent::new(AGENT, "send_report", RiskLevel::Low, ["document:read", "email:send"])
        .expect("the intent is well formed")
        .with_context("target", "ann@example.com");
    governor.enforce(&intent).expect("a verdict").proof_id
}

/// The times of reports, each paced so that the queue does not fill.
fn report(governor: &Governor, ids: impl Iterator<Item = ProofId>) -> Vec<Duration> {
    ids.map(|id| {
        let started = Instant::now();
        black_box(governor.report(&id, Outcome::Success).expect("the first outcome"));
        let took = started.elapsed();
        while started.elapsed() < PACE {
            std::hint::spin_loop();
        }
        took
    })
    .collect()
}

fn tell(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    println!("{name}: p50 {:?}, p90 {:?}, p99 {:?}, {} outcomes", at(50), at(90), at(99), times.len());
}

fn right_after(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let governor = governor(&folder);
    criterion.bench_function("outcome_buffered/right_after", |bencher| {
        bencher.iter_custom(|count| (0..count).flat_map(|_| report(&governor, [decide(&governor)].into_iter())).sum());
    });
    tell("outcome_buffered/right_after", report(&governor, (0..OUTCOMES).map(|_| decide(&governor))));
    governor.close().expect("the store closes");
}

fn far_back(_: &mut Criterion) {
    let back = std::env::var("RULEKEEP_BENCH_RECORDS").ok().and_then(|count| count.parse().ok()).unwrap_or(100_000);
    let folder = tempfile::tempdir().expect("a folder");
    let governor = governor(&folder);
    // Each has `back` records after it, in full and sealed segments.
    let ids: Vec<ProofId> = (0..OUTCOMES).map(|_| decide(&governor)).collect();
    (0..back).for_each(|_| _ = decide(&governor));
    governor.log().flush().expect("it is on disk");
    while back >= 100_000 && governor.log().journal().unsealed > 1 {
        std::thread::yield_now();
    }
    // A record has only one outcome, so each call is timed by itself; the order is scattered, as for real work.
    let scattered = (0..OUTCOMES).map(|place| ids[(place * 7919) % OUTCOMES]);
    tell("outcome_buffered/far_back", report(&governor, scattered));
    governor.close().expect("the store closes");
}

const OUTCOMES: usize = 20_000;
const PACE: Duration = Duration::from_micros(40);

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(2)).sample_size(20);
    targets = right_after, far_back
}
criterion_main!(benches);
