//! A store as version 0.1.0 left it, before the log had parts: it opens, verifies, answers as it did then, and goes on.
//!
//! `tests/data/store-0.1.0.lz4` holds its files, each without the zeros at its end; `store-0.1.0.json` what that version
//! answered before it closed the store.

use std::fs;
use std::path::Path;

use crate::common::{Still, chain, decide, error};
use rulekeep::escalation::EscalationState;
use rulekeep::proof::ProofId;
use rulekeep::system::Timestamp;
use rulekeep::{Decision, Error, Governor};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const FILES: &[u8] = include_bytes!("../data/store-0.1.0.lz4");
const AGENTS: [&str; 3] = ["clerk", "reader", "gone"];

fn expected() -> Value {
    serde_json::from_str(include_str!("../data/store-0.1.0.json")).unwrap()
}

fn id<T: DeserializeOwned>(expected: &Value) -> T {
    serde_json::from_value(expected.clone()).unwrap()
}

/// Writes the files: of each a line with its name, one with its length, one with how many bytes of it follow.
fn unpack(folder: &Path) {
    let content = lz4_flex::block::decompress_size_prepended(FILES).unwrap();
    let mut rest = content.as_slice();
    while !rest.is_empty() {
        let mut line = || {
            let end = rest.iter().position(|byte| *byte == b'\n').unwrap();
            let line = std::str::from_utf8(&rest[..end]).unwrap();
            rest = &rest[end + 1..];
            line
        };
        let (path, length, kept) = (folder.join(line()), line().parse().unwrap(), line().parse().unwrap());
        let (content, after) = rest.split_at(kept);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_len(length).unwrap();
        rest = after;
    }
}

fn opened(folder: &Path, expected: &Value) -> Governor {
    let closed: Timestamp = id(&expected["closedAt"]);
    Governor::builder().clock(Still::at(closed.as_millis())).open(folder).unwrap()
}

/// Holds everything that can be asked against what the old version answered.
fn assert_answers_as_then(governor: &Governor, expected: &Value) {
    let verification = governor.verify().unwrap();
    assert!(verification.valid, "{:?}", verification.first_broken);
    assert_eq!(json!([verification.records, verification.head_hash]), json!([expected["count"], expected["headHash"]]));
    assert_eq!(json!(chain(governor, &AGENTS)), expected["records"]);
    let stats: Vec<Value> = AGENTS.iter().map(|agent| json!(governor.stats(agent, ..).unwrap())).collect();
    assert_eq!(json!(stats), expected["stats"]);
    let agents = AGENTS.map(|agent| governor.agents().get(agent).unwrap());
    assert_eq!(
        json!(agents.map(|agent| json!({ "state": agent.state, "trust": agent.trust }))),
        expected["agents"],
        "standing and trust"
    );
    assert_eq!(governor.trust().verify().unwrap().differing, [], "made anew from what that version wrote");
    assert_eq!(json!(governor.policies().current().digest()), expected["policies"]);

    let escalations = governor.escalations();
    assert_eq!(escalations.get(id(&expected["approved"])).unwrap().state, EscalationState::Approved);
    assert_eq!(json!(escalations.get(id(&expected["ended"]["id"])).unwrap()), expected["ended"]);
    assert_eq!(json!(escalations.pending().unwrap()), expected["pending"]);
    assert_eq!(json!(escalations.pre_approvals()), expected["classes"]);
    assert_eq!(json!(governor.kill_switch().list()), expected["stops"]);
    for erased in expected["erased"].as_array().unwrap() {
        let answer = error(governor.log().evidence(&id::<ProofId>(erased)));
        assert!(matches!(answer, Error::EvidenceErased { .. }), "{erased}: {answer}");
    }
    let kept = governor.log().evidence(&id(&expected["last"])).unwrap();
    assert_eq!(kept.intent["parsedAction"], "send_mail");
}

#[test]
fn a_store_of_the_version_before_the_parts_opens_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    unpack(folder.path());
    let expected = expected();
    let governor = opened(folder.path(), &expected);
    assert_answers_as_then(&governor, &expected);

    let appended = decide(&governor, "clerk");
    let record = governor.log().record(&appended).unwrap();
    assert_eq!(record.decision, Decision::Allow);
    assert_eq!(json!(record.previous_hash), expected["headHash"]);
    governor.close().unwrap();
    drop(governor);

    let governor = opened(folder.path(), &expected);
    let verification = governor.verify().unwrap();
    assert!(verification.valid);
    assert_eq!(json!(verification.records), json!(expected["count"].as_u64().unwrap() + 1));
}

#[test]
fn its_log_alone_is_enough() {
    let folder = tempfile::tempdir().unwrap();
    unpack(folder.path());
    fs::remove_dir_all(folder.path().join("view")).unwrap();
    let expected = expected();
    assert_answers_as_then(&opened(folder.path(), &expected), &expected);
}
