//! What is asked of a log: records, evidence, queries, statistics, and whether all of it holds.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use serde::Deserialize;

use super::ProofLog;
use crate::model::{
    AgentId, Decision, Error, Outcome, Period, ProofId, ProofRecord, ProofStats, RiskLevel, Sequence, Timestamp,
};
use crate::proof::draft::Draft;
use crate::proof::entry::{NewState, OutcomeEntry, StateEntry};
use crate::proof::erase::Kept;
use crate::proof::evidence::{self, Evidence};
use crate::proof::index::{Filter, Index, Sums};
use crate::proof::moves::{MovedTrust, Steps, TrustStep};
use crate::proof::past::{Past, PastDecision, PastRange};
use crate::proof::query::{checked_entity, checked_period};
use crate::proof::recent::NotRecent;
use crate::proof::record::CanonicalRecord;
use crate::store::{Frame, Kind, Position, ViewError};

/// What an outcome needs to know of its decision.
#[derive(Debug, Clone)]
pub(crate) struct DecisionFacts {
    pub(crate) entity: AgentId,
    pub(crate) decision: Decision,
    pub(crate) risk: RiskLevel,
    /// What a success of it can be earned on.
    pub(crate) earns: RiskLevel,
}

/// The part of the evidence that an outcome needs.
#[derive(Deserialize)]
struct Earned {
    earns: RiskLevel,
}

impl ProofLog {
    /// What an outcome needs to know of its decision.
    pub(crate) fn facts(&self, proof_id: &ProofId) -> Result<DecisionFacts, Error> {
        self.check_open()?;
        let pending = self.shared.intake.pending(proof_id.sequence(), |pending| match &pending.draft {
            Draft::Decision { id, draft } if id == proof_id => Some(DecisionFacts {
                entity: draft.entity.clone(),
                decision: draft.decision,
                risk: draft.risk,
                earns: draft.earns,
            }),
            _ => None,
        });
        let recent = match pending {
            Some(facts) => return facts.ok_or_else(|| self.shared.not_found(proof_id)),
            None => self.shared.recent.facts(proof_id),
        };
        match recent {
            Some(facts) => Ok(facts),
            None => self.stored(proof_id, |frame| {
                let fields = CanonicalRecord::read(frame.body).ok();
                fields.filter(|fields| fields.id == *proof_id).map(|fields| DecisionFacts {
                    entity: fields.entity_id,
                    decision: fields.decision,
                    risk: fields.risk_level,
                    // What is not known is worth the least.
                    earns: evidence::detail::<Earned>(frame.evidence).map_or(RiskLevel::Low, |detail| detail.earns),
                })
            }),
        }
    }

    /// The value of a state as the entry at that place has it.
    pub(crate) fn state_at(&self, sequence: Sequence, key: &str) -> Result<Vec<u8>, Error> {
        self.catch_up()?;
        let bytes = self.shared.reader.read(sequence).map_err(|error| read_error(&error))?;
        let value = |state: &NewState<'_>| (state.key == key).then(|| state.value.get().as_bytes().to_vec());
        bytes
            .as_deref()
            .and_then(|bytes| Frame::decode(bytes).ok())
            .and_then(|frame| match frame.kind {
                Kind::State => value(&serde_json::from_slice::<StateEntry<'_>>(frame.body).ok()?.state),
                Kind::Outcome => {
                    let entry = serde_json::from_slice::<OutcomeEntry<'_>>(frame.body).ok()?;
                    entry.state.iter().chain(&entry.asked).find_map(value)
                }
                _ => None,
            })
            .ok_or_else(|| Error::ChainBroken {
                message: format!("entry {sequence} does not have the state {key:?}; verify the log"),
            })
    }

    /// A record by its id, with its outcome.
    pub(crate) fn record(&self, proof_id: &ProofId) -> Result<ProofRecord, Error> {
        self.catch_up()?;
        let mut record = self.stored(proof_id, |frame| {
            let fields = CanonicalRecord::read(frame.body).ok()?;
            (fields.id == *proof_id).then(|| fields.into_record(frame.digest(), None))
        })?;
        record.outcome = self.outcome_of(&record.entity_id, proof_id.sequence())?;
        Ok(record)
    }

    /// The evidence beside a record.
    pub(crate) fn evidence(&self, proof_id: &ProofId) -> Result<Evidence, Error> {
        self.catch_up()?;
        self.evidence_so_far(proof_id)
    }

    /// The same, without waiting for more to be written than that record: what is put in order only now may be missing.
    pub(crate) fn evidence_so_far(&self, proof_id: &ProofId) -> Result<Evidence, Error> {
        match self.kept_so_far(proof_id)? {
            Kept::Evidence(evidence) => Ok(*evidence),
            Kept::Erased => Err(Error::EvidenceErased { proof_id: proof_id.to_string() }),
            Kept::Unreadable => Err(Error::ChainBroken {
                message: format!("the evidence of {proof_id} is not what was kept; verify the log"),
            }),
        }
    }

    /// What stands beside a record, as far as [`ProofLog::evidence_so_far`] waits for it.
    pub(crate) fn kept_so_far(&self, proof_id: &ProofId) -> Result<Kept, Error> {
        if !self.shared.progress.has_applied(proof_id.sequence().get() + 1) {
            self.catch_up()?;
        }
        self.check_open()?;
        self.stored(proof_id, |frame| {
            let fields = CanonicalRecord::read(frame.body).ok()?;
            (fields.id == *proof_id).then(|| self.shared.erasures.look(&fields, frame.evidence))
        })
    }

    /// The change of an agent's trust that the entry at a place tells; none where it left, or is another.
    pub(crate) fn trust_move(&self, agent: &AgentId, sequence: Sequence) -> Result<Option<MovedTrust>, Error> {
        self.catch_up()?;
        let bytes = self.shared.reader.read(sequence).map_err(|error| read_error(&error))?;
        let frame = bytes.as_deref().and_then(|bytes| Frame::decode(bytes).ok());
        Ok(frame.filter(|frame| frame.sequence == sequence).and_then(|frame| MovedTrust::of(agent, &frame)))
    }

    /// Hands every entry on that bears on trust, the oldest first.
    pub(crate) fn each_trust_step(&self, each: &mut dyn FnMut(&TrustStep<'_>)) -> Result<(), Error> {
        self.catch_up()?;
        let until: Position = self.shared.index().totals().applied;
        let found = self.shared.reader.verify(&mut Steps { each }, until).map_err(|error| read_error(&error))?;
        match self.shared.note_breakage(found) {
            Some(breakage) => Err(Error::ChainBroken { message: breakage.to_string() }),
            None => Ok(()),
        }
    }

    /// Hands every decision of a range on, the oldest first, until `each` fails.
    pub(crate) fn each_past(
        &self,
        range: &PastRange,
        each: &mut dyn FnMut(PastDecision) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.catch_up()?;
        let until: Position = self.shared.index().totals().applied;
        let mut past = Past { range, erasures: &self.shared.erasures, each, stopped: None };
        let found = self.shared.reader.verify(&mut past, until).map_err(|error| read_error(&error))?;
        let stopped = past.stopped.take();
        if let Some(breakage) = self.shared.note_breakage(found) {
            return Err(Error::ChainBroken { message: breakage.to_string() });
        }
        stopped.map_or(Ok(()), Err)
    }

    /// Statistics over an entity's records in a period.
    pub(crate) fn stats(&self, entity_id: &str, period: Period) -> Result<ProofStats, Error> {
        let entity = checked_entity(entity_id)?;
        let filter: Filter = checked_period(period.from, period.to)?;
        self.catch_up()?;
        let (tally, ends) = self.with_index(|index| index.tally(&entity, &filter))?;
        let ends = ends.map(|(first, last)| (Timestamp::from_millis(first), Timestamp::from_millis(last)));
        let period = match ends {
            Some((first, last)) => Period::new(period.from.or(Some(first)), period.to.or(Some(last))),
            None => Period::default(),
        };
        Ok(stats_of(entity, &tally, period, self.integrity()))
    }

    pub(super) fn integrity(&self) -> bool {
        self.shared.first_breakage().is_none()
    }

    pub(super) fn outcome_of(&self, entity: &AgentId, sequence: Sequence) -> Result<Option<Outcome>, Error> {
        match self.shared.recent.outcome(sequence) {
            Ok(outcome) => Ok(outcome),
            Err(NotRecent) => self.with_index(|index| index.outcome_of(entity, sequence)),
        }
    }

    /// Asks the index; when the view fails, it is rebuilt and asked once more.
    pub(super) fn with_index<T>(&self, ask: impl Fn(&Index) -> Result<T, ViewError>) -> Result<T, Error> {
        let first = ask(&self.shared.index());
        if let Ok(answer) = first {
            return Ok(answer);
        }
        let mut index = self.shared.index.write().unwrap_or_else(PoisonError::into_inner);
        self.shared.rebuild(&mut index);
        if self.shared.index_incomplete.load(Ordering::Relaxed) {
            return Err(Error::storage("the view failed and the journal cannot be read"));
        }
        ask(&index).map_err(|error| Error::storage(format!("the view cannot be rebuilt: {error}")))
    }

    pub(super) fn record_at(&self, sequence: Sequence, outcome: Option<Outcome>) -> Result<ProofRecord, Error> {
        let bytes = self.shared.reader.read(sequence).map_err(|error| read_error(&error))?;
        let record = bytes.as_deref().and_then(|bytes| {
            let frame = Frame::decode(bytes).ok().filter(|frame| frame.sequence == sequence)?;
            Some(CanonicalRecord::read(frame.body).ok()?.into_record(frame.digest(), outcome))
        });
        // Archived behind the index's back.
        if record.is_none() && sequence.get() < self.shared.reader.start().entries {
            let past = self.shared.past.read().unwrap_or_else(PoisonError::into_inner);
            return Err(Error::Conflict { message: past.archive_of(sequence.get()) });
        }
        record.ok_or_else(|| Error::ChainBroken { message: format!("entry {sequence} cannot be read; verify the log") })
    }

    /// Looks into the stored entry of a proof id.
    fn stored<T>(&self, proof_id: &ProofId, look: impl FnOnce(&Frame<'_>) -> Option<T>) -> Result<T, Error> {
        let bytes = self.shared.reader.read(proof_id.sequence()).map_err(|error| read_error(&error))?;
        let frame = bytes.as_deref().and_then(|bytes| Frame::decode(bytes).ok());
        frame
            .filter(|frame| frame.kind == Kind::Decision && frame.sequence == proof_id.sequence())
            .and_then(|frame| look(&frame))
            .ok_or_else(|| self.shared.not_found(proof_id))
    }
}

fn stats_of(entity_id: AgentId, tally: &Sums, period: Period, chain_integrity: bool) -> ProofStats {
    let reported: u64 = Outcome::ALL.iter().map(|outcome| tally.with_outcome(*outcome)).sum();
    ProofStats::new(
        entity_id,
        tally.total(),
        ratio(tally.with_outcome(Outcome::Success), reported),
        ratio(tally.score_sum(), tally.total()),
        chain_integrity,
        Decision::ALL.iter().map(|decision| (*decision, tally.with_decision(*decision))).collect(),
        RiskLevel::ALL.iter().map(|risk| (*risk, tally.with_risk(*risk))).collect(),
        period,
    )
}

/// A quotient, 0 when there is nothing to divide by. Counts stay far below 2^53.
#[allow(clippy::cast_precision_loss)]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

pub(super) fn read_error(error: &std::io::Error) -> Error {
    Error::storage(format!("cannot read the journal: {error}"))
}
