//! What is on its way to the journal: what callers hand in, and its place once it is in order.

use super::erase::Erasure;
use crate::model::{
    AgentId, Alert, Decision, Digest, IntentId, Outcome, ProofId, RiskLevel, Sequence, Timestamp, TrustChange,
    TrustSnapshot,
};
use crate::store::Start;

/// A decision to be recorded.
#[derive(Debug)]
pub(crate) struct DecisionDraft {
    pub(crate) entity: AgentId,
    pub(crate) intent: IntentId,
    pub(crate) decision: Decision,
    pub(crate) reasoning: String,
    pub(crate) trust: TrustSnapshot,
    pub(crate) risk: RiskLevel,
    /// As `evidence::encode` makes it.
    pub(crate) evidence: Vec<u8>,
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
    /// How the agent's trust moves.
    pub(crate) trust: Option<TrustChange>,
}

/// The new state of something.
#[derive(Debug)]
pub(crate) struct StateDraft {
    pub(crate) key: String,
    /// JSON.
    pub(crate) value: String,
}

/// What is to be written.
#[derive(Debug)]
pub(super) enum Draft {
    Decision { id: ProofId, draft: DecisionDraft },
    Outcome(OutcomeDraft),
    State { state: StateDraft, cause: String },
    Alert(Box<Alert>),
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
                draft.note.as_ref().map_or(0, String::len) + draft.state.as_ref().map_or(0, StateDraft::len)
            }
            Draft::State { state, cause } => state.len() + cause.len(),
            Draft::Alert(alert) => alert.message.len(),
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
