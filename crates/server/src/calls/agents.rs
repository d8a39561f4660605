//! The calls on agents.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::call::Call;
use super::spec::{Spec, Subject, Verb};
use crate::gateway::Gateway;
use rulekeep::agent::{AgentChange, AgentId, AgentImport, AgentInfo, AgentState, Label, Observability};
use rulekeep::trust::{Score, TrustSnapshot};
use rulekeep::{Agent, Error, Tier};

/// An agent to register: with a score, in the middle of a tier, or as a newcomer.
// Unknown fields are refused: if a misspelled ceiling were ignored, the agent would get more than intended.
#[derive(Default, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Register {
    /// The agent.
    #[schema(value_type = AgentId)]
    pub agent_id: String,
    /// The initial score.
    pub score: Option<Score>,
    /// The initial tier; the score is in the middle of it.
    pub tier: Option<Tier>,
    /// The labels.
    #[schema(max_items = 64, value_type = Option<Vec<Label>>)]
    pub labels: Option<Vec<String>>,
    /// The groups.
    #[schema(max_items = 64, value_type = Option<Vec<Label>>)]
    pub groups: Option<Vec<String>>,
    /// The attributes, at most 4 KiB of JSON.
    #[schema(value_type = Option<Object>)]
    pub attributes: Option<Map<String, Value>>,
    /// The person responsible for the agent.
    #[schema(schema_with = super::spec::person)]
    pub owner: Option<String>,
    /// The highest score that the agent can reach.
    pub ceiling: Option<Score>,
    /// The degree to which the agent's internals can be inspected.
    pub observability: Option<Observability>,
}

impl Call for Register {
    const SPEC: Spec = Spec::post("agent/register", "/admin/agents", "Registers an agent").errors(&[409]);
    type Answer = AgentTrust;

    fn run(self, gateway: &Gateway) -> Result<AgentTrust, Error> {
        let mut agent = Agent::new(self.agent_id);
        agent = match (self.score, self.tier) {
            (Some(_), Some(_)) => return Err(Error::input("tier", "expected either score or tier, found both")),
            (Some(score), None) => agent.at_score(score),
            (None, Some(tier)) => agent.at_tier(tier),
            (None, None) => agent,
        };
        agent = self.labels.into_iter().flatten().fold(agent, Agent::with_label);
        agent = self.groups.into_iter().flatten().fold(agent, Agent::in_group);
        for (name, value) in self.attributes.into_iter().flatten() {
            agent = agent.with_attribute(name, value);
        }
        if let Some(owner) = self.owner {
            agent = agent.owned_by(owner);
        }
        if let Some(ceiling) = self.ceiling {
            agent = agent.with_ceiling(ceiling);
        }
        if let Some(observability) = self.observability {
            agent = agent.with_observability(observability);
        }
        let registered = gateway.governor().agents().register(agent).map_err(|error| match error {
            Error::InvalidInput { field: "score", message } if self.tier.is_some() => {
                Error::input("tier", format!("{message}, the middle of the tier's range: give a score"))
            }
            error => error,
        });
        registered.map(AgentTrust::from)
    }
}

/// The agent to read.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Get {
    /// The agent.
    #[schema(value_type = AgentId)]
    pub agent_id: String,
}

impl Call for Get {
    const SPEC: Spec =
        Spec::get("agent/get", "/agents/{agentId}", "Returns an agent's score and tier").for_agents().errors(&[404]);
    type Answer = AgentTrust;

    fn subject(&self) -> Subject<'_> {
        Subject::Agent(&self.agent_id)
    }

    fn run(self, gateway: &Gateway) -> Result<AgentTrust, Error> {
        gateway.governor().agents().get(&self.agent_id).map(AgentTrust::from)
    }
}

/// The page of agents to list.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct List {
    /// The page, counted from 1.
    #[schema(minimum = 1, maximum = 18_446_744_073_709_551_615_u64, default = 1)]
    pub page: Option<u64>,
    /// The number of entries on a page.
    #[schema(minimum = 1, maximum = 200, default = 50)]
    pub page_size: Option<u64>,
}

impl Call for List {
    const SPEC: Spec = Spec::get("agent/list", "/admin/agents", "Lists the agents").queried(&["page", "pageSize"]);
    type Answer = AgentPage;

    fn run(self, gateway: &Gateway) -> Result<AgentPage, Error> {
        const MOST: u64 = 200;
        let (page, page_size) = (self.page.unwrap_or(1), self.page_size.unwrap_or(50));
        let Some(before) = page.checked_sub(1) else { return Err(Error::query("page", "expected a page from 1 on")) };
        if !(1..=MOST).contains(&page_size) {
            return Err(Error::query("pageSize", format!("expected 1 to {MOST}")));
        }
        let skip = before.saturating_mul(page_size);
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let (total, items) = gateway.governor().agents().page(whole(skip), whole(page_size));
        let has_more = whole(skip.saturating_add(page_size)) < total;
        Ok(AgentPage { items, total, page, page_size, has_more })
    }
}

/// The changes to an agent; fields that are absent stay unchanged.
// Unknown fields are refused: if a misspelled ceiling were ignored, the agent would get more than intended.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Update {
    /// The agent.
    #[schema(value_type = AgentId)]
    agent_id: String,
    #[schema(max_items = 64, value_type = Option<Vec<Label>>)]
    labels: Option<Vec<String>>,
    #[schema(max_items = 64, value_type = Option<Vec<Label>>)]
    groups: Option<Vec<String>>,
    /// The attributes, at most 4 KiB of JSON.
    #[schema(value_type = Option<Object>)]
    attributes: Option<Map<String, Value>>,
    #[schema(schema_with = super::spec::person)]
    owner: Option<String>,
    ceiling: Option<Score>,
    observability: Option<Observability>,
    /// The properties to remove.
    clear: Option<Vec<Clear>>,
    #[schema(max_length = 4096)]
    note: Option<String>,
}

/// A property that can be removed from an agent.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Clear {
    Owner,
    Ceiling,
    Observability,
}

impl Call for Update {
    const SPEC: Spec = Spec::of(Verb::Patch, "agent/update", "/admin/agents/{agentId}", "Changes an agent's profile")
        .errors(&[404, 409]);
    type Answer = AgentInfo;

    fn run(self, gateway: &Gateway) -> Result<AgentInfo, Error> {
        let mut change = AgentChange::new();
        if let Some(labels) = self.labels {
            change = change.labels(labels);
        }
        if let Some(groups) = self.groups {
            change = change.groups(groups);
        }
        if let Some(attributes) = self.attributes {
            change = change.attributes(attributes);
        }
        for cleared in self.clear.into_iter().flatten() {
            change = match cleared {
                Clear::Owner => change.without_owner(),
                Clear::Ceiling => change.without_ceiling(),
                Clear::Observability => change.without_observability(),
            };
        }
        if let Some(owner) = self.owner {
            change = change.owner(owner);
        }
        if let Some(ceiling) = self.ceiling {
            change = change.ceiling(ceiling);
        }
        if let Some(observability) = self.observability {
            change = change.observability(observability);
        }
        gateway.governor().agents().update(&self.agent_id, change, &self.note.unwrap_or_default())
    }
}

/// Defines a call that changes whether an agent may act.
macro_rules! changes_state {
    ($name:ident, $method:literal, $path:literal, $summary:literal, $change:ident) => {
        /// The agent, and the reason for the change.
        #[derive(Deserialize, Serialize, ToSchema)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            /// The agent.
            #[schema(value_type = AgentId)]
            pub agent_id: String,
            /// The reason, for the log.
            #[schema(max_length = 4096)]
            pub note: Option<String>,
        }

        impl Call for $name {
            const SPEC: Spec = Spec::post($method, $path, $summary).errors(&[404, 409]);
            type Answer = AgentStanding;

            fn run(self, gateway: &Gateway) -> Result<AgentStanding, Error> {
                let note = self.note.unwrap_or_default();
                let AgentInfo { agent_id, trust, state, .. } =
                    gateway.governor().agents().$change(&self.agent_id, &note)?;
                Ok(AgentStanding { agent_id, trust, state })
            }
        }
    };
}

changes_state!(Suspend, "agent/suspend", "/admin/agents/{agentId}/suspend", "Suspends an agent", suspend);
changes_state!(Resume, "agent/resume", "/admin/agents/{agentId}/resume", "Resumes a suspended agent", resume);
changes_state!(Retire, "agent/retire", "/admin/agents/{agentId}/retire", "Retires an agent for good", retire);

/// No parameters.
#[derive(Deserialize, ToSchema)]
pub(super) struct Export {}

impl Call for Export {
    const SPEC: Spec = Spec::get("agent/export", "/admin/agents/export", "Exports every agent, one a line");
    type Answer = AgentExport;

    fn run(self, gateway: &Gateway) -> Result<AgentExport, Error> {
        let mut lines = Vec::new();
        let agents = gateway.governor().agents().export(&mut lines)?;
        Ok(AgentExport { agents, lines: String::from_utf8_lossy(&lines).lines().map(str::to_owned).collect() })
    }
}

/// The agents of an export.
#[derive(Deserialize, ToSchema)]
pub(super) struct Import {
    lines: Vec<String>,
}

impl Call for Import {
    const SPEC: Spec =
        Spec::post("agent/import", "/admin/agents/import", "Registers the agents of an export").large().errors(&[409]);
    type Answer = AgentImport;

    fn run(self, gateway: &Gateway) -> Result<AgentImport, Error> {
        gateway.governor().agents().import(&mut self.lines.join("\n").as_bytes())
    }
}

/// The trust of an agent.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentTrust {
    agent_id: AgentId,
    #[serde(flatten)]
    trust: TrustSnapshot,
}

impl From<AgentInfo> for AgentTrust {
    fn from(info: AgentInfo) -> Self {
        Self { agent_id: info.agent_id, trust: info.trust }
    }
}

/// The trust and state of an agent.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentStanding {
    agent_id: AgentId,
    #[serde(flatten)]
    trust: TrustSnapshot,
    state: AgentState,
}

/// A page of agents.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentPage {
    /// The agents on this page.
    pub items: Vec<AgentInfo>,
    /// Number of agents over all pages.
    pub total: usize,
    /// The page number, counted from 1.
    pub page: u64,
    /// Maximum number of agents on a page.
    pub page_size: u64,
    /// True if later pages have more agents.
    pub has_more: bool,
}

/// Every agent, one on each line.
#[derive(Serialize, ToSchema)]
pub(super) struct AgentExport {
    agents: u64,
    lines: Vec<String>,
}
