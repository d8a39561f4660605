//! Tests of commands that change something: the log stays valid, and the output is true.

use std::fs;

use serde_json::json;

use crate::fixture::{Place, copy, until};
use crate::reading::{assert_same, image};

#[test]
fn an_approval_binds_to_what_was_shown() {
    let place = Place::with_daemon();
    let id = place.id("esc_");
    let shown = place.ok(&["escalations", "show", id]);
    assert!(shown.contains("Pay 5000 dollars to account 123") && shown.contains("digest"), "{shown}");
    assert!(shown.contains("1 approval by ") && shown.contains("would grant") && !shown.contains("{\n"), "{shown}");
    let other = format!("sha256:{}", "0".repeat(64));
    place.fails(1, &["escalations", "approve", id, "--digest", &other]);
    let output = place.run(&["escalations", "approve", id, "--note", "as agreed", "--json"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("Pay 5000 dollars"), "{said}");
    let asked = place.json(&["escalations", "show", id]);
    assert_eq!((&asked["state"], &asked["votes"][0]["reviewer"]), (&json!("approved"), &json!("operator")));
    place.fails(1, &["escalations", "reject", id]);
}

#[test]
fn what_operators_change_is_the_same_with_and_without_a_daemon() {
    for place in [Place::new(), Place::with_daemon()] {
        assert_eq!(place.json(&["agents", "suspend", "support-1", "--note", "odd"])["state"], "suspended");
        assert_eq!(place.json(&["agents", "show", "support-1"])["state"], "suspended");
        assert_eq!(place.json(&["agents", "resume", "support-1"])["state"], "active");
        place.ok(&["agents", "register", "billing-2", "--tier", "t2", "--label", "team=billing"]);
        assert_eq!(place.json(&["agents", "show", "billing-2"])["tier"], "T2");
        place.ok(&["agents", "trust", "billing-2", "--score", "450", "--note", "reviewed"]);
        assert_eq!(place.json(&["agents", "trust", "billing-2"])["items"][0]["to"], 450);

        let key = place.json(&["keys", "create", "--scope", "agent", "--plan", "60:10", "--agent", "support-1"]);
        assert_eq!(key["plan"], json!({ "perMinute": 60, "burst": 10 }));
        assert_eq!(place.json(&["keys", "revoke", key["id"].as_str().unwrap()])["state"], "revoked");
        let stop = place.json(&["kill-switch", "set", "--agent", "support-1", "--note", "an incident"]);
        let id = stop["id"].as_str().unwrap();
        assert_eq!(place.json(&["kill-switch", "list"])["stops"][1]["id"], id);
        place.ok(&["kill-switch", "lift", id]);
        assert_eq!(place.json(&["kill-switch", "list"])["stops"].as_array().unwrap().len(), 1);
        assert!(place.json(&["clock", "accept", "--note", "it was ahead"])["to"].is_string());
        let task = place.json(&["tasks", "open", "billing-2", "Read the file notes.txt"]);
        let task = task["taskId"].as_str().unwrap();
        assert_eq!(place.json(&["tasks", "show", task])["state"], "open");
        assert_eq!(place.json(&["tasks", "close", task, "--outcome", "success"])["state"], "closed");
        assert_eq!(place.json(&["log", "verify"])["valid"], true);
    }
}

#[test]
fn erased_evidence_is_gone_and_the_log_holds() {
    let place = Place::new();
    let record = place.id("prf_");
    assert!(place.json(&["log", "show", record, "--evidence"])["evidence"].is_object());
    let erasing = ["log", "erase", "--record", record, "--cause", "asked for"];
    assert!(place.fails(1, &erasing).contains("--yes"), "without a terminal it asks nobody");
    assert_eq!(place.json(&[erasing.as_slice(), &["--yes"]].concat()), json!({ "erased": 1 }));
    assert_eq!(place.json(&["log", "show", record, "--evidence"])["evidenceErased"], true);
    assert_eq!(place.json(&["log", "verify"])["valid"], true);
    place.ok(&["up"]);
    let said = place.fails(1, &[erasing.as_slice(), &["--yes"]].concat());
    assert!(said.contains("rulekeep down"), "{said}");
}

#[test]
fn the_homes_store_needs_the_key_also_where_it_is_named() {
    let place = Place::new();
    let store = place.home().join("store");
    let erasing = ["log", "erase", "--record", place.id("prf_"), "--cause", "none", "--yes", "--store"];
    let mut command = place.command(&[erasing.as_slice(), &[store.to_str().unwrap()]].concat());
    let output = command.env_remove("RULEKEEP_OPERATOR_KEY").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("RULEKEEP_OPERATOR_KEY"));
}

#[test]
fn a_broken_log_is_found_and_repaired() {
    let place = Place::new();
    let output = place.run(&["log", "verify", "broken", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("rulekeep log repair broken"));
    let report = place.json(&["log", "repair", "--store", "broken"]);
    assert!(report["kept"].as_str().unwrap().starts_with("damaged-"), "{report}");
    assert_eq!(place.json(&["log", "verify", "broken"])["valid"], true);
    place.fails(1, &["log", "repair", "store"]);
    // The home's own store, with the operator's key.
    copy(&place.work().join("store"), &place.work().join("whole"));
    crate::fixture::break_store(&place.home().join("store"));
    place.ok(&["log", "repair"]);
    assert_eq!(place.json(&["log", "verify"])["valid"], true);
}

#[test]
fn an_export_is_imported_again_and_never_written_over() {
    let place = Place::new();
    let report = place.json(&["log", "export", "--entries", "--out", "log.jsonl"]);
    assert_eq!(place.json(&["log", "check", "log.jsonl"])["headHash"], report["headHash"]);
    place.ok(&["log", "import", "--store", "again", "log.jsonl"]);
    assert_eq!(place.json(&["log", "verify", "again"])["headHash"], report["headHash"]);
    let forged = fs::read_to_string(place.work().join("log.jsonl")).unwrap().replace("ALLOW", "DENY");
    fs::write(place.work().join("forged.jsonl"), forged).unwrap();
    place.fails(1, &["log", "check", "forged.jsonl"]);
    let inverted = place.fails(2, &["log", "export", "--from", "today", "--to", "yesterday", "--out", "none.jsonl"]);
    assert!(inverted.contains("is after --to"), "{inverted}");
    let before = fs::read(place.work().join("log.jsonl")).unwrap();
    let said = place.fails(1, &["log", "export", "--out", "log.jsonl"]);
    assert!(said.contains("exists already"), "{said}");
    assert_eq!(fs::read(place.work().join("log.jsonl")).unwrap(), before);
    // A path at the place of a time is the file, as in earlier versions; with --out there is one meaning.
    place.ok(&["log", "export", "--to", "./other.jsonl"]);
    assert!(place.work().join("other.jsonl").exists());
    place.fails(2, &["log", "export", "--to", "./third.jsonl", "--out", "fourth.jsonl"]);
    place.fails(2, &["log", "export", "--to", "yesterday", "--json"]);
    place.ok(&["log", "export", "--to", "today", "--out", "today.jsonl"]);
}

#[test]
fn an_export_that_was_cut_short_is_gone_on_with() {
    let place = Place::new();
    let whole = fs::read(place.work().join("export.jsonl")).unwrap();
    for cut in [0, whole.len() / 2, whole.len() - 2] {
        fs::write(place.work().join("log.jsonl.part"), &whole[..cut]).unwrap();
        place.ok(&["log", "export", "--store", "store", "--out", "log.jsonl", "--resume"]);
        assert_eq!(fs::read(place.work().join("log.jsonl")).unwrap(), whole, "{cut}");
        assert!(!place.work().join("log.jsonl.part").exists());
        fs::remove_file(place.work().join("log.jsonl")).unwrap();
    }
}

#[test]
fn a_checkpoint_that_is_kept_shows_a_log_that_was_put_back() {
    let place = Place::new();
    copy(&place.home().join("store"), &place.work().join("older"));
    place.ok(&["agents", "suspend", "support-1"]);
    place.ok(&["log", "checkpoint", "--out", "kept"]);
    let key = "example.com/agents+b9a83f13+Ae1JKMYo0cLG6ukDOJBZlWEpWSc6XGP5NjbBRhSshzfR";
    let against = ["--checkpoint", "kept", "--checkpoint-key", key];
    place.ok(&[["log", "verify"].as_slice(), &against].concat());
    place.fails(1, &[["log", "verify", "older"].as_slice(), &against].concat());
}

#[test]
fn a_proof_is_made_and_checked_from_files_alone() {
    let place = Place::new();
    let key = "example.com/agents+b9a83f13+Ae1JKMYo0cLG6ukDOJBZlWEpWSc6XGP5NjbBRhSshzfR";
    let record = place.id("prf_");
    let proving = |arguments: &[&str]| {
        let before = image(&place.home());
        let mut command = place.command(&[&["log", "prove", record], arguments].concat());
        let output = command.env_remove("RULEKEEP_OPERATOR_KEY").output().unwrap();
        assert_same(&before, &image(&place.home()), arguments);
        output
    };
    let refused = proving(&[]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("rulekeep log checkpoint"), "{refused:?}");
    place.ok(&["log", "checkpoint", "--out", "kept"]);
    let newest = proving(&[]);
    assert!(newest.status.success(), "{newest:?}");
    let later = place.json(&["tasks", "open", "support-1", "Read the file notes.txt"])["proofId"].clone();
    let said = place.fails(1, &["log", "prove", later.as_str().unwrap(), "--checkpoint", "kept"]);
    assert!(said.contains("ends before") && said.contains("rulekeep log checkpoint"), "{said}");
    place.ok(&["log", "checkpoint", "--out", "later"]);
    let said = place.fails(1, &["log", "prove", record, "--store", "store", "--checkpoint", "later"]);
    assert!(said.contains("by the checkpoint"), "{said}");
    fs::remove_file(place.home().join("seed.hex")).unwrap();
    assert!(proving(&["--checkpoint", "kept", "--out", "proof"]).status.success());
    assert_eq!(fs::read(place.work().join("proof")).unwrap().trim_ascii(), newest.stdout.trim_ascii());

    fs::write(place.work().join("record"), place.ok(&["log", "show", record, "--json"])).unwrap();
    let export = fs::read_to_string(place.work().join("export.jsonl")).unwrap();
    let line = export.lines().find(|line| line.contains(&format!("\"id\":\"{record}\""))).unwrap();
    fs::write(place.work().join("line"), line).unwrap();
    fs::write(place.work().join("changed"), line.replace("\"ALLOW\"", "\"DENY\"")).unwrap();
    fs::write(place.work().join("other"), export.lines().nth(2).unwrap()).unwrap();
    fs::write(place.work().join("none"), export.lines().next().unwrap()).unwrap();
    fs::remove_dir_all(place.home()).unwrap();
    for file in ["record", "line", "export.jsonl"] {
        let held = place.json(&["log", "check-proof", file, "proof", "--key", key]);
        assert_eq!((&held["valid"], &held["record"]), (&json!(true), &json!(record)), "{file}");
    }
    let other = rulekeep::checkpoint::CheckpointKey::from_seed("example.com/agents", &[4; 32]).unwrap();
    let other = other.verifier().to_string();
    for (file, proof, key, says) in [
        ("changed", "proof", key, "the record"),
        ("other", "proof", key, "entry"),
        ("none", "proof", key, "no record"),
        ("line", "kept", key, "kept: "),
        ("line", "proof", &other, "no signature by the key"),
    ] {
        let said = place.fails(1, &["log", "check-proof", file, proof, "--key", key]);
        assert!(said.contains(says), "{file}: {said}");
    }
}

#[test]
fn a_daemon_tells_in_its_log_why_it_ended() {
    let place = Place::with_daemon();
    let ended = |why: &str| {
        let said = || fs::read_to_string(place.home().join("daemon.log")).unwrap();
        until(|| said().contains(&format!("the daemon ends: {why}")));
        until(|| !place.run(&["status"]).status.success());
    };
    place.ok(&["down"]);
    ended("rulekeep down");
    place.ok(&["up"]);
    let pid = place.json(&["status"])["daemon"]["pid"].to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    ended("SIGTERM");
    place.ok(&["up", "--idle-exit", "0.005"]);
    ended("no calls for 0 minutes");
    place.ok(&["up"]);
    fs::remove_file(place.home().join("agent.sock")).unwrap();
    place.ok(&["down"]);
    ended(place.home().join("agent.sock").to_str().unwrap());
}

#[test]
fn an_export_of_a_period_is_part_of_the_whole() {
    let place = Place::new();
    let records = |arguments: &[&str]| {
        let printed = place.ok(&[&["log", "export"], arguments].concat());
        fs::write(place.work().join("part.jsonl"), &printed).unwrap();
        place.ok(&["log", "check", "part.jsonl"]);
        printed.lines().filter(|line| line.starts_with("{\"record\"")).map(str::to_owned).collect::<Vec<_>>()
    };
    let time = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["record"]["timestamp"].as_str().unwrap().to_owned()
    };
    let all = records(&[]);
    let (second, last) = (time(&all[1]), time(&all[all.len() - 1]));
    let begun: Vec<String> = all.iter().filter(|line| time(line) >= second).cloned().collect();
    let ended: Vec<String> = all.iter().filter(|line| time(line) <= second).cloned().collect();
    assert_eq!(records(&["--from", &second]), begun);
    assert_eq!(records(&["--to", &second]), ended);
    assert_eq!(records(&["--from", "yesterday", "--to", &last]), all);
    assert!(records(&["--to", "2020-12-31"]).is_empty() && records(&["--from", "2100-01-01"]).is_empty());
    place.fails(2, &["log", "export", "--entries", "--from", "7d"]);
}

#[test]
fn tail_tells_what_comes() {
    use std::io::{BufRead as _, BufReader};
    let place = Place::with_daemon();
    let mut tail = place
        .command(&["log", "tail", "--follow", "-n", "1", "--json"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines();
    let mut next = || -> serde_json::Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let first = next();
    let opened = place.json(&["tasks", "open", "support-1", "Read the file notes.txt"]);
    let second = next();
    assert_eq!(second["id"], opened["proofId"]);
    assert_eq!(second["previousHash"], first["hash"]);
    place.ok(&["down"]);
    assert_eq!(tail.wait().unwrap().code(), Some(3));
}
