//! What would be decided, with nothing recorded and nothing counted.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};

use super::Governor;
use super::decide::{RiskSource, verdict};
use super::policies::Policies;
use crate::model::{
    AgentState, Capability, Constraints, Decision, Digest, Error, Input, Intent, ParseResult, RiskLevel, Timestamp,
    TrustSnapshot,
};
use crate::policy::{LimitUse, PolicyRequest, PolicySet, PolicyVerdict, RuleTrace};
use crate::trust::AgentRecord;

/// What would be decided on an intent now.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Preview {
    /// What would be decided; DENY where nothing could be, for then nothing is let through.
    pub decision: Decision,
    /// Why nothing can be decided; absent where something can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<PreviewError>,
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
    /// How the limits stand that the deciding rules have. In JSON their amounts are the plain numbers that the
    /// policy document writes.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "in_plain_numbers")]
    #[cfg_attr(feature = "schema", schema(value_type = Vec<PlainLimitUse>))]
    pub limits: Vec<LimitUse>,
    /// The risk that counts.
    pub risk_level: RiskLevel,
    /// The agent's trust now.
    pub trust_snapshot: TrustSnapshot,
    /// The digest of the policy set.
    pub policy_digest: Digest,
    /// The parse of the input, where the request was one.
    #[serde(skip)]
    pub parse: Option<ParseResult>,
}

/// Why nothing can be decided on an intent: [`Governor::enforce`] would fail with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct PreviewError {
    /// The code of the error: `POLICY_ERROR`.
    pub code: &'static str,
    /// Its message.
    pub message: String,
}

/// What would be decided on an intent, and why, rule by rule.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
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

/// A request to look ahead at: an intent, or an input of an agent's.
#[derive(Debug, Clone, Copy)]
pub struct PreviewRequest<'a>(Request<'a>);

#[derive(Debug, Clone, Copy)]
enum Request<'a> {
    Intent(&'a Intent),
    Input(&'a str, Input<'a>),
}

impl<'a> PreviewRequest<'a> {
    /// An action request of an agent's, as [`Governor::enforce_input`] takes it.
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
    /// Tells what would be decided on an intent, or on an input, now: nothing is recorded, no limit is
    /// counted, and no agent is registered; one that would be, at its first
    /// request, is taken for the newcomer that it would become. An agent can plan
    /// by it.
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
    /// Those of [`Governor::enforce`], or of [`Governor::enforce_input`], storage aside.
    pub fn preview<'a>(self, request: impl Into<PreviewRequest<'a>>) -> Result<Preview, Error> {
        self.governor.looking_at(request.into(), |intent, source| Ok(self.governor.look_ahead(intent, source)?.preview))
    }

    /// Tells what [`Policies::preview`] tells, and of every rule why it matched or did not.
    ///
    /// Where a decision would fail with [`Error::Policy`], for it depends on a condition that failed, the
    /// explanation is there all the same: nothing is granted, and [`Preview::error`] says why.
    ///
    /// # Errors
    ///
    /// Those of [`Policies::preview`] but [`Error::Policy`].
    pub fn explain<'a>(self, request: impl Into<PreviewRequest<'a>>) -> Result<Explanation, Error> {
        let mut rules = Vec::new();
        let preview = self.governor.looking_at(request.into(), |intent, source| {
            let explanation = self.governor.explained(intent, source)?;
            rules = explanation.rules;
            Ok(explanation.preview)
        })?;
        Ok(Explanation { preview, rules })
    }
}

impl Governor {
    /// Looks at a request: an intent that is checked first, or what an input is parsed into.
    fn looking_at(
        &self,
        request: PreviewRequest<'_>,
        look: impl FnOnce(&Intent, RiskSource) -> Result<Preview, Error>,
    ) -> Result<Preview, Error> {
        match request.0 {
            Request::Intent(intent) => {
                intent.check()?;
                look(&*self.inner.inputs.bound(Cow::Borrowed(intent))?, RiskSource::Caller)
            }
            Request::Input(agent_id, input) => {
                let parsed = self.parsed(agent_id, input)?;
                let preview = look(&parsed.result.intent, RiskSource::of(&parsed))?;
                Ok(Preview { parse: Some(parsed.result), ..preview })
            }
        }
    }

    fn explained(&self, intent: &Intent, source: RiskSource) -> Result<Explanation, Error> {
        let Ahead { preview, agent, now, policies, .. } = match self.look_ahead(intent, source) {
            Err(error @ Error::Policy { .. }) => self.undecided(intent, source, &error)?,
            ahead => ahead?,
        };
        let request = self.request(intent, &agent, source, now);
        let mut rules = policies.explain(&request, &mut self.inner.limits.window(now));
        let may_act = agent.state == AgentState::Active && self.inner.stops.load().over(&agent).is_none();
        if !may_act || preview.error.is_some() {
            // No policy has a part in what an agent asks that may not act, and none decides where a condition fails.
            rules.iter_mut().for_each(RuleTrace::decides_nothing);
        }
        Ok(Explanation { preview, rules })
    }

    fn undecided(&self, intent: &Intent, source: RiskSource, error: &Error) -> Result<Ahead, Error> {
        let (code, message) = (error.code(), error.to_string());
        let verdict = PolicyVerdict::of_no_rule(&intent.required_capabilities, format!("No decision: {message}."));
        let mut ahead = self.ahead(intent, source, |_, _, _| Ok(verdict))?;
        ahead.preview.error = Some(PreviewError { code, message });
        Ok(ahead)
    }

    fn look_ahead(&self, intent: &Intent, source: RiskSource) -> Result<Ahead, Error> {
        self.ahead(intent, source, |policies, request, agent| {
            let mut meter = self.inner.limits.window(request.now);
            let verdict = verdict(policies, request, agent, &self.inner.stops.load(), &mut meter)?;
            if verdict.decision != Decision::Escalate {
                return Ok(verdict);
            }
            Ok(self.agreed_beforehand(request, verdict, policies.digest(), &mut meter).0)
        })
    }

    fn ahead(
        &self,
        intent: &Intent,
        source: RiskSource,
        decide: impl FnOnce(&PolicySet, &PolicyRequest<'_>, &AgentRecord) -> Result<PolicyVerdict, Error>,
    ) -> Result<Ahead, Error> {
        let now = self.inner.clock.now();
        let agent = match self.registered(&intent.agent_id) {
            Err(Error::AgentNotFound { .. }) if self.inner.auto_register => {
                super::agents::newcomer(&self.inner.trust_model, &intent.agent_id, now)
            }
            found => found?.read().clone(),
        };
        let policies = self.policies().current();
        let request = self.request(intent, &agent, source, now);
        let PolicyVerdict { decision, reasoning, granted, denied, constraints, reviewer, limits, .. } =
            decide(&policies, &request, &agent)?;
        let preview = Preview {
            decision,
            error: None,
            reasoning,
            granted_capabilities: granted,
            denied_capabilities: denied,
            constraints,
            reviewer: reviewer.map(|reviewer| reviewer.to_string()),
            limits,
            risk_level: request.risk,
            trust_snapshot: request.trust,
            policy_digest: policies.digest(),
            parse: None,
        };
        Ok(Ahead { preview, agent, now, policies })
    }
}

/// How a limit stands, its amounts as the policy document writes them.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct PlainLimitUse<'a> {
    /// The rule whose limit it is.
    rule: &'a str,
    /// Whose uses are counted.
    counter: &'a str,
    /// What was used within the window before.
    used: f64,
    /// The most that may be used within a window.
    most: f64,
    /// What this decision asks for; none where the intent does not say how much.
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<f64>,
    /// Whether the decision used it.
    charged: bool,
    /// When the oldest use leaves the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    frees_at: Option<Timestamp>,
}

/// Amounts are counted in millionths; people write and read them in whole ones.
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

/// What a look ahead came to, and what it looked at.
struct Ahead {
    preview: Preview,
    agent: AgentRecord,
    now: Timestamp,
    policies: PolicySet,
}
