//! Explains why each rule matched a request or did not. `reasoning` is the short form of the same.

use serde::Serialize;

use super::assumptions::{Assumptions, ConditionCache, Resolved};
use super::binding::{self, Binding};
use super::condition::Condition;
use super::evaluate::Engine;
use super::fact::Fact;
use super::limit::{LimitUse, Meter};
use super::pattern::Names;
use super::request::PolicyRequest;
use super::rule::{CLASSIFICATION_KEY, Clause, ENVIRONMENT_KEY, Effect, Levels, Rule};
use rulekeep_types::{Capability, Constraints, RiskLevel, Tier, excerpt};

/// The result of one rule of a policy set on a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RuleTrace {
    /// The rule's id.
    pub rule: String,
    /// The name of the rule's document; absent if the set has a single document without a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
    /// The line in the document on which the rule starts.
    pub line: usize,
    /// The rule's effect when it matches.
    pub effect: Effect,
    /// The severity of a match, if the rule states one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<RiskLevel>,
    /// Whether the rule matched: all clauses and conditions hold.
    pub matched: bool,
    /// Whether the verdict rests on the rule: it matched and nothing outranked it. For an escalation this includes
    /// the rules that grant after an approval.
    pub decided: bool,
    /// The required capabilities that the rule matches; empty if the rule did not match.
    pub capabilities: Vec<Capability>,
    /// The constraints that the rule adds to what is granted, now or after an approval; empty unless the rule decided
    /// and grants.
    #[serde(skip_serializing_if = "Constraints::is_empty")]
    pub constraints: Constraints,
    /// The first clause that did not hold, by its name in the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// The relations of operands and open parts of the request to the rule's clauses; at most 32.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bindings: Vec<OperandTrace>,
    /// The result in words.
    pub why: String,
}

/// The relation of an operand, or of a part that could not be read, to a clause of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct OperandTrace {
    /// The place of the act in the facts, from 0.
    pub act: usize,
    /// The clause, by its name in the document.
    pub clause: String,
    /// The operand, or the part that could not be read, without secrets.
    pub operand: String,
    /// The relation of the operand or part to what the clause names.
    pub binding: Binding,
}

impl RuleTrace {
    /// Records that the verdict does not rest on the rules.
    pub fn decides_nothing(&mut self) {
        self.decided = false;
        self.constraints = Constraints::new();
    }
}

impl Engine {
    /// Traces every rule, in document order.
    pub(super) fn explain(&self, request: &PolicyRequest<'_>, meter: &mut dyn Meter) -> Vec<RuleTrace> {
        let Resolved { findings, limits, .. } =
            self.resolve_limits(request, Assumptions::default(), &ConditionCache::default(), meter);
        let trace = |(number, rule): (usize, &Rule)| {
            let decided = self.decided(&findings, number);
            self.trace(rule, request, decided, spending(rule, request, decided, &limits))
        };
        self.rules.iter().enumerate().map(trace).collect()
    }

    fn trace(&self, rule: &Rule, request: &PolicyRequest<'_>, decided: bool, spending: Spending) -> RuleTrace {
        let spoken_of = request.intent.required_capabilities.iter().filter(|capability| rule.speaks_about(capability));
        let mut capabilities: Vec<Capability> = spoken_of.cloned().collect();
        let constrains = decided && spending == Spending::WithinLimit;
        let (failed, why) = if capabilities.is_empty() {
            (Some("capabilities".to_owned()), not_spoken_of(rule))
        } else {
            let failing = failing(rule, request, &mut capabilities);
            match failing.map_or_else(|| rule.condition(request), |clause| Ok(Some(clause))) {
                Ok(Some(clause)) => {
                    capabilities.clear();
                    (Some(name(clause)), in_words(clause, rule, request))
                }
                Ok(None) => match spending {
                    Spending::WithinLimit => {
                        let is_unread = !rule.matches.allows && rule.binds_unread(request);
                        (None, self.matched_in_words(rule, &capabilities, decided, is_unread))
                    }
                    Spending::UsedUp => (None, past_limit_in_words(rule, "is used up", &capabilities)),
                    Spending::Uncounted(why) => {
                        (None, past_limit_in_words(rule, &format!("cannot be counted: {why}"), &capabilities))
                    }
                },
                Err(message) => {
                    capabilities.clear();
                    let failed = message.split(':').next().unwrap_or_default().to_owned();
                    (Some(failed), format!("the condition failed: {message}"))
                }
            }
        };
        RuleTrace {
            rule: rule.id.to_string(),
            document: self.citations().document(rule).map(str::to_owned),
            line: rule.line,
            effect: rule.effect,
            severity: rule.severity,
            matched: failed.is_none(),
            decided,
            constraints: if constrains { rule.constraints.clone() } else { Constraints::new() },
            capabilities,
            failed,
            bindings: bindings(rule, request),
            why,
        }
    }

    fn matched_in_words(&self, rule: &Rule, capabilities: &[Capability], decided: bool, is_unread: bool) -> String {
        let listed = |wanted: &[&Capability]| texts(wanted.iter().map(|one| one.as_str()));
        let all: Vec<&Capability> = capabilities.iter().collect();
        let granted: Vec<&Capability> = match rule.effect {
            Effect::Allow => all.clone(),
            Effect::Degrade => all.iter().copied().filter(|one| rule.leaves(one)).collect(),
            Effect::Deny | Effect::Escalate => Vec::new(),
        };
        let (left, not_left): (Vec<_>, Vec<_>) = granted.iter().partition(|one| self.may_grant(rule, one));
        let does = match rule.effect {
            Effect::Deny => format!("denies {}", listed(&all)),
            Effect::Allow if left.is_empty() => "grants nothing".to_owned(),
            Effect::Allow => format!("allows {}", listed(&left)),
            Effect::Escalate => {
                let reviewer = rule.reviewer.as_deref().unwrap_or("a reviewer");
                let people = if rule.approvals > 1 { format!(" ({} people)", rule.approvals) } else { String::new() };
                format!("has {reviewer}{people} decide on {}", listed(&all))
            }
            Effect::Degrade if granted.is_empty() => format!("leaves nothing of {}", listed(&all)),
            Effect::Degrade => format!("leaves {} of {}", listed(&granted), listed(&all)),
        };
        let is_idle = left.is_empty() && !not_left.is_empty();
        let bounds = if not_left.is_empty() {
            String::new()
        } else {
            let by_itself =
                if rule.effect == Effect::Degrade { ", but does not grant all of it by itself" } else { "" };
            let constrains = match (rule.constraints.is_empty(), rule.limit.is_none()) {
                _ if !decided => "",
                (true, true) => "",
                (false, true) => "; its constraints count",
                (true, false) => "; its limit counts",
                (false, false) => "; its constraints and its limit count",
            };
            format!("{by_itself}: an earlier document does not leave {} to this one{constrains}", listed(&not_left))
        };
        let outranked = if decided || is_idle {
            ""
        } else {
            ", but does not count: a stronger rule decides, or no document names the capability"
        };
        let holds = if is_unread {
            "every clause holds or may hold, as a part could not be read"
        } else {
            "every clause holds"
        };
        format!("{holds}: {does}{bounds}{outranked}")
    }
}

/// The relations of all operands and open parts to the rule's clauses over operands.
fn bindings(rule: &Rule, request: &PolicyRequest<'_>) -> Vec<OperandTrace> {
    let Some(facts) = &request.intent.known else { return Vec::new() };
    let excluded = rule.matches.not.as_ref().map_or(&[][..], |not| &not.clauses.context);
    let clauses = rule.matches.context.iter().map(|clause| ("", clause));
    let clauses = clauses.chain(excluded.iter().map(|clause| ("not.", clause)));
    let mut traces = Vec::new();
    for (prefix, clause) in clauses {
        let Some(fact) = clause.fact.filter(|fact| fact.is_target()) else { continue };
        let mut trace = |act: usize, operand: &str, binding: Binding| {
            traces.push(OperandTrace {
                act,
                clause: format!("{prefix}{}", fact.clause()),
                operand: excerpt(operand),
                binding,
            });
        };
        for (place, (act, shown)) in facts.acts.iter().zip(&facts.shown().acts).enumerate() {
            for (operand, shown) in act.operands.iter().zip(&shown.operands) {
                if fact.kinds().has(operand.kind) {
                    let binding = clause.named().binds(operand, (&**facts).into(), rule.matches.way());
                    trace(place, &shown.value, binding);
                }
            }
            for (open, shown) in act.open.iter().zip(&shown.open).filter(|(open, _)| open.kinds.meets(fact.kinds())) {
                trace(place, &shown.found, binding::of_cause(open.cause));
            }
        }
    }
    traces.truncate(MOST_TRACED);
    traces
}

/// Maximum number of relations in a trace.
const MOST_TRACED: usize = 32;

/// The state of a rule's limit.
#[derive(PartialEq, Eq)]
enum Spending {
    /// The rule has no limit, the limit has room, or it was not consulted.
    WithinLimit,
    UsedUp,
    /// The request cannot be counted, with the reason.
    Uncounted(String),
}

fn spending(rule: &Rule, request: &PolicyRequest<'_>, decided: bool, limits: &[LimitUse]) -> Spending {
    let Some(limit) = &rule.limit else { return Spending::WithinLimit };
    // A rule with nobody to count for has no entry among the limit uses; it then decided by its effect past the
    // limit.
    let is_past = limits.iter().any(|one| one.rule == rule.id && one.is_spent()) || decided;
    match limit.uncounted(rule, request).filter(|_| is_past) {
        Some(why) => Spending::Uncounted(why),
        None if limits.iter().any(|one| one.rule == rule.id && one.is_spent()) => Spending::UsedUp,
        None => Spending::WithinLimit,
    }
}

/// Explains why a rule does not match; `None` if it matches. `Err` if a condition fails. If `is_context_open`,
/// clauses on context values that are absent, such as classification and environment, are skipped.
pub(super) fn why_not(
    rule: &Rule,
    request: &PolicyRequest<'_>,
    is_context_open: bool,
) -> Result<Option<String>, String> {
    let required = &request.intent.required_capabilities;
    if !required.iter().any(|capability| rule.speaks_about(capability)) {
        return Ok(Some(not_spoken_of(rule)));
    }
    let mut spoken_of = required.iter().filter(|capability| rule.speaks_about(capability)).cloned().collect();
    let failing = failing(rule, request, &mut spoken_of).filter(|clause| {
        !(is_context_open
            && matches!(
                clause,
                Clause::Classification
                    | Clause::Environment
                    | Clause::Context(_)
                    | Clause::Not { of_context: true, .. }
            ))
    });
    if let Some(clause) = failing {
        return Ok(Some(in_words(clause, rule, request)));
    }
    Ok(rule.condition(request)?.map(|clause| in_words(clause, rule, request)))
}

/// The first clause that does not hold for a capability by itself. `capabilities` keeps those for which all hold, if
/// there are any.
fn failing<'r>(rule: &'r Rule, request: &PolicyRequest<'_>, capabilities: &mut Vec<Capability>) -> Option<Clause<'r>> {
    let failing = |capability: &Capability| rule.matches.failing_for(request, Some(capability));
    if capabilities.iter().any(|one| failing(one).is_none()) {
        capabilities.retain(|one| failing(one).is_none());
    }
    capabilities.first().and_then(failing)
}

fn not_spoken_of(rule: &Rule) -> String {
    let listed = texts(rule.matches.capabilities.iter().map(ToString::to_string));
    format!("none of the required capabilities is {listed}")
}

/// Describes what a rule does after its limit is used up.
fn past_limit_in_words(rule: &Rule, how: &str, capabilities: &[Capability]) -> String {
    let listed = texts(capabilities.iter().map(Capability::as_str));
    let limit = rule.limit.as_ref().map(ToString::to_string).unwrap_or_default();
    let does = match rule.limit.as_ref().and_then(|limit| limit.over.reviewer()) {
        Some(reviewer) => format!("has {reviewer} decide on"),
        None => "denies".to_owned(),
    };
    format!("every clause holds, but the limit ({limit}) {how}: {does} {listed}")
}

fn name(clause: Clause<'_>) -> String {
    match clause {
        Clause::Risk => "risk".to_owned(),
        Clause::Tiers => "tiers".to_owned(),
        Clause::Agents => "agents".to_owned(),
        Clause::Labels => "labels".to_owned(),
        Clause::Groups => "groups".to_owned(),
        Clause::Actions => "actions".to_owned(),
        Clause::Commands => "commands".to_owned(),
        Clause::Classification => "classification".to_owned(),
        Clause::Environment => "environment".to_owned(),
        Clause::Context(clause) => format!("context.{}", clause.key),
        Clause::Not { name, .. } => format!("not.{name}"),
        Clause::When(_) => "when".to_owned(),
        Clause::Unless(_) => "unless".to_owned(),
    }
}

fn in_words(clause: Clause<'_>, rule: &Rule, request: &PolicyRequest<'_>) -> String {
    let (intent, matches) = (request.intent, &rule.matches);
    match clause {
        Clause::Risk => format!("the risk is {}, not {}", request.risk, risks(matches.levels)),
        Clause::Tiers => format!("the tier is {}, not {}", request.trust.tier, tiers(matches.levels)),
        Clause::Agents => {
            format!("the agent is {:?}, not {}", excerpt(intent.agent_id.as_str()), names(&matches.agents))
        }
        Clause::Labels => format!("the agent has no label {}", names(&matches.labels)),
        Clause::Groups => format!("the agent is in no group {}", names(&matches.groups)),
        Clause::Actions => format!("the action is {}, not {}", actions(request), names(&matches.actions)),
        Clause::Commands => format!("{}, not {}", commands(request), names(&matches.commands)),
        Clause::Classification => {
            let wanted = texts(matches.levels.classes());
            format!("{}, not {wanted}", found(request, CLASSIFICATION_KEY))
        }
        Clause::Environment => {
            let wanted = texts(matches.environment.iter());
            format!("{}, not {wanted}", found(request, ENVIRONMENT_KEY))
        }
        Clause::Context(clause) => {
            format!("{}, which does not match {:?}", found(request, &clause.key), clause.pattern.0.as_str())
        }
        Clause::Not { name, .. } => format!("it is, or may be, what not.{name} names"),
        Clause::When(condition) => format!("the condition does not hold: {}", read_by(condition, request)),
        Clause::Unless(condition) => format!("the exception holds: {}", read_by(condition, request)),
    }
}

/// A condition's text, and the context values that it reads.
fn read_by(condition: &Condition, request: &PolicyRequest<'_>) -> String {
    let source = excerpt(condition.source());
    let keys = condition.context_keys().iter().take(MAX_NAMED).map(|key| found(request, key));
    std::iter::once(source).chain(keys).collect::<Vec<_>>().join("; ")
}

/// The context value of a key, escaped and shortened, because it is the caller's text.
fn found(request: &PolicyRequest<'_>, key: &str) -> String {
    if let (Some(fact), Some(facts)) = (Fact::of_key(key), &request.intent.known) {
        let values: Vec<String> =
            fact.shown(facts.shown()).into_iter().map(|value| format!("{:?}", excerpt(value))).collect();
        return match values.is_empty() {
            _ if fact.is_unread(facts) => format!("{key} could not be read in full"),
            true => format!("{key} is absent"),
            false => format!("{key} is {}", texts(values.iter())),
        };
    }
    match request.intent.context.get(key) {
        None => format!("context.{key} is absent"),
        Some(serde_json::Value::String(text)) => format!("context.{key} is {:?}", excerpt(text)),
        Some(serde_json::Value::Number(number)) => format!("context.{key} is {number}"),
        Some(_) => format!("context.{key} is neither a string nor a number"),
    }
}

/// The actions of all acts.
fn actions(request: &PolicyRequest<'_>) -> String {
    let Some(facts) = &request.intent.known else { return request.intent.parsed_action.to_string() };
    let mut actions: Vec<&str> =
        facts.acts.iter().flat_map(|act| &act.does).map(|doing| doing.action.as_str()).collect();
    actions.dedup();
    texts(actions.into_iter())
}

fn commands(request: &PolicyRequest<'_>) -> String {
    let facts = request.intent.known.as_ref();
    let commands: Vec<String> = facts
        .iter()
        .flat_map(|facts| &facts.shown().acts)
        .flat_map(|act| &act.commands)
        .map(|command| format!("{:?}", excerpt(command)))
        .collect();
    if commands.is_empty() {
        "no command is run".to_owned()
    } else {
        format!("the command is {}", texts(commands.iter()))
    }
}

fn risks(levels: Levels) -> String {
    range(RiskLevel::ALL.iter().filter(|level| levels.has_risk(**level)))
}

fn tiers(levels: Levels) -> String {
    range(Tier::ALL.iter().filter(|tier| levels.has_tier(**tier)))
}

fn range<T: ToString + PartialEq>(mut values: impl Iterator<Item = T>) -> String {
    let first = values.next().map(|value| value.to_string()).unwrap_or_default();
    match values.last() {
        Some(last) => format!("{first} to {}", last.to_string()),
        None => first,
    }
}

fn names(names: &Names) -> String {
    texts(names.texts())
}

/// Formats `a, b or 4 others`.
fn texts<T: ToString>(items: impl Iterator<Item = T>) -> String {
    let all: Vec<String> = items.map(|item| item.to_string()).collect();
    let named = all.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(MAX_NAMED) {
        0 => named,
        more => format!("{named} or {more} others"),
    }
}

const MAX_NAMED: usize = 5;
