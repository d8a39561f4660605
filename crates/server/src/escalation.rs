//! The calls on escalations.

use std::time::Duration;

use serde_json::{Value, json};

use super::params::{Faults, Params, in_whole_numbers};
use super::wire::{Call, to_json};
use rulekeep::Governor;
use rulekeep::escalation::{EscalationId, EscalationQuery, PreApprovalId, Resolved, Review};
use rulekeep::escalation::{PreApproval, PreApprovalTerms};
use rulekeep::intent::InvalidValue;
use rulekeep::proof::{Digest, ProofId};
use rulekeep::{Error, Intent};

pub(super) const CALLS: &[(&str, Call)] = &[
    ("escalation/list", list),
    ("escalation/get", |governor, params| to_json(&governor.escalations().get(id(params)?)?)),
    ("escalation/wait", wait),
    ("escalation/approve", approve),
    ("escalation/reject", reject),
    ("escalation/claim", claim),
    ("escalation/grant", grant),
    ("escalation/grants", |governor, _| Ok(json!({ "grants": governor.escalations().pre_approvals() }))),
    ("escalation/revoke", revoke),
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

/// Waits until one is answered or has expired: `{id, timeoutMs?}`.
fn wait(governor: &Governor, params: &Params) -> Result<Value, Error> {
    let Wait { id, timeout } = Wait::of(params)?;
    to_json(&governor.escalations().wait_answered(id, timeout)?)
}

/// What is waited for, and how long at the most.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    pub(super) id: EscalationId,
    pub(super) timeout: Duration,
}

impl Wait {
    pub(super) fn of(params: &Params) -> Result<Self, Error> {
        let timeout = params.optional_whole("timeoutMs", Faults::Input)?.unwrap_or_default();
        if timeout > LONGEST_WAIT {
            return Err(Error::input("timeoutMs", format!("expected at most {LONGEST_WAIT}")));
        }
        Ok(Self { id: id(params)?, timeout: Duration::from_millis(timeout) })
    }
}

fn approve(governor: &Governor, params: &Params) -> Result<Value, Error> {
    params.only_given(&[REVIEW])?;
    answered(governor.escalations().approve(id(params)?, review(params)?))
}

fn reject(governor: &Governor, params: &Params) -> Result<Value, Error> {
    params.only_given(&[REVIEW])?;
    answered(governor.escalations().reject(id(params)?, review(params)?))
}

fn claim(governor: &Governor, params: &Params) -> Result<Value, Error> {
    let intent =
        params.get("intent").ok_or_else(|| Error::input("intent", "expected the intent that was asked for"))?;
    to_json(&governor.escalations().claim(id(params)?, &Intent::from_json(intent)?)?)
}

/// Gives a pre-approval, or agrees to a pending one, or, with `id`, to one that another person approved.
fn grant(governor: &Governor, params: &Params) -> Result<Value, Error> {
    // A misspelt term that were dropped would widen what the person agrees to.
    params.only(&[REVIEW, TERMS])?;
    let review = review(params)?;
    if let Some(id) = params.optional_word::<PreApprovalId>("id", Faults::Input)? {
        params.only(&[REVIEW])?;
        let state = governor.escalations().agree_to_pre_approval(&id, review)?;
        return Ok(json!({ "id": id, "state": state }));
    }
    let given = TERMS.iter().filter_map(|name| Some(((*name).to_owned(), params.get(name)?.clone())));
    let mut given = Value::Object(given.collect());
    in_whole_numbers(&mut given);
    let terms: PreApprovalTerms = serde_json::from_value(given)
        .map_err(|error| Error::input("params", format!("these are no terms of a pre-approval: {error}")))?;
    let id = governor.escalations().pre_approve(PreApproval::try_from(terms)?, review)?;
    let standing = governor.escalations().pre_approvals().into_iter().find(|given| given.id == id);
    Ok(json!({ "id": id, "state": standing.map(|standing| standing.state) }))
}

/// What an answer has.
const REVIEW: &[&str] = &["id", "reviewer", "note", "digest"];
/// What says what a pre-approval covers.
const TERMS: &[&str] =
    &["agentId", "group", "capabilities", "rules", "actions", "targets", "maxRisk", "until", "count", "sum"];

fn revoke(governor: &Governor, params: &Params) -> Result<Value, Error> {
    let id: PreApprovalId = params.word("id", Faults::Input)?;
    governor.escalations().revoke(&id, review(params)?)?;
    Ok(json!({ "id": id }))
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

/// Refuses to wait for longer than a line may hold up those behind it.
pub(super) fn checked_line(params: &Params) -> Result<(), Error> {
    match params.optional_whole("timeoutMs", Faults::Input)? {
        Some(timeout) if timeout > LONGEST_LINE => {
            Err(Error::input("timeoutMs", format!("expected at most {LONGEST_LINE}: lines behind it wait as long")))
        }
        _ => Ok(()),
    }
}

/// The longest wait, in milliseconds.
const LONGEST_WAIT: u64 = 10_000;
/// The longest that a line holds up those behind it.
const LONGEST_LINE: u64 = 1_000;
