//! The chain as a stranger checks it: each record's hash worked out from what a
//! query answers, with `jq` and `sha256sum` and by another RFC 8785
//! implementation, and each record linked to the one before.

use crate::common;

use std::io::Write;
use std::process::{Command, Stdio};

use common::{builder, intent};
use proptest::prelude::*;
use proptest::test_runner::Config;
use rulekeep::{Agent, Governor, Outcome, PolicySet, ProofRecord, RiskLevel, Tier};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Agents whose ids are hard on whoever writes or reads JSON.
const AGENTS: [&str; 13] = [
    "plain",
    "with \"quotes\" and 'others'",
    "back\\slash \\n \\u0041 \\",
    "sla/sh </script>",
    "ünïcödé é e\u{301}",
    "日本語",
    "😀 beyond the first plane 𝒳",
    "line\u{2028}and\u{2029}separators",
    "zero\u{200d}width\u{feff}and\u{200b}more",
    "\u{fffd}\u{fffe}\u{ffff}\u{10ffff}",
    "no\u{a0}break\u{ad}soft",
    "{\"outcome\":\"SUCCESS\",\"hash\":\"x\"}",
    "1e999",
];

/// A governor in which every agent has had each kind of decision, with reasons as hard as the ids.
fn governor() -> Governor {
    let policies = format!(
        "{}\n[[rule]]\nid = \"quoted\"\neffect = \"deny\"\nreason = {}\nmatch.capabilities = [\"task:delete\"]\n",
        common::POLICIES,
        r#""She said \"no\" \\ 日本語 😀 é <b>&amp;""#
    );
    let governor = builder().policies(PolicySet::from_toml(&policies).unwrap()).open_in_memory().unwrap();
    for agent in AGENTS {
        governor.agents().register(Agent::new(agent).at_tier(Tier::T4)).unwrap();
    }
    for capability in ["document:read", "task:delete", "email:send", "code:write"] {
        for agent in AGENTS {
            governor.enforce(&intent(agent, &[capability])).unwrap();
        }
    }
    for (place, agent) in AGENTS.iter().enumerate() {
        governor.agents().suspend(agent, "so that the id stands in the reasoning").unwrap();
        let proof_id = governor.enforce(&intent(agent, &["file:read"])).unwrap().proof_id;
        governor.report(&proof_id, Outcome::ALL[place % Outcome::ALL.len()]).unwrap();
    }
    governor
}

/// Runs a program on an input; `None` where it is not installed, with the reason printed.
fn run(program: &str, arguments: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let started = Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            eprintln!("skipped: {program} cannot be run: {error}");
            return None;
        }
    };
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // Written from the side, for the program may answer before it has read all.
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{program} failed");
    Some(output.stdout)
}

/// The hash of a record by the RFC 8785 crate.
fn canonical_hash(record: &Value) -> String {
    let mut record = record.clone();
    record.as_object_mut().unwrap().retain(|field, _| field != "hash" && field != "outcome");
    format!("sha256:{}", hex::encode(Sha256::digest(serde_json_canonicalizer::to_vec(&record).unwrap())))
}

#[test]
fn jq_and_sha256sum_work_out_every_hash() {
    let governor = governor();
    let records = common::chain(&governor, &AGENTS);
    assert_eq!(records.len(), 5 * AGENTS.len());
    let text: String = records.iter().map(|record| serde_json::to_string(record).unwrap() + "\n").collect();
    let Some(canonical) = run("jq", &["-cS", "del(.hash,.outcome)"], text.as_bytes()) else { return };
    let canonical: Vec<&[u8]> = canonical.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    assert_eq!(canonical.len(), records.len());
    for (record, canonical) in records.iter().zip(canonical) {
        let Some(sum) = run("sha256sum", &[], canonical) else { return };
        let digits = String::from_utf8(sum).unwrap();
        let digits = digits.split_whitespace().next().unwrap();
        assert_eq!(record.hash.to_string(), format!("sha256:{digits}"), "{}", String::from_utf8_lossy(canonical));
    }
}

#[test]
fn another_rfc_8785_implementation_works_out_every_hash() {
    let governor = governor();
    for record in common::chain(&governor, &AGENTS) {
        assert_eq!(json!(record)["hash"], canonical_hash(&json!(record)), "{record:?}");
    }
}

#[test]
fn each_record_names_the_hash_before_and_the_first_zeros() {
    let governor = governor();
    let records = common::chain(&governor, &AGENTS);
    assert_eq!(records[0].previous_hash.to_string(), format!("sha256:{}", "0".repeat(64)));
    for pair in records.windows(2) {
        assert_eq!(pair[1].previous_hash, pair[0].hash);
        assert!(pair[1].timestamp >= pair[0].timestamp);
    }
    let verification = governor.verify().unwrap();
    assert_eq!(verification.head_hash, records.last().unwrap().hash);
    assert_eq!(verification.records, records.len() as u64);
}

#[test]
fn the_chain_goes_on_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        let governor = common::in_folder(folder.path());
        common::decide(&governor, "a");
        governor.close().unwrap();
    }
    let records = common::chain(&common::in_folder(folder.path()), &["a"]);
    assert_eq!(records.len(), 3);
    assert!(records.windows(2).all(|pair| pair[1].previous_hash == pair[0].hash));
    assert!(records.iter().all(|record| json!(record)["hash"] == canonical_hash(&json!(record))));
}

#[test]
fn a_hash_covers_every_field_but_itself_and_the_outcome() {
    let governor = governor();
    let record: ProofRecord = common::chain(&governor, &AGENTS).pop().unwrap();
    assert!(record.outcome.is_some());
    let intact = json!(record);
    for field in intact.as_object().unwrap().keys() {
        let mut changed = intact.clone();
        changed[field] = json!("changed");
        let covered = canonical_hash(&changed) != intact["hash"];
        assert_eq!(covered, field != "hash" && field != "outcome", "{field}");
    }
}

#[test]
fn equal_intents_do_not_share_an_evidence_hash() {
    let governor = common::in_memory();
    let (first, second) = (common::decide(&governor, "a"), common::decide(&governor, "a"));
    let hash = |id| governor.log().record(id).unwrap().evidence_hash;
    assert_ne!(hash(&first), hash(&second), "the salt keeps one from being guessed by the other");
}

#[test]
fn a_record_of_any_agent_and_context_hashes_as_its_json() {
    let governor = builder().auto_register().open_in_memory().unwrap();
    let texts = prop_oneof!["\\PC{1,40}", "[\"\\\\/é€😀\u{2028} a-z]{1,20}"];
    let config = Config { cases: 200, failure_persistence: None, ..Config::default() };
    proptest!(config, |(agent in texts, note in ".*", number in any::<f64>())| {
        let Ok(asked) = rulekeep::Intent::new(&agent, "do_it", RiskLevel::High, ["code:write"]) else { return Ok(()) };
        let asked = asked.with_context("note", note).with_context("number", number);
        // Not every text can be a new agent's id.
        let Ok(decided) = governor.enforce(&asked) else { return Ok(()) };
        let proof_id = decided.proof_id;
        let record = json!(governor.log().record(&proof_id).unwrap());
        prop_assert_eq!(&record["hash"], &json!(canonical_hash(&record)));
        prop_assert_eq!(&record["entityId"], &json!(agent));
    });
    assert!(governor.verify().unwrap().valid);
}
