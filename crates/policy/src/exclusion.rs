//! Exclusions: the clauses under `match.not`, which a request must not match.

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::binding::{self, Binding, Way};
use super::fact::Fact;
use super::request::PolicyRequest;
use super::rule::{Clause, ContextClause, ENVIRONMENT_KEY, Match};
use rulekeep_types::facts::{Act, Doing, Kind, Kinds};
use rulekeep_types::{Facts, Intent};

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
    /// The first clause besides those about acts that keeps the rule from matching; `None` if there is none.
    pub(super) fn failing(&self, request: &PolicyRequest<'_>, allows: bool) -> Option<Clause<'_>> {
        let (clauses, intent, traits) = (&self.clauses, request.intent, request.traits);
        let named = |name, of_context| Some(Clause::Not { name, of_context });
        if intent.known.is_none() && !clauses.actions.is_any() && clauses.actions.matches(intent.parsed_action.as_str())
        {
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
        let mut others = clauses.context.iter().filter(|clause| intent.known.is_none() || !clause.is_of_acts());
        let clause = others.find(|clause| !is_excluded(clause, intent, allows))?;
        named(&clause.key, true)
    }

    /// Returns whether an act that the clauses do not exclude might be excluded if all of it could be read.
    pub(super) fn is_unsure(&self, act: &Act) -> bool {
        let clauses = &self.clauses;
        let is_open = |kinds: Kinds| binding::openness(act, kinds) == Binding::Maybe;
        let named = clauses.context.iter().filter_map(|clause| clause.fact.filter(|fact| fact.is_target()));
        (!clauses.actions.is_any() || !clauses.commands.is_any()) && is_open(Kinds::of(&[Kind::Command]))
            || named.map(Fact::kinds).any(is_open)
    }

    /// Returns whether an act is none of those that the clauses name: for a grant it must certainly be none, for a
    /// restriction it may be none. `Err` is the clause that names it.
    pub(super) fn excludes(&self, act: &Act, facts: &Facts, way: Way) -> Result<(), Clause<'_>> {
        let clauses = &self.clauses;
        let is_unread = || binding::openness(act, Kinds::of(&[Kind::Command])) == Binding::Maybe;
        let check = |may_be: bool, is: bool, name| {
            let is_named = if way.grants() { may_be || is_unread() } else { is && !is_unread() };
            if is_named { Err(Clause::Not { name, of_context: false }) } else { Ok(()) }
        };
        if !clauses.actions.is_any() {
            let named = |doing: &Doing| clauses.actions.matches(doing.action.as_str());
            check(act.does.iter().any(named), !act.does.is_empty() && act.does.iter().all(named), "actions")?;
        }
        if !clauses.commands.is_any() {
            check(clauses.names_a_form(act), clauses.covers_commands(act), "commands")?;
        }
        for clause in clauses.context.iter().filter(|clause| clause.is_of_acts()) {
            let Some(fact) = clause.fact else { continue };
            let name = &*clause.key;
            if !fact.is_target() {
                let is_named = fact.is_named(act, true, |name| clause.pattern.0.is_match(name));
                check(is_named, is_named, name)?;
                continue;
            }
            let is_named = match way {
                // Whatever may be inside stops a grant.
                Way::Grants(_) => {
                    let found = binding::of_operands(clause.named(), fact, act, facts, Way::Restricts);
                    found > Binding::Runs || !binding::tolerates(act, fact.kinds(), way)
                }
                // An act of which all is inside, or that only runs code, is not restricted.
                Way::Restricts => {
                    binding::openness(act, fact.kinds()) != Binding::Maybe
                        && binding::all_inside(clause.named(), fact, act, facts)
                }
            };
            if is_named {
                return Err(Clause::Not { name, of_context: true });
            }
        }
        Ok(())
    }
}

/// Returns whether the value that a clause reads is a different one.
fn is_excluded(clause: &ContextClause, intent: &Intent, allows: bool) -> bool {
    if let (Some(Fact::Formats), Some(facts)) = (clause.fact, &intent.known) {
        let mut formats = facts.formats.iter();
        let matches = |format: &String| clause.pattern.0.is_match(format);
        return if allows { !formats.any(matches) } else { formats.any(|format| !matches(format)) };
    }
    let value = match clause.fact {
        Some(fact) if fact.is_target() => intent.context.get("target"),
        Some(_) => None,
        None => intent.context.get(&*clause.key),
    };
    match value {
        Some(value) => !clause.matches_as(value, !allows),
        None => !allows,
    }
}
