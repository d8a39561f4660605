//! The battery: 8 hosts and 15 faults. Each cell runs the doctor and the test double of the host on the same machine.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::thread;
use std::time::Duration;

use clap::ValueEnum as _;
use rulekeep_cli::doctor::{Machine, Report, State, Verdict, examine};
use rulekeep_cli::hook::event::Host;

use crate::double::{self, Call, Way};
use crate::faults::{Variant, battery};
use crate::setup::Setup;
use crate::world::{Scope, World};

#[test]
fn the_doctor_is_never_green_where_the_probe_ran() {
    let mut table = format!("{:<18}", "");
    for host in Host::value_variants() {
        write!(table, "{:<11}", host.name()).unwrap();
    }
    let columns: Vec<Vec<Cell>> = thread::scope(|scope| {
        let hosts: Vec<_> = Host::value_variants().iter().map(|host| scope.spawn(|| column(*host))).collect();
        hosts.into_iter().map(|host| host.join().unwrap()).collect()
    });
    let mut wrong = Vec::new();
    for row in 0..columns[0].len() {
        write!(table, "\n{:<18}", columns[0][row].fault).unwrap();
        for column in &columns {
            let cell = &column[row];
            write!(table, "{:<11}", cell.word()).unwrap();
            wrong.extend(cell.wrong.iter().cloned());
        }
    }
    let cells: usize = columns.iter().map(Vec::len).sum();
    println!("{table}\n{cells} cells, {} in which the probe ran and the doctor was green", wrong.len());
    assert_eq!(cells, 120);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_correct_installation_is_green() {
    for host in Host::value_variants() {
        let world = World::installed(*host, Scope::User);
        assert!(!double::runs(*host, &world, &Call::made(Way::Plain)), "{host:?}: the double runs the probe");
        let report = doctor(&world);
        assert_eq!(report.verdict, Verdict::Green, "{report}");
        assert!(report.probes.len() >= 3 && report.probes.iter().all(|(_, refused)| *refused), "{report}");
    }
}

#[test]
fn only_faults_an_installation_survives_are_told_as_blocked() {
    for host in Host::value_variants() {
        let report = doctor(&World::installed(*host, Scope::User));
        for (fault, variants) in battery(*host) {
            let cell = report.cells.iter().find(|cell| cell.fault.title() == fault).unwrap();
            assert_eq!(cell.remedy.is_empty(), cell.state != State::Runs, "{host:?} {fault}");
            if variants.is_empty() {
                assert_eq!(cell.state, State::Impossible, "{host:?} {fault}");
            }
            if TRIED.contains(&fault) {
                continue;
            }
            let ran =
                variants.iter().filter(|variant| variant.scope == Scope::User).any(|variant| ran(*host, variant).0);
            assert!(
                !ran || cell.state == State::Runs,
                "{host:?} {fault}: the probe ran and the doctor says {}",
                cell.state
            );
        }
    }
}

#[test]
fn an_older_version_gets_no_credit_for_what_a_newer_one_does() {
    let world = World::installed(Host::Claude, Scope::User);
    let crash =
        |world: &World| doctor(world).cells.into_iter().find(|cell| cell.fault.title() == "crash").unwrap().state;
    assert_eq!(crash(&world), State::Blocked);
    world.version("2.1.100");
    assert_eq!(crash(&world), State::Runs);
}

/// Faults that the doctor tries with the registered hook; with another hook, the cell has another meaning.
const TRIED: &[&str] = &["byte order mark", "64 in parallel", "sub-agent", "headless"];

/// The cell of a host and a fault.
struct Cell {
    fault: &'static str,
    variants: usize,
    ran: usize,
    verdicts: Vec<Verdict>,
    wrong: Vec<String>,
}

impl Cell {
    fn word(&self) -> String {
        let worst = self.verdicts.iter().max();
        match (self.variants, self.ran) {
            (0, _) => "-".to_owned(),
            (_, 0) => format!("blocked {}", worst.map_or(' ', |verdict| initial(*verdict))),
            (of, ran) => format!("ran {ran}/{of} {}", worst.map_or(' ', |verdict| initial(*verdict))),
        }
    }
}

const fn initial(verdict: Verdict) -> char {
    match verdict {
        Verdict::Green => 'g',
        Verdict::NotProven => 'n',
        Verdict::Red => 'r',
    }
}

fn column(host: Host) -> Vec<Cell> {
    let cell = |(fault, variants): (&'static str, Vec<Variant>)| {
        let mut cell = Cell { fault, variants: variants.len(), ran: 0, verdicts: Vec::new(), wrong: Vec::new() };
        for variant in &variants {
            let (ran, world) = ran(host, variant);
            let report = doctor(&world);
            let state = report.cells.iter().find(|cell| cell.fault.title() == fault).unwrap().state;
            cell.ran += usize::from(ran);
            cell.verdicts.push(report.verdict);
            if ran && (report.verdict == Verdict::Green || state == State::Blocked) {
                cell.wrong.push(format!("{host:?}, {fault}, {}: {state}\n{report}", variant.name));
            }
        }
        cell
    };
    battery(host).into_iter().map(cell).collect()
}

/// Whether the probe runs under a fault, and the machine that it ran on.
fn ran(host: Host, variant: &Variant) -> (bool, World) {
    let world = World::installed(host, variant.scope);
    (variant.inject)(&world);
    world.settle();
    (double::runs(host, &world, &variant.call), world)
}

fn doctor(world: &World) -> Report {
    world.settle();
    let environment = world.environment().into_iter().map(|(name, value)| (OsString::from(name), value.into()));
    let machine = Machine {
        home: world.home.clone(),
        project: world.project.clone(),
        environment: Some(environment.collect()),
        patience: Duration::from_secs(4),
    };
    examine(world.host, &machine)
}

#[test]
fn every_correct_installation_with_daemon_and_policy_is_green() {
    let setup = Setup::new();
    let _up = setup.up();
    for host in Host::value_variants() {
        let world = World::installed(*host, Scope::User);
        let (home, program) = (setup.home().display(), env!("CARGO_BIN_EXE_rulekeep"));
        // The doctor uses another home to test a missing daemon.
        world.hook(&format!(
            "#!/bin/sh\n: \"${{RULEKEEP_HOME:={home}}}\"\nexport RULEKEEP_HOME\nexec {program} \"$@\"\n"
        ));
        let report = doctor(&world);
        assert_eq!(report.verdict, Verdict::Green, "{report}");
    }
}
