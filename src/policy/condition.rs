//! stub
use crate::model::*;
#[derive(Debug, Clone)]
pub(crate) struct Condition;
#[derive(Default, Clone)]
pub(crate) struct Bindings;
impl Bindings {
    pub(crate) fn add(&mut self, _: &str, _: &str) -> Result<(), ConditionError> {
        Ok(())
    }
}
impl Condition {
    pub(crate) fn compile(_: &str, _: &Bindings) -> Result<Self, ConditionError> {
        Ok(Self)
    }
    pub(crate) fn evaluate(&self, _: &Scope<'_>) -> Result<bool, EvaluationError> {
        Ok(true)
    }
    pub(crate) fn source(&self) -> &str {
        ""
    }
    pub(crate) fn constant(&self) -> Option<bool> {
        None
    }
}
pub(crate) struct ConditionError {
    pub(crate) at: usize,
    pub(crate) message: String,
}
pub(crate) struct EvaluationError;
impl std::fmt::Display for EvaluationError {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Ok(())
    }
}
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub agent_id: &'a str,
    pub labels: &'a [Label],
    pub groups: &'a [Label],
    pub attributes: &'a serde_json::Map<String, serde_json::Value>,
    pub action: &'a str,
    pub risk: RiskLevel,
    pub capabilities: &'a [Capability],
    pub context: &'a serde_json::Map<String, serde_json::Value>,
    pub score: u16,
    pub tier: Tier,
    pub now: Timestamp,
}
