//! Opening a store with its escalations, and ending those that are due.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::super::background::Background;
use super::super::{Governor, Inner};
use super::change;
use super::queue::{Open, Queue};
use super::resolve::Answer;
use crate::model::{AgentId, Error, EscalationId, EscalationRecord, EscalationState, Outcome, ProofId};
use crate::proof::OutcomeDraft;

/// What the keys of escalations' states in the log start with.
pub(in crate::governor) const KEY_PREFIX: &str = "escalation/";

impl Queue {
    /// Takes one in as the log has it.
    pub(in crate::governor) fn restore(&self, value: &[u8]) -> Result<(), Error> {
        let record: EscalationRecord = serde_json::from_slice(value)
            .map_err(|error| Error::storage(format!("an escalation's state cannot be read: {error}")))?;
        self.add(record);
        Ok(())
    }
}

impl Governor {
    /// Completes what a crash cut in two, once the log can be written to.
    pub(in crate::governor) fn mend_escalations(&self) -> Result<(), Error> {
        for open in self.inner.escalations.all_open() {
            let mut record = open.lock();
            match self.inner.log.facts(&record.proof_id) {
                Ok(_) | Err(Error::ProofElsewhere { .. }) => {}
                // The record that was to follow never did, and nobody was told of it.
                Err(Error::ProofNotFound { .. }) => self.lapse(&open, &mut record, "it was never asked")?,
                Err(error) => return Err(error),
            }
        }
        if let Some((answer, decision)) = self.inner.log.last_answer()? {
            self.complete(answer, decision)?;
        }
        if !self.inner.escalations.all_open().is_empty() {
            self.watch_escalations();
        }
        Ok(())
    }

    /// The last entry is a record that answers an escalation; the outcome that belongs to it is missing.
    fn complete(&self, answer: ProofId, asked: ProofId) -> Result<(), Error> {
        let Some(open) = self.inner.escalations.open(EscalationId::of(asked)) else { return Ok(()) };
        let mut record = open.lock();
        if record.state != EscalationState::Pending {
            return Ok(());
        }
        let evidence = self.inner.log.evidence(&answer)?;
        let resolution = evidence.detail.get("resolution").cloned().unwrap_or_default();
        let part = |name: &str| resolution.get(name).cloned().unwrap_or_default();
        let unreadable = |error: serde_json::Error| Error::storage(format!("{answer} cannot be read: {error}"));
        let mut next = record.clone();
        next.state = serde_json::from_value(part("state")).map_err(unreadable)?;
        next.votes = serde_json::from_value(part("votes")).map_err(unreadable)?;
        next.why = serde_json::from_value(part("why")).map_err(unreadable)?;
        next.resolution = Some(answer);
        if next.state == EscalationState::Approved {
            let detail = |name: &str| evidence.detail.get(name).cloned().unwrap_or_default();
            next.grant = Some(crate::model::ApprovalOffer {
                granted: serde_json::from_value(detail("grantedCapabilities")).map_err(unreadable)?,
                denied: serde_json::from_value(detail("deniedCapabilities")).map_err(unreadable)?,
                constraints: serde_json::from_value(detail("constraints")).map_err(unreadable)?,
            });
        }
        let now = self.inner.clock.now();
        let ordered = self.inner.log.report(now, || {
            Ok(OutcomeDraft {
                proof_id: asked,
                entity: record.agent_id.clone(),
                outcome: Outcome::Escalated,
                note: None,
                state: None,
                asked: Some(super::state_of(&next)?),
                trust: None,
                basis: None,
            })
        })?;
        if let Some(sequence) = ordered {
            next.place = sequence;
            *record = next;
            self.inner.escalations.changed(EscalationState::Pending, &record);
            drop(record);
            self.inner.log.settle(sequence)?;
        }
        Ok(())
    }

    /// Ends the escalations whose time is over. Where the log takes nothing in they stay; nobody can take them up.
    pub(super) fn end_what_is_due(&self) {
        let now = self.inner.clock.now();
        for open in self.inner.escalations.due(now) {
            let mut record = open.lock();
            if record.expires_at <= now {
                let why = format!("nobody answered until {}", record.expires_at);
                let _ = self.end(&open, &mut record, why);
            }
        }
    }

    /// Ends one that is open.
    pub(super) fn end(&self, open: &Arc<Open>, record: &mut EscalationRecord, why: String) -> Result<(), Error> {
        match record.state {
            EscalationState::Pending => self.resolve(open, record, Answer::Ended { why }).map(drop),
            EscalationState::Approved if record.claimed_at.is_none() => {
                let why = if why.starts_with("nobody answered") { "nobody took it up in time".to_owned() } else { why };
                self.lapse(open, record, &why)
            }
            _ => Ok(()),
        }
    }

    /// Ends all that are open and that `covers` says; how many that were.
    pub(in crate::governor) fn end_escalations(&self, covers: impl Fn(&AgentId) -> bool, why: &str) -> u64 {
        let mut ended = 0;
        for open in self.inner.escalations.all_open() {
            let mut record = open.lock();
            if covers(&record.agent_id) && self.end(&open, &mut record, why.to_owned()).is_ok() {
                ended += 1;
            }
        }
        ended
    }

    /// Ends the escalation of a record whose outcome was reported: what it asked for was done or given up.
    pub(in crate::governor) fn end_reported(&self, proof_id: ProofId, outcome: Outcome) -> Result<(), Error> {
        let Some(open) = self.inner.escalations.open(EscalationId::of(proof_id)) else { return Ok(()) };
        let mut record = open.lock();
        if record.state != EscalationState::Pending {
            return Ok(());
        }
        self.lapse(&open, &mut record, &format!("the outcome {outcome} was reported before anybody answered"))
    }

    /// Starts the thread that ends what is due, unless it works.
    pub(in crate::governor) fn watch_escalations(&self) {
        self.inner.escalation_watch.get_or_init(|| {
            let inner: Weak<Inner> = Arc::downgrade(&self.inner);
            let work = move || {
                let Some(inner) = inner.upgrade() else { return false };
                let governor = Governor { inner };
                governor.end_what_is_due();
                !governor.inner.log.is_closed()
            };
            // Without the thread they end when somebody looks.
            Background::start("rulekeep-escalations", WATCHED_EVERY, work).ok()
        });
    }

    /// Puts the escalations in order again that are open, so that they are not lost with what leaves the log.
    pub(in crate::governor) fn restate_escalations(
        &self,
        cause: &str,
        keys: &mut std::collections::BTreeSet<String>,
    ) -> Result<(), Error> {
        for open in self.inner.escalations.all_open() {
            let mut record = open.lock();
            if !super::queue::is_open(&record) {
                continue;
            }
            let restated = change(&record, cause)?;
            keys.insert(restated.state.key.clone());
            record.place = self.inner.log.change(self.inner.clock.now(), restated)?;
            self.inner.escalations.changed(record.state, &record);
        }
        Ok(())
    }
}

/// How often it is looked for escalations that are due.
const WATCHED_EVERY: Duration = Duration::from_secs(1);
