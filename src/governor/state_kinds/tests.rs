//! Every kind of state against a restart, an archive, a repair and a read-only opening, and what a repair believes.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::governor::extension::{Extension, Wait};
use crate::governor::intake::catalogue;
use crate::model::{Agent, Intent, KillSwitchScope, Review, RiskLevel, Score, TaskRequest, ToolChange};
use crate::policy::{PolicySet, PreApproval};
use crate::proof::{LogOptions, Place, ProofLog};
use crate::store::StoreId;
use crate::trust::TrustModel;

const POLICIES: &str = r#"
    name = "small"
    [[rule]]
    id = "mails"
    effect = "escalate"
    match.capabilities = ["email:send"]
    reviewer = "ann"
    [[alert]]
    id = "denials"
    on = "denials"
    count = 3
    per = "1h"
    severity = "HIGH"
"#;

fn open(folder: &Path) -> Governor {
    let model = TrustModel { daily_gain_cap: 18, ..TrustModel::default() };
    let policies = PolicySet::from_toml(POLICIES).unwrap();
    Governor::builder().policies(policies).trust_model(model).open(folder).unwrap()
}

/// Writes a state of every kind.
fn with_all_kinds(folder: &Path) {
    let governor = open(folder);
    governor.agents().register(Agent::new("a").at_score(Score::MAX)).unwrap();
    governor.kill_switch().set(KillSwitchScope::agent("b").unwrap(), "ann", "").unwrap();
    let mail = Intent::new("a", "send_mail", RiskLevel::Low, ["email:send"]).unwrap();
    governor.enforce(&mail).unwrap();
    governor.tasks().open(TaskRequest::new("a", "Read the minutes")).unwrap();
    let tools = json!([{ "name": "reader", "description": "Reads a page." }]);
    governor.tools().load(&tools, None).unwrap();
    governor.tools().change(&[ToolChange::pin("reader")]).unwrap();
    governor.log().cursor("billing", &crate::governor::EventFilter::all()).unwrap();
    let now = governor.inner.base.clock.now();
    let terms = serde_json::from_value(json!({
        "agentId": "a", "capabilities": ["email:send"], "rules": ["mails"],
        "until": Timestamp::from_millis(now.as_millis() + 3_600_000),
    }));
    let approval = PreApproval::new(terms.unwrap(), now).unwrap();
    governor.escalations().pre_approve(approval, Review::by("ann")).unwrap();
    let followed = StateDraft::new(keys::Alerts::PREFIX.to_owned(), json!({ "from": 1 }).to_string());
    governor.inner.base.set_state(followed, "a test").unwrap();
    let extension = Extension::of(&governor);
    for (key, value) in [
        (format!("{API_KEY}k"), json!({ "id": "k" })),
        (format!("{ENDPOINT}w"), json!({ "url": "https://a.example" })),
        (format!("{ENDPOINT_PLACE}w"), json!({ "next": 0, "ordinal": 0 })),
        (format!("{CONVERSATION}c"), json!("task")),
        (format!("{FLEET}order"), json!(17)),
    ] {
        extension.keep(key, value.to_string(), "a test", Wait::Committed).unwrap();
    }
    governor.close().unwrap();
}

/// The states that the log of a folder stores.
fn states(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let place = Place::ReadOnly(folder.to_owned());
    let (log, startup) =
        ProofLog::open(&place, &LogOptions::default(), Timestamp::from_millis(0), StoreId([0; 16])).unwrap();
    log.close().unwrap();
    startup.states
}

fn repaired(repair: fn(&mut Repairing<'_>) -> Result<Repaired, Error>, found: &FoundStates) -> RepairStates {
    let mut repairing = Repairing { found, carried: RepairStates::default(), suspend_all: false };
    if let Repaired::Dropped(note) = repair(&mut repairing).unwrap() {
        repairing.say(note);
    }
    repairing.carried
}

#[test]
fn every_kind_outlasts_restart_archive_repair_and_reading() {
    let folder = tempfile::tempdir().unwrap();
    with_all_kinds(folder.path());
    let states = states(folder.path());
    let found = FoundStates { good: states.iter().cloned().collect(), ..FoundStates::default() };

    let reader = Governor::open_read_only(folder.path()).unwrap();
    assert!(reader.verify().unwrap().valid);
    reader.close().unwrap();
    let governor = open(folder.path());
    let again = Rerecording::of(&governor, governor.inner.base.clock.now()).unwrap();
    for kind in KINDS {
        let is_of_it = |key: &str| Kind::of_key(key).is_some_and(|one| one.prefix == kind.prefix);
        let own: Vec<_> = states.iter().map(|(key, _)| key).filter(|key| is_of_it(key)).collect();
        assert!(!own.is_empty(), "{}: no sample", kind.prefix);
        // A restart knows what is enqueued again; a pre-approval never is.
        let is_known = own.iter().all(|key| again.keys.contains(*key));
        assert!(is_known || kind.prefix == keys::Grants::PREFIX, "{}: restart", kind.prefix);
        assert!(own.iter().all(|key| again.may_leave(key)), "{}: archive", kind.prefix);
        let mut repairing = Repairing { found: &found, carried: RepairStates::default(), suspend_all: false };
        let is_carried = match (kind.repair)(&mut repairing).unwrap() {
            Repaired::Dropped(note) => !note.is_empty(),
            Repaired::Derived => true,
            // An endpoint carries its position.
            Repaired::Carried if kind.prefix == ENDPOINT_PLACE => true,
            Repaired::Carried => repairing.carried.states.iter().any(|(state, _)| is_of_it(&state.key)),
        };
        assert!(is_carried, "{}: repair", kind.prefix);
    }
}

#[test]
fn a_store_with_a_state_of_no_kind_does_not_open() {
    let folder = tempfile::tempdir().unwrap();
    let governor = open(folder.path());
    governor.inner.base.set_state(StateDraft::new("later/x".to_owned(), "1".to_owned()), "a test").unwrap();
    governor.close().unwrap();
    drop(governor);
    for opened in [Governor::open(folder.path()), Governor::open_read_only(folder.path())] {
        let error = opened.unwrap_err();
        assert_eq!(error.code(), "STORAGE_UNAVAILABLE");
        assert!(error.to_string().contains("later/x"), "{error}");
    }
}

/// The state of a pinned or overridden tool whose definition is identified by that digit.
fn state(name: &str, digit: char, capability: &str, set: Option<&str>) -> (String, Vec<u8>) {
    let set = set.map(|risk| json!({ "riskLevel": risk, "reason": "a test" }));
    let digest = format!("sha256:{}", digit.to_string().repeat(64));
    let value = json!({
        "name": name, "digest": digest, "pinned": set.is_none(), "capabilities": [capability], "riskLevel": "LOW", "override": set
    });
    let ruling: ToolRuling = serde_json::from_value(value).unwrap();
    let draft = catalogue::state_of(&ruling).unwrap();
    (draft.key, draft.value.into_bytes())
}

fn carried(found: &FoundStates) -> (BTreeMap<String, Value>, Vec<String>) {
    let carried = repaired(keys::Tools::repair, found);
    let read = |value: &str| serde_json::from_str::<Value>(value).unwrap();
    let states = carried.states.iter().map(|(state, _)| (state.key.clone(), read(&state.value)));
    (states.collect(), carried.notes)
}

#[test]
fn a_repair_carries_pins_and_overrides_unless_disputed() {
    let kept = state("kept", '1', "web:read", Some("LOW"));
    let unpinned = state("unpinned", '1', "web:read", None);
    let good = BTreeMap::from([
        kept.clone(),
        unpinned.clone(),
        state("again", '1', "web:read", Some("CRITICAL")),
        ("tool/gone".to_owned(), b"null".to_vec()),
        ("tool/broken".to_owned(), b"7".to_vec()),
    ]);
    let behind = [
        (unpinned.0.clone(), b"null".to_vec()),
        state("again", '2', "file:delete", Some("LOW")),
        state("behind", '3', "web:send", Some("LOW")),
    ];
    let behind = behind.map(|(key, value)| (key, vec![value])).into();
    let mut found = FoundStates { good, behind, first_unconfirmed: None, is_contradicted: false };
    let (states, notes) = carried(&found);
    let same = |(key, value): &(String, Vec<u8>)| states[key] == serde_json::from_slice::<Value>(value).unwrap();
    assert!(same(&kept) && same(&unpinned), "what takes a pin off is not believed behind the break");
    let none = format!("sha256:{}", "0".repeat(64));
    for (name, risk, capabilities) in
        [("again", "CRITICAL", json!(["web:read", "file:delete"])), ("behind", "LOW", json!(["web:send"]))]
    {
        let state = &states[&format!("tool/[null,{name:?}]")];
        let [pinned, digest, level] = ["pinned", "digest", "riskLevel"].map(|field| &state[field]);
        assert_eq!((pinned, digest, level), (&json!(true), &json!(none), &json!(risk)), "{name}");
        assert_eq!((&state["capabilities"], state.get("override")), (&capabilities, None), "{name}");
    }
    assert_eq!(states.len(), 4);
    assert!(notes[0].contains("tool/broken") && notes[1].contains("2 tools"), "{notes:?}");

    found.is_contradicted = true;
    let (states, _) = carried(&found);
    assert!(states.values().all(|state| state["digest"] == json!(none)), "{states:#?}");
}

#[test]
fn a_key_revoked_or_expired_on_either_side_of_a_break_stays_so() {
    let ended = [json!({ "id": "k", "revokedAt": "2026-11-23T12:00:00.000Z" }), json!({ "id": "k", "expired": true })];
    for ended in ended {
        let key = format!("{API_KEY}k");
        let [good, ended] = [json!({ "id": "k" }), ended].map(|value| value.to_string().into_bytes());
        let found = FoundStates {
            good: BTreeMap::from([(key.clone(), good.clone())]),
            behind: BTreeMap::from([(key, vec![ended.clone(), good])]),
            first_unconfirmed: None,
            is_contradicted: false,
        };
        let carried = repaired(extensions::ApiKeys::repair, &found);
        assert_eq!(carried.states[0].0.value.as_bytes(), ended);
    }
}
