//! Tests the Node client and its adapter, with npm packages, against this program. It takes a while, and runs only if
//! `RULEKEEP_NIGHTLY` is set. Without Node or npm, it prints that on standard error and is skipped; with
//! `RULEKEEP_REQUIRE_PEERS` set it fails instead.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on

#[path = "../../../server/tests/common/programs.rs"]
mod programs;

use std::path::Path;
use std::process::Command;

#[test]
fn the_node_client_passes_its_tests() {
    if std::env::var_os("RULEKEEP_NIGHTLY").is_none() || !programs::is_there("node") || !programs::is_there("npm") {
        return;
    }
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/node");
    let npm = |args: &[&str]| {
        let mut command = Command::new("npm");
        command.args(args).current_dir(&client).env("RULEKEEP_PROGRAM", env!("CARGO_BIN_EXE_rulekeep"));
        command
    };
    if let Err(why) = programs::done(&mut npm(&["ci", "--no-audit", "--no-fund"]), programs::LATER) {
        return programs::pass_over(&format!("the packages are not installed: {why}"));
    }
    programs::succeeded(&mut npm(&["test"]), &[], programs::LATER);
}
