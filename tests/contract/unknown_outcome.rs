//! Hosts that do not tell results: UNKNOWN is an entry of its own, and the record has no outcome until one is reported.

use std::fs;
use std::io::BufReader;
use std::path::Path;

use rulekeep::escalation::{EscalationId, Review};
use rulekeep::maintenance::import;
use rulekeep::proof::{ExportRange, ProofId};
use rulekeep::{Durability, Governor, Outcome, ProofQuery};
use serde_json::{Value, json};

use crate::common::{builder, code, decide, in_folder, in_memory, intent, open_with};

/// The bodies of the entries that say UNKNOWN, as an export shows them.
fn unknown_in_export(governor: &Governor) -> Vec<Value> {
    let lines = String::from_utf8(exported(governor)).unwrap();
    let entries = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let unknown = entries.filter(|line| line["entry"]["kind"] == "unknown_outcome");
    unknown.map(|line| serde_json::from_str(line["entry"]["body"].as_str().unwrap()).unwrap()).collect()
}

fn exported(governor: &Governor) -> Vec<u8> {
    let mut out = Vec::new();
    governor.log().export(&ExportRange::all().with_entries(), &mut out, &mut |_, _| {}).unwrap();
    out
}

fn outcome_of(governor: &Governor, proof_id: &ProofId) -> Option<Outcome> {
    governor.log().record(proof_id).unwrap().outcome
}

#[test]
fn unknown_is_an_entry_of_its_own_and_moves_nothing() {
    let governor = in_memory();
    let proof_id = decide(&governor, "a");
    let before = (governor.agents().get("a").unwrap(), governor.stats("a", ..).unwrap());
    governor.report_unknown(&proof_id, Some("no result came back; password: hunter2hunter2")).unwrap();

    assert_eq!(outcome_of(&governor, &proof_id), None);
    assert_eq!((governor.agents().get("a").unwrap(), governor.stats("a", ..).unwrap()), before);
    assert_eq!(governor.query(&ProofQuery::entity("a").open()).unwrap().total, 1, "it is open still");
    let told = unknown_in_export(&governor);
    assert_eq!((told.len(), &told[0]["proofId"], &told[0]["entityId"]), (1, &json!(proof_id), &json!("a")));
    let note = told[0]["note"].as_str().unwrap();
    assert!(note.starts_with("no result came back") && !note.contains("hunter2"), "{note}");
    assert!(governor.verify().unwrap().valid);
}

#[test]
fn unknown_repeats_and_accepts_one_real_outcome_after_it() {
    let governor = in_memory();
    let proof_id = decide(&governor, "a");
    governor.report_unknown(&proof_id, None).unwrap();
    governor.report_unknown(&proof_id, None).unwrap();
    governor.report(&proof_id, Outcome::Failure).unwrap();
    governor.report(&proof_id, Outcome::Failure).unwrap();
    assert_eq!(code(governor.report(&proof_id, Outcome::Success)), "CONFLICT");
    // Not yet in the index, and in it.
    assert_eq!(code(governor.report_unknown(&proof_id, None)), "CONFLICT");
    governor.log().flush().unwrap();
    assert_eq!(code(governor.report_unknown(&proof_id, None)), "CONFLICT");
    assert_eq!((outcome_of(&governor, &proof_id), unknown_in_export(&governor).len()), (Some(Outcome::Failure), 2));
}

#[test]
fn unknown_is_refused_for_bad_records_long_notes_closed_logs() {
    let governor = in_memory();
    let proof_id = decide(&governor, "a");
    let elsewhere = decide(&in_memory(), "a");
    assert_eq!(code(governor.report_unknown(&elsewhere, None)), "PROOF_NOT_FOUND");
    assert_eq!(code(governor.report_unknown(&proof_id, Some(&"x".repeat(4097)))), "INVALID_INPUT");
    governor.close().unwrap();
    assert_eq!(code(governor.report_unknown(&proof_id, None)), "STORAGE_UNAVAILABLE");
}

#[test]
fn unknown_of_an_approval_is_refused_until_it_is_claimed() {
    let governor = in_memory();
    let mail = intent("a", &["email:send"]);
    let id = EscalationId::of(governor.enforce(&mail).unwrap().proof_id);
    let approval = governor.escalations().approve(id, Review::by("mail-lead")).unwrap().proof_id.unwrap();
    assert_eq!(code(governor.report_unknown(&approval, None)), "CONFLICT");
    governor.escalations().claim(id, &mail).unwrap();
    governor.report_unknown(&approval, None).unwrap();
    governor.report(&approval, Outcome::Success).unwrap();
}

/// What must hold of a store in which one record is UNKNOWN and another had a real outcome behind it.
fn assert_kept(folder: &Path, unknown: &ProofId, later: &ProofId) {
    let governor = in_folder(folder);
    assert!(governor.verify().unwrap().valid);
    assert_eq!((outcome_of(&governor, unknown), outcome_of(&governor, later)), (None, Some(Outcome::Success)));
    assert_eq!(unknown_in_export(&governor).len(), 2);
    governor.close().unwrap();
}

#[test]
fn unknown_outlives_restart_rebuilt_index_export_and_import() {
    let home = tempfile::tempdir().unwrap();
    let (folder, copy) = (home.path().join("store"), home.path().join("copy"));
    let governor = open_with(builder().durability(Durability::Buffered), &folder);
    let (unknown, later) = (decide(&governor, "a"), decide(&governor, "a"));
    governor.report_unknown(&unknown, None).unwrap();
    governor.report_unknown(&later, None).unwrap();
    governor.report(&later, Outcome::Success).unwrap();
    let export = exported(&governor);
    governor.close().unwrap();

    assert_kept(&folder, &unknown, &later);
    fs::remove_dir_all(folder.join("view")).unwrap();
    assert_kept(&folder, &unknown, &later);
    import(&copy, &mut BufReader::new(export.as_slice()), &mut |_, _| {}).unwrap();
    assert_kept(&copy, &unknown, &later);

    let governor = in_folder(&copy);
    governor.report(&unknown, Outcome::Success).unwrap();
    assert_eq!(outcome_of(&governor, &unknown), Some(Outcome::Success), "a real outcome is accepted after all that");
}
