//! Reading from a log: records, evidence, queries and statistics.

use serde::Deserialize;

use super::ProofLog;
use crate::follow::moves::{MovedTrust, Steps, TrustStep};
use crate::follow::past::{Past, PastDecision, PastRange};
use crate::index::recent::DecisionFacts;
use crate::index::{Filter, Sums};
use crate::journal::entry::Entry;
use crate::journal::erase::Kept;
use crate::journal::evidence::{self, Evidence};
use crate::journal::read_error;
use crate::journal::record::CanonicalRecord;
use crate::query::{checked_entity, checked_period};
use crate::queue::Draft;
use crate::store::Visitor;
use rulekeep_types::{
    AgentId, Decision, Error, Outcome, Period, ProofId, ProofRecord, ProofStats, RiskLevel, Sequence, Timestamp,
};

/// The part of the evidence that an outcome needs.
#[derive(Deserialize)]
struct Earned {
    earns: RiskLevel,
}

impl ProofLog {
    /// Returns the properties of a decision that its outcome needs.
    pub fn facts(&self, proof_id: &ProofId) -> Result<DecisionFacts, Error> {
        self.parts.index.check_open()?;
        let pending = self.parts.queue.pending(proof_id.sequence(), |pending| match &pending.draft {
            Draft::Decision { id, draft } if id == proof_id => Some(DecisionFacts {
                entity: draft.entity.clone(),
                decision: draft.decision,
                risk: draft.risk,
                earns: draft.earns,
            }),
            _ => None,
        });
        let recent = match pending {
            Some(facts) => return facts.ok_or_else(|| self.parts.journal.not_found(proof_id)),
            None => self.parts.index.recent.facts(proof_id),
        };
        match recent {
            Some(facts) => Ok(facts),
            None => self.parts.journal.look_at_record(proof_id, |frame| {
                let fields = CanonicalRecord::read(frame.body).ok();
                fields.filter(|fields| fields.id == *proof_id).map(|fields| DecisionFacts {
                    entity: fields.entity_id,
                    decision: fields.decision,
                    risk: fields.risk_level,
                    // An unknown value earns the least.
                    earns: evidence::detail::<Earned>(frame.evidence).map_or(RiskLevel::Low, |detail| detail.earns),
                })
            }),
        }
    }

    /// Returns the value of a state from the entry at `sequence`.
    pub fn state_at(&self, sequence: Sequence, key: &str) -> Result<Vec<u8>, Error> {
        self.parts.catch_up()?;
        let value = self.parts.journal.look(sequence, |frame| {
            let entry = Entry::read(frame.kind, frame.body)?;
            entry.states().find(|state| state.key == key).map(|state| state.value.get().as_bytes().to_vec())
        })?;
        value.ok_or_else(|| Error::ChainBroken {
            message: format!("entry {sequence} does not have the state {key:?}; verify the log"),
        })
    }

    /// Returns a record by its ID, with its outcome.
    pub fn record(&self, proof_id: &ProofId) -> Result<ProofRecord, Error> {
        self.parts.catch_up()?;
        let mut record = self.parts.journal.look_at_record(proof_id, |frame| {
            let fields = CanonicalRecord::read(frame.body).ok()?;
            (fields.id == *proof_id).then(|| fields.into_record(frame.digest(), None))
        })?;
        record.outcome = self.parts.index.outcome_of(&self.parts.journal, &record.entity_id, proof_id.sequence())?;
        Ok(record)
    }

    /// Returns the evidence of a record.
    pub fn evidence(&self, proof_id: &ProofId) -> Result<Evidence, Error> {
        self.parts.catch_up()?;
        self.evidence_so_far(proof_id)
    }

    /// Like [`ProofLog::evidence`], but waits only until that record is written. Records enqueued later may be
    /// missing.
    pub fn evidence_so_far(&self, proof_id: &ProofId) -> Result<Evidence, Error> {
        match self.kept_so_far(proof_id)? {
            Kept::Evidence(evidence) => Ok(*evidence),
            Kept::Erased => Err(Error::EvidenceErased { proof_id: proof_id.to_string() }),
            Kept::Unreadable => Err(Error::ChainBroken {
                message: format!("the evidence of {proof_id} is not what was kept; verify the log"),
            }),
        }
    }

    /// Returns the state of a record's evidence, waiting like [`ProofLog::evidence_so_far`].
    pub fn kept_so_far(&self, proof_id: &ProofId) -> Result<Kept, Error> {
        if !self.parts.journal.progress.has_applied(proof_id.sequence().get() + 1) {
            self.parts.catch_up()?;
        }
        self.parts.index.check_open()?;
        self.parts.journal.look_at_record(proof_id, |frame| {
            let fields = CanonicalRecord::read(frame.body).ok()?;
            (fields.id == *proof_id).then(|| self.parts.journal.erasures.look(&fields, frame.evidence))
        })
    }

    /// Returns the change of the agent's trust in the entry at `sequence`; `None` if the entry was archived or is
    /// another.
    pub fn trust_move(&self, agent: &AgentId, sequence: Sequence) -> Result<Option<MovedTrust>, Error> {
        self.parts.catch_up()?;
        let moved = self.parts.journal.look(sequence, MovedTrust::read)?;
        Ok(moved.filter(|moved| moved.agent_id == *agent))
    }

    /// Passes every entry that affects trust to `each`, oldest first.
    pub fn each_trust_step(&self, each: &mut dyn FnMut(&TrustStep<'_>)) -> Result<(), Error> {
        self.parts.catch_up()?;
        self.walk_all(&mut Steps { each })
    }

    /// Passes every decision of a range to `each`, oldest first, until `each` fails.
    pub fn each_past(
        &self,
        range: &PastRange,
        each: &mut dyn FnMut(PastDecision) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.parts.catch_up()?;
        let mut past = Past { range, erasures: &self.parts.journal.erasures, each, stopped: None };
        self.walk_all(&mut past)?;
        past.stopped.map_or(Ok(()), Err)
    }

    /// Walks all applied entries. Fails if the log is broken.
    fn walk_all(&self, visitor: &mut dyn Visitor) -> Result<(), Error> {
        let until = self.parts.index.applied();
        let found = self.parts.journal.reader.verify(visitor, until).map_err(read_error)?;
        self.parts.note_breakage(found);
        self.parts.journal.check_integrity()
    }

    /// Returns statistics over an entity's records in a period.
    pub fn stats(&self, entity_id: &str, period: Period) -> Result<ProofStats, Error> {
        let entity = checked_entity(entity_id)?;
        let filter: Filter = checked_period(period.from, period.to)?;
        self.parts.catch_up()?;
        let (tally, ends) = self.parts.index.ask(&self.parts.journal, |index| index.tally(&entity, &filter))?;
        let ends = ends.map(|(first, last)| (Timestamp::from_millis(first), Timestamp::from_millis(last)));
        let period = match ends {
            Some((first, last)) => Period::new(period.from.or(Some(first)), period.to.or(Some(last))),
            None => Period::default(),
        };
        Ok(stats_of(entity, &tally, period, self.integrity()))
    }

    pub(super) fn integrity(&self) -> bool {
        self.parts.journal.breakage.get().cloned().is_none()
    }

    pub(super) fn record_at(&self, sequence: Sequence, outcome: Option<Outcome>) -> Result<ProofRecord, Error> {
        let journal = &self.parts.journal;
        let record = journal.look(sequence, |frame| {
            Some(CanonicalRecord::read(frame.body).ok()?.into_record(frame.digest(), outcome))
        })?;
        // It was archived after the index was queried.
        if record.is_none() && sequence.get() < journal.reader.start().entries {
            return Err(Error::Conflict { message: journal.past().archive_of(sequence.get()) });
        }
        record.ok_or_else(|| Error::ChainBroken { message: format!("entry {sequence} cannot be read; verify the log") })
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

/// A quotient; 0 if the divisor is 0. Counts stay far below 2^53.
#[allow(clippy::cast_precision_loss)]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
