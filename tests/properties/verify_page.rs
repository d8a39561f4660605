//! What docs/guides/auditors.md lets an auditor run: the script beside the page, on an export
//! as it was written and on exports that somebody changed.

use crate::common;

use std::fs;
use std::process::{Command, Output};

use common::{builder, intent};
use rulekeep::intent::InputText;
use rulekeep::proof::{EvidenceSelection, ExportRange, verify_export};
use rulekeep::{Agent, Error, Governor, Outcome, Tier};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const PAGE: &str = include_str!("../../docs/guides/auditors.md");
const SCRIPT: &str = include_str!("../../docs/guides/check.sh");

/// Agents whose ids are hard on whoever writes or reads JSON.
const AGENTS: [&str; 6] = [
    "plain",
    "with \"quotes\" and 'others' $(id) `id` %s",
    "back\\slash \\n \\061",
    "日本語 😀",
    "é\u{2028}é",
    "{\"hash\":1}",
];

/// Three records of each agent, with an outcome for the first, as lines.
fn export(range: &ExportRange) -> Vec<String> {
    let governor = governor();
    let mut bytes = Vec::new();
    governor.log().export(range, &mut bytes, &mut |_, _| {}).unwrap();
    String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
}

fn governor() -> Governor {
    let governor = builder().open_in_memory().unwrap();
    for agent in AGENTS {
        governor.agents().register(Agent::new(agent).at_tier(Tier::T4)).unwrap();
        let reading = intent(agent, &["document:read"]).with_context("account", 9_007_199_254_740_993_u64);
        let proof_id = governor.enforce(&reading.with_context("note", agent)).unwrap().proof_id;
        governor.report(&proof_id, Outcome::Failure).unwrap();
        governor.enforce(&intent(agent, &["email:send"])).unwrap();
        governor.enforce(&intent(agent, &["code:write"])).unwrap();
    }
    governor
}

/// The same lines with a last one that states their digest, as whoever changes a file can make it.
fn covered(mut lines: Vec<String>) -> Vec<String> {
    let end = lines.pop().unwrap();
    let text = lines.join("\n") + "\n";
    let at = end.find("\"sha256\":\"").unwrap();
    let digest = hex::encode(Sha256::digest(text.as_bytes()));
    lines.push(format!("{}\"sha256\":\"sha256:{digest}\"}}", &end[..at]));
    lines
}

/// The shells that are installed; none where another program is missing that the script needs.
fn shells() -> Vec<&'static str> {
    let is_there =
        |command: &str| Command::new("sh").args(["-c", command]).output().is_ok_and(|done| done.status.success());
    for program in ["jq --version", "sha256sum --version", "sh -c true"] {
        if !is_there(program) {
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{program} does not run");
            eprintln!("skipped: {program} does not run");
            return Vec::new();
        }
    }
    let known = ["sh", "dash", "bash", "busybox sh"];
    known.into_iter().filter(|shell| is_there(&format!("{shell} -c true"))).collect()
}

/// Runs the page's script on an export, in each shell.
fn run(lines: &[String]) -> Vec<(&'static str, Output)> {
    let command = PAGE.lines().find(|line| *line == "sh check.sh export.jsonl").unwrap();
    let run_in = |shell: &'static str| {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("check.sh"), SCRIPT).unwrap();
        fs::write(folder.path().join("export.jsonl"), lines.join("\n") + "\n").unwrap();
        let command = command.replacen("sh ", &format!("{shell} "), 1);
        (shell, Command::new("sh").args(["-euc", &command]).current_dir(folder.path()).output().unwrap())
    };
    shells().into_iter().map(run_in).collect()
}

/// Asserts that the script and the library both find what is wrong, and that the script's words say where.
fn found(lines: &[String], says: &str) {
    let text = lines.join("\n") + "\n";
    let error = verify_export(&mut text.as_bytes(), &mut |_, _| {}).unwrap_err();
    assert!(matches!(error, Error::ExportBroken { .. }), "{error}");
    for (shell, output) in run(lines) {
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && !said.contains("all of it holds"), "{shell}: {says}: {said}");
        assert!(said.contains(says), "{shell}: expected {says:?} in {said:?}");
    }
}

/// Changes a line as JSON.
fn changed(lines: &[String], at: usize, change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut lines = lines.to_vec();
    let mut value: Value = serde_json::from_str(&lines[at]).unwrap();
    change(&mut value);
    lines[at] = value.to_string();
    lines
}

#[test]
fn exports_as_they_were_written_hold() {
    let agent = AGENTS[1].parse().unwrap();
    let ranges = [
        (ExportRange::all(), "18 records, 18 with evidence"),
        (ExportRange::all().with_entries(), "18 records, 18 with evidence"),
        (ExportRange::all().without_evidence(), "18 records, 0 with evidence"),
        (ExportRange::all().of_agent(agent), "3 records, 3 with evidence"),
        (ExportRange::all().of_agent("nobody".parse().unwrap()), "0 records"),
    ];
    for (range, says) in ranges {
        for (shell, output) in run(&export(&range)) {
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{shell}: {range:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
            assert!(said.contains(says) && said.ends_with("all of it holds\n"), "{shell}: {range:?}: {said}");
        }
    }
}

#[test]
fn a_changed_reasoning_is_found() {
    let lines = export(&ExportRange::all());
    let changed = changed(&lines, 4, |line| line["record"]["reasoning"] = json!("another"));
    found(&changed, "5.record: FAILED");
    found(&covered(changed), "5.record: FAILED");
}

#[test]
fn a_changed_record_with_a_hash_to_match_is_found_at_the_next() {
    let lines = export(&ExportRange::all());
    let mut record: Value = serde_json::from_str::<Value>(&lines[4]).unwrap()["record"].take();
    assert_ne!(record["decision"], "DEGRADE");
    record["decision"] = json!("DEGRADE");
    record.as_object_mut().unwrap().remove("hash");
    let hash = hex::encode(Sha256::digest(serde_json_canonicalizer::to_vec(&record).unwrap()));
    record["hash"] = json!(format!("sha256:{hash}"));
    let changed = changed(&lines, 4, |line| line["record"] = record);
    found(&changed, "line 6: expected previousHash");
    found(&covered(changed), "line 6: expected previousHash");
}

#[test]
fn a_removed_line_is_found_wherever_it_stood() {
    let lines = export(&ExportRange::all());
    for (at, says) in
        [(1, "line 2: expected previousHash"), (9, "line 10: expected previousHash"), (18, "expected records")]
    {
        let mut lines = lines.clone();
        lines.remove(at);
        found(&lines, says);
        found(&covered(lines), says);
    }
    found(&lines[..lines.len() - 1], "the lines have not the sha256");
    found(&lines[1..], "line 1: expected manifest start");
}

#[test]
fn a_field_that_occurs_twice_is_found() {
    let lines = export(&ExportRange::all().with_entries());
    let entry = lines.iter().position(|line| line.starts_with(r#"{"entry""#)).unwrap();
    let record = lines.iter().position(|line| line.starts_with(r#"{"record""#)).unwrap();
    for (at, from, to, says) in [
        (0, r#"{"manifest""#, r#"{"format":1,"manifest""#, "line 1: the field format occurs twice"),
        (record, r#"{"record":{"#, r#"{"record":{"decision":"DENY","#, "the field record.decision occurs twice"),
        (record, r#"{"record":{"#, r#"{"record":{},"record":{"#, "the field record occurs twice"),
        (record, r#""evidence":{"#, r#""evidence":{"salt":{"a":1},"#, "evidence.salt occurs twice"),
        (entry, r#"{"entry":{"#, r#"{"entry":{"kind":"state","#, "the field entry.kind occurs twice"),
    ] {
        let mut lines = lines.clone();
        lines[at] = lines[at].replacen(from, to, 1);
        assert!(lines[at].contains(to), "{}", lines[at]);
        found(&lines, says);
        found(&covered(lines), says);
    }
}

#[test]
fn swapped_lines_are_found() {
    let mut lines = export(&ExportRange::all());
    lines.swap(6, 7);
    found(&lines, "line 7: expected previousHash");
    found(&covered(lines), "line 7: expected previousHash");
}

#[test]
fn changed_evidence_is_found_in_salt_part_and_division() {
    let lines = export(&ExportRange::all());
    let changes: [fn(&mut Value); 5] = [
        |line| {
            let part = line["evidence"]["parts"][0].as_str().unwrap().replace("9007199254740993", "9007199254740992");
            line["evidence"]["parts"][0] = json!(part);
        },
        |line| line["evidence"]["salt"] = json!("00".repeat(16)),
        |line| line["evidence"]["parts"].as_array_mut().unwrap().swap(0, 1),
        |line| line["evidence"]["parts"].as_array_mut().unwrap().push(json!("")),
        |line| line["record"]["evidenceHash"] = json!(format!("sha256:{}", "0".repeat(64))),
    ];
    for (place, change) in changes.into_iter().enumerate() {
        let changed = changed(&lines, 1, change);
        assert_ne!(changed, lines);
        let says = if place == 4 { "2.record: FAILED" } else { "2.evidence: FAILED" };
        found(&changed, says);
        found(&covered(changed), says);
    }
}

#[test]
fn a_changed_outcome_is_found_by_the_last_line() {
    let lines = export(&ExportRange::all());
    assert!(lines[1].ends_with("\"outcome\":\"FAILURE\"}"));
    let mut changed = lines;
    changed[1] = changed[1].replace("\"outcome\":\"FAILURE\"}", "\"outcome\":\"SUCCESS\"}");
    found(&changed, "the lines have not the sha256");
}

#[test]
fn no_text_of_an_export_is_run_or_names_a_file() {
    let lines = export(&ExportRange::all());
    let part = changed(&lines, 1, |line| line["evidence"]["parts"][1] = json!("{}\n=../escaped 00\ntext"));
    found(&part, "a part of several lines");
    let hash = changed(&lines, 18, |line| line["record"]["hash"] = json!("sha256:00\n=../escaped"));
    found(&covered(hash), "is no hash");
}

#[test]
fn an_export_with_erased_evidence_and_texts_holds() {
    let governor = builder().auto_register().input_text(InputText::Whole).open_in_memory().unwrap();
    let asked = "Summarize the \"notes\"\nof é";
    for agent in AGENTS {
        governor.enforce_input(agent, asked).unwrap();
    }
    governor.log().erase_evidence(&EvidenceSelection::Agent(AGENTS[0].parse().unwrap()), "asked for").unwrap();
    for range in [ExportRange::all(), ExportRange::all().with_entries()] {
        let mut bytes = Vec::new();
        governor.log().export(&range, &mut bytes, &mut |_, _| {}).unwrap();
        let lines: Vec<String> = String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect();
        for (shell, output) in run(&lines) {
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{shell}: {range:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
            assert!(said.contains("6 records, 5 with evidence"), "{shell}: {range:?}: {said}");
        }
        // A text that was changed.
        let has_text = |line: &String| line.starts_with("{\"record\"") && line.contains("Summarize");
        let at = lines.iter().position(has_text).unwrap();
        let mut forged = lines.clone();
        forged[at] = forged[at].replacen("Summarize", "Summarise", 1);
        assert_ne!(forged, lines);
        found(&covered(forged), "evidence");
    }
}

#[test]
fn the_few_lines_of_the_readme_check_each_record_of_a_query() {
    let governor = governor();
    let items = governor.query(&rulekeep::ProofQuery::all().page_size(50)).unwrap().items;
    let snippet =
        include_str!("../../README.md").split("```sh\n# items.json").nth(1).unwrap().split("```").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("items.json"), serde_json::to_vec(&items).unwrap()).unwrap();
    for shell in shells() {
        let mut words = shell.split(' ');
        let output = Command::new(words.next().unwrap())
            .args(words)
            .args(["-euc", &format!("#{snippet}")])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines.len(), 3 * items.len(), "{shell}: {said}");
        for record in lines.chunks(3) {
            assert_eq!(format!("sha256:{}", record[0]), record[1], "{shell}");
        }
    }
}
