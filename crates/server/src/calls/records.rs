//! The log: records, outcomes, statistics, verification, and the service's status.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::call::{Call, Read};
use super::params::{Params, given, proof_id};
use super::request::RecordedRequest;
use super::spec::{Spec, Subject};
use crate::gateway::{Admitted, Gateway, Scope};
use rulekeep::agent::AgentId;
use rulekeep::checkpoint::VerifierKey;
use rulekeep::extension::closed_words;
use rulekeep::intent::IntentId;
use rulekeep::proof::{
    Evidence, Order, OutcomeReport, Period, ProofCursor, ProofId, ProofPage, ProofStats, Verification, VerifyOptions,
};
use rulekeep::status::SystemStatus;
use rulekeep::system::Timestamp;
use rulekeep::{Decision, Error, Outcome, ProofQuery, ProofRecord, RiskLevel};

/// The records to return, as a page.
#[derive(Default, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordsForm {
    /// The agent.
    #[schema(value_type = Option<AgentId>)]
    pub entity_id: Option<String>,
    /// Start of the time range of decisions, inclusive.
    pub from: Option<Timestamp>,
    /// End of the time range of decisions, inclusive.
    pub to: Option<Timestamp>,
    /// The outcome.
    pub outcome: Option<Outcome>,
    /// The decision.
    pub decision: Option<Decision>,
    /// The effective risk.
    pub risk: Option<RiskLevel>,
    /// Only records that granted or escalated something and have no outcome yet.
    pub open: Option<bool>,
    /// The intent.
    pub intent_id: Option<IntentId>,
    /// The id that the caller gave the request; only together with `entityId`.
    #[schema(min_length = 1, max_length = 256)]
    pub call_id: Option<String>,
    /// The order. Default: `newest`.
    pub order: Option<Order>,
    /// `start`, or the `nextCursor` of the previous page; instead of `page`.
    pub cursor: Option<ProofCursor>,
    /// The page, counted from 1.
    #[schema(minimum = 1, maximum = 18_446_744_073_709_551_615_u64, default = 1)]
    pub page: Option<u64>,
    /// The number of entries on a page.
    #[schema(minimum = 1, maximum = 200, default = 50)]
    pub page_size: Option<u64>,
    /// Also return what each record was asked for, and the rules that decided it.
    #[schema(default = false)]
    pub request: Option<bool>,
}

const QUERIED: &[&str] = &[
    "entityId", "from", "to", "outcome", "decision", "risk", "intentId", "callId", "order", "cursor", "page",
    "pageSize", "request",
];

impl RecordsForm {
    fn page(self, gateway: &Gateway) -> Result<RecordPage, Error> {
        let (governor, is_wanted) = (gateway.governor(), self.request.unwrap_or_default());
        let ProofPage { items, total, page, page_size, has_more, next_cursor, .. } = governor.query(&self.query())?;
        let listed = |record: ProofRecord| {
            // Erased evidence tells nothing.
            let evidence = is_wanted.then(|| governor.log().evidence(&record.id).ok()).flatten();
            ListedRecord { request: evidence.map(|evidence| RecordedRequest::of(&evidence, &record)), record }
        };
        let items = items.into_iter().map(listed).collect();
        Ok(RecordPage { items, total, page, page_size, has_more, next_cursor })
    }

    fn query(self) -> ProofQuery {
        let mut query = self.entity_id.map_or_else(ProofQuery::all, ProofQuery::entity);
        query = given(query, self.from, ProofQuery::from);
        query = given(query, self.to, ProofQuery::to);
        query = given(query, self.decision, ProofQuery::decision);
        query = given(query, self.outcome, ProofQuery::outcome);
        query = given(query, self.risk, ProofQuery::risk);
        query = given(query, self.intent_id, ProofQuery::intent);
        query = given(query, self.call_id, ProofQuery::call);
        query = given(query, self.order, ProofQuery::order);
        query = given(query, self.cursor, ProofQuery::after);
        query = given(query, self.page, ProofQuery::page);
        query = given(query, self.page_size, ProofQuery::page_size);
        if self.open.unwrap_or_default() { query.open() } else { query }
    }
}

/// A page of records.
#[derive(Deserialize, Serialize, ToSchema)]
#[schema(as = ProofPage)]
#[serde(rename_all = "camelCase")]
pub struct RecordPage {
    /// The records of this page.
    pub items: Vec<ListedRecord>,
    /// Number of matching records over all pages.
    pub total: u64,
    /// The page number, counted from 1.
    pub page: u64,
    /// Maximum number of records per page.
    pub page_size: u64,
    /// True if later pages have more records.
    pub has_more: bool,
    /// The cursor of the next page, if there is one and the query asked for a cursor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<ProofCursor>,
}

/// A record in a list.
#[derive(Deserialize, Serialize, ToSchema)]
pub struct ListedRecord {
    /// The record.
    #[serde(flatten)]
    pub record: ProofRecord,
    /// The record's request, if the query asked for it and the evidence was not erased. The record's hash does not cover it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<RecordedRequest>,
}

/// Returns the records of one agent.
pub(super) struct Query(RecordsForm);

impl Read for Query {
    fn read(params: Params, spec: &Spec) -> Result<Self, Error> {
        let form: RecordsForm = params.typed(spec)?;
        if form.entity_id.is_none() {
            return Err(Error::query("entityId", "is missing"));
        }
        Ok(Self(form))
    }
}

impl Call for Query {
    const SPEC: Spec =
        Spec::get("proof/query", "/proof/query", "Lists the proof records of an agent").for_agents().queried(QUERIED);
    type Answer = RecordPage;

    fn subject(&self) -> Subject<'_> {
        self.0.entity_id.as_deref().map_or(Subject::Everything, Subject::Agent)
    }

    fn run(self, gateway: &Gateway) -> Result<RecordPage, Error> {
        self.0.page(gateway)
    }
}

/// Returns the records of all agents, or of one.
#[derive(Deserialize, Serialize)]
#[serde(transparent)]
pub struct List(pub RecordsForm);

impl Call for List {
    const SPEC: Spec =
        Spec::get("proof/list", "/admin/records", "Lists the proof records of all agents").queried(QUERIED);
    type Answer = RecordPage;

    fn run(self, gateway: &Gateway) -> Result<RecordPage, Error> {
        self.0.page(gateway)
    }
}

/// Returns the records of all agents, or of one, that granted or escalated something and have no outcome yet.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Open(RecordsForm);

impl Call for Open {
    const SPEC: Spec = Spec::get(
        "proof/open",
        "/admin/records/open",
        "Lists the records that were not denied and have no outcome yet",
    )
    .queried(QUERIED);
    type Answer = RecordPage;

    fn run(self, gateway: &Gateway) -> Result<RecordPage, Error> {
        RecordsForm { open: Some(true), ..self.0 }.page(gateway)
    }
}

/// The agent and the time range.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// The agent.
    #[schema(value_type = AgentId)]
    pub entity_id: String,
    /// Start of the time range of decisions, inclusive.
    pub from: Option<Timestamp>,
    /// End of the time range of decisions, inclusive.
    pub to: Option<Timestamp>,
}

impl Call for Stats {
    const SPEC: Spec =
        Spec::get("proof/stats", "/proof/stats", "Returns statistics over the proof records of an agent")
            .for_agents()
            .queried(QUERIED);
    type Answer = ProofStats;

    fn subject(&self) -> Subject<'_> {
        Subject::Agent(&self.entity_id)
    }

    fn run(self, gateway: &Gateway) -> Result<ProofStats, Error> {
        gateway.governor().stats(&self.entity_id, Period::new(self.from, self.to))
    }
}

/// The record to read.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Get {
    /// The record.
    #[schema(value_type = ProofId)]
    pub proof_id: String,
    /// Also return the record's evidence.
    #[schema(default = false)]
    pub evidence: Option<bool>,
}

impl Call for Get {
    const SPEC: Spec =
        Spec::get("proof/get", "/proof/records/{proofId}", "Returns a proof record").for_agents().errors(&[404]);
    type Answer = ShownRecord;

    fn subject(&self) -> Subject<'_> {
        Subject::Record(&self.proof_id)
    }

    fn run(self, gateway: &Gateway) -> Result<ShownRecord, Error> {
        let proof_id = proof_id(&self.proof_id)?;
        let record = gateway.governor().log().record(&proof_id)?;
        let mut shown = ShownRecord { record, evidence: None, evidence_erased: None };
        if self.evidence.unwrap_or_default() {
            match gateway.governor().log().evidence(&proof_id) {
                Err(Error::EvidenceErased { .. }) => (shown.evidence, shown.evidence_erased) = (Some(None), Some(true)),
                evidence => shown.evidence = Some(Some(evidence?)),
            }
        }
        Ok(shown)
    }
}

/// A record, with its evidence if requested.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShownRecord {
    /// The record.
    #[serde(flatten)]
    pub record: ProofRecord,
    /// The evidence; `null` if it was erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Evidence>)]
    pub evidence: Option<Option<Evidence>>,
    /// True if the evidence was erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence_erased: Option<bool>,
}

/// The outcome of an action.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReportForm {
    /// The record; alternatively, `agentId` and the request's `callId`.
    #[schema(value_type = Option<ProofId>)]
    proof_id: Option<String>,
    #[schema(value_type = Option<AgentId>)]
    agent_id: Option<String>,
    #[schema(min_length = 1, max_length = 256)]
    call_id: Option<String>,
    outcome: ReportedOutcome,
    #[schema(max_length = 4096)]
    note: Option<String>,
}

closed_words! {
    /// A reported outcome: one that a record can have, or UNKNOWN if the host does not know it.
    pub enum ReportedOutcome("outcome") {
        /// The action did what was asked.
        Success = "SUCCESS",
        /// The action failed or did harm.
        Failure = "FAILURE",
        /// The action was passed to a person.
        Escalated = "ESCALATED",
        /// The host does not know the outcome. The record stays without one, and a later report is accepted once.
        Unknown = "UNKNOWN",
    }
}

/// Reports the outcome of a record's action.
pub(super) struct Report {
    record: Reported,
    outcome: ReportedOutcome,
    note: Option<String>,
}

/// The identification of a report's record.
enum Reported {
    ById(String),
    ByCall { agent_id: String, call_id: String },
}

impl Read for Report {
    fn read(params: Params, spec: &Spec) -> Result<Self, Error> {
        let form: ReportForm = params.typed(spec)?;
        let record = match (form.proof_id, form.agent_id, form.call_id) {
            (Some(proof_id), None, None) => Reported::ById(proof_id),
            (None, Some(agent_id), Some(call_id)) => Reported::ByCall { agent_id, call_id },
            _ => return Err(Error::input("proofId", "expected it, or agentId and callId")),
        };
        Ok(Self { record, outcome: form.outcome, note: form.note })
    }
}

impl Call for Report {
    const SPEC: Spec = Spec::post("outcome/report", "/proof/outcome", "Reports the outcome of a decided action")
        .for_agents()
        .errors(&[404, 409]);
    type Answer = ProofRecord;

    fn subject(&self) -> Subject<'_> {
        match &self.record {
            Reported::ById(proof_id) => Subject::Record(proof_id),
            Reported::ByCall { agent_id, .. } => Subject::Agent(agent_id),
        }
    }

    fn run(self, gateway: &Gateway) -> Result<ProofRecord, Error> {
        self.report(gateway, |report| report)
    }

    /// The holder of an agent key may be the agent itself.
    fn run_for(self, admitted: &Admitted) -> Result<ProofRecord, Error> {
        admitted.permit(&self.subject())?;
        let is_admin = admitted.scope() == Scope::Admin;
        self.report(admitted.gateway(), |report| if is_admin { report } else { report.by_agent() })
    }
}

impl Report {
    fn report(
        self,
        gateway: &Gateway,
        told_by: impl FnOnce(OutcomeReport<'_>) -> OutcomeReport<'_>,
    ) -> Result<ProofRecord, Error> {
        let governor = gateway.governor();
        let proof_id = match &self.record {
            Reported::ById(text) => proof_id(text)?,
            Reported::ByCall { agent_id, call_id } => governor.log().record_of_call(agent_id, call_id)?.id,
        };
        let note = self.note.as_deref();
        let outcome = match self.outcome {
            ReportedOutcome::Success => Outcome::Success,
            ReportedOutcome::Failure => Outcome::Failure,
            ReportedOutcome::Escalated => Outcome::Escalated,
            ReportedOutcome::Unknown => {
                governor.report_unknown(&proof_id, note)?;
                return governor.log().record(&proof_id);
            }
        };
        let report = note.map_or_else(|| outcome.into(), |note| outcome.note(note));
        governor.report(&proof_id, told_by(report))?;
        governor.log().record(&proof_id)
    }
}

/// The checkpoint to verify the log against, if any.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Verify {
    /// A stored checkpoint of this log, as the complete signed note.
    checkpoint: Option<String>,
    /// The public key that signed the checkpoint. Default: the one that signs the log's checkpoints now.
    checkpoint_key: Option<String>,
}

impl Call for Verify {
    const SPEC: Spec = Spec::get("proof/verify", "/admin/verification", "Verifies the whole log").errors(&[409]);
    type Answer = Verification;

    fn run(self, gateway: &Gateway) -> Result<Verification, Error> {
        let log = gateway.governor().log();
        let (note, key) = match (self.checkpoint, self.checkpoint_key) {
            (None, None) => return log.verify(&VerifyOptions::new()),
            (None, Some(_)) => return Err(Error::input("checkpointKey", "expected a checkpoint that this key signed")),
            (Some(note), None) => (note, log.checkpoint_key()?),
            (Some(note), Some(key)) => {
                let key: Result<VerifierKey, _> = key.parse();
                (note, key.map_err(|error| Error::input("checkpointKey", error.to_string()))?)
            }
        };
        log.verify_with_checkpoint(&VerifyOptions::new(), &note, &key)
    }
}

/// No parameters.
#[derive(Deserialize, Serialize, ToSchema)]
pub struct Status {}

impl Call for Status {
    const SPEC: Spec = Spec::get("admin/status", "/admin/status", "Returns the service's health and metrics");
    type Answer = SystemStatus;

    fn run(self, gateway: &Gateway) -> Result<SystemStatus, Error> {
        Ok(gateway.governor().status())
    }
}
