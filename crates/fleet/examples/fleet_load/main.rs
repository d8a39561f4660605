//! Measures a fleet: members over real connections to hubs that are processes of their own, over a real PostgreSQL.
//!
//! ```text
//! cargo run --release -p rulekeep-fleet --features hub --example fleet_load -- [--members N] [--hubs N] [--rest SECONDS]
//!     [--stops N] [--rounds N] [--standby] [--check]
//! ```
//!
//! It prints a line a measure. Members and hubs need a file handle for each connection: `ulimit -n` above the number of
//! members. `--rounds 0` leaves out the appends. `--check` ends with an error if a target is missed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::cast_precision_loss)] // it ends where it cannot go on; figures are rounded

mod appends;
mod members;
mod process;
#[path = "../../tests/fleet/support/mod.rs"]
#[allow(dead_code)] // the tests use the rest
mod support;

use std::time::{Duration, Instant};

use members::Fleet;
use process::Usage;
use support::cluster::Cluster;
use support::hub::{HubOptions, HubProcess};
use support::organisation::stop;

/// The settings of a run.
struct Run {
    members: usize,
    hubs: usize,
    rest: Duration,
    stops: usize,
    rounds: usize,
    standby: bool,
    check: bool,
}

impl Run {
    fn of(arguments: impl Iterator<Item = String>) -> Self {
        let (mut arguments, mut run) = (
            arguments,
            Self {
                members: 10_000,
                hubs: 2,
                rest: Duration::from_secs(60),
                stops: 3,
                rounds: 7,
                standby: false,
                check: false,
            },
        );
        while let Some(name) = arguments.next() {
            let mut number =
                || arguments.next().and_then(|value| value.parse().ok()).expect("a number after the option");
            match name.as_str() {
                "--members" => run.members = number(),
                "--hubs" => run.hubs = number(),
                "--rest" => run.rest = Duration::from_secs(number() as u64),
                "--stops" => run.stops = number(),
                "--rounds" => run.rounds = number(),
                "--standby" => run.standby = true,
                "--check" => run.check = true,
                other => panic!("unknown option {other}"),
            }
        }
        run
    }
}

fn main() {
    support::hub::be_a_hub();
    let run = Run::of(std::env::args().skip(1));
    let Some(cluster) = Cluster::start(if run.standby { &["--standby"] } else { &[] }) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let missed = runtime.block_on(measure(&run, &cluster));
    println!("load of the machine: {}", process::machine());
    for missed in &missed {
        println!("MISSED {missed}");
    }
    assert!(!run.check || missed.is_empty(), "targets were missed");
}

async fn measure(run: &Run, cluster: &Cluster) -> Vec<String> {
    let mut missed = Missed::default();
    let options = HubOptions::new(&cluster.url());
    let mut hubs: Vec<HubProcess> = (0..run.hubs).map(|_| HubProcess::start(&options)).collect();
    let organisation = support::found(hubs[0].api, 30).await;
    println!("members {}, hubs {}, standby {}, T 30 s, B 10 s", run.members, run.hubs, run.standby);

    let began = Instant::now();
    let fleet = Fleet::start(run.members, organisation, hubs.iter().map(HubProcess::address).collect());
    fleet.until_all_are_admitted().await;
    println!("admit: {:.1} s until all are enrolled and have a permit", began.elapsed().as_secs_f64());

    // Beats are spread over the time that hubs hold them once each member has waited for one.
    fleet.until_all_have_beaten_again().await;
    let processes: Vec<u32> = hubs.iter().map(HubProcess::id).collect();
    let (before, beats, began) = (Usage::of(&processes, cluster), fleet.beats(), Instant::now());
    tokio::time::sleep(run.rest).await;
    let (after, beats, time) = (Usage::of(&processes, cluster), fleet.beats() - beats, began.elapsed().as_secs_f64());
    println!("rest: {:.0} beats/s over {time:.0} s", beats as f64 / time);
    for (n, (before, after)) in before.hubs.iter().zip(&after.hubs).enumerate() {
        let cores = (after.seconds - before.seconds) / time;
        println!("rest: hub {n} {:.1} MiB, {cores:.3} cores", after.mib);
        missed.above("memory of a hub in MiB", after.mib, 500.0);
        missed.above("processor of a hub at rest in cores", cores, 1.0);
    }
    println!(
        "rest: PostgreSQL {:.3} cores, this program {:.3} cores",
        (after.database - before.database) / time,
        (after.own - before.own) / time
    );

    for round in 0..run.stops {
        let api = hubs[round % hubs.len()].api;
        let report = fleet.give(api, stop(&[])).await;
        println!("stop {round}: {report}");
        missed.above("stop delivered, p50 in s", report.delivered.at(50), 0.3);
        missed.above("stop delivered, p99 in s", report.delivered.at(99), 1.0);
        missed.above("stop acknowledged, p99 in s", report.acknowledged_99, 4.0);
        fleet.until_all_have_beaten_again().await;
    }

    if hubs.len() > 1 {
        let moved = fleet.move_off(&mut hubs[0]).await;
        println!("hub killed: {moved}");
        missed.above("members without a permit after a hub was killed", moved.ended as f64, 0.0);
        drop(hubs.remove(0));
    }
    let organisation = fleet.organisation();
    drop(fleet);
    if run.rounds > 0 {
        let report = appends::measure(run.rounds, cluster, &hubs[0], &organisation).await;
        println!("appends: {report}");
        missed.below("appends through a hub over bare PostgreSQL", report.ratio(), 0.7);
    }
    missed.0
}

/// The targets that were missed.
#[derive(Default)]
struct Missed(Vec<String>);

impl Missed {
    fn above(&mut self, what: &str, found: f64, most: f64) {
        self.0.extend((found > most).then(|| format!("{what}: {found:.2}, target at most {most}")));
    }

    fn below(&mut self, what: &str, found: f64, least: f64) {
        self.0.extend((found < least).then(|| format!("{what}: {found:.2}, target at least {least}")));
    }
}
