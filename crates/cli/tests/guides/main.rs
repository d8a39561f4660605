//! Runs the commands of every page of `docs/guides`, as the page says them.
//!
//! All ```` ```sh ```` blocks of a page run in one shell, with the built `rulekeep` on the path. The folder has nothing but
//! the scripts of `docs/guides`; `HOME` and `RULEKEEP_HOME` are inside it, and the port `PORT` is free. Lines that start
//! with `cargo ` are left out. A line `# => TEXT` says what the output of the commands since the last such line contains.
//! A page has at least three such lines.

#![allow(clippy::unwrap_used)] // helpers of tests

use std::fmt::Write as _;
use std::fs::File;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// The pages that have a test of their own below.
const NAMED: [&str; 4] = ["coding-agents", "mcp", "auditors", "operators"];

#[test]
fn coding_agents() {
    run("coding-agents").unwrap();
}

#[test]
fn mcp() {
    run("mcp").unwrap();
}

#[test]
fn auditors() {
    run("auditors").unwrap();
}

#[test]
fn operators() {
    run("operators").unwrap();
}

#[test]
fn every_other_guide() {
    let pages = names(".md");
    let others = pages.iter().filter_map(|page| page.strip_suffix(".md")).filter(|name| !NAMED.contains(name));
    let failed: Vec<String> = others.filter_map(|name| run(name).err()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// Runs one page; a page without shell blocks holds.
fn run(name: &str) -> Result<(), String> {
    let page =
        std::fs::read_to_string(folder().join(format!("{name}.md"))).map_err(|error| format!("{name}: {error}"))?;
    let Some(Script { text, expected }) = Script::of(&page) else { return Ok(()) };
    if expected.len() < 3 {
        return Err(format!("{name}.md: {} lines `# => TEXT`, at least 3 are needed", expected.len()));
    }
    for program in ["curl", "jq"] {
        if page.contains(program) && Command::new(program).arg("--version").output().is_err() {
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{program} does not run");
            eprintln!("{name}.md skipped: {program} does not run");
            return Ok(());
        }
    }
    let scratch = tempfile::tempdir().unwrap();
    // Files, not pipes: a process that a failed page left behind must not hold the test up.
    let [shown, errors] = ["shown", "errors"].map(|name| scratch.path().join(name));
    std::fs::create_dir(scratch.path().join("page")).unwrap();
    for file in names(".sh") {
        std::fs::copy(folder().join(&file), scratch.path().join("page").join(&file)).unwrap();
    }
    let mut shell = Command::new("sh")
        .args(["-c", &text])
        .env("PATH", path())
        .env("HOME", scratch.path().join("page"))
        .env("RULEKEEP_HOME", scratch.path().join("page/home"))
        .env("PORT", free_port())
        .env_remove("RULEKEEP_OPERATOR_KEY")
        .current_dir(scratch.path().join("page"))
        .stdin(Stdio::null())
        .stdout(File::create(&shown).unwrap())
        .stderr(File::create(&errors).unwrap())
        .process_group(0)
        .spawn()
        .unwrap();
    let deadline = Instant::now() + LONGEST_PAGE;
    let status = loop {
        match shell.try_wait().unwrap() {
            None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(20)),
            status => break status,
        }
    };
    let _ = kill_process_group(Pid::from_child(&shell), Signal::KILL);
    let _ = shell.wait();
    let [shown, errors] =
        [shown, errors].map(|file| String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned());
    let mut parts = shown.split(MARK);
    for text in &expected {
        // The output up to a mark belongs to the line that the mark stands for.
        let part = parts.next().unwrap_or_default();
        if !part.contains(text.as_str()) {
            return Err(format!("{name}.md: expected {text:?} in:\n{part}\nstandard error:\n{errors}"));
        }
    }
    if status.is_some_and(|status| status.success()) {
        Ok(())
    } else {
        Err(format!("{name}.md failed:\n{shown}\n{errors}"))
    }
}

/// The shell blocks of a page as one script.
struct Script {
    text: String,
    /// What the output up to each mark contains.
    expected: Vec<String>,
}

impl Script {
    /// `None` for a page without shell blocks.
    fn of(page: &str) -> Option<Self> {
        let mut text = format!("set -eu\n{CLEAN_UP}\n");
        let mut expected = Vec::new();
        let mut has_blocks = false;
        let mut is_shell = false;
        for line in page.lines() {
            match line.trim_end() {
                "```sh" => (is_shell, has_blocks) = (true, true),
                "```" => is_shell = false,
                line if is_shell && !line.starts_with("cargo ") => {
                    if let Some(output) = line.strip_prefix("# => ") {
                        expected.push(output.to_owned());
                        writeln!(text, "echo '{MARK}'").unwrap();
                    } else {
                        writeln!(text, "{line}").unwrap();
                    }
                }
                _ => {}
            }
        }
        has_blocks.then_some(Self { text, expected })
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides")
}

/// A port of the loopback address that nothing listens on, for pages that serve HTTP.
fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string()
}

/// The names of the files in the folder of the guides that end so.
fn names(end: &str) -> Vec<String> {
    let files = std::fs::read_dir(folder()).unwrap();
    files.map(|file| file.unwrap().file_name().into_string().unwrap()).filter(|name| name.ends_with(end)).collect()
}

/// The folder of the built tool before the folders of the path.
fn path() -> std::ffi::OsString {
    let bin = Path::new(env!("CARGO_BIN_EXE_rulekeep")).parent().unwrap();
    let mut path = std::ffi::OsString::from(bin);
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}

/// A page that takes longer has failed.
const LONGEST_PAGE: Duration = Duration::from_secs(60);

/// Printed where a line `# => TEXT` stands.
const MARK: &str = "%%shown";

/// Ends the daemon, also when a command fails. A page keeps the operator key in `key`.
const CLEAN_UP: &str = "trap 'RULEKEEP_OPERATOR_KEY=${key:-} rulekeep down >/dev/null 2>&1 || :' EXIT";
