//! The kinds of states of crates that build on a governor.

use serde_json::{Value, json};

use super::waiting::dropped;
use super::{Repaired, Repairing, Rest, Restored, StateKind};
use crate::governor::keys::{Keyed, Rerecording};
use crate::model::Error;

/// The value of a deleted state.
pub(crate) const FORGOTTEN: &str = "null";

/// Declares a kind and the prefix of its keys. A kind differs from the others only in what a repair takes over.
macro_rules! kind {
    ($(#[$doc:meta])* $name:ident = $prefix:expr, $kind:ident, $repair:expr) => {
        $(#[$doc])*
        pub const $name: &str = $prefix;
        pub(crate) struct $kind;

        impl Keyed for $kind {
            const PREFIX: &'static str = $name;
        }

        impl StateKind for $kind {
            const IS_EXTENSIONS: bool = true;

            fn restore(restored: &mut Restored, key: &str, value: &[u8]) -> Result<(), Error> {
                if value != FORGOTTEN.as_bytes() {
                    let text = String::from_utf8_lossy(value).into_owned();
                    restored.extensions.insert(key.to_owned(), text);
                }
                Ok(())
            }

            fn rerecord(again: &mut Rerecording<'_>) -> Result<Rest, Error> {
                again.governor.inner.extensions.rerecord(Self::PREFIX, |state| again.record(state))?;
                // Deleted ones, and those of removed endpoints.
                Ok(Rest::Over)
            }

            fn repair(repairing: &mut Repairing<'_>) -> Result<Repaired, Error> {
                Ok($repair(repairing))
            }
        }
    };
}

kind!(
    /// Prefix of the log keys of API keys.
    API_KEY = "key/",
    ApiKeys,
    keys
);
kind!(
    /// Prefix of the log keys of webhook endpoints.
    ENDPOINT = "webhook/",
    Endpoints,
    endpoints
);
kind!(
    /// Prefix of the log keys of the endpoints' positions in the log.
    ENDPOINT_PLACE = "webhook-cursor/",
    Places,
    // Taken over with the endpoints.
    |_: &mut Repairing<'_>| Repaired::Carried
);
kind!(
    /// Prefix of the log keys of tasks that belong to conversations of an agent's host.
    CONVERSATION = "conversation/",
    Conversations,
    |repairing: &mut Repairing<'_>| none(repairing, CONVERSATION, "conversations go on without their tasks")
);
kind!(
    /// Prefix of the log keys of a member of a fleet.
    FLEET = "fleet/",
    Fleet,
    |repairing: &mut Repairing<'_>| none(repairing, FLEET, "states of the member of a fleet were not carried over")
);

/// Takes over no state of a kind.
fn none(repairing: &Repairing<'_>, prefix: &'static str, note: &str) -> Repaired {
    dropped(repairing.good(prefix).filter(|(_, value)| *value != FORGOTTEN.as_bytes()).count(), note)
}

/// Takes over webhook endpoints of the valid part of the log, unless one was removed or disabled after the break. They
/// receive events from the first entry of the new log on.
fn endpoints(repairing: &mut Repairing<'_>) -> Repaired {
    let is_removed = |value: &Vec<u8>| field(value, "removed") == Value::Bool(true);
    let mut told = 0_u64;
    for (key, value) in repairing.good(ENDPOINT) {
        if is_removed(value) || repairing.behind(key).any(is_removed) {
            continue;
        }
        let id = key.strip_prefix(ENDPOINT).unwrap_or(key);
        if !field(value, "url").is_string() {
            repairing.say(format!("the endpoint {id} cannot be read and was not carried over: add it again"));
            continue;
        }
        let place = format!("{ENDPOINT_PLACE}{id}");
        let places = repairing.found.good.get(&place).into_iter().chain(repairing.behind(&place));
        let off = places.map(|place| field(place, "off")).rfind(Value::is_string);
        let mut begins = json!({ "next": 0, "ordinal": 0 });
        if let Some(off) = off {
            begins["off"] = off;
        }
        repairing.carry_as_it_is(&place, begins.to_string().as_bytes());
        repairing.carry_as_it_is(key, value);
        repairing.carried.with_secrets = true;
        told += 1;
    }
    let found = repairing.found;
    for (key, values) in &found.behind {
        let is_unconfirmed = !found.good.contains_key(key) && !values.last().is_some_and(is_removed);
        if let Some(id) = key.strip_prefix(ENDPOINT).filter(|_| is_unconfirmed) {
            repairing.say(format!("the endpoint {id} is unconfirmed and was not carried over: add it again"));
        }
    }
    if told > 0 {
        repairing.say(format!(
            "{told} webhook endpoints receive the events of the new log, but not the undelivered and parked events of the \
             broken one"
        ));
    }
    Repaired::Carried
}

/// Takes over API keys of the valid part of the log; a revocation or expiry on either side of the break counts.
fn keys(repairing: &mut Repairing<'_>) -> Repaired {
    let has_ended =
        |value: &&Vec<u8>| field(value, "revokedAt").is_string() || field(value, "expired") == Value::Bool(true);
    let known = repairing.good(API_KEY).count();
    for (key, value) in repairing.good(API_KEY) {
        repairing.carry_as_it_is(key, repairing.behind(key).find(has_ended).unwrap_or(value));
    }
    let unconfirmed = repairing.keys(API_KEY).count() - known;
    dropped(unconfirmed, "API keys are unconfirmed and were not carried over: create them again")
}

/// A field of a state; null if there is none.
pub(super) fn field(value: &[u8], name: &str) -> Value {
    let value = serde_json::from_slice::<Value>(value).unwrap_or_default();
    value.get(name).cloned().unwrap_or_default()
}
