//! What is on its way to the journal: what callers hand in, and its place once it is in order.

use serde::{Deserialize, Serialize};

use super::erase::Erasure;
use crate::model::{
    AgentId, Alert, Decision, Digest, IntentId, Outcome, ProofId, RiskLevel, Sequence, Timestamp, TrustCause,
    TrustChange, TrustSnapshot,
};
use crate::store::Start;

/// A decision to be recorded.
#[derive(Debug)]
pub(crate) struct DecisionDraft {
    pub(crate) entity: AgentId,
    pub(crate) intent: IntentId,
    pub(crate) decision: Decision,
    pub(crate) reasoning: String,
    /// The escalation that it answers.
    pub(crate) resolves: Option<ProofId>,
    /// The decision that it repeats.
    pub(crate) retry_of: Option<ProofId>,
    pub(crate) trust: TrustSnapshot,
    pub(crate) risk: RiskLevel,
    /// As `evidence::encode` makes it.
    pub(crate) evidence: Vec<u8>,
    /// What a success of it can be earned on.
    pub(crate) earns: RiskLevel,
    /// For the proof id.
    pub(crate) random: u32,
}

/// An outcome to be recorded, with the change of state that follows from it.
#[derive(Debug)]
pub(crate) struct OutcomeDraft {
    pub(crate) proof_id: ProofId,
    pub(crate) entity: AgentId,
    pub(crate) outcome: Outcome,
    pub(crate) note: Option<String>,
    pub(crate) state: Option<StateDraft>,
    /// What becomes of the escalation that the record opened.
    pub(crate) asked: Option<StateDraft>,
    /// How the agent's trust moves.
    pub(crate) trust: Option<TrustMove>,
    pub(crate) basis: Option<OutcomeBasis>,
}

/// How an agent's trust moves, and where the entry stands that moved it before.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TrustMove {
    #[serde(flatten)]
    pub(crate) change: TrustChange,
    pub(crate) cause: TrustCause,
    /// The risk by which it moved, where no outcome says so.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) risk: Option<RiskLevel>,
    /// What was taken back.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) gained: Option<u16>,
    /// When, by the clock.
    pub(crate) at: Timestamp,
    /// The entry that moved it before.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) previous: Option<Sequence>,
}

/// What an outcome moves trust by, so that it can be done again from the log alone.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OutcomeBasis {
    pub(crate) decision: Decision,
    pub(crate) risk: RiskLevel,
    pub(crate) earns: RiskLevel,
    /// When it did, by the clock: entries' times never run backwards, clocks do.
    pub(crate) at: Timestamp,
}

/// A change of state, and why.
#[derive(Debug)]
pub(crate) struct ChangeDraft {
    pub(crate) state: StateDraft,
    pub(crate) cause: String,
    /// Whose trust it moves, and how.
    pub(crate) trust: Option<(AgentId, TrustMove)>,
}

/// The new state of something.
#[derive(Debug)]
pub(crate) struct StateDraft {
    pub(crate) key: String,
    /// JSON.
    pub(crate) value: String,
    /// Where in the value the place of its own entry is to be written.
    pub(crate) own_place: Option<usize>,
}

impl StateDraft {
    pub(crate) fn new(key: String, value: String) -> Self {
        Self { key, value, own_place: None }
    }

    /// What a value says in place of its own entry's place, which is not known before it is in order.
    pub(crate) const OWN_PLACE: Sequence = Sequence::new(u64::MAX);

    /// Finds the last [`StateDraft::OWN_PLACE`] in the value, to be replaced.
    pub(crate) fn with_own_place(self) -> Self {
        let own_place = self.value.rfind(OWN_PLACE_DIGITS);
        Self { own_place, ..self }
    }

    /// Writes an id in place of one that stood for it while it was not known.
    pub(crate) fn name(&mut self, stand_in: &ProofId, id: &ProofId) {
        let stand_in = stand_in.to_string();
        if let Some(start) = self.value.find(&stand_in) {
            // INVARIANT: all ids are as long, so that nothing behind it moves.
            self.value.replace_range(start..start + stand_in.len(), &id.to_string());
        }
    }

    /// Writes down the entry's place.
    pub(super) fn stand_at(&mut self, sequence: Sequence) {
        if let Some(start) = self.own_place.take() {
            // Blanks before a number mean nothing in JSON, and so nothing behind it moves.
            let place = format!("{:>width$}", sequence.get(), width = OWN_PLACE_DIGITS.len());
            self.value.replace_range(start..start + OWN_PLACE_DIGITS.len(), &place);
        }
    }
}

/// [`StateDraft::OWN_PLACE`] as it is written.
const OWN_PLACE_DIGITS: &str = "281474976710655";

/// What is to be written.
#[derive(Debug)]
pub(super) enum Draft {
    Decision { id: ProofId, draft: DecisionDraft },
    Outcome(OutcomeDraft),
    State(Box<ChangeDraft>),
    Alert { alert: Box<Alert>, up_to: Option<Sequence> },
    Erasure { erasure: Erasure, cause: String },
    Freeze { cause: String },
    Archive(Box<ArchiveDraft>),
}

/// The note that the first entries are in a file of their own.
#[derive(Debug)]
pub(crate) struct ArchiveDraft {
    pub(crate) file: String,
    pub(crate) from: u64,
    pub(crate) sha256: Digest,
    /// Where the log begins then.
    pub(crate) start: Start,
}

/// A draft with its place.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) sequence: Sequence,
    pub(super) at: Timestamp,
    pub(super) draft: Draft,
}

impl Pending {
    /// About how much memory it takes.
    pub(super) fn weight(&self) -> usize {
        let content = match &self.draft {
            Draft::Decision { draft, .. } => draft.evidence.capacity() + draft.reasoning.capacity(),
            Draft::Outcome(draft) => {
                let states = draft.state.iter().chain(&draft.asked);
                draft.note.as_ref().map_or(0, String::len) + states.map(StateDraft::len).sum::<usize>()
            }
            Draft::State(change) => size_of::<ChangeDraft>() + change.state.len() + change.cause.len(),
            Draft::Alert { alert, .. } => {
                size_of::<Alert>() + alert.message.len() + alert.proof_ids.len() * size_of::<ProofId>()
            }
            Draft::Erasure { erasure, cause } => erasure.weight() + cause.len(),
            Draft::Freeze { cause } => cause.len(),
            Draft::Archive(draft) => size_of::<ArchiveDraft>() + draft.file.len(),
        };
        size_of::<Self>() + content
    }
}

impl StateDraft {
    fn len(&self) -> usize {
        self.key.len() + self.value.len()
    }
}
