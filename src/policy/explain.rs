//! Why each rule matched a request or did not: the slow, complete account beside
//! the short one in `reasoning`.

use serde::Serialize;

use super::condition::Condition;
use super::evaluate::Engine;
use super::limit::Meter;
use super::pattern::Names;
use super::request::PolicyRequest;
use super::rule::{CLASSIFICATION_KEY, Clause, ENVIRONMENT_KEY, Effect, Levels, Rule};
use super::settle::{Given, Memo, Settled};
use crate::model::{Capability, Constraints, RiskLevel, Tier, excerpt};

/// One rule of a policy set, held against a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RuleTrace {
    /// The rule's id.
    pub rule: String,
    /// The line on which it begins in its document.
    pub line: usize,
    /// What it does when it matches.
    pub effect: Effect,
    /// How grave a match is, where the rule says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<RiskLevel>,
    /// Whether every clause held.
    pub matched: bool,
    /// Whether the verdict rests on it: it matched, and nothing outranked it.
    pub decided: bool,
    /// The required capabilities that it speaks about; none when it did not match.
    pub capabilities: Vec<Capability>,
    /// The constraints that it adds to what is granted; none unless it decided and grants.
    #[serde(skip_serializing_if = "Constraints::is_empty")]
    pub constraints: Constraints,
    /// The first clause that did not hold, by its name in the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// The same in words.
    pub why: String,
}

impl RuleTrace {
    /// The verdict rests on something else than the rules.
    pub(crate) fn decides_nothing(&mut self) {
        self.decided = false;
        self.constraints = Constraints::new();
    }
}

impl Engine {
    /// Every rule, in the order of the document.
    pub(super) fn explain(&self, request: &PolicyRequest<'_>, meter: &mut dyn Meter) -> Vec<RuleTrace> {
        let Settled { findings, limits, .. } = self.settle(request, Given::default(), &Memo::default(), meter);
        let spent = |rule: &Rule| limits.iter().any(|limit| limit.rule == rule.id && limit.is_spent());
        let trace = |(number, rule): (usize, &Rule)| trace(rule, request, self.decided(&findings, number), spent(rule));
        self.rules.iter().enumerate().map(trace).collect()
    }
}

fn trace(rule: &Rule, request: &PolicyRequest<'_>, decided: bool, is_spent: bool) -> RuleTrace {
    let spoken_of = request.intent.required_capabilities.iter().filter(|capability| rule.speaks_about(capability));
    let mut capabilities: Vec<Capability> = spoken_of.cloned().collect();
    let (failed, why) = if capabilities.is_empty() {
        (Some("capabilities".to_owned()), not_spoken_of(rule))
    } else {
        match rule.matches.failing(request).map_or_else(|| rule.condition(request), |clause| Ok(Some(clause))) {
            Ok(Some(clause)) => {
                capabilities.clear();
                (Some(name(clause)), in_words(clause, rule, request))
            }
            Ok(None) if is_spent => (None, spent_in_words(rule, &capabilities)),
            Ok(None) => (None, matched_in_words(rule, &capabilities, decided)),
            Err(message) => {
                capabilities.clear();
                let failed = message.split(':').next().unwrap_or_default().to_owned();
                (Some(failed), format!("the condition failed: {message}"))
            }
        }
    };
    RuleTrace {
        rule: rule.id.to_string(),
        line: rule.line,
        effect: rule.effect,
        severity: rule.severity,
        matched: failed.is_none(),
        decided,
        constraints: if decided && !is_spent { rule.constraints.clone() } else { Constraints::new() },
        capabilities,
        failed,
        why,
    }
}

/// What keeps a rule from matching, in words; nothing when it matches. `Err` when a condition fails.
/// What the context says of class, environment and the like is passed over where it is not given.
pub(super) fn why_not(
    rule: &Rule,
    request: &PolicyRequest<'_>,
    is_context_open: bool,
) -> Result<Option<String>, String> {
    let required = &request.intent.required_capabilities;
    if !required.iter().any(|capability| rule.speaks_about(capability)) {
        return Ok(Some(not_spoken_of(rule)));
    }
    let failing = rule.matches.failing(request).filter(|clause| {
        !(is_context_open && matches!(clause, Clause::Classification | Clause::Environment | Clause::Context(_)))
    });
    if let Some(clause) = failing {
        return Ok(Some(in_words(clause, rule, request)));
    }
    Ok(rule.condition(request)?.map(|clause| in_words(clause, rule, request)))
}

fn not_spoken_of(rule: &Rule) -> String {
    let listed = texts(rule.matches.capabilities.iter().map(ToString::to_string));
    format!("none of the required capabilities is {listed}")
}

fn matched_in_words(rule: &Rule, capabilities: &[Capability], decided: bool) -> String {
    let listed = texts(capabilities.iter().map(Capability::as_str));
    let does = match rule.effect {
        Effect::Deny => format!("denies {listed}"),
        Effect::Allow => format!("allows {listed}"),
        Effect::Escalate => {
            let reviewer = rule.reviewer.as_deref().unwrap_or("a reviewer");
            format!("has {reviewer} decide on {listed}")
        }
        Effect::Degrade => {
            let left = texts(capabilities.iter().filter(|one| rule.leaves(one)).map(Capability::as_str));
            let left = if left.is_empty() { "nothing".to_owned() } else { left };
            format!("leaves {left} of {listed}")
        }
    };
    let outranked =
        if decided { "" } else { ", but does not count: a stronger rule decides, or no document names the capability" };
    format!("every clause holds: {does}{outranked}")
}

/// What a rule does whose limit is used up.
fn spent_in_words(rule: &Rule, capabilities: &[Capability]) -> String {
    let listed = texts(capabilities.iter().map(Capability::as_str));
    let limit = rule.limit.as_ref().map(ToString::to_string).unwrap_or_default();
    let does = match rule.limit.as_ref().and_then(|limit| limit.over.reviewer()) {
        Some(reviewer) => format!("has {reviewer} decide on"),
        None => "denies".to_owned(),
    };
    format!("every clause holds, but the limit ({limit}) is used up: {does} {listed}")
}

fn name(clause: Clause<'_>) -> String {
    match clause {
        Clause::Risk => "risk".to_owned(),
        Clause::Tiers => "tiers".to_owned(),
        Clause::Agents => "agents".to_owned(),
        Clause::Labels => "labels".to_owned(),
        Clause::Groups => "groups".to_owned(),
        Clause::Actions => "actions".to_owned(),
        Clause::Classification => "classification".to_owned(),
        Clause::Environment => "environment".to_owned(),
        Clause::Context(clause) => format!("context.{}", clause.key),
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
        Clause::Actions => format!("the action is {}, not {}", intent.parsed_action, names(&matches.actions)),
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
        Clause::When(condition) => format!("the condition does not hold: {}", read_by(condition, request)),
        Clause::Unless(condition) => format!("the exception holds: {}", read_by(condition, request)),
    }
}

/// A condition, and what the context holds of the keys that it reads.
fn read_by(condition: &Condition, request: &PolicyRequest<'_>) -> String {
    let source = excerpt(condition.source());
    let keys = condition.context_keys().iter().take(MAX_NAMED).map(|key| found(request, key));
    std::iter::once(source).chain(keys).collect::<Vec<_>>().join("; ")
}

/// What a key of the context holds, escaped and cut short: it is the caller's text.
fn found(request: &PolicyRequest<'_>, key: &str) -> String {
    match request.intent.context.get(key) {
        None => format!("context.{key} is absent"),
        Some(serde_json::Value::String(text)) => format!("context.{key} is {:?}", excerpt(text)),
        Some(serde_json::Value::Number(number)) => format!("context.{key} is {number}"),
        Some(_) => format!("context.{key} is neither a string nor a number"),
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

/// `a, b or 4 others`.
fn texts<T: ToString>(items: impl Iterator<Item = T>) -> String {
    let all: Vec<String> = items.map(|item| item.to_string()).collect();
    let named = all.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(MAX_NAMED) {
        0 => named,
        more => format!("{named} or {more} others"),
    }
}

const MAX_NAMED: usize = 5;
