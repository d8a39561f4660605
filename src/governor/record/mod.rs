//! The record of a decision before it is enqueued.

mod detail;

use serde_json::Value;

use crate::governor::Base;
use crate::governor::intake::input_text::{Inputs, Stored};
use crate::governor::intake::risk::earned_risk;
use crate::governor::roster::kill_switch::Denial;
use crate::governor::tasks::Under;
use crate::model::{ANYBODY, AgentState, Decision, DenialClass, Digest, Error, IntentStamp, PreApprovalId, ProofId};
use crate::policy::{Charge, PolicyRequest, PolicyVerdict};
use crate::proof::{DecisionDraft, Evidence, KeptInput, encode_evidence};
use crate::trust::AgentRecord;
use detail::EvidenceDetail;

/// The result of one attempt to decide or to approve.
pub(crate) enum Attempt<T> {
    /// The decision is enqueued.
    Done(T),
    /// A kill switch was set before it was enqueued: evaluate again.
    Stopped,
    /// The decision charges these limits of the organisation, whose uses must be taken first.
    Missing(Vec<Charge>),
}

/// The inputs of a decision's record.
pub(crate) struct Recording<'a> {
    pub(crate) request: &'a PolicyRequest<'a>,
    pub(crate) verdict: &'a PolicyVerdict,
    pub(crate) policy_digest: Digest,
    pub(crate) agent: &'a AgentRecord,
    pub(crate) origin: Origin,
    /// The intent as stored with an earlier record of it; otherwise the request's own is stored.
    pub(crate) stored: Option<&'a Stored>,
    /// The reviewers' votes behind the decision, if it resolves an escalation.
    pub(crate) resolution: Option<Value>,
    /// The pre-approval that covers the decision.
    pub(crate) grant: Option<PreApprovalId>,
    /// The kill switch or suspension that caused the denial, if any.
    pub(crate) denial: Option<Denial<'a>>,
    /// The cause of a DENY.
    pub(crate) class: Option<DenialClass>,
    /// The task that the decision belongs to.
    pub(crate) under: Under<'a>,
}

impl Recording<'_> {
    /// The record to write, with its evidence.
    pub(crate) fn draft(&self, base: &Base, inputs: &Inputs) -> Result<DecisionDraft, Error> {
        let &Self { request, verdict, policy_digest, agent, origin, stored, .. } = self;
        let internal = |what: &str| Error::internal(what);
        let mut kept = match stored {
            Some(stored) => stored.kept(),
            None => inputs.kept(request.intent, origin.stamp, verdict.decision == Decision::Escalate)?,
        };
        if let Under::Opening(opening) = self.under {
            // The mandate is restored from them after a restart.
            kept.input = Some(KeptInput::Text(opening.words.clone()));
        }
        let bits = base.entropy.bits();
        let earns = earned_risk(request.intent, &verdict.granted);
        let detail = EvidenceDetail {
            granted_capabilities: &verdict.granted,
            denied_capabilities: &verdict.denied,
            constraints: &verdict.constraints,
            risk_level: request.risk,
            policy_digest,
            rules: &verdict.rules,
            trust_snapshot: request.trust,
            traits: request.traits,
            agent_state: match self.denial {
                Some(Denial::Suspending) => agent.state.max(AgentState::Suspended),
                _ => agent.state,
            },
            stop: match self.denial {
                Some(Denial::KillSwitch(stop)) => Some(stop.id),
                _ => None,
            },
            now: request.now,
            earns,
            limits: &verdict.limits,
            masked: kept.count,
            reviewers: verdict
                .needs
                .iter()
                .map(|need| if need.reviewer.is_empty() { ANYBODY } else { &*need.reviewer })
                .collect(),
            resolution: self.resolution.as_ref(),
            grant: self.grant,
            denial_class: self.class,
            call: origin.call.map(|digest| Evidence::salted_call(bits, digest)),
            task: self.under.evidence(),
        };
        let charges: Vec<_> = verdict.charges.iter().map(|charge| (charge.counter.clone(), charge.amount)).collect();
        let intent = |out: &mut Vec<u8>| match &kept.masked {
            Some(masked) => serde_json::to_writer(out, masked),
            None => request.intent.write_stamped(origin.stamp, out),
        };
        let buffer = base.log.queue().buffer();
        let evidence = encode_evidence(buffer, bits, intent, |out| detail.write(out), &charges, kept.input.as_ref())
            .map_err(|_| internal("the evidence cannot be serialized"))?;
        Ok(DecisionDraft {
            entity: request.intent.agent_id.clone(),
            intent: origin.stamp.id.ok_or_else(|| internal("an intent without an id"))?,
            decision: verdict.decision,
            reasoning: kept.masked_in(&verdict.reasoning),
            resolves: None,
            retry_of: origin.retry_of,
            trust: request.trust,
            risk: request.risk,
            evidence,
            uses_limits: !charges.is_empty(),
            earns,
            random: random_part(base.entropy.bits()),
        })
    }
}

/// The origin of a request, besides its agent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Origin {
    /// The id and timestamp that the intent is recorded with.
    pub(crate) stamp: IntentStamp,
    /// The decision that it retries.
    pub(crate) retry_of: Option<ProofId>,
    /// The digest of a request with an idempotency key.
    pub(crate) call: Option<Digest>,
}

/// 32 of 128 random bits.
fn random_part(bits: u128) -> u32 {
    let [a, b, c, d, ..] = bits.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}
