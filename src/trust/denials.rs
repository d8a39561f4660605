//! Streaks of denials, counted in memory only: a restart forgets a streak that has not cost trust yet. The loss of
//! trust itself is an entry of the log.

use super::model::TrustModel;
use crate::model::{RiskLevel, Timestamp};

/// The recent denials of one agent.
#[derive(Debug, Default)]
pub(crate) struct Denials {
    /// The latest denials, at most as many as make a streak. Nothing is allocated for an agent that is never denied.
    recent: Vec<(Timestamp, RiskLevel)>,
    /// The time of the last streak that cost trust.
    charged_at: Option<Timestamp>,
}

impl Denials {
    /// Returns whether none of these denials counts any more.
    pub(crate) fn is_over(&self, model: &TrustModel, now: Timestamp) -> bool {
        let is_past =
            |at: Timestamp, minutes: u16| now.as_millis() - at.as_millis() >= i64::from(minutes) * MILLIS_PER_MINUTE;
        self.recent.iter().all(|(at, _)| is_past(*at, model.denial_window_minutes))
            && self.charged_at.is_none_or(|at| is_past(at, model.denial_pause_minutes))
    }

    /// Counts a denial. If it completes a streak that costs trust, returns the highest risk among its denials. A
    /// clock that steps back counts as standing still.
    pub(crate) fn count(&mut self, model: &TrustModel, risk: RiskLevel, now: Timestamp) -> Option<RiskLevel> {
        let now = self.recent.last().map_or(now, |(last, _)| now.max(*last)).max(self.charged_at.unwrap_or(now));
        let is_within =
            |at: Timestamp, minutes: u16| now.as_millis() - at.as_millis() < i64::from(minutes) * MILLIS_PER_MINUTE;
        self.recent.retain(|(at, _)| is_within(*at, model.denial_window_minutes));
        self.recent.push((now, risk));
        let streak = usize::from(model.denial_streak);
        let beyond = self.recent.len().saturating_sub(streak);
        self.recent.drain(..beyond);
        if self.recent.len() < streak || self.charged_at.is_some_and(|at| is_within(at, model.denial_pause_minutes)) {
            return None;
        }
        self.charged_at = Some(now);
        // Dropped, not cleared, to release the memory.
        std::mem::take(&mut self.recent).into_iter().map(|(_, risk)| risk).max()
    }
}

const MILLIS_PER_MINUTE: i64 = 60_000;
