//! The calls on the kill switch.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::call::Call;
use super::spec::Spec;
use super::spec::required_person;
use crate::gateway::Gateway;
use rulekeep::Error;
use rulekeep::agent::{AgentId, Label};
use rulekeep::kill_switch::{KillSwitchEntry, KillSwitchId, KillSwitchReport, KillSwitchScope};

/// The scope to stop, exactly one of `agentId`, `group` and `all: true`, with the person and the reason.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Set {
    /// The agent to stop.
    #[schema(value_type = Option<AgentId>)]
    pub agent_id: Option<String>,
    /// The group to stop.
    #[schema(value_type = Option<Label>)]
    pub group: Option<String>,
    /// True to stop all agents.
    pub all: Option<bool>,
    /// The person who sets it.
    #[schema(schema_with = required_person)]
    pub by: String,
    /// The reason, for the log.
    #[schema(max_length = 4096)]
    pub note: Option<String>,
}

impl Call for Set {
    const SPEC: Spec = Spec::post("stop/set", "/admin/stops", "Sets a kill switch on an agent, a group or every agent")
        .errors(&[404, 409]);
    type Answer = KillSwitchReport;

    fn run(self, gateway: &Gateway) -> Result<KillSwitchReport, Error> {
        let scope = match (self.agent_id, self.group, self.all.unwrap_or_default()) {
            (Some(agent), None, false) => KillSwitchScope::agent(&agent)?,
            (None, Some(group), false) => KillSwitchScope::group(&group)?,
            (None, None, true) => KillSwitchScope::All,
            _ => return Err(Error::input("agentId", "expected one of agentId, group and all: true")),
        };
        gateway.governor().kill_switch().set(scope, &self.by, &self.note.unwrap_or_default())
    }
}

/// The kill switch entry to lift, with the person and the reason.
#[derive(Deserialize, Serialize, ToSchema)]
pub struct Lift {
    /// The kill switch entry.
    pub id: KillSwitchId,
    /// The person who lifts it.
    #[schema(schema_with = required_person)]
    pub by: String,
    /// The reason, for the log.
    #[schema(max_length = 4096)]
    pub note: Option<String>,
}

impl Call for Lift {
    const SPEC: Spec = Spec::post("stop/lift", "/admin/stops/{id}/lift", "Lifts a kill switch").errors(&[404, 409]);
    type Answer = LiftedStop;

    fn run(self, gateway: &Gateway) -> Result<LiftedStop, Error> {
        gateway.governor().kill_switch().lift(&self.id, &self.by, &self.note.unwrap_or_default())?;
        Ok(LiftedStop { id: self.id })
    }
}

/// No parameters.
#[derive(Deserialize, Serialize, ToSchema)]
pub struct List {}

impl Call for List {
    const SPEC: Spec = Spec::get("stop/list", "/admin/stops", "Lists the kill switches in force");
    type Answer = Stops;

    fn run(self, gateway: &Gateway) -> Result<Stops, Error> {
        Ok(Stops { stops: gateway.governor().kill_switch().list() })
    }
}

/// The id of the lifted entry.
#[derive(Serialize, ToSchema)]
pub struct LiftedStop {
    id: KillSwitchId,
}

/// The kill switch entries in force.
#[derive(Deserialize, Serialize, ToSchema)]
pub struct Stops {
    /// The entries, oldest first.
    pub stops: Vec<KillSwitchEntry>,
}
