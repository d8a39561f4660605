//! Claiming approvals, and waiting for reviewers.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use super::digest::{self, Bound};
use super::grant::under_other_policies;
use super::queue::Open;
use super::{AskedEvidence, Escalation, Escalations, change, evidence_conflict};
use crate::governor::Approvals;
use crate::governor::decider::pending::PendingEnforcement;
use crate::governor::intake::risk::RiskSource;
use crate::governor::roster::permit::is_low_read;
use crate::model::parts::EnforcementParts;
use crate::model::{
    ApprovalOffer, Decision, DenialClass, Enforcement, Error, EscalationId, EscalationRecord, EscalationState,
    GrantSource, Intent, ProofRecord, Sequence, TrustSnapshot,
};

impl Escalations<'_> {
    /// Claims an approval: once, for exactly the intent that was escalated, before it expires. Returns an enforcement
    /// with the grant, the verdict of the record that resolved the escalation.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] while the escalation is pending; when it was rejected, has expired or was claimed; when the
    /// intent is not the approved one or its evidence cannot be read any more; when other policies are in force, the
    /// agent may not act, its task is no longer open, or the governor needs a permit and has none. [`Error::ProofNotFound`]. [`Error::StorageUnavailable`] or
    /// [`Error::ChainBroken`] when the claim cannot be recorded, and [`Error::Withdrawn`] when the agent was stopped or the
    /// permit ended meanwhile; then nothing is granted, and the approval may be consumed.
    pub fn claim(self, id: EscalationId, intent: &Intent) -> Result<Enforcement, Error> {
        self.inner.here()?.approvals.end_if_due(id);
        let open = self.inner.approvals.open_escalation(id)?;
        self.inner.tasks.check_task_of(id.proof_id())?;
        let (enforcement, sequence) = self.inner.approvals.claim_open(&open, intent)?;
        // A claim lost in a crash could be repeated, so it must be on disk.
        self.inner.base.log.settle_in_any_case(sequence)?;
        self.inner.roster.handed_out(enforcement)
    }

    /// Waits up to `timeout` for the reviewers and claims their approval. Returns `None` while they have not answered,
    /// and a DENY when they rejected it or it expired. Blocks the thread.
    ///
    /// # Errors
    ///
    /// The errors of [`Escalations::claim`].
    pub fn wait(self, id: EscalationId, intent: &Intent, timeout: Duration) -> Result<Option<Enforcement>, Error> {
        let deadline = Instant::now().checked_add(timeout);
        while let Some((state, left)) = self.inner.here()?.approvals.wait_shortly(id, deadline) {
            match state {
                EscalationState::Approved => return self.claim(id, intent).map(Some),
                EscalationState::Pending if left.is_zero() => return Ok(None),
                _ => {}
            }
        }
        self.inner.approvals.refusal_of(id).map(Some)
    }

    /// Waits up to `timeout` until the escalation is no longer pending, and returns it. Nothing is claimed.
    ///
    /// # Errors
    ///
    /// The errors of [`Escalations::get`].
    pub fn wait_answered(self, id: EscalationId, timeout: Duration) -> Result<Escalation, Error> {
        let deadline = Instant::now().checked_add(timeout);
        while let Some((state, left)) = self.inner.here()?.approvals.wait_shortly(id, deadline) {
            if state != EscalationState::Pending || left.is_zero() {
                break;
            }
        }
        self.get(id)
    }

    /// Like [`Escalations::wait`], as a future. It has no timeout other than the escalation's expiry.
    ///
    /// # Errors
    ///
    /// [`Error::ProofNotFound`] for an unknown escalation.
    pub fn claim_async(self, id: EscalationId, intent: &Intent) -> Result<EscalationClaim, Error> {
        self.inner.here()?.approvals.escalation(id)?;
        Ok(EscalationClaim { ending: self.ending(id), intent: intent.clone(), taken: None })
    }

    /// Returns a future that completes when the escalation is no longer pending, at once for an unknown id. It blocks
    /// no thread.
    pub fn answered(self, id: EscalationId) -> impl Future<Output = ()> + Send + use<> {
        let mut ending = self.ending(id);
        std::future::poll_fn(move |context| ending.poll(context).map(drop))
    }

    fn ending(self, id: EscalationId) -> Ending {
        Ending { approvals: Arc::clone(&self.inner.approvals), id, place: None }
    }

    /// Decides on an intent and, if it is escalated, waits up to `timeout` for the answer and claims the approval. If
    /// the answer is not there in time, returns the ESCALATE decision; continue with [`Escalations::wait`] or
    /// [`Escalations::claim`].
    ///
    /// # Errors
    ///
    /// The errors of [`Governor::enforce`](crate::Governor::enforce) and of [`Escalations::wait`].
    pub fn enforce_or_wait(self, intent: &Intent, timeout: Duration) -> Result<Enforcement, Error> {
        // The decision is made on the parser's result, so that is what the approval covers.
        let intent = self.inner.here()?.intake.inputs.bound(Cow::Borrowed(intent))?;
        let enforcement = self.inner.decider.enforce(&intent, RiskSource::Caller)?;
        if enforcement.decision != Decision::Escalate {
            return Ok(enforcement);
        }
        let id = EscalationId::of(enforcement.proof_id);
        Ok(self.wait(id, &intent, timeout)?.unwrap_or(enforcement))
    }
}

impl Approvals {
    /// Waits in short steps, so that the waiting thread itself ends an escalation that expires. Returns the state and
    /// the time left before the step; `None` once the escalation is no longer open.
    fn wait_shortly(&self, id: EscalationId, deadline: Option<Instant>) -> Option<(EscalationState, Duration)> {
        self.end_if_due(id);
        let open = self.queue.open(id)?;
        let left = deadline.map_or(LONGEST_WAIT, |deadline| deadline.saturating_duration_since(Instant::now()));
        Some((open.wait(left.min(LONGEST_WAIT)), left))
    }

    /// Enqueues a claim. The verdict is valid once that is durable.
    fn claim_open(&self, open: &Open, intent: &Intent) -> Result<(Enforcement, Sequence), Error> {
        self.wait_mended()?;
        let mut record = open.lock();
        let id = record.id();
        let conflict = |message: String| Error::Conflict { message };
        match record.state {
            EscalationState::Approved if record.claimed_at.is_none() => {}
            EscalationState::Approved => return Err(conflict(format!("{id} was claimed already"))),
            state => return Err(conflict(format!("{id} is {state}"))),
        }
        let now = self.base.clock.now();
        if now >= record.expires_at {
            let message = format!("{id} expired at {}", record.expires_at);
            // An expiry that was noticed is final.
            let why = format!("it was not claimed before {}", record.expires_at);
            self.lapse_alone(open, record, &why)?;
            return Err(conflict(message));
        }
        if self.rules.policies.load().digest() != record.policy_digest {
            return Err(conflict(under_other_policies(&format!("{id} cannot be claimed"), &record)));
        }
        let digest = |intent: &Intent| {
            let bound = Bound {
                intent,
                risk: record.risk,
                policy_digest: record.policy_digest,
                offer: &record.on_approval,
                expires_at: record.expires_at,
            };
            bound.digest(record.salt)
        };
        // Compared whole: the parser's result is not put back into an edited intent.
        if digest(intent)? != record.digest
            && digest(&self.intake.inputs.without_unknown_facts(intent))? != record.digest
        {
            return Err(conflict(format!("{id} was approved for another intent; request approval of this one")));
        }
        if !self.is_of_asked_text(intent, &record) {
            return Err(conflict(format!(
                "{id} was approved for another request text than this intent was parsed from; parse the approved text \
                 and pass its intent"
            )));
        }
        if let AskedEvidence::Lost(why) = self.asked_evidence(&record)? {
            return Err(evidence_conflict(&record, "claimed", &why));
        }
        let (Some(resolution), Some(grant)) = (record.resolution, record.grant.clone()) else {
            return Err(Error::internal(format!("{id} is approved without a record")));
        };
        let answer = self.base.log.record(&resolution)?;
        if let Some(why) = self.roster.unpermitted(record.risk, &intent.required_capabilities, now) {
            return Err(conflict(format!("{id} cannot be claimed now: {why}")));
        }
        let cell = self.roster.registered(&record.agent_id)?;
        if self.is_denied_by_now(&record, intent, &cell.read(), now)? {
            return Err(conflict(format!("{id} cannot be claimed now: the policies would deny it; ask again")));
        }
        let mut next = EscalationRecord { claimed_at: Some(now), ..record.clone() };
        let (sequence, interventions) = loop {
            let interventions = self.roster.stops.interventions().count();
            let agent = cell.read();
            let stops = self.roster.stops.load();
            if let Some(why) = stops.refusal(&agent) {
                return Err(conflict(why));
            }
            if let Some(sequence) =
                self.base.log.queue().change_unless_stopped(now, change(&next, "claimed")?, stops.epoch())?
            {
                break (sequence, interventions);
            }
        };
        // The approval is consumed from here on, even if this entry does not become durable.
        next.place = sequence;
        let before = record.state;
        *record = next;
        self.queue.changed(before, &record);
        let enforcement = answered(answer, grant);
        let is_low_read = is_low_read(record.risk, &intent.required_capabilities);
        Ok((self.roster.granting(enforcement, &record.agent_id, now, is_low_read, interventions), sequence))
    }

    /// Returns whether the intent comes from the escalated text: two texts can be parsed to the same intent.
    fn is_of_asked_text(&self, intent: &Intent, record: &EscalationRecord) -> bool {
        let Some(asked) = record.text else { return true };
        let is_that = |text| digest::asked_text(record.salt, text) == asked;
        intent.id == Some(record.intent_id) || self.intake.inputs.digest_of(intent).is_some_and(is_that)
    }

    /// The DENY that resolved an escalation.
    fn refusal_of(&self, id: EscalationId) -> Result<Enforcement, Error> {
        let record = self.escalation(id)?;
        let refused = matches!(record.state, EscalationState::Rejected | EscalationState::Expired);
        let Some(resolution) = record.resolution.filter(|_| refused && record.grant.is_none()) else {
            // Approved and claimed, or given up without a record.
            return Err(self
                .open_escalation(id)
                .err()
                .unwrap_or_else(|| Error::internal(format!("{id} is open and has ended"))));
        };
        let answer = self.base.log.record(&resolution)?;
        let ApprovalOffer { granted, denied, .. } = record.on_approval;
        let mut offer = ApprovalOffer::default();
        offer.denied = granted.into_iter().chain(denied).collect();
        Ok(answered(answer, offer).refused_by(Some(DenialClass::Policy)))
    }
}

/// The enforcement that a reviewer's answer results in.
fn answered(answer: ProofRecord, offer: ApprovalOffer) -> Enforcement {
    Enforcement::from(EnforcementParts {
        decision: answer.decision,
        reasoning: answer.reasoning,
        granted_capabilities: offer.granted,
        denied_capabilities: offer.denied,
        constraints: offer.constraints,
        proof_id: answer.id,
        trust_snapshot: TrustSnapshot::new(answer.trust_score, answer.trust_tier),
        denial_class: None,
        retryable: None,
        rewrite: None,
        source: GrantSource::default(),
    })
}

/// The future answer of the reviewers, for any async runtime.
///
/// It blocks no thread while it waits for the reviewers or for the claim to reach the disk. Only the poll that claims
/// the approval may wait for room in the queue, and after a background verification for its end. Dropping it changes
/// nothing.
///
/// It is woken when the escalation is answered or expires. The verdict is returned once it is on disk, whatever the
/// governor's durability.
#[must_use = "it does nothing unless it is awaited"]
pub struct EscalationClaim {
    ending: Ending,
    intent: Intent,
    /// The claimed decision, until it is durable.
    taken: Option<PendingEnforcement>,
}

impl EscalationClaim {
    fn claim_open(&self, open: &Arc<Open>) -> Result<PendingEnforcement, Error> {
        let approvals = &self.ending.approvals;
        let (enforcement, sequence) = approvals.claim_open(open, &self.intent)?;
        let ticket = approvals.base.log.ticket_in_any_case(sequence);
        Ok(PendingEnforcement::new(enforcement, ticket, &approvals.roster))
    }
}

impl Future for EscalationClaim {
    type Output = Result<Enforcement, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.ending.approvals.base.log.check_process()?;
        if self.taken.is_none() {
            let Some(open) = ready!(self.ending.poll(context)) else {
                return Poll::Ready(self.ending.approvals.refusal_of(self.ending.id));
            };
            match self.claim_open(&open) {
                Ok(taken) => self.taken = Some(taken),
                // The escalation ended between the two checks.
                Err(_) if self.ending.approvals.queue.open(self.ending.id).is_none() => {
                    return Poll::Ready(self.ending.approvals.refusal_of(self.ending.id));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        match &mut self.taken {
            Some(taken) => Pin::new(taken).poll(context),
            None => Poll::Pending,
        }
    }
}

/// A wait for the end of a pending escalation.
struct Ending {
    approvals: Arc<Approvals>,
    id: EscalationId,
    /// The key of its waker.
    place: Option<u64>,
}

impl Ending {
    /// The approved, unclaimed escalation; `None` if it has ended.
    fn poll(&mut self, context: &Context<'_>) -> Poll<Option<Arc<Open>>> {
        if self.approvals.base.log.check_process().is_err() {
            return Poll::Ready(None);
        }
        let open = self.approvals.queue.open(self.id);
        if let Some(open) = &open
            && open.wake(&mut self.place, context.waker())
        {
            return Poll::Pending;
        }
        Poll::Ready(open)
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let is_here = self.approvals.base.log.check_process().is_ok();
        if let Some(place) = self.place.filter(|_| is_here)
            && let Some(open) = self.approvals.queue.open(self.id)
        {
            open.forget(place);
        }
    }
}

impl std::fmt::Debug for EscalationClaim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EscalationClaim").field("id", &self.ending.id).finish_non_exhaustive()
    }
}

/// The longest single wait.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;
    use crate::governor::Governor;
    use crate::model::{Agent, RiskLevel, Tier};
    use crate::policy::PolicySet;

    fn asking() -> (Governor, Intent) {
        let asks = "name = \"p\"\n[[rule]]\nid = \"all\"\neffect = \"escalate\"\nmatch.capabilities = [\"*:*\"]\n\
                    reviewer = \"ann\"";
        let governor = Governor::builder().policies(PolicySet::from_toml(asks).unwrap()).open_in_memory().unwrap();
        governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
        (governor, Intent::new("a", "send_email", RiskLevel::Low, ["email:send"]).unwrap())
    }

    #[test]
    fn dropped_or_repolled_answers_leave_no_wakers_behind() {
        let (governor, intent) = asking();
        let id = EscalationId::of(governor.enforce(&intent).unwrap().proof_id);
        let open = governor.inner.approvals.queue.open(id).unwrap();
        let answer = || Box::pin(governor.escalations().claim_async(id, &intent).unwrap());
        let mut held = answer();
        for _ in 0..100 {
            // All of one task, so that their wakers are equal.
            let mut context = Context::from_waker(Waker::noop());
            assert!(answer().as_mut().poll(&mut context).is_pending());
            assert!(held.as_mut().poll(&mut context).is_pending());
        }
        assert_eq!(open.awaited_by(), 1, "the one that is awaited");
        drop(held);
        assert_eq!(open.awaited_by(), 0);
    }
    #[test]
    fn whoever_waits_is_told_and_who_goes_leaves_no_waker_behind() {
        let (governor, intent) = asking();
        let id = EscalationId::of(governor.enforce(&intent).unwrap().proof_id);
        let open = governor.inner.approvals.queue.open(id).unwrap();
        let mut context = Context::from_waker(Waker::noop());
        let mut waiting = Box::pin(governor.escalations().answered(id));
        let mut gone = Box::pin(governor.escalations().answered(id));
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        assert!(gone.as_mut().poll(&mut context).is_pending());
        drop(gone);
        assert_eq!(open.awaited_by(), 1);
        // The claiming thread may hold it while it waits for the disk.
        let held = open.lock();
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        drop(held);
        governor.escalations().reject(id, crate::model::Review::by("ann")).unwrap();
        assert!(waiting.as_mut().poll(&mut context).is_ready());
        assert!(Box::pin(governor.escalations().answered(id)).as_mut().poll(&mut context).is_ready());
    }
}
