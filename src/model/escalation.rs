//! Escalations: what waits for a person, and what people said.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    AgentId, Capability, Constraints, Digest, EscalationId, IntentId, ProofId, RiskLevel, Timestamp, closed_words,
};

closed_words! {
    /// How an escalation stands.
    pub enum EscalationState("escalation state") {
        /// It waits for a person.
        Pending = "pending",
        /// All who had to agree have.
        Approved = "approved",
        /// A person said no.
        Rejected = "rejected",
        /// Nobody answered in time, or something came between.
        Expired = "expired",
    }
}

/// The reviewer that is shown where anybody but who asked may answer.
pub(crate) const ANYBODY: &str = "anybody";

/// Why those ended that a stop ended, as the log has it.
pub(crate) const ENDED_BY_KILL_SWITCH: &str = "it was stopped";

/// What an agent may do only if a person agrees.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Escalation {
    /// The escalation.
    pub id: EscalationId,
    /// The record that asks.
    pub proof_id: ProofId,
    /// Who asks.
    pub agent_id: AgentId,
    /// What is asked for, as it is kept in the evidence: secrets are masked. None where that cannot be read.
    #[cfg_attr(feature = "schema", schema(required, value_type = Option<Object>))]
    pub intent: Option<Value>,
    /// The text that was asked, with secrets masked, where the evidence keeps it: see `InputText::Asked`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// What the task's mandate asks a reviewer to endorse: `id`, `chain`, and `faults` with the argument, its value, the
    /// text around it and the tool whose result it came from. Absent outside a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub task: Option<Value>,
    /// SHA-256 of the text as it was asked and of a salt, to which an approval is bound; none for a built intent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_digest: Option<Digest>,
    /// Why there is no intent: it was erased or archived, or is damaged. Such a one can be rejected and not be approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    /// Whom it goes to; of several the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<String>,
    /// Why a person is asked.
    pub reason: String,
    /// How it stands.
    pub state: EscalationState,
    /// When it was asked.
    pub created_at: Timestamp,
    /// Until when it can be answered, and what was approved be used.
    pub expires_at: Timestamp,
    /// The risk that counted.
    pub risk_level: RiskLevel,
    /// All who have to agree.
    pub needs: Vec<ReviewNeed>,
    /// What people said so far.
    pub votes: Vec<Vote>,
    /// What an approval grants.
    pub on_approval: ApprovalOffer,
    /// What an approval binds to: see [`Review::of`].
    pub digest: Digest,
    /// The record that answers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolution: Option<ProofId>,
    /// What was granted in the end: no more than the offer, and less where less holds by then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub granted: Option<ApprovalOffer>,
    /// When what was approved was taken up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<Timestamp>,
    /// Why it ended, where no person ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Somebody who has to agree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReviewNeed {
    /// Whom a rule asks: a name that stands for people, or one person's. None: anybody but who asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<String>,
    /// How many different people.
    pub approvals: u8,
    /// The people who may answer; where none are listed, the name is itself the only person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub people: Vec<String>,
}

/// What one person said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Vote {
    /// Who.
    pub reviewer: String,
    /// Whether they agreed.
    pub approved: bool,
    /// What they noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// What an approval grants.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ApprovalOffer {
    /// What may be used then.
    pub granted: Vec<Capability>,
    /// What a degrading rule withholds all the same.
    pub denied: Vec<Capability>,
    /// Limits on what is granted.
    pub constraints: Constraints,
}

/// A reviewer's word: who, what they note, and what they have seen.
///
/// ```
/// use rulekeep::escalation::Review;
///
/// let review = Review::by("ann").note("seen the order");
/// # let _ = review;
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Review {
    pub(crate) reviewer: String,
    pub(crate) note: Option<String>,
    pub(crate) digest: Option<Digest>,
    pub(crate) is_for_task: bool,
}

impl Review {
    /// A review by a person. Who calls vouches for the name.
    pub fn by(reviewer: impl Into<String>) -> Self {
        Self { reviewer: reviewer.into(), note: None, digest: None, is_for_task: false }
    }

    /// What the reviewer notes: at most 4,096 characters, kept with the answer.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    /// Widens the mandate of the task that the call was made under, not for this call alone: the values and the act that
    /// were asked about are legitimate for the rest of the task. Without effect outside a task.
    pub fn for_task(mut self) -> Self {
        self.is_for_task = true;
        self
    }

    /// Refuses the review unless the escalation still has this [`Escalation::digest`]: what the reviewer was shown.
    pub fn of(mut self, digest: Digest) -> Self {
        self.digest = Some(digest);
        self
    }
}

/// What a review came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resolved {
    /// How the escalation stands now.
    pub state: EscalationState,
    /// The record that answers it; none while others have to agree too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof_id: Option<ProofId>,
}

impl Resolved {
    pub(crate) const fn new(state: EscalationState, proof_id: Option<ProofId>) -> Self {
        Self { state, proof_id }
    }
}

/// Which escalations are listed: all, newest first, unless narrowed.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct EscalationQuery {
    pub(crate) state: Option<EscalationState>,
    pub(crate) agent_id: Option<String>,
    pub(crate) page: Option<u64>,
    pub(crate) page_size: Option<u64>,
}

impl EscalationQuery {
    /// All of them.
    pub fn all() -> Self {
        Self::default()
    }

    /// Only those that stand so.
    pub fn state(mut self, state: EscalationState) -> Self {
        self.state = Some(state);
        self
    }

    /// Only those of an agent.
    pub fn agent(mut self, agent_id: impl Into<String>) -> Self {
        self.agent_id = Some(agent_id.into());
        self
    }

    /// The page, counted from 1. Default: 1.
    pub fn page(mut self, page: u64) -> Self {
        self.page = Some(page);
        self
    }

    /// Escalations a page, 1 to 200. Default: 50.
    pub fn page_size(mut self, page_size: u64) -> Self {
        self.page_size = Some(page_size);
        self
    }
}

/// A page of escalations.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EscalationPage {
    /// The escalations.
    pub items: Vec<Escalation>,
    /// How many match in all.
    pub total: u64,
    /// The page, counted from 1.
    pub page: u64,
    /// Escalations a page.
    pub page_size: u64,
    /// Whether there are more behind it.
    pub has_more: bool,
}

/// What the log keeps of an escalation: all but the intent, which stands in the evidence of the record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EscalationRecord {
    pub(crate) proof_id: ProofId,
    pub(crate) agent_id: AgentId,
    pub(crate) intent_id: IntentId,
    pub(crate) state: EscalationState,
    pub(crate) reason: String,
    pub(crate) risk: RiskLevel,
    pub(crate) needs: Vec<ReviewNeed>,
    pub(crate) created_at: Timestamp,
    pub(crate) expires_at: Timestamp,
    pub(crate) salt: Digest,
    pub(crate) digest: Digest,
    pub(crate) policy_digest: Digest,
    /// Salted digest of the text that the intent was parsed from, where that was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<Digest>,
    /// Salted digests of the names of whoever asked, who cannot agree.
    pub(crate) askers: Vec<Digest>,
    pub(crate) on_approval: ApprovalOffer,
    /// What the approved use takes of limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) charges: Vec<LimitCharge>,
    pub(crate) votes: Vec<Vote>,
    /// What was granted in the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) grant: Option<ApprovalOffer>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resolution: Option<ProofId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) claimed_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    /// The entry that this stands in.
    pub(crate) place: super::Sequence,
}

/// What is taken of a limit: the counter, how much, the most within a window, and how many milliseconds that is. Amounts
/// are millionths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LimitCharge(
    pub(crate) Box<str>,
    pub(crate) i64,
    #[serde(default = "LimitCharge::no_bound")] pub(crate) i64,
    #[serde(default)] pub(crate) i64,
);

impl LimitCharge {
    /// Of what was asked before bounds were kept none is known.
    const fn no_bound() -> i64 {
        i64::MAX
    }
}

impl EscalationRecord {
    pub(crate) fn id(&self) -> EscalationId {
        EscalationId::of(self.proof_id)
    }

    /// With what was asked for and the text of it, or why that cannot be read.
    pub(crate) fn shown(self, asked: Result<(Value, Option<String>, Option<Value>), String>) -> Escalation {
        let (intent, input, task, unreadable) = match asked {
            Ok((intent, input, task)) => (Some(intent), input, task, None),
            Err(why) => (None, None, None, Some(why)),
        };
        Escalation {
            id: self.id(),
            proof_id: self.proof_id,
            agent_id: self.agent_id,
            intent,
            input,
            task,
            input_digest: self.text,
            unreadable,
            reviewer: self.needs.iter().find_map(|need| need.reviewer.clone()).or_else(|| Some(ANYBODY.to_owned())),
            reason: self.reason,
            state: self.state,
            created_at: self.created_at,
            expires_at: self.expires_at,
            risk_level: self.risk,
            needs: self.needs,
            votes: self.votes,
            on_approval: self.on_approval,
            digest: self.digest,
            resolution: self.resolution,
            granted: self.grant,
            claimed_at: self.claimed_at,
            why: self.why,
        }
    }
}
