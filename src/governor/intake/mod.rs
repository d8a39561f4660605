//! Requests on their way to a decision: the tools, the risk floors, and the texts that are remembered.

pub(crate) mod catalogue;
pub(crate) mod input_text;
pub(crate) mod recent;
pub(crate) mod risk;

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::governor::{Base, Roster};
use crate::model::{Error, Input, Intent, IntentId, Timestamp};
use crate::parse::{Catalogue, ParseRequest, Parsed, Parser};
use crate::policy::PolicyRequest;
use crate::telemetry::Work;
use crate::trust::AgentRecord;
use catalogue::Loaded;
use input_text::Inputs;
use risk::{ActionFloors, RiskSource, effective_risk};

/// The parser, and what it knows besides the request.
///
/// Lock order: the turn to change the tool catalogue, then the log. No lock is acquired under those of the floors and the
/// texts.
pub(crate) struct Intake {
    pub(crate) base: Arc<Base>,
    pub(crate) roster: Arc<Roster>,
    pub(crate) parser: Parser,
    pub(crate) tools: Loaded,
    pub(crate) action_floors: ActionFloors,
    pub(crate) inputs: Inputs,
}

impl Intake {
    /// Parses an input with the current tool catalogue and remembers its text for the evidence.
    pub(crate) fn parsed(&self, agent_id: &str, input: Input<'_>) -> Result<Parsed, Error> {
        Work::parse().done_by(|work| {
            let parsed = self.read_input(agent_id, input, Parser::parse)?;
            work.note_parsed(&parsed.result);
            self.inputs.remember(&parsed.result.intent, input.text, &parsed.redaction)?;
            Ok(parsed)
        })
    }

    /// Reads an input of a known agent with the parser and the current tool catalogue.
    pub(crate) fn read_input<T>(
        &self,
        agent_id: &str,
        input: Input<'_>,
        read: impl FnOnce(&Parser, &ParseRequest<'_>, &Catalogue) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let agent_id = self.roster.known_agent(agent_id)?;
        let at = self.base.clock.now();
        let call_id = input.context.and_then(Intent::call_id_in);
        let id = call_id.map_or_else(
            || IntentId::new(at, self.base.entropy.bits()),
            |call_id| IntentId::of_call(&agent_id, call_id),
        );
        let no_context = Map::new();
        let context = input.context.unwrap_or(&no_context);
        let request = ParseRequest { agent_id: &agent_id, input: input.text, context, id, at };
        read(&self.parser, &request, &self.tools.load())
    }

    pub(crate) fn request<'a>(
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
                    effective_risk(&self.parser, &self.action_floors, intent)
                }
                RiskSource::Operator => intent.risk_level,
            },
            trust: self.roster.trust_of(agent, now),
            traits: agent.traits(),
            now,
        }
    }
}

/// The value with whole numbers up to 2^53 written without a decimal point.
pub(crate) fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => match number.as_f64() {
            #[allow(clippy::cast_possible_truncation)] // it is whole, and far from the ends
            Some(float) if float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0 => Value::from(float as i64),
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(object) => object.iter().map(|(name, value)| (name.clone(), plain(value))).collect(),
        _ => value.clone(),
    }
}
