//! The cost of the hot path: parse, and enforce by the size of the policy set, by the length of the log, by
//! permit, by durability, and by threads.
//!
//! `cargo bench -p rulekeep-benches --bench enforce`. Writing the log of a million records takes a minute;
//! `RULEKEEP_BENCH_RECORDS=10000` makes a shorter one.

#![allow(missing_docs)] // criterion's macros make public items without any
#![allow(clippy::expect_used)] // a bench that cannot be set up has nothing to measure

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rulekeep::extension::{Extension, Permit};
use rulekeep::policy::PolicyRequest;
use rulekeep::system::Timestamp;
use rulekeep::trust::TrustSnapshot;
use rulekeep::{Agent, Durability, Governor, Intent, PolicySet, RiskLevel, Tier};

const AGENT: &str = "bench";

fn governor(durability: Durability, policies: Option<PolicySet>, folder: &tempfile::TempDir) -> Governor {
    let mut builder = Governor::builder().durability(durability);
    if let Some(policies) = policies {
        builder = builder.policies(policies);
    }
    let governor = builder.open(folder.path()).expect("the store opens");
    governor.agents().register(Agent::new(AGENT).at_tier(Tier::T4)).expect("the agent is new");
    governor
}

fn intent() -> Intent {
    Intent::new(AGENT, "send_report", RiskLevel::Low, ["document:read", "email:send"])
        .expect("the intent is well formed")
        .with_context("target", "ann@example.com")
}

/// `rules` rules, of which one in ten names the intent's action. In dense JSON, so that 10,000 of them fit a
/// document.
fn policies(rules: usize) -> PolicySet {
    let rules: Vec<String> = (0..rules)
        .map(|rule| {
            let action = if rule % 10 == 0 { "send_report".to_owned() } else { format!("other_{rule}") };
            format!(r#"{{"id":"r{rule}","effect":"allow","match":{{"actions":["{action}"],"tiers":{{"min":"T2"}}}}}}"#)
        })
        .collect();
    PolicySet::from_json(&format!(r#"{{"name":"bench","rules":[{}]}}"#, rules.join(","))).expect("the policies load")
}

/// Command lines as coding agents write them.
const COMMAND_LINES: [&str; 8] = [
    "git status --short",
    "cd crates/api && cargo test --lib parser 2>&1 | tail -20",
    "grep -rn 'fn parse' src --include='*.rs' | head -30",
    "find . -name '*.py' -not -path './node_modules/*' | xargs wc -l | sort -n",
    "sed -n '120,180p' src/server/router.ts",
    "git add -A && git commit -m 'Fix the race in the scheduler' && git log --oneline -3",
    "npm run build --silent && ls -la dist/ | awk '{print $5, $9}'",
    "for f in docs/*.md; do echo \"== $f\"; head -5 \"$f\"; done",
];

fn parse(criterion: &mut Criterion) {
    let governor = Governor::builder().open_in_memory().expect("the store opens");
    governor.agents().register(Agent::new(AGENT)).expect("the agent is new");
    let sentence =
        "Please send a short summary of the quarterly report to ann@example.com and add a reminder for next Friday";
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"send_email","arguments":{"recipients":["ann@example.com"],"subject":"Quarterly report","body":"Hello Ann, please find the summary of the quarterly report below. Kind regards, the assistant."}}}"#;
    let mut group = criterion.benchmark_group("parse");
    for (name, input) in [("sentence", sentence), ("tool_call", call)] {
        group.throughput(Throughput::Bytes(input.len() as u64));
        group.bench_function(name, |bencher| bencher.iter(|| governor.parse(AGENT, black_box(input))));
    }
    // Lines of several programs, one after the other: what each costs differs.
    let lines =
        COMMAND_LINES.map(|line| serde_json::json!({ "tool": "Bash", "arguments": { "command": line } }).to_string());
    let mut lines = lines.iter().cycle();
    group.throughput(Throughput::Elements(1));
    group.bench_function("command_line", |bencher| {
        bencher.iter(|| governor.parse(AGENT, black_box(lines.next().map_or("", String::as_str))));
    });
    let tools: Vec<serde_json::Value> = ["send_email", "read_email", "delete_email", "create_event", "search_files"]
        .iter()
        .map(|name| serde_json::json!({ "name": name, "description": "A tool.", "inputSchema": { "type": "object" } }))
        .collect();
    governor.tools().load(&tools.into(), None).expect("the tools load");
    group.throughput(Throughput::Bytes(call.len() as u64));
    group.bench_function("tool_call_with_catalogue", |bencher| bencher.iter(|| governor.parse(AGENT, black_box(call))));
    group.finish();
}

fn by_policies(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("enforce_buffered_by_policies");
    for rules in [10, 100, 1_000, 10_000] {
        let folder = tempfile::tempdir().expect("a folder");
        let governor = governor(Durability::Buffered, Some(policies(rules)), &folder);
        let intent = intent();
        group.bench_function(BenchmarkId::from_parameter(rules), |bencher| {
            bencher.iter(|| governor.enforce(black_box(&intent)).expect("a verdict"));
        });
        governor.close().expect("the store closes");
    }
    group.finish();
}

/// `rules` rules that all escalate the same request, each to another reviewer, or all to one.
fn escalations(rules: usize, is_one: bool) -> PolicySet {
    let rules: Vec<String> = (0..rules)
        .map(|rule| {
            let reviewer = if is_one { 0 } else { rule };
            format!(
                r#"{{"id":"r{rule}","effect":"escalate","reviewer":"p{reviewer}","match":{{"agents":["{AGENT}","other-{rule}"],"capabilities":["email:send"]}}}}"#
            )
        })
        .collect();
    PolicySet::from_json(&format!(r#"{{"name":"bench","rules":[{}]}}"#, rules.join(","))).expect("the policies load")
}

fn by_escalations(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("evaluate_by_matching_escalations");
    let intent = Intent::new(AGENT, "send_report", RiskLevel::Low, ["email:send"]).expect("the intent is well formed");
    let request = PolicyRequest::new(&intent, TrustSnapshot::new(Tier::T4.middle(), Tier::T4));
    for (name, is_one) in [("one_reviewer", true), ("as_many_reviewers", false)] {
        let policies = escalations(20_000, is_one);
        group.bench_function(BenchmarkId::new(name, 20_000), |bencher| {
            bencher.iter(|| policies.evaluate(black_box(&request)).expect("a verdict"));
        });
    }
    group.finish();
}

fn by_log(criterion: &mut Criterion) {
    let most = std::env::var("RULEKEEP_BENCH_RECORDS").ok().and_then(|count| count.parse().ok()).unwrap_or(1_000_000);
    let mut group = criterion.benchmark_group("enforce_buffered_by_log");
    for records in [0, most / 10, most] {
        let folder = tempfile::tempdir().expect("a folder");
        let governor = governor(Durability::Buffered, None, &folder);
        let intent = intent();
        for _ in 0..records {
            governor.enforce(&intent).expect("a verdict");
        }
        group.bench_function(BenchmarkId::from_parameter(records), |bencher| {
            bencher.iter(|| governor.enforce(black_box(&intent)).expect("a verdict"));
        });
        tails(&format!("enforce_buffered_by_log/{records}"), &governor, &intent);
        governor.close().expect("the store closes");
    }
    group.finish();
}

/// The price of a permit: single calls of a governor that requires one and of one that does not, in turns. Criterion
/// measures one after the other, and the machine's own drift is larger than the difference.
fn by_permit(_: &mut Criterion) {
    let folders = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
    let [without, with] = folders.each_ref().map(|folder| governor(Durability::Buffered, None, folder));
    let extension = Extension::of(&with);
    extension.require_permit().expect("the clock tells the time since boot");
    let (until, wall_until) = (Duration::MAX, Timestamp::from_millis(i64::MAX));
    extension.grant_permit(Permit { until, offline_until: until, wall_until, offline_wall_until: wall_until });
    let intent = intent();
    let mut nanos = [Vec::new(), Vec::new()];
    for _ in 0..200_000 {
        for (governor, nanos) in [&without, &with].into_iter().zip(&mut nanos) {
            let started = Instant::now();
            black_box(governor.enforce(black_box(&intent)).expect("a verdict"));
            nanos.push(started.elapsed().as_nanos());
            while started.elapsed() < PACE {
                std::hint::spin_loop();
            }
        }
    }
    let [without, with] = nanos.map(|mut nanos| {
        nanos.sort_unstable();
        nanos.get(nanos.len() / 2).copied().unwrap_or_default()
    });
    println!("enforce_buffered_by_permit: median {without} ns without, {with} ns with a permit");
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of 100,000
/// Measures tails on single calls, which Criterion does not report; paced so that the queue does not fill.
fn tails(name: &str, governor: &Governor, intent: &Intent) {
    let mut nanos: Vec<u128> = (0..100_000)
        .map(|_| {
            let started = Instant::now();
            black_box(governor.enforce(intent).expect("a verdict"));
            let elapsed = started.elapsed();
            while started.elapsed() < PACE {
                std::hint::spin_loop();
            }
            elapsed.as_nanos()
        })
        .collect();
    nanos.sort_unstable();
    let at = |share: f64| nanos[((nanos.len() - 1) as f64 * share) as usize] as f64 / 1000.0;
    println!("{name}: p50 {:.2} us, p99 {:.2} us, p99.9 {:.2} us, max {:.0} us", at(0.5), at(0.99), at(0.999), at(1.0));
}

const PACE: Duration = Duration::from_micros(20);

fn by_durability(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("enforce_by_durability");
    group.sample_size(20);
    let bare_folder = tempfile::tempdir().expect("a folder");
    let bare = std::fs::File::create(bare_folder.path().join("bare")).expect("a file");
    std::os::unix::fs::FileExt::write_all_at(&bare, &vec![0; 4 << 20], 0).expect("room");
    bare.sync_all().expect("a sync");
    let mut at = 0;
    group.bench_function("bare_fdatasync", |bencher| {
        bencher.iter(|| {
            at = (at + 1500) % (4 << 20);
            std::os::unix::fs::FileExt::write_all_at(&bare, &[7; 1500], at).expect("a write");
            bare.sync_data().expect("a sync");
        });
    });
    for (name, durability) in [("buffered", Durability::Buffered), ("sync", Durability::Sync)] {
        for threads in [1, 2, 64] {
            let folder = tempfile::tempdir().expect("a folder");
            let governor = governor(durability, None, &folder);
            let intent = intent();
            group.bench_function(BenchmarkId::new(name, threads), |bencher| {
                bencher.iter_custom(|count| on_threads(&governor, &intent, threads, count));
            });
            governor.close().expect("the store closes");
        }
    }
    group.finish();
}

/// The time of `count` enforcements on this many threads: one item is one enforcement, whichever thread made it.
fn on_threads(governor: &Governor, intent: &Intent, threads: u64, count: u64) -> Duration {
    let started = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let share = count / threads + u64::from(thread < count % threads);
            scope.spawn(move || {
                for _ in 0..share {
                    governor.enforce(black_box(intent)).expect("a verdict");
                }
            });
        }
    });
    started.elapsed()
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    targets = parse, by_policies, by_escalations, by_permit, by_log, by_durability
}
criterion_main!(benches);
