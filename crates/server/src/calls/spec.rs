//! The description of a call, apart from its parameters and response.

use utoipa::openapi::schema::{SchemaType, Type};
use utoipa::openapi::{ObjectBuilder, Schema};

use crate::gateway::Scope;
use rulekeep::Error;
use rulekeep::escalation::EscalationId;

/// The name for errors that belong to no single parameter.
pub(super) const ALL: &str = "params";

/// The description of a call.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// The name in the sidecar protocol.
    pub method: &'static str,
    pub(crate) verb: Verb,
    /// The path; `{name}` stands for a parameter.
    pub(crate) path: &'static str,
    /// The effect of the call, as a sentence without a full stop.
    #[cfg_attr(not(test), expect(dead_code, reason = "only the OpenAPI document has it"))]
    pub(crate) summary: &'static str,
    /// The size limit of the body.
    pub(crate) size: Size,
    /// The keys that may make the call beside admin keys.
    pub(crate) scopes: &'static [Scope],
    /// The error statuses in addition to those that every call can have.
    #[cfg_attr(not(test), expect(dead_code, reason = "only the OpenAPI document has them"))]
    pub(crate) errors: &'static [u16],
    /// The parameters whose errors are query errors; those of all others are input errors.
    pub(crate) queried: &'static [&'static str],
    /// Whether a `null` parameter is refused; otherwise it counts as absent.
    pub(crate) refuses_null: bool,
    /// Whether the call takes only microseconds, apart from waiting for the disk.
    pub(crate) is_quick: bool,
    /// Whether the response contains a secret.
    pub(crate) tells_secret: bool,
}

/// The HTTP method of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// The size limit of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// The limit for requests of agents.
    Request,
    /// The limit for whole documents: policies, tools, lists of agents.
    Document,
}

/// The subject of a request.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'a> {
    /// More than single agents, so an admin key is required.
    Everything,
    Agent(&'a str),
    /// The agent of this record.
    Record(&'a str),
    /// The agent of this escalation.
    Escalation(EscalationId),
    /// Escalations of all agents, for their reviewers.
    Reviews,
}

impl Spec {
    pub(crate) const fn get(method: &'static str, path: &'static str, summary: &'static str) -> Self {
        Self::of(Verb::Get, method, path, summary)
    }

    pub(crate) const fn post(method: &'static str, path: &'static str, summary: &'static str) -> Self {
        Self::of(Verb::Post, method, path, summary)
    }

    /// Describes a call of a sidecar session, which HTTP does not have.
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
            scopes: &[],
            errors: &[],
            queried: &[],
            refuses_null: false,
            is_quick: false,
            tells_secret: false,
        }
    }

    /// Allows agent keys as well, for their own agents.
    pub(crate) const fn for_agents(self) -> Self {
        Self { scopes: &[Scope::Agent], ..self }
    }

    /// Allows keys of reviewers as well.
    pub(crate) const fn for_reviewers(self) -> Self {
        Self { scopes: &[Scope::Reviewer], ..self }
    }

    /// Allows keys of agents, for their own agents, and of reviewers as well.
    pub(crate) const fn for_both(self) -> Self {
        Self { scopes: &[Scope::Agent, Scope::Reviewer], ..self }
    }

    pub(crate) fn is_for(&self, scope: Scope) -> bool {
        scope == Scope::Admin || self.scopes.contains(&scope)
    }

    /// Returns whether the call changes nothing and records nothing.
    pub(crate) fn only_reads(&self) -> bool {
        self.verb == Verb::Get || READS.contains(&self.method)
    }

    pub(crate) const fn errors(self, errors: &'static [u16]) -> Self {
        Self { errors, ..self }
    }

    pub(crate) const fn queried(self, queried: &'static [&'static str]) -> Self {
        Self { queried, ..self }
    }

    /// Allows whole documents.
    pub(crate) const fn large(self) -> Self {
        Self { size: Size::Document, ..self }
    }

    pub(crate) const fn quick(self) -> Self {
        Self { is_quick: true, ..self }
    }

    pub(crate) const fn secret(self) -> Self {
        Self { tells_secret: true, ..self }
    }

    /// Refuses `null`: an empty parameter would let as much pass as a misspelled one.
    pub(crate) const fn no_null(self) -> Self {
        Self { refuses_null: true, ..self }
    }

    /// Makes the error of a parameter, with the code that applies to it.
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
    "command/request",
    "command/start",
    "escalation/wait",
    "intent",
    "policy/explain",
    "policy/preview",
    "policy/replay",
    "policy/validate",
];

impl Verb {
    /// Returns whether requests have a body; the others have a query.
    pub(crate) const fn has_body(self) -> bool {
        !matches!(self, Self::Get | Self::Delete)
    }

    #[cfg(test)]
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

/// The description of a type, for the OpenAPI document.
#[cfg(test)]
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) name: fn() -> std::borrow::Cow<'static, str>,
    pub(crate) schema: fn() -> utoipa::openapi::RefOr<Schema>,
    pub(crate) parts: fn(&mut Vec<(String, utoipa::openapi::RefOr<Schema>)>),
}

#[cfg(test)]
impl Shape {
    pub(crate) const fn of<T: utoipa::ToSchema>() -> Self {
        Self { name: T::name, schema: T::schema, parts: T::schemas }
    }
}

/// An optional person's name.
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
