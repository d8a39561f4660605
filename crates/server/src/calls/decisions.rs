//! Parsing, decisions and previews of decisions.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::call::{Call, Read};
use super::params::{Params, task_id};
use super::spec::{Spec, Subject};
use crate::gateway::{Admitted, Gateway, Scope};
use rulekeep::agent::AgentId;
use rulekeep::extension::{Context, Extension};
use rulekeep::intent::Input;
use rulekeep::intent::{ActEvidence, Alternative, InputEnforcement, ParseResult};
use rulekeep::preview::Explanation;
use rulekeep::preview::PreviewRequest;
use rulekeep::proof::ProofId;
use rulekeep::task::TaskId;
use rulekeep::{Decision, Enforcement, Error, Governor, Intent};

/// A request to parse.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Parse {
    /// The agent that makes the request.
    #[schema(value_type = AgentId)]
    pub agent_id: String,
    /// The action that the agent wants to take: a natural-language or structured text, or a tool call as an object;
    /// at most 64 KiB.
    #[schema(value_type = InputValue)]
    pub input: Asked,
    /// The caller's context of the request.
    #[schema(value_type = Option<Context>)]
    pub context: Option<Map<String, Value>>,
    /// Also return the evidence of the parse.
    pub explain: Option<bool>,
}

impl Call for Parse {
    const SPEC: Spec = Spec::post("intent", "/intent", "Parses an action request into an intent")
        .for_agents()
        .quick()
        .errors(&[404, 413]);
    type Answer = Parsed;

    /// The evidence reveals the known tools, so it requires an admin key.
    fn subject(&self) -> Subject<'_> {
        if self.explain.unwrap_or_default() { Subject::Everything } else { Subject::Agent(&self.agent_id) }
    }

    fn run(self, gateway: &Gateway) -> Result<Parsed, Error> {
        let (governor, (text, context)) = (gateway.governor(), self.input.with(self.context)?);
        let input = Input::new(&text).context(&context);
        if self.explain.unwrap_or_default() {
            let explained = governor.tools().explain_parse(&self.agent_id, input)?;
            return Ok(Parsed { parse: explained.parse, evidence: Some(explained.evidence) });
        }
        Ok(Parsed { parse: governor.parse(&self.agent_id, input)?, evidence: None })
    }
}

/// The result of parsing.
#[derive(Serialize, ToSchema)]
pub struct Parsed {
    /// The result.
    #[serde(flatten)]
    pub parse: ParseResult,
    /// The evidence of the parse, if `explain` asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Vec<ActEvidence>>,
}

/// The requested action as text; a tool call is converted to its JSON.
#[derive(Debug, Clone)]
pub struct Asked {
    text: String,
    /// The caller's id of a tool call.
    call_id: Option<String>,
}

impl Asked {
    /// Creates the action of a natural-language or structured text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), call_id: None }
    }

    /// Creates the action of a tool call.
    pub fn call(call: ToolCall) -> Self {
        // A call of texts and JSON always serializes.
        Self { text: serde_json::to_string(&call).unwrap_or_default(), call_id: call.call_id }
    }

    /// The text, and the caller's context with the id of the call added.
    fn with(self, context: Option<Map<String, Value>>) -> Result<(String, Map<String, Value>), Error> {
        let mut context = context.unwrap_or_default();
        if let Some(call_id) = self.call_id {
            let known = context.insert("callId".to_owned(), Value::String(call_id.clone()));
            if known.is_some_and(|known| known != call_id.as_str()) {
                return Err(Error::input(
                    "input.callId",
                    "expected the same value as in the context, or none in the context",
                ));
            }
        }
        Ok((self.text, context))
    }
}

/// A text or a tool call.
#[derive(ToSchema)]
#[serde(untagged)]
#[allow(dead_code)] // the two forms for the schema
pub(crate) enum InputValue {
    /// A natural-language or structured text; not blank, at most 64 KiB.
    Text(String),
    /// A tool call.
    Call(ToolCall),
}

/// A tool call.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// The name of the tool.
    pub tool: String,
    /// The server that provides the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The arguments of the call.
    #[schema(value_type = Object)]
    pub arguments: Value,
    /// The caller's id of the call, the same as `context.callId`.
    #[serde(default, rename = "callId", skip_serializing)]
    #[schema(min_length = 1, max_length = 256)]
    pub call_id: Option<String>,
}

impl<'de> Deserialize<'de> for Asked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self::text(text)),
            call @ Value::Object(_) => ToolCall::deserialize(call).map(Self::call).map_err(D::Error::custom),
            _ => {
                let expected = "expected a string, or a tool call: tool, arguments, perhaps server and callId";
                Err(D::Error::custom(expected))
            }
        }
    }
}

/// A request for a decision: on an intent, or on an input to be parsed first.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum DecisionForm {
    /// Decides on an intent.
    Intent(IntentForm),
    /// Decides on an input.
    Input(InputForm),
}

/// An intent, from `POST /intent` or built by the caller.
#[derive(ToSchema)]
pub struct IntentForm {
    /// The intent.
    pub intent: Intent,
}

/// An input that is parsed first.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InputForm {
    /// The agent that makes the request.
    #[schema(value_type = AgentId)]
    pub agent_id: String,
    /// The action that the agent wants to take: a natural-language or structured text, or a tool call as an object;
    /// at most 64 KiB.
    #[schema(value_type = InputValue)]
    pub input: Asked,
    /// The caller's context of the request.
    #[schema(value_type = Option<Context>)]
    pub context: Option<Map<String, Value>>,
}

/// A request for a decision, optionally under a task: on an intent, or on an input to be parsed first.
#[derive(ToSchema)]
#[serde(untagged)]
#[allow(dead_code)] // the two forms for the schema
pub(crate) enum EnforceForm {
    /// Decides on an intent.
    Intent(EnforceIntentForm),
    /// Decides on an input.
    Input(EnforceInputForm),
}

/// An intent, from `POST /intent` or built by the caller.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code)] // for the schema
pub(crate) struct EnforceIntentForm {
    intent: Intent,
    /// The task that the action belongs to; it must be a task of the intent's agent.
    #[schema(required = false)]
    task_id: TaskId,
}

/// An input that is parsed first.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code)] // for the schema
pub(crate) struct EnforceInputForm {
    agent_id: AgentId,
    /// The action that the agent wants to take: a natural-language or structured text, or a tool call as an object;
    /// at most 64 KiB.
    input: InputValue,
    #[schema(value_type = Option<Context>)]
    context: Option<Map<String, Value>>,
    /// The task that the action belongs to; it must be a task of the agent.
    #[schema(required = false)]
    task_id: TaskId,
}

/// The fields accepted beside an intent, so that a parse result can be sent back as a whole.
const BESIDE_INTENT: &[&str] = &["intent", "confidence", "alternatives", "evidence", "agentId"];
/// The fields accepted beside an input.
const BESIDE_INPUT: &[&str] = &["agentId", "input", "context"];

impl DecisionForm {
    /// Reads either form; `more` are further fields of the call, for suggestions.
    ///
    /// A body in neither form is an invalid intent, as the specification requires.
    fn read(mut params: Params, spec: &Spec, more: &[&str]) -> Result<Self, Error> {
        const EXPECTED: &str = "expected an intent, or agentId and input";
        match (params.take("intent"), params.get("input").is_some()) {
            (Some(_), true) => Err(Error::intent("intent", "expected either an intent or an input, found both")),
            (Some(intent), false) => {
                params.refuse_others(&[BESIDE_INTENT, more].concat())?;
                Ok(Self::Intent(IntentForm { intent: Intent::from_json(&intent)? }))
            }
            (None, false) if params.get("agentId").is_none() => {
                Err(Error::intent("intent", format!("is missing: {EXPECTED}")))
            }
            (None, _) => {
                params.refuse_others(&[BESIDE_INPUT, more].concat())?;
                params.typed(spec).map(Self::Input).map_err(|error| match error {
                    Error::InvalidInput { field: field @ ("agentId" | "input"), message }
                        if message == "is missing" =>
                    {
                        Error::intent(field, format!("{message}: {EXPECTED}"))
                    }
                    Error::InvalidInput { field: field @ ("agentId" | "input"), message } => {
                        Error::intent(field, message)
                    }
                    error => error,
                })
            }
        }
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Agent(match self {
            Self::Intent(form) => form.intent.agent_id.as_str(),
            Self::Input(form) => &form.agent_id,
        })
    }
}

/// The field that names a task.
const TASK_ID: &str = "taskId";

/// Takes the task id out of the parameters.
///
/// `null` is refused: a caller that lost its task id would act without the mandate.
fn take_task(params: &mut Params) -> Result<Option<String>, Error> {
    match params.take_any(TASK_ID) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Error::input(TASK_ID, "expected a task's id as a string; leave the field out without a task")),
    }
}

/// Makes decisions, for an API key or without one, optionally under a task.
struct Decider<'a> {
    governor: &'a Governor,
    admitted: Option<&'a Admitted>,
    task: Option<TaskId>,
}

impl Decider<'_> {
    fn enforce(&self, intent: &Intent) -> Result<Enforcement, Error> {
        match (self.admitted, self.task) {
            (Some(admitted), task) => admitted.enforce(intent, task),
            (None, Some(task)) => self.governor.tasks().get(task)?.enforce_intent(intent),
            (None, None) => self.governor.enforce(intent),
        }
    }

    fn enforce_input(&self, agent_id: &str, input: Input<'_>) -> Result<InputEnforcement, Error> {
        match self.task {
            Some(task) => Extension::of(self.governor).enforce_input_under(task, agent_id, input),
            None => self.governor.enforce_input(agent_id, input),
        }
    }
}

/// Defines a call that takes both forms and returns the parsed intent as well.
macro_rules! decides {
    (
        $vis:vis $name:ident, $spec:expr, $(#[$meta:meta])* $answer:ident($inner:ident: $inner_type:ty), task: $takes_task:literal,
        |$decider:ident, $asked:ident| $of_intent:expr, |$agent_id:ident, $input:ident| $of_input:expr,
        |$given:ident| $granted:expr
    ) => {
        /// A request for a decision, as an intent or as an input to be parsed first.
        $vis struct $name {
            /// The intent or the input.
            $vis form: DecisionForm,
            /// The id of the task that the action belongs to.
            $vis task: Option<String>,
        }

        impl Read for $name {
            fn read(mut params: Params, spec: &Spec) -> Result<Self, Error> {
                let (task, more) = if $takes_task { (take_task(&mut params)?, &[TASK_ID][..]) } else { (None, &[][..]) };
                Ok(Self { form: DecisionForm::read(params, spec, more)?, task })
            }
        }

        impl Call for $name {
            const SPEC: Spec = $spec.errors(&[404, 422]);
            type Answer = $answer;

            fn subject(&self) -> Subject<'_> {
                if Self::SPEC.is_for(Scope::Agent) { self.form.subject() } else { Subject::Everything }
            }

            fn task(&self) -> Option<TaskId> {
                self.task.as_deref()?.parse().ok()
            }

            fn run(self, gateway: &Gateway) -> Result<$answer, Error> {
                self.decided(gateway.governor(), None)
            }

            fn run_for(self, admitted: &Admitted) -> Result<$answer, Error> {
                admitted.permit(&Call::subject(&self))?;
                self.decided(admitted.gateway().governor(), Some(admitted))
            }

            fn granted($given: &$answer) -> Vec<ProofId> {
                $granted
            }
        }

        impl $name {
            fn decided(self, governor: &Governor, admitted: Option<&Admitted>) -> Result<$answer, Error> {
                let task = self.task.as_deref().map(task_id).transpose()?;
                let $decider = Decider { governor, admitted, task };
                match self.form {
                    DecisionForm::Intent(IntentForm { intent: $asked }) => Ok($answer {
                        $inner: $of_intent,
                        intent: None,
                        confidence: None,
                        alternatives: None,
                    }),
                    DecisionForm::Input(form) => {
                        let (text, context) = form.input.with(form.context)?;
                        let ($agent_id, $input) = (&form.agent_id, Input::new(&text).context(&context));
                        let ($inner, parse) = $of_input;
                        let ParseResult { intent, confidence, alternatives, .. } = parse;
                        Ok($answer {
                            $inner,
                            intent: Some(intent),
                            confidence: Some(confidence),
                            alternatives: Some(alternatives),
                        })
                    }
                }
            }
        }

        $(#[$meta])*
        #[derive(Serialize, ToSchema)]
        $vis struct $answer {
            /// The result.
            #[serde(flatten)]
            $vis $inner: $inner_type,
            /// The intent that an input was parsed into.
            #[serde(skip_serializing_if = "Option::is_none")]
            $vis intent: Option<Intent>,
            /// The confidence of the parse, from 0 to 1.
            #[serde(skip_serializing_if = "Option::is_none")]
            $vis confidence: Option<f64>,
            /// Other readings of the input.
            #[serde(skip_serializing_if = "Option::is_none")]
            $vis alternatives: Option<Vec<Alternative>>,
        }
    };
}

decides!(
    pub Enforce,
    Spec::post("enforce", "/enforce", "Decides on an intent or an input, and records the decision")
        .for_agents()
        .quick(),
    /// A decision, with the parsed intent if an input was given.
    Enforced(enforcement: Enforcement),
    task: true,
    |decider, intent| decider.enforce(&intent)?,
    |agent_id, input| {
        let enforced = decider.enforce_input(agent_id, input)?;
        let InputEnforcement { enforcement, parse, .. } = enforced;
        (enforcement, parse)
    },
    |answer| granted(&answer.enforcement).into_iter().collect()
);

decides!(
    pub(crate) Explain,
    Spec::post(
        "policy/explain",
        "/admin/policies/explain",
        "Explains the decision that a request would get, rule by rule",
    ),
    /// A preview of a decision with the result of each rule, and the parsed intent if an input was given.
    Explained(explanation: Explanation),
    task: false,
    |decider, intent| decider.governor.policies().explain(&intent)?,
    |agent_id, input| {
        let mut explanation = decider.governor.policies().explain(PreviewRequest::input(agent_id, input))?;
        let parse = explanation.preview.parse.take();
        (explanation, parse.ok_or_else(unparsed)?)
    },
    |_answer| Vec::new()
);

decides!(
    pub(crate) Preview,
    Spec::post("policy/preview", "/admin/policies/preview", "Previews the decision that a request would get"),
    /// A preview of a decision, with the parsed intent if an input was given.
    Previewed(preview: rulekeep::preview::Preview),
    task: false,
    |decider, intent| decider.governor.policies().preview(&intent)?,
    |agent_id, input| {
        let mut preview = decider.governor.policies().preview(PreviewRequest::input(agent_id, input))?;
        let parse = preview.parse.take();
        (preview, parse.ok_or_else(unparsed)?)
    },
    |_answer| Vec::new()
);

fn unparsed() -> Error {
    Error::internal("an input was not parsed")
}

/// The record that grants an action now.
pub(crate) fn granted(enforcement: &Enforcement) -> Option<ProofId> {
    is_granted(enforcement.decision).then_some(enforcement.proof_id)
}

pub(crate) const fn is_granted(decision: Decision) -> bool {
    matches!(decision, Decision::Allow | Decision::Degrade)
}
