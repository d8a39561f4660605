//! Escalations: requests that await a reviewer, and the reviewers' votes.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    AgentId, Capability, Constraints, Digest, EscalationId, IntentId, KeyId, ProofId, RiskLevel, Share, Timestamp,
    WebhookId, closed_words,
};

closed_words! {
    /// The state of an escalation.
    pub enum EscalationState("escalation state") {
        /// The escalation awaits a reviewer.
        Pending = "pending",
        /// Every required reviewer has approved.
        Approved = "approved",
        /// A reviewer rejected it.
        Rejected = "rejected",
        /// Nobody answered in time, or a change such as a kill switch or other policies ended it.
        Expired = "expired",
    }
}

/// Displayed as reviewer when anybody but the requesters may answer.
pub const ANYBODY: &str = "anybody";

/// The logged reason of escalations that a kill switch ended.
pub const ENDED_BY_KILL_SWITCH: &str = "a kill switch was set";
/// The text that stands for [`ENDED_BY_KILL_SWITCH`] in older logs.
pub const ENDED_BY_KILL_SWITCH_BEFORE: &str = "it was stopped";

/// A request that is only permitted if a reviewer approves it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Escalation {
    /// The identifier of the escalation.
    pub id: EscalationId,
    /// The proof record with the ESCALATE decision.
    pub proof_id: ProofId,
    /// The agent that made the request.
    pub agent_id: AgentId,
    /// The intent, as stored in the evidence with secrets redacted. `null` if the evidence cannot be read.
    #[cfg_attr(feature = "schema", schema(required, value_type = Option<Object>))]
    pub intent: Option<Value>,
    /// The request text with secrets redacted, if the evidence stores it: see `InputText::Asked`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The values that the task's mandate asks the reviewer to endorse: `id`, `chain`, and `faults` with the argument,
    /// its value, the text around it and the tool whose result contained it. Absent outside a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub task: Option<Value>,
    /// Salted SHA-256 of the exact request text, to which an approval is bound; absent for an intent built by its
    /// caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_digest: Option<Digest>,
    /// Why the intent cannot be shown: its evidence was erased or archived, or is damaged. Such an escalation can be
    /// rejected but not approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    /// The reviewer the escalation is assigned to; the first one if several rules escalate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<String>,
    /// The reason for the escalation.
    pub reason: String,
    /// The state of the escalation.
    pub state: EscalationState,
    /// The time the escalation was opened.
    pub created_at: Timestamp,
    /// The deadline for the answer, and for claiming the approval.
    pub expires_at: Timestamp,
    /// The effective risk of the request.
    pub risk_level: RiskLevel,
    /// The approvals that are required.
    pub needs: Vec<ReviewNeed>,
    /// The votes so far.
    pub votes: Vec<Vote>,
    /// The permission that an approval grants.
    pub on_approval: ApprovalOffer,
    /// The digest to which an approval is bound: see [`Review::of`].
    pub digest: Digest,
    /// The record of the decision that resolved the escalation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolution: Option<ProofId>,
    /// The permission finally granted. It never exceeds the offer, and is smaller if policies permit less by then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub granted: Option<ApprovalOffer>,
    /// The time the approval was claimed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<Timestamp>,
    /// Why it ended, if no reviewer ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

crate::parts::outward! {
    /// A reviewer, or a group of reviewers, that must approve.
    #[derive(Eq, Deserialize)]
    pub struct ReviewNeed from ReviewNeedParts {
        /// The reviewer named by a rule: one person, or a name that stands for several. Absent if anybody but the
        /// requesters may answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub reviewer: Option<String>,
        /// Number of different people who must approve.
        pub approvals: u8,
        /// The people who may answer. If empty, the reviewer's name is that of the only person.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub people: Vec<String>,
    }
}

crate::parts::outward! {
    /// The vote of one reviewer.
    #[derive(Eq, Deserialize)]
    pub struct Vote from VoteParts {
        /// The reviewer's name.
        pub reviewer: String,
        /// Whether the reviewer approved.
        pub approved: bool,
        /// The reviewer's note.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub note: Option<String>,
        /// The time of the vote.
        pub at: Timestamp,
        /// The proof of the reviewer's identity; absent if the caller vouched for the name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub identity: Option<ReviewerIdentity>,
    }
}

/// The proof of a reviewer's identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "by", rename_all = "camelCase")]
#[non_exhaustive]
pub enum ReviewerIdentity {
    /// An API key that belongs to the reviewer.
    Key {
        /// The key's id.
        id: KeyId,
    },
    /// The holder of this administrator's key vouched for the name.
    AdminKey {
        /// The key's id.
        id: KeyId,
    },
    /// The approval link for this reviewer and escalation.
    Link {
        /// The webhook endpoint to which the link was sent.
        webhook: WebhookId,
    },
    /// An OpenID Connect token.
    Oidc {
        /// The issuer of the token.
        issuer: String,
        /// The issuer's identifier of the person.
        subject: String,
    },
}

crate::parts::outward! {
    /// The permission that an approval grants.
    #[derive(Default, Deserialize)]
    pub struct ApprovalOffer from ApprovalOfferParts {
        /// The capabilities that are granted.
        pub granted: Vec<Capability>,
        /// The capabilities that a degrading rule still denies.
        pub denied: Vec<Capability>,
        /// Constraints on the granted capabilities.
        pub constraints: Constraints,
    }
}

/// A review: the reviewer's name, an optional note, and optionally the state the reviewer saw.
///
/// ```
/// use rulekeep::escalation::Review;
///
/// let review = Review::by("ann").note("seen the order");
/// # let _ = review;
/// ```
#[derive(Debug, Clone)]
#[must_use]
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct Review {
    pub reviewer: String,
    pub note: Option<String>,
    pub digest: Option<Digest>,
    pub is_for_task: bool,
    pub identity: Option<ReviewerIdentity>,
}

impl Review {
    /// Creates a review by a person. The caller is responsible for authenticating the name.
    pub fn by(reviewer: impl Into<String>) -> Self {
        Self { reviewer: reviewer.into(), note: None, digest: None, is_for_task: false, identity: None }
    }

    /// States how the reviewer proved who they are, which is stored with the vote.
    pub fn identified(mut self, identity: ReviewerIdentity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Adds a note of at most 4,096 characters, which is stored with the vote.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    /// Widens the mandate of the call's task beyond this call: the values and the act in question count as requested
    /// for the rest of the task. No effect outside a task.
    pub fn for_task(mut self) -> Self {
        self.is_for_task = true;
        self
    }

    /// Binds the review to the escalation's [`Escalation::digest`] that the reviewer saw. The review fails if it has
    /// changed.
    pub fn of(mut self, digest: Digest) -> Self {
        self.digest = Some(digest);
        self
    }
}

/// The result of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resolved {
    /// The state of the escalation after the review.
    pub state: EscalationState,
    /// The record that resolved the escalation; `None` while further reviewers must agree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof_id: Option<ProofId>,
}

impl Resolved {
    #[doc(hidden)]
    pub const fn new(state: EscalationState, proof_id: Option<ProofId>) -> Self {
        Self { state, proof_id }
    }
}

/// A query for escalations: all of them, newest first, unless narrowed.
#[derive(Debug, Clone, Default)]
#[must_use]
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct EscalationQuery {
    pub state: Option<EscalationState>,
    pub agent_id: Option<String>,
    pub page: Option<u64>,
    pub page_size: Option<u64>,
}

impl EscalationQuery {
    /// Selects all escalations.
    pub fn all() -> Self {
        Self::default()
    }

    /// Selects only escalations in this state.
    pub fn state(mut self, state: EscalationState) -> Self {
        self.state = Some(state);
        self
    }

    /// Selects only escalations of one agent.
    pub fn agent(mut self, agent_id: impl Into<String>) -> Self {
        self.agent_id = Some(agent_id.into());
        self
    }

    /// Sets the page number, counted from 1. Default: 1.
    pub fn page(mut self, page: u64) -> Self {
        self.page = Some(page);
        self
    }

    /// Sets the number of escalations per page, 1 to 200. Default: 50.
    pub fn page_size(mut self, page_size: u64) -> Self {
        self.page_size = Some(page_size);
        self
    }
}

crate::parts::outward! {
    /// One page of escalations.
    #[derive(Deserialize)]
    pub struct EscalationPage from EscalationPageParts {
        /// The escalations on this page.
        pub items: Vec<Escalation>,
        /// Number of matching escalations over all pages.
        pub total: u64,
        /// The page number, counted from 1.
        pub page: u64,
        /// Maximum number of escalations per page.
        pub page_size: u64,
        /// True if later pages have more escalations.
        pub has_more: bool,
    }
}

/// An escalation as stored in the log: everything but the intent, which is part of the record's evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct EscalationRecord {
    pub proof_id: ProofId,
    pub agent_id: AgentId,
    pub intent_id: IntentId,
    pub state: EscalationState,
    pub reason: String,
    pub risk: RiskLevel,
    pub needs: Vec<ReviewNeed>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub salt: Digest,
    pub digest: Digest,
    pub policy_digest: Digest,
    /// Salted digest of the text the intent was parsed from, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Digest>,
    /// Salted digests of the requesters' names; requesters cannot approve.
    pub askers: Vec<Digest>,
    pub on_approval: ApprovalOffer,
    /// The amounts that claiming the approval consumes of rate limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub charges: Vec<LimitCharge>,
    pub votes: Vec<Vote>,
    /// The permission finally granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<ApprovalOffer>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<ProofId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The position of the log entry that contains this state.
    pub place: super::Sequence,
}

/// An amount consumed of a rate limit: the counter, the amount, the maximum within the window, and the window in
/// milliseconds, and how the organisation shares it. Sums of money are in millionths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitCharge(
    pub Box<str>,
    pub i64,
    #[serde(default = "LimitCharge::no_bound")] pub i64,
    #[serde(default)] pub i64,
    #[serde(default, skip_serializing_if = "Option::is_none")] pub Option<Share>,
);

impl LimitCharge {
    /// Escalations from before bounds were stored have none.
    const fn no_bound() -> i64 {
        i64::MAX
    }
}

impl EscalationRecord {
    #[doc(hidden)]
    pub fn id(&self) -> EscalationId {
        EscalationId::of(self.proof_id)
    }

    /// Adds the request and its text, or the reason they cannot be read.
    pub fn shown(self, asked: Result<(Value, Option<String>, Option<Value>), String>) -> Escalation {
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
