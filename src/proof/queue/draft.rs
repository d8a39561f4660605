//! What is on its way to the journal: what callers hand in, and its place once it is in order.

use serde::{Deserialize, Serialize};

use crate::model::{
    AgentId, Decision, IntentId, Outcome, ProofId, RiskLevel, Sequence, Timestamp, TrustCause, TrustChange,
    TrustSnapshot,
};
use crate::store::{Kind, Start};

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
    /// What a success is earned on; none where the decision is too old.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) earns: Option<RiskLevel>,
    /// When it did, by the clock: entries' times never run backwards, clocks do.
    pub(crate) at: Timestamp,
    /// Whether a failure gives nothing back of limits, for the agent itself reported it.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub(crate) keeps_limits: bool,
}

impl OutcomeBasis {
    /// Whether what the decision used of limits is free again after that outcome.
    pub(crate) fn gives_back(basis: Option<Self>, outcome: Outcome) -> bool {
        outcome == Outcome::Failure && basis.is_none_or(|basis| !basis.keeps_limits)
    }
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
    pub(crate) fn stand_at(&mut self, sequence: Sequence) {
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
pub(crate) enum Draft {
    Decision { id: ProofId, draft: DecisionDraft },
    Outcome(OutcomeDraft),
    State(Box<ChangeDraft>),
    Entry(EntryDraft),
}

/// Any other entry, its body complete.
#[derive(Debug)]
pub(crate) struct EntryDraft {
    pub(crate) kind: Kind,
    pub(crate) body: Vec<u8>,
    /// Where the log begins once an archive's entry is on disk.
    pub(crate) begins: Option<Start>,
}

/// A draft with its place.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) sequence: Sequence,
    pub(crate) at: Timestamp,
    pub(crate) draft: Draft,
}

impl Pending {
    /// About how much memory it takes.
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
