//! Agents: what is registered, and what is known of one.

use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::reserved::{RESERVED, has_reserved};
use super::{AgentId, Error, InvalidValue, Observability, Score, Tier, TrustSnapshot, closed_words};

closed_words! {
    /// Whether an agent may act.
    pub enum AgentState("agent state") {
        /// Decided by policy.
        Active = "active",
        /// Everything is denied until it is resumed.
        Suspended = "suspended",
        /// Everything is denied for good.
        Retired = "retired",
    }
}

/// A label on an agent that policies can match: 1 to 128 visible characters.
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

super::written_as_text!(Label);

/// An agent to register.
///
/// ```
/// use rulekeep::{Agent, Tier};
///
/// let agent = Agent::new("support-1").at_tier(Tier::T3).with_label("support");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    pub(crate) id: String,
    score: Score,
    labels: Vec<String>,
    groups: Vec<String>,
    attributes: Map<String, Value>,
    owner: Option<String>,
    ceiling: Option<Score>,
    observability: Option<Observability>,
}

impl Agent {
    /// The score of an agent that is registered without one: 200, the lowest of T1.
    pub const NEWCOMER_SCORE: Score = Tier::T1.lowest();

    /// An agent with the score of a newcomer. The id is checked at registration.
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

    /// Starts at the middle of a tier.
    #[must_use]
    pub fn at_tier(mut self, tier: Tier) -> Self {
        self.score = tier.middle();
        self
    }

    /// Starts at a score.
    #[must_use]
    pub fn at_score(mut self, score: Score) -> Self {
        self.score = score;
        self
    }

    /// Adds a label that policies can match.
    #[must_use]
    pub fn with_label(mut self, label: impl Into<String>) -> Self {
        self.labels.push(label.into());
        self
    }

    /// Adds a group that the agent belongs to: policies match it, and limits can be counted by it.
    #[must_use]
    pub fn in_group(mut self, group: impl Into<String>) -> Self {
        self.groups.push(group.into());
        self
    }

    /// Sets an attribute that conditions of policies read as `agent.attributes.<name>`.
    #[must_use]
    pub fn with_attribute(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.attributes.insert(name.into(), value.into());
        self
    }

    /// Says whose agent it is: a name of 1 to 256 characters.
    #[must_use]
    pub fn owned_by(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// The highest score that it can have. What its observability allows counts where that is lower.
    #[must_use]
    pub fn with_ceiling(mut self, ceiling: Score) -> Self {
        self.ceiling = Some(ceiling);
        self
    }

    /// Says how far its inside can be looked at, which bounds its score.
    #[must_use]
    pub fn with_observability(mut self, observability: Observability) -> Self {
        self.observability = Some(observability);
        self
    }

    /// What policies look at besides the id.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a malformed label, group or attribute.
    pub fn traits(&self) -> Result<AgentTraits, Error> {
        self.clone().validated().map(|(_, _, profile)| profile.traits)
    }

    /// An agent of its parts as they were written down, to be checked.
    pub(crate) fn of(id: String, score: Score, profile: AgentProfile) -> Self {
        let AgentProfile { traits: AgentTraits { labels, groups, attributes }, owner, ceiling, observability } =
            profile;
        let texts = |labels: Vec<Label>| labels.iter().map(Label::to_string).collect();
        Self { id, score, labels: texts(labels), groups: texts(groups), attributes, owner, ceiling, observability }
    }

    /// The parts, each checked.
    pub(crate) fn validated(self) -> Result<(AgentId, Score, AgentProfile), Error> {
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

/// What is to become of an agent; what is not named stays as it is.
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
    /// A change of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// These labels, in place of those that it has.
    pub fn labels<T: Into<String>>(mut self, labels: impl IntoIterator<Item = T>) -> Self {
        self.labels = Some(labels.into_iter().map(Into::into).collect());
        self
    }

    /// These groups, in place of those that it belongs to.
    pub fn groups<T: Into<String>>(mut self, groups: impl IntoIterator<Item = T>) -> Self {
        self.groups = Some(groups.into_iter().map(Into::into).collect());
        self
    }

    /// These attributes, in place of those that it has.
    pub fn attributes(mut self, attributes: Map<String, Value>) -> Self {
        self.attributes = Some(attributes);
        self
    }

    /// Another owner.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(Some(owner.into()));
        self
    }

    /// No owner.
    pub fn without_owner(mut self) -> Self {
        self.owner = Some(None);
        self
    }

    /// Another ceiling. A score above it comes down to it at once.
    pub fn ceiling(mut self, ceiling: Score) -> Self {
        self.ceiling = Some(Some(ceiling));
        self
    }

    /// No ceiling of its own. The score stays as it is.
    pub fn without_ceiling(mut self) -> Self {
        self.ceiling = Some(None);
        self
    }

    /// Another observability. A score above what it allows comes down at once.
    pub fn observability(mut self, observability: Observability) -> Self {
        self.observability = Some(Some(observability));
        self
    }

    /// Nothing said of its observability. The score stays as it is.
    pub fn without_observability(mut self) -> Self {
        self.observability = Some(None);
        self
    }

    /// The profile as it is afterwards, what is new in it checked.
    pub(crate) fn apply_to(self, profile: &AgentProfile) -> Result<AgentProfile, Error> {
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

/// What an operator says of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentProfile {
    /// The part that policies look at.
    #[serde(flatten)]
    pub(crate) traits: AgentTraits,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ceiling: Option<Score>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) observability: Option<Observability>,
}

/// What an operator says of an agent, for policies to look at.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AgentTraits {
    /// Its labels, sorted.
    #[serde(default)]
    pub labels: Vec<Label>,
    /// The groups that it belongs to, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Label>,
    /// What conditions read as `agent.attributes`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub attributes: Map<String, Value>,
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

/// The name of a person or of a program that acts for one: 1 to 256 characters, not blank, no control characters.
pub(crate) fn checked_person(field: &'static str, name: &str) -> Result<String, Error> {
    let well_formed = !name.trim().is_empty() && name.chars().count() <= 256 && !name.chars().any(char::is_control);
    if well_formed {
        Ok(name.to_owned())
    } else {
        Err(Error::input(field, "expected a name of 1 to 256 characters, not blank, without control characters"))
    }
}

/// Most labels on one agent, and most groups.
const MAX_LABELS: usize = 64;
/// Most that an agent's attributes take as JSON.
const MAX_ATTRIBUTE_BYTES: usize = 4096;

/// What is known of a registered agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentInfo {
    /// The agent.
    pub agent_id: AgentId,
    /// Its trust now.
    #[serde(flatten)]
    pub trust: TrustSnapshot,
    /// Whether it may act.
    pub state: AgentState,
    /// Its labels, sorted.
    pub labels: Vec<Label>,
    /// The groups that it belongs to, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Label>,
    /// Its attributes.
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub attributes: Map<String, Value>,
    /// Whose it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The highest score that it can have by its own ceiling; its observability may allow less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Score>,
    /// How far its inside can be looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observability: Option<Observability>,
}

impl AgentInfo {
    /// The parts put together.
    pub(crate) fn new(agent_id: AgentId, trust: TrustSnapshot, state: AgentState, profile: AgentProfile) -> Self {
        let AgentProfile { traits: AgentTraits { labels, groups, attributes }, owner, ceiling, observability } =
            profile;
        Self { agent_id, trust, state, labels, groups, attributes, owner, ceiling, observability }
    }
}

/// What an import of agents did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct AgentImport {
    /// Agents that were not there.
    pub registered: u64,
    /// Agents that were there, and stay as they are.
    pub skipped: u64,
}
