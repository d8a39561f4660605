//! What a repair takes over besides agents, policies and stops, and how it must be changed to hold in another log.

use serde_json::{Value, json};

use super::escalations;
use super::extension::{API_KEY, ENDPOINT, ENDPOINT_PLACE};
use super::trust::MODEL_KEY;
use super::{alerts, cursor};
use crate::model::{Error, EscalationRecord};
use crate::proof::{FoundStates, RepairStates, StateDraft};
use crate::trust::TrustModel;

const CAUSE: &str = "carried over by a repair";

/// Takes the trust model over: first, for by it the agents' trust behind it moves.
pub(super) fn trust_model(found: &FoundStates, carried: &mut RepairStates) {
    let Some(value) = found.good.get(MODEL_KEY) else { return };
    match serde_json::from_slice(value).map(TrustModel::checked) {
        Ok(Ok(_)) => push(carried, MODEL_KEY.to_owned(), String::from_utf8_lossy(value).into_owned()),
        _ => carried.notes.push(format!("the state {MODEL_KEY:?} cannot be read and was not taken over")),
    }
}

/// Takes over what waited for a person, or was approved and not taken up, as ended. The record that asked is in the
/// broken log, where it may have been answered behind the break: granted from here it could be granted twice.
pub(super) fn escalations(found: &FoundStates, carried: &mut RepairStates) -> Result<(), Error> {
    let mut ended = 0_u64;
    for (key, value) in found.good.iter().filter(|(key, _)| key.starts_with(escalations::KEY_PREFIX)) {
        let Ok(record) = serde_json::from_slice::<EscalationRecord>(value) else {
            carried.notes.push(format!("the state {key:?} cannot be read and was not taken over"));
            continue;
        };
        if let Some(state) = escalations::ended_by(&record, "the log broke and was repaired; ask again")? {
            carried.states.push((state, CAUSE.to_owned()));
            ended += 1;
        }
    }
    if ended > 0 {
        carried
            .notes
            .push(format!("{ended} requests waited for a person, or were approved and not taken up: they ended"));
    }
    Ok(())
}

/// Takes endpoints over that the log has which holds, unless one was removed or switched off behind the break. They are
/// told what the new log tells, from its first entry on.
pub(super) fn endpoints(found: &FoundStates, carried: &mut RepairStates) {
    let endpoints = found.good.iter().filter_map(|(key, value)| Some((key.strip_prefix(ENDPOINT)?, value)));
    let mut told = 0_u64;
    for (id, value) in endpoints {
        let is_removed = |value: &Vec<u8>| field(value, "removed") == Value::Bool(true);
        let key = format!("{ENDPOINT}{id}");
        if is_removed(value) || found.behind.get(&key).into_iter().flatten().any(is_removed) {
            continue;
        }
        if found.is_other || !field(value, "url").is_string() {
            carried.notes.push(format!("the endpoint {id} cannot be believed and was not taken over: add it again"));
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
    if told > 0 {
        carried.notes.push(format!(
            "{told} endpoints of webhooks are told what the new log tells; what they had still to be told of the broken \
             one, and what was parked, they are not"
        ));
    }
}

/// Takes over the API keys that the log has which holds; revoked where that stands on either side of the break.
pub(super) fn keys(found: &FoundStates, carried: &mut RepairStates) {
    let known = found.good.iter().filter(|(key, _)| key.starts_with(API_KEY));
    let mut disbelieved =
        found.behind.keys().filter(|key| key.starts_with(API_KEY) && !found.good.contains_key(*key)).count();
    for (key, value) in known {
        let is_revoked = |value: &&Vec<u8>| field(value, "revokedAt").is_string();
        let value = found.behind.get(key).into_iter().flatten().find(is_revoked).unwrap_or(value);
        if found.is_other {
            disbelieved += 1;
        } else {
            push(carried, key.clone(), String::from_utf8_lossy(value).into_owned());
        }
    }
    if disbelieved > 0 {
        carried
            .notes
            .push(format!("{disbelieved} API keys cannot be believed and were not taken over: make them again"));
    }
}

/// Takes named cursors over: they begin with the new log.
pub(super) fn cursors(found: &FoundStates, carried: &mut RepairStates) {
    let is_kept =
        |key: &str, value: &[u8]| key.starts_with(cursor::KEY_PREFIX) && key != alerts::PLACE_KEY && value != b"null";
    let mut begun = 0_u64;
    for (key, _) in found.good.iter().filter(|(key, value)| is_kept(key, value)) {
        push(carried, key.clone(), cursor::FROM_THE_FIRST.to_owned());
        begun += 1;
    }
    if begun > 0 {
        carried.notes.push(format!(
            "{begun} cursors begin with the new log; what they had not read of the broken one they miss"
        ));
    }
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
