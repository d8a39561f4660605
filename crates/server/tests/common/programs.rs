//! Independent programs to test the library against: whether they exist, a Python with a package of `PyPI`, and runs
//! with a deadline.
//!
//! If one is missing, the test prints this to standard error and is skipped; with `RULEKEEP_REQUIRE_PEERS` set it
//! fails instead.
#![allow(dead_code)] // every test crate has its own copy of this module and uses a part of it
#![allow(clippy::unwrap_used, clippy::expect_used)] // a helper that cannot go on fails its test

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

/// A deadline for a short program on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(2 * 60);
/// A deadline for a program that downloads or processes much.
pub(crate) const LATER: Duration = Duration::from_secs(20 * 60);

/// Prints the reason a test is skipped, past the test harness, which captures the output of passing tests.
pub(crate) fn pass_over(why: &str) {
    assert!(std::env::var_os("RULEKEEP_REQUIRE_PEERS").is_none(), "{why}");
    let _ = writeln!(std::io::stderr(), "SKIPPED, nothing was tried: {why}");
}

/// Returns whether a program exists; prints it otherwise.
pub(crate) fn is_there(program: &str) -> bool {
    found(program).map_err(|why| pass_over(&why)).is_ok()
}

/// Checks that a program exists by asking for its version.
pub(crate) fn found(program: &str) -> Result<(), String> {
    done(Command::new(program).arg("--version"), SOON).map_err(|_| format!("{program} is not on this machine"))
}

/// Runs a program to its end. An error if it cannot be started, or is killed at the deadline.
pub(crate) fn run(command: &mut Command, input: &[u8], deadline: Duration) -> Result<Output, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    // Its child processes end with it.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = started.map_err(|error| format!("{name}: {error}"))?;
    let (id, mut stdin, input) = (child.id(), child.stdin.take().unwrap(), input.to_vec());
    // The program's result shows whether it read all of it.
    thread::spawn(move || stdin.write_all(&input));
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(child.wait_with_output()));
    if let Ok(ended) = told.recv_timeout(deadline) {
        return ended.map_err(|error| format!("{name}: {error}"));
    }
    cut(id);
    let said = told.recv_timeout(SOON).ok().and_then(Result::ok).map(|output| said(&output)).unwrap_or_default();
    Err(format!("{name} did not end within {deadline:?}: {said}"))
}

/// The output of a program that must end, whatever its result.
#[track_caller]
pub(crate) fn ended(command: &mut Command, input: &[u8], deadline: Duration) -> Output {
    match run(command, input, deadline) {
        Ok(output) => output,
        Err(why) => panic!("{why}"),
    }
}

/// The output of a program that must succeed.
#[track_caller]
pub(crate) fn succeeded(command: &mut Command, input: &[u8], deadline: Duration) -> String {
    let output = ended(command, input, deadline);
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a program that should succeed; the error contains its output.
pub(crate) fn done(command: &mut Command, deadline: Duration) -> Result<(), String> {
    let output = run(command, &[], deadline)?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{}: {}", command.get_program().display(), String::from_utf8_lossy(&output.stderr).trim()))
}

/// Returns whether this Python has a module.
pub(crate) fn imports(python: &Path, module: &str) -> bool {
    done(Command::new(python).args(["-c", &format!("import {module}")]), SOON).is_ok()
}

/// A Python with a package, given as `name==version`: created once, and kept with the build. Otherwise the reason
/// there is none.
pub(crate) fn python(package: &str) -> Result<PathBuf, String> {
    static MAKING: Mutex<()> = Mutex::new(());
    let _alone = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let (module, _) = package.split_once("==").expect("a peer has a version");
    let folder = kept(package);
    let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    if imports(&python, module) {
        return Ok(python);
    }
    done(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder), LATER)
        .map_err(|why| format!("no venv: {why}"))?;
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package];
    done(Command::new(&python).args(install), LATER).map_err(|why| format!("{package} is not installed: {why}"))?;
    if imports(&python, module) { Ok(python) } else { Err(format!("{package} was installed and is not imported")) }
}

/// A Python with selenium, and axe-core's file: fetched once, and kept with the build. Otherwise the reason there is
/// none.
pub(crate) fn selenium_and_axe() -> Result<(PathBuf, PathBuf), String> {
    for program in ["chromium", "chromedriver", "python3", "npm"] {
        found(program)?;
    }
    let python = python("selenium==4.51.0")?;
    let folder = kept("axe-core==4.14.1");
    let axe = folder.join("node_modules/axe-core/axe.min.js");
    if !axe.exists() {
        let install = ["install", "--silent", "--no-save", "--ignore-scripts", "axe-core@4.14.1", "--prefix"];
        done(Command::new("npm").args(install).arg(&folder), LATER)?;
    }
    Ok((python, axe))
}

/// The folder of a package beside the build.
pub(crate) fn kept(package: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(package.replace("==", "-"))
}

fn said(output: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Kills a process and its children.
fn cut(id: u32) {
    let (shell, line) = if cfg!(windows) {
        (["cmd", "/C"], format!("taskkill /F /T /PID {id}"))
    } else {
        (["sh", "-c"], format!("kill -KILL -{id}"))
    };
    // It may just have ended.
    let _ = Command::new(shell[0]).args([shell[1], &line]).stdout(Stdio::null()).stderr(Stdio::null()).status();
}
