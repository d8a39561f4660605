//! What a policy set decides on.

use std::sync::LazyLock;

use super::condition::Scope;
use crate::model::{AgentTraits, Intent, RiskLevel, Timestamp, TrustSnapshot, risk_floor};

/// What a policy set decides on. With the set and the counters of its limits this is
/// all that a verdict depends on.
#[derive(Debug, Clone, Copy)]
pub struct PolicyRequest<'a> {
    pub(crate) intent: &'a Intent,
    /// The effective risk; the intent's own claim is not looked at.
    pub(crate) risk: RiskLevel,
    pub(crate) trust: TrustSnapshot,
    pub(crate) traits: &'a AgentTraits,
    /// The time that conditions call `now`.
    pub(crate) now: Timestamp,
}

impl<'a> PolicyRequest<'a> {
    /// An intent of an agent without labels, groups and attributes, at the higher of the
    /// risk that it claims and the least that its action and capabilities imply, on 1970-01-01.
    pub fn new(intent: &'a Intent, trust: TrustSnapshot) -> Self {
        static NONE: LazyLock<AgentTraits> = LazyLock::new(AgentTraits::default);
        let risk = intent.risk_level.max(risk_floor(&intent.parsed_action, &intent.required_capabilities));
        Self { intent, risk, trust, traits: &NONE, now: Timestamp::from_millis(0) }
    }

    /// At another risk than the one that counts by itself.
    #[must_use]
    pub fn at_risk(mut self, risk: RiskLevel) -> Self {
        self.risk = risk;
        self
    }

    /// Of an agent with labels, groups and attributes.
    #[must_use]
    pub fn of_agent(mut self, traits: &'a AgentTraits) -> Self {
        self.traits = traits;
        self
    }

    /// At a time.
    #[must_use]
    pub fn at(mut self, now: Timestamp) -> Self {
        self.now = now;
        self
    }

    /// What conditions look at.
    pub(super) fn scope(&self) -> Scope<'a> {
        Scope {
            agent_id: self.intent.agent_id.as_str(),
            labels: &self.traits.labels,
            groups: &self.traits.groups,
            attributes: &self.traits.attributes,
            action: self.intent.parsed_action.as_str(),
            risk: self.risk,
            capabilities: &self.intent.required_capabilities,
            context: &self.intent.context,
            score: self.trust.score.get(),
            tier: self.trust.tier,
            now: self.now,
        }
    }
}
