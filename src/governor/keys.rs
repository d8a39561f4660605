//! The keys of the states in the log by kind, and the live states that are enqueued again before an archive.

use std::collections::BTreeSet;
use std::fmt::Display;

use crate::governor::Governor;
use crate::model::{Error, GRANT_PREFIX, Sequence, Timestamp};
use crate::proof::StateDraft;

/// The keys of a kind of state.
pub(crate) trait Keyed {
    /// The beginning of the kind's keys, with a slash at its end, or its only key.
    const PREFIX: &'static str;

    /// The key of one of these states.
    fn key(rest: impl Display) -> String {
        format!("{}{rest}", Self::PREFIX)
    }
}

macro_rules! kinds {
    ($($kind:ident = $prefix:expr;)*) => {
        $(
            pub(crate) struct $kind;

            impl Keyed for $kind {
                const PREFIX: &'static str = $prefix;
            }
        )*
    };
}

kinds! {
    Agents = "agent/";
    Policies = "policies";
    Model = "trust-model";
    Stops = "stop/";
    Tools = "tool/";
    Escalations = "escalation/";
    Grants = GRANT_PREFIX;
    Tasks = "task/";
    Alerts = "cursor/alerts";
    Cursors = "cursor/";
}

/// The states that are enqueued again before an archive.
pub(crate) struct Rerecording<'a> {
    pub(crate) governor: &'a Governor,
    pub(crate) at: Timestamp,
    pub(super) keys: BTreeSet<String>,
    pub(super) over: Vec<&'static str>,
}

/// The cause of the states that are enqueued again.
pub(crate) const AGAIN: &str = "recorded again before an archive";

impl Rerecording<'_> {
    /// Enqueues a state again. The caller holds what keeps it from changing meanwhile.
    pub(crate) fn record(&mut self, state: StateDraft) -> Result<Sequence, Error> {
        self.keys.insert(state.key.clone());
        self.governor.inner.base.log.queue().set_state(self.at, state, AGAIN.to_owned())
    }

    /// Notes that the state of a key was enqueued again.
    pub(crate) fn note(&mut self, key: String) {
        self.keys.insert(key);
    }
}
