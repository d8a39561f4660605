//! What is asked of a gateway, and what it answers.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::Gateway;
use crate::escalation::Wait;
use crate::params::Params;
use crate::{key_calls, webhook_calls, wire};
use rulekeep::Decision;
use rulekeep::ProofQuery;
use rulekeep::intent::Input;
use rulekeep::intent::{InputEnforcement, ParseResult};
use rulekeep::proof::ProofId;
use rulekeep::proof::{Period, ProofPage, ProofStats};
use rulekeep::status::SystemStatus;
use rulekeep::{Enforcement, Error, Intent};

/// A request: one of the contract's five, or a call of the sidecar's protocol by its name.
#[derive(Debug)]
#[must_use]
pub struct Request(pub(super) Asked);

#[derive(Debug)]
pub(super) enum Asked {
    Parse { agent_id: String, input: String, context: Map<String, Value> },
    EnforceIntent(Box<Intent>),
    EnforceInput { agent_id: String, input: String, context: Map<String, Value> },
    Query { entity_id: String, query: Box<ProofQuery> },
    Stats { entity_id: String, period: Period },
    Status,
    Call { name: String, params: Params },
}

impl Request {
    /// `POST /intent`: parses an action request.
    pub fn parse(agent_id: impl Into<String>, input: impl Into<String>, context: Map<String, Value>) -> Self {
        Self(Asked::Parse { agent_id: agent_id.into(), input: input.into(), context })
    }

    /// `POST /enforce`, form A: decides on an intent.
    pub fn enforce(intent: Intent) -> Self {
        Self(Asked::EnforceIntent(Box::new(intent)))
    }

    /// `POST /enforce`, form B: parses and decides.
    pub fn enforce_input(agent_id: impl Into<String>, input: impl Into<String>, context: Map<String, Value>) -> Self {
        Self(Asked::EnforceInput { agent_id: agent_id.into(), input: input.into(), context })
    }

    /// `GET /proof/query`: records of the query's entity.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidQuery`] for a query about no entity.
    pub fn query(query: ProofQuery) -> Result<Self, Error> {
        let entity = query.entity_id().ok_or_else(|| Error::query("entityId", "is missing"))?;
        Ok(Self(Asked::Query { entity_id: entity.to_owned(), query: Box::new(query) }))
    }

    /// `GET /proof/stats`: statistics of an entity.
    pub fn stats(entity_id: impl Into<String>, period: impl Into<Period>) -> Self {
        Self(Asked::Stats { entity_id: entity_id.into(), period: period.into() })
    }

    /// `GET /admin/status`.
    pub const fn status() -> Self {
        Self(Asked::Status)
    }

    /// A call of the sidecar's protocol by its name, for example `outcome/report`, with its named parameters. Those of
    /// the contract's five are read into what the constructors above make.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for an unknown name; for the five, whatever is wrong with their parameters.
    pub fn call(name: &str, params: Map<String, Value>) -> Result<Self, Error> {
        Self::read(name, Params::of(params))
    }

    pub(crate) fn read(name: &str, params: Params) -> Result<Self, Error> {
        match name {
            "intent" if !params.flag("explain")? => wire::input_of(&params)
                .map(|(agent_id, input, context)| Self(Asked::Parse { agent_id, input, context })),
            "enforce" => match wire::Form::of(&params)? {
                wire::Form::Intent(intent) => Ok(Self(Asked::EnforceIntent(intent))),
                wire::Form::Input { agent_id, input } => {
                    Ok(Self::enforce_input(agent_id, input, params.object("context")?))
                }
            },
            "proof/query" => Self::query(wire::query_of(&params)?),
            "proof/stats" => wire::stats_of(&params).map(|(entity_id, period)| Self::stats(entity_id, period)),
            "admin/status" => Ok(Self::status()),
            name if wire::find(name).is_some() || webhook_calls::find(name).is_some() || key_calls::is_known(name) => {
                Ok(Self(Asked::Call { name: name.to_owned(), params }))
            }
            _ => Err(Error::input("method", "there is no call of that name")),
        }
    }

    /// Whether it takes microseconds, but for the wait for the disk.
    pub(crate) const fn is_quick(&self) -> bool {
        matches!(self.0, Asked::Parse { .. } | Asked::EnforceIntent(_) | Asked::EnforceInput { .. })
    }

    /// Whether there is a secret in the answer.
    pub(crate) fn tells_secret(&self) -> bool {
        const SECRET: [&str; 3] = ["key/create", "webhook/add", "webhook/rotate"];
        matches!(&self.0, Asked::Call { name, .. } if SECRET.contains(&name.as_str()))
    }

    /// What it waits for, where it does; it looks only, from here on.
    pub(crate) fn take_wait(&mut self) -> Result<Option<Wait>, Error> {
        match &mut self.0 {
            Asked::Call { name, params } if name == "escalation/wait" => {
                let wait = Wait::of(params)?;
                params.leave_out("timeoutMs");
                Ok(Some(wait))
            }
            _ => Ok(None),
        }
    }

    /// Does what is asked; whoever calls has made sure that it may be.
    pub(super) fn perform(self, gateway: &Gateway) -> Result<Response, Error> {
        let governor = gateway.governor();
        Ok(match self.0 {
            Asked::Parse { agent_id, input, context } => {
                Response::Parsed(Box::new(governor.parse(&agent_id, Input::new(&input).context(&context))?))
            }
            Asked::EnforceIntent(intent) => Response::Enforced(Box::new(governor.enforce(&intent)?)),
            Asked::EnforceInput { agent_id, input, context } => Response::EnforcedInput(Box::new(
                governor.enforce_input(&agent_id, Input::new(&input).context(&context))?,
            )),
            Asked::Query { query, .. } => Response::Page(governor.query(&query)?),
            Asked::Stats { entity_id, period } => Response::Stats(Box::new(governor.stats(&entity_id, period)?)),
            Asked::Status => Response::Status(Box::new(governor.status())),
            Asked::Call { name, params } => Response::Json(match wire::find(&name) {
                Some(call) => call(governor, &params)?,
                None => match webhook_calls::find(&name) {
                    Some(call) => call(gateway.webhooks(), &params)?,
                    None => key_calls::call(gateway, &name, &params)?,
                },
            }),
        })
    }
}

/// An answer. Serialises to the contract's JSON.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Response {
    /// To [`Request::parse`].
    Parsed(Box<ParseResult>),
    /// To [`Request::enforce`].
    Enforced(Box<Enforcement>),
    /// To [`Request::enforce_input`].
    EnforcedInput(Box<InputEnforcement>),
    /// To [`Request::query`].
    Page(ProofPage),
    /// To [`Request::stats`].
    Stats(Box<ProofStats>),
    /// To [`Request::status`].
    Status(Box<SystemStatus>),
    /// To [`Request::call`].
    Json(Value),
}

impl Response {
    /// The record by which somebody may act now.
    pub(crate) fn granted(&self) -> Option<ProofId> {
        let (decision, proof_id) = match self {
            Self::Enforced(enforcement) => (enforcement.decision, enforcement.proof_id),
            Self::EnforcedInput(enforced) => (enforced.enforcement.decision, enforced.enforcement.proof_id),
            // What was approved and is taken up.
            Self::Json(value) if value.get("grantedCapabilities").is_some() => {
                let word = |name| value.get(name).and_then(Value::as_str);
                (word("decision")?.parse().ok()?, word("proofId")?.parse().ok()?)
            }
            _ => return None,
        };
        matches!(decision, Decision::Allow | Decision::Degrade).then_some(proof_id)
    }
}

impl Serialize for Response {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Parsed(parsed) => parsed.serialize(serializer),
            Self::Enforced(enforced) => enforced.serialize(serializer),
            Self::EnforcedInput(enforced) => enforced.serialize(serializer),
            Self::Page(page) => page.serialize(serializer),
            Self::Stats(stats) => stats.serialize(serializer),
            Self::Status(status) => status.serialize(serializer),
            Self::Json(value) => value.serialize(serializer),
        }
    }
}
