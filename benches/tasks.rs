//! The cost of a task: a call under a task compared with the same call without one, and opening a task compared with
//! an input of the same words.
//!
//! `cargo bench -p rulekeep-benches --bench tasks`. The log is in memory, with group commit and no fsync; the task
//! has 50 observed results of 2 KB.

#![allow(missing_docs)] // criterion's macros make public items without any
#![allow(clippy::expect_used)] // a bench that cannot be set up has nothing to measure

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use rulekeep::task::{Task, TaskRequest, ToolCall};
use rulekeep::{Agent, Decision, Durability, Governor, PolicySet, Tier};
use serde_json::json;

const AGENT: &str = "bench";
const WORDS: &str = "Send the agenda to Ann Lee and to bob@example.com, and move the 'Introductory meeting' to 10:00";

fn governor() -> Governor {
    let open = "name = \"open\"\n[[rule]]\nid = \"everything\"\neffect = \"allow\"\n";
    let policies = PolicySet::from_toml(open).expect("the policies load");
    let builder = Governor::builder().policies(policies).durability(Durability::Buffered);
    let governor = builder.open_in_memory().expect("the store opens");
    governor.agents().register(Agent::new(AGENT).at_tier(Tier::T5)).expect("the agent is new");
    governor
}

fn mail(to: &str) -> (ToolCall, String) {
    let arguments =
        json!({ "recipients": [to], "subject": "The agenda", "body": "Please find the agenda of Friday below." });
    let text = json!({ "tool": "send_email", "arguments": arguments }).to_string();
    (ToolCall::new("send_email", arguments), text)
}

/// A task with as many observations as a long one.
fn task(governor: &Governor) -> Task {
    let task = governor.tasks().open(TaskRequest::new(AGENT, WORDS).max_calls(100_000)).expect("it opens");
    for number in 0..50 {
        let call = ToolCall::new("search_emails", json!({ "query": format!("agenda {number}") }));
        task.enforce(&call).expect("a verdict");
        let mails: Vec<_> = (0..5)
            .map(|place| {
                let body = "The Agenda of the meeting is as we said on Monday, with Room 4 and the budget at the end. "
                    .repeat(3);
                json!({ "id": number * 5 + place, "subject": "Re: agenda", "sender": "cid@example.com", "body": body })
            })
            .collect();
        task.observe(&call, &json!(mails)).expect("it is under the task");
    }
    task
}

fn calls(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("tool_call");
    for (name, to, expected) in [
        ("allowed", "bob@example.com", Decision::Allow),
        // Every result is searched for the origin of the value, and for data that would leave.
        ("doubtful", "eve@evil.example", Decision::Escalate),
    ] {
        let governor = governor();
        let task = task(&governor);
        let (call, text) = mail(to);
        assert_eq!(task.enforce(&call).expect("a verdict").enforcement.decision, expected);
        if expected == Decision::Allow {
            let mut plain = || drop(governor.enforce_input(AGENT, black_box(&*text)).expect("a verdict"));
            let mut under = || drop(task.enforce(black_box(&call)).expect("a verdict"));
            medians(name, [("plain", &mut plain), ("task", &mut under)]);
        } else {
            let started = Instant::now();
            (0..50).for_each(|_| drop(task.enforce(black_box(&call)).expect("a verdict")));
            println!("tool_call/{name}: {:.1} us each", started.elapsed().as_secs_f64() * 1e6 / 50.0);
            continue;
        }
        group.bench_function(format!("{name}_plain"), |bencher| {
            bencher.iter(|| governor.enforce_input(AGENT, black_box(&*text)).expect("a verdict"));
        });
        group.bench_function(format!("{name}_under_a_task"), |bencher| {
            let mut task = (task.clone(), 0_u32);
            bencher.iter_custom(|count| on(&governor, &mut task, &call, count));
        });
    }
    group.finish();
}

/// The time of this many calls, with a fresh task whenever the budget of one is used up.
fn on(governor: &Governor, (one, used): &mut (Task, u32), call: &ToolCall, count: u64) -> Duration {
    let mut took = Duration::ZERO;
    for _ in 0..count {
        if *used == 90_000 {
            (*one, *used) = (task(governor), 0);
        }
        *used += 1;
        let started = Instant::now();
        black_box(one.enforce(black_box(call)).expect("a verdict"));
        took += started.elapsed();
    }
    took
}

fn opening(criterion: &mut Criterion) {
    let governor = governor();
    let mut plain = || drop(governor.enforce_input(AGENT, black_box(WORDS)).expect("a verdict"));
    let mut open = || drop(governor.tasks().open(TaskRequest::new(AGENT, black_box(WORDS))).expect("it opens"));
    medians("open", [("plain", &mut plain), ("task", &mut open)]);
    let mut group = criterion.benchmark_group("open");
    group.sample_size(20);
    group.bench_function("plain_enforce_of_the_words", |bencher| bencher.iter(&mut plain));
    group.finish();
}

/// Takes turns between the two, so that both meet the same machine; Criterion measures one after the other.
fn medians(name: &str, mut works: [(&str, &mut dyn FnMut()); 2]) {
    const ROUNDS: usize = 5_000;
    let mut nanos = [const { Vec::new() }; 2];
    for round in 0..ROUNDS + ROUNDS / 10 {
        for (place, (_, work)) in works.iter_mut().enumerate() {
            let started = Instant::now();
            work();
            let took = started.elapsed();
            while started.elapsed() < PACE {
                std::hint::spin_loop();
            }
            if round >= ROUNDS / 10 {
                nanos[place].push(took.as_nanos());
            }
        }
    }
    for ((what, _), mut nanos) in works.iter().zip(nanos) {
        nanos.sort_unstable();
        let at = |place: usize| nanos.get(place).copied().unwrap_or_default();
        println!("{name}/{what}: p50 {} ns, p99 {} ns", at(ROUNDS / 2), at(ROUNDS * 99 / 100));
    }
}

const PACE: Duration = Duration::from_micros(200);

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    targets = calls, opening
}
criterion_main!(benches);
