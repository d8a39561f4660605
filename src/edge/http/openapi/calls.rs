//! Every call as the document describes it.

use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{IntoParams, ToSchema};

use super::answers::{
    AgentExport, AgentPage, AgentStanding, AgentTrust, Answered, CheckpointNote, CheckpointProof, EndpointList,
    Enforced, Explained, GrantId, Granted, Grants, KeyList, LiftedStop, Parsed, PoliciesLoaded, PoliciesShown,
    PoliciesValidated, Previewed, Redelivered, Shadowed, ShownRecord, Stops, Tools, WebhookDeliveryPage, WebhookRef,
    WebhookSecret,
};
use super::bodies::{
    AddressBody, AdjustBody, AgentBody, AgentChangeBody, ClaimBody, CorrectionBody, DecisionBody, DeliveriesQuery,
    DocumentBody, EndpointBody, EntityQuery, EscalationsQuery, EvidenceQuery, GrantBody, KeyBody, LiftBody, LinesBody,
    NoteBody, OptionalEntityQuery, OutcomeBody, OverrideBody, PageQuery, ParseBody, PeriodQuery, PersonBody, PinBody,
    PoliciesBody, ProveBody, RecordsQuery, RedeliverBody, ReplayBody, ReviewBody, RotateBody, ShadowBody, StopBody,
    ToolBody, ToolsBody, WaitBody,
};
use crate::edge::gateway::{KeyInfo, NewKey};
use crate::governor::Replay;
use crate::model::{
    AgentImport, AgentInfo, CatalogueReport, ClassApprovalId, Enforcement, Escalation, EscalationId, EscalationPage,
    KeyId, KillSwitchId, KillSwitchReport, ProofPage, ProofRecord, ProofStats, SystemStatus, ToolClassification,
    TrustCheck, TrustPage, TrustSnapshot, Verification, WebhookId,
};

/// A type, as what describes it.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) name: fn() -> std::borrow::Cow<'static, str>,
    pub(super) schema: fn() -> RefOr<Schema>,
    pub(super) parts: fn(&mut Vec<(String, RefOr<Schema>)>),
}

impl Shape {
    pub(super) const fn of<T: ToSchema>() -> Self {
        Self { name: T::name, schema: T::schema, parts: T::schemas }
    }
}

/// A call.
#[derive(Clone, Copy)]
pub(super) struct Described {
    pub(super) call: &'static str,
    pub(super) summary: &'static str,
    pub(super) answer: Shape,
    pub(super) body: Option<Shape>,
    /// What the path's `id` is.
    pub(super) id: Option<Shape>,
    pub(super) query: &'static [fn() -> Vec<Parameter>],
    /// Statuses of errors beside those that every call can have.
    pub(super) errors: &'static [u16],
}

impl Described {
    const fn body<T: ToSchema>(mut self) -> Self {
        self.body = Some(Shape::of::<T>());
        self
    }

    const fn id<T: ToSchema>(mut self) -> Self {
        self.id = Some(Shape::of::<T>());
        self
    }

    const fn query(mut self, query: &'static [fn() -> Vec<Parameter>]) -> Self {
        self.query = query;
        self
    }

    const fn errors(mut self, errors: &'static [u16]) -> Self {
        self.errors = errors;
        self
    }
}

const fn of<T: ToSchema>(call: &'static str, summary: &'static str) -> Described {
    Described { call, summary, answer: Shape::of::<T>(), body: None, id: None, query: &[], errors: &[] }
}

fn query<T: IntoParams>() -> Vec<Parameter> {
    T::into_params(|| Some(ParameterIn::Query))
}

/// All of them.
pub(super) const CALLS: &[Described] = &[
    of::<Parsed>("intent", "Parses an action request into an intent").body::<ParseBody>().errors(&[404, 413]),
    of::<Enforced>("enforce", "Decides on an intent, or on an input, and records the decision")
        .body::<DecisionBody>()
        .errors(&[404, 422]),
    of::<ProofPage>("proof/query", "Reads the records of an agent")
        .query(&[query::<EntityQuery>, query::<RecordsQuery>]),
    of::<ProofStats>("proof/stats", "Counts the records of an agent")
        .query(&[query::<EntityQuery>, query::<PeriodQuery>]),
    of::<SystemStatus>("admin/status", "Says how the service does"),
    of::<ProofRecord>("outcome/report", "Reports what became of an action").body::<OutcomeBody>().errors(&[404, 409]),
    of::<ShownRecord>("proof/get", "Reads a record").query(&[query::<EvidenceQuery>]).errors(&[404]),
    of::<AgentTrust>("agent/get", "Reads an agent's trust").errors(&[404]),
    of::<TrustPage>("trust/history", "Reads how an agent's trust came about")
        .query(&[query::<PageQuery>])
        .errors(&[404]),
    of::<Escalation>("escalation/get", "Reads an escalation").id::<EscalationId>().errors(&[404]),
    of::<Enforcement>("escalation/claim", "Takes up what was approved, once")
        .id::<EscalationId>()
        .body::<ClaimBody>()
        .errors(&[404, 409, 422]),
    of::<Escalation>("escalation/wait", "Waits until an escalation is answered or has expired")
        .id::<EscalationId>()
        .body::<WaitBody>()
        .errors(&[404]),
    of::<ProofPage>("proof/list", "Reads the records of all agents")
        .query(&[query::<OptionalEntityQuery>, query::<RecordsQuery>]),
    of::<ProofPage>("proof/open", "Reads what was granted or asked and has no outcome yet")
        .query(&[query::<OptionalEntityQuery>, query::<RecordsQuery>]),
    of::<TrustSnapshot>("trust/correct", "Says that a reported SUCCESS was none")
        .body::<CorrectionBody>()
        .errors(&[404, 409]),
    of::<Verification>("proof/verify", "Verifies the whole log"),
    of::<TrustCheck>("trust/verify", "Verifies that trust is what the log says").errors(&[409]),
    of::<CheckpointNote>("checkpoint/create", "Makes a checkpoint").errors(&[409]),
    of::<CheckpointProof>("checkpoint/prove", "Proves that a record is in the log, or that the log only grew")
        .body::<ProveBody>()
        .errors(&[404, 409]),
    of::<AgentPage>("agent/list", "Lists the agents").query(&[query::<PageQuery>]),
    of::<AgentTrust>("agent/register", "Registers an agent").body::<AgentBody>().errors(&[409]),
    of::<AgentImport>("agent/import", "Registers the agents of an export").body::<LinesBody>().errors(&[409]),
    of::<AgentExport>("agent/export", "Writes every agent as a line"),
    of::<AgentInfo>("agent/update", "Changes what is said of an agent").body::<AgentChangeBody>().errors(&[404, 409]),
    of::<AgentStanding>("agent/suspend", "Suspends an agent").body::<NoteBody>().errors(&[404, 409]),
    of::<AgentStanding>("agent/resume", "Lets an agent act again").body::<NoteBody>().errors(&[404, 409]),
    of::<AgentStanding>("agent/retire", "Retires an agent for good").body::<NoteBody>().errors(&[404, 409]),
    of::<AgentTrust>("trust/adjust", "Sets an agent's score").body::<AdjustBody>().errors(&[404, 409]),
    of::<Stops>("stop/list", "Lists the stops in force"),
    of::<KillSwitchReport>("stop/set", "Stops an agent, a group or all").body::<StopBody>().errors(&[404, 409]),
    of::<LiftedStop>("stop/lift", "Lifts a stop").id::<KillSwitchId>().body::<LiftBody>().errors(&[404, 409]),
    of::<EscalationPage>("escalation/list", "Lists the escalations")
        .query(&[query::<EscalationsQuery>, query::<PageQuery>]),
    of::<Answered>("escalation/approve", "Agrees to an escalation")
        .id::<EscalationId>()
        .body::<ReviewBody>()
        .errors(&[403, 404, 409, 422]),
    of::<Answered>("escalation/reject", "Refuses an escalation")
        .id::<EscalationId>()
        .body::<ReviewBody>()
        .errors(&[403, 404, 409, 422]),
    of::<Grants>("escalation/grants", "Lists the classes of actions that are agreed to"),
    of::<Granted>("escalation/grant", "Agrees to a class of actions beforehand")
        .body::<GrantBody>()
        .errors(&[404, 409, 422]),
    of::<GrantId>("escalation/revoke", "Takes back what was agreed to")
        .id::<ClassApprovalId>()
        .body::<PersonBody>()
        .errors(&[404, 409]),
    of::<KeyList>("key/list", "Lists the keys"),
    of::<NewKey>("key/create", "Makes a key, whose text is in this answer alone").body::<KeyBody>().errors(&[409]),
    of::<KeyInfo>("key/revoke", "Revokes a key").id::<KeyId>().errors(&[404]),
    of::<PoliciesShown>("policy/get", "Reads the policy set in force"),
    of::<PoliciesLoaded>("policy/load", "Puts another policy set into force")
        .body::<PoliciesBody>()
        .errors(&[409, 422]),
    of::<PoliciesValidated>("policy/validate", "Says what is wrong with a policy document").body::<DocumentBody>(),
    of::<Replay>("policy/replay", "Decides the past again by a candidate set").body::<ReplayBody>().errors(&[404, 422]),
    of::<Shadowed>("policy/shadow", "Sets a set into the shadow, and says what it came to")
        .body::<ShadowBody>()
        .errors(&[422]),
    of::<Explained>("policy/explain", "Says what would be decided, and why, rule by rule")
        .body::<DecisionBody>()
        .errors(&[404, 422]),
    of::<Previewed>("policy/preview", "Says what would be decided").body::<DecisionBody>().errors(&[404, 422]),
    of::<Tools>("catalogue/list", "Lists the tools that are known"),
    of::<CatalogueReport>("catalogue/load", "Takes in tools as they are defined").body::<ToolsBody>().errors(&[409]),
    of::<ToolClassification>("catalogue/override", "Says what a tool is").body::<OverrideBody>().errors(&[404, 409]),
    of::<ToolClassification>("catalogue/pin", "Pins a tool to its definition").body::<PinBody>().errors(&[404, 409]),
    of::<ToolClassification>("catalogue/remove", "Takes a tool out").body::<ToolBody>().errors(&[404, 409]),
    of::<EndpointList>("webhook/list", "Lists the endpoints of webhooks").errors(&[409]),
    of::<WebhookSecret>("webhook/add", "Adds an endpoint, whose secret is in this answer alone")
        .body::<EndpointBody>()
        .errors(&[409]),
    of::<WebhookRef>("webhook/remove", "Removes an endpoint").id::<WebhookId>().errors(&[404, 409]),
    of::<WebhookSecret>("webhook/rotate", "Gives an endpoint a new secret")
        .id::<WebhookId>()
        .body::<RotateBody>()
        .errors(&[404, 409]),
    of::<WebhookRef>("webhook/readdress", "Gives an endpoint another address")
        .id::<WebhookId>()
        .body::<AddressBody>()
        .errors(&[404, 409]),
    of::<WebhookRef>("webhook/resume", "Sends again to an endpoint that is off or broken")
        .id::<WebhookId>()
        .errors(&[404, 409]),
    of::<WebhookDeliveryPage>("webhook/deliveries", "Reads what was sent to an endpoint last, or what was given up")
        .id::<WebhookId>()
        .query(&[query::<DeliveriesQuery>])
        .errors(&[404, 409]),
    of::<Redelivered>("webhook/redeliver", "Sends an event once more").body::<RedeliverBody>().errors(&[404, 409]),
];

#[cfg(test)]
mod tests {
    use super::CALLS;
    use crate::edge::http::routes::ROUTES;

    #[test]
    fn every_call_of_the_routes_is_described_once_and_no_other_is() {
        for route in ROUTES {
            let said = CALLS.iter().filter(|described| described.call == route.call).count();
            assert_eq!(said, 1, "{}", route.call);
        }
        for described in CALLS {
            assert!(ROUTES.iter().any(|route| route.call == described.call), "{}", described.call);
        }
    }
}
