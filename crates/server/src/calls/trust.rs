//! The calls on trust.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::agents::AgentTrust;
use super::call::Call;
use super::spec::{Spec, Subject};
use crate::gateway::Gateway;
use rulekeep::Error;
use rulekeep::agent::AgentId;
use rulekeep::proof::ProofId;
use rulekeep::trust::{Score, TrustCheck, TrustPage, TrustSnapshot};

/// The agent, and the page of its trust history.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct History {
    /// The agent.
    #[schema(value_type = AgentId)]
    pub agent_id: String,
    /// The page, counted from 1.
    #[schema(minimum = 1, maximum = 18_446_744_073_709_551_615_u64, default = 1)]
    pub page: Option<u64>,
    /// The number of entries on a page.
    #[schema(minimum = 1, maximum = 200, default = 50)]
    pub page_size: Option<u64>,
}

impl Call for History {
    const SPEC: Spec = Spec::get("trust/history", "/agents/{agentId}/trust", "Lists the changes of an agent's trust")
        .for_agents()
        .errors(&[404])
        .queried(&["agentId", "page", "pageSize"]);
    type Answer = TrustPage;

    fn subject(&self) -> Subject<'_> {
        Subject::Agent(&self.agent_id)
    }

    fn run(self, gateway: &Gateway) -> Result<TrustPage, Error> {
        let (page, page_size) = (self.page.unwrap_or(1), self.page_size.unwrap_or(50));
        gateway.governor().trust().history(&self.agent_id, page, page_size)
    }
}

/// The new score of an agent, and the reason.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Adjust {
    /// The agent.
    #[schema(value_type = AgentId)]
    pub agent_id: String,
    /// The new score.
    pub score: Score,
    /// The reason, for the log.
    #[schema(max_length = 4096, pattern = r"\S")]
    pub note: String,
}

impl Call for Adjust {
    const SPEC: Spec =
        Spec::post("trust/adjust", "/admin/agents/{agentId}/trust", "Sets an agent's score").errors(&[404, 409]);
    type Answer = AgentTrust;

    fn run(self, gateway: &Gateway) -> Result<AgentTrust, Error> {
        gateway.governor().trust().adjust(&self.agent_id, self.score, &self.note).map(AgentTrust::from)
    }
}

/// The reported SUCCESS that was wrong, and the reason.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Correct {
    proof_id: ProofId,
    #[schema(max_length = 4096, pattern = r"\S")]
    note: String,
}

impl Call for Correct {
    const SPEC: Spec = Spec::post("trust/correct", "/admin/trust/correct", "Corrects a reported SUCCESS that was none")
        .errors(&[404, 409]);
    type Answer = TrustSnapshot;

    fn run(self, gateway: &Gateway) -> Result<TrustSnapshot, Error> {
        gateway.governor().trust().correct(&self.proof_id, &self.note)
    }
}

/// No parameters.
#[derive(Deserialize, ToSchema)]
pub(super) struct Verify {}

impl Call for Verify {
    const SPEC: Spec =
        Spec::get("trust/verify", "/admin/trust/verification", "Verifies every agent's trust against the log")
            .errors(&[409]);
    type Answer = TrustCheck;

    fn run(self, gateway: &Gateway) -> Result<TrustCheck, Error> {
        gateway.governor().trust().verify()
    }
}
