//! Real attacks, run confined in a throw-away root: none may change a file, open a socket or end a process outside.
//!
//! `RULEKEEP_ATTACKS` names a file with one attack per line, a tool call whose arguments have a `command`. It needs
//! root and Python; without them the test prints SKIPPED.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // a test fails where it cannot go on

use std::path::Path;
use std::process::Command;

use rulekeep_confine::{Ground, Profile};
use rulekeep_types::Constraints;
use rulekeep_types::facts::Facts;

#[test]
fn no_attack_has_an_effect_outside_its_folder() {
    let Some(attacks) = std::env::var_os("RULEKEEP_ATTACKS") else {
        println!("SKIPPED: RULEKEEP_ATTACKS names no file");
        return;
    };
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = |name: &str| place.path().join(name);
    let constraints: Constraints = serde_json::from_str(r#"{ "confine": ["workspace"] }"#).unwrap();
    let (folder, temp) = (path("work"), path("temp"));
    let ground = Ground { folder: &folder, home: Some(Path::new("/root")), areas: &[], temp: &temp, denied: &[] };
    let profile = Profile::of(&constraints, &Facts::default(), &ground).unwrap().unwrap();
    std::fs::write(path("profile.json"), serde_json::to_vec(&profile).unwrap()).unwrap();
    std::fs::create_dir(path("scratch")).unwrap();
    let confined = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("examples/confined");
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks");
    let mut command = Command::new("unshare");
    command.args(["-mpnf", "sh"]).arg(here.join("root.sh")).arg(path("scratch")).arg(here.join("run.py"));
    let output = command.arg(confined).arg(path("profile.json")).arg(attacks).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let counts = said.lines().last().and_then(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let counts = counts.unwrap_or_else(|| panic!("{said}{}", String::from_utf8_lossy(&output.stderr)));
    println!("{counts}");
    assert_eq!(counts["outside"], 0, "{said}");
    assert!(counts["began"] == counts["commands"] && counts["began"].as_u64().unwrap() > 100, "{counts}");
}
