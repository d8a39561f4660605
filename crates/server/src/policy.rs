//! The calls on policy sets: validate, load, replay, and the set in the shadow.

use serde_json::{Value, json};

use super::params::{Faults, Params};
use super::wire::{merge, to_json};
use rulekeep::Error;
use rulekeep::Governor;
use rulekeep::PolicySet;
use rulekeep::agent::AgentId;
use rulekeep::policy::PolicyFormat;
use rulekeep::policy::Severity;
use rulekeep::preview::ReplayRange;
use rulekeep::system::Timestamp;

pub(super) fn validate(_: &Governor, params: &Params) -> Result<Value, Error> {
    let (text, format) = document(params)?;
    let problems = PolicySet::validate(text, format);
    let valid = !problems.iter().any(|problem| problem.severity == Severity::Error);
    Ok(json!({ "valid": valid, "problems": problems }))
}

pub(super) fn load(governor: &Governor, params: &Params) -> Result<Value, Error> {
    let set = set(params)?;
    let mut answer = json!({ "digest": set.digest(), "rules": set.len() });
    if !set.warnings().is_empty() {
        merge(&mut answer, json!({ "warnings": set.warnings() }));
    }
    governor.policies().load(set)?;
    match governor.escalations().left_behind() {
        0 => {}
        count => merge(&mut answer, json!({ "leftBehind": count })),
    }
    Ok(answer)
}

/// The set in force: its digest, its rules, and the documents that it was made from.
pub(super) fn get(governor: &Governor) -> Value {
    let set = governor.policies().current();
    json!({ "name": set.name(), "digest": set.digest(), "rules": set.len(), "documents": set.documents() })
}

/// Decides the past again by a candidate set.
pub(super) fn replay(governor: &Governor, params: &Params) -> Result<Value, Error> {
    const FAULTS: Faults = Faults::Query;
    let mut range = ReplayRange::all();
    if let Some(agent) = params.optional_word::<AgentId>("agentId", FAULTS)? {
        range = range.of_agent(agent);
    }
    let (from, to) = (params.optional_word::<Timestamp>("from", FAULTS)?, params.optional_word("to", FAULTS)?);
    if let (Some(from), Some(to)) = (from, to)
        && from > to
    {
        return Err(Error::InvalidQuery { parameter: "from", message: "is after to".to_owned() });
    }
    if let Some(from) = from {
        range = range.from(from);
    }
    if let Some(to) = to {
        range = range.to(to);
    }
    to_json(&governor.policies().replay(&set(params)?, &range, |_| {})?)
}

/// Sets a set into the shadow, takes it away, or tells what it came to.
pub(super) fn shadow(governor: &Governor, params: &Params) -> Result<Value, Error> {
    if params.flag("clear")? {
        governor.policies().shadow(None);
    } else if params.get("text").is_some() || params.get("layers").is_some() {
        governor.policies().shadow(Some(set(params)?));
    }
    Ok(json!({ "shadow": governor.policies().shadow_report() }))
}

/// One document, or several laid over each other.
fn set(params: &Params) -> Result<PolicySet, Error> {
    let Some(layers) = params.get("layers") else {
        let (text, format) = document(params)?;
        return PolicySet::parse(text, format, DOCUMENT);
    };
    let wrong = || Error::input("layers", "expected a list of {text, format}, the base first");
    let layers = layers.as_array().filter(|layers| !layers.is_empty()).ok_or_else(wrong)?;
    let sets: Vec<PolicySet> = layers
        .iter()
        .enumerate()
        .map(|(place, layer)| {
            let text = |field: &str| layer.get(field).and_then(Value::as_str).ok_or_else(wrong);
            let format = text("format")?.parse().map_err(|_| wrong())?;
            PolicySet::parse(text("text")?, format, &format!("layer {}", place + 1))
        })
        .collect::<Result<_, Error>>()?;
    PolicySet::layered(&sets)
}

fn document(params: &Params) -> Result<(&str, PolicyFormat), Error> {
    Ok((params.text("text", Faults::Input)?, params.word("format", Faults::Input)?))
}

/// How messages name a policy document that came without a file.
const DOCUMENT: &str = "text";
