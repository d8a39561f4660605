//! The calls on stops.

use serde_json::{Value, json};

use super::params::{Faults, Params};
use super::wire::to_json;
use crate::governor::Governor;
use crate::model::{Error, KillSwitchId, KillSwitchScope};

const FAULTS: Faults = Faults::Input;

/// Stops an agent, a group or all: `{agentId? | group? | all: true, by, note?}`.
pub(super) fn set(governor: &Governor, params: &Params) -> Result<Value, Error> {
    let agent = params.optional_text("agentId", FAULTS)?;
    let group = params.optional_text("group", FAULTS)?;
    let scope = match (agent, group, params.flag("all")?) {
        (Some(agent), None, false) => KillSwitchScope::agent(agent)?,
        (None, Some(group), false) => KillSwitchScope::group(group)?,
        (None, None, true) => KillSwitchScope::All,
        _ => return Err(Error::input("agentId", "expected one of agentId, group and all: true")),
    };
    to_json(&governor.kill_switch().set(scope, params.text("by", FAULTS)?, note(params)?)?)
}

/// Lifts a stop: `{id, by, note?}`.
pub(super) fn lift(governor: &Governor, params: &Params) -> Result<Value, Error> {
    let id: KillSwitchId = params.word("id", FAULTS)?;
    governor.kill_switch().lift(&id, params.text("by", FAULTS)?, note(params)?)?;
    Ok(json!({ "id": id }))
}

/// The stops in force: `{}`.
pub(super) fn list(governor: &Governor) -> Value {
    json!({ "stops": governor.kill_switch().list() })
}

fn note(params: &Params) -> Result<&str, Error> {
    Ok(params.optional_text("note", FAULTS)?.unwrap_or_default())
}
