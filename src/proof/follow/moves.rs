//! What the log says of agents' trust: one entry by its place, or all of them from the first on.

use crate::model::{AgentId, Outcome, ProofId, Sequence, Timestamp};
use crate::proof::journal::entry::{Entry, NewState};
use crate::proof::queue::{OutcomeBasis, TrustMove};
use crate::store::{Finding, Frame, Kind, Visitor};

/// A change of an agent's trust, as an entry tells it.
#[derive(Debug, Clone)]
pub(crate) struct MovedTrust {
    pub(crate) agent_id: AgentId,
    pub(crate) timestamp: Timestamp,
    pub(crate) trust: TrustMove,
    pub(crate) proof_id: Option<ProofId>,
    /// The outcome that was reported, if one moved it.
    pub(crate) outcome: Option<Outcome>,
    pub(crate) note: Option<String>,
}

impl MovedTrust {
    /// What an entry says of trust, if it says anything.
    pub(crate) fn read(frame: &Frame<'_>) -> Option<Self> {
        match entry_on_trust(frame)? {
            Entry::Outcome(entry) => Some(Self {
                agent_id: entry.entity_id,
                timestamp: entry.timestamp,
                trust: entry.trust?,
                proof_id: Some(entry.proof_id),
                outcome: Some(entry.outcome),
                note: entry.note.map(std::borrow::Cow::into_owned),
            }),
            Entry::State(entry) => {
                let proof_id = entry.proof_id();
                let (agent_id, trust) = entry.agent_id.zip(entry.trust)?;
                let note = Some(entry.cause.into_owned());
                Some(Self { agent_id, timestamp: entry.timestamp, trust, proof_id, outcome: None, note })
            }
            _ => None,
        }
    }
}

/// The entry, where it is of a kind that can bear on trust.
fn entry_on_trust<'a>(frame: &Frame<'a>) -> Option<Entry<'a>> {
    if matches!(frame.kind, Kind::Outcome | Kind::State) { Entry::read(frame.kind, frame.body) } else { None }
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
pub(crate) struct Steps<'a> {
    pub(crate) each: &'a mut dyn FnMut(&TrustStep<'_>),
}

impl Steps<'_> {
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
        match entry_on_trust(frame)? {
            Entry::State(entry) => self.step(frame, entry.timestamp, &entry.state, entry.trust, None),
            Entry::Outcome(entry) => {
                let outcome = entry.basis.map(|basis| (entry.outcome, basis));
                if let Some(state) = &entry.state {
                    self.step(frame, entry.timestamp, state, entry.trust, outcome);
                }
            }
            _ => {}
        }
        None
    }
}
