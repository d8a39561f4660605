//! Alerts: raised where something should be looked at, told once in a while,
//! and counted in between.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::Governor;
use crate::model::{Alert, AlertKind, Timestamp};
use crate::parse::conceal_text;

/// Which alerts were told, and when.
#[derive(Default)]
pub(super) struct Alerts {
    // Held to look up and count one subject; nothing else is taken meanwhile.
    told: Mutex<HashMap<(AlertKind, Box<str>), Told>>,
}

struct Told {
    at: Timestamp,
    /// How often the same happened since.
    unsaid: u64,
}

impl Alerts {
    /// How often the like of `subject` happened since it was last told; none while that is
    /// too short ago.
    fn due(&self, alert: AlertKind, subject: &str, now: Timestamp) -> Option<u64> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let mut key = (alert, Box::from(subject));
        if told.len() >= MOST_SUBJECTS && !told.contains_key(&key) {
            told.retain(|_, told| is_recent(told.at, now));
            if told.len() >= MOST_SUBJECTS {
                // What has no room of its own shares one.
                key.1 = Box::default();
            }
        }
        if let Some(told) = told.get_mut(&key) {
            told.unsaid += 1;
            if is_recent(told.at, now) {
                return None;
            }
            told.at = now;
            return Some(std::mem::take(&mut told.unsaid));
        }
        told.insert(key, Told { at: now, unsaid: 0 });
        Some(1)
    }
}

impl Governor {
    /// Puts an alert into the log, unless the like of `subject` about the same agent was told within the last minute.
    /// Where the log takes nothing in, everything is refused anyway, and says why.
    pub(super) fn raise(&self, alert: Alert, subject: &str, now: Timestamp) {
        if let Some(occurrences) = self.inner.alerts.due(alert.alert, &format!("{} {subject}", alert.agent_id), now) {
            let message = conceal_text(&alert.message).unwrap_or_else(|| alert.message.clone());
            let _ = self.inner.log.alert(now, Alert { message, occurrences, ..alert });
        }
    }
}

/// Whether it is too early to tell the same again. A clock that stepped back does not keep it quiet.
fn is_recent(at: Timestamp, now: Timestamp) -> bool {
    (0..COOLDOWN_MILLIS).contains(&(now.as_millis() - at.as_millis()))
}

/// An alert about the same is told once in this time.
const COOLDOWN_MILLIS: i64 = 60_000;
/// Subjects that are told apart.
const MOST_SUBJECTS: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_told_once_a_minute_and_counted_between() {
        let alerts = Alerts::default();
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1000);
        let due = |subject: &str, seconds| alerts.due(AlertKind::PolicyError, subject, at(seconds));
        assert_eq!(due("a", 0), Some(1));
        assert_eq!(due("a", 1), None);
        assert_eq!(due("b", 1), Some(1));
        assert_eq!(alerts.due(AlertKind::ShadowError, "a", at(1)), Some(1));
        assert_eq!(due("a", 59), None);
        assert_eq!(due("a", 60), Some(3));
        assert_eq!(due("a", 61), None);
        assert_eq!(due("a", 30), Some(2), "a clock that steps back silences nothing");
    }

    #[test]
    fn subjects_beyond_the_most_share_one_place() {
        let alerts = Alerts::default();
        let now = Timestamp::from_millis(0);
        let due = |subject: usize| alerts.due(AlertKind::PolicyError, &subject.to_string(), now);
        assert!((0..MOST_SUBJECTS).all(|subject| due(subject) == Some(1)));
        assert_eq!(due(MOST_SUBJECTS), Some(1));
        assert_eq!(due(MOST_SUBJECTS + 1), None);
        assert_eq!(alerts.told.lock().unwrap().len(), MOST_SUBJECTS + 1);
        let later = Timestamp::from_millis(COOLDOWN_MILLIS);
        assert_eq!(alerts.due(AlertKind::PolicyError, "new", later), Some(1));
        assert_eq!(alerts.told.lock().unwrap().len(), 1);
    }
}
