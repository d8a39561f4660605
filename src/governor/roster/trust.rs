//! Trust as the governor keeps it: its changes, and their entries in the log.

use std::sync::Arc;

use crate::governor::keys::{self, Keyed as _};
use crate::governor::roster::agents::state_of;
use crate::governor::states::{self, checked_note};
use crate::governor::{Inner, Roster, checked_agent_id, conflict};
use crate::model::{
    AgentId, AgentInfo, AgentProfile, Error, Outcome, ProofId, RiskLevel, Score, Sequence, Timestamp, TrustCause,
    TrustEntry, TrustPage, TrustSnapshot,
};
use crate::proof::{ChangeDraft, ProofQuery, StateDraft, TrustMove};
use crate::trust::{AgentCell, AgentRecord, Facts, TrustModel, TrustState};

/// The trust of a governor's agents, see [`Governor::trust`](crate::Governor::trust).
#[derive(Debug, Clone, Copy)]
pub struct Trust<'a> {
    pub(crate) inner: &'a Arc<Inner>,
}

impl Trust<'_> {
    /// Lists the changes of an agent's trust, newest first. `page` counts from 1, `page_size` is at most 200.
    ///
    /// Pages are found by walking back from the newest change, so a late page costs more.
    ///
    /// ```
    /// use rulekeep::trust::TrustCause;
    /// use rulekeep::{Agent, Governor, Tier};
    ///
    /// let governor = Governor::builder().open_in_memory()?;
    /// let agent = governor.agents().register(Agent::new("support-1").at_tier(Tier::T3))?;
    /// governor.trust().adjust("support-1", 300_u64.try_into()?, "an incident is looked into")?;
    /// let history = governor.trust().history("support-1", 1, 50)?;
    /// assert_eq!(history.items[0].cause, TrustCause::Adjusted);
    /// assert_eq!(history.items[0].change.from, agent.trust.score);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::AgentNotFound`]; [`Error::InvalidQuery`], which names the parameter; [`Error::StorageUnavailable`] or
    /// [`Error::ChainBroken`] when the log cannot be read. Archived changes are counted but not listed.
    pub fn history(self, agent_id: &str, page: u64, page_size: u64) -> Result<TrustPage, Error> {
        ProofQuery::all().page(page).page_size(page_size).checked()?;
        let cell = self.inner.here()?.roster.registered(&checked_agent_id(agent_id)?)?;
        let (agent_id, trust) = {
            let agent = cell.read();
            (agent.agent_id.clone(), agent.trust)
        };
        let total = u64::from(trust.changes);
        let skip = (page - 1).saturating_mul(page_size);
        let mut items = Vec::new();
        let (mut next, mut place) = (trust.last, 0);
        while let Some(sequence) = next.filter(|_| place < skip.saturating_add(page_size)) {
            // An entry that is archived, or in the log that this one replaced, ends the walk.
            let Some(moved) = self.inner.base.log.trust_move(&agent_id, sequence)? else { break };
            next = moved.trust.previous.filter(|previous| *previous < sequence);
            if place >= skip {
                let mut entry = TrustEntry::new(moved.timestamp, moved.trust.change, moved.trust.cause);
                (entry.proof_id, entry.note) = (moved.proof_id, moved.note);
                items.push(entry);
            }
            place += 1;
        }
        Ok(TrustPage::new(items, total, page, page_size))
    }

    /// Sets an agent's score, up to its ceiling; the daily cap on gains does not apply. `note` says why and is stored.
    ///
    /// # Errors
    ///
    /// [`Error::AgentNotFound`]; [`Error::Conflict`] above the agent's ceiling; [`Error::InvalidInput`] for an empty
    /// note or one of more than 4,096 characters; [`Error::StorageUnavailable`] or [`Error::ChainBroken`] when it
    /// cannot be recorded.
    pub fn adjust(self, agent_id: &str, score: Score, note: &str) -> Result<AgentInfo, Error> {
        let note = &reason(note, "the new score")?;
        self.inner.here()?.base.log.wait_verified()?;
        let cell = self.inner.roster.registered(&checked_agent_id(agent_id)?)?;
        let now = self.inner.base.clock.now();
        let mut agent = cell.write();
        if let Some(ceiling) = self.inner.roster.ceiling_of(agent.profile()).filter(|ceiling| score > *ceiling) {
            let whose = ceiling_text(agent.profile(), ceiling);
            let message = format!("agent {}: expected at most {ceiling}, {whose}; change that first", agent.agent_id);
            return Err(Error::Conflict { message });
        }
        let next = self.inner.roster.trust_model.adjusted(&agent.trust, score, self.inner.roster.bearing(&agent, now));
        let sequence =
            self.inner.roster.order_move(&mut agent, next, Moved::by(TrustCause::Adjusted, now), note, now)?;
        let info = self.inner.roster.info(&agent, now);
        self.inner.roster.stops.interventions().note(&crate::model::KillSwitchScope::Agent(agent.agent_id.clone()));
        drop(agent);
        self.inner.base.log.settle(sequence)?;
        Ok(info)
    }

    /// Corrects a reported SUCCESS that turned out to be a failure: subtracts the most it can have gained, and the loss
    /// of a failure. The record keeps its reported outcome. A second call with the same note changes nothing.
    ///
    /// # Errors
    ///
    /// [`Error::ProofNotFound`]; [`Error::Conflict`] when the outcome is not SUCCESS, or was corrected with another
    /// note; [`Error::InvalidInput`] for an empty note or one of more than 4,096 characters;
    /// [`Error::StorageUnavailable`] or [`Error::ChainBroken`] when it cannot be recorded.
    pub fn correct(self, proof_id: &ProofId, note: &str) -> Result<TrustSnapshot, Error> {
        let note = &reason(note, "the correction")?;
        self.inner.here()?.base.log.wait_verified()?;
        let record = self.inner.base.log.record(proof_id)?;
        if record.outcome != Some(Outcome::Success) {
            let found = record.outcome.map_or("none".to_owned(), |outcome| outcome.to_string());
            return conflict(format!("{proof_id} has the outcome {found}; expected SUCCESS"));
        }
        let cell = self.inner.roster.registered(&record.entity_id)?;
        let cause = format!("{proof_id}: {note}");
        // INVARIANT: the outcome is in the index, so only another caller of `correct` can hold the reservation. The
        // corrections found here stay current until this one is enqueued.
        let _reserved = self.inner.base.log.queue().reserve(proof_id.sequence());
        // Searched before the agent is locked, so that its decisions do not wait.
        let last = cell.read().trust.last;
        if let Some(standing) = self.inner.roster.correction_of(proof_id, &record.entity_id, last)? {
            if standing != cause {
                let message = format!("{proof_id} was corrected already; the first correction stands");
                return Err(Error::Conflict { message });
            }
            return Ok(self.inner.roster.trust_of(&cell.read(), self.inner.base.clock.now()));
        }
        // INVARIANT: entries are archived in order, so a record that is still in the log has its correction after it
        // there.
        let facts = self.inner.base.log.facts(proof_id)?;
        let now = self.inner.base.clock.now();
        let mut agent = cell.write();
        let gained = self.inner.roster.trust_model.most_gained(facts.earns);
        let next = self.inner.roster.trust_model.corrected(
            &agent.trust,
            facts.risk,
            gained,
            self.inner.roster.bearing(&agent, now),
        );
        let moved = Moved { cause: TrustCause::Correction, risk: Some(facts.risk), gained: Some(gained), at: now };
        let sequence = self.inner.roster.order_move(&mut agent, next, moved, &cause, now)?;
        let trust = self.inner.roster.trust_of(&agent, now);
        drop(agent);
        self.inner.base.log.settle(sequence)?;
        Ok(trust)
    }
}

impl Roster {
    /// The text of a record's correction, searched among the agent's trust changes from `last` back to the record.
    fn correction_of(
        &self,
        proof_id: &ProofId,
        agent: &AgentId,
        last: Option<Sequence>,
    ) -> Result<Option<String>, Error> {
        let start = format!("{proof_id}: ");
        let mut next = last;
        while let Some(sequence) = next.filter(|sequence| *sequence > proof_id.sequence()) {
            let Some(moved) = self.base.log.trust_move(agent, sequence)? else { break };
            if moved.trust.cause == TrustCause::Correction {
                let note = moved.note.filter(|note| note.starts_with(&start));
                if note.is_some() {
                    return Ok(note);
                }
            }
            next = moved.trust.previous.filter(|previous| *previous < sequence);
        }
        Ok(None)
    }

    /// An agent's current trust.
    pub(crate) fn trust_of(&self, agent: &AgentRecord, now: Timestamp) -> TrustSnapshot {
        self.trust_model.snapshot(&agent.trust, self.bearing(agent, now))
    }

    /// The other inputs of an agent's trust: its ceiling and the time.
    pub(crate) fn bearing(&self, agent: &AgentRecord, now: Timestamp) -> Facts {
        Facts { ceiling: self.ceiling_of(agent.profile()), now }
    }

    /// The highest score an agent can have: the lower of its own ceiling and its observability's.
    pub(crate) fn ceiling_of(&self, profile: &AgentProfile) -> Option<Score> {
        let observable = profile.observability.map(|observability| self.trust_model.ceiling_of(observability));
        match (profile.ceiling, observable) {
            (Some(own), Some(observable)) => Some(own.min(observable)),
            (own, observable) => own.or(observable),
        }
    }

    /// Restarts gains, idle time and probation at `now` for every agent for whom they count from a later time.
    pub(crate) fn restart_trust(&self, now: Timestamp) -> Result<(), Error> {
        for cell in self.ledger.all_to_come() {
            let mut agent = cell.write();
            let next = self.trust_model.restarted(&agent.trust, self.bearing(&agent, now));
            if next != agent.trust {
                self.order_move(&mut agent, next, Moved::by(TrustCause::Clock, now), "the clock was confirmed", now)?;
            }
        }
        Ok(())
    }

    /// Enqueues the score lost through idle time, if any, so that the history has no gap. The caller holds the agent's
    /// lock.
    pub(crate) fn settle_idleness(&self, agent: &mut AgentRecord, now: Timestamp) -> Result<(), Error> {
        let next = self.trust_model.settled(&agent.trust, now);
        if agent.trust.change_to(&next).is_none() {
            return Ok(());
        }
        let (changed, trust) = agent.moved(next, Moved::by(TrustCause::Idle, now));
        self.put_in_order(agent, changed, trust, "idle", now).map(drop)
    }

    /// Enqueues a change of trust that no outcome caused; losses through idle time get an entry of their own before it.
    fn order_move(
        &self,
        agent: &mut AgentRecord,
        next: TrustState,
        how: Moved,
        note: &str,
        now: Timestamp,
    ) -> Result<Sequence, Error> {
        self.settle_idleness(agent, now)?;
        let next = next.with_history_of(&agent.trust);
        let (changed, trust) = agent.moved(next, how);
        self.put_in_order(agent, changed, trust, note, now)
    }

    fn put_in_order(
        &self,
        agent: &mut AgentRecord,
        changed: AgentRecord,
        trust: Option<TrustMove>,
        cause: &str,
        now: Timestamp,
    ) -> Result<Sequence, Error> {
        let trust = trust.map(|trust| (agent.agent_id.clone(), trust));
        let change = ChangeDraft { state: state_of(&changed)?, cause: cause.to_owned(), trust };
        let sequence = self.base.log.queue().change(now, change)?;
        *agent = changed.placed_at(sequence);
        Ok(sequence)
    }

    /// Counts a denial by the policies and applies the loss of a streak of denials. The caller must not hold the
    /// agent's lock.
    pub(crate) fn count_denial(&self, cell: &AgentCell, agent: &AgentId, risk: RiskLevel, now: Timestamp) {
        // Nothing is recorded on a log that is not verified yet.
        if !self.base.log.is_verified() {
            return;
        }
        let Some(risk) = self.denials.count(&self.trust_model, agent, risk, now) else { return };
        let mut agent = cell.write();
        let next = self.trust_model.after_denials(&agent.trust, risk, self.bearing(&agent, now));
        let moved = Moved { cause: TrustCause::Denials, risk: Some(risk), gained: None, at: now };
        // The denials are in the log. If it accepts no more entries, no more decisions are made either.
        let _ = self.order_move(&mut agent, next, moved, "denied again and again", now);
    }

    /// Records the trust model in force if it has changed.
    pub(crate) fn record_trust_model(&self, recorded: Option<&[u8]>) -> Result<(), Error> {
        let state = states::draft(keys::Model::PREFIX, &self.trust_model)?;
        // Without an entry in the log the default model applies.
        let is_same = match recorded {
            Some(recorded) => recorded == state.value.as_bytes(),
            None => self.trust_model == TrustModel::default(),
        };
        if is_same {
            return Ok(());
        }
        let sequence = self.base.set_state(state, "in force from here on")?;
        self.base.log.settle(sequence)
    }
}

impl AgentRecord {
    /// The agent with its trust advanced to `next`, and the change to record, if there is one.
    /// [`Self::placed_at`] adds the entry's position once it is known.
    pub(crate) fn moved(&self, next: TrustState, how: Moved) -> (Self, Option<TrustMove>) {
        // A correction is recorded even if it changes nothing, because later ones search for it. So are an adjustment
        // to the current score, and a clock that stepped back, because idle time counts from there.
        let change = match how.cause {
            TrustCause::Correction | TrustCause::Adjusted | TrustCause::Clock => Some(self.trust.way_to(&next)),
            _ => self.trust.change_to(&next),
        };
        let mut changed = Self { trust: next, ..self.clone() };
        if change.is_some() {
            changed.trust = changed.trust.noted(StateDraft::OWN_PLACE);
        }
        let Moved { cause, risk, gained, at } = how;
        let previous = self.trust.last;
        let moved = change.map(|change| TrustMove { change, cause, risk, gained, at, previous });
        (changed, moved)
    }

    /// Sets the position of the record's last change once its entry has one.
    pub(crate) fn placed_at(mut self, sequence: Sequence) -> Self {
        if self.trust.last == Some(StateDraft::OWN_PLACE) {
            self.trust.last = Some(sequence);
        }
        self
    }
}

/// Validates a note that must not be blank.
fn reason(note: &str, what: &str) -> Result<String, Error> {
    if note.trim().is_empty() {
        return Err(Error::input("note", format!("expected the reason for {what}")));
    }
    checked_note(note)
}

/// Describes where the ceiling in force comes from.
pub(crate) fn ceiling_text(profile: &AgentProfile, ceiling: Score) -> String {
    match profile.observability {
        Some(observability) if profile.ceiling != Some(ceiling) => {
            format!("the ceiling for its observability {observability}")
        }
        _ => "the agent's ceiling".to_owned(),
    }
}

/// The cause of a trust change, and what recomputing it requires.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moved {
    pub(crate) cause: TrustCause,
    /// The risk level that the size of the change depends on.
    pub(crate) risk: Option<RiskLevel>,
    /// The gain that is taken back.
    pub(crate) gained: Option<u16>,
    pub(crate) at: Timestamp,
}

impl Moved {
    pub(crate) const fn by(cause: TrustCause, at: Timestamp) -> Self {
        Self { cause, risk: None, gained: None, at }
    }
}
