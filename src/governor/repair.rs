//! A new log in place of a broken one, and which agents and policies it goes on with.

use std::path::Path;

use super::policies::PolicyState;
use super::{agents, kill_switch, repair_states, states};
use crate::model::{AgentState, Error, RepairReport};
use crate::policy::PolicySet;
use crate::proof::{self, FoundStates, RepairStates};
use crate::store::{KeptCheckpoint, StoreId};
use crate::system::{Clock, Entropy, SystemClock, SystemEntropy};
use crate::trust::AgentRecord;

/// How a broken log is repaired.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct RepairOptions {
    suspend_all: bool,
    checkpoint: Option<KeptCheckpoint>,
}

impl RepairOptions {
    /// Takes every agent over as suspended, to be resumed one by one: for a log of
    /// which entries are gone, that may have suspended some.
    pub fn suspend_all(mut self) -> Self {
        self.suspend_all = true;
        self
    }

    /// Holds the broken log against a checkpoint of it that was kept elsewhere, signed by `key`. It confirms the entries
    /// that it covers, and a log that contradicts it is broken.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a note that cannot be read or is not signed by the key.
    #[cfg(feature = "checkpoints")]
    pub fn checkpoint(mut self, note: &str, key: &crate::checkpoint::VerifierKey) -> Result<Self, Error> {
        let kept = super::checkpoints::opened(note, key)?;
        self.checkpoint = Some(KeptCheckpoint::handed_in(kept.size(), &kept.root()));
        Ok(self)
    }
}

/// Puts a new log in place of one that is broken: damaged, tampered with, or
/// with entries missing. All of the broken one is kept as it is, byte for byte,
/// in a folder `damaged-<time>` in the store's; opened by itself, that folder
/// answers what can be read. The new log's first entries name the last one that
/// holds and the place of the break, and take over the agents and the policy
/// set that were in force there.
///
/// Entries before the break are believed as far as a witness confirms them: `HEAD`, `CHECKPOINT` and the index, which
/// stand in the folder too, or a checkpoint that was kept elsewhere (`RepairOptions::checkpoint`). A witness behind the
/// break confirms the entries before it where at most a bit of each damaged entry is flipped.
/// [`RepairReport::first_unconfirmed`] names the first entry that none confirms.
///
/// What the broken log says in entries that are not confirmed and behind the break is not believed where it would
/// loosen anything, and is where it tightens: an agent that is suspended or
/// retired there stays so, and its score is the lowest that was seen. An agent
/// that is known from there alone is taken over as suspended. A stop that was set on
/// either side stays in force unless it was lifted in a confirmed entry. Every agent is
/// suspended where a witness names other entries than there are, and where a policy set was
/// put in force in entries that are not believed or none is known: then everything is denied, too,
/// until one is loaded. Counters of limits begin anew.
///
/// The trust model is taken over as confirmed entries have it, as are endpoints of webhooks with their secrets; one that was removed or switched off
/// behind the break is not told anything. What waited for a person ended, and says so; approvals given beforehand are not taken
/// over. Pins and overrides of tools are; of a tool that was pinned or overridden behind the break every call is at least HIGH until
/// it is again. Endpoints and named cursors begin with the new log: what they had not read of the broken one is read there.
///
/// Should the power fail, the folder holds the broken log as it was, or the new
/// one, or what the next call finishes; nothing else opens it then.
///
/// ```no_run
/// let report = rulekeep::maintenance::repair("governance", &rulekeep::maintenance::RepairOptions::default())?;
/// println!("{} records hold; all is kept in {}", report.records, report.kept);
/// # Ok::<(), rulekeep::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Conflict`] for a log that is not broken, or that was frozen;
/// [`Error::StorageUnavailable`] when the folder is no store, is held by a
/// governor, or cannot be read or written.
pub fn repair(folder: impl AsRef<Path>, options: &RepairOptions) -> Result<RepairReport, Error> {
    let fresh = StoreId(SystemEntropy.bits().to_le_bytes());
    let checkpoint = options.checkpoint.clone();
    proof::repair(folder.as_ref(), SystemClock.now(), fresh, checkpoint, &|found| carry(found, options))
}

/// What is in force where nobody can say what was.
const NOTHING: &str = r#"
name = "nothing-until-a-set-is-loaded"
[[rule]]
id = "the-log-was-repaired"
effect = "deny"
match.capabilities = ["*:*"]
"#;

fn carry(found: &FoundStates, options: &RepairOptions) -> Result<RepairStates, Error> {
    let mut carried = RepairStates::default();
    repair_states::trust_model(found, &mut carried);
    let policies_are_known = found.good.contains_key(PolicyState::KEY);
    let policies_changed = found.behind.contains_key(PolicyState::KEY);
    let suspend_all = options.suspend_all || found.is_contradicted || policies_changed || !policies_are_known;
    if found.is_contradicted {
        let note = "a witness (HEAD, CHECKPOINT, the index or the checkpoint that was given) names other entries than the \
                    journal has: entries were rewritten, and every agent is suspended";
        carried.notes.push(note.to_owned());
    }
    if let Some(first) = found.first_unconfirmed {
        carried.notes.push(format!(
            "no witness confirms the entries from {first} on: what they say is believed where it tightens; a suspension \
             that somebody took out of them is not known, so suspend all agents where that may be"
        ));
    }
    if let Some(policies) = found.good.get(PolicyState::KEY) {
        let value = String::from_utf8_lossy(policies).into_owned();
        let state = proof::StateDraft::new(PolicyState::KEY.to_owned(), value);
        carried.states.push((state, "carried over by a repair".to_owned()));
    } else {
        let state = states::draft(PolicyState::KEY, &PolicyState::of(&PolicySet::from_toml(NOTHING)?)?)?;
        carried.states.push((state, "no entry that is believed says which set was in force".to_owned()));
        let note = "no entry that is believed says which policy set was in force: everything is denied until one is loaded, \
                    and every agent is suspended";
        carried.notes.push(note.to_owned());
    }
    if policies_are_known && policies_changed {
        let note = "a policy set was put in force in entries that are not believed, which may be stricter: the one before \
                    it was taken over, and every agent is suspended; load the right one, then resume them";
        carried.notes.push(note.to_owned());
    }
    let keys = found.good.keys().chain(found.behind.keys().filter(|key| !found.good.contains_key(*key)));
    for key in keys.filter(|key| key.starts_with(agents::KEY_PREFIX)) {
        let read = |value: &Vec<u8>| serde_json::from_slice::<AgentRecord>(value).ok();
        let behind: Vec<AgentRecord> = found.behind.get(key).into_iter().flatten().filter_map(read).collect();
        let good = found.good.get(key).and_then(read);
        let Some(known) = good.clone().or_else(|| behind.last().cloned()) else {
            carried.notes.push(format!("the state {key:?} cannot be read and was not taken over"));
            continue;
        };
        let record = tightened(&known, &behind, suspend_all || good.is_none());
        if good.as_ref() != Some(&record) {
            carried.tightened.push(record.agent_id.to_string());
        }
        let cause = if good.as_ref() == Some(&record) {
            "carried over by a repair"
        } else {
            "carried over by a repair, tighter than the last entry that held says"
        };
        carried.states.push((agents::state_of(&record)?, cause.to_owned()));
        carried.agents += 1;
    }
    let (stops, unreadable) = kill_switch::carried(found)?;
    carried.states.extend(stops.into_iter().map(|state| (state, "carried over by a repair".to_owned())));
    for key in unreadable {
        carried.notes.push(format!("the state {key:?} cannot be read and was not taken over"));
    }
    repair_states::escalations(found, &mut carried)?;
    repair_states::endpoints(found, &mut carried);
    repair_states::cursors(found, &mut carried);
    repair_states::keys(found, &mut carried);
    repair_states::tools(found, &mut carried)?;
    Ok(carried)
}

/// The agent as the strictest of these has it.
fn tightened(known: &AgentRecord, behind: &[AgentRecord], suspended: bool) -> AgentRecord {
    let mut record = known.clone();
    for later in behind {
        record.state = record.state.max(later.state);
        if later.trust.score < record.trust.score {
            record.trust = later.trust;
        }
    }
    if suspended {
        record.state = record.state.max(AgentState::Suspended);
    }
    record
}

const _: fn() = || {
    // INVARIANT: the later a state stands in the list, the tighter it is.
    const { assert!((AgentState::Active as u8) < AgentState::Suspended as u8) };
    const { assert!((AgentState::Suspended as u8) < AgentState::Retired as u8) };
};
