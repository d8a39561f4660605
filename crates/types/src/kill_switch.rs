//! Kill switches: they stop agents, whatever the policies say.

use std::fmt;

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{AgentId, Error, InvalidValue, KillSwitchId, Label, ProofRecord, Timestamp};

/// The agents that a kill switch stops: all, one, or a group.
///
/// ```
/// use rulekeep::kill_switch::KillSwitchScope;
///
/// let one = KillSwitchScope::agent("support-1")?;
/// let many = KillSwitchScope::group("support")?;
/// assert_eq!(serde_json::to_string(&KillSwitchScope::All).unwrap(), r#"{"all":true}"#);
/// # Ok::<(), rulekeep::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum KillSwitchScope {
    /// Every agent, including agents registered later.
    All,
    /// One agent, registered or not.
    Agent(AgentId),
    /// Every agent that is a member of the group at the time of a request.
    Group(Label),
}

impl KillSwitchScope {
    /// A scope of one agent, registered or not.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a malformed id.
    pub fn agent(agent_id: &str) -> Result<Self, Error> {
        let id = agent_id.parse().map_err(|error: InvalidValue| Error::input("agentId", error.to_string()))?;
        Ok(Self::Agent(id))
    }

    /// A scope of every agent that is a member of the group at the time of a request.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a malformed group.
    pub fn group(group: &str) -> Result<Self, Error> {
        let group = group.parse().map_err(|error: InvalidValue| Error::input("group", error.to_string()))?;
        Ok(Self::Group(group))
    }
}

impl fmt::Display for KillSwitchScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("every agent"),
            Self::Agent(agent) => write!(f, "agent {agent}"),
            Self::Group(group) => write!(f, "group {group}"),
        }
    }
}

impl Serialize for KillSwitchScope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self {
            Self::All => map.serialize_entry("all", &true)?,
            Self::Agent(agent) => map.serialize_entry("agentId", agent)?,
            Self::Group(group) => map.serialize_entry("group", group)?,
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for KillSwitchScope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        struct Written {
            all: Option<bool>,
            agent_id: Option<AgentId>,
            group: Option<Label>,
        }
        match Written::deserialize(deserializer)? {
            Written { all: Some(true), agent_id: None, group: None } => Ok(Self::All),
            Written { all: None, agent_id: Some(agent), group: None } => Ok(Self::Agent(agent)),
            Written { all: None, agent_id: None, group: Some(group) } => Ok(Self::Group(group)),
            _ => Err(serde::de::Error::custom("expected one of all: true, agentId and group")),
        }
    }
}

/// A kill switch that is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Stop))]
#[non_exhaustive]
pub struct KillSwitchEntry {
    /// The id, needed to lift it.
    pub id: KillSwitchId,
    /// The agents it stops.
    pub scope: KillSwitchScope,
    /// The name of the person who set it, as given.
    pub by: String,
    /// The reason, with secrets redacted; may be empty.
    pub note: String,
    /// The time it was set.
    pub timestamp: Timestamp,
}

impl KillSwitchEntry {
    #[doc(hidden)]
    pub const fn new(id: KillSwitchId, scope: KillSwitchScope, by: String, note: String, timestamp: Timestamp) -> Self {
        Self { id, scope, by, note, timestamp }
    }
}

/// The result of setting a kill switch: its id and the open actions of the stopped agents.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = StopReport))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct KillSwitchReport {
    /// The id, needed to lift the kill switch.
    pub id: KillSwitchId,
    /// Decisions of the stopped agents that were granted or await a reviewer and have no outcome yet: the newest 1,000.
    /// `KillSwitch::open_actions` lists all.
    pub open: Vec<ProofRecord>,
    /// Number of open actions in all.
    pub open_total: u64,
    /// Number of pending escalations that the kill switch ended.
    pub died: u64,
}

impl KillSwitchReport {
    #[doc(hidden)]
    pub const fn new(id: KillSwitchId, open: Vec<ProofRecord>, open_total: u64, died: u64) -> Self {
        Self { id, open, open_total, died }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_read_as_it_is_written_and_no_other_way() {
        let group = KillSwitchScope::group("g").unwrap();
        for scope in [KillSwitchScope::All, KillSwitchScope::agent("a b").unwrap(), group] {
            let text = serde_json::to_string(&scope).unwrap();
            assert_eq!(serde_json::from_str::<KillSwitchScope>(&text).unwrap(), scope);
        }
        for text in ["{}", r#"{"all":false}"#, r#"{"all":true,"group":"g"}"#, r#"{"agent":"a"}"#, r#"{"group":""}"#] {
            assert!(serde_json::from_str::<KillSwitchScope>(text).is_err(), "{text} was read");
        }
    }
}
