//! The calls on escalations.

use serde_json::{Value, json};

use super::params::{Faults, Params};
use super::wire::{Call, to_json};
use crate::governor::Governor;
use crate::model::{Digest, Error, EscalationId, EscalationQuery, Intent, InvalidValue, ProofId, Resolved, Review};

pub(super) const CALLS: &[(&str, Call)] = &[
    ("escalation/list", list),
    ("escalation/get", |governor, params| to_json(&governor.escalations().get(id(params)?)?)),
    ("escalation/approve", |governor, params| answered(governor.escalations().approve(id(params)?, review(params)?))),
    ("escalation/reject", |governor, params| answered(governor.escalations().reject(id(params)?, review(params)?))),
    ("escalation/claim", claim),
];

fn list(governor: &Governor, params: &Params) -> Result<Value, Error> {
    const FAULTS: Faults = Faults::Query;
    let mut query = EscalationQuery::all();
    if let Some(state) = params.optional_word("state", FAULTS)? {
        query = query.state(state);
    }
    if let Some(agent) = params.optional_text("agentId", FAULTS)? {
        query = query.agent(agent);
    }
    if let Some(page) = params.optional_whole("page", FAULTS)? {
        query = query.page(page);
    }
    if let Some(page_size) = params.optional_whole("pageSize", FAULTS)? {
        query = query.page_size(page_size);
    }
    to_json(&governor.escalations().list(&query)?)
}

fn claim(governor: &Governor, params: &Params) -> Result<Value, Error> {
    let intent =
        params.get("intent").ok_or_else(|| Error::input("intent", "expected the intent that was asked for"))?;
    to_json(&governor.escalations().claim(id(params)?, &Intent::from_json(intent)?)?)
}

fn answered(resolved: Result<Resolved, Error>) -> Result<Value, Error> {
    let resolved = resolved?;
    Ok(json!({ "state": resolved.state, "proofId": resolved.proof_id }))
}

/// The escalation's id, or that of the record that asks.
fn id(params: &Params) -> Result<EscalationId, Error> {
    let text = params.text("id", Faults::Input)?;
    if let Ok(record) = text.parse::<ProofId>() {
        return Ok(EscalationId::of(record));
    }
    text.parse().map_err(|error: InvalidValue| Error::input("id", error.to_string()))
}

fn review(params: &Params) -> Result<Review, Error> {
    let mut review = Review::by(params.text("reviewer", Faults::Input)?);
    if let Some(note) = params.optional_text("note", Faults::Input)? {
        review = review.note(note);
    }
    match params.optional_word::<Digest>("digest", Faults::Input)? {
        Some(digest) => Ok(review.of(digest)),
        None => Ok(review),
    }
}
