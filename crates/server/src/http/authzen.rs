//! OpenID AuthZEN 1.0: an access evaluation is a decision, recorded like any other.
//!
//! `subject.id` is the agent, `resource.type` and `action.name` form the capability, and everything else becomes
//! context. Attributes that the rubric and policies know by name are lifted to the top of the context, wherever the
//! protocol has them.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::calls::decisions::is_granted;
use crate::calls::{Call, Entry, Params, Read, Spec, Subject};
use crate::gateway::{Admitted, Gateway};
use rulekeep::agent::AgentId;
use rulekeep::intent::Capability;
use rulekeep::policy::Constraints;
use rulekeep::proof::ProofId;
use rulekeep::{Decision, Enforcement, Error, Intent, RiskLevel};

/// Both AuthZEN calls.
pub(super) static CALLS: [Entry; 2] =
    [Entry::in_form::<Evaluate, Evaluation>(), Entry::in_form::<EvaluateEach, Evaluations>()];

/// An access evaluation of `OpenID` `AuthZEN` 1.0.
#[derive(Deserialize, ToSchema)]
pub(super) struct Evaluation {
    #[serde(deserialize_with = "object")]
    subject: EvaluationSubject,
    #[serde(deserialize_with = "object")]
    action: EvaluationAction,
    #[serde(deserialize_with = "object")]
    resource: EvaluationResource,
    #[schema(value_type = Option<EvaluationContext>)]
    context: Option<Map<String, Value>>,
}

/// Several access evaluations of `OpenID` `AuthZEN` 1.0, with defaults for what an evaluation omits. Without any
/// evaluations it is a single one.
#[derive(Deserialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the protocol's name")]
pub(super) struct Evaluations {
    #[schema(value_type = Option<EvaluationSubject>)]
    subject: Option<Value>,
    #[schema(value_type = Option<EvaluationAction>)]
    action: Option<Value>,
    #[schema(value_type = Option<EvaluationResource>)]
    resource: Option<Value>,
    #[schema(value_type = Option<EvaluationContext>)]
    context: Option<Value>,
    #[schema(max_items = 100, value_type = Option<Vec<EvaluationPart>>)]
    evaluations: Option<Vec<Value>>,
    #[schema(value_type = Option<EvaluationOptions>)]
    options: Option<Map<String, Value>>,
}

/// One of several evaluations.
#[derive(ToSchema)]
#[expect(dead_code, reason = "read as an evaluation, with what stands beside")]
struct EvaluationPart {
    subject: Option<EvaluationSubject>,
    action: Option<EvaluationAction>,
    resource: Option<EvaluationResource>,
    context: Option<EvaluationContext>,
}

/// The option that ends a series of evaluations early.
#[derive(ToSchema)]
#[expect(dead_code, reason = "read as a map")]
struct EvaluationOptions {
    #[serde(default)]
    #[schema(nullable = false)]
    evaluations_semantic: EvaluationSemantic,
}

/// The semantic of a series of evaluations.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum EvaluationSemantic {
    ExecuteAll,
    DenyOnFirstDeny,
    PermitOnFirstPermit,
}

/// The subject: `id` is the agent.
#[derive(Deserialize, ToSchema)]
struct EvaluationSubject {
    r#type: String,
    #[schema(value_type = AgentId)]
    id: String,
    #[serde(default)]
    #[schema(value_type = Object)]
    properties: Map<String, Value>,
}

/// The action. With the resource's type it forms the capability `<type>:<name>`, in lower case, with `_` for blanks,
/// hyphens, dots and slashes.
#[derive(Deserialize, ToSchema)]
struct EvaluationAction {
    #[schema(pattern = "^[A-Za-z][A-Za-z0-9_]*$", max_length = 40)]
    name: String,
    #[serde(default)]
    #[schema(value_type = Object)]
    properties: Map<String, Value>,
}

/// The resource that is acted on.
#[derive(Deserialize, ToSchema)]
struct EvaluationResource {
    #[schema(pattern = "^[A-Za-z][A-Za-z0-9_]*$", max_length = 40)]
    r#type: String,
    id: String,
    #[serde(default)]
    #[schema(value_type = Object)]
    properties: Map<String, Value>,
}

/// Further context.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "read as a map")]
struct EvaluationContext {
    /// The minimum risk.
    #[serde(default)]
    #[schema(nullable = false)]
    risk_level: RiskLevel,
    environment: Option<String>,
}

/// Deserializes an object only: an array would be read as the fields in order.
fn object<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<T, D::Error> {
    let fields = Map::deserialize(deserializer)?;
    T::deserialize(Value::Object(fields)).map_err(serde::de::Error::custom)
}

/// An evaluation, converted to an intent.
pub(super) struct Evaluate(Intent);

impl Read for Evaluate {
    fn read(params: Params, spec: &Spec) -> Result<Self, Error> {
        params.only(PARTS).typed::<Evaluation>(spec)?.intent().map(Self)
    }
}

impl Call for Evaluate {
    const SPEC: Spec = Spec::post(
        "access/evaluation",
        "/access/v1/evaluation",
        "Decides on an OpenID AuthZEN 1.0 evaluation, and records the decision",
    )
    .for_agents()
    .quick()
    .errors(&[404, 422]);
    type Answer = Evaluated;

    fn subject(&self) -> Subject<'_> {
        Subject::Agent(self.0.agent_id.as_str())
    }

    fn run(self, gateway: &Gateway) -> Result<Evaluated, Error> {
        gateway.governor().enforce(&self.0).map(Evaluated::from)
    }

    fn run_for(self, admitted: &Admitted) -> Result<Evaluated, Error> {
        admitted.permit(&self.subject())?;
        admitted.enforce(&self.0, None).map(Evaluated::from)
    }

    fn granted(answer: &Evaluated) -> Vec<ProofId> {
        answer.granted().into_iter().collect()
    }
}

/// Several evaluations, or a single one.
pub(super) enum EvaluateEach {
    One(Evaluate),
    Each {
        each: Vec<Result<Evaluate, Error>>,
        /// The decision after which nothing more is evaluated, if any.
        last: Option<bool>,
    },
}

/// The parts of an evaluation. The protocol lets senders add others, which are ignored.
const PARTS: &[&str] = &["subject", "action", "resource", "context"];
/// Maximum number of evaluations in a request.
const MOST: usize = 100;

impl Read for EvaluateEach {
    fn read(params: Params, spec: &Spec) -> Result<Self, Error> {
        let Evaluations { subject, action, resource, context, evaluations, options } =
            params.only(&[PARTS, &["evaluations", "options"]].concat()).typed(spec)?;
        let shared = [("subject", subject), ("action", action), ("resource", resource), ("context", context)];
        let evaluations = evaluations.unwrap_or_default();
        if evaluations.len() > MOST {
            return Err(Error::input("evaluations", format!("expected an array of {MOST} at the most")));
        }
        // Omitted parts take the defaults.
        let completed = |evaluation: &Map<String, Value>| {
            let part = |(name, shared): &(&str, Option<Value>)| {
                Some(((*name).to_owned(), evaluation.get(*name).or(shared.as_ref())?.clone()))
            };
            Evaluate::read(Params::of(shared.iter().filter_map(part).collect()), spec)
        };
        if evaluations.is_empty() {
            return completed(&Map::new()).map(Self::One);
        }
        let last = match options.unwrap_or_default().remove("evaluations_semantic") {
            None => None,
            Some(semantic) => match serde_json::from_value(semantic) {
                Ok(EvaluationSemantic::ExecuteAll) => None,
                Ok(EvaluationSemantic::DenyOnFirstDeny) => Some(false),
                Ok(EvaluationSemantic::PermitOnFirstPermit) => Some(true),
                Err(_) => {
                    let expected =
                        "evaluations_semantic: expected execute_all, deny_on_first_deny or permit_on_first_permit";
                    return Err(Error::input("options", expected));
                }
            },
        };
        let each = evaluations.iter().map(|evaluation| match evaluation {
            Value::Object(evaluation) => completed(evaluation),
            _ => Err(Error::input("evaluations", "expected objects")),
        });
        Ok(Self::Each { each: each.collect(), last })
    }
}

impl Call for EvaluateEach {
    const SPEC: Spec = Spec::post(
        "access/evaluations",
        "/access/v1/evaluations",
        "Decides on several evaluations, each as if it had been sent alone",
    )
    .for_agents()
    .errors(&[404, 422]);
    type Answer = EvaluatedAll;

    fn run(self, _: &Gateway) -> Result<EvaluatedAll, Error> {
        Err(Error::internal("several evaluations need an API key"))
    }

    fn run_for(self, admitted: &Admitted) -> Result<EvaluatedAll, Error> {
        match self {
            Self::One(one) => one.run_for(admitted).map(EvaluatedAll::One),
            Self::Each { each, last } => {
                let answers = admitted.run_each(each, |answer| {
                    last.is_some_and(|last| answer.as_ref().is_ok_and(|answer| answer.decision) == last)
                });
                Ok(EvaluatedAll::Each { evaluations: answers.into_iter().map(EvaluatedEach::from).collect() })
            }
        }
    }

    fn granted(answer: &EvaluatedAll) -> Vec<ProofId> {
        match answer {
            EvaluatedAll::One(one) => Evaluate::granted(one),
            EvaluatedAll::Each { evaluations } => {
                let decided = evaluations.iter().filter_map(|each| match each {
                    EvaluatedEach::Decided(decided) => decided.granted(),
                    EvaluatedEach::Refused { .. } => None,
                });
                decided.collect()
            }
        }
    }
}

/// A decision of `OpenID` `AuthZEN` 1.0: true for ALLOW only. The protocol cannot express a partial grant or a
/// pending approval.
#[derive(Serialize, ToSchema)]
pub(super) struct Evaluated {
    decision: bool,
    context: EvaluatedContext,
}

/// The decision, and the reason.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EvaluatedContext {
    decision: Decision,
    reason: String,
    proof_id: ProofId,
    granted_capabilities: Vec<Capability>,
    denied_capabilities: Vec<Capability>,
    constraints: Constraints,
}

impl Evaluated {
    fn granted(&self) -> Option<ProofId> {
        is_granted(self.context.decision).then_some(self.context.proof_id)
    }
}

impl From<Enforcement> for Evaluated {
    fn from(enforced: Enforcement) -> Self {
        let context = EvaluatedContext {
            decision: enforced.decision,
            reason: enforced.reasoning,
            proof_id: enforced.proof_id,
            granted_capabilities: enforced.granted_capabilities,
            denied_capabilities: enforced.denied_capabilities,
            constraints: enforced.constraints,
        };
        Self { decision: context.decision == Decision::Allow, context }
    }
}

/// Decisions in the order of the evaluations, or a single one.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum EvaluatedAll {
    One(Evaluated),
    Each { evaluations: Vec<EvaluatedEach> },
}

/// One of several decisions, or the error that prevented it, which is not recorded.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum EvaluatedEach {
    Decided(Evaluated),
    Refused { decision: bool, context: EvaluatedFault },
}

/// The error that prevented one of several decisions. It is not recorded.
#[derive(Serialize, ToSchema)]
pub(super) struct EvaluatedFault {
    error: EvaluatedError,
}

/// The error as a single evaluation would return it.
#[derive(Serialize, ToSchema)]
struct EvaluatedError {
    status: u16,
    code: &'static str,
    message: String,
}

impl From<Result<Evaluated, Error>> for EvaluatedEach {
    fn from(answer: Result<Evaluated, Error>) -> Self {
        match answer {
            Ok(decided) => Self::Decided(decided),
            Err(error) => {
                let error =
                    EvaluatedError { status: error.http_status(), code: error.code(), message: error.message() };
                Self::Refused { decision: false, context: EvaluatedFault { error } }
            }
        }
    }
}

impl Evaluation {
    fn intent(self) -> Result<Intent, Error> {
        let Self { subject, action, resource, context } = self;
        let mut context = Gathered::of(context.unwrap_or_default());
        // `target` is the name for the resource's id everywhere else.
        context.put("target", "resource.id", Value::from(resource.id))?;
        context.put("subjectType", "subject.type", Value::from(subject.r#type))?;
        context.lift("resource.properties", &resource.properties)?;
        context.lift("action.properties", &action.properties)?;
        for (name, place, properties) in [
            ("subjectProperties", "subject.properties", subject.properties),
            ("actionProperties", "action.properties", action.properties),
            ("resourceProperties", "resource.properties", resource.properties),
        ] {
            if !properties.is_empty() {
                context.put(name, place, Value::from(properties))?;
            }
        }
        let risk = context.take_risk()?;
        let capability = format!("{}:{}", word(&resource.r#type), word(&action.name));
        let capability: Capability = capability
            .parse()
            .map_err(|error: rulekeep::intent::InvalidValue| Error::input("action", error.to_string()))?;
        let name = format!("{}_{}", word(&action.name), word(&resource.r#type));
        let mut intent = Intent::new(&subject.id, &name, risk, [capability.as_str()])?;
        for (name, value) in context.fields {
            intent = intent.with_context(name, value);
        }
        Ok(intent)
    }
}

/// The attributes that the rubric, policies and escalations know by these names; they are lifted out of properties.
/// Others are not, because an attribute of a resource could then be mistaken for one of the request.
const LIFTED: [&str; 9] = [
    "amount",
    "currency",
    "dataClassification",
    "environment",
    "recipient",
    "recordCount",
    "requestedBy",
    "riskLevel",
    "target",
];

/// The context of the decision, with the origin of its parts.
struct Gathered {
    fields: Map<String, Value>,
    /// The origins of the fields that are not from the caller's own context.
    places: Vec<(&'static str, &'static str)>,
}

impl Gathered {
    const fn of(fields: Map<String, Value>) -> Self {
        Self { fields, places: Vec::new() }
    }

    /// Puts a value that the protocol has a field for where policies look for it. A different value there would hide
    /// the request's, and is an error; `null` counts as absent.
    fn put(&mut self, name: &'static str, place: &'static str, value: Value) -> Result<(), Error> {
        match self.fields.get(name).filter(|other| !other.is_null()) {
            Some(other) if *other == value => Ok(()),
            Some(_) => {
                let earlier = self.place(name);
                Err(Error::input("context", format!("{name}: {place} contradicts {earlier}")))
            }
            None => {
                self.fields.insert(name.to_owned(), value);
                self.places.push((name, place));
                Ok(())
            }
        }
    }

    fn lift(&mut self, place: &'static str, properties: &Map<String, Value>) -> Result<(), Error> {
        for name in LIFTED {
            if let Some(value) = properties.get(name).filter(|value| !value.is_null()) {
                self.put(name, place, value.clone())?;
            }
        }
        Ok(())
    }

    fn take_risk(&mut self) -> Result<RiskLevel, Error> {
        match self.fields.remove("riskLevel") {
            None => Ok(RiskLevel::Low), // the floor that the rubric sets for the capability still counts
            Some(risk) => serde_json::from_value(risk).map_err(|_| {
                let place = self.place("riskLevel");
                Error::input("context", format!("riskLevel: expected LOW, MEDIUM, HIGH or CRITICAL in {place}"))
            }),
        }
    }

    fn place(&self, name: &str) -> &'static str {
        self.places.iter().find(|(known, _)| *known == name).map_or("context", |(_, place)| place)
    }
}

/// Converts a name to the form of capabilities: `can_read` and `canRead` become `can_read`, `read-all` becomes
/// `read_all`.
fn word(name: &str) -> String {
    let mut word = String::with_capacity(name.len());
    let mut ends_small = false;
    for character in name.chars() {
        match character {
            'A'..='Z' => {
                if ends_small {
                    word.push('_');
                }
                word.push(character.to_ascii_lowercase());
            }
            '-' | ' ' | '.' | '/' => word.push('_'),
            other => word.push(other),
        }
        ends_small = character.is_ascii_lowercase() || character.is_ascii_digit();
    }
    word
}

#[cfg(test)]
mod tests {
    use super::{LIFTED, word};

    /// If the rubric reads another context key, it must be added to the list.
    #[test]
    fn what_the_rubric_reads_of_a_context_is_lifted() {
        let rubric = include_str!("../../../../src/governor/intake/risk.rs");
        let read: Vec<&str> = rubric
            .split("context.get(")
            .skip(1)
            .map(|rest| rest.strip_prefix('"').and_then(|rest| rest.split('"').next()).unwrap())
            .collect();
        assert!(!read.is_empty());
        for key in read {
            assert!(LIFTED.contains(&key), "{key}");
        }
    }

    #[test]
    fn names_come_in_one_form() {
        for (name, expected) in
            [("can_read", "can_read"), ("canRead", "can_read"), ("read-all", "read_all"), ("GET", "get")]
        {
            assert_eq!(word(name), expected);
        }
    }
}
