//! Recomputing an agent's trust from the journal, with the same functions that computed it, to verify the stored
//! state.

use super::model::TrustModel;
use super::state::{Facts, TrustEvent, TrustState};
use crate::model::{RiskLevel, Score, Sequence, Timestamp};

/// The statement of an entry about one agent's trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustFact {
    /// The agent was registered, by an operator or by itself.
    Registered { score: Score, ceiling: Option<Score>, by_itself: bool },
    /// An outcome was reported.
    Outcome(TrustEvent),
    /// A streak of denials cost points; the riskiest was at this risk.
    Denials(RiskLevel),
    /// A reviewer rejected a request at this risk.
    Rejection(RiskLevel),
    /// An operator set the score.
    Adjusted(Score),
    /// The loss by idleness was deducted.
    Idle,
    /// The agent's ceiling changed.
    Ceiling(Option<Score>),
    /// A success that gained `gained` points turned out to be a failure at this risk.
    Correction { risk: RiskLevel, gained: u16 },
    /// The log's time stepped back.
    Restarted,
    /// The complete state was written, because the entries that led to it are archived.
    Stated { state: TrustState, ceiling: Option<Score> },
}

/// Replays one agent's facts in the journal's order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Rebuild {
    state: Option<TrustState>,
    ceiling: Option<Score>,
}

impl Rebuild {
    /// Applies the fact of one entry; `model` is the one in force there. Facts before the agent's registration are
    /// ignored.
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
            // These count as changes whatever they changed.
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

    /// Sets the ceiling from here on.
    pub(crate) fn set_ceiling(&mut self, ceiling: Option<Score>) {
        self.ceiling = ceiling;
    }

    /// Omits the time of the last lost tier, if the stated state omits it: the first logs did not have it.
    pub(crate) fn follow_first_logs(&mut self, stated: &TrustState) {
        if *stated == stated.without_loss() {
            self.state = self.state.map(TrustState::without_loss);
        }
    }

    /// The state after the facts so far; `None` before the agent was registered.
    pub(crate) fn state(&self) -> Option<TrustState> {
        self.state
    }
}

impl TrustModel {
    /// Returns the state after a fact; `None` for an agent that is not registered.
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
