//! The trust model: every number by which trust moves, and nothing else.

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

/// A score for each degree to which an agent's inside can be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(missing_docs)] // the three words of `Observability`
pub struct PerObservability {
    pub black_box: Score,
    pub grey_box: Score,
    pub white_box: Score,
}

/// Every number by which trust moves. Points are of the score's 0 to 1000, days
/// are UTC.
///
/// Gains are slow and shrink towards the top, losses are fast and grow with
/// risk. A tier is lost at its boundary at once, and won back only some points
/// above it and not while on probation, so that a score on a boundary does not
/// flap and the tier in force never exceeds the score's own.
///
/// A model is checked when a governor is opened with it; see
/// [`TrustModel::checked`]. The ranges below are what keeps the promises of
/// `docs/reference/trust.md` true for every model, not for the defaults alone.
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
    /// Points of a success for an agent at score 0, by the risk that what was
    /// granted has by the rubric; they shrink linearly to one point at 1000. A
    /// day's successes together gain what the riskiest of them gains alone.
    /// 0 to `daily_gain_cap`, never less at a higher risk. Default 3, 6, 12,
    /// 18: months from a newcomer to the top, whatever the volume.
    pub success_gain: PerRisk,
    /// Points that a failure costs, by the action's effective risk. At least
    /// the gain at the same risk and at least 1, never less at a higher risk;
    /// CRITICAL at least 201 + `promotion_margin`, more than the widest tier
    /// with its margin. Default 6, 15, 60, 250: two good days, a few, weeks,
    /// and more than a tier.
    pub failure_loss: PerRisk,
    /// Days after its decision within which a success gains. 1 to 365. Default
    /// 7: long enough for the report to come, too short to hoard successes.
    pub success_earns_within_days: u16,
    /// Most points that an agent gains in a day. 0 to 100. Default 20: a bound
    /// above the highest gain, for models whose gains are larger.
    pub daily_gain_cap: u16,
    /// The highest tier that successes at LOW risk can lift an agent to, and
    /// the highest that they keep from drifting down. T0 to T3. Default T3:
    /// harmless acts prove nothing about dangerous ones.
    pub low_risk_ceiling: Tier,
    /// Points above a tier's lowest score at which the tier is won. 0 to 50.
    /// Default 10: more than one LOW failure costs.
    pub promotion_margin: u16,
    /// Days without a success that counts before the score drifts down. 0 to
    /// 3,650. Default 14: a holiday costs nothing.
    pub idle_grace_days: u16,
    /// Points that an idle agent loses each further day. 0 (never) to 1,000.
    /// Default 2: a tier in a quarter of a year.
    pub idle_drift_per_day: u16,
    /// The score that drift alone does not go below. Default 200, a
    /// newcomer's: nobody is worse than unknown for having done nothing.
    pub idle_drift_floor: Score,
    /// Denials within `denial_window_minutes` that make a streak. 1 to 100.
    /// Default 5: more than a wrong plan, less than probing.
    pub denial_streak: u16,
    /// Minutes in which a streak's denials lie. 1 to 1,440. Default 10.
    pub denial_window_minutes: u16,
    /// Points that a streak costs, by the riskiest of its denials. 0 to 1,000,
    /// never less at a higher risk. Default 5, 10, 20, 40: being refused is a
    /// sign, not harm.
    pub denial_loss: PerRisk,
    /// Minutes in which at most one streak costs. 1 to 1,440. Default 60: a
    /// runtime that retries in a loop is told by alerts, not ruined.
    pub denial_pause_minutes: u16,
    /// Points that an escalation costs which a person rejected, by its
    /// effective risk. 0 to 1,000, never less at a higher risk. Default 5, 10,
    /// 20, 40: as a streak.
    pub rejection_loss: PerRisk,
    /// Days in which an agent that lost a tier wins none; gains go on within
    /// the tier. 1 to 365. Default 7: a tier is lost, not missed for an hour.
    pub probation_days: u16,
    /// Days in which an agent that registered itself gains nothing. 0 to 365.
    /// Default 7: a new name must not be worth more than a burnt one.
    pub newcomer_probation_days: u16,
    /// The highest score by what can be seen of an agent's inside, never less
    /// for one that shows more. Default 600, 800, 1000.
    pub observability_ceilings: PerObservability,
}

impl TrustModel {
    /// The highest score of an agent that can be looked at so far.
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
