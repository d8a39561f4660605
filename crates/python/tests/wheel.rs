//! Tests the Python package from scratch: a new environment, the wheel built by maturin and installed from its file,
//! the tests in Python, the types, and the time of `enforce`.
//!
//! It takes minutes, and runs only if `RULEKEEP_NIGHTLY` is set. Without Python or `PyPI`, it prints that on standard
//! error and is skipped; with `RULEKEEP_REQUIRE_PEERS` set it fails instead.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on

#[path = "../../server/tests/common/programs.rs"]
mod programs;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn a_wheel_built_from_nothing_passes_its_tests() {
    if std::env::var_os("RULEKEEP_NIGHTLY").is_none() || !programs::is_there("python3") {
        return;
    }
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = programs::kept("wheel");
    let _ = std::fs::remove_dir_all(&folder); // that of an earlier run
    let python = folder.join("bin/python");
    let run = |program: &Path| {
        let mut command = Command::new(program);
        command.current_dir(&folder).env("PYTHONDONTWRITEBYTECODE", "1").env("VIRTUAL_ENV", &folder);
        command
    };
    if let Err(why) = programs::done(Command::new("python3").args(["-m", "venv"]).arg(&folder), programs::SOON) {
        return programs::pass_over(&format!("no venv: {why}"));
    }
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    let requirements = package.join("tests/requirements.txt");
    if let Err(why) = programs::done(run(&python).args(pip).arg("-r").arg(requirements), programs::LATER) {
        return programs::pass_over(&format!("the packages are not installed: {why}"));
    }

    let mut build = run(&folder.join("bin/maturin"));
    build.args(["build", "--release", "--locked", "--manifest-path"]).arg(package.join("Cargo.toml"));
    programs::succeeded(build.arg("--out").arg(folder.join("wheels")), &[], programs::LATER * 2);
    let wheels = std::fs::read_dir(folder.join("wheels")).unwrap();
    let wheels: Vec<_> = wheels.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(wheels.len(), 1, "{wheels:?}");
    let name = wheels[0].file_name().unwrap();
    assert!(name.to_string_lossy().contains("-abi3-"), "one wheel for all versions of Python: {name:?}");
    programs::succeeded(run(&python).args(pip).args(["--no-index", "--no-deps"]).arg(&wheels[0]), &[], programs::SOON);

    let tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider"];
    let mut pytest = run(&python);
    pytest.args(tests).arg(package.join("tests")).env("RULEKEEP_REQUIRE_PEERS", "1");
    let program = package.join("../../target/release/rulekeep");
    if program.exists() {
        pytest.env("RULEKEEP_PROGRAM", program);
    }
    let passed = programs::succeeded(&mut pytest, &[], programs::LATER);
    let types = ["-m", "mypy", "--strict", "-p", "rulekeep", "--cache-dir"];
    programs::succeeded(run(&python).args(types).arg(folder.join("mypy")), &[], programs::LATER);
    let times = programs::succeeded(run(&python).arg(package.join("tests/bench_enforce.py")), &[], programs::SOON);
    // The wheel that passed, to be published.
    if let Some(folder) = std::env::var_os("RULEKEEP_WHEELS").map(PathBuf::from) {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::copy(&wheels[0], folder.join(name)).unwrap();
    }
    let _ = writeln!(std::io::stderr(), "{}\n{times}", passed.lines().last().unwrap_or_default());
}
