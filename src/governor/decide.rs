//! The steps of a decision: intent, risk, policies, verdict, record.

use crate::model::parts::EnforcementParts;
use crate::model::parts::InputEnforcementParts;
use std::borrow::Cow;
use std::time::Instant;

use serde_json::Value;

use super::detail::EvidenceDetail;
use super::kill_switch::{Denial, KillSwitchTable};
use super::pending::PendingEnforcement;
use super::permit::is_low_read;
use super::shared_limits::Taking;
use super::tasks::Under;
use super::{Governor, risk};
use crate::model::{
    ANYBODY, AgentState, Alert, AlertKind, Decision, DenialClass, Digest, Enforcement, Error, GrantSource, Input,
    InputEnforcement, Intent, IntentId, IntentStamp, InvalidValue, PreApprovalId, ProofId, RiskLevel, Timestamp,
};
use crate::parse::Parsed;
use crate::policy::{Charge, Meter, PolicyRequest, PolicySet, PolicyVerdict};
use crate::proof::{Committed, DecisionDraft, Evidence, KeptInput, encode_evidence};
use crate::telemetry::Work;
use crate::trust::{AgentCell, AgentRecord};

impl Governor {
    /// Decides on an intent and records the decision.
    ///
    /// Returns when the record is as durable as [`GovernorBuilder::durability`](crate::GovernorBuilder::durability)
    /// requires. The effective risk is the higher of the intent's risk level and the risk floor of its action and
    /// capabilities.
    ///
    /// ```
    /// use rulekeep::{Agent, Decision, Governor, Intent, RiskLevel, Tier};
    ///
    /// let governor = Governor::builder().open_in_memory()?;
    /// governor.agents().register(Agent::new("support-1").at_tier(Tier::T4))?;
    /// let intent = Intent::new("support-1", "read_document", RiskLevel::Low, ["document:read"])?;
    /// assert_eq!(governor.enforce(&intent)?.decision, Decision::Allow);
    /// # Ok::<(), rulekeep::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidIntent`], [`Error::AgentNotFound`], [`Error::PayloadTooLarge`]; [`Error::Conflict`] when another
    /// request had the same `callId`; [`Error::PolicyFailed`] when the decision depends on a condition that failed;
    /// [`Error::StorageUnavailable`] or [`Error::ChainBroken`] when the decision cannot be recorded. After any error
    /// the action is not allowed.
    pub fn enforce(&self, intent: &Intent) -> Result<Enforcement, Error> {
        self.enforce_from(intent, RiskSource::Caller)
    }

    pub(super) fn enforce_from(&self, intent: &Intent, source: RiskSource) -> Result<Enforcement, Error> {
        let started = Instant::now();
        Work::enforce().done_by(|work| {
            intent.check()?;
            work.note_intent(intent);
            let enforcement = self.decide(intent, source)?;
            self.record_verdict(work, started, &enforcement);
            Ok(enforcement)
        })
    }

    /// Decides on an intent like [`Governor::enforce`], without waiting for the disk. The result can be awaited or
    /// polled, and yields the verdict once its record is durable.
    ///
    /// The call may wait for room while the queue to the disk is full. The writer thread wakes the waiting task, so its
    /// waker must not block or make decisions itself; no executor's does.
    ///
    /// # Errors
    ///
    /// The errors of [`Governor::enforce`]; the result reports errors that occur later.
    pub fn enforce_pending(&self, intent: &Intent) -> Result<PendingEnforcement, Error> {
        let started = Instant::now();
        let (enforcement, committed) = Work::enforce().done_by(|work| {
            intent.check()?;
            work.note_intent(intent);
            let decided = self.decide_in_order(intent, RiskSource::Caller, Under::Policies)?;
            // A verdict that is not on disk yet is not exported as telemetry.
            self.record_latency(started);
            Ok(decided)
        })?;
        let ticket = self.inner.log.ticket(committed.sequence, committed.risk);
        Ok(PendingEnforcement::new(enforcement, ticket))
    }

    /// Parses a request and decides on it in one call.
    ///
    /// # Errors
    ///
    /// The errors of [`Governor::parse`] and of [`Governor::enforce`].
    pub fn enforce_input<'a>(&self, agent_id: &str, input: impl Into<Input<'a>>) -> Result<InputEnforcement, Error> {
        let input = input.into();
        let started = Instant::now();
        Work::enforce().done_by(|work| {
            let parsed = self.parsed(agent_id, input)?;
            work.note_intent(&parsed.result.intent);
            let enforcement = self.decide(&parsed.result.intent, RiskSource::of(&parsed))?;
            self.record_verdict(work, started, &enforcement);
            Ok(InputEnforcement::from(InputEnforcementParts { enforcement, parse: parsed.result }))
        })
    }

    /// Decides on a checked intent and waits for the commit.
    fn decide(&self, intent: &Intent, source: RiskSource) -> Result<Enforcement, Error> {
        let (enforcement, committed) = self.decide_in_order(intent, source, Under::Policies)?;
        self.inner.log.settle_decision(committed.sequence, committed.risk)?;
        Ok(enforcement)
    }

    /// Decides and enqueues the decision, without waiting for the commit. Raises an alert if the policies fail.
    pub(super) fn decide_in_order(
        &self,
        intent: &Intent,
        source: RiskSource,
        under: Under<'_>,
    ) -> Result<(Enforcement, Committed), Error> {
        let decided = self.decide_and_record(intent, source, under);
        if let Err(Error::PolicyFailed { message, proof_id }) = &decided {
            let alert =
                Alert::new(AlertKind::PolicyError, RiskLevel::High, Some(intent.agent_id.clone()), message.clone())
                    .about(proof_id.iter().copied().collect());
            self.raise(&alert, message, self.inner.clock.now());
        }
        decided
    }

    fn decide_and_record(
        &self,
        intent: &Intent,
        source: RiskSource,
        under: Under<'_>,
    ) -> Result<(Enforcement, Committed), Error> {
        let cell = self.acting(&intent.agent_id).map_err(|error| self.inner.log.refusal().unwrap_or(error))?;
        let now = self.inner.clock.now();
        self.inner.clock.check()?;
        let intent = Self::named_by_call(intent)?;
        let intent = match source {
            RiskSource::Caller => self.inner.inputs.bound(intent)?,
            RiskSource::Parse => self.inner.inputs.parsed(intent)?,
            RiskSource::Parser | RiskSource::Operator => intent,
        };
        let stamp = IntentStamp {
            id: Some(intent.id.unwrap_or_else(|| IntentId::new(now, self.inner.entropy.bits()))),
            timestamp: intent.timestamp.or(Some(now)),
        };
        let (retry_of, call) = (self.retried(&intent)?, self.noted_call(&intent, stamp.id, now)?);
        let origin = Origin { stamp, retry_of, call };
        let (mut now, mut taking) = (now, self.taking());
        loop {
            match self.attempt(&cell, &intent, origin, source, under, now, &mut taking)? {
                Attempt::Done(decided) => return Ok(decided),
                Attempt::Stopped => {}
                Attempt::Missing(uses) => {
                    taking.take(uses, &stamp.id.map(|id| id.to_string()).unwrap_or_default());
                    now = self.inner.clock.now();
                }
            }
        }
    }

    /// One attempt to decide.
    #[expect(clippy::too_many_arguments, reason = "what one decision is made of")]
    fn attempt(
        &self,
        cell: &AgentCell,
        intent: &Intent,
        origin: Origin,
        source: RiskSource,
        under: Under<'_>,
        now: Timestamp,
        taking: &mut Taking<'_>,
    ) -> Result<Attempt<(Enforcement, Committed)>, Error> {
        // Held until the record is enqueued, so that the trust it shows was in force.
        let agent = cell.read();
        // INVARIANT: read before anything else, so that a kill switch set later has another epoch.
        let stops = self.inner.stops.load();
        let policies = self.inner.policies.load();
        let mut request = self.request(intent, &agent, source, now);
        if under.raises_risk() {
            request.risk = request.risk.raised();
        }
        let unpermitted = self.unpermitted(request.risk, &intent.required_capabilities, now);
        let is_unpermitted = unpermitted.is_some();
        let mut meter = self.inner.limits.meter(now, taking);
        let judged = match under {
            Under::Opening(opening) => Ok(halted(&request, &agent, &stops, unpermitted)
                .unwrap_or_else(|| opening.verdict(&request.intent.required_capabilities))),
            Under::Policies | Under::Task(_) | Under::Answer(_) => {
                verdict(&policies, &request, &agent, &stops, unpermitted, &mut meter)
            }
        };
        let (mut verdict, failure) = match judged {
            // Recorded as a denial, so that the list of denials is complete.
            Err(Error::PolicyFailed { message, .. }) => {
                let why = format!("Denied: POLICY_ERROR: {message}.");
                (PolicyVerdict::of_no_rule(&intent.required_capabilities, why), Some(message))
            }
            verdict => (verdict?, None),
        };
        let by_mandate = under.limit(&mut verdict, &agent, now);
        // Set only for denials. A kill switch causes nothing but denials.
        let denial = if verdict.decision == Decision::Deny { stops.denial(&agent) } else { None };
        let class = (verdict.decision == Decision::Deny).then(|| match denial {
            _ if failure.is_some() => DenialClass::Error,
            Some(Denial::KillSwitch(_)) => DenialClass::KillSwitch,
            Some(Denial::Suspending) => DenialClass::Suspended,
            None if agent.state != AgentState::Active => DenialClass::Suspended,
            None if is_unpermitted => DenialClass::NoPermit,
            None => by_mandate.unwrap_or_else(|| policies.denial_class(&request, &verdict)),
        });
        let is_denied = class.is_some_and(|class| {
            use DenialClass::{Error, KillSwitch, NoPermit, Suspended};
            !matches!(class, Error | KillSwitch | NoPermit | Suspended)
        });
        let mut grant = None;
        // A pre-approval is not part of what the user asked for.
        if verdict.decision == Decision::Escalate && under.is_inside() {
            (verdict, grant) = self.agreed_beforehand(&request, verdict, policies.digest(), &mut meter);
        }
        if verdict.decision == Decision::Escalate {
            verdict = self.asked_within_bounds(&request, verdict, under);
        }
        if let Some(uses) = taking.missing(&verdict.charges) {
            return Ok(Attempt::Missing(uses));
        }
        let record = Recording {
            request: &request,
            verdict: &verdict,
            policy_digest: policies.digest(),
            agent: &agent,
            origin,
            stored: None,
            resolution: None,
            grant,
            denial,
            class,
            under,
        };
        let Some(committed) = self.record(&record, stops.epoch())? else { return Ok(Attempt::Stopped) };
        meter.reserve(&verdict.charges, committed.proof_id.sequence(), committed.at);
        drop(meter);
        taking.charge(&verdict.charges);
        let enforcement = Enforcement::from(EnforcementParts {
            decision: verdict.decision,
            reasoning: verdict.reasoning,
            granted_capabilities: verdict.granted,
            denied_capabilities: verdict.denied,
            constraints: verdict.constraints,
            proof_id: committed.proof_id,
            trust_snapshot: request.trust,
            denial_class: None,
            retryable: None,
            source: GrantSource::default(),
        })
        .refused_by(class);
        let is_low_read = is_low_read(request.risk, &intent.required_capabilities);
        let enforcement = self.granting(enforcement, &intent.agent_id, now, is_low_read);
        if let Some(message) = failure {
            drop(agent);
            self.inner.log.settle_decision(committed.sequence, committed.risk)?;
            return Err(Error::PolicyFailed { message, proof_id: Some(committed.proof_id) });
        }
        let shadow = self.inner.policies.shadow.load();
        let difference = shadow
            .as_ref()
            // The shadow set has no say in what a pre-approval covers.
            .filter(|_| {
                agent.state == AgentState::Active && !is_unpermitted && grant.is_none() && under.is_by_policies()
            })
            .and_then(|shadow| shadow.look(&request, &enforcement));
        drop(agent);

        if let Some((alert, subject)) = difference {
            self.raise(&alert, &subject, now);
        }
        if is_denied {
            self.count_denial(cell, &intent.agent_id, committed.risk, now);
        }
        Ok(Attempt::Done((enforcement, committed)))
    }

    /// The intent with the id that follows from its idempotency key, if it has a key but no id.
    fn named_by_call(intent: &Intent) -> Result<Cow<'_, Intent>, Error> {
        Ok(match Self::id_of_call(intent)?.filter(|_| intent.id.is_none()) {
            Some(id) => {
                let mut named = intent.clone();
                named.id = Some(id);
                Cow::Owned(named)
            }
            None => Cow::Borrowed(intent),
        })
    }

    pub(super) fn request<'a>(
        &self,
        intent: &'a Intent,
        agent: &'a AgentRecord,
        source: RiskSource,
        now: Timestamp,
    ) -> PolicyRequest<'a> {
        PolicyRequest {
            intent,
            risk: match source {
                RiskSource::Caller | RiskSource::Parse | RiskSource::Parser => {
                    risk::effective_risk(&self.inner.parser, &self.inner.action_floors, intent)
                }
                RiskSource::Operator => intent.risk_level,
            },
            trust: self.trust_of(agent, now),
            traits: agent.traits(),
            now,
        }
    }

    /// The decision that the intent says it retries: one of the same agent.
    fn retried(&self, intent: &Intent) -> Result<Option<ProofId>, Error> {
        let Some(value) = intent.context.get("retryOf") else { return Ok(None) };
        let refused = |expected: String| Error::intent("context.retryOf", expected);
        let earlier: ProofId = value
            .as_str()
            .ok_or_else(|| refused("expected the id of a proof record, as a string".to_owned()))?
            .parse()
            .map_err(|error: InvalidValue| refused(error.to_string()))?;
        match self.inner.log.facts(&earlier) {
            Ok(facts) if facts.entity == intent.agent_id => Ok(Some(earlier)),
            // The archive is known, but not the agent of the record.
            Err(Error::ProofElsewhere { .. }) => Ok(Some(earlier)),
            Ok(_) | Err(Error::ProofNotFound { .. }) => {
                Err(refused(format!("{earlier} is not a record of this agent")))
            }
            Err(error) => Err(error),
        }
    }

    /// Enqueues the decision with its evidence; `None` if a kill switch of another epoch came first.
    fn record(&self, recording: &Recording<'_>, epoch: u64) -> Result<Option<Committed>, Error> {
        if recording.verdict.decision == Decision::Escalate {
            return self.ask(recording, epoch);
        }
        let draft = self.draft(recording)?;
        self.inner.log.queue().decide(recording.request.now, draft, epoch)
    }

    /// The record to write, with its evidence.
    pub(super) fn draft(&self, recording: &Recording<'_>) -> Result<DecisionDraft, Error> {
        let &Recording { request, verdict, policy_digest, agent, origin, stored, .. } = recording;
        let internal = |what: &str| Error::internal(what);
        let mut kept = match stored {
            Some(stored) => stored.kept(),
            None => self.kept(request.intent, origin.stamp, verdict.decision == Decision::Escalate)?,
        };
        if let Under::Opening(opening) = recording.under {
            // The mandate is restored from them after a restart.
            kept.input = Some(KeptInput::Text(opening.words.clone()));
        }
        let bits = self.inner.entropy.bits();
        let earns = risk::earned_risk(request.intent, &verdict.granted);
        let detail = EvidenceDetail {
            granted_capabilities: &verdict.granted,
            denied_capabilities: &verdict.denied,
            constraints: &verdict.constraints,
            risk_level: request.risk,
            policy_digest,
            rules: &verdict.rules,
            trust_snapshot: request.trust,
            traits: request.traits,
            agent_state: match recording.denial {
                Some(Denial::Suspending) => agent.state.max(AgentState::Suspended),
                _ => agent.state,
            },
            stop: match recording.denial {
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
            resolution: recording.resolution.as_ref(),
            grant: recording.grant,
            denial_class: recording.class,
            call: origin.call.map(|digest| Evidence::salted_call(bits, digest)),
            task: recording.under.evidence(),
        };
        let charges: Vec<_> = verdict.charges.iter().map(|charge| (charge.counter.clone(), charge.amount)).collect();
        let intent = |out: &mut Vec<u8>| match &kept.masked {
            Some(masked) => serde_json::to_writer(out, masked),
            None => request.intent.write_stamped(origin.stamp, out),
        };
        let buffer = self.inner.log.queue().buffer();
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
            random: random_part(self.inner.entropy.bits()),
        })
    }
}

/// The result of one attempt to decide or to approve.
pub(super) enum Attempt<T> {
    /// The decision is enqueued.
    Done(T),
    /// A kill switch was set before it was enqueued: evaluate again.
    Stopped,
    /// The decision charges these limits of the organisation, whose uses must be taken first.
    Missing(Vec<Charge>),
}

/// The inputs of a decision's record.
pub(super) struct Recording<'a> {
    pub(super) request: &'a PolicyRequest<'a>,
    pub(super) verdict: &'a PolicyVerdict,
    pub(super) policy_digest: Digest,
    pub(super) agent: &'a AgentRecord,
    pub(super) origin: Origin,
    /// The intent as stored with an earlier record of it; otherwise the request's own is stored.
    pub(super) stored: Option<&'a Stored>,
    /// The reviewers' votes behind the decision, if it resolves an escalation.
    pub(super) resolution: Option<Value>,
    /// The pre-approval that covers the decision.
    pub(super) grant: Option<PreApprovalId>,
    /// The kill switch or suspension that caused the denial, if any.
    pub(super) denial: Option<Denial<'a>>,
    /// The cause of a DENY.
    pub(super) class: Option<DenialClass>,
    /// The task that the decision belongs to.
    pub(super) under: Under<'a>,
}

/// The origin of a request, besides its agent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Origin {
    /// The id and timestamp that the intent is recorded with.
    pub(super) stamp: IntentStamp,
    /// The decision that it retries.
    pub(super) retry_of: Option<ProofId>,
    /// The digest of a request with an idempotency key.
    pub(super) call: Option<Digest>,
}

/// An intent as stored in the evidence of a record.
pub(super) struct Stored {
    pub(super) intent: Value,
    /// Number of redacted texts in it.
    pub(super) masked: u64,
}

/// The source of an intent's risk level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RiskSource {
    /// The caller: never below the risk floor, and for a parsed intent never below the parser's level.
    Caller,
    /// An earlier parse, identified by the intent's id; an intent without one is refused.
    Parse,
    /// The parser, in the same call: never below the risk floor.
    Parser,
    /// An operator who overrode the called tool: used as it is.
    Operator,
}

impl RiskSource {
    pub(super) const fn of(parsed: &Parsed) -> Self {
        if parsed.is_set { Self::Operator } else { Self::Parser }
    }
}

/// Evaluates the policies; an agent that may not act, or a governor without its permit, denies without them.
pub(super) fn verdict(
    policies: &PolicySet,
    request: &PolicyRequest<'_>,
    agent: &AgentRecord,
    stops: &KillSwitchTable,
    unpermitted: Option<String>,
    meter: &mut dyn Meter,
) -> Result<PolicyVerdict, Error> {
    halted(request, agent, stops, unpermitted).map_or_else(|| policies.evaluate_with(request, meter), Ok)
}

/// The denial of an agent that may not act, or by a governor that may not decide.
fn halted(
    request: &PolicyRequest<'_>,
    agent: &AgentRecord,
    stops: &KillSwitchTable,
    unpermitted: Option<String>,
) -> Option<PolicyVerdict> {
    let suspended = || {
        (agent.state != AgentState::Active)
            .then(|| format!("Denied: agent {} is {}; only an operator can change that.", agent.agent_id, agent.state))
    };
    let why = stops.over(agent).or_else(suspended).or_else(|| unpermitted.map(|why| format!("Denied: {why}.")))?;
    Some(PolicyVerdict::of_no_rule(&request.intent.required_capabilities, why))
}

/// 32 of 128 random bits.
fn random_part(bits: u128) -> u32 {
    let [a, b, c, d, ..] = bits.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}
