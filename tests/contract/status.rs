//! The status: what is counted is exact, and what is sick is told.

use crate::common;

use common::{Hand, NOON, builder, intent, reading};
use rulekeep::status::{Health, Metrics};
use rulekeep::{Agent, Governor, Tier};
use serde_json::json;

const DAY: i64 = 86_400_000;
/// Eight hours after midnight, UTC.
const MIDNIGHT: i64 = NOON - 8 * 3_600_000;

fn counted(governor: &Governor) -> (u64, u64) {
    let Metrics { decisions_today, escalations_today, .. } = governor.status().metrics;
    (decisions_today, escalations_today)
}

fn ask(governor: &Governor) {
    governor.enforce(&intent("a", &["email:send"])).unwrap();
}

#[test]
fn the_day_begins_at_midnight_utc_and_counts_outlast_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Hand::at(MIDNIGHT + DAY - 1);
    let open = || builder().clock(clock.clone()).open(folder.path()).unwrap();
    let governor = open();
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    governor.enforce(&reading("a")).unwrap();
    ask(&governor);
    assert_eq!(counted(&governor), (2, 1), "in the day's last millisecond");
    clock.set(MIDNIGHT + DAY);
    assert_eq!(counted(&governor), (0, 0), "in the next day's first");
    ask(&governor);
    governor.enforce(&reading("a")).unwrap();
    governor.enforce(&reading("a")).unwrap();
    assert_eq!(counted(&governor), (3, 1));
    governor.close().unwrap();
    drop(governor);
    let governor = open();
    assert_eq!(counted(&governor), (3, 1), "after a restart");
    clock.set(MIDNIGHT + 2 * DAY);
    assert_eq!(counted(&governor), (0, 0));
    governor.close().unwrap();
    drop(governor);
    assert_eq!(counted(&open()), (0, 0), "a restart brings no other day's back");
}

#[test]
fn a_confirmed_step_back_over_midnight_finds_that_days_counts() {
    let clock = Hand::at(NOON);
    let governor = builder().clock(clock.clone()).open_in_memory().unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    ask(&governor);
    governor.enforce(&reading("a")).unwrap();
    clock.set(NOON + DAY);
    governor.enforce(&reading("a")).unwrap();
    clock.set(NOON);
    assert_eq!(counted(&governor), (1, 0), "it is not believed");
    governor.log().accept_clock("ann", "").unwrap();
    assert_eq!(counted(&governor), (2, 1));
}

#[test]
fn latency_is_told_over_a_stated_window_beside_the_names_of_old() {
    let governor = common::in_memory();
    let before = json!(governor.status().metrics);
    let nothing = json!({ "windowSeconds": 300, "count": 0, "p50Ms": 0.0, "p90Ms": 0.0, "p99Ms": 0.0, "maxMs": 0.0 });
    assert_eq!((&before["latency"], &before["averageLatencyMs"]), (&nothing, &json!(0.0)));
    for _ in 0..20 {
        governor.enforce(&reading("a")).unwrap();
    }
    governor.enforce(&reading("nobody")).unwrap_err();
    let metrics = governor.status().metrics;
    let latency = metrics.latency;
    assert_eq!(latency.count, 20, "what came to no verdict has no latency");
    assert!(0.0 < latency.p50_ms && latency.p50_ms <= latency.p90_ms && latency.p90_ms <= latency.p99_ms);
    assert!(latency.p99_ms <= latency.max_ms && metrics.average_latency_ms <= latency.max_ms);
}

#[test]
fn a_closed_governor_is_told_by_its_gateway_and_not_by_others() {
    let governor = common::in_memory();
    let whole = governor.status();
    assert_eq!((whole.status, whole.warnings.len()), (Health::Healthy, 0));
    governor.close().unwrap();
    let status = governor.status();
    assert_eq!((status.status, status.components.gateway), (Health::Unhealthy, Health::Unhealthy));
    assert_eq!((status.components.trust_engine, status.components.database), (Health::Healthy, Health::Healthy));
    assert!(status.warnings[0].contains("no decision can be made"), "{:?}", status.warnings);
}

#[test]
fn agents_that_are_active_are_counted_and_no_others() {
    let governor = common::in_memory();
    governor.agents().register(Agent::new("b")).unwrap();
    governor.agents().register(Agent::new("c")).unwrap();
    governor.agents().suspend("b", "for a while").unwrap();
    assert_eq!(governor.status().metrics.active_agents, 2);
}
