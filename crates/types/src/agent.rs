//! Agents: registration, profile changes, and the information stored about them.

use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::reserved::{RESERVED, has_reserved};
use super::{AgentId, Error, InvalidValue, Observability, Score, Tier, TrustSnapshot, closed_words};

closed_words! {
    /// The state of an agent: active, suspended or retired.
    pub enum AgentState("agent state") {
        /// Policies decide on the agent's requests.
        Active = "active",
        /// Every request is denied until an operator resumes the agent.
        Suspended = "suspended",
        /// Every request is denied permanently.
        Retired = "retired",
    }
}

/// A label on an agent that policies can match: 1 to 128 characters without whitespace or control characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(Arc<str>);

impl Label {
    /// The label as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Label {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let well_formed =
            (1..=128).contains(&text.chars().count()) && !text.chars().any(|c| c.is_control() || c.is_whitespace());
        if well_formed {
            Ok(Self(text.into()))
        } else {
            Err(InvalidValue::new("label", text, "1 to 128 characters without blanks"))
        }
    }
}

crate::word::written_as_text!(Label);

/// An agent to register.
///
/// ```
/// use rulekeep::{Agent, Governor, Tier};
///
/// let governor = Governor::builder().open_in_memory()?;
/// let agent = Agent::new("support-1").at_tier(Tier::T3).with_label("support").owned_by("ann");
/// let registered = governor.agents().register(agent)?;
/// assert_eq!(registered.trust.tier, Tier::T3);
/// assert_eq!(registered.owner.as_deref(), Some("ann"));
/// # Ok::<(), rulekeep::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct Agent {
    pub id: String,
    score: Score,
    labels: Vec<String>,
    groups: Vec<String>,
    attributes: Map<String, Value>,
    owner: Option<String>,
    ceiling: Option<Score>,
    observability: Option<Observability>,
}

impl Agent {
    /// The default score of a new agent: 200, the lowest score of T1.
    pub const NEWCOMER_SCORE: Score = Tier::T1.lowest();

    /// Creates an agent with the default score of 200. The id is validated at registration.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            score: Self::NEWCOMER_SCORE,
            labels: Vec::new(),
            groups: Vec::new(),
            attributes: Map::new(),
            owner: None,
            ceiling: None,
            observability: None,
        }
    }

    /// Sets the initial score to the middle of a tier.
    #[must_use]
    pub fn at_tier(mut self, tier: Tier) -> Self {
        self.score = tier.middle();
        self
    }

    /// Sets the initial score.
    #[must_use]
    pub fn at_score(mut self, score: Score) -> Self {
        self.score = score;
        self
    }

    /// Adds a label that policies can match; at most 64 labels.
    #[must_use]
    pub fn with_label(mut self, label: impl Into<String>) -> Self {
        self.labels.push(label.into());
        self
    }

    /// Adds the agent to a group that policies can match and rate limits can count by; at most 64 groups.
    #[must_use]
    pub fn in_group(mut self, group: impl Into<String>) -> Self {
        self.groups.push(group.into());
        self
    }

    /// Sets an attribute that policy conditions read as `agent.attributes.<name>`; at most 4,096 bytes of JSON in all.
    #[must_use]
    pub fn with_attribute(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.attributes.insert(name.into(), value.into());
        self
    }

    /// Sets the owner: a name of 1 to 256 characters.
    #[must_use]
    pub fn owned_by(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Sets the highest score the agent can have. If the agent's observability allows less, the lower value applies.
    #[must_use]
    pub fn with_ceiling(mut self, ceiling: Score) -> Self {
        self.ceiling = Some(ceiling);
        self
    }

    /// Sets how much of the agent's internals can be inspected, which limits its score.
    #[must_use]
    pub fn with_observability(mut self, observability: Observability) -> Self {
        self.observability = Some(observability);
        self
    }

    /// The labels, groups and attributes that policies match.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a malformed label, group or attribute.
    pub fn traits(&self) -> Result<AgentTraits, Error> {
        self.clone().validated().map(|(_, _, profile)| profile.traits)
    }

    /// Creates an agent from its stored parts, to be validated.
    pub fn of(id: String, score: Score, profile: AgentProfile) -> Self {
        let AgentProfile { traits: AgentTraits { labels, groups, attributes }, owner, ceiling, observability } =
            profile;
        let texts = |labels: Vec<Label>| labels.iter().map(Label::to_string).collect();
        Self { id, score, labels: texts(labels), groups: texts(groups), attributes, owner, ceiling, observability }
    }

    /// Validates each part.
    pub fn validated(self) -> Result<(AgentId, Score, AgentProfile), Error> {
        let id = self.id.parse().map_err(|error: InvalidValue| Error::input("agentId", error.to_string()))?;
        let (labels, groups) = (checked(&self.labels, "labels")?, checked(&self.groups, "groups")?);
        let attributes = checked_attributes(self.attributes)?;
        let profile = AgentProfile {
            traits: AgentTraits { labels, groups, attributes },
            owner: self.owner.map(|owner| checked_person("owner", &owner)).transpose()?,
            ceiling: self.ceiling,
            observability: self.observability,
        };
        Ok((id, self.score, profile))
    }
}

/// A change to an agent's profile; parts that are not named stay unchanged.
///
/// ```
/// use rulekeep::agent::{AgentChange, Observability};
/// use rulekeep::trust::Score;
///
/// let change = AgentChange::new()
///     .labels(["support", "night"])
///     .owner("ann")
///     .observability(Observability::GreyBox)
///     .without_ceiling();
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[must_use]
#[expect(clippy::option_option, reason = "what is not named stays, what is named as none goes")]
pub struct AgentChange {
    labels: Option<Vec<String>>,
    groups: Option<Vec<String>>,
    attributes: Option<Map<String, Value>>,
    owner: Option<Option<String>>,
    ceiling: Option<Option<Score>>,
    observability: Option<Option<Observability>>,
}

impl AgentChange {
    /// Creates a change that changes nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces all labels of the agent.
    pub fn labels<T: Into<String>>(mut self, labels: impl IntoIterator<Item = T>) -> Self {
        self.labels = Some(labels.into_iter().map(Into::into).collect());
        self
    }

    /// Replaces all groups of the agent.
    pub fn groups<T: Into<String>>(mut self, groups: impl IntoIterator<Item = T>) -> Self {
        self.groups = Some(groups.into_iter().map(Into::into).collect());
        self
    }

    /// Replaces all attributes of the agent.
    pub fn attributes(mut self, attributes: Map<String, Value>) -> Self {
        self.attributes = Some(attributes);
        self
    }

    /// Sets the owner: a name of 1 to 256 characters.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(Some(owner.into()));
        self
    }

    /// Removes the owner of the agent.
    pub fn without_owner(mut self) -> Self {
        self.owner = Some(None);
        self
    }

    /// Sets the agent's own ceiling. A higher score is lowered to it at once.
    pub fn ceiling(mut self, ceiling: Score) -> Self {
        self.ceiling = Some(Some(ceiling));
        self
    }

    /// Removes the agent's own ceiling. The score does not change.
    pub fn without_ceiling(mut self) -> Self {
        self.ceiling = Some(None);
        self
    }

    /// Sets the agent's observability. A score above its limit is lowered at once.
    pub fn observability(mut self, observability: Observability) -> Self {
        self.observability = Some(Some(observability));
        self
    }

    /// Removes the agent's observability. The score does not change.
    pub fn without_observability(mut self) -> Self {
        self.observability = Some(None);
        self
    }

    /// Applies the change to a profile and validates the new parts.
    pub fn apply_to(self, profile: &AgentProfile) -> Result<AgentProfile, Error> {
        let mut changed = profile.clone();
        if let Some(labels) = &self.labels {
            changed.traits.labels = checked(labels, "labels")?;
        }
        if let Some(groups) = &self.groups {
            changed.traits.groups = checked(groups, "groups")?;
        }
        if let Some(attributes) = self.attributes {
            changed.traits.attributes = checked_attributes(attributes)?;
        }
        if let Some(owner) = self.owner {
            changed.owner = owner.map(|owner| checked_person("owner", &owner)).transpose()?;
        }
        changed.ceiling = self.ceiling.unwrap_or(changed.ceiling);
        changed.observability = self.observability.unwrap_or(changed.observability);
        Ok(changed)
    }
}

/// The properties of an agent that an operator sets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct AgentProfile {
    /// The part that policies match.
    #[serde(flatten)]
    pub traits: AgentTraits,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Score>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observability: Option<Observability>,
}

crate::parts::outward! {
    /// The properties of an agent that policies match.
    #[derive(Default, Eq, Deserialize)]
    pub struct AgentTraits from AgentTraitsParts {
        /// The labels of the agent, sorted.
        #[serde(default)]
        pub labels: Vec<Label>,
        /// The groups the agent belongs to, sorted.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub groups: Vec<Label>,
        /// The attributes that policy conditions read as `agent.attributes`.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        pub attributes: Map<String, Value>,
    }
}

fn checked(words: &[String], what: &'static str) -> Result<Vec<Label>, Error> {
    if words.len() > MAX_LABELS {
        return Err(Error::input(what, format!("expected at most {MAX_LABELS} {what}")));
    }
    let mut labels = words
        .iter()
        .map(|word| word.parse().map_err(|error: InvalidValue| Error::input(what, error.to_string())))
        .collect::<Result<Vec<Label>, Error>>()?;
    labels.sort();
    labels.dedup();
    Ok(labels)
}

fn checked_attributes(attributes: Map<String, Value>) -> Result<Map<String, Value>, Error> {
    if has_reserved(&attributes) {
        return Err(Error::input("attributes", RESERVED));
    }
    let size = serde_json::to_string(&attributes).map_or(usize::MAX, |text| text.len());
    if size > MAX_ATTRIBUTE_BYTES {
        let expected = format!("expected at most {MAX_ATTRIBUTE_BYTES} bytes of JSON, found {size}");
        return Err(Error::input("attributes", expected));
    }
    Ok(attributes)
}

/// Validates the name of a person or program: 1 to 256 characters, not blank, no control characters.
pub fn checked_person(field: &'static str, name: &str) -> Result<String, Error> {
    let well_formed = !name.trim().is_empty() && name.chars().count() <= 256 && !name.chars().any(char::is_control);
    if well_formed {
        Ok(name.to_owned())
    } else {
        Err(Error::input(field, "expected a name of 1 to 256 characters, not blank, without control characters"))
    }
}

/// Maximum number of labels on an agent, and of groups.
const MAX_LABELS: usize = 64;
/// Maximum size of an agent's attributes in bytes of JSON.
const MAX_ATTRIBUTE_BYTES: usize = 4096;

/// A registered agent: its trust, state and profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentInfo {
    /// The agent's identifier.
    pub agent_id: AgentId,
    /// The agent's current trust.
    #[serde(flatten)]
    pub trust: TrustSnapshot,
    /// The state: active, suspended or retired.
    pub state: AgentState,
    /// The labels of the agent, sorted.
    pub labels: Vec<Label>,
    /// The groups the agent belongs to, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Label>,
    /// The attributes that policy conditions can read.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub attributes: Map<String, Value>,
    /// The owner, if one is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The agent's own ceiling: the highest score it can have. Its observability may allow less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Score>,
    /// The degree to which the agent's internals can be inspected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observability: Option<Observability>,
}

impl AgentInfo {
    /// Creates the information from its parts.
    pub fn new(agent_id: AgentId, trust: TrustSnapshot, state: AgentState, profile: AgentProfile) -> Self {
        let AgentProfile { traits: AgentTraits { labels, groups, attributes }, owner, ceiling, observability } =
            profile;
        Self { agent_id, trust, state, labels, groups, attributes, owner, ceiling, observability }
    }
}

/// The result of an import of agents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct AgentImport {
    /// Number of agents newly registered.
    pub registered: u64,
    /// Number of agents that existed already and were left unchanged.
    pub skipped: u64,
}
