//! A live `serve`, used by hands that are not ours: the README's commands of
//! curl as they stand there, and the clients of `examples/clients` in Python
//! and in Node, also through a line that loses an answer.
//!
//! What is not there on a machine is said on standard error, and the test is
//! passed over; with `RULEKEEP_REQUIRE_PEERS` set it fails instead.
#![cfg(all(feature = "http", unix))]
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on

mod flaky_line;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

use flaky_line::{FlakyLine, Passed};
use serde_json::Value;
use tempfile::TempDir;

#[test]
fn the_commands_in_the_readme_do_what_it_says() {
    if !["bash", "curl", "jq"].into_iter().all(is_there) {
        return;
    }
    let readme = include_str!("../README.md");
    let section = readme.split("\n## Over HTTP\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let mut blocks = section.split("\n```sh\n").skip(1).map(|block| block.split("\n```").next().unwrap());
    let commands = blocks.find(|block| block.contains("curl ")).expect("the README has commands of curl");

    let serve = Serve::start();
    let mut bash = Command::new("bash");
    bash.args(["-euo", "pipefail", "-c", commands]).env("URL", &serve.url).env("ADMIN", &serve.admin);
    let said = succeeded(bash.output().unwrap());
    let answers: Vec<Value> = serde_json::Deserializer::from_str(&said).into_iter().collect::<Result<_, _>>().unwrap();
    let [registered, verdict, recorded, page, status] = answers.as_slice() else { panic!("{said}") };
    assert_eq!(registered["tier"], "T3");
    assert_eq!(verdict["decision"], "ALLOW");
    assert_eq!((&recorded["id"], &recorded["outcome"]), (&verdict["proofId"], &"SUCCESS".into()));
    assert_eq!((&page["total"], &page["items"][0]), (&1.into(), recorded));
    assert_eq!(status["status"], "healthy");
    serve.end();
}

#[test]
fn the_python_client_loses_and_doubles_nothing_on_a_line_that_does() {
    match python() {
        Ok(python) => check(Command::new(python).arg(client("python_client.py"))),
        Err(why) => pass_over(&why),
    }
}

#[test]
fn the_node_client_loses_and_doubles_nothing_on_a_line_that_does() {
    if is_there("node") {
        check(Command::new("node").arg(client("node_client.mjs")));
    }
}

#[test]
fn a_client_that_is_refused_says_so_at_once_and_fails() {
    let Ok(python) = python() else { return }; // said above
    if !is_there("node") {
        return;
    }
    let serve = Serve::start();
    for (program, script) in [(python.as_path(), "python_client.py"), (Path::new("node"), "node_client.mjs")] {
        let line = FlakyLine::to(&serve.address(), &[]);
        // By arguments, this time.
        let output = Command::new(program).arg(client(script)).args([&line.url, "rkp_admin_wrong"]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("401 UNAUTHORIZED"), "{said}");
        assert_eq!(line.passed().len(), 1, "{script} tried again");
    }
}

/// Runs a client where the first verdict is lost on its way, then the server is busy, then the client is too fast.
fn check(command: &mut Command) {
    let serve = Serve::start();
    let faults = [
        flaky_line::Fault::LoseTheAnswer,
        flaky_line::Fault::Answer("503 Service Unavailable", "", r#"{"error":{"code":"BUSY","message":"busy"}}"#),
        flaky_line::Fault::Answer(
            "429 Too Many Requests",
            "Retry-After: 1\r\n",
            r#"{"error":{"code":"RATE_LIMITED"}}"#,
        ),
    ];
    let line = FlakyLine::to(&serve.address(), &[("POST /v1/enforce", &faults)]);
    command.env("RULEKEEP_URL", &line.url).env("RULEKEEP_ADMIN_KEY", &serve.admin);
    let said = succeeded(command.output().unwrap());

    // What the client checks itself: the answers, and that there are three records.
    let again: Vec<&str> = said.lines().filter(|line| line.contains("; again in ")).collect();
    let [lost, busy, fast] = again.as_slice() else { panic!("{said}") };
    assert!(lost.contains("no answer") && busy.contains("503"), "{said}");
    assert!(fast.contains("429") && fast.ends_with("again in 1.0 s"), "Retry-After is not what it waits: {fast}");
    assert!(!said.contains("rkp_"), "a key is printed: {said}");

    let passed = line.passed();
    let of = |what: &str| passed.iter().filter(|passed| passed.asked == what).collect::<Vec<&Passed>>();
    let verdicts = of("POST /v1/enforce");
    let [tries @ .., next] = verdicts.as_slice() else { panic!("{passed:?}") };
    assert_eq!(tries.len(), 4, "{passed:?}");
    assert!(tries[0].idempotency_key.is_some() && tries[0].idempotency_key != next.idempotency_key, "{passed:?}");
    assert!(tries.iter().all(|tried| tried.idempotency_key == tries[0].idempotency_key), "{passed:?}");
    assert!(tries[3].is_replayed && !tries[0].is_replayed, "{passed:?}");
    // With the agent's key, once; with the administrator's.
    let statuses: Vec<u16> = of("GET /v1/admin/status").iter().map(|passed| passed.status).collect();
    assert_eq!(statuses, [403, 200], "{passed:?}");
    serve.end();
}

/// `examples/serve.rs` in a process of its own, on a port and a store of its own.
struct Serve {
    child: Child,
    url: String,
    admin: String,
    _store: TempDir,
}

impl Serve {
    fn start() -> Self {
        let store = tempfile::tempdir().unwrap();
        let mut child = Command::new(executable())
            .args(["--listen", "127.0.0.1:0", "--durability", "buffered", "--store"])
            .arg(store.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).expect("serve says that it is ready");
        let text = |name: &str| ready[name].as_str().expect(name).to_owned();
        Self { url: text("url"), admin: text("adminKey"), child, _store: store }
    }

    fn address(&self) -> String {
        self.url.trim_start_matches("http://").trim_end_matches("/v1").to_owned()
    }

    /// Asks it to end, which it does well.
    fn end(mut self) {
        let kill = format!("kill -TERM {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        // It may have ended; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `serve`, built with the features of this test, so that little is compiled twice.
fn executable() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let features = [
            ("http", true),
            ("checkpoints", cfg!(feature = "checkpoints")),
            ("metrics", cfg!(feature = "metrics")),
            ("sql", cfg!(feature = "sql")),
            ("tracing", cfg!(feature = "tracing")),
            ("webhooks", cfg!(feature = "webhooks")),
        ];
        let features: Vec<&str> = features.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name).collect();
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["build", "--locked", "--quiet", "--message-format=json", "--example", "serve"])
            .args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")])
            .args(["--features", &features.join(",")])
            .arg("--target-dir")
            .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap());
        if !cfg!(debug_assertions) {
            cargo.arg("--release");
        }
        let said = succeeded(cargo.output().unwrap());
        let messages = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut built = messages.filter(|message| message["target"]["name"] == "serve");
        let built = built.find_map(|message| message["executable"].as_str().map(PathBuf::from));
        built.expect("cargo says where it put serve")
    })
}

fn client(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "examples", "clients", name].iter().collect()
}

/// What a program said that must end well.
fn succeeded(output: Output) -> String {
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    said
}

/// A Python that has `requests`: the machine's, or one made once and kept with what is built. Or why there is none.
fn python() -> Result<PathBuf, String> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let find = || {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-requests");
        let (machines, own) = (PathBuf::from("python3"), folder.join("bin/python"));
        let run = |program: &Path, arguments: &[&str]| match Command::new(program).args(arguments).output() {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(format!("{}: {error}", program.display())),
        };
        if let Some(python) =
            [&machines, &own].into_iter().find(|python| run(python, &["-c", "import requests"]).is_ok())
        {
            return Ok(python.clone());
        }
        run(&machines, &["-m", "venv", "--clear", &folder.to_string_lossy()])?;
        run(&own, &["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "requests"])?;
        Ok(own)
    };
    FOUND.get_or_init(find).clone()
}

/// Whether a program is there; says so where it is not.
fn is_there(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        pass_over(&format!("{program} is not on this machine"));
    }
    found
}

/// Says why a test is passed over, past the test harness, which keeps what a good test prints to itself.
fn pass_over(why: &str) {
    assert!(std::env::var_os("RULEKEEP_REQUIRE_PEERS").is_none(), "{why}");
    let _ = writeln!(std::io::stderr(), "SKIPPED, nothing was tried: {why}");
}
