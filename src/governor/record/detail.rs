//! The details of a decision besides its intent: the second part of its evidence.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::model::json::{push_members, push_texts};
use crate::model::{
    AgentState, AgentTraits, Capability, Constraints, DenialClass, Digest, KillSwitchId, Label, PreApprovalId,
    RiskLevel, Timestamp, TrustSnapshot,
};
use crate::policy::LimitUse;

/// The second part of the evidence.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EvidenceDetail<'a> {
    pub(crate) granted_capabilities: &'a [Capability],
    pub(crate) denied_capabilities: &'a [Capability],
    pub(crate) constraints: &'a Constraints,
    pub(crate) risk_level: RiskLevel,
    pub(crate) policy_digest: Digest,
    pub(crate) rules: &'a [Arc<str>],
    pub(crate) trust_snapshot: TrustSnapshot,
    #[serde(flatten)]
    pub(crate) traits: &'a AgentTraits,
    pub(crate) agent_state: AgentState,
    /// The kill switch that denied it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stop: Option<KillSwitchId>,
    pub(crate) now: Timestamp,
    /// The risk level that a success earns trust for.
    pub(crate) earns: RiskLevel,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) limits: &'a [LimitUse],
    /// Number of redacted texts in the intent.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) masked: u64,
    /// The reviewers, if it is an escalation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) reviewers: Vec<&'a str>,
    /// The reviewers' votes, if it resolves an escalation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resolution: Option<&'a Value>,
    /// The pre-approval that covers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) grant: Option<PreApprovalId>,
    /// The cause of a DENY.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) denial_class: Option<DenialClass>,
    /// The salted digest of a request with an idempotency key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) call: Option<Digest>,
    /// The task it was decided under, and its mandate's objections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<&'a Value>,
}

impl EvidenceDetail<'_> {
    /// Writes the same JSON as serde, but faster: it was most of the cost of a decision.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        out.extend_from_slice(b"{\"grantedCapabilities\":");
        push_texts(out, self.granted_capabilities.iter().map(Capability::as_str))?;
        out.extend_from_slice(b",\"deniedCapabilities\":");
        push_texts(out, self.denied_capabilities.iter().map(Capability::as_str))?;
        out.extend_from_slice(b",\"constraints\":");
        push_members(out, self.constraints.iter())?;
        out.extend_from_slice(b",\"riskLevel\":\"");
        out.extend_from_slice(self.risk_level.as_str().as_bytes());
        out.extend_from_slice(b"\",\"policyDigest\":\"");
        out.extend_from_slice(&self.policy_digest.written());
        out.extend_from_slice(b"\",\"rules\":");
        push_texts(out, self.rules.iter().map(|rule| &**rule))?;
        out.extend_from_slice(b",\"trustSnapshot\":");
        serde_json::to_writer(&mut *out, &self.trust_snapshot)?;
        self.write_traits(out)?;
        out.extend_from_slice(b",\"agentState\":\"");
        out.extend_from_slice(self.agent_state.as_str().as_bytes());
        if let Some(stop) = self.stop {
            out.extend_from_slice(b"\",\"stop\":\"");
            out.extend_from_slice(&stop.written());
        }
        out.extend_from_slice(b"\",\"now\":\"");
        out.extend_from_slice(&self.now.written());
        out.extend_from_slice(b"\",\"earns\":\"");
        out.extend_from_slice(self.earns.as_str().as_bytes());
        out.push(b'"');
        if !self.limits.is_empty() {
            out.extend_from_slice(b",\"limits\":");
            serde_json::to_writer(&mut *out, self.limits)?;
        }
        if self.masked > 0 {
            out.extend_from_slice(b",\"masked\":");
            serde_json::to_writer(&mut *out, &self.masked)?;
        }
        if !self.reviewers.is_empty() {
            out.extend_from_slice(b",\"reviewers\":");
            push_texts(out, self.reviewers.iter().copied())?;
        }
        if let Some(resolution) = self.resolution {
            out.extend_from_slice(b",\"resolution\":");
            serde_json::to_writer(&mut *out, resolution)?;
        }
        if let Some(grant) = self.grant {
            out.extend_from_slice(b",\"grant\":\"");
            out.extend_from_slice(&grant.written());
            out.push(b'"');
        }
        if let Some(class) = self.denial_class {
            out.extend_from_slice(b",\"denialClass\":\"");
            out.extend_from_slice(class.as_str().as_bytes());
            out.push(b'"');
        }
        if let Some(call) = self.call {
            out.extend_from_slice(b",\"call\":\"");
            out.extend_from_slice(&call.written());
            out.push(b'"');
        }
        if let Some(task) = self.task {
            out.extend_from_slice(b",\"task\":");
            serde_json::to_writer(&mut *out, task)?;
        }
        out.push(b'}');
        Ok(())
    }

    fn write_traits(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        let AgentTraits { labels, groups, attributes, .. } = self.traits;
        out.extend_from_slice(b",\"labels\":");
        push_texts(out, labels.iter().map(Label::as_str))?;
        if !groups.is_empty() {
            out.extend_from_slice(b",\"groups\":");
            push_texts(out, groups.iter().map(Label::as_str))?;
        }
        if !attributes.is_empty() {
            out.extend_from_slice(b",\"attributes\":");
            push_members(out, attributes.iter().map(|(name, value)| (name.as_str(), value)))?;
        }
        Ok(())
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde asks for it so
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::parts::AgentTraitsParts;
    use crate::model::{Score, Tier};
    use serde_json::json;

    #[test]
    fn it_is_written_as_it_serialises() {
        let capabilities: Vec<Capability> = vec!["document:read".parse().unwrap(), "email:send".parse().unwrap()];
        let rules: Vec<Arc<str>> = vec!["a \"rule\"".into(), "b".into()];
        let full = AgentTraits::from(AgentTraitsParts {
            labels: vec!["one".parse().unwrap()],
            groups: vec!["two".parse().unwrap(), "three".parse().unwrap()],
            attributes: [("team".to_owned(), json!({"name": "a\nb"}))].into_iter().collect(),
        });
        let constraints: Constraints = serde_json::from_value(json!({"maxRecords": 100, "to": ["a\"b"]})).unwrap();
        let limits: Vec<LimitUse> = Vec::new();
        let by = json!({ "by": "ann" });
        for (some, traits, constraints) in [
            (0, AgentTraits::default(), Constraints::new()),
            (1, full.clone(), constraints.clone()),
            (2, full, constraints),
        ] {
            let detail = EvidenceDetail {
                granted_capabilities: &capabilities[..some],
                denied_capabilities: &capabilities[some..],
                constraints: &constraints,
                risk_level: RiskLevel::High,
                policy_digest: Digest::new([9; 32]),
                rules: &rules[..some],
                trust_snapshot: TrustSnapshot::new(Score::saturating(700), Tier::T4),
                traits: &traits,
                agent_state: AgentState::Suspended,
                stop: (some > 0).then(|| KillSwitchId::new(Timestamp::from_millis(9), 9)),
                now: Timestamp::from_millis(1_800_000_000_123),
                limits: &limits,
                earns: RiskLevel::Medium,
                masked: some as u64,
                reviewers: ["ann", "b\"c"][..some].to_vec(),
                resolution: (some > 0).then_some(&by),
                grant: (some > 0).then(|| PreApprovalId::new(Timestamp::from_millis(7), 7)),
                denial_class: (some > 0).then_some(DenialClass::Limit),
                call: (some > 0).then(|| Digest::new([7; 32])),
                task: (some > 0).then_some(&by),
            };
            let mut written = Vec::new();
            detail.write(&mut written).unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), serde_json::to_string(&detail).unwrap());
        }
    }
}
