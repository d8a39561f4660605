//! The official conformance suite against the gateway, as a server and as a client.
//!
//! The suite is a program of npm. As a client it calls the gateway, which has `server.mjs` behind it. As a server it is
//! behind the gateway, which `client.mjs` starts and uses. `scenarios.json` lists the scenarios that do not apply, with
//! reasons; a scenario that is neither passed nor listed fails the test, and so does a listed one that is passed.
//!
//! It runs with `RULEKEEP_NIGHTLY` or an argument. Without Node, npm or their registry, it prints that on standard error
//! and does nothing; with `RULEKEEP_REQUIRE_PEERS` set it fails instead.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on

#[path = "../peers/gateway.rs"]
mod gateway;
#[path = "../../../server/tests/common/programs.rs"]
mod programs;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Ok(role) = std::env::var(gateway::ROLE) {
        return gateway::run(&role, &arguments);
    }
    if arguments.iter().any(|argument| argument == "--list") {
        println!("the_conformance_suite_passes_through_the_gateway: test");
        return;
    }
    if std::env::var_os("RULEKEEP_NIGHTLY").is_none() && arguments.iter().all(|argument| argument.starts_with('-')) {
        return;
    }
    let known: Value = serde_json::from_str(include_str!("scenarios.json")).unwrap();
    let suite = match Suite::install(&known) {
        Ok(suite) => suite,
        Err(why) => return programs::pass_over(&why),
    };
    let mut wrong = suite.judge("server", &known, &suite.against_the_gateway());
    wrong.extend(suite.judge("client", &known, &suite.behind_the_gateway()));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

struct Suite {
    node: PathBuf,
    program: PathBuf,
    revision: String,
    results: tempfile::TempDir,
}

impl Suite {
    /// Installs the suite, and the Node that it needs, beside the build.
    fn install(known: &Value) -> Result<Self, String> {
        let [suite, node, revision] = ["suite", "node", "revision"].map(|name| known[name].as_str().unwrap());
        programs::found("npm")?;
        let folder = programs::kept("conformance");
        let install = ["install", "--no-save", "--no-audit", "--no-fund", "--prefix"];
        let mut npm = Command::new("npm");
        npm.args(install).arg(&folder).args([suite, node]);
        programs::done(&mut npm, programs::LATER).map_err(|why| format!("the suite is not installed: {why}"))?;
        let modules = folder.join("node_modules");
        let found = Self {
            node: modules.join(".bin/node"),
            program: modules.join("@modelcontextprotocol/conformance/dist/index.js"),
            revision: revision.to_owned(),
            results: tempfile::tempdir().unwrap(),
        };
        programs::done(Command::new(&found.node).arg("--version"), programs::SOON).map(|()| found)
    }

    /// Runs the suite as a client of the gateway. Returns its summary.
    fn against_the_gateway(&self) -> String {
        let (_server, upstream) = started(Command::new(&self.node).arg(script("server.mjs")));
        let own = std::env::current_exe().unwrap();
        let (_gateway, url) = started(Command::new(own).arg(upstream).env(gateway::ROLE, "open-listen"));
        self.run(&["server", "--url", &url])
    }

    /// Runs the suite as a server behind the gateway. Returns its summary.
    fn behind_the_gateway(&self) -> String {
        let client = format!("{} {}", self.node.display(), script("client.mjs").display());
        self.run(&["client", "--command", &client])
    }

    fn run(&self, arguments: &[&str]) -> String {
        let mut suite = Command::new(&self.node);
        suite.arg(&self.program).args(arguments).args(["--requirements", &self.revision, "--output-dir"]);
        suite.arg(self.results.path()).env("GATEWAY", std::env::current_exe().unwrap());
        let output = programs::ended(&mut suite, &[], programs::LATER);
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    }

    /// Compares the summary with the list, prints the figures, and returns what is wrong.
    fn judge(&self, side: &str, known: &Value, said: &str) -> Vec<String> {
        let results = results(said);
        let listed = known[side]["not_applicable"].as_array().unwrap().iter();
        let listed: Vec<&str> = listed
            .flat_map(|group| group["scenarios"].as_array().unwrap())
            .map(|name| name.as_str().unwrap())
            .collect();
        let passed = results.values().filter(|passes| **passes).count();
        println!(
            "{side}, revision {}: {passed} of {} scenarios passed, {} do not apply",
            self.revision,
            results.len(),
            listed.len()
        );
        let mut wrong = Vec::new();
        if results.len() as u64 != known[side]["scenarios"].as_u64().unwrap() {
            wrong.push(format!("{side}: {} scenarios ran:\n{said}", results.len()));
        }
        for (name, passes) in &results {
            match (passes, listed.contains(&name.as_str())) {
                (false, false) => wrong.push(format!("{side}: {name} fails:\n{}", details(said, name))),
                (true, true) => wrong.push(format!("{side}: {name} passes; take it off the list")),
                _ => {}
            }
        }
        wrong.extend(
            listed
                .iter()
                .filter(|name| !results.contains_key(**name))
                .map(|name| format!("{side}: no scenario {name}")),
        );
        wrong
    }
}

/// The scenarios in a summary, and whether they passed with at least one check.
fn results(said: &str) -> BTreeMap<String, bool> {
    let lines = said.lines().filter_map(|line| {
        let (mark, rest) = line.split_once(' ')?;
        let (name, counts) = rest.split_once(": ")?;
        let (passed, _) = counts.split_once(" passed, ")?;
        matches!(mark, "✓" | "✗").then(|| (name.to_owned(), mark == "✓" && passed != "0"))
    });
    lines.collect()
}

/// The lines about a scenario.
fn details(said: &str, name: &str) -> String {
    said.lines().filter(|line| line.contains(name)).collect::<Vec<_>>().join("\n")
}

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server, which prints its URL.
fn started(command: &mut Command) -> (Process, String) {
    let mut process = Process(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut url = String::new();
    BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut url).unwrap();
    (process, url.trim().to_owned())
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance").join(name)
}
