//! Streaks of denials: counted in memory, so a restart forgets one that has not
//! cost yet. What a streak costs is an entry of its own.

use super::model::TrustModel;
use crate::model::{RiskLevel, Timestamp};

/// The denials of one agent that are not over yet.
#[derive(Debug, Default)]
pub(crate) struct Denials {
    /// No more than a streak's; nothing is allocated for who is never denied.
    recent: Vec<(Timestamp, RiskLevel)>,
    /// When a streak last cost.
    charged_at: Option<Timestamp>,
}

impl Denials {
    /// Whether nothing of it counts any more.
    pub(crate) fn is_over(&self, model: &TrustModel, now: Timestamp) -> bool {
        let is_past =
            |at: Timestamp, minutes: u16| now.as_millis() - at.as_millis() >= i64::from(minutes) * MILLIS_PER_MINUTE;
        self.recent.iter().all(|(at, _)| is_past(*at, model.denial_window_minutes))
            && self.charged_at.is_none_or(|at| is_past(at, model.denial_pause_minutes))
    }

    /// Counts a denial. Where it completes a streak that costs, the riskiest of
    /// the streak's denials. A clock that steps back counts as one that stands.
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
        // Dropped, not cleared: the room is given back.
        std::mem::take(&mut self.recent).into_iter().map(|(_, risk)| risk).max()
    }
}

const MILLIS_PER_MINUTE: i64 = 60_000;
