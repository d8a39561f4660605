//! Trust scores and tiers, snapshots of them, and the history of their changes.

use std::fmt;

use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{AgentId, InvalidValue, ProofId, Sequence, Timestamp, TrustChange, closed_words};

closed_words! {
    /// A trust tier: one of six ranges of the trust score.
    ///
    /// Policies use tiers to decide how much an agent may do by itself.
    ///
    /// ```
    /// use rulekeep::{Agent, Governor, Tier};
    ///
    /// assert_eq!(Tier::T4.name(), "Standard");
    /// assert_eq!((Tier::T4.lowest().get(), Tier::T4.highest().get()), (650, 799));
    ///
    /// // A new agent starts at the lowest score of T1, unless it is registered at another tier or score.
    /// let governor = Governor::builder().open_in_memory()?;
    /// let newcomer = governor.agents().register(Agent::new("support-1"))?;
    /// assert_eq!(newcomer.trust.tier, Tier::T1);
    /// # Ok::<(), rulekeep::Error>(())
    /// ```
    pub enum Tier("tier") {
        /// Sandbox: scores 0 to 199.
        T0 = "T0",
        /// Observed: scores 200 to 349.
        T1 = "T1",
        /// Provisional: scores 350 to 499.
        T2 = "T2",
        /// Monitored: scores 500 to 649.
        T3 = "T3",
        /// Standard: scores 650 to 799.
        T4 = "T4",
        /// Trusted: scores 800 to 1000.
        T5 = "T5",
    }
}

impl Tier {
    /// The tier's display name, for example `Standard`.
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

    /// The middle of the tier's range, rounded down: the initial score of an agent registered by its tier.
    pub const fn middle(self) -> Score {
        Score(u16::midpoint(self.lowest().0, self.highest().0))
    }
}

/// A trust score: a whole number from 0 to 1000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Score(u16);

impl Score {
    /// The lowest score, 0.
    pub const MIN: Self = Self(0);
    /// The highest score, 1000.
    pub const MAX: Self = Self(1000);

    /// Clamps `value` to the range of scores.
    pub fn saturating(value: i64) -> Self {
        u16::try_from(value.clamp(0, 1000)).map_or(Self::MIN, Self)
    }

    /// The score as a number, 0 to 1000.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The tier whose range contains the score, ignoring hysteresis.
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

/// An agent's trust at one moment. Its JSON contains the tier's name beside the tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct TrustSnapshot {
    /// The trust score, 0 to 1000.
    pub score: Score,
    /// The tier in force. Near a boundary, hysteresis can keep it different from the score's own tier.
    pub tier: Tier,
}

impl TrustSnapshot {
    /// Creates a snapshot from a score and the effective tier.
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
    /// The degree to which an agent's internals can be inspected.
    pub enum Observability("observability") {
        /// Only inputs and outputs are visible.
        BlackBox = "black-box",
        /// Some internals are visible, such as plans and tool calls.
        GreyBox = "grey-box",
        /// Everything is visible, including the model and its prompts.
        WhiteBox = "white-box",
    }
}

closed_words! {
    /// The cause of a trust change.
    pub enum TrustCause("cause of a trust change") {
        /// The agent was registered.
        Registered = "registered",
        /// An outcome was reported.
        Outcome = "outcome",
        /// The agent was denied repeatedly.
        Denials = "denials",
        /// A reviewer rejected its request.
        Rejection = "rejection",
        /// An operator set the score.
        Adjusted = "adjusted",
        /// The agent had no relevant activity for a long time.
        Idle = "idle",
        /// The maximum score the agent may have was lowered.
        Ceiling = "ceiling",
        /// A reported success was corrected to a failure.
        Correction = "correction",
        /// An operator confirmed that the clock stepped back. Gains, idle time and probation count from the new time.
        Clock = "clock",
    }
}

/// A change of an agent's trust, as listed in its history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TrustEntry {
    /// The time of the change.
    pub timestamp: Timestamp,
    /// The trust before and after.
    #[serde(flatten)]
    pub change: TrustChange,
    /// The cause of the change.
    pub cause: TrustCause,
    /// The related record: the one whose outcome was reported or corrected, or whose escalation was rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof_id: Option<ProofId>,
    /// A note on the change, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl TrustEntry {
    /// Creates an entry without record and note.
    pub const fn new(timestamp: Timestamp, change: TrustChange, cause: TrustCause) -> Self {
        Self { timestamp, change, cause, proof_id: None, note: None }
    }
}

/// One page of an agent's trust history, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TrustPage {
    /// The changes on this page.
    pub items: Vec<TrustEntry>,
    /// Number of changes over all pages.
    pub total: u64,
    /// The page number, counted from 1.
    pub page: u64,
    /// Maximum number of changes per page.
    pub page_size: u64,
    /// True if later pages have more changes.
    pub has_more: bool,
}

impl TrustPage {
    /// Creates a page of a history of `total` changes.
    pub const fn new(items: Vec<TrustEntry>, total: u64, page: u64, page_size: u64) -> Self {
        Self { items, total, page, page_size, has_more: page.saturating_mul(page_size) < total }
    }
}

/// The result of recomputing the agents' trust from the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TrustCheck {
    /// Number of agents in the log.
    pub agents: u64,
    /// Agents whose stored trust differs from the log, ordered by the entry where it first differs.
    pub differing: Vec<TrustDifference>,
}

impl TrustCheck {
    #[doc(hidden)]
    pub const fn new(agents: u64) -> Self {
        Self { agents, differing: Vec::new() }
    }
}

/// An agent whose stored trust differs from the trust that its history in the log yields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TrustDifference {
    /// The agent concerned.
    pub agent_id: AgentId,
    /// The position of the entry at which the trust first differs.
    pub sequence: Sequence,
    /// The trust in the store.
    pub kept: TrustSnapshot,
    /// The trust recomputed from the log.
    pub rebuilt: TrustSnapshot,
}

impl TrustDifference {
    #[doc(hidden)]
    pub const fn new(agent_id: AgentId, sequence: Sequence, kept: TrustSnapshot, rebuilt: TrustSnapshot) -> Self {
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
