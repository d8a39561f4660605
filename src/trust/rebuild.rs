//! An agent's trust from what the journal says of it, by the functions that
//! made it: what is kept can be held against it.

use super::model::TrustModel;
use super::state::{Facts, TrustEvent, TrustState};
use crate::model::{RiskLevel, Score, Sequence, Timestamp};

/// What an entry says that bears on one agent's trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustFact {
    /// The agent was registered, by somebody or by itself.
    Registered { score: Score, ceiling: Option<Score>, by_itself: bool },
    /// An outcome was reported.
    Outcome(TrustEvent),
    /// A streak of denials cost, the riskiest at this risk.
    Denials(RiskLevel),
    /// A person rejected what was asked at this risk.
    Rejection(RiskLevel),
    /// An operator set the score.
    Adjusted(Score),
    /// What idleness cost was taken off.
    Idle,
    /// The agent's ceiling is another.
    Ceiling(Option<Score>),
    /// A success that gained so much turned out to be a failure at this risk.
    Correction { risk: RiskLevel, gained: u16 },
    /// The log's time stepped back.
    Restarted,
    /// The state was written as it stood, where what led to it is kept elsewhere.
    Stated { state: TrustState, ceiling: Option<Score> },
}

/// A fold over one agent's facts, in the journal's order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Rebuild {
    state: Option<TrustState>,
    ceiling: Option<Score>,
}

impl Rebuild {
    /// Takes in the fact of one entry. `model` is the one in force there. What
    /// comes before the agent's registration bears on nothing.
    pub(crate) fn feed(&mut self, model: &TrustModel, sequence: Sequence, at: Timestamp, fact: &TrustFact) {
        if let TrustFact::Registered { ceiling, .. } | TrustFact::Ceiling(ceiling) | TrustFact::Stated { ceiling, .. } =
            fact
        {
            self.ceiling = *ceiling;
        }
        let facts = Facts { ceiling: self.ceiling, now: at };
        let Some(next) = model.next(self.state.as_ref(), fact, facts) else { return };
        let is_change = match (&self.state, fact) {
            (_, TrustFact::Stated { .. }) => false,
            // These are noted whatever they found to change.
            (
                _,
                TrustFact::Registered { .. }
                | TrustFact::Correction { .. }
                | TrustFact::Adjusted(_)
                | TrustFact::Restarted,
            )
            | (None, _) => true,
            (Some(state), _) => state.change_to(&next).is_some(),
        };
        self.state = Some(if is_change { next.noted(sequence) } else { next });
    }

    /// The ceiling from here on.
    pub(crate) fn set_ceiling(&mut self, ceiling: Option<Score>) {
        self.ceiling = ceiling;
    }

    /// Leaves out when a tier was lost last, where what was stated leaves it out: the first logs did not tell it.
    pub(crate) fn follow_first_logs(&mut self, stated: &TrustState) {
        if *stated == stated.without_loss() {
            self.state = self.state.map(TrustState::without_loss);
        }
    }

    /// The state behind the facts so far; none before the agent was registered.
    pub(crate) fn state(&self) -> Option<TrustState> {
        self.state
    }
}

impl TrustModel {
    /// The state after a fact; none for an agent that is not registered.
    fn next(&self, state: Option<&TrustState>, fact: &TrustFact, facts: Facts) -> Option<TrustState> {
        Some(match *fact {
            TrustFact::Registered { score, by_itself: false, .. } => TrustState::new(score, facts.now),
            TrustFact::Registered { score, by_itself: true, .. } => self.self_registered(score, facts.now),
            TrustFact::Stated { state, .. } => state,
            TrustFact::Outcome(event) => self.after(state?, event, facts),
            TrustFact::Denials(risk) => self.after_denials(state?, risk, facts),
            TrustFact::Rejection(risk) => self.after_rejection(state?, risk, facts),
            TrustFact::Adjusted(score) => self.adjusted(state?, score, facts),
            TrustFact::Restarted => self.restarted(state?, facts),
            TrustFact::Idle => self.settled(state?, facts.now),
            TrustFact::Ceiling(_) => self.capped(state?, facts),
            TrustFact::Correction { risk, gained } => self.corrected(state?, risk, gained, facts),
        })
    }
}
