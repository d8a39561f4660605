//! Restoring escalations from a store, and watching for expiries.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::change;
use super::end::Unsettled;
use super::queue::{Queue, Unmended};
use crate::governor::background::Background;
use crate::governor::keys::{AGAIN, Rerecording};
use crate::governor::roster::agents;
use crate::governor::{Approvals, Hold as _, states};
use crate::model::parts::ApprovalOfferParts;
use crate::model::{ENDED_BY_KILL_SWITCH, Error, EscalationId, EscalationRecord, EscalationState, Outcome, ProofId};
use crate::proof::{EvidenceSelection, OutcomeDraft};

impl Queue {
    /// Restores an escalation from the log.
    pub(crate) fn restore(&self, key: &str, value: &[u8]) -> Result<(), Error> {
        self.add(states::read(key, value)?);
        Ok(())
    }
}

impl Approvals {
    /// Completes changes that a crash interrupted, once the log can be written; `last_answer` describes the end of the
    /// log when it was opened.
    fn mend_escalations(&self, last_answer: Option<(ProofId, ProofId)>) -> Result<(), Error> {
        if let Some((answer, asked)) = last_answer {
            self.complete(answer, asked)?;
        }
        let stops = self.roster.stops.load();
        let (mut ended, mut unsettled) = (Vec::new(), Unsettled::default());
        let mended = self.queue.all_open().into_iter().try_for_each(|open| {
            let mut record = open.lock();
            let before = record.state;
            match self.base.log.facts(&record.proof_id) {
                // A stopped agent opens no escalations, so pending ones are older than the kill switch.
                Ok(_) | Err(Error::ProofElsewhere { .. }) => {
                    let cell = self.roster.registered(&record.agent_id)?;
                    let stopped = stops.over(&cell.read());
                    if stopped.is_some() {
                        self.end(&mut record, ENDED_BY_KILL_SWITCH.to_owned(), &mut unsettled)?;
                    }
                }
                // The record that should have followed was never written, and nobody learned of it.
                Err(Error::ProofNotFound { .. }) => {
                    self.lapse(&mut record, "its record was never written", &mut unsettled)?;
                }
                Err(error) => return Err(error),
            }
            if record.state != before {
                drop(record);
                ended.push(open);
            }
            Ok(())
        });
        let settled = self.settle_all(&unsettled);
        for open in &ended {
            open.tell();
        }
        mended.and(settled)
    }

    /// Waits until the log is verified, then repairs what a crash left, if that is still to do: until then an
    /// escalation may have an answer that does not show. The caller must hold no escalation's and no agent's lock.
    pub(crate) fn wait_mended(&self) -> Result<(), Error> {
        self.base.log.wait_verified()?;
        let mut unmended = self.queue.unmended.hold();
        if let Some(Unmended { last_answer }) = *unmended {
            let _ = self.write_taken_back();
            self.mend_escalations(last_answer)?;
            *unmended = None;
            drop(unmended);
            if let Some(tell) = self.mended.get() {
                tell();
            }
        }
        Ok(())
    }

    /// Repairs what a crash left, now or once the log is verified, and watches the open escalations.
    pub(crate) fn resume_escalations(self: &Arc<Self>) -> Result<(), Error> {
        let last_answer = self.base.log.last_answer()?;
        // This only revokes, which is right whatever the verification finds; it is recorded after the verification.
        self.mend_pre_approvals();
        if self.base.log.is_verified() {
            let _ = self.write_taken_back();
            self.mend_escalations(last_answer)?;
            let has_approvals = self.given.lock().values().any(|held| !held.record.has_ended());
            if has_approvals || !self.queue.all_open().is_empty() {
                self.watch_escalations();
            }
        } else {
            *self.queue.unmended.hold() = Some(Unmended { last_answer });
            self.watch_escalations();
        }
        Ok(())
    }

    /// Adds the outcome that is missing after the resolving record at the end of the log.
    fn complete(&self, answer: ProofId, asked: ProofId) -> Result<(), Error> {
        let Some(open) = self.queue.open(EscalationId::of(asked)) else { return Ok(()) };
        let mut record = open.lock();
        if record.state != EscalationState::Pending {
            return Ok(());
        }
        let evidence = self.base.log.evidence(&answer)?;
        let resolution = evidence.detail.get("resolution").cloned().unwrap_or_default();
        let part = |name: &str| resolution.get(name).cloned().unwrap_or_default();
        let unreadable = |error: serde_json::Error| Error::storage(format!("{answer} cannot be read")).caused_by(error);
        let mut next = record.clone();
        next.state = serde_json::from_value(part("state")).map_err(unreadable)?;
        next.votes = serde_json::from_value(part("votes")).map_err(unreadable)?;
        next.why = serde_json::from_value(part("why")).map_err(unreadable)?;
        next.resolution = Some(answer);
        if next.state == EscalationState::Approved {
            let detail = |name: &str| evidence.detail.get(name).cloned().unwrap_or_default();
            next.grant = Some(crate::model::ApprovalOffer::from(ApprovalOfferParts {
                granted: serde_json::from_value(detail("grantedCapabilities")).map_err(unreadable)?,
                denied: serde_json::from_value(detail("deniedCapabilities")).map_err(unreadable)?,
                constraints: serde_json::from_value(detail("constraints")).map_err(unreadable)?,
            }));
        }
        let Some(reserved) = self.base.log.reserve_for(&record.agent_id, &asked, Outcome::Escalated)? else {
            return Ok(());
        };
        let now = self.base.clock.now();
        let cell = self.roster.registered(&record.agent_id)?;
        let mut agent = cell.write();
        let (changed, moved) = self.rejected(&agent, &next, now).unzip();
        let sequence = reserved.report(
            now,
            OutcomeDraft {
                proof_id: asked,
                entity: record.agent_id.clone(),
                outcome: Outcome::Escalated,
                note: next.votes.last().and_then(|vote| vote.note.clone()),
                state: changed.as_ref().map(agents::state_of).transpose()?,
                asked: Some(super::state_of(&next)?),
                trust: moved.flatten(),
                basis: None,
            },
        )?;
        if let Some(changed) = changed {
            *agent = changed.placed_at(sequence);
        }
        drop(agent);
        next.place = sequence;
        *record = next;
        self.queue.changed(EscalationState::Pending, &record);
        drop(record);
        let settled = self.base.log.settle(sequence);
        open.tell();
        settled
    }

    /// Starts the thread that ends expired escalations, unless it is running; it repairs first if necessary.
    pub(crate) fn watch_escalations(self: &Arc<Self>) {
        self.watch.get_or_init(|| {
            let approvals: Weak<Self> = Arc::downgrade(self);
            let work = move || {
                let Some(approvals) = approvals.upgrade() else { return false };
                approvals.end_what_is_due();
                approvals.publish_pending();
                !approvals.base.log.is_closed()
            };
            // Without the thread, escalations end when they are accessed.
            Background::start("rulekeep-escalations", WATCHED_EVERY, work).ok()
        });
    }

    /// A pending escalation whose evidence is in the selection.
    pub(crate) fn pending_in(&self, selection: &EvidenceSelection) -> Option<EscalationId> {
        let covers = |record: &EscalationRecord| selection.covers(record.proof_id, &record.agent_id, record.created_at);
        let open = self.queue.all_open();
        let mut records = open.iter().map(|open| open.lock().clone());
        records.find(|record| record.state == EscalationState::Pending && covers(record)).map(|record| record.id())
    }

    /// Enqueues the open escalations again, before an archive.
    pub(crate) fn rerecord_escalations(&self, again: &mut Rerecording<'_>) -> Result<(), Error> {
        for open in self.queue.all_open() {
            let mut record = open.lock();
            if !super::queue::is_open(&record) {
                continue;
            }
            let rerecorded = change(&record, AGAIN)?;
            again.note(rerecorded.state.key.clone());
            record.place = self.base.log.queue().change(self.base.clock.now(), rerecorded)?;
            self.queue.changed(record.state, &record);
        }
        Ok(())
    }
}

/// Interval of the check for expired escalations.
const WATCHED_EVERY: Duration = Duration::from_secs(1);
