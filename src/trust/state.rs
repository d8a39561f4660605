//! The state of an agent's trust and its changes, as pure functions from a state and an event to the next state.

use crate::model::parts::TrustChangeParts;
use serde::{Deserialize, Serialize};

use super::model::TrustModel;
use crate::model::{Decision, Outcome, RiskLevel, Score, Sequence, Tier, Timestamp, TrustChange, TrustSnapshot};

/// The state of an agent's trust.
///
/// The first logs lack the fields that have a default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TrustState {
    pub(crate) score: Score,
    pub(crate) tier: Tier,
    /// Points gained on `gain_day`.
    gained: u16,
    /// The UTC day of `gained`, counted from 1970. It goes back only if the clock was confirmed to have stepped back.
    gain_day: i32,
    /// The score at the start of `gain_day`, from which its gains are computed. If unknown, gains are lowest.
    #[serde(default = "most")]
    day_start: Score,
    /// The time from which idleness is counted. It goes back only if the clock was confirmed to have stepped back.
    active_at: Timestamp,
    /// The end of probation, until which no tier is won.
    #[serde(default = "never", skip_serializing_if = "is_never")]
    probation_until: Timestamp,
    /// The time of the last lost tier. Decisions up to then earn nothing.
    #[serde(default = "never", skip_serializing_if = "is_never")]
    lost_tier_at: Timestamp,
    /// The agent registered itself and gains nothing during probation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    self_registered: bool,
    /// The last entry that changed this agent's trust.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last: Option<Sequence>,
    /// Number of entries that changed this agent's trust.
    #[serde(default)]
    pub(crate) changes: u32,
}

/// The outcome of an action, for its effect on trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TrustEvent {
    pub(crate) outcome: Outcome,
    pub(crate) decision: Decision,
    /// The effective risk, which determines what a failure costs.
    pub(crate) risk: RiskLevel,
    /// The risk that the rubric gives to what was granted, whatever the caller claimed; it determines what a success
    /// gains. `None` if the decision is too old, see [`TrustModel::still_earns`].
    pub(crate) earns: Option<RiskLevel>,
}

/// Other inputs of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The highest score that this agent may have; `None` for no limit.
    pub(crate) ceiling: Option<Score>,
    pub(crate) now: Timestamp,
}

impl Facts {
    fn most(self) -> Score {
        self.ceiling.unwrap_or(Score::MAX)
    }
}

impl TrustState {
    /// Creates the state of an agent that an operator registers with `score`.
    pub(crate) fn new(score: Score, at: Timestamp) -> Self {
        Self {
            score,
            tier: score.tier(),
            gained: 0,
            gain_day: day_of(at),
            day_start: score,
            active_at: at,
            probation_until: never(),
            lost_tier_at: never(),
            self_registered: false,
            last: None,
            changes: 0,
        }
    }

    /// Returns the state with `entry` recorded as its last change.
    #[must_use]
    pub(crate) fn noted(self, entry: Sequence) -> Self {
        Self { last: Some(entry), changes: self.changes.saturating_add(1), ..self }
    }

    /// Returns the state with the last change and number of changes of `other`.
    #[must_use]
    pub(crate) fn with_history_of(self, other: &Self) -> Self {
        Self { last: other.last, changes: other.changes, ..self }
    }

    /// Returns whether the agent registered itself and gains nothing yet.
    pub(crate) const fn is_self_registered(&self) -> bool {
        self.self_registered
    }

    /// Returns the state without the time of the last lost tier, as in the first logs.
    #[must_use]
    pub(crate) fn without_loss(self) -> Self {
        Self { lost_tier_at: never(), ..self }
    }

    /// Returns the change from this state to `next`, to be written to an entry; `None` if nothing changed.
    pub(crate) fn change_to(&self, next: &Self) -> Option<TrustChange> {
        TrustChange::between(TrustSnapshot::new(self.score, self.tier), TrustSnapshot::new(next.score, next.tier))
    }

    /// Like [`TrustState::change_to`], but also if nothing changed.
    pub(crate) fn way_to(&self, next: &Self) -> TrustChange {
        TrustChange::from(TrustChangeParts {
            from: self.score,
            to: next.score,
            from_tier: self.tier,
            to_tier: next.tier,
        })
    }

    /// Returns whether no events could have led to this state under any model, so that it must have been damaged.
    pub(crate) fn is_unsound(&self) -> bool {
        self.tier > self.score.tier() || (self.changes == 0) != self.last.is_none()
    }

    fn is_on_probation(&self, now: Timestamp) -> bool {
        now < self.probation_until
    }
}

impl TrustModel {
    /// Creates the state of an agent that registers itself with its first request.
    pub(crate) fn self_registered(&self, score: Score, at: Timestamp) -> TrustState {
        let probation_until = days_after(at, self.newcomer_probation_days);
        TrustState { probation_until, self_registered: true, ..TrustState::new(score, at) }
    }

    /// Returns the trust in force: the score less the loss by idleness, at most the ceiling. Never raises anything:
    /// tiers are won by events only.
    pub(crate) fn snapshot(&self, state: &TrustState, facts: Facts) -> TrustSnapshot {
        let score = self.drifted(state, facts.now).min(facts.most());
        TrustSnapshot::new(score, score.tier().min(state.tier))
    }

    /// Returns whether a success of a decision made at `decided_at` still earns: the decision must be younger than
    /// `success_earns_within_days` and than the last lost tier. A decision after `now` was made before time stepped
    /// back and does not earn. `state` is settled.
    pub(crate) fn still_earns(&self, state: &TrustState, decided_at: Timestamp, now: Timestamp) -> bool {
        let is_young = decided_at <= now && now < days_after(decided_at, self.success_earns_within_days);
        is_young && decided_at > state.lost_tier_at
    }

    /// Returns the state after an outcome.
    ///
    /// A success earns only on what was granted, and only for a time. A success reported for an action that was
    /// denied, is pending or was decided too long ago gains nothing and does not count as activity; a failure costs
    /// all the same. An outcome "escalated" for an action that did not require a reviewer costs like a MEDIUM
    /// failure.
    pub(crate) fn after(&self, state: &TrustState, event: TrustEvent, facts: Facts) -> TrustState {
        let state = self.today(state, facts);
        match event.outcome {
            Outcome::Success if matches!(event.decision, Decision::Allow | Decision::Degrade) => {
                event.earns.map_or(state, |earns| self.succeeded(state, earns, facts))
            }
            Outcome::Failure => self.failed(state, event.risk, 0, facts),
            Outcome::Escalated if event.decision != Decision::Escalate => {
                self.lowered(state, self.failure_loss.at(RiskLevel::Medium), facts)
            }
            Outcome::Success | Outcome::Escalated => state,
        }
    }

    /// Returns the state after a streak of denials, the riskiest of them at `risk`.
    pub(crate) fn after_denials(&self, state: &TrustState, risk: RiskLevel, facts: Facts) -> TrustState {
        self.lowered(self.today(state, facts), self.denial_loss.at(risk), facts)
    }

    /// Returns the state after a reviewer rejected the agent's request.
    pub(crate) fn after_rejection(&self, state: &TrustState, risk: RiskLevel, facts: Facts) -> TrustState {
        self.lowered(self.today(state, facts), self.rejection_loss.at(risk), facts)
    }

    /// The most points that a success can have gained.
    pub(crate) fn most_gained(&self, earns: RiskLevel) -> u16 {
        self.success_gain.at(earns).min(self.daily_gain_cap)
    }

    /// Returns the state after a success turned out to be a failure: the points it `gained` are taken back and the
    /// failure's loss is deducted. The day's gains remain used up.
    pub(crate) fn corrected(&self, state: &TrustState, risk: RiskLevel, gained: u16, facts: Facts) -> TrustState {
        self.failed(self.today(state, facts), risk, gained, facts)
    }

    /// Returns the state after an operator set the score. The daily cap and probation do not apply, the ceiling does.
    /// Days and idleness count from here, which also corrects the effect of a clock that ran far ahead.
    pub(crate) fn adjusted(&self, state: &TrustState, score: Score, facts: Facts) -> TrustState {
        let state = self.today(state, facts);
        let score = score.min(facts.most());
        let adjusted = self.placed(state, score, score.tier(), facts);
        let is_drop = adjusted.tier < state.tier;
        TrustState {
            gain_day: day_of(facts.now),
            active_at: facts.now,
            probation_until: if is_drop { adjusted.probation_until } else { never() },
            lost_tier_at: adjusted.lost_tier_at.min(facts.now),
            self_registered: state.self_registered && is_drop,
            ..adjusted
        }
    }

    /// Returns the state after the agent's ceiling became `facts.ceiling`.
    pub(crate) fn capped(&self, state: &TrustState, facts: Facts) -> TrustState {
        self.today(state, facts)
    }

    /// Returns the state with the loss by idleness deducted, so that it can be recorded. Whether and when this is
    /// done has no later effect, and a tier lost by idleness causes no probation.
    pub(crate) fn settled(&self, state: &TrustState, now: Timestamp) -> TrustState {
        let score = self.drifted(state, now);
        if score == state.score {
            return *state;
        }
        // INVARIANT: `now` is past the grace period, so this is later than before, and the next day costs the next
        // drift.
        let active_at = Timestamp::from_millis((now.day() - i64::from(self.idle_grace_days)) * MILLIS_PER_DAY);
        let tier = score.tier().min(state.tier);
        let mut lost_tier_at = state.lost_tier_at;
        if tier < state.tier {
            lost_tier_at = lost_tier_at.max(self.drifts_to(state, tier.highest()));
        }
        TrustState { score, tier, active_at, lost_tier_at, ..*state }
    }

    /// The last moment before drift lowers the score below `score`.
    fn drifts_to(&self, state: &TrustState, score: Score) -> Timestamp {
        let points = state.score.get().saturating_sub(score.get());
        let drifting_days = points.div_ceil(self.idle_drift_per_day.max(1));
        let day = state.active_at.day() + i64::from(self.idle_grace_days) + i64::from(drifting_days);
        Timestamp::from_millis(day.saturating_mul(MILLIS_PER_DAY).saturating_sub(1))
    }

    /// Returns the state after the log's time stepped back: gains, idleness and probation count from now on.
    pub(crate) fn restarted(&self, state: &TrustState, facts: Facts) -> TrustState {
        if state.gain_day <= day_of(facts.now) && state.active_at.max(state.lost_tier_at) <= facts.now {
            return *state;
        }
        let days = if state.self_registered { self.newcomer_probation_days } else { self.probation_days };
        let probation_until = state.probation_until.min(days_after(facts.now, days));
        let lost_tier_at = state.lost_tier_at.min(facts.now);
        let (gain_day, active_at, day_start) = (day_of(facts.now), facts.now, state.score);
        TrustState { gained: 0, gain_day, active_at, day_start, probation_until, lost_tier_at, ..*state }
    }

    /// Returns the state at the current day: settled, at most the ceiling, with the day's gains started. A clock that
    /// stepped back continues the last day.
    fn today(&self, state: &TrustState, facts: Facts) -> TrustState {
        let mut state = self.settled(state, facts.now);
        if state.score > facts.most() {
            state = self.placed(state, facts.most(), state.tier, facts);
        }
        if day_of(facts.now) > state.gain_day {
            state = TrustState { gained: 0, gain_day: day_of(facts.now), day_start: state.score, ..state };
        }
        if !state.is_on_probation(facts.now) {
            state = TrustState { probation_until: never(), self_registered: false, ..state };
        }
        state
    }

    fn succeeded(&self, state: TrustState, earns: RiskLevel, facts: Facts) -> TrustState {
        // A success that proves nothing about a tier does not keep it either.
        let counts = earns > RiskLevel::Low || state.tier <= self.low_risk_ceiling;
        let active_at = if counts { facts.now.max(state.active_at) } else { state.active_at };
        let gain = self.gain(&state, earns, facts);
        let score = Score::saturating(i64::from(state.score.get()) + i64::from(gain));
        // A tier is won only with a margin: the highest tier whose lowest score is that far below.
        let won = Score::saturating(i64::from(score.get()) - i64::from(self.promotion_margin)).tier();
        let gained = state.gained.saturating_add(gain);
        self.placed(TrustState { gained, active_at, ..state }, score, state.tier.max(won), facts)
    }

    /// The points that a success adds: its gain at the day's first score, less what the day has gained. So the parts
    /// of an action, none riskier than the whole, together gain what the riskiest gains alone.
    fn gain(&self, state: &TrustState, earns: RiskLevel, facts: Facts) -> u16 {
        let base = self.success_gain.at(earns);
        if base == 0 || state.self_registered {
            return 0;
        }
        let left_to_top = u32::from(Score::MAX.get().saturating_sub(state.day_start.get()));
        let shrunk = u32::from(base) * left_to_top / u32::from(Score::MAX.get());
        let target = u16::try_from(shrunk).unwrap_or(u16::MAX).clamp(1, self.daily_gain_cap.max(1));
        let mut most = facts.most();
        if earns == RiskLevel::Low {
            most = most.min(self.low_risk_ceiling.highest());
        }
        if state.is_on_probation(facts.now) {
            most = most.min(state.tier.highest());
        }
        target.saturating_sub(state.gained).min(most.get().saturating_sub(state.score.get()))
    }

    fn failed(&self, state: TrustState, risk: RiskLevel, gained: u16, facts: Facts) -> TrustState {
        let failed = self.lowered(state, self.failure_loss.at(risk).saturating_add(gained), facts);
        if risk != RiskLevel::Critical {
            return failed;
        }
        // Below the tier that was in force, whatever the numbers, and whatever model the state is from.
        let below = Score::saturating(i64::from(state.tier.lowest().get()) - 1);
        self.placed(state, failed.score.min(below), state.tier, facts)
    }

    fn lowered(&self, state: TrustState, points: u16, facts: Facts) -> TrustState {
        let score = Score::saturating(i64::from(state.score.get()) - i64::from(points));
        self.placed(state, score, state.tier, facts)
    }

    /// Returns the state with another score, in `tier` at most. Losing a tier starts probation.
    fn placed(&self, state: TrustState, score: Score, tier: Tier, facts: Facts) -> TrustState {
        let tier = tier.min(score.tier());
        let (mut probation_until, mut lost_tier_at) = (state.probation_until, state.lost_tier_at);
        if tier < state.tier {
            probation_until = probation_until.max(days_after(facts.now, self.probation_days));
            lost_tier_at = lost_tier_at.max(facts.now);
        }
        TrustState { score, tier, probation_until, lost_tier_at, ..state }
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
}

/// The value of a missing `day_start`.
fn most() -> Score {
    Score::MAX
}

/// The time of something that has not happened. Not an `Option`, to save memory: there are many states.
fn never() -> Timestamp {
    Timestamp::from_millis(i64::MIN)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out the field")]
fn is_never(at: &Timestamp) -> bool {
    *at == never()
}

/// The UTC day. It fits for another five million years.
fn day_of(at: Timestamp) -> i32 {
    i32::try_from(at.day()).unwrap_or(i32::MAX)
}

fn days_after(at: Timestamp, days: u16) -> Timestamp {
    Timestamp::from_millis(at.as_millis().saturating_add(i64::from(days) * MILLIS_PER_DAY))
}

const MILLIS_PER_DAY: i64 = 86_400_000;
