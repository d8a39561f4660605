//! Recomputes the numbers in docs/reference/trust.md.

use super::*;

const PAGE: &str = include_str!("../../../docs/reference/trust.md");

fn assert_told(row: &str) {
    assert!(PAGE.contains(row), "docs/reference/trust.md lacks {row:?}");
}

fn each(points: PerRisk) -> [u16; 4] {
    [points.low, points.medium, points.high, points.critical]
}

#[test]
fn the_page_tells_the_default_numbers() {
    let model = TrustModel::default();
    assert_told(&format!("| `successGain` | {} |", each(model.success_gain).map(|gain| gain.to_string()).join(" / ")));
    for (field, losses) in [
        ("failureLoss", model.failure_loss),
        ("denialLoss", model.denial_loss),
        ("rejectionLoss", model.rejection_loss),
    ] {
        assert_told(&format!("| `{field}` | {} |", each(losses).map(|loss| loss.to_string()).join(" / ")));
    }
    for (field, number) in [
        ("successEarnsWithinDays", model.success_earns_within_days),
        ("dailyGainCap", model.daily_gain_cap),
        ("promotionMargin", model.promotion_margin),
        ("idleGraceDays", model.idle_grace_days),
        ("idleDriftPerDay", model.idle_drift_per_day),
        ("idleDriftFloor", model.idle_drift_floor.get()),
        ("denialStreak", model.denial_streak),
        ("denialWindowMinutes", model.denial_window_minutes),
        ("denialPauseMinutes", model.denial_pause_minutes),
        ("probationDays", model.probation_days),
        ("newcomerProbationDays", model.newcomer_probation_days),
    ] {
        assert_told(&format!("| `{field}` | {number} |"));
    }
    assert_told(&format!("| `lowRiskCeiling` | {} |", model.low_risk_ceiling));
    let PerObservability { black_box, grey_box, white_box } = model.observability_ceilings;
    assert_told(&format!("| `observabilityCeilings` | {black_box} / {grey_box} / {white_box} |"));
}

/// The first day on which an agent that started at 200 and succeeds once a day is in a tier.
fn days_to(tier: Tier, risk: RiskLevel) -> String {
    let model = TrustModel::default();
    let mut trust = state(200);
    for today in 1..1000 {
        trust = model.after(&trust, success(risk), at(day(today)));
        if trust.tier >= tier {
            return today.to_string();
        }
    }
    "never".to_owned()
}

#[test]
fn the_page_tells_how_long_each_tier_takes() {
    for &risk in RiskLevel::ALL {
        let days = [Tier::T2, Tier::T3, Tier::T4, Tier::T5].map(|tier| days_to(tier, risk)).join(" | ");
        assert_told(&format!("| {risk} | {days} |"));
    }
}

/// The mean score in the second year of an agent whose every nth action fails.
fn rests_at(risk: RiskLevel, acts_a_day: u64, every: u64) -> u64 {
    let model = TrustModel::default();
    let mut trust = state(200);
    let mut sum = 0;
    for today in 0..730 {
        for act in 0..acts_a_day {
            let number = today * acts_a_day + act;
            let event = if number % every == every - 1 { failure(risk) } else { success(risk) };
            trust = model.after(&trust, event, at(day(today.cast_signed())));
        }
        sum += if today >= 365 { u64::from(trust.score.get()) } else { 0 };
    }
    sum / 365
}

#[test]
fn the_page_tells_what_failures_cost_by_volume() {
    for every in [5000, 1000, 200, 100, 50, 20] {
        let scores = [
            rests_at(RiskLevel::Medium, 10, every),
            rests_at(RiskLevel::Medium, 100, every),
            rests_at(RiskLevel::High, 10, every),
            rests_at(RiskLevel::High, 100, every),
        ];
        assert_told(&format!("| 1 in {every} | {} |", scores.map(|score| score.to_string()).join(" | ")));
    }
}
