//! Counts per entity that a walk of the journal gathers, to compare the index with. A tampered index must not pass
//! for the journal's content.

use std::collections::HashMap;

use super::{RecordFacts, Sums};
use rulekeep_types::{AgentId, Decision, Outcome, RiskLevel};

/// Counts per entity, gathered from the journal alone.
#[derive(Debug, Default)]
pub(crate) struct Census {
    counts: HashMap<AgentId, Counts>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    decisions: [u64; 4],
    risks: [u64; 4],
    outcomes: [u64; 3],
    score_sum: u64,
}

impl Counts {
    fn of(sums: &Sums) -> Self {
        Self {
            decisions: std::array::from_fn(|at| Decision::ALL.get(at).map_or(0, |word| sums.with_decision(*word))),
            risks: std::array::from_fn(|at| RiskLevel::ALL.get(at).map_or(0, |word| sums.with_risk(*word))),
            outcomes: std::array::from_fn(|at| Outcome::ALL.get(at).map_or(0, |word| sums.with_outcome(*word))),
            score_sum: sums.score_sum(),
        }
    }
}

impl Census {
    pub(crate) fn add_record(&mut self, facts: &RecordFacts<'_>) {
        let counts = self.of(facts.entity);
        add_one(&mut counts.decisions, facts.decision as usize);
        add_one(&mut counts.risks, facts.risk as usize);
        counts.score_sum += u64::from(facts.score.get());
    }

    pub(crate) fn add_outcome(&mut self, entity: &AgentId, outcome: Outcome) {
        add_one(&mut self.of(entity).outcomes, outcome as usize);
    }

    /// Returns a counted entity by its ID.
    pub(crate) fn known(&self, entity: &str) -> Option<&AgentId> {
        self.counts.get_key_value(entity).map(|(entity, _)| entity)
    }

    /// Adds the counts of later entries.
    pub(crate) fn join(&mut self, later: Self) {
        for (entity, theirs) in later.counts {
            let ours = self.counts.entry(entity).or_default();
            add(&mut ours.decisions, &theirs.decisions);
            add(&mut ours.risks, &theirs.risks);
            add(&mut ours.outcomes, &theirs.outcomes);
            ours.score_sum += theirs.score_sum;
        }
    }

    /// Returns the counts of an index, for comparison with those of the journal.
    pub(crate) fn of_index(index: &super::Index) -> Self {
        let entities = index.entities.iter().filter(|entity| !entity.list.is_empty());
        Self { counts: entities.map(|entity| (entity.id.clone(), Counts::of(&entity.list.sums()))).collect() }
    }

    /// Returns an entity whose counts differ.
    pub(crate) fn differs_from(&self, other: &Self) -> Option<AgentId> {
        let differs = |entity: &&AgentId| self.counts.get(*entity) != other.counts.get(*entity);
        self.counts.keys().chain(other.counts.keys()).find(differs).cloned()
    }

    pub(super) fn entities(&self) -> usize {
        self.counts.len()
    }

    pub(super) fn agrees_on(&self, entity: &AgentId, sums: &Sums) -> bool {
        self.counts.get(entity).unwrap_or(&Counts::default()) == &Counts::of(sums)
    }

    fn of(&mut self, entity: &AgentId) -> &mut Counts {
        self.counts.entry(entity.clone()).or_default()
    }
}

fn add(counts: &mut [u64], more: &[u64]) {
    for (count, more) in counts.iter_mut().zip(more) {
        *count += more;
    }
}

fn add_one(counts: &mut [u64], at: usize) {
    if let Some(count) = counts.get_mut(at) {
        *count += 1;
    }
}
