//! The cost of an evaluation: time and allocations by the number of rules, the cost of each condition, and the time
//! to load ten thousand rules. `cargo run --release --bin cost`.

use std::alloc::System;
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use rulekeep::policy::PolicyRequest;
use rulekeep::trust::TrustSnapshot;
use rulekeep::{Intent, PolicySet, RiskLevel, Tier};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static COUNTED: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> Result<(), Box<dyn Error>> {
    let intent = Intent::new("alice", "send_report", RiskLevel::Low, ["document:read"])?.with_context("amount", 12.5);
    println!("{:<34}{:>12}{:>14}{:>12}", "set", "median ns", "allocations", "load ms");
    for size in [10, 100, 1_000, 10_000] {
        let rules = (0..size).map(|rule| {
            let action = if rule % 10 == 0 { "send_report".to_owned() } else { format!("other_{rule}") };
            format!(r#"{{"id":"r{rule}","effect":"allow","match":{{"actions":["{action}"]}}}}"#)
        });
        show(&format!("{size} rules, one in ten matches"), &rules.collect::<Vec<_>>(), &intent)?;
    }
    // Different conditions that all hold, so that each has to be run.
    for conditions in [0, 1, 2, 4, 8] {
        let conditional = (0..conditions).map(|rule| {
            format!(
                r#"{{"id":"c{rule}","effect":"allow","match":{{"actions":["send_report"]}},"when":"context.amount < {}.0 && intent.action.startsWith('send') && agent.id != 'mallory'"}}"#,
                1000 + rule
            )
        });
        let plain = r#"{"id":"plain","effect":"allow","match":{"actions":["send_report"]}}"#.to_owned();
        let rules: Vec<String> = std::iter::once(plain).chain(conditional).collect();
        show(&format!("{conditions} conditions of three clauses"), &rules, &intent)?;
    }
    Ok(())
}

fn show(name: &str, rules: &[String], intent: &Intent) -> Result<(), Box<dyn Error>> {
    let text = format!(r#"{{"name":"cost","rule":[{}]}}"#, rules.join(","));
    let started = Instant::now();
    let set = PolicySet::from_json(&text)?;
    let load = started.elapsed().as_secs_f64() * 1e3;
    let request = PolicyRequest::new(intent, TrustSnapshot::new(Tier::T3.middle(), Tier::T3));
    let mut rounds: Vec<u128> = (0..5_000)
        .map(|_| {
            let started = Instant::now();
            for _ in 0..20 {
                let _ = black_box(set.evaluate(black_box(&request)));
            }
            started.elapsed().as_nanos() / 20
        })
        .collect();
    rounds.sort_unstable();
    let region = Region::new(COUNTED);
    let verdict = set.evaluate(&request)?;
    let change = region.change();
    black_box(verdict);
    let median = rounds.get(rounds.len() / 2).copied().unwrap_or(0);
    println!("{name:<34}{median:>12}{:>14}{load:>12.2}", change.allocations + change.reallocations);
    Ok(())
}
