//! OpenID AuthZEN 1.0: an access evaluation is a decision, recorded like any other.
//!
//! `subject.id` is the agent, `resource.type` and `action.name` are the capability, and what else comes is context.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::handle::{Asked, Way, to_bytes};
use super::routes::{Method, Route, Size};
use crate::edge::gateway::{Request, Response};
use crate::edge::params::{Faults, Params};
use crate::model::{Capability, Decision, Error, Intent, RiskLevel};

pub(super) const ROUTE: Route =
    Route { method: Method::Post, path: "/access/v1/evaluation", call: "enforce", size: Size::Request };
pub(super) const WAY: Way = Way { route: &ROUTE, read, tell };

#[derive(Deserialize)]
struct Subject {
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

fn read(asked: &Asked<'_>) -> Result<Request, Error> {
    let params = super::asked::params(asked.route, asked.path.clone(), asked.query, asked.body)?;
    let subject: Subject = part(&params, "subject")?;
    let action: Action = part(&params, "action")?;
    let resource: Resource = part(&params, "resource")?;
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
    // The caller's own context wins; `target` is what the rest of the house calls the resource's id.
    context.entry("target").or_insert(Value::from(resource.id));
    for (name, properties) in [
        ("subjectProperties", subject.properties),
        ("actionProperties", action.properties),
        ("resourceProperties", resource.properties),
    ] {
        if !properties.is_empty() {
            context.entry(name).or_insert(Value::from(properties));
        }
    }
    for (name, value) in context {
        intent = intent.with_context(name, value);
    }
    Ok(Request::enforce(intent))
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
fn tell(response: Response) -> Result<Vec<u8>, Error> {
    let Response::Enforced(enforced) = response else {
        return Err(Error::Internal { message: "an evaluation was answered as something else".to_owned() });
    };
    to_bytes(&json!({
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
