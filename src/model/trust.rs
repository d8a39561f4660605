//! Scores, tiers, the snapshot of both that a decision carries, and the history
//! of their changes.

use std::fmt;

use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{AgentId, InvalidValue, ProofId, Sequence, Timestamp, TrustChange, closed_words};

closed_words! {
    /// A band of trust.
    pub enum Tier("tier") {
        /// Sandbox, 0 to 199.
        T0 = "T0",
        /// Observed, 200 to 349.
        T1 = "T1",
        /// Provisional, 350 to 499.
        T2 = "T2",
        /// Monitored, 500 to 649.
        T3 = "T3",
        /// Standard, 650 to 799.
        T4 = "T4",
        /// Trusted, 800 to 1000.
        T5 = "T5",
    }
}

impl Tier {
    /// The tier's name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::T0 => "Sandbox",
            Self::T1 => "Observed",
            Self::T2 => "Provisional",
            Self::T3 => "Monitored",
            Self::T4 => "Standard",
            Self::T5 => "Trusted",
        }
    }

    /// The lowest score of the tier.
    pub const fn lowest(self) -> Score {
        Score(match self {
            Self::T0 => 0,
            Self::T1 => 200,
            Self::T2 => 350,
            Self::T3 => 500,
            Self::T4 => 650,
            Self::T5 => 800,
        })
    }

    /// The highest score of the tier.
    pub const fn highest(self) -> Score {
        Score(match self {
            Self::T0 => 199,
            Self::T1 => 349,
            Self::T2 => 499,
            Self::T3 => 649,
            Self::T4 => 799,
            Self::T5 => Score::MAX.0,
        })
    }

    /// The middle of the tier's range, rounded down: what an agent gets that is
    /// registered by its tier alone.
    pub const fn middle(self) -> Score {
        Score(u16::midpoint(self.lowest().0, self.highest().0))
    }
}

/// A trust score: a whole number from 0 to 1000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Score(u16);

impl Score {
    /// The least trust.
    pub const MIN: Self = Self(0);
    /// The most trust.
    pub const MAX: Self = Self(1000);

    /// The nearest score to `value`.
    pub fn saturating(value: i64) -> Self {
        u16::try_from(value.clamp(0, 1000)).map_or(Self::MIN, Self)
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The tier that the score falls in, hysteresis aside.
    pub const fn tier(self) -> Tier {
        match self.0 {
            0..=199 => Tier::T0,
            200..=349 => Tier::T1,
            350..=499 => Tier::T2,
            500..=649 => Tier::T3,
            650..=799 => Tier::T4,
            _ => Tier::T5,
        }
    }
}

impl TryFrom<u64> for Score {
    type Error = InvalidValue;

    fn try_from(value: u64) -> Result<Self, InvalidValue> {
        match u16::try_from(value) {
            Ok(score) if score <= Self::MAX.0 => Ok(Self(score)),
            _ => Err(InvalidValue::new("score", &value.to_string(), "a whole number from 0 to 1000")),
        }
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for Score {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(u64::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// An agent's trust at the moment of a decision, written with the tier's name
/// beside the tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct TrustSnapshot {
    /// The score.
    pub score: Score,
    /// The tier in force; near a boundary hysteresis may hold it beside the score's own.
    pub tier: Tier,
}

impl TrustSnapshot {
    /// A snapshot of a score and the tier in force.
    pub const fn new(score: Score, tier: Tier) -> Self {
        Self { score, tier }
    }
}

impl Serialize for TrustSnapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("TrustSnapshot", 3)?;
        fields.serialize_field("score", &self.score)?;
        fields.serialize_field("tier", &self.tier)?;
        fields.serialize_field("tierName", self.tier.name())?;
        fields.end()
    }
}

closed_words! {
    /// How far an agent's inside can be looked at.
    pub enum Observability("observability") {
        /// Only what goes in and comes out is seen.
        BlackBox = "black-box",
        /// Some of what goes on inside is seen, such as its plans and tool calls.
        GreyBox = "grey-box",
        /// Everything is seen, the model and its prompts too.
        WhiteBox = "white-box",
    }
}

closed_words! {
    /// Why an agent's trust changed.
    pub enum TrustCause("cause of a trust change") {
        /// The agent was registered.
        Registered = "registered",
        /// An outcome was reported.
        Outcome = "outcome",
        /// The agent was denied again and again.
        Denials = "denials",
        /// A person rejected what it asked for.
        Rejection = "rejection",
        /// An operator set the score.
        Adjusted = "adjusted",
        /// Nothing that counts happened for long.
        Idle = "idle",
        /// The highest score that it may have was lowered.
        Ceiling = "ceiling",
        /// A reported success turned out to be a failure.
        Correction = "correction",
        /// The clock was confirmed to step back: gains, idleness and probation count from there.
        Clock = "clock",
    }
}

/// A change of an agent's trust, as its history lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TrustEntry {
    /// When it changed.
    pub timestamp: Timestamp,
    /// What it was, what it is.
    #[serde(flatten)]
    pub change: TrustChange,
    /// Why.
    pub cause: TrustCause,
    /// The record that it came from: whose outcome was reported or corrected, which escalation was rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof_id: Option<ProofId>,
    /// What somebody noted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl TrustEntry {
    /// A change, its cause, and neither a record nor a note.
    pub const fn new(timestamp: Timestamp, change: TrustChange, cause: TrustCause) -> Self {
        Self { timestamp, change, cause, proof_id: None, note: None }
    }
}

/// One page of an agent's history, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TrustPage {
    /// The changes.
    pub items: Vec<TrustEntry>,
    /// How many changes there are in all.
    pub total: u64,
    /// The page, counted from 1.
    pub page: u64,
    /// Changes a page.
    pub page_size: u64,
    /// Whether a later page has more.
    pub has_more: bool,
}

impl TrustPage {
    /// A page of a history of `total` changes.
    pub const fn new(items: Vec<TrustEntry>, total: u64, page: u64, page_size: u64) -> Self {
        Self { items, total, page, page_size, has_more: page.saturating_mul(page_size) < total }
    }
}

/// What came of making trust anew from the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TrustCheck {
    /// How many agents the log tells of.
    pub agents: u64,
    /// Those whose trust is kept otherwise, by the place of the entry where it first is.
    pub differing: Vec<TrustDifference>,
}

impl TrustCheck {
    pub(crate) const fn new(agents: u64) -> Self {
        Self { agents, differing: Vec::new() }
    }
}

/// An agent whose trust is not what led to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TrustDifference {
    /// Whose trust.
    pub agent_id: AgentId,
    /// The entry where it first differs.
    pub sequence: Sequence,
    /// What is kept.
    pub kept: TrustSnapshot,
    /// What the log leads to.
    pub rebuilt: TrustSnapshot,
}

impl TrustDifference {
    pub(crate) const fn new(
        agent_id: AgentId,
        sequence: Sequence,
        kept: TrustSnapshot,
        rebuilt: TrustSnapshot,
    ) -> Self {
        Self { agent_id, sequence, kept, rebuilt }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_cover_every_score_without_gap_or_overlap() {
        for value in 0..=1000_u64 {
            let score = Score::try_from(value).unwrap();
            let tier = score.tier();
            assert!(tier.lowest() <= score && score <= tier.highest(), "{value} is outside {tier}");
        }
        assert!(Score::try_from(1001).is_err());
    }

    #[test]
    fn the_middle_of_a_tier_lies_in_it() {
        for &tier in Tier::ALL {
            assert_eq!(tier.middle().tier(), tier);
        }
        assert_eq!(Tier::T4.middle().get(), 724);
    }
}
