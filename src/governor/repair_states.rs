//! States that a repair takes over besides agents, policies and kill switches, and the changes needed for the new log.

use serde_json::{Value, json};

use super::escalations;
use super::extension::{API_KEY, ENDPOINT, ENDPOINT_PLACE};
use super::trust::MODEL_KEY;
use super::{alerts, catalogue, cursor, tasks};
use crate::model::{Error, EscalationRecord, TaskState};
use crate::parse::ToolRuling;
use crate::proof::{FoundStates, RepairStates, StateDraft};
use crate::trust::TrustModel;

const CAUSE: &str = "carried over by a repair";

/// Takes over the trust model, first because later trust entries depend on it.
pub(super) fn trust_model(found: &FoundStates, carried: &mut RepairStates) {
    if found.behind.contains_key(MODEL_KEY) {
        carried
            .notes
            .push("a trust model was set in unconfirmed entries and was not carried over: set it again".to_owned());
    }
    let Some(value) = found.good.get(MODEL_KEY) else { return };
    match serde_json::from_slice(value).map(TrustModel::checked) {
        Ok(Ok(_)) => push(carried, MODEL_KEY.to_owned(), String::from_utf8_lossy(value).into_owned()),
        _ => carried.notes.push(format!("the state {MODEL_KEY:?} cannot be read and was not carried over")),
    }
}

/// Takes over pending escalations, and approved but unclaimed ones, as ended. Their records are in the broken log and
/// may have been answered after the break, so they could otherwise be granted twice.
pub(super) fn escalations(found: &FoundStates, carried: &mut RepairStates) -> Result<(), Error> {
    let mut ended = 0_u64;
    for (key, value) in found.good.iter().filter(|(key, _)| key.starts_with(escalations::KEY_PREFIX)) {
        let Ok(record) = serde_json::from_slice::<EscalationRecord>(value) else {
            carried.notes.push(format!("the state {key:?} cannot be read and was not carried over"));
            continue;
        };
        if let Some(state) = escalations::ended_by(&record, "the log broke and was repaired; ask again")? {
            carried.states.push((state, CAUSE.to_owned()));
            ended += 1;
        }
    }
    if ended > 0 {
        carried.notes.push(format!("{ended} pending escalations and unclaimed approvals ended"));
    }
    Ok(())
}

/// Takes over no task: the evidence of its words is in the broken log, so its mandate cannot be known.
pub(super) fn tasks(found: &FoundStates, carried: &mut RepairStates) {
    let states = found.good.iter().filter(|(key, _)| key.starts_with(tasks::KEY_PREFIX));
    let open = states.filter(|(_, value)| field(value, "state") == json!(TaskState::Open)).count();
    if open > 0 {
        carried.notes.push(format!("{open} open tasks ended: open them again, with the user's words"));
    }
}

/// Takes over webhook endpoints of the valid part of the log, unless one was removed or disabled after the break. They
/// receive events from the first entry of the new log on.
pub(super) fn endpoints(found: &FoundStates, carried: &mut RepairStates) {
    let endpoints = found.good.iter().filter_map(|(key, value)| Some((key.strip_prefix(ENDPOINT)?, value)));
    let mut told = 0_u64;
    for (id, value) in endpoints {
        let is_removed = |value: &Vec<u8>| field(value, "removed") == Value::Bool(true);
        let key = format!("{ENDPOINT}{id}");
        if is_removed(value) || found.behind.get(&key).into_iter().flatten().any(is_removed) {
            continue;
        }
        if !field(value, "url").is_string() {
            carried.notes.push(format!("the endpoint {id} cannot be read and was not carried over: add it again"));
            continue;
        }
        let place = format!("{ENDPOINT_PLACE}{id}");
        let places = found.good.get(&place).into_iter().chain(found.behind.get(&place).into_iter().flatten());
        let off = places.map(|place| field(place, "off")).rfind(Value::is_string);
        let mut begins = json!({ "next": 0, "ordinal": 0 });
        if let (Some(begins), Some(off)) = (begins.as_object_mut(), off) {
            begins.insert("off".to_owned(), off);
        }
        push(carried, place, begins.to_string());
        push(carried, key, String::from_utf8_lossy(value).into_owned());
        carried.with_secrets = true;
        told += 1;
    }
    let is_disbelieved = |(key, values): &(&String, &Vec<Vec<u8>>)| {
        let is_removed = values.last().is_some_and(|value| field(value, "removed") == Value::Bool(true));
        key.starts_with(ENDPOINT) && !found.good.contains_key(*key) && !is_removed
    };
    for (key, _) in found.behind.iter().filter(is_disbelieved) {
        let id = key.strip_prefix(ENDPOINT).unwrap_or(key);
        carried.notes.push(format!("the endpoint {id} is unconfirmed and was not carried over: add it again"));
    }
    if told > 0 {
        carried.notes.push(format!(
            "{told} webhook endpoints receive the events of the new log, but not the undelivered and parked events of \
             the broken one"
        ));
    }
}

/// Takes over API keys of the valid part of the log; a revocation or expiry on either side of the break counts.
pub(super) fn keys(found: &FoundStates, carried: &mut RepairStates) {
    let known = found.good.iter().filter(|(key, _)| key.starts_with(API_KEY));
    let disbelieved =
        found.behind.keys().filter(|key| key.starts_with(API_KEY) && !found.good.contains_key(*key)).count();
    for (key, value) in known {
        let has_ended =
            |value: &&Vec<u8>| field(value, "revokedAt").is_string() || field(value, "expired") == Value::Bool(true);
        let value = found.behind.get(key).into_iter().flatten().find(has_ended).unwrap_or(value);
        push(carried, key.clone(), String::from_utf8_lossy(value).into_owned());
    }
    if disbelieved > 0 {
        carried
            .notes
            .push(format!("{disbelieved} API keys are unconfirmed and were not carried over: create them again"));
    }
}

/// Takes over named cursors, which start at the beginning of the new log.
pub(super) fn cursors(found: &FoundStates, carried: &mut RepairStates) {
    let is_kept =
        |key: &str, value: &[u8]| key.starts_with(cursor::KEY_PREFIX) && key != alerts::PLACE_KEY && value != b"null";
    let mut begun = 0_u64;
    for (key, _) in found.good.iter().filter(|(key, value)| is_kept(key, value)) {
        push(carried, key.clone(), cursor::FROM_THE_FIRST.to_owned());
        begun += 1;
    }
    if begun > 0 {
        carried
            .notes
            .push(format!("{begun} cursors start at the new log and miss the unread events of the broken one"));
    }
}

/// Takes over pins and overrides of the valid part of the log. If entries after the break say otherwise, or nothing can
/// be trusted, no definition of the tool is accepted, so every call of it is at least HIGH.
pub(super) fn tools(found: &FoundStates, carried: &mut RepairStates) -> Result<(), Error> {
    let keys = found.good.keys().chain(found.behind.keys().filter(|key| !found.good.contains_key(*key)));
    let mut disputed = 0_u64;
    for key in keys.filter(|key| key.starts_with(catalogue::KEY_PREFIX)) {
        let mut read = |value: &Vec<u8>| {
            catalogue::read(key, value).unwrap_or_else(|_| {
                carried.notes.push(format!("the state {key:?} cannot be read and was not carried over"));
                None
            })
        };
        let good = found.good.get(key).and_then(&mut read);
        let mut behind: Vec<ToolRuling> = found.behind.get(key).into_iter().flatten().filter_map(&mut read).collect();
        behind.retain(|ruling| Some(ruling) != good.as_ref());
        let is_believed = behind.is_empty() && !found.is_contradicted;
        let Some(ruling) = good.or_else(|| behind.pop()) else { continue };
        let ruling = if is_believed {
            ruling
        } else {
            disputed += 1;
            ruling.disputed(behind)
        };
        carried.states.push((catalogue::state_of(&ruling)?, CAUSE.to_owned()));
    }
    if disputed > 0 {
        carried.notes.push(format!(
            "the pins and overrides of {disputed} tools are unconfirmed: every call of these tools is at least HIGH \
             until they are pinned or overridden again"
        ));
    }
    Ok(())
}

fn push(carried: &mut RepairStates, key: String, value: String) {
    carried.states.push((StateDraft::new(key, value), CAUSE.to_owned()));
}

fn field(value: &[u8], name: &str) -> Value {
    serde_json::from_slice::<Value>(value)
        .ok()
        .and_then(|mut value| Some(value.get_mut(name)?.take()))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

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
        let mut carried = RepairStates::default();
        tools(found, &mut carried).unwrap();
        let read = |value: &str| serde_json::from_str::<Value>(value).unwrap();
        let states = carried.states.iter().map(|(state, _)| (state.key.clone(), read(&state.value)));
        (states.collect(), carried.notes)
    }

    #[test]
    fn a_repair_takes_pins_and_overrides_over_and_accepts_nothing_that_is_disputed() {
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
    fn a_key_that_is_revoked_or_has_expired_on_either_side_of_the_break_stays_so() {
        let ended =
            [json!({ "id": "k", "revokedAt": "2026-11-23T12:00:00.000Z" }), json!({ "id": "k", "expired": true })];
        for ended in ended {
            let key = format!("{API_KEY}k");
            let [good, ended] = [json!({ "id": "k" }), ended].map(|value| value.to_string().into_bytes());
            let found = FoundStates {
                good: BTreeMap::from([(key.clone(), good.clone())]),
                behind: BTreeMap::from([(key, vec![ended.clone(), good])]),
                first_unconfirmed: None,
                is_contradicted: false,
            };
            let mut carried = RepairStates::default();
            keys(&found, &mut carried);
            assert_eq!(carried.states[0].0.value.as_bytes(), ended);
        }
    }
}
