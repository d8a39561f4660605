//! The kinds of states that the log stores under a key, and what becomes of each at a restart, an archive and a repair.
//!
//! Every kind answers the same questions, see [`StateKind`], and stands once in the table below. A type that is not in
//! the table cannot implement the trait, and a store with a state of no kind does not open.
//!
//! | file | subject |
//! |---|---|
//! | `governing.rs` | agents, policies, trust model, kill switches, tools |
//! | `waiting.rs` | escalations, pre-approvals, tasks, cursors |
//! | `extensions.rs` | the states of crates that build on a governor |

mod extensions;
mod governing;
#[cfg(test)]
mod tests;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};

use crate::governor::alerting::{cursor, follow};
use crate::governor::keys::{Keyed, Rerecording};
use crate::governor::rules::policies::PolicyState;
use crate::governor::{Governor, approvals, keys, tasks};
use crate::model::{Error, KillSwitchEntry, Timestamp};
use crate::parse::ToolRuling;
use crate::proof::{FoundStates, RepairStates, StateDraft};
use crate::trust::Ledger;

/// A kind of state in the log.
pub(crate) trait StateKind: Keyed + Registered {
    /// Whether the states belong to a crate that builds on a governor.
    const IS_EXTENSIONS: bool = false;

    /// Restores a state when the store is opened, also for reading.
    fn restore(restored: &mut Restored, key: &str, value: &[u8]) -> Result<(), Error>;

    /// Enqueues the live states again, before the entries that hold them are archived.
    fn rerecord(again: &mut Rerecording<'_>) -> Result<Rest, Error>;

    /// Takes the states of a broken log over into a new one.
    fn repair(repairing: &mut Repairing<'_>) -> Result<Repaired, Error>;
}

/// The states of a kind that were not enqueued again before an archive.
pub(crate) enum Rest {
    /// States that are over and may leave with the archive.
    Over,
    /// There are none; the archive is refused if one is found.
    None,
}

/// The result of a repair for the states of a kind.
pub(crate) enum Repaired {
    Carried,
    /// States that follow from the entries of the new log.
    Derived,
    /// States that are not in the new log; the note tells the operator.
    Dropped(String),
}

/// Declares the table of kinds. The trait that the macro implements is what [`StateKind`] requires.
macro_rules! registered {
    ($($kind:ty),* $(,)?) => {
        /// All kinds. A key belongs to the first one that matches; a repair goes through them in this order.
        pub(crate) const KINDS: &[Kind] = &[$(Kind::of::<$kind>()),*];
        $(impl Registered for $kind {})*
    };
}

/// Marks the types in the table.
pub(crate) trait Registered {}

registered![
    // First, because later trust entries depend on it.
    keys::Model,
    keys::Policies,
    keys::Agents,
    keys::Stops,
    keys::Escalations,
    keys::Grants,
    keys::Tasks,
    extensions::Endpoints,
    extensions::Places,
    keys::Alerts,
    keys::Cursors,
    extensions::ApiKeys,
    extensions::Conversations,
    extensions::Fleet,
    keys::Tools,
];

/// A row of the table.
pub(crate) struct Kind {
    pub(crate) prefix: &'static str,
    is_extensions: bool,
    restore: fn(&mut Restored, &str, &[u8]) -> Result<(), Error>,
    rerecord: fn(&mut Rerecording<'_>) -> Result<Rest, Error>,
    repair: fn(&mut Repairing<'_>) -> Result<Repaired, Error>,
}

impl Kind {
    const fn of<K: StateKind>() -> Self {
        Self {
            prefix: K::PREFIX,
            is_extensions: K::IS_EXTENSIONS,
            restore: K::restore,
            rerecord: K::rerecord,
            repair: K::repair,
        }
    }

    /// The kind of a key.
    fn of_key(key: &str) -> Option<&'static Self> {
        KINDS
            .iter()
            .find(|kind| if kind.prefix.ends_with('/') { key.starts_with(kind.prefix) } else { key == kind.prefix })
    }
}

/// The parts of a governor that are restored from the log.
#[derive(Default)]
pub(crate) struct Restored {
    pub(crate) ledger: Ledger,
    pub(crate) queue: approvals::Queue,
    pub(crate) given: approvals::PreApprovals,
    pub(crate) tasks: tasks::KeptTasks,
    pub(crate) following: follow::Following,
    pub(crate) cursors: cursor::Cursors,
    pub(crate) stops: Vec<KillSwitchEntry>,
    pub(crate) rulings: Vec<ToolRuling>,
    pub(crate) policies: Option<PolicyState>,
    pub(crate) trust_model: Option<Vec<u8>>,
    pub(crate) extensions: BTreeMap<String, String>,
}

impl Restored {
    pub(crate) fn of(states: &[(String, Vec<u8>)]) -> Result<Self, Error> {
        let mut restored = Self::default();
        for (key, value) in states {
            let unknown = || {
                Error::storage(format!(
                    "the state {key:?} is of no kind that this version knows: a later version wrote to this store; open it \
                     with that version"
                ))
            };
            (Kind::of_key(key).ok_or_else(unknown)?.restore)(&mut restored, key, value)?;
        }
        Ok(restored)
    }
}

impl<'a> Rerecording<'a> {
    /// Enqueues every live state again, so that archiving loses none.
    pub(crate) fn of(governor: &'a Governor, at: Timestamp) -> Result<Self, Error> {
        let mut again = Self { governor, at, keys: BTreeSet::new(), over: Vec::new() };
        for kind in KINDS {
            if let Rest::Over = (kind.rerecord)(&mut again)? {
                again.over.push(kind.prefix);
            }
        }
        Ok(again)
    }

    /// Returns whether entries with a state of this key may be archived.
    pub(crate) fn may_leave(&self, key: &str) -> bool {
        self.keys.contains(key) || Kind::of_key(key).is_some_and(|kind| self.over.contains(&kind.prefix))
    }
}

/// The states of a broken log, and those that the new one takes over.
pub(crate) struct Repairing<'a> {
    pub(crate) found: &'a FoundStates,
    pub(crate) carried: RepairStates,
    /// Returns whether every agent is suspended.
    pub(crate) suspend_all: bool,
}

/// The cause of the states that a repair takes over.
pub(crate) const CARRIED: &str = "carried over by a repair";

impl Repairing<'_> {
    /// The states of a new log.
    pub(crate) fn of(found: &FoundStates, suspends_all: bool) -> Result<RepairStates, Error> {
        let policies = keys::Policies::PREFIX;
        let suspend_all = suspends_all
            || found.is_contradicted
            || found.behind.contains_key(policies)
            || !found.good.contains_key(policies);
        let mut repairing = Repairing { found, carried: RepairStates::default(), suspend_all };
        if found.is_contradicted {
            repairing.say(
                "HEAD, CHECKPOINT, the index or the given checkpoint contradicts the journal: entries were rewritten, so \
                 every agent was suspended",
            );
        }
        if let Some(first) = found.first_unconfirmed {
            repairing.say(format!(
                "the entries from {first} on are unconfirmed: only their restrictions were carried over; if somebody may \
                 have removed a suspension from them, suspend all agents"
            ));
        }
        for kind in KINDS {
            if let Repaired::Dropped(note) = (kind.repair)(&mut repairing)? {
                repairing.say(note);
            }
        }
        for key in found.good.keys().filter(|key| Kind::of_key(key).is_none()) {
            repairing.say(format!("the state {key:?} is of no kind that this version knows and was not carried over"));
        }
        Ok(repairing.carried)
    }

    fn say(&mut self, note: impl Into<String>) {
        self.carried.notes.push(note.into());
    }

    fn say_unreadable(&mut self, key: &str) {
        self.say(format!("the state {key:?} cannot be read and was not carried over"));
    }

    fn carry(&mut self, state: StateDraft) {
        self.carried.states.push((state, CARRIED.to_owned()));
    }

    fn carry_as_it_is(&mut self, key: &str, value: &[u8]) {
        self.carry(StateDraft::new(key.to_owned(), String::from_utf8_lossy(value).into_owned()));
    }
}

impl<'a> Repairing<'a> {
    /// The confirmed states of a kind.
    fn good(&self, prefix: &'static str) -> impl Iterator<Item = (&'a String, &'a Vec<u8>)> + use<'a> {
        self.found.good.iter().filter(move |(key, _)| key.starts_with(prefix))
    }

    /// The keys of a kind, confirmed ones first.
    fn keys(&self, prefix: &'static str) -> impl Iterator<Item = &'a String> + use<'a> {
        let found = self.found;
        let unconfirmed = found.behind.keys().filter(|key| !found.good.contains_key(*key));
        found.good.keys().chain(unconfirmed).filter(move |key| key.starts_with(prefix))
    }

    /// The unconfirmed values of a key, in order.
    fn behind(&self, key: &str) -> impl DoubleEndedIterator<Item = &'a Vec<u8>> + use<'a> {
        self.found.behind.get(key).into_iter().flatten()
    }
}

pub(crate) use extensions::FORGOTTEN;
pub use extensions::{API_KEY, CONVERSATION, ENDPOINT, ENDPOINT_PLACE, FLEET};

/// Returns whether a key belongs to a crate that builds on a governor.
pub(crate) fn is_extensions(key: &str) -> bool {
    Kind::of_key(key).is_some_and(|kind| kind.is_extensions)
}
