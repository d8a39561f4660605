//! Which trust models are valid: those for which what trust promises holds.

use std::fmt::Display;
use std::ops::RangeInclusive;

use super::model::{PerRisk, TrustModel};
use crate::model::{Error, RiskLevel, Tier};

impl TrustModel {
    /// The model, if every number is in its range and no two contradict what
    /// trust promises, such as that a failure at CRITICAL risk costs a tier.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] names the field, what it has and what was expected.
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
        // Harmless acts lift nobody into the tiers that are trusted with harm.
        if self.low_risk_ceiling > Tier::T3 {
            return Err(unexpected("trustModel.lowRiskCeiling", self.low_risk_ceiling, "T0 to T3"));
        }

        // A part of an action is never riskier than the whole; so it must not gain more, nor cost more.
        ascending("trustModel.successGain", self.success_gain, self.daily_gain_cap)?;
        ascending("trustModel.failureLoss", self.failure_loss, 1000)?;
        ascending("trustModel.denialLoss", self.denial_loss, 1000)?;
        ascending("trustModel.rejectionLoss", self.rejection_loss, 1000)?;
        for &risk in RiskLevel::ALL {
            // A success does not make up for a failure of its kind.
            let least = self.success_gain.at(risk).max(1);
            at_least("trustModel.failureLoss", risk, self.failure_loss, least)?;
        }
        // More than the widest tier, T5's 201 scores, and the margin up to which a score may lie above its tier: so
        // that a tier is lost by the loss alone, and the order of simultaneous outcomes stays within one gain.
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

/// So that one day's gains, the margin and the order of outcomes span no two tiers.
const MOST_A_DAY: u16 = 100;
/// A third of a tier.
const WIDEST_MARGIN: u16 = 50;
