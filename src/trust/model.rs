//! The trust model: all numbers that determine how trust changes.

use serde::{Deserialize, Serialize};

use crate::model::{Observability, RiskLevel, Score, Tier};

/// A number of points for each risk level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE", deny_unknown_fields)]
#[allow(missing_docs)] // the four words of `RiskLevel`
pub struct PerRisk {
    pub low: u16,
    pub medium: u16,
    pub high: u16,
    pub critical: u16,
}

impl PerRisk {
    pub(super) fn at(self, risk: RiskLevel) -> u16 {
        match risk {
            RiskLevel::Low => self.low,
            RiskLevel::Medium => self.medium,
            RiskLevel::High => self.high,
            RiskLevel::Critical => self.critical,
        }
    }
}

/// A score for each degree to which an agent's internals can be inspected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(missing_docs)] // the three words of `Observability`
pub struct PerObservability {
    pub black_box: Score,
    pub grey_box: Score,
    pub white_box: Score,
}

/// The numbers that determine how trust changes. Points are on the score's scale of 0 to 1000; days are UTC.
///
/// Gains are slow and shrink towards the top; losses are fast and grow with risk. A tier is lost at its boundary at
/// once. It is won back only some points above the boundary, and not during probation. So a score near a boundary
/// does not flap between tiers, and the tier in force never exceeds that of the score.
///
/// A governor validates its model when it is opened, see [`TrustModel::checked`]. The ranges below keep the promises
/// of `docs/reference/trust.md` for every valid model, not only for the defaults.
///
/// ```
/// use rulekeep::trust::TrustModel;
///
/// let strict = TrustModel { daily_gain_cap: 18, ..TrustModel::default() }.checked()?;
/// assert!(strict.daily_gain_cap < TrustModel::default().daily_gain_cap);
/// # Ok::<(), rulekeep::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TrustModel {
    /// Points gained by a success at score 0, by the risk that the rubric gives to what was granted. Gains shrink
    /// linearly to one point at score 1000. All successes of a day together gain what the riskiest of them gains
    /// alone. Range 0 to `daily_gain_cap`, not decreasing with risk. Default 3, 6, 12, 18: it takes months from a
    /// newcomer to the top, whatever the volume.
    pub success_gain: PerRisk,
    /// Points that a failure costs, by the action's effective risk. At least the gain at the same risk and at least
    /// 1, not decreasing with risk; at CRITICAL at least 201 + `promotion_margin`, which is more than the widest tier
    /// with its margin. Default 6, 15, 60, 250: two good days, a few days, weeks, and more than a tier.
    pub failure_loss: PerRisk,
    /// Days after a decision during which a success can be reported and still gains. Range 1 to 365. Default 7:
    /// enough for reports to arrive, too short to hoard successes.
    pub success_earns_within_days: u16,
    /// The most points that an agent gains in a day. Range 0 to 100. Default 20: above the highest default gain, so
    /// that it limits only models with larger gains.
    pub daily_gain_cap: u16,
    /// The highest tier that successes at LOW risk can lift an agent to, and the highest that they keep from drifting
    /// down. Range T0 to T3. Default T3, because harmless actions prove nothing about dangerous ones.
    pub low_risk_ceiling: Tier,
    /// Points above a tier's lowest score at which the tier is won. Range 0 to 50. Default 10: more than one LOW
    /// failure costs.
    pub promotion_margin: u16,
    /// Days without a success that counts before the score drifts down. Range 0 to 3,650. Default 14, so that a
    /// holiday costs nothing.
    pub idle_grace_days: u16,
    /// Points that an idle agent loses on each further day. Range 0 (no drift) to 1,000. Default 2: a tier in a
    /// quarter of a year.
    pub idle_drift_per_day: u16,
    /// The score below which drift does not go. Default 200, a newcomer's score.
    pub idle_drift_floor: Score,
    /// Number of denials within `denial_window_minutes` that make a streak. Range 1 to 100. Default 5: more than a
    /// wrong plan causes, fewer than probing does.
    pub denial_streak: u16,
    /// Length in minutes of the window for a streak's denials. Range 1 to 1,440. Default 10.
    pub denial_window_minutes: u16,
    /// Points that a streak costs, by the riskiest of its denials. Range 0 to 1,000, not decreasing with risk.
    /// Default 5, 10, 20, 40.
    pub denial_loss: PerRisk,
    /// Minutes during which at most one streak costs points. Range 1 to 1,440. Default 60: a runtime that retries in
    /// a loop raises alerts but does not lose all trust.
    pub denial_pause_minutes: u16,
    /// Points that an escalation costs if a reviewer rejects it, by its effective risk. Range 0 to 1,000, not
    /// decreasing with risk. Default 5, 10, 20, 40, the same as a streak.
    pub rejection_loss: PerRisk,
    /// Days after losing a tier during which an agent wins none; gains within the tier continue. Range 1 to 365.
    /// Default 7.
    pub probation_days: u16,
    /// Days during which an agent that registered itself gains nothing. Range 0 to 365. Default 7, so that a new name
    /// is never worth more than a discredited one.
    pub newcomer_probation_days: u16,
    /// The highest score by the degree of observability, not decreasing with it. Default 600, 800, 1000.
    pub observability_ceilings: PerObservability,
}

impl TrustModel {
    /// Returns the highest score of an agent with this observability.
    pub const fn ceiling_of(&self, observability: Observability) -> Score {
        match observability {
            Observability::BlackBox => self.observability_ceilings.black_box,
            Observability::GreyBox => self.observability_ceilings.grey_box,
            Observability::WhiteBox => self.observability_ceilings.white_box,
        }
    }
}

impl Default for TrustModel {
    fn default() -> Self {
        Self {
            success_gain: PerRisk { low: 3, medium: 6, high: 12, critical: 18 },
            failure_loss: PerRisk { low: 6, medium: 15, high: 60, critical: 250 },
            success_earns_within_days: 7,
            daily_gain_cap: 20,
            low_risk_ceiling: Tier::T3,
            promotion_margin: 10,
            idle_grace_days: 14,
            idle_drift_per_day: 2,
            idle_drift_floor: Tier::T1.lowest(),
            denial_streak: 5,
            denial_window_minutes: 10,
            denial_loss: PerRisk { low: 5, medium: 10, high: 20, critical: 40 },
            denial_pause_minutes: 60,
            rejection_loss: PerRisk { low: 5, medium: 10, high: 20, critical: 40 },
            probation_days: 7,
            newcomer_probation_days: 7,
            observability_ceilings: PerObservability {
                black_box: Score::saturating(600),
                grey_box: Score::saturating(800),
                white_box: Score::MAX,
            },
        }
    }
}
