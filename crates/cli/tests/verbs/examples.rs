//! Tests that every example in every `--help` runs.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use crate::fixture::{PROGRAM, Place, until};

/// Examples that end with 1 here because of a finding: nothing is installed, changed or frequent enough, a member of the
/// fleet is in trouble, and there is no terminal.
const FINDING: &[&str] = &[
    "rulekeep doctor",
    "rulekeep fleet coverage",
    "rulekeep mcp accept",
    "rulekeep policy import",
    "rulekeep tune",
    "rulekeep watch",
];
/// The ULID in the IDs of examples.
const ULID: &str = "01m89vy2x6z7e9r8r000000003";

/// Examples that run without a daemon: they start it, or need the store to themselves.
const WITHOUT_DAEMON: &[&str] =
    &["rulekeep up", "rulekeep init", "rulekeep log archive", "rulekeep log erase", "rulekeep log repair"];
/// Commands whose examples share a home.
const READING: &[&str] = &[
    "bundle",
    "check",
    "completions",
    "coverage",
    "deliveries",
    "list",
    "man",
    "query",
    "show",
    "stats",
    "status",
    "tail",
    "verify",
    "who",
];
/// Examples that run until they are stopped.
const SERVING: &[&str] =
    &["rulekeep fleet hub", "rulekeep fleet witness", "rulekeep serve", "rulekeep up --foreground"];
/// The database of an example, which is replaced by that of the environment.
const DATABASE: &str = "postgres://rulekeep@db.example.com/fleet";

/// Collects the lines of the examples, and the commands that have none.
fn examples(command: &clap::Command, name: &str, found: &mut Vec<String>, lacking: &mut Vec<String>) {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let lines = help.split_once("Examples:\n").map_or("", |(_, lines)| lines).lines();
    let before = found.len();
    found.extend(lines.map(str::trim).filter(|line| line.starts_with("rulekeep ")).map(str::to_owned));
    if !command.has_subcommands() && found.len() == before {
        lacking.push(name.to_owned());
    }
    for inner in command.get_subcommands() {
        examples(inner, format!("{name} {}", inner.get_name()).trim(), found, lacking);
    }
}

#[test]
fn every_verb_has_examples_and_each_runs() {
    rulekeep_cli::command().debug_assert();
    let (mut found, mut lacking) = (Vec::new(), Vec::new());
    examples(&rulekeep_cli::command(), "", &mut found, &mut lacking);
    assert!(lacking.is_empty(), "without examples: {lacking:?}");
    assert!(found.len() > 40, "{found:?}");
    let failures = Mutex::new(Vec::new());
    let next = Mutex::new(found.into_iter());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let shared = Place::with_daemon();
                loop {
                    let Some(example) = next.lock().unwrap().next() else { break };
                    let is_reading = example.split(' ').skip(1).take(2).any(|word| READING.contains(&word));
                    let done = if is_reading { run(&example, &shared) } else { run(&example, &place_for(&example)) };
                    if let Err(failure) = done {
                        failures.lock().unwrap().push(format!("{example}\n{failure}"));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn is(example: &str, beginnings: &[&str]) -> bool {
    beginnings.iter().any(|beginning| example.starts_with(beginning))
}

/// Creates a home for an example that changes something.
fn place_for(example: &str) -> Place {
    let place = if is(example, WITHOUT_DAEMON) { Place::new() } else { Place::with_daemon() };
    if example.starts_with("rulekeep init") {
        std::fs::remove_dir_all(place.home()).unwrap();
    }
    place
}

/// Runs an example as a shell does.
fn run(example: &str, place: &Place) -> Result<(), String> {
    let mut line = example.replace("127.0.0.1:8080", "127.0.0.1:0");
    for (prefix, id) in &place.made.ids {
        line = line.replace(&format!("{prefix}{ULID}"), id);
    }
    assert!(!line.contains(ULID), "no id for {line}");
    match std::env::var("RULEKEEP_FLEET_DATABASE") {
        Ok(database) => line = line.replace(DATABASE, &format!("'{database}'")),
        Err(_) if line.contains(DATABASE) => return Ok(()),
        Err(_) => {}
    }
    let folder = std::path::Path::new(PROGRAM).parent().unwrap().display();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    place.prepare(&mut shell);
    let confines = example.starts_with("rulekeep exec");
    if confines {
        // The home is no folder to work in.
        let folder = place.work().join("inner");
        std::fs::create_dir_all(&folder).unwrap();
        shell.current_dir(folder);
    }
    shell.args(["-euc", &format!("exec {line}")]).env("PATH", path).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    if is(example, SERVING) {
        if example.starts_with("rulekeep up") {
            until(|| place.run(&["status"]).status.success());
        } else {
            let mut ready = String::new();
            BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
        }
        let ended = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
        assert!(ended.success());
    }
    let output = child.wait_with_output().unwrap();
    let is_possible = std::env::var_os("RULEKEEP_REQUIRE_CONFINE").is_some();
    if confines && !is_possible && output.status.code() == Some(126) {
        return Ok(()); // not every system can confine a process
    }
    if output.status.success() || is(example, FINDING) && output.status.code() == Some(1) {
        return Ok(());
    }
    Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)))
}
