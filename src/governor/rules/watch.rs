//! Occurrence counts for alert rules, by rule and subject, and the times of their last alerts.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::model::{Alert, ProofId, Timestamp};
use crate::policy::AlertRule;

/// The counts, in bounded memory: beyond the limits, the subjects without recent occurrences are dropped.
#[derive(Default)]
pub(crate) struct Watch {
    subjects: HashMap<(Arc<str>, Box<str>), Subject>,
    /// Number of occurrences kept, over all subjects.
    kept: usize,
}

#[derive(Default)]
struct Subject {
    /// The occurrences since the last alert: as many as the rule counts, or as an alert names.
    last: VecDeque<(Timestamp, Option<ProofId>)>,
    /// Number of occurrences since the last alert.
    unsaid: u64,
    told: Option<Timestamp>,
    heard: Option<Timestamp>,
    /// Older occurrences no longer count.
    relevant: Duration,
}

/// The way an occurrence is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// A new occurrence.
    Now,
    /// An occurrence counted in an earlier run, which raised an alert or not.
    Past { was_told: bool },
}

/// An alert that is due.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// Number of occurrences since the last alert.
    pub(crate) occurrences: u64,
    /// The most recent records among them, oldest first.
    pub(crate) proof_ids: Vec<ProofId>,
}

impl Watch {
    /// Counts an occurrence. Returns an alert if the rule's count is reached within its time and the cooldown has
    /// passed.
    pub(crate) fn note(
        &mut self,
        rule: &AlertRule,
        subject: &str,
        at: Timestamp,
        proof_id: Option<ProofId>,
        how: How,
    ) -> Option<Due> {
        let count = usize::try_from(rule.count).unwrap_or(usize::MAX);
        let keeps = count.max(Alert::MOST_PROOFS);
        self.make_room(at);
        let subject = self.subjects.entry((Arc::clone(&rule.id), subject.into())).or_default();
        subject.relevant = rule.cooldown.max(rule.per.unwrap_or_default());
        subject.heard = Some(at);
        subject.unsaid += 1;
        let kept = subject.last.len();
        subject.last.push_back((at, proof_id));
        if subject.last.len() > keeps {
            subject.last.pop_front();
        }
        let is_within = |then: Timestamp| rule.per.is_none_or(|per| since(then, at) <= per);
        let is_due = match how {
            How::Now => {
                let first = subject.last.len().checked_sub(count).and_then(|first| subject.last.get(first));
                first.is_some_and(|(first, _)| is_within(*first)) && !subject.is_quiet(rule.cooldown, at)
            }
            How::Past { was_told } => was_told,
        };
        let due = is_due.then(|| {
            let recent = subject.last.iter().filter(|(then, _)| is_within(*then));
            let mut proof_ids: Vec<ProofId> = recent.filter_map(|(_, proof_id)| *proof_id).collect();
            proof_ids.drain(..proof_ids.len().saturating_sub(Alert::MOST_PROOFS));
            subject.told = Some(at);
            subject.last = VecDeque::new();
            Due { occurrences: std::mem::take(&mut subject.unsaid), proof_ids }
        });
        let left = subject.last.len();
        self.kept = self.kept.saturating_add(left).saturating_sub(kept);
        due
    }

    /// Drops occurrences that no rule counts any more. If the limits are still exceeded, drops the quarter of subjects
    /// with the oldest last occurrence.
    fn make_room(&mut self, now: Timestamp) {
        if self.subjects.len() < MOST_SUBJECTS && self.kept < MOST_KEPT {
            return;
        }
        self.subjects.retain(|_, subject| subject.heard.is_some_and(|heard| since(heard, now) <= subject.relevant));
        let kept = |subjects: &HashMap<_, Subject>| subjects.values().map(|subject| subject.last.len()).sum::<usize>();
        self.kept = kept(&self.subjects);
        if self.subjects.len() < MOST_SUBJECTS / 4 * 3 && self.kept < MOST_KEPT / 4 * 3 {
            return;
        }
        let mut heard: Vec<Option<Timestamp>> = self.subjects.values().map(|subject| subject.heard).collect();
        let (_, oldest, _) = {
            let quarter = heard.len() / 4;
            heard.select_nth_unstable(quarter)
        };
        let oldest = *oldest;
        self.subjects.retain(|_, subject| subject.heard > oldest);
        self.kept = kept(&self.subjects);
    }
}

impl Subject {
    /// Returns whether the cooldown has not passed. A clock that stepped back does not extend it.
    fn is_quiet(&self, cooldown: Duration, now: Timestamp) -> bool {
        self.told.is_some_and(|told| told <= now && since(told, now) < cooldown)
    }
}

fn since(then: Timestamp, now: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(now.as_millis() - then.as_millis()).unwrap_or(0))
}

/// Maximum number of subjects, over all rules.
const MOST_SUBJECTS: usize = 1 << 16;
/// Maximum number of occurrences kept, about 12 MiB.
const MOST_KEPT: usize = 1 << 19;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Sequence;
    use crate::policy::PolicySet;

    fn rule(lines: &str) -> AlertRule {
        let text = format!("name = \"a\"\n[[alert]]\nid = \"a\"\non = \"denials\"\n{lines}");
        PolicySet::from_toml(&text).unwrap().alerts()[0].clone()
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn record(number: u64) -> ProofId {
        ProofId::new(at(0), 0, Sequence::new(number))
    }

    #[test]
    fn it_is_told_at_the_count_within_the_time_and_not_one_before() {
        let (mut watch, rule) = (Watch::default(), rule("count = 3\nper = \"10s\""));
        let mut note = |subject, seconds| watch.note(&rule, subject, at(seconds), None, How::Now).is_some();
        assert_eq!([note("a", 0), note("a", 1), note("b", 2), note("a", 11)], [false; 4]);
        assert!(!note("a", 12), "the first two are too long ago");
        assert!(note("a", 13) && !note("b", 13));
    }

    #[test]
    fn the_same_is_told_once_a_cooldown_and_counted_between() {
        let (mut watch, rule) = (Watch::default(), rule("count = 2\nper = \"1h\"\ncooldown = \"60s\""));
        let mut note = |seconds, number| watch.note(&rule, "a", at(seconds), Some(record(number)), How::Now);
        assert_eq!(note(0, 1), None);
        assert_eq!(note(1, 2), Some(Due { occurrences: 2, proof_ids: vec![record(1), record(2)] }));
        for number in 3..=30 {
            assert_eq!(note(2, number), None);
        }
        let due = note(61, 31).unwrap();
        assert_eq!((due.occurrences, due.proof_ids.len()), (29, Alert::MOST_PROOFS));
        assert_eq!((due.proof_ids[0], due.proof_ids[15]), (record(16), record(31)));
        assert_eq!(note(200, 32), None, "one alone is not two");
        assert!(note(30, 33).is_some(), "a clock that steps back silences nothing");
    }

    #[test]
    fn an_alert_of_an_earlier_run_is_not_repeated_and_counts_go_on() {
        let (mut watch, rule) = (Watch::default(), rule("count = 2\nper = \"1h\"\ncooldown = \"1m\""));
        watch.note(&rule, "a", at(0), None, How::Past { was_told: false });
        watch.note(&rule, "a", at(1), None, How::Past { was_told: true });
        watch.note(&rule, "a", at(2), None, How::Past { was_told: false });
        assert_eq!(watch.note(&rule, "a", at(3), None, How::Now), None, "within the cooldown");
        assert_eq!(watch.note(&rule, "a", at(61), None, How::Now).unwrap().occurrences, 3);
    }

    #[test]
    fn extra_subjects_replace_those_unheard_of_for_longest() {
        let (mut watch, rule) = (Watch::default(), rule("count = 2\nper = \"31d\""));
        let most = i64::try_from(MOST_SUBJECTS).unwrap();
        for number in 0..=most {
            assert_eq!(watch.note(&rule, &number.to_string(), at(number), None, How::Now), None);
        }
        assert!(watch.subjects.len() <= MOST_SUBJECTS);
        assert_eq!(watch.kept, watch.subjects.len());
        assert!(watch.note(&rule, &most.to_string(), at(most), None, How::Now).is_some());
        assert_eq!(watch.note(&rule, "0", at(most), None, How::Now), None, "it was forgotten");
    }
}
