//! Changes of agents' trust in the log: that of one entry, or all of them from the first on.

use crate::journal::entry::{Entry, NewState};
use crate::queue::{OutcomeBasis, TrustMove};
use crate::store::{Finding, Frame, Kind, Visitor};
use rulekeep_types::{AgentId, Outcome, ProofId, Sequence, Timestamp};

/// A change of an agent's trust, as read from an entry.
#[derive(Debug, Clone)]
pub struct MovedTrust {
    pub(crate) agent_id: AgentId,
    pub timestamp: Timestamp,
    pub trust: TrustMove,
    pub proof_id: Option<ProofId>,
    /// The reported outcome, if it caused the change.
    pub(crate) outcome: Option<Outcome>,
    pub note: Option<String>,
}

impl MovedTrust {
    /// Reads the change of trust in an entry, if there is one.
    pub fn read(frame: &Frame<'_>) -> Option<Self> {
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

/// Parses an entry if its kind can affect trust.
fn entry_on_trust<'a>(frame: &Frame<'a>) -> Option<Entry<'a>> {
    if matches!(frame.kind, Kind::Outcome | Kind::State) { Entry::read(frame.kind, frame.body) } else { None }
}

/// An entry that affects trust.
#[derive(Debug)]
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct TrustStep<'a> {
    pub sequence: Sequence,
    pub at: Timestamp,
    /// The key of the state that the entry sets.
    pub key: &'a str,
    pub value: &'a [u8],
    /// The change of trust.
    pub trust: Option<TrustMove>,
    /// The reported outcome, and the inputs of its effect on trust.
    pub outcome: Option<(Outcome, OutcomeBasis)>,
}

/// Passes every entry that affects trust to `each`.
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
    fn visit(&mut self, frame: &Frame<'_>, _: &rulekeep_types::Digest) -> Option<Finding> {
        // Entries that cannot be parsed are reported by verification.
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
