//! The kinds of states of what goes on: escalations, pre-approvals, tasks and positions in the log.

use serde_json::json;

use super::extensions::field;
use super::{Repaired, Repairing, Rest, Restored, StateKind};
use crate::governor::alerting::cursor;
use crate::governor::keys::{Alerts, Cursors, Escalations, Grants, Keyed as _, Rerecording, Tasks};
use crate::governor::{approvals, states};
use crate::model::{Error, EscalationRecord, PreApprovalState, TaskState};
use crate::proof::StateDraft;

impl StateKind for Escalations {
    fn restore(restored: &mut Restored, key: &str, value: &[u8]) -> Result<(), Error> {
        restored.queue.restore(key, value)
    }

    fn rerecord(again: &mut Rerecording<'_>) -> Result<Rest, Error> {
        again.governor.inner.approvals.rerecord_escalations(again)?;
        // Answered ones: their records tell the answer.
        Ok(Rest::Over)
    }

    /// Pending escalations, and approved but unclaimed ones, end. Their records are in the broken log and may have been
    /// answered after the break, so they could otherwise be granted twice.
    fn repair(repairing: &mut Repairing<'_>) -> Result<Repaired, Error> {
        let mut ended = 0_u64;
        for (key, value) in repairing.good(Self::PREFIX) {
            let Ok(record) = serde_json::from_slice::<EscalationRecord>(value) else {
                repairing.say_unreadable(key);
                continue;
            };
            if let Some(state) = approvals::ended_by(&record, "the log broke and was repaired; ask again")? {
                repairing.carry(state);
                ended += 1;
            }
        }
        if ended > 0 {
            repairing.say(format!("{ended} pending escalations and unclaimed approvals ended"));
        }
        Ok(Repaired::Carried)
    }
}

/// Pre-approvals.
impl StateKind for Grants {
    fn restore(restored: &mut Restored, key: &str, value: &[u8]) -> Result<(), Error> {
        restored.given.restore(key, value)
    }

    fn rerecord(_: &mut Rerecording<'_>) -> Result<Rest, Error> {
        // None lasts as long as the archived entries are old.
        Ok(Rest::Over)
    }

    /// Their uses after the break are not known.
    fn repair(repairing: &mut Repairing<'_>) -> Result<Repaired, Error> {
        let active = repairing
            .good(Self::PREFIX)
            .filter(|(_, value)| field(value, "state") == json!(PreApprovalState::Active))
            .count();
        Ok(dropped(active, "pre-approvals ended: give them again"))
    }
}

impl StateKind for Tasks {
    fn restore(restored: &mut Restored, key: &str, value: &[u8]) -> Result<(), Error> {
        let id = key.strip_prefix(Self::PREFIX).and_then(|id| id.parse().ok());
        let id = id.ok_or_else(|| Error::storage(format!("the state {key:?} is not a task's")))?;
        restored.tasks.insert(id, states::read(key, value)?);
        Ok(())
    }

    fn rerecord(again: &mut Rerecording<'_>) -> Result<Rest, Error> {
        let (governor, at) = (again.governor, again.at);
        governor.inner.tasks.each_open(at, |state| again.record(state).map(drop))?;
        Ok(Rest::Over)
    }

    /// The evidence of a task's words is in the broken log, so its mandate cannot be known.
    fn repair(repairing: &mut Repairing<'_>) -> Result<Repaired, Error> {
        let is_open = |value: &[u8]| field(value, "state") == json!(TaskState::Open);
        let open = repairing.good(Self::PREFIX).filter(|(_, value)| is_open(value)).count();
        Ok(dropped(open, "open tasks ended: open them again, with the user's words"))
    }
}

/// The position up to which the log was followed for alerts.
impl StateKind for Alerts {
    fn restore(restored: &mut Restored, key: &str, value: &[u8]) -> Result<(), Error> {
        restored.following.restore(key, value)
    }

    fn rerecord(again: &mut Rerecording<'_>) -> Result<Rest, Error> {
        again.governor.inner.alerting.following.rerecord(again)?;
        Ok(Rest::Over)
    }

    fn repair(_: &mut Repairing<'_>) -> Result<Repaired, Error> {
        Ok(Repaired::Derived)
    }
}

/// Named cursors.
impl StateKind for Cursors {
    fn restore(restored: &mut Restored, key: &str, value: &[u8]) -> Result<(), Error> {
        restored.cursors.restore(key, value)
    }

    fn rerecord(again: &mut Rerecording<'_>) -> Result<Rest, Error> {
        again.governor.inner.alerting.cursors.rerecord(again)?;
        // Deleted ones.
        Ok(Rest::Over)
    }

    fn repair(repairing: &mut Repairing<'_>) -> Result<Repaired, Error> {
        let mut begun = 0_u64;
        for (key, value) in repairing.good(Self::PREFIX) {
            if key != Alerts::PREFIX && value != b"null" {
                repairing.carry(StateDraft::new(key.clone(), cursor::FROM_THE_FIRST.to_owned()));
                begun += 1;
            }
        }
        if begun > 0 {
            repairing.say(format!("{begun} cursors start at the new log and miss the unread events of the broken one"));
        }
        Ok(Repaired::Carried)
    }
}

/// The note about a number of states that are not in the new log.
pub(super) fn dropped(count: usize, note: &str) -> Repaired {
    if count == 0 { Repaired::Carried } else { Repaired::Dropped(format!("{count} {note}")) }
}
