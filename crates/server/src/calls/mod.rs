//! Every call: one type each, with what it is named, where it stands over HTTP, who may make it, and what it does.
//!
//! The sidecar, the gateway, the router, the OpenAPI document and the table in `docs/http.md` read [`CALLS`].
//!
//! | file | calls |
//! |---|---|
//! | `agents.rs` | `agent/...` |
//! | `checkpoints.rs` | `checkpoint/...` |
//! | `decisions.rs` | `intent`, `enforce`, and what would be decided |
//! | `escalations.rs` | `escalation/...` |
//! | `events.rs` | `event/...`, which a session of the sidecar has |
//! | `keys.rs` | `key/...` |
//! | `kill_switch.rs` | `stop/...` |
//! | `params.rs` | named parameters, read into a call |
//! | `policies.rs` | `policy/...` |
//! | `records.rs` | `proof/...`, `outcome/report`, `admin/status` |
//! | `spec.rs` | what is said of a call |
//! | `tools.rs` | `catalogue/...` |
//! | `trust.rs` | `trust/...` |
//! | `webhooks.rs` | `webhook/...` |

mod agents;
mod checkpoints;
pub(crate) mod decisions;
mod escalations;
pub(crate) mod events;
mod keys;
mod kill_switch;
mod params;
mod policies;
mod records;
mod spec;
mod tools;
mod trust;
mod webhooks;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use utoipa::ToSchema;

pub(crate) use escalations::Wait;
pub(crate) use params::Params;
pub(crate) use records::proof_id;
pub(crate) use spec::{Shape, Size, Spec, Subject, Verb, required_together};

use crate::gateway::{Admitted, Gateway, Made};
use rulekeep::Error;
use rulekeep::proof::ProofId;

/// A call, with its parameters as its fields.
pub(crate) trait Call: Read + Send + 'static {
    /// What is said of it.
    const SPEC: Spec;
    /// What it is answered with.
    type Answer: Serialize + ToSchema;

    /// Which parameters go together, as keywords of JSON Schema.
    fn together() -> Value {
        Value::Null
    }

    /// What it concerns, by which it is told who may make it.
    fn subject(&self) -> Subject<'_> {
        Subject::Everything
    }

    /// The wait for people that it is, where it is one.
    fn wait(&mut self) -> Option<&mut Wait> {
        None
    }

    /// Does it; whoever calls has made sure that it may be.
    fn run(self, gateway: &Gateway) -> Result<Self::Answer, Error>;

    /// Does it for a key, where that permits it.
    fn run_for(self, admitted: &Admitted) -> Result<Self::Answer, Error> {
        admitted.permit(&self.subject())?;
        self.run(admitted.gateway())
    }

    /// The records by which somebody may act now.
    fn granted(_answer: &Self::Answer) -> Vec<ProofId> {
        Vec::new()
    }
}

/// What is read from named parameters.
pub(crate) trait Read: Sized {
    /// Reads it; `spec` says which codes its faults have.
    fn read(params: Params, spec: &Spec) -> Result<Self, Error>;
}

impl<T: DeserializeOwned> Read for T {
    fn read(params: Params, spec: &Spec) -> Result<Self, Error> {
        params.typed(spec)
    }
}

/// A call that was read, whichever it is.
pub(crate) trait Job: Send {
    /// As [`Call::SPEC`].
    fn spec(&self) -> &'static Spec;
    /// As [`Call::wait`].
    fn wait(&mut self) -> Option<&mut Wait>;
    /// As [`Call::run`], the answer as JSON.
    fn run(self: Box<Self>, gateway: &Gateway) -> Result<Made, Error>;
    /// As [`Call::run_for`], the answer as JSON.
    fn run_for(self: Box<Self>, admitted: &Admitted) -> Result<Made, Error>;
}

impl<C: Call> Job for C {
    fn spec(&self) -> &'static Spec {
        &C::SPEC
    }

    fn wait(&mut self) -> Option<&mut Wait> {
        Call::wait(self)
    }

    fn run(self: Box<Self>, gateway: &Gateway) -> Result<Made, Error> {
        made::<C>(&Call::run(*self, gateway)?)
    }

    fn run_for(self: Box<Self>, admitted: &Admitted) -> Result<Made, Error> {
        made::<C>(&Call::run_for(*self, admitted)?)
    }
}

fn made<C: Call>(answer: &C::Answer) -> Result<Made, Error> {
    Ok(Made { answer: to_bytes(answer)?, granted: C::granted(answer), is_secret: C::SPEC.tells_secret })
}

/// An answer as JSON.
pub(crate) fn to_bytes(answer: &impl Serialize) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::with_capacity(USUAL_ANSWER);
    match serde_json::to_writer(&mut bytes, answer) {
        Ok(()) => Ok(bytes),
        Err(error) => Err(Error::Internal { message: format!("an answer does not serialise: {error}") }),
    }
}

/// Bytes that most verdicts fit in.
const USUAL_ANSWER: usize = 1024;

/// A row of the table of calls.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) spec: &'static Spec,
    pub(crate) read: fn(Params) -> Result<Box<dyn Job>, Error>,
    pub(crate) request: Shape,
    pub(crate) together: fn() -> Value,
    pub(crate) answer: Shape,
}

impl Entry {
    pub(crate) const fn of<C: Call + ToSchema>() -> Self {
        Self::in_form::<C, C>()
    }

    /// A call whose parameters another type describes.
    pub(crate) const fn in_form<C: Call, F: ToSchema>() -> Self {
        Self {
            spec: &C::SPEC,
            read: |params| Ok(Box::new(C::read(params, &C::SPEC)?)),
            request: Shape::of::<F>(),
            together: C::together,
            answer: Shape::of::<C::Answer>(),
        }
    }
}

/// Which fields go together in a part of a request or an answer that has this name.
pub(crate) fn together_in(part: &str) -> Option<Value> {
    let given = required_together;
    match part {
        "IntentForm" => Some(json!({ "not": given(&["input"]) })),
        "InputForm" => Some(json!({ "not": given(&["intent"]) })),
        "PreApprovalForm" => Some(json!({ "oneOf": [given(&["agentId"]), given(&["group"])] })),
        "KillSwitchScope" => Some(kill_switch::one_scope()),
        _ => None,
    }
}

/// The call of that name.
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    CALLS.iter().find(|entry| entry.spec.method == name)
}

/// Every call on a governor; those of a session are in [`events`].
pub(crate) static CALLS: &[Entry] = &[
    Entry::of::<decisions::Parse>(),
    Entry::in_form::<decisions::Enforce, decisions::DecisionForm>(),
    Entry::in_form::<records::Query, records::RecordsForm>(),
    Entry::of::<records::Stats>(),
    Entry::of::<records::Status>(),
    Entry::of::<records::Report>(),
    Entry::of::<records::Get>(),
    Entry::of::<agents::Get>(),
    Entry::of::<trust::History>(),
    Entry::of::<escalations::Get>(),
    Entry::of::<escalations::Claim>(),
    Entry::of::<escalations::Wait>(),
    Entry::in_form::<records::List, records::RecordsForm>(),
    Entry::in_form::<records::Open, records::RecordsForm>(),
    Entry::of::<records::Verify>(),
    Entry::of::<trust::Correct>(),
    Entry::of::<trust::Verify>(),
    Entry::of::<checkpoints::Create>(),
    Entry::of::<checkpoints::Prove>(),
    Entry::of::<agents::List>(),
    Entry::of::<agents::Register>(),
    Entry::of::<agents::Import>(),
    Entry::of::<agents::Export>(),
    Entry::of::<agents::Update>(),
    Entry::of::<agents::Suspend>(),
    Entry::of::<agents::Resume>(),
    Entry::of::<agents::Retire>(),
    Entry::of::<trust::Adjust>(),
    Entry::of::<kill_switch::List>(),
    Entry::of::<kill_switch::Set>(),
    Entry::of::<kill_switch::Lift>(),
    Entry::of::<escalations::List>(),
    Entry::of::<escalations::Approve>(),
    Entry::of::<escalations::Reject>(),
    Entry::of::<escalations::Grants>(),
    Entry::of::<escalations::Grant>(),
    Entry::of::<escalations::Revoke>(),
    Entry::of::<keys::List>(),
    Entry::of::<keys::Create>(),
    Entry::of::<keys::Revoke>(),
    Entry::of::<policies::Get>(),
    Entry::of::<policies::Load>(),
    Entry::of::<policies::Validate>(),
    Entry::of::<policies::Replay>(),
    Entry::of::<policies::Shadow>(),
    Entry::in_form::<decisions::Explain, decisions::DecisionForm>(),
    Entry::in_form::<decisions::Preview, decisions::DecisionForm>(),
    Entry::of::<tools::List>(),
    Entry::of::<tools::Load>(),
    Entry::of::<tools::Override>(),
    Entry::of::<tools::Pin>(),
    Entry::of::<tools::Remove>(),
    Entry::of::<webhooks::List>(),
    Entry::of::<webhooks::Add>(),
    Entry::of::<webhooks::Remove>(),
    Entry::of::<webhooks::Rotate>(),
    Entry::of::<webhooks::Readdress>(),
    Entry::of::<webhooks::Resume>(),
    Entry::of::<webhooks::Deliveries>(),
    Entry::of::<webhooks::Redeliver>(),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_and_no_path_stands_twice() {
        for (place, Entry { spec, .. }) in CALLS.iter().enumerate() {
            let again = CALLS[place + 1..].iter().find(|other| {
                other.spec.method == spec.method || (other.spec.verb, other.spec.path) == (spec.verb, spec.path)
            });
            assert!(again.is_none(), "{}", spec.method);
        }
    }

    #[test]
    fn the_table_in_the_page_is_the_one_that_is_served() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/http.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (before, rest) = page.split_once("<!-- calls -->\n").unwrap();
        let (_, after) = rest.split_once("<!-- end -->\n").unwrap();
        let rows = CALLS.iter().map(|Entry { spec, .. }| {
            let keys = if spec.is_for_agents() { "agent" } else { "" };
            let size = if spec.size == Size::Document { "8 MiB" } else { "" };
            let verb = spec.verb.name();
            format!("| `{verb} {}` | `{}` | {} | {keys} | {size} |\n", spec.path, spec.method, spec.summary)
        });
        let table: String = rows.collect();
        let head = "| path | call | | keys | body |\n|---|---|---|---|---|\n";
        let made = format!("{before}<!-- calls -->\n{head}{table}<!-- end -->\n{after}");
        if std::env::var_os("RULEKEEP_BLESS").is_some() {
            std::fs::write(path, &made).unwrap();
        }
        assert!(page == made || std::env::var_os("RULEKEEP_BLESS").is_some(), "docs/http.md is out of date");
    }
}
