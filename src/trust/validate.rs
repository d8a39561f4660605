//! Validation of trust models.

use std::fmt::Display;
use std::ops::RangeInclusive;

use super::model::{PerRisk, TrustModel};
use crate::model::{Error, RiskLevel, Tier};

impl TrustModel {
    /// Validates the model: every number must be in its range, and none may contradict a promise of the trust engine,
    /// such as that a failure at CRITICAL risk costs a tier.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] names the field, its value and the expected range.
    pub fn checked(self) -> Result<Self, Error> {
        within("trustModel.successEarnsWithinDays", self.success_earns_within_days, 1..=365)?;
        within("trustModel.dailyGainCap", self.daily_gain_cap, 0..=MOST_A_DAY)?;
        within("trustModel.promotionMargin", self.promotion_margin, 0..=WIDEST_MARGIN)?;
        within("trustModel.idleGraceDays", self.idle_grace_days, 0..=3650)?;
        within("trustModel.idleDriftPerDay", self.idle_drift_per_day, 0..=1000)?;
        within("trustModel.denialStreak", self.denial_streak, 1..=100)?;
        within("trustModel.denialWindowMinutes", self.denial_window_minutes, 1..=1440)?;
        within("trustModel.denialPauseMinutes", self.denial_pause_minutes, 1..=1440)?;
        within("trustModel.probationDays", self.probation_days, 1..=365)?;
        within("trustModel.newcomerProbationDays", self.newcomer_probation_days, 0..=365)?;
        // Harmless actions must not lift an agent into tiers that allow harmful ones.
        if self.low_risk_ceiling > Tier::T3 {
            return Err(unexpected("trustModel.lowRiskCeiling", self.low_risk_ceiling, "T0 to T3"));
        }

        // A part of an action is never riskier than the whole, so it must not gain more or cost more.
        ascending("trustModel.successGain", self.success_gain, self.daily_gain_cap)?;
        ascending("trustModel.failureLoss", self.failure_loss, 1000)?;
        ascending("trustModel.denialLoss", self.denial_loss, 1000)?;
        ascending("trustModel.rejectionLoss", self.rejection_loss, 1000)?;
        for &risk in RiskLevel::ALL {
            // A success must not make up for a failure at the same risk.
            let least = self.success_gain.at(risk).max(1);
            at_least("trustModel.failureLoss", risk, self.failure_loss, least)?;
        }
        // More than the widest tier, T5's 201 scores, plus the margin by which a score may exceed its tier. So the
        // loss alone costs a tier, and the order of simultaneous outcomes changes the result by at most one gain.
        at_least("trustModel.failureLoss", RiskLevel::Critical, self.failure_loss, 201 + self.promotion_margin)?;

        let ceilings = self.observability_ceilings;
        if !(ceilings.black_box <= ceilings.grey_box && ceilings.grey_box <= ceilings.white_box) {
            let found = format!("{}, {}, {}", ceilings.black_box, ceilings.grey_box, ceilings.white_box);
            let expected = "never less for an agent that shows more: blackBox <= greyBox <= whiteBox";
            return Err(unexpected("trustModel.observabilityCeilings", found, expected));
        }
        Ok(self)
    }
}

fn within(field: &'static str, found: u16, range: RangeInclusive<u16>) -> Result<(), Error> {
    if range.contains(&found) {
        return Ok(());
    }
    Err(unexpected(field, found, format_args!("{} to {}", range.start(), range.end())))
}

fn ascending(field: &'static str, found: PerRisk, most: u16) -> Result<(), Error> {
    let PerRisk { low, medium, high, critical } = found;
    if low <= medium && medium <= high && high <= critical && critical <= most {
        return Ok(());
    }
    let found = format!("LOW {low}, MEDIUM {medium}, HIGH {high}, CRITICAL {critical}");
    Err(unexpected(field, found, format_args!("at most {most}, and never less at a higher risk")))
}

fn at_least(field: &'static str, risk: RiskLevel, found: PerRisk, least: u16) -> Result<(), Error> {
    let found = found.at(risk);
    if found >= least {
        return Ok(());
    }
    Err(unexpected(field, format_args!("{risk} {found}"), format_args!("{risk} at least {least}")))
}

fn unexpected(field: &'static str, found: impl Display, expected: impl Display) -> Error {
    Error::input(field, format!("found {found}; expected {expected}"))
}

/// Bound that keeps a day's gains, the margin and the order of outcomes from spanning two tiers.
const MOST_A_DAY: u16 = 100;
/// Largest margin, a third of a tier.
const WIDEST_MARGIN: u16 = 50;
