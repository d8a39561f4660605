//! Tests that Ctrl-C leaves nothing half-written.

use std::fs;
use std::process::{Command, Stdio};

use rulekeep::{Agent, Durability, Governor};

use crate::fixture::{Place, until};

/// Number of records in the log: enough to be interrupted in the middle.
const RECORDS: usize = 3000;

/// Runs a command, and interrupts it once a file that it writes exists. It is paused meanwhile, so that it does not
/// end first.
fn interrupt(place: &Place, arguments: &[&str], writes: &str) -> Option<i32> {
    let mut child = place.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let file = place.work().join(writes);
    until(|| file.exists());
    for signal in ["-STOP", "-INT", "-CONT"] {
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
    child.wait().unwrap().code()
}

#[test]
fn ctrl_c_in_the_middle_leaves_no_export_and_no_import() {
    let place = Place::new();
    let governor = Governor::builder().durability(Durability::Buffered).open(place.work().join("long")).unwrap();
    governor.agents().register(Agent::new("a")).unwrap();
    for _ in 0..RECORDS {
        governor.enforce_input("a", "Read the file notes.txt").unwrap();
    }
    governor.close().unwrap();
    let names = || -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(place.work())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    let before = names();

    let export = ["log", "export", "--store", "long", "--entries", "--out", "long.jsonl"];
    assert_eq!(interrupt(&place, &export, "long.jsonl.part"), Some(130));
    assert_eq!(names(), before, "nothing is left of the export");

    let resuming = [export.as_slice(), &["--resume"]].concat();
    assert_eq!(interrupt(&place, &resuming, "long.jsonl.part"), Some(130));
    assert!(place.work().join("long.jsonl.part").exists() && !place.work().join("long.jsonl").exists());
    place.ok(&resuming);
    assert_eq!(place.json(&["log", "check", "long.jsonl"])["records"], RECORDS);

    let before = names();
    let import = ["log", "import", "--store", "again", "long.jsonl"];
    assert_eq!(interrupt(&place, &import, "again.importing"), Some(130));
    assert_eq!(names(), before, "nothing is left of the import");
}
