//! What callers put in order: each gets its place and a time that never runs backwards.

use super::{Intake, Refusal, State};
use crate::model::{Alert, Decision, Error, Outcome, ProofId, RiskLevel, Sequence, Timestamp};
use crate::proof::draft::{ArchiveDraft, ChangeDraft, DecisionDraft, Draft, OutcomeDraft, Pending};
use crate::proof::durability::Durability;
use crate::proof::erase::Erasure;
use crate::proof::log::Committed;

/// What became of an outcome that was to be put in order.
pub(in crate::proof) enum OutcomeSlot {
    Ordered(Sequence),
    /// One stands already.
    Standing(Outcome),
    /// Some outcome reached the index meanwhile; it may be this record's.
    LookAgain,
}

/// What became of a decision that was to be put in order.
#[derive(Debug)]
pub(in crate::proof) enum DecisionSlot {
    Ordered {
        id: ProofId,
        last: Sequence,
        at: Timestamp,
    },
    /// A stop came meanwhile: whether it covers this one is to be looked at.
    LookAgain,
    /// What it answers has an outcome already.
    Standing(Outcome),
}

impl DecisionSlot {
    pub(in crate::proof) fn committed(self, risk: RiskLevel) -> Result<Option<Committed>, Error> {
        match self {
            Self::Ordered { id, last, at } => Ok(Some(Committed { proof_id: id, sequence: last, at, risk })),
            Self::LookAgain => Ok(None),
            Self::Standing(standing) => {
                let message = format!("the record that asks has the outcome {standing} already; the first one stands");
                Err(Error::Conflict { message })
            }
        }
    }
}

impl Intake {
    /// Puts a decision in order, which was made knowing of all stops up to `epoch`.
    pub(in crate::proof) fn decision(
        &self,
        now: Timestamp,
        draft: DecisionDraft,
        epoch: u64,
    ) -> Result<DecisionSlot, Error> {
        let mut state = self.with_room()?;
        if state.epoch != epoch && draft.decision != Decision::Deny {
            return Ok(DecisionSlot::LookAgain);
        }
        let (id, last, at) = self.number_decision(&mut state, now, draft);
        Ok(DecisionSlot::Ordered { id, last, at })
    }

    /// Puts a decision that asks for a person in order, and before it the state that says so: nothing comes between.
    pub(in crate::proof) fn question(
        &self,
        now: Timestamp,
        draft: DecisionDraft,
        epoch: u64,
        asked: impl FnOnce(ProofId) -> ChangeDraft,
    ) -> Result<DecisionSlot, Error> {
        let mut state = self.with_room()?;
        if state.epoch != epoch {
            return Ok(DecisionSlot::LookAgain);
        }
        let at = state.last_time.max(now);
        let id = ProofId::new(at, draft.random, Sequence::new(state.next + 1));
        let mut change = asked(id);
        let is_awaited = self.durability.awaits(draft.risk);
        let (sequence, at) = state.number(now);
        change.state.stand_at(sequence);
        self.push(&mut state, Pending { sequence, at, draft: Draft::State(Box::new(change)) }, is_awaited);
        let (id, last, at) = self.number_decision(&mut state, now, draft);
        Ok(DecisionSlot::Ordered { id, last, at })
    }

    /// Puts the decision that answers a question in order, and behind it the outcome of the record that asked: nothing
    /// comes between. The caller has looked into the index at `version` and found no outcome.
    pub(in crate::proof) fn answer(
        &self,
        now: Timestamp,
        draft: DecisionDraft,
        epoch: u64,
        version: u64,
        outcome: impl FnOnce(ProofId) -> OutcomeDraft,
    ) -> Result<DecisionSlot, Error> {
        let mut state = self.with_room()?;
        if (state.epoch != epoch && draft.decision != Decision::Deny) || state.claims_version != version {
            return Ok(DecisionSlot::LookAgain);
        }
        let asked = draft.resolves.map(|asked| asked.sequence());
        if let Some(standing) = asked.and_then(|asked| state.claims.get(&asked)) {
            return Ok(DecisionSlot::Standing(*standing));
        }
        let at = state.last_time.max(now);
        let mut outcome = outcome(ProofId::new(at, draft.random, Sequence::new(state.next)));
        let is_awaited = self.durability.awaits(draft.risk);
        let (id, _, at) = self.number_decision(&mut state, now, draft);
        let (last, _) = state.number(now);
        for state in outcome.state.iter_mut().chain(&mut outcome.asked) {
            state.stand_at(last);
        }
        state.claims.insert(outcome.proof_id.sequence(), outcome.outcome);
        self.push(&mut state, Pending { sequence: last, at, draft: Draft::Outcome(outcome) }, is_awaited);
        Ok(DecisionSlot::Ordered { id, last, at })
    }

    fn number_decision(
        &self,
        state: &mut State,
        now: Timestamp,
        draft: DecisionDraft,
    ) -> (ProofId, Sequence, Timestamp) {
        let (sequence, at) = state.number(now);
        let id = ProofId::new(at, draft.random, sequence);
        let is_awaited = self.durability.awaits(draft.risk);
        self.push(state, Pending { sequence, at, draft: Draft::Decision { id, draft } }, is_awaited);
        (id, sequence, at)
    }

    /// Has every decision that does not know of this epoch looked at again, unless it is a denial, whatever becomes of
    /// the change of state that says who must not act. That one needs no room.
    pub(in crate::proof) fn stop(&self, now: Timestamp, epoch: u64, change: ChangeDraft) -> Result<Sequence, Error> {
        let mut state = self.lock();
        state.epoch = state.epoch.max(epoch);
        if let Some(refusal) = &state.closed {
            return Err(refusal.error());
        }
        Ok(self.push_change(&mut state, now, change))
    }

    /// How often outcomes have moved from here to the index: read before the
    /// index is asked for an outcome, and given to [`Intake::outcome`] then.
    pub(in crate::proof) fn claims_version(&self) -> u64 {
        self.lock().claims_version
    }

    /// Puts an outcome in order, unless one for the same record is on its way.
    /// The caller has looked into the index at `version` and found none.
    pub(in crate::proof) fn outcome(
        &self,
        now: Timestamp,
        mut draft: OutcomeDraft,
        version: u64,
    ) -> Result<OutcomeSlot, Error> {
        let mut state = self.with_room()?;
        let record = draft.proof_id.sequence();
        if let Some(standing) = state.claims.get(&record) {
            return Ok(OutcomeSlot::Standing(*standing));
        }
        // INVARIANT: a claim is dropped only once the index has the outcome, so an unchanged version and no claim
        // mean that there is none.
        if state.claims_version != version {
            return Ok(OutcomeSlot::LookAgain);
        }
        state.claims.insert(record, draft.outcome);
        let (sequence, at) = state.number(now);
        if let Some(state) = &mut draft.state {
            state.stand_at(sequence);
        }
        self.push(
            &mut state,
            Pending { sequence, at, draft: Draft::Outcome(draft) },
            self.durability == Durability::Sync,
        );
        Ok(OutcomeSlot::Ordered(sequence))
    }

    /// Puts a change of state in order that lets somebody act; none where a stop came that it does not know of.
    pub(in crate::proof) fn state_unless_stopped(
        &self,
        now: Timestamp,
        change: ChangeDraft,
        epoch: u64,
    ) -> Result<Option<Sequence>, Error> {
        let mut queue = self.with_room()?;
        if queue.epoch != epoch {
            return Ok(None);
        }
        Ok(Some(self.push_change(&mut queue, now, change)))
    }

    /// Puts a change of state in order.
    pub(in crate::proof) fn state(&self, now: Timestamp, change: ChangeDraft) -> Result<Sequence, Error> {
        let mut queue = self.with_room()?;
        Ok(self.push_change(&mut queue, now, change))
    }

    fn push_change(&self, queue: &mut State, now: Timestamp, mut change: ChangeDraft) -> Sequence {
        let (sequence, at) = queue.number(now);
        change.state.stand_at(sequence);
        let draft = Draft::State(Box::new(change));
        self.push(queue, Pending { sequence, at, draft }, self.durability.awaits_changes());
        sequence
    }

    /// Puts an alert in order; `up_to` is the entry that made whoever follows the log raise it.
    pub(in crate::proof) fn alert(
        &self,
        now: Timestamp,
        alert: Alert,
        up_to: Option<Sequence>,
    ) -> Result<Sequence, Error> {
        let mut queue = self.with_room()?;
        let (sequence, at) = queue.number(now);
        let draft = Draft::Alert { alert: Box::new(alert), up_to };
        self.push(&mut queue, Pending { sequence, at, draft }, false);
        Ok(sequence)
    }

    /// Puts a change of state in order that nobody waits for.
    pub(in crate::proof) fn note(&self, now: Timestamp, change: ChangeDraft) -> Result<Sequence, Error> {
        let mut queue = self.with_room()?;
        let (sequence, at) = queue.number(now);
        self.push(&mut queue, Pending { sequence, at, draft: Draft::State(Box::new(change)) }, false);
        Ok(sequence)
    }

    /// Puts an erasure in order.
    pub(in crate::proof) fn erasure(&self, now: Timestamp, erasure: Erasure, cause: String) -> Result<Sequence, Error> {
        let mut queue = self.with_room()?;
        let (sequence, at) = queue.number(now);
        self.push(&mut queue, Pending { sequence, at, draft: Draft::Erasure { erasure, cause } }, true);
        Ok(sequence)
    }

    /// Puts the end of the log in order: nothing is taken in behind it. Hands out its place and its time.
    pub(in crate::proof) fn freeze(
        &self,
        now: Timestamp,
        cause: String,
        message: impl FnOnce(Timestamp) -> String,
    ) -> Result<(Sequence, Timestamp), Error> {
        let mut state = self.with_room()?;
        let (sequence, at) = state.number(now);
        self.push(&mut state, Pending { sequence, at, draft: Draft::Freeze { cause } }, false);
        state.closed = Some(Refusal::Frozen(message(at)));
        drop(state);
        self.work.notify_one();
        self.room.notify_all();
        Ok((sequence, at))
    }

    /// Puts the note of an archive in order.
    pub(in crate::proof) fn archive(
        &self,
        now: Timestamp,
        draft: ArchiveDraft,
    ) -> Result<(Sequence, Timestamp), Error> {
        let mut queue = self.with_room()?;
        let (sequence, at) = queue.number(now);
        self.push(&mut queue, Pending { sequence, at, draft: Draft::Archive(Box::new(draft)) }, false);
        queue.hurry = true;
        self.work.notify_one();
        Ok((sequence, at))
    }

    fn push(&self, state: &mut State, pending: Pending, is_awaited: bool) {
        let was_half_full = self.is_half_full(state);
        state.weight += pending.weight();
        state.queue.push(pending);
        // One wake for a batch: the writer gathers by itself from then on, and is called when it should stop gathering.
        // Who waits for its entry asks for it to be written in a moment.
        let is_first = state.queue.len() == 1 && !is_awaited;
        if is_first || (!was_half_full && self.is_half_full(state)) {
            self.work.notify_one();
        }
    }
}

impl State {
    /// The next place and a time that never runs backwards.
    fn number(&mut self, now: Timestamp) -> (Sequence, Timestamp) {
        let sequence = Sequence::new(self.next);
        self.next += 1;
        self.last_time = self.last_time.max(now);
        (sequence, self.last_time)
    }
}
