//! The times of delivery attempts: the schedule's waits, jitter, and the receiver's `Retry-After`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use rulekeep::system::Timestamp;

/// The waits between the attempts of a delivery, in milliseconds. The first attempt is immediate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<u64>", into = "Vec<u64>")]
pub(super) struct Schedule(Vec<u64>);

impl Schedule {
    /// Creates a schedule with at least one wait.
    pub(super) fn new(waits: &[Duration]) -> Result<Self, &'static str> {
        let millis = |wait: &Duration| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let waits: Vec<u64> = waits.iter().map(millis).collect();
        let is_wrong = waits.is_empty() || waits.len() > MOST_WAITS || waits.iter().any(|wait| *wait > LONGEST_STEP);
        if is_wrong { Err("expected 1 to 32 waits of at most 7 days") } else { Ok(Self(waits)) }
    }

    /// The waits in milliseconds.
    pub(super) fn waits(&self) -> &[u64] {
        &self.0
    }

    /// The time of the next attempt after `attempts` failures, the last one at `now`; `None` after the last attempt.
    pub(super) fn after(
        &self,
        attempts: u32,
        now: Timestamp,
        asked: Option<Duration>,
        chance: u16,
    ) -> Option<Timestamp> {
        let wait = self.0.get(usize::try_from(attempts).ok()?.checked_sub(1)?)?;
        Some(Self::wait(*wait, now, asked, chance))
    }

    /// The time of the next attempt of an endpoint that has failed for long.
    pub(super) fn after_long(&self, now: Timestamp, asked: Option<Duration>, chance: u16) -> Timestamp {
        Self::wait(self.0.last().copied().unwrap_or(0), now, asked, chance)
    }

    fn wait(step: u64, now: Timestamp, asked: Option<Duration>, chance: u16) -> Timestamp {
        let asked = asked.map_or(0, |asked| u64::try_from(asked.as_millis()).unwrap_or(u64::MAX)).min(DAY);
        later(now, jittered(step, chance).max(asked))
    }
}

impl Default for Schedule {
    /// Ten attempts in 75.6 hours.
    fn default() -> Self {
        Self([5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400].map(|seconds| seconds * 1000).to_vec())
    }
}

impl TryFrom<Vec<u64>> for Schedule {
    type Error = &'static str;

    /// Reads a stored schedule. Older ones start with a wait before the first attempt, which is ignored.
    fn try_from(mut kept: Vec<u64>) -> Result<Self, Self::Error> {
        if kept.is_empty() || kept.len() > 1 + MOST_WAITS || kept.iter().any(|wait| *wait > LONGEST_STEP) {
            return Err("expected 1 to 33 numbers, at most 7 days each");
        }
        kept.remove(0);
        Ok(Self(kept))
    }
}

impl From<Schedule> for Vec<u64> {
    fn from(schedule: Schedule) -> Self {
        std::iter::once(0).chain(schedule.0).collect()
    }
}

/// Varies a wait by up to a tenth in both directions, so that deliveries that failed together are not retried
/// together.
fn jittered(step: u64, chance: u16) -> u64 {
    let tenth = step / 10;
    step - tenth + tenth * 2 * u64::from(chance) / u64::from(u16::MAX)
}

fn later(now: Timestamp, millis: u64) -> Timestamp {
    Timestamp::from_millis(now.as_millis().saturating_add(i64::try_from(millis).unwrap_or(i64::MAX)))
}

/// Parses `Retry-After`: seconds, or a date.
pub(super) fn retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit a number still mean a long time.
        return Some(Duration::from_secs(text.parse().unwrap_or(DAY)));
    }
    let date = chrono::DateTime::parse_from_rfc2822(text).ok()?.timestamp_millis();
    Some(Duration::from_millis(u64::try_from(date.saturating_sub(now.as_millis())).unwrap_or(0)))
}

/// The longest wait that a receiver can ask for, in milliseconds.
pub(super) const DAY: u64 = 24 * 3600 * 1000;
/// The longest wait of a schedule, in milliseconds.
pub(super) const LONGEST_STEP: u64 = 7 * DAY;
const MOST_WAITS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: i64 = 1_800_000_000_000;

    fn now() -> Timestamp {
        Timestamp::from_millis(NOON)
    }

    #[test]
    fn the_ten_attempts_are_as_the_documents_say() {
        let schedule = Schedule::default();
        let mut at = now();
        let mut waits = Vec::new();
        for attempts in 1.. {
            let Some(next) = schedule.after(attempts, at, None, u16::MAX) else { break };
            let early = schedule.after(attempts, at, None, 0).unwrap();
            waits.push(((early.as_millis() - at.as_millis()) / 900, (next.as_millis() - at.as_millis()) / 1100));
            at = next;
        }
        let seconds = [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400];
        assert_eq!(waits, seconds.map(|seconds| (seconds, seconds)));
    }

    #[test]
    fn the_receivers_longer_delay_counts_up_to_a_day() {
        let schedule = Schedule::default();
        let wait = |asked| schedule.after(1, now(), Some(asked), 0).unwrap().as_millis() - NOON;
        assert_eq!(wait(Duration::from_secs(120)), 120_000);
        assert_eq!(wait(Duration::from_secs(1)), 4_500);
        assert_eq!(wait(Duration::MAX), 86_400_000);
    }

    #[test]
    fn retry_after_is_read_in_seconds_or_as_a_date() {
        // 2027-01-15T08:00:00Z
        assert_eq!(retry_after("120", now()), Some(Duration::from_secs(120)));
        assert_eq!(retry_after(" 0 ", now()), Some(Duration::ZERO));
        assert_eq!(retry_after("Fri, 15 Jan 2027 08:01:40 GMT", now()), Some(Duration::from_secs(100)));
        assert_eq!(retry_after("Fri, 15 Jan 2027 07:00:00 GMT", now()), Some(Duration::ZERO));
        assert!(
            retry_after("99999999999999999999999", now()).is_some_and(|asked| asked.as_millis() >= u128::from(DAY))
        );
        for other in ["", "-5", "soon", "1.5", "\u{661}"] {
            assert_eq!(retry_after(other, now()), None, "{other}");
        }
    }

    #[test]
    fn a_schedule_has_waits_and_reads_back() {
        assert!(Schedule::new(&[]).is_err());
        assert!(Schedule::new(&[Duration::from_secs(8 * 86_400)]).is_err());
        assert!(Schedule::new(&[Duration::ZERO; 33]).is_err());
        let schedule = Schedule::new(&[Duration::from_millis(100); 32]).unwrap();
        let text = serde_json::to_string(&schedule).unwrap();
        assert_eq!(serde_json::from_str::<Schedule>(&text).unwrap(), schedule);
    }

    #[test]
    fn each_number_is_a_wait_between_two_attempts() {
        let schedule = Schedule::new(&[1, 2].map(Duration::from_millis)).unwrap();
        let wait = |attempts| schedule.after(attempts, now(), None, 0).map(|at| at.as_millis() - NOON);
        assert_eq!([1, 2, 3].map(wait), [Some(1), Some(2), None]);
    }

    #[test]
    fn a_schedule_of_an_older_log_keeps_its_waits_between_attempts() {
        assert_eq!(serde_json::from_str::<Schedule>("[70,5,9]").unwrap().waits(), [5, 9]);
        assert_eq!(serde_json::from_str::<Schedule>("[0]").unwrap().waits(), [0; 0]);
        assert!(serde_json::from_str::<Schedule>("[]").is_err());
    }
}
