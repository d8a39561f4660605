//! What would be decided, with nothing recorded and nothing counted.

use std::fmt;

use serde::Serialize;

use super::Governor;
use super::decide::{Said, verdict};
use crate::model::{Capability, Constraints, Decision, Digest, Error, Intent, RiskLevel, TrustSnapshot};
use crate::policy::{LimitUse, PolicyVerdict, RuleTrace};

/// What would be decided on an intent now.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Preview {
    /// What would be decided.
    pub decision: Decision,
    /// Why, in words.
    pub reasoning: String,
    /// What would be granted.
    pub granted_capabilities: Vec<Capability>,
    /// What would be refused.
    pub denied_capabilities: Vec<Capability>,
    /// Limits on what would be granted.
    pub constraints: Constraints,
    /// Whom an escalation would go to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<String>,
    /// How the limits stand that the deciding rules have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitUse>,
    /// The risk that counts.
    pub risk_level: RiskLevel,
    /// The agent's trust now.
    pub trust_snapshot: TrustSnapshot,
    /// The digest of the policy set.
    pub policy_digest: Digest,
}

/// What would be decided on an intent, and why, rule by rule.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Explanation {
    /// What would be decided.
    #[serde(flatten)]
    pub preview: Preview,
    /// Every rule of the set: whether it matched, and why not.
    pub rules: Vec<RuleTrace>,
}

/// For people: the decision with its reason, then a line a rule.
///
/// ```
/// # use rulekeep::{Agent, Governor, Intent, RiskLevel};
/// # let governor = Governor::builder().open_in_memory()?;
/// # governor.register_agent(Agent::new("a"))?;
/// let intent = Intent::new("a", "send_secret", RiskLevel::Low, ["credential:send"])?;
/// let text = governor.explain(&intent)?.to_string();
/// assert!(text.starts_with("DENY: ") && text.contains("secrets-stay"));
/// # Ok::<(), rulekeep::Error>(())
/// ```
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.preview.decision, self.preview.reasoning)?;
        for rule in &self.rules {
            let mark = match (rule.decided, rule.matched) {
                (true, _) => "decides",
                (false, true) => "matches",
                (false, false) => "",
            };
            writeln!(f, "  line {:>4}  {mark:<8} {} {:<32} {}", rule.line, rule.effect, rule.rule, rule.why)?;
        }
        Ok(())
    }
}

impl Governor {
    /// What would be decided on an intent now: nothing is recorded, no limit is
    /// counted, and no agent is registered; one that would be, at its first
    /// request, is taken for the newcomer that it would become. An agent can plan
    /// by it.
    ///
    /// ```
    /// use rulekeep::{Agent, Decision, Governor, Intent, RiskLevel};
    ///
    /// let governor = Governor::builder().open_in_memory()?;
    /// governor.register_agent(Agent::new("a"))?;
    /// let intent = Intent::new("a", "transfer_funds", RiskLevel::High, ["payment:transfer"])?;
    /// assert_ne!(governor.preview(&intent)?.decision, Decision::Allow);
    /// # Ok::<(), rulekeep::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Governor::enforce`], storage aside.
    pub fn preview(&self, intent: &Intent) -> Result<Preview, Error> {
        self.look_ahead(intent, |preview, _| preview)
    }

    /// Like [`Governor::preview`], and says of every rule why it matched or did not.
    ///
    /// # Errors
    ///
    /// Those of [`Governor::preview`].
    pub fn explain(&self, intent: &Intent) -> Result<Explanation, Error> {
        self.look_ahead(intent, |preview, rules| Explanation { preview, rules: rules() })
    }

    fn look_ahead<T>(
        &self,
        intent: &Intent,
        tell: impl FnOnce(Preview, &mut dyn FnMut() -> Vec<RuleTrace>) -> T,
    ) -> Result<T, Error> {
        intent.check()?;
        let now = self.inner.clock.now();
        let agent = match self.registered(&intent.agent_id) {
            Err(Error::AgentNotFound { .. }) if self.inner.auto_register => {
                super::agents::newcomer(&intent.agent_id, now)
            }
            found => found?.read().clone(),
        };
        let policies = self.inner.policies.load();
        let request = self.request(intent, &agent, Said::ByCaller, now);
        let mut desk = self.inner.limits.window(now);
        let PolicyVerdict { decision, reasoning, granted, denied, constraints, reviewer, limits, .. } =
            verdict(&policies, &request, &agent, &mut desk)?;
        let preview = Preview {
            decision,
            reasoning,
            granted_capabilities: granted,
            denied_capabilities: denied,
            constraints,
            reviewer: reviewer.map(|reviewer| reviewer.to_string()),
            limits,
            risk_level: request.risk,
            trust_snapshot: request.trust,
            policy_digest: policies.digest(),
        };
        Ok(tell(preview, &mut || policies.explain(&request, &mut desk)))
    }
}
