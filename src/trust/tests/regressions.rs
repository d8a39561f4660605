//! Ways in which trust could once be farmed, dodged or lost, each with its name, and the effect of the default
//! numbers.

use super::*;
use RiskLevel::{Critical, High, Low, Medium};

fn fold(
    model: &TrustModel,
    start: TrustState,
    events: impl IntoIterator<Item = (TrustEvent, Timestamp)>,
) -> TrustState {
    events.into_iter().fold(start, |state, (event, now)| model.after(&state, event, at(now)))
}

#[test]
fn a_clock_that_flips_over_midnight_does_not_refill_the_day() {
    let model = TrustModel::default();
    let once = fold(&model, state(500), [(success(High), day(5))]);
    let flipped = fold(&model, state(500), (0..12).map(|turn| (success(High), day(5 - turn % 2))));
    assert_eq!(flipped, once);
}

#[test]
fn two_sides_of_midnight_gain_one_success_each() {
    let model = TrustModel::default();
    let around = (0..20).map(|turn| (success(High), Timestamp::from_millis(5 * DAY - 10 + turn)));
    assert_eq!(score(&fold(&model, state(500), around)), 500 + 6 + 5);
}

#[test]
fn splitting_an_action_into_many_harmless_ones_gains_no_more() {
    let model = TrustModel::default();
    for (start, whole, part) in [(400, Critical, Low), (700, High, Medium), (999, Critical, Low), (0, High, High)] {
        let once = fold(&model, state(start), [(success(whole), day(1))]);
        let split = fold(&model, state(start), (0..30).map(|turn| (success(part), day(1).plus(turn))));
        assert!(split.score <= once.score, "{start}: {whole} gives {}, thirty {part} {}", once.score, split.score);
    }
}

#[test]
fn volume_does_not_climb() {
    let model = TrustModel::default();
    let daily = |acts: i64| {
        let acts = (1..=300).flat_map(|today| (0..acts).map(move |act| (success(Medium), day(today).plus(act))));
        score(&fold(&model, state(200), acts))
    };
    assert_eq!(daily(1), daily(200));
    assert!(daily(1) < 800, "Trusted takes longer than 300 days");
}

#[test]
fn a_risk_that_the_caller_declares_earns_nothing() {
    let model = TrustModel::default();
    for claimed in [Low, Medium, High, Critical] {
        let read = TrustEvent { risk: claimed, ..success(Low) };
        assert_eq!(score(&model.after(&state(200), read, at(day(1)))), 202, "{claimed}");
        assert_eq!(score(&model.after(&state(649), read, at(day(1)))), 649, "{claimed}");
    }
}

#[test]
fn a_degraded_refusal_earns_nothing_and_its_failure_costs_all() {
    let model = TrustModel::default();
    let degraded = TrustEvent { decision: Decision::Degrade, risk: High, ..success(Low) };
    assert_eq!(score(&model.after(&state(200), degraded, at(day(1)))), 202);
    let failed = TrustEvent { outcome: Outcome::Failure, ..degraded };
    assert_eq!(score(&model.after(&state(200), failed, at(day(1)))), 140);
}

#[test]
fn escalated_avoids_no_loss_unless_a_person_was_to_be_asked() {
    let model = TrustModel::default();
    for (decision, expected) in
        [(Decision::Allow, 585), (Decision::Degrade, 585), (Decision::Deny, 585), (Decision::Escalate, 600)]
    {
        let escalated = TrustEvent { decision, ..event(Outcome::Escalated, Critical) };
        assert_eq!(score(&model.after(&state(600), escalated, at(day(1)))), expected, "{decision}");
    }
}

#[test]
fn an_ungranted_success_gains_nothing_and_keeps_nothing_alive() {
    let model = TrustModel::default();
    for decision in [Decision::Deny, Decision::Escalate] {
        let not_granted = TrustEvent { decision, ..success(High) };
        let kept = fold(&model, state(1000), (1..=100).map(|week| (not_granted, day(week * 7))));
        assert_eq!(model.snapshot(&kept, at(day(700))), model.snapshot(&state(1000), at(day(700))), "{decision}");
        assert_eq!(score(&model.after(&state(300), not_granted, at(day(1)))), 300, "{decision}");
    }
}

#[test]
fn harmless_successes_do_not_keep_a_high_tier_alive() {
    let model = TrustModel::default();
    let over_years = |risk| fold(&model, state(1000), (1..=100).map(|turn| (success(risk), day(turn * 14))));
    assert!(over_years(Low).tier <= Tier::T3);
    assert_eq!(over_years(Medium).tier, Tier::T5);
}

#[test]
fn a_tier_lost_to_a_critical_failure_needs_the_probation() {
    let model = TrustModel::default();
    let mut trust = model.after(&state(1000), failure(Critical), at(day(0)));
    assert_eq!((score(&trust), trust.tier), (750, Tier::T4));
    for today in 0..7 {
        trust = fold(&model, trust, [Low, Medium, High, Critical].map(|risk| (success(risk), day(today))));
        assert_eq!(trust.tier, Tier::T4);
    }
    assert!(score(&trust) > 750, "gains go on within the tier");
}

#[test]
fn on_probation_no_gain_leaves_the_tier() {
    let model = TrustModel::default();
    let dropped = model.after(&state(652), failure(Low), at(day(0)));
    assert_eq!((score(&dropped), dropped.tier), (646, Tier::T3));
    let within = fold(&model, dropped, (0..7).map(|today| (success(Critical), day(today))));
    assert_eq!((score(&within), within.tier), (649, Tier::T3));
    let after = fold(&model, within, (7..9).map(|today| (success(Critical), day(today))));
    assert_eq!((score(&after), after.tier), (661, Tier::T4));
}

#[test]
fn at_the_lowest_tier_a_critical_failure_leaves_nothing() {
    let model = TrustModel::default();
    assert_eq!(score(&model.after(&state(199), failure(Critical), at(day(0)))), 0);
}

#[test]
fn a_new_name_gains_nothing_for_a_while_even_if_it_fails() {
    let model = TrustModel::default();
    let newcomer = model.self_registered(Score::saturating(200), day(0));
    let waiting = fold(&model, newcomer, (0..7).map(|today| (success(Critical), day(today))));
    assert_eq!(score(&waiting), 200);
    assert!(score(&fold(&model, waiting, [(success(Critical), day(7))])) > 200);

    let failed = fold(&model, newcomer, [(failure(Low), day(6))]);
    assert_eq!((score(&failed), failed.tier), (194, Tier::T0));
    let kept_back = fold(&model, failed, (6..13).map(|today| (success(Critical), day(today))));
    assert_eq!(score(&kept_back), 194, "a lost tier prolongs it");
    let vouched_for = model.adjusted(&newcomer, Score::saturating(200), at(day(1)));
    assert!(score(&fold(&model, vouched_for, [(success(Critical), day(1))])) > 200);
}

#[test]
fn simultaneous_successes_commute_at_the_harmless_ceiling_too() {
    let model = TrustModel::default();
    for start in [491, 492, 642, 646, 647, 648, 649] {
        let orders = [[Critical, High, Low], [Low, High, Critical], [High, Low, Critical]];
        let ends = orders.map(|order| fold(&model, state(start), order.map(|risk| (success(risk), day(1)))));
        assert!(ends.iter().all(|end| *end == ends[0]), "{start}: {ends:?}");
    }
}

#[test]
fn the_order_of_successes_and_failures_matters_by_one_gain() {
    let model = TrustModel::default();
    let events = [success(Critical), success(High), success(Critical), failure(Critical)];
    let forth = fold(&model, state(215), events.map(|event| (event, day(1))));
    let back = fold(&model, state(215), events.into_iter().rev().map(|event| (event, day(1))));
    assert_eq!((score(&forth), score(&back)), (0, 14));
}

#[test]
fn who_fails_once_in_fifty_is_not_trusted() {
    let model = TrustModel::default();
    let rests_at = |every: usize| {
        let acts =
            (0..730 * 10).map(|act| (if act % every == every - 1 { failure(Medium) } else { success(Medium) }, act));
        let acts = acts.map(|(event, act)| (event, day(i64::try_from(act).unwrap() / 10)));
        fold(&model, state(200), acts).tier
    };
    assert!(rests_at(50) <= Tier::T3, "{}", rests_at(50));
    assert!(rests_at(20) <= Tier::T1, "{}", rests_at(20));
    assert!(rests_at(1000) >= Tier::T4, "{}", rests_at(1000));
}

#[test]
fn a_tier_is_lost_at_once_and_won_with_a_margin() {
    let model = TrustModel { probation_days: 1, ..TrustModel::default() };
    let lost = model.after(&state(655), failure(Low), at(day(0)));
    assert_eq!((score(&lost), lost.tier), (649, Tier::T3));
    let mut trust = lost;
    for today in 1.. {
        trust = model.after(&trust, success(Medium), at(day(today)));
        if trust.tier == Tier::T4 {
            break;
        }
        assert!(score(&trust) < 660, "{} is still {}", trust.score, trust.tier);
    }
    assert!(score(&trust) >= 660);
}

#[test]
fn an_idle_agent_drifts_down_to_the_floor_and_no_further() {
    let model = TrustModel::default();
    let drifted = |start, today| model.snapshot(&state(start), at(day(today))).score.get();
    assert_eq!(drifted(700, 14), 700);
    assert_eq!(drifted(700, 24), 680);
    assert_eq!(drifted(700, 10_000), 200);
    assert_eq!(drifted(100, 10_000), 100);
}

#[test]
fn a_tier_lost_by_idleness_alone_is_no_reason_for_probation() {
    let model = TrustModel::default();
    let settled = model.settled(&state(655), day(20));
    assert_eq!((score(&settled), settled.tier), (643, Tier::T3));
    let back = fold(&model, settled, (20..26).map(|today| (success(Critical), day(today))));
    assert_eq!(back.tier, Tier::T4);
}

#[test]
fn an_adjustment_passes_daily_cap_and_probation_not_the_ceiling() {
    let model = TrustModel::default();
    let dropped = model.after(&state(1000), failure(Critical), at(day(0)));
    let raised = model.adjusted(&dropped, Score::saturating(803), at(day(0)));
    assert_eq!((score(&raised), raised.tier), (803, Tier::T5), "no margin either");
    let capped = Facts { ceiling: Some(Score::saturating(600)), now: day(0) };
    assert_eq!(score(&model.adjusted(&dropped, Score::MAX, capped)), 600);
    let lowered = model.adjusted(&raised, Score::saturating(640), at(day(0)));
    let after = fold(&model, lowered, (0..7).map(|today| (success(Critical), day(today))));
    assert_eq!(after.tier, Tier::T3, "who is set down stays there for the probation");
}

#[test]
fn an_adjustment_ends_what_idleness_costs() {
    let model = TrustModel::default();
    let adjusted = model.adjusted(&state(200), Score::saturating(700), at(day(400)));
    assert_eq!(model.snapshot(&adjusted, at(day(410))).score.get(), 700);
    assert_eq!(model.snapshot(&adjusted, at(day(415))).score.get(), 698);
}

#[test]
fn an_adjustment_puts_right_what_a_clock_did_that_ran_far_ahead() {
    let model = TrustModel::default();
    let ahead = model.after(&state(700), success(High), at(day(1_000_000)));
    assert_eq!(model.after(&ahead, success(High), at(day(2))).score, ahead.score);
    let adjusted = model.adjusted(&ahead, Score::saturating(700), at(day(2)));
    assert!(score(&model.after(&adjusted, success(High), at(day(3)))) > 700);
}

#[test]
fn a_lowered_ceiling_applies_at_once_and_a_raised_one_adds_none() {
    let model = TrustModel::default();
    let black_box = Some(model.ceiling_of(crate::model::Observability::BlackBox));
    let capped = model.capped(&state(900), Facts { ceiling: black_box, now: day(0) });
    assert_eq!((score(&capped), capped.tier), (600, Tier::T3));
    assert_eq!(model.capped(&capped, at(day(0))).score, capped.score);
}

#[test]
fn a_correction_takes_back_the_gain_and_takes_the_loss() {
    let model = TrustModel::default();
    let succeeded = model.after(&state(500), success(High), at(day(1)));
    assert_eq!(score(&succeeded), 506);
    let corrected = model.corrected(&succeeded, High, 6, at(day(1)));
    assert_eq!(score(&corrected), 440);
    assert_eq!(model.after(&corrected, success(High), at(day(1))).score, corrected.score, "the day stays used up");
    let critical = model.corrected(&state(1000), Critical, 0, at(day(1)));
    assert!(critical.tier < Tier::T5);
}

#[test]
fn a_streak_of_denials_costs_by_its_riskiest_and_once_an_hour() {
    let model = TrustModel::default();
    let mut denials = Denials::default();
    let mut count = |risk, minute: i64| denials.count(&model, risk, Timestamp::from_millis(minute * MINUTE));
    assert_eq!([0, 1, 2, 11, 12].map(|minute| count(Low, minute)), [None; 5], "not five within ten minutes");
    assert_eq!([13, 14].map(|minute| count(High, minute)), [None, None]);
    assert_eq!(count(Low, 15), Some(High));
    assert_eq!([16, 17, 18, 19, 20, 21, 70, 71, 72, 73].map(|minute| count(Low, minute)), [None; 10]);
    assert_eq!(count(Low, 74), None, "not an hour after the last");
    assert_eq!(count(Medium, 75), Some(Medium));
    assert_eq!(score(&model.after_denials(&state(300), High, at(day(0)))), 280);
}

#[test]
fn a_clock_that_steps_back_makes_no_streak_out_of_nothing_twice() {
    let model = TrustModel { denial_streak: 2, ..TrustModel::default() };
    let mut denials = Denials::default();
    let told =
        [100, 0, 50, 0, 60, 99].map(|minute| denials.count(&model, Low, Timestamp::from_millis(minute * MINUTE)));
    assert_eq!(told, [None, Some(Low), None, None, None, None]);
}

#[test]
fn a_rejected_escalation_costs_by_its_risk() {
    let model = TrustModel::default();
    let costs =
        [Low, Medium, High, Critical].map(|risk| 300 - score(&model.after_rejection(&state(300), risk, at(day(0)))));
    assert_eq!(costs, [5, 10, 20, 40]);
}

#[test]
fn a_success_earns_for_seven_days_within_its_decisions_tier() {
    let model = TrustModel::default();
    let earns = |state: &TrustState, decided_at: Timestamp, now| model.still_earns(state, decided_at, now);
    assert!(earns(&state(700), day(1), day(8).plus(-1)));
    assert!(!earns(&state(700), day(1), day(8)));
    assert!(!earns(&state(700), day(9), day(8)), "decided before time stepped back");
    let fallen = model.after(&state(700), failure(Critical), at(day(2)));
    for (decided_at, does) in [(day(2).plus(-1), false), (day(2), false), (day(2).plus(1), true)] {
        assert_eq!(earns(&fallen, decided_at, day(3)), does, "{decided_at}");
    }
    let adjusted = model.adjusted(&fallen, Score::saturating(900), at(day(3)));
    assert!(!earns(&adjusted, day(1), day(4)), "it lost a tier all the same");
    // 650 is T4's lowest score; the first drift is on day 15.
    let idle = model.settled(&state(650), day(16));
    assert_eq!(idle.tier, Tier::T3);
    assert!(!earns(&idle, day(15).plus(-1), day(16)) && earns(&idle, day(15), day(16)));
}

#[test]
fn after_a_clock_step_back_all_trust_periods_count_from_there() {
    let model = TrustModel::default();
    let ahead = model.after(&state(1000), failure(Critical), at(day(1000)));
    let restarted = model.restarted(&ahead, at(day(2)));
    assert_eq!((restarted.score, restarted.tier), (ahead.score, ahead.tier));
    assert!(
        model.still_earns(&restarted, day(2).plus(1), day(3)) && !model.still_earns(&ahead, day(2).plus(1), day(3))
    );
    assert!(model.after(&restarted, success(High), at(day(3))).score > restarted.score, "the day's gains begin anew");
    let probation = i64::from(model.probation_days);
    let after = |days: i64| fold(&model, restarted, (3..days).map(|today| (success(Critical), day(today)))).tier;
    assert_eq!(after(2 + probation), ahead.tier, "the probation is as long as before");
    assert!(after(60 + probation) > ahead.tier, "and no longer");
    assert_eq!(model.restarted(&restarted, at(day(2))), restarted);
    let usual = model.after(&state(700), success(High), at(day(2)));
    assert_eq!(model.restarted(&usual, at(day(2))), usual, "what is not ahead stays");
}

#[test]
fn states_of_the_first_logs_are_read() {
    let old = r#"{"score":300,"tier":"T1","gained":4,"gainDay":3,"activeAt":"1970-01-04T00:00:00.000Z"}"#;
    let read: TrustState = serde_json::from_str(old).unwrap();
    let model = TrustModel::default();
    assert_eq!(model.snapshot(&read, at(day(3))), TrustSnapshot::new(Score::saturating(300), Tier::T1));
    assert_eq!(score(&model.after(&read, success(Critical), at(day(3)))), 300, "that day has gained already");
    assert_eq!(score(&model.after(&read, success(Critical), at(day(4)))), 312);
    assert_eq!((read.last, read.changes), (None, 0));
}

pub(super) trait Later {
    fn plus(self, millis: i64) -> Self;
}

impl Later for Timestamp {
    fn plus(self, millis: i64) -> Self {
        Self::from_millis(self.as_millis() + millis)
    }
}
