//! Compares a state recomputed from facts with the one that was stored.

use proptest::prelude::*;

use super::properties::{Step, any_model, any_step_at_all, any_time};
use super::*;
use crate::model::Sequence;

impl Step {
    fn fact(self, ceiling: Option<Score>) -> TrustFact {
        match self {
            Self::Event(event) => TrustFact::Outcome(event),
            Self::Denials(risk) => TrustFact::Denials(risk),
            Self::Rejection(risk) => TrustFact::Rejection(risk),
            Self::Settle => TrustFact::Idle,
            Self::Cap => TrustFact::Ceiling(ceiling),
            Self::Adjust(score) => TrustFact::Adjusted(score),
            Self::Correct(risk, gained) => TrustFact::Correction { risk, gained },
        }
    }
}

proptest! {
    #[test]
    fn a_rebuilt_state_equals_the_kept_one_across_model_changes(
        models in [any_model(), any_model()],
        (start, by_itself) in (0_i64..=1000, any::<bool>()),
        steps in proptest::collection::vec((any_step_at_all(), any_time(), proptest::option::of(0_i64..=1000), any::<bool>()), 0..60),
        restated_at in proptest::option::of(0_usize..60),
    ) {
        let start = Score::saturating(start);
        let mut kept = if by_itself { models[0].self_registered(start, day(0)) } else { TrustState::new(start, day(0)) };
        kept = kept.noted(Sequence::FIRST);
        let mut rebuild = Rebuild::default();
        let registered = TrustFact::Registered { score: start, ceiling: None, by_itself };
        rebuild.feed(&models[0], Sequence::FIRST, day(0), &registered);
        let mut ceiling = None;
        let mut total = 1;
        for (place, (step, now, new_ceiling, which)) in steps.into_iter().enumerate() {
            let model = &models[usize::from(which)];
            let sequence = Sequence::new(place as u64 * 3 + 1);
            if matches!(step, Step::Cap) {
                ceiling = new_ceiling.map(Score::saturating);
            }
            let next = step.take(model, &kept, Facts { ceiling, now });
            let is_change = (next.score, next.tier) != (kept.score, kept.tier) || matches!(step, Step::Correct(..) | Step::Adjust(_));
            total += u32::from(is_change);
            kept = if is_change { next.noted(sequence) } else { next };
            rebuild.feed(model, sequence, now, &step.fact(ceiling));
            if restated_at == Some(place) {
                // Earlier facts are archived: replaying the rest starts from the stated state.
                rebuild = Rebuild::default();
                rebuild.feed(model, sequence, now, &TrustFact::Stated { state: kept, ceiling });
            }
            prop_assert_eq!(rebuild.state(), Some(kept));
        }
        prop_assert_eq!(kept.changes, total);
    }
}

#[test]
fn an_idle_entry_tells_the_drift_so_that_history_has_no_gap() {
    let model = TrustModel::default();
    let mut rebuild = Rebuild::default();
    let registered = TrustFact::Registered { score: Score::saturating(700), ceiling: None, by_itself: false };
    rebuild.feed(&model, Sequence::new(3), day(0), &registered);
    let before = rebuild.state().unwrap();
    rebuild.feed(&model, Sequence::new(5), day(24), &TrustFact::Idle);
    let after = rebuild.state().unwrap();
    let change = before.change_to(&after).unwrap();
    assert_eq!((change.from.get(), change.to.get()), (700, 680));
    assert_eq!((after.last, after.changes), (Some(Sequence::new(5)), 2));
}

#[test]
fn an_entry_that_changes_no_trust_is_not_noted() {
    let model = TrustModel::default();
    let mut rebuild = Rebuild::default();
    let denied = TrustEvent { decision: Decision::Deny, ..success(RiskLevel::High) };
    rebuild.feed(&model, Sequence::new(2), day(0), &TrustFact::Outcome(denied));
    assert_eq!(rebuild.state(), None, "nobody is registered");
    let registered = TrustFact::Registered { score: Score::saturating(700), ceiling: None, by_itself: false };
    rebuild.feed(&model, Sequence::new(3), day(0), &registered);
    rebuild.feed(&model, Sequence::new(4), day(0), &TrustFact::Outcome(denied));
    let state = rebuild.state().unwrap();
    assert_eq!((state.last, state.changes), (Some(Sequence::new(3)), 1));
}
