//! What outcomes need to know of the last decisions of this run, so that nobody unpacks a sealed block for it, nor
//! fetches one of the index. What is not here any more is read there.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::model::{AgentId, Decision, Outcome, ProofId, RiskLevel, Sequence};
use crate::proof::queue::{Draft, Pending};

/// What is asked for is to be read elsewhere.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotRecent;

/// What an outcome needs to know of its decision.
#[derive(Debug, Clone)]
pub(crate) struct DecisionFacts {
    pub(crate) entity: AgentId,
    pub(crate) decision: Decision,
    pub(crate) risk: RiskLevel,
    /// What a success of it can be earned on.
    pub(crate) earns: RiskLevel,
}

/// The last decisions, in the order of the journal.
#[derive(Debug)]
pub(crate) struct Recent {
    // Held to look one up, or by the writer to take in some of a batch; nothing else is taken meanwhile.
    facts: Mutex<VecDeque<Facts>>,
    most: usize,
}

/// What is kept of a decision.
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

    /// Takes a batch in, once the index has it.
    pub(crate) fn apply(&self, drafts: &[Pending]) {
        for drafts in drafts.chunks(AT_ONCE) {
            let mut facts = self.lock();
            for pending in drafts {
                match &pending.draft {
                    Draft::Decision { id, draft } => {
                        if facts.len() >= self.most {
                            facts.pop_front();
                        }
                        // All of it at once, for what is not used takes nothing, and nothing is ever moved.
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

    /// What is known of the decision of that id.
    pub(crate) fn facts(&self, id: &ProofId) -> Option<DecisionFacts> {
        let facts = self.lock();
        let found = facts.get(find(&facts, id.sequence())?).filter(|found| found.id == *id)?;
        let Facts { entity, decision, risk, earns, .. } = found;
        Some(DecisionFacts { entity: entity.clone(), decision: *decision, risk: *risk, earns: *earns })
    }

    /// The outcome of the decision at a place, if it has one.
    pub(crate) fn outcome(&self, sequence: Sequence) -> Result<Option<Outcome>, NotRecent> {
        let facts = self.lock();
        let found = find(&facts, sequence).and_then(|place| facts.get(place)).ok_or(NotRecent)?;
        Ok(found.outcome)
    }

    /// Forgets all: what was erased, or left with an archive, is answered as the journal has it.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Facts>> {
        // Nothing that can panic happens between two changes that belong together.
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find(facts: &VecDeque<Facts>, sequence: Sequence) -> Option<usize> {
    facts.binary_search_by_key(&sequence, |facts| facts.id.sequence()).ok()
}

/// Decisions that are known: 6 MiB once there were so many.
pub(crate) const MOST: usize = 1 << 17;
/// Drafts that are taken in while nobody can look anything up.
const AT_ONCE: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{IntentId, Score, Tier, Timestamp, TrustSnapshot};
    use crate::proof::queue::{DecisionDraft, OutcomeDraft};

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
        // Of the same place, and another id.
        let other = ProofId::new(Timestamp::from_millis(5), 8, Sequence::new(1998));
        assert!(recent.facts(&other).is_none() && recent.facts(&id(1999)).is_none());
        recent.clear();
        assert!(recent.facts(&id(1998)).is_none());
    }
}
