//! Enqueuing an ESCALATE decision with the escalation that it opens.

use std::sync::Arc;
use std::time::Duration;

use super::digest::{self, Bound};
use super::{change, key};
use crate::governor::Approvals;
use crate::governor::record::Recording;
use crate::governor::tasks::Under;
use crate::model::parts::{ApprovalOfferParts, ReviewNeedParts};
use crate::model::{
    ApprovalOffer, Digest, Error, EscalationRecord, EscalationState, IntentId, LimitCharge, ProofId, ReviewNeed,
    Sequence, Timestamp,
};
use crate::policy::{Charge, Need, PolicyRequest, PolicyVerdict};
use crate::proof::{Committed, StateDraft};

impl Approvals {
    /// Enqueues an ESCALATE decision; `None` if a kill switch of another epoch came first.
    pub(crate) fn ask(self: &Arc<Self>, recording: &Recording<'_>, epoch: u64) -> Result<Option<Committed>, Error> {
        let Recording { request, verdict, .. } = *recording;
        let draft = recording.draft(&self.base, &self.intake.inputs)?;
        let intent_id = draft.intent;
        let reason = draft.reasoning.clone();
        // Everything except the id is serialized, and the approval's digest computed, before the log is locked.
        let stand_in = ProofId::new(request.now, draft.random, StateDraft::OWN_PLACE);
        let mut record = self.question(recording, intent_id, reason).asked(stand_in, request, verdict)?;
        let mut change = change(&record, "a request is escalated")?;
        let committed = self.base.log.queue().ask(request.now, draft, epoch, |proof_id| {
            change.state.name(&stand_in, &proof_id);
            record.proof_id = proof_id;
            change.state.key = key(record.id());
            // The state that opens the escalation precedes the record.
            record.place = Sequence::new(proof_id.sequence().get().saturating_sub(1));
            // Added before anybody can learn of it.
            self.queue.add(record);
            change
        })?;
        if committed.is_some() {
            self.watch_escalations();
        }
        Ok(committed)
    }

    fn question(&self, recording: &Recording<'_>, intent_id: IntentId, reason: String) -> Question {
        let approval = recording.verdict.on_approval.as_ref();
        let offer = approval.map(|approval| {
            ApprovalOffer::from(ApprovalOfferParts {
                granted: approval.granted.clone(),
                denied: approval.denied.clone(),
                constraints: approval.constraints.clone(),
            })
        });
        let charges = approval.map(|approval| &approval.charges[..]).unwrap_or_default();
        Question {
            intent_id,
            reason,
            salt: self.base.salt(),
            offer: offer.unwrap_or_default(),
            charges: charges.iter().map(kept).collect(),
            policy_digest: recording.policy_digest,
            text: self.intake.inputs.digest_of(recording.request.intent),
        }
    }

    /// The denial of a request that a reviewer would be asked about, if too many escalations are pending.
    pub(crate) fn beyond_bounds(
        &self,
        request: &PolicyRequest<'_>,
        verdict: &PolicyVerdict,
        under: Under<'_>,
    ) -> Option<PolicyVerdict> {
        let why = self.queue.is_full_for(&request.intent.agent_id, !under.is_inside())?;
        let reasoning = format!("Denied: {why} already; have these answered first. Otherwise: {}", verdict.reasoning);
        Some(PolicyVerdict::of_no_rule(&request.intent.required_capabilities, reasoning))
    }
}

/// The parts of an escalation that are known before it is enqueued.
struct Question {
    intent_id: IntentId,
    reason: String,
    salt: Digest,
    offer: ApprovalOffer,
    charges: Vec<LimitCharge>,
    policy_digest: Digest,
    /// SHA-256 of the text that the intent was parsed from.
    text: Option<Digest>,
}

impl Question {
    fn asked(
        self,
        proof_id: ProofId,
        request: &PolicyRequest<'_>,
        verdict: &PolicyVerdict,
    ) -> Result<EscalationRecord, Error> {
        let Self { intent_id, reason, salt, offer, charges, policy_digest, text } = self;
        let intent = request.intent;
        // Uses the clock, because expiry is checked against the clock.
        let expires_at = after(request.now, verdict.expires);
        let bound = Bound { intent, risk: request.risk, policy_digest, offer: &offer, expires_at };
        Ok(EscalationRecord {
            proof_id,
            agent_id: intent.agent_id.clone(),
            intent_id,
            state: EscalationState::Pending,
            reason,
            risk: request.risk,
            needs: verdict.needs.iter().map(need).collect(),
            created_at: request.now,
            expires_at,
            salt,
            digest: bound.digest(salt)?,
            policy_digest,
            text: text.map(|text| digest::asked_text(salt, text)),
            askers: intent.askers().map(|name| digest::asker(salt, name)).collect(),
            on_approval: offer,
            charges,
            votes: Vec::new(),
            grant: None,
            resolution: None,
            claimed_at: None,
            why: None,
            place: StateDraft::OWN_PLACE,
        })
    }
}

fn kept(charge: &Charge) -> LimitCharge {
    LimitCharge(charge.counter.clone(), charge.amount, charge.most, charge.window, charge.share)
}

fn need(need: &Need) -> ReviewNeed {
    ReviewNeed::from(ReviewNeedParts {
        reviewer: (!need.reviewer.is_empty()).then(|| need.reviewer.to_string()),
        approvals: need.approvals,
        people: need.people.iter().map(ToString::to_string).collect(),
    })
}

fn after(at: Timestamp, time: Duration) -> Timestamp {
    Timestamp::from_millis(at.as_millis().saturating_add(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)))
}
