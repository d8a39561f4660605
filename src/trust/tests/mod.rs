//! Tests of the trust engine's promises: tables for the defaults, properties for every valid model.

mod page;
mod properties;
mod rebuilding;
mod regressions;
mod validation;

use super::*;
use crate::model::{Decision, Outcome, RiskLevel, Score, Tier, Timestamp, TrustSnapshot};

const DAY: i64 = 86_400_000;
const MINUTE: i64 = 60_000;

/// The first moment of a day.
fn day(day: i64) -> Timestamp {
    Timestamp::from_millis(day * DAY)
}

/// A time, without a ceiling.
fn at(now: Timestamp) -> Facts {
    Facts { ceiling: None, now }
}

fn state(score: i64) -> TrustState {
    TrustState::new(Score::saturating(score), day(0))
}

/// An outcome of an allowed action that earns by its own risk.
fn event(outcome: Outcome, risk: RiskLevel) -> TrustEvent {
    TrustEvent { outcome, decision: Decision::Allow, risk, earns: Some(risk) }
}

fn success(risk: RiskLevel) -> TrustEvent {
    event(Outcome::Success, risk)
}

fn failure(risk: RiskLevel) -> TrustEvent {
    event(Outcome::Failure, risk)
}

/// The score of a state, to compare with a literal.
fn score(state: &TrustState) -> u16 {
    state.score.get()
}
