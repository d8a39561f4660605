//! The contract's calls: named parameters in, JSON out.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::params::{Faults, Params};
use super::{agent, catalogue, checkpoint, escalation, policy, stop, trust};
use rulekeep::Governor;
use rulekeep::ProofQuery;
use rulekeep::intent::Input;
use rulekeep::preview::PreviewRequest;
use rulekeep::proof::{Period, ProofId};
use rulekeep::system::Timestamp;
use rulekeep::{Error, Intent, Outcome};

/// A call of the contract.
pub(super) type Call = fn(&Governor, &Params) -> Result<Value, Error>;

/// Every call by its name.
const CALLS: &[(&str, Call)] = &[
    ("agent/register", agent::register),
    ("agent/get", agent::get),
    ("agent/list", agent::list),
    ("agent/update", agent::update),
    ("agent/suspend", agent::suspend),
    ("agent/resume", agent::resume),
    ("agent/retire", agent::retire),
    ("agent/export", agent::export),
    ("agent/import", agent::import),
    ("stop/set", stop::set),
    ("stop/lift", stop::lift),
    ("stop/list", |governor, _| Ok(stop::list(governor))),
    ("intent", intent),
    ("enforce", enforce),
    ("outcome/report", report),
    ("proof/query", query),
    ("proof/list", list),
    ("proof/open", open),
    ("proof/stats", stats),
    ("proof/verify", |governor, _| to_json(&governor.verify()?)),
    ("proof/get", proof),
    ("admin/status", |governor, _| to_json(&governor.status())),
    ("policy/validate", policy::validate),
    ("policy/load", policy::load),
    ("policy/get", |governor, _| Ok(policy::get(governor))),
    ("policy/explain", explain),
    ("policy/preview", preview),
    ("policy/replay", policy::replay),
    ("policy/shadow", policy::shadow),
    ("catalogue/load", catalogue::load),
    ("catalogue/list", |governor, _| Ok(json!({ "tools": governor.tools().list() }))),
    ("catalogue/override", catalogue::set),
    ("catalogue/pin", catalogue::pin),
    ("catalogue/remove", catalogue::remove),
    ("checkpoint/create", checkpoint::create),
    ("checkpoint/prove", checkpoint::prove),
];

/// The call of that name.
pub(super) fn find(name: &str) -> Option<Call> {
    let mut calls = [CALLS, escalation::CALLS, trust::CALLS].into_iter().flatten();
    calls.find(|(known, _)| *known == name).map(|(_, call)| *call)
}

/// The names of all.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let calls = [CALLS, escalation::CALLS, trust::CALLS].into_iter().flatten();
    calls.map(|(name, _)| *name)
}

fn intent(governor: &Governor, params: &Params) -> Result<Value, Error> {
    let (agent_id, input, context) = input_of(params)?;
    if params.flag("explain")? {
        return to_json(&governor.tools().explain_parse(&agent_id, Input::new(&input).context(&context))?);
    }
    to_json(&governor.parse(&agent_id, Input::new(&input).context(&context))?)
}

/// What is to be parsed, and of whom.
pub(super) fn input_of(params: &Params) -> Result<(String, String, Map<String, Value>), Error> {
    let agent_id = params.text("agentId", Faults::Input)?;
    let input = params.text("input", Faults::Input)?;
    Ok((agent_id.to_owned(), input.to_owned(), params.object("context")?))
}

fn enforce(governor: &Governor, params: &Params) -> Result<Value, Error> {
    match Form::of(params)? {
        Form::Intent(intent) => to_json(&governor.enforce(&intent)?),
        Form::Input { agent_id, input } => {
            let enforced = governor.enforce_input(agent_id, Input::new(input).context(&params.object("context")?))?;
            to_json(&enforced)
        }
    }
}

fn explain(governor: &Governor, params: &Params) -> Result<Value, Error> {
    match Form::of(params)? {
        Form::Intent(intent) => to_json(&governor.policies().explain(&*intent)?),
        Form::Input { agent_id, input } => {
            let mut explained = governor
                .policies()
                .explain(PreviewRequest::input(agent_id, Input::new(input).context(&params.object("context")?)))?;
            let parse = explained.preview.parse.take();
            let mut explanation = to_json(&explained)?;
            merge(&mut explanation, to_json(&parse)?);
            Ok(explanation)
        }
    }
}

fn preview(governor: &Governor, params: &Params) -> Result<Value, Error> {
    match Form::of(params)? {
        Form::Intent(intent) => to_json(&governor.policies().preview(&*intent)?),
        Form::Input { agent_id, input } => {
            let mut ahead = governor
                .policies()
                .preview(PreviewRequest::input(agent_id, Input::new(input).context(&params.object("context")?)))?;
            let parse = ahead.parse.take();
            let mut preview = to_json(&ahead)?;
            merge(&mut preview, to_json(&parse)?);
            Ok(preview)
        }
    }
}

/// The two forms of a request for a decision.
pub(super) enum Form<'a> {
    Intent(Box<Intent>),
    Input { agent_id: &'a str, input: &'a str },
}

impl<'a> Form<'a> {
    /// A body that is neither form lacks what the contract asks for, which is an invalid intent.
    pub(super) fn of(params: &'a Params) -> Result<Self, Error> {
        let text = |field: &'static str| match params.get(field) {
            None => Err(Error::intent(field, "is missing: expected an intent, or agentId and input")),
            Some(value) => value.as_str().ok_or_else(|| Error::intent(field, "expected a string")),
        };
        match (params.get("intent"), params.get("input")) {
            (Some(_), Some(_)) => Err(Error::intent("intent", "expected either an intent or an input, found both")),
            (Some(intent), None) => Intent::from_json(intent).map(|intent| Self::Intent(Box::new(intent))),
            (None, None) if params.get("agentId").is_none() => {
                Err(Error::intent("intent", "is missing: expected an intent, or agentId and input"))
            }
            (None, _) => Ok(Self::Input { agent_id: text("agentId")?, input: text("input")? }),
        }
    }
}

fn report(governor: &Governor, params: &Params) -> Result<Value, Error> {
    let proof_id = proof_id(params)?;
    let outcome: Outcome = params.word("outcome", Faults::Input)?;
    match params.optional_text("note", Faults::Input)? {
        Some(note) => governor.report(&proof_id, outcome.note(note))?,
        None => governor.report(&proof_id, outcome)?,
    };
    to_json(&governor.log().record(&proof_id)?)
}

fn query(governor: &Governor, params: &Params) -> Result<Value, Error> {
    to_json(&governor.query(&query_of(params)?)?)
}

pub(super) fn query_of(params: &Params) -> Result<ProofQuery, Error> {
    narrowed(ProofQuery::entity(params.text("entityId", Faults::Query)?), params)
}

/// Records of everybody, or of one.
fn list(governor: &Governor, params: &Params) -> Result<Value, Error> {
    let entity = params.optional_text("entityId", Faults::Query)?;
    let query = narrowed(entity.map_or_else(ProofQuery::all, ProofQuery::entity), params)?;
    to_json(&governor.query(&query)?)
}

/// What was granted or asked and has no outcome yet, of everybody or of one.
fn open(governor: &Governor, params: &Params) -> Result<Value, Error> {
    let entity = params.optional_text("entityId", Faults::Query)?;
    let query = narrowed(entity.map_or_else(ProofQuery::all, ProofQuery::entity), params)?;
    to_json(&governor.query(&query.open())?)
}

/// A query, narrowed by the other fields.
fn narrowed(mut query: ProofQuery, params: &Params) -> Result<ProofQuery, Error> {
    const FAULTS: Faults = Faults::Query;
    if let Some(from) = params.optional_word::<Timestamp>("from", FAULTS)? {
        query = query.from(from);
    }
    if let Some(to) = params.optional_word::<Timestamp>("to", FAULTS)? {
        query = query.to(to);
    }
    if let Some(decision) = params.optional_word("decision", FAULTS)? {
        query = query.decision(decision);
    }
    if let Some(outcome) = params.optional_word("outcome", FAULTS)? {
        query = query.outcome(outcome);
    }
    if let Some(risk) = params.optional_word("risk", FAULTS)? {
        query = query.risk(risk);
    }
    if params.flag("open")? {
        query = query.open();
    }
    if let Some(intent) = params.optional_word("intentId", FAULTS)? {
        query = query.intent(intent);
    }
    if let Some(order) = params.optional_word("order", FAULTS)? {
        query = query.order(order);
    }
    if let Some(cursor) = params.optional_word("cursor", FAULTS)? {
        query = query.after(cursor);
    }
    if let Some(page) = params.optional_whole("page", FAULTS)? {
        query = query.page(page);
    }
    if let Some(page_size) = params.optional_whole("pageSize", FAULTS)? {
        query = query.page_size(page_size);
    }
    Ok(query)
}

fn stats(governor: &Governor, params: &Params) -> Result<Value, Error> {
    let (entity_id, period) = stats_of(params)?;
    to_json(&governor.stats(&entity_id, period)?)
}

pub(super) fn stats_of(params: &Params) -> Result<(String, Period), Error> {
    const FAULTS: Faults = Faults::Query;
    let period = Period::new(params.optional_word("from", FAULTS)?, params.optional_word("to", FAULTS)?);
    Ok((params.text("entityId", FAULTS)?.to_owned(), period))
}

fn proof(governor: &Governor, params: &Params) -> Result<Value, Error> {
    let proof_id = proof_id(params)?;
    let mut record = to_json(&governor.log().record(&proof_id)?)?;
    if params.flag("evidence")? {
        let part = match governor.log().evidence(&proof_id) {
            Err(Error::EvidenceErased { .. }) => json!({ "evidence": null, "evidenceErased": true }),
            evidence => json!({ "evidence": evidence? }),
        };
        merge(&mut record, part);
    }
    Ok(record)
}

/// A text that is no proof id names no record either.
fn proof_id(params: &Params) -> Result<ProofId, Error> {
    let text = params.text("proofId", Faults::Input)?;
    text.parse().map_err(|_| Error::unknown_proof(text))
}

pub(super) fn merge(object: &mut Value, other: Value) {
    if let (Value::Object(object), Value::Object(other)) = (object, other) {
        object.extend(other);
    }
}

pub(super) fn to_json(answer: &impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(answer)
        .map_err(|error| Error::Internal { message: format!("an answer does not serialise: {error}") })
}
