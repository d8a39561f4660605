//! Exclusions: the clauses under `match.not`, which a request must not match.

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::fact::Fact;
use super::request::PolicyRequest;
use super::rule::{Clause, ContextClause, ENVIRONMENT_KEY, Match};
use rulekeep_types::Intent;

/// Clauses of which none may hold. An unknown value counts against the request: an allowing rule does not match then,
/// and a restricting rule does.
#[derive(Debug)]
pub(super) struct Exclusion {
    pub(super) clauses: Match,
    /// Whether the rule allows.
    pub(super) allows: bool,
}

impl Serialize for Exclusion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.clauses.serialize(serializer)
    }
}

impl Exclusion {
    /// The first clause that keeps the rule from matching; `None` if there is none.
    pub(super) fn failing(&self, request: &PolicyRequest<'_>, allows: bool) -> Option<Clause<'_>> {
        let (clauses, intent, traits) = (&self.clauses, request.intent, request.traits);
        let named = |name, of_context| Some(Clause::Not { name, of_context });
        if !clauses.actions.is_any() && clauses.actions.matches(intent.parsed_action.as_str()) {
            return named("actions", false);
        }
        if !clauses.agents.is_any() && clauses.agents.matches(intent.agent_id.as_str()) {
            return named("agents", false);
        }
        if !clauses.labels.is_any() && traits.labels.iter().any(|label| clauses.labels.matches(label.as_str())) {
            return named("labels", false);
        }
        if !clauses.groups.is_any() && traits.groups.iter().any(|group| clauses.groups.matches(group.as_str())) {
            return named("groups", false);
        }
        if !clauses.environment.is_empty() {
            let environment = intent.context.get(ENVIRONMENT_KEY).and_then(Value::as_str);
            if environment.map_or(allows, |name| clauses.names_environment(name)) {
                return named(ENVIRONMENT_KEY, true);
            }
        }
        let clause = clauses.context.iter().find(|clause| !is_excluded(clause, intent, allows))?;
        named(&clause.key, true)
    }
}

/// Returns whether the value that a clause reads is a different one.
fn is_excluded(clause: &ContextClause, intent: &Intent, allows: bool) -> bool {
    let matches = |text: &str| clause.pattern.0.is_match(text);
    let value = match (Fact::of_key(&clause.key), &intent.known) {
        (Some(fact), Some(facts)) => {
            let is_unread = fact.is_unread(facts);
            return if allows {
                !is_unread && !fact.values(facts).any(|(value, sent)| matches(value) || sent.is_some_and(matches))
            } else {
                // A request without a tool does not call one of the named tools; a request without a path has no path
                // elsewhere.
                let lacks_it = fact.is_single() && fact.values(facts).next().is_none();
                is_unread || lacks_it || fact.values(facts).any(|(value, _)| !matches(value))
            };
        }
        (Some(fact), None) if fact.is_target() => intent.context.get("target"),
        (Some(_), None) => None,
        (None, _) => intent.context.get(&*clause.key),
    };
    match value {
        Some(value) => !clause.matches_as(value, !allows),
        None => !allows,
    }
}
