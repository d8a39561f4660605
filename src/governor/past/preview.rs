//! Previews of decisions: nothing is recorded, and no rate limit is consumed.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::governor::Past;
use crate::governor::decider::decide::verdict;
use crate::governor::intake::risk::RiskSource;
use crate::governor::rules::policies::Policies;
use crate::model::{
    AgentState, Capability, Constraints, Decision, Digest, Error, Input, Intent, ParseResult, Rewrite, RiskLevel,
    Timestamp, TrustSnapshot,
};
use crate::policy::{LimitUse, PolicyRequest, PolicySet, PolicyVerdict, RuleTrace};
use crate::trust::AgentRecord;

/// A preview of the decision on an intent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Preview {
    /// The decision; DENY if evaluation fails, because nothing is permitted then.
    pub decision: Decision,
    /// The error of a failed evaluation; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<PreviewError>,
    /// A human-readable explanation of the decision.
    pub reasoning: String,
    /// The capabilities that would be granted.
    pub granted_capabilities: Vec<Capability>,
    /// The capabilities that would be denied.
    pub denied_capabilities: Vec<Capability>,
    /// Constraints on the capabilities that would be granted.
    pub constraints: Constraints,
    /// The reviewer an escalation would be assigned to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<String>,
    /// A way to write the request, if it would be denied only for a part that could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<Rewrite>,
    /// The state of the deciding rules' rate limits. In JSON, amounts are plain numbers as in the policy document.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "in_plain_numbers")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<PlainLimitUse>))]
    pub limits: Vec<LimitUse>,
    /// The effective risk of the request.
    pub risk_level: RiskLevel,
    /// The agent's current trust.
    pub trust_snapshot: TrustSnapshot,
    /// The digest of the policy set.
    pub policy_digest: Digest,
    /// The parse result, if the request was a text or tool call.
    #[serde(skip)]
    pub parse: Option<ParseResult>,
}

/// The error with which `Governor::enforce` would fail on the intent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct PreviewError {
    /// The error code, `POLICY_ERROR`.
    pub code: &'static str,
    /// The message of the error.
    pub message: String,
}

/// A preview of the decision on an intent, with a trace of every rule.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Explanation {
    /// The preview of the decision.
    #[serde(flatten)]
    pub preview: Preview,
    /// Every rule of the policy set: whether it matched, and why not.
    pub rules: Vec<RuleTrace>,
}

/// Prints the decision with its reasoning, then one line per rule.
///
/// ```
/// # use rulekeep::{Agent, Governor, Intent, RiskLevel};
/// # let governor = Governor::builder().open_in_memory()?;
/// # governor.agents().register(Agent::new("a"))?;
/// let intent = Intent::new("a", "send_secret", RiskLevel::Low, ["credential:send"])?;
/// let text = governor.policies().explain(&intent)?.to_string();
/// assert!(text.starts_with("DENY: ") && text.contains("secrets-stay"));
/// # Ok::<(), rulekeep::Error>(())
/// ```
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.preview.error {
            Some(error) => writeln!(f, "No decision: {}: {}", error.code, error.message)?,
            None => writeln!(f, "{}: {}", self.preview.decision, self.preview.reasoning)?,
        }
        for rule in &self.rules {
            let mark = match (rule.decided, rule.matched) {
                (true, _) => "decides",
                (false, true) => "matches",
                (false, false) => "",
            };
            let severity = rule.severity.map(|severity| format!(" [severity {severity}]")).unwrap_or_default();
            writeln!(f, "  line {:>4}  {mark:<8} {} {:<32} {}{severity}", rule.line, rule.effect, rule.rule, rule.why)?;
        }
        Ok(())
    }
}

/// A request to preview: an intent, or an agent's input.
#[derive(Debug, Clone, Copy)]
pub struct PreviewRequest<'a>(Request<'a>);

#[derive(Debug, Clone, Copy)]
enum Request<'a> {
    Intent(&'a Intent),
    Input(&'a str, Input<'a>),
}

impl<'a> PreviewRequest<'a> {
    /// An agent's input, as for [`Governor::enforce_input`](crate::Governor::enforce_input).
    pub fn input(agent_id: &'a str, input: impl Into<Input<'a>>) -> Self {
        Self(Request::Input(agent_id, input.into()))
    }
}

impl<'a> From<&'a Intent> for PreviewRequest<'a> {
    fn from(intent: &'a Intent) -> Self {
        Self(Request::Intent(intent))
    }
}

impl Policies<'_> {
    /// Previews the decision on an intent or an input at this moment. Nothing is recorded, no rate limit is consumed
    /// and no agent is registered; with auto-registration, an unknown agent is treated as newly registered. Limits of
    /// the organisation look unused. Agents can use it to plan.
    ///
    /// ```
    /// use rulekeep::preview::PreviewRequest;
    /// use rulekeep::{Agent, Decision, Governor, Intent, RiskLevel};
    ///
    /// let governor = Governor::builder().open_in_memory()?;
    /// governor.agents().register(Agent::new("a"))?;
    /// let intent = Intent::new("a", "transfer_funds", RiskLevel::High, ["payment:transfer"])?;
    /// assert_ne!(governor.policies().preview(&intent)?.decision, Decision::Allow);
    /// let ahead = governor.policies().preview(PreviewRequest::input("a", "Read the news"))?;
    /// assert!(ahead.parse.is_some());
    /// # Ok::<(), rulekeep::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Governor::enforce`](crate::Governor::enforce) or
    /// [`Governor::enforce_input`](crate::Governor::enforce_input), except for storage errors.
    pub fn preview<'a>(self, request: impl Into<PreviewRequest<'a>>) -> Result<Preview, Error> {
        self.inner.past.looking_at(request.into(), |intent, source| {
            Ok(self.inner.here()?.past.look_ahead(intent, source)?.preview)
        })
    }

    /// Like [`Policies::preview`], and explains for every rule why it matched or did not.
    ///
    /// If the decision would fail with [`Error::PolicyFailed`] because a condition failed, the explanation is returned all
    /// the same: nothing is granted, and [`Preview::error`] holds the error.
    ///
    /// # Errors
    ///
    /// The errors of [`Policies::preview`], except [`Error::PolicyFailed`].
    pub fn explain<'a>(self, request: impl Into<PreviewRequest<'a>>) -> Result<Explanation, Error> {
        let mut rules = Vec::new();
        let preview = self.inner.here()?.past.looking_at(request.into(), |intent, source| {
            let explanation = self.inner.past.explained(intent, source)?;
            rules = explanation.rules;
            Ok(explanation.preview)
        })?;
        Ok(Explanation { preview, rules })
    }
}

impl Past {
    /// Previews a request: an intent, which is validated first, or the parse of an input.
    fn looking_at(
        &self,
        request: PreviewRequest<'_>,
        look: impl FnOnce(&Intent, RiskSource) -> Result<Preview, Error>,
    ) -> Result<Preview, Error> {
        match request.0 {
            Request::Intent(intent) => {
                intent.check()?;
                look(&*self.0.intake.inputs.bound(Cow::Borrowed(intent))?, RiskSource::Caller)
            }
            Request::Input(agent_id, input) => {
                let parsed = self.0.intake.parsed(agent_id, input)?;
                let preview = look(&parsed.result.intent, RiskSource::of(&parsed))?;
                Ok(Preview { parse: Some(parsed.result), ..preview })
            }
        }
    }

    fn explained(&self, intent: &Intent, source: RiskSource) -> Result<Explanation, Error> {
        let Ahead { preview, agent, now, policies, .. } = match self.look_ahead(intent, source) {
            Err(error @ Error::PolicyFailed { .. }) => self.undecided(intent, source, &error)?,
            ahead => ahead?,
        };
        let request = self.0.intake.request(intent, &agent, source, now);
        let mut rules = policies.explain(&request, &mut self.0.rules.limits.window(now));
        let may_act = agent.state == AgentState::Active
            && self.0.roster.stops.load().over(&agent).is_none()
            && self.0.roster.unpermitted(request.risk, &intent.required_capabilities, now).is_none();
        if !may_act || preview.error.is_some() {
            // Policies do not decide for an agent that may not act, without a permit, or when a condition fails.
            rules.iter_mut().for_each(RuleTrace::decides_nothing);
        }
        Ok(Explanation { preview, rules })
    }

    fn undecided(&self, intent: &Intent, source: RiskSource, error: &Error) -> Result<Ahead, Error> {
        let (code, message) = (error.code(), error.message());
        let verdict = PolicyVerdict::of_no_rule(&intent.required_capabilities, format!("No decision: {message}."));
        let mut ahead = self.ahead(intent, source, |_, _, _| Ok(verdict))?;
        ahead.preview.error = Some(PreviewError { code, message });
        Ok(ahead)
    }

    fn look_ahead(&self, intent: &Intent, source: RiskSource) -> Result<Ahead, Error> {
        self.ahead(intent, source, |policies, request, agent| {
            let mut meter = self.0.rules.limits.window(request.now);
            let unpermitted = self.0.roster.unpermitted(request.risk, &intent.required_capabilities, request.now);
            let verdict = verdict(policies, request, agent, &self.0.roster.stops.load(), unpermitted, &mut meter)?;
            if verdict.decision != Decision::Escalate {
                return Ok(verdict);
            }
            Ok(self.0.approvals.agreed_beforehand(request, verdict, policies.digest(), &mut meter).0)
        })
    }

    fn ahead(
        &self,
        intent: &Intent,
        source: RiskSource,
        decide: impl FnOnce(&PolicySet, &PolicyRequest<'_>, &AgentRecord) -> Result<PolicyVerdict, Error>,
    ) -> Result<Ahead, Error> {
        let now = self.0.base.clock.now();
        let agent = match self.0.roster.registered(&intent.agent_id) {
            Err(Error::AgentNotFound { .. }) if self.0.roster.auto_register => {
                self.0.roster.newcomer(&intent.agent_id, now)
            }
            found => found?.read().clone(),
        };
        let policies = self.0.rules.policies.load_full();
        let request = self.0.intake.request(intent, &agent, source, now);
        let PolicyVerdict { decision, reasoning, granted, denied, constraints, reviewer, limits, rewrite, .. } =
            decide(&policies, &request, &agent)?;
        let preview = Preview {
            decision,
            error: None,
            reasoning,
            granted_capabilities: granted,
            denied_capabilities: denied,
            constraints,
            reviewer: reviewer.map(|reviewer| reviewer.to_string()),
            rewrite,
            limits,
            risk_level: request.risk,
            trust_snapshot: request.trust,
            policy_digest: policies.digest(),
            parse: None,
        };
        Ok(Ahead { preview, agent, now, policies })
    }
}

/// The state of a rate limit, with amounts as in the policy document.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlainLimitUse<'a> {
    /// The rule that sets the limit.
    rule: &'a str,
    /// The counter, which names the agents whose uses are counted together.
    counter: &'a str,
    /// The amount used within the current window.
    used: f64,
    /// The maximum within a window.
    most: f64,
    /// The amount that this decision needs; `None` if the intent does not state it.
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<f64>,
    /// Whether the decision consumed it.
    charged: bool,
    /// The time the oldest use leaves the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    frees_at: Option<Timestamp>,
}

/// Serializes amounts, counted in millionths, as plain numbers.
fn in_plain_numbers<S: Serializer>(limits: &[LimitUse], serializer: S) -> Result<S::Ok, S::Error> {
    #[expect(clippy::cast_precision_loss, reason = "for people; what is counted stays whole")]
    let plain = |millionths: i64| millionths as f64 / 1e6;
    serializer.collect_seq(limits.iter().map(|limit| PlainLimitUse {
        rule: &limit.rule,
        counter: &limit.counter,
        used: plain(limit.used),
        most: plain(limit.most),
        amount: limit.amount.map(plain),
        charged: limit.charged,
        frees_at: limit.frees_at,
    }))
}

/// A preview with the values it is based on.
struct Ahead {
    preview: Preview,
    agent: AgentRecord,
    now: Timestamp,
    policies: Arc<PolicySet>,
}
