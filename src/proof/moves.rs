//! What the log says of agents' trust: one entry by its place, or all of them from the first on.

use super::draft::{OutcomeBasis, TrustMove};
use super::entry::{NewState, OutcomeEntry, StateEntry};
use crate::model::{AgentId, Outcome, ProofId, Sequence, Timestamp};
use crate::store::{Finding, Frame, Kind, Visitor};

/// A change of an agent's trust, as an entry tells it.
#[derive(Debug, Clone)]
pub(crate) struct MovedTrust {
    pub(crate) timestamp: Timestamp,
    pub(crate) trust: TrustMove,
    pub(crate) proof_id: Option<ProofId>,
    pub(crate) note: Option<String>,
}

impl MovedTrust {
    /// What the entry says of that agent's trust, if it says anything.
    pub(super) fn of(agent: &AgentId, frame: &Frame<'_>) -> Option<Self> {
        match frame.kind {
            Kind::Outcome => {
                let entry: OutcomeEntry<'_> = serde_json::from_slice(frame.body).ok()?;
                let (timestamp, note) = (entry.timestamp, entry.note.map(std::borrow::Cow::into_owned));
                (entry.entity_id == *agent).then_some(())?;
                Some(Self { timestamp, trust: entry.trust?, proof_id: Some(entry.proof_id), note })
            }
            Kind::State => {
                let entry: StateEntry<'_> = serde_json::from_slice(frame.body).ok()?;
                let proof_id = entry.proof_id();
                (entry.agent_id? == *agent).then_some(())?;
                let note = Some(entry.cause.into_owned());
                Some(Self { timestamp: entry.timestamp, trust: entry.trust?, proof_id, note })
            }
            _ => None,
        }
    }
}

/// An entry that bears on trust.
#[derive(Debug)]
pub(crate) struct TrustStep<'a> {
    pub(crate) sequence: Sequence,
    pub(crate) at: Timestamp,
    /// What is kept under which key from here on.
    pub(crate) key: &'a str,
    pub(crate) value: &'a [u8],
    /// How trust moved.
    pub(crate) trust: Option<TrustMove>,
    /// The outcome that was reported, and what it moves trust by.
    pub(crate) outcome: Option<(Outcome, OutcomeBasis)>,
}

/// Hands every entry on that bears on trust.
pub(super) struct Steps<'a> {
    pub(super) each: &'a mut dyn FnMut(&TrustStep<'_>),
}

impl Steps<'_> {
    fn state(&mut self, frame: &Frame<'_>, at: Timestamp, state: &NewState<'_>, trust: Option<TrustMove>) {
        self.step(frame, at, state, trust, None);
    }

    fn step(
        &mut self,
        frame: &Frame<'_>,
        at: Timestamp,
        state: &NewState<'_>,
        trust: Option<TrustMove>,
        outcome: Option<(Outcome, OutcomeBasis)>,
    ) {
        let (key, value) = (&*state.key, state.value.get().as_bytes());
        (self.each)(&TrustStep { sequence: frame.sequence, at, key, value, trust, outcome });
    }
}

impl Visitor for Steps<'_> {
    fn visit(&mut self, frame: &Frame<'_>, _: &crate::model::Digest) -> Option<Finding> {
        // What cannot be read is for the verification to tell.
        match frame.kind {
            Kind::State => {
                let entry: StateEntry<'_> = serde_json::from_slice(frame.body).ok()?;
                self.state(frame, entry.timestamp, &entry.state, entry.trust);
            }
            Kind::Outcome => {
                let entry: OutcomeEntry<'_> = serde_json::from_slice(frame.body).ok()?;
                let outcome = entry.basis.map(|basis| (entry.outcome, basis));
                if let Some(state) = &entry.state {
                    self.step(frame, entry.timestamp, state, entry.trust, outcome);
                }
            }
            _ => {}
        }
        None
    }

    fn broken(&mut self) {}
}
