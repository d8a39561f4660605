//! The use of limits by decisions, read from the journal when the log is opened, so that counters continue where they
//! were.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::evidence::{self, Charged};
use rulekeep_types::{LONGEST_LIMIT_WINDOW, Sequence, Timestamp, is_grant_counter};

/// The use of limits by one decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct UsedLimit {
    pub record: Sequence,
    pub at: Timestamp,
    pub charges: Vec<Charged>,
}

/// All uses within the longest window, without those released by failures. A failure never releases the use of a
/// pre-approval.
#[derive(Debug, Default)]
pub(crate) struct UsedLimits {
    by_record: BTreeMap<Sequence, UsedLimit>,
    last: Option<Timestamp>,
    until_sweep: usize,
    is_part: bool,
    /// The time to which the log's time stepped back in this part.
    restarted: Option<Timestamp>,
    /// Records whose use was released in this part, but which used it before.
    of_earlier: Vec<Sequence>,
}

impl UsedLimit {
    /// Reads the use of limits from a decision's evidence; `None` if there is none.
    pub(crate) fn of(record: Sequence, at: Timestamp, evidence: &[u8]) -> Option<Self> {
        let charges = evidence::charges(evidence).unwrap_or_default();
        (!charges.is_empty()).then_some(Self { record, at, charges })
    }

    /// Returns what remains after the log's time stepped back to `at`: the uses of pre-approvals, as of that time.
    pub(crate) fn restarted(mut self, at: Timestamp) -> Option<Self> {
        self.charges.retain(|(counter, _)| is_grant_counter(counter));
        (!self.charges.is_empty()).then_some(Self { at, ..self })
    }
}

impl UsedLimits {
    pub(crate) fn push(&mut self, used: UsedLimit) {
        self.last = self.last.max(Some(used.at));
        self.by_record.insert(used.record, used);
        self.until_sweep += 1;
        if self.until_sweep >= SWEEP_EVERY {
            self.sweep();
        }
    }

    pub(crate) fn give_back(&mut self, record: Sequence) {
        match self.by_record.get_mut(&record) {
            Some(used) => {
                used.charges.retain(|(counter, _)| is_grant_counter(counter));
                if used.charges.is_empty() {
                    self.by_record.remove(&record);
                }
            }
            None if self.is_part => self.of_earlier.push(record),
            None => {}
        }
    }

    /// Drops the uses that no longer count after the log's time stepped back.
    pub(crate) fn restart(&mut self, at: Timestamp) {
        let before = std::mem::take(&mut self.by_record);
        self.by_record = before.into_iter().filter_map(|(record, used)| Some((record, used.restarted(at)?))).collect();
        self.last = Some(at);
        self.restarted = Some(at);
    }

    /// Creates the uses of a part of the journal, which may release uses from before that part.
    pub(crate) fn of_part() -> Self {
        Self { is_part: true, ..Self::default() }
    }

    /// Adds what later entries used and released.
    pub(crate) fn join(&mut self, later: Self) {
        if let Some(at) = later.restarted {
            self.restart(at);
        }
        for record in later.of_earlier {
            self.give_back(record);
        }
        self.last = self.last.max(later.last);
        self.until_sweep += later.by_record.len();
        self.by_record.extend(later.by_record);
        if self.until_sweep >= SWEEP_EVERY {
            self.sweep();
        }
    }

    /// Returns the uses in the order of the records.
    pub(crate) fn into_list(mut self) -> Vec<UsedLimit> {
        self.sweep();
        self.by_record.into_values().collect()
    }

    fn sweep(&mut self) {
        self.until_sweep = 0;
        if let Some(last) = self.last {
            let oldest = last.as_millis() - LONGEST_LIMIT_WINDOW;
            self.by_record.retain(|_, used| used.at.as_millis() > oldest);
        }
    }
}

/// Number of added uses after which old ones are dropped.
const SWEEP_EVERY: usize = 1 << 16;
