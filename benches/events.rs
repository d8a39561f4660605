//! The throughput of a lossless subscriber on a store in a folder: existing events, by type, and concurrent with a
//! writer at full speed.
//!
//! `cargo bench -p rulekeep-benches --bench events`. `RULEKEEP_BENCH_RECORDS=10000` makes a small store.

#![allow(clippy::expect_used)] // a bench that cannot be set up has nothing to measure

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use rulekeep::event::{EventFilter, EventId, EventType};
use rulekeep::{Agent, Durability, Governor, Intent, RiskLevel, Tier};

const AGENT: &str = "bench-agent";

fn open(folder: &std::path::Path) -> Governor {
    let governor = Governor::builder().durability(Durability::Buffered).open(folder).expect("the store opens");
    governor.agents().register(Agent::new(AGENT).at_tier(Tier::T4)).expect("a new agent registers");
    governor
}

fn decide(governor: &Governor, records: u64) {
    let intent = Intent::new(AGENT, "read_notes", RiskLevel::Low, ["document:read"]).expect("it is well-formed");
    for _ in 0..records {
        black_box(governor.enforce(&intent).expect("a reading is decided"));
    }
}

/// The time until a subscription with this filter has received this many events.
fn drain(governor: &Governor, filter: &EventFilter, events: u64) -> Duration {
    let mut subscription = governor.subscribe(filter).expect("the first event is there");
    let started = Instant::now();
    for _ in 0..events {
        black_box(subscription.wait().expect("the log can be read").expect("the governor is open"));
    }
    started.elapsed()
}

fn first_event(governor: &Governor) -> EventId {
    let mut subscription = governor.subscribe(&EventFilter::all()).expect("a subscription begins now");
    decide(governor, 1);
    subscription.wait().expect("the log can be read").expect("the governor is open").id
}

fn events(criterion: &mut Criterion) {
    let records = std::env::var("RULEKEEP_BENCH_RECORDS").ok().and_then(|records| records.parse().ok());
    let records: u64 = records.unwrap_or(1_000_000);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let governor = open(folder.path());
    let first = first_event(&governor);
    decide(&governor, records);
    governor.log().flush().expect("all of it is written");

    let mut group = criterion.benchmark_group("events");
    group.sample_size(10).sampling_mode(SamplingMode::Flat).warm_up_time(Duration::from_millis(1));
    let behind = EventFilter::all().after(first);
    for (name, filter, each) in [
        ("all", behind.clone(), 2),
        ("governance.decision", behind.clone().of_type(EventType::Decision), 1),
        ("proof.recorded", behind.of_type(EventType::Recorded), 1),
    ] {
        group.throughput(Throughput::Elements(records * each));
        group.bench_function(BenchmarkId::new("drain", name), |bench| {
            bench.iter_custom(|times| (0..times).map(|_| drain(&governor, &filter, records * each)).sum());
        });
    }
    drop(governor);

    let live = records.min(200_000);
    group.throughput(Throughput::Elements(live * 2));
    group.bench_function("live", |bench| {
        bench.iter_custom(|times| {
            (0..times)
                .map(|_| {
                    let folder = tempfile::tempdir().expect("a temporary folder");
                    let governor = open(folder.path());
                    std::thread::scope(|scope| {
                        let reader = scope
                            .spawn(|| drain(&governor, &EventFilter::all().after(first_event(&governor)), live * 2));
                        decide(&governor, live);
                        reader.join().expect("the reader ends")
                    })
                })
                .sum()
        });
    });
    group.finish();
}

criterion_group!(benches, events);
criterion_main!(benches);
