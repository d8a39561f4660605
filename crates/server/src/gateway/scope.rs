//! What a key permits: which calls, and about which agents.

use super::key::Scope;
use super::keys::Entry;
use super::request::{Asked, Request};
use crate::params::{Faults, Params};
use rulekeep::Error;
use rulekeep::Governor;
use rulekeep::escalation::EscalationId;
use rulekeep::proof::ProofId;

/// Where a call says which agent it concerns.
#[derive(Clone, Copy)]
enum Subject {
    /// In a field of that name.
    Named(&'static str, Faults),
    /// It is that of the record of the field `proofId`.
    Record,
    /// It is that of the escalation of the field `id`.
    Escalation,
}

/// The calls that keys of agents may make beside those of [`Request`] with types of their own. All others are for
/// administrators.
const AGENTS_CALLS: &[(&str, Subject)] = &[
    ("agent/get", Subject::Named("agentId", Faults::Input)),
    ("trust/history", Subject::Named("agentId", Faults::Query)),
    ("outcome/report", Subject::Record),
    ("proof/get", Subject::Record),
    ("escalation/get", Subject::Escalation),
    ("escalation/claim", Subject::Escalation),
    ("escalation/wait", Subject::Escalation),
];

/// Whether keys of agents may make the call of that name, for the agents that they are for.
pub(crate) fn is_for_agents(call: &str) -> bool {
    matches!(call, "intent" | "enforce" | "proof/query" | "proof/stats")
        || AGENTS_CALLS.iter().any(|(known, _)| *known == call)
}

/// Whether the key permits calls of that name; about which agents is for [`permit`] to say.
pub(super) fn permit_name(key: &Entry, name: &str) -> Result<(), Error> {
    if is_for_agents(name) { Ok(()) } else { admin(key) }
}

/// Whether the key permits the request.
pub(super) fn permit(governor: &Governor, key: &Entry, request: &Request) -> Result<(), Error> {
    match key.scope() {
        Scope::Admin => Ok(()),
        Scope::Agent => match &request.0 {
            Asked::Parse { agent_id, .. } | Asked::EnforceInput { agent_id, .. } => permit_agent(key, agent_id),
            Asked::EnforceIntent(intent) => permit_agent(key, intent.agent_id.as_str()),
            Asked::Query { entity_id, .. } | Asked::Stats { entity_id, .. } => permit_agent(key, entity_id),
            Asked::Call { name, params } => permit_call(governor, key, name, params),
            Asked::Status => Err(admins_only()),
        },
    }
}

fn permit_call(governor: &Governor, key: &Entry, name: &str, params: &Params) -> Result<(), Error> {
    let known = AGENTS_CALLS.iter().find(|(known, _)| *known == name);
    let (_, subject) = known.ok_or_else(admins_only)?;
    if !key.is_limited_to_agents() {
        return Ok(());
    }
    match *subject {
        Subject::Named(field, faults) => permit_agent(key, params.text(field, faults)?),
        Subject::Record => {
            let text = params.text("proofId", Faults::Input)?;
            let id: ProofId = text.parse().map_err(|_| Error::unknown_proof(text))?;
            permit_agent(key, governor.log().record(&id)?.entity_id.as_str())
        }
        Subject::Escalation => {
            let text = params.text("id", Faults::Input)?;
            let id = match text.parse::<ProofId>() {
                Ok(record) => EscalationId::of(record),
                Err(_) => params.word("id", Faults::Input)?,
            };
            permit_escalation(governor, key, id)
        }
    }
}

/// Whether the key permits what is about the agent of that escalation.
pub(super) fn permit_escalation(governor: &Governor, key: &Entry, id: EscalationId) -> Result<(), Error> {
    if !key.is_limited_to_agents() {
        return Ok(());
    }
    permit_agent(key, governor.escalations().get(id)?.agent_id.as_str())
}

pub(super) fn admin(key: &Entry) -> Result<(), Error> {
    if key.scope() == Scope::Admin { Ok(()) } else { Err(admins_only()) }
}

fn permit_agent(key: &Entry, agent_id: &str) -> Result<(), Error> {
    if key.is_for(agent_id) {
        return Ok(());
    }
    Err(Error::Forbidden { message: "this API key is limited to other agents".to_owned() })
}

fn admins_only() -> Error {
    Error::Forbidden { message: "this needs an API key of the scope admin".to_owned() }
}
