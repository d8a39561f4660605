//! Registering, reading, changing and suspending agents.

use std::sync::Arc;

use crate::governor::keys::{self, Keyed as _};
use crate::governor::roster::kill_switch::with_context;
use crate::governor::roster::trust::{Moved, ceiling_text};
use crate::governor::states::checked_note;
use crate::governor::{Inner, Roster, checked_agent_id, conflict, states};
use crate::model::parts::TrustChangeParts;
use crate::model::{
    Agent, AgentChange, AgentId, AgentInfo, AgentProfile, AgentState, Error, KillSwitchScope, Score, Sequence,
    Timestamp, TrustCause, TrustChange,
};
use crate::proof::{ChangeDraft, StateDraft, TrustMove};
use crate::trust::{AgentCell, AgentRecord, TrustState};

/// The agents of a governor, see [`Governor::agents`](crate::Governor::agents).
#[derive(Debug, Clone, Copy)]
pub struct Agents<'a> {
    pub(crate) inner: &'a Arc<Inner>,
}

impl Agents<'_> {
    /// Registers a new agent.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a malformed id, label or owner, or a score above the ceiling; [`Error::Conflict`]
    /// when an agent with this id is registered; [`Error::StorageUnavailable`] or [`Error::ChainBroken`] when it cannot
    /// be recorded.
    pub fn register(self, agent: Agent) -> Result<AgentInfo, Error> {
        let at = self.inner.here()?.base.clock.now();
        let (agent_id, score, profile) = agent.validated()?;
        self.inner.roster.checked_score(score, &profile)?;
        let record = AgentRecord::new(agent_id, AgentState::Active, profile, TrustState::new(score, at));
        let (cell, is_new) = self.inner.roster.insert_agent(record, "registered", at)?;
        let agent = cell.read();
        if !is_new {
            return conflict(format!("agent {:?} is registered already", agent.agent_id.as_str()));
        }
        Ok(self.inner.roster.info(&agent, at))
    }

    /// Registers an agent, or returns the registered agent with this id unchanged. A program that calls it at startup
    /// can be run again on the same store.
    ///
    /// ```
    /// use rulekeep::{Agent, Governor, Tier};
    ///
    /// let governor = Governor::builder().open_in_memory()?;
    /// let first = governor.agents().ensure(Agent::new("mailer").at_tier(Tier::T4))?;
    /// let again = governor.agents().ensure(Agent::new("mailer").at_tier(Tier::T1))?;
    /// assert_eq!(first.trust.score, again.trust.score);
    /// # Ok::<(), rulekeep::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Agents::register`], except for the conflict.
    pub fn ensure(self, agent: Agent) -> Result<AgentInfo, Error> {
        let agent_id = agent.id.clone();
        match self.register(agent) {
            Err(Error::Conflict { .. }) => self.get(&agent_id),
            registered => registered,
        }
    }

    /// Returns an agent's trust, state and profile.
    ///
    /// # Errors
    ///
    /// [`Error::AgentNotFound`]; [`Error::InvalidInput`] for a malformed id.
    pub fn get(self, agent_id: &str) -> Result<AgentInfo, Error> {
        let cell = self.inner.here()?.roster.registered(&checked_agent_id(agent_id)?)?;
        Ok(self.inner.roster.info(&cell.read(), self.inner.base.clock.now()))
    }

    /// Lists every registered agent, sorted by id.
    pub fn list(self) -> Vec<AgentInfo> {
        let now = self.inner.base.clock.now();
        self.inner.roster.ledger.all().iter().map(|cell| self.inner.roster.info(&cell.read(), now)).collect()
    }

    /// Returns the number of registered agents, and at most `count` of them, sorted by id, after skipping `skip`.
    pub fn page(self, skip: usize, count: usize) -> (usize, Vec<AgentInfo>) {
        let now = self.inner.base.clock.now();
        let all = self.inner.roster.ledger.all();
        let some = all.iter().skip(skip).take(count).map(|cell| self.inner.roster.info(&cell.read(), now));
        (all.len(), some.collect())
    }

    /// Suspends an agent: from the next decision in any thread, every request is denied until the agent is resumed.
    /// `note` says why.
    ///
    /// # Errors
    ///
    /// [`Error::AgentNotFound`]; [`Error::Conflict`] for a retired agent; [`Error::StorageUnavailable`] or
    /// [`Error::ChainBroken`] when it cannot be recorded. The message says whether the agent is denied everything all
    /// the same.
    pub fn suspend(self, agent_id: &str, note: &str) -> Result<AgentInfo, Error> {
        self.change_state(agent_id, AgentState::Suspended, note)
    }

    /// Resumes a suspended agent. `note` says why.
    ///
    /// # Errors
    ///
    /// [`Error::AgentNotFound`]; [`Error::Conflict`] for a retired agent; [`Error::StorageUnavailable`] or
    /// [`Error::ChainBroken`] when it cannot be recorded.
    pub fn resume(self, agent_id: &str, note: &str) -> Result<AgentInfo, Error> {
        self.change_state(agent_id, AgentState::Active, note)
    }

    /// Retires an agent: every request is denied permanently. Its records remain.
    ///
    /// # Errors
    ///
    /// [`Error::AgentNotFound`]; [`Error::StorageUnavailable`] or [`Error::ChainBroken`] when it cannot be recorded.
    pub fn retire(self, agent_id: &str, note: &str) -> Result<AgentInfo, Error> {
        self.change_state(agent_id, AgentState::Retired, note)
    }

    /// Changes an agent's profile; `note` says why. A score above the new ceiling is lowered at once.
    ///
    /// # Errors
    ///
    /// [`Error::AgentNotFound`]; [`Error::InvalidInput`] for a malformed id, label, group, attribute or owner;
    /// [`Error::StorageUnavailable`] or [`Error::ChainBroken`] when it cannot be recorded.
    pub fn update(self, agent_id: &str, change: AgentChange, note: &str) -> Result<AgentInfo, Error> {
        let note = checked_note(note)?;
        self.inner.here()?.base.log.wait_verified()?;
        let cell = self.inner.roster.registered(&checked_agent_id(agent_id)?)?;
        let at = self.inner.base.clock.now();
        let mut agent = cell.write();
        let profile = change.apply_to(agent.profile())?;
        let changed = agent.with_profile(profile);
        let capped = match self.inner.roster.ceiling_of(changed.profile()) {
            Some(ceiling) if ceiling < self.inner.roster.trust_of(&agent, at).score => {
                self.inner.roster.trust_model.capped(&agent.trust, self.inner.roster.bearing(&changed, at))
            }
            _ => agent.trust,
        };
        let (moved, trust) = agent.moved(capped, Moved::by(TrustCause::Ceiling, at));
        let changed = AgentRecord { trust: moved.trust, ..changed };
        let trust = trust.map(|trust| (agent.agent_id.clone(), trust));
        let change = ChangeDraft { state: state_of(&changed)?, cause: caused("changed", &note), trust };
        let sequence = self.inner.base.log.queue().change(at, change)?;
        let changed = changed.placed_at(sequence);
        *agent = changed;
        let info = self.inner.roster.info(&agent, at);
        self.inner.roster.stops.interventions().note(&KillSwitchScope::Agent(agent.agent_id.clone()));
        drop(agent);
        self.inner.base.log.settle(sequence)?;
        Ok(info)
    }

    fn change_state(self, agent_id: &str, state: AgentState, note: &str) -> Result<AgentInfo, Error> {
        let note = checked_note(note)?;
        let agent_id = checked_agent_id(agent_id)?;
        let cell = self.inner.here()?.roster.registered(&agent_id)?;
        let halts = state != AgentState::Active;
        if halts {
            // Takes effect before the agent's lock is acquired, which callers that wait for room in a full queue may
            // hold.
            self.inner.roster.stops.hold(&agent_id);
        }
        let changed = self.inner.base.log.wait_verified().and_then(|()| {
            if halts {
                // Before the suspension is recorded, so that a crash in between leaves no pre-approval that should have
                // ended.
                self.inner
                    .approvals
                    .end_pre_approvals_of(&KillSwitchScope::Agent(agent_id.clone()), &format!("it was {state}"));
            }
            self.change_state_of(&cell, state, &note)
        });
        match changed {
            Err(error) if halts && cell.read().state == AgentState::Active => {
                let standing = format!(
                    "agent {agent_id} is denied everything, but its suspension is not recorded and is lost on a restart"
                );
                Err(with_context(error, &standing))
            }
            Err(error) if !halts => Err(error),
            changed => {
                self.inner.roster.stops.release(&agent_id);
                changed
            }
        }
    }

    fn change_state_of(self, cell: &AgentCell, state: AgentState, note: &str) -> Result<AgentInfo, Error> {
        let at = self.inner.base.clock.now();
        let mut agent = cell.write();
        if agent.state == AgentState::Retired && state != AgentState::Retired {
            let message = format!("agent {:?} is retired for good; register another", agent.agent_id.as_str());
            return Err(Error::Conflict { message });
        }
        let changed = AgentRecord { state, ..agent.clone() };
        let cause = caused(state.as_str(), note);
        let change = ChangeDraft { state: state_of(&changed)?, cause, trust: None };
        let sequence = match state {
            AgentState::Active => self.inner.base.log.queue().change(at, change)?,
            // Needs no room in the queue. The lock kept out every decision that would have to be reevaluated.
            AgentState::Suspended | AgentState::Retired => self.inner.base.log.queue().stop(at, 0, change)?,
        };
        self.inner.roster.ledger.replace(&mut agent, changed);
        let info = self.inner.roster.info(&agent, at);
        drop(agent);
        self.inner.base.log.settle(sequence)?;
        Ok(info)
    }
}

impl Roster {
    /// The agent that makes a request; an unknown one is registered if the governor was built with auto-registration.
    pub(crate) fn acting(&self, agent_id: &AgentId) -> Result<Arc<AgentCell>, Error> {
        let found = match self.registered(agent_id) {
            Err(Error::AgentNotFound { .. }) if self.auto_register => {
                let at = self.base.clock.now();
                let record = self.newcomer(agent_id, at);
                // Another thread may have registered it first.
                self.insert_agent(record, "registered at its first request", at).map(|(cell, _)| cell)
            }
            found => found,
        };
        // A log that could not be read completely may contain the agent.
        found.map_err(|error| self.base.log.refusal().unwrap_or(error))
    }

    /// The record of an unregistered agent, as its first request would register it.
    pub(crate) fn newcomer(&self, agent_id: &AgentId, at: Timestamp) -> AgentRecord {
        let trust = self.trust_model.self_registered(Agent::NEWCOMER_SCORE, at);
        AgentRecord::new(agent_id.clone(), AgentState::Active, AgentProfile::default(), trust)
    }

    pub(crate) fn registered(&self, agent_id: &AgentId) -> Result<Arc<AgentCell>, Error> {
        self.ledger.get(agent_id).ok_or_else(|| Error::agent_not_found(agent_id.as_str()))
    }

    /// Enqueues an agent's registration, adds it to the ledger, and waits for the commit.
    fn insert_agent(&self, record: AgentRecord, cause: &str, at: Timestamp) -> Result<(Arc<AgentCell>, bool), Error> {
        record.agent_id.check_new().map_err(|error| Error::input("agentId", error.to_string()))?;
        if let Some(known) = self.ledger.get(&record.agent_id) {
            return Ok((known, false));
        }
        self.base.log.wait_verified()?;
        let (cell, ordered) = self.put_in(record, cause, at)?;
        if let Some(sequence) = ordered {
            self.base.log.settle(sequence)?;
        }
        Ok((cell, ordered.is_some()))
    }

    /// Enqueues an agent's registration and adds it to the ledger, without waiting for the commit. Returns the entry,
    /// unless the agent was registered already.
    pub(crate) fn put_in(
        &self,
        record: AgentRecord,
        cause: &str,
        at: Timestamp,
    ) -> Result<(Arc<AgentCell>, Option<Sequence>), Error> {
        let mut ordered = None;
        let inserted = self.ledger.insert(record, |record| {
            ordered = Some(self.order_newcomer(record, cause, at)?);
            Ok::<(), Error>(())
        })?;
        Ok((inserted.unwrap_or_else(|known| known), ordered))
    }

    /// Enqueues the first state of an agent, which starts its trust history.
    fn order_newcomer(&self, agent: &mut AgentRecord, cause: &str, at: Timestamp) -> Result<Sequence, Error> {
        let TrustState { score, tier, .. } = agent.trust;
        let change = TrustChange::from(TrustChangeParts { from: score, to: score, from_tier: tier, to_tier: tier });
        let trust = TrustMove { change, cause: TrustCause::Registered, risk: None, gained: None, at, previous: None };
        let noted = AgentRecord { trust: agent.trust.noted(StateDraft::OWN_PLACE), ..agent.clone() };
        let trust = Some((agent.agent_id.clone(), trust));
        let sequence = self
            .base
            .log
            .queue()
            .change(at, ChangeDraft { state: state_of(&noted)?, cause: cause.to_owned(), trust })?;
        *agent = noted.placed_at(sequence);
        Ok(sequence)
    }

    /// Checks that an initial score is not above the ceiling.
    pub(crate) fn checked_score(&self, score: Score, profile: &AgentProfile) -> Result<(), Error> {
        match self.ceiling_of(profile) {
            Some(ceiling) if score > ceiling => {
                let whose = ceiling_text(profile, ceiling);
                Err(Error::input("score", format!("expected at most {ceiling}, {whose}, found {score}")))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn info(&self, record: &AgentRecord, now: Timestamp) -> AgentInfo {
        let trust = self.trust_of(record, now);
        AgentInfo::new(record.agent_id.clone(), trust, record.state, record.profile().clone())
    }
}

/// The agent's state as the log stores it.
pub(crate) fn state_of(record: &AgentRecord) -> Result<StateDraft, Error> {
    let state = states::draft(keys::Agents::key(&record.agent_id), record)?;
    Ok(if record.trust.last == Some(StateDraft::OWN_PLACE) { state.with_own_place() } else { state })
}

fn caused(what: &str, note: &str) -> String {
    if note.is_empty() { what.to_owned() } else { format!("{what}: {note}") }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::governor::Governor;
    use crate::model::{Decision, Intent, Order, PreApprovalState, Review, RiskLevel};
    use crate::policy::{PolicySet, PreApproval};
    use crate::proof::{Durability, ProofQuery};

    const POLICIES: &str = r#"
        name = "small"
        [[rule]]
        id = "reads"
        effect = "allow"
        match.capabilities = ["document:read"]
        [[rule]]
        id = "money"
        effect = "escalate"
        match.capabilities = ["payment:transfer"]
        reviewer = "ann"
    "#;

    #[test]
    fn no_grant_follows_a_suspension_recorded_behind_a_full_queue() {
        let policies = PolicySet::from_toml(POLICIES).unwrap();
        let governor =
            Governor::builder().policies(policies).durability(Durability::Buffered).open_in_memory().unwrap();
        for id in ["a", "filler"] {
            governor.agents().register(Agent::new(id).in_group("desk").at_score(Score::MAX)).unwrap();
        }
        let terms = serde_json::from_value(serde_json::json!({
            "group": "desk", "capabilities": ["payment:transfer"], "rules": ["money"],
            "until": Timestamp::from_millis(governor.inner.base.clock.now().as_millis() + 3_600_000),
        }));
        let approval = PreApproval::new(terms.unwrap(), governor.inner.base.clock.now()).unwrap();
        governor.escalations().pre_approve(approval, Review::by("ann")).unwrap();
        let reading = |agent: &str, notes: usize| {
            let intent = Intent::new(agent, "read", RiskLevel::Low, ["document:read"]).unwrap();
            intent.with_context("notes", "x".repeat(notes))
        };
        assert_eq!(governor.enforce(&reading("a", 1)).unwrap().decision, Decision::Allow);
        governor.log().flush().unwrap();

        let held_up = governor.inner.base.log.hold_up();
        let full = loop {
            if let Err(error) = governor.enforce_pending(&reading("filler", 20_000)) {
                break error;
            }
        };
        assert!(full.to_string().contains("queue is full"), "{full}");
        thread::scope(|scope| {
            for _ in 0..4 {
                // The callers wait for room while they hold the agent's lock.
                scope.spawn(|| assert!(governor.enforce_pending(&reading("a", 1)).is_err()));
            }
            let suspended = governor.agents().suspend("a", "enough").unwrap();
            assert_eq!(suspended.state, AgentState::Suspended);
            assert_eq!(governor.escalations().pre_approvals()[0].state, PreApprovalState::Revoked);
        });
        assert!(governor.enforce_pending(&reading("filler", 1)).is_err(), "the queue is full all the same");
        drop(held_up);
        governor.log().flush().unwrap();
        assert_eq!(governor.enforce(&reading("a", 1)).unwrap().decision, Decision::Deny);
        assert_eq!(governor.enforce(&reading("filler", 1)).unwrap().decision, Decision::Allow);
        let records = governor.query(&ProofQuery::entity("a").order(Order::OldestFirst)).unwrap().items;
        let decisions: Vec<Decision> = records.iter().map(|record| record.decision).collect();
        assert_eq!(decisions, [Decision::Allow, Decision::Deny]);
        assert!(governor.verify().unwrap().valid);
    }
}
