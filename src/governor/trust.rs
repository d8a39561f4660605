//! Trust as the governor keeps it: what moves it, where each move is written, and the way back.

use super::Governor;
use crate::model::{AgentProfile, Score, Sequence, Timestamp, TrustCause, TrustChange, TrustSnapshot};
use crate::proof::{StateDraft, TrustMove};
use crate::trust::{AgentRecord, Facts, TrustState};

impl Governor {
    /// The trust in force of an agent.
    pub(super) fn trust_of(&self, agent: &AgentRecord, now: Timestamp) -> TrustSnapshot {
        self.inner.trust_model.snapshot(&agent.trust, self.bearing(agent, now))
    }

    /// What else bears on an agent's trust.
    pub(super) fn bearing(&self, agent: &AgentRecord, now: Timestamp) -> Facts {
        Facts { ceiling: self.ceiling_of(agent.profile()), now }
    }

    /// The highest score that an agent can have: the lower of its own ceiling and what its observability allows.
    pub(super) fn ceiling_of(&self, profile: &AgentProfile) -> Option<Score> {
        let observable = profile.observability.map(|observability| self.inner.trust_model.ceiling_of(observability));
        match (profile.ceiling, observable) {
            (Some(own), Some(observable)) => Some(own.min(observable)),
            (own, observable) => own.or(observable),
        }
    }

    /// An agent whose trust goes on to `next`, and the move that its entry is to tell, if it is one.
    /// [`AgentRecord::placed_at`] puts the entry's place in once it is known.
    pub(super) fn moved(
        &self,
        agent: &AgentRecord,
        next: TrustState,
        cause: TrustCause,
        now: Timestamp,
    ) -> (AgentRecord, Option<TrustMove>) {
        let before = self.trust_of(agent, now);
        let mut changed = AgentRecord { trust: next, ..agent.clone() };
        let after = self.trust_of(&changed, now);
        let change = TrustChange::between(before, after);
        if change.is_some() {
            changed.trust = changed.trust.noted(StateDraft::OWN_PLACE);
        }
        let moved = change.map(|change| TrustMove { change, cause, previous: agent.trust.last });
        (changed, moved)
    }
}

impl AgentRecord {
    /// The record once the entry that it stands in has its place.
    pub(super) fn placed_at(mut self, sequence: Sequence) -> Self {
        if self.trust.last == Some(StateDraft::OWN_PLACE) {
            self.trust.last = Some(sequence);
        }
        self
    }
}
