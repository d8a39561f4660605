//! Drafts: the content of entries that callers enqueue, and their position once enqueued.

use serde::{Deserialize, Serialize};

use crate::store::{Kind, Start};
use rulekeep_types::{
    AgentId, Decision, IntentId, Outcome, ProofId, RiskLevel, Sequence, Timestamp, TrustCause, TrustChange,
    TrustSnapshot,
};

/// A decision to be recorded.
#[derive(Debug)]
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct DecisionDraft {
    pub entity: AgentId,
    pub intent: IntentId,
    pub decision: Decision,
    pub reasoning: String,
    /// The escalation that this decision answers.
    pub resolves: Option<ProofId>,
    /// The decision that this one repeats.
    pub retry_of: Option<ProofId>,
    pub trust: TrustSnapshot,
    pub risk: RiskLevel,
    /// The encoded evidence, see `evidence::encode`.
    pub evidence: Vec<u8>,
    /// Whether the evidence has what the decision used of limits.
    pub uses_limits: bool,
    /// The risk level that determines the trust a success earns.
    pub earns: RiskLevel,
    /// The random part of the proof ID.
    pub random: u32,
}

/// An outcome to be recorded, with the change of state that follows from it.
#[derive(Debug)]
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct OutcomeDraft {
    pub proof_id: ProofId,
    pub entity: AgentId,
    pub outcome: Outcome,
    pub note: Option<String>,
    pub state: Option<StateDraft>,
    /// The new state of the escalation that the record opened.
    pub asked: Option<StateDraft>,
    /// The change of the agent's trust.
    pub trust: Option<TrustMove>,
    pub basis: Option<OutcomeBasis>,
}

/// A change of an agent's trust, with the entry of the previous change.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct TrustMove {
    #[serde(flatten)]
    pub change: TrustChange,
    pub cause: TrustCause,
    /// The risk that determined the change, if no outcome entry states it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub risk: Option<RiskLevel>,
    /// The points that were taken back.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub gained: Option<u16>,
    /// The clock's time of the change.
    pub at: Timestamp,
    /// The entry of the previous change.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub previous: Option<Sequence>,
}

/// The inputs of an outcome's effect on trust, so that it can be recomputed from the log alone.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct OutcomeBasis {
    pub decision: Decision,
    pub risk: RiskLevel,
    /// The risk level that determines what a success earns; `None` if the decision is too old.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub earns: Option<RiskLevel>,
    /// The clock's time of the outcome. Entries' times never run backwards, clocks may.
    pub at: Timestamp,
    /// A failure does not release limits, because the agent itself reported it.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub keeps_limits: bool,
}

impl OutcomeBasis {
    /// Returns whether this outcome releases what the decision used of limits.
    pub fn gives_back(basis: Option<Self>, outcome: Outcome) -> bool {
        outcome == Outcome::Failure && basis.is_none_or(|basis| !basis.keeps_limits)
    }
}

/// A change of a state, and its cause.
#[derive(Debug)]
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct ChangeDraft {
    pub state: StateDraft,
    pub cause: String,
    /// The agent whose trust changes, and the change.
    pub trust: Option<(AgentId, TrustMove)>,
}

/// The new value of a keyed state.
#[derive(Debug)]
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct StateDraft {
    pub key: String,
    /// The value as JSON.
    pub value: String,
    /// The offset in the value at which the sequence of its own entry is to be written.
    pub(crate) own_place: Option<usize>,
}

impl StateDraft {
    #[doc(hidden)]
    pub fn new(key: String, value: String) -> Self {
        Self { key, value, own_place: None }
    }

    /// The placeholder for the sequence of the value's own entry, which is not known before it is enqueued.
    pub const OWN_PLACE: Sequence = Sequence::new(u64::MAX);

    /// Finds the last [`StateDraft::OWN_PLACE`] in the value, to be replaced later.
    #[must_use]
    pub fn with_own_place(self) -> Self {
        let own_place = self.value.rfind(OWN_PLACE_DIGITS);
        Self { own_place, ..self }
    }

    /// Replaces a placeholder ID by the real one.
    pub fn name(&mut self, stand_in: &ProofId, id: &ProofId) {
        let stand_in = stand_in.to_string();
        if let Some(start) = self.value.find(&stand_in) {
            // INVARIANT: all IDs have the same length, so nothing after it moves.
            self.value.replace_range(start..start + stand_in.len(), &id.to_string());
        }
    }

    /// Writes the entry's sequence over the placeholder.
    pub(crate) fn stand_at(&mut self, sequence: Sequence) {
        if let Some(start) = self.own_place.take() {
            // JSON allows blanks before a number, so nothing after it moves.
            let place = format!("{:>width$}", sequence.get(), width = OWN_PLACE_DIGITS.len());
            self.value.replace_range(start..start + OWN_PLACE_DIGITS.len(), &place);
        }
    }
}

/// [`StateDraft::OWN_PLACE`] in decimal digits.
const OWN_PLACE_DIGITS: &str = "281474976710655";

/// The content of an entry to be written.
#[derive(Debug)]
pub(crate) enum Draft {
    Decision { id: ProofId, draft: DecisionDraft },
    Outcome(OutcomeDraft),
    State(Box<ChangeDraft>),
    Entry(EntryDraft),
}

/// An entry of any other kind, with a complete body.
#[derive(Debug)]
pub(crate) struct EntryDraft {
    pub(crate) kind: Kind,
    pub(crate) body: Vec<u8>,
    /// The beginning of the log once an archive entry is on disk.
    pub(crate) begins: Option<Start>,
}

/// A draft with its position.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) sequence: Sequence,
    pub(crate) at: Timestamp,
    pub(crate) draft: Draft,
}

impl Pending {
    /// Approximate memory use in bytes.
    pub(crate) fn weight(&self) -> usize {
        let content = match &self.draft {
            Draft::Decision { draft, .. } => draft.evidence.capacity() + draft.reasoning.capacity(),
            Draft::Outcome(draft) => {
                let states = draft.state.iter().chain(&draft.asked);
                draft.note.as_ref().map_or(0, String::len) + states.map(StateDraft::len).sum::<usize>()
            }
            Draft::State(change) => size_of::<ChangeDraft>() + change.state.len() + change.cause.len(),
            Draft::Entry(entry) => entry.body.len(),
        };
        size_of::<Self>() + content
    }
}

impl StateDraft {
    fn len(&self) -> usize {
        self.key.len() + self.value.len()
    }
}
