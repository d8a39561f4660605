//! The calls on keys: create, list, revoke. A program without the gateway knows their names.

/// Whether a call is one on keys.
pub(super) fn is_known(name: &str) -> bool {
    NAMES.contains(&name)
}

/// The names of all.
pub(super) const NAMES: &[&str] = &["key/create", "key/list", "key/revoke"];

use serde_json::{Value, json};

use crate::gateway::{Gateway, KeyDraft, Plan, Scope};
use crate::params::{Faults, Params, in_whole_numbers};
use crate::wire::to_json;
use rulekeep::Error;
use rulekeep::extension::KeyId;
use rulekeep::system::Timestamp;

const FAULTS: Faults = Faults::Input;

pub(crate) fn call(gateway: &Gateway, name: &str, params: &Params) -> Result<Value, Error> {
    match name {
        "key/create" => to_json(&gateway.keys().create(draft(params)?)?),
        "key/list" => Ok(json!({ "keys": gateway.keys().list() })),
        "key/revoke" => {
            let id: KeyId = params.word("id", FAULTS)?;
            to_json(&gateway.keys().revoke(id)?)
        }
        _ => Err(Error::Internal { message: "this is no call on keys".to_owned() }),
    }
}

/// `{scope, plan, agents?, expiresAt?, name?}`.
fn draft(params: &Params) -> Result<KeyDraft, Error> {
    // A misspelt field that is dropped would make a key for more, or for longer, than was meant.
    params.only_given(&[&["scope", "plan", "agents", "expiresAt", "name"]])?;
    let scope: Scope = params.word("scope", FAULTS)?;
    let mut plan = params.get("plan").cloned().ok_or_else(|| Error::input("plan", "is missing"))?;
    in_whole_numbers(&mut plan);
    let plan: Plan = serde_json::from_value(plan)
        .map_err(|_| Error::input("plan", "expected free, pro, or perMinute and burst, both whole and above 0"))?;
    let mut draft = KeyDraft::new(scope, plan);
    if let Some(name) = params.optional_text("name", FAULTS)? {
        draft = draft.name(name);
    }
    if let Some(at) = params.optional_word::<Timestamp>("expiresAt", FAULTS)? {
        draft = draft.expires_at(at);
    }
    let agents = params.texts("agents")?;
    if agents.is_empty() && params.get("agents").is_some() {
        return Err(Error::input("agents", "expected one at the least; without the field it is a key for all"));
    }
    Ok(agents.into_iter().fold(draft, KeyDraft::agent))
}
