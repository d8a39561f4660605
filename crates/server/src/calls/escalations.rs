//! The calls on escalations and pre-approvals.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::call::Wait;
use super::call::{Call, Read};
use super::decisions;
use super::params::Params;
use super::params::given;
use super::params::{escalation_id, in_whole_numbers};
use super::spec::required_person;
use super::spec::{Spec, Subject};
use crate::gateway::{Admitted, Gateway};
use rulekeep::agent::AgentId;
use rulekeep::escalation::{
    Escalation, EscalationId, EscalationPage, EscalationQuery, EscalationState, PreApproval, PreApprovalId,
    PreApprovalStanding, PreApprovalState, PreApprovalTerms, Resolved, Review,
};
use rulekeep::intent::InvalidValue;
use rulekeep::proof::{Digest, ProofId};
use rulekeep::{Enforcement, Error, Intent};

/// Parses the id of an escalation, or of the record that asks for it.
///
/// # Errors
///
/// [`InvalidValue`] for any other text.
pub fn parse_id(text: &str) -> Result<EscalationId, InvalidValue> {
    text.parse().map(EscalationId::of).or_else(|_: InvalidValue| text.parse())
}

/// The escalations to list.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct List {
    /// The state of the escalations; all if absent.
    pub state: Option<EscalationState>,
    /// The agent; all agents if absent.
    #[schema(value_type = Option<AgentId>)]
    pub agent_id: Option<String>,
    /// The page, counted from 1.
    #[schema(minimum = 1, maximum = 18_446_744_073_709_551_615_u64, default = 1)]
    pub page: Option<u64>,
    /// The number of entries on a page.
    #[schema(minimum = 1, maximum = 200, default = 50)]
    pub page_size: Option<u64>,
}

impl Call for List {
    const SPEC: Spec = Spec::get("escalation/list", "/admin/escalations", "Lists escalations")
        .for_reviewers()
        .queried(&["state", "agentId", "page", "pageSize"]);
    type Answer = EscalationPage;

    fn subject(&self) -> Subject<'_> {
        Subject::Reviews
    }

    fn run(self, gateway: &Gateway) -> Result<EscalationPage, Error> {
        let mut query = given(EscalationQuery::all(), self.state, EscalationQuery::state);
        query = given(query, self.agent_id, EscalationQuery::agent);
        query = given(query, self.page, EscalationQuery::page);
        query = given(query, self.page_size, EscalationQuery::page_size);
        gateway.governor().escalations().list(&query)
    }
}

/// The escalation to read.
#[derive(Deserialize, Serialize, ToSchema)]
pub struct Get {
    /// The escalation.
    #[serde(deserialize_with = "escalation_id")]
    pub id: EscalationId,
}

impl Call for Get {
    const SPEC: Spec =
        Spec::get("escalation/get", "/escalations/{id}", "Returns an escalation").for_both().errors(&[404]);
    type Answer = Escalation;

    fn subject(&self) -> Subject<'_> {
        Subject::Escalation(self.id)
    }

    fn run(self, gateway: &Gateway) -> Result<Escalation, Error> {
        gateway.governor().escalations().get(self.id)
    }
}

impl Call for Wait {
    const SPEC: Spec =
        Spec::post("escalation/wait", "/escalations/{id}/wait", "Waits until an escalation is answered or expires")
            .for_both()
            .errors(&[404]);
    type Answer = Escalation;

    fn subject(&self) -> Subject<'_> {
        Subject::Escalation(self.id)
    }

    fn wait(&mut self) -> Option<&mut Wait> {
        Some(self)
    }

    fn run(mut self, gateway: &Gateway) -> Result<Escalation, Error> {
        let timeout = self.take_timeout()?;
        gateway.governor().escalations().wait_answered(self.id, timeout)
    }
}

/// The approved intent.
#[derive(Deserialize, ToSchema)]
pub(super) struct Claim {
    #[serde(deserialize_with = "escalation_id")]
    id: EscalationId,
    #[schema(value_type = Intent)]
    intent: Value,
}

impl Call for Claim {
    const SPEC: Spec = Spec::post("escalation/claim", "/escalations/{id}/claim", "Claims an approved escalation, once")
        .for_agents()
        .errors(&[404, 409, 422]);
    type Answer = Enforcement;

    fn subject(&self) -> Subject<'_> {
        Subject::Escalation(self.id)
    }

    fn run(self, gateway: &Gateway) -> Result<Enforcement, Error> {
        gateway.governor().escalations().claim(self.id, &Intent::from_json(&self.intent)?)
    }

    fn granted(answer: &Enforcement) -> Vec<ProofId> {
        decisions::granted(answer).into_iter().collect()
    }
}

/// Defines the answer of a reviewer to an escalation.
macro_rules! answers {
    (
        $name:ident, $method:literal, $path:literal, $summary:literal, $answer:ident,
        { $($(#[$meta:meta])* $field:ident: $type:ty)? }
    ) => {
        /// The answer of a reviewer.
        #[derive(Deserialize, Serialize, ToSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct $name {
            /// The escalation.
            #[serde(deserialize_with = "escalation_id")]
            pub id: EscalationId,
            /// The name of the reviewer.
            #[schema(schema_with = required_person)]
            pub reviewer: String,
            /// The reviewer's note.
            #[schema(max_length = 4096)]
            pub note: Option<String>,
            /// The digest that the reviewer looked at; the answer is refused if it has changed.
            pub digest: Option<Digest>,
            $($(#[$meta])* pub $field: $type,)?
        }

        impl Call for $name {
            const SPEC: Spec =
                Spec::post($method, $path, $summary).for_reviewers().no_null().errors(&[403, 404, 409, 422]);
            type Answer = Answered;

            fn subject(&self) -> Subject<'_> {
                Subject::Reviews
            }

            fn run(self, gateway: &Gateway) -> Result<Answered, Error> {
                self.answer(gateway, Ok)
            }

            fn run_for(self, admitted: &Admitted) -> Result<Answered, Error> {
                admitted.permit(&self.subject())?;
                self.answer(admitted.gateway(), |review| admitted.identified(review))
            }
        }

        impl $name {
            fn answer(
                self,
                gateway: &Gateway,
                identified: impl FnOnce(Review) -> Result<Review, Error>,
            ) -> Result<Answered, Error> {
                let review = identified(review(self.reviewer, self.note, self.digest))?;
                $(let review = if self.$field.unwrap_or_default() { review.for_task() } else { review };)?
                let Resolved { state, proof_id, .. } = gateway.governor().escalations().$answer(self.id, review)?;
                Ok(Answered { state, proof_id })
            }
        }
    };
}

answers!(
    Approve, "escalation/approve", "/admin/escalations/{id}/approve", "Approves an escalation", approve,
    {
        /// Whether the approval extends the task's mandate instead of applying to this call only.
        for_task: Option<bool>
    }
);
answers!(Reject, "escalation/reject", "/admin/escalations/{id}/reject", "Rejects an escalation", reject, {});

/// The result of a reviewer's answer.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Answered {
    /// The state of the escalation.
    pub state: EscalationState,
    /// The record of the answer; `null` while further reviewers have to agree.
    #[schema(required)]
    pub proof_id: Option<ProofId>,
}

/// A pre-approval to give, or one of another reviewer to agree to.
#[derive(ToSchema)]
#[serde(untagged)]
pub(super) enum Grant {
    /// A new pre-approval.
    Class(PreApprovalForm),
    /// A pre-approval that another reviewer gave.
    Known(KnownForm),
}

/// The terms of a pre-approval, and the reviewer's statement.
#[derive(ToSchema)]
pub(super) struct PreApprovalForm {
    #[serde(flatten)]
    terms: PreApprovalTerms,
    #[serde(flatten)]
    person: PersonForm,
}

/// A pre-approval of another reviewer, and this reviewer's statement.
#[derive(ToSchema)]
pub(super) struct KnownForm {
    id: PreApprovalId,
    #[serde(flatten)]
    person: PersonForm,
}

/// A reviewer's statement on a pre-approval.
#[derive(ToSchema)]
pub(super) struct PersonForm {
    #[schema(schema_with = required_person)]
    reviewer: String,
    #[schema(max_length = 4096)]
    note: Option<String>,
    /// Used only for escalations.
    #[schema(ignore)]
    digest: Option<Digest>,
}

/// The fields that make up the terms of a pre-approval.
const TERMS: &[&str] =
    &["agentId", "group", "capabilities", "rules", "actions", "targets", "maxRisk", "until", "count", "sum"];

impl Read for Grant {
    /// Refuses unknown terms: ignoring a misspelled one would widen what the reviewer agrees to.
    fn read(mut params: Params, spec: &Spec) -> Result<Self, Error> {
        let known = params.get("id").is_some();
        let terms: Map<String, Value> = if known {
            Map::new()
        } else {
            TERMS.iter().filter_map(|name| Some(((*name).to_owned(), params.take(name)?))).collect()
        };
        let word: Word = params.typed(spec)?;
        let person = PersonForm { reviewer: word.reviewer, note: word.note, digest: word.digest };
        if let Some(id) = word.id {
            return Ok(Self::Known(KnownForm { id, person }));
        }
        let mut terms = Value::Object(terms);
        in_whole_numbers(&mut terms);
        let terms = serde_json::from_value(terms)
            .map_err(|error| Error::input("params", format!("these are not valid terms of a pre-approval: {error}")))?;
        Ok(Self::Class(PreApprovalForm { terms, person }))
    }
}

impl Call for Grant {
    const SPEC: Spec =
        Spec::post("escalation/grant", "/admin/grants", "Creates a pre-approval, or approves a pending one")
            .errors(&[404, 409, 422]);
    type Answer = Granted;

    fn run(self, gateway: &Gateway) -> Result<Granted, Error> {
        let escalations = gateway.governor().escalations();
        match self {
            Self::Known(KnownForm { id, person }) => {
                let state = Some(escalations.agree_to_pre_approval(&id, person.review())?);
                Ok(Granted { id, state })
            }
            Self::Class(PreApprovalForm { terms, person }) => {
                let id = escalations.pre_approve(PreApproval::try_from(terms)?, person.review())?;
                let standing = escalations.pre_approvals().into_iter().find(|class| class.id == id);
                Ok(Granted { id, state: standing.map(|standing| standing.state) })
            }
        }
    }
}

/// The fields beside the terms of a pre-approval.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Word {
    id: Option<PreApprovalId>,
    reviewer: String,
    note: Option<String>,
    digest: Option<Digest>,
}

impl PersonForm {
    fn review(self) -> Review {
        review(self.reviewer, self.note, self.digest)
    }
}

/// The state of a pre-approval.
#[derive(Serialize, ToSchema)]
pub(super) struct Granted {
    id: PreApprovalId,
    #[schema(required)]
    state: Option<PreApprovalState>,
}

/// No parameters.
#[derive(Deserialize, ToSchema)]
pub(super) struct Grants {}

impl Call for Grants {
    const SPEC: Spec = Spec::get("escalation/grants", "/admin/grants", "Lists the pre-approvals");
    type Answer = GrantList;

    fn run(self, gateway: &Gateway) -> Result<GrantList, Error> {
        Ok(GrantList { grants: gateway.governor().escalations().pre_approvals() })
    }
}

/// Every pre-approval in force.
#[derive(Serialize, ToSchema)]
pub(super) struct GrantList {
    grants: Vec<PreApprovalStanding>,
}

/// The pre-approval to revoke, and the reviewer's statement.
#[derive(Deserialize, ToSchema)]
pub(super) struct Revoke {
    id: PreApprovalId,
    #[schema(schema_with = required_person)]
    reviewer: String,
    #[schema(max_length = 4096)]
    note: Option<String>,
}

impl Call for Revoke {
    const SPEC: Spec =
        Spec::post("escalation/revoke", "/admin/grants/{id}/revoke", "Revokes a pre-approval").errors(&[404, 409]);
    type Answer = GrantId;

    fn run(self, gateway: &Gateway) -> Result<GrantId, Error> {
        gateway.governor().escalations().revoke(&self.id, review(self.reviewer, self.note, None))?;
        Ok(GrantId { id: self.id })
    }
}

/// The id of the pre-approval.
#[derive(Serialize, ToSchema)]
pub(super) struct GrantId {
    id: PreApprovalId,
}

fn review(reviewer: String, note: Option<String>, digest: Option<Digest>) -> Review {
    given(given(Review::by(reviewer), note, Review::note), digest, Review::of)
}
