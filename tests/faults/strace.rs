//! What the system is asked for: in Sync, each acknowledgement stands behind a write
//! of the journal and an `fdatasync` of it that has come back. Read off the calls of a
//! child process by `strace`; skipped, saying so, where that is missing or not allowed.
#![cfg(target_os = "linux")]

use crate::common;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::{Command, Stdio};

use common::{builder, child_folder, decide, open_with, say};
use rulekeep::Durability;

const DECISIONS: usize = 30;

fn decide_some(durability: Durability) {
    let Some(folder) = child_folder() else { return };
    let governor = open_with(builder().durability(durability), &folder);
    say("open");
    for _ in 0..DECISIONS {
        say(&format!("decided {}", decide(&governor, "a")));
    }
}

#[test]
fn child_that_decides_in_sync() {
    decide_some(Durability::Sync);
}

#[test]
fn child_that_decides_in_the_buffer() {
    decide_some(Durability::Buffered);
}

/// The calls that a child made; none where they cannot be traced.
fn traced(child: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let run = Command::new("strace")
        .args(["-f", "-qq", "-s", "64", "-e", "trace=pwrite64,fdatasync,write", "-e", "signal=none", "-o"])
        .arg(&trace)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", child, "--nocapture", "--test-threads=1"])
        .env("RULEKEEP_TEST_CHILD_FOLDER", folder.path().join("store"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output();
    let output = match run {
        Err(error) => {
            eprintln!("skipped: there is no strace here: {error}");
            return None;
        }
        Ok(output) => output,
    };
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && said.contains("ptrace") {
        eprintln!("skipped: tracing is not allowed here: {said}");
        return None;
    }
    assert!(output.status.success(), "{said}");
    Some(read(&trace))
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()
}

/// How many acknowledgements there were, and how many of them stand behind a write and, behind that, a sync of the same file
/// that came back, both since the one before.
fn acknowledged(trace: &str) -> (usize, usize) {
    let (mut all, mut behind_a_sync) = (0, 0);
    let (mut written, mut is_synced) = (HashSet::new(), false);
    // Which file a thread's unfinished sync is of, if it was written to before.
    let mut syncing: HashMap<&str, bool> = HashMap::new();
    for line in trace.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let call = call.trim_start();
        if let Some(arguments) = call.strip_prefix("pwrite64(") {
            written.insert(arguments.split(',').next().unwrap_or_default().to_owned());
        } else if let Some(arguments) = call.strip_prefix("fdatasync(") {
            let file = arguments.split([')', ' ']).next().unwrap_or_default();
            let was_written = written.contains(file);
            if call.ends_with("= 0") {
                is_synced |= was_written;
            } else {
                syncing.insert(thread, was_written);
            }
        } else if call.starts_with("<... fdatasync resumed>") {
            is_synced |= syncing.remove(thread).unwrap_or(false) && call.ends_with("= 0");
        } else if call.starts_with("write(1, \"said: decided") {
            all += 1;
            behind_a_sync += usize::from(is_synced);
            (written, is_synced) = (HashSet::new(), false);
        } else if call.starts_with("write(1, \"said: open") {
            (written, is_synced) = (HashSet::new(), false);
        }
    }
    (all, behind_a_sync)
}

#[test]
fn each_sync_acknowledgement_follows_a_sync_of_its_data() {
    let Some(trace) = traced("strace::child_that_decides_in_sync") else { return };
    assert_eq!(acknowledged(&trace), (DECISIONS, DECISIONS), "{trace}");
}

/// Or the test above would say nothing.
#[test]
fn in_the_buffer_acknowledgements_stand_behind_no_sync() {
    let Some(trace) = traced("strace::child_that_decides_in_the_buffer") else { return };
    let (all, behind_a_sync) = acknowledged(&trace);
    assert_eq!(all, DECISIONS, "{trace}");
    assert!(behind_a_sync < DECISIONS / 2, "{trace}");
}
