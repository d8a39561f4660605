//! Ending escalations: those that are due, that a stop covers, or that were answered otherwise. Many are put in order
//! first and waited for together.

use std::sync::Arc;

use super::super::Governor;
use super::change;
use super::queue::Open;
use super::resolve::Answer;
use crate::model::{
    Error, EscalationId, EscalationRecord, EscalationState, Outcome, ProofId, RiskLevel, Sequence, Timestamp,
};

/// Entries that are in order and not waited for.
#[derive(Default)]
pub(super) struct Unsettled {
    /// The last record, and the highest risk of all.
    records: Option<(Sequence, RiskLevel)>,
    /// The last change of state.
    change: Option<Sequence>,
}

impl Governor {
    /// Waits until they are as durable as the log promises: once for all.
    pub(super) fn settle_all(&self, unsettled: &Unsettled) -> Result<(), Error> {
        if let Some((last, risk)) = unsettled.records {
            self.inner.log.settle_decision(last, risk)?;
        }
        unsettled.change.map_or(Ok(()), |last| self.inner.log.settle(last))
    }

    /// Ends the escalations whose time is over. Where the log takes nothing in, or is not verified yet, they stay; nobody
    /// can take them up.
    pub(in crate::governor) fn end_what_is_due(&self) {
        self.expire_pre_approvals();
        if self.is_mended() {
            let now = self.inner.clock.now();
            self.end_due(&self.inner.approvals.queue.due(now), now);
        }
    }

    /// Ends one if its time is over, for whoever asks for it: the others do not keep them waiting.
    pub(super) fn end_if_due(&self, id: EscalationId) {
        if self.is_mended() {
            let now = self.inner.clock.now();
            self.end_due(self.inner.approvals.queue.due_one(id, now).as_slice(), now);
        }
    }

    /// Whether what was read is verified and whole; what can be mended without waiting for the verification is.
    fn is_mended(&self) -> bool {
        self.inner.log.is_verified() && self.wait_mended().is_ok()
    }

    fn end_due(&self, due: &[Arc<Open>], now: Timestamp) {
        let mut unsettled = Unsettled::default();
        let mut looked_at = 0;
        for open in due {
            looked_at += 1;
            let mut record = open.lock();
            if record.expires_at <= now {
                let why = format!("nobody answered until {}", record.expires_at);
                // Each of the others would wait as long for room, and get none either.
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

    /// Puts the end of one in order that is open.
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
                // The record that asks has an outcome already: what it asked for was done or given up.
                Err(Error::Conflict { .. }) => self.lapse(record, &why, unsettled),
                Err(error) => Err(error),
            },
            EscalationState::Approved if record.claimed_at.is_none() => {
                let why = if why.starts_with("nobody answered") { "nobody took it up in time".to_owned() } else { why };
                self.lapse(record, &why, unsettled)
            }
            _ => Ok(()),
        }
    }

    /// Ends one without a record of its own: where it was approved, that record stands and grants nothing any more.
    pub(super) fn lapse(
        &self,
        record: &mut EscalationRecord,
        why: &str,
        unsettled: &mut Unsettled,
    ) -> Result<(), Error> {
        self.inner.log.wait_verified()?;
        let mut next =
            EscalationRecord { state: EscalationState::Expired, why: Some(why.to_owned()), ..record.clone() };
        let sequence = self.inner.log.queue().change(self.inner.clock.now(), change(&next, why)?)?;
        next.place = sequence;
        let before = record.state;
        *record = next;
        self.inner.approvals.queue.changed(before, record);
        unsettled.change = Some(sequence);
        Ok(())
    }

    /// Ends all that are open and that `covers` says; how many that were.
    pub(in crate::governor) fn end_escalations(&self, covers: impl Fn(&EscalationRecord) -> bool, why: &str) -> u64 {
        let (mut ended, mut unsettled) = (Vec::new(), Unsettled::default());
        // Before it is mended, which may end them too.
        let open = self.inner.approvals.queue.all_open();
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

    /// Refuses a SUCCESS of what was approved and never taken up: nothing was granted by it, so nothing was done. With
    /// another outcome it is given up, and cannot be taken up any more.
    pub(in crate::governor) fn withdraw_unclaimed(&self, approval: ProofId, outcome: Outcome) -> Result<(), Error> {
        self.wait_mended()?;
        let Some(id) = self.inner.approvals.queue.unclaimed(approval) else { return Ok(()) };
        if outcome == Outcome::Success {
            return Err(unclaimed(approval, id));
        }
        let Some(open) = self.inner.approvals.queue.open(id) else { return Ok(()) };
        let mut unsettled = Unsettled::default();
        let mut record = open.lock();
        if super::queue::is_open(&record) {
            let why = format!("the outcome {outcome} was reported before it was taken up");
            self.lapse(&mut record, &why, &mut unsettled)?;
        }
        drop(record);
        let settled = self.settle_all(&unsettled);
        open.tell();
        settled
    }

    /// Refuses a report on what was approved and never claimed: nothing was granted by it, so nothing was done.
    pub(in crate::governor) fn check_claimed(&self, approval: ProofId) -> Result<(), Error> {
        self.wait_mended()?;
        self.inner.approvals.queue.unclaimed(approval).map_or(Ok(()), |id| Err(unclaimed(approval, id)))
    }

    /// Ends the escalation of a record whose outcome was reported: what it asked for was done or given up.
    pub(in crate::governor) fn end_reported(&self, proof_id: ProofId, outcome: Outcome) -> Result<(), Error> {
        let Some(open) = self.inner.approvals.queue.open(EscalationId::of(proof_id)) else { return Ok(()) };
        let mut unsettled = Unsettled::default();
        let mut record = open.lock();
        if record.state == EscalationState::Pending {
            let why = format!("the outcome {outcome} was reported before anybody answered");
            self.lapse(&mut record, &why, &mut unsettled)?;
        }
        drop(record);
        let settled = self.settle_all(&unsettled);
        open.tell();
        settled
    }
}

fn unclaimed(approval: ProofId, id: EscalationId) -> Error {
    let message = format!("{approval} grants nothing before {id} is claimed, which it was not; claim it first");
    Error::Conflict { message }
}
