//! The calls on agents.

use serde_json::{Value, json};

use super::params::{Faults, Params};
use super::wire::{merge, to_json};
use rulekeep::Governor;
use rulekeep::agent::{AgentChange, AgentInfo};
use rulekeep::trust::Score;
use rulekeep::{Agent, Error, Tier};

const FAULTS: Faults = Faults::Input;

/// What is said of an agent. A misspelt one that is dropped, a ceiling for example, would leave it more than was meant.
const DESCRIBED: &[&str] = &["labels", "groups", "attributes", "owner", "ceiling", "observability"];

/// Registers an agent: `{agentId, score?, tier?, labels?, groups?, attributes?, owner?, ceiling?, observability?}`.
pub(super) fn register(governor: &Governor, params: &Params) -> Result<Value, Error> {
    params.only(&[&["agentId", "score", "tier"], DESCRIBED])?;
    let mut agent = Agent::new(params.text("agentId", FAULTS)?);
    let tier: Option<Tier> = params.optional_word("tier", FAULTS)?;
    agent = match (score(params, "score")?, tier) {
        (Some(_), Some(_)) => return Err(Error::input("tier", "expected either score or tier, found both")),
        (Some(score), None) => agent.at_score(score),
        (None, Some(tier)) => agent.at_tier(tier),
        (None, None) => agent,
    };
    for label in params.texts("labels")? {
        agent = agent.with_label(label);
    }
    for group in params.texts("groups")? {
        agent = agent.in_group(group);
    }
    for (name, value) in params.object("attributes")? {
        agent = agent.with_attribute(name, value);
    }
    if let Some(owner) = params.optional_text("owner", FAULTS)? {
        agent = agent.owned_by(owner);
    }
    if let Some(ceiling) = score(params, "ceiling")? {
        agent = agent.with_ceiling(ceiling);
    }
    if let Some(observability) = params.optional_word("observability", FAULTS)? {
        agent = agent.with_observability(observability);
    }
    let registered = governor.agents().register(agent).map_err(|error| match error {
        Error::InvalidInput { field: "score", message } if tier.is_some() => {
            Error::input("tier", format!("{message}, the middle of the tier's range: give a score"))
        }
        error => error,
    });
    Ok(shown(&registered?))
}

/// What is known of an agent: `{agentId}`.
pub(super) fn get(governor: &Governor, params: &Params) -> Result<Value, Error> {
    Ok(shown(&governor.agents().get(params.text("agentId", FAULTS)?)?))
}

/// A page of all agents, sorted by id: `{page?, pageSize?}`.
pub(super) fn list(governor: &Governor, params: &Params) -> Result<Value, Error> {
    const MOST: u64 = 200;
    let page = params.optional_whole("page", Faults::Query)?.unwrap_or(1);
    let page_size = params.optional_whole("pageSize", Faults::Query)?.unwrap_or(50);
    let Some(before) = page.checked_sub(1) else { return Err(Error::query("page", "expected a page from 1 on")) };
    if !(1..=MOST).contains(&page_size) {
        return Err(Error::query("pageSize", format!("expected 1 to {MOST}")));
    }
    let skip = before.saturating_mul(page_size);
    let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let (total, items) = governor.agents().page(whole(skip), whole(page_size));
    let has_more = whole(skip.saturating_add(page_size)) < total;
    Ok(json!({ "items": items, "total": total, "page": page, "pageSize": page_size, "hasMore": has_more }))
}

/// Changes what is said of an agent: what [`register`] takes of it, and `clear`, the names of what is said no more.
pub(super) fn update(governor: &Governor, params: &Params) -> Result<Value, Error> {
    params.only(&[&["agentId", "clear", "note"], DESCRIBED])?;
    let mut change = AgentChange::new();
    if params.get("labels").is_some() {
        change = change.labels(params.texts("labels")?);
    }
    if params.get("groups").is_some() {
        change = change.groups(params.texts("groups")?);
    }
    if params.get("attributes").is_some() {
        change = change.attributes(params.object("attributes")?);
    }
    for cleared in params.texts("clear")? {
        change = match cleared {
            "owner" => change.without_owner(),
            "ceiling" => change.without_ceiling(),
            "observability" => change.without_observability(),
            _ => return Err(Error::input("clear", "expected owner, ceiling or observability")),
        };
    }
    if let Some(owner) = params.optional_text("owner", FAULTS)? {
        change = change.owner(owner);
    }
    if let Some(ceiling) = score(params, "ceiling")? {
        change = change.ceiling(ceiling);
    }
    if let Some(observability) = params.optional_word("observability", FAULTS)? {
        change = change.observability(observability);
    }
    to_json(&governor.agents().update(params.text("agentId", FAULTS)?, change, note(params)?)?)
}

pub(super) fn suspend(governor: &Governor, params: &Params) -> Result<Value, Error> {
    Ok(with_state(&governor.agents().suspend(params.text("agentId", FAULTS)?, note(params)?)?))
}

pub(super) fn resume(governor: &Governor, params: &Params) -> Result<Value, Error> {
    Ok(with_state(&governor.agents().resume(params.text("agentId", FAULTS)?, note(params)?)?))
}

pub(super) fn retire(governor: &Governor, params: &Params) -> Result<Value, Error> {
    Ok(with_state(&governor.agents().retire(params.text("agentId", FAULTS)?, note(params)?)?))
}

/// Every agent as a line of text: `{}`.
pub(super) fn export(governor: &Governor, _: &Params) -> Result<Value, Error> {
    let mut lines = Vec::new();
    let agents = governor.agents().export(&mut lines)?;
    let lines = String::from_utf8_lossy(&lines);
    Ok(json!({ "agents": agents, "lines": lines.lines().collect::<Vec<_>>() }))
}

/// Registers agents of an export: `{lines}`.
pub(super) fn import(governor: &Governor, params: &Params) -> Result<Value, Error> {
    if params.get("lines").is_none() {
        return Err(Error::input("lines", "is missing"));
    }
    to_json(&governor.agents().import(&mut params.texts("lines")?.join("\n").as_bytes())?)
}

fn note(params: &Params) -> Result<&str, Error> {
    Ok(params.optional_text("note", FAULTS)?.unwrap_or_default())
}

fn score(params: &Params, field: &'static str) -> Result<Option<Score>, Error> {
    let score = params.optional_whole(field, FAULTS)?.map(Score::try_from).transpose();
    score.map_err(|error| Error::input(field, error.to_string()))
}

/// An agent as the wire shows it.
pub(super) fn shown(info: &AgentInfo) -> Value {
    let mut value = json!({ "agentId": info.agent_id });
    merge(&mut value, json!(info.trust));
    value
}

fn with_state(info: &AgentInfo) -> Value {
    let mut value = shown(info);
    merge(&mut value, json!({ "state": info.state }));
    value
}
