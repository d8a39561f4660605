//! Every call, one type each: its name, its path over HTTP, the keys that may make it, and its implementation.
//!
//! The sidecar, the gateway, the router, the OpenAPI document and the generated table of calls read `CALLS`.
//!
//! | file | calls |
//! |---|---|
//! | `call.rs` | the definition of a call, and the keys that may make it |
//! | `agents.rs` | `agent/...` |
//! | `checkpoints.rs` | `checkpoint/...` |
//! | `clock.rs` | `clock/accept` |
//! | `commands.rs` | `command/...` |
//! | `decisions.rs` | `intent`, `enforce`, and previews of decisions |
//! | `escalations.rs` | `escalation/...` |
//! | `events.rs` | `event/...`, in sidecar sessions |
//! | `keys.rs` | `key/...` |
//! | `kill_switch.rs` | `stop/...` |
//! | `params.rs` | reads named parameters into a call |
//! | `policies.rs` | `policy/...` |
//! | `records.rs` | `proof/...`, `outcome/report`, `admin/status` |
//! | `spec.rs` | the description of a call |
//! | `tasks.rs` | `task/...` |
//! | `tools.rs` | `catalogue/...` |
//! | `trust.rs` | `trust/...` |
//! | `webhooks.rs` | `webhook/...` |

pub mod agents;
mod call;
pub mod checkpoints;
pub mod clock;
mod commands;
pub mod decisions;
pub mod escalations;
pub(crate) mod events;
pub mod keys;
pub mod kill_switch;
mod params;
pub mod policies;
pub mod records;
pub mod request;
mod spec;
pub mod tasks;
pub mod tools;
pub mod trust;
pub mod webhooks;

use serde_json::value::RawValue;

pub use call::Call;
pub(crate) use call::{Entry, Job, Read, Wait, to_bytes, to_raw};
pub use params::{MAX_LINE_BYTES, MAX_REQUEST_BYTES, Params};
#[cfg(test)]
pub(crate) use spec::Shape;
pub(crate) use spec::{Size, Spec, Subject, Verb};

use crate::gateway::Admitted;
use rulekeep::Error;
use rulekeep::extension::excerpt;

/// The call with this name.
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    CALLS.iter().find(|entry| entry.spec.method == name)
}

/// The call with this name, or an error.
pub(crate) fn known(name: &str) -> Result<&'static Entry, Error> {
    find(name).ok_or_else(|| Error::input("method", format!("there is no call {:?}", excerpt(name))))
}

/// Every call on a governor; session calls are in [`events`].
pub(crate) static CALLS: &[Entry] = &[
    Entry::of::<decisions::Parse>(),
    Entry::in_form::<decisions::Enforce, decisions::EnforceForm>(),
    Entry::of::<commands::Request>(),
    Entry::of::<commands::Start>(),
    Entry::in_form::<records::Query, records::RecordsForm>(),
    Entry::of::<records::Stats>(),
    Entry::of::<records::Status>(),
    Entry::in_form::<records::Report, records::ReportForm>(),
    Entry::of::<records::Get>(),
    Entry::of::<agents::Get>(),
    Entry::of::<trust::History>(),
    Entry::of::<escalations::Get>(),
    Entry::of::<escalations::Claim>(),
    Entry::of::<Wait>(),
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
    Entry::of::<tasks::Open>(),
    Entry::of::<tasks::Get>(),
    Entry::in_form::<tasks::Observe, tasks::ObserveForm>(),
    Entry::of::<tasks::Say>(),
    Entry::of::<tasks::Delegate>(),
    Entry::of::<tasks::Close>(),
    Entry::of::<kill_switch::List>(),
    Entry::of::<kill_switch::Set>(),
    Entry::of::<kill_switch::Lift>(),
    Entry::of::<clock::Accept>(),
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

impl Admitted {
    /// Makes a sidecar call by name, for example `outcome/report`. The named parameters are the text of a JSON object.
    ///
    /// # Errors
    ///
    /// * [`Error::InvalidInput`] for an unknown name, and for parameters that are not an object.
    /// * [`Error::PayloadTooLarge`] for parameters above the call's size limit.
    /// * Otherwise the errors of the call's parameters and of [`Admitted::make`].
    pub fn call(&self, method: &str, params: &str) -> Result<Box<RawValue>, Error> {
        let entry = known(method)?;
        self.may_call(entry.spec)?;
        to_raw((entry.read)(Params::of_call(method, params)?)?.run_for(self)?.answer)
    }
}

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
}
