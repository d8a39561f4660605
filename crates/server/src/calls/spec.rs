//! What is said of a call beside its parameters and its answer.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa::openapi::schema::{SchemaType, Type};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};

use crate::gateway::Scope;
use rulekeep::Error;
use rulekeep::escalation::EscalationId;

/// The name for faults of no parameter that a type has.
pub(super) const ALL: &str = "params";

/// What is said of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spec {
    /// Its name in the sidecar's protocol.
    pub(crate) method: &'static str,
    pub(crate) verb: Verb,
    /// Its path, `{name}` standing for a parameter.
    pub(crate) path: &'static str,
    /// What it does, in a sentence without its end.
    pub(crate) summary: &'static str,
    /// How large its body may be.
    pub(crate) size: Size,
    /// Which keys may make it: those of administrators, or also those of agents, for the agents that they are for.
    pub(crate) scope: Scope,
    /// Statuses of errors beside those that every call can have.
    pub(crate) errors: &'static [u16],
    /// Parameters whose faults are those of a query; all others' are those of an input.
    pub(crate) queried: &'static [&'static str],
    /// Whether a parameter that is `null` is refused; it counts as absent elsewhere.
    pub(crate) refuses_null: bool,
    /// Whether it takes microseconds, but for the wait for the disk.
    pub(crate) is_quick: bool,
    /// Whether there is a secret in the answer.
    pub(crate) tells_secret: bool,
}

/// A method of HTTP that a path has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// How large a body may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// That of requests of agents.
    Request,
    /// That of whole documents: policies, tools, lists of agents.
    Document,
}

/// What a request concerns.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Subject<'a> {
    /// More than agents: it is for administrators.
    Everything,
    Agent(&'a str),
    /// The agent of this record.
    Record(&'a str),
    /// The agent of this escalation.
    Escalation(EscalationId),
}

impl Spec {
    pub(crate) const fn get(method: &'static str, path: &'static str, summary: &'static str) -> Self {
        Self::of(Verb::Get, method, path, summary)
    }

    pub(crate) const fn post(method: &'static str, path: &'static str, summary: &'static str) -> Self {
        Self::of(Verb::Post, method, path, summary)
    }

    /// One of a session of the sidecar, which HTTP has not.
    pub(crate) const fn of_session(method: &'static str, summary: &'static str) -> Self {
        Self::of(Verb::Post, method, "", summary)
    }

    pub(crate) const fn of(verb: Verb, method: &'static str, path: &'static str, summary: &'static str) -> Self {
        Self {
            method,
            verb,
            path,
            summary,
            size: Size::Request,
            scope: Scope::Admin,
            errors: &[],
            queried: &[],
            refuses_null: false,
            is_quick: false,
            tells_secret: false,
        }
    }

    /// Keys of agents may make it too.
    pub(crate) const fn for_agents(self) -> Self {
        Self { scope: Scope::Agent, ..self }
    }

    pub(crate) const fn is_for_agents(&self) -> bool {
        matches!(self.scope, Scope::Agent)
    }

    /// Whether it changes nothing and records nothing.
    pub(crate) fn only_reads(&self) -> bool {
        self.verb == Verb::Get || READS.contains(&self.method)
    }

    pub(crate) const fn errors(self, errors: &'static [u16]) -> Self {
        Self { errors, ..self }
    }

    pub(crate) const fn queried(self, queried: &'static [&'static str]) -> Self {
        Self { queried, ..self }
    }

    /// It takes whole documents.
    pub(crate) const fn large(self) -> Self {
        Self { size: Size::Document, ..self }
    }

    pub(crate) const fn quick(self) -> Self {
        Self { is_quick: true, ..self }
    }

    pub(crate) const fn secret(self) -> Self {
        Self { tells_secret: true, ..self }
    }

    /// A parameter that has got no value lets as much through as a misspelt one.
    pub(crate) const fn no_null(self) -> Self {
        Self { refuses_null: true, ..self }
    }

    /// What is wrong with a parameter, with the code that it has here.
    pub(crate) fn fault(&self, parameter: &'static str, message: String) -> Error {
        let is_whole_query = parameter == ALL && !self.queried.is_empty();
        if self.queried.contains(&parameter) || is_whole_query {
            Error::query(parameter, message)
        } else {
            Error::input(parameter, message)
        }
    }
}

/// Calls with a body that change nothing and record nothing.
const READS: &[&str] = &[
    "checkpoint/prove",
    "escalation/wait",
    "intent",
    "policy/explain",
    "policy/preview",
    "policy/replay",
    "policy/validate",
];

impl Verb {
    /// Whether its requests have a body; others have a query.
    pub(crate) const fn has_body(self) -> bool {
        !matches!(self, Self::Get | Self::Delete)
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// A type, as what describes it.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) name: fn() -> Cow<'static, str>,
    pub(crate) schema: fn() -> RefOr<Schema>,
    pub(crate) parts: fn(&mut Vec<(String, RefOr<Schema>)>),
}

impl Shape {
    pub(crate) const fn of<T: ToSchema>() -> Self {
        Self { name: T::name, schema: T::schema, parts: T::schemas }
    }
}

/// Parameters that are all given, as keywords of JSON Schema.
pub(crate) fn required_together(names: &[&str]) -> Value {
    let properties: Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), json!({ "not": { "type": "null" } }))).collect();
    json!({ "required": names, "properties": properties })
}

/// A person's name, or nothing.
pub(crate) fn person() -> Schema {
    named(ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::String, Type::Null])))
}

pub(crate) fn required_person() -> Schema {
    named(ObjectBuilder::new().schema_type(Type::String))
}

fn named(schema: ObjectBuilder) -> Schema {
    schema
        .pattern(Some(r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$"))
        .max_length(Some(256))
        .description(Some("A name: 1 to 256 characters, not blank, none a control character."))
        .into()
}
