//! Registering, reading and suspending agents.

use std::sync::Arc;

use super::{Governor, checked_agent_id};
use crate::model::{Agent, AgentId, AgentInfo, AgentState, AgentTraits, Error, Sequence, Timestamp};
use crate::parse::conceal_text;
use crate::proof::StateDraft;
use crate::trust::{AgentCell, AgentRecord, Ledger, TrustModel, TrustState};

/// What the keys of agents' states in the log start with.
pub(super) const KEY_PREFIX: &str = "agent/";

impl Governor {
    /// Registers an agent.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a malformed id or label, [`Error::Conflict`]
    /// when an agent of that id is registered.
    pub fn register_agent(&self, agent: Agent) -> Result<AgentInfo, Error> {
        let (agent_id, score, traits) = agent.validated()?;
        let at = self.inner.clock.now();
        let record = AgentRecord { agent_id, state: AgentState::Active, traits, trust: TrustState::new(score, at) };
        match self.insert_agent(record, "registered", at)? {
            Ok(cell) => Ok(self.info(&cell.read(), at)),
            Err(cell) => {
                let message = format!("agent {:?} is registered already", cell.read().agent_id.as_str());
                Err(Error::Conflict { message })
            }
        }
    }

    /// What is known of an agent.
    ///
    /// # Errors
    ///
    /// [`Error::AgentNotFound`], [`Error::InvalidInput`] for a malformed id.
    pub fn agent(&self, agent_id: &str) -> Result<AgentInfo, Error> {
        let cell = self.registered(&checked_agent_id(agent_id)?)?;
        Ok(self.info(&cell.read(), self.inner.clock.now()))
    }

    /// Every registered agent, sorted by id.
    pub fn agents(&self) -> Vec<AgentInfo> {
        let now = self.inner.clock.now();
        self.inner.ledger.all().iter().map(|cell| self.info(&cell.read(), now)).collect()
    }

    /// Suspends an agent: everything it asks is denied, from the next decision
    /// in any thread on, until it is resumed. `note` says why.
    ///
    /// # Errors
    ///
    /// [`Error::AgentNotFound`]; [`Error::Conflict`] for a retired agent.
    pub fn suspend(&self, agent_id: &str, note: &str) -> Result<AgentInfo, Error> {
        self.change_state(agent_id, AgentState::Suspended, note)
    }

    /// Lets a suspended agent act again.
    ///
    /// # Errors
    ///
    /// [`Error::AgentNotFound`]; [`Error::Conflict`] for a retired agent.
    pub fn resume(&self, agent_id: &str, note: &str) -> Result<AgentInfo, Error> {
        self.change_state(agent_id, AgentState::Active, note)
    }

    /// Retires an agent: everything it asks is denied for good. Its records stay.
    ///
    /// # Errors
    ///
    /// [`Error::AgentNotFound`].
    pub fn retire(&self, agent_id: &str, note: &str) -> Result<AgentInfo, Error> {
        self.change_state(agent_id, AgentState::Retired, note)
    }

    /// The agent that acts; an unknown one is registered if the governor was
    /// built so.
    pub(super) fn acting(&self, agent_id: &AgentId) -> Result<Arc<AgentCell>, Error> {
        match self.registered(agent_id) {
            Err(Error::AgentNotFound { .. }) if self.inner.auto_register => {
                let at = self.inner.clock.now();
                let record = newcomer(&self.inner.trust_model, agent_id, at);
                // Another thread may have been first; then its agent it is.
                Ok(self.insert_agent(record, "registered at its first request", at)?.unwrap_or_else(|cell| cell))
            }
            found => found,
        }
    }

    pub(super) fn registered(&self, agent_id: &AgentId) -> Result<Arc<AgentCell>, Error> {
        self.inner.ledger.get(agent_id).ok_or_else(|| Error::agent_not_found(agent_id.as_str()))
    }

    /// Records an agent and puts it into the ledger, in one.
    fn insert_agent(
        &self,
        record: AgentRecord,
        cause: &str,
        at: Timestamp,
    ) -> Result<Result<Arc<AgentCell>, Arc<AgentCell>>, Error> {
        self.inner.log.wait_verified()?;
        let mut sequence = None;
        let inserted = self.inner.ledger.insert(record, |record| {
            sequence = Some(self.order_agent(record, cause, at)?);
            Ok::<(), Error>(())
        })?;
        if let Some(sequence) = sequence {
            self.inner.log.settle(sequence)?;
        }
        Ok(inserted)
    }

    fn change_state(&self, agent_id: &str, state: AgentState, note: &str) -> Result<AgentInfo, Error> {
        let note = checked_note(note)?;
        self.inner.log.wait_verified()?;
        let cell = self.registered(&checked_agent_id(agent_id)?)?;
        let at = self.inner.clock.now();
        let mut agent = cell.write();
        if agent.state == AgentState::Retired && state != AgentState::Retired {
            let message = format!("agent {:?} is retired for good; register another", agent.agent_id.as_str());
            return Err(Error::Conflict { message });
        }
        let changed = AgentRecord { state, ..agent.clone() };
        let sequence = self.order_agent(&changed, &format!("{state}: {note}"), at)?;
        *agent = changed;
        let info = self.info(&agent, at);
        drop(agent);
        self.inner.log.settle(sequence)?;
        Ok(info)
    }

    fn order_agent(&self, record: &AgentRecord, cause: &str, at: Timestamp) -> Result<Sequence, Error> {
        let cause = conceal_text(cause).unwrap_or_else(|| cause.to_owned());
        self.inner.log.set_state(at, state_of(record)?, cause)
    }

    fn info(&self, record: &AgentRecord, now: Timestamp) -> AgentInfo {
        let trust = self.trust_of(record, now);
        AgentInfo::new(record.agent_id.clone(), trust, record.state, record.traits.clone())
    }
}

/// An agent that is not registered yet, as it would be at its first request.
pub(super) fn newcomer(model: &TrustModel, agent_id: &AgentId, at: Timestamp) -> AgentRecord {
    let trust = model.self_registered(Agent::NEWCOMER_SCORE, at);
    AgentRecord { agent_id: agent_id.clone(), state: AgentState::Active, traits: AgentTraits::default(), trust }
}

/// The state that the log keeps of an agent.
pub(super) fn state_of(record: &AgentRecord) -> Result<StateDraft, Error> {
    let value = serde_json::to_string(record)
        .map_err(|error| Error::Internal { message: format!("an agent does not serialise: {error}") })?;
    Ok(StateDraft::new(format!("{KEY_PREFIX}{}", record.agent_id), value))
}

/// Puts an agent back as the log has it.
pub(super) fn restore(ledger: &Ledger, value: &[u8]) -> Result<(), Error> {
    let record: AgentRecord = serde_json::from_slice(value)
        .map_err(|error| Error::storage(format!("an agent's state cannot be read: {error}")))?;
    // The ledger is new and every key is there once.
    let _ = ledger.insert(record, |_| Ok::<(), Error>(()))?;
    Ok(())
}

/// A note for the record: at most 4,096 characters.
pub(super) fn checked_note(note: &str) -> Result<&str, Error> {
    const LONGEST: usize = 4096;
    if note.chars().count() > LONGEST {
        return Err(Error::input("note", format!("expected at most {LONGEST} characters")));
    }
    Ok(note)
}
