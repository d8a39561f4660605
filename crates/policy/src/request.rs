//! The input of a policy decision.

use std::sync::LazyLock;

use super::condition::Scope;
use rulekeep_types::{AgentTraits, Intent, RiskLevel, Timestamp, TrustSnapshot, risk_floor};

/// The input of a policy decision. A verdict depends only on this, on the policy set and on the counters of its
/// limits.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct PolicyRequest<'a> {
    pub intent: &'a Intent,
    /// The effective risk; the intent's own claim is ignored.
    pub risk: RiskLevel,
    pub trust: TrustSnapshot,
    pub traits: &'a AgentTraits,
    /// The time that conditions see as `now`.
    pub now: Timestamp,
}

impl<'a> PolicyRequest<'a> {
    /// Creates a request for an agent without labels, groups and attributes, at 1970-01-01. The risk is the higher of
    /// the intent's claim and the floor implied by its action and capabilities.
    pub fn new(intent: &'a Intent, trust: TrustSnapshot) -> Self {
        static NONE: LazyLock<AgentTraits> = LazyLock::new(AgentTraits::default);
        let risk = intent.risk_level.max(risk_floor(&intent.parsed_action, &intent.required_capabilities));
        Self { intent, risk, trust, traits: &NONE, now: Timestamp::from_millis(0) }
    }

    /// Sets the effective risk.
    #[must_use]
    pub fn at_risk(mut self, risk: RiskLevel) -> Self {
        self.risk = risk;
        self
    }

    /// Sets the agent's labels, groups and attributes.
    #[must_use]
    pub fn of_agent(mut self, traits: &'a AgentTraits) -> Self {
        self.traits = traits;
        self
    }

    /// Sets the time that conditions see as `now`.
    #[must_use]
    pub fn at(mut self, now: Timestamp) -> Self {
        self.now = now;
        self
    }

    /// The values that conditions can read.
    pub(super) fn scope(&self) -> Scope<'a> {
        Scope {
            agent_id: self.intent.agent_id.as_str(),
            labels: &self.traits.labels,
            groups: &self.traits.groups,
            attributes: &self.traits.attributes,
            action: self.intent.parsed_action.as_str(),
            risk: self.risk,
            capabilities: &self.intent.required_capabilities,
            context: self.intent.members(),
            score: self.trust.score.get(),
            tier: self.trust.tier,
            now: self.now,
        }
    }
}
