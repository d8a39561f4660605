//! The way of a decision: intent -> risk -> policies -> verdict -> record.

use std::borrow::Cow;
use std::time::Instant;

use serde_json::{Map, Value};

use super::detail::EvidenceDetail;
use super::pending::PendingEnforcement;
use super::{Governor, risk};
use crate::model::{
    AgentState, Alert, AlertKind, Digest, Enforcement, Error, InputEnforcement, Intent, IntentId, RiskLevel, Timestamp,
};
use crate::parse::Parsed;
use crate::policy::{Meter, PolicyRequest, PolicySet, PolicyVerdict};
use crate::proof::{Committed, DecisionDraft, encode_evidence};
use crate::trust::{AgentRecord, Facts};

impl Governor {
    /// Decides on an intent and records the decision.
    ///
    /// Comes back when the record is as durable as the governor was built to
    /// make it. The risk that counts is the higher of the intent's own and the
    /// least that its action and capabilities imply.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidIntent`], [`Error::AgentNotFound`], [`Error::PayloadTooLarge`];
    /// [`Error::Policy`] when the decision hangs on a condition that failed;
    /// [`Error::StorageUnavailable`] or [`Error::ChainBroken`] when the decision
    /// cannot be recorded. After any error nothing is allowed.
    pub fn enforce(&self, intent: &Intent) -> Result<Enforcement, Error> {
        let started = Instant::now();
        intent.check()?;
        let enforcement = self.decide(intent, Said::ByCaller)?;
        self.inner.latency.add(started.elapsed());
        Ok(enforcement)
    }

    /// Decides on an intent like [`Governor::enforce`], without waiting for the
    /// disk: what comes back can be waited for, polled or awaited, and shows the
    /// verdict once its record is as durable as the governor was built to make it.
    /// It may wait for room while the queue to the disk is full. A task that waits is
    /// woken by the thread that writes: its waker must not block or decide by itself,
    /// as no executor's does.
    ///
    /// # Errors
    ///
    /// Those of [`Governor::enforce`]; what goes wrong later is told by what comes back.
    pub fn enforce_pending(&self, intent: &Intent) -> Result<PendingEnforcement, Error> {
        let started = Instant::now();
        intent.check()?;
        let (enforcement, committed) = self.decide_in_order(intent, Said::ByCaller)?;
        self.inner.latency.add(started.elapsed());
        let ticket = self.inner.log.ticket(committed.sequence, committed.risk);
        Ok(PendingEnforcement::new(enforcement, ticket))
    }

    /// Parses an action request and decides on it, in one.
    ///
    /// # Errors
    ///
    /// Those of [`Governor::parse`] and of [`Governor::enforce`].
    pub fn enforce_input(&self, agent_id: &str, input: &str) -> Result<InputEnforcement, Error> {
        self.enforce_input_with(agent_id, input, &Map::new())
    }

    /// Like [`Governor::enforce_input`], with a context of the caller's.
    ///
    /// # Errors
    ///
    /// Those of [`Governor::parse_with`] and of [`Governor::enforce`].
    pub fn enforce_input_with(
        &self,
        agent_id: &str,
        input: &str,
        context: &Map<String, Value>,
    ) -> Result<InputEnforcement, Error> {
        let started = Instant::now();
        let parsed = self.parsed(agent_id, input, context)?;
        self.inner.inputs.remember(parsed.result.intent.id, input);
        let enforcement = self.decide(&parsed.result.intent, Said::of(&parsed))?;
        self.inner.latency.add(started.elapsed());
        Ok(InputEnforcement { enforcement, parse: parsed.result })
    }

    /// The decision on an intent that was checked.
    fn decide(&self, intent: &Intent, said: Said) -> Result<Enforcement, Error> {
        let (enforcement, committed) = self.decide_in_order(intent, said)?;
        self.inner.log.settle_decision(committed.sequence, committed.risk)?;
        Ok(enforcement)
    }

    /// The decision, in order and not waited for. Where the policies fail, somebody is told.
    fn decide_in_order(&self, intent: &Intent, said: Said) -> Result<(Enforcement, Committed), Error> {
        let decided = self.decide_and_record(intent, said);
        if let Err(Error::Policy { message, .. }) = &decided {
            let alert = Alert::new(AlertKind::PolicyError, RiskLevel::High, intent.agent_id.clone(), message.clone());
            self.raise(alert, message, self.inner.clock.now());
        }
        decided
    }

    fn decide_and_record(&self, intent: &Intent, said: Said) -> Result<(Enforcement, Committed), Error> {
        let cell = self.acting(&intent.agent_id).map_err(|error| self.inner.log.refusal().unwrap_or(error))?;
        let now = self.inner.clock.now();
        let intent = self.completed(intent, now);

        // Held until the record is in order: the trust that it shows is the trust that was in force.
        let agent = cell.read();
        let policies = self.inner.policies.load();
        let request = self.request(&intent, &agent, said, now);
        let mut desk = self.inner.limits.desk(now);
        let verdict = verdict(&policies, &request, &agent, &mut desk)?;
        let committed = self.record(&request, &verdict, policies.digest(), agent.state)?;
        desk.reserve(&verdict.charges, committed.sequence, committed.at);
        drop(desk);
        let enforcement = Enforcement {
            decision: verdict.decision,
            reasoning: verdict.reasoning,
            granted_capabilities: verdict.granted,
            denied_capabilities: verdict.denied,
            constraints: verdict.constraints,
            proof_id: committed.proof_id,
            trust_snapshot: request.trust,
        };
        let shadow = self.inner.shadow.load();
        let difference = shadow
            .as_ref()
            .filter(|_| agent.state == AgentState::Active)
            .and_then(|shadow| shadow.look(&request, &enforcement));
        drop(agent);

        if let Some((alert, subject)) = difference {
            self.raise(alert, &subject, now);
        }
        Ok((enforcement, committed))
    }

    /// The intent with an id and a time, where it was built without.
    fn completed<'a>(&self, intent: &'a Intent, now: Timestamp) -> Cow<'a, Intent> {
        if intent.id.is_some() && intent.timestamp.is_some() {
            return Cow::Borrowed(intent);
        }
        let mut intent = intent.clone();
        intent.id.get_or_insert_with(|| IntentId::new(now, self.inner.entropy.bits()));
        intent.timestamp.get_or_insert(now);
        Cow::Owned(intent)
    }

    pub(super) fn request<'a>(
        &self,
        intent: &'a Intent,
        agent: &'a AgentRecord,
        said: Said,
        now: Timestamp,
    ) -> PolicyRequest<'a> {
        PolicyRequest {
            intent,
            risk: match said {
                Said::ByCaller => risk::effective_risk(&self.inner.parser, &self.inner.action_floors, intent),
                Said::ByOperator => intent.risk_level,
            },
            trust: self.inner.trust_model.snapshot(&agent.trust, Facts { ceiling: None, now }),
            traits: &agent.traits,
            now,
        }
    }

    /// Puts the decision in order, with its evidence.
    fn record(
        &self,
        request: &PolicyRequest<'_>,
        verdict: &PolicyVerdict,
        policy_digest: Digest,
        agent_state: AgentState,
    ) -> Result<Committed, Error> {
        let internal = |what: &str| Error::Internal { message: what.to_owned() };
        let kept = self.kept(request.intent)?;
        let bits = self.inner.entropy.bits();
        let detail = EvidenceDetail {
            granted_capabilities: &verdict.granted,
            denied_capabilities: &verdict.denied,
            constraints: &verdict.constraints,
            risk_level: request.risk,
            policy_digest,
            rules: &verdict.rules,
            trust_snapshot: request.trust,
            traits: request.traits,
            agent_state,
            now: request.now,
            limits: &verdict.limits,
            masked: kept.count,
        };
        let charges: Vec<_> = verdict.charges.iter().map(|charge| (charge.counter.clone(), charge.amount)).collect();
        let intent = |out: &mut Vec<u8>| match &kept.masked {
            Some(masked) => serde_json::to_writer(out, masked),
            None => request.intent.write(out),
        };
        let evidence = encode_evidence(bits, intent, |out| detail.write(out), &charges, kept.input.as_ref())
            .map_err(|_| internal("the evidence does not serialise"))?;
        let draft = DecisionDraft {
            entity: request.intent.agent_id.clone(),
            intent: request.intent.id.ok_or_else(|| internal("an intent without an id"))?,
            decision: verdict.decision,
            reasoning: kept.masked_in(&verdict.reasoning),
            trust: request.trust,
            risk: request.risk,
            evidence,
            random: random_part(self.inner.entropy.bits()),
        };
        self.inner.log.decide(request.now, draft)
    }
}

/// Whose word the risk of an intent is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Said {
    /// A caller's or the parser's: never below what the action and the capabilities imply.
    ByCaller,
    /// An operator's, who overrode the tool that is called: as it stands.
    ByOperator,
}

impl Said {
    pub(super) const fn of(parsed: &Parsed) -> Self {
        if parsed.is_set { Self::ByOperator } else { Self::ByCaller }
    }
}

/// What the policies say; an agent that may not act is denied without them.
pub(super) fn verdict(
    policies: &PolicySet,
    request: &PolicyRequest<'_>,
    agent: &AgentRecord,
    meter: &mut dyn Meter,
) -> Result<PolicyVerdict, Error> {
    if agent.state == AgentState::Active {
        return policies.evaluate_with(request, meter);
    }
    Ok(PolicyVerdict::of_no_rule(
        &request.intent.required_capabilities,
        format!("Denied: agent {} is {}; only an operator can change that.", agent.agent_id, agent.state),
    ))
}

/// 32 of 128 random bits.
fn random_part(bits: u128) -> u32 {
    let [a, b, c, d, ..] = bits.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}
