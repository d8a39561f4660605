//! OpenID AuthZEN 1.0: an access evaluation is a decision, recorded like any other.
//!
//! `subject.id` is the agent, `resource.type` and `action.name` are the capability, and what else comes is context.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::handle::{Asked, Job, Way, to_bytes};
use super::routes::{Method, Route, Size};
use crate::edge::gateway::{Made, Request, Response};
use crate::edge::params::{Faults, Params};
use crate::model::{Capability, Decision, Error, Intent, RiskLevel};

pub(super) const ONE: Route = route("/access/v1/evaluation");
pub(super) const MANY: Route = route("/access/v1/evaluations");
pub(super) const WAYS: [Way; 2] = [Way { route: &ONE, read: read_one }, Way { route: &MANY, read: read_many }];

const fn route(path: &'static str) -> Route {
    Route { method: Method::Post, path, call: "enforce", size: Size::Request }
}

#[derive(Deserialize)]
struct Subject {
    #[serde(rename = "type")]
    _type: String,
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
    let mut context = params.object("context")?;
    let risk = match context.remove("riskLevel") {
        None => RiskLevel::Low, // the floor that the rubric sets for the capability still counts
        Some(risk) => serde_json::from_value(risk)
            .map_err(|_| Error::input("context", "riskLevel: expected LOW, MEDIUM, HIGH or CRITICAL"))?,
    };
    let capability = format!("{}:{}", word(&resource.r#type), word(&action.name));
    let capability: Capability =
        capability.parse().map_err(|error: crate::model::InvalidValue| Error::input("action", error.to_string()))?;
    let name = format!("{}_{}", word(&action.name), word(&resource.r#type));
    let mut intent = Intent::new(&subject.id, &name, risk, [capability.as_str()])?;
    // `target` is what the rest of the house calls the resource's id.
    put(&mut context, "target", Value::from(resource.id))?;
    for (name, properties) in [
        ("subjectProperties", subject.properties),
        ("actionProperties", action.properties),
        ("resourceProperties", resource.properties),
    ] {
        if !properties.is_empty() {
            put(&mut context, name, Value::from(properties))?;
        }
    }
    for (name, value) in context {
        intent = intent.with_context(name, value);
    }
    Ok(Request::enforce(intent))
}

/// Puts what the protocol has a field for where policies look for it. A context that says something else there would hide
/// what is asked for.
fn put(context: &mut Map<String, Value>, name: &'static str, value: Value) -> Result<(), Error> {
    match context.get(name) {
        Some(other) if *other != value => {
            Err(Error::input("context", format!("{name}: says another thing than the evaluation's own field")))
        }
        _ => {
            context.insert(name.to_owned(), value);
            Ok(())
        }
    }
}

fn part<T: for<'de> Deserialize<'de>>(params: &Params, field: &'static str) -> Result<T, Error> {
    let value = params.get(field).ok_or_else(|| Faults::Input.error(field, "is missing"))?;
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
    use super::word;

    #[test]
    fn names_come_in_one_form() {
        for (name, expected) in
            [("can_read", "can_read"), ("canRead", "can_read"), ("read-all", "read_all"), ("GET", "get")]
        {
            assert_eq!(word(name), expected);
        }
    }
}
