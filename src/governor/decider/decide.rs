//! The steps of a decision: intent, risk, policies, verdict, record.

use std::borrow::Cow;
use std::time::Instant;

use crate::governor::decider::pending::PendingEnforcement;
use crate::governor::intake::risk::RiskSource;
use crate::governor::record::{Attempt, Origin, Recording};
use crate::governor::roster::kill_switch::{Denial, KillSwitchTable};
use crate::governor::roster::permit::is_low_read;
use crate::governor::rules::shared_limits::Taking;
use crate::governor::tasks::Under;
use crate::governor::{Decider, Governor};
use crate::model::parts::{EnforcementParts, InputEnforcementParts};
use crate::model::{
    AgentState, Alert, AlertKind, Decision, DenialClass, Enforcement, Error, GrantSource, Input, InputEnforcement,
    Intent, IntentId, IntentStamp, InvalidValue, ProofId, RETRY_OF, RiskLevel, Timestamp,
};
use crate::policy::{Meter, PolicyRequest, PolicySet, PolicyVerdict};
use crate::proof::Committed;
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
    /// [`Error::StorageUnavailable`] or [`Error::ChainBroken`] when the decision cannot be recorded; [`Error::Withdrawn`]
    /// when it was recorded, but the agent was stopped or the permit ended before the call returned. After any error the
    /// action is not allowed.
    pub fn enforce(&self, intent: &Intent) -> Result<Enforcement, Error> {
        self.inner.here()?.decider.enforce(intent, RiskSource::Caller)
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
        self.inner.here()?.decider.enforce_pending(intent)
    }

    /// Parses a request and decides on it in one call.
    ///
    /// # Errors
    ///
    /// The errors of [`Governor::parse`] and of [`Governor::enforce`].
    pub fn enforce_input<'a>(&self, agent_id: &str, input: impl Into<Input<'a>>) -> Result<InputEnforcement, Error> {
        self.inner.here()?.decider.enforce_input(agent_id, input.into())
    }
}

impl Decider {
    pub(crate) fn enforce_pending(&self, intent: &Intent) -> Result<PendingEnforcement, Error> {
        let started = Instant::now();
        Work::enforce().done_by(|work| {
            intent.check()?;
            work.note_intent(intent);
            self.decide_pending(started, intent, RiskSource::Caller)
        })
    }

    /// Decides on a checked intent without waiting for the commit. A verdict that is not on disk yet is not exported as
    /// telemetry.
    pub(crate) fn decide_pending(
        &self,
        started: Instant,
        intent: &Intent,
        source: RiskSource,
    ) -> Result<PendingEnforcement, Error> {
        let (enforcement, committed) = self.decide_in_order(intent, source, Under::Policies)?;
        self.record_latency(started);
        let ticket = self.base.log.ticket(committed.sequence, committed.risk);
        Ok(PendingEnforcement::new(enforcement, ticket, &self.roster))
    }

    pub(crate) fn enforce_input(&self, agent_id: &str, input: Input<'_>) -> Result<InputEnforcement, Error> {
        let started = Instant::now();
        Work::enforce().done_by(|work| {
            let parsed = self.intake.parsed(agent_id, input)?;
            work.note_intent(&parsed.result.intent);
            let enforcement = self.decide(&parsed.result.intent, RiskSource::of(&parsed), Under::Policies)?;
            self.record_verdict(work, started, &enforcement);
            Ok(InputEnforcement::from(InputEnforcementParts { enforcement, parse: parsed.result }))
        })
    }

    pub(crate) fn enforce(&self, intent: &Intent, source: RiskSource) -> Result<Enforcement, Error> {
        let started = Instant::now();
        Work::enforce().done_by(|work| {
            intent.check()?;
            work.note_intent(intent);
            let enforcement = self.decide(intent, source, Under::Policies)?;
            self.record_verdict(work, started, &enforcement);
            Ok(enforcement)
        })
    }

    /// Decides on a checked intent and waits for the commit.
    pub(crate) fn decide(&self, intent: &Intent, source: RiskSource, under: Under<'_>) -> Result<Enforcement, Error> {
        let (enforcement, committed) = self.decide_in_order(intent, source, under)?;
        self.settled(enforcement, &committed)
    }

    /// Waits for the commit of a decision, and returns the verdict if it is still in force.
    pub(crate) fn settled(&self, enforcement: Enforcement, committed: &Committed) -> Result<Enforcement, Error> {
        self.base.log.settle_decision(committed.sequence, committed.risk)?;
        self.roster.handed_out(enforcement)
    }

    /// Decides and enqueues the decision, without waiting for the commit. Raises an alert if the policies fail.
    pub(crate) fn decide_in_order(
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
            self.rules.raise(&alert, message, self.base.clock.now());
        }
        decided
    }

    fn decide_and_record(
        &self,
        intent: &Intent,
        source: RiskSource,
        under: Under<'_>,
    ) -> Result<(Enforcement, Committed), Error> {
        let cell = self.roster.acting(&intent.agent_id)?;
        let now = self.base.clock.now();
        self.base.clock.check()?;
        let intent = Self::named_by_call(intent)?;
        let intent = match source {
            RiskSource::Caller => self.intake.inputs.bound(intent)?,
            RiskSource::Parse => self.intake.inputs.parsed(intent)?,
            RiskSource::Parser | RiskSource::Operator => intent,
        };
        let stamp = IntentStamp {
            id: Some(intent.id.unwrap_or_else(|| IntentId::new(now, self.base.entropy.bits()))),
            timestamp: intent.timestamp.or(Some(now)),
        };
        let (retry_of, call) = (self.retried(&intent)?, self.noted_call(&intent, stamp.id, now)?);
        let origin = Origin { stamp, retry_of, call };
        let (mut now, mut taking) = (now, self.rules.taking());
        loop {
            match self.attempt(&cell, &intent, origin, source, under, now, &mut taking)? {
                Attempt::Done(decided) => return Ok(decided),
                Attempt::Stopped => {}
                Attempt::Missing(uses) => {
                    taking.take(uses, &stamp.id.map(|id| id.to_string()).unwrap_or_default());
                    now = self.base.clock.now();
                }
            }
        }
    }

    /// One attempt to decide.
    #[expect(clippy::too_many_arguments, clippy::too_many_lines, reason = "what one decision is made of")]
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
        // INVARIANT: read before what it counts, so that a later intervention is noticed before the verdict is handed out.
        let interventions = self.roster.stops.interventions().count();
        // Held until the record is enqueued, so that the trust it shows was in force.
        let agent = cell.read();
        // INVARIANT: read before anything else, so that a kill switch set later has another epoch.
        let stops = self.roster.stops.load();
        let policies = self.rules.policies.load();
        let mut request = self.intake.request(intent, &agent, source, now);
        if under.raises_risk() {
            request.risk = request.risk.raised();
        }
        let unpermitted = self.roster.unpermitted(request.risk, &intent.required_capabilities, now);
        let is_unpermitted = unpermitted.is_some();
        let mut meter = self.rules.limits.meter(now, taking);
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
        let mut class = (verdict.decision == Decision::Deny).then(|| match denial {
            _ if failure.is_some() => DenialClass::Error,
            Some(Denial::KillSwitch(_)) => DenialClass::KillSwitch,
            Some(Denial::Suspending) => DenialClass::Suspended,
            None if agent.state != AgentState::Active => DenialClass::Suspended,
            None if is_unpermitted => DenialClass::NoPermit,
            None => by_mandate.unwrap_or_else(|| policies.denial_class(&request, &verdict)),
        });
        let is_denied = class.is_some_and(|class| {
            use DenialClass::{Error, KillSwitch, NoPermit, Suspended, Unread};
            !matches!(class, Error | KillSwitch | NoPermit | Suspended | Unread)
        });
        let mut grant = None;
        // A pre-approval is not part of what the user asked for.
        if verdict.decision == Decision::Escalate && under.is_inside() {
            (verdict, grant) = self.approvals.agreed_beforehand(&request, verdict, policies.digest(), &mut meter);
        }
        if verdict.decision == Decision::Escalate
            && let Some(refusal) = self.approvals.beyond_bounds(&request, &verdict, under)
        {
            (verdict, class) = (refusal, Some(DenialClass::Limit));
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
            rewrite: verdict.rewrite.filter(|_| class == Some(DenialClass::Unread)),
            source: GrantSource::default(),
        })
        .refused_by(class);
        let is_low_read = is_low_read(request.risk, &intent.required_capabilities);
        let enforcement = self.roster.granting(enforcement, &intent.agent_id, now, is_low_read, interventions);
        if let Some(message) = failure {
            drop(agent);
            self.base.log.settle_decision(committed.sequence, committed.risk)?;
            return Err(Error::PolicyFailed { message, proof_id: Some(committed.proof_id) });
        }
        let shadow = self.rules.policies.shadow.load();
        let difference = shadow
            .as_ref()
            // The shadow set has no say in what a pre-approval covers.
            .filter(|_| {
                agent.state == AgentState::Active && !is_unpermitted && grant.is_none() && under.is_by_policies()
            })
            .and_then(|shadow| shadow.look(&request, &enforcement));
        drop(agent);

        if let Some((alert, subject)) = difference {
            self.rules.raise(&alert, &subject, now);
        }
        if is_denied {
            self.roster.count_denial(cell, &intent.agent_id, committed.risk, now);
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

    /// The decision that the intent says it retries: one of the same agent.
    fn retried(&self, intent: &Intent) -> Result<Option<ProofId>, Error> {
        let Some(value) = intent.context.get(RETRY_OF) else { return Ok(None) };
        let refused = |expected: String| Error::intent("context.retryOf", expected);
        let earlier: ProofId = value
            .as_str()
            .ok_or_else(|| refused("expected the id of a proof record, as a string".to_owned()))?
            .parse()
            .map_err(|error: InvalidValue| refused(error.to_string()))?;
        match self.base.log.facts(&earlier) {
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
            return self.approvals.ask(recording, epoch);
        }
        let draft = recording.draft(&self.base, &self.intake.inputs)?;
        self.base.log.queue().decide(recording.request.now, draft, epoch)
    }
}

/// Evaluates the policies; an agent that may not act, or a governor without its permit, denies without them.
pub(crate) fn verdict(
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
