//! OpenID AuthZEN 1.0: an access evaluation is a decision, recorded like any other.
//!
//! `subject.id` is the agent, `resource.type` and `action.name` are the capability, and what else comes is context: what the
//! rubric and policies know by name at its top, wherever the protocol has it put.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::handle::{Asked, Job, Way, to_bytes};
use super::routes::{Method, Route, Size};
use crate::gateway::{Made, Request, Response};
use crate::params::{Faults, Params};
use rulekeep::{Capability, Decision, Error, Intent, RiskLevel};

pub(super) const ONE: Route = route("/access/v1/evaluation");
pub(super) const MANY: Route = route("/access/v1/evaluations");
pub(super) const WAYS: [Way; 2] = [Way { route: &ONE, read: read_one }, Way { route: &MANY, read: read_many }];

const fn route(path: &'static str) -> Route {
    Route { method: Method::Post, path, call: "enforce", size: Size::Request }
}

#[derive(Deserialize)]
struct Subject {
    r#type: String,
    id: String,
    #[serde(default)]
    properties: Map<String, Value>,
}

#[derive(Deserialize)]
struct Action {
    name: String,
    #[serde(default)]
    properties: Map<String, Value>,
}

#[derive(Deserialize)]
struct Resource {
    r#type: String,
    id: String,
    #[serde(default)]
    properties: Map<String, Value>,
}

fn read_one(asked: Asked<'_>) -> Result<Job, Error> {
    Ok(Job::new(request_of(&super::asked::params(asked)?)?, |response| to_bytes(&told(&response)?)))
}

/// Most evaluations of one request.
const MOST: usize = 100;

/// The parts of an evaluation.
const PARTS: [&str; 4] = ["subject", "action", "resource", "context"];

/// Several in one request. What one of them does not say stands beside them; where there are none, it is a single one.
fn read_many(asked: Asked<'_>) -> Result<Job, Error> {
    let params = super::asked::params(asked)?;
    let evaluations = match params.get("evaluations") {
        None => &[][..],
        Some(Value::Array(evaluations)) if evaluations.len() <= MOST => evaluations,
        Some(_) => return Err(Error::input("evaluations", format!("expected an array of {MOST} at the most"))),
    };
    if evaluations.is_empty() {
        return Ok(Job::new(request_of(&params)?, |response| to_bytes(&told(&response)?)));
    }
    let until = last_of(&params)?;
    let requests = evaluations.iter().map(|evaluation| request_of(&completed(evaluation, &params)?)).collect();
    Ok(Job::long(move |admitted| {
        let answers = admitted.perform_each(requests, |answer| until.is_some_and(|last| is_yes(answer) == last));
        let told: Result<Vec<Value>, Error> = answers
            .iter()
            .map(|answer| match answer {
                Ok(response) => told(response),
                Err(error) => Ok(refused(error)),
            })
            .collect();
        let granted = answers.iter().flatten().filter_map(Response::granted).collect();
        Ok(Made { answer: to_bytes(&json!({ "evaluations": told? }))?, granted, is_secret: false })
    }))
}

/// The answer behind which nothing more is evaluated, if there is one.
fn last_of(params: &Params) -> Result<Option<bool>, Error> {
    match params.object("options")?.get("evaluations_semantic").map(Value::as_str) {
        None | Some(Some("execute_all")) => Ok(None),
        Some(Some("deny_on_first_deny")) => Ok(Some(false)),
        Some(Some("permit_on_first_permit")) => Ok(Some(true)),
        Some(_) => {
            let expected = "evaluations_semantic: expected execute_all, deny_on_first_deny or permit_on_first_permit";
            Err(Error::input("options", expected))
        }
    }
}

/// An evaluation with what it does not say itself.
fn completed(evaluation: &Value, beside: &Params) -> Result<Params, Error> {
    let Value::Object(fields) = evaluation else {
        return Err(Error::input("evaluations", "expected objects"));
    };
    let part = |name: &str| Some((name.to_owned(), fields.get(name).or_else(|| beside.get(name))?.clone()));
    Ok(Params::of(PARTS.into_iter().filter_map(part).collect()))
}

fn request_of(params: &Params) -> Result<Request, Error> {
    let subject: Subject = part(params, "subject")?;
    let action: Action = part(params, "action")?;
    let resource: Resource = part(params, "resource")?;
    let mut context = Gathered::of(params.object("context")?);
    // `target` is what the rest of the house calls the resource's id.
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
    let capability: Capability =
        capability.parse().map_err(|error: rulekeep::InvalidValue| Error::input("action", error.to_string()))?;
    let name = format!("{}_{}", word(&action.name), word(&resource.r#type));
    let mut intent = Intent::new(&subject.id, &name, risk, [capability.as_str()])?;
    for (name, value) in context.fields {
        intent = intent.with_context(name, value);
    }
    Ok(Request::enforce(intent))
}

/// The attributes that the rubric, policies and escalations know by these names: lifted out of properties, where none of
/// them looks. Not all that stands there is, for an attribute of a resource could then pass for one of the request.
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

/// The context of the decision, with where its parts come from.
struct Gathered {
    fields: Map<String, Value>,
    /// Of what is not the caller's own context.
    places: Vec<(&'static str, &'static str)>,
}

impl Gathered {
    const fn of(fields: Map<String, Value>) -> Self {
        Self { fields, places: Vec::new() }
    }

    /// Puts what the protocol has a field for where policies look for it. What says something else there would hide what
    /// is asked for; `null` says nothing.
    fn put(&mut self, name: &'static str, place: &'static str, value: Value) -> Result<(), Error> {
        match self.fields.get(name).filter(|other| !other.is_null()) {
            Some(other) if *other == value => Ok(()),
            Some(_) => {
                let earlier = self.place(name);
                Err(Error::input("context", format!("{name}: {place} says another thing than {earlier}")))
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

fn part<T: for<'de> Deserialize<'de>>(params: &Params, field: &'static str) -> Result<T, Error> {
    let value = params.get(field).ok_or_else(|| Faults::Input.error(field, "is missing"))?;
    // An array would be read as the fields in their order.
    if !value.is_object() {
        return Err(Error::input(field, "expected an object"));
    }
    T::deserialize(value).map_err(|error| Error::input(field, error.to_string()))
}

/// A name in the form of capabilities: `can_read` and `canRead` are `can_read`, `read-all` is `read_all`.
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

/// A yes is an ALLOW alone: the protocol has no word for a part, or for a person's answer that is to come.
fn is_yes(answer: &Result<Response, Error>) -> bool {
    matches!(answer, Ok(Response::Enforced(enforced)) if enforced.decision == Decision::Allow)
}

fn told(response: &Response) -> Result<Value, Error> {
    let Response::Enforced(enforced) = response else {
        return Err(Error::Internal { message: "an evaluation was answered as something else".to_owned() });
    };
    Ok(json!({
        "decision": enforced.decision == Decision::Allow,
        "context": {
            "decision": enforced.decision,
            "reason": enforced.reasoning,
            "proofId": enforced.proof_id,
            "grantedCapabilities": enforced.granted_capabilities,
            "deniedCapabilities": enforced.denied_capabilities,
            "constraints": enforced.constraints,
        },
    }))
}

/// One among several that was not decided; the others are.
fn refused(error: &Error) -> Value {
    let error = json!({ "status": error.http_status(), "code": error.code(), "message": error.to_string() });
    json!({ "decision": false, "context": { "error": error } })
}

#[cfg(test)]
mod tests {
    use super::{LIFTED, word};

    /// Who reads one more key of a context there has to name it here.
    #[test]
    fn what_the_rubric_reads_of_a_context_is_lifted() {
        let rubric = include_str!("../../../../src/governor/risk.rs");
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
