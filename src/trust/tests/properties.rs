//! Properties that hold for every valid model, not only for the defaults.

use proptest::prelude::*;
use proptest::sample::select;

use super::regressions::Later;
use super::*;
use crate::model::Observability;

/// Four ascending numbers, the last at most `most`.
fn ascending(most: u16) -> impl Strategy<Value = PerRisk> {
    proptest::collection::vec(0..=most, 4).prop_map(|mut points| {
        points.sort_unstable();
        PerRisk { low: points[0], medium: points[1], high: points[2], critical: points[3] }
    })
}

fn any_ceilings() -> impl Strategy<Value = PerObservability> {
    proptest::collection::vec(any_score(), 3).prop_map(|mut scores| {
        scores.sort_unstable();
        PerObservability { black_box: scores[0], grey_box: scores[1], white_box: scores[2] }
    })
}

fn any_score() -> impl Strategy<Value = Score> {
    // Most errors would show at a boundary.
    let at_boundaries = (select(Tier::ALL), -60_i64..=60)
        .prop_map(|(tier, beside)| Score::saturating(i64::from(tier.lowest().get()) + beside));
    prop_oneof![(0_i64..=1000).prop_map(Score::saturating), at_boundaries]
}

prop_compose! {
    /// Any model that is valid.
    pub(super) fn any_model()(
        (success_gain, daily_gain_cap) in (0_u16..=100).prop_flat_map(|cap| (ascending(cap), Just(cap))),
        (low_risk_ceiling, promotion_margin) in (select(&Tier::ALL[..=3]), 0_u16..=50),
        more_loss in ascending(700),
        (idle_grace_days, idle_drift_per_day, idle_drift_floor) in (0_u16..=40, 0_u16..=50, any_score()),
        (denial_streak, denial_window_minutes, denial_pause_minutes) in (1_u16..=10, 1_u16..=60, 1_u16..=120),
        (denial_loss, rejection_loss) in (ascending(1000), ascending(1000)),
        (probation_days, newcomer_probation_days, success_earns_within_days) in (1_u16..=10, 0_u16..=10, 1_u16..=10),
        observability_ceilings in any_ceilings(),
    ) -> TrustModel {
        let failure_loss = PerRisk {
            low: (success_gain.low + more_loss.low).max(1),
            medium: (success_gain.medium + more_loss.medium).max(1),
            high: (success_gain.high + more_loss.high).max(1),
            critical: (success_gain.critical + more_loss.critical).max(201 + promotion_margin),
        };
        let model = TrustModel {
            success_gain, failure_loss, success_earns_within_days, daily_gain_cap, low_risk_ceiling, promotion_margin, idle_grace_days,
            idle_drift_per_day, idle_drift_floor, denial_streak, denial_window_minutes, denial_loss,
            denial_pause_minutes, rejection_loss, probation_days, newcomer_probation_days, observability_ceilings,
        };
        model.checked().expect("the strategy makes valid models")
    }
}

prop_compose! {
    fn any_event()(
        outcome in select(Outcome::ALL),
        decision in select(Decision::ALL),
        risk in select(RiskLevel::ALL),
        earns in proptest::option::weighted(0.9, select(RiskLevel::ALL)),
    ) -> TrustEvent {
        TrustEvent { outcome, decision, risk, earns }
    }
}

/// An event in an agent's history.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Event(TrustEvent),
    Denials(RiskLevel),
    Rejection(RiskLevel),
    Settle,
    Cap,
    Adjust(Score),
    Correct(RiskLevel, u16),
}

impl Step {
    pub(super) fn take(self, model: &TrustModel, state: &TrustState, facts: Facts) -> TrustState {
        match self {
            Self::Event(event) => model.after(state, event, facts),
            Self::Denials(risk) => model.after_denials(state, risk, facts),
            Self::Rejection(risk) => model.after_rejection(state, risk, facts),
            Self::Settle => model.settled(state, facts.now),
            Self::Cap => model.capped(state, facts),
            Self::Adjust(score) => model.adjusted(state, score, facts),
            Self::Correct(risk, gained) => model.corrected(state, risk, gained, facts),
        }
    }
}

/// An event that does not involve an operator.
fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => any_event().prop_map(Step::Event),
        1 => select(RiskLevel::ALL).prop_map(Step::Denials),
        1 => select(RiskLevel::ALL).prop_map(Step::Rejection),
        1 => Just(Step::Settle),
        1 => Just(Step::Cap),
    ]
}

pub(super) fn any_step_at_all() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => any_step(),
        1 => any_score().prop_map(Step::Adjust),
        1 => (select(RiskLevel::ALL), 0_u16..=100).prop_map(|(risk, gained)| Step::Correct(risk, gained)),
    ]
}

/// A time anywhere within some weeks, so that clocks step back as often as on.
pub(super) fn any_time() -> impl Strategy<Value = Timestamp> {
    (0_i64..60, select(&[0, 1, DAY / 2, DAY - 1][..]))
        .prop_map(|(days, rest)| Timestamp::from_millis(days * DAY + rest))
}

/// A state that a model can lead to: some history from some start.
fn any_state(model: TrustModel) -> impl Strategy<Value = (TrustModel, TrustState)> {
    let history = proptest::collection::vec((any_step(), 0_i64..30), 0..12);
    (any_score(), any::<bool>(), history).prop_map(move |(start, by_itself, mut history)| {
        history.sort_by_key(|(_, today)| *today);
        let start = if by_itself { model.self_registered(start, day(0)) } else { TrustState::new(start, day(0)) };
        let state = history.into_iter().fold(start, |state, (step, today)| step.take(&model, &state, at(day(today))));
        (model.clone(), state)
    })
}

fn model_and_state() -> impl Strategy<Value = (TrustModel, TrustState)> {
    any_model().prop_flat_map(any_state)
}

fn gained(before: &TrustState, after: &TrustState) -> i64 {
    i64::from(after.score.get()) - i64::from(before.score.get())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_history_leaves_the_bounds(
        model in any_model(),
        start in any_score(),
        ceiling in proptest::option::of(any_score()),
        steps in proptest::collection::vec((any_step_at_all(), any_time()), 0..80),
    ) {
        let mut state = TrustState::new(start, day(0));
        for (step, now) in steps {
            let facts = Facts { ceiling, now };
            let next = step.take(&model, &state, facts);
            prop_assert!(next.tier <= next.score.tier(), "{next:?} after {step:?}");
            let most = u32::from(next.tier.highest().get() + model.promotion_margin);
            prop_assert!(u32::from(next.score.get()) <= most, "{next:?} after {step:?}");
            if !matches!(step, Step::Settle) {
                prop_assert!(next.score <= ceiling.unwrap_or(Score::MAX), "{next:?} after {step:?}");
            }
            let seen = model.snapshot(&next, facts);
            prop_assert!(seen.score <= next.score.min(ceiling.unwrap_or(Score::MAX)) && seen.tier <= next.tier);
            state = next;
        }
    }

    #[test]
    fn no_day_gains_more_than_its_cap_wherever_the_clock_goes(
        model in any_model(),
        start in any_score(),
        steps in proptest::collection::vec((any_step(), any_time()), 0..120),
    ) {
        let mut state = TrustState::new(start, day(0));
        // A clock that steps back stays on the latest day with an event.
        let (mut today, mut gained_today) = (0, 0);
        for (step, now) in steps {
            if !matches!(step, Step::Settle) && now.day() > today {
                (today, gained_today) = (now.day(), 0);
            }
            let next = step.take(&model, &state, at(now));
            gained_today += gained(&state, &next).max(0);
            prop_assert!(gained_today <= i64::from(model.daily_gain_cap));
            prop_assert!(gained_today <= i64::from(model.success_gain.critical));
            state = next;
        }
    }

    #[test]
    fn successes_at_low_risk_never_pass_t3_wherever_the_clock_goes(
        model in any_model(),
        start in prop_oneof![0_i64..=649, 630_i64..=649],
        // Mostly successes, because random histories only lose points.
        steps in proptest::collection::vec(
            (prop_oneof![9 => Just(Step::Event(success(RiskLevel::Low))), 1 => any_step()], any_time()),
            0..120,
        ),
    ) {
        let mut state = TrustState::new(Score::saturating(start), day(0));
        for (step, now) in steps {
            let step = match step {
                Step::Event(event) => Step::Event(TrustEvent { earns: event.earns.and(Some(RiskLevel::Low)), ..event }),
                other => other,
            };
            state = step.take(&model, &state, at(now));
            prop_assert!(state.score <= Tier::T3.highest() && state.tier <= Tier::T3);
        }
    }

    #[test]
    fn a_critical_failure_costs_a_tier_for_the_probation(
        (model, state) in model_and_state(),
        decision in select(Decision::ALL),
        // Even if nobody validated the model.
        loss in 0_u16..=1000,
        later in proptest::collection::vec((any_step(), 30_i64..40), 0..40),
    ) {
        let model = TrustModel { failure_loss: PerRisk { critical: loss, ..model.failure_loss }, ..model };
        let failure = TrustEvent { decision, ..failure(RiskLevel::Critical) };
        let before = model.snapshot(&state, at(day(30))).tier;
        let mut failed = model.after(&state, failure, at(day(30)));
        prop_assert!(failed.tier < before || (before == Tier::T0 && failed.score == Score::MIN));
        let tier = failed.tier;
        for (step, today) in later {
            failed = step.take(&model, &failed, at(day(today)));
            let is_over = today >= 30 + i64::from(model.probation_days);
            prop_assert!(is_over || before == Tier::T0 || failed.tier <= tier, "{failed:?} on day {today}");
            if is_over {
                break;
            }
        }
    }

    #[test]
    fn no_partition_of_an_action_gains_more_than_the_action(
        (model, state) in model_and_state(),
        ceiling in proptest::option::of(any_score()),
        whole in select(RiskLevel::ALL),
        parts in proptest::collection::vec((select(RiskLevel::ALL), 0..DAY), 0..40),
    ) {
        let today = day(31).as_millis();
        let facts = |millis: i64| Facts { ceiling, now: Timestamp::from_millis(today + millis) };
        let once = model.after(&state, success(whole), facts(0));
        let split = parts.into_iter().fold(state, |state, (part, millis)| {
            model.after(&state, success(part.min(whole)), facts(millis))
        });
        // The parts may be empty, and drift that is not settled yet must not favor an idle agent.
        prop_assert!(model.snapshot(&split, facts(0)).score <= once.score, "{split:?} against {once:?}");
        prop_assert!(model.snapshot(&split, facts(0)).tier <= once.tier);
    }

    #[test]
    fn simultaneous_successes_commute(
        (model, state) in model_and_state(),
        ceiling in proptest::option::of(any_score()),
        (order, other) in proptest::collection::vec((select(RiskLevel::ALL), select(RiskLevel::ALL)), 0..8)
            .prop_flat_map(|events| (Just(events.clone()), Just(events).prop_shuffle())),
    ) {
        let facts = Facts { ceiling, now: day(31) };
        let fold = |order: &[(RiskLevel, RiskLevel)]| order.iter().fold(state, |state, (risk, earns)| {
            model.after(&state, TrustEvent { risk: *risk, ..success(*earns) }, facts)
        });
        let (one, two) = (fold(&order), fold(&other));
        prop_assert_eq!((one.score, one.tier), (two.score, two.tier));
    }

    #[test]
    fn the_order_of_simultaneous_outcomes_matters_at_most_one_gain(
        (model, state) in model_and_state(),
        ceiling in proptest::option::of(any_score()),
        (order, other) in proptest::collection::vec(any_event(), 0..10)
            .prop_flat_map(|events| (Just(events.clone()), Just(events).prop_shuffle())),
    ) {
        let facts = Facts { ceiling, now: day(31) };
        let fold = |order: &[TrustEvent]| order.iter().fold(state, |state, event| model.after(&state, *event, facts));
        let (one, two) = (fold(&order), fold(&other));
        let apart = gained(&one, &two).abs();
        prop_assert!(apart <= i64::from(model.success_gain.critical), "{one:?} {two:?}");
        prop_assert!((one.tier as i64 - two.tier as i64).abs() <= 1, "{one:?} {two:?}");
    }

    #[test]
    fn a_success_never_makes_up_for_a_failure_of_its_kind(
        (model, state) in model_and_state(),
        risk in select(RiskLevel::ALL),
        success_first in any::<bool>(),
    ) {
        let start = model.capped(&state, at(day(31)));
        let mut events = [failure(risk), success(risk)];
        if success_first {
            events.reverse();
        }
        let end = events.into_iter().fold(start, |state, event| model.after(&state, event, at(day(31))));
        // At 0 there is nothing left to lose, so one gain remains.
        let remains = i64::from(model.success_gain.at(risk)) - i64::from(start.score.get());
        prop_assert!(gained(&start, &end) <= remains.max(0));
    }

    #[test]
    fn drift_only_lowers_and_settling_it_early_changes_nothing(
        (model, state) in model_and_state(),
        mut days in proptest::collection::vec(0_i64..400, 1..6),
        event in any_event(),
    ) {
        days.sort_unstable();
        let last = day(days[days.len() - 1]);
        let settled = days.iter().fold(state, |state, today| model.settled(&state, day(*today)));
        prop_assert!(settled.score <= state.score && settled.tier <= state.tier);
        prop_assert!(settled.score >= state.score.min(model.idle_drift_floor));
        prop_assert_eq!(model.snapshot(&settled, at(last)), model.snapshot(&state, at(last)));
        let (early, late) = (model.after(&settled, event, at(last)), model.after(&state, event, at(last)));
        prop_assert_eq!(early.change_to(&late), None);
        for decided_at in days.iter().flat_map(|today| [-1, 0, 1].map(|beside| day(*today).plus(beside))) {
            let at_once = model.settled(&state, last);
            prop_assert_eq!(
                model.still_earns(&settled, decided_at, last),
                model.still_earns(&at_once, decided_at, last)
            );
        }
    }

    #[test]
    fn a_success_earns_only_if_decided_recently_in_the_same_tier(
        model in any_model(),
        start in any_score(),
        steps in proptest::collection::vec((any_step_at_all(), 0_i64..60), 0..60),
        (decided, later) in (0_i64..60, 0_i64..14),
    ) {
        let (decided_at, now) = (day(decided), day(decided + later));
        let mut state = TrustState::new(start, day(0));
        let mut is_lost = false;
        for today in 0..=decided + later {
            // A tier lost by drift is gone from the first moment of a day, before any event on it.
            let settled = model.settled(&state, day(today));
            is_lost |= today > decided && settled.tier < state.tier;
            state = settled;
            for (step, _) in steps.iter().filter(|(_, on)| *on == today) {
                let next = step.take(&model, &state, at(day(today)));
                is_lost |= today >= decided && next.tier < state.tier;
                state = next;
            }
        }
        let is_old = later >= i64::from(model.success_earns_within_days);
        prop_assert_eq!(model.still_earns(&state, decided_at, now), !is_lost && !is_old);
        let late = TrustEvent { earns: None, ..success(RiskLevel::Critical) };
        prop_assert_eq!(model.after(&state, late, at(now)), model.capped(&state, at(now)));
    }

    #[test]
    fn only_a_success_an_adjustment_and_nothing_else_raises(
        (model, state) in model_and_state(),
        step in any_step_at_all(),
        now in any_time(),
    ) {
        let next = step.take(&model, &state, at(now));
        let may_raise = match step {
            Step::Adjust(_) => true,
            Step::Event(event) => {
                event.outcome == Outcome::Success && matches!(event.decision, Decision::Allow | Decision::Degrade)
            }
            _ => false,
        };
        prop_assert!(may_raise || (next.score <= state.score && next.tier <= state.tier), "{next:?}");
    }

    #[test]
    fn riskier_failures_denials_and_rejections_cost_no_less(
        (model, state) in model_and_state(),
        (one, other) in (select(RiskLevel::ALL), select(RiskLevel::ALL)),
    ) {
        let (mild, grave) = (one.min(other), one.max(other));
        let now = at(day(31));
        prop_assert!(model.after(&state, failure(grave), now).score <= model.after(&state, failure(mild), now).score);
        prop_assert!(model.after_denials(&state, grave, now).score <= model.after_denials(&state, mild, now).score);
        prop_assert!(model.after_rejection(&state, grave, now).score <= model.after_rejection(&state, mild, now).score);
    }

    #[test]
    fn a_new_name_gains_nothing_before_its_probation_is_over(
        model in any_model(),
        start in any_score(),
        steps in proptest::collection::vec((any_step(), 0_i64..10), 0..40),
    ) {
        let mut state = model.self_registered(start, day(0));
        for (step, today) in steps.into_iter().filter(|(_, today)| *today < i64::from(model.newcomer_probation_days)) {
            state = step.take(&model, &state, at(day(today)));
            prop_assert!(state.score <= start && state.tier <= start.tier());
        }
    }

    #[test]
    fn at_most_one_streak_costs_in_each_pause(
        model in any_model(),
        mut minutes in proptest::collection::vec(0_i64..600, 0..200),
    ) {
        minutes.sort_unstable();
        let mut denials = Denials::default();
        let told: Vec<i64> = minutes.iter().copied().filter(|minute| {
            denials.count(&model, RiskLevel::Low, Timestamp::from_millis(minute * MINUTE)).is_some()
        }).collect();
        for pair in told.windows(2) {
            prop_assert!(pair[1] - pair[0] >= i64::from(model.denial_pause_minutes));
        }
        // The simple implementation counts over all denials to find a streak that costs points.
        for minute in told {
            let window = minute - i64::from(model.denial_window_minutes)..=minute;
            let count = minutes.iter().filter(|at| window.contains(at) && **at > *window.start()).count();
            prop_assert!(count >= usize::from(model.denial_streak));
        }
    }

    #[test]
    fn a_model_and_a_state_come_back_from_json(
        (model, state) in model_and_state(),
        seen in select(Observability::ALL),
    ) {
        let read: TrustModel = serde_json::from_str(&serde_json::to_string(&model).unwrap()).unwrap();
        prop_assert_eq!(read.ceiling_of(seen), model.ceiling_of(seen));
        prop_assert_eq!(read.checked().unwrap(), model);
        let read: TrustState = serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap();
        prop_assert_eq!(read, state);
    }
}
