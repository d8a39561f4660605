//! The trust model: pure functions over a score and what happened.

use serde::{Deserialize, Serialize};

use crate::model::{Decision, Outcome, RiskLevel, Score, Tier, Timestamp, TrustSnapshot};

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
    fn at(self, risk: RiskLevel) -> i64 {
        i64::from(match risk {
            RiskLevel::Low => self.low,
            RiskLevel::Medium => self.medium,
            RiskLevel::High => self.high,
            RiskLevel::Critical => self.critical,
        })
    }
}

/// Every number by which trust moves. Points are of the score's 0 to 1000.
///
/// Gains are slow and shrink towards the top, losses are fast and grow with
/// risk. A tier is lost at its boundary at once, and won back only some points
/// above it, so that a score on a boundary does not flap and the tier in force
/// never exceeds the score's own.
///
/// ```
/// use rulekeep::TrustModel;
///
/// let strict = TrustModel { daily_gain_cap: 10, ..TrustModel::default() };
/// assert!(strict.daily_gain_cap < TrustModel::default().daily_gain_cap);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TrustModel {
    /// Points of a success at score 0; they shrink linearly to one point at
    /// 1000. Default 2, 4, 8, 12.
    pub success_gain: PerRisk,
    /// Points that a failure costs. Default 10, 30, 90, 250: one CRITICAL
    /// failure costs more than the widest tier.
    pub failure_loss: PerRisk,
    /// Most points that an agent gains in a UTC day. Default 30.
    pub daily_gain_cap: u16,
    /// The highest tier that successes at LOW risk can lift an agent to. Default T3.
    pub low_risk_ceiling: Tier,
    /// Points above a tier's lowest score at which a lost or new tier is won. Default 10.
    pub promotion_margin: u16,
    /// Days without an outcome before the score drifts down. Default 14.
    pub idle_grace_days: u16,
    /// Points that an idle agent loses each further day. Default 2.
    pub idle_drift_per_day: u16,
    /// The score that drift alone does not go below. Default 200, a newcomer's.
    pub idle_drift_floor: Score,
}

impl Default for TrustModel {
    fn default() -> Self {
        Self {
            success_gain: PerRisk { low: 2, medium: 4, high: 8, critical: 12 },
            failure_loss: PerRisk { low: 10, medium: 30, high: 90, critical: 250 },
            daily_gain_cap: 30,
            low_risk_ceiling: Tier::T3,
            promotion_margin: 10,
            idle_grace_days: 14,
            idle_drift_per_day: 2,
            idle_drift_floor: Tier::T1.lowest(),
        }
    }
}

/// What is kept of an agent's trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TrustState {
    pub(crate) score: Score,
    pub(crate) tier: Tier,
    /// Points gained on `gain_day`.
    gained: u16,
    /// The UTC day of `gained`, counted from 1970.
    gain_day: i64,
    /// The last time something moved the score or could have.
    active_at: Timestamp,
}

/// What happened to an action.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrustEvent {
    pub(crate) outcome: Outcome,
    pub(crate) decision: Decision,
    pub(crate) risk: RiskLevel,
}

impl TrustState {
    /// The state of an agent that is registered at `score`.
    pub(crate) fn new(score: Score, at: Timestamp) -> Self {
        Self { score, tier: score.tier(), gained: 0, gain_day: at.day(), active_at: at }
    }
}

impl TrustModel {
    /// The trust in force at `now`: the score less what idleness has cost.
    pub(crate) fn snapshot(&self, state: &TrustState, now: Timestamp) -> TrustSnapshot {
        let score = self.drifted(state, now);
        TrustSnapshot::new(score, self.tier_of(score, state.tier))
    }

    /// The state after an outcome.
    ///
    /// Only what was granted can be earned on: a success reported for an action
    /// that was denied or still waits for a person gains nothing, but a failure
    /// costs all the same.
    pub(crate) fn after(&self, state: &TrustState, event: TrustEvent, now: Timestamp) -> TrustState {
        let score = self.drifted(state, now);
        let granted = matches!(event.decision, Decision::Allow | Decision::Degrade);
        let gained_today = if state.gain_day == now.day() { state.gained } else { 0 };
        let change = match event.outcome {
            Outcome::Success if granted => self.gain(score, event.risk, gained_today),
            Outcome::Failure => -self.failure_loss.at(event.risk),
            Outcome::Success | Outcome::Escalated => 0,
        };
        let next = Score::saturating(i64::from(score.get()) + change);
        TrustState {
            score: next,
            tier: self.tier_of(next, self.tier_of(score, state.tier)),
            gained: gained_today.saturating_add(next.get().saturating_sub(score.get())),
            gain_day: now.day(),
            active_at: now.max(state.active_at),
        }
    }

    fn gain(&self, score: Score, risk: RiskLevel, gained_today: u16) -> i64 {
        let base = self.success_gain.at(risk);
        if base == 0 {
            return 0;
        }
        let left_to_top = i64::from(Score::MAX.get() - score.get());
        let shrunk = (base * left_to_top / i64::from(Score::MAX.get())).max(1);
        let left_today = i64::from(self.daily_gain_cap.saturating_sub(gained_today));
        let ceiling = if risk == RiskLevel::Low { self.low_risk_ceiling.highest() } else { Score::MAX };
        let left_to_ceiling = i64::from(ceiling.get().saturating_sub(score.get()));
        shrunk.min(left_today).min(left_to_ceiling)
    }

    fn drifted(&self, state: &TrustState, now: Timestamp) -> Score {
        let idle_days = now.day() - state.active_at.day();
        let drifting_days = idle_days - i64::from(self.idle_grace_days);
        if drifting_days <= 0 || state.score <= self.idle_drift_floor {
            return state.score;
        }
        let lost = drifting_days.saturating_mul(i64::from(self.idle_drift_per_day));
        Score::saturating(i64::from(state.score.get()).saturating_sub(lost)).max(self.idle_drift_floor)
    }

    /// The tier in force for a score, given the tier before.
    fn tier_of(&self, score: Score, before: Tier) -> Tier {
        let own = score.tier();
        if own <= before {
            return own;
        }
        // Won only with a margin: the highest tier whose lowest score lies that far below.
        let with_margin = Score::saturating(i64::from(score.get()) - i64::from(self.promotion_margin)).tier();
        with_margin.max(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DAY: i64 = 86_400_000;

    fn at(day: i64) -> Timestamp {
        Timestamp::from_millis(day * DAY)
    }

    fn event(outcome: Outcome, risk: RiskLevel) -> TrustEvent {
        TrustEvent { outcome, decision: Decision::Allow, risk }
    }

    fn state(score: i64) -> TrustState {
        TrustState::new(Score::saturating(score), at(0))
    }

    #[test]
    fn a_success_that_was_not_granted_gains_nothing() {
        let model = TrustModel::default();
        for decision in [Decision::Deny, Decision::Escalate] {
            let event = TrustEvent { outcome: Outcome::Success, decision, risk: RiskLevel::High };
            assert_eq!(model.after(&state(300), event, at(0)).score.get(), 300);
        }
    }

    #[test]
    fn a_critical_failure_costs_at_least_a_tier() {
        let model = TrustModel::default();
        for score in 200..=1000 {
            let before = state(score);
            let after = model.after(&before, event(Outcome::Failure, RiskLevel::Critical), at(0));
            assert!(after.tier < before.tier, "{score} stayed in {}", before.tier);
        }
    }

    #[test]
    fn a_tier_is_lost_at_once_and_won_back_with_a_margin() {
        let model = TrustModel::default();
        let lost = model.after(&state(655), event(Outcome::Failure, RiskLevel::Low), at(0));
        assert_eq!((lost.score.get(), lost.tier), (645, Tier::T3));
        let mut trust = lost;
        for day in 1.. {
            trust = model.after(&trust, event(Outcome::Success, RiskLevel::Medium), at(day));
            if trust.tier == Tier::T4 {
                break;
            }
            assert!(trust.score.get() < 660, "{} is still {}", trust.score, trust.tier);
        }
        assert!(trust.score.get() >= 660);
    }

    #[test]
    fn an_idle_agent_drifts_down_to_the_floor_and_no_further() {
        let model = TrustModel::default();
        assert_eq!(model.snapshot(&state(700), at(14)).score.get(), 700);
        assert_eq!(model.snapshot(&state(700), at(24)).score.get(), 680);
        assert_eq!(model.snapshot(&state(700), at(10_000)).score.get(), 200);
        assert_eq!(model.snapshot(&state(100), at(10_000)).score.get(), 100);
    }

    prop_compose! {
        fn any_event()(
            outcome in proptest::sample::select(Outcome::ALL),
            decision in proptest::sample::select(Decision::ALL),
            risk in proptest::sample::select(RiskLevel::ALL),
        ) -> TrustEvent {
            TrustEvent { outcome, decision, risk }
        }
    }

    proptest! {
        #[test]
        fn no_history_leaves_the_bounds_or_the_daily_cap(
            start in 0_i64..=1000,
            events in proptest::collection::vec((any_event(), 0_i64..3), 0..300),
        ) {
            let model = TrustModel::default();
            let mut trust = state(start);
            let (mut day, mut gained) = (0, 0_i64);
            for (event, days) in events {
                if days > 0 {
                    gained = 0;
                }
                day += days;
                let before = model.snapshot(&trust, at(day)).score;
                trust = model.after(&trust, event, at(day));
                gained += (i64::from(trust.score.get()) - i64::from(before.get())).max(0);
                prop_assert!(trust.score <= Score::MAX);
                prop_assert!(trust.tier <= trust.score.tier());
                prop_assert!(gained <= i64::from(model.daily_gain_cap));
            }
        }

        #[test]
        fn successes_at_low_risk_never_lift_past_their_ceiling(start in 0_i64..=649, days in 1_i64..2000) {
            let model = TrustModel::default();
            let mut trust = state(start);
            for day in 0..days {
                for _ in 0..5 {
                    trust = model.after(&trust, event(Outcome::Success, RiskLevel::Low), at(day));
                }
            }
            prop_assert!(trust.score <= Tier::T3.highest());
            prop_assert!(trust.tier <= Tier::T3);
        }

        #[test]
        fn a_failure_never_gains_and_costs_more_at_higher_risk(score in 0_i64..=1000) {
            let model = TrustModel::default();
            let after: Vec<Score> = RiskLevel::ALL
                .iter()
                .map(|risk| model.after(&state(score), event(Outcome::Failure, *risk), at(0)).score)
                .collect();
            prop_assert!(after.is_sorted_by(|a, b| a >= b));
            prop_assert!(after.first().is_none_or(|low| i64::from(low.get()) <= score));
        }
    }
}
