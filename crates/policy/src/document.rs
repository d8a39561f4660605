//! The schema of a policy document: reads a located tree into rules and reports every violation with rule, field and
//! place. `clauses` reads what is under `match`.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::alert::{self, LocatedAlert};
use super::clauses::{self, Vocabulary};
use super::conditions::Conditions;
use super::duration;
use super::environments::Environments;
use super::examples::Examples;
use super::fact::Fact;
use super::identifier::{MAX_NAME_CHARS, id, well_formed_id};
use super::limit::Limit;
use super::pattern::CapabilityPattern;
use super::reviewers::Reviewers;
use super::rule::{DEFAULT_EXPIRY, ENVIRONMENT_KEY, Effect, Match, Pattern, Rule, Runs};
use super::unmatchable;
use super::value;
use rulekeep_types::document::{Fields, Node, Report};
use rulekeep_types::{CALLERS_KEYS, Constraints, Operation, PARSED_KEYS, RiskLevel};

/// A document that follows the schema. `check` covers problems across rules.
#[derive(Default)]
pub(super) struct Document {
    pub(super) name: String,
    pub(super) vocabulary: Vocabulary,
    /// The capabilities that later documents may grant on their own.
    pub(super) delegates: Vec<CapabilityPattern>,
    pub(super) reviewers: Reviewers,
    pub(super) environments: Environments,
    pub(super) rules: Vec<Rule>,
    pub(super) alerts: Vec<LocatedAlert>,
}

impl Document {
    /// Reads as much as possible and reports the rest.
    pub(super) fn read(root: Node, report: &mut Report<'_>) -> Self {
        let mut document = Self::default();
        let Some(mut fields) = Fields::of_document(root, DOCUMENT_FIELDS, report) else { return document };
        document.name = fields.required_line("name", MAX_NAME_CHARS, report).unwrap_or_default();
        fields.line("description", MAX_TEXT_CHARS, report);
        if let Some(node) = fields.take("vocabulary") {
            document.vocabulary = Vocabulary::read(node, report);
        }
        let patterns = |node, path: &_, report: &mut _| document.vocabulary.patterns(node, path, report);
        document.delegates = fields.read_with("delegates", report, patterns).unwrap_or_default();
        if let Some(node) = fields.take("reviewers") {
            document.reviewers = Reviewers::read(node, report);
        }
        if let Some(node) = fields.take("environments") {
            document.environments = Environments::read(node, report);
        }
        let (singular, plural) = (fields.take("rule"), fields.take("rules"));
        if let (Some(_), Some(second)) = (&singular, &plural) {
            report.error(second.at, "rules", "rules are listed under both \"rule\" and \"rules\"; keep one of the two");
        }
        let mut patterns = HashMap::new();
        for list in [singular, plural].into_iter().flatten() {
            for (index, node) in report.list(list, "rule").into_iter().enumerate() {
                if report.is_full() {
                    break;
                }
                report.rule = Some(format!("rule number {}", index + 1));
                let mut reader = RuleReader {
                    vocabulary: &document.vocabulary,
                    reviewers: &document.reviewers,
                    patterns: &mut patterns,
                };
                document.rules.extend(reader.read(node, report));
                report.rule = None;
            }
        }
        if let Some(node) = fields.take("alert") {
            document.alerts = alert::read(node, report);
        }
        document
    }
}

/// Reads rules. Equal regular expressions are compiled once.
struct RuleReader<'a> {
    vocabulary: &'a Vocabulary,
    reviewers: &'a Reviewers,
    patterns: &'a mut HashMap<String, Pattern>,
}

impl RuleReader<'_> {
    fn read(&mut self, node: Node, report: &mut Report<'_>) -> Option<Rule> {
        let at = node.at;
        // The id is needed first, so that problems with the other fields can name the rule.
        if let Some(id) = well_formed_id(&node) {
            report.rule = Some(format!("rule {id:?}"));
        }
        let mut fields = Fields::of(node, "", RULE_FIELDS, report)?;
        let id = id(&mut fields, "rule", report);
        let effect: Option<Effect> = fields.required_word("effect", Effect::ALL, report);
        let reviewer_at = fields.place("reviewer");
        let reviewer = fields.line("reviewer", MAX_NAME_CHARS, report);
        let (approvals_at, expires_at) = (fields.place("approvals"), fields.place("expires"));
        let approvals = fields.read("approvals", report, |node, path, report| {
            u8::try_from(report.whole(&node, path, MAX_APPROVALS)?).ok()
        });
        let expires = fields.read("expires", report, duration::read);
        let to_at = fields.place("to");
        let to = fields.read_with("to", report, |node, path, report| self.vocabulary.patterns(node, path, report));
        let reason = fields.line("reason", MAX_TEXT_CHARS, report);
        let matches = fields.take("match").map(|node| clauses::read(node, self.vocabulary, self.patterns, report));
        let mut matches = matches.unwrap_or_default();
        let constraints_at = fields.place("constraints");
        let constraints = fields.take("constraints").map(|node| value::constraints(node, report));

        let severity = fields.word("severity", RiskLevel::ALL, report);
        let limit_node = fields.take("limit");
        let conditions = Conditions::read(&mut fields, report);
        let examples = fields.take("examples").and_then(|node| Examples::read(node, report));

        let effect = effect?;
        let mut must_fit = |field: &'static str, at: Option<usize>, goes_with: &[Effect], is_needed: bool| {
            let fits = goes_with.contains(&effect);
            match at {
                Some(at) if !fits => {
                    let whom = goes_with.iter().map(|effect| effect.as_str()).collect::<Vec<_>>().join(" or ");
                    report.error(
                        at,
                        field,
                        format!("a rule with effect {effect} cannot have {field}; it belongs to {whom}"),
                    );
                }
                None if fits && is_needed => {
                    report.error(fields.at, field, format!("a rule with effect {effect} needs a field {field:?}"));
                }
                _ => {}
            }
        };
        must_fit("reviewer", reviewer_at, &[Effect::Escalate], true);
        must_fit("approvals", approvals_at, &[Effect::Escalate], false);
        must_fit("expires", expires_at, &[Effect::Escalate], false);
        must_fit("to", to_at, &[Effect::Degrade], true);
        must_fit("constraints", constraints_at, &[Effect::Allow, Effect::Degrade], false);
        must_fit("match.runs", (matches.runs != Runs::None).then_some(at), &[Effect::Allow], false);
        must_fit("match.trees", matches.trees.then_some(at), &[Effect::Deny, Effect::Escalate, Effect::Degrade], false);

        let approvals = approvals.unwrap_or(1);
        if let Some(wrong) = reviewer.as_deref().and_then(|name| self.reviewers.too_few(name, approvals)) {
            report.error(approvals_at.unwrap_or(at), "approvals", wrong);
        }
        let limit = limit_node.and_then(|node| Limit::read(node, effect, &conditions, report));

        let to = to.unwrap_or_default();
        warn_of_idle_remains(&to, to_at, &matches.capabilities, report);
        matches.set_effect(effect);
        if !report.has_errors() {
            warn_of_keys(&matches, &conditions, at, report);
            warn_of_the_first_target(effect, &matches, at, report);
        }
        let rule = Rule {
            id: id?.into(),
            effect,
            reviewer: reviewer.map(Arc::from),
            approvals,
            expires: expires.unwrap_or(DEFAULT_EXPIRY),
            to,
            reason: reason.map(String::into_boxed_str),
            constraints: constraints.unwrap_or_else(Constraints::new),
            never: unmatchable::reason(&matches, &conditions).map(String::into_boxed_str),
            conditions,
            limit,
            severity,
            layer: 0,
            matches,
            at,
            line: report.line_of(at),
        };
        if let Some(examples) = examples.filter(|_| !report.has_errors()) {
            examples.check(&rule, report);
        }
        Some(rule)
    }
}

fn warn_of_idle_remains(
    to: &[CapabilityPattern],
    to_at: Option<usize>,
    matched: &[CapabilityPattern],
    report: &mut Report<'_>,
) {
    let remains = |left: &CapabilityPattern| matched.is_empty() || matched.iter().any(|pattern| pattern.meets(left));
    if !to.is_empty() && !to.iter().any(remains) {
        let message = "this rule grants nothing of what it matches: list some of it under to, or use effect = \"deny\"";
        report.warn(to_at.unwrap_or_default(), "to", message);
        return;
    }
    for idle in to.iter().filter(|left| !remains(left)) {
        let message = format!("{idle} can never be granted: the rule does not match it");
        report.warn(to_at.unwrap_or_default(), "to", message);
    }
}

/// Warns of context keys that look misspelled, and of keys that a condition reads although they may be missing.
fn warn_of_keys(matches: &Match, conditions: &Conditions, at: usize, report: &mut Report<'_>) {
    let clauses = || matches.context.iter().map(|clause| &*clause.key).filter(|key| Fact::of_key(key).is_none());
    for key in clauses().chain(conditions.keys().map(|(key, _)| key)).collect::<BTreeSet<_>>() {
        if let Some(meant) = value::slip(key, PARSED_KEYS.iter().chain(CALLERS_KEYS).copied()) {
            report.warn(at, "", format!("context.{key} is a key of your own; did you mean {meant:?}?"));
        }
    }
    // A clause on the key implies that it exists.
    let is_there =
        |key: &str| clauses().any(|known| known == key) || key == ENVIRONMENT_KEY && !matches.environment.is_empty();
    for key in conditions
        .keys()
        .filter(|(key, is_asked)| !is_asked && !is_there(key))
        .map(|(key, _)| key)
        .collect::<BTreeSet<_>>()
    {
        let message = format!(
            "the condition fails for a request without context.{key}, which can cause POLICY_ERROR; test \
             has(context.{key}) first"
        );
        report.warn(at, "", message);
    }
}

/// Warns if a rule allows sending by the key `target`, which holds only the first target.
fn warn_of_the_first_target(effect: Effect, matches: &Match, at: usize, report: &mut Report<'_>) {
    let is_on = |key: &str| matches.context.iter().any(|clause| &*clause.key == key);
    let sends = |pattern: &CapabilityPattern| {
        pattern.operation.as_deref().is_none_or(|operation| operation == Operation::Send.as_str())
    };
    let may_send = matches.capabilities.is_empty() || matches.capabilities.iter().any(sends);
    if effect == Effect::Allow && may_send && is_on("target") && !is_on("facts.recipients") {
        let message = "the key \"target\" is informational; list the permitted recipients under match.recipients";
        report.warn(at, "match.context", message);
    }
}

const DOCUMENT_FIELDS: &[&str] =
    &["name", "description", "vocabulary", "delegates", "reviewers", "environments", "rule", "rules", "alert"];
const RULE_FIELDS: &[&str] = &[
    "id",
    "effect",
    "reviewer",
    "approvals",
    "expires",
    "to",
    "reason",
    "severity",
    "match",
    "let",
    "when",
    "unless",
    "constraints",
    "limit",
    "examples",
];
const MAX_APPROVALS: i64 = 5;
const MAX_TEXT_CHARS: usize = 1_000;
