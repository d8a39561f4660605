//! The grant of an approval, by the conditions at the time of the approval.

use std::sync::Arc;

use serde_json::Value;

use super::resolve::EscalatedRequest;
use crate::governor::{Approvals, conflict};
use crate::model::parts::ApprovalOfferParts;
use crate::model::{
    AgentState, ApprovalOffer, Constraints, Decision, Error, EscalationRecord, EscalationState, Intent, LimitCharge,
    Timestamp,
};
use crate::policy::{Charge, Meter, PolicyRequest};
use crate::trust::AgentRecord;

/// The error text when other policies were loaded since. A request is only granted under the rules that escalated it.
pub(super) fn under_other_policies(what: &str, record: &EscalationRecord) -> String {
    let end =
        if record.state == EscalationState::Pending { "reject it, or let it expire," } else { "or let it expire" };
    format!(
        "{what}: the policies in force differ from those it was escalated under ({}); load those, {end} and ask again",
        record.policy_digest
    )
}

/// The grant: the offer, its rules, and its consumption of rate limits.
#[derive(Debug)]
pub(super) struct Grant {
    pub(super) offer: ApprovalOffer,
    pub(super) rules: Arc<[Arc<str>]>,
    pub(super) charges: Vec<Charge>,
}

impl Approvals {
    /// The permission that an approval grants now: never more than the reviewer was shown, only until it expires, and
    /// within the rate limits. `meter` keeps the limits locked until the grant is enqueued.
    pub(super) fn still_granted(
        &self,
        record: &EscalationRecord,
        asked: &EscalatedRequest,
        agent: &AgentRecord,
        now: Timestamp,
        meter: &mut dyn Meter,
    ) -> Result<Grant, Error> {
        let changed = |what: &str| Error::Conflict {
            message: format!("{} cannot be approved any more: {what}; ask again", record.id()),
        };
        let policies = self.rules.policies.load();
        if policies.digest() != record.policy_digest {
            let id = record.id();
            return conflict(under_other_policies(&format!("{id} cannot be approved"), record));
        }
        if agent.state != AgentState::Active {
            return Err(changed(&format!("the agent is {}", agent.state)));
        }
        if let Some(why) = self.roster.unpermitted(record.risk, &asked.intent.required_capabilities, now) {
            return conflict(format!("{} cannot be approved now: {why}", record.id()));
        }
        let mut grant = if asked.is_masked() {
            self.unless_trust_fell(record, agent, &asked.detail, now, &changed)?
        } else {
            let trust = self.roster.trust_of(agent, now);
            let request =
                PolicyRequest { intent: &asked.intent, risk: record.risk, trust, traits: agent.traits(), now };
            let verdict = policies.evaluate_with(&request, meter)?;
            let (granted, constraints, charges) = match (verdict.decision, verdict.on_approval) {
                (Decision::Escalate, Some(approval)) => (approval.granted, approval.constraints, approval.charges),
                (Decision::Allow | Decision::Degrade, _) => (verdict.granted, verdict.constraints, verdict.charges),
                _ => return Err(changed("it would be denied now")),
            };
            Grant { offer: narrowed(&record.on_approval, &granted, &constraints), rules: verdict.rules, charges }
        };
        if grant.offer.granted.is_empty() {
            return Err(changed("it would grant nothing now"));
        }
        if let Some(spent) = grant.charges.iter().find(|charge| !charge.fits(meter)) {
            return Err(Error::Conflict {
                message: format!("{} cannot be approved now: the limit {:?} is used up", record.id(), spent.counter),
            });
        }
        let mut end = Constraints::new();
        end.insert("expiresAt", record.expires_at.to_string().into());
        grant.offer.constraints.tighten(&end);
        Ok(grant)
    }

    /// Returns whether the policies deny an approved request by now, for example outside its hours. Its use of limits was
    /// taken at the approval.
    pub(super) fn is_denied_by_now(
        &self,
        record: &EscalationRecord,
        intent: &Intent,
        agent: &AgentRecord,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let trust = self.roster.trust_of(agent, now);
        let request = PolicyRequest { intent, risk: record.risk, trust, traits: agent.traits(), now };
        Ok(self.rules.policies.load().evaluate(&request)?.decision == Decision::Deny)
    }

    /// For an intent with redacted secrets, whose exact form is not stored, so it cannot be evaluated again: the other
    /// inputs of the verdict must be unchanged.
    fn unless_trust_fell(
        &self,
        record: &EscalationRecord,
        agent: &AgentRecord,
        detail: &Value,
        now: Timestamp,
        changed: &dyn Fn(&str) -> Error,
    ) -> Result<Grant, Error> {
        let trust = self.roster.trust_of(agent, now);
        let tier = detail.pointer("/trustSnapshot/tier").and_then(Value::as_str).and_then(|tier| tier.parse().ok());
        if tier.is_none_or(|tier| trust.tier < tier) {
            return Err(changed("the agent's trust is lower"));
        }
        let traits = serde_json::to_value(agent.traits()).unwrap_or_default();
        let is_same = |(name, value): (&String, &Value)| detail.get(name).unwrap_or(&Value::Null) == value;
        if !traits.as_object().is_some_and(|traits| traits.iter().all(is_same)) {
            return Err(changed("the agent's labels, groups or attributes have changed"));
        }
        let rules = detail.get("rules").cloned().unwrap_or_default();
        let rules: Vec<Arc<str>> = serde_json::from_value(rules).unwrap_or_default();
        let charges = record.charges.iter().map(charge).collect();
        Ok(Grant { offer: record.on_approval.clone(), rules: rules.into(), charges })
    }
}

/// The part of the offer that is granted, with these constraints added.
fn narrowed(offer: &ApprovalOffer, granted: &[crate::model::Capability], constraints: &Constraints) -> ApprovalOffer {
    let (granted, refused): (Vec<_>, Vec<_>) =
        offer.granted.iter().cloned().partition(|capability| granted.contains(capability));
    let mut limits = offer.constraints.clone();
    limits.tighten(constraints);
    let denied = offer.denied.iter().cloned().chain(refused).collect();
    ApprovalOffer::from(ApprovalOfferParts { granted, denied, constraints: limits })
}

fn charge(LimitCharge(counter, amount, most, window, share): &LimitCharge) -> Charge {
    Charge { counter: counter.clone(), amount: *amount, most: *most, window: *window, share: *share }
}
