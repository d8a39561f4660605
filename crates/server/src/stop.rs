//! The calls on stops.

use serde_json::{Value, json};

use super::params::{Faults, Params};
use super::wire::to_json;
use rulekeep::Error;
use rulekeep::Governor;
use rulekeep::kill_switch::{StopId, StopScope};

const FAULTS: Faults = Faults::Input;

/// Stops an agent, a group or all: `{agentId? | group? | all: true, by, note?}`.
pub(super) fn set(governor: &Governor, params: &Params) -> Result<Value, Error> {
    let agent = params.optional_text("agentId", FAULTS)?;
    let group = params.optional_text("group", FAULTS)?;
    let scope = match (agent, group, params.flag("all")?) {
        (Some(agent), None, false) => StopScope::agent(agent)?,
        (None, Some(group), false) => StopScope::group(group)?,
        (None, None, true) => StopScope::All,
        _ => return Err(Error::input("agentId", "expected one of agentId, group and all: true")),
    };
    to_json(&governor.kill_switch().set(scope, params.text("by", FAULTS)?, note(params)?)?)
}

/// Lifts a stop: `{id, by, note?}`.
pub(super) fn lift(governor: &Governor, params: &Params) -> Result<Value, Error> {
    let id: StopId = params.word("id", FAULTS)?;
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
