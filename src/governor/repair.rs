//! Repair: replacing a broken log by a new one, and the agents and policies that it takes over.

use std::path::Path;

use super::policies::PolicyState;
use super::{agents, kill_switch, repair_states, states};
use crate::model::{AgentState, Error, RepairReport};
use crate::policy::PolicySet;
use crate::proof::{self, FoundStates, RepairStates};
use crate::store::{KeptCheckpoint, StoreId};
use crate::system::{Clock, Entropy, SystemClock, SystemEntropy};
use crate::trust::AgentRecord;

/// Options of a repair.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct RepairOptions {
    suspend_all: bool,
    checkpoint: Option<KeptCheckpoint>,
}

impl RepairOptions {
    /// Suspends every agent that is taken over, to be resumed one by one. Use it when entries are missing, because they
    /// may have suspended agents.
    pub fn suspend_all(mut self) -> Self {
        self.suspend_all = true;
        self
    }

    /// Compares the broken log with a checkpoint that was stored elsewhere, signed by `key`. The checkpoint confirms
    /// the entries it covers; a log that contradicts it counts as broken.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a checkpoint that cannot be read or is not signed by the key.
    #[cfg(feature = "checkpoints")]
    pub fn checkpoint(mut self, note: &str, key: &crate::checkpoint::VerifierKey) -> Result<Self, Error> {
        let kept = super::checkpoints::opened(note, key)?;
        self.checkpoint = Some(KeptCheckpoint::handed_in(kept.size(), &kept.root()));
        Ok(self)
    }
}

/// Replaces a broken log, one that is damaged, tampered with or missing entries, by a new one.
///
/// The broken log is kept byte for byte in a folder `damaged-<time>` inside the store's folder. Opened by itself, that
/// folder answers queries as far as it can be read. The first entries of the new log name the last valid entry and the
/// position of the break, and take over the agents and the policy set in force.
///
/// # Entries that are trusted
///
/// An entry before the break is trusted if something else confirms it: `HEAD`, `CHECKPOINT` and the index in the
/// folder, or a checkpoint stored elsewhere (`RepairOptions::checkpoint`). One of these from after the break confirms
/// the entries before it if each damaged entry differs by at most one bit. [`RepairReport::first_unconfirmed`] names
/// the first entry that nothing confirms.
///
/// Unconfirmed entries and entries after the break are used only where they restrict:
///
/// - Agents suspended or retired there stay so, with the lowest score seen. An agent known only from there is
///   suspended.
/// - A kill switch set on either side stays in force unless a confirmed entry lifts it.
/// - Every agent is suspended if one of the confirming sources contradicts the entries, or if a policy set was put in
///   force in untrusted entries or none is known. In the last case everything is denied until a policy set is loaded.
///
/// # Other states
///
/// - The trust model is taken over from confirmed entries.
/// - Webhook endpoints are taken over with their secrets; one removed or disabled after the break receives nothing.
///   Endpoints and named cursors start at the beginning of the new log and skip what they had not read of the broken
///   one.
/// - Pins and overrides of tools are taken over. For a tool pinned or overridden after the break, every call is at
///   least HIGH until that is repeated.
/// - Pending escalations end, with a reason, and open tasks end. Pre-approvals are not taken over. Rate-limit counters start at zero.
///
/// After a power failure the folder holds the old log, the new log, or a state that the next call completes; until
/// then, nothing else opens it.
///
/// ```no_run
/// let report = rulekeep::maintenance::repair("governance", &rulekeep::maintenance::RepairOptions::default())?;
/// println!("{} records hold; all is kept in {}", report.records, report.kept);
/// # Ok::<(), rulekeep::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Conflict`] for a log that is not broken, or is frozen; [`Error::StorageUnavailable`] when the folder is not
/// a store, is open in a governor, or cannot be read or written.
pub fn repair(folder: impl AsRef<Path>, options: &RepairOptions) -> Result<RepairReport, Error> {
    let fresh = StoreId(SystemEntropy.bits().to_le_bytes());
    let checkpoint = options.checkpoint.clone();
    proof::repair(folder.as_ref(), SystemClock.now(), fresh, checkpoint, &|found| carry(found, options))
}

/// The policy set in force when the previous one is unknown.
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
        let note = "HEAD, CHECKPOINT, the index or the given checkpoint contradicts the journal: entries were \
                    rewritten, so every agent was suspended";
        carried.notes.push(note.to_owned());
    }
    if let Some(first) = found.first_unconfirmed {
        carried.notes.push(format!(
            "the entries from {first} on are unconfirmed: only their restrictions were carried over; if somebody may \
             have removed a suspension from them, suspend all agents"
        ));
    }
    if let Some(policies) = found.good.get(PolicyState::KEY) {
        let value = String::from_utf8_lossy(policies).into_owned();
        let state = proof::StateDraft::new(PolicyState::KEY.to_owned(), value);
        carried.states.push((state, "carried over by a repair".to_owned()));
    } else {
        let state = states::draft(PolicyState::KEY, &PolicyState::of(&PolicySet::from_toml(NOTHING)?)?)?;
        carried.states.push((state, "no confirmed entry says which policy set was in force".to_owned()));
        let note = "no confirmed entry says which policy set was in force: everything is denied until one is loaded, \
                    and every agent was suspended";
        carried.notes.push(note.to_owned());
    }
    if policies_are_known && policies_changed {
        let note = "unconfirmed entries put a policy set in force that may be stricter: the set before it was carried \
                    over, and every agent was suspended; load the right set, then resume the agents";
        carried.notes.push(note.to_owned());
    }
    let keys = found.good.keys().chain(found.behind.keys().filter(|key| !found.good.contains_key(*key)));
    for key in keys.filter(|key| key.starts_with(agents::KEY_PREFIX)) {
        let read = |value: &Vec<u8>| serde_json::from_slice::<AgentRecord>(value).ok();
        let behind: Vec<AgentRecord> = found.behind.get(key).into_iter().flatten().filter_map(read).collect();
        let good = found.good.get(key).and_then(read);
        let Some(known) = good.clone().or_else(|| behind.last().cloned()) else {
            carried.notes.push(format!("the state {key:?} cannot be read and was not carried over"));
            continue;
        };
        let record = tightened(&known, &behind, suspend_all || good.is_none());
        if good.as_ref() != Some(&record) {
            carried.tightened.push(record.agent_id.to_string());
        }
        let cause = if good.as_ref() == Some(&record) {
            "carried over by a repair"
        } else {
            "carried over by a repair, with restrictions from unconfirmed entries"
        };
        carried.states.push((agents::state_of(&record)?, cause.to_owned()));
        carried.agents += 1;
    }
    let (stops, unreadable) = kill_switch::carried(found)?;
    carried.states.extend(stops.into_iter().map(|state| (state, "carried over by a repair".to_owned())));
    for key in unreadable {
        carried.notes.push(format!("the state {key:?} cannot be read and was not carried over"));
    }
    repair_states::escalations(found, &mut carried)?;
    repair_states::tasks(found, &mut carried);
    repair_states::endpoints(found, &mut carried);
    repair_states::cursors(found, &mut carried);
    repair_states::keys(found, &mut carried);
    repair_states::tools(found, &mut carried)?;
    Ok(carried)
}

/// The agent with the most restrictive of these states.
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
    // INVARIANT: states are ordered by restrictiveness.
    const { assert!((AgentState::Active as u8) < AgentState::Suspended as u8) };
    const { assert!((AgentState::Suspended as u8) < AgentState::Retired as u8) };
};
