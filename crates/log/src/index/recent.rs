//! The properties of the last decisions of this run that outcomes need. Looking them up here avoids decompressing a
//! sealed block or loading one of the index. Older decisions are read from there.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::queue::{Draft, Pending};
use rulekeep_types::{AgentId, Decision, Outcome, ProofId, RiskLevel, Sequence};

/// The error for a decision that is not among the recent ones.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotRecent;

/// The properties of a decision that its outcome needs.
#[derive(Debug, Clone)]
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct DecisionFacts {
    pub entity: AgentId,
    pub decision: Decision,
    pub risk: RiskLevel,
    /// The risk level that determines what a success earns.
    pub earns: RiskLevel,
}

/// The last decisions, in the order of the journal.
#[derive(Debug)]
pub(crate) struct Recent {
    // Held to look one up, or by the writer to add part of a batch; no other lock is taken meanwhile.
    facts: Mutex<VecDeque<Facts>>,
    most: usize,
}

/// The data kept for a decision.
#[derive(Debug)]
struct Facts {
    id: ProofId,
    entity: AgentId,
    decision: Decision,
    risk: RiskLevel,
    earns: RiskLevel,
    outcome: Option<Outcome>,
}

const _: () = assert!(size_of::<Facts>() <= 48);

impl Recent {
    pub(crate) fn new(most: usize) -> Self {
        Self { facts: Mutex::default(), most }
    }

    /// Adds a batch, once the index has it.
    pub(crate) fn apply(&self, drafts: &[Pending]) {
        for drafts in drafts.chunks(AT_ONCE) {
            let mut facts = self.lock();
            for pending in drafts {
                match &pending.draft {
                    Draft::Decision { id, draft } => {
                        if facts.len() >= self.most {
                            facts.pop_front();
                        }
                        // Reserved at once: unused memory costs nothing, and nothing is moved later.
                        if facts.capacity() == 0 {
                            facts.reserve_exact(self.most);
                        }
                        let entity = draft.entity.clone();
                        let (decision, risk, earns) = (draft.decision, draft.risk, draft.earns);
                        facts.push_back(Facts { id: *id, entity, decision, risk, earns, outcome: None });
                    }
                    Draft::Outcome(draft) => {
                        if let Some(found) = find(&facts, draft.proof_id.sequence()).and_then(|at| facts.get_mut(at)) {
                            found.outcome.get_or_insert(draft.outcome);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// Returns the properties of the decision with this ID, if it is recent.
    pub(crate) fn facts(&self, id: &ProofId) -> Option<DecisionFacts> {
        let facts = self.lock();
        let found = facts.get(find(&facts, id.sequence())?).filter(|found| found.id == *id)?;
        let Facts { entity, decision, risk, earns, .. } = found;
        Some(DecisionFacts { entity: entity.clone(), decision: *decision, risk: *risk, earns: *earns })
    }

    /// Returns the outcome of a recent decision, if it has one.
    pub(crate) fn outcome(&self, sequence: Sequence) -> Result<Option<Outcome>, NotRecent> {
        let facts = self.lock();
        let found = find(&facts, sequence).and_then(|place| facts.get(place)).ok_or(NotRecent)?;
        Ok(found.outcome)
    }

    /// Removes everything, so that erased and archived decisions are answered from the journal.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Facts>> {
        // Nothing between two dependent changes can panic, so a poisoned lock is safe to use.
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find(facts: &VecDeque<Facts>, sequence: Sequence) -> Option<usize> {
    facts.binary_search_by_key(&sequence, |facts| facts.id.sequence()).ok()
}

/// Number of decisions kept, which take up to 6 MiB.
pub(crate) const MOST: usize = 1 << 17;
/// Number of drafts added while the lock is held.
const AT_ONCE: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{DecisionDraft, OutcomeDraft};
    use rulekeep_types::{IntentId, Score, Tier, Timestamp, TrustSnapshot};

    fn id(place: u64) -> ProofId {
        ProofId::new(Timestamp::from_millis(5), 7, Sequence::new(place))
    }

    fn decision(place: u64) -> Pending {
        let at = Timestamp::from_millis(5);
        let draft = DecisionDraft {
            entity: "a".parse().unwrap(),
            intent: IntentId::new(at, 1),
            decision: Decision::Degrade,
            reasoning: String::new(),
            resolves: None,
            retry_of: None,
            earns: RiskLevel::Medium,
            trust: TrustSnapshot::new(Score::MAX, Tier::T5),
            risk: RiskLevel::High,
            evidence: Vec::new(),
            uses_limits: false,
            random: 7,
        };
        Pending { sequence: Sequence::new(place), at, draft: Draft::Decision { id: id(place), draft } }
    }

    fn outcome(place: u64, of: u64, outcome: Outcome) -> Pending {
        let draft = OutcomeDraft {
            proof_id: id(of),
            entity: "a".parse().unwrap(),
            outcome,
            note: None,
            state: None,
            asked: None,
            trust: None,
            basis: None,
        };
        let at = Timestamp::from_millis(5);
        Pending { sequence: Sequence::new(place), at, draft: Draft::Outcome(draft) }
    }

    #[test]
    fn the_last_are_known_with_their_first_outcomes_and_no_others() {
        let recent = Recent::new(300);
        let mut batch: Vec<_> = (0..1000).map(|place| decision(place * 2)).collect();
        batch.push(outcome(2000, 1900, Outcome::Success));
        batch.push(outcome(2001, 1900, Outcome::Failure));
        batch.push(outcome(2002, 2, Outcome::Failure));
        recent.apply(&batch);
        assert_eq!(recent.lock().capacity(), 300);
        for place in (0..1000).map(|place| place * 2) {
            let facts = recent.facts(&id(place));
            assert_eq!(facts.is_some(), place >= 1400, "{place}");
            let outcome = (place == 1900).then_some(Outcome::Success);
            let expected = if place >= 1400 { Ok(outcome) } else { Err(NotRecent) };
            assert_eq!(recent.outcome(Sequence::new(place)), expected, "{place}");
        }
        let facts = recent.facts(&id(1998)).unwrap();
        assert_eq!((facts.decision, facts.risk), (Decision::Degrade, RiskLevel::High));
        assert_eq!((facts.entity.as_str(), facts.earns), ("a", RiskLevel::Medium));
        // The same sequence with another ID.
        let other = ProofId::new(Timestamp::from_millis(5), 8, Sequence::new(1998));
        assert!(recent.facts(&other).is_none() && recent.facts(&id(1999)).is_none());
        recent.clear();
        assert!(recent.facts(&id(1998)).is_none());
    }
}
