//! Setting and lifting kill switches, and the open actions of stopped agents.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use arc_swap::{ArcSwap, Guard};
use serde::{Deserialize, Serialize};

use crate::governor::keys::{Keyed as _, Stops};
use crate::governor::roster::interventions::Interventions;
use crate::governor::states::{self, checked_note};
use crate::governor::{Hold as _, Inner, Roster, conflict};
use crate::model::{
    AgentId, AgentState, Error, InvalidValue, KillSwitchEntry, KillSwitchId, KillSwitchReport, KillSwitchScope, Label,
    ProofPage, ProofRecord, Timestamp, checked_person,
};
use crate::proof::{ChangeDraft, ProofQuery, StateDraft};
use crate::trust::AgentRecord;

/// The kill switch of a governor, see [`Governor::kill_switch`](crate::Governor::kill_switch).
#[derive(Debug, Clone, Copy)]
pub struct KillSwitch<'a> {
    pub(crate) inner: &'a Arc<Inner>,
}

impl KillSwitch<'_> {
    /// Stops an agent, a group or every agent: all their requests are denied, from this moment in every thread, until
    /// the kill switch is lifted. It survives a restart. The report lists the open actions of the stopped agents.
    ///
    /// `by` names the person who sets it (1 to 256 characters), `note` says why (at most 4,096 characters). Both appear
    /// in the reasoning of each denial.
    ///
    /// The call does not wait for decisions in flight: after its entry in the log, no request of the stopped agents is
    /// granted or escalated, and a grant that is not on disk yet is not handed out.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a malformed `by`, one that begins with `organisation/`, or a note that is too long;
    /// then nobody is stopped. After any other error the kill switch is in force; the message says whether it is
    /// recorded.
    pub fn set(self, scope: KillSwitchScope, by: &str, note: &str) -> Result<KillSwitchReport, Error> {
        let (by, note) = signed_here(by, note)?;
        self.set_by(scope, by, note)
    }

    pub(crate) fn set_by(self, scope: KillSwitchScope, by: String, note: String) -> Result<KillSwitchReport, Error> {
        let at = self.inner.here()?.base.clock.now();
        let stop = KillSwitchEntry::new(KillSwitchId::new(at, self.inner.base.entropy.bits()), scope, by, note, at);
        let (id, scope) = (stop.id, stop.scope.clone());
        let change =
            ChangeDraft { state: state_of(&stop)?, cause: cause("kill switch set", &stop.by, &stop.note), trust: None };

        let turn = self.inner.roster.stops.turn.hold();
        let epoch = self.inner.roster.stops.set(stop);
        let ordered = self.inner.base.log.queue().stop(at, epoch, change);
        drop(turn);
        ordered.and_then(|sequence| self.inner.base.log.settle(sequence)).map_err(|error| {
            with_context(
                error,
                &format!("the kill switch {id} is in force, but it is not recorded and is lost on a restart"),
            )
        })?;

        let died = self.inner.approvals.after_stop(&scope);
        let (open, open_total) = self.inner.roster.open_of(&scope, 0, MOST_TOLD).map_err(|error| {
            with_context(error, &format!("the kill switch {id} is in force, but the open actions cannot be read"))
        })?;
        Ok(KillSwitchReport::new(id, open, open_total, died))
    }

    /// Lifts a kill switch. Its agents can act again unless another kill switch covers them.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] when no such kill switch is set, or the organisation set it; [`Error::InvalidInput`] for a
    /// malformed `by`, one that begins with `organisation/`, or a note that is too long;
    /// [`Error::StorageUnavailable`] when the change cannot be recorded; then the kill switch stays in force.
    pub fn lift(self, id: &KillSwitchId, by: &str, note: &str) -> Result<(), Error> {
        let (by, note) = signed_here(by, note)?;
        self.lift_by(id, by, note)
    }

    pub(crate) fn lift_by(self, id: &KillSwitchId, by: String, note: String) -> Result<(), Error> {
        self.inner.base.log.wait_verified()?;
        let _lifting = self.inner.roster.stops.lifting.hold();
        // Waits for a kill switch that is being set, so that its entry precedes that of its lifting.
        let stop = {
            let _turn = self.inner.roster.stops.turn.hold();
            self.inner.roster.stops.load().stops.iter().find(|stop| stop.id == *id).cloned()
        };
        let Some(stop) = stop else {
            return conflict(format!("no kill switch {id} is set"));
        };
        let is_order = by.starts_with(ORGANISATION);
        if is_order != stop.by.starts_with(ORGANISATION) {
            let message = if is_order {
                format!("the kill switch {id} was set by {} at this governor; an order does not lift it", stop.by)
            } else {
                format!("the kill switch {id} was set by the organisation; only an order of the organisation lifts it")
            };
            return Err(Error::Conflict { message });
        }
        let at = self.inner.base.clock.now();
        let lifted = KillSwitchState { scope: stop.scope.clone(), on: false, by, note, timestamp: at };
        let why = cause("kill switch lifted", &lifted.by, &lifted.note);
        let sequence = self.inner.base.set_state(lifted.draft(*id)?, &why)?;
        self.inner.base.log.settle(sequence)?;
        let _turn = self.inner.roster.stops.turn.hold();
        self.inner.roster.stops.change(|table| table.stops.retain(|stop| stop.id != *id));
        Ok(())
    }

    /// Lists the kill switches in force, oldest first.
    pub fn list(self) -> Vec<KillSwitchEntry> {
        self.inner.roster.stops.list()
    }

    /// Lists the open actions of agents, newest first: decisions that were granted or await a reviewer and have no
    /// outcome yet. `page` counts from 1, `page_size` is at most 200. For a group, its current members count.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidQuery`], which names the parameter; [`Error::StorageUnavailable`] or [`Error::ChainBroken`] when
    /// the log cannot be read.
    pub fn open_actions(self, scope: &KillSwitchScope, page: u64, page_size: u64) -> Result<ProofPage, Error> {
        ProofQuery::all().page(page).page_size(page_size).checked()?;
        let (items, total) =
            self.inner.here()?.roster.open_of(scope, (page - 1).saturating_mul(page_size), page_size)?;
        Ok(ProofPage::new(items, total, page, page_size))
    }
}

impl Roster {
    /// The newest open records of the covered agents after the first `skip`, and their total number.
    fn open_of(&self, scope: &KillSwitchScope, skip: u64, take: u64) -> Result<(Vec<ProofRecord>, u64), Error> {
        let queries: Vec<ProofQuery> = match scope {
            KillSwitchScope::All => vec![ProofQuery::all().open()],
            KillSwitchScope::Agent(agent) => vec![ProofQuery::entity(agent.as_str()).open()],
            KillSwitchScope::Group(group) => {
                self.members(group).iter().map(|id| ProofQuery::entity(id.as_str()).open()).collect()
            }
        };
        self.base.log.newest(&queries, skip, take)
    }

    fn members(&self, group: &Label) -> Vec<AgentId> {
        let cells = self.ledger.all();
        let member = |agent: &AgentRecord| agent.traits().groups.contains(group).then(|| agent.agent_id.clone());
        cells.iter().filter_map(|cell| member(&cell.read())).collect()
    }
}

/// All kill switches in force. Decisions load them without a lock.
#[derive(Debug, Default)]
pub(crate) struct KillSwitches {
    table: ArcSwap<KillSwitchTable>,
    // Held to swap the table and enqueue the change, so that both happen in the same order. Never held while waiting.
    turn: Mutex<()>,
    // Held while lifting; acquired before `turn`.
    pub(crate) lifting: Mutex<()>,
    interventions: Interventions,
}

impl KillSwitches {
    /// Restores the kill switches from the log.
    pub(crate) fn restored(mut stops: Vec<KillSwitchEntry>) -> Self {
        stops.sort_by_key(|stop| (stop.timestamp, stop.id));
        let mut table =
            KillSwitchTable { stops: stops.into_iter().map(Arc::new).collect(), ..KillSwitchTable::default() };
        table.look_up();
        Self { table: ArcSwap::from_pointee(table), ..Self::default() }
    }

    pub(crate) fn load(&self) -> Guard<Arc<KillSwitchTable>> {
        self.table.load()
    }

    /// The kill switches in force, oldest first.
    pub(crate) fn list(&self) -> Vec<KillSwitchEntry> {
        self.load().stops.iter().map(|stop| KillSwitchEntry::clone(stop)).collect()
    }

    /// Records of when agents were kept from acting.
    pub(crate) const fn interventions(&self) -> &Interventions {
        &self.interventions
    }

    /// Denies everything to an agent, without recording it, until [`KillSwitches::release`].
    pub(crate) fn hold(&self, agent: &AgentId) {
        let _turn = self.turn.hold();
        self.change(|table| {
            table.held.insert(agent.clone());
        });
        self.interventions.note(&KillSwitchScope::Agent(agent.clone()));
    }

    pub(crate) fn release(&self, agent: &AgentId) {
        let _turn = self.turn.hold();
        if self.load().held.contains(agent) {
            self.change(|table| {
                table.held.remove(agent);
            });
        }
    }

    /// Puts a kill switch in force and returns the epoch from which it is known.
    fn set(&self, stop: KillSwitchEntry) -> u64 {
        let stop = Arc::new(stop);
        self.change(|table| {
            table.stops.push(Arc::clone(&stop));
            table.epoch += 1;
        });
        self.interventions.note(&stop.scope);
        self.load().epoch
    }

    /// Replaces the table; the caller must hold `turn`.
    fn change(&self, change: impl FnOnce(&mut KillSwitchTable)) {
        let mut table = KillSwitchTable::clone(&self.table.load());
        change(&mut table);
        table.look_up();
        self.table.store(Arc::new(table));
    }
}

/// The kill switches at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct KillSwitchTable {
    epoch: u64,
    /// Oldest first.
    stops: Vec<Arc<KillSwitchEntry>>,
    // If several kill switches cover the same scope, the oldest.
    all: Option<Arc<KillSwitchEntry>>,
    agents: HashMap<AgentId, Arc<KillSwitchEntry>>,
    groups: HashMap<Label, Arc<KillSwitchEntry>>,
    /// Agents whose suspension is in progress or could not be recorded.
    held: HashSet<AgentId>,
}

impl KillSwitchTable {
    /// Number of kill switches set since the governor was opened.
    pub(crate) const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Agents whose suspension is in progress or could not be recorded.
    pub(crate) fn held(&self) -> impl Iterator<Item = &AgentId> {
        self.held.iter()
    }

    /// The reason the agent may not act, if any.
    pub(crate) fn denial(&self, agent: &AgentRecord) -> Option<Denial<'_>> {
        if self.stops.is_empty() && self.held.is_empty() {
            return None;
        }
        if self.held.contains(&agent.agent_id) {
            return Some(Denial::Suspending);
        }
        let stop = self
            .all
            .as_ref()
            .or_else(|| self.agents.get(&agent.agent_id))
            .or_else(|| agent.traits().groups.iter().find_map(|group| self.groups.get(group)))?;
        Some(Denial::KillSwitch(stop))
    }

    /// The denial's text, if the agent may not act.
    pub(crate) fn over(&self, agent: &AgentRecord) -> Option<String> {
        let stop = match self.denial(agent)? {
            Denial::Suspending => {
                return Some(format!(
                    "Denied: agent {} is suspended; only an operator can change that.",
                    agent.agent_id
                ));
            }
            Denial::KillSwitch(stop) => stop,
        };
        let KillSwitchEntry { id, scope, by, note, .. } = stop;
        let why = if note.is_empty() { String::new() } else { format!(": {note}") };
        let who = if by.starts_with(ORGANISATION) { "an order of the organisation" } else { "an operator" };
        Some(format!("Denied: the kill switch {id} for {scope} was set by {by}{why}; only {who} can lift it."))
    }

    /// The reason the agent may not act, whether by a kill switch or by its state.
    pub(crate) fn refusal(&self, agent: &AgentRecord) -> Option<String> {
        let inactive = || format!("agent {} is {}", agent.agent_id, agent.state);
        self.over(agent).or_else(|| (agent.state != AgentState::Active).then(inactive))
    }

    fn look_up(&mut self) {
        (self.all, self.agents, self.groups) = Default::default();
        // Of two kill switches with the same scope, the older one is kept.
        for stop in self.stops.iter().rev() {
            let stop = Arc::clone(stop);
            match stop.scope.clone() {
                KillSwitchScope::All => self.all = Some(stop),
                KillSwitchScope::Agent(agent) => _ = self.agents.insert(agent, stop),
                KillSwitchScope::Group(group) => _ = self.groups.insert(group, stop),
            }
        }
    }
}

/// The reason an agent may not act.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Denial<'a> {
    /// The agent's suspension is in progress or could not be recorded.
    Suspending,
    KillSwitch(&'a KillSwitchEntry),
}

/// A kill switch as the log stores it.
#[derive(Debug, Serialize, Deserialize)]
struct KillSwitchState {
    scope: KillSwitchScope,
    on: bool,
    /// The person who set or lifted it.
    by: String,
    note: String,
    timestamp: Timestamp,
}

impl KillSwitchState {
    fn draft(&self, id: KillSwitchId) -> Result<StateDraft, Error> {
        states::draft(Stops::key(id), self)
    }
}

/// Reads a kill switch from a state of the log; `None` if it was lifted.
pub(crate) fn read(key: &str, value: &[u8]) -> Result<Option<KillSwitchEntry>, Error> {
    let id = key.strip_prefix(Stops::PREFIX).unwrap_or(key);
    let id = id
        .parse()
        .map_err(|error: InvalidValue| Error::storage(format!("the state {key:?} cannot be read")).caused_by(error))?;
    let KillSwitchState { scope, on, by, note, timestamp } = states::read(key, value)?;
    Ok(on.then(|| KillSwitchEntry::new(id, scope, by, note, timestamp)))
}

/// The state that the log stores for a kill switch in force.
pub(crate) fn state_of(stop: &KillSwitchEntry) -> Result<StateDraft, Error> {
    let KillSwitchEntry { id, scope, by, note, timestamp, .. } = stop.clone();
    KillSwitchState { scope, on: true, by, note, timestamp }.draft(id)
}

/// Validates the name and the note.
fn signed(by: &str, note: &str) -> Result<(String, String), Error> {
    let by = checked_person("by", by)?;
    Ok((by, checked_note(note)?.trim().to_owned()))
}

/// Validates the name and the note of an order of the organisation.
pub(crate) fn ordered(by: &str, note: &str) -> Result<(String, String), Error> {
    signed(by, note).map(|(by, note)| (format!("{ORGANISATION}{by}"), note))
}

/// Validates the name and the note of somebody at this governor.
fn signed_here(by: &str, note: &str) -> Result<(String, String), Error> {
    let (by, note) = signed(by, note)?;
    if by.trim_start().starts_with(ORGANISATION) {
        let message = format!("expected a name that does not begin with {ORGANISATION:?}: those are of orders");
        return Err(Error::input("by", message));
    }
    Ok((by, note))
}

fn cause(what: &str, by: &str, note: &str) -> String {
    if note.is_empty() { format!("{what} by {by}") } else { format!("{what} by {by}: {note}") }
}

/// Prefixes the error's message with what holds despite the error.
pub fn with_context(error: Error, standing: &str) -> Error {
    match error {
        Error::ChainBroken { message } => Error::ChainBroken { message: format!("{standing}: {message}") },
        Error::Conflict { message } => Error::Conflict { message: format!("{standing}: {message}") },
        error => Error::storage(standing).caused_by(error),
    }
}

/// Prefix of the names of those who set or lift kill switches by an order of the organisation.
const ORGANISATION: &str = "organisation/";
/// Maximum number of open records in a report.
const MOST_TOLD: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::governor::Governor;
    use crate::governor::state_kinds::Repairing;
    use crate::model::{Agent, Decision, Intent, RiskLevel};
    use crate::proof::FoundStates;
    use std::collections::BTreeMap;

    fn stop(number: u128, scope: KillSwitchScope) -> KillSwitchEntry {
        let at = Timestamp::from_millis(0);
        KillSwitchEntry::new(KillSwitchId::new(at, number), scope, "ann".to_owned(), String::new(), at)
    }

    #[test]
    fn a_suspension_bites_before_it_is_recorded() {
        let governor = Governor::builder().open_in_memory().unwrap();
        governor.agents().register(Agent::new("a").at_score(crate::model::Score::MAX)).unwrap();
        let intent = Intent::new("a", "read", RiskLevel::Low, ["document:read"]).unwrap();
        let agent: AgentId = "a".parse().unwrap();
        governor.inner.roster.stops.hold(&agent);
        let denied = governor.enforce(&intent).unwrap();
        assert_eq!(denied.decision, Decision::Deny);
        assert!(denied.reasoning.contains("suspended"), "{}", denied.reasoning);
        // Resuming the agent ends that too.
        governor.agents().resume("a", "").unwrap();
        assert_eq!(governor.enforce(&intent).unwrap().decision, Decision::Allow);
    }

    #[test]
    fn a_repair_believes_stops_and_not_lifts_after_the_break() {
        let all = |number| stop(number, KillSwitchScope::All);
        let lifted = |stop: &KillSwitchEntry| {
            let KillSwitchEntry { id, scope, by, note, timestamp, .. } = stop.clone();
            KillSwitchState { scope, on: false, by, note, timestamp }.draft(id).unwrap()
        };
        let entry = |draft: StateDraft| (draft.key, draft.value.into_bytes());
        let on = |stop: &KillSwitchEntry| entry(state_of(stop).unwrap());
        let off = |stop: &KillSwitchEntry| entry(lifted(stop));
        let good = BTreeMap::from([on(&all(1)), on(&all(2)), off(&all(3)), ("stop/x".to_owned(), b"1".to_vec())]);
        let behind: BTreeMap<String, Vec<Vec<u8>>> =
            [off(&all(2)), on(&all(4)), off(&all(5))].map(|(key, value)| (key, vec![value])).into();
        let found = FoundStates { good, behind, ..FoundStates::default() };
        let carried = Repairing::of(&found, false).unwrap();
        let kept =
            carried.states.into_iter().map(|(state, _)| state).filter(|state| state.key.starts_with(Stops::PREFIX));
        let kept: Vec<StateDraft> = kept.collect();
        let ids = [1, 2, 4].map(|number| Stops::key(all(number).id));
        assert_eq!(kept.iter().map(|draft| draft.key.clone()).collect::<Vec<_>>(), ids);
        assert!(carried.notes.iter().any(|note| note.contains("stop/x")), "{:?}", carried.notes);
        assert!(kept.iter().all(|draft| read(&draft.key, draft.value.as_bytes()).unwrap().is_some()));
    }
}
