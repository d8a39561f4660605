//! Ending escalations: those that are due, stopped by a kill switch, or answered otherwise. Several are enqueued first,
//! with one wait for their commit.

use std::sync::{Arc, MutexGuard};

use super::change;
use super::queue::Open;
use super::resolve::Answer;
use crate::governor::Approvals;
use crate::model::{
    ENDED_BY_KILL_SWITCH, Error, EscalationId, EscalationRecord, EscalationState, KillSwitchScope, Outcome, ProofId,
    RiskLevel, Sequence, Timestamp,
};
use crate::trust::AgentRecord;

/// Entries that are enqueued but not committed.
#[derive(Default)]
pub(super) struct Unsettled {
    /// The last record, and the highest risk among them.
    records: Option<(Sequence, RiskLevel)>,
    /// The last change of state.
    change: Option<Sequence>,
}

impl Approvals {
    /// Waits once until all entries are durable.
    pub(super) fn settle_all(&self, unsettled: &Unsettled) -> Result<(), Error> {
        if let Some((last, risk)) = unsettled.records {
            self.base.log.settle_decision(last, risk)?;
        }
        unsettled.change.map_or(Ok(()), |last| self.base.log.settle(last))
    }

    /// Ends the escalations that have expired. If the log accepts no entries or is not verified yet, they stay, but
    /// nobody can claim them.
    pub(crate) fn end_what_is_due(&self) {
        self.expire_pre_approvals();
        if self.is_mended() {
            let now = self.base.clock.now();
            self.end_due(&self.queue.due(now), now);
        }
    }

    /// Ends one escalation if it has expired, so that its caller does not wait for the others.
    pub(super) fn end_if_due(&self, id: EscalationId) {
        if self.is_mended() {
            let now = self.base.clock.now();
            let due = self.queue.open(id).filter(|open| open.lock().expires_at <= now);
            self.end_due(due.as_slice(), now);
        }
    }

    /// Returns whether the log is verified and repaired after a crash; repairs it if that needs no wait.
    fn is_mended(&self) -> bool {
        self.base.log.is_verified() && self.wait_mended().is_ok()
    }

    fn end_due(&self, due: &[Arc<Open>], now: Timestamp) {
        let mut unsettled = Unsettled::default();
        let mut looked_at = 0;
        for open in due {
            looked_at += 1;
            let mut record = open.lock();
            if record.expires_at <= now {
                let why = format!("nobody answered until {}", record.expires_at);
                // The others would find no room in the queue either.
                if let Err(Error::StorageUnavailable { .. }) = self.end(&mut record, why, &mut unsettled) {
                    break;
                }
            }
        }
        let _ = self.settle_all(&unsettled);
        for open in due.iter().take(looked_at) {
            open.tell();
        }
    }

    /// Enqueues the end of an open escalation.
    pub(super) fn end(
        &self,
        record: &mut EscalationRecord,
        why: String,
        unsettled: &mut Unsettled,
    ) -> Result<(), Error> {
        match record.state {
            EscalationState::Pending => match self.resolve(record, &Answer::Ended { why: why.clone() }) {
                Ok(committed) => {
                    let risk = unsettled.records.map_or(committed.risk, |(_, risk)| risk.max(committed.risk));
                    unsettled.records = Some((committed.sequence, risk));
                    Ok(())
                }
                // The record that opened it has an outcome already: the action was carried out or given up.
                Err(Error::Conflict { .. }) => self.lapse(record, &why, unsettled),
                Err(error) => Err(error),
            },
            EscalationState::Approved if record.claimed_at.is_none() => {
                let why =
                    if why.starts_with("nobody answered") { "it was not claimed in time".to_owned() } else { why };
                self.lapse(record, &why, unsettled)
            }
            _ => Ok(()),
        }
    }

    /// Ends an escalation without a record of its own. If it was approved, the approving record remains but grants
    /// nothing any more.
    pub(super) fn lapse(
        &self,
        record: &mut EscalationRecord,
        why: &str,
        unsettled: &mut Unsettled,
    ) -> Result<(), Error> {
        self.base.log.wait_verified()?;
        let mut next =
            EscalationRecord { state: EscalationState::Expired, why: Some(why.to_owned()), ..record.clone() };
        let sequence = self.base.log.queue().change(self.base.clock.now(), change(&next, why)?)?;
        next.place = sequence;
        let before = record.state;
        *record = next;
        self.queue.changed(before, record);
        unsettled.change = Some(sequence);
        Ok(())
    }

    /// Ends the open escalations that `covers` selects, and returns their number.
    pub(crate) fn end_escalations(&self, covers: impl Fn(&EscalationRecord) -> bool, why: &str) -> u64 {
        let (mut ended, mut unsettled) = (Vec::new(), Unsettled::default());
        // Listed before the repair, which may end some of them too.
        let open = self.queue.all_open();
        if open.is_empty() || self.wait_mended().is_err() {
            return 0;
        }
        for open in open {
            let mut record = open.lock();
            let is_over = covers(&record) && self.end(&mut record, why.to_owned(), &mut unsettled).is_ok();
            if is_over && record.state == EscalationState::Expired {
                drop(record);
                ended.push(open);
            }
        }
        let settled = self.settle_all(&unsettled);
        for open in &ended {
            open.tell();
        }
        settled.map_or(0, |()| ended.len() as u64)
    }

    /// Ends pre-approvals and escalations after a kill switch is recorded; returns the number of escalations ended.
    pub(crate) fn after_stop(&self, scope: &KillSwitchScope) -> u64 {
        let covers = |agent: &AgentRecord| match scope {
            KillSwitchScope::All => true,
            KillSwitchScope::Agent(id) => agent.agent_id == *id,
            KillSwitchScope::Group(group) => agent.traits().groups.contains(group),
        };
        self.end_pre_approvals_of(scope, ENDED_BY_KILL_SWITCH);
        self.end_escalations(
            |asked| self.roster.registered(&asked.agent_id).is_ok_and(|cell| covers(&cell.read())),
            ENDED_BY_KILL_SWITCH,
        )
    }

    /// Refuses a SUCCESS for an approval that was never claimed, because it granted nothing. Any other outcome
    /// withdraws the approval, which cannot be claimed any more.
    pub(crate) fn withdraw_unclaimed(&self, approval: ProofId, outcome: Outcome) -> Result<(), Error> {
        self.wait_mended()?;
        let Some(id) = self.queue.unclaimed(approval) else { return Ok(()) };
        if outcome == Outcome::Success {
            return Err(unclaimed(approval, id));
        }
        let Some(open) = self.queue.open(id) else { return Ok(()) };
        let record = open.lock();
        if !super::queue::is_open(&record) {
            return Ok(());
        }
        self.lapse_alone(&open, record, &format!("the outcome {outcome} was reported before it was claimed"))
    }

    /// Refuses a report on an approval that was never claimed, because it granted nothing.
    pub(crate) fn check_claimed(&self, approval: ProofId) -> Result<(), Error> {
        self.wait_mended()?;
        self.queue.unclaimed(approval).map_or(Ok(()), |id| Err(unclaimed(approval, id)))
    }

    /// Ends the escalation of a record whose outcome was reported: the action was carried out or given up.
    pub(crate) fn end_reported(&self, proof_id: ProofId, why: &str) -> Result<(), Error> {
        let Some(open) = self.queue.open(EscalationId::of(proof_id)) else { return Ok(()) };
        let record = open.lock();
        if record.state == EscalationState::Pending { self.lapse_alone(&open, record, why) } else { Ok(()) }
    }

    /// Ends one escalation without a record, waits for the commit, and notifies the waiters.
    pub(super) fn lapse_alone(
        &self,
        open: &Open,
        mut record: MutexGuard<'_, EscalationRecord>,
        why: &str,
    ) -> Result<(), Error> {
        let mut unsettled = Unsettled::default();
        self.lapse(&mut record, why, &mut unsettled)?;
        drop(record);
        let settled = self.settle_all(&unsettled);
        open.tell();
        settled
    }
}

fn unclaimed(approval: ProofId, id: EscalationId) -> Error {
    let message = format!("{approval} grants nothing until {id} is claimed; claim it first");
    Error::Conflict { message }
}
